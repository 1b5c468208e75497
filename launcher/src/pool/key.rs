//! What a pool is for: everything that is asked for but the command, and what a run takes from its caller without being
//! asked. Runs of another key are not served.
//!
//! The key only finds the pool. Whether a run that waits there is the one that is asked for, its plan says
//! ([`crate::run::warm`]).

use crate::digest;
use crate::error::{Refusal, cannot};
use crate::request::Request;
use crate::sys::{file, inherited, signal};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The command that stands for those which come later. Every system has it.
const COMMAND: &str = "/bin/sh";

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl Key {
    /// Of a request by this process.
    pub fn of(request: &Request) -> Result<Key, Refusal> {
        let mut key = Key(Vec::with_capacity(1024));
        key.add(env!("CARGO_PKG_VERSION").as_bytes());
        for place in ["/proc/self/exe", "."] {
            let found = file::born(Path::new(place), true)
                .map_err(cannot("tell which program and directory this is"))?;
            key.add(format!("{found:?}").as_bytes());
        }
        let directory = std::env::current_dir();
        key.add(directory.map(|path| path.into_os_string()).unwrap_or_default().as_bytes());
        key.add(format!("{:?}", without_command(request)).as_bytes());
        key.add(&signal::mask().bits().to_le_bytes());
        inherited::all().iter().for_each(|number| key.add(&number.to_le_bytes()));
        Ok(key)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A name for it, of letters and digits.
    pub fn name(&self) -> String {
        digest::short(&self.0)
    }

    /// With its length, so that different lists never give the same bytes.
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend((bytes.len() as u64).to_le_bytes());
        self.0.extend(bytes);
    }
}

/// What is asked for by whatever command, and whoever wants to know what becomes of it.
pub fn without_command(request: &Request) -> Request {
    // What only a quiet run would not tell, it tells in a report.
    let is_reported = request.quiet && crate::report::Reporter::is_wanted(request);
    Request {
        command: vec![OsString::from(COMMAND)],
        pool: false,
        verbose: false,
        summary: false,
        report: None,
        report_fd: is_reported.then_some(0),
        audit_log: None,
        ..request.clone()
    }
}
