//! libc's functions that wait for children: a child that a limit ended cannot tell it itself.

use super::next::Next;
use core::ffi::{c_int, c_uint, c_void};
use core::mem::transmute;

/// The signal that ended a child with this status, if one did (WTERMSIG).
fn signal_of(status: c_int) -> c_int {
    let low = status & 0x7f;
    if low == 0x7f { 0 } else { low }
}

macro_rules! waits {
    ($($name:ident(
        $name_of:literal, [$($before:ident: $before_type:ty)?], status $(, $after:ident: $type:ty)*
    );)*) => {$(
        /// As libc's function of this name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[cfg_attr(feature = "library", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            $($before: $before_type,)?
            status: *mut c_int
            $(, $after: $type)*
        ) -> c_int {
            static NEXT: Next = Next::new();
            let Some(address) = NEXT.address($name_of) else { return -1 };
            type Function = unsafe extern "C" fn($($before_type,)? *mut c_int $(, $type)*) -> c_int;
            // SAFETY: the function of this name has these arguments.
            let next: Function = unsafe { transmute(address) };
            let mut own = 0;
            let to = if status.is_null() { &raw mut own } else { status };
            // SAFETY: by the contract; there is room for a status.
            let child = unsafe { next($($before,)? to $(, $after)*) };
            if child > 0 {
                // SAFETY: the call has filled it in.
                crate::child_killed(signal_of(unsafe { *to }));
            }
            child
        }
    )*};
}

waits! {
    waitpid(c"waitpid", [child: c_int], status, options: c_int);
    wait4(c"wait4", [child: c_int], status, options: c_int, usage: *mut c_void);
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn wait(status: *mut c_int) -> c_int {
    // SAFETY: by the contract.
    unsafe { waitpid(-1, status, 0) }
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn wait3(status: *mut c_int, options: c_int, usage: *mut c_void) -> c_int {
    // SAFETY: by the contract.
    unsafe { wait4(-1, status, options, usage) }
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn waitid(kind: c_uint, id: c_uint, to: *mut c_int, options: c_int) -> c_int {
    /// The places of si_signo, si_code and si_status in siginfo_t, in ints.
    const SIGNO: usize = 0;
    const CODE: usize = 2;
    const STATUS: usize = 6;
    const CLD_KILLED: c_int = 2;
    const CLD_DUMPED: c_int = 3;
    static NEXT: Next = Next::new();
    let Some(address) = NEXT.address(c"waitid") else { return -1 };
    type Function = unsafe extern "C" fn(c_uint, c_uint, *mut c_int, c_int) -> c_int;
    // SAFETY: waitid(2) has these arguments.
    let next: Function = unsafe { transmute(address) };
    // SAFETY: by the contract.
    let result = unsafe { next(kind, id, to, options) };
    if result == 0 && !to.is_null() {
        // SAFETY: it is a siginfo_t, which the call has filled in.
        let [signo, code, status] = [SIGNO, CODE, STATUS].map(|place| unsafe { *to.add(place) });
        if signo != 0 && matches!(code, CLD_KILLED | CLD_DUMPED) {
            crate::child_killed(status);
        }
    }
    result
}
