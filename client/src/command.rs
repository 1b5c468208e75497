//! A command before its start.

use crate::child::{Child, Output};
use crate::error::{Error, ErrorKind};
use crate::find;
use crate::report::Report;
use crate::sandbox::Sandbox;
use crate::text::{cause, shown};
use command_fds::CommandFdExt;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{self, Stdio};

/// A command to run in a [`Sandbox`].
#[derive(Debug)]
pub struct Command {
    sandbox: Sandbox,
    words: Vec<OsString>,
    directory: Option<PathBuf>,
    stdin: Option<Stdio>,
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
    adjust: Option<fn(&mut process::Command)>,
}

impl Command {
    pub(crate) fn new(sandbox: Sandbox, program: &OsStr) -> Command {
        let words = vec![program.to_os_string()];
        Command { sandbox, words, directory: None, stdin: None, stdout: None, stderr: None, adjust: None }
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

    /// Starts the command in this directory. It is also the workspace, unless [`Sandbox::workspace`] names one.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Command {
        self.directory = Some(directory.into());
        self
    }

    /// Sets standard input. By default it is that of the calling process, or `/dev/null` for [`Command::output`].
    pub fn stdin(mut self, stdin: impl Into<Stdio>) -> Command {
        self.stdin = Some(stdin.into());
        self
    }

    /// Sets standard output. By default it is that of the calling process, or a pipe for [`Command::output`].
    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Command {
        self.stdout = Some(stdout.into());
        self
    }

    /// Sets standard error. By default it is that of the calling process, or a pipe for [`Command::output`].
    ///
    /// Where `sbx` cannot run the command, it writes one sentence here. It writes no lines about refused calls:
    /// they are in the report.
    pub fn stderr(mut self, stderr: impl Into<Stdio>) -> Command {
        self.stderr = Some(stderr.into());
        self
    }

    /// Has `adjust` change how `sbx` itself is started, just before that: its process group or session, say, or the
    /// signal that it gets when its parent ends. Program, arguments and descriptors are to be left alone.
    pub fn adjust(mut self, adjust: fn(&mut process::Command)) -> Command {
        self.adjust = Some(adjust);
        self
    }

    /// Starts the command. Whether it really ran is known from the report alone: [`Child::wait`].
    ///
    /// # Errors
    ///
    /// `sbx` was not found, lies where commands could change it, or cannot be started.
    pub fn spawn(self) -> Result<Child, Error> {
        let program = self.program()?;
        let (reader, writer) =
            std::io::pipe().map_err(|error| Error::system("make a pipe for the report", &error))?;
        let mut command = process::Command::new(&program);
        // The place of the report comes first, so that sbx reports mistakes in later flags too.
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
        // Only the child inherits it. Here it stays close-on-exec, so that no other child of this process gets it.
        command.preserved_fds(vec![OwnedFd::from(writer)]);
        if let Some(adjust) = self.adjust {
            adjust(&mut command);
        }
        let child = command.spawn().map_err(|error| {
            let why = format!("cannot start '{}': {}", shown(&program), cause(&error));
            Error::new(ErrorKind::NoSbx, why)
        })?;
        // This closes our copy of the writing end: the end of sbx is then the end of the report.
        drop(command);
        Child::new(child, reader)
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    ///
    /// Those of [`Command::spawn`] and [`Child::wait`].
    pub fn status(self) -> Result<Report, Error> {
        self.spawn()?.wait()
    }

    /// Runs the command to its end and collects what it writes, at most 64 MiB of each stream.
    ///
    /// # Errors
    ///
    /// Those of [`Command::spawn`] and [`Child::wait_with_output`].
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
