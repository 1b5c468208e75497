//! Carries a plan out on Linux. Nothing is decided here.
//!
//! An error on its way to the screen: a call of [`crate::sys`] fails with a `SyscallError`, which names the
//! call. The step that made the call wraps it into an [`EnforceError`], which names the step. `?` turns
//! that into a `Refusal`, with the exit status, which `cli` prints as one sentence: `cannot STEP: CALL:
//! CAUSE`.

pub mod aside;
pub mod cgroup;
pub mod child;
pub mod doors;
mod error;
pub mod exec_permit;
pub mod guard;
pub mod home;
pub mod home_copies;
pub mod home_places;
pub mod homes;
pub mod landlock;
pub mod mounts;
pub mod placeholders;
pub mod presence;
pub mod reaper;
mod removal;
pub mod replaced;
pub mod scratch;
pub mod start_barrier;
pub mod steps;

pub use error::{Cause, EnforceError};
