//! The server name of a ClientHello (RFC 8446, 4.1.2; RFC 6066, 3).
//!
//! Of an encrypted ClientHello (ECH) this is the outer one: its name has to be the host, so that a public name of
//! another host's provider is a mismatch.

use crate::broker::said::Said;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Maximum length of the contents of a record (RFC 8446, 5.1).
const LONGEST_RECORD: usize = 1 << 14;

/// Reads the beginning of a connection. A ClientHello may be split over records and packets as its client likes.
pub fn server_name(bytes: &[u8]) -> Said {
    let mut hello = Vec::new();
    let mut rest = bytes;
    loop {
        // What is wrong shows as early as can be: a client that waits for an answer sends nothing more.
        let Some((kind, after)) = rest.split_first() else { return unfinished(&hello) };
        if *kind != HANDSHAKE {
            return Said::Wrong;
        }
        match after.first() {
            Some(3) => {}
            Some(_) => return Said::Wrong,
            None => return unfinished(&hello),
        }
        let Some(length) = after.get(2..4).and_then(|two| two.first_chunk()) else {
            return unfinished(&hello);
        };
        let length = usize::from(u16::from_be_bytes(*length));
        if length == 0 || length > LONGEST_RECORD {
            return Said::Wrong;
        }
        let contents = after.get(4..).unwrap_or_default();
        hello.extend(contents.iter().take(length));
        match whole(&hello) {
            Some(Ok(body)) => return name(body).unwrap_or(Said::Wrong),
            Some(Err(Wrong)) => return Said::Wrong,
            None => {}
        }
        match contents.get(length..) {
            Some(next) => rest = next,
            None => return unfinished(&hello),
        }
    }
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
