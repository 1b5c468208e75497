//! Reads as much of an ELF file as the kernel does before it starts one: header, program headers, loader name.
//!
//! The file is whatever somebody wants us to look at, so every number in it is checked before it is used, and no
//! number in it decides how much is read beyond the bounds below.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::sys::plain;
use goblin::container::{Container, Ctx};
use goblin::elf::Elf;
use goblin::elf::dynamic::{DF_1_PIE, DT_FLAGS_1, DT_NULL};
use goblin::elf::header::{
    EI_CLASS, EI_DATA, ELFCLASS32, ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, ELFMAG, ET_DYN, ET_EXEC, Header,
    header32, header64,
};
use goblin::elf::program_header::{PT_DYNAMIC, PT_INTERP, PT_LOAD, ProgramHeader, program_header64};

use super::machine;

/// The kernel takes no larger table of program headers, on any page size.
const LARGEST_TABLE: usize = 64 * 1024;
/// PATH_MAX: the kernel takes no longer name of a loader, its NUL included.
const LONGEST_INTERPRETER: u64 = 4096;
/// How much of the dynamic section is searched for one flag; real ones are a tenth of it.
const LARGEST_DYNAMIC: u64 = 16 * 1024;
/// Bytes of one entry of a 64-bit dynamic section.
const DYNAMIC_ENTRY: usize = 16;

/// What kind of ELF file it is, as far as its own bytes tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Facts {
    /// For this machine, with a loader to start it.
    Interpreted { interpreter: PathBuf },
    /// For this machine, at a fixed address, without a loader.
    FixedAddress,
    /// For this machine, without a loader, at any address.
    AnyAddress {
        /// It is marked as a program; without the mark, it may as well be a library.
        marked_program: bool,
    },
    /// For this machine in a mode with another pointer size.
    OtherClass(OtherClass),
    /// For another machine.
    OtherArchitecture { machine: String },
}

/// Programs for another pointer size than this one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OtherClass {
    /// The 32-bit predecessor of this machine: i386, or 32-bit ARM.
    Bits32,
    /// 32-bit pointers on the 64-bit machine: x32, or ILP32 on arm64.
    ShortPointers,
}

/// Why an ELF file cannot be a program.
#[derive(Debug)]
#[non_exhaustive]
pub enum Malformed {
    /// It ends before this part of it does.
    Truncated(&'static str),
    /// A field has a value that the kernel refuses.
    Field(&'static str),
    /// A file of this type is no program.
    NotAProgram(&'static str),
    /// It cannot be read.
    Unreadable(io::Error),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(part) => {
                write!(f, "damaged ELF file: it ends before {part} does; build or fetch it again")
            }
            Self::Field(what) => write!(f, "damaged ELF file: {what}; build or fetch it again"),
            Self::NotAProgram(what) => write!(f, "it is {what}, not a program; link it into one first"),
            Self::Unreadable(error) => write!(f, "cannot read its ELF header: {}", plain(error)),
        }
    }
}

/// The bytes of the file: its beginning, already read, and a way to get at the rest.
pub(super) struct Image<'a> {
    pub head: &'a [u8],
    pub size: u64,
    /// Reads at an offset, as pread(2) does.
    pub read_at: &'a dyn Fn(&mut [u8], u64) -> io::Result<usize>,
}

