//! A file without a name: what reads files is given bytes, and nothing is left behind.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

pub struct Unnamed(File);

impl Unnamed {
    /// One that may be read and executed.
    pub fn holding(bytes: &[u8]) -> Unnamed {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).mode(0o700).custom_flags(libc::O_TMPFILE);
        let mut file = file.open(std::env::temp_dir()).expect("a file can be made");
        file.write_all(bytes).expect("it can be written");
        file.set_permissions(Permissions::from_mode(0o700)).expect("it can be made executable");
        Unnamed(file)
    }

    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}
