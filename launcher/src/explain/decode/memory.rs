//! Bounded reads of another process's memory, which may end, fail or change at any byte.

use crate::explain::decode::Memory;

/// The kernel's PATH_MAX, which counts the NUL.
pub const PATH_MAX: usize = 4096;

/// Bytes of one read of a string: a short name costs one small read.
const STEP: usize = 512;
/// A page, or a part of one where they are larger.
pub const PAGE: u64 = 4096;

/// An array; `None` if any byte of it cannot be read.
pub fn array<const N: usize>(memory: &dyn Memory, address: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (memory.read(address, &mut bytes) >= N).then_some(bytes)
}

/// `length` bytes; `None` if any of them cannot be read. The caller bounds `length`.
pub fn bytes(memory: &dyn Memory, address: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    (length == 0 || memory.read(address, &mut bytes) >= length).then_some(bytes)
}

/// A string that was read.
pub enum CString {
    /// One that ends with a NUL, which is left off.
    Whole(Vec<u8>),
    /// One without a NUL within the limit: the kernel refuses it.
    Endless(Vec<u8>),
    /// One with a byte before the NUL that could not be read.
    Unreadable,
}

/// A NUL-ended string of fewer than `limit` bytes. Nothing behind the page of its NUL is read.
pub fn c_string(memory: &dyn Memory, address: u64, limit: usize) -> CString {
    let mut string = Vec::new();
    while string.len() < limit {
        let Some(at) = address.checked_add(string.len() as u64) else { return CString::Unreadable };
        let left_in_page = (PAGE - at % PAGE) as usize;
        let mut buffer = [0; STEP];
        let wanted = STEP.min(left_in_page).min(limit - string.len());
        let read = memory.read(at, &mut buffer[..wanted]).min(wanted);
        let fresh = &buffer[..read];
        if let Some(end) = fresh.iter().position(|&byte| byte == 0) {
            string.extend_from_slice(&fresh[..end]);
            return CString::Whole(string);
        }
        if read < wanted {
            return CString::Unreadable;
        }
        string.extend_from_slice(fresh);
    }
    CString::Endless(string)
}
