//! A look at what is below a directory: a rule about it opens all of that.

use crate::explain::sensitive::{Use, git};
use crate::profile::{Name, Pattern};
use crate::sys::number::FileNumber;
use crate::text::shown;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of entries that are looked at.
const MOST: usize = 20_000;
/// Permission of users that neither own a file nor are in its group: to read it.
const OTHERS_READ: u32 = 0o004;
/// The same: to go through a directory.
const OTHERS_SEARCH: u32 = 0o001;

/// What is said of what only its owner and group may read.
pub const CLOSED: &str = "its permissions close it to other users";

/// What is said of something that is executed by its name.
pub const EXECUTED: &str = "something outside executes what is there";

/// What is said of a pipe or a socket.
const IRREGULAR: &str =
    "no regular file: a program outside may read what is written to it, or write what is read";
/// What is said of a directory that is closed to this user.
const UNREADABLE: &str = "it cannot be looked through";
/// What is said of a repository without a work tree.
const REPOSITORY: &str = "git executes what is in it";

/// Whether its own permissions close a file to other users, or a directory with what is in it.
pub fn is_closed(meta: &fs::Metadata) -> bool {
    meta.mode() & OTHERS_READ == 0 || keeps_out(meta)
}

/// Whether a directory closes all that is in it to other users, whatever the modes there are.
pub fn keeps_out(meta: &fs::Metadata) -> bool {
    meta.is_dir() && meta.mode() & OTHERS_SEARCH == 0
}

/// Whether git takes a directory for a repository, whatever its name is.
fn is_repository(directory: &Path) -> bool {
    directory.join("HEAD").symlink_metadata().is_ok() && directory.join("objects").is_dir()
}

/// What makes a place sensitive: where, and why.
pub type Found = (PathBuf, String);

/// A sensitive file that has more names than the one that it is known by (hard links).
pub struct OtherName {
    /// Its device and number.
    number: FileNumber,
    /// What it is.
    why: String,
}

impl OtherName {
    /// Those of a file, or of the files in a directory, that have more names.
    pub fn of(path: &Path, why: &str) -> Vec<OtherName> {
        let mut all = Vec::new();
        // Of a directory with more in it, not all is asked.
        let (levels, mut left) = (4, 1_000);
        OtherName::collect(path, why, levels, &mut left, &mut all);
        all
    }

    fn collect(path: &Path, why: &str, levels: usize, left: &mut usize, all: &mut Vec<OtherName>) {
        let Ok(meta) = path.metadata() else { return };
        if meta.is_file() && meta.nlink() > 1 {
            let why = format!("another name of {}: {why}", shown(path));
            all.push(OtherName { number: FileNumber::of(&meta), why });
        }
        if !meta.is_dir() || levels == 0 {
            return;
        }
        for entry in path.read_dir().into_iter().flatten().flatten() {
            let Some(rest) = left.checked_sub(1) else { return };
            *left = rest;
            // No link in it leads anywhere: what it leads to has its own place.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                OtherName::collect(&entry.path(), why, levels - 1, left, all);
            }
        }
    }
}

/// Looks for what makes a place sensitive.
pub struct Look<'n> {
    what: Use,
    names: &'n [Pattern],
    others: &'n [OtherName],
    /// Whether pipes and sockets count.
    services: bool,
    /// Whether names alone count.
    by_name_only: bool,
    left: usize,
    found: Vec<Found>,
}

