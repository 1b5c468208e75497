//! `sbx shim`: the library for use without the launcher.

use crate::cli::flags::Shim;
use crate::cli::print;
use crate::enforce::steps::SHIM;
use crate::error::Refusal;
use crate::sys::plain;
use crate::text::escape;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

/// Writes the library.
pub fn run(flags: &Shim) -> Result<i32, Refusal> {
    match &flags.output {
        Some(path) => {
            let mut options = std::fs::OpenOptions::new();
            let file = options.write(true).create(true).truncate(true).mode(0o755).open(path);
            let written = file.and_then(|mut file| file.write_all(SHIM));
            written.map_err(|e| {
                let path = escape(path.as_os_str().as_bytes(), 400);
                Refusal::new(format!("cannot write '{path}': {}", plain(&e)))
            })?;
        }
        None if std::io::stdout().is_terminal() => {
            return Err(Refusal::new(
                "cannot write a library to a terminal; use 'sbx shim -o libsandbox.so'",
            ));
        }
        None => print(SHIM)?,
    }
    Ok(0)
}
