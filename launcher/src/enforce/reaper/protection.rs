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
    /// Where something protected is missing; `None` as long as nothing is.
    names: RefCell<Option<NewNames>>,
    /// The parts of the paths of what is missing.
    missing: RefCell<BTreeSet<OsString>>,
    watched: WatchedNames,
    signals: OwnedFd,
}

impl Protection {
    /// Of a run's mounts, in whose namespace this process is; `None` if they cannot be watched.
    pub fn of(layout: Rc<Layout>, hooks: HookDirectories, watched: &signal::Set) -> Option<Protection> {
        let (mounts, signals) = (mount::changes()?, signal::descriptor(watched).ok()?);
        let watched = WatchedNames::of(&layout);
        // What is made there is an attack, or a mistake, and must be noticed.
        let names = if watched.is_empty() { None } else { Some(NewNames::new().ok()?) };
        let (hooks, names) = (RefCell::new(hooks), RefCell::new(names));
        let protection =
            Protection { layout, hooks, mounts, names, watched, signals, missing: RefCell::default() };
        // Something may have changed before the mounts were watched.
        protection.renew().then_some(protection)
    }

    /// Protects what lacks its mount. Returns whether that worked.
    fn renew(&self) -> bool {
        self.mount_again() && (!self.watches_what_is_missing() || self.mount_again()) && self.settle()
    }

    /// Puts aside what has been made at watched names.
    fn settle(&self) -> bool {
        self.names.borrow().as_ref().is_none_or(|names| self.watched.settle(names))
    }

    /// Whether a name has appeared that matters.
    fn names_matter(&self) -> bool {
        let missing = self.missing.borrow();
        let is_part = |name: &OsStr| self.watched.has_part(name) || missing.contains(name);
        self.names.borrow().as_ref().is_some_and(|names| names.have(is_part))
    }

    fn mount_again(&self) -> bool {
        // A file that is replaced once more meanwhile is found the next time.
        const ATTEMPTS: usize = 64;
        (0..ATTEMPTS).any(|_| mounts::renew(&self.layout, &mut self.hooks.borrow_mut()).is_ok())
    }

    /// Has the kernel tell when something is made in the place of what is missing. Returns whether anything is.
    fn watches_what_is_missing(&self) -> bool {
        let missing: Vec<&PathBuf> = self.layout.shielded().filter(|path| is_missing(path)).collect();
        let mut names = self.names.borrow_mut();
        if !missing.is_empty() && names.is_none() {
            *names = NewNames::new().ok();
        }
        *self.missing.borrow_mut() =
            missing.iter().flat_map(|path| path.iter().map(OsStr::to_os_string)).collect();
        // The directory may be gone as well.
        let above =
            |path: &PathBuf| path.ancestors().skip(1).find(|above| !is_missing(above)).map(Path::to_path_buf);
        for directory in missing.iter().filter_map(|path| above(path)) {
            let _ = names.as_ref().map(|names| names.watch(&directory));
        }
        !missing.is_empty()
    }

    /// Protects the configuration that the supervisor is about to put in the place of another. Returns the
    /// lower half of its inode number.
    pub fn protect_new_config(&self) -> u32 {
        self.hooks.borrow().protect_new_config()
    }

    /// Waits for a signal, and renews lost mounts meanwhile. Returns whether everything is protected.
    pub fn holds_until_signal(&self) -> bool {
        loop {
            let Changed { mounts, names, signalled } =
                mount::wait_for_change(&self.mounts, self.names.borrow().as_ref(), self.signals.as_fd());
            if (mounts || (names && self.names_matter())) && !self.renew() {
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
