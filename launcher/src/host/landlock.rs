//! Which Landlock (landlock(7)) this process can use.

use crate::error::Refusal;
use crate::sys::{SyscallError, seccomp};

/// The rights of this kernel, from its ABI version: 0 where there is no Landlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub i32);

impl Version {
    /// No Landlock.
    pub const NONE: Version = Version(0);
    /// Access to files.
    pub const FILES: Version = Version(1);
    /// Truncating files.
    pub const TRUNCATE: Version = Version(3);
    /// TCP ports.
    pub const TCP: Version = Version(4);
    /// Scopes: abstract UNIX sockets and signals.
    pub const SCOPES: Version = Version(6);
    /// UNIX sockets with a path.
    pub const UNIX: Version = Version(9);
}

/// The kernel's answer to the question for its version.
pub type Answer = Result<Version, SyscallError>;

/// Asks the kernel, or whatever sandbox answers in its place.
pub fn ask() -> Answer {
    seccomp::landlock_abi().map(Version)
}

/// The version that the answer means: none where the kernel, or a sandbox around, lacks or refuses Landlock.
pub fn version(answer: &Answer) -> Result<Version, Refusal> {
    match answer {
        Err(failed) if failed.is_passing() => {
            Err(Refusal::new(format!("cannot ask for the version of Landlock: {failed}")))
        }
        Err(_) => Ok(Version::NONE),
        Ok(version) => Ok(*version),
    }
}

/// Why there is no Landlock, as the beginning of a sentence.
pub fn why_none(failed: &SyscallError) -> String {
    match failed.errno() {
        libc::EOPNOTSUPP => {
            "Landlock is turned off in this kernel (add 'landlock' to the security modules of its \
                             lsm= parameter)"
                .to_string()
        }
        libc::ENOSYS => {
            "this kernel has no Landlock (Linux 5.13, and 'landlock' in the list of security modules), \
                         or a container's filter does not know it"
                .to_string()
        }
        _ => format!("a sandbox around this one refuses Landlock ({failed})"),
    }
}
