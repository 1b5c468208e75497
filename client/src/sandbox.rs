//! What commands may do.

use crate::command::Command;
use crate::error::Error;
use crate::path;
use crate::pool::Pool;
use crate::report::Level;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Action on a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnViolation {
    /// The run ends, with status 159.
    Kill,
    /// The call fails.
    Errno,
    /// The call goes on and is listed.
    Log,
}

/// A profile and what is added to it: the flags of `sbx run`.
///
/// `sbx` reads them, and finds mistakes, when a command is started.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(crate) program: Option<PathBuf>,
    pub(crate) flags: Vec<OsString>,
}

impl Sandbox {
    /// A sandbox under this profile: a name, or a file where it has a `/` or ends in `.json`.
    ///
    /// Neither `SBX_PROFILE` nor a user's default profile counts.
    pub fn new(profile: impl AsRef<OsStr>) -> Sandbox {
        let sandbox = Sandbox { program: None, flags: Vec::new() };
        sandbox.flag("--profile", profile)
    }

    /// A sandbox under the profile that `sbx run` takes where none is named: that of `SBX_PROFILE`, the user's own
    /// default, or `workspace`.
    pub fn usual() -> Sandbox {
        Sandbox { program: None, flags: Vec::new() }
    }

    /// Names the `sbx` program. By default it is the first `sbx` in an absolute directory of `PATH`.
    ///
    /// That one is refused if it lies where commands may change it.
    pub fn program(mut self, file: impl Into<PathBuf>) -> Sandbox {
        self.program = Some(file.into());
        self
    }

    /// Sets the directory that commands work in. By default it is the current one.
    pub fn workspace(self, directory: impl Into<PathBuf>) -> Sandbox {
        self.flag("--workspace", directory.into())
    }

    /// Allows reading a path and what is below it.
    pub fn read(self, path: impl AsRef<Path>) -> Sandbox {
        self.flag("--ro", path.as_ref())
    }

    /// Allows reading and executing a path and what is below it.
    pub fn execute(self, path: impl AsRef<Path>) -> Sandbox {
        self.flag("--rox", path.as_ref())
    }

    /// Allows reading and changing a path and what is below it.
    pub fn write(self, path: impl AsRef<Path>) -> Sandbox {
        self.flag("--rw", path.as_ref())
    }

    /// Denies a path and what is below it, even where something above it is allowed.
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

    /// Sets the action on a violation. By default it is the profile's.
    pub fn on_violation(self, action: OnViolation) -> Sandbox {
        let word = match action {
            OnViolation::Kill => "kill",
            OnViolation::Errno => "errno",
            OnViolation::Log => "log",
        };
        self.flag("--on-violation", word)
    }

    /// Gives the commands the host's network.
    pub fn host_network(self) -> Sandbox {
        self.flag("--net", "host")
    }

    /// Allows TCP connections to a port (`*:443`), and no others.
    pub fn connect(self, endpoint: impl AsRef<OsStr>) -> Sandbox {
        self.flag("--connect", endpoint)
    }

    /// Allows listening on a TCP port.
    pub fn bind(self, port: u16) -> Sandbox {
        self.flag("--bind", port.to_string())
    }

    /// Sets a variable. It stands on the command line of `sbx`, where every user of the machine can read it. For a
    /// secret, set the variable in this process and use [`Sandbox::pass_env`].
    pub fn env(self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Sandbox {
        let mut entry = name.as_ref().to_os_string();
        entry.push("=");
        entry.push(value);
        self.flag("--env", entry)
    }

    /// Passes on a variable of this process.
    pub fn pass_env(self, name: impl AsRef<OsStr>) -> Sandbox {
        self.flag("--env", name)
    }

    /// Ends a command, and all that it started, after this time. It is rounded up to milliseconds; zero is refused.
    pub fn timeout(self, time: Duration) -> Sandbox {
        // Rounded up, because sbx refuses a timeout of zero.
        self.flag("--timeout", format!("{}ms", time.as_nanos().div_ceil(1_000_000)))
    }

    /// Passes on at most this many bytes of standard output, and as many of standard error: the head and the tail.
    pub fn max_output(self, bytes: u64) -> Sandbox {
        self.flag("--max-output", bytes.to_string())
    }

    /// Refuses to run where the kernel can enforce less than this: [`Level::Minimal`], [`Level::Standard`] or
    /// [`Level::Full`].
    pub fn require(self, level: Level) -> Sandbox {
        self.flag("--require", level.to_string())
    }

    /// Adds any other flag of `sbx run` with its value, such as `--namespaces` with `none`.
    pub fn flag(mut self, flag: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Sandbox {
        // In one word, so that no value can be taken for a flag.
        let mut word = flag.as_ref().to_os_string();
        word.push("=");
        word.push(value);
        self.flags.push(word);
        self
    }

    /// Adds any other flag of `sbx run` without a value, such as `--explain`.
    pub fn switch(mut self, flag: impl AsRef<OsStr>) -> Sandbox {
        self.flags.push(flag.as_ref().to_os_string());
        self
    }

    /// Where commands that start in `directory` may write: the workspace, and what flags name.
    pub(crate) fn writable(&self, directory: Option<&Path>) -> Vec<PathBuf> {
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
        // sbx refuses a flag that names a missing path.
        let named = named.filter(|path| path::is_there(path));
        [workspace.unwrap_or(start).to_path_buf()].into_iter().chain(named).collect()
    }

    /// Has this many runs of this sandbox wait for their commands, from 1 to 64. They work in the current directory,
    /// and pass on what this process passes on now: limits, priority, file mode creation mask.
    ///
    /// # Errors
    ///
    /// `sbx` was not found or cannot be started, or no run of this kind can wait: its profile starts no processes, say.
    pub fn warm(&self, size: u8) -> Result<Pool, Error> {
        Pool::start(self, size)
    }

    /// A command to run in this sandbox. `sbx` finds the program as a shell does.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        Command::new(self.clone(), program.as_ref())
    }
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
