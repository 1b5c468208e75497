//! What protects files in a run that waits for its command.

use crate::error::{Refusal, cannot};
use crate::run::warm::same::{Files, Policy};
use crate::sys::mount;
use crate::sys::process::Pid;
use crate::text::shown;

/// What protects files in a run that waits. Nothing is mounted anew as long as its first process stands still.
pub struct Stands {
    mounts: mount::Changes,
    placeholders: Files,
}

impl Stands {
    /// Of a run whose first process is this one.
    pub fn of(first: Pid, policy: &Policy) -> Result<Stands, Refusal> {
        let mounts = mount::Changes::of(first).map_err(cannot("watch what the run has mounted"))?;
        Ok(Stands { mounts, placeholders: policy.placeholders() })
    }

    /// What its mounts are watched by.
    pub fn mounts(&self) -> &mount::Changes {
        &self.mounts
    }

    /// What of it is gone by now.
    pub fn lost(&self) -> Option<String> {
        // A mount goes with the file that it is on.
        let mount = || "something of what the run has mounted is gone".to_string();
        let other = |path| format!("what kept '{}' from being made is gone", shown(path));
        self.mounts.happened().then(mount).or_else(|| self.placeholders.changed().map(other))
    }
}
