//! Settings of the kernel (sysctl(8)).

use std::path::Path;

/// The number that a setting has, by its path below /proc/sys; `None` where nobody can tell.
pub fn number(name: &str) -> Option<i64> {
    let text = std::fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
    text.trim().parse().ok()
}
