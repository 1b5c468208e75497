//! The `#!` line, read byte for byte as the kernel's binfmt_script does.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// How much of a file the kernel looks at to choose a handler.
const KERNEL_BUFFER: usize = 256;

/// What a `#!` line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub interpreter: PathBuf,
    pub argument: Option<OsString>,
}

/// Why a `#!` line cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScriptError {
    /// Nothing follows the `#!`.
    NoInterpreter,
    /// The interpreter's path does not end within what the kernel reads.
    PathTooLong,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoInterpreter => "its first line names no interpreter after '#!'; write one, as in '#!/bin/sh'",
            Self::PathTooLong => {
                "the interpreter's path in its first line is longer than the 256 bytes that the kernel reads; \
                 use a shorter path"
            }
        })
    }
}

/// Whether a file that starts like this is a script.
pub(super) fn is_script(head: &[u8]) -> bool {
    head.starts_with(b"#!")
}

/// Reads the `#!` line of a file that starts with `head`.
///
/// Only the first 256 bytes count. An argument that goes on beyond them is cut there, as the kernel does; an
/// interpreter that does is refused.
pub(super) fn parse(head: &[u8]) -> Result<Line, ScriptError> {
    // The kernel fills its buffer up with zeros, and a NUL ends the text wherever one is wanted.
    let mut buffer = [0; KERNEL_BUFFER];
    let length = head.len().min(KERNEL_BUFFER);
    buffer[..length].copy_from_slice(&head[..length]);

    let text = trim_end(line_text(&buffer)?);
    let name_at = text.iter().position(|&byte| !is_blank(byte)).ok_or(ScriptError::NoInterpreter)?;
    let text = &text[name_at..];
    let name_length = text.iter().position(|&byte| ends_name(byte)).unwrap_or(text.len());
    if name_length == 0 {
        return Err(ScriptError::NoInterpreter);
    }
    let interpreter = PathBuf::from(OsString::from_vec(text[..name_length].to_vec()));
    Ok(Line { interpreter, argument: argument(&text[name_length..]) })
}

/// What lies between `#!` and the end of the line.
fn line_text(buffer: &[u8; KERNEL_BUFFER]) -> Result<&[u8], ScriptError> {
    let stop = buffer.iter().position(|&byte| byte == b'\n' || byte == 0);
    if let Some(end) = stop.filter(|&at| buffer[at] == b'\n') {
        return Ok(&buffer[2..end]);
    }
    let body = &buffer[2..];
    let name_at = body.iter().position(|&byte| !is_blank(byte)).ok_or(ScriptError::NoInterpreter)?;
    if !body[name_at..].iter().any(|&byte| ends_name(byte)) {
        return Err(ScriptError::PathTooLong);
    }
    // The last byte of the buffer becomes the terminator, whatever it was.
    Ok(&body[..body.len() - 1])
}

/// The single argument: all that follows the blanks after the interpreter, inner blanks included.
fn argument(rest: &[u8]) -> Option<OsString> {
    if rest.first().is_none_or(|&byte| byte == 0) {
        return None;
    }
    let start = rest.iter().position(|&byte| !is_blank(byte))?;
    let text = rest[start..].split(|&byte| byte == 0).next()?;
    Some(OsString::from_vec(text.to_vec()))
}

fn trim_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| !is_blank(byte)).map_or(0, |last| last + 1);
    &text[..end]
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn ends_name(byte: u8) -> bool {
    is_blank(byte) || byte == 0
}
