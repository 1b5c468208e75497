//! What listings of directories tell of paths: what is certainly not there, or a directory. A plan asks for hundreds of
//! names in two directories, of which nearly none exists: a listing answers all of them.
//!
//! The first names that are asked for in a directory are looked up, each once. For more the directory is listed, and
//! that is as old as a look at the first of them would be. It is believed about what it does not have, and about what
//! are directories. Whatever else it has is looked at, as is everything where it cannot be read.

use crate::plan::namespaces::placeholder::{MODE, PERMISSIONS};
use crate::sys::listing::{Entry, Listing};
use crate::sys::observed::{self, Depth};
use crate::sys::path::is_plain;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// So many names of a directory are looked up one by one: reading it takes five calls. Of a base more are asked.
const FEW: usize = 5;

/// Directories that may have been listed.
#[derive(Debug, Default)]
pub struct Listings {
    /// The real paths of those that names are asked below.
    bases: Vec<PathBuf>,
    known: RefCell<Vec<(PathBuf, Known)>>,
}

#[derive(Debug)]
enum Known {
    /// It is no placeholder, and has these.
    Asked(Vec<(Vec<u8>, Found)>),
    /// What it has, as far as that tells.
    Listed(Option<Listing>),
}

/// What there is by a name.
#[derive(Clone, Copy, Debug)]
enum Found {
    Missing,
    /// A directory, with its permissions if they are known.
    Directory(Option<u32>),
    /// Something else, or something that may be meant by the name.
    Other,
}

/// The first component of a path that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacking<'p> {
    /// Where it would be.
    pub at: &'p Path,
    /// Whether the directory above it may be a placeholder of another run, which goes with that run: an empty one with
    /// the permissions of those.
    pub in_placeholder: bool,
}

/// What listings tell of a path.
enum Told<'p> {
    /// This is not there.
    Lacking(Lacking<'p>),
    /// It is a directory, and so is all above it.
    Directory,
    /// It has to be looked at.
    Nothing,
}

impl Listings {
    /// For names below these directories, as far as their paths are real ones.
    pub fn below(bases: impl IntoIterator<Item = PathBuf>) -> Listings {
        let bases = bases.into_iter().filter(|base| is_plain(base)).collect();
        Listings { bases, known: RefCell::default() }
    }

    /// Whether there is certainly nothing at a path.
    pub fn lack(&self, path: &Path) -> bool {
        self.first_missing(path).is_some()
    }

    /// The first component of a path that is certainly not there. All above it are directories, and no links.
    pub fn first_missing<'p>(&self, path: &'p Path) -> Option<Lacking<'p>> {
        match self.told(path) {
            Told::Lacking(lacking) => Some(lacking),
            Told::Directory | Told::Nothing => None,
        }
    }

    /// Whether there is something at a path. Where they do not tell, `look` does.
    pub fn has(&self, path: &Path, look: impl FnOnce(&Path) -> bool) -> bool {
        match self.told(path) {
            Told::Lacking(_) => false,
            Told::Directory => true,
            Told::Nothing => look(path),
        }
    }

    /// Whether a path is certainly the real one of a directory.
    pub fn has_directory(&self, path: &Path) -> bool {
        matches!(self.told(path), Told::Directory)
    }

    /// Whether a path certainly leads over no links, be there something or not.
    pub fn is_straight(&self, path: &Path) -> bool {
        !matches!(self.told(path), Told::Nothing)
    }

    fn told<'p>(&self, path: &'p Path) -> Told<'p> {
        self.along(path).unwrap_or(Told::Nothing)
    }

    fn along<'p>(&self, path: &'p Path) -> Option<Told<'p>> {
        let text = path.as_os_str().as_bytes();
        let is_above = |base: &&PathBuf| {
            text.strip_prefix(base.as_os_str().as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
        };
        // Nobody has looked at a base.
        let mut kept_as = None;
        let mut above = self.bases.iter().filter(is_above).map(|base| base.as_os_str().len()).max()?;
        while above < text.len() {
            let name = text.get(above + 1..)?;
            let name = name.split(|byte| *byte == b'/').next()?;
            if matches!(name, b"" | b"." | b"..") {
                return None;
            }
            let next = above + 1 + name.len();
            let (directory, here) = (part(text, above)?, part(text, next)?);
            match self.entry(directory, kept_as, name)? {
                (Found::Missing, in_placeholder) => {
                    return Some(Told::Lacking(Lacking { at: here, in_placeholder }));
                }
                (Found::Directory(mode), _) => (above, kept_as) = (next, mode),
                (Found::Other, _) => return None,
            }
        }
        Some(Told::Directory)
    }

    /// What a directory has of a name, and whether the directory may be a placeholder.
    fn entry(&self, directory: &Path, mode: Option<u32>, name: &[u8]) -> Option<(Found, bool)> {
        let mut known = self.known.borrow_mut();
        let place = match known.iter().position(|(path, _)| path.as_os_str() == directory.as_os_str()) {
            Some(place) => place,
            None => {
                known.push((directory.to_path_buf(), self.unasked(directory, mode)));
                known.len() - 1
            }
        };
        let (_, state) = known.get_mut(place)?;
        if let Known::Asked(names) = state {
            if let Some((_, found)) = names.iter().find(|(asked, _)| asked == name) {
                return Some((*found, false));
            }
            if names.len() < FEW {
                let found = look_up(directory, name)?;
                names.push((name.to_vec(), found));
                return Some((found, false));
            }
            *state = Known::Listed(listed(directory));
        }
        match state {
            Known::Listed(Some(listing)) => {
                let may_be_one = listing.mode() == MODE;
                match may_be_one {
                    true => observed::tell(directory, b"", Depth::Contents),
                    false => observed::tell(directory, name, Depth::Attributes),
                }
                let found = match listing.entry(name) {
                    Entry::Missing => Found::Missing,
                    Entry::Directory => Found::Directory(None),
                    Entry::Other => Found::Other,
                };
                Some((found, may_be_one && listing.is_empty()))
            }
            Known::Listed(None) | Known::Asked(_) => None,
        }
    }

    /// What is known of a directory before it is asked for a name.
    fn unasked(&self, directory: &Path, mode: Option<u32>) -> Known {
        let is_base = self.bases.iter().any(|base| base.as_os_str() == directory.as_os_str());
        let look = || directory.symlink_metadata().ok().map(|meta| permissions(&meta));
        let may_be_placeholder = || mode.or_else(look).is_none_or(|mode| mode == MODE);
        match is_base || may_be_placeholder() {
            true => Known::Listed(listed(directory)),
            false => Known::Asked(Vec::new()),
        }
    }
}

