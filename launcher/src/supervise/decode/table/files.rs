//! Calls on files.

use super::Kind::{
    Choice, Device, DirFd, Fd, FileMode, Flags, Hex, Int, Mode, Open, OpenHow, OpenMode, Path, Pointer, Size,
    Skip, Text,
};
use super::{Empty, Last, PathRule, Signature, entry, entry_at, path, path_at};
use crate::supervise::decode::{Access, names};

const READ: Access = Access::READ;
const LOOK: Access = Access::METADATA;
const SET: Access = Access::ATTRIBUTES;
const MAKE: Access = Access::CREATE;
const REMOVE: Access = Access::REMOVE;
const MOVE_FROM: Access = REMOVE.with(Access::REFER);
const MOVE_TO: Access = MAKE.with(Access::REFER);
const SWAP: Access = MAKE.with(REMOVE);
const RENAME_EXCHANGE: u64 = 2;

const fn open(flags: usize) -> super::Kind {
    Path(PathRule { access: Access::NONE, last: Last::Open(flags), empty: Empty::Never, more: None })
}

/// `readlinkat` takes an empty path without being asked to.
const fn link_or_fd() -> super::Kind {
    Path(PathRule { access: LOOK, last: Last::Keep, empty: Empty::Always, more: None })
}

const fn renamed(access: Access) -> super::Kind {
    let more = Some(((4, RENAME_EXCHANGE), SWAP));
    Path(PathRule { access, last: Last::Keep, empty: Empty::Never, more })
}

/// A path whose last link is not followed if a flag of the call's own says so.
const fn keep_if(access: Access, argument: usize, bit: u64) -> super::Kind {
    Path(PathRule { access, last: Last::KeepIf((argument, bit)), empty: Empty::Never, more: None })
}

const fn moved(argument: usize, follow: u64, empty: u64) -> super::Kind {
    let last = Last::FollowIf((argument, follow));
    Path(PathRule { access: LOOK, last, empty: Empty::If((argument, empty)), more: None })
}

const FSPICKED: super::Kind =
    Path(PathRule { access: LOOK, last: Last::KeepIf((2, 2)), empty: Empty::If((2, 8)), more: None });
const HOW: super::Kind =
    Path(PathRule { access: Access::NONE, last: Last::OpenHow, empty: Empty::Never, more: None });

