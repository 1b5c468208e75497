//! How many processes and threads a run may have, where the kernel has no such limit for it: every call
//! that makes one is notified, and let through only while there is room.
//!
//! The count is that of the tasks that /proc shows in the tree, and of those that have been permitted and
//! have not shown up yet. To let a call through decides nothing by memory that the caller can change:
//! whatever its arguments say, it makes one task at most. (`clone3`, whose arguments lie in memory, is
//! answered with ENOSYS.)

use crate::explain::infer::Beyond;
use crate::plan::limits::LimitKey;
use crate::supervise::dispatch::{Flow, Handler, Step};
use crate::supervise::judge::{DecidedBy, Judge, Verdict};
use crate::supervise::violation::Fate;
use crate::supervise::waiting::{NotifiedCall, Told, Waiting};
use crate::sys::SyscallError;
use crate::sys::process::{self, Pid};
use crate::sys::seccomp::{self, Answer};
use crate::sys::tree::{self, Root};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The answer to the one task too many, as of the kernel.
const EAGAIN: u16 = libc::EAGAIN as u16;
/// How long a call waits for room that is about to be there.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the waiting calls are looked at.
const TICK: Duration = Duration::from_millis(2);
/// How long the waiting calls are looked at in a row.
const TURN: Duration = Duration::from_millis(100);
/// A thread that has computed for so long has finished the call that it was permitted. Measured in its own
/// processor time, so that it makes no difference how long it waited for a processor.
const LONG: Duration = Duration::from_millis(500);

/// A thread that has been permitted to make a task.
struct Permit {
    thread: Pid,
    /// Its processor time at that moment.
    spent: Option<Duration>,
    given: Instant,
}

/// A call that waits for room.
struct Held {
    id: u64,
    thread: Pid,
    since: Instant,
    /// The call, to tell of its refusal.
    call: NotifiedCall,
    /// There is no room for it.
    refused: bool,
}

/// Limits the tasks of one run.
pub struct TaskLimiter {
    root: Root,
    limit: usize,
    /// There are no more tasks than this: those counted last, and all permitted since.
    at_most: usize,
    open: Vec<Permit>,
    held: Vec<Held>,
}

/// Whether there is room for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Yes,
    /// Perhaps, once those that were permitted have shown up.
    Soon,
    No,
}

impl Handler for TaskLimiter {
    /// What is told about a call that is reported.
    type Copy = Option<Told>;

    /// It answers all calls that would go on.
    fn look(&self, waiting: &Waiting<'_>) -> Option<Option<Told>> {
        match waiting.call.verdict {
            Verdict::Allowed => Some(None),
            Verdict::Noted | Verdict::Logged => Some(Some(waiting.told())),
            Verdict::Violation => None,
        }
    }

    fn act(
        &mut self,
        told: Option<Told>,
        call: &NotifiedCall,
        judge: &mut Judge,
    ) -> Result<Step, SyscallError> {
        if let Some(told) = told {
            judge.report(call, &told);
        }
        let thread = call.notification.pid;
        // A thread that makes another call has finished the one before.
        self.open.retain(|permit| permit.thread != thread);
        let call = call.clone();
        let held = Held { id: call.notification.id, thread, since: Instant::now(), call, refused: false };
        // What is refused is refused at the next look, when something can be told of the call.
        Ok(self.decide(held).map_or(Step::Settled, Step::Answer))
    }

    fn pause(&self) -> Option<Duration> {
        (!self.held.is_empty()).then_some(TICK)
    }

    /// Looks up to the first call that there is no room for, and not for long: counting takes its time,
    /// thousands of threads can wait, and the supervisor has more to do.
    fn retry(&mut self, listener: BorrowedFd<'_>, judge: &mut Judge) -> Result<Flow, SyscallError> {
        let mut waiting = std::mem::take(&mut self.held).into_iter();
        let start = Instant::now();
        for held in waiting.by_ref() {
            let found =
                !seccomp::still_waits(listener, held.id)? || self.finds_room(listener, held, judge)?;
            if !found || start.elapsed() > TURN {
                break;
            }
        }
        self.held.extend(waiting);
        Ok(Flow::GoOn)
    }
}

