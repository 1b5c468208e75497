//! Keeps protected files protected. A mount goes with its file, so when a process outside replaces the file, what is
//! there then is mounted anew. The kernel tells of a mount that it takes away; of a file that is renamed, or missing,
//! by the name that appears in its place. What is made at a watched name is put aside.

use crate::enforce::mounts::{self, HookDirectories};
use crate::enforce::reaper::watched_names;
use crate::plan::namespaces::Layout;
use crate::sys::mount::Changed;
use crate::sys::new_names::NewNames;
use crate::sys::{mount, path, signal};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

/// The files that must stay protected while the command runs.
pub struct Protection {
    layout: Rc<Layout>,
    hooks: RefCell<HookDirectories>,
    mounts: File,
    /// Beside what is protected, and where watched names are.
    names: NewNames,
    signals: OwnedFd,
}

impl Protection {
    /// Of a run's mounts, in whose namespace this process is; `None` if they cannot be watched.
    pub fn of(layout: Rc<Layout>, hooks: HookDirectories, watched: &signal::Set) -> Option<Protection> {
        let (mounts, signals) = (mount::changes()?, signal::descriptor(watched).ok()?);
        let (names, hooks) = (NewNames::new().ok()?, RefCell::new(hooks));
        let protection = Protection { layout, hooks, mounts, names, signals };
        // Something may have changed before the mounts were watched.
        protection.renew().then_some(protection)
    }

    /// Protects what lacks its mount. Returns whether that worked.
    fn renew(&self) -> bool {
        // In this order: what comes after the look is told.
        self.watches_places();
        self.settle() && self.mount_again()
    }

    /// Puts aside what has been made at watched names.
    fn settle(&self) -> bool {
        watched_names::settle(&self.layout, &self.names)
    }

    fn mount_again(&self) -> bool {
        // A file that is replaced once more meanwhile is found the next time.
        const ATTEMPTS: usize = 64;
        (0..ATTEMPTS).any(|_| mounts::renew(&self.layout, &mut self.hooks.borrow_mut()).is_ok())
    }

    /// Has the kernel tell when a name appears beside one that is protected. It may be the place of what is missing, or
    /// of what was renamed outside, which took its mount along: of that nothing else tells.
    fn watches_places(&self) {
        let places = self.layout.shielded().chain(&self.layout.pins);
        let above: BTreeSet<&Path> = places.filter_map(|path| path.parent()).collect();
        // The directory may be gone as well.
        let there = above.iter().filter_map(|path| path.ancestors().find(|above| path::is_there(above)));
        let there: BTreeSet<&Path> = there.collect();
        for directory in there {
            match self.names.watch(directory) {
                Err(failed) if !path::says_missing(&failed.cause) => self.names.go_blind(),
                _ => {}
            }
        }
    }

    /// Protects the configuration that the supervisor is about to put in the place of another. Returns the
    /// lower half of its inode number.
    pub fn protect_new_config(&self) -> u32 {
        self.hooks.borrow().protect_new_config()
    }

    /// Protects what has changed since the last look. Returns whether everything is protected.
    pub fn catches_up(&self) -> bool {
        !self.names.have_appeared() || self.renew()
    }

    /// Waits for a signal, and renews lost mounts meanwhile. Returns whether everything is protected.
    pub fn holds_until_signal(&self) -> bool {
        loop {
            let Changed { mounts, names, signalled } =
                mount::wait_for_change(&self.mounts, &self.names, self.signals.as_fd());
            let appeared = names && self.names.have_appeared();
            if (mounts || appeared) && !self.renew() {
                return false;
            }
            // Also while mounts still change: otherwise constant changes would keep the tree from ending.
            if signalled || !(mounts || names) {
                return true;
            }
        }
    }
}
