//! How the library is passed on: it takes itself out of the environment when a program starts, so that nobody sees it
//! there, and puts itself back for the programs that this one starts.

use super::calls::failed;
use super::next::Next;
use super::raw;
use crate::kinds::EXECVE;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

type Text = *const c_char;
type Strings = *const Text;

const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// Its name, which the launcher gives it.
const OWN_NAME: &[u8] = b"/libsbx-explain.so";
/// Set for ldd(1), which lists what a program loads.
const TRACE: &[u8] = b"LD_TRACE_LOADED_OBJECTS=";
/// Maximum number of variables of a program that gets the library. Beyond that it is not worth the stack.
const MOST: usize = 768;
/// Maximum length of its LD_PRELOAD.
const LONGEST: usize = 1024;

#[used]
// SAFETY: the loader calls the functions of this section with these arguments, or with none.
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// The path of this library. It is written once, before there are threads.
static mut OWN: [u8; 256] = [0; 256];
static IS_KNOWN: AtomicBool = AtomicBool::new(false);

extern "C" fn constructor() {
    // SAFETY: libc has set it, and no other thread runs yet.
    let mut at = unsafe { environ };
    if at.is_null() {
        return;
    }
    // SAFETY: an array that ends with a null pointer.
    while let Some(entry) = ptr::NonNull::new(unsafe { *at }) {
        // SAFETY: its members are strings.
        let text = unsafe { CStr::from_ptr(entry.as_ptr()) }.to_bytes();
        if let Some(list) = text.strip_prefix(PRELOAD)
            && let Some((start, length)) = own_part(list)
        {
            keep_path(list.get(start..start + length).unwrap_or(&[]));
            // SAFETY: the string is writable, and is as long as `text`.
            unsafe { take_out(at, entry.as_ptr().add(PRELOAD.len()), list.len(), start, length) };
            return;
        }
        // SAFETY: the array goes on.
        at = unsafe { at.add(1) };
    }
}

/// Where this library's path is in a list.
fn own_part(list: &[u8]) -> Option<(usize, usize)> {
    let mut start = 0;
    for part in list.split(|byte| matches!(byte, b':' | b' ')) {
        if part.ends_with(OWN_NAME) {
            return Some((start, part.len()));
        }
        start += part.len() + 1;
    }
    None
}

fn keep_path(path: &[u8]) {
    // SAFETY: only the constructor writes it, before there are threads.
    let own = unsafe { &mut *&raw mut OWN };
    // One NUL has to stay.
    if path.len() < own.len() {
        own.iter_mut().zip(path).for_each(|(to, from)| *to = *from);
        IS_KNOWN.store(true, Ordering::Release);
    }
}

/// Takes a part out of a list, or the whole variable out of the environment.
///
/// # Safety
///
/// `at` is the place of the variable in the environment, and `list` its value, of this length.
unsafe fn take_out(at: *mut *mut c_char, list: *mut c_char, all: usize, start: usize, length: usize) {
    if length == all {
        let mut at = at;
        // SAFETY: the array ends with a null pointer, which moves too.
        unsafe {
            while !(*at).is_null() {
                *at = *at.add(1);
                at = at.add(1);
            }
        }
        return;
    }
    // With the separator behind it, or the one before it.
    let (start, end) = if start + length < all { (start, start + length + 1) } else { (start - 1, all) };
    // SAFETY: both ranges are in the list, with the NUL behind it.
    unsafe { ptr::copy(list.add(end), list.add(start), all - end + 1) };
}

/// The environment of a program to start, with this library in it.
struct Environment {
    entries: [Text; MOST + 2],
    preload: [u8; LONGEST],
}

impl Environment {
    /// Has a function work on it, or on the given one where it is passed on as it is.
    ///
    /// # Safety
    ///
    /// `given` is null, or an array of strings that ends with a null pointer.
    unsafe fn with<T>(given: Strings, act: impl FnOnce(Strings) -> T) -> T {
        if given.is_null() || !is_there() {
            return act(given);
        }
        let mut environment = Environment { entries: [ptr::null(); MOST + 2], preload: [0; LONGEST] };
        // SAFETY: by the contract.
        match unsafe { environment.fill(given) } {
            Some(()) => act(environment.entries.as_ptr()),
            None => act(given),
        }
    }

    /// # Safety
    ///
    /// As for `with`.
    unsafe fn fill(&mut self, given: Strings) -> Option<()> {
        let mut others: &[u8] = &[];
        let mut count = 0;
        // SAFETY: by the contract, for the array and its strings.
        while let Some(entry) = ptr::NonNull::new(unsafe { *given.add(count) }.cast_mut()) {
            // SAFETY: as above.
            let text = unsafe { CStr::from_ptr(entry.as_ptr()) }.to_bytes();
            if text.starts_with(TRACE) {
                return None;
            }
            match text.strip_prefix(PRELOAD) {
                Some(list) if own_part(list).is_some() => return None,
                // The last place is replaced below.
                Some(list) => others = list,
                None => {}
            }
            *self.entries.get_mut(count).filter(|_| count < MOST)? = entry.as_ptr();
            count += 1;
        }
        let own = own_path();
        let mut used = 0;
        // The program's own libraries come first, as without us.
        let separator: &[u8] = if others.is_empty() { b"" } else { b":" };
        for part in [PRELOAD, others, separator, own, b"\0"] {
            let end = used + part.len();
            self.preload.get_mut(used..end)?.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            used = end;
        }
        // The first variable of a name counts for most, the last one for some.
        for entry in self.entries.iter_mut().take(count) {
            // SAFETY: as above.
            if unsafe { CStr::from_ptr(*entry) }.to_bytes().starts_with(PRELOAD) {
                *entry = self.preload.as_ptr().cast();
                return Some(());
            }
        }
        *self.entries.get_mut(count)? = self.preload.as_ptr().cast();
        Some(())
    }
}

fn own_path() -> &'static [u8] {
    // SAFETY: the constructor alone writes it; its last byte is always 0.
    let own = unsafe { &*&raw const OWN };
    CStr::from_bytes_until_nul(own).map_or(&[], CStr::to_bytes)
}

/// Whether the library is where it was: a program may have another root by now.
fn is_there() -> bool {
    const AT_FDCWD: u64 = -100_i64 as u64;
    const R_OK: u64 = 4;
    // SAFETY: faccessat(2) reads the path.
    IS_KNOWN.load(Ordering::Acquire)
        && unsafe { raw::syscall(raw::FACCESSAT, [AT_FDCWD, &raw const OWN as u64, R_OK, 0, 0, 0]) } == 0
}

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
    let mut entries = (0..).map_while(|at| unsafe {
        let entry = *environ.add(at);
        (!entry.is_null()).then(|| CStr::from_ptr(entry).to_bytes())
    });
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
    unsafe { execve(path, argv, environ.cast_const().cast()) }
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
    unsafe { execvpe(path, argv, environ.cast_const().cast()) }
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
