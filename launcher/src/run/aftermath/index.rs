//! The index of a repository: what git takes for the files of the working tree. Commands may write it, for `git add`
//! does. git looks at paths when it adds them, and not when it reads them again. So a written index can lead git into
//! a repository in `.git` or anywhere on the machine, and have it write into `.git/hooks`.
//!
//! It is read as git reads it (gitformat-index(5)). What git never writes is odd.

mod format;

use super::new::New;
use super::repository::{COMMON, OF_WORKTREE, is_absent_or, leads_to, linked};
use crate::plan::namespaces::git_config::LONGEST as LONGEST_CONFIG;
use crate::plan::namespaces::placeholder::is_link;
use crate::plan::namespaces::{CONFIG, Setting, Settings};
use crate::sys::beneath::Directory;
use crate::sys::path::says_missing;
pub use format::{Inner, is_odd};
use format::{SHA1, SHA256, Text};
use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is read at most of all that one look meets, in bytes. Nothing is believed of what is left.
pub const MOST_READ: u64 = 1 << 30;
/// The index.
const INDEX: &str = "index";
/// More new files with shared entries are not looked at, and nothing is believed of the index that names one.
const MOST_SHARED: usize = 1024;

/// An index that git outside should not read.
pub struct Odd {
    /// Its path from the repository.
    pub place: PathBuf,
    /// The paths in it that git never writes; empty where it cannot be read.
    pub entries: Vec<Vec<u8>>,
}

/// Those of a repository and its linked worktrees.
pub struct Indexes<'a> {
    own: &'a Directory,
    new: New,
    /// Whether a directory that an index names leads, from the working tree, to where none may be.
    leads_away: &'a dyn Fn(&Path, Inner, &[u8]) -> bool,
    /// How many bytes may be read.
    left: &'a mut u64,
    hashes: OnceCell<&'static [usize]>,
}

impl Indexes<'_> {
    /// Of a repository.
    pub fn of<'a>(
        own: &'a Directory,
        new: New,
        left: &'a mut u64,
        leads_away: &'a dyn Fn(&Path, Inner, &[u8]) -> bool,
    ) -> Indexes<'a> {
        // What is on the way to a submodule changes without the index.
        let new = if names_submodules(own) { New::All } else { new };
        Indexes { own, new, left, leads_away, hashes: OnceCell::new() }
    }

    /// Looks at those that have changed, and calls `each` with the odd ones. Returns whether any has changed.
    pub fn find(&mut self, each: &mut dyn FnMut(Odd)) -> bool {
        let mut has_new = self.look_into(self.own, self.new, Path::new(""), each);
        for (place, worktree, new) in linked(self.own, self.new) {
            has_new |= self.look_into(&worktree, new, &place, each);
        }
        has_new
    }

    fn look_into(
        &mut self,
        directory: &Directory,
        new: New,
        place: &Path,
        each: &mut dyn FnMut(Odd),
    ) -> bool {
        let is_index = |name: &OsStr| name == INDEX || is_shared(name);
        let wanted = |name: &OsStr| is_index(name) && is_new(directory, name, new);
        let (names, has_more) = directory.names_like(MOST_SHARED, wanted).unwrap_or_else(|_| {
            let unlisted = is_new(directory, INDEX.as_ref(), new).then(|| INDEX.into());
            (unlisted.into_iter().collect(), false)
        });
        if has_more && directory.may_have(INDEX.as_ref()) {
            each(Odd { place: place.join(INDEX), entries: Vec::new() });
        } else {
            for name in &names {
                let Some(entries) = self.judge(directory, place, name) else { continue };
                each(Odd { place: place.join(name), entries });
                // git reads no index whose shared part is missing, and makes none in its place.
                if is_shared(name) && directory.may_have(INDEX.as_ref()) {
                    each(Odd { place: place.join(INDEX), entries: vec![name.as_bytes().to_vec()] });
                }
            }
        }
        !names.is_empty()
    }

    /// The odd entries of one, if it is odd.
    fn judge(&mut self, directory: &Directory, place: &Path, name: &OsString) -> Option<Vec<Vec<u8>>> {
        let hashes = self.hashes.get_or_init(|| hashes(self.own));
        match directory.regular(name) {
            Ok(Some(file)) => {
                let leads_away = |inner, path: &[u8]| (self.leads_away)(place, inner, path);
                let text = Text::new(file, self.left).map(|text| text.with_links(&leads_away));
                text.map_or_else(|| Some(Vec::new()), |mut text| text.judge(hashes))
            }
            Ok(None) => None,
            Err(_) => Some(Vec::new()),
        }
    }
}

/// Where core.splitIndex is set, most entries are in another file, which has the name of its checksum.
fn is_shared(name: &OsStr) -> bool {
    name.as_bytes().strip_prefix(b"sharedindex.").is_some_and(|rest| rest.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a configuration has any say about submodules. git follows no other ones.
fn names_submodules(own: &Directory) -> bool {
    let names = |text: Vec<u8>| text.to_ascii_lowercase().windows(9).any(|word| word == b"submodule");
    let read = |name: &str| own.read(name.as_ref(), LONGEST_CONFIG).ok().flatten();
    [CONFIG, OF_WORKTREE].into_iter().filter_map(read).any(names)
}

/// Whether settings of a repository, or of a linked worktree in it, have git write indexes without all files. A command
/// cannot have them say so.
pub fn may_be_sparse(own: &Directory, worktree: &Path) -> bool {
    let says_so =
        |setting: Result<Setting, _>| setting.is_ok_and(|it| it.is("index", "sparse") && it.holds());
    let read = |place: PathBuf| own.read(place.as_os_str(), LONGEST_CONFIG).ok().flatten();
    let places = [CONFIG.into(), OF_WORKTREE.into(), worktree.join(OF_WORKTREE)];
    places.into_iter().filter_map(read).any(|text| Settings::of(&text).any(says_so))
}

/// How long the names of objects may be in a repository.
fn hashes(own: &Directory) -> &'static [usize] {
    let names_it = |setting: &&Setting| setting.parts() == Some((b"extensions", None, b"objectformat"));
    let text = own.read(CONFIG.as_ref(), LONGEST_CONFIG).ok().flatten();
    let settings = text.and_then(|text| Settings::of(&text).collect::<Result<Vec<_>, _>>().ok());
    // Somewhere else, if it is not the placeholder.
    let is_own = |text: &[u8]| leads_to(text, ".");
    let settings = settings.filter(|_| is_absent_or(own, COMMON, is_own));
    let Some(settings) = settings else { return &[SHA1, SHA256] };
    let last = settings.iter().rfind(names_it);
    let value = last.and_then(|setting| setting.value.as_deref());
    if value.is_some_and(|value| value.eq_ignore_ascii_case(b"sha256")) { &[SHA256] } else { &[SHA1] }
}

/// Whether one is there that has changed.
fn is_new(directory: &Directory, name: &OsStr, new: New) -> bool {
    match (new, directory.ages(name)) {
        // What a link leads to changes without it.
        (New::Since(since), Ok(ages)) => ages.changed >= since || is_link(directory.as_fd(), name),
        (New::All, Ok(_)) => true,
        (_, Err(failed)) => !says_missing(&failed.cause),
    }
}
