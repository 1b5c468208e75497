//! Following a command from call to call (ptrace(2)), and making one of its calls fail.
//!
//! Everything here concerns tracees of the calling thread: the thread that starts a command has to follow it.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::Command;

use libc::{c_int, c_long, c_uint, c_ulong};
use rustix::process::WaitOptions;

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
    /// It stopped without a signal of its own: it is new, or its whole process has stopped.
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
    before_exec(command, || request(libc::PTRACE_TRACEME, 0, 0, 0).map(drop));
}

/// Follows all that a stopped tracee starts as well, and ends all of them with this thread.
pub fn follow_all(pid: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    request(libc::PTRACE_SETOPTIONS, pid, 0, options as usize).map(drop)
}

/// A request whose arguments are numbers: it neither reads nor writes memory of this process.
fn request(what: c_uint, pid: i32, address: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: takes plain numbers.
    checked(unsafe { libc::ptrace(what, pid, address, data) })
}

/// Makes a request that fills a structure, and returns the structure with the request's result.
///
/// # Safety
/// All zeroes have to be a valid `T`, and with this `address` the request may write to `data` as much as a `T` takes.
unsafe fn get<T>(what: c_uint, pid: i32, address: usize) -> io::Result<(c_long, T)> {
    // SAFETY: the caller's promise.
    let mut data: T = unsafe { std::mem::zeroed() };
    // SAFETY: room for what the request writes, as the caller promises.
    let result = checked(unsafe { libc::ptrace(what, pid, address, &raw mut data) })?;
    Ok((result, data))
}

/// Waits for something to happen to a tracee of this thread; `None` when there is none left.
pub fn next() -> Option<(i32, Stop)> {
    let options = WaitOptions::from_bits_retain((libc::__WALL | libc::__WNOTHREAD).cast_unsigned());
    let (pid, status) = rustix::io::retry_on_intr(|| rustix::process::wait(options)).ok()??;
    let pid = pid.as_raw_nonzero().get();
    Some((pid, meaning(pid, status.as_raw())))
}

fn meaning(pid: i32, status: c_int) -> Stop {
    if !libc::WIFSTOPPED(status) {
        return Stop::Ended(status);
    }
    match (libc::WSTOPSIG(status), status >> 16) {
        (_, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE) => {
            // SAFETY: the request writes one number of this type.
            let number = unsafe { get::<c_ulong>(libc::PTRACE_GETEVENTMSG, pid, 0) };
            Stop::Made(number.map_or(0, |(_, number)| number as i32))
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
    // SAFETY: the request writes one such structure, of plain numbers.
    unsafe { get::<libc::siginfo_t>(libc::PTRACE_GETSIGINFO, pid, 0) }.is_ok()
}

/// Lets a stopped tracee go on, with this signal (0: none); it stops at its next call, if its calls are of interest.
pub fn go_on(pid: i32, calls: bool, signal: c_int) {
    let what = if calls { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
    // It fails for a tracee that was killed meanwhile.
    let _ = request(what, pid, 0, signal as usize);
}

/// The call that a tracee is about to make; `None` after one.
pub fn entry(pid: i32) -> Option<Entry> {
    let what = libc::PTRACE_GET_SYSCALL_INFO as c_uint;
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the request writes one such structure, of plain numbers, and no more than its size.
    let (got, about) = unsafe { get::<libc::ptrace_syscall_info>(what, pid, size) }.ok()?;
    if got == 0 || about.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: this is what the union holds before a call.
    let call = unsafe { about.u.entry };
    Some(Entry { number: call.nr, arguments: call.args, place: about.instruction_pointer })
}

fn registers(pid: i32) -> io::Result<libc::user_regs_struct> {
    // SAFETY: the request writes one such structure, of plain numbers.
    unsafe { get(libc::PTRACE_GETREGS, pid, 0) }.map(|(_, registers)| registers)
}

fn set_registers(pid: i32, registers: &libc::user_regs_struct) -> io::Result<()> {
    // SAFETY: a valid structure.
    checked(unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0, std::ptr::from_ref(registers)) }).map(drop)
}

/// Makes a tracee make a call that does nothing, in place of the one that it is about to make. That is brk(2) of 0,
/// which every program may do: an invalid number would be seen by its filters, which may make it wait for an answer.
pub fn replace_call(pid: i32) -> io::Result<Replaced> {
    let before = registers(pid)?;
    let mut other = before;
    other.orig_rax = libc::SYS_brk as u64;
    other.rdi = 0;
    set_registers(pid, &other)?;
    Ok(Replaced(before))
}

/// Makes the call that was replaced fail with this error.
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
