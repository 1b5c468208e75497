//! Finds the next function of a name behind this library, as dlsym(3) does with RTLD_NEXT. dlsym itself is in a library
//! of its own before glibc 2.34, and takes locks, which a signal handler or a child of a thread must not.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// A function that is looked for when it is first called.
pub struct Next(AtomicUsize);

impl Next {
    /// Not looked for yet.
    pub const fn new() -> Next {
        Next(AtomicUsize::new(0))
    }

    /// The address of the function, which has this name; `None` if there is none. The name is no field: the loader
    /// would have to put its address in at each start.
    #[inline(never)]
    pub fn address(&self, name: &CStr) -> Option<*const ()> {
        let mut address = self.0.load(Ordering::Relaxed);
        if address == 0 {
            address = find(name.to_bytes());
            self.0.store(address, Ordering::Relaxed);
        }
        (address != 0).then_some(address as *const ())
    }
}

/// `struct r_debug`, up to what is used.
#[repr(C)]
struct Debug {
    _version: c_int,
    map: *const Map,
}

/// `struct link_map`.
#[repr(C)]
struct Map {
    address: usize,
    _name: *const c_char,
    dynamic: *const Dynamic,
    next: *const Map,
}

/// `Elf64_Dyn`.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    _other: u8,
    section: u16,
    value: usize,
    _size: u64,
}

unsafe extern "C" {
    #[link_name = "_DYNAMIC"]
    static OWN: Dynamic;
}

core::arch::global_asm!(".hidden _DYNAMIC", ".weak _r_debug", ".weak _dl_debug_addr");

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".hidden sbx_explain_debug",
    ".globl sbx_explain_debug",
    "sbx_explain_debug: mov rax, [rip + _r_debug@GOTPCREL]",
    "test rax, rax",
    "jne 1f",
    "mov rax, [rip + _dl_debug_addr@GOTPCREL]",
    "test rax, rax",
    "je 1f",
    "mov rax, [rax]",
    "1: ret",
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".hidden sbx_explain_debug",
    ".globl sbx_explain_debug",
    "sbx_explain_debug: adrp x0, :got:_r_debug",
    "ldr x0, [x0, :got_lo12:_r_debug]",
    "cbnz x0, 1f",
    "adrp x0, :got:_dl_debug_addr",
    "ldr x0, [x0, :got_lo12:_dl_debug_addr]",
    "cbz x0, 1f",
    "ldr x0, [x0]",
    "1: ret",
);

unsafe extern "C" {
    /// The loader's list of objects: glibc's `_r_debug`, or what musl's `_dl_debug_addr` points to; null if neither is
    /// there.
    fn sbx_explain_debug() -> *const Debug;
}

/// The tables of an object that has a hash table.
struct Tables {
    base: usize,
    symbols: *const Symbol,
    strings: *const c_char,
    versions: *const u16,
}

const STRTAB: i64 = 5;
const SYMTAB: i64 = 6;
const HASH: i64 = 4;
const GNU_HASH: i64 = 0x6fff_fef5;
const VERSYM: i64 = 0x6fff_fff0;

/// The bit of a version that only programs linked against it find.
const HIDDEN: u16 = 0x8000;

fn find(name: &[u8]) -> usize {
    // SAFETY: the function, defined above, reads one pointer.
    let debug = unsafe { sbx_explain_debug() };
    if debug.is_null() {
        return 0;
    }
    // SAFETY: the loader's list lives as long as the process. Objects are added at its end, and an object that the
    // program was started with never goes.
    let mut map = unsafe { (*debug).map };
    let own = &raw const OWN;
    let hash = name.iter().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
    let mut is_behind = false;
    while !map.is_null() {
        // SAFETY: as above.
        let object = unsafe { &*map };
        if is_behind {
            // SAFETY: the object is loaded.
            if let Some(found) = unsafe { object.find(name, hash) } {
                return found;
            }
        }
        is_behind |= ptr::eq(object.dynamic, own);
        map = object.next;
    }
    0
}

