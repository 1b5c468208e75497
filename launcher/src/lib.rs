//! `sbx`: runs an untrusted command with only the rights it needs.
//!
//! The modules are layers: each imports only from those below it (`tests/src/modules/layers.rs` has the order).

pub mod broker;
pub mod cli;
pub mod digest;
pub mod embed;
pub mod enforce;
pub mod error;
pub mod explain;
pub mod hooks;
pub mod host;
pub mod hosts;
pub mod learn;
pub mod mcp;
pub mod plan;
pub mod pool;
pub mod profile;
pub mod program;
pub mod report;
pub mod request;
pub mod run;
pub mod selftest;
pub mod supervise;
pub mod sys;
#[cfg(test)]
mod testing;
pub mod text;
