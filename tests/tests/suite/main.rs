//! The suites: real processes, run by the real `sbx`, judged by what happens outside.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod argument_tricks;
mod attributes;
mod bad_input;
mod canaries;
mod command_line;
mod commands;
mod corpus;
mod devices;
mod embedding;
mod env_only;
mod escapes;
mod examples;
mod explain;
#[cfg(target_arch = "x86_64")]
mod faults;
mod flags_of_calls;
mod harness;
mod held_up;
mod hygiene;
mod installation;
mod lifetime;
mod limits;
mod log_mode;
mod long;
mod minimal;
mod namespaces;
mod nesting;
mod network;
mod never_unconfined;
mod no_exec;
mod output_limit;
mod private_network;
mod read_only;
mod readme;
mod report;
mod static_programs;
mod status;
mod supervisor;
mod terminal;
mod timeouts;
mod variables;
mod why;
mod workspace;
mod write;