impl<'n> Look<'n> {
    /// `names`: those that make a place sensitive. `others`: sensitive files that have more names than theirs.
    pub fn new(what: Use, names: &'n [Pattern], others: &'n [OtherName]) -> Look<'n> {
        Look { what, names, others, services: true, by_name_only: false, left: MOST, found: Vec::new() }
    }

    /// Looks for what is executed alone: a service may have its pipes and sockets there.
    pub fn without_services(self) -> Look<'n> {
        Look { services: false, others: &[], ..self }
    }

    /// Where names alone count: in a workspace, permissions say nothing.
    pub fn by_name_only(self) -> Look<'n> {
        Look { by_name_only: true, ..self }
    }

    /// What makes a path sensitive: the names that lead to it below `base`, or what is below it, the nearest first, up
    /// to a number of things. Links are not followed: rules do not follow them either.
    pub fn at(mut self, path: &Path, base: &Path, most: usize) -> Vec<Found> {
        for place in path.ancestors().take_while(|place| *place != base) {
            if let Some(why) = place.file_name().and_then(|name| self.by_name(name)) {
                return vec![(place.to_path_buf(), why)];
            }
            if self.is_repository(place) {
                return vec![(place.to_path_buf(), REPOSITORY.to_string())];
            }
        }
        let meta = path.symlink_metadata().ok();
        if meta.as_ref().is_some_and(|meta| self.is_irregular(meta)) {
            return vec![(path.to_path_buf(), IRREGULAR.to_string())];
        }
        if let Some(why) = meta.and_then(|meta| self.by_identity(&meta)) {
            return vec![(path.to_path_buf(), why)];
        }
        if let Some(why) = self.login_in(path) {
            return vec![(path.to_path_buf(), why.to_string())];
        }
        let mut directories = VecDeque::from([path.to_path_buf()]);
        while let Some(directory) = directories.pop_front()
            && self.found.len() < most
        {
            if let Err(why) = self.directory(&directory, &mut directories) {
                self.found.push((path.to_path_buf(), why));
                break;
            }
        }
        self.found.truncate(most);
        self.found
    }

    fn directory(&mut self, at: &Path, more: &mut VecDeque<PathBuf>) -> Result<(), String> {
        let entries = match fs::read_dir(at) {
            Ok(entries) => entries,
            // A file; or nothing, which no rule can be about.
            Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => {
                return Ok(());
            }
            Err(_) => {
                self.found.push((at.to_path_buf(), UNREADABLE.to_string()));
                return Ok(());
            }
        };
        for entry in entries.flatten() {
            self.left = self.left.checked_sub(1).ok_or("it has more in it than can be looked through")?;
            let path = entry.path();
            if let Some(why) = self.by_name(&entry.file_name()) {
                self.found.push((path, why));
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            if let Some(why) = self.by_identity(&meta) {
                self.found.push((path, why));
                continue;
            }
            let why = match self.what {
                _ if meta.is_dir() && self.is_repository(&path) => Some(REPOSITORY),
                _ if self.is_irregular(&meta) => Some(IRREGULAR),
                _ if let Some(why) = self.login_in(&path) => Some(why),
                Use::Read if !self.by_name_only && !meta.is_symlink() => is_closed(&meta).then_some(CLOSED),
                Use::Read | Use::Write => None,
            };
            if why.is_none() && meta.is_dir() {
                more.push_back(path);
                continue;
            }
            self.found.extend(why.map(|why| (path, why.to_string())));
        }
        Ok(())
    }

    /// Why a file is sensitive that has a name elsewhere.
    fn by_identity(&self, meta: &fs::Metadata) -> Option<String> {
        let same = self.others.iter().find(|other| other.number == FileNumber::of(meta))?;
        Some(same.why.clone())
    }

    /// Whether it is a pipe or a socket, and those count.
    fn is_irregular(&self, meta: &fs::Metadata) -> bool {
        let counts = self.services && !self.by_name_only;
        counts && !meta.is_file() && !meta.is_dir() && !meta.is_symlink()
    }

    /// Whether a directory is a repository, in which git executes the hooks.
    fn is_repository(&self, directory: &Path) -> bool {
        self.what == Use::Write && is_repository(directory)
    }

    /// Why an address in a file, which has the settings of a repository, may have a login.
    fn login_in(&self, file: &Path) -> Option<&'static str> {
        let counts = self.what == Use::Read && !self.by_name_only && file.ends_with("config");
        let is_of_repository = counts && file.parent().is_some_and(is_repository);
        is_of_repository.then(|| git::login_in(file)).flatten()
    }

    /// Why something of this name is sensitive.
    fn by_name(&self, name: &OsStr) -> Option<String> {
        let name = Name::new(name.as_bytes());
        self.names.iter().any(|pattern| pattern.matches(name)).then(|| match self.what {
            Use::Read => "it is named like a secret".to_string(),
            Use::Write => EXECUTED.to_string(),
        })
    }
}
