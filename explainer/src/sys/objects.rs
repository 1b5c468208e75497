//! dl_iterate_phdr(3), which lists this library last.
//!
//! AddressSanitizer demands to be the first of a program's libraries, and ends programs in which it is not.

use super::next::Next;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr;

/// `struct dl_phdr_info`. What follows may be longer in a later libc.
#[derive(Clone, Copy)]
#[repr(C)]
struct Info {
    address: usize,
    rest: [u64; 7],
}

type Visit = unsafe extern "C" fn(*mut Info, usize, *mut c_void) -> c_int;

struct Visitor {
    visit: Visit,
    data: *mut c_void,
    own: Option<(Info, usize)>,
}

unsafe extern "C" {
    /// Where this library starts.
    #[link_name = "__ehdr_start"]
    static START: u8;
}

core::arch::global_asm!(".hidden __ehdr_start");

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn dl_iterate_phdr(visit: Visit, data: *mut c_void) -> c_int {
    static NEXT: Next = Next::new();
    let Some(address) = NEXT.address(c"dl_iterate_phdr") else { return 0 };
    // SAFETY: dl_iterate_phdr(3) takes a function and its argument.
    let next: unsafe extern "C" fn(Visit, *mut c_void) -> c_int = unsafe { transmute(address) };
    let mut visitor = Visitor { visit, data, own: None };
    // SAFETY: the function below takes a visitor.
    let result = unsafe { next(all_but_own, ptr::from_mut(&mut visitor).cast()) };
    match &mut visitor.own {
        // SAFETY: by the contract; libc's own structure has no more than this.
        Some((info, size)) if result == 0 => unsafe { visit(info, *size, data) },
        _ => result,
    }
}

unsafe extern "C" fn all_but_own(info: *mut Info, size: usize, visitor: *mut c_void) -> c_int {
    // SAFETY: it was passed above, and lives until that returns.
    let visitor = unsafe { &mut *visitor.cast::<Visitor>() };
    // SAFETY: libc passes a structure of this size.
    if size == size_of::<Info>() && unsafe { (*info).address } == &raw const START as usize {
        // SAFETY: as above.
        visitor.own = Some((unsafe { *info }, size));
        return 0;
    }
    // SAFETY: as libc would call it.
    unsafe { (visitor.visit)(info, size, visitor.data) }
}