/// Who observes what is looked at is told of each name.
fn listed(directory: &Path) -> Option<Listing> {
    observed::aside(|| Listing::of(directory))
}

/// What a directory has of a name, if that can be told.
fn look_up(directory: &Path, name: &[u8]) -> Option<Found> {
    match directory.join(OsStr::from_bytes(name)).symlink_metadata() {
        Ok(meta) if meta.is_dir() => Some(Found::Directory(Some(permissions(&meta)))),
        Ok(_) => Some(Found::Other),
        Err(error) => (error.kind() == io::ErrorKind::NotFound).then_some(Found::Missing),
    }
}

fn permissions(meta: &Metadata) -> u32 {
    meta.mode() & PERMISSIONS
}

fn part(text: &[u8], length: usize) -> Option<&Path> {
    text.get(..length).map(|text| Path::new(OsStr::from_bytes(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_is_there_or_may_be_is_never_lacking() {
        let scratch = Scratch::create(None).unwrap();
        let base = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::create_dir(base.join("empty")).unwrap();
        fs::create_dir(base.join("kept-free")).unwrap();
        fs::set_permissions(base.join("kept-free"), fs::Permissions::from_mode(MODE)).unwrap();
        fs::write(base.join("file"), "").unwrap();
        symlink("a", base.join("link")).unwrap();
        let listings = Listings::below([base.clone()]);
        let Some(_) = Listing::of(&base) else { return };
        let missing = |path: &str| {
            let path = base.join(path);
            let ask =
                || listings.first_missing(&path).map(|found| (found.at.to_path_buf(), found.in_placeholder));
            (0..FEW * 3).for_each(|_| drop(ask()));
            ask()
        };
        for there in ["", "a", "a/b", "file", "file/x", "link", "link/none", "A", "a/../none", "./none"] {
            assert_eq!(missing(there), None, "{there}");
        }
        assert_eq!(missing("none"), Some((base.join("none"), false)));
        assert_eq!(missing("none/x/y"), Some((base.join("none"), false)));
        assert_eq!(missing("a/x/y"), Some((base.join("a/x"), false)));
        assert_eq!(missing("empty/x"), Some((base.join("empty/x"), false)));
        assert_eq!(missing("kept-free/x"), Some((base.join("kept-free/x"), true)));
        let known = |path: &str| {
            missing(path);
            let path = base.join(path);
            (listings.has_directory(&path), listings.is_straight(&path))
        };
        for directory in ["a", "a/b", "empty", "kept-free"] {
            assert_eq!(known(directory), (true, true), "{directory}");
        }
        for free in ["none", "none/x", "a/x", "a/b/x", "kept-free/x"] {
            assert_eq!(known(free), (false, true), "{free}");
        }
        for other in ["", "file", "file/x", "link", "link/b", "link/none", "A", "a/../a", "./a"] {
            assert_eq!(known(other), (false, false), "{other}");
        }
        // A path that is written in another way is not the real one.
        for odd in ["a/../a", "a/.", "a//b/.."] {
            let base = PathBuf::from(format!("{}/{odd}", base.display()));
            let path = base.join("b");
            assert!(!Listings::below([base]).is_straight(&path), "{odd}");
        }
        // Nobody asked for names there.
        assert!(!listings.lack(Path::new("/no/such")));
        assert!(!listings.lack(&base));
    }
}
