//! Accounts of this machine (passwd(5)). Names that only a directory service knows are not found.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Which field of a line of passwd(5) something is.
const NAME: usize = 0;
const USER: usize = 2;
const HOME: usize = 5;

/// The home directory of a user, by number.
pub fn home_of(user: u32) -> Option<PathBuf> {
    home_where(USER, user.to_string().as_bytes())
}

/// The home directory of a user, by name.
pub fn home_of_name(name: &[u8]) -> Option<PathBuf> {
    home_where(NAME, name)
}

fn home_where(field: usize, value: &[u8]) -> Option<PathBuf> {
    let accounts = std::fs::read("/etc/passwd").ok()?;
    let mut lines = accounts.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b':'));
    let mut own = lines.find(|fields| fields.clone().nth(field) == Some(value))?;
    let home = own.nth(HOME).map(|home| PathBuf::from(OsStr::from_bytes(home)))?;
    home.is_absolute().then_some(home)
}

/// Whether the user namespace of this process knows every user, as the first one does.
pub fn knows_all_users() -> bool {
    const ALL: &str = "4294967295";
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().nth(2) == Some(ALL)
}
