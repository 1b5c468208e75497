//! The memory of a whole run, where no control group counts it: looked at ten times a second.
//!
//! Anonymous and shared memory count, resident or swapped out; file contents that the kernel may drop do not. First the
//! plain sum over all processes, in which what several share counts several times; only where that is too much, the
//! proportional one, for which the kernel walks page tables. In neither is a child of vfork(2) counted beside its parent
//! if that can be told: until its exec, its memory is its parent's.

use crate::supervise::patience;
use crate::supervise::tree::{self, Root};
use crate::sys::privilege;
use crate::sys::process::{self, Pid};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(100);
/// A look that takes longer goes on with the plain numbers, and takes no process for a child of vfork(2) any more: nobody sees
/// to the other limits meanwhile, and a thousand processes can each be slow to tell.
const LONGEST: Duration = Duration::from_secs(2);

/// The lines of /proc/PID/status that add up.
const PLAIN: &[&str] = &["RssAnon:", "RssShmem:", "VmSwap:"];
/// The lines of /proc/PID/smaps_rollup (Linux 4.14; the first two from 5.4) that do.
const PROPORTIONAL: &[&str] = &["Pss_Anon:", "Pss_Shmem:", "SwapPss:"];

/// Looks at the memory of a tree.
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

    /// How long nothing has to be looked at.
    pub fn pause(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// Whether it is time, and the tree uses too much.
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
        // From the end of this look, which in a large tree takes its time.
        self.next = Instant::now() + INTERVAL;
        exceeded
    }
}

fn sum(processes: &BTreeSet<Pid>, of: impl Fn(Pid) -> u64) -> u64 {
    processes.iter().map(|process| of(*process)).fold(0, u64::saturating_add)
}

/// Whether a process has the memory of its parent, which is counted.
fn borrows(process: Pid, counted: &BTreeSet<Pid>) -> bool {
    let Ok(status) = process::about(process, "status") else { return false };
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    // A first thread that has ended has none, nor has another such one; that would make them the same.
    let shares = |parent| {
        // An exec that waits for the memory of others keeps everybody from comparing.
        patience::within(move || process::share_memory(process, parent)) == Some(true)
    };
    add(&status, PLAIN).is_some() && parent.is_some_and(|parent| counted.contains(&parent) && shares(parent))
}

/// Whether /proc shows what there is to be looked at. Not where it is mounted with `hidepid`, is that of another pid
/// namespace, has no lists of children, or a filter around us refuses to list a directory.
pub fn can_be_watched() -> bool {
    // As the supervisor will look at the reaper, which hides: without capabilities.
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

/// The plain number where the kernel does not say: the process hides (prctl(2), PR_SET_DUMPABLE), or it is an older
/// kernel.
fn proportional(process: Pid) -> u64 {
    // Threads of the process can keep others from looking.
    let said = patience::within(move || said(process, "smaps_rollup", PROPORTIONAL)).flatten();
    said.unwrap_or_else(|| plain(process))
}

/// What a file of /proc says about a process, or about another of its threads: a first thread that has ended has no memory
/// any more, while the others have all of it. (Each has an entry in /proc, though only processes are listed there.)
fn said(process: Pid, file: &str, names: &[&str]) -> Option<u64> {
    let of = |thread: Pid| process::about(thread, file).ok().and_then(|text| add(&text, names));
    of(process).or_else(|| tree::threads(process).into_iter().find_map(of))
}

/// The sum of these lines, in bytes; `None` where there is none of them.
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
        let text = "Name:\tx\nVmRSS:\t  999 kB\nRssAnon:\t     100 kB\nRssFile:\t 50 kB\nRssShmem:\t  20 kB\nVmSwap:\t 3 kB\n";
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
