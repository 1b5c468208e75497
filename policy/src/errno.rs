//! Error numbers by name (errno(3)), the same on x86_64 and aarch64.

/// One string, because each `&str` of an array costs the shim a relocation.
const NAMES: &str = "EPERM 1 ENOENT 2 ESRCH 3 EINTR 4 EIO 5 ENXIO 6 EBADF 9 EAGAIN 11 \
    ENOMEM 12 EACCES 13 EFAULT 14 EBUSY 16 EEXIST 17 ENODEV 19 ENOTDIR 20 EINVAL 22 \
    ENFILE 23 EMFILE 24 ENOTTY 25 ENOSPC 28 EROFS 30 EPIPE 32 ENOSYS 38 ELOOP 40 \
    EPROTONOSUPPORT 93 EOPNOTSUPP 95 EAFNOSUPPORT 97 ENETUNREACH 101 ETIMEDOUT 110 ECONNREFUSED 111 EHOSTUNREACH 113";

fn pairs() -> impl Iterator<Item = (&'static str, u16)> {
    let mut words = NAMES.split(' ');
    core::iter::from_fn(move || Some((words.next()?, number(words.next()?.as_bytes())?)))
}

/// EPERM.
pub const EPERM: u16 = 1;
/// ENOSYS.
pub const ENOSYS: u16 = 38;
/// EOPNOTSUPP.
pub const EOPNOTSUPP: u16 = 95;
/// The answer to the self-query in a process that the same policy confines.
pub const EALREADY: u16 = 114;
/// The answer to the self-query in a process that another policy of sbx confines.
pub const EISCONN: u16 = 106;
/// `MAX_ERRNO`: the kernel returns no greater number.
pub const MAX: u16 = 4095;

/// Reads an error number from its name or its digits.
pub fn parse(text: &[u8]) -> Option<u16> {
    let mut words = NAMES.as_bytes().split(|byte| *byte == b' ');
    let named = words.find(|word| *word == text).filter(|_| text.first() == Some(&b'E'));
    named.map_or(Some(text), |_| words.next()).and_then(number).filter(|number| (1..=MAX).contains(number))
}

fn number(text: &[u8]) -> Option<u16> {
    if text.is_empty() || text.len() > 4 {
        return None;
    }
    let mut number = 0_u16;
    for digit in text {
        let digit = digit.checked_sub(b'0').filter(|d| *d < 10)?;
        number = number * 10 + u16::from(digit);
    }
    Some(number)
}

/// The name, if the error is one of the common ones.
pub fn name(number: u16) -> Option<&'static str> {
    pairs().find(|(_, n)| *n == number).map(|(name, _)| name)
}

/// All names, for suggestions.
pub fn names() -> impl Iterator<Item = &'static str> {
    pairs().map(|(name, _)| name)
}
