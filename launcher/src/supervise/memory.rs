//! The memory of a whole run, where no control group limits it: measured ten times a second.
//!
//! Anonymous and shared memory count, resident or swapped out; file contents that the kernel may drop do
//! not. First the plain sum over all processes is taken, in which shared memory counts several times. Only
//! where that is too much, the proportional sum is taken, for which the kernel walks page tables. In
//! neither is a child of vfork(2) counted beside its parent, if it can be recognised: until its exec, its
//! memory is its parent's.

use crate::sys::process::{self, Pid};
use crate::sys::status::Status;
use crate::sys::tree::{self, Root};
use crate::sys::{bounded, privilege};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(100);
/// A measurement that takes longer goes on with the plain numbers, and takes no process for a child of
/// vfork(2) any more: no other limit is enforced meanwhile, and a thousand processes can each be slow to
/// look at.
const LONGEST: Duration = Duration::from_secs(2);

/// The lines of /proc/PID/status that add up.
const PLAIN: &[&str] = &["RssAnon:", "RssShmem:", "VmSwap:"];
/// The lines of /proc/PID/smaps_rollup (Linux 4.14; the first two from 5.4) that add up.
const PROPORTIONAL: &[&str] = &["Pss_Anon:", "Pss_Shmem:", "SwapPss:"];

/// Measures the memory of a tree.
pub struct Watch {
    root: Root,
    limit: u64,
    next: Instant,
}

impl Watch {
    /// Of the tree that begins there.
    pub fn new(root: Root, limit: u64) -> Watch {
        Watch { root, limit, next: Instant::now() }
    }

    /// How long until the next measurement.
    pub fn pause(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// Whether a measurement is due, and the tree uses too much.
    pub fn is_exceeded(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        let processes = match self.root {
            Root::Above(pid) => tree::descendants(pid),
            Root::Only(pid) => BTreeSet::from([pid]),
        };
        let in_time = || now.elapsed() < LONGEST;
        let exceeded = sum(&processes, plain) > self.limit && {
            let own = |process: &Pid| !in_time() || !borrows(*process, &processes);
            let own: BTreeSet<Pid> = processes.iter().copied().filter(own).collect();
            let exact = |process| if in_time() { proportional(process) } else { plain(process) };
            sum(&own, plain) > self.limit && sum(&own, exact) > self.limit
        };
        // From the end of this measurement, which takes time in a large tree.
        self.next = Instant::now() + INTERVAL;
        exceeded
    }
}

fn sum(processes: &BTreeSet<Pid>, of: impl Fn(Pid) -> u64) -> u64 {
    processes.iter().map(|process| of(*process)).fold(0, u64::saturating_add)
}

/// Whether a process has the memory of its parent, which is counted already.
fn borrows(process: Pid, counted: &BTreeSet<Pid>) -> bool {
    let Ok(text) = process::about(process, "status") else { return false };
    let parent = Status::from_text(&*text).field("PPid").and_then(|parent| parent.parse().ok());
    // A first thread that has ended has no memory. Two of them would look the same.
    let shares = |parent| {
        // An exec that waits for the memory of others keeps everybody from comparing.
        bounded::within(move || process::share_memory(process, parent)) == Some(true)
    };
    add(&text, PLAIN).is_some() && parent.is_some_and(|parent| counted.contains(&parent) && shares(parent))
}

/// Whether /proc shows what is measured. It does not where it is mounted with `hidepid`, is that of another
/// pid namespace, has no lists of children, or a filter around this process refuses to list a directory.
pub fn can_be_watched() -> bool {
    // As the supervisor looks at the reaper, which is not dumpable: without capabilities.
    let hidden = || privilege::undumpable().is_ok() && privilege::drop_capabilities().is_ok();
    let looks = || {
        let above = process::parent();
        let listed = tree::threads(above).contains(&above);
        listed && plain(above) > 0 && process::children_of(above, above).contains(&process::id())
    };
    process::succeeds_in_child(&|| hidden() && process::succeeds_in_child(&looks))
}

fn plain(process: Pid) -> u64 {
    said(process, "status", PLAIN).unwrap_or(0)
}

/// The proportional number; the plain one where the kernel does not say, because the process is not
/// dumpable or the kernel older.
fn proportional(process: Pid) -> u64 {
    // Threads of the process can keep others from looking.
    let said = bounded::within(move || said(process, "smaps_rollup", PROPORTIONAL)).flatten();
    said.unwrap_or_else(|| plain(process))
}

/// What a file of /proc says about a process, or about another of its threads: a first thread that has
/// ended has no memory any more, while the others have all of it. (Threads have entries in /proc that are
/// not listed there.)
fn said(process: Pid, file: &str, names: &[&str]) -> Option<u64> {
    let of = |thread: Pid| process::about(thread, file).ok().and_then(|text| add(&text, names));
    of(process).or_else(|| tree::threads(process).into_iter().find_map(of))
}

/// The sum of these lines, in bytes; `None` where the text has none of them.
fn add(text: &str, names: &[&str]) -> Option<u64> {
    let lines = text.lines().filter_map(|line| {
        let value = names.iter().find_map(|name| line.strip_prefix(name))?;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    lines.reduce(u64::saturating_add).map(|kilobytes| kilobytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_lines_add_up() {
        let text = "Name:\tx\nVmRSS:\t  999 kB\nRssAnon:\t     100 kB\nRssFile:\t 50 kB\n\
            RssShmem:\t  20 kB\nVmSwap:\t 3 kB\n";
        assert_eq!(add(text, PLAIN), Some(123 * 1024));
        assert_eq!(add(text, PROPORTIONAL), None);
        assert_eq!(add("RssAnon: x kB\nRssShmem: 99999999999999999999 kB\n", PLAIN), None);
        assert_eq!(add("", PLAIN), None);
    }

    #[test]
    fn this_process_has_some() {
        assert!(can_be_watched());
        let own = std::process::id().cast_signed();
        assert!(plain(own) > 0);
        assert!(proportional(own) > 0 && proportional(own) <= plain(own) + (1 << 20));
        assert!(process::share_memory(own, own) && !process::share_memory(own, process::parent()));
        assert!(Watch::new(Root::Only(own), 1).is_exceeded(Instant::now()));
        assert!(!Watch::new(Root::Only(own), 1 << 50).is_exceeded(Instant::now()));
    }
}
