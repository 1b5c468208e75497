//! Standard output and error under a limit: each goes through a pipe, its head goes out at once, and its
//! tail when the run is over. Without a limit the command has the caller's descriptors, and nothing here is
//! used.

mod kept;
mod sink;

use crate::sys::descriptor::{self, Interest, Ready};
use crate::sys::file::{self, Usable};
use crate::sys::number::FileNumber;
use crate::sys::{SyscallError, stream};
use kept::Kept;
pub use sink::{Sink, Written};
use std::collections::TryReserveError;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;

/// Bytes that are read at once: as many as a pipe holds.
const CHUNK: usize = 64 * 1024;

/// The standard streams, by their names in messages and reports.
const STREAMS: [(RawFd, &str); 2] = [(1, "stdout"), (2, "stderr")];

/// What became of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// `stdout`, `stderr`, or `stdout and stderr` where both are one file.
    pub name: &'static str,
    /// How many bytes the command wrote.
    pub bytes: u64,
    /// How many bytes of it were not passed on.
    pub left_out: u64,
}

/// The streams of a run that go through the supervisor.
pub struct Pumps {
    pumps: Vec<Pump>,
    buffer: Vec<u8>,
    /// Streams that are terminals, which the limit does not apply to.
    pub terminals: Vec<&'static str>,
    /// Streams that share a pipe, socket or file with standard input, and which of these: the command can
    /// write to that.
    pub open_behind: Vec<(&'static str, &'static str)>,
}

/// The caller's descriptors, while the pipes are in their place.
pub struct Diverted(Vec<(RawFd, OwnedFd)>);

impl Diverted {
    /// Puts the caller's descriptors back, once the command has the pipes.
    pub fn restore(self) -> Result<(), SyscallError> {
        // All of them, with a second attempt: without stderr the failure could not be reported.
        let replace = |(number, file): &(RawFd, OwnedFd)| {
            stream::replace(*number, file.as_fd()).or_else(|_| stream::replace(*number, file.as_fd()))
        };
        let replaced: Vec<Result<(), SyscallError>> = self.0.iter().map(replace).collect();
        replaced.into_iter().collect()
    }
}

/// Puts pipes in the place of standard output and error, for the command to inherit. (The child shares our
/// descriptor table until its exec, so it cannot do that itself.) `closed` are those that the caller had
/// closed.
pub fn divert(cap: u64, closed: &[RawFd]) -> Result<(Pumps, Diverted), SyscallError> {
    let mut pumps =
        Pumps { pumps: Vec::new(), buffer: vec![0; CHUNK], terminals: Vec::new(), open_behind: Vec::new() };
    let mut diverted = Diverted(Vec::new());
    match lead(cap, closed, &mut pumps, &mut diverted) {
        Ok(()) => Ok((pumps, diverted)),
        // The failure is reported on the caller's standard error.
        Err(failed) => diverted.restore().and(Err(failed)),
    }
}

fn lead(cap: u64, closed: &[RawFd], pumps: &mut Pumps, diverted: &mut Diverted) -> Result<(), SyscallError> {
    let mut led: Option<(File, OwnedFd)> = None;
    for (number, name) in STREAMS {
        if closed.contains(&number) {
            continue;
        }
        if descriptor::is_terminal(number) {
            pumps.terminals.push(name);
            continue;
        }
        let file = File::from(stream::duplicate(number)?);
        diverted.0.push((number, stream::duplicate(number)?));
        pumps.open_behind.extend(input(&file).map(|kind| (name, kind)));
        if let Some((other, end)) = &led
            && is_one(other, &file)
        {
            stream::replace(number, end.as_fd())?;
            pumps.pumps.iter_mut().for_each(|pump| pump.stream.name = "stdout and stderr");
            continue;
        }
        let (source, end) = descriptor::pipe()?;
        stream::never_wait(&source)?;
        stream::replace(number, end.as_fd())?;
        pumps.pumps.push(Pump::new(source, stream::duplicate(file.as_raw_fd())?, Kept::new(cap), name));
        led = Some((file, end));
    }
    Ok(())
}

