//! The private homes that runs have left: which there are, what they take, and removing them.
//!
//! What is in a home belongs to commands, which may have made a tree of any depth, and may run meanwhile. So everything
//! is reached through descriptors, no link is followed, and looking at sizes takes a limited time. A home that a run
//! uses has a shared lock (flock(2)) on its directory, and is not removed.

use crate::digest;
use crate::enforce::removal;
use crate::plan::CacheOf;
use crate::plan::home::{HOME, STORES, inner, name_of};
use crate::sys::beneath::{Directory, Entry, LISTING};
use crate::sys::path::{self, says_missing};
use crate::sys::{SyscallError, file, memory};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// The file that says what a home is for. Its time is that of the last start.
pub const ABOUT: &str = "about.json";
/// Longer than any path and name in it.
const LONGEST: u64 = 64 * 1024;
/// How the name of a home begins that is being removed.
const REMOVED: &str = "removed-";
/// Each level takes a descriptor.
const DEEPEST: usize = 128;

/// What a home is for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct About {
    /// The workspace of its runs, as text.
    pub workspace: String,
    /// Their profile.
    pub profile: String,
}

impl About {
    /// What is written down of an owner whose home lasts.
    pub fn of(owner: &CacheOf) -> About {
        let workspace = owner.workspace.as_deref().unwrap_or(Path::new("")).to_string_lossy().into_owned();
        About { workspace, profile: owner.profile.to_string_lossy().into_owned() }
    }

    /// Whether the workspace is written down as it is: it may be no text.
    fn is_whole(&self) -> bool {
        !self.workspace.is_empty() && !self.workspace.contains('\u{fffd}')
    }
}

/// A private home.
#[derive(Clone, Debug)]
pub struct Home {
    name: OsString,
    /// Its directory, which has the home itself and the packages in [another one](inner).
    pub path: PathBuf,
    /// What it is for, where that can be read.
    pub about: Option<About>,
    /// When a run began in it last.
    pub used: SystemTime,
}

impl Home {
    /// Whether it is for runs in this workspace. Of one whose path is no text, the home's own name tells.
    pub fn is_of(&self, workspace: &Path) -> bool {
        let Some(about) = &self.about else { return false };
        if about.is_whole() {
            return Path::new(&about.workspace) == workspace;
        }
        let (workspace, profile) = (Some(workspace.to_path_buf()), OsString::from(&about.profile));
        name_of(&CacheOf { workspace, profile }).is_some_and(|name| self.name == *name)
    }

    /// Where the home itself is, until a run has used it.
    pub fn place(&self) -> PathBuf {
        inner::of_next_run(&self.path).join(HOME)
    }

    /// Whether its workspace is certainly not there.
    pub fn is_left(&self) -> bool {
        let is_missing = |about: &About| about.is_whole() && !path::is_there(Path::new(&about.workspace));
        self.about.as_ref().is_some_and(is_missing)
    }
}

/// What something takes on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// In allocated blocks.
    pub bytes: u64,
    /// False if there was more than could be looked at.
    pub is_whole: bool,
}

/// What became of a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleared {
    /// It is gone.
    Removed,
    /// A run uses it.
    InUse,
}

/// The directory of all private homes.
pub struct Homes {
    directory: Directory,
    path: PathBuf,
}

