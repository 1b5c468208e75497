//! openat2(2), Linux 5.6: how a path is resolved.

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use std::os::fd::{AsFd, OwnedFd};

/// Opens a file by a path that is resolved as `resolve` says.
///
/// With RESOLVE_BENEATH or RESOLVE_IN_ROOT and a `..` in the path, the kernel gives up with EAGAIN if anything on the
/// machine was renamed or mounted meanwhile. On a busy machine that is common, and says nothing about the path.
pub fn openat2(
    directory: impl AsFd,
    path: impl Arg + Copy,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    // A program that renames all the time must not hold us up for ever.
    const ATTEMPTS: usize = 256;
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS {
        opened = rustix::fs::openat2(directory.as_fd(), path, flags, Mode::empty(), resolve);
        if !matches!(opened, Err(Errno::AGAIN)) {
            break;
        }
    }
    opened
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn what_is_renamed_elsewhere_does_not_matter() {
        let directory = std::env::temp_dir().join(format!("sbx-resolve-{}", std::process::id()));
        fs::create_dir_all(directory.join("below")).unwrap();
        let (one, other) = (directory.join("one"), directory.join("other"));
        fs::write(&one, "").unwrap();
        let root = openat2(CWD, &directory, OFlags::PATH, ResolveFlags::empty()).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    fs::rename(&one, &other).and_then(|()| fs::rename(&other, &one)).unwrap();
                }
            });
            let opened = (0..20_000).map(|_| {
                openat2(&root, "below/../below/../below", OFlags::PATH, ResolveFlags::IN_ROOT).map(drop)
            });
            let failed = opened.filter(|opened| opened.is_err()).count();
            over.store(true, Ordering::Relaxed);
            assert_eq!(failed, 0);
        });
        fs::remove_dir_all(&directory).unwrap();
    }
}
