//! Calls on files.

use crate::explain::decode::table::Argument::{
    self, Choice, Device, DirFd, FileMode, Flags, Hex, Int, Mode, OpenHow, OpenMode, Path, Pointer, Size,
    Skip, Text,
};
use crate::explain::decode::table::{Empty, Last, PathRule, Signature, entry, entry_at, path, path_at, rule};
use crate::explain::decode::{Access, names};

const READ: Access = Access::READ;
const LOOK: Access = Access::METADATA;
const SET: Access = Access::ATTRIBUTES;
const MAKE: Access = Access::CREATE;
const REMOVE: Access = Access::REMOVE;
const MOVE_FROM: Access = REMOVE.with(Access::REFER);
const MOVE_TO: Access = MAKE.with(Access::REFER);
const LINK_FROM: Access = LOOK.with(Access::REFER);
const REWRITE: Access = Access::WRITE.with(MAKE).with(Access::TRUNCATE);
const AT: Argument = Flags(&names::AT);
const OPEN: Argument = Flags(&names::OPEN);
const XATTR: Argument = Flags(&names::XATTR);
const HOW: Argument = rule(Access::NONE, Last::OpenHow, Empty::Never);
/// `readlinkat` takes an empty path without a flag for it.
const LINK_OR_FD: Argument = rule(LOOK, Last::Keep, Empty::Always);

const fn open(flags: usize) -> Argument {
    rule(Access::NONE, Last::Open(flags), Empty::Never)
}

/// A path of `renameat2`: with `RENAME_EXCHANGE`, both names are removed and made.
const fn renamed(access: Access) -> Argument {
    let more = Some(((4, libc::RENAME_EXCHANGE as u64), MAKE.with(REMOVE)));
    Path(PathRule { access, last: Last::Keep, empty: Empty::Never, more })
}

/// A path whose last link is not followed if a flag of the call's own says so.
const fn keep_if(argument: usize, bit: u64) -> Argument {
    rule(LOOK, Last::KeepIf((argument, bit)), Empty::Never)
}

/// A path of `move_mount`, with flags of its own.
const fn moved(follow: u64, empty: u64) -> Argument {
    rule(LOOK, Last::FollowIf((4, follow)), Empty::If((4, empty)))
}

pub static PATHS: &[Signature] = &[
    ("open", &[open(1), OPEN, OpenMode(1)]),
    ("openat", &[DirFd, open(2), OPEN, OpenMode(2)]),
    ("openat2", &[DirFd, HOW, OpenHow(3)]),
    ("creat", &[path(REWRITE), Mode]),
    ("stat listxattr chdir chroot statfs swapoff", &[path(LOOK)]),
    ("lstat readlink llistxattr", &[entry(LOOK)]),
    ("newfstatat", &[DirFd, path_at(LOOK, 3), Skip, AT]),
    ("statx listxattrat", &[DirFd, path_at(LOOK, 2), AT]),
    ("access", &[path(LOOK), Flags(&names::ACCESS)]),
    ("faccessat", &[DirFd, path(LOOK), Flags(&names::ACCESS)]),
    ("faccessat2", &[DirFd, path_at(LOOK, 3), Flags(&names::ACCESS), Flags(&names::AT_ACCESS)]),
    ("readlinkat", &[DirFd, LINK_OR_FD]),
    ("mkdir", &[entry(MAKE), Mode]),
    ("mkdirat", &[DirFd, entry(MAKE), Mode]),
    ("mknod", &[entry(MAKE), FileMode, Device(1)]),
    ("mknodat", &[DirFd, entry(MAKE), FileMode, Device(2)]),
    ("rmdir unlink", &[entry(REMOVE)]),
    ("unlinkat", &[DirFd, entry(REMOVE), Flags(&names::AT_UNLINK)]),
    ("rename", &[entry(MOVE_FROM), entry(MOVE_TO)]),
    ("renameat", &[DirFd, entry(MOVE_FROM), DirFd, entry(MOVE_TO)]),
    ("renameat2", &[DirFd, renamed(MOVE_FROM), DirFd, renamed(MOVE_TO), Flags(&names::RENAME)]),
    ("link", &[entry(LINK_FROM), entry(MOVE_TO)]),
    ("linkat", &[DirFd, entry_at(LINK_FROM, 4), DirFd, entry(MOVE_TO), AT]),
    ("symlink", &[Text, entry(MAKE)]),
    ("symlinkat", &[Text, DirFd, entry(MAKE)]),
    ("chmod", &[path(SET), Mode]),
    ("fchmodat", &[DirFd, path(SET), Mode]),
    ("fchmodat2", &[DirFd, path_at(SET, 3), Mode, AT]),
    ("chown", &[path(SET), Int, Int]),
    ("lchown", &[entry(SET), Int, Int]),
    ("fchownat", &[DirFd, path_at(SET, 4), Int, Int, AT]),
    ("truncate", &[path(Access::TRUNCATE), Size]),
    ("utime utimes", &[path(SET)]),
    ("futimesat", &[DirFd, path(SET)]),
    ("utimensat", &[DirFd, path_at(SET, 3), Skip, AT]),
    ("getxattr", &[path(LOOK), Text]),
    ("lgetxattr", &[entry(LOOK), Text]),
    ("setxattr", &[path(SET), Text, Skip, Skip, XATTR]),
    ("lsetxattr", &[entry(SET), Text, Skip, Skip, XATTR]),
    ("removexattr", &[path(SET), Text]),
    ("lremovexattr", &[entry(SET), Text]),
    ("getxattrat", &[DirFd, path_at(LOOK, 2), AT, Text]),
    ("setxattrat removexattrat", &[DirFd, path_at(SET, 2), AT, Text]),
    ("file_getattr", &[DirFd, path_at(LOOK, 4), Skip, Skip, AT]),
    ("file_setattr", &[DirFd, path_at(SET, 4), Skip, Skip, AT]),
    ("execve", &[path(Access::EXECUTE)]),
    ("execveat", &[DirFd, path_at(Access::EXECUTE, 4), Skip, Skip, AT]),
    ("inotify_add_watch", &[Int, keep_if(2, 1 << 25), Flags(&names::INOTIFY)]),
    ("fanotify_mark", &[Int, Hex, Hex, DirFd, keep_if(1, 4)]),
    ("name_to_handle_at", &[DirFd, entry_at(LOOK, 4), Skip, Skip, Hex]),
    ("mount", &[Text, path(LOOK), Text, Flags(&names::MOUNT)]),
    ("umount2", &[keep_if(1, 8), Flags(&names::UMOUNT)]),
    ("pivot_root", &[path(LOOK), path(LOOK)]),
    ("open_tree open_tree_attr", &[DirFd, path_at(LOOK, 2), Hex]),
    ("move_mount", &[DirFd, moved(1, 4), DirFd, moved(0x10, 0x40), Hex]),
    ("fspick", &[DirFd, rule(LOOK, Last::KeepIf((2, 2)), Empty::If((2, 8))), Hex]),
    ("mount_setattr", &[DirFd, path_at(LOOK, 2), AT]),
    ("swapon", &[path(READ.with(Access::WRITE)), Hex]),
    ("acct", &[path(Access::WRITE)]),
    ("quotactl", &[Hex, path(LOOK), Int]),
];

