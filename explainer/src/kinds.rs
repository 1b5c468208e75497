//! The calls that are remembered: each as the system call that it becomes, with the places of its paths.

/// Where a path is among the arguments.
pub struct Path {
    /// Its place.
    pub at: usize,
    /// The place of the directory that it starts at.
    pub directory: Option<usize>,
    /// Whether it is text that leads nowhere yet: what a symbolic link will say.
    pub is_text: bool,
    /// The place of its length, if it is no string but an address of a socket.
    pub length: Option<usize>,
}

/// A system call on paths.
pub struct Kind {
    /// Its number.
    pub number: u32,
    /// Its paths.
    pub paths: &'static [Path],
    /// Whether it gives a file another name, so that EXDEV may be a refusal.
    pub moves: bool,
    /// Whether children make it that still have their parent's memory (vfork(2)).
    pub is_of_children: bool,
}

const fn at(at: usize) -> Path {
    Path { at, directory: None, is_text: false, length: None }
}

const fn below(directory: usize) -> Path {
    Path { at: directory + 1, directory: Some(directory), is_text: false, length: None }
}

const fn kind(numbers: [u32; 2], paths: &'static [Path]) -> Kind {
    Kind {
        number: numbers[cfg!(target_arch = "aarch64") as usize],
        paths,
        moves: false,
        is_of_children: false,
    }
}

const fn moving(numbers: [u32; 2]) -> Kind {
    const BOTH: &[Path] = &[below(0), below(2)];
    Kind { moves: true, ..kind(numbers, BOTH) }
}

/// openat(2), and what opens files by way of it.
pub static OPENAT: Kind = kind([257, 56], &[below(0)]);
/// mkdirat(2).
pub static MKDIRAT: Kind = kind([258, 34], &[below(0)]);
/// mknodat(2).
pub static MKNODAT: Kind = kind([259, 33], &[below(0)]);
/// unlinkat(2).
pub static UNLINKAT: Kind = kind([263, 35], &[below(0)]);
/// renameat(2).
pub static RENAMEAT: Kind = moving([264, 38]);
/// renameat2(2).
pub static RENAMEAT2: Kind = moving([316, 276]);
/// linkat(2).
pub static LINKAT: Kind = moving([265, 37]);
/// symlinkat(2).
pub static SYMLINKAT: Kind =
    kind([266, 36], &[Path { at: 0, directory: None, is_text: true, length: None }, below(1)]);
/// readlinkat(2).
pub static READLINKAT: Kind = kind([267, 78], &[below(0)]);
/// faccessat(2).
pub static FACCESSAT: Kind = kind([269, 48], &[below(0)]);
/// newfstatat(2).
pub static NEWFSTATAT: Kind = kind([262, 79], &[below(0)]);
/// statx(2).
pub static STATX: Kind = kind([332, 291], &[below(0)]);
/// truncate(2).
pub static TRUNCATE: Kind = kind([76, 45], &[at(0)]);
/// chdir(2).
pub static CHDIR: Kind = Kind { is_of_children: true, ..kind([80, 49], &[at(0)]) };
/// statfs(2).
pub static STATFS: Kind = kind([137, 43], &[at(0)]);
/// execve(2).
pub static EXECVE: Kind = Kind { is_of_children: true, ..kind([59, 221], &[at(0)]) };
/// fchmodat(2).
pub static FCHMODAT: Kind = kind([268, 53], &[below(0)]);
/// fchownat(2).
pub static FCHOWNAT: Kind = kind([260, 54], &[below(0)]);
/// setxattr(2).
pub static SETXATTR: Kind = kind([188, 5], &[at(0)]);
/// lsetxattr(2).
pub static LSETXATTR: Kind = kind([189, 6], &[at(0)]);
/// wait4(2), for a child that a limit ended.
pub static WAIT4: Kind = kind([61, 260], &[]);
/// sendto(2).
pub static SENDTO: Kind = kind([44, 206], &[Path { at: 4, directory: None, is_text: true, length: Some(5) }]);
/// kill(2).
pub static KILL: Kind = kind([62, 129], &[]);
/// getpriority(2).
pub static GETPRIORITY: Kind = kind([140, 141], &[]);
/// setpriority(2).
pub static SETPRIORITY: Kind = kind([141, 140], &[]);
/// sched_setscheduler(2).
pub static SCHED_SETSCHEDULER: Kind = kind([144, 119], &[]);
/// setresuid(2), and what sets less.
pub static SETRESUID: Kind = kind([117, 147], &[]);
/// setresgid(2), and what sets less.
pub static SETRESGID: Kind = kind([119, 149], &[]);
/// setgroups(2).
pub static SETGROUPS: Kind = kind([116, 159], &[]);
/// capset(2).
pub static CAPSET: Kind = kind([126, 91], &[]);
/// ptrace(2).
pub static PTRACE: Kind = kind([101, 117], &[]);
/// prlimit64(2).
pub static PRLIMIT64: Kind = kind([302, 261], &[]);
/// pipe2(2).
pub static PIPE2: Kind = kind([293, 59], &[]);
/// socket(2).
pub static SOCKET: Kind = kind([41, 198], &[]);
/// write(2).
pub static WRITE: Kind = kind([1, 64], &[]);
/// bind(2).
pub static BIND: Kind = kind([49, 200], &[Path { at: 1, directory: None, is_text: true, length: Some(2) }]);

/// A call by its number, as programs make it that libc has no function for.
pub fn numbered(number: u32) -> Kind {
    const KNOWN: [&Kind; 6] = [&OPENAT, &EXECVE, &TRUNCATE, &RENAMEAT2, &STATX, &FACCESSAT];
    let known = KNOWN.iter().find(|kind| kind.number == number);
    known.map_or(Kind { number, ..kind([0; 2], &[]) }, |kind| Kind { ..**kind })
}
