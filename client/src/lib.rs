//! Starts commands in an `sbx` sandbox, and reads the report of each run.
//!
//! The crate runs the `sbx` program, which has to be installed. Nothing happens in the calling process but the start of
//! a child: no signal handler, no variable and no descriptor of it changes. So it can be used from any thread, and what
//! goes wrong in a run cannot harm its caller.
//!
//! ```no_run
//! use sbx_client::{Sandbox, report::Cause};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), sbx_client::Error> {
//! let sandbox = Sandbox::new("workspace")
//!     .workspace("/srv/project")
//!     .read("/srv/data")
//!     .timeout(Duration::from_secs(60));
//! let run = sandbox.command("bash").args(["-c", "make test"]).output()?;
//! match run.report.cause {
//!     Cause::Exited => println!("{} bytes, status {}", run.stdout.len(), run.report.exit_status),
//!     cause => println!("ended: {cause}"),
//! }
//! for violation in &run.report.violations {
//!     println!("refused: {}({})", violation.call, violation.args);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A command that ran is `Ok`, whatever its exit status. An [`Error`] says in one sentence that it did not run, or that
//! nobody knows what became of it.
//!
//! # Features
//!
//! - `start` (default): everything but the types of the [`report`].
//! - `schema`: `report::schema`, the JSON Schema of a report.
#![forbid(unsafe_code)]

pub mod report;

#[cfg(feature = "start")]
mod child;
#[cfg(feature = "start")]
mod command;
#[cfg(feature = "start")]
mod error;
#[cfg(feature = "start")]
mod find;
#[cfg(feature = "start")]
mod path;
#[cfg(feature = "start")]
mod pool;
#[cfg(feature = "start")]
mod sandbox;
#[cfg(feature = "start")]
mod text;

#[cfg(feature = "start")]
pub use child::{Child, Output};
#[cfg(feature = "start")]
pub use command::Command;
#[cfg(feature = "start")]
pub use error::{Error, ErrorKind};
#[cfg(feature = "start")]
pub use pool::Pool;
#[cfg(feature = "start")]
pub use sandbox::{OnViolation, Sandbox};
