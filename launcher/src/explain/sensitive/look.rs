//! A look at what is below a directory: a rule about it opens all of that.

use crate::explain::sensitive::Use;
use crate::explain::sensitive::table::{LATER_NAMES, SECRET_NAMES};
use crate::profile::{Name, Pattern};
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
/// Read permission of users that neither own a file nor are in its group.
const OTHERS_READ: u32 = 0o004;

/// What is said of a file that only its owner and group may read.
pub const CLOSED: &str = "its permissions close it to other users";

/// Whether permissions close a file to other users.
pub fn is_closed(meta: &fs::Metadata) -> bool {
    meta.mode() & OTHERS_READ == 0
}

/// What makes a place sensitive: where, and why.
pub type Found = (PathBuf, String);

/// Looks for what makes a place sensitive.
pub struct Look {
    what: Use,
    names: Vec<Pattern>,
    /// Whether names alone count.
    by_name_only: bool,
    left: usize,
    found: Vec<Found>,
}

impl Look {
    pub fn new(what: Use) -> Look {
        let names = match what {
            Use::Read => SECRET_NAMES,
            Use::Write => LATER_NAMES,
        };
        let names = names.iter().map(|name| Pattern::fixed(name)).collect();
        Look { what, names, by_name_only: false, left: MOST, found: Vec::new() }
    }

    /// Where names alone count: in a workspace, permissions say nothing.
    pub fn by_name_only(self) -> Look {
        Look { by_name_only: true, ..self }
    }

    /// What makes a path sensitive: its name, or what is below it, the nearest first, up to a number of things. Links
    /// are not followed: rules do not follow them either.
    pub fn at(mut self, path: &Path, most: usize) -> Vec<Found> {
        if let Some(why) = path.file_name().and_then(|name| self.by_name(name)) {
            return vec![(path.to_path_buf(), why)];
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
            Err(_) => return Err(format!("{} cannot be looked through", shown(at))),
        };
        for entry in entries.flatten() {
            self.left = self.left.checked_sub(1).ok_or("it has more in it than can be looked through")?;
            let path = entry.path();
            if let Some(why) = self.by_name(&entry.file_name()) {
                self.found.push((path, why));
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            let why = match self.what {
                _ if meta.is_dir() => {
                    more.push_back(path);
                    continue;
                }
                Use::Read if self.by_name_only => None,
                Use::Read if meta.is_file() => is_closed(&meta).then_some(CLOSED),
                Use::Read if !meta.is_symlink() => Some("no regular file"),
                Use::Read | Use::Write => None,
            };
            self.found.extend(why.map(|why| (path, why.to_string())));
        }
        Ok(())
    }

    /// Why something of this name is sensitive.
    pub fn by_name(&self, name: &OsStr) -> Option<String> {
        let name = Name::new(name.as_bytes());
        self.names.iter().any(|pattern| pattern.matches(name)).then(|| match self.what {
            Use::Read => "it is named like a secret".to_string(),
            Use::Write => "something outside executes what is there".to_string(),
        })
    }
}
