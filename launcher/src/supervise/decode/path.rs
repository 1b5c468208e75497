//! What a call wants with a path, from its flags.

use super::Access;
use super::table::{Bit, Empty, Last, PathRule};

const O_ACCMODE: u64 = libc::O_ACCMODE as u64;
const O_RDONLY: u64 = libc::O_RDONLY as u64;
const O_WRONLY: u64 = libc::O_WRONLY as u64;
const O_CREAT: u64 = libc::O_CREAT as u64;
const O_EXCL: u64 = libc::O_EXCL as u64;
const O_TRUNC: u64 = libc::O_TRUNC as u64;
const O_DIRECTORY: u64 = libc::O_DIRECTORY as u64;
const O_NOFOLLOW: u64 = libc::O_NOFOLLOW as u64;
const O_PATH: u64 = libc::O_PATH as u64;
const O_TMPFILE: u64 = libc::O_TMPFILE as u64;

const RESOLVE_NO_SYMLINKS: u64 = 4;

/// `struct open_how`.
#[derive(Clone, Copy)]
pub struct How {
    pub flags: u64,
    pub mode: u64,
    pub resolve: u64,
}

/// What is known about a path besides its name.
pub struct Use {
    pub access: Access,
    pub follow: bool,
    pub empty: bool,
}

/// Applies a rule to the call's arguments; `how` is there if the call has a readable one.
pub fn used(rule: &PathRule, args: &[u64; 6], how: Option<How>) -> Option<Use> {
    let set = |(argument, bit): Bit| args.get(argument).is_some_and(|value| value & bit != 0);
    let empty = match rule.empty {
        Empty::Never => false,
        Empty::Always => true,
        Empty::If(bit) => set(bit),
    };
    let more = rule.more.filter(|&(bit, _)| set(bit)).map_or(Access::NONE, |(_, access)| access);
    let (wanted, follow) = match rule.last {
        Last::Follow => (Access::NONE, true),
        Last::Keep => (Access::NONE, false),
        Last::KeepIf(bit) => (Access::NONE, !set(bit)),
        Last::FollowIf(bit) => (Access::NONE, set(bit)),
        Last::Open(argument) => opened(args.get(argument).copied().unwrap_or_default()),
        Last::OpenHow => {
            let how = how?;
            let (access, follow) = opened(how.flags);
            (access, follow && how.resolve & RESOLVE_NO_SYMLINKS == 0)
        }
    };
    Some(Use { access: rule.access | more | wanted, follow, empty })
}

/// The flags make a file, so the mode counts.
pub fn makes_file(flags: u64) -> bool {
    flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE
}

/// What `open`'s flags ask for, and whether they follow a link.
fn opened(flags: u64) -> (Access, bool) {
    let exclusive = flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL;
    if flags & O_PATH != 0 {
        // The kernel then looks at no other flag but O_DIRECTORY, O_NOFOLLOW and O_CLOEXEC.
        return (Access::METADATA, flags & O_NOFOLLOW == 0);
    }
    let temporary = flags & O_TMPFILE == O_TMPFILE;
    let mut access = match flags & O_ACCMODE {
        O_RDONLY if flags & O_DIRECTORY != 0 => Access::LIST,
        O_RDONLY => Access::READ,
        O_WRONLY => Access::WRITE,
        _ => Access::READ | Access::WRITE,
    };
    // The file of O_TMPFILE has no name: nothing is made in the directory.
    if flags & O_CREAT != 0 && !temporary {
        access = access | Access::CREATE;
    }
    if flags & O_TRUNC != 0 {
        access = access | Access::TRUNCATE;
    }
    (access, flags & O_NOFOLLOW == 0 && !exclusive)
}
