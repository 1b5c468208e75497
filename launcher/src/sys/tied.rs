//! A child that does not outlive this process.

use crate::sys::process;
use crate::sys::signal::{self, Set};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the command be killed when the thread that starts it ends, however that is; and gives it a session of its own,
/// so that it has no part in this terminal. No signal is blocked in it: this process blocks those that it waits for,
/// and a child that is made with a closure of its own inherits that.
pub fn tie(command: &mut Command) {
    let parent = process::id();
    let prepare = move || {
        process::die_with_parent(libc::SIGKILL).map_err(|failed| failed.cause)?;
        // The parent may have ended before it was asked for.
        if process::parent() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        rustix::process::setsid()?;
        signal::set_mask(&Set::of(&[])).map_err(|failed| failed.cause)?;
        Ok(())
    };
    // SAFETY: the closure makes system calls alone, on plain numbers; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
}
