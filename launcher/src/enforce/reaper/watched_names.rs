//! Names where nothing may be made, and where nothing stands in the workspace either: what is made there is put aside
//! at once, and a placeholder link takes its place.

use crate::enforce::aside;
use crate::enforce::mounts;
use crate::plan::namespaces::Layout;
use crate::plan::namespaces::placeholder::Watched;
use crate::sys::beneath::Directory;
use crate::sys::new_names::NewNames;
use crate::sys::path::says_missing;
use crate::sys::{SyscallError, file};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;

/// The watched paths of a run.
pub struct WatchedNames {
    all: Vec<Watched>,
    /// The parts of the paths: other names do not matter.
    parts: BTreeSet<OsString>,
}

impl WatchedNames {
    /// Those of a layout.
    pub fn of(layout: &Layout) -> WatchedNames {
        let all: Vec<Watched> = layout.watched.iter().cloned().collect();
        let parts = all.iter().flat_map(|watched| watched.below.iter().map(OsStr::to_os_string)).collect();
        WatchedNames { all, parts }
    }

    /// Whether something of this name could be one of them, or be above one.
    pub fn has_part(&self, name: &OsStr) -> bool {
        self.parts.contains(name)
    }

    /// Puts aside what has been made at one of them. Returns whether nothing is left there.
    pub fn settle(&self, names: &NewNames) -> bool {
        // A command may be faster than this a few times, and not forever.
        const ATTEMPTS: usize = 64;
        self.all.iter().all(|watched| (0..ATTEMPTS).any(|_| settle(watched, names).unwrap_or(false)))
    }
}

/// One look from above. Returns whether nothing is there, or a held placeholder.
fn settle(watched: &Watched, names: &NewNames) -> Result<bool, SyscallError> {
    let root = Directory::open(&watched.above)?;
    for place in watched.places() {
        let (above, name) = (place.parent().unwrap_or(place), place.file_name().unwrap_or_default());
        // Before the look: what comes later is told.
        names.watch(&watched.above.join(above))?;
        let directory = root.place(above)?;
        if mounts::holds_link(&watched.above.join(place))? {
            return Ok(true);
        }
        let is_last = place == watched.below;
        match file::identity_of(directory.as_fd(), name, false) {
            Err(failed) if says_missing(&failed.cause) => return Ok(true),
            Err(failed) => return Err(failed),
            Ok(found) if !is_last && found.is_directory() => mounts::pin(&watched.above.join(place))?,
            // Nothing can be made below a file, and links lead where the command wants.
            Ok(found) if !is_last && !found.is_link() => return Ok(true),
            Ok(_) => return aside::replace(&directory, name).map(|()| false),
        }
    }
    Ok(true)
}
