//! Memory at addresses that nobody can guess, for the one-shot exec permit; random numbers; and memory that
//! is given back.

use crate::sys::{OfCall, SyscallError};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ptr::NonNull;

const LOWEST: usize = 1 << 24;
const TRIES: usize = 16;

/// The size of a page: 4 KiB on x86_64, on arm64 what the kernel was built with (4, 16 or 64 KiB).
fn page() -> usize {
    // SAFETY: asks for a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(1 << 16)
}

/// A mask of the addresses that this kernel gives to processes by default: on arm64 it may have been built
/// with 2^39. The stack is in the upper part.
fn addresses() -> usize {
    let on_stack = 0_u8;
    (1 << (&raw const on_stack).addr().ilog2()) - 1
}

/// Words that stay at a random address until the process execs or ends.
pub struct HiddenWords {
    address: NonNull<usize>,
    /// In bytes.
    length: usize,
    mapped: usize,
}

impl HiddenWords {
    /// Copies `words` to a random address.
    pub fn new(words: &[usize]) -> Result<HiddenWords, SyscallError> {
        let hidden = HiddenWords::map(size_of_val(words), MapFlags::PRIVATE)?;
        // SAFETY: fresh memory that nothing else refers to, of at least this length.
        unsafe { hidden.address.copy_from_nonoverlapping(NonNull::from(words).cast(), words.len()) };
        Ok(hidden)
    }

    /// Zeroed room for so many bytes at a random address, which copies of this process share. What is not used of it
    /// costs nothing.
    pub fn room(bytes: usize) -> Result<HiddenWords, SyscallError> {
        HiddenWords::map(bytes, MapFlags::SHARED)
    }

    /// Writes into the room; false where that is too small.
    pub fn write(&self, at: usize, bytes: &[u8]) -> bool {
        let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= self.length);
        if fits {
            // SAFETY: within the mapping, as was just checked; the process that reads it waits until it is told to.
            let to = unsafe { self.address.cast::<u8>().byte_add(at) };
            // SAFETY: as above, and `bytes` is no part of the mapping.
            unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }
        fits
    }

    fn map(bytes: usize, sharing: MapFlags) -> Result<HiddenWords, SyscallError> {
        let (page, addresses) = (page(), addresses());
        let mapped = (bytes + page).next_multiple_of(page);
        for _ in 0..TRIES {
            let random = random()?;
            let base = (random as usize & addresses & !(page - 1)).max(LOWEST);
            // The offset within the page is random as well, in steps of 16 bytes.
            let offset = (random >> 48) as usize % (page / 16) * 16;
            let Some(start) = map_at(base, mapped, sharing)? else { continue };
            // SAFETY: `mapped` is at least a page more than the words take, and `offset` is below a page.
            let address = unsafe { start.byte_add(offset) }.cast::<usize>();
            return Ok(HiddenWords { address, length: bytes, mapped });
        }
        Err(std::io::Error::from(std::io::ErrorKind::AddrInUse)).of("mmap")
    }

    /// Where they are.
    pub fn address(&self) -> usize {
        self.address.addr().get()
    }
}

impl Drop for HiddenWords {
    fn drop(&mut self) {
        let start = (self.address() & !(page() - 1)) as *mut std::ffi::c_void;
        // SAFETY: unmaps exactly what `map` mapped.
        let _ = unsafe { rustix::mm::munmap(start, self.mapped) };
    }
}

/// Maps zeroed memory there; `None` where something is mapped already.
fn map_at(address: usize, length: usize, sharing: MapFlags) -> Result<Option<NonNull<u8>>, SyscallError> {
    let flags = sharing | MapFlags::FIXED_NOREPLACE;
    let wanted = std::ptr::without_provenance_mut(address);
    // SAFETY: MAP_FIXED_NOREPLACE never replaces a mapping.
    match unsafe { rustix::mm::mmap_anonymous(wanted, length, ProtFlags::READ | ProtFlags::WRITE, flags) } {
        Err(Errno::EXIST) => Ok(None),
        Ok(start) if start.addr() != address => {
            // Linux before 4.17 takes the address as a hint only.
            // SAFETY: unmaps what was just mapped.
            let _ = unsafe { rustix::mm::munmap(start, length) };
            Ok(None)
        }
        mapped => mapped.map(|start| NonNull::new(start.cast())).of("mmap"),
    }
}

/// Gives back the pages of this program's code that the start took. The file backs them, so the kernel
/// reads a page again when it is needed.
pub fn release_code() {
    unsafe extern "C" {
        /// Where the program begins in memory, and where its code ends. The linker defines both.
        static __executable_start: u8;
        static etext: u8;
    }
    let start = (&raw const __executable_start).cast_mut();
    let length = (&raw const etext).addr().saturating_sub(start.addr()) & !(page() - 1);
    // SAFETY: nothing between the two is ever written, so the file still has all of it.
    let _ = unsafe { rustix::mm::madvise(start.cast(), length, Advice::LinuxDontNeed) };
}

/// 64 bits from the kernel.
pub fn random() -> Result<u64, SyscallError> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).of("getrandom")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// A name that nobody can predict.
pub fn random_name(prefix: &str) -> Result<String, SyscallError> {
    Ok(format!("{prefix}{:016x}", random()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_where_they_are_said_to_and_nowhere_twice() {
        let words = [3, 1, 4, 1, 5];
        let all: Vec<_> = (0..64).map(|_| HiddenWords::new(&words).unwrap()).collect();
        for hidden in &all {
            // SAFETY: `new` has put five words there.
            assert_eq!(unsafe { hidden.address.cast::<[usize; 5]>().read() }, words);
            assert!((LOWEST..=addresses() + page()).contains(&hidden.address()));
        }
        let mut bits: Vec<_> = all.iter().map(HiddenWords::address).collect();
        bits.sort_unstable();
        bits.dedup();
        assert_eq!(bits.len(), all.len());
        // In each half of what there is: the highest bit is random too.
        let half = addresses() / 2 + 1;
        assert!(bits.iter().any(|at| *at >= half) && bits.iter().any(|at| *at < half));
    }
}
