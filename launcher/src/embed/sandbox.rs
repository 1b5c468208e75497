//! What commands may do.

use super::command::Command;
use crate::cli::{Level, OnViolation};
use crate::sys::path;
use clap::ValueEnum;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A profile and what is added to it: the flags of `sbx run`. What it means is decided, and mistakes are found,
/// when a command is started.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(super) program: Option<PathBuf>,
    pub(super) flags: Vec<OsString>,
}

impl Sandbox {
    /// Under this profile: a name, or a file where it has a `/` or ends in `.json`. Neither `SBX_PROFILE` nor a
    /// user's default profile counts.
    pub fn new(profile: impl AsRef<OsStr>) -> Sandbox {
        let sandbox = Sandbox { program: None, flags: Vec::new() };
        sandbox.flag("--profile", profile)
    }

    /// The `sbx` program. Without it, the first in an absolute directory of `PATH`, if that is not in the workspace.
    pub fn program(mut self, file: impl Into<PathBuf>) -> Sandbox {
        self.program = Some(file.into());
        self
    }

    /// The directory that commands work in; without it, the current one.
    pub fn workspace(self, directory: impl Into<PathBuf>) -> Sandbox {
        self.flag("--workspace", directory.into())
    }

    /// Allows reading a path and below.
    pub fn read(self, path: impl AsRef<Path>) -> Sandbox {
        self.flag("--ro", path.as_ref())
    }

    /// Allows reading and executing.
    pub fn execute(self, path: impl AsRef<Path>) -> Sandbox {
        self.flag("--rox", path.as_ref())
    }

    /// Allows reading and changing.
    pub fn write(self, path: impl AsRef<Path>) -> Sandbox {
        self.flag("--rw", path.as_ref())
    }

    /// Denies a path and below, although something above it is allowed.
    pub fn deny(self, path: impl AsRef<Path>) -> Sandbox {
        self.flag("--deny", path.as_ref())
    }

    /// Allows these system calls too: `call`, `@group` or `call[restriction]`, separated by `:`.
    pub fn allow_calls(self, list: impl AsRef<OsStr>) -> Sandbox {
        self.flag("--allow-calls", list)
    }

    /// Denies these system calls.
    pub fn deny_calls(self, list: impl AsRef<OsStr>) -> Sandbox {
        self.flag("--deny-calls", list)
    }

    /// What a refused call meets.
    pub fn on_violation(self, what: OnViolation) -> Sandbox {
        self.flag("--on-violation", word(what))
    }

    /// Gives the commands the host's network.
    pub fn host_network(self) -> Sandbox {
        self.flag("--net", "host")
    }

    /// Allows TCP connections to a port (`*:443`), and nothing else.
    pub fn connect(self, endpoint: impl AsRef<OsStr>) -> Sandbox {
        self.flag("--connect", endpoint)
    }

    /// Allows listening on a TCP port.
    pub fn bind(self, port: u16) -> Sandbox {
        self.flag("--bind", port.to_string())
    }

    /// Sets a variable. It stands on the command line of `sbx`, where every user of the machine can read it: for
    /// secrets, set it in this process and use [`Sandbox::pass_env`].
    pub fn env(self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Sandbox {
        let mut entry = name.as_ref().to_os_string();
        entry.push("=");
        entry.push(value);
        self.flag("--env", entry)
    }

    /// Passes a variable of this process on.
    pub fn pass_env(self, name: impl AsRef<OsStr>) -> Sandbox {
        self.flag("--env", name)
    }

    /// Ends a command, and all that it started, after this time.
    pub fn timeout(self, time: Duration) -> Sandbox {
        // Rounded up: no time at all is no limit that sbx would take.
        self.flag("--timeout", format!("{}ms", time.as_nanos().div_ceil(1_000_000)))
    }

    /// Passes on so many bytes of standard output, and of standard error: the head and the tail.
    pub fn max_output(self, bytes: u64) -> Sandbox {
        self.flag("--max-output", bytes.to_string())
    }

    /// Refuses to run where the kernel can enforce less.
    pub fn require(self, level: Level) -> Sandbox {
        self.flag("--require", word(level))
    }

    /// Any other flag of `sbx run` with its value.
    pub fn flag(mut self, flag: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Sandbox {
        // In one word, so that no value can be taken for a flag.
        let mut word = flag.as_ref().to_os_string();
        word.push("=");
        word.push(value);
        self.flags.push(word);
        self
    }

    /// Any other flag of `sbx run` without a value, like `--explain`.
    pub fn switch(mut self, flag: impl AsRef<OsStr>) -> Sandbox {
        self.flags.push(flag.as_ref().to_os_string());
        self
    }

    /// Where commands that start in `directory` may write: the workspace, and what flags name.
    pub(super) fn writable(&self, directory: Option<&Path>) -> Vec<PathBuf> {
        let values = |flag: &'static [u8]| {
            let words = self.flags.iter().map(|word| word.as_bytes());
            words
                .filter_map(move |word| word.strip_prefix(flag))
                .map(|value| Path::new(OsStr::from_bytes(value)))
        };
        let (start, workspace) =
            (values(b"--cwd=").next_back().or(directory), values(b"--workspace=").next_back());
        let here = Path::new(".");
        let start = start.or(workspace).unwrap_or(here);
        let named = values(b"--rw=").chain(values(b"--rwx=")).map(|path| start.join(path));
        // What is not there sbx refuses to open.
        let named = named.filter(|path| path::is_there(path));
        [workspace.unwrap_or(start).to_path_buf()].into_iter().chain(named).collect()
    }

    /// A command to be run in it, to be found as a shell finds it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        Command::new(self.clone(), program.as_ref())
    }
}

/// How the command line spells it.
fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_commands_may_write_is_what_flags_say() {
        let base = std::env::temp_dir();
        let writable = |sandbox: Sandbox| sandbox.writable(Some(Path::new("/usr")));
        assert_eq!(writable(Sandbox::new("write")), [Path::new("/usr")]);
        let sandbox = Sandbox::new("write").workspace("/srv").read("/etc").write(&base).write("/no/such");
        let sandbox = sandbox.flag("--rwx", "bin").flag("--cwd", "/usr");
        assert_eq!(writable(sandbox), [Path::new("/srv"), &base, Path::new("/usr/bin")]);
        assert_eq!(Sandbox::new("write").writable(None), [Path::new(".")]);
    }
}
