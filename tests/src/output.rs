//! What came of a command, and demands on it.

use crate::kernel;
use std::fmt;

/// The result of a command.
pub struct Output {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Everything it wrote to stdout.
    pub stdout: Vec<u8>,
    /// Everything it wrote to stderr.
    pub stderr: Vec<u8>,
    pub(crate) shown: String,
}

impl Output {
    /// stdout as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stderr as text.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The lines of stderr that sbx wrote, except the warning that it has to print on this kernel.
    pub fn sbx_lines(&self) -> Vec<String> {
        let own = |line: &&str| line.starts_with("sbx: ") && !kernel::owes(line);
        self.err().lines().filter(own).map(str::to_owned).collect()
    }

    /// The lines of stderr that the command itself wrote.
    pub fn own_lines(&self) -> Vec<String> {
        self.err().lines().filter(|line| !line.starts_with("sbx: ")).map(str::to_owned).collect()
    }

    /// Requires exit code 0.
    #[track_caller]
    pub fn success(self) -> Output {
        self.exited(0)
    }

    /// Requires an exit code.
    #[track_caller]
    pub fn exited(self, code: i32) -> Output {
        assert_eq!(self.code, Some(code), "wrong exit code: {self}");
        self
    }

    /// Requires any exit code but 0, or a signal.
    #[track_caller]
    pub fn failed(self) -> Output {
        assert_ne!(self.code, Some(0), "should have failed: {self}");
        self
    }

    /// Requires death by a signal.
    #[track_caller]
    pub fn died_of(self, signal: i32) -> Output {
        assert_eq!(self.signal, Some(signal), "wrong end: {self}");
        self
    }

    /// Requires that stdout is exactly this.
    #[track_caller]
    pub fn prints(self, text: &str) -> Output {
        assert_eq!(self.out(), text, "wrong output: {self}");
        self
    }

    /// Requires that stderr contains this.
    #[track_caller]
    pub fn says(self, text: &str) -> Output {
        assert!(self.err().contains(text), "stderr lacks {text:?}: {self}");
        self
    }

    /// Requires that nothing was written to stderr, except the warning that `sbx` has to print on this kernel.
    #[track_caller]
    pub fn silent(self) -> Output {
        assert!(self.err().lines().all(kernel::owes), "stderr is not empty: {self}");
        self
    }

    /// Demands a refusal before the command started: this exit code, nothing on stdout, one sentence of sbx's that
    /// holds every one of `words`.
    #[track_caller]
    pub fn refused(self, code: i32, words: &[&str]) -> Output {
        assert_eq!(self.code, Some(code), "wrong exit code: {self}");
        assert!(self.stdout.is_empty(), "wrote to stdout: {self}");
        assert!(!self.err().contains("panicked at"), "panicked: {self}");
        assert!(!self.stderr.is_empty(), "no reason given: {self}");
        for word in words {
            assert!(self.err().contains(word), "the reason lacks {word:?}: {self}");
        }
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n  code {:?}, signal {:?}", self.shown, self.code, self.signal)?;
        writeln!(f, "  --- stdout\n{}", String::from_utf8_lossy(&self.stdout))?;
        write!(f, "  --- stderr\n{}", String::from_utf8_lossy(&self.stderr))
    }
}
