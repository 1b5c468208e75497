//! A command that was started, and what became of it.

use crate::error::{Error, ErrorKind};
use crate::report::{Report, VERSION};
use std::io::{self, PipeReader, Read};
use std::process;
use std::thread::{self, JoinHandle};

/// In bytes. No report is longer: `sbx` bounds what goes into one.
const LONGEST_REPORT: u64 = 64 << 20;
/// In bytes. [`Child::wait_with_output`] keeps no more of each stream.
const LONGEST_OUTPUT: usize = 64 << 20;

/// A running `sbx` with the command under it.
///
/// As with [`std::process::Child`], dropping it neither ends it nor waits for it.
#[derive(Debug)]
pub struct Child {
    child: process::Child,
    report: JoinHandle<io::Result<Vec<u8>>>,
    /// The writing end of the command's standard input, if that is a pipe.
    pub stdin: Option<process::ChildStdin>,
    /// The reading end of its standard output.
    pub stdout: Option<process::ChildStdout>,
    /// The reading end of its standard error.
    pub stderr: Option<process::ChildStderr>,
}

/// What a command wrote, and the report of its run.
#[derive(Clone, Debug)]
pub struct Output {
    /// Standard output, if it was a pipe. At most 64 MiB are kept; the rest is read and counted.
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    pub stderr: Vec<u8>,
    /// How many bytes of `stdout` and of `stderr` were not kept. [`Sandbox::max_output`](crate::Sandbox::max_output)
    /// sets a lower limit.
    pub left_out: [u64; 2],
    /// The report.
    pub report: Report,
}

impl Child {
    pub(crate) fn new(mut child: process::Child, report: PipeReader) -> Result<Child, Error> {
        // On a thread of its own, because sbx waits for a reader when a report is longer than a pipe holds.
        let read = move || {
            let mut text = Vec::new();
            report.take(LONGEST_REPORT).read_to_end(&mut text).map(|_| text)
        };
        match thread::Builder::new().name("sbx report".to_string()).spawn(read) {
            Ok(report) => {
                let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
                Ok(Child { child, report, stdin, stdout, stderr })
            }
            Err(error) => {
                // The end of sbx is the end of the command.
                let _ = child.kill();
                let _ = child.wait();
                Err(Error::system("start a thread", &error))
            }
        }
    }

    /// The process number of `sbx`. A SIGTERM to it reaches the command.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the command and all that it started, at once. There is no report then: [`Child::wait`] fails with
    /// [`ErrorKind::NoReport`].
    pub fn kill(&mut self) -> Result<(), Error> {
        self.child.kill().map_err(|error| Error::system("end sbx", &error))
    }

    /// Waits for the end of the command and of all that it started. Standard input is closed first.
    ///
    /// # Errors
    ///
    /// The command did not run, or nobody knows what became of it. A command that ran is `Ok`, whatever its exit
    /// status.
    pub fn wait(mut self) -> Result<Report, Error> {
        drop(self.stdin.take());
        let text = self.report.join();
        let status = self.child.wait().map_err(|error| Error::system("wait for sbx", &error))?;
        let text = match text {
            Ok(text) => text.map_err(|error| Error::system("read the report", &error))?,
            Err(_) => return Err(Error::new(ErrorKind::System, "cannot read the report: its thread ended")),
        };
        let report = parse(&text, status)?;
        match Error::of(&report) {
            Some(error) => Err(error),
            None => Ok(report),
        }
    }

    /// As [`Child::wait`]; meanwhile it reads standard output and standard error to their ends, where they are pipes.
    ///
    /// # Errors
    ///
    /// Those of [`Child::wait`], or a stream cannot be read.
    pub fn wait_with_output(mut self) -> Result<Output, Error> {
        drop(self.stdin.take());
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let failed = |error: io::Error| Error::system("read what the command writes", &error);
        let (stdout, stderr) = thread::scope(|scope| {
            let other = thread::Builder::new().name("sbx stderr".to_string());
            let other = other.spawn_scoped(scope, || collect(stderr)).map_err(failed)?;
            let stdout = collect(stdout).map_err(failed)?;
            let stderr = other.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(failed)?;
            Ok::<_, Error>((stdout, stderr))
        })?;
        let left_out = [stdout.1, stderr.1];
        Ok(Output { stdout: stdout.0, stderr: stderr.0, left_out, report: self.wait()? })
    }
}

/// The head of a stream, and how many bytes followed it.
fn collect(stream: Option<impl Read>) -> io::Result<(Vec<u8>, u64)> {
    let mut head = Vec::new();
    let Some(mut stream) = stream else { return Ok((head, 0)) };
    stream.by_ref().take(LONGEST_OUTPUT as u64).read_to_end(&mut head)?;
    let rest = io::copy(&mut stream, &mut io::sink())?;
    Ok((head, rest))
}

fn parse(text: &[u8], status: process::ExitStatus) -> Result<Report, Error> {
    if text.is_empty() {
        return Err(Error::new(
            ErrorKind::NoReport,
            format!("cannot tell what became of the command: sbx left no report ({status})"),
        ));
    }
    let unreadable = |why: String| {
        let why = format!(
            "cannot read the report of sbx: {why}; the program may be of another version than this library"
        );
        Error::new(ErrorKind::NoReport, why)
    };
    let report: Report = serde_json::from_slice(text).map_err(|error| unreadable(error.to_string()))?;
    if report.version != VERSION {
        return Err(unreadable(format!("it is of version {}, and not {VERSION}", report.version)));
    }
    Ok(report)
}
