//! What is shielded by mounts stays so, also when somebody outside puts another file in its place meanwhile: a mount goes
//! with the file that it is on.

use crate::launch::namespaces::{self, Doors, Layout};
use crate::sys::{mount, signal};
use std::cell::RefCell;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

/// What has to stay shielded while the command runs.
pub struct Shield {
    layout: Rc<Layout>,
    doors: RefCell<Doors>,
    mounts: File,
    signals: OwnedFd,
}

impl Shield {
    /// Of a run's mounts, in whose namespace this process is; `None` if that cannot be watched.
    pub fn of(layout: Rc<Layout>, doors: Doors, watched: &signal::Set) -> Option<Shield> {
        let (mounts, signals) = (mount::changes()?, signal::descriptor(watched).ok()?);
        let shield = Shield { layout, doors: RefCell::new(doors), mounts, signals };
        // Something may have changed before it was watched.
        shield.renew().then_some(shield)
    }

    fn renew(&self) -> bool {
        // What is replaced once more meanwhile is found the next time.
        const ATTEMPTS: usize = 64;
        (0..ATTEMPTS).any(|_| namespaces::renew(&self.layout, &mut self.doors.borrow_mut()).is_ok())
    }

    /// Shields the configuration that the supervisor is about to put in the place of another; tells which file that is.
    pub fn shield_new(&self) -> u32 {
        self.doors.borrow().shield_new()
    }

    /// Waits for a signal and renews meanwhile what has been taken away. Tells whether all is shielded.
    pub fn holds_until_signal(&self) -> bool {
        loop {
            let (changed, signalled) = mount::wait_for_change(&self.mounts, self.signals.as_fd());
            if changed && !self.renew() {
                return false;
            }
            // Not only when nothing changes any more: the tree would not end before.
            if signalled || !changed {
                return true;
            }
        }
    }
}
