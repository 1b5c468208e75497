//! How the library is passed on: it takes itself out of the environment when a program starts, so that nobody sees it
//! there, and puts itself back for the programs that this one starts.

use super::libc;
use super::raw;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_ulong};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

pub type Text = *const c_char;
pub type Strings = *const Text;

const PRELOAD: &[u8] = b"LD_PRELOAD=";
/// Its name, which the launcher gives it.
const OWN_NAME: &[u8] = b"/libsbx-explain.so";
/// Program headers, and their number (getauxval(3)).
const AT_PHDR: c_ulong = 3;
const AT_PHNUM: c_ulong = 5;
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

/// The environment of this process.
pub fn own() -> Strings {
    libc::environment().cast_const().cast()
}

/// The path of this library. It is written once, before there are threads.
static mut OWN: [u8; 256] = [0; 256];
static IS_KNOWN: AtomicBool = AtomicBool::new(false);

extern "C" fn constructor() {
    let mut at = libc::environment();
    // A program of Go starts others without libc, and so does one that has none.
    if at.is_null() || is_of_go() {
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

/// Whether the program was made by Go, whose linker leaves a note.
fn is_of_go() -> bool {
    const LOADED: u32 = 1;
    const NOTE: u32 = 4;
    const HEADERS_THEMSELVES: u32 = 6;
    let (at, count) = (libc::auxiliary(AT_PHDR) as *const Header, libc::auxiliary(AT_PHNUM) as usize);
    // SAFETY: the kernel says where the program headers are, and how many.
    let headers = if at.is_null() { &[] } else { unsafe { core::slice::from_raw_parts(at, count) } };
    let Some(own) = headers.iter().find(|header| header.kind == HEADERS_THEMSELVES) else { return false };
    let base = (headers.as_ptr() as usize).wrapping_sub(own.address);
    let holds = |whole: &Header, part: &Header| {
        let behind = part.address.checked_sub(whole.address);
        behind.and_then(|behind| behind.checked_add(part.size)).is_some_and(|end| end <= whole.size)
    };
    let is_loaded = |part| headers.iter().any(|whole| whole.kind == LOADED && holds(whole, part));
    headers.iter().filter(|header| header.kind == NOTE && is_loaded(header)).any(|header| {
        // SAFETY: it is loaded.
        let notes = unsafe {
            core::slice::from_raw_parts(base.wrapping_add(header.address) as *const u32, header.size / 4)
        };
        has_note_of_go(notes)
    })
}

/// Whether one of these notes is Go's: lengths of name and contents, kind, name, contents, in words.
fn has_note_of_go(mut notes: &[u32]) -> bool {
    const NAME: u32 = u32::from_ne_bytes(*b"Go\0\0");
    while let [name, contents, kind, first, ..] = *notes {
        if (name, kind, first) == (4, 4, NAME) {
            return true;
        }
        let words = |bytes: u32| bytes.div_ceil(4) as usize;
        notes = notes.get(3 + words(name) + words(contents)..).unwrap_or_default();
    }
    false
}

/// `Elf64_Phdr`.
#[repr(C)]
struct Header {
    kind: u32,
    _flags: u32,
    _offset: usize,
    address: usize,
    _physical: usize,
    _in_file: usize,
    size: usize,
    _alignment: usize,
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
pub struct Environment {
    entries: [Text; MOST + 2],
    preload: [u8; LONGEST],
}

impl Environment {
    const EMPTY: Environment = Environment { entries: [ptr::null(); MOST + 2], preload: [0; LONGEST] };

    /// Has a function work on it, or on the given one where it is passed on as it is.
    ///
    /// # Safety
    ///
    /// `given` is null, or an array of strings that ends with a null pointer.
    pub unsafe fn with<T>(given: Strings, act: impl FnOnce(Strings) -> T) -> T {
        if given.is_null() || !is_there() {
            return act(given);
        }
        let mut environment = Environment::EMPTY;
        // SAFETY: by the contract.
        match unsafe { environment.fill(given) } {
            Some(_) => act(environment.entries.as_ptr()),
            None => act(given),
        }
    }

    /// Returns the variable whose place is taken; null for none.
    ///
    /// # Safety
    ///
    /// As for `with`.
    unsafe fn fill(&mut self, given: Strings) -> Option<Text> {
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
                return Some(core::mem::replace(entry, self.preload.as_ptr().cast()));
            }
        }
        *self.entries.get_mut(count)? = self.preload.as_ptr().cast();
        Some(ptr::null())
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

/// The environment of this process while libc starts a program in it: system(3) and popen(3) take no other.
pub struct Lent(UnsafeCell<Places>);

struct Places {
    /// One is in use, and the other free: other threads may still read the one before.
    both: [Environment; 2],
    free: usize,
    /// How many threads use it.
    users: usize,
    /// The program's own LD_PRELOAD, whose place is taken.
    replaced: Text,
}

// SAFETY: only who has set `BUSY` gets at what is in it.
unsafe impl Sync for Lent {}

static LENT: Lent = Lent(UnsafeCell::new(Places {
    both: [Environment::EMPTY, Environment::EMPTY],
    free: 0,
    users: 0,
    replaced: ptr::null(),
}));
static BUSY: AtomicBool = AtomicBool::new(false);

impl Lent {
    /// Has libc do something that starts a program. Without the library where another thread is about to do the same.
    pub fn during<T>(act: impl FnOnce() -> T) -> T {
        let is_lent = is_there() && Lent::locked(1, Places::lend).unwrap_or(false);
        let result = act();
        if is_lent {
            Lent::locked(LONG, Places::take_back);
        }
        result
    }

    /// Gives the places to one thread at a time, if it gets them within so many attempts.
    fn locked<T>(attempts: usize, act: impl FnOnce(&mut Places) -> T) -> Option<T> {
        let free = (0..attempts).any(|attempt| {
            if attempt > 0 {
                // SAFETY: sched_yield(2) touches no memory.
                unsafe { raw::syscall(raw::SCHED_YIELD, [0; 6]) };
            }
            BUSY.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        let result = free.then(|| {
            // SAFETY: nobody else has set `BUSY`.
            act(unsafe { &mut *LENT.0.get() })
        });
        if free {
            BUSY.store(false, Ordering::Release);
        }
        result
    }
}

/// Attempts to get what another thread has for some instructions.
const LONG: usize = 1000;

impl Places {
    fn lend(&mut self) -> bool {
        if self.users == 0 {
            let Some(place) = self.both.get_mut(self.free) else { return false };
            *place = Environment::EMPTY;
            if own().is_null() {
                return false;
            }
            // SAFETY: an array of strings that ends with a null pointer. It is not this place, which is the free one.
            let Some(replaced) = (unsafe { place.fill(own()) }) else { return false };
            self.replaced = replaced;
            // SAFETY: as setenv(3) does; the array stays.
            unsafe { *libc::environ() = place.entries.as_mut_ptr().cast() };
            self.free = 1 - self.free;
        }
        self.users += 1;
        true
    }

    /// Takes the entry out of what is the environment by now.
    fn take_back(&mut self) {
        self.users = self.users.saturating_sub(1);
        let is_last = self.users == 0 && !own().is_null();
        let Some(place) = self.both.get(1 - self.free).filter(|_| is_last) else { return };
        let preload: Text = place.preload.as_ptr().cast();
        // SAFETY: an array of strings that ends with a null pointer, which moves too.
        unsafe {
            let mut entry: *mut Text = libc::environment().cast();
            while !(*entry).is_null() && *entry != preload {
                entry = entry.add(1);
            }
            if (*entry).is_null() {
                return;
            }
            *entry = self.replaced;
            while self.replaced.is_null() && !(*entry.add(1)).is_null() {
                *entry = *entry.add(1);
                *entry.add(1) = ptr::null();
                entry = entry.add(1);
            }
        }
    }
}

/// An entry of an array that ends with a null pointer. After clearenv(3) there is none.
///
/// # Safety
///
/// All entries before it are there.
pub unsafe fn at(array: Strings, index: usize) -> Option<Text> {
    if array.is_null() {
        return None;
    }
    // SAFETY: by the contract.
    let entry = unsafe { *array.add(index) };
    (!entry.is_null()).then_some(entry)
}
