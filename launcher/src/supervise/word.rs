//! What the reaper tells the supervisor, over a pipe: how the start went, then how the command changes.

use crate::launch::child::{Failure, Outcome};
use crate::supervise::reaper::Event;
use crate::sys::process::{Change, Pid};
use crate::sys::{Failed, descriptor};
use std::os::fd::RawFd;

/// A change in five bytes.
pub fn encode(change: Change) -> [u8; 5] {
    let (kind, number) = match change {
        Change::Exited(status) => (b'e', status),
        Change::Killed(signal) => (b'k', signal),
        Change::Stopped(signal) => (b's', signal),
        Change::Continued => (b'c', 0),
    };
    let number = number.to_le_bytes();
    [kind, number[0], number[1], number[2], number[3]]
}

/// Which new configuration is shielded.
pub fn encode_shielded(number: u32) -> [u8; 5] {
    let number = number.to_le_bytes();
    [b'm', number[0], number[1], number[2], number[3]]
}

/// The tree goes on.
pub const RESUMED: [u8; 5] = [b'r', 0, 0, 0, 0];

/// And back.
pub fn decode(message: [u8; 5]) -> Option<Event> {
    if let [b'm', number @ ..] = message {
        return Some(Event::Shielded(u32::from_le_bytes(number)));
    }
    if message == RESUMED {
        return Some(Event::Resumed);
    }
    change(message).map(Event::Command)
}

fn change(message: [u8; 5]) -> Option<Change> {
    let [kind, number @ ..] = message;
    let number = i32::from_le_bytes(number);
    match kind {
        b'e' => Some(Change::Exited(number)),
        b'k' => Some(Change::Killed(number)),
        b's' => Some(Change::Stopped(number)),
        b'c' => Some(Change::Continued),
        _ => None,
    }
}

/// The numbers and the texts, in one write.
pub fn write_outcome(sender: RawFd, command: Pid, outcome: &Outcome) -> Result<(), Failed> {
    let failure = outcome.failure.as_ref();
    let texts = [
        outcome.unheard.as_deref(),
        outcome.unavailable.as_deref(),
        failure.map(|f| &*f.step),
        failure.map(|f| f.cause.as_str()),
    ];
    let mut body = Vec::new();
    let errno = failure.and_then(|f| f.exec_errno);
    for number in [command, outcome.listener.unwrap_or(-1), errno.unwrap_or(0), i32::from(outcome.ready)] {
        body.extend(number.to_le_bytes());
    }
    for text in texts {
        // A length of its own for "none".
        let bytes = text.map_or(&[][..], str::as_bytes);
        let length = text.map_or(u32::MAX, |_| bytes.len() as u32);
        body.extend(length.to_le_bytes());
        body.extend(bytes);
    }
    let mut message = (body.len() as u32).to_le_bytes().to_vec();
    message.extend(body);
    descriptor::write_all(sender, &message)
}

/// What [`write_outcome`] has written.
pub fn read_outcome(events: RawFd) -> Result<(Pid, Outcome), Failed> {
    let mut length = [0; 4];
    read_exactly(events, &mut length)?;
    let mut body = vec![0; (u32::from_le_bytes(length) as usize).min(1 << 16)];
    read_exactly(events, &mut body)?;
    let mut rest = body.as_slice();
    let mut number = || {
        let (word, tail) = rest.split_first_chunk::<4>()?;
        rest = tail;
        Some(i32::from_le_bytes(*word))
    };
    let (pid, listener) = (number().unwrap_or(0), number().unwrap_or(-1));
    let (errno, ready) = (number().unwrap_or(0), number() == Some(1));
    let mut text = || {
        let (word, tail) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*word);
        rest = tail;
        if length == u32::MAX {
            return None;
        }
        let (bytes, tail) = rest.split_at_checked(length as usize)?;
        rest = tail;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    let (unheard, unavailable, step, cause) = (text(), text(), text(), text());
    let failure = step.zip(cause).map(|(step, cause)| Failure {
        step: step.into(),
        cause,
        exec_errno: (errno != 0).then_some(errno),
    });
    let listener = (listener >= 0).then_some(listener);
    Ok((pid, Outcome { listener, unheard, unavailable, failure, ready }))
}

fn read_exactly(events: RawFd, mut buffer: &mut [u8]) -> Result<(), Failed> {
    while !buffer.is_empty() {
        match descriptor::read(events, buffer)? {
            0 => return Err(Failed { call: "read", cause: std::io::ErrorKind::UnexpectedEof.into() }),
            count => buffer = &mut buffer[count..],
        }
    }
    Ok(())
}
