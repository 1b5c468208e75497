//! The number of a file: device and inode.

use rustix::fs::Stat;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// What tells a file from all others that are there at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileNumber {
    device: u64,
    inode: u64,
}

impl FileNumber {
    /// Of what was examined.
    pub fn of(meta: &Metadata) -> FileNumber {
        FileNumber { device: meta.dev(), inode: meta.ino() }
    }

    /// The lower half of the inode's.
    pub fn low_inode(self) -> u32 {
        self.inode as u32
    }
}

impl From<&Stat> for FileNumber {
    fn from(stat: &Stat) -> FileNumber {
        FileNumber { device: stat.st_dev, inode: stat.st_ino }
    }
}
