//! The `#!` line, read byte for byte as the kernel's binfmt_script does.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The number of bytes that the kernel reads of a file to choose a handler.
const KERNEL_BUFFER: usize = 256;

/// What a `#!` line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub interpreter: PathBuf,
    pub argument: Option<OsString>,
}

/// Why a `#!` line cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("its first line names no interpreter after '#!'; write one, as in '#!/bin/sh'")]
    NoInterpreter,
    #[error(
        "the interpreter's path in its first line is longer than the 256 bytes that the kernel reads; use a shorter \
         path"
    )]
    PathTooLong,
}

/// Whether a file that starts like this is a script.
pub(super) fn is_script(head: &[u8]) -> bool {
    head.starts_with(b"#!")
}

/// Reads the `#!` line of a file that starts with `head`.
///
/// Only the first 256 bytes count. A longer argument is cut there, a longer interpreter is refused.
pub fn parse(head: &[u8]) -> Result<Line, ScriptError> {
    // The kernel fills its buffer up with zeros, and a NUL ends the name and the argument.
    let mut buffer = [0; KERNEL_BUFFER];
    let length = head.len().min(KERNEL_BUFFER);
    buffer[..length].copy_from_slice(&head[..length]);

    let text = line_text(&buffer)?;
    let end = text.iter().rposition(|&byte| !is_blank(byte)).map_or(0, |last| last + 1);
    let text = &text[..end];
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

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn ends_name(byte: u8) -> bool {
    is_blank(byte) || byte == 0
}
