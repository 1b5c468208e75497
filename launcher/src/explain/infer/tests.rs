//! What is told from a call by what lies around its path.

use super::*;
use crate::enforce::scratch::Scratch;
use crate::host::Host;
use crate::plan::namespaces::renewed::{Kept, Private};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_push_is_to_write_to_the_repository_that_it_reads() {
    let scratch = Scratch::create(None).unwrap();
    let top = scratch.path().canonicalize().unwrap();
    for directory in ["r.git/objects", "r.git/refs", "other"] {
        fs::create_dir_all(top.join(directory)).unwrap();
    }
    fs::write(top.join("r.git/HEAD"), "").unwrap();
    let repository = (top.join("r.git"), Access::WRITE);
    for (path, access, writes) in [
        ("r.git/HEAD", Access::READ, true),
        ("r.git", Access::METADATA, true),
        ("other", Access::READ, false),
        ("r.git/config", Access::CREATE, false),
    ] {
        let given = (top.join(path), access);
        let expected = if writes { repository.clone() } else { given.clone() };
        assert_eq!(pushed_to(given), expected, "{path}");
    }
    for (line, expected) in [
        ("git\0push\0../r.git\0", true),
        ("git\0-c\0a=b\0push\0", true),
        ("/usr/bin/git-receive-pack\0/r.git\0", true),
        ("git\0receive-pack\0/r.git\0", true),
        ("git\0fetch\0push.git\0", false),
        ("git-upload-pack\0/r.git\0", false),
    ] {
        assert_eq!(is_push(line), expected, "{line:?}");
    }
}

/// By then sed(1) has removed its new file.
#[test]
fn a_rename_over_a_mount_is_told_though_the_file_is_gone() {
    let scratch = Scratch::create(None).unwrap();
    let top = scratch.path().canonicalize().unwrap();
    for name in ["kept", "free", "there"] {
        fs::write(top.join(name), "").unwrap();
    }
    fs::create_dir(top.join("below")).unwrap();
    let kept = Kept { path: top.join("kept"), write: true, execute: false, is_socket: false };
    let private = Private {
        at: top.clone(),
        from: Some(top.with_file_name("own")),
        keep: vec![kept],
        stores: Vec::new(),
        links: BTreeMap::new(),
        denied: BTreeMap::new(),
    };
    let smallest = Layout::smallest(&Host::with_environment(Vec::new()));
    let layout = Layout { private: vec![private], ..smallest };
    let caller = caller::caller(process::id());
    let viewer = Viewer { thread: process::id(), caller: &caller, layout: Some(&layout) };
    let argument = |name: &str, access| PathArgument {
        dirfd: None,
        path: top.join(name).as_os_str().as_bytes().to_vec(),
        access,
        follow: false,
        empty_path_ok: false,
    };
    for (call, from, to, is_told) in [
        ("rename", "gone", "kept", true),
        ("renameat2", "gone", "kept", true),
        ("rename", "gone", "free", false),
        ("rename", "gone", "none", false),
        ("rename", "there", "kept", false),
        ("rename", "below/gone", "kept", false),
        ("linkat", "gone", "kept", false),
    ] {
        let paths = vec![argument(from, Access::REMOVE), argument(to, Access::CREATE)];
        let needs = given_up(call, &Decoded { paths, ..Decoded::default() }, &viewer);
        let named: Option<Vec<PathBuf>> =
            needs.map(|needs| needs.iter().map(|need| viewer.inside(&need.named.0)).collect());
        assert_eq!(named, is_told.then(|| vec![top.join("kept")]), "{call} {from} {to}");
    }
}
