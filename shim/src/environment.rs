//! The environment of the process, changed in place: an array of pointers that libc has not copied yet.

use core::ffi::{CStr, c_char};

/// `NAME=value` strings, up to a null pointer.
pub struct Environment {
    entries: *mut *mut c_char,
}

/// What the loader calls the library's file, as in the launcher's and in the documentation's use.
const OWN_NAME: &[u8] = b"libsandbox.so";
const OWN_DESCRIPTOR: &[u8] = b"/proc/self/fd/";
const PRELOAD: &[u8] = b"LD_PRELOAD";

impl Environment {
    /// # Safety
    ///
    /// `entries` is a process's environment array: pointers to NUL-terminated strings, then a null pointer,
    /// all writable and used by no other thread.
    pub unsafe fn new(entries: *mut *mut c_char) -> Environment {
        Environment { entries }
    }

    fn at(&self, index: usize) -> Option<*mut c_char> {
        // SAFETY: by the contract of `new`, and callers stop at the first null pointer.
        let entry = unsafe { *self.entries.add(index) };
        (!entry.is_null()).then_some(entry)
    }

    fn set(&mut self, index: usize, entry: *mut c_char) {
        // SAFETY: by the contract of `new`; `index` was read before, so it is inside the array.
        unsafe { *self.entries.add(index) = entry }
    }

    /// The value of the first entry of this name, as getenv(3) finds it.
    pub fn get(&self, name: &[u8]) -> Option<&'static [u8]> {
        (0..).map_while(|index| self.at(index)).find_map(|entry| value(entry, name))
    }

    /// Whether there are two entries of this name: which one was meant cannot be known.
    pub fn is_twice(&self, name: &[u8]) -> bool {
        (0..).map_while(|index| self.at(index)).filter(|entry| value(*entry, name).is_some()).nth(1).is_some()
    }

    /// Takes every entry of this name out.
    pub fn remove(&mut self, name: &[u8]) {
        let mut kept = 0;
        let mut index = 0;
        while let Some(entry) = self.at(index) {
            if value(entry, name).is_none() {
                self.set(kept, entry);
                kept += 1;
            }
            index += 1;
        }
        if kept < index {
            self.set(kept, core::ptr::null_mut());
        }
    }

    /// Takes this library out of LD_PRELOAD and leaves what else stands there.
    pub fn remove_preload(&mut self) {
        let Some(value) = self.get(PRELOAD) else { return };
        let others = value.split(|b| is_separator(*b)).filter(|part| !part.is_empty() && !is_own(part));
        if others.clone().next().is_none() {
            return self.remove(PRELOAD);
        }
        let mut write = value.as_ptr().cast_mut();
        let start = write;
        for part in others {
            // SAFETY: what is written never overtakes what is read: parts only move towards the start of the
            // value, each with at most the one separator that stood before it.
            unsafe {
                if write != start {
                    write.write(b':');
                    write = write.add(1);
                }
                core::ptr::copy(part.as_ptr(), write, part.len());
                write = write.add(part.len());
            }
        }
        // SAFETY: the value ends in a NUL byte, so there is at least one byte at or after `write`.
        unsafe { write.write(0) }
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

fn value(entry: *mut c_char, name: &[u8]) -> Option<&'static [u8]> {
    // SAFETY: an entry of the environment is a NUL-terminated string that lives as long as the process.
    let entry: &'static [u8] = unsafe { CStr::from_ptr(entry) }.to_bytes();
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
