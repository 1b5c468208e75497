//! What has to be there before the launcher is compiled: the library that it embeds, the built-in profiles as
//! tables, and the JSON Schema of the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

/// What the reader of profiles uses of the launcher besides.
#[allow(dead_code, unused_imports, missing_docs)]
#[path = "../src/hosts/mod.rs"]
mod hosts;
/// The launcher's own reader of profiles: a document means here what it would mean at run time.
#[allow(dead_code, unused_imports, missing_docs, unexpected_cfgs)]
#[path = "../src/profile/mod.rs"]
mod profile;
mod shim;
mod tables;
/// What the reader of profiles uses of the launcher besides.
#[allow(dead_code, unused_imports)]
#[path = "../src/text.rs"]
mod text;

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    shim::write(&out);
    tables::write(&out);
    schema(&out);
}

/// Cargo runs this again when `sbx-client` changes, because it is linked in here.
fn schema(out: &Path) {
    let schema = sbx_client::report::schema().expect("the schema can be written as JSON");
    fs::write(out.join("report.schema.json"), schema + "\n").expect("OUT_DIR can be written");
}
