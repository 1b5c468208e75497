//! Functions of libc that are neither one call on paths nor one of fixed arguments.

use super::calls::failed;
use super::next::Next;
use crate::kinds::{self, Kind};
use core::ffi::{CStr, c_int, c_long, c_uint, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

/// Stands for AT_FDCWD among the places of arguments, and for an identity that stays as it is.
const WORKING: u8 = 100;
const SAME: u8 = 101;
/// 0, for what a function leaves out.
const NONE: u8 = 102;

/// Calls the next function of a name, and remembers the call if that fails. The arguments are words, which is how
/// numbers and addresses are passed; `places` says which of them the system call has, in its order.
#[inline(never)]
fn pass(next: &Next, name: &CStr, words: [u64; 5], kind: &Kind, places: &[u8]) -> c_long {
    let Some(address) = next.address(name) else { return -1 };
    // SAFETY: the function of this name takes at most so many arguments, all of them words, and returns one.
    let function: unsafe extern "C" fn(u64, u64, u64, u64, u64) -> c_long = unsafe { transmute(address) };
    let [a, b, c, d, e] = words;
    // SAFETY: these are the caller's arguments, and by the contract of the function they are right.
    let result = unsafe { function(a, b, c, d, e) };
    // Of most the result is an int, and the upper half of the word means nothing.
    if result as c_int == -1 {
        let mut args = [0; 6];
        for (to, place) in args.iter_mut().zip(places) {
            *to = match *place {
                WORKING => -100_i64 as u64,
                SAME => u64::MAX,
                place => words.get(usize::from(place)).copied().unwrap_or_default(),
            };
        }
        crate::failed(kind, args);
    }
    result
}

/// Functions that are seldom called: less code is better than a faster call.
macro_rules! seldom {
    ($($name:ident => $kind:ident$(($($place:expr),*))?;)*) => {$(
        /// As libc's function of this name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[cfg_attr(feature = "library", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(a: u64, b: u64, c: u64, d: u64, e: u64) -> c_long {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            static NEXT: Next = Next::new();
            pass(&NEXT, NAME, [a, b, c, d, e], &kinds::$kind, &[$($($place),*)?])
        }
    )*};
}

seldom! {
    chmod => FCHMODAT(WORKING, 0, 1);
    fchmodat => FCHMODAT(0, 1, 2, 3);
    chown => FCHOWNAT(WORKING, 0, 1, 2);
    lchown => FCHOWNAT(WORKING, 0, 1, 2);
    fchownat => FCHOWNAT(0, 1, 2, 3, 4);
    setxattr => SETXATTR(0, 1, 2, 3, 4);
    lsetxattr => LSETXATTR(0, 1, 2, 3, 4);
    getpriority => GETPRIORITY(0, 1);
    setpriority => SETPRIORITY(0, 1, 2);
    sched_setscheduler => SCHED_SETSCHEDULER(0, 1, 2);
    setuid => SETRESUID(0, 0, 0);
    setgid => SETRESGID(0, 0, 0);
    setreuid => SETRESUID(0, 1, SAME);
    setregid => SETRESGID(0, 1, SAME);
    setresuid => SETRESUID(0, 1, 2);
    setresgid => SETRESGID(0, 1, 2);
    setgroups => SETGROUPS(0, 1);
    initgroups => SETGROUPS;
    capset => CAPSET(0, 1);
    prlimit => PRLIMIT64(0, 1, 2, 3);
    setrlimit => PRLIMIT64(NONE, 0, 1, NONE);
    setrlimit64 => PRLIMIT64(NONE, 0, 1, NONE);
    ptrace => PTRACE(0, 1, 2, 3);
}

/// As libc's function of this name, which makes any call.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    static NEXT: Next = Next::new();
    let Some(address) = NEXT.address(c"syscall") else { return -1 };
    type Function = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;
    // SAFETY: syscall(2) takes a number and up to six arguments; those left out are passed on as they are.
    let next: Function = unsafe { transmute(address) };
    // SAFETY: by the contract.
    let result = unsafe { next(number, a, b, c, d, e, f) };
    if result == -1 {
        failed(&kinds::numbered(number as u32), &[a, b, c, d, e, f].map(|argument| argument as u64));
    }
    result
}

