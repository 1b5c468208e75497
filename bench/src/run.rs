//! One command, ready to be started again and again.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::{Result, sys};

/// A contestant that takes longer is broken.
pub(crate) const LIMIT_SECONDS: u32 = 30;
/// No contestant prints more than this.
const OUTPUT_LIMIT: u64 = 1 << 20;

/// A prepared command and the files that are its standard streams.
pub(crate) struct Subject {
    prepared: sys::Prepared,
    // Held open: `prepared` names it by number.
    _stdin: File,
    stdout: File,
    stderr: File,
}

impl Subject {
    pub(crate) fn new(argv: &[OsString], env: &[OsString]) -> Result<Self> {
        let stdin = File::open("/dev/null").map_err(|e| format!("cannot open '/dev/null': {e}"))?;
        let (stdout, stderr) = (sys::memory_file()?, sys::memory_file()?);
        let prepared = sys::Prepared::new(argv, env, [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()])?;
        Ok(Self { prepared, _stdin: stdin, stdout, stderr })
    }

    /// One run, from before vfork until the wait returns. Anything but exit status 0 and an empty stderr is
    /// an error: the dynamic loader, for example, only warns when it runs a program without the library it was told
    /// to load, and that must not count as a fast start.
    pub(crate) fn time(&mut self) -> Result<Duration> {
        with_alarm(|| self.time_without_alarm())
    }

    /// The same for several threads: there is one alarm for all of them, so another thread has to send it.
    pub(crate) fn time_without_alarm(&mut self) -> Result<Duration> {
        let (elapsed, status) = self.run()?;
        self.judge(status)?;
        Ok(elapsed)
    }

    fn run(&mut self) -> Result<(Duration, ExitStatus)> {
        self.rewind()?;
        let before = Instant::now();
        let status = self.prepared.start().map(wait);
        let elapsed = before.elapsed();
        let status = status.map_err(|e| format!("cannot start: {e}"))??;
        Ok((elapsed, status))
    }

    /// The output of one run.
    pub(crate) fn output(&mut self) -> Result<String> {
        self.time()?;
        read(&mut self.stdout)
    }

    /// The output of one run in which something is bound to be refused: sandboxes report that on stderr.
    pub(crate) fn output_despite_complaints(&mut self) -> Result<String> {
        let (_, status) = with_alarm(|| self.run())?;
        if !status.success() {
            self.judge(status)?;
        }
        read(&mut self.stdout)
    }

    fn rewind(&mut self) -> Result<()> {
        for file in [&mut self.stdout, &mut self.stderr] {
            let emptied = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
            emptied.map_err(|e| format!("cannot empty a memory file: {e}"))?;
        }
        Ok(())
    }

    fn judge(&mut self, status: ExitStatus) -> Result<()> {
        let said = read(&mut self.stderr)?;
        match (status.success(), said.trim()) {
            (true, "") => Ok(()),
            (true, said) => Err(format!("exit 0, but wrote to stderr: {said}")),
            (false, said) => Err(format!("{}: {said}", describe(status))),
        }
    }
}

/// Ends a run that takes too long.
fn with_alarm<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    sys::set_alarm(LIMIT_SECONDS);
    let result = work();
    sys::set_alarm(0);
    result
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (_, Some(signal)) => format!("killed by signal {signal}"),
        _ => "ended strangely".into(),
    }
}

/// Waits for a child, and kills it if the alarm goes off first.
pub(crate) fn wait(pid: libc::pid_t) -> Result<ExitStatus> {
    match sys::wait(pid) {
        Err(e) if e.kind() == ErrorKind::Interrupted => {
            sys::kill(pid);
            // The alarm may be sent again.
            while sys::wait(pid).is_err_and(|e| e.kind() == ErrorKind::Interrupted) {}
            Err(format!("not finished after {LIMIT_SECONDS} s"))
        }
        other => other.map_err(|e| format!("cannot wait: {e}")),
    }
}

fn read(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    let whole = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(OUTPUT_LIMIT).read_to_end(&mut bytes));
    whole.map_err(|e| format!("cannot read a memory file: {e}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(script: &str) -> Subject {
        let argv = ["/bin/sh", "-c", script].map(OsString::from);
        Subject::new(&argv, &[OsString::from("WORD=said")]).unwrap()
    }

    #[test]
    fn output_and_environment_arrive_each_time() {
        let mut subject = subject("echo $WORD");
        for _ in 0..2 {
            assert_eq!(subject.output().unwrap(), "said\n");
        }
    }

    #[test]
    fn failure_carries_status_and_stderr() {
        assert_eq!(subject("echo no >&2; exit 3").time().unwrap_err(), "exit 3: no");
        assert!(subject("kill -9 $$").time().unwrap_err().starts_with("killed by signal 9"));
    }

    #[test]
    fn a_warning_is_a_failure() {
        assert!(subject("echo ignored >&2").time().unwrap_err().contains("ignored"));
    }

    #[test]
    fn a_missing_program_is_told() {
        let mut subject = Subject::new(&[OsString::from("/nonexistent/x")], &[]).unwrap();
        assert!(subject.time().unwrap_err().starts_with("cannot start: "));
    }
}
