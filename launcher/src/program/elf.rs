//! Reads what the kernel reads of an ELF file before it starts it: header, program headers, loader name.
//!
//! The file is not trusted: every number in it is checked before it is used, and none decides how much is
//! read beyond the bounds below.

use std::borrow::Cow;
use std::ffi::OsString;
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

use crate::program::machine;

/// The kernel's maximum for the table of program headers, with pages of any size.
const LARGEST_TABLE: usize = 64 * 1024;
/// The kernel's maximum for the name of a loader, with its NUL: PATH_MAX.
const LONGEST_INTERPRETER: u64 = 4096;
/// The maximum that is searched of a dynamic section. Real ones have a tenth of it.
const LARGEST_DYNAMIC: u64 = 16 * 1024;

/// The kind of an ELF file, as far as its own bytes tell.
#[derive(Debug, PartialEq, Eq)]
pub enum Facts {
    /// For this machine, with a loader to start it.
    Interpreted { interpreter: PathBuf },
    /// For this machine, at a fixed address, without a loader.
    FixedAddress,
    /// For this machine, without a loader, at any address.
    AnyAddress {
        /// It is marked as a program. Without the mark, it may also be a library.
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
pub enum OtherClass {
    /// The 32-bit predecessor of this machine: i386, or 32-bit ARM.
    Bits32,
    /// 32-bit pointers on the 64-bit machine: x32, or ILP32 on arm64.
    ShortPointers,
}

/// Why an ELF file cannot be a program.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// The file ends too early.
    #[error("damaged ELF file: it ends before {0} does; build or fetch it again")]
    Truncated(&'static str),
    /// The kernel refuses the value of a field.
    #[error("damaged ELF file: {0}; build or fetch it again")]
    Field(&'static str),
    #[error("it is {0}, not a program; link it into one first")]
    NotAProgram(&'static str),
    #[error("cannot read its ELF header: {}", plain(.0))]
    Unreadable(io::Error),
}

/// The bytes of the file: its head, which is already read, and a way to read the rest.
pub struct Image<'a> {
    pub head: &'a [u8],
    pub size: u64,
    /// Reads at an offset, as pread(2) does.
    pub read_at: &'a dyn Fn(&mut [u8], u64) -> io::Result<usize>,
}

impl<'a> Image<'a> {
    /// `length` bytes at `offset`; if the file is shorter, the error names `part`. Callers bound `length`.
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
        match read_full(self.read_at, &mut bytes, offset) {
            Ok(count) if count == length => Ok(Cow::Owned(bytes)),
            Ok(_) => Err(Malformed::Truncated(part)),
            Err(error) => Err(Malformed::Unreadable(error)),
        }
    }
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_full(
    read_at: &dyn Fn(&mut [u8], u64) -> io::Result<usize>,
    bytes: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Whether a file that starts like this is an ELF file.
pub(super) fn is_elf(head: &[u8]) -> bool {
    head.starts_with(ELFMAG)
}

/// Tells what an ELF file is.
pub fn inspect(image: &Image<'_>) -> Result<Facts, Malformed> {
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

/// Reads the header. Its fifth byte tells its size.
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

/// Examines a file for this machine.
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

/// Refuses what cannot be mapped: the program would end with SIGBUS or SIGSEGV at once.
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
    // Only little-endian files get this far.
    let (words, _) = bytes.as_chunks();
    for entry in words.chunks_exact(2) {
        match u64::from_le_bytes(entry[0]) {
            DT_NULL => break,
            DT_FLAGS_1 => return Ok(u64::from_le_bytes(entry[1]) & DF_1_PIE != 0),
            _ => {}
        }
    }
    Ok(false)
}
