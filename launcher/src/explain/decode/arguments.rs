//! The arguments of one call as text, each by its kind.

use crate::explain::decode::memory::{self, CString, PATH_MAX};
use crate::explain::decode::path::{self, OpenHow};
use crate::explain::decode::table::{Argument, PathRule};
use crate::explain::decode::{Decoded, Memory, TEXT_LIMIT, flags, names, sockaddr};
use crate::text::{byte_count, escape};

/// Longest path as text, alone and beside another string, in bytes.
const PATH_TEXT: usize = 240;
const PATHS_TEXT: usize = 130;
/// Longest string that is no path: as read, and as text.
const STRING_LIMIT: usize = 256;
const STRING_TEXT: usize = 64;
/// Structures that grew: their first size, the most that the kernel takes, and what is looked at here.
const HOW_SIZE: u64 = 24;
const CLONE_ARGS_SIZE: u64 = 64;
const STRUCT_LIMIT: u64 = PATH_MAX as u64;
const CLONE_ARGS_USED: usize = 40;

/// Shows the arguments of a known call.
pub fn decode(kinds: &'static [Argument], args: &[u64; 6], memory: &dyn Memory) -> Decoded {
    let mut decoder = Decoder { kinds, args, memory, how: None, out: Decoded::default() };
    decoder.how = decoder.read_how();
    let mut texts = Vec::new();
    for (index, (kind, &value)) in kinds.iter().zip(args).enumerate() {
        texts.extend(decoder.argument(index, *kind, value));
    }
    decoder.out.text = clamp(texts.join(", "));
    decoder.out
}

struct Decoder<'a> {
    kinds: &'static [Argument],
    args: &'a [u64; 6],
    memory: &'a dyn Memory,
    /// Read once, so that what is shown and what is judged are the same.
    how: Option<OpenHow>,
    out: Decoded,
}

