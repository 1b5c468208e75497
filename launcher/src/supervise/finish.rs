//! The end of a run: the tree, the rest of the output, and how it ended.

use crate::enforce::cgroup::Group;
use crate::enforce::reaper;
use crate::supervise::output::Pumps;
use crate::supervise::{Caller, Ending, Summary, Supervisor, Watch, tells_to_end};
use crate::sys::descriptor::{self, Interest, Ready};
use crate::sys::process::{self, Change};
use crate::sys::{SyscallError, signal};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

impl Supervisor<'_> {
    /// Waits for the end of the tree, and says how the run ended.
    pub(super) fn end(mut self) -> Result<Summary, SyscallError> {
        let mut kept_background = false;
        if let (Watch::Reaper(reaper), None) = (&self.task.watch, &self.departing) {
            let ended = process::wait(Some(reaper.pid), true, false);
            if self.keeps_background() {
                kept_background = process::has_children();
            } else if !matches!(ended, Some((_, Change::Exited(0)))) {
                // A killed reaper leaves its descendants to the supervisor. After a reaper that has ended
                // them all, the only children left are those of the program that became this one.
                reaper::end_all(Duration::from_secs(10), None);
            }
        }
        self.flush()?;
        if self.ending == Some(Ending::Killed(libc::SIGKILL))
            && self.task.group.as_ref().is_some_and(Group::ran_out_of_memory)
        {
            self.ending = Some(Ending::Memory);
        }
        Ok(Summary {
            ending: self.ending.unwrap_or(Ending::Lost),
            output: self.task.pumps.as_ref().map_or_else(Vec::new, Pumps::streams),
            limits: self.task.limits,
            killed: self.killed,
            kept_background,
            has_daemon: reaper::has_daemon(&self.left),
            left: reaper::names_left(&self.left).map(<[u8]>::to_vec).collect(),
            interrupted: self.interrupted,
            failure: self.failure,
            departing: self.departing,
        })
    }

    fn keeps_background(&self) -> bool {
        self.task.keep_background && matches!(self.ending, Some(Ending::Exited(_) | Ending::Killed(_)))
    }

    /// Passes on what is left of the output. A reader may be slow, as it could be with the command itself.
    /// Where the run has a timeout, a reader that takes nothing for what is left of it gets no more. Nor does one of a
    /// caller that has ended.
    fn flush(&mut self) -> Result<(), SyscallError> {
        let over = |time: Duration| time.saturating_sub(self.task.started.elapsed());
        let patience = self.task.timeout.map(|time| over(time).max(self.task.kill_after.unwrap_or_default()));
        let Some(pumps) = &mut self.task.pumps else { return Ok(()) };
        let mut result = pumps.finish();
        let (mut written, mut since) = (pumps.written(), Instant::now());
        while result.is_ok() && !pumps.is_done() && !self.abandoned {
            let left = patience.map(|time| time.saturating_sub(since.elapsed()));
            if left == Some(Duration::ZERO) {
                // The command, which would have waited for its reader, would not have ended in time.
                if matches!(self.ending, Some(Ending::Exited(_) | Ending::Killed(_))) {
                    self.ending = Some(Ending::Timeout);
                }
                break;
            }
            let signals = Interest::read(Some(self.task.signals.as_raw_fd()));
            let caller = Interest::read(self.task.caller.as_ref().map(Caller::number));
            let [_, _, to_out, to_err] = pumps.interests();
            let [signalled, _, out, err] = descriptor::poll([signals, caller, to_out, to_err], left)?;
            let mut arrived = std::iter::from_fn(|| signal::next(self.task.signals.as_fd()));
            let by_signal = signalled.now && arrived.any(|arrived| tells_to_end(arrived.number));
            if by_signal || self.task.caller.as_ref().is_some_and(Caller::tells_to_end) {
                break;
            }
            result = pumps.turn([Ready::default(), Ready::default(), out, err]);
            if pumps.written() > written {
                (written, since) = (pumps.written(), Instant::now());
            }
        }
        if let Err(failure) = result {
            self.failure.get_or_insert(failure);
            self.ending = Some(Ending::OutputFailed);
        }
        Ok(())
    }
}
