//! Reading reports back: one in a file, or the lines of an audit log.

use crate::error::EndsRun;
use crate::sys::path::canonical;
use crate::sys::plain;
use crate::text::shown;
use sbx_client::report::{Report, VERSION};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The most that is read, in bytes. A longer audit log has to be cut (`tail -n 100`).
const MOST: u64 = 256 << 20;

/// Where reports come from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'s> {
    /// A file.
    File(&'s Path),
    /// Standard input.
    Stdin,
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(f, "'{}'", shown(path)),
            Source::Stdin => f.write_str("standard input"),
        }
    }
}

/// Reports that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {source_name}: {}", plain(.cause))]
    Unreadable { source_name: String, cause: io::Error },
    #[error("cannot read {0}: it has more than {limit} MiB; cut it, as with tail -n 100", limit = MOST >> 20)]
    TooLong(String),
    #[error("{0} is empty: there is no report in it")]
    Empty(String),
    #[error("{source_name} is no report of sbx{line}: {cause}")]
    Foreign { source_name: String, line: Line, cause: serde_json::Error },
    #[error("{source_name} is cut off{line}: the report has no end")]
    CutOff { source_name: String, line: Line },
    #[error(
        "{source_name} has a report of version {version}{line}, and this sbx reads version {VERSION}; use a newer one"
    )]
    Newer { source_name: String, line: Line, version: u32 },
}

impl EndsRun for ReadError {}

/// The place of a report among several; nothing where there is only one.
#[derive(Clone, Copy, Debug)]
pub struct Line(Option<usize>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |number| write!(f, " in line {number}"))
    }
}

/// What every version of a report has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// All reports of a source, at least one.
pub fn read(source: Source<'_>) -> Result<Vec<Report>, ReadError> {
    let text = bytes(source)?;
    let lines: Vec<(usize, &[u8])> = (1..)
        .zip(text.split(|byte| *byte == b'\n'))
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .collect();
    let many = lines.len() > 1;
    // A report that something has laid out anew is one document of many lines. One document is no log, whatever it is.
    if many && is_one_document(&text) {
        return of_text(&text, source, Line(None)).map(|report| vec![report]);
    }
    let reports: Result<Vec<Report>, ReadError> =
        lines.iter().map(|(number, line)| of_text(line, source, Line(many.then_some(*number)))).collect();
    reports.and_then(|reports| match reports.is_empty() {
        true => Err(ReadError::Empty(source.to_string())),
        false => Ok(reports),
    })
}

/// Whether it is one document, or the beginning of one.
fn is_one_document(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).map_or_else(|wrong| wrong.is_eof(), |_| true)
}

/// Where a report is kept, a command may have put a FIFO, to which nobody writes. One that was opened already is meant
/// (`<(...)`).
fn open(path: &Path) -> io::Result<File> {
    let is_fifo = fs::symlink_metadata(canonical(path)).is_ok_and(|meta| meta.file_type().is_fifo());
    if is_fifo {
        return Err(io::Error::other("it is a FIFO"));
    }
    File::open(path)
}

fn bytes(source: Source<'_>) -> Result<Vec<u8>, ReadError> {
    let mut text = Vec::new();
    let all = match source {
        Source::File(path) => open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut text)),
        Source::Stdin => io::stdin().lock().take(MOST + 1).read_to_end(&mut text),
    };
    match all {
        Err(cause) => Err(ReadError::Unreadable { source_name: source.to_string(), cause }),
        Ok(count) if count as u64 > MOST => Err(ReadError::TooLong(source.to_string())),
        Ok(_) => Ok(text),
    }
}

fn of_text(text: &[u8], source: Source<'_>, line: Line) -> Result<Report, ReadError> {
    let wrong = |cause: serde_json::Error| {
        let source_name = source.to_string();
        match cause.is_eof() {
            true => ReadError::CutOff { source_name, line },
            false => ReadError::Foreign { source_name, line, cause },
        }
    };
    // The version first: of a later one, the fields may be others.
    let Versioned { version } = serde_json::from_slice(text).map_err(wrong)?;
    if version > VERSION {
        return Err(ReadError::Newer { source_name: source.to_string(), line, version });
    }
    serde_json::from_slice(text).map_err(wrong)
}
