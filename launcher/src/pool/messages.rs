//! What a caller and a run that waits say to each other. Each message is one packet.
//!
//! The caller sends the request, and from then on the signals that it gets ([`crate::supervise::Caller`]). It is
//! answered that its command starts here or not, and at the end the exit status.

use crate::host::Environment;
use crate::request::Request;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Bytes of the longest request: kernels take less than twice as much in one packet.
pub const LONGEST: usize = 96 << 10;
/// Bytes of the longest answer.
pub const LONGEST_ANSWER: usize = 1 << 10;

/// What is asked for, beside descriptors 0 to 2 and that of the report.
#[derive(Debug, PartialEq, Eq)]
pub struct Wish {
    /// What the pool is for.
    pub key: Vec<u8>,
    /// The name that proves that the caller may look at the pool ([`crate::pool::peer::Proof`]).
    pub proof: Vec<u8>,
    /// What the key leaves out: flags about messages, each a letter with its value.
    pub flags: Vec<OsString>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The caller's environment.
    pub environment: Environment,
}

impl Wish {
    /// The flags of a request that its key leaves out.
    pub fn flags(request: &Request) -> Vec<OsString> {
        let value = |letter: &str, path: &PathBuf| {
            let mut word = OsString::from(letter);
            word.push(path);
            word
        };
        let switches = [(request.verbose, "v"), (request.summary, "s"), (request.report_fd.is_some(), "f")];
        let switches = switches.into_iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter.into());
        let places = [(&request.report, "r"), (&request.audit_log, "a")];
        let places = places.into_iter().filter_map(|(path, letter)| Some(value(letter, path.as_ref()?)));
        switches.chain(places).collect()
    }

    /// The request, of one that has the same key. `report` is the descriptor for the report here.
    pub fn request(&self, same: &Request, report: Option<i32>) -> Option<Request> {
        let mut request = Request {
            command: self.command.clone(),
            report: None,
            report_fd: None,
            audit_log: None,
            ..same.clone()
        };
        (request.verbose, request.summary) = (false, false);
        for flag in &self.flags {
            let (letter, value) = flag.as_bytes().split_first()?;
            let path = || PathBuf::from(OsStr::from_bytes(value));
            match letter {
                b'v' => request.verbose = true,
                b's' => request.summary = true,
                b'f' => request.report_fd = Some(report?),
                b'r' => request.report = Some(path()),
                b'a' => request.audit_log = Some(path()),
                _ => return None,
            }
        }
        (!request.command.is_empty()).then_some(request)
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        let mut add = |text: &[u8]| {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text);
        };
        add(&self.key);
        add(&self.proof);
        for list in [&self.flags, &self.command] {
            add(&(list.len() as u32).to_le_bytes());
            list.iter().for_each(|word| add(word.as_bytes()));
        }
        for (name, value) in &self.environment {
            add(name.as_bytes());
            add(value.as_bytes());
        }
        bytes
    }

    /// From bytes; `None` if they are no wish.
    pub fn decode(mut bytes: &[u8]) -> Option<Wish> {
        let rest = &mut bytes;
        let (key, proof) = (text(rest)?.to_vec(), text(rest)?.to_vec());
        let (flags, command) = (list(rest)?, list(rest)?);
        let mut environment = Environment::new();
        while !rest.is_empty() {
            environment.push((word(rest)?, word(rest)?));
        }
        Some(Wish { key, proof, flags, command, environment })
    }
}

fn text<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, tail) = rest.split_first_chunk()?;
    let (text, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = tail;
    Some(text)
}

fn word(rest: &mut &[u8]) -> Option<OsString> {
    text(rest).map(|text| OsStr::from_bytes(text).to_os_string())
}

fn list(rest: &mut &[u8]) -> Option<Vec<OsString>> {
    let count = u32::from_le_bytes(text(rest)?.try_into().ok()?);
    (0..count).map(|_| word(rest)).collect()
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The command starts here, and has so many milliseconds; 0 for any time.
    Taken(u64),
    /// It does not, for this reason. Nothing has been done.
    Refused(OsString),
    /// The run has ended, and `sbx` ends with this status.
    Ended(i32),
}

impl Answer {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Answer::Taken(time) => [&b"t"[..], &time.to_le_bytes()].concat(),
            Answer::Refused(why) => {
                let why = why.as_bytes();
                [b"r", why.get(..why.len().min(LONGEST_ANSWER - 1)).unwrap_or_default()].concat()
            }
            Answer::Ended(status) => [&b"e"[..], &status.to_le_bytes()].concat(),
        }
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Option<Answer> {
        match bytes.split_first()? {
            (b't', time) => Some(Answer::Taken(u64::from_le_bytes(time.try_into().ok()?))),
            (b'r', why) => Some(Answer::Refused(OsString::from_vec(why.to_vec()))),
            (b'e', status) => Some(Answer::Ended(i32::from_le_bytes(status.try_into().ok()?))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let environment = vec![("A".into(), "b=c".into()), ("EMPTY".into(), "".into())];
        let (flags, command) = (words(&["v", "r/x"]), words(&["sh", "-c", "", "x"]));
        let wish = Wish { key: vec![0, 1, 255], proof: vec![7], flags, command, environment };
        let bytes = wish.encode();
        assert_eq!(Wish::decode(&bytes).unwrap(), wish);
        // No beginning of it is another wish that says more than its own words.
        for length in 0..bytes.len() {
            let cut = Wish::decode(&bytes[..length]);
            assert!(
                cut.is_none_or(|cut| cut.command == wish.command && cut.environment.len() < 2),
                "{length}"
            );
        }
        let request = wish.request(&Request::default(), None).unwrap();
        assert!(request.verbose && !request.summary && request.report == Some("/x".into()));
        assert_eq!((request.command.clone(), Wish::flags(&request)), (wish.command, wish.flags));
        let answers = [
            Answer::Taken(0),
            Answer::Taken(1 << 40),
            Answer::Refused("why".into()),
            Answer::Ended(-1),
            Answer::Ended(124),
        ];
        for answer in answers {
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
        assert_eq!(Answer::decode(b""), None);
        assert_eq!(Answer::decode(b"e12"), None);
    }
}
