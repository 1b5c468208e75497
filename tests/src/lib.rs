//! The harness of the suites that start the real `sbx`.
//!
//! A test builds a [`World`] (a home directory with planted secrets and a workspace inside it), runs commands in it
//! with and without `sbx`, and looks at what happened outside: files, connections, processes. Everything here is test
//! code, so a broken precondition panics with a sentence.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod command;
pub mod docker;
pub mod escapes;
#[cfg(target_arch = "x86_64")]
pub mod faults;
pub mod kernel;
pub mod machine;
pub mod modules;
pub mod output;
pub mod parallel;
pub mod processes;
pub mod servers;
pub mod sources;
pub mod stage;
pub mod subjects;
#[allow(unsafe_code)] // It makes the system calls that no library has.
pub mod sys;
pub mod tools;
pub mod tree;
pub mod users;
pub mod world;
pub mod wrap;

pub use command::Cmd;
pub use output::Output;
pub use tools::{have, need, skip};
pub use users::{User, as_users};
pub use world::{World, in_worlds};
