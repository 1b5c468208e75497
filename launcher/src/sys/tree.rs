//! The processes of a run: the descendants of a process, by /proc.

use crate::sys::process::{self, Pid, children_of};
use crate::sys::status;
use std::collections::BTreeSet;

/// Most attempts to read a list that changes meanwhile.
const ATTEMPTS: usize = 8;

/// The processes below one, itself excluded.
pub fn descendants(root: Pid) -> BTreeSet<Pid> {
    settled(|| below(root)).into_iter().map(|(process, _)| process).collect()
}

/// The threads of a tree.
pub fn tasks(root: Root) -> BTreeSet<Pid> {
    let walk = || match root {
        Root::Above(pid) => below(pid),
        Root::Only(pid) => threads(pid).into_iter().map(|thread| (pid, thread)).collect(),
    };
    settled(walk).into_iter().map(|(_, thread)| thread).collect()
}

/// Where a tree begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// Below this process, which is no part of it.
    Above(Pid),
    /// It is this process, which has no others.
    Only(Pid),
}

type Tasks = BTreeSet<(Pid, Pid)>;

/// Walks until the result is the same twice in a row. A process whose parent dies moves up, perhaps to a
/// place that was already looked at. As long as no process is added, a tree that looks the same twice is
/// complete. If the tree never settles, the result is everything that was seen.
fn settled(walk: impl Fn() -> Tasks) -> Tasks {
    let mut last = walk();
    let mut all = last.clone();
    for _ in 0..ATTEMPTS {
        let now = walk();
        if now == last {
            return now;
        }
        all.extend(&now);
        last = now;
    }
    all
}

fn below(root: Pid) -> Tasks {
    let (mut seen, mut open) = (BTreeSet::new(), vec![root]);
    let mut tasks = Tasks::new();
    while let Some(process) = open.pop() {
        for thread in threads(process) {
            if process != root {
                tasks.insert((process, thread));
            }
            open.extend(children_of(process, thread).into_iter().filter(|child| seen.insert(*child)));
        }
    }
    tasks
}

/// The threads of a process.
pub fn threads(process: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The state of a thread, as ps(1) shows it; `None` if there is no such thread.
pub fn state(thread: Pid) -> Option<u8> {
    // By the thread's own number: /proc has an entry for each, though it lists only processes.
    let text = process::about(thread, &format!("task/{thread}/stat"));
    status::stat_field(&text.ok()?, 3)?.bytes().next()
}

/// Whether a process is known to run. Its first thread may have ended.
pub fn goes_on(process: Pid) -> bool {
    let states: Vec<u8> = threads(process).into_iter().filter_map(state).collect();
    !states.is_empty() && !states.contains(&b'T')
}
