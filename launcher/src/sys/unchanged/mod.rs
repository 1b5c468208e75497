//! Whether files are as they were: names come and go, and attributes of directories change, where the kernel tells
//! (inotify(7)); files that are there are looked at again, since the kernel does not tell of everything that happens to
//! them (a mapping, another name).

#[cfg(test)]
#[allow(unsafe_code)] // A test maps a file.
mod tests;

use crate::sys::access::{self, Permission};
use crate::sys::file;
use crate::sys::file_system::FileSystem;
use crate::sys::observed::{Depth, Look};
use crate::sys::path::Walk;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags};
use rustix::io::Errno;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Directories that lead each process elsewhere.
const OWN: [&str; 2] = ["/proc/self", "/proc/thread-self"];

/// Longer files are not kept for comparison.
const LONGEST: u64 = 1 << 16;

/// As many reads of what the kernel tells, of which each has dozens of names.
const MOST_READS: usize = 64;

/// Files and directories that are as they were, until they are not.
pub struct Unchanged {
    told: OwnedFd,
    directories: HashMap<i32, Names>,
    files: BTreeMap<PathBuf, State>,
    changed: Cell<bool>,
}

impl AsFd for Unchanged {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}

/// The names in a directory that matter, in small letters: file systems may take capitals for the same.
#[derive(Debug)]
enum Names {
    All,
    Some(BTreeSet<Vec<u8>>),
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// It cannot be looked at, for this reason (errno(3)).
    Not(i32),
    There(Seen),
    /// With what is in it.
    Read(Seen, Vec<u8>),
}

/// What a file is. The times and the size of a regular file change with what is in it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    device: (u32, u32),
    number: u64,
    owner: (u32, u32),
    mode: u16,
    written: Option<(u64, [(i64, u32); 2])>,
}

/// What a name in a directory is.
#[derive(Clone, Debug)]
enum Step {
    Missing,
    Link(PathBuf),
    Directory,
    File,
    /// The kernel makes it up.
    Kernels,
}

impl Unchanged {
    /// All that was looked at, from now on. Nothing if the kernel would not tell of some of it.
    pub fn from_now<'l>(looks: impl IntoIterator<Item = &'l Look>) -> Option<Unchanged> {
        let told = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let mut marks = Marks {
            told,
            directories: HashMap::new(),
            places: HashMap::new(),
            steps: HashMap::new(),
            files: BTreeMap::new(),
        };
        for look in looks {
            marks.mark(look)?;
        }
        let Marks { told, directories, files, .. } = marks;
        let files = files
            .into_iter()
            .map(|(path, depth)| State::of(&path, depth == Depth::Contents).map(|state| (path, state)));
        Some(Unchanged { told, directories, files: files.collect::<Option<_>>()?, changed: Cell::new(false) })
    }

    /// Whether everything is as it was. Once it was not, it never is again.
    pub fn holds(&self) -> bool {
        let holds = !self.changed.get() && self.is_quiet() && self.are_same();
        self.changed.set(!holds);
        holds
    }

    /// Whether the kernel has told of nothing that matters.
    fn is_quiet(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.told, &mut buffer);
        let mut reads = 0;
        loop {
            reads += usize::from(events.is_buffer_empty());
            match events.next() {
                Err(Errno::AGAIN) => return true,
                Ok(event) if reads <= MOST_READS => {
                    let name = event.file_name().map(|name| name.to_bytes());
                    if self.matters(event.wd(), name) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }

    fn matters(&self, directory: i32, name: Option<&[u8]>) -> bool {
        match (self.directories.get(&directory), name) {
            // Events were lost; or the directory itself has changed, or is marked no longer.
            (None, _) | (_, None) | (Some(Names::All), _) => true,
            (Some(Names::Some(names)), Some(name)) => {
                !name.is_ascii() || names.contains(&name.to_ascii_lowercase())
            }
        }
    }

    fn are_same(&self) -> bool {
        self.files.iter().all(|(path, state)| {
            State::of(path, matches!(state, State::Read(..))).is_some_and(|now| now == *state)
        })
    }
}

impl State {
    /// What is there now. Nothing where that cannot be compared.
    fn of(path: &Path, opened: bool) -> Option<State> {
        let found = match rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS) {
            Ok(found) => found,
            Err(error) => return Some(State::Not(error.raw_os_error())),
        };
        let seen = Seen::of(&found);
        match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::RegularFile if opened => {
                // A command may have put something else there just now, which whoever opens it waits for.
                let opened = file::open_without_links(path).ok()?;
                let found = rustix::fs::statx(&opened, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS);
                let is_it = found.is_ok_and(|found| Seen::of(&found) == seen);
                let text = is_it.then(|| file::read_most(&opened, LONGEST).ok().flatten());
                text.flatten().map(|text| State::Read(seen, text))
            }
            // One of the kernel's: others are marked.
            FileType::Directory if opened => None,
            _ => Some(State::There(seen)),
        }
    }
}

