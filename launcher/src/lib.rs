//! `sbx`: runs a command that nobody should have to trust, with only the rights it needs.

pub mod program;
pub mod supervise;
