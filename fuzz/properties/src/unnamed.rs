//! A file without a name, for code that reads a file: nothing is left behind.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Unnamed(File);

impl Unnamed {
    /// A readable and executable file with this content.
    pub fn holding(bytes: &[u8]) -> Unnamed {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("sbx-fuzzing-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let mut file = file.expect("a file can be made");
        // Not every file system supports O_TMPFILE.
        fs::remove_file(&path).expect("and removed");
        file.write_all(bytes).expect("it can be written");
        file.set_permissions(Permissions::from_mode(0o700)).expect("it can be made executable");
        Unnamed(file)
    }

    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}