impl Seen {
    fn of(found: &Statx) -> Seen {
        let is_regular = FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
        let times = [found.stx_mtime, found.stx_ctime].map(|time| (time.tv_sec, time.tv_nsec));
        Seen {
            device: (found.stx_dev_major, found.stx_dev_minor),
            number: found.stx_ino,
            owner: (found.stx_uid, found.stx_gid),
            mode: found.stx_mode,
            written: is_regular.then_some((found.stx_size, times)),
        }
    }
}

/// What is being marked.
struct Marks {
    told: OwnedFd,
    directories: HashMap<i32, Names>,
    /// Directories by their real paths.
    places: HashMap<PathBuf, Place>,
    steps: HashMap<PathBuf, Step>,
    /// Files that are looked at again, by their real paths, and what was asked for.
    files: BTreeMap<PathBuf, Depth>,
}

/// A directory.
#[derive(Clone, Copy, Debug)]
enum Place {
    Marked(i32),
    Kernels,
    /// Nobody may look up names in it.
    Closed,
}

impl Marks {
    /// Marks all names that a path leads through, and what it leads to.
    fn mark(&mut self, Look { path, at: depth }: &Look) -> Option<()> {
        if OWN.iter().any(|own| path.starts_with(own)) {
            return Some(());
        }
        let (mut at, mut walk) = (PathBuf::from("/"), Walk::along(path));
        while let Some(next) = walk.next(&mut at) {
            match self.step(&at, &next)? {
                Step::Directory => at = next,
                Step::Link(target) if walk.follow(&target) => {}
                Step::Link(_) | Step::Missing => return Some(()),
                // Another one could not take its name without being told of.
                Step::File if *depth == Depth::Identity => return Some(()),
                Step::File => return self.look_again(next, *depth),
                Step::Kernels => return self.look_again(walk.rest_below(next), *depth),
            }
        }
        match self.place(&at)? {
            Place::Marked(directory) if *depth == Depth::Contents => {
                self.directories.insert(directory, Names::All);
            }
            Place::Kernels => return self.look_again(at, *depth),
            Place::Marked(_) | Place::Closed => {}
        }
        Some(())
    }

    fn look_again(&mut self, path: PathBuf, depth: Depth) -> Option<()> {
        let known = self.files.entry(path).or_insert(depth);
        *known = depth.max(*known);
        Some(())
    }

    /// What a name in a directory is, marked before that is found out.
    fn step(&mut self, directory: &Path, whole: &Path) -> Option<Step> {
        if let Some(step) = self.steps.get(whole) {
            return Some(step.clone());
        }
        let step = match self.place(directory)? {
            Place::Kernels => Step::Kernels,
            Place::Closed => Step::Missing,
            Place::Marked(number) => {
                if let Some(Names::Some(names)) = self.directories.get_mut(&number) {
                    names.insert(whole.file_name()?.as_bytes().to_ascii_lowercase());
                }
                match whole.symlink_metadata() {
                    Ok(found) if found.is_symlink() => Step::Link(whole.read_link().ok()?),
                    Ok(found) if found.is_dir() => Step::Directory,
                    Ok(_) => Step::File,
                    Err(_) => Step::Missing,
                }
            }
        };
        self.steps.insert(whole.to_path_buf(), step.clone());
        Some(step)
    }

    /// Marks a directory.
    fn place(&mut self, directory: &Path) -> Option<Place> {
        if let Some(place) = self.places.get(directory) {
            return Some(*place);
        }
        let kind = FileSystem::of(directory).ok()?;
        let place = match kind.is_of_kernel() {
            true => Place::Kernels,
            false if kind.tells_of_changes() => self.watch(directory)?,
            false => return None,
        };
        self.places.insert(directory.to_path_buf(), place);
        Some(place)
    }

    fn watch(&mut self, directory: &Path) -> Option<Place> {
        let what = WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(&self.told, directory, what) {
            Ok(number) => {
                self.directories.entry(number).or_insert_with(|| Names::Some(BTreeSet::new()));
                Some(Place::Marked(number))
            }
            // Whoever may not look up names either sees nothing that changes.
            Err(Errno::ACCESS) if access::closes(directory, Permission::EXECUTE) => Some(Place::Closed),
            Err(_) => None,
        }
    }
}
