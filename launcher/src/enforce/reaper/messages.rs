//! The reaper's messages to the supervisor, over a pipe: how the start went, then how the command changes.

use crate::enforce::EnforceError;
use crate::enforce::child::Progress;
use crate::enforce::doors::{Door, Purpose};
use crate::enforce::reaper::Event;
use crate::plan::namespaces::Missing;
use crate::sys::process::{Change, Pid};
use crate::sys::{OfCall, SyscallError, descriptor};
use std::os::fd::RawFd;

/// A kind and a number.
pub type Message = [u8; 5];

/// Room for the name of a process and a zero (proc_pid_comm(5)).
const NAME: usize = 16;

/// The tree continues.
pub const RESUMED: Message = [b'r', 0, 0, 0, 0];

/// No process of the run is left.
pub const GONE: Message = [b'g', 0, 0, 0, 0];

fn message(kind: u8, number: [u8; 4]) -> Message {
    let [a, b, c, d] = number;
    [kind, a, b, c, d]
}

/// How the command changed.
pub fn encode(change: Change) -> Message {
    let (kind, number) = match change {
        Change::Exited(status) => (b'e', status),
        Change::Killed(signal) => (b'k', signal),
        Change::Stopped(signal) => (b's', signal),
        Change::Continued => (b'c', 0),
    };
    message(kind, number.to_le_bytes())
}

/// Which new configuration is protected.
pub fn encode_protected(number: u32) -> Message {
    message(b'm', number.to_le_bytes())
}

/// Which process is left that the command has started: its name, and then whether it is a daemon, in pieces.
pub fn encode_left(name: &[u8], is_daemon: bool) -> Vec<Message> {
    let mut padded = [0; NAME];
    padded.iter_mut().take(NAME - 1).zip(name).for_each(|(to, from)| *to = *from);
    padded[NAME - 1] = u8::from(is_daemon);
    padded.as_chunks().0.iter().map(|piece| message(b'l', *piece)).collect()
}

