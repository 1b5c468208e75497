//! A command, before it is started.

use super::child::{Child, Output};
use super::error::{Error, Kind};
use super::find;
use super::sandbox::Sandbox;
use crate::report::model::Report;
use crate::supervise::decode::escape;
use crate::sys::{descriptor, plain};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{self, Stdio};

/// A command to be run in a [`Sandbox`].
#[derive(Debug)]
pub struct Command {
    sandbox: Sandbox,
    words: Vec<OsString>,
    directory: Option<PathBuf>,
    stdin: Option<Stdio>,
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
}

impl Command {
    pub(super) fn new(sandbox: Sandbox, program: &OsStr) -> Command {
        let words = vec![program.to_os_string()];
        Command { sandbox, words, directory: None, stdin: None, stdout: None, stderr: None }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Command {
        self.words.push(argument.as_ref().to_os_string());
        self
    }

    /// Adds arguments.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(self, arguments: I) -> Command {
        arguments.into_iter().fold(self, Command::arg)
    }

    /// Starts it in this directory, which is the workspace where none is named.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Command {
        self.directory = Some(directory.into());
        self
    }

    /// Its standard input; without this, that of the calling process, or nothing for [`Command::output`].
    pub fn stdin(mut self, stdin: impl Into<Stdio>) -> Command {
        self.stdin = Some(stdin.into());
        self
    }

    /// Its standard output.
    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Command {
        self.stdout = Some(stdout.into());
        self
    }

    /// Its standard error. What `sbx` has to say in one sentence where it cannot run the command comes here too;
    /// lines about what was refused do not, they are in the report.
    pub fn stderr(mut self, stderr: impl Into<Stdio>) -> Command {
        self.stderr = Some(stderr.into());
        self
    }

    /// Starts it. That it really runs is known from the report alone: [`Child::wait`].
    pub fn spawn(self) -> Result<Child, Error> {
        let program = self.program()?;
        let (reader, writer) =
            std::io::pipe().map_err(|error| Error::system("make a pipe for the report", &error))?;
        let mut command = process::Command::new(&program);
        // Reports name what was refused, and begin with where they go: mistakes in later flags are reported, too.
        command.arg("run").arg(format!("--report-fd={}", writer.as_raw_fd())).arg("--quiet");
        command.args(&self.sandbox.flags);
        if let Some(directory) = &self.directory {
            let mut word = OsString::from("--cwd=");
            word.push(directory);
            command.arg(word);
        }
        command.arg("--").args(&self.words);
        let streams = [self.stdin, self.stdout, self.stderr];
        let [stdin, stdout, stderr] = streams.map(|stream| stream.unwrap_or_else(Stdio::inherit));
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        descriptor::pass_to(&mut command, OwnedFd::from(writer));
        let child = command.spawn().map_err(|error| {
            let shown = escape(program.as_os_str().as_bytes(), 400);
            Error::new(Kind::NoSbx, format!("cannot start '{shown}': {}", plain(&error)))
        })?;
        // With it goes our copy of the writing end.
        drop(command);
        Child::new(child, reader)
    }

    /// Runs it to its end.
    pub fn status(self) -> Result<Report, Error> {
        self.spawn()?.wait()
    }

    /// Runs it to its end and collects what it writes; see [`Child::wait_with_output`].
    pub fn output(mut self) -> Result<Output, Error> {
        self.stdin.get_or_insert_with(Stdio::null);
        self.stdout.get_or_insert_with(Stdio::piped);
        self.stderr.get_or_insert_with(Stdio::piped);
        self.spawn()?.wait_with_output()
    }

    fn program(&self) -> Result<PathBuf, Error> {
        if let Some(program) = &self.sandbox.program {
            return Ok(program.clone());
        }
        let writable = self.sandbox.writable(self.directory.as_deref());
        find::in_path(std::env::var_os("PATH").as_deref(), &writable)
    }
}
