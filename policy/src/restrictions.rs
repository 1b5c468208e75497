// Named restrictions on the arguments of a system call, as data. The build script includes this file and compiles
// each entry with seccompiler, so it uses only its own definitions.
//
// A restriction is a list of alternatives. Each alternative is a list of conditions that must all hold (the fields of
// an OCI seccomp `args` entry). Arguments that the kernel reads as 32 bits are compared as 32 bits (`Width::Dword`):
// a comparison of 64 bits would let `TIOCSTI + 2^32` through. Flag values are the same on x86_64 and aarch64.

/// The part of an argument that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// The low 32 bits: for arguments that the kernel reads as `int` or `unsigned int`.
    Dword,
    /// All 64 bits: for pointers and lengths.
    Qword,
}

/// A comparison. The names are those of libseccomp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less than, unsigned.
    Lt,
    /// Less than or equal, unsigned.
    Le,
    /// Greater than, unsigned.
    Gt,
    /// Greater than or equal, unsigned.
    Ge,
    /// Equal after masking the argument.
    MaskedEq(u64),
}

/// One comparison of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The index of the argument, from 0.
    pub arg: u8,
    /// The part that is compared.
    pub width: Width,
    /// The comparison.
    pub op: Op,
    /// The value to compare with.
    pub value: u64,
}

/// A named restriction of one system call: `call[name]`.
#[derive(Clone, Copy, Debug)]
pub struct Restriction {
    /// The name of the system call.
    pub call: &'static str,
    /// The name of the restriction.
    pub name: &'static str,
    /// The allowed use, in words.
    pub meaning: &'static str,
    /// The alternatives. The system call matches if all conditions of one of them hold.
    pub any: &'static [&'static [Condition]],
}

const fn eq(arg: u8, value: u32) -> Condition {
    Condition { arg, width: Width::Dword, op: Op::Eq, value: value as u64 }
}
const fn ne(arg: u8, value: u32) -> Condition {
    Condition { arg, width: Width::Dword, op: Op::Ne, value: value as u64 }
}
const fn null(arg: u8) -> Condition {
    Condition { arg, width: Width::Qword, op: Op::Eq, value: 0 }
}
const fn bits(arg: u8, mask: u32, value: u32) -> Condition {
    Condition { arg, width: Width::Dword, op: Op::MaskedEq(mask as u64), value: value as u64 }
}

const CREATING: u32 = 0o100 | 0o20000000; // O_CREAT, and the bit that only O_TMPFILE has
// Both together are the access mode 3, for ioctl(2) only: it neither reads nor writes, so no path rule applies.
const ONLY_WRITING: u32 = 0o1; // O_WRONLY
const READING_TOO: u32 = 0o2; // O_RDWR
const CHANGING: u32 = 0o3 | CREATING | 0o1000; // O_ACCMODE, O_TRUNC
const O_ASYNC: u32 = 0o20000;
const SET_ID: u32 = 0o6000; // S_ISUID | S_ISGID
const SET_USER_ID: u32 = 0o4000; // S_ISUID
const NEW_NAMESPACES: u32 = 0x7e02_0000; // every CLONE_NEW* that clone(2) takes
const CLONE_THREAD: u32 = 0x0001_0000;
const TRACER: u32 = 0x0080_0700; // CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED, and no signal at its end
const SOCK_TYPE: u32 = 0xf; // SOCK_TYPE_MASK: the rest are SOCK_CLOEXEC and SOCK_NONBLOCK
const STREAM: u32 = 1;
const DGRAM: u32 = 2;
const RAW: u32 = 3;
const SEQPACKET: u32 = 5;
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const SOL_IP: u32 = 0;
const SOL_SOCKET: u32 = 1;
const SOL_IPV6: u32 = 41;
const TCP: u32 = 6;
const UDP: u32 = 17;
const EXEC: u32 = 4; // PROT_EXEC
const MOVING: u32 = 6; // MPOL_MF_MOVE | MPOL_MF_MOVE_ALL
const WRITE_EXEC: u32 = 6; // PROT_WRITE | PROT_EXEC
const ANONYMOUS: u32 = 0x20; // MAP_ANONYMOUS
const SHM_EXEC: u32 = 0o100000;
const MSG_FASTOPEN: u32 = 0x2000_0000;
const TCP_ULP: u32 = 31;

