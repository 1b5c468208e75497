//! Error numbers by name (errno(3)), the same on x86_64 and aarch64.

const NAMES: &[(u16, &str)] = &[
    (1, "EPERM"),
    (2, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (9, "EBADF"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (28, "ENOSPC"),
    (30, "EROFS"),
    (32, "EPIPE"),
    (38, "ENOSYS"),
    (40, "ELOOP"),
    (93, "EPROTONOSUPPORT"),
    (95, "EOPNOTSUPP"),
    (97, "EAFNOSUPPORT"),
    (101, "ENETUNREACH"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (113, "EHOSTUNREACH"),
];

/// EPERM.
pub const EPERM: u16 = 1;
/// ENOSYS.
pub const ENOSYS: u16 = 38;
/// What the self-query answers in a process that this very policy confines.
pub const EALREADY: u16 = 114;
/// What it answers in a process that some policy of ours confines.
pub const EISCONN: u16 = 106;
/// `MAX_ERRNO`: the kernel passes no greater number on.
pub const MAX: u16 = 4095;

/// By name, or by number.
pub fn parse(text: &[u8]) -> Option<u16> {
    if let Some((number, _)) = NAMES.iter().find(|(_, name)| name.as_bytes() == text) {
        return Some(*number);
    }
    if text.is_empty() || text.len() > 4 {
        return None;
    }
    let mut number = 0_u16;
    for digit in text {
        let digit = digit.checked_sub(b'0').filter(|d| *d < 10)?;
        number = number * 10 + u16::from(digit);
    }
    (1..=MAX).contains(&number).then_some(number)
}

/// The name, where it is one of the common ones.
pub fn name(number: u16) -> Option<&'static str> {
    NAMES.iter().find(|(n, _)| *n == number).map(|(_, name)| *name)
}

/// All names, for suggestions.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(_, name)| *name)
}
