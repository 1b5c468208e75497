//! Whether a path names something the kernel would start, and if not, why: shared by the search and the examination.

use std::ffi::OsStr;
use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::sys::plain;

use super::sys;
use crate::profile::tame;

/// Exit status for a command that was found but cannot be executed.
pub(super) const CANNOT_EXECUTE: u8 = 126;
/// Exit status for a command that does not exist.
pub(super) const NOT_FOUND: u8 = 127;

/// Why a path cannot be executed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Obstacle {
    /// Nothing has this name.
    Missing,
    /// A symbolic link has this name, and what it points to does not exist.
    DanglingLink,
    /// Something before the last component is no directory.
    NotADirectory,
    /// It is a directory.
    Directory,
    /// It is a device, a FIFO or a socket.
    Special,
    /// It lacks every execute permission.
    NoExecuteBit,
    /// It may not be executed, or not even be looked at, by this user.
    Denied,
    /// Its symbolic links go round in a circle.
    LinkLoop,
    /// Its name is longer than the kernel takes.
    TooLong,
    /// Anything else the kernel said.
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

    /// A link without target is told apart from no file at all, since what to do about it differs. For names that
    /// somebody wrote down; a search of PATH has no need to ask again for each directory that lacks the command.
    pub(super) fn look_for_link(self, path: &Path) -> Self {
        match self {
            Self::Missing if path.symlink_metadata().is_ok() => Self::DanglingLink,
            other => other,
        }
    }

    /// 127 where there is no such file, 126 where there is one that cannot be executed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Missing | Self::DanglingLink | Self::NotADirectory | Self::TooLong => NOT_FOUND,
            _ => CANNOT_EXECUTE,
        }
    }
}

impl fmt::Display for Obstacle {
    /// A clause that follows "cannot run 'X': ".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "no such file; check the spelling and the working directory",
            Self::DanglingLink => {
                "it is a symbolic link whose target does not exist; restore the target or name another file"
            }
            Self::NotADirectory => {
                "a part of the path before the last is not a directory; check the path, and for a '/' at its end"
            }
            Self::Directory => "it is a directory; name a program inside it",
            Self::Special => "it is not a regular file; name a program",
            Self::NoExecuteBit => "it has no execute permission; give it one with 'chmod +x'",
            Self::Denied => {
                "permission denied; check the owner and mode of the file and of its directories, and that \
                 its file system is not mounted 'noexec'"
            }
            Self::LinkLoop => "its symbolic links form a loop; replace one of them by a file",
            Self::TooLong => "the name is too long; use a shorter path",
            Self::Other(error) => return f.write_str(&plain(error)),
        })
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
    match sys::may_execute(path) {
        Ok(()) => Ok(metadata),
        Err(_) if metadata.mode() & 0o111 == 0 => Err(Obstacle::NoExecuteBit),
        Err(error) => Err(Obstacle::from_io(error)),
    }
}

/// A name in quotes, fit for a terminal: names and headers come from strangers, and an escape sequence in
/// one must not reach the screen.
pub(super) struct Quoted<'a>(pub &'a OsStr);

impl<'a> Quoted<'a> {
    pub(super) fn path(path: &'a Path) -> Self {
        Self(path.as_os_str())
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        f.write_char('\'')?;
        for c in self.0.to_string_lossy().chars() {
            if tame(c) != c {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        f.write_char('\'')
    }
}