pub static PATHS: &[Signature] = &[
    ("open", &[open(1), Open, OpenMode(1)]),
    ("openat", &[DirFd, open(2), Open, OpenMode(2)]),
    ("openat2", &[DirFd, HOW, OpenHow(3)]),
    ("creat", &[path(Access::WRITE.with(MAKE).with(Access::TRUNCATE)), Mode]),
    ("stat", &[path(LOOK)]),
    ("lstat", &[entry(LOOK)]),
    ("newfstatat", &[DirFd, path_at(LOOK, 3), Skip, Flags(&names::AT)]),
    ("statx", &[DirFd, path_at(LOOK, 2), Flags(&names::AT)]),
    ("access", &[path(LOOK), Flags(&names::ACCESS)]),
    ("faccessat", &[DirFd, path(LOOK), Flags(&names::ACCESS)]),
    ("faccessat2", &[DirFd, path_at(LOOK, 3), Flags(&names::ACCESS), Flags(&names::AT_ACCESS)]),
    ("readlink", &[entry(LOOK)]),
    ("readlinkat", &[DirFd, link_or_fd()]),
    ("mkdir", &[entry(MAKE), Mode]),
    ("mkdirat", &[DirFd, entry(MAKE), Mode]),
    ("mknod", &[entry(MAKE), FileMode, Device(1)]),
    ("mknodat", &[DirFd, entry(MAKE), FileMode, Device(2)]),
    ("rmdir", &[entry(REMOVE)]),
    ("unlink", &[entry(REMOVE)]),
    ("unlinkat", &[DirFd, entry(REMOVE), Flags(&names::AT_UNLINK)]),
    ("rename", &[entry(MOVE_FROM), entry(MOVE_TO)]),
    ("renameat", &[DirFd, entry(MOVE_FROM), DirFd, entry(MOVE_TO)]),
    ("renameat2", &[DirFd, renamed(MOVE_FROM), DirFd, renamed(MOVE_TO), Flags(&names::RENAME)]),
    ("link", &[entry(LOOK.with(Access::REFER)), entry(MOVE_TO)]),
    ("linkat", &[DirFd, entry_at(LOOK.with(Access::REFER), 4), DirFd, entry(MOVE_TO), Flags(&names::AT)]),
    ("symlink", &[Text, entry(MAKE)]),
    ("symlinkat", &[Text, DirFd, entry(MAKE)]),
    ("chmod", &[path(SET), Mode]),
    ("fchmodat", &[DirFd, path(SET), Mode]),
    ("fchmodat2", &[DirFd, path_at(SET, 3), Mode, Flags(&names::AT)]),
    ("chown", &[path(SET), Int, Int]),
    ("lchown", &[entry(SET), Int, Int]),
    ("fchownat", &[DirFd, path_at(SET, 4), Int, Int, Flags(&names::AT)]),
    ("truncate", &[path(Access::TRUNCATE), Size]),
    ("utime", &[path(SET)]),
    ("utimes", &[path(SET)]),
    ("futimesat", &[DirFd, path(SET)]),
    ("utimensat", &[DirFd, path_at(SET, 3), Skip, Flags(&names::AT)]),
    ("getxattr", &[path(LOOK), Text]),
    ("lgetxattr", &[entry(LOOK), Text]),
    ("listxattr", &[path(LOOK)]),
    ("llistxattr", &[entry(LOOK)]),
    ("setxattr", &[path(SET), Text, Skip, Skip, Flags(&names::XATTR)]),
    ("lsetxattr", &[entry(SET), Text, Skip, Skip, Flags(&names::XATTR)]),
    ("removexattr", &[path(SET), Text]),
    ("lremovexattr", &[entry(SET), Text]),
    ("getxattrat", &[DirFd, path_at(LOOK, 2), Flags(&names::AT), Text]),
    ("listxattrat", &[DirFd, path_at(LOOK, 2), Flags(&names::AT)]),
    ("setxattrat", &[DirFd, path_at(SET, 2), Flags(&names::AT), Text]),
    ("removexattrat", &[DirFd, path_at(SET, 2), Flags(&names::AT), Text]),
    ("file_getattr", &[DirFd, path_at(LOOK, 4), Skip, Skip, Flags(&names::AT)]),
    ("file_setattr", &[DirFd, path_at(SET, 4), Skip, Skip, Flags(&names::AT)]),
    ("chdir", &[path(LOOK)]),
    ("chroot", &[path(LOOK)]),
    ("execve", &[path(Access::EXECUTE)]),
    ("execveat", &[DirFd, path_at(Access::EXECUTE, 4), Skip, Skip, Flags(&names::AT)]),
    ("uselib", &[path(READ.with(Access::EXECUTE))]),
    ("statfs", &[path(LOOK)]),
    ("inotify_add_watch", &[Fd, keep_if(LOOK, 2, 1 << 25), Flags(&names::INOTIFY)]),
    ("fanotify_mark", &[Fd, Flags(&names::FANOTIFY_MARK), Hex, DirFd, keep_if(LOOK, 1, 4)]),
    ("name_to_handle_at", &[DirFd, entry_at(LOOK, 4), Skip, Skip, Flags(&names::AT_HANDLE)]),
    ("mount", &[Text, path(LOOK), Text, Flags(&names::MOUNT)]),
    ("umount2", &[keep_if(LOOK, 1, 8), Flags(&names::UMOUNT)]),
    ("pivot_root", &[path(LOOK), path(LOOK)]),
    ("open_tree", &[DirFd, path_at(LOOK, 2), Flags(&names::OPEN_TREE)]),
    ("open_tree_attr", &[DirFd, path_at(LOOK, 2), Flags(&names::OPEN_TREE)]),
    ("move_mount", &[DirFd, moved(4, 1, 4), DirFd, moved(4, 0x10, 0x40), Flags(&names::MOVE_MOUNT)]),
    ("fspick", &[DirFd, FSPICKED, Flags(&names::FSPICK)]),
    ("mount_setattr", &[DirFd, path_at(LOOK, 2), Flags(&names::AT)]),
    ("swapon", &[path(READ.with(Access::WRITE)), Hex]),
    ("swapoff", &[path(LOOK)]),
    ("acct", &[path(Access::WRITE)]),
    ("quotactl", &[Hex, path(LOOK), Int]),
];

