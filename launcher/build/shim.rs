//! Builds the libraries that are loaded into programs, and leaves them where the launcher embeds them.
//!
//! A nested cargo, because the same crates have to be linked twice with opposite settings: the launcher with
//! std and whatever the user asked for, the libraries as `cdylib` without any other library. It has a target
//! directory of its own (cargo holds a lock on the outer one), is always optimised, and sees none of the
//! outer build's flags, which could put a libc or coverage counters into them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// What the design allows a library to weigh, since every start pays for it.
const LIMIT: u64 = 40 * 1024;

/// A library.
struct Library {
    package: &'static str,
    /// Its file name.
    name: &'static str,
    /// What the linker is told besides.
    linker: &'static str,
    /// Its script, from here.
    script: &'static str,
    /// Whether stacks are unwound through it: threads may be cancelled in functions that it calls.
    unwinds: bool,
}

const SHIM: Library = Library {
    package: "sbx-shim",
    name: "libsandbox.so",
    // initfirst: our constructor before all others. now: no lazy binding after the filter is in place.
    linker: "-z,initfirst,-z,now,--no-eh-frame-hdr",
    script: "../shim/libsandbox.ld",
    unwinds: false,
};

const EXPLAINER: Library = Library {
    package: "sbx-explainer",
    name: "libsbx-explain.so",
    // Bsymbolic: the loader need not look its own functions up.
    linker: "-z,lazy,-Bsymbolic-functions",
    script: "../explainer/libsbx-explain.ld",
    unwinds: true,
};

/// Builds them, and leaves them in `out`.
pub fn write(out: &Path) {
    let sources = ["shim", "explainer", "policy/src", "policy/data", "policy/build.rs", "policy/Cargo.toml"];
    for path in sources.into_iter().chain(["Cargo.toml"]) {
        println!("cargo::rerun-if-changed=../{path}");
    }
    for library in [SHIM, EXPLAINER] {
        let built = build(&library, &out.join("shim"));
        let size = fs::metadata(&built).expect("cargo named the library it built").len();
        assert!(size <= LIMIT, "{} has {size} bytes, more than the {LIMIT} that it may have", library.name);
        fs::copy(&built, out.join(library.name)).expect("OUT_DIR can be written");
    }
}

fn build(library: &Library, target_dir: &Path) -> PathBuf {
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"));
    cargo.args(["rustc", "--package", library.package]);
    cargo.args("--lib --features library --crate-type cdylib".split(' '));
    cargo.args(["--release", "--offline"]);
    cargo.args(["--message-format", "json-render-diagnostics", "--config", "profile.release.opt-level='z'"]);
    cargo.arg("--target-dir").arg(target_dir).arg("--config").arg(format!("build.build-dir={target_dir:?}"));
    // The library needs no libc, so the host's own target serves a musl launcher as well.
    let (host, target) = (env::var("HOST").expect("HOST"), env::var("TARGET").expect("TARGET"));
    if host.split('-').next() != target.split('-').next() {
        cargo.args(["--target", &target]);
    }
    cargo.args(["--", "-Clink-arg=-nostdlib", "-Clink-arg=-nostartfiles"]);
    cargo.arg(format!("-Clink-arg=-Wl,-soname,{},{}", library.name, library.linker));
    // Nothing but one read-only segment, for size.
    cargo.arg("-Clink-arg=-Wl,-z,noseparate-code,--build-id=none,--strip-all");
    // The part that is read-only after relocation would be padded to whole pages, by some linkers in the file
    // too, and cost the loader a call at each start. Nobody reads it once the constructor has run.
    cargo.arg("-Clink-arg=-Wl,-z,norelro");
    // The largest pages that a kernel can have, or the loader there would leave the library out.
    let page = if target.starts_with("aarch64") { 65536 } else { 4096 };
    cargo.arg(format!("-Clink-arg=-Wl,-z,max-page-size={page}"));
    let script = fs::canonicalize(library.script).expect("the library's linker script is there");
    cargo.arg(format!("-Clink-arg=-Wl,-T,{}", script.display()));
    let tables = if library.unwinds { "yes" } else { "no" };
    // Targets of musl link statically unless told otherwise, and then have no shared libraries.
    let flags = format!("-Cforce-unwind-tables={tables}\x1f-Ctarget-feature=-crt-static");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags);
    let unset = ["RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "CARGO_BUILD_TARGET"];
    for name in unset.into_iter().chain(["CARGO_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"]) {
        cargo.env_remove(name);
    }
    for (name, _) in env::vars_os() {
        let prefixes = ["CARGO_PROFILE_", "CARGO_UNSTABLE_", "CARGO_CFG_"];
        if prefixes.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    let output = cargo.stderr(Stdio::inherit()).output().expect("the cargo that builds this can be started");
    assert!(output.status.success(), "building the shim failed: {cargo:?}");
    product(&output.stdout).expect("cargo's messages name a cdylib")
}

/// Where cargo put the shared library, from its own messages.
fn product(messages: &[u8]) -> Option<PathBuf> {
    let lines = messages.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let mut artifacts = lines.filter(|message| message["reason"] == "compiler-artifact").filter(|message| {
        let kinds = message["target"]["crate_types"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
    });
    let artifact = artifacts.next_back()?;
    let mut files = artifact["filenames"].as_array()?.iter().filter_map(Value::as_str);
    files.find(|file| file.ends_with(".so")).map(PathBuf::from)
}