impl TaskLimiter {
    /// For the tree that begins there, and has one task now.
    pub fn new(root: Root, limit: u64) -> TaskLimiter {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        TaskLimiter { root, limit, at_most: 1, open: Vec::new(), held: Vec::new() }
    }

    /// Answers a call that has waited, if it need not wait on. Tells whether there was room.
    fn finds_room(
        &mut self,
        listener: BorrowedFd<'_>,
        held: Held,
        judge: &mut Judge,
    ) -> Result<bool, SyscallError> {
        let (id, refused, call) = (held.id, held.refused, held.call.clone());
        let answer = if refused { Some(Answer::Error(EAGAIN)) } else { self.decide(held) };
        let Some(answer) = answer else { return Ok(false) };
        if refused {
            let told = Waiting::new(&call, listener).told();
            let reason = judge.explainer.beyond_reason(Beyond::Limit(LimitKey::Processes));
            judge.say(Fate::Blocked, &call, &told, reason, DecidedBy::Filter);
        }
        seccomp::answer(listener, id, answer)?;
        Ok(refused || answer == Answer::Continue)
    }

    /// The answer to a call; `None` where it has to wait.
    fn decide(&mut self, held: Held) -> Option<Answer> {
        match self.room(held.thread) {
            Room::Yes => {
                self.at_most += 1;
                let (thread, given) = (held.thread, Instant::now());
                self.open.push(Permit { thread, spent: processor_time(thread), given });
                Some(Answer::Continue)
            }
            Room::Soon if held.since.elapsed() < PATIENCE => {
                self.held.push(held);
                None
            }
            Room::Soon | Room::No => {
                self.held.push(Held { refused: true, ..held });
                None
            }
        }
    }

    fn room(&mut self, thread: Pid) -> Room {
        if self.at_most < self.limit {
            return Room::Yes;
        }
        // In this order: what shows up between the two is counted twice rather than not at all.
        self.open.retain(Permit::is_open);
        let tasks = tree::tasks(self.root);
        self.at_most = tasks.len() + self.open.len();
        if !tasks.contains(&thread) {
            // The thread that asks is there; a count without it is wrong.
            self.at_most = usize::MAX;
            return Room::Soon;
        }
        match (self.at_most < self.limit, tasks.len() < self.limit) {
            (true, _) => Room::Yes,
            (false, true) => Room::Soon,
            (false, false) => Room::No,
        }
    }
}

impl Permit {
    /// Whether the task may yet be made.
    fn is_open(&self) -> bool {
        match tree::state(self.thread) {
            // It sleeps, is stopped or has ended, so it is outside of the call that was let through: that
            // makes its task without ever waiting in such a state.
            None | Some(b'S' | b'T' | b't' | b'Z' | b'X') => false,
            Some(_) => match (self.spent, processor_time(self.thread)) {
                (Some(then), Some(now)) => now.saturating_sub(then) < LONG,
                _ => self.given.elapsed() < PATIENCE,
            },
        }
    }
}

/// How long a thread has been running.
fn processor_time(thread: Pid) -> Option<Duration> {
    let text = process::about(thread, &format!("task/{thread}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_whatever_it_is_called() {
        for name in [&b"plain"[..], b"\xff\xfe", b") Z 1 (", b"a\nb"] {
            let looked_at = std::thread::spawn(move || {
                std::fs::write("/proc/thread-self/comm", name).unwrap();
                let link = std::fs::read_link("/proc/thread-self").unwrap();
                let thread = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
                (tree::state(thread), processor_time(thread).is_some())
            });
            assert_eq!(looked_at.join().unwrap(), (Some(b'R'), true), "{name:?}");
        }
    }
}
