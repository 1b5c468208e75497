//! Installing a filter and answering its notifications (seccomp(2), seccomp_unotify(2)).

use crate::sys::{OfCall, SyscallError, checked, descriptor};
use sbx_policy::bpf::Insn;
use sbx_policy::rules;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

const SET_MODE_FILTER: libc::c_uint = 1;
const FLAG_NEW_LISTENER: libc::c_ulong = 1 << 3;
const FLAG_WAIT_KILLABLE_RECV: libc::c_ulong = 1 << 5;
const RESPONSE_CONTINUE: u32 = 1;
const IOCTL_RECV: libc::c_ulong = 0xc050_2100;
const IOCTL_SEND: libc::c_ulong = 0xc018_2101;
const IOCTL_ID_VALID: libc::c_ulong = 0x4008_2102;

const IOCTL_ADD: libc::c_ulong = 0x4018_2103;
const ADD_AND_ANSWER: u32 = 1 << 1;

/// `struct seccomp_notif_addfd`.
#[repr(C)]
struct Added {
    id: u64,
    flags: u32,
    source: u32,
    number: u32,
    number_flags: u32,
}

#[repr(C)]
struct Program {
    len: libc::c_ushort,
    filter: *const Insn,
}

/// Binds the calling thread to a program for good.
pub fn install(insns: &[Insn]) -> Result<(), SyscallError> {
    set_filter(insns, 0).map(drop)
}

/// As [`install`], and returns the number of the descriptor that reports refused calls. EBUSY: a filter
/// around us already has such a listener.
pub fn install_with_listener(insns: &[Insn]) -> Result<RawFd, SyscallError> {
    // With the second flag (Linux 5.19) a signal does not interrupt a call that we are looking at.
    match set_filter(insns, FLAG_NEW_LISTENER | FLAG_WAIT_KILLABLE_RECV) {
        Err(failed) if failed.errno() == libc::EINVAL => set_filter(insns, FLAG_NEW_LISTENER),
        result => result,
    }
}

fn set_filter(insns: &[Insn], flags: libc::c_ulong) -> Result<RawFd, SyscallError> {
    let Ok(len) = libc::c_ushort::try_from(insns.len()) else {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput)).of("seccomp");
    };
    let program = Program { len, filter: insns.as_ptr() };
    // SAFETY: the kernel copies the program, which is valid for the length of the call.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const program) };
    checked("seccomp(SECCOMP_SET_MODE_FILTER)", result).map(|number| number as RawFd)
}

/// ERESTARTSYS: the error by which the kernel has a call give way to a signal that waits for the thread. It becomes
/// EINTR, or the call is made again, after a handler with SA_RESTART. Only for a thread that has to look at its
/// signals before it goes on: another one would get to see this number.
pub const GIVE_WAY: u16 = 512;

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    /// The identifier that the answer repeats.
    pub id: u64,
    /// The thread that made the call.
    pub pid: libc::pid_t,
    /// The call's number.
    pub nr: u32,
    /// `AUDIT_ARCH_*`.
    pub arch: u32,
    /// Where the call was made (`instruction_pointer`).
    pub code: u64,
    /// Its arguments.
    pub args: [u64; 6],
}

impl Notification {
    /// Whether code made the call that is where the linker puts a program at a fixed address. Libraries are elsewhere,
    /// so such a program is a static one.
    pub fn is_of_static_code(&self) -> bool {
        self.code >> 32 == 0
    }
}

/// The answer to a waiting call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It fails with this error number.
    Error(u16),
    /// It has been done on its behalf.
    Done,
    /// The kernel carries it out. Only for calls that are allowed whatever their arguments are: the process
    /// can change arguments in memory meanwhile.
    Continue,
}

/// Takes the next notification; `None` when the caller died meanwhile.
pub fn receive(listener: BorrowedFd<'_>) -> Result<Option<Notification>, SyscallError> {
    // SAFETY: all zeroes is a valid value, and what the kernel asks for.
    let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: room for the structure that this ioctl fills; the size is part of the command's number.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), IOCTL_RECV as _, &raw mut raw) };
    match checked("ioctl(SECCOMP_IOCTL_NOTIF_RECV)", result) {
        Ok(_) => {}
        Err(failed) if matches!(failed.errno(), libc::ENOENT | libc::EINTR) => return Ok(None),
        Err(failed) => return Err(failed),
    }
    let data = raw.data;
    Ok(Some(Notification {
        id: raw.id,
        pid: raw.pid as libc::pid_t,
        nr: data.nr as u32,
        arch: data.arch,
        code: data.instruction_pointer,
        args: data.args,
    }))
}

