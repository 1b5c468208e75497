//! Overlays (Documentation/filesystems/overlayfs.rst): a directory laid over another one. What is changed is changed in
//! `upper`, and what is below stays as it is. By an ordinary user since Linux 5.11, with `upper` below the directory
//! that is below since 5.13.
//!
//! An overlay is laid without being mounted anywhere (fsopen(2), fsmount(2)). A helper that shares the memory of
//! another process lays some, so nothing here allocates once the paths are there, and no call goes through the C
//! library.

use crate::sys::mount;
use crate::sys::resolve::openat2;
use crate::sys::{OfCall, SyscallError, file};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::ffi::{CStr, CString, OsStr};
use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The marks of an overlay that does not wait for the disk, in its directory for work, from the inside out.
const MARKS: [&str; 3] = ["work/incompat/volatile/dirty", "work/incompat/volatile", "work/incompat"];

/// The directories that an overlay is made of, by their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    below: CString,
    upper: CString,
    work: CString,
}

impl Layers {
    /// What is below, what has the changes, and one that the kernel works with.
    pub fn new(below: &Path, upper: &Path, work: &Path) -> Result<Layers, SyscallError> {
        let [below, upper, work] =
            [below, upper, work].map(|path| CString::new(path.as_os_str().as_bytes()).of("openat2"));
        Ok(Layers { below: below?, upper: upper?, work: work? })
    }

    /// Takes hold of them. No symbolic link is followed.
    pub fn hold(&self) -> Result<Held, SyscallError> {
        let hold = |path: &CStr| {
            let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
            openat2(CWD, path, flags, ResolveFlags::NO_SYMLINKS).of("openat2")
        };
        Ok(Held { below: hold(&self.below)?, upper: hold(&self.upper)?, work: hold(&self.work)? })
    }
}

/// The directories that an overlay is made of, held open.
pub struct Held {
    below: OwnedFd,
    upper: OwnedFd,
    work: OwnedFd,
}

impl Held {
    /// Lays the overlay. Its end does not wait until the disk has everything.
    pub fn lay(self) -> Result<Laid, SyscallError> {
        // Those of a run that was killed.
        unmark(self.work.as_fd());
        let kind = rustix::mount::fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC).of("fsopen")?;
        const SET: &str = "fsconfig";
        // By descriptors: a path may have commas and colons, and mean something else by now.
        for (layer, directory) in
            [(c"lowerdir", &self.below), (c"upperdir", &self.upper), (c"workdir", &self.work)]
        {
            rustix::mount::fsconfig_set_string(&kind, layer, Name::of(directory.as_fd())?.as_c_str())
                .of(SET)?;
        }
        for option in [c"userxattr", c"volatile"] {
            rustix::mount::fsconfig_set_flag(&kind, option).of(SET)?;
        }
        rustix::mount::fsconfig_create(&kind).of(SET)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
        let mount = rustix::mount::fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes).of("fsmount")?;
        Ok(Laid { mount, work: self.work })
    }
}

/// An overlay, which lasts as long as this or a mount of it.
pub struct Laid {
    mount: OwnedFd,
    work: OwnedFd,
}

impl Laid {
    /// The same one, by descriptors of its own.
    pub fn try_clone(&self) -> Result<Laid, SyscallError> {
        let copy = |of: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(of, 3).of("fcntl");
        Ok(Laid { mount: copy(&self.mount)?, work: copy(&self.work)? })
    }

    /// Mounts it at a place that is held open. What is left can be unmarked.
    pub fn cover(self, place: BorrowedFd<'_>) -> Result<Marked, SyscallError> {
        mount::move_to(self.mount.as_fd(), place)?;
        Ok(Marked(self.work))
    }
}

/// The directory that the kernel works with for an overlay that is in use.
pub struct Marked(OwnedFd);

impl Marked {
    /// Removes its marks. The kernel refuses to lay an overlay with the same directories while they are there: it wants
    /// somebody to look at the files first, which may be incomplete after a crash. The programs that wrote them did not
    /// wait for the disk either. Nothing but that looks at the marks.
    pub fn unmark(&self) {
        unmark(self.0.as_fd());
    }
}

fn unmark(work: BorrowedFd<'_>) {
    let [file, directories @ ..] = MARKS.map(OsStr::new);
    if file::unlink(work, file).is_ok() {
        // One that stays is in the way of the next overlay, which is tried again then.
        directories.iter().for_each(|name| drop(file::remove_directory(work, name)));
        // The kernel makes it closed, and programs that go through a home (du, tar) would fail at it.
        let _ = rustix::fs::chmodat(work, "work", Mode::RWXU, AtFlags::empty());
    }
}

/// The name of a descriptor in /proc, made without allocating.
struct Name {
    text: [u8; Name::LONGEST],
    length: usize,
}

impl Name {
    const LONGEST: usize = "/proc/self/fd/2147483647\0".len();

    fn of(descriptor: BorrowedFd<'_>) -> Result<Name, SyscallError> {
        let mut name = Name { text: [0; Name::LONGEST], length: 0 };
        let written = write!(name, "/proc/self/fd/{}\0", descriptor.as_raw_fd());
        written.map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename)).of("fsconfig")?;
        Ok(name)
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.text).unwrap_or(c"")
    }
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.text.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_room_for_every_number() {
        let mut name = Name { text: [0; Name::LONGEST], length: 0 };
        write!(name, "/proc/self/fd/{}\0", i32::MAX).unwrap();
        assert_eq!(name.as_c_str(), c"/proc/self/fd/2147483647");
        assert!(write!(name, "x").is_err());
    }
}
