//! Functions that start programs. What they start gets the library too.

use super::calls::failed;
use super::environment::{Environment, Lent, Strings, Text, at, own};
use super::next::Next;
use super::raw;
use crate::kinds::EXECVE;
use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr;

const ENOSYS: c_int = 38;

macro_rules! next {
    ($name:literal as $type:ty) => {{
        static NEXT: Next = Next::new();
        // SAFETY: libc's function of this name has this type.
        NEXT.address($name).map(|address| unsafe { transmute::<*const (), $type>(address) })
    }};
}

/// Remembers an exec: of a name without a directory, of the first file in PATH that has it.
fn exec_failed(path: Text, argv: Strings, envp: Strings) {
    let mut room = [0; 512];
    let error = super::error();
    let found = in_path(super::text(path as u64), &mut room).map_or(path, |found| found.as_ptr().cast());
    super::set_error(error);
    failed(&EXECVE, &[found as u64, argv as u64, envp as u64]);
}

/// The first file of this name in a directory of PATH.
fn in_path<'a>(name: &[u8], room: &'a mut [u8; 512]) -> Option<&'a [u8]> {
    const AT_FDCWD: u64 = -100_i64 as u64;
    if name.is_empty() || name.contains(&b'/') {
        return None;
    }
    // SAFETY: the array of the environment ends with null, and each entry is a string.
    let mut entries = (0..).map_while(|place| unsafe { Some(CStr::from_ptr(at(own(), place)?).to_bytes()) });
    let directories = entries.find_map(|entry| entry.strip_prefix(b"PATH="))?;
    for directory in directories.split(|letter| *letter == b':') {
        let mut used = 0;
        for part in [directory, b"/", name, b"\0"] {
            let end = used + part.len();
            room.get_mut(used..end)?.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            used = end;
        }
        // SAFETY: faccessat(2) reads the path.
        if unsafe { raw::syscall(raw::FACCESSAT, [AT_FDCWD, room.as_ptr() as u64, 0, 0, 0, 0]) } == 0 {
            return Some(room);
        }
    }
    None
}

type Exec = unsafe extern "C" fn(Text, Strings, Strings) -> c_int;

fn execve_of_libc() -> Option<Exec> {
    next!(c"execve" as Exec)
}

fn execvpe_of_libc() -> Option<Exec> {
    next!(c"execvpe" as Exec)
}

