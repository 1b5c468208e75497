//! The signals by which the supervisor tells the reaper what to do.

/// Sent by the kernel when the supervisor ends. No program uses it for anything else on us.
pub fn orphaned() -> i32 {
    libc::SIGRTMIN()
}

/// Sent by the supervisor when it has looked at the signals that wait for the reaper.
pub fn looked_at() -> i32 {
    libc::SIGRTMIN() + 1
}

/// Sent by the supervisor: the whole tree is to be told to end.
pub fn terminate() -> i32 {
    libc::SIGRTMIN() + 2
}

/// Sent by the supervisor: the whole tree is to be ended.
pub fn kill() -> i32 {
    libc::SIGRTMIN() + 3
}

/// Sent by the supervisor before it stops: the whole tree is to stop.
pub fn suspend() -> i32 {
    libc::SIGRTMIN() + 4
}

/// Sent by the supervisor when it goes on: so is the tree to.
pub fn resume() -> i32 {
    libc::SIGRTMIN() + 5
}

/// Sent by the supervisor when it has found out which process the command is.
pub fn acquainted() -> i32 {
    libc::SIGRTMIN() + 6
}

/// Sent by the supervisor: a new configuration is to be shielded.
pub fn shield_new() -> i32 {
    libc::SIGRTMIN() + 7
}
