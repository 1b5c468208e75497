//! What is shielded by mounts stays so, also when somebody outside puts another file in its place meanwhile: a mount goes
//! with the file that it is on.

use crate::launch::namespaces::{self, Layout};
use crate::sys::{mount, signal};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

/// What has to stay shielded while the command runs.
pub struct Shield {
    layout: Rc<Layout>,
    mounts: File,
    signals: OwnedFd,
}

impl Shield {
    /// Of a run's mounts, in whose namespace this process is; `None` if that cannot be watched.
    pub fn of(layout: Rc<Layout>, watched: &signal::Set) -> Option<Shield> {
        let shield = Shield { layout, mounts: mount::changes()?, signals: signal::descriptor(watched).ok()? };
        // Something may have changed before it was watched.
        shield.renew().then_some(shield)
    }

    fn renew(&self) -> bool {
        // What is replaced once more meanwhile is found the next time.
        const ATTEMPTS: usize = 64;
        (0..ATTEMPTS).any(|_| namespaces::renew(&self.layout).is_ok())
    }

    /// Waits for a signal and renews meanwhile what has been taken away. Tells whether all is shielded.
    pub fn holds_until_signal(&self) -> bool {
        while mount::wait_for_change(&self.mounts, self.signals.as_fd()) {
            if !self.renew() {
                return false;
            }
        }
        true
    }
}