/// The address that a datagram was sent to last: what comes of it, no call tells. Family and port, the address itself.
static FAMILY: AtomicU16 = AtomicU16::new(0);
static ADDRESS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// The bytes of an address of IPv6 (`struct sockaddr_in6`).
const LONGEST: usize = 28;

/// AF_INET and AF_INET6.
const IP: [u16; 2] = [2, 10];

/// Remembers where a datagram was sent.
fn sent(address: *const c_void, length: c_uint) {
    let bytes = super::bytes(address as u64, length.into());
    let family = bytes.first_chunk().map_or(0, |family| u16::from_ne_bytes(*family));
    if IP.contains(&family) && bytes.len() >= 16 {
        for (place, chunk) in ADDRESS.iter().zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            place.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        FAMILY.store(family, Ordering::Relaxed);
    }
}

/// Whether the program waits at a port itself. Where its datagrams went, nobody could tell then when it ends.
static SERVES: AtomicBool = AtomicBool::new(false);

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn bind(socket: c_int, address: *const c_void, length: c_uint) -> c_int {
    static NEXT: Next = Next::new();
    let Some(next) = NEXT.address(c"bind") else { return -1 };
    // SAFETY: bind(2) has these arguments.
    let next: unsafe extern "C" fn(c_int, *const c_void, c_uint) -> c_int = unsafe { transmute(next) };
    // SAFETY: by the contract.
    let result = unsafe { next(socket, address, length) };
    let bytes = super::bytes(address as u64, length.into());
    if result == -1 {
        failed(&kinds::BIND, &[socket as u64, address as u64, length.into()]);
    } else if matches!(bytes, [family, 0, port @ ..] if IP.contains(&u16::from(*family)) && !port.starts_with(&[0, 0]))
    {
        SERVES.store(true, Ordering::Relaxed);
    }
    result
}

/// The call that sent the last datagram, if there was one.
pub fn last_datagram() -> Option<(&'static Kind, [u64; 6])> {
    (FAMILY.load(Ordering::Relaxed) != 0 && !SERVES.load(Ordering::Relaxed))
        .then_some((&kinds::SENDTO, [0, 0, 0, 0, ADDRESS.as_ptr() as u64, LONGEST as u64]))
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn sendto(
    socket: c_int,
    from: *const c_void,
    length: usize,
    flags: c_int,
    address: *const c_void,
    address_length: c_uint,
) -> isize {
    static NEXT: Next = Next::new();
    let Some(next) = NEXT.address(c"sendto") else { return -1 };
    type Function = unsafe extern "C" fn(c_int, *const c_void, usize, c_int, *const c_void, c_uint) -> isize;
    // SAFETY: sendto(2) has these arguments.
    let next: Function = unsafe { transmute(next) };
    // SAFETY: by the contract.
    let result = unsafe { next(socket, from, length, flags, address, address_length) };
    if result < 0 {
        let socket = socket as u64;
        failed(&kinds::SENDTO, &[socket, 0, 0, flags as u64, address as u64, address_length.into()]);
    } else if !address.is_null() {
        sent(address, address_length);
    }
    result
}

/// `struct msghdr`, up to what is used.
#[repr(C)]
pub struct Message {
    address: *const c_void,
    length: c_uint,
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn sendmsg(socket: c_int, message: *const Message, flags: c_int) -> isize {
    static NEXT: Next = Next::new();
    let Some(next) = NEXT.address(c"sendmsg") else { return -1 };
    // SAFETY: sendmsg(2) has these arguments.
    let next: unsafe extern "C" fn(c_int, *const Message, c_int) -> isize = unsafe { transmute(next) };
    // SAFETY: by the contract.
    let result = unsafe { next(socket, message, flags) };
    if result >= 0 {
        // SAFETY: the call has read it.
        let Message { address, length } = unsafe { ptr::read(message) };
        if !address.is_null() {
            sent(address, length);
        }
    }
    result
}
