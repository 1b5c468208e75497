//! Says what was refused, and why, and what would allow it.

pub mod caller;
pub mod decode;
pub mod hint;
pub mod infer;
pub mod project;
pub mod query;
pub mod review;
pub mod sensitive;
pub mod servers;
pub mod total;
pub mod unprivileged;
pub mod walk;
