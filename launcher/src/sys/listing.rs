//! The names in a directory, read at one moment: what they tell of is known not to be there.

use crate::sys::beneath::LISTING;
use crate::sys::file_system::FileSystem;
use crate::sys::resolve::openat2;
use rustix::fs::{AtFlags, CWD, FileType, IFlags, Mode, OFlags, RawDir, ResolveFlags, StatxFlags};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::path::Path;

/// FS_CASEFOLD_FL.
const CASEFOLD: u32 = 0x4000_0000;

/// What a directory has of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Nothing.
    Missing,
    /// A directory, and no link to one.
    Directory,
    /// Something else, or something that may be meant by the name.
    Other,
}

/// The names in a directory.
#[derive(Debug)]
pub struct Listing {
    /// The permissions of the directory (chmod(2)).
    mode: u32,
    text: Vec<u8>,
    /// By the hash of the name in small letters.
    entries: Vec<(u32, Range<usize>, FileType)>,
}

impl Listing {
    /// Of a directory by its real path, which may be searched. `None` if it cannot be read at once, or if its names do
    /// not tell what a lookup finds.
    pub fn of(path: &Path) -> Option<Listing> {
        // The last component makes it an error if lookups in the directory are refused.
        let (inside, flags) = (path.join("."), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC);
        let directory = openat2(CWD, &inside, flags, ResolveFlags::NO_SYMLINKS).ok()?;
        FileSystem::of_open(&directory).ok().filter(|kind| kind.lists_at_once())?;
        let mut buffer = Vec::with_capacity(LISTING);
        let mut read = RawDir::new(&directory, buffer.spare_capacity_mut());
        let found = rustix::fs::statx(&directory, c"", AtFlags::EMPTY_PATH, StatxFlags::MODE).ok()?;
        let mode = u32::from(found.stx_mode) & 0o7777;
        let mut listing = Listing { mode, text: Vec::new(), entries: Vec::new() };
        let mut calls = 0;
        loop {
            calls += u32::from(read.is_buffer_empty());
            let Some(entry) = read.next() else { break };
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                let start = listing.text.len();
                listing.text.extend_from_slice(name);
                listing.entries.push((hash(name), start..listing.text.len(), entry.file_type()));
            }
        }
        // The second call only told that there is no more.
        if calls > 2 {
            return None;
        }
        // Where capitals do not count, other letters can mean an ASCII name as well.
        let is_exact = |flags: IFlags| flags.bits() & CASEFOLD == 0;
        let folds = || !rustix::fs::ioctl_getflags(&directory).is_ok_and(is_exact);
        if !listing.text.is_ascii() && folds() {
            return None;
        }
        listing.entries.sort_unstable_by_key(|(hash, ..)| *hash);
        Some(listing)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The permissions of the directory, all twelve bits.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// What it has of a name.
    pub fn entry(&self, name: &[u8]) -> Entry {
        if !name.is_ascii() {
            return Entry::Other;
        }
        let wanted = hash(name);
        let first = self.entries.partition_point(|(hash, ..)| *hash < wanted);
        let mut alike = self.entries.iter().skip(first).take_while(|(hash, ..)| *hash == wanted);
        match (alike.next(), alike.next()) {
            (None, _) => Entry::Missing,
            (Some((_, place, FileType::Directory)), None) if self.text.get(place.clone()) == Some(name) => {
                Entry::Directory
            }
            // Another name with the same letters, or with the same hash.
            _ => Entry::Other,
        }
    }
}

/// Whether there is a directory at a path, with nothing in it.
pub fn is_empty_directory(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
    // The longest name has room.
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut read = RawDir::new(&directory, &mut buffer);
    loop {
        match read.next() {
            None => return true,
            Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Some(_) => return false,
        }
    }
}

/// FNV-1a of the name in small letters. Names that only look alike are asked for, which costs time and nothing else.
fn hash(name: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193);
    name.iter().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_name_is_missing_only_if_no_lookup_can_find_it() {
        let scratch = Scratch::create(None).unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let Some(empty) = Listing::of(&base) else { return };
        assert!(empty.is_empty() && empty.entry(b"x") == Entry::Missing);
        fs::create_dir(base.join("Directory")).unwrap();
        fs::write(base.join(".file"), "").unwrap();
        symlink("Directory", base.join("link")).unwrap();
        fs::write(base.join("\u{212a}elvin"), "").unwrap();
        let listing = Listing::of(&base).unwrap();
        let entry = |name: &str| listing.entry(name.as_bytes());
        assert_eq!(entry("Directory"), Entry::Directory);
        // A file system may take these for the same.
        assert_eq!(entry("directory"), Entry::Other);
        assert_eq!([entry(".file"), entry(".FILE"), entry("link"), entry("\u{e4}")], [Entry::Other; 4]);
        assert_eq!([entry("file"), entry(".filer"), entry("")], [Entry::Missing; 3]);
        // No link leads to another directory's names.
        assert!(Listing::of(&base.join("link")).is_none());
        assert!(Listing::of(&base.join(".file")).is_none());
        assert!(Listing::of(&base.join("none")).is_none());
        assert!(Listing::of(Path::new("/proc")).is_none());
    }

    #[test]
    fn a_directory_that_is_too_long_or_closed_tells_nothing() {
        let scratch = Scratch::create(None).unwrap();
        let base = scratch.path().canonicalize().unwrap();
        for number in 0..1200 {
            fs::write(base.join(format!("a-name-of-some-length-{number}")), "").unwrap();
        }
        assert!(Listing::of(&base).is_none());
        let closed = base.join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o600)).unwrap();
        // Root may look.
        let looks =
            fs::symlink_metadata(closed.join("x")).unwrap_err().kind() == std::io::ErrorKind::NotFound;
        assert_eq!(Listing::of(&closed).is_some(), looks);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    }
}
