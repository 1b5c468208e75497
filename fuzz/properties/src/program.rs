//! Programs: ELF files and scripts.

use sbx::error::EndsRun;
use sbx::program::elf::{self, Facts, Image, Malformed};
use sbx::program::script::{self, Line, ScriptError};
use sbx::program::{Program, ProgramError, examine};

use super::assert_line;
use super::draw::Draw;
use super::unnamed::Unnamed;
use std::cell::Cell;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The maximum that is read of an ELF file: header, program headers, name of the loader and dynamic section, each
/// within its bound.
const MOST_READ: usize = 64 + 64 * 1024 + 4096 + 16 * 1024;

/// Input: the number of bytes that are read at once, and the file.
pub fn program(data: &[u8]) {
    let mut draw = Draw(data);
    let head = draw.below(4096);
    let bytes = draw.0;
    if bytes.starts_with(b"\x7fELF") {
        elf(bytes, head);
    }
    if bytes.starts_with(b"#!") {
        script(bytes);
    }
    file(&Unnamed::holding(bytes).path());
}

/// An ELF file gives the same facts however much is read at once and whatever follows the file. Reads are bounded.
fn elf(file: &[u8], head: usize) {
    let whole = inspect(file, file.len().min(4096));
    assert_eq!(told(&whole), told(&inspect(file, head.clamp(64, 4096))));
    if let Err(malformed) = &whole {
        assert_line(&malformed.to_string());
    }
    let Ok(facts) = whole else { return };
    if let Facts::Interpreted { interpreter } = &facts {
        let name = interpreter.as_os_str().as_bytes();
        assert!((1..4096).contains(&name.len()) && !name.contains(&0), "{interpreter:?}");
    }
    let longer = [file, &[0x7f; 100][..]].concat();
    assert_eq!(inspect(&longer, 4096).ok().as_ref(), Some(&facts));
    let cut = inspect(&file[..head % file.len().max(1)], 4096);
    assert!(cut.is_err() || cut.ok().as_ref() == Some(&facts));
}

fn told(result: &Result<Facts, Malformed>) -> String {
    match result {
        Ok(facts) => format!("{facts:?}"),
        Err(error) => error.to_string(),
    }
}

fn inspect(file: &[u8], head: usize) -> Result<Facts, Malformed> {
    let read = Cell::new(0);
    let read_at = |buffer: &mut [u8], offset: u64| {
        let rest = usize::try_from(offset).ok().and_then(|at| file.get(at..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        read.set(read.get() + count);
        Ok(count)
    };
    let image = Image { head: &file[..head.min(file.len())], size: file.len() as u64, read_at: &read_at };
    let facts = elf::inspect(&image);
    assert!(read.get() <= MOST_READ, "{} bytes", read.get());
    facts
}

/// The first line of a script is read as binfmt_script reads it: by positions in its buffer of 256 bytes.
fn script(head: &[u8]) {
    assert_eq!(script::parse(head), by_places(head), "{head:?}");
}

fn by_places(head: &[u8]) -> Result<Line, ScriptError> {
    const LAST: usize = 255;
    let byte = |at: usize| head.get(at).copied().unwrap_or(0);
    let blank = |at: usize| matches!(byte(at), b' ' | b'\t');
    let ends_name = |at: usize| blank(at) || byte(at) == 0;
    let mut end = match (0..=LAST).find(|at| matches!(byte(*at), b'\n' | 0)).filter(|at| byte(*at) == b'\n') {
        Some(line_feed) => line_feed,
        None => {
            let name = (2..=LAST).find(|at| !blank(*at)).ok_or(ScriptError::NoInterpreter)?;
            (name..=LAST).find(|at| ends_name(*at)).ok_or(ScriptError::PathTooLong)?;
            LAST
        }
    };
    while blank(end - 1) {
        end -= 1;
    }
    let name = (2..end).find(|at| !blank(*at)).ok_or(ScriptError::NoInterpreter)?;
    let behind = (name..end).find(|at| ends_name(*at)).unwrap_or(end);
    if behind == name {
        return Err(ScriptError::NoInterpreter);
    }
    let text = |from: usize, to: usize| OsString::from_vec((from..to).map(byte).collect());
    // A NUL behind the name ends the line; one in the argument ends the argument.
    let argument = (behind < end && byte(behind) != 0)
        .then(|| (behind..end).find(|at| !blank(*at)))
        .flatten()
        .map(|start| text(start, (start..end).find(|at| byte(*at) == 0).unwrap_or(end)));
    Ok(Line { interpreter: text(name, behind).into(), argument })
}

/// Examines an executable file: a refusal has a message and an exit code, a program has a description.
fn file(path: &Path) {
    match examine(path) {
        Err(error) => refused(&error),
        Ok(program) => accepted(&program),
    }
}

fn refused(error: &ProgramError) {
    assert_line(&error.to_string());
    assert!(matches!(error.outcome().status(), 126 | 127), "{error}");
}

fn accepted(program: &Program) {
    assert_line(&program.describe());
    let scripts = program.chain.len() - 1;
    assert!(scripts <= 5 && program.last().is_some());
    let json = serde_json::to_string(program).expect("it is text");
    assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
}
