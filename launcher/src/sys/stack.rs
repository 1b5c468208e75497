//! Stacks for processes that share the memory of this one.

use crate::sys::{OfCall, SyscallError};
use rustix::mm::{MapFlags, ProtFlags};
use std::cell::Cell;
use std::ffi::c_void;

/// Size of the stack for the child's steps, which lay filter programs out on it. Only what is used costs
/// memory.
const STACK: usize = 4 * 1024 * 1024;

thread_local! {
    /// A stack that is in use no more: to unmap it takes as long as to use it.
    static SPARE: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
}

/// Gives back the memory of stacks that are in use no more.
pub fn release() {
    let spare = SPARE.replace(std::ptr::null_mut());
    if !spare.is_null() {
        // SAFETY: unmaps exactly what was mapped, which nobody uses.
        let _ = unsafe { rustix::mm::munmap(spare, STACK) };
    }
}

/// A stack for a process that shares this one's memory.
pub struct Stack(*mut c_void);

impl Stack {
    /// One that nobody uses.
    pub fn new() -> Result<Stack, SyscallError> {
        let spare = SPARE.replace(std::ptr::null_mut());
        if !spare.is_null() {
            return Ok(Stack(spare));
        }
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::STACK);
        // SAFETY: new memory at an address of the kernel's choice.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), STACK, protection, flags) };
        start.map(Stack).of("mmap")
    }

    /// Where it begins.
    pub fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping, where a stack that grows down begins.
        unsafe { self.0.byte_add(STACK) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // The process that used it has its own memory by now.
        release();
        SPARE.set(self.0);
    }
}
