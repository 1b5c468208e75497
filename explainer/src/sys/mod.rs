//! The functions that take the place of libc's, and all else that is unsafe.
//!
//! A function here calls the next one of its name, which is libc's or that of another preloaded library, and returns
//! what that returns. It leaves `errno` as that left it. Nothing here takes a lock or allocates, so a signal handler
//! and a child of vfork(2) may call these functions as they may call libc's.
#![allow(unsafe_code)]

mod calls;
mod end;
#[cfg(feature = "library")]
mod environment;
mod libc;
mod next;
#[cfg(feature = "library")]
mod objects;
mod others;
mod raw;
#[cfg(feature = "library")]
#[path = "../../../shim/src/sys/routines.rs"]
mod routines;
#[cfg(feature = "library")]
mod start;
mod waits;

pub use libc::{error, set_error};
pub use others::last_datagram;

use crate::record::Kept;
use core::ffi::{CStr, c_int};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use sbx_policy::tell::{LINK, Record, TELL};

#[cfg(feature = "library")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        // SAFETY: exit_group(2) ends the process.
        unsafe { raw::syscall(raw::EXIT_GROUP, [125, 0, 0, 0, 0, 0]) };
    }
}

/// The calls that are remembered. Most programs need no memory for any, and each page that the library has costs every
/// start.
static KEPT: AtomicPtr<Kept> = AtomicPtr::new(ptr::null_mut());
static BUSY: AtomicBool = AtomicBool::new(false);

/// Gives the calls that are remembered to one thread at a time. The others do not wait. Without memory for them, nobody
/// gets any.
pub fn with_kept(may_begin: bool, act: impl FnOnce(&mut Kept)) {
    if BUSY.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    let mut kept = KEPT.load(Ordering::Relaxed);
    if kept.is_null() && may_begin {
        kept = memory().cast();
        KEPT.store(kept, Ordering::Relaxed);
    }
    // SAFETY: it is memory for one, all zeros, as one without calls is. Only who has set BUSY gets here.
    if let Some(kept) = unsafe { kept.as_mut() } {
        act(kept);
    }
    BUSY.store(false, Ordering::Release);
}

/// Whether the kernel clears the memory of [`KEPT`] in children (MADV_WIPEONFORK, Linux 4.14).
static IS_CLEARED: AtomicBool = AtomicBool::new(false);

/// Whether children have no calls of their parent's, but those that still have its memory.
pub fn is_fresh_in_children() -> bool {
    IS_CLEARED.load(Ordering::Relaxed)
}

/// New memory for a [`Kept`]; null if there is none.
fn memory() -> *mut u8 {
    const READ_WRITE: u64 = 3;
    const PRIVATE_ANONYMOUS: u64 = 0x22;
    const WIPE_ON_FORK: u64 = 18;
    let size = size_of::<Kept>() as u64;
    // SAFETY: mmap(2) without an address of ours takes memory that nobody has.
    let address = unsafe { raw::syscall(raw::MMAP, [0, size, READ_WRITE, PRIVATE_ANONYMOUS, u64::MAX, 0]) };
    // The errors.
    if (-4095..0).contains(&address) {
        return ptr::null_mut();
    }
    // SAFETY: nobody else uses this memory.
    let advised = unsafe { raw::syscall(raw::MADVISE, [address as u64, size, WIPE_ON_FORK, 0, 0, 0]) };
    IS_CLEARED.store(advised == 0, Ordering::Relaxed);
    address as *mut u8
}

/// The string at an address of the program's; nothing if it cannot be read: a filter refuses a call without a look at
/// what is there.
pub fn text<'a>(address: u64) -> &'a [u8] {
    let mut at = address;
    loop {
        let part = within_pages(at, PAGE - at % PAGE);
        if part.is_empty() {
            return &[];
        }
        let end = part.iter().position(|byte| *byte == 0);
        at += end.unwrap_or(part.len()) as u64;
        if end.is_some() {
            break;
        }
    }
    // SAFETY: all of it has just been read.
    unsafe { core::slice::from_raw_parts(address as *const u8, (at - address) as usize) }
}

/// The smallest page there is: memory can be read to its end, or not at all.
const PAGE: u64 = 4096;

/// Whether the memory around an address can be read. rt_sigprocmask(2) reads a set of signals, and refuses to do this
/// with it.
fn is_readable(address: u64) -> bool {
    const NOTHING: u64 = 99;
    const SIZE: u64 = 8;
    const EINVAL: i64 = -22;
    // SAFETY: the kernel looks whether it can read there, and changes nothing.
    (unsafe { raw::syscall(raw::RT_SIGPROCMASK, [NOTHING, address & !(SIZE - 1), 0, SIZE, 0, 0]) }) == EINVAL
}