impl<'a> Image<'a> {
    /// `length` bytes at `offset`, or the complaint that `part` is cut short. Callers bound `length`.
    fn range(&self, offset: u64, length: usize, part: &'static str) -> Result<Cow<'a, [u8]>, Malformed> {
        let end = offset.checked_add(length as u64).ok_or(Malformed::Truncated(part))?;
        if end > self.size {
            return Err(Malformed::Truncated(part));
        }
        let in_head = usize::try_from(offset).ok().and_then(|at| self.head.get(at..at.checked_add(length)?));
        if let Some(bytes) = in_head {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut bytes = vec![0; length];
        self.fill(&mut bytes, offset, part)?;
        Ok(Cow::Owned(bytes))
    }

    fn fill(&self, bytes: &mut [u8], offset: u64, part: &'static str) -> Result<(), Malformed> {
        let mut done = 0;
        while done < bytes.len() {
            match (self.read_at)(&mut bytes[done..], offset + done as u64) {
                Ok(0) => return Err(Malformed::Truncated(part)),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Malformed::Unreadable(error)),
            }
        }
        Ok(())
    }
}

/// Whether a file that starts like this is an ELF file.
pub(super) fn is_elf(head: &[u8]) -> bool {
    head.starts_with(ELFMAG)
}

/// Tells what an ELF file is.
pub(super) fn inspect(image: &Image<'_>) -> Result<Facts, Malformed> {
    let header = header(image)?;
    check_type(header.e_type)?;
    let is_64_bit = header.e_ident[EI_CLASS] == ELFCLASS64;
    let is_little_endian = header.e_ident[EI_DATA] == ELFDATA2LSB;
    if is_little_endian && machine::is_short_predecessor(header.e_machine) {
        return Ok(Facts::OtherClass(OtherClass::Bits32));
    }
    if header.e_machine != machine::NATIVE || !is_little_endian {
        return Ok(Facts::OtherArchitecture { machine: machine::name(header.e_machine, is_little_endian) });
    }
    if !is_64_bit {
        return Ok(Facts::OtherClass(OtherClass::ShortPointers));
    }
    native(image, &header)
}

/// Reads the header, whose size depends on its own fifth byte.
fn header(image: &Image<'_>) -> Result<Header, Malformed> {
    const PART: &str = "its header";
    let ident = |index: usize| image.head.get(index).copied().ok_or(Malformed::Truncated(PART));
    let size = match ident(EI_CLASS)? {
        ELFCLASS32 => header32::SIZEOF_EHDR,
        ELFCLASS64 => header64::SIZEOF_EHDR,
        _ => return Err(Malformed::Field("its class is neither 32 nor 64 bits")),
    };
    if !matches!(ident(EI_DATA)?, ELFDATA2LSB | ELFDATA2MSB) {
        return Err(Malformed::Field("its byte order is neither little nor big endian"));
    }
    let bytes = image.range(0, size, PART)?;
    Elf::parse_header(&bytes).map_err(|_| Malformed::Truncated(PART))
}

fn check_type(e_type: u16) -> Result<(), Malformed> {
    use goblin::elf::header::{ET_CORE, ET_REL};
    match e_type {
        ET_EXEC | ET_DYN => Ok(()),
        ET_REL => Err(Malformed::NotAProgram("an object file")),
        ET_CORE => Err(Malformed::NotAProgram("a core dump")),
        _ => Err(Malformed::NotAProgram("an ELF file of unknown type")),
    }
}

/// Looks into a file of this machine's own kind.
fn native(image: &Image<'_>, header: &Header) -> Result<Facts, Malformed> {
    let segments = segments(image, header)?;
    check_loadable(image, &segments)?;
    // The kernel takes the first and does not look for more.
    if let Some(segment) = segments.iter().find(|segment| segment.p_type == PT_INTERP) {
        return Ok(Facts::Interpreted { interpreter: interpreter(image, segment)? });
    }
    if header.e_type == ET_EXEC {
        return Ok(Facts::FixedAddress);
    }
    let dynamic = segments.iter().find(|segment| segment.p_type == PT_DYNAMIC);
    let marked_program = dynamic.map(|segment| has_program_mark(image, segment)).transpose()?;
    Ok(Facts::AnyAddress { marked_program: marked_program.unwrap_or(false) })
}

/// The table of program headers.
fn segments(image: &Image<'_>, header: &Header) -> Result<Vec<ProgramHeader>, Malformed> {
    const PART: &str = "its table of segments";
    if usize::from(header.e_phentsize) != program_header64::SIZEOF_PHDR {
        return Err(Malformed::Field("its table of segments has entries of the wrong size"));
    }
    let count = usize::from(header.e_phnum);
    let length = count * program_header64::SIZEOF_PHDR;
    if count == 0 {
        return Err(Malformed::Field("it has no segments"));
    }
    if length > LARGEST_TABLE {
        return Err(Malformed::Field("it has more segments than the kernel takes"));
    }
    let bytes = image.range(header.e_phoff, length, PART)?;
    let layout =
        Ctx { container: Container::Big, le: header.endianness().map_err(|_| Malformed::Truncated(PART))? };
    ProgramHeader::parse(&bytes, 0, count, layout).map_err(|_| Malformed::Truncated(PART))
}

/// Says what cannot be mapped: it would end the program with SIGBUS or SIGSEGV at its first step.
fn check_loadable(image: &Image<'_>, segments: &[ProgramHeader]) -> Result<(), Malformed> {
    let mut any = false;
    for segment in segments.iter().filter(|segment| segment.p_type == PT_LOAD) {
        any = true;
        if segment.p_filesz > segment.p_memsz {
            return Err(Malformed::Field("a segment is larger in the file than in memory"));
        }
        let end = segment.p_offset.checked_add(segment.p_filesz);
        if end.is_none_or(|end| end > image.size) {
            return Err(Malformed::Truncated("one of its segments"));
        }
    }
    if any { Ok(()) } else { Err(Malformed::Field("it has no segment to load")) }
}

/// The loader's path, under the kernel's conditions: at most PATH_MAX bytes, the last of them a NUL.
fn interpreter(image: &Image<'_>, segment: &ProgramHeader) -> Result<PathBuf, Malformed> {
    if !(2..=LONGEST_INTERPRETER).contains(&segment.p_filesz) {
        return Err(Malformed::Field("the name of its loader is empty or too long"));
    }
    let bytes = image.range(segment.p_offset, segment.p_filesz as usize, "the name of its loader")?;
    if bytes.last() != Some(&0) {
        return Err(Malformed::Field("the name of its loader does not end"));
    }
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    if name.is_empty() {
        return Err(Malformed::Field("the name of its loader is empty"));
    }
    Ok(PathBuf::from(OsString::from_vec(name.to_vec())))
}

/// Whether the dynamic section calls the file a position-independent program (a library has no such mark).
fn has_program_mark(image: &Image<'_>, segment: &ProgramHeader) -> Result<bool, Malformed> {
    let length = segment.p_filesz.min(LARGEST_DYNAMIC) as usize;
    let bytes = image.range(segment.p_offset, length, "its dynamic section")?;
    for entry in bytes.chunks_exact(DYNAMIC_ENTRY) {
        let (tag, value) = entry.split_at(DYNAMIC_ENTRY / 2);
        match number(tag) {
            DT_NULL => break,
            DT_FLAGS_1 => return Ok(number(value) & DF_1_PIE != 0),
            _ => {}
        }
    }
    Ok(false)
}

/// A little-endian number; only such files get this far.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| (value << 8) | u64::from(byte))
}
