//! The environment of the process. It is changed in place, because libc has not copied the array yet.

use crate::sys::Entry;

/// The `NAME=value` strings of the process.
pub struct Environment {
    entries: &'static mut [Option<Entry>],
}

/// The file name of this library, which the launcher and the documentation use.
const OWN_NAME: &[u8] = b"libsandbox.so";
const OWN_DESCRIPTOR: &[u8] = b"/proc/self/fd/";
const PRELOAD: &[u8] = b"LD_PRELOAD";

impl Environment {
    /// Wraps the environment array. The strings end at the first `None`.
    pub fn new(entries: &'static mut [Option<Entry>]) -> Environment {
        Environment { entries }
    }

    /// The values of the entries of this name, in order.
    fn values(&self, name: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map_while(Option::as_ref).filter_map(move |entry| value(entry.text(), name))
    }

    /// The names of the entries, in order.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        let entries = self.entries.iter().map_while(Option::as_ref);
        entries.map(|entry| entry.text().split(|byte| *byte == b'=').next().unwrap_or(&[]))
    }

    /// The value of the first entry of this name, as getenv(3) finds it.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.values(name).next()
    }

    /// Whether two entries have this name. Then it is not known which one was meant.
    pub fn is_twice(&self, name: &[u8]) -> bool {
        self.values(name).nth(1).is_some()
    }

    /// Removes every entry of this name.
    pub fn remove(&mut self, name: &[u8]) {
        let mut kept = 0;
        for index in 0..self.entries.len() {
            let Some(entry) = self.entries.get_mut(index).and_then(Option::take) else { return };
            if value(entry.text(), name).is_some() {
                continue;
            }
            if let Some(slot) = self.entries.get_mut(kept) {
                *slot = Some(entry);
                kept += 1;
            }
        }
    }

    /// Removes this library from LD_PRELOAD and keeps the other libraries there.
    pub fn remove_preload(&mut self) {
        let mut entries = self.entries.iter_mut().map_while(Option::as_mut);
        let Some(entry) = entries.find(|entry| value(entry.text(), PRELOAD).is_some()) else { return };
        let list = entry.text_mut().get_mut(PRELOAD.len() + 1..).unwrap_or(&mut []);
        match keep_others(list) {
            0 => self.remove(PRELOAD),
            length => {
                if let Some(end) = list.get_mut(length) {
                    *end = 0;
                }
            }
        }
    }
}

/// Moves the libraries that are not this one to the start of the list, and returns their length.
fn keep_others(list: &mut [u8]) -> usize {
    let (mut read, mut written) = (0, 0);
    while let Some(rest) = list.get(read..).filter(|rest| !rest.is_empty()) {
        let length = rest.iter().position(|byte| is_separator(*byte)).unwrap_or(rest.len());
        let path = rest.get(..length).unwrap_or(&[]);
        if !path.is_empty() && !is_own(path) {
            // Writing does not overtake reading: in the list too, a separator stands before every path but the first.
            if written > 0 {
                put(list, &mut written, b':');
            }
            for at in read..read + length {
                let byte = list.get(at).copied().unwrap_or(0);
                put(list, &mut written, byte);
            }
        }
        read += length + 1;
    }
    written
}

fn put(list: &mut [u8], at: &mut usize, byte: u8) {
    if let Some(slot) = list.get_mut(*at) {
        *slot = byte;
        *at += 1;
    }
}

fn is_separator(byte: u8) -> bool {
    byte == b':' || byte == b' '
}

fn is_own(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let numbered = path.strip_prefix(OWN_DESCRIPTOR).is_some_and(|number| parse_number(number).is_some());
    name == OWN_NAME || numbered
}

fn value<'e>(entry: &'e [u8], name: &[u8]) -> Option<&'e [u8]> {
    entry.strip_prefix(name)?.strip_prefix(b"=")
}

/// A descriptor number.
pub fn parse_number(text: &[u8]) -> Option<i32> {
    if text.is_empty() || text.len() > 9 {
        return None;
    }
    let mut number = 0;
    for byte in text {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number = number * 10 + i32::from(digit);
    }
    Some(number)
}