/// Whether the file of this program would give it rights: set-user-ID, set-group-ID, or capabilities (execve(2)).
pub fn would_gain() -> bool {
    const OWN: &CStr = c"/proc/self/exe";
    const CAPABILITIES: &CStr = c"security.capability";
    const STATX_MODE: u64 = 2;
    const AT_FDCWD: u64 = -100_i64 as u64;
    const MODE: usize = 28;
    const SET_ID: u16 = 0o6000;
    let mut found = [0_u8; 256];
    let (path, to) = (OWN.as_ptr() as u64, found.as_mut_ptr() as u64);
    // SAFETY: statx(2) reads the path, and writes a structure of 256 bytes.
    let looked = unsafe { raw::syscall(raw::STATX, [AT_FDCWD, path, 0, STATX_MODE, to, 0]) };
    let mode =
        found.get(MODE..).and_then(|bytes| bytes.first_chunk()).map_or(0, |mode| u16::from_ne_bytes(*mode));
    // SAFETY: getxattr(2) reads the strings; without room it only says how long the value is.
    let attribute =
        || unsafe { raw::syscall(raw::GETXATTR, [path, CAPABILITIES.as_ptr() as u64, 0, 0, 0, 0]) };
    (looked == 0 && mode & SET_ID != 0) || attribute() > 0
}

/// Bytes at an address of the program's; nothing if they cannot be read.
pub fn bytes<'a>(address: u64, length: u64) -> &'a [u8] {
    const LONGEST_ADDRESS: u64 = 128;
    within_pages(address, length.min(LONGEST_ADDRESS))
}

/// At most a page of bytes.
fn within_pages<'a>(address: u64, length: u64) -> &'a [u8] {
    let Some(last) = length.checked_sub(1).and_then(|length| address.checked_add(length)) else { return &[] };
    if address == 0 || !is_readable(address) || !is_readable(last) {
        return &[];
    }
    // SAFETY: both pages that they are in can be read.
    unsafe { core::slice::from_raw_parts(address as *const u8, length as usize) }
}

/// The path of the file of this program, as a string that ends with NUL.
pub fn own_program(room: &mut [u8]) -> Option<()> {
    link(c"/proc/self/exe", room).map(drop)
}

/// getpid(2).
pub fn process() -> c_int {
    // SAFETY: it has no arguments and no effects.
    unsafe { raw::syscall(raw::GETPID, [0; 6]) as c_int }
}

/// getppid(2).
pub fn parent() -> c_int {
    // SAFETY: as above.
    unsafe { raw::syscall(raw::GETPPID, [0; 6]) as c_int }
}

/// The path of an open directory.
pub fn directory(descriptor: c_int, room: &mut [u8]) -> Option<&[u8]> {
    let mut name = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0";
    number(descriptor, name.get_mut(14..)?)?;
    link(CStr::from_bytes_until_nul(&name).ok()?, room)
}

/// The path of the working directory.
pub fn working_directory(room: &mut [u8]) -> Option<&[u8]> {
    link(c"/proc/self/cwd", room)
}

/// Where a link leads, if that is a path.
fn link<'a>(name: &CStr, room: &'a mut [u8]) -> Option<&'a [u8]> {
    let (start, length) = (room.as_mut_ptr() as u64, room.len() as u64);
    // SAFETY: readlinkat(2) reads the string and writes at most `length` bytes to `room`.
    let written = unsafe { raw::syscall(raw::READLINKAT, [0, name.as_ptr() as u64, start, length, 0, 0]) };
    let path = usize::try_from(written).ok().and_then(|written| room.get(..written))?;
    (path.first() == Some(&b'/') && path.len() < length as usize).then_some(path)
}

fn number(number: c_int, room: &mut [u8]) -> Option<()> {
    let number = u32::try_from(number).ok()?;
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for at in (0..digits).rev() {
        *room.get_mut(at)? = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    Some(())
}

/// Tells the supervisor where records are, and whether words follow. It has read them when this returns. Returns
/// whether it needs them no more.
pub fn tell(records: &[Record], speaks: bool) -> bool {
    let (start, count) = (records.as_ptr() as u64, records.len() as u64);
    // SAFETY: the prctl(2) has no effect on this process: no kernel knows the option.
    unsafe { raw::syscall(raw::PRCTL, [u64::from(TELL), start, count, speaks.into(), 0, 0]) == 0 }
}

/// Asks the supervisor for a hard link, by the arguments of linkat(2).
pub fn link_by_supervisor([from, path, into, name, flags, _]: [u64; 6]) -> bool {
    // SAFETY: as above; the strings are those that libc has passed to the kernel.
    unsafe { raw::syscall(raw::PRCTL, [u64::from(LINK), from, path, into, name, flags]) == 0 }
}

/// Has [`crate::ends`] be called when the program ends by exit(3) or by returning from `main`.
pub fn watch_end() {
    end::watch();
}
