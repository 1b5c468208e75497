//! The constructor, system calls without libc, and the functions that compiled code expects. All `unsafe` code of the
//! library is in this module.
#![allow(unsafe_code)]

mod entries;
mod routines;

use crate::environment::Environment;
use core::arch::{asm, global_asm};
use core::ffi::{c_char, c_int};
use sbx_policy::bpf::Insn;
use sbx_policy::calls::{Arch, Call};

pub use entries::Entry;

type Entries = *mut *mut c_char;

#[used]
// SAFETY: the loader calls the functions of this section with exactly these arguments, or with none.
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(c_int, Entries, Entries) = constructor;

unsafe extern "C" {
    fn sbx_shim_environ() -> Entries;
}

/// glibc passes `argc, argv, envp` to constructors, and its `environ` is still null when an initfirst library runs.
/// musl passes nothing, but has set `environ` by then.
extern "C" fn constructor(_argc: c_int, _argv: Entries, envp: Entries) {
    // SAFETY: the function, defined below, reads one pointer.
    let environ = unsafe { sbx_shim_environ() };
    let entries = if environ.is_null() { envp } else { environ };
    if entries.is_null() {
        return;
    }
    // SAFETY: it is the array of the libc, which the kernel filled, and no other thread runs yet.
    let entries = unsafe { Entry::array(entries) };
    crate::start(&mut Environment::new(entries));
}

#[cfg(feature = "library")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    write(2, b"libsandbox.so: internal error; nothing was started\n");
    exit(125)
}

/// Makes a system call. The result is the kernel's: for an error, the negative error number.
///
/// # Safety
///
/// The system call, with these arguments, must not touch memory that Rust code relies on.
#[cfg(target_arch = "x86_64")]
unsafe fn syscall(number: u32, args: [u64; 5]) -> i64 {
    let result;
    // SAFETY: the kernel's calling convention; the caller answers for the effects of the system call.
    unsafe {
        asm!("syscall", inlateout("rax") u64::from(number) => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// Makes a system call. The result is the kernel's: for an error, the negative error number.
///
/// # Safety
///
/// The system call, with these arguments, must not touch memory that Rust code relies on.
#[cfg(target_arch = "aarch64")]
unsafe fn syscall(number: u32, args: [u64; 5]) -> i64 {
    let result;
    // SAFETY: the kernel's calling convention; the caller answers for the effects of the system call.
    unsafe {
        asm!("svc 0", in("x8") u64::from(number), inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4], options(nostack));
    }
    result
}

const ENOSYS: i64 = 38;

fn named(name: &str, args: [u64; 5]) -> i64 {
    match Call::named(name.as_bytes()).and_then(|call| call.number(Arch::HOST)) {
        // SAFETY: only the functions below call this one, each for a system call that at most reads memory of its own.
        Some(number) => unsafe { syscall(number, args) },
        None => -ENOSYS,
    }
}

/// write(2). A failure is ignored: there is no way to report it.
pub fn write(descriptor: i32, bytes: &[u8]) {
    named("write", [descriptor as u64, bytes.as_ptr() as u64, bytes.len() as u64, 0, 0]);
}

/// close(2).
pub fn close(descriptor: i32) {
    named("close", [descriptor as u64, 0, 0, 0, 0]);
}

/// exit_group(2).
pub fn exit(status: i32) -> ! {
    loop {
        named("exit_group", [status as u64, 0, 0, 0, 0]);
    }
}

/// Queries an installed filter with a prctl(2) that has no other effect.
pub fn query(question: u32, identity: u32) -> i64 {
    named("prctl", [question.into(), identity.into(), 0, 0, 0])
}

/// prctl(PR_SET_NO_NEW_PRIVS).
pub fn set_no_new_privs() -> i64 {
    const PR_SET_NO_NEW_PRIVS: u64 = 38;
    named("prctl", [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0])
}

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    len: u16,
    filter: *const Insn,
}

/// seccomp(SECCOMP_SET_MODE_FILTER) for all threads, because an earlier library may have started some. The result is
/// 0, an error, or the number of a thread that cannot get this filter because it has filters of its own.
pub fn install(insns: &[Insn]) -> i64 {
    const SECCOMP_SET_MODE_FILTER: u64 = 1;
    const SECCOMP_FILTER_FLAG_TSYNC: u64 = 1;
    // sbx-policy builds no program longer than BPF_MAXINSNS (4096).
    let program = Program { len: insns.len() as u16, filter: insns.as_ptr() };
    named("seccomp", [SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &raw const program as u64, 0, 0])
}

// A weak symbol cannot be declared in Rust.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl sbx_shim_environ",
    ".hidden sbx_shim_environ",
    ".weak environ",
    "sbx_shim_environ: mov rax, [rip + environ@GOTPCREL]",
    "test rax, rax",
    "je 5f",
    "mov rax, [rax]",
    "5: ret",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl sbx_shim_environ",
    ".hidden sbx_shim_environ",
    ".weak environ",
    "sbx_shim_environ: adrp x0, :got:environ",
    "ldr x0, [x0, :got_lo12:environ]",
    "cbz x0, 9f",
    "ldr x0, [x0]",
    "9: ret",
);
