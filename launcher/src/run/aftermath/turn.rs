//! Whether every run in a workspace has had its look at the end. Who was killed together with its reaper, or leaves
//! processes behind, has not: then the next one looks at what has changed since the last look. Else what has come
//! between two runs is somebody's outside.
//!
//! A file beside the record says so, on which each run holds a shared lock (flock(2)). The last one removes it.

use crate::sys::process::{self, Pid};
use std::cell::Cell;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How often it is tried to hold a file that others remove.
const ATTEMPTS: usize = 16;

/// What came of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It has seen all that the run has done.
    Seen,
    /// It has not.
    Unseen,
    /// Something of the run goes on.
    GoesOn,
}

/// The time from before a run's command until after its look. Where it ends before there is a command, nothing has been
/// missed.
pub struct Turn {
    held: Option<(File, PathBuf)>,
    /// Whether a run before this one has missed its look, or one beside it may.
    pub is_after_missed: bool,
    /// Whether there is a command.
    has_begun: Cell<bool>,
    /// The process whose turn it is. Copies of it have this too.
    owner: Pid,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.has_begun.get() && self.owner == process::id() {
            self.end(Ended::Seen);
        }
    }
}

impl Turn {
    /// Begins one, by the file of a record. Where nobody can tell, looks were missed.
    pub fn begin(record: Option<&Path>) -> Turn {
        let turn = |held, is_after_missed| Turn {
            held,
            is_after_missed,
            has_begun: Cell::new(false),
            owner: process::id(),
        };
        let missed = || turn(None, true);
        let Some(path) = record.map(|record| record.with_extension("run")) else { return missed() };
        for _ in 0..ATTEMPTS {
            let (file, is_after_missed) = match open(&path, true) {
                Ok(file) => (file, false),
                Err(ErrorKind::AlreadyExists) => match open(&path, false) {
                    Ok(file) => (file, true),
                    Err(ErrorKind::NotFound) => continue,
                    Err(_) => return missed(),
                },
                Err(_) => return missed(),
            };
            let is_free = !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
            // Whoever was last may have removed it meanwhile.
            if is_free && file.metadata().is_ok_and(|meta| meta.nlink() > 0) {
                return turn(Some((file, path)), is_after_missed);
            }
        }
        missed()
    }

    /// The same for what no record is about.
    pub fn of_another(&self) -> Turn {
        let mut other = Turn::begin(None);
        other.is_after_missed = self.is_after_missed;
        other
    }

    /// There is a command from now on.
    pub fn has_begun(&self) {
        self.has_begun.set(true);
    }

    /// The descriptor that it takes.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.held.as_ref().map(|(file, _)| file.as_raw_fd())
    }

    /// After the look.
    pub fn end(&self, how: Ended) {
        let Some((file, path)) = &self.held else { return };
        let mut file = file;
        match how {
            Ended::Unseen => {}
            // Nobody can tell when that ends, so the file stays.
            Ended::GoesOn => drop(file.write_all(b"processes were left behind\n")),
            Ended::Seen => {
                let is_last = !matches!(file.try_lock(), Err(TryLockError::WouldBlock));
                if is_last && file.metadata().is_ok_and(|meta| meta.len() == 0) {
                    let _ = fs::remove_file(path);
                }
            }
        }
    }
}

fn open(path: &Path, is_new: bool) -> Result<File, ErrorKind> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create_new(is_new).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(|error| error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;

    #[test]
    fn a_run_knows_whether_all_before_it_have_looked() {
        let scratch = Scratch::create(None).unwrap();
        let record = scratch.path().join("record");
        let begin = || {
            let turn = Turn::begin(Some(&record));
            turn.has_begun();
            turn
        };
        // One without a command has nothing to look at.
        drop(Turn::begin(Some(&record)));
        let first = begin();
        assert!(!first.is_after_missed);
        let beside = begin();
        assert!(beside.is_after_missed);
        first.end(Ended::Seen);
        drop(first);
        // The other one has not looked yet.
        assert!(begin().is_after_missed);
        beside.end(Ended::Seen);
        drop(beside);
        let killed = begin();
        assert!(!killed.is_after_missed);
        drop(killed);
        let next = begin();
        assert!(next.is_after_missed);
        next.end(Ended::Unseen);
        drop(next);
        let seen = begin();
        assert!(seen.is_after_missed);
        seen.end(Ended::Seen);
        drop(seen);
        let last = begin();
        assert!(!last.is_after_missed);
        last.end(Ended::GoesOn);
        drop(last);
        begin().end(Ended::Seen);
        assert!(begin().is_after_missed);
        assert!(Turn::begin(None).is_after_missed);
    }
}
