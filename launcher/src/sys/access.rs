//! What file permissions let this process do, as the kernel says.

use crate::sys::file_system::FileSystem;
use crate::sys::{process, setting};
use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission(Access);

impl Permission {
    /// Read a file, list a directory.
    pub const READ: Permission = Permission(Access::READ_OK);
    /// Write a file.
    pub const WRITE: Permission = Permission(Access::WRITE_OK);
    /// Both.
    pub const READ_WRITE: Permission = Permission(Access::READ_OK.union(Access::WRITE_OK));
    /// Execute a file.
    pub const EXECUTE: Permission = Permission(Access::EXEC_OK);
    /// Make and remove names in a directory.
    pub const CHANGE: Permission = Permission(Access::WRITE_OK.union(Access::EXEC_OK));
}

/// Whether the file system itself allows it to the effective user: permissions, access lists, read-only and
/// noexec mounts. True where the kernel cannot be asked (faccessat2(2) is of Linux 5.8).
pub fn allows(path: &Path, wanted: Permission) -> bool {
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    matches!(rustix::fs::accessat(CWD, path, wanted.0, flags), Ok(()) | Err(Errno::NOSYS))
}

/// Whether permissions are what refuses it to the effective user; a capability would open it.
pub fn closes(path: &Path, wanted: Permission) -> bool {
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::accessat(CWD, path, wanted.0, flags) == Err(Errno::ACCESS)
}

/// Whether a process without capabilities can make something in a directory: as its owner, or where others
/// may write.
pub fn may_change(directory: &Metadata) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    directory.uid() == process::user() || directory.mode() & OTHERS_WRITE != 0
}

/// Whether a directory lets this user make names, and not remove or rename this one: the sticky bit leaves it to its
/// owner and the directory's.
pub fn keeps_names_of_others(directory: &Path, path: &Path) -> bool {
    let is_own = |meta: &Metadata| meta.uid() == process::user();
    let Ok(above) = directory.metadata() else { return false };
    let is_sticky = above.mode() & libc::S_ISVTX != 0;
    is_sticky && !is_own(&above) && !path.symlink_metadata().is_ok_and(|meta| is_own(&meta))
}

/// The owner of a directory in which root can make something by a capability alone.
pub fn others_directory(directory: &Path) -> Option<u32> {
    let meta = process::is_root().then(|| directory.metadata().ok()).flatten()?;
    (!may_change(&meta)).then(|| meta.uid())
}

/// Whether a directory of this mode is closed to its owner: nobody can tell what is in it.
pub fn is_closed(mode: u32) -> bool {
    const OPEN: u32 = libc::S_IRUSR | libc::S_IXUSR;
    mode & OPEN != OPEN
}

/// Whether a path is on a read-only mount or file system, whatever its permissions are (statvfs(3)).
pub fn is_mounted_read_only(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether a file that is held open is on one (fstatvfs(3)); it is where the kernel does not tell.
pub fn holds_read_only(held: &File) -> bool {
    rustix::fs::fstatvfs(held).map_or(true, |found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Whether a directory is one of files in memory (tmpfs(5)) in which programs run, with so many bytes of room.
pub fn is_memory_with_room(directory: &Path, bytes: u64) -> bool {
    let is_memory = FileSystem::of(directory).is_ok_and(FileSystem::is_tmpfs);
    let unfit = StatVfsMountFlags::RDONLY | StatVfsMountFlags::NOEXEC;
    let fits = |found: rustix::fs::StatVfs| {
        !found.f_flag.intersects(unfit) && found.f_bavail.saturating_mul(found.f_frsize) >= bytes
    };
    is_memory && rustix::fs::statvfs(directory).is_ok_and(fits)
}

/// Whether a path is on a read-only mount (access(2) reports that before it looks at permissions).
pub fn is_read_only(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK) == Err(Errno::ROFS)
}

/// Whether an ordinary user may listen on a port.
pub fn may_bind(port: u16) -> bool {
    let first = setting::number("net/ipv4/ip_unprivileged_port_start").unwrap_or(1024);
    port == 0 || i64::from(port) >= first
}
