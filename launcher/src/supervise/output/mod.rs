//! Standard output and error under a limit: led through a pipe each, of which the head goes out at once, and the tail
//! when the run is over. Without a limit the command has the caller's descriptors, and nothing here is used.

mod kept;
mod sink;

use crate::sys::descriptor::{self, Interest, Ready};
use crate::sys::file::{self, Usable};
use crate::sys::{Failed, stream};
use kept::Kept;
pub use sink::{Sink, Written};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// As much as a pipe holds.
const CHUNK: usize = 64 * 1024;

/// The standard streams, by their names in messages and reports.
const STREAMS: [(RawFd, &str); 2] = [(1, "stdout"), (2, "stderr")];

/// What became of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// `stdout`, `stderr`, or `stdout and stderr` where both are one file.
    pub name: &'static str,
    /// How much the command wrote.
    pub bytes: u64,
    /// How much of it was not passed on.
    pub left_out: u64,
}

/// The streams of a run, led through us.
pub struct Pumps {
    pumps: Vec<Pump>,
    buffer: Vec<u8>,
    /// Streams that are terminals, which are left alone.
    pub terminals: Vec<&'static str>,
    /// Streams, and what they are, that are standard input as well: the command can write to that.
    pub open_behind: Vec<(&'static str, &'static str)>,
}

/// The caller's descriptors, while the command's stand in their place.
pub struct Diverted(Vec<(RawFd, OwnedFd)>);

impl Diverted {
    /// Puts the caller's descriptors back: the command has its own by now.
    pub fn restore(self) -> Result<(), Failed> {
        // All of them, and again where that fails: otherwise nobody would hear why it did.
        let replace = |(number, file): &(RawFd, OwnedFd)| {
            stream::replace(*number, file.as_fd()).or_else(|_| stream::replace(*number, file.as_fd()))
        };
        let replaced: Vec<Result<(), Failed>> = self.0.iter().map(replace).collect();
        replaced.into_iter().collect()
    }
}

/// Puts pipes in the place of standard output and error, for the command to inherit. (It shares our descriptors until
/// it execs, so it cannot do that itself.) `closed` are those that the caller had closed.
pub fn divert(cap: u64, closed: &[RawFd]) -> Result<(Pumps, Diverted), Failed> {
    let mut pumps =
        Pumps { pumps: Vec::new(), buffer: vec![0; CHUNK], terminals: Vec::new(), open_behind: Vec::new() };
    let mut diverted = Diverted(Vec::new());
    match lead(cap, closed, &mut pumps, &mut diverted) {
        Ok(()) => Ok((pumps, diverted)),
        // There is a sentence to be said about it, on the caller's standard error.
        Err(failed) => diverted.restore().and(Err(failed)),
    }
}

fn lead(cap: u64, closed: &[RawFd], pumps: &mut Pumps, diverted: &mut Diverted) -> Result<(), Failed> {
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

/// What it is if it is standard input too, and can be written to as that. Which end of a pipe that is makes no difference,
/// for it can be opened anew by its name in /proc; a file can too, but only by who may write it anyway.
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
    let place = |file: &File| file.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    place(a).is_some_and(|place_of_a| place(b) == Some(place_of_a))
}

/// Whether what is written to both has one order: then there is one pipe, and one limit, for both.
fn is_one(a: &File, b: &File) -> bool {
    let Ok(kind) = a.metadata().map(|meta| meta.file_type()) else { return false };
    let file = !kind.is_fifo() && !kind.is_socket();
    // A regular file that was opened twice has two positions.
    is_one_place(a, b) && (!file || stream::same_open_file(a.as_raw_fd(), b.as_raw_fd()).unwrap_or(true))
}

impl Pumps {
    /// What to wait for: two sources, two sinks.
    pub fn interests(&self) -> [Interest; 4] {
        let pump = |at: usize| self.pumps.get(at);
        [
            Interest::read(pump(0).and_then(Pump::wants_more)),
            Interest::read(pump(1).and_then(Pump::wants_more)),
            Interest::write(pump(0).and_then(Pump::has_more)),
            Interest::write(pump(1).and_then(Pump::has_more)),
        ]
    }

    /// Moves what can be moved. A failure to write is the end of the run.
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

    /// Takes what is left in the pipes when nobody writes into them any more, and lets the tails follow.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.pumps.iter_mut().try_for_each(|pump| pump.finish(&mut self.buffer))
    }

    /// Whether everything has been passed on.
    pub fn is_done(&self) -> bool {
        self.pumps.iter().all(|pump| pump.has_more().is_none())
    }

    /// How much has been passed on by now.
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
#[derive(Debug)]
pub struct Failure(pub String);

/// One stream on its way.
struct Pump {
    source: Option<OwnedFd>,
    sink: Option<Sink>,
    kept: Kept,
    /// What is to be written next, and how much of it has been.
    pending: Vec<u8>,
    done: usize,
    /// What follows it.
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

    /// The source, if more can be taken: what belongs to the head waits for the reader, as without us; what comes
    /// after it is kept or dropped at once.
    fn wants_more(&self) -> Option<RawFd> {
        let room = self.pending.is_empty() || self.kept.is_past_head();
        self.source.as_ref().filter(|_| room).map(AsRawFd::as_raw_fd)
    }

    /// The sink, if there is something for it.
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
                let head = self.kept.take(bytes).map_err(|e| self.failure(&e.to_string()))?;
                self.pending.extend_from_slice(&bytes[..head]);
                return Ok(true);
            }
            Err(failed) if failed.errno() == libc::EAGAIN => {}
            Err(failed) => return Err(self.failure(&failed.to_string())),
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
                let failure = self.failure(&failed.to_string());
                self.abandon();
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Without a reader on our side there is none for the command: its next write tells it so, as without us.
    fn abandon(&mut self) {
        (self.source, self.sink, self.done) = (None, None, 0);
        self.pending.clear();
        self.tail.clear();
    }

    fn finish(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        // No more than a pipe holds: who was handed its other end may be of another run, and write without end.
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

    fn failure(&self, cause: &str) -> Failure {
        Failure(format!("cannot pass {} on: {cause}", self.stream.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_without_end_is_not_waited_for() {
        let open = |path| OwnedFd::from(File::options().read(true).write(true).open(path).unwrap());
        let mut pump = Pump::new(open("/dev/zero"), open("/dev/null"), Kept::new(100), "stdout");
        pump.finish(&mut [0; CHUNK]).unwrap();
        assert_eq!(pump.kept.total(), 1 << 20);
    }
}
