//! The environment array of the process, as a slice of strings.

use core::ffi::{CStr, c_char};
use core::ptr::NonNull;
use core::slice;

/// A `NAME=value` string of the environment. It is not copied, so each string has one owner.
#[repr(transparent)]
pub struct Entry(NonNull<c_char>);

impl Entry {
    /// The whole array, with the `None` at its end.
    ///
    /// # Safety
    ///
    /// `first` is the environment array of a process: pointers to different NUL-terminated strings, then a null
    /// pointer. All of it lives as long as the process, is writable, and is used by nothing else.
    pub unsafe fn array(first: *mut *mut c_char) -> &'static mut [Option<Entry>] {
        let mut count = 0;
        // SAFETY: by the contract; the loop stops at the null pointer.
        while !unsafe { *first.add(count) }.is_null() {
            count += 1;
        }
        // SAFETY: by the contract there are `count` pointers and a null pointer. An `Option<Entry>` has the layout of a
        // pointer, with null for `None`.
        unsafe { slice::from_raw_parts_mut(first.cast(), count + 1) }
    }

    /// The string, without its NUL.
    pub fn text(&self) -> &[u8] {
        // SAFETY: by the contract of `array` it is a NUL-terminated string that only this entry can change.
        unsafe { CStr::from_ptr(self.0.as_ptr()) }.to_bytes()
    }

    /// The string, without its NUL. A NUL that is written into it shortens it.
    pub fn text_mut(&mut self) -> &mut [u8] {
        let length = self.text().len();
        // SAFETY: as in `text`; the string is writable, and its own NUL stays in place.
        unsafe { slice::from_raw_parts_mut(self.0.as_ptr().cast(), length) }
    }
}