/// The names that pieces of them consist of.
pub fn names_left(pieces: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = pieces.as_chunks::<NAME>().0.iter();
    whole.map(|name| name.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// Whether one of them is a daemon.
pub fn has_daemon(pieces: &[u8]) -> bool {
    pieces.as_chunks::<NAME>().0.iter().any(|name| name[NAME - 1] != 0)
}

/// The event that a message is about.
pub fn decode([kind, number @ ..]: Message) -> Option<Event> {
    let status = i32::from_le_bytes(number);
    Some(match kind {
        b'm' => Event::ConfigProtected(u32::from_le_bytes(number)),
        b'r' => Event::Resumed,
        b'g' => Event::Gone,
        b'l' => Event::Left(number),
        b'e' => Event::Command(Change::Exited(status)),
        b'k' => Event::Command(Change::Killed(status)),
        b's' => Event::Command(Change::Stopped(status)),
        b'c' => Event::Command(Change::Continued),
        _ => return None,
    })
}

/// The length that stands for "no text".
const NONE: u32 = u32::MAX;

/// What may be missing, by its number in a message.
const MISSING: [Missing; 3] = [Missing::View, Missing::Network, Missing::Both];

/// The numbers and the texts, in one write.
pub fn write_progress(sender: RawFd, command: Pid, progress: &Progress) -> Result<(), SyscallError> {
    let failure = progress.failure.as_ref();
    let sentence = failure.map(EnforceError::to_string);
    let (missing, why) = progress.missing.clone().unzip();
    let texts = [&progress.no_listener, &why, &progress.no_overlays, &sentence];
    let exec = failure.and_then(EnforceError::exec).unwrap_or(0);
    let missing = missing.and_then(|missing| MISSING.iter().position(|known| *known == missing));
    let missing = missing.map_or(-1, |place| place as i32);
    let numbers = [command, progress.listener.unwrap_or(-1), exec, i32::from(progress.ready), missing];
    let mut body: Vec<u8> = numbers.into_iter().flat_map(i32::to_le_bytes).collect();
    body.extend(progress.network.unwrap_or(0).to_le_bytes());
    body.extend((progress.doors.len() as i32).to_le_bytes());
    for (purpose, number) in &progress.doors {
        let (kind, port) = purpose.encode();
        body.extend(i32::from(kind).to_le_bytes());
        body.extend(i32::from(port).to_le_bytes());
        body.extend(number.to_le_bytes());
    }
    for text in texts {
        let length = text.as_ref().map_or(NONE, |text| text.len() as u32);
        body.extend(length.to_le_bytes());
        body.extend(text.iter().flat_map(|text| text.bytes()));
    }
    let mut message = (body.len() as u32).to_le_bytes().to_vec();
    message.extend(body);
    descriptor::write_all(sender, &message)
}

/// What [`write_progress`] has written.
pub fn read_progress(events: RawFd) -> Result<(Pid, Progress), SyscallError> {
    let mut length = [0; 4];
    read_exactly(events, &mut length)?;
    let mut body = vec![0; (u32::from_le_bytes(length) as usize).min(1 << 16)];
    read_exactly(events, &mut body)?;
    let mut rest = body.as_slice();
    let (pid, listener) = (number(&mut rest).unwrap_or(0), number(&mut rest).unwrap_or(-1));
    let (exec, ready) = (number(&mut rest).unwrap_or(0), number(&mut rest) == Some(1));
    let missing = number(&mut rest).and_then(|place| MISSING.get(usize::try_from(place).ok()?).copied());
    let network = rest.split_first_chunk().map(|(cookie, tail)| {
        rest = tail;
        u64::from_le_bytes(*cookie)
    });
    let network = network.filter(|cookie| *cookie != 0);
    let count = number(&mut rest).unwrap_or(0);
    let doors = (0..count).map_while(|_| door(&mut rest)).collect();
    let (no_listener, why, no_overlays) = (text(&mut rest), text(&mut rest), text(&mut rest));
    let missing = missing.zip(why);
    let failure = text(&mut rest)
        .map(|sentence| EnforceError::Reported { sentence, exec: (exec != 0).then_some(exec) });
    let listener = (listener >= 0).then_some(listener);
    Ok((pid, Progress { listener, no_listener, missing, no_overlays, network, doors, failure, ready }))
}

fn door(rest: &mut &[u8]) -> Option<Door> {
    let (kind, port) = (u16::try_from(number(rest)?).ok()?, u16::try_from(number(rest)?).ok()?);
    Some((Purpose::decode(kind, port)?, number(rest)?))
}

fn number(rest: &mut &[u8]) -> Option<i32> {
    let (word, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(i32::from_le_bytes(*word))
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = number(rest)?.cast_unsigned();
    if length == NONE {
        return None;
    }
    let (bytes, tail) = rest.split_at_checked(length as usize)?;
    *rest = tail;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn read_exactly(events: RawFd, mut buffer: &mut [u8]) -> Result<(), SyscallError> {
    while !buffer.is_empty() {
        match descriptor::read(events, buffer)? {
            0 => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)).of("read"),
            count => buffer = &mut buffer[count..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_arrive_as_they_were_sent() {
        let sent = [&b"node"[..], b"a-name-of-fifteen-and-more", b"", b"\xffx"]
            .map(|name| encode_left(name, false))
            .concat();
        let pieces = sent.into_iter().filter_map(decode).flat_map(|event| match event {
            Event::Left(piece) => piece.to_vec(),
            _ => Vec::new(),
        });
        let pieces: Vec<u8> = pieces.collect();
        let names: Vec<&[u8]> = names_left(&pieces).collect();
        assert_eq!(names, [&b"node"[..], b"a-name-of-fifte", b"", b"\xffx"]);
    }
    use std::os::fd::AsRawFd;

    #[test]
    fn progress_arrives_as_it_was_sent() {
        let (events, sender) = descriptor::pipe().unwrap();
        let failed = SyscallError { call: "execve", cause: std::io::Error::from_raw_os_error(libc::ENOENT) };
        let sent = Progress {
            listener: Some(7),
            missing: Some((Missing::Network, "why".to_string())),
            network: Some(1 << 40),
            doors: vec![(Purpose::Port(443), 9), (Purpose::Datagrams, 10)],
            failure: Some(EnforceError::Exec(failed)),
            ready: true,
            ..Progress::default()
        };
        write_progress(sender.as_raw_fd(), 42, &sent).unwrap();
        let (pid, read) = read_progress(events.as_raw_fd()).unwrap();
        assert_eq!((pid, read.listener, read.ready), (42, Some(7), true));
        assert_eq!((read.no_listener, read.network), (None, Some(1 << 40)));
        assert_eq!(read.doors, sent.doors);
        assert_eq!(read.missing, Some((Missing::Network, "why".to_string())));
        let failure = read.failure.unwrap();
        assert_eq!(failure.exec(), Some(libc::ENOENT));
        assert_eq!(failure.to_string(), "cannot execute the command: execve: no such file or directory");
    }
}