/// Calls a function of the exec family, and remembers it if it fails.
///
/// # Safety
///
/// As for the function.
unsafe fn exec(next: Option<Exec>, path: Text, argv: Strings, envp: Strings) -> c_int {
    let Some(next) = next else {
        super::set_error(ENOSYS);
        return -1;
    };
    // SAFETY: by the contract.
    let result = unsafe { Environment::with(envp, |envp| next(path, argv, envp)) };
    exec_failed(path, argv, envp);
    result
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: Text, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: by the contract.
    unsafe { exec(execve_of_libc(), path, argv, envp) }
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: Text, argv: Strings) -> c_int {
    // SAFETY: by the contract; nobody changes the environment meanwhile.
    unsafe { execve(path, argv, own()) }
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(path: Text, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: by the contract.
    unsafe { exec(execvpe_of_libc(), path, argv, envp) }
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(path: Text, argv: Strings) -> c_int {
    // SAFETY: by the contract; nobody changes the environment meanwhile.
    unsafe { execvpe(path, argv, own()) }
}

type Spawn = unsafe extern "C" fn(*mut c_int, Text, *const c_void, *const c_void, Strings, Strings) -> c_int;

macro_rules! spawns {
    ($($name:ident, $name_of:literal;)*) => {$(
        /// As libc's function of this name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            pid: *mut c_int,
            path: Text,
            actions: *const c_void,
            attributes: *const c_void,
            argv: Strings,
            envp: Strings,
        ) -> c_int {
            let Some(next) = next!($name_of as Spawn) else { return ENOSYS };
            // SAFETY: by the contract.
            let error = unsafe {
                Environment::with(envp, |envp| next(pid, path, actions, attributes, argv, envp))
            };
            if error != 0 {
                // It returns the error, and leaves errno alone.
                let kept = super::error();
                super::set_error(error);
                exec_failed(path, argv, envp);
                super::set_error(kept);
            }
            error
        }
    )*};
}

spawns! {
    posix_spawn, c"posix_spawn";
    posix_spawnp, c"posix_spawnp";
}

/// Maximum number of words of a command in the arguments of a function. They stand in the text of the program.
const WORDS: usize = 512;
const E2BIG: c_int = 7;

/// The arguments of a function that takes any number of them, all of them addresses.
#[derive(Clone, Copy)]
struct Arguments {
    registers: Strings,
    stack: Strings,
}

impl Arguments {
    /// How many of them are in registers.
    const IN_REGISTERS: usize = if cfg!(target_arch = "aarch64") { 8 } else { 6 };

    /// # Safety
    ///
    /// The function was called with so many.
    unsafe fn get(self, index: usize) -> Text {
        // SAFETY: by the contract.
        unsafe {
            match index.checked_sub(Arguments::IN_REGISTERS) {
                None => *self.registers.add(index),
                Some(behind) => *self.stack.add(behind),
            }
        }
    }

    /// Calls a function of the exec family with the words behind the path, and what stands behind these.
    ///
    /// # Safety
    ///
    /// A null pointer ends the words.
    unsafe fn exec(self, call: impl FnOnce(Text, Strings, Text) -> c_int) -> c_int {
        let mut words = [ptr::null(); WORDS];
        for (index, word) in words.iter_mut().enumerate() {
            // SAFETY: by the contract, for the words and the null pointer. What is behind that may not be there, but
            // the registers or the stack are.
            unsafe {
                *word = self.get(index + 1);
                if word.is_null() {
                    let (path, behind) = (self.get(0), self.get(index + 2));
                    return call(path, words.as_ptr(), behind);
                }
            }
        }
        super::set_error(E2BIG);
        -1
    }
}

/// Functions whose words are arguments, as execl(3): they pass registers and stack on to one in Rust.
macro_rules! by_words {
    ($($name:ident => $with:ident, $call:expr;)*) => {$(
        /// As libc's function of this name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[cfg(target_arch = "x86_64")]
        pub unsafe extern "C" fn $name() -> c_int {
            naked_asm!(
                "endbr64",
                "push r9", "push r8", "push rcx", "push rdx", "push rsi", "push rdi",
                "mov rdi, rsp",
                "lea rsi, [rsp + 56]",
                "sub rsp, 8",
                "call {with}",
                "add rsp, 56",
                "ret",
                with = sym $with,
            )
        }

        /// As libc's function of this name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        #[cfg(target_arch = "aarch64")]
        pub unsafe extern "C" fn $name() -> c_int {
            naked_asm!(
                "bti c",
                "stp x29, x30, [sp, #-80]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]", "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]",
                "add x0, sp, #16",
                "add x1, sp, #80",
                "bl {with}",
                "ldp x29, x30, [sp], #80",
                "ret",
                with = sym $with,
            )
        }

        unsafe extern "C" fn $with(registers: Strings, stack: Strings) -> c_int {
            let call: unsafe fn(Text, Strings, Text) -> c_int = $call;
            // SAFETY: the function above passes its own arguments on.
            unsafe { Arguments { registers, stack }.exec(|path, argv, behind| call(path, argv, behind)) }
        }
    )*};
}

by_words! {
    // SAFETY: by the contract of the function.
    execl => execl_with, |path, argv, _| unsafe { execv(path, argv) };
    // SAFETY: as above.
    execlp => execlp_with, |path, argv, _| unsafe { execvp(path, argv) };
    // SAFETY: as above.
    execle => execle_with, |path, argv, envp| unsafe { execve(path, argv, envp.cast()) };
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(line: Text) -> c_int {
    type System = unsafe extern "C" fn(Text) -> c_int;
    let Some(next) = next!(c"system" as System) else {
        super::set_error(ENOSYS);
        return -1;
    };
    // SAFETY: by the contract.
    Lent::during(|| unsafe { next(line) })
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(line: Text, mode: Text) -> *mut c_void {
    type Popen = unsafe extern "C" fn(Text, Text) -> *mut c_void;
    let Some(next) = next!(c"popen" as Popen) else {
        super::set_error(ENOSYS);
        return ptr::null_mut();
    };
    // SAFETY: by the contract.
    Lent::during(|| unsafe { next(line, mode) })
}
