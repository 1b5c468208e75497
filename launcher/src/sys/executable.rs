//! The system calls of the program check that the standard library has no name for.

use rustix::fs::Access;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// The attribute that holds a file's capabilities.
const CAPABILITY: &std::ffi::CStr = c"security.capability";

/// Asks the kernel whether this process may execute `path`. It knows about mounts with `noexec`, too.
pub(crate) fn may_execute(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, Access::EXEC_OK)?)
}

/// Whether the open file carries capabilities that an exec would add.
pub(crate) fn has_capabilities(file: &File) -> io::Result<bool> {
    attribute_present(rustix::fs::fgetxattr_query(file, CAPABILITY))
}

/// As [`has_capabilities`], for a file that may be executed but not opened.
pub(crate) fn path_has_capabilities(path: &Path) -> io::Result<bool> {
    attribute_present(rustix::fs::getxattr_query(path, CAPABILITY))
}

/// Whether there is an attribute, by its length.
///
/// The kernel lets anyone ask, so EPERM and ENOSYS come from a system-call filter. Under one, no exec gains
/// capabilities any more, so there are none that count.
fn attribute_present(length: rustix::io::Result<usize>) -> io::Result<bool> {
    match length {
        Ok(length) => Ok(length > 0),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM | Errno::NOSYS) => Ok(false),
        // They are there, for the root of a user namespace that this one cannot name.
        Err(Errno::OVERFLOW) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// What only tests need: files of every sort, and eyes of another user.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, XattrFlags};

    /// Makes a FIFO.
    pub fn make_fifo(path: &Path) {
        rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_bits_retain(0o755), 0).unwrap();
    }

    /// Gives a file the capability to bind low ports; false where this process or file system cannot.
    pub fn give_capability(path: &Path) -> bool {
        let mut value = [0_u8; 20];
        value[3] = 0x02;
        value[5] = 0x04;
        rustix::fs::setxattr(path, CAPABILITY, &value, XattrFlags::empty()).is_ok()
    }

    /// Runs `look` with the rights of an ordinary user on files, whoever runs the tests.
    #[allow(unsafe_code)]
    pub fn as_ordinary_user<T: Send>(look: impl FnOnce() -> T + Send) -> T {
        let switched = move || {
            if crate::sys::process::is_root() {
                // SAFETY: changes the identity of this thread alone, which ends after `look`; takes no pointer.
                unsafe { libc::setfsuid(65534) };
            }
            look()
        };
        std::thread::scope(|scope| scope.spawn(switched).join().unwrap())
    }
}
