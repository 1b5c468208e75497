//! Domains of Landlock that a process of the run puts itself into: an `sbx` inside, a browser, a tool that wants less.
//!
//! What the supervisor does in a caller's place, the kernel judges by the supervisor's rights and not in the caller's
//! domain. In that of the run it does only what the run's rules allow. Further ones it does not know, so for whoever
//! may be in one it does nothing that Landlock would judge.
//!
//! Nothing tells whether a process is in a further domain. So it is marked before the kernel goes on: by its hard limit
//! on locks of files (RLIMIT_LOCKS), which no kernel since Linux 2.4.25 heeds. Children inherit it, whoever their
//! parent is by then, an exec keeps it, and to raise it takes a capability that no command has. The limit is a
//! process's and the domain a thread's, so the other threads are held to it, too. A process whose limit cannot be read,
//! or that has lowered it itself, counts as one in the narrowest domain.

use crate::explain::decode::Memory;
use crate::supervise::dispatch::{Handler, Step};
use crate::supervise::judge::{Judge, Verdict, error};
use crate::supervise::waiting::{NotifiedCall, Waiting};
use crate::sys::process::{self, Pid};
use crate::sys::{SyscallError, privilege};
use std::cell::Cell;
use std::rc::Rc;

/// Kinds of connections that a domain restricts, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restricts(u8);

impl Restricts {
    /// To internet addresses.
    pub const INTERNET: Restricts = Restricts(1);
    /// To abstract UNIX sockets.
    pub const ABSTRACT: Restricts = Restricts(2);
    /// To UNIX sockets by their path.
    pub const PATHS: Restricts = Restricts(4);
    const ALL: Restricts = Restricts(7);

    /// Whether these are among them.
    pub const fn has(self, other: Restricts) -> bool {
        self.0 & other.0 != 0
    }

    const fn and(self, other: Restricts) -> Restricts {
        Restricts(self.0 | other.0)
    }

    /// By the beginning of `struct landlock_ruleset_attr`.
    fn of([files, network, scopes]: [u64; 3]) -> Restricts {
        const BIND_TCP: u64 = 1;
        const SCOPE_ABSTRACT: u64 = 1;
        const RESOLVE_UNIX: u64 = 1 << 16;
        let found = [
            (network & !BIND_TCP != 0, Restricts::INTERNET),
            (scopes & SCOPE_ABSTRACT != 0, Restricts::ABSTRACT),
            (files & RESOLVE_UNIX != 0, Restricts::PATHS),
        ];
        found.into_iter().filter(|(is_so, _)| *is_so).fold(Restricts::default(), |all, (_, one)| all.and(one))
    }

    /// The limit that stands for them. That of more kinds is lower.
    const fn limit(self) -> u64 {
        (Restricts::ALL.0 - self.0) as u64
    }

    fn by_limit(limit: u64) -> Restricts {
        let bits = u8::try_from(limit).ok().and_then(|limit| Restricts::ALL.0.checked_sub(limit));
        bits.map_or(Restricts::ALL, Restricts)
    }
}

/// Who may be in a further domain.
pub struct Marks {
    /// The limit of who is not; nobody's, where that could be a mark.
    unmarked: Cell<Option<u64>>,
    /// Whether anybody is.
    any: Cell<bool>,
    /// What any ruleset restricts that was made so far: which one a process takes is not looked at.
    restricts: Cell<Restricts>,
}

impl Marks {
    /// Nobody yet.
    pub fn none() -> Marks {
        Marks { unmarked: Cell::default(), any: Cell::new(false), restricts: Cell::default() }
    }

    /// What the domain restricts that a process may be in; `None` if that is the run's.
    pub fn of(&self, pid: Pid) -> Option<Restricts> {
        if !self.any.get() {
            return None;
        }
        match privilege::lock_limit(pid) {
            Ok(limit) if self.unmarked.get() == Some(limit) => None,
            Ok(limit) => Some(Restricts::by_limit(limit)),
            Err(_) => Some(Restricts::ALL),
        }
    }

