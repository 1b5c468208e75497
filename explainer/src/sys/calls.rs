//! libc's functions on paths, each with the system call that it becomes.

use super::next::Next;
use crate::kinds::{self, Kind};
use core::ffi::{c_char, c_int, c_uint, c_void};

/// A path, or the name of a mode.
type Text = *const c_char;
/// What a function fills in or hands out.
type Place = *mut c_void;

const AT_FDCWD: c_int = -100;
const AT_SYMLINK_NOFOLLOW: c_int = 0x100;
const AT_REMOVEDIR: c_int = 0x200;
const O_WRONLY: c_int = 1;
const O_RDWR: c_int = 2;
const O_CREAT: c_int = 0o100;
const O_EXCL: c_int = 0o200;
const O_TRUNC: c_int = 0o1000;
const O_APPEND: c_int = 0o2000;
const O_DIRECTORY: c_int = if cfg!(target_arch = "aarch64") { 0o40000 } else { 0o200_000 };
const S_IFIFO: c_uint = 0o10000;
const ENOSYS: c_int = 38;

/// What a function returns, and how it says that it has failed.
trait Outcome: Copy {
    const FAILURE: Self;
    /// After the supervisor has done it.
    const SUCCESS: Self;
    fn is_failure(self) -> bool;
}

impl Outcome for c_int {
    const FAILURE: c_int = -1;
    const SUCCESS: c_int = 0;
    fn is_failure(self) -> bool {
        self == -1
    }
}

impl Outcome for isize {
    const FAILURE: isize = -1;
    const SUCCESS: isize = 0;
    fn is_failure(self) -> bool {
        self == -1
    }
}

impl Outcome for Place {
    const FAILURE: Place = core::ptr::null_mut();
    const SUCCESS: Place = core::ptr::null_mut();
    fn is_failure(self) -> bool {
        self.is_null()
    }
}

/// An argument as the kernel gets it.
trait Argument {
    fn word(self) -> u64;
}

impl Argument for c_int {
    fn word(self) -> u64 {
        self as u64
    }
}

impl Argument for c_uint {
    fn word(self) -> u64 {
        self.into()
    }
}

impl Argument for isize {
    fn word(self) -> u64 {
        self as u64
    }
}

impl Argument for Text {
    fn word(self) -> u64 {
        self as u64
    }
}

impl Argument for Place {
    fn word(self) -> u64 {
        self as u64
    }
}

/// The result of a function that libc does not have.
#[cold]
#[inline(never)]
fn missing<T: Outcome>() -> T {
    super::set_error(ENOSYS);
    T::FAILURE
}

#[cold]
#[inline(never)]
pub fn failed(kind: &Kind, given: &[u64]) -> bool {
    let mut args = [0; 6];
    args.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
    crate::failed(kind, args)
}

/// Functions that call the next one of their name, and remember the call if it fails. The result of a name that has no
/// next function is that of a kernel without the call; a program that is linked against the name never gets there.
macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty => $kind:ident($($given:expr),*);)*) => {$(
        /// As libc's function of this name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[cfg_attr(feature = "library", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            const NAME: &core::ffi::CStr =
                match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
            static NEXT: Next = Next::new();
            let Some(address) = NEXT.address(NAME) else { return missing() };
            // SAFETY: the function of this name takes these arguments. Those that may be left out (a mode) are passed
            // on in the registers that they would be in.
            let next: unsafe extern "C" fn($($type),*) -> $result = unsafe { core::mem::transmute(address) };
            // SAFETY: by the contract.
            let result = unsafe { next($($arg),*) };
            let is_done = result.is_failure() && failed(&kinds::$kind, &[$(Argument::word($given)),*]);
            if is_done { Outcome::SUCCESS } else { result }
        }
    )*};
}

