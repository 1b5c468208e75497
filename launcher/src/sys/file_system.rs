//! What is known of kinds of file systems, by their numbers (statfs(2)).

use crate::sys::{OfCall, SyscallError};
use std::os::fd::AsFd;
use std::path::Path;

/// The kind of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem(u64);

const BTRFS: FileSystem = FileSystem(0x9123_683e);
const CGROUP2: FileSystem = FileSystem(0x6367_7270);
const DEVPTS: FileSystem = FileSystem(0x1cd1);
const ECRYPTFS: FileSystem = FileSystem(0xf15f);
const EXT4: FileSystem = FileSystem(0xef53);
const FAT: FileSystem = FileSystem(0x4d44);
const FUSE: FileSystem = FileSystem(0x6573_5546);
const NFS: FileSystem = FileSystem(0x6969);
const OVERLAY: FileSystem = FileSystem(0x794c_7630);
const PROC: FileSystem = FileSystem(0x9fa0);
const RAMFS: FileSystem = FileSystem(0x8584_58f6);
const SYSFS: FileSystem = FileSystem(0x6265_6572);
const TMPFS: FileSystem = FileSystem(0x0102_1994);
const V9FS: FileSystem = FileSystem(0x0102_1997);
const XFS: FileSystem = FileSystem(0x5846_5342);

impl FileSystem {
    /// That of a path.
    pub fn of(path: &Path) -> Result<FileSystem, SyscallError> {
        rustix::fs::statfs(path).map(|found| FileSystem(found.f_type as u64)).of("statfs")
    }

    /// That of an open file.
    pub fn of_open(file: impl AsFd) -> Result<FileSystem, SyscallError> {
        rustix::fs::fstatfs(file).map(|found| FileSystem(found.f_type as u64)).of("fstatfs")
    }

    /// Whether it is one of files in memory (tmpfs(5)).
    pub fn is_tmpfs(self) -> bool {
        self == TMPFS
    }

    /// Whether what is in its files is in memory, and may change without a time that tells so.
    pub fn is_in_memory(self) -> bool {
        [TMPFS, RAMFS].contains(&self)
    }

    /// Whether it shows processes or devices: the kernel makes all names in it (proc(5), sysfs(5)).
    pub fn is_of_processes_or_devices(self) -> bool {
        [PROC, SYSFS].contains(&self)
    }

    /// Whether one call of getdents64(2) lists what lookups find, under a lock that keeps names from coming and going
    /// meanwhile. Others make names up when they are asked for (autofs, FUSE), or list what was there at another moment
    /// (Btrfs).
    pub fn lists_at_once(self) -> bool {
        [EXT4, XFS, TMPFS].contains(&self)
    }

    /// Whether the kernel tells of its changes, whoever makes them (inotify(7)). Others may be changed on another
    /// machine, or by a program.
    pub fn tells_of_changes(self) -> bool {
        [EXT4, XFS, TMPFS, BTRFS, OVERLAY].contains(&self)
    }

    /// Whether it is one of the kernel's own, in which nobody gives or takes names at will.
    pub fn is_of_kernel(self) -> bool {
        [PROC, SYSFS, CGROUP2, DEVPTS].contains(&self)
    }

    /// Its name, if it is one that is known not to hold the upper layer of an overlay
    /// (Documentation/filesystems/overlayfs.rst).
    pub fn refuses_overlays(self) -> Option<&'static str> {
        const KNOWN: [(FileSystem, &str); 6] = [
            (OVERLAY, "overlay"),
            (NFS, "NFS"),
            (FUSE, "FUSE"),
            (V9FS, "9p"),
            (FAT, "FAT"),
            (ECRYPTFS, "eCryptfs"),
        ];
        KNOWN.iter().find(|(kind, _)| *kind == self).map(|(_, name)| *name)
    }
}
