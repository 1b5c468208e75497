//! How many processes and threads a run may have, where the kernel has no such limit for it: every call that makes one
//! is notified, and is let through only while there is room.
//!
//! The number is that of the tasks that /proc shows in the tree, and those that have been permitted and have not shown
//! up yet. Letting a call through decides nothing on the strength of memory that the caller can change: whatever its
//! arguments say, it makes one task at most. (`clone3`, whose arguments lie in memory, is answered with ENOSYS.)

use crate::supervise::tree::{self, Root};
use crate::sys::Failed;
use crate::sys::process::{self, Pid};
use crate::sys::seccomp::{self, Answer, Notification};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The calls that make a task.
pub const CALLS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
/// Answered to the one too many, as the kernel does.
const EAGAIN: u16 = libc::EAGAIN as u16;
/// How long a call waits for room that is about to be there.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(2);
/// How long the waiting calls are looked at in a row.
const TURN: Duration = Duration::from_millis(100);
/// A thread that has been computing for so long is done with the call that it was permitted. Measured in its own
/// processor time, so that it makes no difference how long it was kept waiting for a processor.
const LONG: Duration = Duration::from_millis(500);

/// A thread that has been permitted to make a task.
struct Permit {
    thread: Pid,
    /// Its processor time then.
    spent: Option<Duration>,
    given: Instant,
}

/// A call that waits for room.
struct Held {
    id: u64,
    thread: Pid,
    since: Instant,
}

/// The count of one run.
pub struct Census {
    root: Root,
    limit: usize,
    /// There are not more tasks than this: those counted last, and all permitted since.
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

impl Census {
    /// For the tree that begins there, and has one task now.
    pub fn new(root: Root, limit: u64) -> Census {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Census { root, limit, at_most: 1, open: Vec::new(), held: Vec::new() }
    }

    /// Whether a call is one that is counted.
    pub fn concerns(name: &str) -> bool {
        CALLS.contains(&name)
    }

    /// Answers a call that makes a task and is allowed otherwise, now or later.
    pub fn asked(&mut self, listener: BorrowedFd<'_>, call: &Notification) -> Result<(), Failed> {
        // Whoever makes another call has finished the one before.
        self.open.retain(|permit| permit.thread != call.pid);
        let held = Held { id: call.id, thread: call.pid, since: Instant::now() };
        self.decide(listener, held).map(drop)
    }

    /// How long nothing has to be looked at again.
    pub fn pause(&self) -> Option<Duration> {
        (!self.held.is_empty()).then_some(TICK)
    }

    /// Looks at the waiting calls again, up to the first that there is no room for, and not for long: to count takes its
    /// time, thousands of threads can wait, and there is more than this to be seen to.
    pub fn retry(&mut self, listener: BorrowedFd<'_>) -> Result<(), Failed> {
        let mut waiting = std::mem::take(&mut self.held).into_iter();
        let start = Instant::now();
        for held in waiting.by_ref() {
            let found = !seccomp::still_waits(listener, held.id)? || self.decide(listener, held)?;
            if !found || start.elapsed() > TURN {
                break;
            }
        }
        self.held.extend(waiting);
        Ok(())
    }

    /// Whether there was room.
    fn decide(&mut self, listener: BorrowedFd<'_>, held: Held) -> Result<bool, Failed> {
        match self.room(held.thread) {
            Room::Yes => {
                self.at_most += 1;
                let (thread, given) = (held.thread, Instant::now());
                self.open.push(Permit { thread, spent: processor_time(thread), given });
                seccomp::answer(listener, held.id, Answer::Continue).map(|()| true)
            }
            Room::Soon if held.since.elapsed() < PATIENCE => {
                self.held.push(held);
                Ok(false)
            }
            Room::Soon | Room::No => {
                seccomp::answer(listener, held.id, Answer::Error(EAGAIN)).map(|()| false)
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
            // Whoever asks is there; a count without it is no count.
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
            // It sleeps, is stopped or has ended: outside of the call that was let through, which makes its task
            // without ever waiting in such a state.
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
