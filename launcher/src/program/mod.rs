//! Programs, before they are run.
//!
//! [`find`] turns a command into a path, [`examine`] tells what the kernel would start for that path. Nothing
//! here runs anything or decides: a file can be another one by the time it is executed. The launcher uses the
//! answers to tell the user early, and to know whether its shim will be loaded. The confinement does not
//! depend on them.
//!
//! The handlers of binfmt_misc are ignored: their patterns can match any file.

mod access;
#[doc(hidden)]
pub mod elf;
mod error;
mod examine;
mod find;
mod kind;
mod loader;
mod machine;
#[doc(hidden)]
pub mod script;
mod shell;

#[cfg(test)]
mod tests;

pub use elf::{Malformed, OtherClass};
pub use error::ProgramError;
pub use examine::{examine, examine_from};
pub use find::find;
pub use kind::{FileKind, Link, Program, SetId};
pub use script::ScriptError;
pub use shell::{SHELL_DIRECTORIES, USUAL_SHELLS, shell};