pub static DESCRIPTORS: &[Signature] = &[
    ("read", &[Fd, Skip, Size]),
    ("write", &[Fd, Skip, Size]),
    ("readv", &[Fd, Skip, Int]),
    ("writev", &[Fd, Skip, Int]),
    ("pread64", &[Fd, Skip, Size, Size]),
    ("pwrite64", &[Fd, Skip, Size, Size]),
    ("preadv", &[Fd, Skip, Int, Size]),
    ("pwritev", &[Fd, Skip, Int, Size]),
    ("preadv2", &[Fd, Skip, Int, Size]),
    ("pwritev2", &[Fd, Skip, Int, Size]),
    ("close", &[Fd]),
    ("close_range", &[Int, Int, Hex]),
    ("fstat", &[Fd]),
    ("fstatfs", &[Fd]),
    ("lseek", &[Fd, Size, Int]),
    ("dup", &[Fd]),
    ("dup2", &[Fd, Fd]),
    ("dup3", &[Fd, Fd, Open]),
    ("pipe", &[]),
    ("pipe2", &[Skip, Open]),
    ("fcntl", &[Fd, Choice(names::FCNTL), Hex]),
    ("ioctl", &[Fd, Choice(names::IOCTL)]),
    ("flock", &[Fd, Hex]),
    ("fsync", &[Fd]),
    ("fdatasync", &[Fd]),
    ("sync", &[]),
    ("syncfs", &[Fd]),
    ("sync_file_range", &[Fd, Size, Size, Hex]),
    ("ftruncate", &[Fd, Size]),
    ("fallocate", &[Fd, Hex, Size, Size]),
    ("fadvise64", &[Fd, Size, Size, Int]),
    ("readahead", &[Fd, Size, Size]),
    ("getdents", &[Fd]),
    ("getdents64", &[Fd]),
    ("getcwd", &[]),
    ("fchdir", &[Fd]),
    ("fchmod", &[Fd, Mode]),
    ("fchown", &[Fd, Int, Int]),
    ("fgetxattr", &[Fd, Text]),
    ("flistxattr", &[Fd]),
    ("fsetxattr", &[Fd, Text, Skip, Skip, Flags(&names::XATTR)]),
    ("fremovexattr", &[Fd, Text]),
    ("sendfile", &[Fd, Fd, Skip, Size]),
    ("copy_file_range", &[Fd, Skip, Fd, Skip, Size]),
    ("splice", &[Fd, Skip, Fd, Skip, Size]),
    ("tee", &[Fd, Fd, Size]),
    ("vmsplice", &[Fd, Skip, Size]),
    ("umask", &[Mode]),
    ("ustat", &[Hex]),
    ("poll", &[Skip, Int, Int]),
    ("ppoll", &[Skip, Int]),
    ("select", &[Int]),
    ("pselect6", &[Int]),
    ("epoll_create", &[Int]),
    ("epoll_create1", &[Hex]),
    ("epoll_ctl", &[Fd, Int, Fd]),
    ("epoll_wait", &[Fd, Skip, Int, Int]),
    ("epoll_pwait", &[Fd, Skip, Int, Int]),
    ("epoll_pwait2", &[Fd, Skip, Int]),
    ("eventfd", &[Int]),
    ("eventfd2", &[Int, Hex]),
    ("inotify_init", &[]),
    ("inotify_init1", &[Hex]),
    ("inotify_rm_watch", &[Fd, Int]),
    ("fanotify_init", &[Hex, Open]),
    ("signalfd", &[Fd]),
    ("signalfd4", &[Fd, Skip, Skip, Hex]),
    ("timerfd_create", &[Int, Hex]),
    ("timerfd_settime", &[Fd, Hex]),
    ("timerfd_gettime", &[Fd]),
    ("memfd_create", &[Text, Flags(&names::MEMFD)]),
    ("memfd_secret", &[Hex]),
    ("open_by_handle_at", &[Fd, Pointer, Open]),
    ("fsopen", &[Text, Hex]),
    ("fsconfig", &[Fd, Choice(names::FSCONFIG), Text]),
    ("fsmount", &[Fd, Hex, Hex]),
    ("statmount", &[Pointer]),
    ("listmount", &[Pointer]),
    ("cachestat", &[Fd]),
    ("quotactl_fd", &[Fd, Hex, Int]),
    ("lookup_dcookie", &[Hex]),
    ("sysfs", &[Int]),
    ("io_setup", &[Int]),
    ("io_destroy", &[Hex]),
    ("io_submit", &[Hex, Int]),
    ("io_cancel", &[Hex]),
    ("io_getevents", &[Hex, Int, Int]),
    ("io_pgetevents", &[Hex, Int, Int]),
    ("mq_open", &[Text, Open, OpenMode(1)]),
    ("mq_unlink", &[Text]),
    ("mq_timedsend", &[Fd, Skip, Size, Int]),
    ("mq_timedreceive", &[Fd, Skip, Size]),
    ("mq_notify", &[Fd]),
    ("mq_getsetattr", &[Fd]),
];
