//! The bare system calls that canaries try. Each is harmless where it succeeds: it is about the caller itself, about
//! what the tester has made for it, or lacks an argument that it would need to have an effect.

use super::process::{self, Change, Pid};
use super::{Failed, checked, descriptor};
use std::ffi::{CString, OsStr};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An error number.
pub type Errno = i32;

/// What a canary got: nothing worth mentioning, or an error number.
pub type Got = Result<(), Errno>;

fn got(result: libc::c_long) -> Got {
    checked("", result).map(drop).map_err(|failed| failed.errno())
}

/// A call with numbers for arguments. Private: each of its uses below is safe whatever the kernel answers.
fn call(number: libc::c_long, a: [usize; 5]) -> Result<libc::c_long, Errno> {
    // SAFETY: the uses below pass numbers, null pointers, and addresses of memory that outlives the call and is as
    // large as the call may write.
    let result = unsafe { libc::syscall(number, a[0], a[1], a[2], a[3], a[4], 0_usize) };
    checked("", result).map_err(|failed| failed.errno())
}

fn path(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| libc::EINVAL)
}

/// A socket that is closed again.
pub fn socket(family: i32, kind: i32, protocol: i32) -> Got {
    // SAFETY: plain numbers.
    let number = unsafe { libc::socket(family, kind, protocol) };
    got(number.into())?;
    drop(descriptor::own(number));
    Ok(())
}

/// A child that ends at once.
pub fn fork() -> Got {
    let child = super::probe::fork().map_err(|failed| failed.errno())?;
    if child == 0 {
        process::exit_now(0);
    }
    process::wait(Some(child), true, false);
    Ok(())
}

/// A child that ends at once, in a user namespace of its own.
pub fn fork_into_namespace() -> Got {
    let child = call(libc::SYS_clone, [(libc::CLONE_NEWUSER | libc::SIGCHLD) as usize, 0, 0, 0, 0])? as Pid;
    if child == 0 {
        process::exit_now(0);
    }
    process::wait(Some(child), true, false);
    Ok(())
}

/// A process that outlives its parents: what it is known by.
pub fn daemon() -> Result<Pid, Errno> {
    const LIFE: u32 = 30;
    let (reader, writer) = descriptor::pipe().map_err(|failed| failed.errno())?;
    let child = super::probe::fork().map_err(|failed| failed.errno())?;
    if child == 0 {
        // SAFETY: takes nothing.
        unsafe { libc::setsid() };
        if super::probe::fork().is_ok_and(|grandchild| grandchild == 0) {
            let _ = descriptor::write_all(writer.as_raw_fd(), &process::id().to_le_bytes());
            for number in 0..3 {
                // SAFETY: plain numbers; nothing here uses these any more. The tester waits for their end.
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

/// A process that waits to be attacked, with every signal blocked, until its parent ends it or ends.
pub fn victim() -> Result<Pid, Failed> {
    let child = super::probe::fork()?;
    if child != 0 {
        return Ok(child);
    }
    let _ = process::die_with_parent(libc::SIGKILL);
    let _ = super::signal::set_mask(&super::signal::Set::full());
    // SAFETY: plain numbers. Where Yama lets only parents trace, whoever asks is let in here.
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

/// Becomes its tracer, until the caller ends.
pub fn trace(victim: Pid) -> Got {
    call(libc::SYS_ptrace, [libc::PTRACE_SEIZE as usize, victim as usize, 0, 0, 0]).map(drop)
}

/// Reads memory of another process.
pub fn read_memory(victim: Pid, address: usize, length: usize) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0_u8; length.min(4096)];
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the buffer is as long as the local vector says; the remote one is the kernel's to check.
    let read = unsafe { libc::process_vm_readv(victim, &raw const local, 1, &raw const remote, 1, 0) };
    got(read as libc::c_long)?;
    Ok(buffer)
}

/// Takes descriptor 0 of another process.
pub fn take_descriptor(victim: Pid) -> Got {
    let held = process::open_pid(victim).map_err(|failed| failed.errno())?;
    super::socket::take(&held, 0).map(drop).map_err(|failed| failed.errno())
}

/// Signals a process, and one of its threads.
pub fn signal(victim: Pid, thread: bool) -> Got {
    let victim = victim as usize;
    let signal = libc::SIGUSR1 as usize;
    if thread {
        return call(libc::SYS_tgkill, [victim, victim, signal, 0, 0]).map(drop);
    }
    call(libc::SYS_kill, [victim, signal, 0, 0, 0]).map(drop)
}

/// Puts a process behind others.
pub fn lower_priority(victim: Pid) -> Got {
    call(libc::SYS_setpriority, [libc::PRIO_PROCESS as usize, victim as usize, 5, 0, 0]).map(drop)
}

/// How far behind others a process is.
pub fn priority(victim: Pid) -> i32 {
    // SAFETY: plain numbers.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, victim as libc::id_t) }
}

/// The limit of open files of a process, and lowering it.
pub fn file_limit(victim: Pid, lower: bool) -> Result<u64, Errno> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the answer.
    let read = unsafe { libc::prlimit(victim, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut now) };
    if lower {
        let new = libc::rlimit { rlim_cur: now.rlim_cur.clamp(8, 512) - 1, rlim_max: now.rlim_max.max(512) };
        // SAFETY: a valid structure.
        let set = unsafe { libc::prlimit(victim, libc::RLIMIT_NOFILE, &raw const new, std::ptr::null_mut()) };
        return got(set.into()).map(|()| new.rlim_cur);
    }
    got(read.into()).map(|()| now.rlim_cur)
}

/// Gives up the signal that ends the caller with its supervisor.
pub fn untie() -> Got {
    call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, 0, 0, 0, 0]).map(drop)
}

