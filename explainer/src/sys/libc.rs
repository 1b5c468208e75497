//! What is libc's by name. All of it is weak: a program may have a loader and no libc, as a position-independent one of
//! Go has, and would not start where the loader finds no such name.

use core::ffi::{c_char, c_int, c_ulong};
use core::mem::transmute;
use core::ptr;

core::arch::global_asm!(
    ".weak __errno_location",
    ".weak environ",
    ".weak getauxval",
    ".hidden sbx_explain_errno",
    ".globl sbx_explain_errno",
    ".hidden sbx_explain_environ",
    ".globl sbx_explain_environ",
    ".hidden sbx_explain_getauxval",
    ".globl sbx_explain_getauxval",
);

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    "sbx_explain_errno: mov rax, [rip + __errno_location@GOTPCREL]",
    "test rax, rax",
    "je 1f",
    "jmp rax",
    "1: ret",
    "sbx_explain_environ: mov rax, [rip + environ@GOTPCREL]",
    "ret",
    "sbx_explain_getauxval: mov rax, [rip + getauxval@GOTPCREL]",
    "ret",
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    "sbx_explain_errno: adrp x0, :got:__errno_location",
    "ldr x0, [x0, :got_lo12:__errno_location]",
    "cbz x0, 1f",
    "br x0",
    "1: ret",
    "sbx_explain_environ: adrp x0, :got:environ",
    "ldr x0, [x0, :got_lo12:environ]",
    "ret",
    "sbx_explain_getauxval: adrp x0, :got:getauxval",
    "ldr x0, [x0, :got_lo12:getauxval]",
    "ret",
);

unsafe extern "C" {
    fn sbx_explain_errno() -> *mut c_int;
    fn sbx_explain_environ() -> *mut *mut *mut c_char;
    fn sbx_explain_getauxval() -> *const ();
}

/// errno(3) of this thread.
pub fn error() -> c_int {
    // SAFETY: libc's function returns the address of the thread's own variable; null where there is none.
    unsafe { sbx_explain_errno().as_ref() }.copied().unwrap_or(0)
}

/// Sets errno(3) of this thread.
pub fn set_error(error: c_int) {
    // SAFETY: as above.
    if let Some(own) = unsafe { sbx_explain_errno().as_mut() } {
        *own = error;
    }
}

/// The variable environ(7), null where there is none.
pub fn environ() -> *mut *mut *mut c_char {
    // SAFETY: the function, defined above, has no effects.
    unsafe { sbx_explain_environ() }
}

/// The environment of this process, null where it has none.
pub fn environment() -> *mut *mut c_char {
    // SAFETY: nobody changes it meanwhile, or libc's own functions would be of no use either.
    unsafe { environ().as_ref() }.copied().unwrap_or(ptr::null_mut())
}

/// getauxval(3); zero, which it returns for what the kernel does not say, where there is none.
pub fn auxiliary(kind: c_ulong) -> c_ulong {
    // SAFETY: the function, defined above, has no effects.
    let function = unsafe { sbx_explain_getauxval() };
    if function.is_null() {
        return 0;
    }
    // SAFETY: libc's function of this name has this type.
    let function = unsafe { transmute::<*const (), unsafe extern "C" fn(c_ulong) -> c_ulong>(function) };
    // SAFETY: it only reads.
    unsafe { function(kind) }
}