functions! {
    open(path: Text, flags: c_int, mode: c_uint) -> c_int => OPENAT(AT_FDCWD, path, flags, mode);
    openat(at: c_int, path: Text, flags: c_int, mode: c_uint) -> c_int => OPENAT(at, path, flags, mode);
    __open_2(path: Text, flags: c_int) -> c_int => OPENAT(AT_FDCWD, path, flags);
    __openat_2(at: c_int, path: Text, flags: c_int) -> c_int => OPENAT(at, path, flags);
    creat(path: Text, mode: c_uint) -> c_int => OPENAT(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
    fopen(path: Text, mode: Text) -> Place => OPENAT(AT_FDCWD, path, flags_of(mode), 0o666_u32);
    freopen(path: Text, mode: Text, stream: Place) -> Place =>
        OPENAT(AT_FDCWD, path, flags_of(mode), 0o666_u32);
    opendir(path: Text) -> Place => OPENAT(AT_FDCWD, path, O_DIRECTORY);
    mkstemp(path: Text) -> c_int => OPENAT(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0o600_u32);
    mkostemp(path: Text, flags: c_int) -> c_int =>
        OPENAT(AT_FDCWD, path, flags | O_RDWR | O_CREAT | O_EXCL, 0o600_u32);
    mkdtemp(path: Text) -> Place => MKDIRAT(AT_FDCWD, path, 0o700_u32);
    mkdir(path: Text, mode: c_uint) -> c_int => MKDIRAT(AT_FDCWD, path, mode);
    mkdirat(at: c_int, path: Text, mode: c_uint) -> c_int => MKDIRAT(at, path, mode);
    mknod(path: Text, mode: c_uint, device: isize) -> c_int => MKNODAT(AT_FDCWD, path, mode, device);
    mknodat(at: c_int, path: Text, mode: c_uint, device: isize) -> c_int => MKNODAT(at, path, mode, device);
    mkfifo(path: Text, mode: c_uint) -> c_int => MKNODAT(AT_FDCWD, path, mode | S_IFIFO);
    mkfifoat(at: c_int, path: Text, mode: c_uint) -> c_int => MKNODAT(at, path, mode | S_IFIFO);
    rmdir(path: Text) -> c_int => UNLINKAT(AT_FDCWD, path, AT_REMOVEDIR);
    unlink(path: Text) -> c_int => UNLINKAT(AT_FDCWD, path);
    unlinkat(at: c_int, path: Text, flags: c_int) -> c_int => UNLINKAT(at, path, flags);
    remove(path: Text) -> c_int => UNLINKAT(AT_FDCWD, path);
    rename(from: Text, to: Text) -> c_int => RENAMEAT(AT_FDCWD, from, AT_FDCWD, to);
    renameat(at: c_int, from: Text, into: c_int, to: Text) -> c_int => RENAMEAT(at, from, into, to);
    renameat2(at: c_int, from: Text, into: c_int, to: Text, flags: c_uint) -> c_int =>
        RENAMEAT2(at, from, into, to, flags);
    link(from: Text, to: Text) -> c_int => LINKAT(AT_FDCWD, from, AT_FDCWD, to);
    linkat(at: c_int, from: Text, into: c_int, to: Text, flags: c_int) -> c_int =>
        LINKAT(at, from, into, to, flags);
    symlink(text: Text, path: Text) -> c_int => SYMLINKAT(text, AT_FDCWD, path);
    symlinkat(text: Text, at: c_int, path: Text) -> c_int => SYMLINKAT(text, at, path);
    truncate(path: Text, length: isize) -> c_int => TRUNCATE(path, length);
    access(path: Text, mode: c_int) -> c_int => FACCESSAT(AT_FDCWD, path, mode);
    faccessat(at: c_int, path: Text, mode: c_int, flags: c_int) -> c_int => FACCESSAT(at, path, mode);
    stat(path: Text, to: Place) -> c_int => NEWFSTATAT(AT_FDCWD, path, to);
    lstat(path: Text, to: Place) -> c_int => NEWFSTATAT(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
    fstatat(at: c_int, path: Text, to: Place, flags: c_int) -> c_int => NEWFSTATAT(at, path, to, flags);
    __xstat(version: c_int, path: Text, to: Place) -> c_int => NEWFSTATAT(AT_FDCWD, path, to);
    __lxstat(version: c_int, path: Text, to: Place) -> c_int =>
        NEWFSTATAT(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
    statx(at: c_int, path: Text, flags: c_int, mask: c_uint, to: Place) -> c_int =>
        STATX(at, path, flags, mask, to);
    statfs(path: Text, to: Place) -> c_int => STATFS(path, to);
    statvfs(path: Text, to: Place) -> c_int => STATFS(path, to);
    readlink(path: Text, to: Place, size: isize) -> isize => READLINKAT(AT_FDCWD, path, to, size);
    readlinkat(at: c_int, path: Text, to: Place, size: isize) -> isize => READLINKAT(at, path, to, size);
    kill(process: c_int, signal: c_int) -> c_int => KILL(process, signal);
    pipe(to: Place) -> c_int => PIPE2(to);
    pipe2(to: Place, flags: c_int) -> c_int => PIPE2(to, flags);
    socket(family: c_int, kind: c_int, protocol: c_int) -> c_int => SOCKET(family, kind, protocol);
    write(file: c_int, from: Place, length: isize) -> isize => WRITE(file, 0_u32, length);
    realpath(path: Text, to: Place) -> Place => NEWFSTATAT(AT_FDCWD, path, to);
}

/// Functions that differ from others by the size of offsets alone, and on these machines in nothing.
macro_rules! aliases {
    ($($name:ident = $same:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// As libc's function of this name.
        ///
        /// # Safety
        ///
        /// As for libc's.
        #[cfg_attr(feature = "library", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            // SAFETY: by the contract.
            unsafe { $same($($arg),*) }
        }
    )*};
}

aliases! {
    open64 = open(path: Text, flags: c_int, mode: c_uint) -> c_int;
    openat64 = openat(at: c_int, path: Text, flags: c_int, mode: c_uint) -> c_int;
    __open64_2 = __open_2(path: Text, flags: c_int) -> c_int;
    __openat64_2 = __openat_2(at: c_int, path: Text, flags: c_int) -> c_int;
    creat64 = creat(path: Text, mode: c_uint) -> c_int;
    fopen64 = fopen(path: Text, mode: Text) -> Place;
    freopen64 = freopen(path: Text, mode: Text, stream: Place) -> Place;
    mkstemp64 = mkstemp(path: Text) -> c_int;
    mkostemp64 = mkostemp(path: Text, flags: c_int) -> c_int;
    truncate64 = truncate(path: Text, length: isize) -> c_int;
    stat64 = stat(path: Text, to: Place) -> c_int;
    lstat64 = lstat(path: Text, to: Place) -> c_int;
    fstatat64 = fstatat(at: c_int, path: Text, to: Place, flags: c_int) -> c_int;
    __xstat64 = __xstat(version: c_int, path: Text, to: Place) -> c_int;
    __lxstat64 = __lxstat(version: c_int, path: Text, to: Place) -> c_int;
    statfs64 = statfs(path: Text, to: Place) -> c_int;
    statvfs64 = statvfs(path: Text, to: Place) -> c_int;
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn chdir(path: Text) -> c_int {
    static NEXT: Next = Next::new();
    let Some(address) = NEXT.address(c"chdir") else {
        super::set_error(ENOSYS);
        return -1;
    };
    // SAFETY: chdir(2) takes a path.
    let next: unsafe extern "C" fn(Text) -> c_int = unsafe { core::mem::transmute(address) };
    crate::moves();
    // SAFETY: by the contract.
    let result = unsafe { next(path) };
    if result != 0 {
        failed(&kinds::CHDIR, &[path.word()]);
    }
    result
}

/// As libc's function of this name.
///
/// # Safety
///
/// As for libc's.
#[cfg_attr(feature = "library", unsafe(no_mangle))]
pub unsafe extern "C" fn fchdir(directory: c_int) -> c_int {
    static NEXT: Next = Next::new();
    let Some(address) = NEXT.address(c"fchdir") else {
        super::set_error(ENOSYS);
        return -1;
    };
    // SAFETY: fchdir(2) takes a descriptor.
    let next: unsafe extern "C" fn(c_int) -> c_int = unsafe { core::mem::transmute(address) };
    crate::moves();
    // SAFETY: by the contract.
    unsafe { next(directory) }
}

/// The flags of open(2) for a mode of fopen(3).
fn flags_of(mode: Text) -> c_int {
    let mode = super::text(mode as u64);
    let both = mode.contains(&b'+');
    let access = if both { O_RDWR } else { O_WRONLY };
    let exclusive = if mode.contains(&b'x') { O_EXCL } else { 0 };
    match mode.first() {
        Some(b'w') => access | O_CREAT | O_TRUNC | exclusive,
        Some(b'a') => access | O_CREAT | O_APPEND | exclusive,
        _ if both => O_RDWR,
        _ => 0,
    }
}
