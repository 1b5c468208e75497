//! What a file is, before anybody runs it.
//!
//! [`find`] turns a command into a path, [`examine`] tells what the kernel would start for that path. Nothing here
//! runs anything, and nothing here decides: a file can be another one by the time it is executed. The launcher
//! uses the answers to tell the user early, and to know whether its shim will be loaded. What confines the program
//! does not depend on them.
//!
//! Handlers that somebody registered with binfmt_misc are not looked at: their patterns can claim any file, and
//! what they start is the handler's business.

mod access;
mod elf;
mod error;
mod examine;
mod find;
mod kind;
mod loader;
mod machine;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod properties;
mod script;
mod sys;

#[cfg(test)]
mod tests;

pub use access::Obstacle;
pub use elf::{Malformed, OtherClass};
pub use error::ExamineError;
pub use examine::{examine, examine_from};
pub use find::{FindError, find};
pub use kind::{Kind, Link, Program, SetId};
pub use script::ScriptError;