impl Map {
    /// What an entry of the object's list says, as an address. The name is not in most objects, so only what says that
    /// is looked for first.
    ///
    /// # Safety
    ///
    /// The object is loaded.
    unsafe fn table(&self, wanted: i64) -> Option<usize> {
        let mut at = self.dynamic;
        if at.is_null() {
            return None;
        }
        // SAFETY: by the contract, a list that ends with the tag 0.
        while let Dynamic { tag: tag @ 1.., value } = unsafe { &*at } {
            if *tag == wanted {
                // glibc has replaced addresses in the object by those in memory, musl has not.
                return Some(if *value < self.address { *value + self.address } else { *value });
            }
            // SAFETY: as above.
            at = unsafe { at.add(1) };
        }
        None
    }

    /// The address of a function.
    ///
    /// # Safety
    ///
    /// The object is loaded, and the hash is that of the name.
    unsafe fn find(&self, name: &[u8], hash: u32) -> Option<usize> {
        // SAFETY: by the contract, for all of these.
        unsafe {
            match self.table(GNU_HASH) {
                Some(table) => self.by_gnu_hash(table as *const u32, name, hash),
                None => self.by_hash(self.table(HASH)? as *const u32, name),
            }
        }
    }

    /// # Safety
    ///
    /// As for `find`, and this is its DT_GNU_HASH.
    unsafe fn by_gnu_hash(&self, table: *const u32, name: &[u8], wanted: u32) -> Option<usize> {
        // SAFETY: the table has a head of four words, a bloom filter, buckets, and a chain of hashes for the symbols
        // from the first hashed one on, in which the lowest bit marks the end of a bucket.
        unsafe {
            let (buckets, first, blooms, shift) = (*table, *table.add(1), *table.add(2), *table.add(3));
            if buckets == 0 || blooms == 0 {
                return None;
            }
            let bloom = table.add(4).cast::<u64>();
            let word = *bloom.add((wanted / 64 % blooms) as usize);
            let bits = (1 << (wanted % 64)) | (1 << (wanted.wrapping_shr(shift) % 64));
            if word & bits != bits {
                return None;
            }
            let tables = Tables::of(self)?;
            let bucket = bloom.add(blooms as usize).cast::<u32>();
            let chain = bucket.add(buckets as usize);
            let mut symbol = *bucket.add((wanted % buckets) as usize);
            while symbol >= first && symbol != 0 {
                let hash = *chain.add((symbol - first) as usize);
                if hash | 1 == wanted | 1
                    && let Some(found) = tables.is(symbol as usize, name)
                {
                    return Some(found);
                }
                if hash & 1 == 1 {
                    break;
                }
                symbol += 1;
            }
        }
        None
    }

    /// # Safety
    ///
    /// As for `find`, and this is its DT_HASH.
    unsafe fn by_hash(&self, table: *const u32, name: &[u8]) -> Option<usize> {
        // SAFETY: by the contract; the second word of the table is the number of symbols, and these are they.
        unsafe {
            let tables = Tables::of(self)?;
            let count = *table.add(1) as usize;
            (1..count).find_map(|symbol| tables.is(symbol, name))
        }
    }
}

impl Tables {
    /// # Safety
    ///
    /// The object is loaded.
    unsafe fn of(map: &Map) -> Option<Tables> {
        // SAFETY: by the contract.
        let table = |tag| unsafe { map.table(tag) };
        Some(Tables {
            base: map.address,
            symbols: table(SYMTAB)? as *const Symbol,
            strings: table(STRTAB)? as *const c_char,
            versions: table(VERSYM).unwrap_or(0) as *const u16,
        })
    }

    /// The address of a symbol, if it is a function of this name that every program may link against.
    ///
    /// # Safety
    ///
    /// The object has a symbol of this number.
    unsafe fn is(&self, number: usize, name: &[u8]) -> Option<usize> {
        const FUNCTION: u8 = 2;
        // SAFETY: by the contract.
        let symbol = unsafe { &*self.symbols.add(number) };
        if symbol.section == 0 || symbol.value == 0 || symbol.info & 0xf != FUNCTION {
            return None;
        }
        // SAFETY: as above: each symbol has a version, where there are versions.
        if !self.versions.is_null() && unsafe { *self.versions.add(number) } & HIDDEN != 0 {
            return None;
        }
        // SAFETY: names are strings in the table of strings.
        let known = unsafe { CStr::from_ptr(self.strings.add(symbol.name as usize)) };
        (known.to_bytes() == name).then_some(self.base + symbol.value)
    }
}
