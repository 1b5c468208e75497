//! Whether the kernel would start a path, and if not, why: shared by the search and the examination.

use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::Outcome;
use crate::sys::{executable, plain};
use crate::text::tame;

/// Why a path cannot be executed, as a clause that follows "cannot run 'X': ".
#[derive(Debug, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("no such file; check the spelling and the working directory")]
    Missing,
    #[error("it is a symbolic link whose target does not exist; restore the target or name another file")]
    DanglingLink,
    #[error(
        "a part of the path before the last is not a directory; check the path, and for a '/' at its end"
    )]
    NotADirectory,
    #[error("it is a directory; name a program inside it")]
    Directory,
    /// A device, a FIFO or a socket.
    #[error("it is not a regular file; name a program")]
    Special,
    /// Nobody has the permission.
    #[error("it has no execute permission; give it one with 'chmod +x'")]
    NoExecuteBit,
    /// This user has no permission, or may not even look at it.
    #[error(
        "permission denied; check the owner and mode of the file and of its directories, and that its file system is \
         not mounted 'noexec'"
    )]
    Denied,
    #[error("its symbolic links form a loop; replace one of them by a file")]
    LinkLoop,
    #[error("the name is too long; use a shorter path")]
    TooLong,
    #[error("{}", plain(.0))]
    Other(io::Error),
}

impl Obstacle {
    pub(super) fn from_io(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOENT) => Self::Missing,
            Some(libc::ENOTDIR) => Self::NotADirectory,
            Some(libc::EACCES | libc::EPERM) => Self::Denied,
            Some(libc::ELOOP) => Self::LinkLoop,
            Some(libc::ENAMETOOLONG) => Self::TooLong,
            _ => Self::Other(error),
        }
    }

    /// Tells a link without target from no file at all, because the advice differs. For names that somebody
    /// wrote down: a search of PATH need not ask again in each directory that lacks the command.
    pub(super) fn look_for_link(self, path: &Path) -> Self {
        match self {
            Self::Missing if path.symlink_metadata().is_ok() => Self::DanglingLink,
            other => other,
        }
    }

    /// Not found if there is no such file; a file that cannot be executed was found.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Missing | Self::DanglingLink | Self::NotADirectory | Self::TooLong => Outcome::NotFound,
            _ => Outcome::NotExecutable,
        }
    }
}

/// Follows `path` to a regular file that this process may execute.
pub(super) fn executable(path: &Path) -> Result<Metadata, Obstacle> {
    let metadata = std::fs::metadata(path).map_err(Obstacle::from_io)?;
    if metadata.is_dir() {
        return Err(Obstacle::Directory);
    }
    if !metadata.is_file() {
        return Err(Obstacle::Special);
    }
    match executable::may_execute(path) {
        Ok(()) => Ok(metadata),
        Err(_) if metadata.mode() & 0o111 == 0 => Err(Obstacle::NoExecuteBit),
        Err(error) => Err(Obstacle::from_io(error)),
    }
}

/// A name in quotes, fit for a terminal: names and headers come from strangers, and an escape sequence in one
/// must not reach the screen.
pub(super) struct Quoted<'a>(pub &'a OsStr);

impl<'a> Quoted<'a> {
    pub(super) fn path(path: &'a Path) -> Self {
        Self(path.as_os_str())
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('\'')?;
        for c in self.0.to_string_lossy().chars() {
            if tame(c) == c { f.write_char(c)? } else { write!(f, "{}", c.escape_default())? }
        }
        f.write_char('\'')
    }
}
