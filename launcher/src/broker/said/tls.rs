//! The server name of a ClientHello (RFC 8446, 4.1.2; RFC 6066, 3).
//!
//! Of an encrypted ClientHello (ECH) this is the outer one: its name has to be the host, so that a public name of
//! another host's provider is a mismatch.

use crate::broker::said::Said;

/// Types of records.
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Types of messages.
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Maximum length of the contents of a record (RFC 8446, 5.1), and what encryption adds (5.2).
const LONGEST_RECORD: usize = (1 << 14) + 256;

/// The random bytes of a HelloRetryRequest: the SHA-256 of this word.
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Reads the beginning of a connection. A ClientHello may be split over records and packets as its client likes.
pub fn server_name(bytes: &[u8]) -> Said {
    first(bytes).0
}

/// How many bytes the records of a ClientHello have that was read as a whole.
pub fn length(bytes: &[u8]) -> usize {
    first(bytes).1
}

/// What it says, and where its last record ends.
fn first(bytes: &[u8]) -> (Said, usize) {
    let mut hello = Vec::new();
    let mut rest = bytes;
    let said = loop {
        // What is wrong shows as early as can be: a client that waits for an answer sends nothing more.
        let Some((kind, after)) = rest.split_first() else { break unfinished(&hello) };
        if *kind != HANDSHAKE {
            break Said::Wrong;
        }
        let length = match length_of(after) {
            Ok(Some(length)) => length,
            Ok(None) => break unfinished(&hello),
            Err(Wrong) => break Said::Wrong,
        };
        let contents = after.get(4..).unwrap_or_default();
        hello.extend(contents.iter().take(length));
        match whole(&hello) {
            // Whatever else the record has would come before the answer.
            Some(Ok(body)) if contents.len() < length || hello.len() > 4 + body.len() => break Said::Wrong,
            Some(Ok(body)) => {
                let end = bytes.len() - contents.len() + length;
                return (name(body).unwrap_or(Said::Wrong), end);
            }
            Some(Err(Wrong)) => break Said::Wrong,
            None => {}
        }
        match contents.get(length..) {
            Some(next) => rest = next,
            None => break unfinished(&hello),
        }
    };
    (said, 0)
}

/// The length of a record, from behind its type.
fn length_of(header: &[u8]) -> Result<Option<usize>, Wrong> {
    if header.first().is_some_and(|version| *version != 3) {
        return Err(Wrong);
    }
    let Some(length) = header.get(2..4).and_then(|two| two.first_chunk()) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 || length > LONGEST_RECORD { Err(Wrong) } else { Ok(Some(length)) }
}

/// Whether a server's first message asks for another ClientHello, whose server name may be another one, too
/// (HelloRetryRequest; RFC 8446, 4.1.4). It may be split, with other records between. `None`: it takes more bytes.
pub fn asks_again(bytes: &[u8]) -> Option<bool> {
    // Type and length of the message, and its version; then the random bytes.
    const BEFORE: usize = 6;
    let mut message: Vec<u8> = Vec::with_capacity(BEFORE + RETRY.len());
    let mut rest = bytes;
    loop {
        let (kind, after) = rest.split_first()?;
        let is_skipped = matches!(*kind, ALERT | CHANGE_CIPHER_SPEC);
        if !is_skipped && *kind != HANDSHAKE || after.first().is_some_and(|version| *version != 3) {
            return Some(false);
        }
        let length = usize::from(u16::from_be_bytes(*after.get(2..4)?.first_chunk()?));
        let contents = after.get(4..)?;
        if !is_skipped {
            message.extend(contents.iter().take(length));
        }
        let is_hello = message.first().is_none_or(|kind| *kind == SERVER_HELLO);
        let mut random = message.iter().skip(BEFORE).zip(RETRY);
        if !is_hello || !random.all(|(byte, wanted)| *byte == wanted) {
            return Some(false);
        }
        if message.len() >= BEFORE + RETRY.len() {
            return Some(true);
        }
        rest = contents.get(length..)?;
    }
}

/// Reads what a client sends when it was asked again: a ClientHello, behind what the server skips.
pub fn second_server_name(bytes: &[u8]) -> Said {
    let mut rest = bytes;
    while let [CHANGE_CIPHER_SPEC | APPLICATION_DATA, after @ ..] = rest {
        let next = match length_of(after) {
            Ok(length) => length.and_then(|length| after.get(4 + length..)),
            Err(Wrong) => return Said::Wrong,
        };
        let Some(next) = next else { return Said::Unfinished };
        rest = next;
    }
    server_name(rest)
}

fn unfinished(hello: &[u8]) -> Said {
    match whole(hello) {
        Some(Err(Wrong)) => Said::Wrong,
        _ => Said::Unfinished,
    }
}

struct Wrong;

/// The body of the ClientHello, if it is there as a whole.
fn whole(hello: &[u8]) -> Option<Result<&[u8], Wrong>> {
    if *hello.first()? != CLIENT_HELLO {
        return Some(Err(Wrong));
    }
    let length = hello.get(1..4)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    if length > super::LONGEST {
        return Some(Err(Wrong));
    }
    hello.get(4..)?.get(..length).map(Ok)
}

/// The name in the body of a ClientHello. `None`: it is not well-formed.
fn name(body: &[u8]) -> Option<Said> {
    let mut body = Reader(body);
    // The version and the random bytes; the session; the suites; the compressions.
    body.take(2 + 32)?;
    let session = body.short()?;
    let suites = body.long()?;
    let compressions = body.short()?;
    if session.len() > 32 || suites.len() < 2 || suites.len() % 2 != 0 || compressions.is_empty() {
        return None;
    }
    if body.0.is_empty() {
        return Some(Said::Nothing);
    }
    let mut extensions = Reader(body.long()?);
    if !body.0.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let contents = extensions.long()?;
        if kind == SERVER_NAME && found.replace(contents).is_some() {
            return None;
        }
    }
    let Some(contents) = found else { return Some(Said::Nothing) };
    let mut contents = Reader(contents);
    let mut names = Reader(contents.long()?);
    let kind = names.take(1)?;
    let name = names.long()?;
    // One name, of the only type that there is.
    let is_one = contents.0.is_empty() && names.0.is_empty() && kind == [HOST_NAME] && !name.is_empty();
    is_one.then(|| Said::Host(name.to_vec()))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().map(|two| u16::from_be_bytes(*two))
    }

    /// Bytes behind a length of one byte.
    fn short(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(*self.take(1)?.first()?);
        self.take(length)
    }

    /// Bytes behind a length of two bytes.
    fn long(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.number()?);
        self.take(length)
    }
}
