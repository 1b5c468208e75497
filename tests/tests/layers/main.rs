//! The order of the launcher's modules, and the rules of its source, are kept. Each check is tried on small made-up
//! trees as well: one for every way to break the rule, and a twin that keeps it.
#![allow(clippy::unwrap_used)]

mod documents;
mod order;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The root of our own tree.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Fails with one line for each fault.
#[track_caller]
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n  {}", faults.len(), faults.join("\n  "));
}

/// Fails unless there is exactly one fault, and it is this one.
#[track_caller]
fn only(faults: &[String], expected: &str) {
    assert_eq!(faults, [expected]);
}

/// A made-up source tree; it is removed in the end.
struct Made(PathBuf);

impl Made {
    fn new(files: &[(&str, &str)]) -> Made {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("sbx-layers-{}-{number}", std::process::id()));
        for (name, text) in files {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Made(root)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}
