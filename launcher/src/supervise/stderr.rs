//! Non-blocking standard error, for the supervisor's own lines while the command runs.
//!
//! The command has the same terminal or pipe, and can keep it from taking more: it fills the pipe of a
//! caller who reads later, or stops the terminal's output. A supervisor that waited for such a reader would
//! enforce no limit meanwhile, so its lines wait instead.

use crate::supervise::output::{Sink, Written};
use crate::sys::descriptor::{self, Interest};
use crate::sys::{signal, stream, terminal};
use std::io::Write;
use std::os::fd::RawFd;
use std::time::Duration;

/// How long a reader may take nothing after everything else has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Standard error.
#[derive(Default)]
pub struct Stderr {
    never_waits: bool,
    sink: Option<Sink>,
    waiting: Vec<u8>,
}

/// The signals by which writing to a file or pipe may end a process.
const OF_WRITING: [i32; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

impl Stderr {
    /// Writes some text while no command runs. Where stderr is gone there is nobody to tell. Nor is a reader waited for
    /// that takes nothing: a command that has ended may have filled the pipe, or have made it one that does not wait.
    pub fn say_alone(text: &str) {
        let mut stderr = Stderr { never_waits: true, ..Stderr::default() };
        signal::without(&OF_WRITING, || {
            stderr.say(text);
            stderr.finish();
        });
    }

    /// Writes a line, now or later.
    pub fn say(&mut self, line: &str) {
        if !self.never_waits {
            // A stderr that is gone, or may not grow, has no reader to miss the line.
            let _ = signal::without(&OF_WRITING, || std::io::stderr().lock().write_all(line.as_bytes()));
            return;
        }
        match terminal::keeps_column(libc::STDERR_FILENO) {
            true => self.waiting.extend_from_slice(line.replace('\n', "\r\n").as_bytes()),
            false => self.waiting.extend_from_slice(line.as_bytes()),
        }
        self.pass_on();
    }

    /// From now on lines wait for their reader; this process does not.
    pub fn never_wait(&mut self) {
        self.never_waits = true;
    }

    /// The descriptor that has to be writable for lines that wait, if there are some.
    pub fn waits_for(&self) -> Option<RawFd> {
        self.sink.as_ref().filter(|_| !self.waiting.is_empty()).map(Sink::number)
    }

    /// Writes what can be written at once.
    pub fn pass_on(&mut self) {
        self.pass_on_within(Duration::ZERO);
    }

    /// Writes what waits, as long as a reader takes it.
    pub fn finish(&mut self) {
        self.pass_on_within(PATIENCE);
        self.waiting.clear();
    }

    /// Where there is no descriptor to spare: as much as a pipe takes at once if it takes anything (PIPE_BUF).
    fn pass_on_directly(&mut self, patience: Duration) {
        let ready = descriptor::poll([Interest::write(Some(libc::STDERR_FILENO))], Some(patience));
        if ready.is_ok_and(|[stderr]| stderr.now) {
            let count = self.waiting.len().min(libc::PIPE_BUF);
            let _ = std::io::stderr().lock().write_all(&self.waiting[..count]);
            self.waiting.drain(..count);
        }
    }

    fn pass_on_within(&mut self, patience: Duration) {
        if !self.waiting.is_empty() {
            signal::without(&[libc::SIGXFSZ], || self.write(patience));
        }
    }

    fn write(&mut self, patience: Duration) {
        while !self.waiting.is_empty() {
            if self.sink.is_none() {
                self.sink = stream::reopen(2).or_else(|_| stream::duplicate(2)).ok().map(Sink::new);
            }
            let Some(sink) = &mut self.sink else { return self.pass_on_directly(patience) };
            let ready = descriptor::poll([Interest::write(Some(sink.number()))], Some(patience));
            if !ready.is_ok_and(|[sink]| sink.now || sink.gone) {
                return;
            }
            match sink.write(&self.waiting) {
                Written::Some(count) => drop(self.waiting.drain(..count)),
                Written::Later => return,
                // No reader is left.
                Written::ReaderGone | Written::Failed(_) => self.waiting.clear(),
            }
        }
    }
}
