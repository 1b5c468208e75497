//! Notified system calls on their way to an answer.
//!
//! A table says which handlers are asked about a call of which number ([`Notified`] has the kinds and their
//! order). For each notified call the walk is:
//!
//! 1. Receive the notification. The verdict says what the profile and the flags make of the call.
//! 2. For each handler of its number: [`look`](Handler::look) reads what the handler needs of the caller,
//!    and copies it.
//! 3. The kernel is asked whether the caller still waits. If not, its number may be another process's by
//!    now: what was copied is dropped, and nothing is done.
//! 4. [`act`](Handler::act) decides and acts on the copy. It never gets the caller's memory, which may have
//!    changed meanwhile.
//! 5. What no handler answers gets the plain answer of the [`Judge`].
//!
//! Adding a handler takes its file in `handlers`, with its test; its kind in [`Notified`], with its calls
//! and its place in the order; when a run has it (`Plan::notified`); what the filter does for it
//! (`plan::calls`); and its registration where a run's table is made (`run::case`).

use crate::plan::notified::{Answers, Kinds, Notified};
use crate::supervise::judge::{Judge, error};
use crate::supervise::waiting::{NotifiedCall, Waiting};
use crate::sys::seccomp::{self, Answer, Notification};
use crate::sys::{SyscallError, bounded};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::program::X32_BIT;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Answers one kind of notified calls.
pub trait Handler {
    /// What `act` may act on: plain data and descriptors, nothing that leads back to the caller's memory.
    type Copy;

    /// Reads what the call needs to be answered, while the caller waits. `None`: this call is not for this
    /// handler.
    fn look(&self, call: &Waiting<'_>) -> Option<Self::Copy>;

    /// Answers the call, by the copy alone. The caller still waited after the copy was made.
    fn act(&mut self, copy: Self::Copy, call: &NotifiedCall, judge: &mut Judge)
    -> Result<Step, SyscallError>;

    /// When the calls that this handler keeps waiting are due to be looked at again, if there are any.
    fn pause(&self) -> Option<Duration> {
        None
    }

    /// Looks again at the calls that this handler keeps waiting.
    fn retry(&mut self, _listener: BorrowedFd<'_>, _judge: &mut Judge) -> Result<Flow, SyscallError> {
        Ok(Flow::GoOn)
    }

    /// The run has ended.
    fn end(&mut self, _judge: &mut Judge) {}

    /// The reaper has protected the new configuration of this number by a mount (0: it could not).
    fn covered(&mut self, _listener: Option<BorrowedFd<'_>>, _number: u32) -> Result<(), SyscallError> {
        Ok(())
    }
}

/// What becomes of a call.
#[derive(Debug)]
pub enum Step {
    /// The next handler is asked.
    Next,
    /// It is answered.
    Answer(Answer),
    /// The caller gets a copy of this descriptor. Where the kernel cannot do that, the next handler is
    /// asked.
    HandOver {
        /// What the caller gets.
        file: File,
        /// Whether an exec closes it.
        close_on_exec: bool,
    },
    /// The caller gets copies of these descriptors, and their numbers where it says.
    HandOverPair {
        /// What the caller gets.
        pair: [OwnedFd; 2],
        /// Whether an exec closes them.
        close_on_exec: bool,
        /// The caller's memory, opened while it waited, and the place of the numbers.
        numbers: (File, u64),
    },
    /// It is answered later, or nobody waits for an answer any more.
    Settled,
    /// The run ends. The call waits until its process is killed: if it were answered, others would go on
    /// for a moment.
    EndRun,
}

/// Whether the run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    GoOn,
    /// A violation ends it.
    EndRun,
}

