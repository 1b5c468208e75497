//! Numbers as the names that programmers know them by.

use super::names;

/// Names by number: runs of words, the first of each run at the given number and `-` for a gap.
pub type Names = &'static [(u64, &'static str)];

/// A set of flags.
pub struct FlagSet {
    /// Names of several bits together, looked for first.
    pub combined: &'static [(u64, &'static str)],
    /// Names by bit position.
    pub bits: Names,
    /// What no flag at all is called; `None` leaves the argument out.
    pub zero: Option<&'static str>,
    /// The kernel looks at all 64 bits, not only the low 32.
    pub wide: bool,
}

/// Longest list of names: all bits set says little more than its number.
const LIST_LIMIT: usize = 160;

/// A bare number.
pub fn hex(value: u64) -> String {
    format!("{value:#x}")
}

/// The low half by its name or number as `text`, and the full value where the upper half holds more than a sign.
pub fn narrow(value: u64, text: String) -> String {
    let low = value as u32;
    let signed = i64::from(low as i32) as u64;
    if value == u64::from(low) || value == signed { text } else { format!("{text} ({value:#x})") }
}

/// A C `int`.
pub fn int(value: u64) -> String {
    narrow(value, (value as i32).to_string())
}

/// The name of a number.
pub fn name(names: Names, value: u64) -> Option<&'static str> {
    names.iter().find_map(|&(start, words)| {
        let index = usize::try_from(value.checked_sub(start)?).ok()?;
        words.split_ascii_whitespace().nth(index).filter(|word| *word != "-")
    })
}

/// One of a list of 32-bit numbers.
pub fn choice(names: Names, value: u64) -> String {
    let low = u64::from(value as u32);
    let text = name(names, low).map_or_else(|| unnamed(value), str::to_owned);
    narrow(value, text)
}

/// One of a list of 64-bit numbers.
pub fn wide_choice(names: Names, value: u64) -> String {
    name(names, value)
        .map_or_else(|| if value < 1 << 16 { value.to_string() } else { hex(value) }, str::to_owned)
}

/// Small numbers are easier to look up in decimal, and -1 is known by its sign.
fn unnamed(value: u64) -> String {
    let low = value as i32;
    if (-4096..1 << 16).contains(&low) { low.to_string() } else { format!("{low:#x}") }
}

/// Flags joined by `|`; `None` if there is nothing to say.
pub fn flags(set: &FlagSet, value: u64) -> Option<String> {
    if set.wide {
        return list(set, value);
    }
    let text = list(set, u64::from(value as u32));
    match text {
        None if value == 0 => None,
        None => Some(narrow(value, "0".into())),
        Some(text) => Some(narrow(value, text)),
    }
}

fn list(set: &FlagSet, value: u64) -> Option<String> {
    if value == 0 {
        return set.zero.map(str::to_owned);
    }
    let mut rest = value;
    let mut text = String::new();
    let combined = set.combined.iter().copied();
    let single = (0..u64::BITS).filter_map(|bit| Some((1 << bit, name(set.bits, bit.into())?)));
    for (mask, name) in combined.chain(single) {
        if rest & mask == mask && text.len() + name.len() < LIST_LIMIT {
            rest &= !mask;
            join(&mut text, name);
        }
    }
    if rest != 0 {
        join(&mut text, &hex(rest));
    }
    Some(text)
}

/// Adds one more name to a list of flags.
pub fn join(text: &mut String, name: &str) {
    if !text.is_empty() {
        text.push('|');
    }
    text.push_str(name);
}

/// `open`'s flags: the low two bits are a number.
pub fn open(value: u64) -> String {
    let value_low = u64::from(value as u32);
    narrow(value, wide_open(value_low))
}

/// `openat2`'s flags, all 64 bits of which count.
pub fn wide_open(value: u64) -> String {
    let accmode = value & 3;
    let mut text = name(names::OPEN_MODES, accmode).unwrap_or_default().to_owned();
    if let Some(rest) = list(&names::OPEN, value & !3) {
        join(&mut text, &rest);
    }
    text
}

/// A socket's type and the flags that share its argument.
pub fn socket_type(value: u64) -> String {
    let low = u64::from(value as u32);
    let mut text =
        name(names::SOCKET_TYPES, low & 0xf).map_or_else(|| (low & 0xf).to_string(), str::to_owned);
    if let Some(rest) = list(&names::SOCKET_FLAGS, low & !0xf) {
        join(&mut text, &rest);
    }
    narrow(value, text)
}

/// A socket's protocol, which means something else in each family.
pub fn protocol(family: u64, value: u64) -> String {
    match family as u32 as i32 {
        // 0 is "the usual one".
        _ if value == 0 => "0".into(),
        libc::AF_INET | libc::AF_INET6 => choice(names::IP_PROTOCOLS, value),
        libc::AF_NETLINK => choice(names::NETLINK_PROTOCOLS, value),
        _ => int(value),
    }
}

/// `mmap`'s flags: the low four bits are a number.
pub fn map(value: u64) -> String {
    let mut text = name(names::MAP_TYPES, value & 0xf).map_or_else(|| hex(value & 0xf), str::to_owned);
    if let Some(rest) = list(&names::MAP, value & !0xf) {
        join(&mut text, &rest);
    }
    text
}

/// `clone`'s flags: the low eight bits are the signal sent at the child's end.
pub fn clone(value: u64) -> String {
    let mut text = list(&names::CLONE, value & 0xffff_ff00).unwrap_or_default();
    if value & 0xff != 0 {
        join(&mut text, &signal(value & 0xff));
    }
    if text.is_empty() {
        text.push('0');
    }
    narrow(value, text)
}

/// The permission bits of a mode.
pub fn mode(value: u64) -> String {
    let low = value as u32;
    narrow(value, if low == 0 { "0".into() } else { format!("0{low:o}") })
}

/// A mode with the type of file in it.
pub fn file_mode(value: u64) -> String {
    let low = value as u32;
    let kind = u64::from((low & libc::S_IFMT) >> 12);
    let Some(kind) = name(names::FILE_TYPES, kind) else { return mode(value) };
    narrow(value, format!("{kind}|0{:o}", low & !libc::S_IFMT))
}

/// A signal argument.
pub fn signal(value: u64) -> String {
    let text = signal_name(value as i32).map_or_else(|| (value as i32).to_string(), str::to_owned);
    narrow(value, text)
}

/// The name of a signal; real-time signals have none.
#[must_use]
pub fn signal_name(number: i32) -> Option<&'static str> {
    name(names::SIGNALS, u64::try_from(number).ok()?)
}