impl Homes {
    /// That at a path; `None` if there is none yet.
    pub fn open(path: &Path) -> Result<Option<Homes>, SyscallError> {
        match Directory::open(path) {
            Ok(directory) => Ok(Some(Homes { directory, path: path.to_path_buf() })),
            Err(failed) if says_missing(&failed.cause) => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    /// All that there are, the one that was used last first.
    pub fn all(&self) -> Result<Vec<Home>, SyscallError> {
        let names = self.names()?;
        let mut homes: Vec<Home> = names.into_iter().filter_map(|name| self.home(name)).collect();
        homes.sort_by(|one, other| other.used.cmp(&one.used).then_with(|| one.name.cmp(&other.name)));
        Ok(homes)
    }

    fn names(&self) -> Result<Vec<OsString>, SyscallError> {
        self.directory.below(Path::new(""))?.names()
    }

    fn home(&self, name: OsString) -> Option<Home> {
        let directory = self.own(&name).filter(|_| is_digest(&name))?;
        let text = directory.read(ABOUT.as_ref(), LONGEST).ok().flatten();
        let about = text.as_deref().and_then(|text| serde_json::from_slice(text).ok());
        // Without its description, the directory tells how old it is at least.
        let ages = directory.ages(ABOUT.as_ref()).or_else(|_| directory.ages(OsStr::new(""))).ok()?;
        Some(Home { path: self.path.join(&name), name, about, used: ages.modified })
    }

    /// A directory of the user's in it.
    fn own(&self, name: &OsStr) -> Option<Directory> {
        let directory = self.directory.beside(name).ok()?;
        directory.is_own().is_ok_and(|own| own).then_some(directory)
    }

    /// What the parts of a home take: each by its path below the inner directory, the largest first.
    pub fn parts(&self, home: &Home, until: Instant) -> Vec<(PathBuf, Size)> {
        let inner = |outer: Directory| outer.beside(&inner::name_in(&outer)?).ok();
        let Some(directory) = self.own(&home.name).and_then(inner) else { return Vec::new() };
        let mut walk = Walk { until, seen: HashSet::new() };
        let mut parts = walk.entries(&directory, Path::new(HOME));
        for store in directory.below(Path::new(STORES)).and_then(|stores| stores.names()).unwrap_or_default()
        {
            // Beside it is what the kernel works with.
            parts.extend(walk.entries(&directory, &Path::new(STORES).join(store).join("upper")));
        }
        parts.sort_by(|(name, one), (other_name, other)| {
            other.bytes.cmp(&one.bytes).then(name.cmp(other_name))
        });
        parts
    }

    /// Removes a home, if no run uses it.
    pub fn clear(&self, home: &Home) -> io::Result<Cleared> {
        let Some(directory) = self.own(&home.name) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let Some(_alone) = self.lock(directory, &home.name)? else { return Ok(Cleared::InUse) };
        // A run that begins now finds none, and makes one of its own.
        let gone = OsString::from(memory::random_name(REMOVED).map_err(|failed| failed.cause)?);
        file::rename(self.directory.as_fd(), &home.name, &gone).map_err(|failed| failed.cause)?;
        removal::remove(&self.path.join(gone))?;
        Ok(Cleared::Removed)
    }

    /// Removes what an earlier removal that was interrupted has left.
    pub fn clear_rests(&self) {
        for name in self.names().unwrap_or_default() {
            let is_rest = name.as_bytes().starts_with(REMOVED.as_bytes());
            let Some(directory) = self.own(&name).filter(|_| is_rest) else { continue };
            if let Ok(Some(_alone)) = self.lock(directory, &name) {
                let _ = removal::remove(&self.path.join(&name));
            }
        }
    }

    /// A lock that nobody else has on what the name still stands for.
    fn lock(&self, directory: Directory, name: &OsStr) -> io::Result<Option<File>> {
        let held = File::from(directory);
        match held.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let own = file::identity(held.as_fd()).map_err(|failed| failed.cause)?;
        let found = file::identity_of(self.directory.as_fd(), name, false).map_err(|failed| failed.cause)?;
        Ok(own.is(found).then_some(held))
    }
}

/// Whether a name is one that `sbx` gives a home.
fn is_digest(name: &OsStr) -> bool {
    digest::is_hex(name.as_bytes(), 32)
}

impl Size {
    const NOTHING: Size = Size { bytes: 0, is_whole: true };
    /// Of what could not be looked at.
    const UNKNOWN: Size = Size { bytes: 0, is_whole: false };

    /// Of all together.
    pub fn sum(parts: &[(PathBuf, Size)]) -> Size {
        parts.iter().fold(Size::NOTHING, |all, (_, part)| all.and(*part))
    }

    fn and(self, other: Size) -> Size {
        Size { bytes: self.bytes.saturating_add(other.bytes), is_whole: self.is_whole && other.is_whole }
    }
}

/// One look at everything.
struct Walk {
    until: Instant,
    /// Files with several names that were counted.
    seen: HashSet<u64>,
}

impl Walk {
    /// What each entry of a directory takes.
    fn entries(&mut self, top: &Directory, path: &Path) -> Vec<(PathBuf, Size)> {
        let listed = top.below(path).and_then(|directory| Ok((directory.names()?, directory)));
        let (names, directory) = match listed {
            Ok(listed) => listed,
            Err(failed) if says_missing(&failed.cause) => return Vec::new(),
            // A command may have closed it.
            Err(_) => return vec![(path.to_path_buf(), Size::UNKNOWN)],
        };
        names.into_iter().map(|name| (path.join(&name), self.entry(&directory, &name, 0))).collect()
    }

    fn entry(&mut self, directory: &Directory, name: &OsStr, depth: usize) -> Size {
        let is_late = Instant::now() > self.until;
        let Ok(space) = file::space_of(directory.as_fd(), name) else { return Size::NOTHING };
        if space.shared.is_some_and(|number| !self.seen.insert(number)) {
            return Size::NOTHING;
        }
        let own = Size { bytes: space.bytes, is_whole: !is_late };
        if is_late || !space.is_directory { own } else { own.and(self.below(directory, name, depth)) }
    }

    fn below(&mut self, directory: &Directory, name: &OsStr, depth: usize) -> Size {
        let Ok(directory) = directory.beside(name) else { return Size::UNKNOWN };
        if depth == DEEPEST {
            return Size::UNKNOWN;
        }
        let (mut size, mut directories) = (Size::NOTHING, Vec::new());
        let listed = directory.each_entry(&mut Vec::with_capacity(LISTING), |name, entry| {
            if entry == Entry::Directory {
                directories.push(name.to_os_string());
            } else {
                size = size.and(self.entry(&directory, name, depth + 1));
            }
        });
        let all = if listed.is_ok() { size } else { size.and(Size::UNKNOWN) };
        directories.iter().fold(all, |all, name| all.and(self.entry(&directory, name, depth + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef";

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// A directory of homes with one in it.
    fn homes(scratch: &Scratch) -> Homes {
        let directory = scratch.path().join(DIGEST);
        let home = directory.join("0123456789abcdef");
        fs::create_dir_all(home.join("home/.cargo/registry")).unwrap();
        fs::create_dir_all(home.join("stores/0/upper/0")).unwrap();
        fs::create_dir_all(home.join("stores/0/work/0/work")).unwrap();
        fs::set_permissions(home.join("stores/0/work/0/work"), fs::Permissions::from_mode(0o0)).unwrap();
        fs::write(home.join("home/.cargo/registry/crate"), vec![1; 100_000]).unwrap();
        fs::write(home.join("stores/0/upper/0/package"), vec![1; 2_000_000]).unwrap();
        fs::write(home.join("home/small"), "x").unwrap();
        fs::write(directory.join(ABOUT), r#"{"workspace": "/w", "profile": "p", "more": 1}"#).unwrap();
        Homes::open(scratch.path()).unwrap().unwrap()
    }

    #[test]
    fn only_directories_with_the_name_of_one_are_homes() {
        let scratch = Scratch::create(None).unwrap();
        assert!(Homes::open(&scratch.path().join("none")).unwrap().is_none());
        let homes = homes(&scratch);
        for other in ["0123456789ABCDEF0123456789abcdef", "0123", "removed-0123456789abcdef", "x"] {
            fs::create_dir(scratch.path().join(other)).unwrap();
        }
        symlink(DIGEST, scratch.path().join("f".repeat(32))).unwrap();
        fs::write(scratch.path().join("e".repeat(32)), "").unwrap();
        fs::create_dir(scratch.path().join("d".repeat(32))).unwrap();
        fs::write(scratch.path().join("d".repeat(32)).join(ABOUT), "{").unwrap();
        let all = homes.all().unwrap();
        let mut names: Vec<&OsStr> = all.iter().map(|home| &*home.name).collect();
        names.sort_unstable();
        assert_eq!(names, [DIGEST, &"d".repeat(32)]);
        let about = About { workspace: "/w".into(), profile: "p".into() };
        assert_eq!(all.iter().find(|home| home.name == DIGEST).unwrap().about, Some(about));
        assert_eq!(all.iter().find(|home| home.name != DIGEST).unwrap().about, None);
        // A link in place of all of them is no directory of homes.
        let link = scratch.path().join("link");
        symlink(scratch.path(), &link).unwrap();
        assert!(!matches!(Homes::open(&link), Ok(Some(_))));
    }

    #[test]
    fn a_size_is_what_is_on_the_disk_and_no_link_is_followed() {
        let scratch = Scratch::create(None).unwrap();
        let homes = homes(&scratch);
        let home = scratch.path().join(DIGEST).join("0123456789abcdef/home");
        symlink("/", home.join("link")).unwrap();
        fs::hard_link(home.join(".cargo/registry/crate"), home.join("again")).unwrap();
        let sparse = File::create(home.join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        let mut deep = home.join("deep");
        (0..300).for_each(|_| deep.push("d"));
        fs::create_dir_all(&deep).unwrap();
        let one = &homes.all().unwrap()[0];
        let parts = homes.parts(one, soon());
        assert_eq!(parts.first().unwrap().0, Path::new("stores/0/upper/0"));
        let size = |name: &str| parts.iter().find(|(path, _)| path == Path::new(name)).unwrap().1;
        assert!(size("stores/0/upper/0").bytes >= 2_000_000 && size("stores/0/upper/0").is_whole);
        // It counts under one of its names.
        let both = size("home/again").bytes + size("home/.cargo").bytes;
        assert!((100_000..200_000).contains(&both), "{both}");
        assert!(size("home/link").bytes < 10_000 && size("home/sparse").bytes < 1 << 20);
        assert!(!size("home/deep").is_whole && size("home/small").is_whole);
        assert!(Size::sum(&parts).bytes >= 2_100_000 && !Size::sum(&parts).is_whole);
        let none_left = homes.parts(one, Instant::now() - Duration::from_secs(1));
        assert!(none_left.iter().all(|(_, size)| !size.is_whole));
    }

    #[test]
    fn what_a_command_has_closed_is_not_taken_for_empty() {
        let scratch = Scratch::create(None).unwrap();
        let homes = homes(&scratch);
        let home = scratch.path().join(DIGEST).join("0123456789abcdef/home");
        fs::set_permissions(&home, fs::Permissions::from_mode(0o0)).unwrap();
        let parts = homes.parts(&homes.all().unwrap()[0], soon());
        // Root looks into everything.
        let is_closed = fs::read_dir(&home).is_err();
        assert_eq!(Size::sum(&parts).is_whole, !is_closed);
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_home_goes_with_all_that_is_in_it_and_nothing_else() {
        let scratch = Scratch::create(None).unwrap();
        let outside = Scratch::create(None).unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let homes = homes(&scratch);
        let home = scratch.path().join(DIGEST);
        let inside = home.join("0123456789abcdef/home");
        symlink(outside.path(), inside.join("link")).unwrap();
        fs::create_dir(inside.join("closed")).unwrap();
        fs::write(inside.join("closed/file"), "x").unwrap();
        fs::set_permissions(inside.join("closed"), fs::Permissions::from_mode(0o0)).unwrap();
        let rest = scratch.path().join("removed-0123456789abcdef");
        fs::create_dir_all(rest.join("x")).unwrap();
        let one = &homes.all().unwrap()[0];
        // A run has it.
        let run = File::open(&home).unwrap();
        run.try_lock_shared().unwrap();
        assert_eq!(homes.clear(one).unwrap(), Cleared::InUse);
        assert!(inside.join("small").exists());
        drop(run);
        assert_eq!(homes.clear(one).unwrap(), Cleared::Removed);
        assert!(!home.exists() && outside.path().join("kept").exists() && rest.exists());
        homes.clear_rests();
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        assert!(homes.clear(one).is_err());
    }

    #[test]
    fn a_link_that_takes_the_place_of_a_home_is_not_followed() {
        let scratch = Scratch::create(None).unwrap();
        let outside = Scratch::create(None).unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let homes = homes(&scratch);
        let one = homes.all().unwrap().remove(0);
        fs::rename(&one.path, scratch.path().join("away")).unwrap();
        symlink(outside.path(), &one.path).unwrap();
        assert!(homes.clear(&one).is_err() && homes.parts(&one, soon()).is_empty());
        assert!(outside.path().join("kept").exists() && one.path.is_symlink());
    }

    #[test]
    fn a_lock_on_what_has_another_name_by_now_is_none() {
        let scratch = Scratch::create(None).unwrap();
        let homes = homes(&scratch);
        let old = || homes.own(DIGEST.as_ref()).unwrap();
        assert!(homes.lock(old(), DIGEST.as_ref()).unwrap().is_some());
        let held = old();
        fs::rename(scratch.path().join(DIGEST), scratch.path().join("away")).unwrap();
        fs::create_dir(scratch.path().join(DIGEST)).unwrap();
        assert!(homes.lock(held, DIGEST.as_ref()).unwrap().is_none());
    }
}
