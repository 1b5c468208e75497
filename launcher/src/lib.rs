//! `sbx`: runs a command that nobody should have to trust, with only the rights it needs.

pub mod canary;
pub mod cli;
pub mod embed;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod launch;
pub mod profile;
pub mod program;
pub mod refusal;
pub mod report;
pub mod status;
pub mod supervise;
pub mod sys;

/// `libsandbox.so`, as launcher/build.rs linked it.
pub static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libsandbox.so"));
