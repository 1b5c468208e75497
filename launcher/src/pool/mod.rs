//! Warm starts: a process that keeps runs which wait for their commands, and what asks it for one.
//!
//! The pool of one kind of runs is a process of its own (`server`). It starts the runs ahead, each as a child that goes
//! through a whole start ([`crate::run::warm`]) and then waits at a socket (`parked`). `sbx run --pool` (`caller`)
//! connects to the socket, hands over the words, the environment and the standard descriptors, and passes signals on
//! until it is told the exit status. Each run serves one command, and is replaced when it has taken that.
//!
//! A pool is found by what is asked for (`key`). Who connects has to be what the pool is (`peer`): the same user, with
//! the same rights, namespaces and limits, confined by nothing else.

mod caller;
mod key;
mod messages;
mod parked;
mod peer;
mod place;
mod server;

pub use caller::run;
pub use server::{Known, Started, start, status, stop};

/// The variable that stands for `--pool`.
pub const VARIABLE: &str = "SBX_POOL";
