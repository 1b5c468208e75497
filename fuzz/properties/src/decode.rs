//! Decoding of refused system calls, and all text that an untrusted program can choose and a user sees.

use sbx::explain::decode::{Call, Memory, TEXT_LIMIT, decode as decoded};
use sbx::explain::hint::{Explainer, Hint};
use sbx::profile::NetworkMode;
use sbx::text::{self, escape};

use super::draw::Draw;
use super::{assert_line, is_harmless};
use sbx_policy::calls::{self, Arch};
use sbx_policy::interpret::Data;
use sbx_policy::program::X32_BIT;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The address of the fuzzer's bytes in the caller's memory. Nothing else there can be read.
const BASE: u64 = 0x7f00_0000_0000;
const MODES: [NetworkMode; 4] =
    [NetworkMode::None, NetworkMode::Host, NetworkMode::Ports, NetworkMode::Private];

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

/// Input: a system call, its arguments, and the caller's memory.
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
    // A caller that has ended has no memory: the result says so and invents nothing.
    let gone = decoded(&Call { name: call.name(), args, foreign }, &Bytes(b""));
    assert!(gone.paths.is_empty() && (!shown.unreadable || gone.unreadable));
    escapes(draw.0, usize::from(draw.byte()));
    quotes(draw.0);
    if let Some(number) = call.number(Arch::HOST) {
        let nr = if foreign { number | X32_BIT } else { number };
        let data = Data { nr, arch: Arch::HOST.audit(), args };
        EXPLAINERS.with_borrow_mut(|explainers| {
            let explainer = &mut explainers[mode as usize];
            let reason = explainer.reason_of(None, call.name(), &data, &shown);
            assert_line(&reason.to_string());
            assert_line(&format!("{reason:#}"));
        });
    }
}

thread_local! {
    /// Kept between inputs: an explainer remembers its attempts, which are most of the work.
    static EXPLAINERS: RefCell<Vec<Explainer>> = RefCell::new(
        MODES.map(|mode| Explainer::of_profile("minimal", mode, Path::new("/"))).into(),
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

/// Printable ASCII, letters, digits, and the ellipsis.
fn is_plain(char: char) -> bool {
    matches!(char, ' '..='~' | '…') || (char.is_alphanumeric() && is_harmless(char))
}

/// An escaped text moves no cursor and respects its length limit. A text that was not cut can be read back.
fn escapes(bytes: &[u8], limit: usize) {
    let text = escape(bytes, limit);
    assert!(text.len() <= limit && text.chars().all(is_plain), "{text:?}");
    let whole = escape(bytes, usize::MAX);
    assert_eq!(unescaped(&whole).as_deref(), Some(bytes), "{whole:?}");
    assert!(!whole.contains('…') && (text == whole || whole.len() > limit));
    // Every quote is escaped, so the text can stand between quotes.
    let quotes = whole.bytes().enumerate().filter(|(_, byte)| *byte == b'"');
    assert!(quotes.into_iter().all(|(at, _)| at > 0 && whole.as_bytes()[at - 1] == b'\\'));
    let path = text::shown(Path::new(OsStr::from_bytes(bytes)));
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

/// A proposed flag is one line, and a shell reads the same path from it.
fn quotes(bytes: &[u8]) {
    let path = Path::new(OsStr::from_bytes(bytes));
    let words = Hint::default().and("--rw", path).to_string();
    assert!(words.chars().all(is_harmless), "{words:?}");
    if bytes.len() <= 400 && !bytes.contains(&0) {
        let word = words.strip_prefix("--rw ").expect("the flag first");
        assert_eq!(word_of_shell(word).as_deref(), Some(bytes), "{word}");
    }
}

/// Reads one word as bash does.
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

/// Reads what follows `$'` up to the closing quote; returns the rest behind it.
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
