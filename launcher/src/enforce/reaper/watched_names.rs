//! Names where nothing may be made, and where nothing stands in the workspace either: what is made there is put aside
//! at once, and a placeholder link takes its place.

use crate::enforce::aside;
use crate::enforce::mounts;
use crate::plan::namespaces::Layout;
use crate::plan::namespaces::placeholder::Watched;
use crate::sys::beneath::Directory;
use crate::sys::new_names::NewNames;
use crate::sys::path::says_missing;
use crate::sys::{SyscallError, access, file};
use std::os::fd::AsFd;
use std::path::Path;

/// Puts aside what has been made at one of them. Returns whether nothing is left there.
pub fn settle(layout: &Layout, names: &NewNames) -> bool {
    // A command may be faster than this a few times, and not forever.
    const ATTEMPTS: usize = 64;
    let mut above: Option<(&Path, Directory)> = None;
    for watched in &layout.watched {
        if above.as_ref().is_none_or(|(path, _)| *path != watched.above) {
            // Before the look: what comes later is told.
            let root = names.watch(&watched.above).and_then(|()| Directory::open(&watched.above));
            match root {
                Ok(root) => above = Some((&watched.above, root)),
                // Somebody outside has removed it.
                Err(failed) if says_missing(&failed.cause) => continue,
                Err(_) => return false,
            }
        }
        // Nearly always nothing is there.
        let first = watched.below.iter().next().unwrap_or_default();
        if above.as_ref().is_some_and(|(_, root)| !root.may_have(first)) {
            continue;
        }
        if !(0..ATTEMPTS).any(|_| settle_one(watched, names).unwrap_or(false)) {
            return false;
        }
    }
    true
}

/// One look from above. Returns whether nothing is there, or a held placeholder.
fn settle_one(watched: &Watched, names: &NewNames) -> Result<bool, SyscallError> {
    let root = Directory::open(&watched.above)?;
    for place in watched.places() {
        let (above, name) = (place.parent().unwrap_or(place), place.file_name().unwrap_or_default());
        // As above.
        names.watch(&watched.above.join(above))?;
        let directory = root.place(above)?;
        if mounts::holds_link(&watched.above.join(place))? {
            return Ok(true);
        }
        let is_last = place == watched.below;
        match file::identity_of(directory.as_fd(), name, false) {
            Err(failed) if says_missing(&failed.cause) => return Ok(true),
            Err(failed) => return Err(failed),
            Ok(found) if !is_last && found.is_directory() && !access::is_closed(found.permissions()) => {
                mounts::pin(&watched.above.join(place))?;
            }
            // Nothing can be made below a file.
            Ok(found) if !is_last && !found.is_link() && !found.is_directory() => return Ok(true),
            // Links lead where the command wants, and what is in a closed directory no later run could tell.
            Ok(_) => return aside::replace(&directory, name).map(|()| false),
        }
    }
    Ok(true)
}
