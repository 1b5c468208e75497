//! A look at what is below a directory: a rule about it opens all of that.

use crate::explain::sensitive::Use;
use crate::profile::{Name, Pattern};
use crate::text::shown;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of entries that are looked at.
const MOST: usize = 20_000;
/// Read permission of users that neither own a file nor are in its group.
const OTHERS_READ: u32 = 0o004;

/// What is said of a file that only its owner and group may read.
pub const CLOSED: &str = "its permissions close it to other users";

/// What is said of a pipe or a socket.
const IRREGULAR: &str =
    "no regular file: a program outside may read what is written to it, or write what is read";
/// What is said of a repository without a work tree.
const REPOSITORY: &str = "git executes what is in it";

/// Whether permissions close a file to other users.
pub fn is_closed(meta: &fs::Metadata) -> bool {
    meta.mode() & OTHERS_READ == 0
}

/// Looks for what makes a place sensitive.
pub struct Look<'n> {
    what: Use,
    names: &'n [Pattern],
    left: usize,
    /// Whether pipes and sockets count.
    services: bool,
}

impl<'n> Look<'n> {
    /// `names`: those that make a place sensitive.
    pub fn new(what: Use, names: &'n [Pattern]) -> Look<'n> {
        Look { what, names, left: MOST, services: true }
    }

    /// Looks for what is executed alone: a service may have its pipes and sockets there.
    pub fn without_services(self) -> Look<'n> {
        Look { services: false, ..self }
    }

    /// Why a path is sensitive, by the names that lead to it below `base`, or by what is below it. Links are not
    /// followed: rules do not follow them either.
    pub fn at(mut self, path: &Path, base: &Path) -> Option<String> {
        for place in path.ancestors().take_while(|place| *place != base) {
            if let Some(why) = place.file_name().and_then(|name| self.by_name(name)) {
                return Some(why);
            }
            if self.is_repository(place) {
                return Some(format!("{}: {REPOSITORY}", shown(place)));
            }
        }
        match path.symlink_metadata() {
            Ok(meta) if self.services && !meta.is_file() && !meta.is_dir() && !meta.is_symlink() => {
                return Some(IRREGULAR.to_string());
            }
            _ => {}
        }
        let mut directories = vec![path.to_path_buf()];
        while let Some(directory) = directories.pop() {
            match self.directory(&directory, &mut directories) {
                Ok(None) => {}
                Ok(found) => return found,
                Err(why) => return Some(why),
            }
        }
        None
    }

    fn directory(&mut self, at: &Path, more: &mut Vec<PathBuf>) -> Result<Option<String>, String> {
        let entries = match fs::read_dir(at) {
            Ok(entries) => entries,
            // A file; or nothing, which no rule can be about.
            Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => {
                return Ok(None);
            }
            Err(_) => return Err(format!("{} cannot be looked through", shown(at))),
        };
        for entry in entries.flatten() {
            self.left = self.left.checked_sub(1).ok_or("it has more in it than can be looked through")?;
            let path = entry.path();
            if let Some(why) = self.by_name(&entry.file_name()) {
                return Ok(Some(format!("{}: {why}", shown(&path))));
            }
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                if self.is_repository(&path) {
                    return Ok(Some(format!("{}: {REPOSITORY}", shown(&path))));
                }
                more.push(path);
            } else if self.what == Use::Read && meta.is_file() && is_closed(&meta) {
                return Ok(Some(format!("{}: {CLOSED}", shown(&path))));
            } else if self.services && !meta.is_file() && !meta.is_symlink() {
                return Ok(Some(format!("{}: {IRREGULAR}", shown(&path))));
            }
        }
        Ok(None)
    }

    /// Whether git takes a directory for a repository, whatever its name is: it executes the hooks in it.
    fn is_repository(&self, directory: &Path) -> bool {
        self.what == Use::Write
            && directory.join("HEAD").symlink_metadata().is_ok()
            && directory.join("objects").is_dir()
    }

    fn by_name(&self, name: &OsStr) -> Option<String> {
        let name = Name::new(name.as_bytes());
        self.names.iter().any(|pattern| pattern.matches(name)).then(|| match self.what {
            Use::Read => "it is named like a secret".to_string(),
            Use::Write => "something outside executes what is there".to_string(),
        })
    }
}
