//! System calls without libc.

use core::arch::asm;

const fn of(numbers: [u32; 2]) -> u32 {
    numbers[cfg!(target_arch = "aarch64") as usize]
}

pub const GETPID: u32 = of([39, 172]);
pub const GETPPID: u32 = of([110, 173]);
pub const RT_SIGPROCMASK: u32 = of([14, 135]);
pub const MMAP: u32 = of([9, 222]);
pub const MADVISE: u32 = of([28, 233]);
pub const PRCTL: u32 = of([157, 167]);
pub const READLINKAT: u32 = of([267, 78]);
pub const FACCESSAT: u32 = of([269, 48]);
pub const STATX: u32 = of([332, 291]);
pub const GETXATTR: u32 = of([191, 8]);
pub const SCHED_YIELD: u32 = of([24, 124]);
pub const EXIT_GROUP: u32 = of([231, 94]);

/// Makes a system call. The result is the kernel's: for an error, the negative error number.
///
/// # Safety
///
/// The system call, with these arguments, must not touch memory that Rust code relies on.
#[cfg(target_arch = "x86_64")]
pub unsafe fn syscall(number: u32, args: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the kernel's calling convention; the caller answers for the effects of the system call.
    unsafe {
        asm!("syscall", inlateout("rax") u64::from(number) => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4],
            in("r9") args[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// Makes a system call. The result is the kernel's: for an error, the negative error number.
///
/// # Safety
///
/// The system call, with these arguments, must not touch memory that Rust code relies on.
#[cfg(target_arch = "aarch64")]
pub unsafe fn syscall(number: u32, args: [u64; 6]) -> i64 {
    let result;
    // SAFETY: the kernel's calling convention; the caller answers for the effects of the system call.
    unsafe {
        asm!("svc 0", in("x8") u64::from(number), inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4],
            in("x5") args[5], options(nostack));
    }
    result
}
