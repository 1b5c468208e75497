//! Following a command from call to call (ptrace(2)), and having one of its calls fail.
//!
//! Everything here concerns tracees of the calling thread: whoever starts a command to be followed has to follow it.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::Command;

use libc::{c_int, c_uint};

use super::{before_exec, checked};

/// Something happened to a tracee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It ended, with this wait status.
    Ended(c_int),
    /// It is about to make a call, or has made one.
    Call,
    /// It has made a process or thread of this number.
    Made(i32),
    /// It executes another program.
    Exec,
    /// It stands still for nobody's sake but ours: it is new, or its whole process has stopped.
    Still,
    /// It gets this signal.
    Signal(c_int),
}

/// A call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its number.
    pub number: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// Where in memory it is made.
    pub place: u64,
}

/// A call that was replaced by one that does nothing.
pub struct Replaced(libc::user_regs_struct);

/// Makes the command stop at its exec, to be followed by the thread that starts it.
pub fn follow(command: &mut Command) {
    before_exec(command, || {
        // SAFETY: takes nothing.
        checked(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) }).map(drop)
    });
}

/// Has all that a stopped tracee makes be followed as well, and all of them end with this thread.
pub fn follow_all(pid: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: takes plain numbers.
    checked(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) }).map(drop)
}

/// Waits for something to happen to a tracee of this thread; `None` when there is none left.
pub fn next() -> Option<(i32, Stop)> {
    loop {
        let mut status = 0;
        // SAFETY: room for a number.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if pid > 0 {
            return Some((pid, meaning(pid, status)));
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}

fn meaning(pid: i32, status: c_int) -> Stop {
    if !libc::WIFSTOPPED(status) {
        return Stop::Ended(status);
    }
    match (libc::WSTOPSIG(status), status >> 16) {
        (_, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE) => {
            let mut number: libc::c_ulong = 0;
            // SAFETY: room for a number.
            unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, 0, &raw mut number) };
            Stop::Made(number as i32)
        }
        (_, libc::PTRACE_EVENT_EXEC) => Stop::Exec,
        (signal, _) if signal == libc::SIGTRAP | 0x80 => Stop::Call,
        (libc::SIGSTOP, _) => Stop::Still,
        (signal, _) if is_delivered(pid) => Stop::Signal(signal),
        _ => Stop::Still,
    }
}

/// Whether a stop is about a signal, and not about a process that stops as a whole.
fn is_delivered(pid: i32) -> bool {
    // SAFETY: all zeroes is a valid value.
    let mut about: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: room for one structure.
    unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, pid, 0, &raw mut about) == 0 }
}

/// Has a stopped tracee go on, with this signal (0: none); it stops at its next call, if its calls are of interest.
pub fn go_on(pid: i32, calls: bool, signal: c_int) {
    let request = if calls { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
    // Killed meanwhile, it is not there any more.
    // SAFETY: takes plain numbers.
    unsafe { libc::ptrace(request, pid, 0, libc::c_long::from(signal)) };
}

/// The call that a tracee is about to make; `None` after one.
pub fn entry(pid: i32) -> Option<Entry> {
    // SAFETY: all zeroes is a valid value.
    let mut about: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let (request, size) = (libc::PTRACE_GET_SYSCALL_INFO as c_uint, size_of_val(&about));
    // SAFETY: room for one structure, and its size.
    let got = unsafe { libc::ptrace(request, pid, size, &raw mut about) };
    if got <= 0 || about.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: this is what the union holds before a call.
    let call = unsafe { about.u.entry };
    Some(Entry { number: call.nr, arguments: call.args, place: about.instruction_pointer })
}

fn registers(pid: i32) -> io::Result<libc::user_regs_struct> {
    // SAFETY: all zeroes is a valid value.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: room for one structure.
    checked(unsafe { libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers) })?;
    Ok(registers)
}

fn set_registers(pid: i32, registers: &libc::user_regs_struct) -> io::Result<()> {
    // SAFETY: a valid structure.
    checked(unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0, std::ptr::from_ref(registers)) }).map(drop)
}

/// Has a tracee make a call that does nothing, in the place of the one that it is about to make. No number at all would
/// be seen by its filters, which may have it wait for an answer; brk(2) of nothing every program may do.
pub fn replace_call(pid: i32) -> io::Result<Replaced> {
    let before = registers(pid)?;
    let mut other = before;
    other.orig_rax = libc::SYS_brk as u64;
    other.rdi = 0;
    set_registers(pid, &other)?;
    Ok(Replaced(before))
}

/// Has the call that was replaced fail with this error.
pub fn fail(pid: i32, replaced: &Replaced, errno: c_int) -> io::Result<()> {
    let mut after = registers(pid)?;
    after.rdi = replaced.0.rdi;
    after.rax = i64::from(-errno).cast_unsigned();
    set_registers(pid, &after)
}

/// A text in a tracee's memory, as far as it can be read.
pub fn text(pid: i32, address: u64) -> Option<CString> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut bytes = [0; 256];
    let read = memory.read_at(&mut bytes, address).ok()?;
    CStr::from_bytes_until_nul(&bytes[..read]).ok().map(CStr::to_owned)
}
