//! The system calls that the self-test tries. Each is harmless if it succeeds: it is about the caller itself,
//! or about what was made for it.

use crate::sys::process::{self, Change, Pid};
use crate::sys::{SyscallError, checked, descriptor};
use std::ffi::OsStr;
use std::os::fd::AsRawFd;

/// An error number.
pub type Errno = i32;

/// The answer to a system call: success, or an error number.
pub type Got = Result<(), Errno>;

fn got(result: libc::c_long) -> Got {
    checked("", result).map(drop).map_err(|failed| failed.errno())
}

/// A system call with numbers as arguments.
fn call(number: libc::c_long, a: [usize; 3]) -> Got {
    // SAFETY: the uses below pass plain numbers.
    got(unsafe { libc::syscall(number, a[0], a[1], a[2], 0_usize, 0_usize) })
}

/// Starts a child that ends at once.
pub fn fork() -> Got {
    let child = process::fork().map_err(|failed| failed.errno())?;
    if child == 0 {
        process::exit_now(0);
    }
    process::wait(Some(child), true, false);
    Ok(())
}

/// Starts a process that outlives its parents, and returns its number.
pub fn daemon() -> Result<Pid, Errno> {
    const LIFE: u32 = 30;
    let (reader, writer) = descriptor::pipe().map_err(|failed| failed.errno())?;
    let child = process::fork().map_err(|failed| failed.errno())?;
    if child == 0 {
        // SAFETY: takes nothing.
        unsafe { libc::setsid() };
        if process::fork().is_ok_and(|grandchild| grandchild == 0) {
            let _ = descriptor::write_all(writer.as_raw_fd(), &process::id().to_le_bytes());
            for number in 0..3 {
                // SAFETY: plain numbers, which nothing here uses any more; the observer waits until they are
                // closed.
                unsafe { libc::close(number) };
            }
            std::thread::sleep(std::time::Duration::from_secs(LIFE.into()));
        }
        process::exit_now(0);
    }
    drop(writer);
    process::wait(Some(child), true, false);
    let mut number = [0; 4];
    match descriptor::read(reader.as_raw_fd(), &mut number) {
        Ok(4) => Ok(Pid::from_le_bytes(number)),
        _ => Err(libc::EPERM),
    }
}

/// Starts a process to attack. It blocks every signal, and lives as long as its parent at most.
pub fn victim() -> Result<Pid, SyscallError> {
    let child = process::fork()?;
    if child != 0 {
        return Ok(child);
    }
    let _ = process::die_with_parent(libc::SIGKILL);
    let _ = crate::sys::signal::set_mask(&crate::sys::signal::Set::full());
    // SAFETY: plain numbers. Without this, Yama may allow only its parent to open its memory.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// Ends a process that [`victim`] made.
pub fn end(victim: Pid) {
    process::signal(victim, libc::SIGKILL);
    process::wait(Some(victim), true, false);
}

/// Signals a process, and one of its threads.
pub fn signal(victim: Pid, thread: bool) -> Got {
    let victim = victim as usize;
    let signal = libc::SIGUSR1 as usize;
    if thread {
        return call(libc::SYS_tgkill, [victim, victim, signal]);
    }
    call(libc::SYS_kill, [victim, signal, 0])
}

/// Moves into a new user namespace.
pub fn unshare() -> Got {
    call(libc::SYS_unshare, [libc::CLONE_NEWUSER as usize, 0, 0])
}

/// Asks for the number of the session keyring.
pub fn session_keyring() -> Got {
    const GET_KEYRING_ID: usize = 0;
    const SESSION: usize = -3_isize as usize;
    call(libc::SYS_keyctl, [GET_KEYRING_ID, SESSION, 0])
}

/// Makes memory that can be written and executed, at once or one after the other.
pub fn executable_memory(later: bool) -> Got {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let first = libc::PROT_READ | libc::PROT_WRITE | if later { 0 } else { libc::PROT_EXEC };
    // musl's mmap() would report a refusal as ENOMEM.
    // SAFETY: new memory at an address of the kernel's choice.
    let start =
        unsafe { libc::syscall(libc::SYS_mmap, 0_usize, 4096_usize, first, flags, -1_isize, 0_usize) };
    got(start)?;
    if !later {
        return Ok(());
    }
    // SAFETY: memory that nothing refers to.
    got(unsafe { libc::mprotect(start as *mut libc::c_void, 4096, libc::PROT_READ | libc::PROT_EXEC) }.into())
}

/// Runs `body` in a child that has these descriptors as standard input and output, /dev/null as standard
/// error, and only this environment.
pub fn spawn(
    (input, output): (&impl AsRawFd, &impl AsRawFd),
    environment: &[(&OsStr, &OsStr)],
    body: impl FnOnce() -> i32,
) -> Result<Pid, SyscallError> {
    let child = process::fork()?;
    if child != 0 {
        return Ok(child);
    }
    let _ = process::die_with_parent(libc::SIGKILL);
    // SAFETY: open descriptors; what 0 and 1 were is nobody's `OwnedFd`.
    unsafe { (libc::dup2(input.as_raw_fd(), 0), libc::dup2(output.as_raw_fd(), 1)) };
    // SAFETY: a constant path, and a number as above.
    unsafe { libc::dup2(libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC), 2) };
    for (name, _) in std::env::vars_os() {
        // SAFETY: this copy of the process has one thread.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in environment {
        // SAFETY: as above.
        unsafe { std::env::set_var(name, value) };
    }
    process::exit_now(body())
}

/// Waits for a child, and returns its exit status as a shell does.
pub fn wait(child: Pid) -> i32 {
    match process::wait(Some(child), true, false) {
        Some((_, Change::Exited(status))) => status,
        Some((_, Change::Killed(signal))) => 128 + signal,
        _ => 0,
    }
}