/// What a stream is, if it is standard input too and can be written to as that. For a pipe the end makes no
/// difference: it can be opened anew by its name in /proc. So can a file, but only by who may write to it
/// anyway.
fn input(file: &File) -> Option<&'static str> {
    let kind = file.metadata().ok()?.file_type();
    let (kind, writable) = match kind {
        kind if kind.is_socket() => ("socket", true),
        kind if kind.is_fifo() => ("pipe", true),
        kind if kind.is_file() => ("file", file::usable(0) == Usable::Yes),
        _ => return None,
    };
    let same = || stream::duplicate(0).is_ok_and(|input| is_one_place(&File::from(input), file));
    (writable && same()).then_some(kind)
}

fn is_one_place(a: &File, b: &File) -> bool {
    let place = |file: &File| file.metadata().ok().map(|meta| FileNumber::of(&meta));
    place(a).is_some_and(|place_of_a| place(b) == Some(place_of_a))
}

/// Whether both are one open file, so that what is written to them has one order: then both get one pipe
/// and one limit.
fn is_one(a: &File, b: &File) -> bool {
    let Ok(kind) = a.metadata().map(|meta| meta.file_type()) else { return false };
    let file = !kind.is_fifo() && !kind.is_socket();
    // A regular file that was opened twice has two positions.
    is_one_place(a, b) && (!file || stream::same_open_file(a.as_raw_fd(), b.as_raw_fd()).unwrap_or(true))
}

impl Pumps {
    /// What to wait for: two sources and two sinks.
    pub fn interests(&self) -> [Interest; 4] {
        let pump = |at: usize| self.pumps.get(at);
        [
            Interest::read(pump(0).and_then(Pump::wants_more)),
            Interest::read(pump(1).and_then(Pump::wants_more)),
            Interest::write(pump(0).and_then(Pump::has_more)),
            Interest::write(pump(1).and_then(Pump::has_more)),
        ]
    }

    /// Moves what can be moved. A failure ends the run.
    pub fn turn(&mut self, ready: [Ready; 4]) -> Result<(), Failure> {
        let (sources, sinks) = ready.split_at(2);
        for ((pump, source), sink) in self.pumps.iter_mut().zip(sources).zip(sinks) {
            if source.now || source.gone {
                pump.read(&mut self.buffer)?;
            }
            if sink.now || sink.gone {
                pump.write()?;
            }
        }
        Ok(())
    }

    /// Takes what is left in the pipes after the run, and lets the tails follow.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.pumps.iter_mut().try_for_each(|pump| pump.finish(&mut self.buffer))
    }

    /// Whether everything has been passed on.
    pub fn is_done(&self) -> bool {
        self.pumps.iter().all(|pump| pump.has_more().is_none())
    }

    /// How many bytes have been passed on.
    pub fn written(&self) -> u64 {
        self.pumps.iter().map(|pump| pump.passed_on).sum()
    }

    /// What became of each stream.
    pub fn streams(&self) -> Vec<Stream> {
        let count = |pump: &Pump| Stream {
            bytes: pump.kept.total(),
            left_out: pump.kept.left_out(),
            ..pump.stream.clone()
        };
        self.pumps.iter().map(count).collect()
    }
}

