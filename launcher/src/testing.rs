//! Helpers for unit tests. The tests of fuzz/properties include this file too.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// A xorshift generator: the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// What `git config --list` prints for a configuration, or how it fails; `None` if git is not installed.
pub fn listed_by_git(text: &[u8]) -> Option<Output> {
    let mut git = Command::new("git");
    git.args(["config", "--file", "-", "--list", "-z"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut git = git.stderr(Stdio::null()).spawn().ok()?;
    git.stdin.take()?.write_all(text).ok()?;
    git.wait_with_output().ok()
}
