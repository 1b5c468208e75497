//! What has to be there before the launcher is compiled: the library that it embeds, and the built-in profiles as
//! tables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

/// The launcher's own reader of profiles: what it makes of a document here is what it would make of it at run time.
#[allow(dead_code, unused_imports, missing_docs, unexpected_cfgs)]
#[path = "../src/profile/mod.rs"]
mod profile;
mod shim;
mod tables;

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    shim::write(&out);
    tables::write(&out);
}