/// Whether the call still waits. If not, another process may have its process number by now.
pub fn still_waits(listener: BorrowedFd<'_>, id: u64) -> Result<bool, SyscallError> {
    // SAFETY: the kernel reads one number.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), IOCTL_ID_VALID as _, &raw const id) };
    match checked("ioctl(SECCOMP_IOCTL_NOTIF_ID_VALID)", result) {
        Ok(_) => Ok(true),
        // Any other error does not mean that: the caller would wait for ever.
        Err(failed) if failed.errno() == libc::ENOENT => Ok(false),
        Err(failed) => Err(failed),
    }
}

/// Answers. It is no error if the caller died meanwhile.
pub fn answer(listener: BorrowedFd<'_>, id: u64, answer: Answer) -> Result<(), SyscallError> {
    // SAFETY: all zeroes is a valid value.
    let mut raw: libc::seccomp_notif_resp = unsafe { std::mem::zeroed() };
    raw.id = id;
    match answer {
        Answer::Error(number) => raw.error = -i32::from(number),
        Answer::Done => {}
        Answer::Continue => raw.flags = RESPONSE_CONTINUE,
    }
    // SAFETY: a valid structure of the size that is part of the command's number.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), IOCTL_SEND as _, &raw mut raw) };
    match checked("ioctl(SECCOMP_IOCTL_NOTIF_SEND)", result) {
        Err(failed) if failed.errno() != libc::ENOENT => Err(failed),
        _ => Ok(()),
    }
}

/// Answers a call that opens a file with a copy of a descriptor (Linux 5.14).
pub fn answer_with(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    close_on_exec: bool,
) -> Result<(), SyscallError> {
    let flags = if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 };
    let added =
        Added { id, flags: ADD_AND_ANSWER, source: file.as_raw_fd() as u32, number: 0, number_flags: flags };
    // SAFETY: a valid structure of the size that is part of the command's number.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), IOCTL_ADD as _, &raw const added) };
    checked("ioctl(SECCOMP_IOCTL_NOTIF_ADDFD)", result).map(drop)
}

/// Gives the process whose call waits a copy of a descriptor, without an answer (Linux 5.9). Returns its number there.
pub fn add(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    close_on_exec: bool,
) -> Result<RawFd, SyscallError> {
    let number_flags = if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 };
    let added = Added { id, flags: 0, source: file.as_raw_fd() as u32, number: 0, number_flags };
    // SAFETY: a valid structure of the size that is part of the command's number.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), IOCTL_ADD as _, &raw const added) };
    checked("ioctl(SECCOMP_IOCTL_NOTIF_ADDFD)", result).map(|number| number as RawFd)
}

/// Takes ownership of the listener whose number [`install_with_listener`] returned.
pub fn own_listener(number: RawFd) -> OwnedFd {
    descriptor::own(number)
}

/// Whether this process is in a run of `sbx`: only the filter of one gives this answer.
pub fn is_confined() -> bool {
    answers(rules::AROUND)
}

/// Whether it is in one whose supervisor makes its connections.
pub fn has_connections_made() -> bool {
    answers(rules::CONNECTS)
}

fn answers(question: u32) -> bool {
    // SAFETY: plain numbers; without such a filter the kernel knows no such option.
    let result = unsafe { libc::prctl(question as libc::c_int, 0, 0, 0, 0) };
    result < 0 && SyscallError::last("prctl").errno() == i32::from(sbx_policy::errno::EISCONN)
}

/// The version of Landlock's ABI; 0 where there is none.
pub fn landlock_version() -> i32 {
    landlock_abi().unwrap_or(0)
}

/// As [`landlock_version`], and why there is none.
pub fn landlock_abi() -> Result<i32, SyscallError> {
    const CREATE_RULESET_VERSION: libc::c_uint = 1;
    let none: *const libc::c_void = std::ptr::null();
    // SAFETY: with this flag the call takes no structure and only returns a number.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, CREATE_RULESET_VERSION) };
    checked("landlock_create_ruleset", version).map(|version| i32::try_from(version).unwrap_or(0))
}
