//! Waiting for the command and saying what was refused.

pub mod decode;
