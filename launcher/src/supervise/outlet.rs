//! Standard error, for our own lines while the command runs.
//!
//! The command has the same terminal or pipe, and can see to it that nothing more goes into it: it fills the pipe of a
//! caller who reads later, or stops the terminal's output. Whoever waited for such a reader would look neither at the
//! clock nor at any other limit, so lines wait instead.

use crate::supervise::output::{Sink, Written};
use crate::sys::descriptor::{self, Interest};
use crate::sys::stream;
use std::io::Write;
use std::os::fd::RawFd;
use std::time::Duration;

/// How long the reader may take nothing, when everything else has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Standard error.
#[derive(Default)]
pub struct Outlet {
    never_waits: bool,
    sink: Option<Sink>,
    waiting: Vec<u8>,
}

impl Outlet {
    /// Says a line, now or later.
    pub fn say(&mut self, line: &str) {
        if !self.never_waits {
            // Where stderr is gone there is nobody to tell.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
            return;
        }
        self.waiting.extend_from_slice(line.as_bytes());
        self.pass_on();
    }

    /// From now on, lines wait.
    pub fn never_wait(&mut self) {
        self.never_waits = true;
    }

    /// What has to be writable, if something waits.
    pub fn waits_for(&self) -> Option<RawFd> {
        self.sink.as_ref().filter(|_| !self.waiting.is_empty()).map(Sink::number)
    }

    /// Passes on what goes at once.
    pub fn pass_on(&mut self) {
        self.pass_on_within(Duration::ZERO);
    }

    /// Passes on what waits, as long as somebody takes it.
    pub fn finish(&mut self) {
        self.pass_on_within(PATIENCE);
        self.waiting.clear();
    }

    fn pass_on_within(&mut self, patience: Duration) {
        while !self.waiting.is_empty() {
            if self.sink.is_none() {
                self.sink = stream::reopen(2).or_else(|_| stream::duplicate(2)).ok().map(Sink::new);
            }
            let Some(sink) = &mut self.sink else { return };
            let ready = descriptor::poll([Interest::write(Some(sink.number()))], Some(patience));
            if !ready.is_ok_and(|[sink]| sink.now || sink.gone) {
                return;
            }
            match sink.write(&self.waiting) {
                Written::Some(count) => drop(self.waiting.drain(..count)),
                Written::Later => return,
                // Nobody to tell.
                Written::ReaderGone | Written::Failed(_) => self.waiting.clear(),
            }
        }
    }
}
