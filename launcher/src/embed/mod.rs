//! `sbx` as a library: [`confine_self`] confines the calling process by a profile.
//!
//! To start commands in a sandbox, use the crate `sbx-client`, which runs the `sbx` program.

mod error;
mod oneself;

pub use error::ConfineError;
pub use oneself::{Confined, confine_self};