    fn mark(&self, pid: Pid) -> Result<(), SyscallError> {
        if !self.any.replace(true) {
            // The command began with that of this process.
            let own = privilege::lock_limit(process::id()).ok();
            self.unmarked.set(own.filter(|limit| *limit > Restricts::default().limit()));
        }
        let known = self.of(pid).unwrap_or_default();
        privilege::lower_lock_limit(pid, known.and(self.restricts.get()).limit())
    }
}

/// Marks whoever enters a domain.
pub struct Domains(pub Rc<Marks>);

/// What is seen.
pub enum Seen {
    /// A ruleset is made.
    Ruleset(Restricts),
    /// A process enters a domain.
    Entering(Pid),
}

impl Handler for Domains {
    type Copy = Seen;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Seen> {
        let NotifiedCall { notification, name, verdict } = waiting.call;
        if *verdict == Verdict::Violation {
            return None;
        }
        let [address, size, flags, ..] = notification.args;
        match &**name {
            "landlock_restrict_self" => Some(Seen::Entering(notification.pid)),
            // With flags it is a question.
            "landlock_create_ruleset" if flags as u32 == 0 => {
                Some(Seen::Ruleset(handled(&waiting.memory, address, size)))
            }
            _ => None,
        }
    }

    /// Whoever changes the ruleset's description meanwhile restricts itself less, and nobody else.
    fn act(&mut self, seen: Seen, _: &NotifiedCall, _: &mut Judge) -> Result<Step, SyscallError> {
        match seen {
            Seen::Ruleset(restricts) => self.0.restricts.set(self.0.restricts.get().and(restricts)),
            Seen::Entering(pid) if self.0.mark(pid).is_err() => {
                return Ok(Step::Answer(error(libc::EPERM)));
            }
            Seen::Entering(_) => {}
        }
        Ok(Step::Next)
    }
}

/// What the ruleset restricts that a call describes; everything if that cannot be read.
fn handled(memory: &dyn Memory, address: u64, size: u64) -> Restricts {
    let mut bytes = [0; 24];
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(bytes.len());
    if bytes.get_mut(..size).is_none_or(|bytes| memory.read(address, bytes) < size) {
        return Restricts::ALL;
    }
    let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(u64::MAX, u64::from_ne_bytes));
    Restricts::of([(); 3].map(|()| words.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_restricted_is_known_by_a_limit_that_only_falls() {
        let all = (0..=7).map(Restricts);
        for (one, other) in all.clone().flat_map(|one| all.clone().map(move |other| (one, other))) {
            assert_eq!(Restricts::by_limit(one.limit()), one);
            assert!(one.and(other).limit() <= one.limit());
        }
        assert_eq!(Restricts::by_limit(8), Restricts::ALL);
        assert_eq!(Restricts::by_limit(u64::MAX), Restricts::ALL);
    }

    #[test]
    fn a_ruleset_is_read_as_the_kernel_reads_it() {
        assert_eq!(Restricts::of([0xffff, 1, 2]), Restricts::default());
        assert_eq!(Restricts::of([1 << 16, 0, 1]), Restricts::PATHS.and(Restricts::ABSTRACT));
        assert_eq!(Restricts::of([0, 2, 0]), Restricts::INTERNET);
        assert_eq!(Restricts::of([0, 4, 0]), Restricts::INTERNET);
    }

    #[test]
    fn nobody_is_marked_before_somebody_enters_a_domain() {
        let marks = Marks::none();
        assert_eq!(marks.of(process::id()), None);
        marks.any.set(true);
        assert_eq!(marks.of(process::id()), Some(Restricts::ALL));
        marks.unmarked.set(privilege::lock_limit(process::id()).ok());
        assert_eq!(marks.of(process::id()), None);
    }
}