pub static DESCRIPTORS: &[Signature] = &[
    ("pipe sync getcwd inotify_init", &[]),
    (
        "close fstat fstatfs dup fsync fdatasync syncfs getdents getdents64 fchdir flistxattr select pselect6 \
         epoll_create signalfd timerfd_gettime cachestat eventfd io_setup mq_notify mq_getsetattr",
        &[Int],
    ),
    ("dup2 inotify_rm_watch", &[Int, Int]),
    ("fchown epoll_ctl", &[Int, Int, Int]),
    ("read write vmsplice mq_timedreceive", &[Int, Skip, Size]),
    ("readv writev epoll_pwait2", &[Int, Skip, Int]),
    ("pread64 pwrite64", &[Int, Skip, Size, Size]),
    ("preadv pwritev preadv2 pwritev2", &[Int, Skip, Int, Size]),
    ("epoll_wait epoll_pwait", &[Int, Skip, Int, Int]),
    ("ftruncate", &[Int, Size]),
    ("readahead", &[Int, Size, Size]),
    ("lseek", &[Int, Size, Int]),
    ("sync_file_range", &[Int, Size, Size, Hex]),
    ("fadvise64", &[Int, Size, Size, Int]),
    ("fallocate", &[Int, Hex, Size, Size]),
    ("tee", &[Int, Int, Size]),
    ("sendfile", &[Int, Int, Skip, Size]),
    ("copy_file_range splice", &[Int, Skip, Int, Skip, Size]),
    ("epoll_create1 inotify_init1 memfd_secret io_destroy io_cancel", &[Hex]),
    ("flock eventfd2 timerfd_create timerfd_settime", &[Int, Hex]),
    ("close_range", &[Int, Int, Hex]),
    ("signalfd4", &[Int, Skip, Skip, Hex]),
    ("io_submit", &[Hex, Int]),
    ("io_getevents io_pgetevents", &[Hex, Int, Int]),
    ("poll", &[Skip, Int, Int]),
    ("ppoll", &[Skip, Int]),
    ("dup3", &[Int, Int, OPEN]),
    ("pipe2", &[Skip, OPEN]),
    ("fanotify_init", &[Hex, OPEN]),
    ("open_by_handle_at", &[Int, Pointer, OPEN]),
    ("fcntl", &[Int, Choice(names::FCNTL), Hex]),
    ("ioctl", &[Int, Choice(names::IOCTL)]),
    ("umask", &[Mode]),
    ("fchmod", &[Int, Mode]),
    ("fgetxattr fremovexattr", &[Int, Text]),
    ("fsetxattr", &[Int, Text, Skip, Skip, XATTR]),
    ("memfd_create", &[Text, Flags(&names::MEMFD)]),
    ("fsopen", &[Text, Hex]),
    ("fsconfig", &[Int, Int, Text]),
    ("fsmount", &[Int, Hex, Hex]),
    ("statmount listmount", &[Pointer]),
    ("quotactl_fd", &[Int, Hex, Int]),
    ("mq_open", &[Text, OPEN, OpenMode(1)]),
    ("mq_unlink", &[Text]),
    ("mq_timedsend", &[Int, Skip, Size, Int]),
];
