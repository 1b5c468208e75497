//! The suites: real processes, run by the real `sbx`, judged by what happens outside.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod harness;
