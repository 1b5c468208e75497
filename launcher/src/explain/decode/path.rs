//! What a call wants with a path, from its flags.

use crate::explain::decode::table::{Bit, Empty, Last, PathRule};
use crate::explain::decode::{Access, PathArgument};

/// `struct open_how`.
#[derive(Clone, Copy)]
pub struct OpenHow {
    pub flags: u64,
    pub mode: u64,
    pub resolve: u64,
}

/// Applies a rule to the call's arguments. `None` for a call without the `how` that it needs.
pub fn argument(
    dirfd: Option<i32>,
    path: Vec<u8>,
    rule: &PathRule,
    args: &[u64; 6],
    how: Option<OpenHow>,
) -> Option<PathArgument> {
    const RESOLVE_NO_SYMLINKS: u64 = 4;
    let is_set = |(argument, bit): Bit| args.get(argument).is_some_and(|value| value & bit != 0);
    let empty_path_ok = match rule.empty {
        Empty::Never => false,
        Empty::Always => true,
        Empty::If(bit) => is_set(bit),
    };
    let more = rule.more.filter(|&(bit, _)| is_set(bit)).map_or(Access::NONE, |(_, access)| access);
    let (wanted, follow) = match rule.last {
        Last::Follow => (Access::NONE, true),
        Last::Keep => (Access::NONE, false),
        Last::KeepIf(bit) => (Access::NONE, !is_set(bit)),
        Last::FollowIf(bit) => (Access::NONE, is_set(bit)),
        Last::Open(argument) => opened(args.get(argument).copied().unwrap_or_default()),
        Last::OpenHow => {
            let how = how?;
            let (access, follow) = opened(how.flags);
            (access, follow && how.resolve & RESOLVE_NO_SYMLINKS == 0)
        }
    };
    Some(PathArgument { dirfd, path, access: rule.access | more | wanted, follow, empty_path_ok })
}

/// Whether all of these flags are set.
fn has(flags: u64, wanted: i32) -> bool {
    flags & wanted as u64 == wanted as u64
}

/// The flags make a file, so the mode counts.
pub fn makes_file(flags: u64) -> bool {
    has(flags, libc::O_CREAT) || has(flags, libc::O_TMPFILE)
}

/// What `open`'s flags ask for, and whether they follow a link.
fn opened(flags: u64) -> (Access, bool) {
    let follow = !has(flags, libc::O_NOFOLLOW);
    if has(flags, libc::O_PATH) {
        // Beside it, the kernel looks only at O_DIRECTORY, O_NOFOLLOW and O_CLOEXEC.
        return (Access::METADATA, follow);
    }
    let mut access = match (flags & libc::O_ACCMODE as u64) as i32 {
        libc::O_RDONLY if has(flags, libc::O_DIRECTORY) => Access::LIST,
        libc::O_RDONLY => Access::READ,
        libc::O_WRONLY => Access::WRITE,
        _ => Access::READ | Access::WRITE,
    };
    // The file of O_TMPFILE has no name: nothing is made in the directory.
    if has(flags, libc::O_CREAT) && !has(flags, libc::O_TMPFILE) {
        access = access | Access::CREATE;
    }
    if has(flags, libc::O_TRUNC) {
        access = access | Access::TRUNCATE;
    }
    (access, follow && !has(flags, libc::O_CREAT | libc::O_EXCL))
}
