//! `sbx` for Rust programs.
//!
//! [`Sandbox`] starts commands through the `sbx` program and returns its [`Report`]: nothing happens in the
//! calling process but the start of a child, so that it works in programs with threads, and whatever goes wrong in a
//! run cannot harm its caller. [`confine_self`] confines the calling process itself.
//!
//! ```no_run
//! use sbx::embed::Sandbox;
//!
//! # fn main() -> Result<(), sbx::embed::Error> {
//! let sandbox = Sandbox::new("workspace").workspace("/srv/project");
//! let run = sandbox.command("bash").args(["-c", "make test"]).output()?;
//! println!("{} bytes, status {}", run.stdout.len(), run.report.exit_status);
//! for violation in &run.report.violations {
//!     println!("refused: {}({})", violation.call, violation.args);
//! }
//! # Ok(())
//! # }
//! ```

mod child;
mod command;
mod error;
mod find;
mod oneself;
mod sandbox;

pub use crate::cli::{Level, OnViolation};
pub use crate::report::model::{self, Report};
pub use child::{Child, Output};
pub use command::Command;
pub use error::{Error, Kind};
pub use oneself::{Confined, confine_self};
pub use sandbox::Sandbox;