/// A [`Handler`] in the table. There is one implementation, so that no handler acts without the check.
trait Handle {
    fn handle(&mut self, waiting: &Waiting<'_>, judge: &mut Judge) -> Result<Step, SyscallError>;
    fn pause(&self) -> Option<Duration>;
    fn retry(&mut self, listener: BorrowedFd<'_>, judge: &mut Judge) -> Result<Flow, SyscallError>;
    fn end(&mut self, judge: &mut Judge);
    fn covered(&mut self, listener: Option<BorrowedFd<'_>>, number: u32) -> Result<(), SyscallError>;
}

impl<H: Handler> Handle for H {
    fn handle(&mut self, waiting: &Waiting<'_>, judge: &mut Judge) -> Result<Step, SyscallError> {
        let Some(copy) = self.look(waiting) else { return Ok(Step::Next) };
        if !waiting.still_waits()? {
            return Ok(Step::Settled);
        }
        self.act(copy, waiting.call, judge)
    }

    fn pause(&self) -> Option<Duration> {
        Handler::pause(self)
    }

    fn retry(&mut self, listener: BorrowedFd<'_>, judge: &mut Judge) -> Result<Flow, SyscallError> {
        Handler::retry(self, listener, judge)
    }

    fn end(&mut self, judge: &mut Judge) {
        Handler::end(self, judge);
    }

    fn covered(&mut self, listener: Option<BorrowedFd<'_>>, number: u32) -> Result<(), SyscallError> {
        Handler::covered(self, listener, number)
    }
}

/// The handlers of a run, in the order of their kinds, and which of them are asked about a call of which
/// number.
#[derive(Default)]
pub struct Table {
    handlers: Vec<(Notified, Box<dyn Handle>)>,
    by_number: Vec<Kinds>,
    of_every_call: Kinds,
}

impl Table {
    /// Adds the handler of a kind, at the place of that kind in the order.
    pub fn register(&mut self, kind: Notified, handler: impl Handler + 'static) {
        self.add(kind, kind.answers(), handler);
    }

    fn add(&mut self, kind: Notified, answers: Answers, handler: impl Handler + 'static) {
        let place = self.handlers.partition_point(|(other, _)| *other <= kind);
        self.handlers.insert(place, (kind, Box::new(handler)));
        match answers {
            Answers::Every => self.of_every_call = self.of_every_call.and(kind),
            Answers::These(lists) => {
                lists.iter().copied().flatten().filter_map(|name| number(name)).for_each(|number| {
                    self.by_number.resize(self.by_number.len().max(number + 1), Kinds::default());
                    self.by_number[number] = self.by_number[number].and(kind);
                });
            }
        }
    }

    /// Those that are asked about a call of this number, in their order. A call through the x32 table
    /// counts as the one that has the rest of its number.
    fn of(&mut self, number: u32) -> impl Iterator<Item = &mut (Notified, Box<dyn Handle>)> {
        let listed = self.by_number.get((number & !X32_BIT) as usize).copied().unwrap_or_default();
        let every = self.of_every_call;
        let asked = move |kind: Notified| listed.has(kind) || every.has(kind);
        self.handlers.iter_mut().filter(move |(kind, _)| asked(*kind))
    }
}

fn number(name: &str) -> Option<usize> {
    Call::named(name.as_bytes())?.number(Arch::HOST).map(|number| number as usize)
}

/// Takes notified calls and answers them.
pub struct Dispatcher {
    /// Who gives the verdict, reports violations, and knows the plain answer.
    pub judge: Judge,
    table: Table,
}

impl Dispatcher {
    /// With the handlers of a run.
    pub fn new(judge: Judge, table: Table) -> Dispatcher {
        Dispatcher { judge, table }
    }

    /// Takes the next notification, and answers it.
    pub fn next(&mut self, listener: BorrowedFd<'_>) -> Result<Flow, SyscallError> {
        match seccomp::receive(listener)? {
            Some(notification) => self.dispatch(listener, notification),
            None => Ok(Flow::GoOn),
        }
    }

    fn dispatch(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: Notification,
    ) -> Result<Flow, SyscallError> {
        let verdict = self.judge.verdict(&notification);
        let call = NotifiedCall::new(notification, verdict);
        let waiting = Waiting::new(&call, listener);
        for (_, handler) in self.table.of(notification.nr) {
            let step = handler.handle(&waiting, &mut self.judge)?;
            if let Some(flow) = settle(listener, notification.id, step)? {
                return Ok(flow);
            }
        }
        let step = self.judge.answer_plainly(&waiting)?;
        Ok(settle(listener, notification.id, step)?.unwrap_or(Flow::GoOn))
    }

    /// How long until a handler has to look again at calls that it keeps waiting.
    pub fn pause(&self) -> Option<Duration> {
        self.table.handlers.iter().filter_map(|(_, handler)| handler.pause()).min()
    }

    /// Has the handlers look again at the calls that they keep waiting.
    pub fn retry(&mut self, listener: BorrowedFd<'_>) -> Result<Flow, SyscallError> {
        for (_, handler) in &mut self.table.handlers {
            if handler.retry(listener, &mut self.judge)? == Flow::EndRun {
                return Ok(Flow::EndRun);
            }
        }
        Ok(Flow::GoOn)
    }

    /// The run has ended: nothing is notified any more.
    pub fn end(&mut self) {
        for (_, handler) in &mut self.table.handlers {
            handler.end(&mut self.judge);
        }
    }

    /// The reaper has protected the new configuration of this number by a mount (0: it could not).
    pub fn covered(&mut self, listener: Option<BorrowedFd<'_>>, number: u32) -> Result<(), SyscallError> {
        self.table.handlers.iter_mut().try_for_each(|(_, handler)| handler.covered(listener, number))
    }
}

/// Hands two descriptors over, if their numbers can be written, and returns the answer.
fn hand_over(
    listener: BorrowedFd<'_>,
    id: u64,
    pair: &[OwnedFd; 2],
    close_on_exec: bool,
    (memory, place): (File, u64),
) -> Answer {
    let memory = Arc::new(memory);
    let Some(mut numbers) = write(&memory, place, None) else { return error(libc::EFAULT) };
    for (own, number) in pair.iter().zip(numbers.chunks_mut(4)) {
        match seccomp::add(listener, id, own.as_fd(), close_on_exec) {
            Ok(added) => number.copy_from_slice(&added.to_ne_bytes()),
            Err(failed) => return error(failed.errno()),
        }
    }
    write(&memory, place, Some(numbers)).map_or_else(|| error(libc::EFAULT), |_| Answer::Done)
}

/// Writes these bytes to a caller's memory, or those that are there, and returns them. Others can keep its locks busy.
fn write(memory: &Arc<File>, place: u64, bytes: Option<[u8; 8]>) -> Option<[u8; 8]> {
    let memory = memory.clone();
    let work = move || {
        let mut written = bytes.unwrap_or_default();
        if bytes.is_none() {
            memory.read_exact_at(&mut written, place)?;
        }
        memory.write_all_at(&written, place).map(|()| written)
    };
    bounded::within(work).and_then(io::Result::ok)
}

/// Does what a step says; `None` where the call is still to be answered.
fn settle(listener: BorrowedFd<'_>, id: u64, step: Step) -> Result<Option<Flow>, SyscallError> {
    match step {
        Step::Next => return Ok(None),
        Step::HandOver { file, close_on_exec } => {
            let handed_over = seccomp::answer_with(listener, id, file.as_fd(), close_on_exec);
            return Ok(handed_over.is_ok().then_some(Flow::GoOn));
        }
        Step::HandOverPair { pair, close_on_exec, numbers } => {
            let answer = hand_over(listener, id, &pair, close_on_exec, numbers);
            seccomp::answer(listener, id, answer)?;
        }
        Step::Answer(answer) => seccomp::answer(listener, id, answer)?,
        Step::Settled => {}
        Step::EndRun => return Ok(Some(Flow::EndRun)),
    }
    Ok(Some(Flow::GoOn))
}
