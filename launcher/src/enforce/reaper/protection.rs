//! Keeps protected files protected. A mount goes with its file, so when a process outside replaces the file, it is
//! mounted anew; when one removes it, the name is watched for a new one. What is made at a watched name is put aside.

use crate::enforce::mounts::{self, HookDirectories};
use crate::enforce::reaper::watched_names::WatchedNames;
use crate::plan::namespaces::Layout;
use crate::sys::mount::Changed;
use crate::sys::new_names::NewNames;
use crate::sys::{mount, path, signal};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The files that must stay protected while the command runs.
pub struct Protection {
    layout: Rc<Layout>,
    hooks: RefCell<HookDirectories>,
    mounts: File,
    /// Names that appear beside protected files, and where something protected is missing.
    names: NewNames,
    /// The names of protected files, and of directories above missing ones.
    parts: RefCell<BTreeSet<OsString>>,
    watched: WatchedNames,
    signals: OwnedFd,
}

impl Protection {
    /// Of a run's mounts, in whose namespace this process is; `None` if they cannot be watched.
    pub fn of(layout: Rc<Layout>, hooks: HookDirectories, watched: &signal::Set) -> Option<Protection> {
        let (mounts, signals) = (mount::changes()?, signal::descriptor(watched).ok()?);
        let names = NewNames::new().ok()?;
        let watched = WatchedNames::of(&layout);
        let (hooks, parts) = (RefCell::new(hooks), RefCell::new(BTreeSet::new()));
        let protection = Protection { layout, hooks, mounts, names, parts, watched, signals };
        protection.watch_neighbours();
        // Something may have changed before the mounts were watched.
        protection.renew().then_some(protection)
    }

    /// Has the kernel tell when something takes the place of a protected file: the change of the mounts does not tell
    /// which one it is, and all would have to be looked at before it is mounted again.
    fn watch_neighbours(&self) {
        let all = self.layout.shielded();
        let beside = all.filter_map(|path| path.parent().zip(path.file_name()));
        let mut directories = BTreeSet::new();
        for (directory, name) in beside {
            self.parts.borrow_mut().insert(name.to_os_string());
            directories.insert(directory);
        }
        // One that cannot be watched is looked after like all the rest.
        directories.into_iter().for_each(|directory| drop(self.names.watch(directory)));
    }

    /// Protects what lacks its mount. Returns whether that worked.
    fn renew(&self) -> bool {
        self.mount_again(|_| true)
            && (!self.watches_what_is_missing() || self.mount_again(|_| true))
            && self.watched.settle(&self.names)
    }

    fn mount_again(&self, wanted: impl Fn(&Path) -> bool) -> bool {
        // A file that is replaced once more meanwhile is found the next time.
        const ATTEMPTS: usize = 64;
        (0..ATTEMPTS).any(|_| mounts::renew(&self.layout, &mut self.hooks.borrow_mut(), &wanted).is_ok())
    }

    /// Has the kernel tell when something is made in the place of what is missing. Returns whether anything is.
    fn watches_what_is_missing(&self) -> bool {
        let missing: Vec<&PathBuf> = self.layout.shielded().filter(|path| is_missing(path)).collect();
        let parts = missing.iter().flat_map(|path| path.iter().map(OsStr::to_os_string));
        self.parts.borrow_mut().extend(parts);
        // The directory may be gone as well.
        let above =
            |path: &PathBuf| path.ancestors().skip(1).find(|above| !is_missing(above)).map(Path::to_path_buf);
        for directory in missing.iter().filter_map(|path| above(path)) {
            let _ = self.names.watch(&directory);
        }
        !missing.is_empty()
    }

    /// The names that have appeared and matter.
    fn appeared(&self) -> Option<Vec<OsString>> {
        let parts = self.parts.borrow();
        self.names.appeared(|name| self.watched.has_part(name) || parts.contains(name))
    }

    /// Protects the configuration that the supervisor is about to put in the place of another. Returns the
    /// lower half of its inode number.
    pub fn protect_new_config(&self) -> u32 {
        self.hooks.borrow().protect_new_config()
    }

    /// Protects what has changed since the last look. Returns whether everything is protected.
    pub fn catches_up(&self) -> bool {
        self.appeared().is_none() || self.renew()
    }

    /// Waits for a signal, and renews lost mounts meanwhile. Returns whether everything is protected.
    pub fn holds_until_signal(&self) -> bool {
        loop {
            let Changed { mounts, names, signalled } =
                mount::wait_for_change(&self.mounts, &self.names, self.signals.as_fd());
            let appeared = if names { self.appeared() } else { None };
            if let Some(appeared) = &appeared {
                // First what is most likely without a mount: a command may be waiting for it.
                let _ = self.mount_again(|path| appeared.iter().any(|name| path.file_name() == Some(name)));
            }
            if (mounts || appeared.is_some()) && !self.renew() {
                return false;
            }
            // Also while mounts still change: otherwise constant changes would keep the tree from ending.
            if signalled || !(mounts || names) {
                return true;
            }
        }
    }
}

fn is_missing(path: &Path) -> bool {
    !path::is_there(path)
}
