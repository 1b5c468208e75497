//! Descriptors that are to signal their owner (FIOASYNC, and O_ASYNC with F_SETFL: "signal-driven I/O" in socket(7)).
//!
//! A filter does not see what a descriptor is. For a terminal nobody has to name an owner: it signals its whole
//! foreground group, which includes the programs around the run. So no filter lets these calls through. The supervisor
//! looks at a duplicate instead, and makes a socket or a pipe signal who owns it: nobody yet, or the caller. What was
//! handed over to the command stays as it is: others use it, and go on when the run has ended.
//!
//! This is for runs that may name owners (`fcntl[owner]`), which is for those with a pid namespace of their own.

use crate::explain::decode::Memory;
use crate::plan::calls::Calls;
use crate::supervise::dispatch::{Handler, Step};
use crate::supervise::handlers::connect::{Asked, asked, take};
use crate::supervise::judge::{Judge, Verdict, error};
use crate::supervise::waiting::{NotifiedCall, Waiting};
use crate::sys::SyscallError;
use crate::sys::file::{self, Identity};
use crate::sys::process::Pid;
use crate::sys::seccomp::Answer;
use crate::sys::signalling::{self, Change};
use std::cell::OnceCell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

/// Has sockets and pipes signal their owner.
pub struct SignalDriven {
    calls: Rc<Calls>,
    /// What the command was handed over.
    handed: Vec<Identity>,
    allowed: OnceCell<bool>,
}

/// What somebody asks for.
pub struct Wish {
    file: Asked,
    caller: Pid,
    change: Change,
}

impl Handler for SignalDriven {
    type Copy = Wish;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Wish> {
        let NotifiedCall { notification, verdict, name, .. } = waiting.call;
        if *verdict != Verdict::Violation || waiting.call.is_x32() {
            return None;
        }
        let [_, command, argument, ..] = notification.args;
        let change = match (&**name, command as u32) {
            ("fcntl", signalling::F_SETFL) => Change::Flags(argument as i32),
            ("ioctl", signalling::FIOASYNC) => {
                let mut value = [0; 4];
                let is_read = waiting.memory.read(argument, &mut value) == value.len();
                Change::Signals(is_read.then_some(value)? != [0; 4])
            }
            _ => return None,
        };
        let may = *self.allowed.get_or_init(|| self.may_name_owners());
        may.then(|| Wish { file: asked(waiting), caller: waiting.caller().process, change })
    }

    fn act(&mut self, wish: Wish, _: &NotifiedCall, _: &mut Judge) -> Result<Step, SyscallError> {
        let Some(Ok(file)) = take(wish.file) else { return Ok(Step::Next) };
        let is_fit = signalling::is_socket_or_pipe(&file) && !self.was_handed_over(&file);
        if !is_fit || !signalling::settle_owner(&file, wish.caller) {
            return Ok(Step::Next);
        }
        let changed = signalling::change(&file, wish.change);
        Ok(Step::Answer(changed.map_or_else(|failed| error(failed.errno()), |()| Answer::Done)))
    }
}

impl SignalDriven {
    /// By these calls, in a run whose command was handed this over.
    pub fn new(calls: Rc<Calls>, handed: Vec<Identity>) -> SignalDriven {
        SignalDriven { calls, handed, allowed: OnceCell::new() }
    }

    fn was_handed_over(&self, file: &OwnedFd) -> bool {
        file::identity(file.as_fd()).map_or(true, |own| self.handed.iter().any(|other| own.is(*other)))
    }

    /// Whether the command could name owners by itself, and change how a descriptor behaves.
    fn may_name_owners(&self) -> bool {
        let ask = |name, command: u32| (name, [0, command.into(), 0, 0, 0, 0]);
        self.calls.let_through(&[
            ask("fcntl", signalling::F_SETOWN),
            ask("fcntl", signalling::F_SETFL),
            ask("ioctl", signalling::FIONBIO),
        ])
    }
}
