//! A notified call, and what can be read of its caller while that waits.

use crate::explain::caller::{self, Caller};
use crate::explain::decode::{self, Call as Shown, Decoded, ProcessMemory};
use crate::supervise::judge::Verdict;
use crate::sys::SyscallError;
use crate::sys::seccomp::{self, Notification};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::program::X32_BIT;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

/// A notified call: plain numbers, and what the profile says about it.
#[derive(Clone)]
pub struct NotifiedCall {
    /// As the kernel told it.
    pub notification: Notification,
    /// The call's name.
    pub name: Cow<'static, str>,
    /// What the profile and the flags make of it.
    pub verdict: Verdict,
}

impl NotifiedCall {
    /// Of this verdict.
    pub fn new(notification: Notification, verdict: Verdict) -> NotifiedCall {
        NotifiedCall { notification, name: name(notification.nr), verdict }
    }

    /// Whether it was made through the x32 table.
    pub fn is_x32(&self) -> bool {
        self.notification.nr & X32_BIT != 0
    }
}

/// What is told about a call: copied, and good for messages only.
#[derive(Clone)]
pub struct Told {
    /// Its arguments.
    pub decoded: Rc<Decoded>,
    /// Who made it.
    pub caller: Rc<Caller>,
}

/// A call whose caller waits, so that there is something to be read. Everything is read once.
pub struct Waiting<'c> {
    /// The call.
    pub call: &'c NotifiedCall,
    /// The caller's memory.
    pub memory: ProcessMemory,
    listener: BorrowedFd<'c>,
    decoded: OnceCell<Rc<Decoded>>,
    caller: OnceCell<Rc<Caller>>,
}

impl<'c> Waiting<'c> {
    /// Nothing is read yet.
    pub fn new(call: &'c NotifiedCall, listener: BorrowedFd<'c>) -> Waiting<'c> {
        let memory = ProcessMemory::new(call.notification.pid);
        Waiting { call, memory, listener, decoded: OnceCell::new(), caller: OnceCell::new() }
    }

    /// The call's arguments.
    pub fn decoded(&self) -> &Rc<Decoded> {
        self.decoded.get_or_init(|| {
            let (name, args) = (&*self.call.name, self.call.notification.args);
            let shown = Shown { name, args, foreign: self.call.is_x32() };
            let mut decoded = decode::decode(&shown, &self.memory);
            if shown.foreign {
                // The arguments mean nothing here, and would make each call another violation.
                decoded.text.clear();
            }
            Rc::new(decoded)
        })
    }

    /// The caller's name and process.
    pub fn caller(&self) -> &Rc<Caller> {
        self.caller.get_or_init(|| Rc::new(caller::caller(self.call.notification.pid)))
    }

    /// What is told about the call.
    pub fn told(&self) -> Told {
        Told { decoded: self.decoded().clone(), caller: self.caller().clone() }
    }

    /// Where the caller waits, for whoever answers later.
    pub fn listener(&self) -> BorrowedFd<'c> {
        self.listener
    }

    /// Whether the caller still waits. Only then what was read is the caller's, and not that of another
    /// process which got its number.
    pub fn still_waits(&self) -> Result<bool, SyscallError> {
        seccomp::still_waits(self.listener, self.call.notification.id)
    }
}

fn name(number: u32) -> Cow<'static, str> {
    let number = number & !X32_BIT;
    let known = Call::numbered(Arch::HOST, number).map(|call| Cow::Borrowed(call.name()));
    known.unwrap_or_else(|| Cow::Owned(format!("syscall {number}")))
}
