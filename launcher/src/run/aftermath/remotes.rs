//! Remotes on this machine: git runs the hooks of a repository that it pushes to (githooks(5)). In the homes and caches
//! of runs commands write what they like, and nobody looks.

use super::new::New;
use super::repository::MOST_WORKTREES;
use super::told::Seen;
use super::{Aftermath, Look, Opened};
use crate::plan::namespaces::CONFIG;
use crate::plan::namespaces::git::shape::{entry_of, files_of, named_by};
use crate::plan::namespaces::git_config::{LONGEST, parse, read};
use crate::supervise::handlers::git_config::sift::{address_here, path_in, plain_path};
use crate::sys::SyscallError;
use crate::sys::beneath::Directory;
use crate::sys::file;
use crate::sys::path::{Way, real_for_all, way};
use crate::sys::within::{is_below, is_within};
use sbx_client::report::FindingKind;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// More in one configuration are not followed: each takes its time.
pub const MOST_REMOTES: usize = 16;
/// Maximum number of addresses of new configurations that one look follows, and of paths of all of them.
const MOST_ADDRESSES: usize = 256;
const MOST_PATHS: usize = 4096;

/// Where git looks for the addresses of remotes that the configuration does not have.
const FILES: [&str; 2] = ["remotes", "branches"];
/// What git appends to the path of a repository (enter_repo in its path.c).
const ENDS: [&str; 4] = ["/.git", "", ".git/.git", ".git"];

/// Where remotes lead, as far as a look has followed them.
#[derive(Default)]
pub struct Followed {
    /// Whether git may push to an address.
    answers: RefCell<HashMap<Vec<u8>, bool>>,
    paths: Seen,
    count: usize,
}

impl Followed {
    /// The answer for an address, which is asked for once. To more than are followed git may not push.
    fn ask(&self, address: &[u8], answer: impl FnOnce() -> bool) -> bool {
        let known = self.answers.borrow().get(address).copied();
        known.unwrap_or_else(|| {
            if self.answers.borrow().len() >= MOST_ADDRESSES {
                return false;
            }
            let answer = answer();
            self.answers.borrow_mut().insert(address.to_vec(), answer);
            answer
        })
    }
}

impl Aftermath {
    /// Whether git may push from a new repository to an address on this machine: a command decided where it leads, but
    /// not what is executed there.
    pub(super) fn may_push(&self, address: &[u8], followed: &Followed) -> bool {
        let is_open = |path: &Path| {
            ways(path).all(|(way, led)| [Some(way), led].iter().flatten().all(|way| self.is_open(way)))
        };
        plain_path(address).is_some_and(|path| followed.ask(address, || is_open(path)))
    }

    fn is_open(&self, way: &Way) -> bool {
        let acts = || way.real.strip_prefix(&self.workspace).is_ok_and(|place| self.acts(place));
        !self.passes_runs(way) && !way.passes(Path::new("/proc")) && !acts()
    }

    /// Whether a path is where `sbx` keeps what lasts, or a cache. Commands write there, and nobody looks.
    pub(super) fn is_of_runs(&self, path: &Path) -> bool {
        self.runs().iter().any(|runs| is_within(path, runs))
    }

    /// Whether a path leads there. Links of /proc lead each process elsewhere: a directory behind one may be any.
    pub(super) fn leads_to_runs(&self, path: &Path) -> bool {
        match real_for_all(path) {
            Ok(real) => self.is_of_runs(&real),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => match path.metadata() {
                Ok(found) => found.is_dir(),
                Err(error) => error.raw_os_error() != Some(libc::ELOOP),
            },
            // What is missing may be made.
            Err(_) => self.is_of_runs(&way(path).real),
        }
    }

    /// Where runs write.
    pub(super) fn runs(&self) -> &[PathBuf] {
        self.runs.get_or_init(|| self.record.of_runs())
    }

    fn passes_runs(&self, way: &Way) -> bool {
        way.directories.iter().chain([&way.real]).any(|path| self.is_of_runs(path))
    }

