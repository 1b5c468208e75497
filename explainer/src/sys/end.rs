//! The ends of a program, and the functions that turn an error into words.

use super::next::Next;
use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

/// Has [`crate::ends`] be called by exit(3), whoever calls it: `main` returns into libc, past [`exit`].
pub fn watch() {
    static ON_EXIT: Next = Next::new();
    // A child calls what its parent has asked for.
    static IS_ASKED: AtomicBool = AtomicBool::new(false);
    if IS_ASKED.swap(true, Ordering::Relaxed) {
        return;
    }
    // musl has none. There only calls of `exit` and `_exit` are seen.
    if let Some(address) = ON_EXIT.address(c"on_exit") {
        type OnExit = unsafe extern "C" fn(extern "C" fn(c_int, *mut c_void), *mut c_void) -> c_int;
        // SAFETY: on_exit(3) takes a function and its argument.
        let on_exit: OnExit = unsafe { transmute(address) };
        // SAFETY: the function stays loaded, and takes no notice of its argument.
        unsafe { on_exit(at_exit, ptr::null_mut()) };
    }
}

extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    crate::ends(status);
}

/// Functions that end the process.
macro_rules! ends {
    ($($name:ident($name_of:literal $(, $status:ident)?);)*) => {$(
        /// As libc's function of this name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[cfg_attr(feature = "library", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($status: c_int)?) -> ! {
            static NEXT: Next = Next::new();
            // A process that ends by abort(3) has failed.
            let status = 1 $(* 0 + $status)?;
            crate::ends(status);
            if let Some(address) = NEXT.address($name_of) {
                // SAFETY: the function of this name has these arguments.
                let next: unsafe extern "C" fn($($status: c_int)?) -> ! = unsafe { transmute(address) };
                // SAFETY: by the contract.
                unsafe { next($($status)?) }
            }
            loop {
                // SAFETY: exit_group(2) ends the process.
                unsafe { super::raw::syscall(super::raw::EXIT_GROUP, [status as u64, 0, 0, 0, 0, 0]) };
            }
        }
    )*};
}

ends! {
    exit(c"exit", status);
    _exit(c"_exit", status);
    abort(c"abort");
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
#[allow(non_snake_case, reason = "libc's name")]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: by the contract.
    unsafe { _exit(status) }
}

/// Functions that turn an error into words.
macro_rules! words {
    ($($name:ident($name_of:literal, $error:ident $(, $arg:ident: $type:ty)*) -> $result:ty, $none:expr;)*) => {$(
        /// As libc's function of this name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[cfg_attr(feature = "library", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($error: c_int $(, $arg: $type)*) -> $result {
            static NEXT: Next = Next::new();
            crate::spoken($error);
            let Some(address) = NEXT.address($name_of) else { return $none };
            // SAFETY: the function of this name has these arguments.
            let next: unsafe extern "C" fn(c_int $(, $type)*) -> $result = unsafe { transmute(address) };
            // SAFETY: by the contract.
            unsafe { next($error $(, $arg)*) }
        }
    )*};
}

words! {
    strerror(c"strerror", error) -> *mut c_char, ptr::null_mut();
    strerror_l(c"strerror_l", error, locale: *mut c_void) -> *mut c_char, ptr::null_mut();
    strerror_r(c"strerror_r", error, to: *mut c_char, size: usize) -> *mut c_char, to;
    __xpg_strerror_r(c"__xpg_strerror_r", error, to: *mut c_char, size: usize) -> c_int, 22;
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn perror(text: *const c_char) {
    static NEXT: Next = Next::new();
    crate::spoken(super::error());
    if let Some(address) = NEXT.address(c"perror") {
        // SAFETY: perror(3) takes a string.
        let next: unsafe extern "C" fn(*const c_char) = unsafe { transmute(address) };
        // SAFETY: by the contract.
        unsafe { next(text) }
    }
}
