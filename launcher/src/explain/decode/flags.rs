//! Numbers as the names that programmers know them by.

use crate::explain::decode::names;

/// Words for the numbers from 0 on. `-` is a number without a name; a number among the words says where the
/// next one stands.
pub type Names = &'static str;

/// A set of flags.
pub struct FlagSet {
    /// Flags by value, looked for first: several bits together, or bits that differ between architectures.
    pub combined: &'static [(u64, &'static str)],
    /// A number in the low bits, with its mask; a mask of 0 for none.
    pub low: (u64, Names),
    /// Flags by the position of their bit.
    pub bits: Names,
    /// The word for no flag at all; `None` leaves the argument out.
    pub zero: Option<&'static str>,
    /// The kernel looks at all 64 bits, not only at the low 32.
    pub wide: bool,
}

/// Longest list of flags, in bytes: more names say little more than the number.
const LIST_LIMIT: usize = 160;

/// A bare number.
pub fn hex(value: u64) -> String {
    format!("{value:#x}")
}

/// The `text` of the low half, and the full value where the upper half is more than an extended sign.
fn narrow(value: u64, text: String) -> String {
    let low = value as u32;
    let signed = i64::from(low as i32) as u64;
    if value == u64::from(low) || value == signed { text } else { format!("{text} ({value:#x})") }
}

/// A C `int`.
pub fn int(value: u64) -> String {
    narrow(value, (value as i32).to_string())
}

/// Each name with its number.
fn numbered(names: Names) -> impl Iterator<Item = (u64, &'static str)> {
    let mut next = 0;
    names.split_ascii_whitespace().filter_map(move |word| {
        if let Some(start) = position(word) {
            next = start;
            return None;
        }
        next += 1;
        (word != "-").then_some((next - 1, word))
    })
}

/// The name of a number.
pub fn name(names: Names, value: u64) -> Option<&'static str> {
    numbered(names).find(|(number, _)| *number == value).map(|(_, name)| name)
}

/// The number among [`Names`] that a word is.
fn position(word: &str) -> Option<u64> {
    word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
}

/// One of a list of 32-bit numbers.
pub fn choice(names: Names, value: u64) -> String {
    let low = value as u32;
    // Small numbers are easier to look up in decimal, and -1 is known by its sign.
    let unnamed = || match low as i32 {
        small @ -4096..=0xffff => small.to_string(),
        _ => hex(low.into()),
    };
    narrow(value, name(names, low.into()).map_or_else(unnamed, str::to_owned))
}

/// The names of flags, joined by `|`; `None` if there is nothing to say.
pub fn flags(set: &FlagSet, value: u64) -> Option<String> {
    if set.wide {
        return list(set, value);
    }
    match list(set, u64::from(value as u32)) {
        None if value == 0 => None,
        text => Some(narrow(value, text.unwrap_or_else(|| "0".into()))),
    }
}

/// The same, of all 64 bits.
pub fn list(set: &FlagSet, value: u64) -> Option<String> {
    let (mask, numbers) = set.low;
    let mut text = if mask == 0 { String::new() } else { choice(numbers, value & mask) };
    if value == 0 && text.is_empty() {
        return set.zero.map(str::to_owned);
    }
    let mut rest = value & !mask;
    let combined = set.combined.iter().copied();
    let single = numbered(set.bits).map(|(bit, name)| (1 << bit, name));
    for (flag, name) in combined.chain(single) {
        if rest & flag == flag && text.len() + name.len() < LIST_LIMIT {
            rest &= !flag;
            join(&mut text, name);
        }
    }
    if rest != 0 {
        join(&mut text, &hex(rest));
    }
    Some(text)
}

/// Adds one more name to a list of flags.
fn join(text: &mut String, name: &str) {
    if !text.is_empty() {
        text.push('|');
    }
    text.push_str(name);
}

/// A socket's protocol, which means something else in each family.
pub fn protocol(family: u64, value: u64) -> String {
    match family as u32 as i32 {
        // 0 is the usual one of the family.
        _ if value == 0 => "0".into(),
        libc::AF_INET | libc::AF_INET6 => choice(names::IP_PROTOCOLS, value),
        libc::AF_NETLINK => choice(names::NETLINK_PROTOCOLS, value),
        _ => int(value),
    }
}

/// `clone`'s flags: the low eight bits are the signal that the child's end sends.
pub fn clone(value: u64) -> String {
    let mut text = list(&names::CLONE, value & 0xffff_ff00).unwrap_or_default();
    if value & 0xff != 0 || text.is_empty() {
        join(&mut text, &signal(value & 0xff));
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
    narrow(value, signal_name(value as i32).map_or_else(|| (value as i32).to_string(), str::to_owned))
}

/// The name of a signal; real-time signals have none.
#[must_use]
pub fn signal_name(number: i32) -> Option<&'static str> {
    name(names::SIGNALS, u64::try_from(number).ok()?)
}
