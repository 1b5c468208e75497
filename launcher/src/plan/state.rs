//! Where `sbx` keeps what lasts from run to run. No command can write there.

use crate::host::Host;
use crate::plan::deny_expansion::resolve;
use crate::sys::path::real;
use crate::sys::process;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The directory of one kind of thing that lasts, by its real path; `None` for a user without a home.
pub fn directory(host: &Host, kind: &str) -> Option<PathBuf> {
    // A link on the way is the user's own: who opens what is in it goes by names that no link stands for.
    let real = |state: PathBuf| real(&state).unwrap_or_else(|_| resolve(&state)).join("sbx");
    let state = || place(host).map(|(top, below)| real(top.join(below)));
    host.state.get_or_init(state).as_ref().map(|state| state.join(kind))
}

/// The directory of all that lasts, by the name that leads there.
pub fn named(host: &Host) -> Option<PathBuf> {
    place(host).map(|(top, below)| top.join(below).join("sbx"))
}

/// A directory of the user's, and where in it programs keep what lasts.
fn place(host: &Host) -> Option<(PathBuf, &'static str)> {
    let absolute = |name| host.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").map(|state| (state, "")).or_else(|| Some((absolute("HOME")?, ".local/state")))
}

/// The directory of all tool caches, which nobody need have made yet.
pub fn caches(host: &Host) -> Option<PathBuf> {
    let absolute = |name| host.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    base.map(|base| base.join("sbx"))
}

/// Whether that directory is the user's own.
pub fn is_own(host: &Host) -> bool {
    place(host).is_some_and(|(top, _)| is_users(&top))
}

/// Whether a directory is the user's own. In a home that is missing, or another user's (as after `sudo` without `-H`),
/// nothing is kept: what root wrote there, its owner could not read.
pub fn is_users(directory: &Path) -> bool {
    directory.metadata().is_ok_and(|meta| meta.uid() == process::user())
}
