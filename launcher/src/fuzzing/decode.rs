//! Decoding of refused calls, and everything that is shown of what untrusted programs have chosen.

use super::draw::Draw;
use super::{assert_line, is_harmless};
use crate::launch::policy::Mode;
use crate::supervise::decode::{self, Call, Memory, TEXT_LIMIT, decode as decoded, escape};
use crate::supervise::suggest::{Adviser, Way};
use sbx_policy::calls::{self, Arch};
use sbx_policy::interpret::Data;
use sbx_policy::program::X32_BIT;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where the fuzzer's bytes lie; what is beside them cannot be read.
const BASE: u64 = 0x7f00_0000_0000;
const MODES: [Mode; 4] = [Mode::None, Mode::Host, Mode::Ports, Mode::Private];

struct Bytes<'a>(&'a [u8]);

impl Memory for Bytes<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let start = address.checked_sub(BASE).and_then(|at| usize::try_from(at).ok());
        let rest = start.and_then(|at| self.0.get(at..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        count
    }
}

/// A call, its arguments, and the caller's memory.
pub fn decode(data: &[u8]) {
    let mut draw = Draw(data);
    let call = calls::Call::at(draw.below(calls::Call::all().count()) as u16);
    let (foreign, mode) = (draw.byte() == 0xff, draw.pick(&MODES));
    let args = [(); 6].map(|()| argument(&mut draw));
    let memory = Bytes(draw.0);
    let shown = decoded(&Call { name: call.name(), args, foreign }, &memory);
    assert!(shown.text.len() <= TEXT_LIMIT && shown.text.chars().all(is_plain), "{shown:?}");
    assert!(shown.paths.len() <= 2);
    assert!(shown.paths.iter().all(|argument| argument.path.len() < 4096 && !argument.path.contains(&0)));
    assert!(!foreign || (shown.paths.is_empty() && shown.address.is_none() && !shown.unreadable));
    // A caller that is gone has no memory; that is said, and nothing is made up.
    let gone = decoded(&Call { name: call.name(), args, foreign }, &Bytes(b""));
    assert!(gone.paths.is_empty() && (!shown.unreadable || gone.unreadable));
    escapes(draw.0, usize::from(draw.byte()));
    quotes(draw.0);
    if let Some(number) = call.number(Arch::HOST) {
        let nr = if foreign { number | X32_BIT } else { number };
        let data = Data { nr, arch: Arch::HOST.audit(), args };
        ADVISERS.with_borrow_mut(|advisers| {
            let adviser = &mut advisers[mode as usize];
            let reason = adviser.reason_of(None, call.name(), &data, &shown);
            assert_line(&reason.to_string());
            assert_line(&format!("{reason:#}"));
        });
    }
}

thread_local! {
    /// They remember what they have tried, which is most of the work.
    static ADVISERS: RefCell<Vec<Adviser<'static>>> = RefCell::new(
        MODES.map(|mode| Adviser::new("minimal", mode, false).with_workspace(Some("/".into()))).into(),
    );
}

fn argument(draw: &mut Draw<'_>) -> u64 {
    match draw.byte() % 4 {
        0 => u64::from(draw.byte()),
        1 => BASE + u64::from(draw.byte()),
        2 => i64::from(libc::AT_FDCWD) as u64,
        _ => draw.word(),
    }
}

/// Printable ASCII, letters and digits, and the sign for what is left out.
fn is_plain(char: char) -> bool {
    matches!(char, ' '..='~' | '…') || (char.is_alphanumeric() && is_harmless(char))
}

/// Nothing that is escaped moves a cursor or is longer than it may be; what is whole can be read back.
fn escapes(bytes: &[u8], limit: usize) {
    let text = escape(bytes, limit);
    assert!(text.len() <= limit && text.chars().all(is_plain), "{text:?}");
    let whole = escape(bytes, usize::MAX);
    assert_eq!(unescaped(&whole).as_deref(), Some(bytes), "{whole:?}");
    assert!(!whole.contains('…') && (text == whole || whole.len() > limit));
    // So it can stand between quotes.
    let quotes = whole.bytes().enumerate().filter(|(_, byte)| *byte == b'"');
    assert!(quotes.into_iter().all(|(at, _)| at > 0 && whole.as_bytes()[at - 1] == b'\\'));
    let path = decode::shown(Path::new(OsStr::from_bytes(bytes)));
    assert!(path.chars().all(is_plain));
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        if char != '\\' {
            bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let kind = rest.chars().next()?;
        rest = &rest[kind.len_utf8()..];
        match kind {
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'x' => {
                bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                rest = &rest[2..];
            }
            'u' => {
                let (number, behind) = rest.strip_prefix('{')?.split_once('}')?;
                let char = char::from_u32(u32::from_str_radix(number, 16).ok()?)?;
                bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
                rest = behind;
            }
            other => bytes.push(u8::try_from(other).ok()?),
        }
    }
    Some(bytes)
}

/// What is proposed to be typed is one line, and a shell takes it for the very path.
fn quotes(bytes: &[u8]) {
    let path = Path::new(OsStr::from_bytes(bytes));
    let words = Way::default().and("--rw", path).to_string();
    assert!(words.chars().all(is_harmless), "{words:?}");
    if bytes.len() <= 400 && !bytes.contains(&0) {
        let word = words.strip_prefix("--rw ").expect("the flag first");
        assert_eq!(word_of_shell(word).as_deref(), Some(bytes), "{word}");
    }
}

/// One word, as bash reads it.
fn word_of_shell(text: &str) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'\'' => {
                let end = rest.iter().position(|b| *b == b'\'')?;
                word.extend(&rest[..end]);
                rest = &rest[end + 1..];
            }
            b'\\' => {
                word.push(*rest.first()?);
                rest = &rest[1..];
            }
            b'$' => rest = ansi_c(rest.strip_prefix(b"'")?, &mut word)?,
            plain if plain.is_ascii_alphanumeric() || b"/._-+@%,:".contains(plain) => word.push(*plain),
            _ => return None,
        }
    }
    Some(word)
}

/// What stands behind `$'`; returns what stands behind its end.
fn ansi_c<'a>(text: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = text;
    loop {
        let (first, behind) = rest.split_first()?;
        rest = behind;
        match first {
            b'\'' => return Some(rest),
            b'\\' if rest.first() == Some(&b'x') => {
                word.push(u8::from_str_radix(std::str::from_utf8(rest.get(1..3)?).ok()?, 16).ok()?);
                rest = &rest[3..];
            }
            b'\\' => {
                word.push(if rest.first()? == &b'n' { b'\n' } else { *rest.first()? });
                rest = &rest[1..];
            }
            other => word.push(*other),
        }
    }
}