    /// Puts aside what leads a remote of any repository to where runs write: the configuration may be as it was when a
    /// command puts a link at the path. And what a command has written where git looks for the addresses of remotes
    /// that the configuration does not have: git writes nothing there.
    pub(super) fn look_at_remotes(&self, &Opened { own, place, path, .. }: &Opened<'_>, look: &mut Look) {
        for file in new_files(own, New::Since(self.since)) {
            self.put_file_aside(&place.join(&file), &path.join(&file), look);
        }
        let Ok(Some(text)) = own.read(CONFIG.as_ref(), LONGEST) else { return };
        let settings = parse(&text);
        let paths: Vec<&Path> =
            settings.iter().filter_map(address_here).take(MOST_REMOTES).map(path_in).collect();
        if paths.is_empty() {
            return;
        }
        let beside =
            || if path.ends_with(".git") { path.parent() } else { None }.unwrap_or(path).to_path_buf();
        let mut tops = vec![files_of(path, &settings).unwrap_or_else(beside)];
        if paths.iter().any(|path| path.is_relative()) {
            let worktrees = path.join("worktrees").read_dir().into_iter().flatten().flatten();
            let entries = worktrees.take(MOST_WORKTREES).filter_map(|worktree| entry_of(&worktree.path()));
            tops.extend(entries.filter_map(|entry| Some(entry.parent()?.to_path_buf())));
        }
        let all: BTreeSet<PathBuf> =
            tops.iter().flat_map(|top| paths.iter().map(|path| top.join(path))).collect();
        for path in all {
            self.follow(&path, look);
        }
    }

    fn follow(&self, path: &Path, look: &mut Look) {
        if !look.followed.paths.insert(path) {
            return;
        }
        look.followed.count += 1;
        if look.followed.count > MOST_PATHS {
            let sentence = "cannot tell where all remotes lead that are paths: there are too many";
            return look
                .outcome
                .failures
                .extend((look.followed.count == MOST_PATHS + 1).then(|| sentence.to_string()));
        }
        let leading: BTreeSet<PathBuf> =
            ways(path).filter_map(|(way, led)| self.leading(&way, led)).collect();
        for entry in leading {
            let Ok(place) = entry.strip_prefix(&self.workspace) else { continue };
            self.put_file_aside(place, &entry, look);
        }
    }

    fn put_file_aside(&self, place: &Path, path: &Path, look: &mut Look) {
        let aside = look.put_aside(&self.root, place, path);
        look.found_file(path, FindingKind::FileMade, Vec::new(), aside);
    }

    /// The link or file in the workspace that leads to where runs write.
    fn leading(&self, way: &Way, led: Option<Way>) -> Option<PathBuf> {
        if self.passes_runs(way) {
            let before = way.links.iter().take_while(|link| !self.is_of_runs(link));
            return before.filter(|link| is_below(link, &self.workspace)).last().cloned();
        }
        led.filter(|led| self.passes_runs(led)).map(|_| way.real.clone())
    }
}

/// The ways to what git may find by the path of a repository, each with the one on which a file there leads.
fn ways(path: &Path) -> impl Iterator<Item = (Way, Option<Way>)> {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let base = OsStr::from_bytes(&bytes[..end]).to_os_string();
    ENDS.iter().map(move |end| {
        let mut path: OsString = base.clone();
        path.push(end);
        let way = way(Path::new(&path));
        let led = || {
            let text = read(&way.real)?;
            Some(self::way(&way.real.parent()?.join(named_by(&text)?)))
        };
        let led = led();
        (way, led)
    })
}

/// More new files with addresses are not looked at, and the whole directory goes.
const MOST_FILES: usize = 64;

/// The new files with addresses.
fn new_files(own: &Directory, new: New) -> Vec<PathBuf> {
    let of_one = |name: &PathBuf| {
        let in_it = new.within(own, name.as_os_str());
        let all = own.below(name)?;
        let (names, has_more) = all.names_like(MOST_FILES, |file| in_it.is(&all, file))?;
        Ok::<_, SyscallError>(match has_more {
            true => vec![name.clone()],
            false => names.iter().map(|file| name.join(file)).collect(),
        })
    };
    files(own, new).flat_map(|name| of_one(&name).unwrap_or_else(|_| vec![name])).collect()
}

/// The directories in which git looks for addresses, if there is something new in them: hardly anybody has them.
pub fn files(own: &Directory, new: New) -> impl Iterator<Item = PathBuf> {
    let has_new = move |name: &&&str| {
        let is_new = new.is(own, OsStr::new(name));
        let in_it = if is_new { New::All } else { new };
        match file::identity_of(own.as_fd(), OsStr::new(name), false) {
            // Below a file git looks for nothing.
            Ok(found) if found.is_regular() => false,
            Ok(_) => own
                .below(Path::new(name))
                .and_then(|all| all.names_like(0, |file| in_it.is(&all, file)))
                .map_or(is_new, |(_, has_one)| has_one),
            Err(_) => false,
        }
    };
    FILES.iter().filter(has_new).map(PathBuf::from)
}