const UNIX_STREAM: &[&[Condition]] =
    &[&[eq(0, AF_UNIX), bits(1, SOCK_TYPE, STREAM)], &[eq(0, AF_UNIX), bits(1, SOCK_TYPE, SEQPACKET)]];

/// Every named restriction, sorted by call, then by name.
pub const RESTRICTIONS: &[Restriction] = &[
    Restriction {
        call: "chmod",
        name: "no-setid",
        meaning: "no set-user-ID or set-group-ID bit",
        any: &[&[bits(1, SET_ID, 0)]],
    },
    Restriction {
        call: "clone",
        name: "no-namespace",
        meaning: "processes and threads, no new namespaces",
        any: &[&[bits(0, NEW_NAMESPACES, 0)]],
    },
    Restriction {
        call: "clone",
        name: "thread",
        meaning: "threads only",
        any: &[&[bits(0, CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD)]],
    },
    Restriction {
        call: "clone",
        name: "tracer",
        meaning: "a process that shares memory, descriptors and directory with its maker, as LeakSanitizer's",
        any: &[&[eq(0, TRACER)]],
    },
    Restriction {
        call: "creat",
        name: "no-setid",
        meaning: "no set-user-ID or set-group-ID bit",
        any: &[&[bits(1, SET_ID, 0)]],
    },
    Restriction {
        call: "fchmod",
        name: "no-setid",
        meaning: "no set-user-ID or set-group-ID bit",
        any: &[&[bits(1, SET_ID, 0)]],
    },
    Restriction {
        call: "fchmodat",
        name: "no-setid",
        meaning: "no set-user-ID or set-group-ID bit",
        any: &[&[bits(2, SET_ID, 0)]],
    },
    Restriction {
        call: "fchmodat2",
        name: "no-setid",
        meaning: "no set-user-ID or set-group-ID bit",
        any: &[&[bits(2, SET_ID, 0)]],
    },
    Restriction {
        call: "fcntl",
        name: "basic",
        meaning: "duplicating, flags, record locks, pipe sizes and seals; no leases, no signal delivery to others",
        any: &[
            &[Condition { arg: 1, width: Width::Dword, op: Op::Le, value: 3 }], // F_DUPFD F_GETFD F_SETFD F_GETFL
            &[eq(1, 4), bits(2, O_ASYNC, 0)], // F_SETFL: with O_ASYNC a terminal signals its whole foreground group
            &[eq(1, 5)],                      // F_GETLK
            &[eq(1, 6)],                      // F_SETLK
            &[eq(1, 7)],                      // F_SETLKW
            &[eq(1, 9)],                      // F_GETOWN
            &[eq(1, 16)],                     // F_GETOWN_EX, which glibc calls for F_GETOWN
            &[eq(1, 36)],                     // F_OFD_GETLK
            &[eq(1, 37)],                     // F_OFD_SETLK
            &[eq(1, 38)],                     // F_OFD_SETLKW
            &[eq(1, 1030)],                   // F_DUPFD_CLOEXEC
            &[eq(1, 1031)],                   // F_SETPIPE_SZ
            &[eq(1, 1032)],                   // F_GETPIPE_SZ
            &[eq(1, 1033)],                   // F_ADD_SEALS
            &[eq(1, 1034)],                   // F_GET_SEALS
        ],
    },
    Restriction {
        call: "fcntl",
        name: "owner",
        meaning: "which process or group a descriptor signals, if it does",
        any: &[&[eq(1, 8)], &[eq(1, 15)]], // F_SETOWN, F_SETOWN_EX
    },
    Restriction {
        call: "ioctl",
        name: "clone-file",
        meaning: "sharing file contents between files that are already open",
        any: &[&[eq(1, 0x4004_9409)], &[eq(1, 0x4020_940d)]], // FICLONE, FICLONERANGE
    },
    Restriction {
        call: "ioctl",
        name: "query",
        meaning: "queries about a terminal or descriptor, close-on-exec and non-blocking flags",
        any: &[
            &[eq(1, 0x5401)],      // TCGETS
            &[eq(1, 0x540f)],      // TIOCGPGRP
            &[eq(1, 0x5413)],      // TIOCGWINSZ
            &[eq(1, 0x541b)],      // FIONREAD
            &[eq(1, 0x5421)],      // FIONBIO
            &[eq(1, 0x5450)],      // FIONCLEX
            &[eq(1, 0x5451)],      // FIOCLEX
            &[eq(1, 0x802c_542a)], // TCGETS2
        ],
    },
    Restriction {
        call: "ioctl",
        name: "safe",
        meaning: "tty-safe, and nothing that changes files or directories that were only opened for reading",
        // File systems accept these from the owner of a file, however it was opened, and no Landlock rule applies.
        any: &[&[
            ne(1, 0x5412),
            ne(1, 0x541c),
            ne(1, 0x541d),
            ne(1, 0x5423),
            ne(1, 0x540a),
            ne(1, 0x540c),
            ne(1, 0x5602),
            ne(1, 0x5606),
            ne(1, 0x560f),
            ne(1, 0x4b3a),
            ne(1, 0x4b45),
            ne(1, 0x4b51),
            ne(1, 0x5452),
            ne(1, 0x8901),
            ne(1, 0x8902),
            ne(1, 0x4008_6602), // FS_IOC_SETFLAGS
            ne(1, 0x4004_6602), // FS_IOC32_SETFLAGS
            ne(1, 0x401c_5820), // FS_IOC_FSSETXATTR
            ne(1, 0x4008_7602), // FS_IOC_SETVERSION
            ne(1, 0x4008_6604), // EXT4_IOC_SETVERSION
            ne(1, 0x6609),      // EXT4_IOC_MIGRATE
            ne(1, 0xc028_660f), // EXT4_IOC_MOVE_EXT: exchanges contents, and no time of the file tells of it
            ne(1, 0xc0c0_586d), // XFS_IOC_SWAPEXT
            ne(1, 0x4028_5881), // XFS_IOC_EXCHANGE_RANGE
            ne(1, 0xc020_f509), // F2FS_IOC_MOVE_RANGE
            ne(1, 0x4080_6685), // FS_IOC_ENABLE_VERITY: makes the contents read-only for ever
            ne(1, 0x800c_6613), // FS_IOC_SET_ENCRYPTION_POLICY
            ne(1, 0xc050_6617), // FS_IOC_ADD_ENCRYPTION_KEY
            ne(1, 0xc040_6618), // FS_IOC_REMOVE_ENCRYPTION_KEY: locks the encrypted files of the user
            ne(1, 0x5000_9401), // BTRFS_IOC_SNAP_CREATE: a snapshot gives denied files another name
            ne(1, 0x5000_9417), // BTRFS_IOC_SNAP_CREATE_V2
            ne(1, 0x5000_940e), // BTRFS_IOC_SUBVOL_CREATE
            ne(1, 0x5000_9418), // BTRFS_IOC_SUBVOL_CREATE_V2
            ne(1, 0x5000_940f), // BTRFS_IOC_SNAP_DESTROY
            ne(1, 0x5000_943f), // BTRFS_IOC_SNAP_DESTROY_V2
            ne(1, 0x4008_941a), // BTRFS_IOC_SUBVOL_SETFLAGS
            ne(1, 0xc0c8_9425), // BTRFS_IOC_SET_RECEIVED_SUBVOL
            ne(1, 0xc0c0_9425), // BTRFS_IOC_SET_RECEIVED_SUBVOL_32
            ne(1, 0x5000_9402), // BTRFS_IOC_DEFRAG
            ne(1, 0x4030_9410), // BTRFS_IOC_DEFRAG_RANGE
            ne(1, 0x4020_bc10), // BCH_IOCTL_SUBVOLUME_CREATE: also makes snapshots
            ne(1, 0x4020_bc11), // BCH_IOCTL_SUBVOLUME_DESTROY
            ne(1, 0x8008_bc40), // BCHFS_IOC_REINHERIT_ATTRS: changes a file in the directory, by its name
            ne(1, 0x4018_6f04), // OCFS2_IOC_REFLINK: copies a file by its name
            ne(1, 0x4028_9702), // CEPH_IOC_SET_LAYOUT: selects the servers that hold a file
            ne(1, 0x4028_9705), // CEPH_IOC_SET_LAYOUT_POLICY: or whatever is made in a directory
            ne(1, 0xf501),      // F2FS_IOC_START_ATOMIC_WRITE: with the next ones, empties and reverts files
            ne(1, 0xf502),      // F2FS_IOC_COMMIT_ATOMIC_WRITE
            ne(1, 0xf503),      // F2FS_IOC_START_VOLATILE_WRITE
            ne(1, 0xf504),      // F2FS_IOC_RELEASE_VOLATILE_WRITE
            ne(1, 0xf505),      // F2FS_IOC_ABORT_ATOMIC_WRITE
            ne(1, 0xf519),      // F2FS_IOC_START_ATOMIC_REPLACE
            ne(1, 0x4004_f50d), // F2FS_IOC_SET_PIN_FILE
            ne(1, 0x4004_7211), // FAT_IOCTL_SET_ATTRIBUTES
            ne(1, 0x4008_8302), // ZFS_IOC_SETDOSFLAGS
        ]],
    },
    Restriction {
        call: "ioctl",
        name: "tty-safe",
        meaning: "nothing that types into a terminal, stops its output, moves the console, changes the line \
                  discipline, locks others out or makes it send them signals",
        any: &[&[
            ne(1, 0x5412), // TIOCSTI
            ne(1, 0x541c), // TIOCLINUX
            ne(1, 0x541d), // TIOCCONS
            ne(1, 0x5423), // TIOCSETD
            ne(1, 0x540a), // TCXONC: can stop all output, also when the command has long ended
            ne(1, 0x540c), // TIOCEXCL: nobody could open it any more, also when the command has long ended
            ne(1, 0x5602), // VT_SETMODE: takes over the switching of consoles
            ne(1, 0x5606), // VT_ACTIVATE
            ne(1, 0x560f), // VT_SETACTIVATE
            ne(1, 0x4b3a), // KDSETMODE: can turn the display off
            ne(1, 0x4b45), // KDSKBMODE: can turn the keyboard off
            ne(1, 0x4b51), // KDSKBMUTE
            ne(1, 0x5452), // FIOASYNC: signals the owner; for a terminal, that is its foreground group
            ne(1, 0x8901), // FIOSETOWN: sets that owner, as F_SETOWN
            ne(1, 0x8902), // SIOCSPGRP: the same
        ]],
    },
    Restriction {
        call: "ioprio_set",
        name: "self",
        meaning: "the caller's own priority",
        any: &[&[eq(0, 1), eq(1, 0)]],
    },
    Restriction {
        call: "mbind",
        name: "local",
        meaning: "memory of the processor's own node; nothing that is there already is moved",
        // MPOL_DEFAULT, MPOL_LOCAL, and MPOL_PREFERRED without a node. The kernel takes the policy as an int.
        any: &[
            &[eq(2, 0), bits(5, MOVING, 0)],
            &[eq(2, 4), bits(5, MOVING, 0)],
            &[eq(2, 1), null(3), bits(5, MOVING, 0)],
        ],
    },
    Restriction {
        call: "migrate_pages",
        name: "self",
        meaning: "the caller's own pages",
        any: &[&[eq(0, 0)]],
    },
    Restriction {
        call: "mkdir",
        name: "no-setid",
        meaning: "no set-user-ID bit; the kernel ignores a set-group-ID bit",
        any: &[&[bits(1, SET_USER_ID, 0)]],
    },
    Restriction {
        call: "mkdirat",
        name: "no-setid",
        meaning: "no set-user-ID bit; the kernel ignores a set-group-ID bit",
        any: &[&[bits(2, SET_USER_ID, 0)]],
    },
    Restriction {
        call: "mknod",
        name: "plain",
        meaning: "regular files, FIFOs and sockets without set-id bits; no device nodes",
        any: &[
            &[bits(1, 0o170000 | SET_ID, 0)],
            &[bits(1, 0o170000 | SET_ID, 0o100000)],
            &[bits(1, 0o170000 | SET_ID, 0o010000)],
            &[bits(1, 0o170000 | SET_ID, 0o140000)],
        ],
    },
    Restriction {
        call: "mknodat",
        name: "plain",
        meaning: "regular files, FIFOs and sockets without set-id bits; no device nodes",
        any: &[
            &[bits(2, 0o170000 | SET_ID, 0)],
            &[bits(2, 0o170000 | SET_ID, 0o100000)],
            &[bits(2, 0o170000 | SET_ID, 0o010000)],
            &[bits(2, 0o170000 | SET_ID, 0o140000)],
        ],
    },
    Restriction {
        call: "mmap",
        name: "jit",
        meaning: "executable memory that no file backs or that is writable at the same time",
        any: &[&[bits(2, EXEC, EXEC), bits(3, ANONYMOUS, ANONYMOUS)], &[bits(2, WRITE_EXEC, WRITE_EXEC)]],
    },
    Restriction {
        call: "mmap",
        name: "no-exec",
        meaning: "no executable memory",
        any: &[&[bits(2, EXEC, 0)]],
    },
    Restriction {
        call: "mmap",
        name: "no-jit",
        meaning: "executable memory only from files, and not writable",
        any: &[&[bits(2, EXEC, 0)], &[bits(2, WRITE_EXEC, EXEC), bits(3, ANONYMOUS, 0)]],
    },
    Restriction { call: "move_pages", name: "self", meaning: "the caller's own pages", any: &[&[eq(0, 0)]] },
    Restriction {
        call: "mprotect",
        name: "exec",
        meaning: "making memory executable",
        any: &[&[bits(2, EXEC, EXEC)]],
    },
    Restriction {
        call: "mprotect",
        name: "no-exec",
        meaning: "not making memory executable",
        any: &[&[bits(2, EXEC, 0)]],
    },
    Restriction {
        call: "open",
        name: "no-setid",
        meaning: "new files without set-user-ID or set-group-ID bit, and opening for reading or writing",
        any: &[
            &[bits(1, CREATING | ONLY_WRITING, 0)],
            &[bits(1, CREATING | READING_TOO, 0)],
            &[bits(1, ONLY_WRITING, 0), bits(2, SET_ID, 0)],
            &[bits(1, READING_TOO, 0), bits(2, SET_ID, 0)],
        ],
    },
    Restriction {
        call: "open",
        name: "read",
        meaning: "no write access, no create, no truncate",
        any: &[&[bits(1, CHANGING, 0)]],
    },
    Restriction {
        call: "openat",
        name: "no-setid",
        meaning: "new files without set-user-ID or set-group-ID bit, and opening for reading or writing",
        any: &[
            &[bits(2, CREATING | ONLY_WRITING, 0)],
            &[bits(2, CREATING | READING_TOO, 0)],
            &[bits(2, ONLY_WRITING, 0), bits(3, SET_ID, 0)],
            &[bits(2, READING_TOO, 0), bits(3, SET_ID, 0)],
        ],
    },
    Restriction {
        call: "openat",
        name: "read",
        meaning: "no write access, no create, no truncate",
        any: &[&[bits(2, CHANGING, 0)]],
    },
    Restriction {
        call: "personality",
        name: "safe",
        meaning: "queries, the Linux default, another machine's or an older kernel's name, and no address \
                  randomisation",
        any: &[
            &[eq(0, 0)],
            &[eq(0, 0xffff_ffff)],
            &[eq(0, 0x0004_0000)], // ADDR_NO_RANDOMIZE: debuggers; nothing that has other rights is started with it
            &[eq(0, 0x0000_0008)], // PER_LINUX32
            &[eq(0, 0x0002_0000)], // UNAME26
            &[eq(0, 0x0002_0008)],
        ],
    },
    Restriction {
        call: "pkey_mprotect",
        name: "exec",
        meaning: "making memory executable",
        any: &[&[bits(2, EXEC, EXEC)]],
    },
    Restriction {
        call: "pkey_mprotect",
        name: "no-exec",
        meaning: "not making memory executable",
        any: &[&[bits(2, EXEC, 0)]],
    },
    Restriction {
        call: "prctl",
        name: "safe",
        meaning: "the caller's name, death signal, timers and the like; nothing that changes privileges",
        any: &[
            // PR_SET_PDEATHSIG PR_GET_PDEATHSIG PR_GET_DUMPABLE PR_SET_DUMPABLE are 1 to 4.
            &[Condition { arg: 0, width: Width::Dword, op: Op::Le, value: 4 }],
            &[eq(0, 7)],           // PR_GET_KEEPCAPS
            &[eq(0, 8)], // PR_SET_KEEPCAPS: for programs that change their user; there are no capabilities to keep
            &[eq(0, 15)], // PR_SET_NAME
            &[eq(0, 16)], // PR_GET_NAME
            &[eq(0, 21)], // PR_GET_SECCOMP
            &[eq(0, 23)], // PR_CAPBSET_READ
            &[eq(0, 25)], // PR_GET_TSC
            &[eq(0, 27)], // PR_GET_SECUREBITS
            &[eq(0, 29)], // PR_SET_TIMERSLACK
            &[eq(0, 30)], // PR_GET_TIMERSLACK
            &[eq(0, 34)], // PR_MCE_KILL_GET
            &[eq(0, 36)], // PR_SET_CHILD_SUBREAPER
            &[eq(0, 37)], // PR_GET_CHILD_SUBREAPER
            &[eq(0, 38)], // PR_SET_NO_NEW_PRIVS
            &[eq(0, 39)], // PR_GET_NO_NEW_PRIVS
            &[eq(0, 40)], // PR_GET_TID_ADDRESS
            &[eq(0, 41)], // PR_SET_THP_DISABLE
            &[eq(0, 42)], // PR_GET_THP_DISABLE
            &[eq(0, 47)], // PR_CAP_AMBIENT: raising needs a permitted capability, and there is none
            &[eq(0, 52)], // PR_GET_SPECULATION_CTRL
            &[eq(0, 53)], // PR_SET_SPECULATION_CTRL
            &[eq(0, 54)], // PR_PAC_RESET_KEYS
            &[eq(0, 55)], // PR_SET_TAGGED_ADDR_CTRL
            &[eq(0, 56)], // PR_GET_TAGGED_ADDR_CTRL
            &[eq(0, 62)], // PR_SCHED_CORE
            &[eq(0, 65)], // PR_SET_MDWE
            &[eq(0, 66)], // PR_GET_MDWE
            &[eq(0, 0x5356_4d41)], // PR_SET_VMA: names of anonymous mappings
            &[eq(0, 0x4155_5856)], // PR_GET_AUXV
            &[eq(0, 0x5961_6d61)], // PR_SET_PTRACER
        ],
    },
    Restriction {
        call: "prctl",
        name: "seccomp",
        meaning: "installing a further filter",
        any: &[&[eq(0, 22)]],
    },
    Restriction {
        call: "prlimit64",
        name: "self",
        meaning: "the caller's own limits; those of others can only be read",
        any: &[&[eq(0, 0)], &[null(2)]],
    },
    Restriction {
        call: "renameat2",
        name: "no-whiteout",
        meaning: "no device node left in place of the renamed file (RENAME_WHITEOUT)",
        any: &[&[bits(4, 4, 0)]],
    },
    Restriction {
        call: "sched_setaffinity",
        name: "self",
        meaning: "the caller's own processors",
        any: &[&[eq(0, 0)]],
    },
    Restriction {
        call: "sched_setattr",
        name: "self",
        meaning: "the caller's own scheduling",
        any: &[&[eq(0, 0)]],
    },
    Restriction {
        call: "sched_setparam",
        name: "self",
        meaning: "the caller's own scheduling",
        any: &[&[eq(0, 0)]],
    },
    Restriction {
        call: "sched_setscheduler",
        name: "process",
        meaning: "how a process is scheduled, but not the first one of a pid namespace",
        any: &[&[ne(0, 1)]],
    },
    Restriction {
        call: "sched_setscheduler",
        name: "self",
        meaning: "the caller's own scheduling",
        any: &[&[eq(0, 0)]],
    },
    Restriction {
        call: "sendmmsg",
        name: "no-fastopen",
        meaning: "no TCP fast open",
        any: &[&[bits(3, MSG_FASTOPEN, 0)]],
    },
    Restriction {
        call: "sendmsg",
        name: "no-fastopen",
        meaning: "no TCP fast open",
        any: &[&[bits(2, MSG_FASTOPEN, 0)]],
    },
    Restriction {
        call: "sendto",
        name: "connected",
        meaning: "sending on a socket that is already connected, with no address and no fast open",
        any: &[&[null(4), bits(3, MSG_FASTOPEN, 0)]],
    },
    Restriction {
        call: "sendto",
        name: "no-fastopen",
        meaning: "no TCP fast open",
        any: &[&[bits(3, MSG_FASTOPEN, 0)]],
    },
    Restriction {
        call: "setpriority",
        name: "process",
        meaning: "the priority of one process, but not of the first one of a pid namespace",
        any: &[&[eq(0, 0), ne(1, 1)]],
    },
    Restriction {
        call: "setpriority",
        name: "self",
        meaning: "the caller's own priority",
        any: &[&[eq(0, 0), eq(1, 0)]],
    },
    Restriction {
        call: "setsockopt",
        name: "common",
        meaning: "common options of sockets and TCP; none that changes where packets go or what they carry",
        any: &[
            // SO_REUSEADDR, SO_KEEPALIVE, SO_LINGER, sizes, time limits, SO_PASSCRED ...
            &[eq(1, SOL_SOCKET), Condition { arg: 2, width: Width::Dword, op: Op::Le, value: 21 }],
            // TCP_NODELAY, TCP_KEEPIDLE, TCP_QUICKACK, TCP_USER_TIMEOUT, TCP_NOTSENT_LOWAT ...
            &[eq(1, TCP), Condition { arg: 2, width: Width::Dword, op: Op::Le, value: 25 }],
            &[eq(1, SOL_IP), eq(2, 1)],    // IP_TOS
            &[eq(1, SOL_IPV6), eq(2, 26)], // IPV6_V6ONLY
        ],
    },
    Restriction {
        call: "setsockopt",
        name: "no-detour",
        meaning: "no option that changes where packets go, and no other protocol in place of TCP or above it",
        any: &[
            &[ne(1, SOL_SOCKET), ne(1, SOL_IP), ne(1, TCP), ne(1, SOL_IPV6)],
            &[eq(1, SOL_SOCKET), ne(2, 25), ne(2, 62)], // SO_BINDTODEVICE, SO_BINDTOIFINDEX
            &[eq(1, SOL_IP), ne(2, 4), ne(2, 50)],      // IP_OPTIONS, IP_UNICAST_IF
            &[eq(1, TCP), ne(2, TCP_ULP)],
            // Below 7 are options of RFC 2292. IPV6_PKTINFO, IPV6_HOPOPTS, IPV6_RTHDRDSTOPTS, IPV6_RTHDR, IPV6_DSTOPTS,
            // IPV6_UNICAST_IF.
            &[
                eq(1, SOL_IPV6),
                Condition { arg: 2, width: Width::Dword, op: Op::Ge, value: 7 },
                ne(2, 50),
                ne(2, 54),
                ne(2, 55),
                ne(2, 57),
                ne(2, 59),
                ne(2, 76),
            ],
        ],
    },
    Restriction {
        call: "shmat",
        name: "no-exec",
        meaning: "no executable memory (SHM_EXEC)",
        any: &[&[bits(2, SHM_EXEC, 0)]],
    },
    Restriction {
        call: "socket",
        name: "inet",
        meaning: "TCP and UDP over IPv4 and IPv6",
        any: &[
            &[eq(0, AF_INET), bits(1, SOCK_TYPE, STREAM), eq(2, 0)],
            &[eq(0, AF_INET), bits(1, SOCK_TYPE, STREAM), eq(2, TCP)],
            &[eq(0, AF_INET), bits(1, SOCK_TYPE, DGRAM), eq(2, 0)],
            &[eq(0, AF_INET), bits(1, SOCK_TYPE, DGRAM), eq(2, UDP)],
            &[eq(0, AF_INET6), bits(1, SOCK_TYPE, STREAM), eq(2, 0)],
            &[eq(0, AF_INET6), bits(1, SOCK_TYPE, STREAM), eq(2, TCP)],
            &[eq(0, AF_INET6), bits(1, SOCK_TYPE, DGRAM), eq(2, 0)],
            &[eq(0, AF_INET6), bits(1, SOCK_TYPE, DGRAM), eq(2, UDP)],
        ],
    },
    Restriction { call: "socket", name: "inet6", meaning: "sockets for IPv6", any: &[&[eq(0, AF_INET6)]] },
    Restriction {
        call: "socket",
        name: "netlink-route",
        meaning: "queries for interfaces and routes",
        any: &[
            &[eq(0, AF_NETLINK), bits(1, SOCK_TYPE, RAW), eq(2, 0)],
            &[eq(0, AF_NETLINK), bits(1, SOCK_TYPE, DGRAM), eq(2, 0)],
        ],
    },
    Restriction {
        call: "socket",
        name: "tcp",
        meaning: "TCP over IPv4 and IPv6",
        any: &[
            &[eq(0, AF_INET), bits(1, SOCK_TYPE, STREAM), eq(2, 0)],
            &[eq(0, AF_INET), bits(1, SOCK_TYPE, STREAM), eq(2, TCP)],
            &[eq(0, AF_INET6), bits(1, SOCK_TYPE, STREAM), eq(2, 0)],
            &[eq(0, AF_INET6), bits(1, SOCK_TYPE, STREAM), eq(2, TCP)],
        ],
    },
    Restriction { call: "socket", name: "unix", meaning: "UNIX-domain sockets", any: &[&[eq(0, AF_UNIX)]] },
    Restriction {
        call: "socket",
        name: "unix-stream",
        meaning: "UNIX-domain sockets that send only where they are connected",
        any: UNIX_STREAM,
    },
    Restriction {
        call: "socketpair",
        name: "unix-stream",
        meaning: "pairs of UNIX-domain sockets that send only to each other",
        any: UNIX_STREAM,
    },
    Restriction {
        call: "unshare",
        name: "no-namespace",
        meaning: "own descriptors and working directory, no new namespaces",
        any: &[&[bits(0, NEW_NAMESPACES | 0x80, 0)]], // 0x80 is CLONE_NEWTIME
    },
];
