//! The signals by which the supervisor tells the reaper what to do.

/// The kernel sends it when the supervisor ends. No program uses it for anything else on us.
pub fn orphaned() -> i32 {
    libc::SIGRTMIN()
}

/// The supervisor has looked at the signals that wait for the reaper.
pub fn looked_at() -> i32 {
    libc::SIGRTMIN() + 1
}

/// Send every process of the tree SIGTERM.
pub fn terminate() -> i32 {
    libc::SIGRTMIN() + 2
}

/// End the whole tree.
pub fn kill() -> i32 {
    libc::SIGRTMIN() + 3
}

/// Stop the whole tree: the supervisor is about to stop.
pub fn suspend() -> i32 {
    libc::SIGRTMIN() + 4
}

/// Continue the whole tree.
pub fn resume() -> i32 {
    libc::SIGRTMIN() + 5
}

/// The supervisor knows which process the command is.
pub fn acquainted() -> i32 {
    libc::SIGRTMIN() + 6
}

/// Make a pair of sockets.
pub fn make_pair() -> i32 {
    libc::SIGRTMIN() + 8
}

/// Protect a new configuration.
pub fn protect_config() -> i32 {
    libc::SIGRTMIN() + 7
}