/// Moves into a new user namespace.
pub fn unshare() -> Got {
    call(libc::SYS_unshare, [libc::CLONE_NEWUSER as usize, 0, 0, 0, 0]).map(drop)
}

/// Asks for the number of the session keyring.
pub fn session_keyring() -> Got {
    const GET_KEYRING_ID: usize = 0;
    const SESSION: usize = -3_isize as usize;
    call(libc::SYS_keyctl, [GET_KEYRING_ID, SESSION, 0, 0, 0]).map(drop)
}

/// Parts of the kernel that a command has no business with.
pub fn kernel(what: &str) -> Got {
    let mut room = [0_u8; 256];
    if what == "perf" {
        // A clock of the kernel's own, of which every machine has one, counted for this process outside the kernel.
        (room[0], room[40]) = (1, 0x60);
    }
    let room = room.as_mut_ptr() as usize;
    const PROCESS_KEYRING: usize = -2_isize as usize;
    const NO_DESCRIPTOR: usize = -1_isize as usize;
    let makes_descriptor = matches!(what, "io-uring" | "bpf" | "perf" | "userfaultfd");
    let (number, arguments) = match what {
        "add-key" => {
            let text = c"user".as_ptr() as usize;
            (libc::SYS_add_key, [text, text, text, 4, PROCESS_KEYRING])
        }
        "io-uring" => (libc::SYS_io_uring_setup, [1, room, 0, 0, 0]),
        "bpf" => (libc::SYS_bpf, [0, room, 0, 0, 0]),
        "perf" => (libc::SYS_perf_event_open, [room, 0, NO_DESCRIPTOR, NO_DESCRIPTOR, 0]),
        "userfaultfd" => (libc::SYS_userfaultfd, [1, 0, 0, 0, 0]),
        "module" => (libc::SYS_finit_module, [NO_DESCRIPTOR, c"".as_ptr() as usize, 0, 0, 0]),
        "mount" => (libc::SYS_mount, [0, 0, 0, 0, 0]),
        "clock" => (libc::SYS_clock_settime, [libc::CLOCK_REALTIME as usize, 0, 0, 0, 0]),
        _ => return Err(libc::EINVAL),
    };
    let made = call(number, arguments)?;
    if makes_descriptor {
        drop(descriptor::own(made as i32));
    }
    Ok(())
}