/// The output could not be passed on.
#[derive(Debug, thiserror::Error)]
#[error("cannot pass {stream} on: {cause}")]
pub struct Failure {
    stream: &'static str,
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{0}")]
    Memory(#[from] TryReserveError),
    #[error("{0}")]
    Call(SyscallError),
}

/// One stream on its way.
struct Pump {
    source: Option<OwnedFd>,
    sink: Option<Sink>,
    kept: Kept,
    /// What is written next, and how much of it has been written.
    pending: Vec<u8>,
    done: usize,
    /// What is written after that.
    tail: Vec<u8>,
    passed_on: u64,
    stream: Stream,
}

impl Pump {
    fn new(source: OwnedFd, sink: OwnedFd, kept: Kept, name: &'static str) -> Pump {
        Pump {
            source: Some(source),
            sink: Some(Sink::new(sink)),
            kept,
            pending: Vec::new(),
            done: 0,
            tail: Vec::new(),
            passed_on: 0,
            stream: Stream { name, bytes: 0, left_out: 0 },
        }
    }

    /// The source, if more can be taken: what belongs to the head waits for the reader, as without a limit;
    /// what comes after it is kept or dropped at once.
    fn wants_more(&self) -> Option<RawFd> {
        let room = self.pending.is_empty() || self.kept.is_past_head();
        self.source.as_ref().filter(|_| room).map(AsRawFd::as_raw_fd)
    }

    /// The sink, if something waits for it.
    fn has_more(&self) -> Option<RawFd> {
        self.sink.as_ref().filter(|_| !self.pending.is_empty()).map(Sink::number)
    }

    /// Reads once. Tells whether there may be more.
    fn read(&mut self, buffer: &mut [u8]) -> Result<bool, Failure> {
        let Some(source) = &self.source else { return Ok(false) };
        if self.kept.is_past_head() && self.sink.as_ref().is_none_or(Sink::is_abandoned) {
            self.abandon();
            return Ok(false);
        }
        match descriptor::read(source.as_raw_fd(), buffer) {
            Ok(0) => self.source = None,
            Ok(count) => {
                let bytes = &buffer[..count];
                let head = self.kept.take(bytes).map_err(|full| self.failure(full.into()))?;
                self.pending.extend_from_slice(&bytes[..head]);
                return Ok(true);
            }
            Err(failed) if failed.errno() == libc::EAGAIN => {}
            Err(failed) => return Err(self.failure(Cause::Call(failed))),
        }
        Ok(false)
    }

    /// Writes once.
    fn write(&mut self) -> Result<(), Failure> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        match sink.write(&self.pending[self.done..]) {
            Written::Some(count) => {
                self.done += count;
                self.passed_on += count as u64;
                if self.done >= self.pending.len() {
                    self.done = 0;
                    self.pending = std::mem::take(&mut self.tail);
                }
            }
            Written::Later => {}
            Written::ReaderGone => self.abandon(),
            Written::Failed(failed) => {
                self.abandon();
                return Err(self.failure(Cause::Call(failed)));
            }
        }
        Ok(())
    }

    /// Drops the stream whose reader is gone: the command's next write tells it so, as without a limit.
    fn abandon(&mut self) {
        (self.source, self.sink, self.done) = (None, None, 0);
        self.pending.clear();
        self.tail.clear();
    }

    fn finish(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        // No more than a pipe holds: a process that does not belong to the run may have its other end, and
        // write on.
        let room = self.source.as_ref().map_or(0, stream::room);
        let before = self.kept.total();
        while self.kept.total() - before < room && self.read(buffer)? {}
        self.source = None;
        if self.sink.is_some() {
            let [marker, tail] = self.kept.rest();
            self.pending.extend(marker);
            self.tail = tail;
            if self.pending.is_empty() {
                self.pending = std::mem::take(&mut self.tail);
            }
        }
        Ok(())
    }

    fn failure(&self, cause: Cause) -> Failure {
        Failure { stream: self.stream.name, cause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_without_end_is_not_waited_for() {
        let open = |path| OwnedFd::from(File::options().read(true).write(true).open(path).unwrap());
        let mut pump = Pump::new(open("/dev/zero"), open("/dev/null"), Kept::new(100), "stdout");
        pump.finish(&mut [0; CHUNK]).unwrap();
        assert_eq!(pump.kept.total(), 1 << 20);
    }
}
