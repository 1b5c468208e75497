//! Which dynamic loaders are this system's own.
//!
//! Only such a loader is known to honour the preload. This is about what to expect, not about trust: the
//! program is confined before any loader runs.

use crate::sys::number::FileNumber;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

/// The loaders' names, which each libc promises to the linkers: glibc's, then musl's.
const KNOWN: [&str; 2] = if cfg!(target_arch = "x86_64") {
    ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"]
} else {
    ["/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-aarch64.so.1"]
};

/// The stores of Nix and Guix, with one loader for each version of the libc. Only root writes there.
const STORES: [&str; 2] = ["/nix/store", "/gnu/store"];

/// The owner that a user namespace shows for each user it does not know, such as root outside.
const OVERFLOW_USER: u32 = 65534;

/// Whether a program that names `interpreter` gets a loader of this system. `metadata` is the loader's.
pub(super) fn is_known(interpreter: &Path, metadata: &Metadata) -> bool {
    // As bytes: comparing as paths would let `/lib64/./ld-linux...` pass, which must be resolved first.
    let has_known_name = KNOWN.iter().any(|known| interpreter.as_os_str() == *known);
    is_system_owned(metadata) && (has_known_name || leads_to_known(interpreter))
}

/// Whether `path` is itself one of the loaders, by whatever name.
pub(super) fn is_loader(path: &Path, metadata: &Metadata) -> bool {
    KNOWN.iter().filter_map(|known| std::fs::metadata(known).ok()).any(|known| same_file(&known, metadata))
        || is_in_store(path)
}

/// Another way to write the path of a known loader, such as the multiarch directory's.
fn leads_to_known(interpreter: &Path) -> bool {
    // A relative path means another file after the next chdir. So does a path through a process's own entries
    // in /proc (`/proc/self/cwd`), which differ for each process.
    let mut parts = interpreter.components().skip(1);
    let of_process = parts.next() == Some(Component::Normal(OsStr::new("proc")))
        && parts.next() != Some(Component::ParentDir);
    if !interpreter.is_absolute() || of_process {
        return false;
    }
    let Ok(target) = interpreter.canonicalize() else { return false };
    is_in_store(&target)
        || KNOWN.iter().any(|known| Path::new(known).canonicalize().is_ok_and(|k| k == target))
}

/// `/nix/store/PACKAGE/lib/ld-linux-x86-64.so.2` and the like.
fn is_in_store(path: &Path) -> bool {
    let of_known_name = KNOWN.iter().any(|known| Path::new(known).file_name() == path.file_name());
    let package = STORES.iter().find_map(|store| path.strip_prefix(store).ok());
    of_known_name
        && package.is_some_and(|rest| rest.components().count() == 3)
        && path.parent().is_some_and(|directory| directory.ends_with("lib"))
}

/// Owned by root (or by somebody outside this user namespace) and writable by nobody else.
fn is_system_owned(metadata: &Metadata) -> bool {
    // A user may have the overflow number as well. That is why only the known names are asked about.
    matches!(metadata.uid(), 0 | OVERFLOW_USER) && metadata.mode() & 0o022 == 0
}

fn same_file(a: &Metadata, b: &Metadata) -> bool {
    FileNumber::of(a) == FileNumber::of(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_paths_have_one_package_and_a_lib_directory() {
        let name = Path::new(KNOWN[0]).file_name().and_then(|name| name.to_str()).unwrap();
        assert!(is_in_store(Path::new(&format!("/nix/store/abc-glibc-2.40/lib/{name}"))));
        assert!(is_in_store(Path::new(&format!("/gnu/store/abc-glibc-2.39/lib/{name}"))));
        for other in
            ["/nix/store/lib", "/nix/store/a/b/lib", "/nix/store/a/bin", "/nix/stores/a/lib", "/home/a/lib"]
        {
            assert!(!is_in_store(Path::new(&format!("{other}/{name}"))), "{other}");
        }
        assert!(!is_in_store(Path::new("/nix/store/abc/lib/ld-other.so")));
    }

    #[test]
    fn every_spelling_of_the_known_loader_is_known() {
        for known in KNOWN.iter().filter(|known| Path::new(known).exists()) {
            let metadata = std::fs::metadata(known).unwrap();
            let resolved = Path::new(known).canonicalize().unwrap();
            assert!(is_known(Path::new(known), &metadata));
            assert!(is_known(&resolved, &metadata));
            assert!(is_known(Path::new(&format!("/proc/..{known}")), &metadata));
            assert!(is_loader(&resolved, &metadata));
            for of_process in ["/proc/self/root", "/proc/thread-self/cwd/..", "/proc/./1/root"] {
                assert!(!is_known(Path::new(&format!("{of_process}{known}")), &metadata), "{of_process}");
            }
            assert!(!is_known(&Path::new("..").join(resolved.strip_prefix("/").unwrap()), &metadata));
        }
    }

    #[test]
    fn what_others_can_write_is_not_the_systems() {
        assert!(!is_system_owned(&std::fs::metadata("/tmp").unwrap()));
        assert!(is_system_owned(&std::fs::metadata("/bin/sh").unwrap()));
    }
}