impl Decoder<'_> {
    /// The text of one argument; `None` leaves it out.
    fn argument(&mut self, index: usize, kind: Argument, value: u64) -> Option<String> {
        Some(match kind {
            Argument::Skip | Argument::DirFd => return None,
            Argument::Hex => flags::hex(value),
            Argument::Int => flags::int(value),
            Argument::Process => self.process(value),
            Argument::ProcessIf(other, is) if self.arg(other) == is => self.process(value),
            Argument::ProcessIf(..) => flags::int(value),
            Argument::Size => size(value),
            Argument::Pointer => pointer(value),
            Argument::Path(rule) => self.path(index, rule, value),
            Argument::Text => self.string(value),
            Argument::Mode => flags::mode(value),
            Argument::OpenMode(open) => path::makes_file(self.arg(open)).then(|| flags::mode(value))?,
            Argument::FileMode => flags::file_mode(value),
            Argument::Device(mode) => device(self.arg(mode), value)?,
            Argument::OpenHow(_) => self.how.map_or_else(|| pointer(value), how),
            Argument::Choice(names) => flags::choice(names, value),
            Argument::Flags(set) => flags::flags(set, value)?,
            Argument::Protocol => flags::protocol(self.arg(0), value),
            Argument::SocketAddress(length) => self.socket_address(value, self.arg(length) as u32),
            Argument::MessageHeader => self.message_header(value),
            Argument::Signal => flags::signal(value),
            Argument::Clone => flags::clone(value),
            Argument::Clone3(size) => self.clone3(value, self.arg(size)),
        })
    }

    fn process(&mut self, value: u64) -> String {
        self.out.process = Some(value as i32).filter(|process| *process > 0);
        flags::int(value)
    }

    fn arg(&self, index: usize) -> u64 {
        self.args.get(index).copied().unwrap_or_default()
    }

    /// Notes that memory could not be read, and shows where.
    fn unreadable(&mut self, address: u64) -> String {
        self.out.unreadable = true;
        pointer(address)
    }

    fn dirfd(&self, index: usize) -> Option<i32> {
        let before = index.checked_sub(1)?;
        let fd = self.arg(before) as i32;
        (matches!(self.kinds.get(before), Some(Argument::DirFd)) && fd != libc::AT_FDCWD).then_some(fd)
    }

    fn path(&mut self, index: usize, rule: PathRule, address: u64) -> String {
        let dirfd = self.dirfd(index);
        let (text, relative) = match self.c_string(address, PATH_MAX) {
            None => (pointer(address), true),
            Some(CString::Unreadable) => (self.unreadable(address), true),
            Some(CString::Endless(path)) => (self.quoted_path(&path), !path.starts_with(b"/")),
            Some(CString::Whole(path)) => {
                let shown = (self.quoted_path(&path), !path.starts_with(b"/"));
                self.out.paths.extend(path::argument(dirfd, path, &rule, self.args, self.how));
                shown
            }
        };
        match dirfd {
            Some(fd) if relative => format!("{fd}, {text}"),
            _ => text,
        }
    }

    fn quoted_path(&self, path: &[u8]) -> String {
        let strings = self.kinds.iter().filter(|kind| matches!(kind, Argument::Path(_) | Argument::Text));
        quoted(path, if strings.count() > 1 { PATHS_TEXT } else { PATH_TEXT })
    }

    /// `None` for a null pointer, which some calls take for "no path".
    fn c_string(&self, address: u64, limit: usize) -> Option<CString> {
        (address != 0).then(|| memory::c_string(self.memory, address, limit))
    }

    fn string(&mut self, address: u64) -> String {
        match self.c_string(address, STRING_LIMIT) {
            None => pointer(address),
            Some(CString::Whole(string) | CString::Endless(string)) => quoted(&string, STRING_TEXT),
            Some(CString::Unreadable) => self.unreadable(address),
        }
    }

    fn read_how(&mut self) -> Option<OpenHow> {
        let (index, size) = self.kinds.iter().enumerate().find_map(|(index, kind)| match kind {
            Argument::OpenHow(size) => Some((index, *size)),
            _ => None,
        })?;
        if !(HOW_SIZE..=STRUCT_LIMIT).contains(&self.arg(size)) {
            return None;
        }
        let bytes: Option<[u8; HOW_SIZE as usize]> = memory::array(self.memory, self.arg(index));
        self.out.unreadable |= bytes.is_none();
        let bytes = bytes?;
        Some(OpenHow { flags: word(&bytes, 0), mode: word(&bytes, 8), resolve: word(&bytes, 16) })
    }

    fn clone3(&mut self, address: u64, size: u64) -> String {
        if !(CLONE_ARGS_SIZE..=STRUCT_LIMIT).contains(&size) {
            return format!("{}, {}", pointer(address), self::size(size));
        }
        let bytes: Option<[u8; CLONE_ARGS_USED]> = memory::array(self.memory, address);
        let Some(bytes) = bytes else { return self.unreadable(address) };
        let flags = flags::flags(&names::CLONE3, word(&bytes, 0)).unwrap_or_default();
        match word(&bytes, 32) {
            0 => flags,
            signal => format!("{flags}, {}", flags::signal(signal)),
        }
    }

    fn socket_address(&mut self, address: u64, length: u32) -> String {
        if address == 0 {
            return pointer(address);
        }
        // The kernel takes neither a negative length nor one above its own structure.
        let Some(length) = usize::try_from(length).ok().filter(|&length| length <= sockaddr::LIMIT) else {
            return format!("{} of {} bytes", pointer(address), length as i32);
        };
        let Some(bytes) = memory::bytes(self.memory, address, length) else {
            return self.unreadable(address);
        };
        let Some((parsed, text)) = sockaddr::parse(&bytes) else {
            return format!("{} of {}", pointer(address), byte_count(length as u64));
        };
        self.out.address = Some(parsed);
        text
    }

    fn message_header(&mut self, address: u64) -> String {
        let header: Option<[u8; 16]> = memory::array(self.memory, address);
        let Some(header) = header else { return self.unreadable(address) };
        // The length is a C `int`, of which the kernel cuts what is too much. 0 means no address.
        let [a, b, c, d, ..] = word(&header, 8).to_ne_bytes();
        match u32::from_ne_bytes([a, b, c, d]) {
            0 => pointer(0),
            length if length as i32 > 0 => {
                self.socket_address(word(&header, 0), length.min(sockaddr::LIMIT as u32))
            }
            length => self.socket_address(word(&header, 0), length),
        }
    }
}

/// Eight of the bytes as a number; 0 for bytes that are not there.
fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_ne_bytes)
}

fn pointer(value: u64) -> String {
    if value == 0 { "NULL".into() } else { flags::hex(value) }
}

fn quoted(bytes: &[u8], limit: usize) -> String {
    format!("\"{}\"", escape(bytes, limit))
}

/// A size that no memory or file has is shown as a bare number: it has a sign, or is garbage.
fn size(value: u64) -> String {
    if value >> 48 == 0 { value.to_string() } else { flags::hex(value) }
}

fn how(how: OpenHow) -> String {
    let flags = flags::list(&names::OPEN, how.flags);
    let mode = path::makes_file(how.flags).then(|| flags::mode(how.mode));
    let resolve = flags::flags(&names::RESOLVE, how.resolve);
    [flags, mode, resolve].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn device(mode: u64, device: u64) -> Option<String> {
    let kind = mode as u32 & libc::S_IFMT;
    let device = u64::from(device as u32);
    (kind == libc::S_IFCHR || kind == libc::S_IFBLK)
        .then(|| format!("{}:{}", libc::major(device), libc::minor(device)))
}

/// Each part is bounded; together they may still be too long.
fn clamp(mut text: String) -> String {
    if text.len() > TEXT_LIMIT {
        let room = TEXT_LIMIT - '…'.len_utf8();
        text.truncate((0..=room).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default());
        text.push('…');
    }
    text
}
