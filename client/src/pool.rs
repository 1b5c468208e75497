//! Runs that wait for their commands.

use crate::command::Command;
use crate::error::{Error, ErrorKind};
use crate::find;
use crate::sandbox::Sandbox;
use crate::text::{cause, shown};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{self, Stdio};

/// Runs of a [`Sandbox`] that stand and wait for their commands, which start sooner in them ([`Sandbox::warm`]).
///
/// Each takes one command and is replaced. A command that none of them suits, and one in another directory, starts as
/// without a pool: never with another policy than its own. The runs end when this is dropped, or when for ten minutes
/// nobody has asked for one.
#[derive(Debug)]
pub struct Pool {
    program: PathBuf,
    sandbox: Sandbox,
    id: u32,
}

impl Pool {
    pub(crate) fn start(sandbox: &Sandbox, size: u8) -> Result<Pool, Error> {
        let program = match &sandbox.program {
            Some(program) => program.clone(),
            None => find::in_path(std::env::var_os("PATH").as_deref(), &sandbox.writable(None))?,
        };
        // The program is found once: all of its commands are those of this version.
        let sandbox = Sandbox { program: Some(program.clone()), ..sandbox.clone() };
        let mut pool = Pool { program, sandbox, id: 0 };
        let size = format!("--size={size}");
        let out = pool.sbx("start").arg(size).output().map_err(|error| {
            let why = format!("cannot start '{}': {}", shown(&pool.program), cause(&error));
            Error::new(ErrorKind::NoSbx, why)
        })?;
        let said = if out.status.success() { &out.stdout } else { &out.stderr };
        let said = String::from_utf8_lossy(said).trim().to_string();
        match said.rsplit(' ').next().and_then(|number| number.parse().ok()) {
            Some(id) if out.status.success() => pool.id = id,
            _ => {
                let sentence = said.strip_prefix("sbx: ").unwrap_or(&said);
                return Err(Error::new(ErrorKind::Refused, sentence));
            }
        }
        Ok(pool)
    }

    /// A command to run in one of them.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.sandbox.clone().switch("--pool").command(program)
    }

    /// The number of the process that keeps them.
    pub fn id(&self) -> u32 {
        self.id
    }

    fn sbx(&self, action: &str) -> process::Command {
        let mut command = process::Command::new(&self.program);
        // As for a command, whose report goes to a descriptor.
        command.args(["pool", action, "--quiet", "--report-fd=0"]).args(&self.sandbox.flags);
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // One that goes on ends by itself.
        if self.id != 0 {
            let _ = self.sbx("stop").stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}
