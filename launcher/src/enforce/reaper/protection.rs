//! Keeps protected files protected: a mount goes with its file, so when a process outside replaces the
//! file, it is mounted anew.

use crate::enforce::mounts::{self, HookDirectories};
use crate::plan::namespaces::Layout;
use crate::sys::{mount, signal};
use std::cell::RefCell;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

/// The files that must stay protected while the command runs.
pub struct Protection {
    layout: Rc<Layout>,
    hooks: RefCell<HookDirectories>,
    mounts: File,
    signals: OwnedFd,
}

impl Protection {
    /// Of a run's mounts, in whose namespace this process is; `None` if they cannot be watched.
    pub fn of(layout: Rc<Layout>, hooks: HookDirectories, watched: &signal::Set) -> Option<Protection> {
        let (mounts, signals) = (mount::changes()?, signal::descriptor(watched).ok()?);
        let protection = Protection { layout, hooks: RefCell::new(hooks), mounts, signals };
        // Something may have changed before the mounts were watched.
        protection.renew().then_some(protection)
    }

    fn renew(&self) -> bool {
        // A file that is replaced once more meanwhile is found the next time.
        const ATTEMPTS: usize = 64;
        (0..ATTEMPTS).any(|_| mounts::renew(&self.layout, &mut self.hooks.borrow_mut()).is_ok())
    }

    /// Protects the configuration that the supervisor is about to put in the place of another. Returns the
    /// lower half of its inode number.
    pub fn protect_new_config(&self) -> u32 {
        self.hooks.borrow().protect_new_config()
    }

    /// Waits for a signal, and renews lost mounts meanwhile. Returns whether everything is protected.
    pub fn holds_until_signal(&self) -> bool {
        loop {
            let (changed, signalled) = mount::wait_for_change(&self.mounts, self.signals.as_fd());
            if changed && !self.renew() {
                return false;
            }
            // Also while mounts still change: otherwise constant changes would keep the tree from ending.
            if signalled || !changed {
                return true;
            }
        }
    }
}