/// Types a letter into a terminal; what descriptor 0 is matters only to a kernel that gets to see the call. With
/// high bits set, the kernel reads the same command.
pub fn type_into_terminal(high_bits: bool) -> Got {
    let command = libc::TIOCSTI as usize | if high_bits { 1 << 32 } else { 0 };
    call(libc::SYS_ioctl, [0, command, c"x".as_ptr() as usize, 0, 0]).map(drop)
}

/// Memory that can be written and executed, at once or one after the other.
pub fn executable_memory(later: bool) -> Got {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let first = libc::PROT_READ | libc::PROT_WRITE | if later { 0 } else { libc::PROT_EXEC };
    // Not by the libc's function: musl's makes "out of memory" of a refusal.
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

/// getpid(2) through the x32 table.
pub fn x32() -> Got {
    const X32_BIT: libc::c_long = 0x4000_0000;
    if cfg!(target_arch = "x86_64") {
        return call(X32_BIT | libc::SYS_getpid, [0; 5]).map(drop);
    }
    Err(libc::ENOSYS)
}

/// getpid(2) as 32-bit code makes it.
#[cfg(target_arch = "x86_64")]
pub fn narrow_call() -> Got {
    let mut value: u64 = 20;
    // SAFETY: the call takes no argument; the entry clobbers r8 to r11 at most.
    unsafe {
        std::arch::asm!("int 0x80", inout("rax") value, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    let answer = value as i32;
    if answer < 0 { Err(-answer) } else { Ok(()) }
}

/// There is no such way here.
#[cfg(not(target_arch = "x86_64"))]
pub fn narrow_call() -> Got {
    Err(libc::ENOSYS)
}

/// A file that is made with the set-user-ID bit; left with whatever mode it got.
pub fn make_set_id(at: &Path) -> Got {
    let name = path(at)?;
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
    // SAFETY: a NUL-terminated path.
    let number = unsafe { libc::open(name.as_ptr(), flags, 0o4755) };
    got(number.into())?;
    drop(descriptor::own(number));
    Ok(())
}

/// A device node, that of /dev/null.
pub fn make_device(at: &Path) -> Got {
    let name = path(at)?;
    // SAFETY: a NUL-terminated path.
    got(unsafe { libc::mknod(name.as_ptr(), libc::S_IFCHR | 0o600, libc::makedev(1, 3)) }.into())
}

/// Empties a file without opening it.
pub fn truncate(at: &Path) -> Got {
    let name = path(at)?;
    // SAFETY: a NUL-terminated path.
    got(unsafe { libc::truncate(name.as_ptr(), 0) }.into())
}

/// Sets a file's times to the beginning of time.
pub fn set_times(at: &Path) -> Got {
    let name = path(at)?;
    let times = [libc::timespec { tv_sec: 0, tv_nsec: 0 }; 2];
    // SAFETY: a NUL-terminated path, and two valid times.
    got(unsafe { libc::utimensat(libc::AT_FDCWD, name.as_ptr(), times.as_ptr(), 0) }.into())
}

/// Sets an extended attribute.
pub fn set_attribute(at: &Path) -> Got {
    let name = path(at)?;
    let (key, value) = (c"user.sbx-canary", c"x");
    // SAFETY: NUL-terminated texts, and a value of one byte.
    got(unsafe { libc::setxattr(name.as_ptr(), key.as_ptr(), value.as_ptr().cast(), 1, 0) }.into())
}

/// Runs `body` in a child with these descriptors as its standard input and output, standard error nowhere, and no
/// environment but this.
pub fn spawn(
    (input, output): (&impl AsRawFd, &impl AsRawFd),
    environment: &[(&OsStr, &OsStr)],
    body: impl FnOnce() -> i32,
) -> Result<Pid, Failed> {
    let child = super::probe::fork()?;
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

/// How a child ended, in the way of a shell's exit status.
pub fn wait(child: Pid) -> i32 {
    match process::wait(Some(child), true, false) {
        Some((_, Change::Exited(status))) => status,
        Some((_, Change::Killed(signal))) => 128 + signal,
        _ => 0,
    }
}
