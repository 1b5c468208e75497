//! One call's arguments, each by its kind.

use super::flags;
use super::memory::{self, CString, PATH_MAX};
use super::path::{self, How};
use super::sockaddr;
use super::table::{Kind, PathRule};
use super::{Decoded, Memory, PathArgument, TEXT_LIMIT, escape};

/// Longest path as text, and longest of several.
const PATH_TEXT: usize = 240;
const PATHS_TEXT: usize = 130;
/// Longest string that is no path: as read, and as text.
const STRING_LIMIT: usize = 256;
const STRING_TEXT: usize = 64;
/// Sizes of structures that grew: the first version, what the kernel takes at most, and what of it is looked at.
const HOW_SIZE: u64 = 24;
const CLONE_ARGS_SIZE: u64 = 64;
const STRUCT_LIMIT: u64 = PATH_MAX as u64;
const CLONE_ARGS_USED: usize = 40;

/// Shows the arguments of a call whose kinds are known.
pub fn decode(kinds: &'static [Kind], args: &[u64; 6], memory: &dyn Memory) -> Decoded {
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
    kinds: &'static [Kind],
    args: &'a [u64; 6],
    memory: &'a dyn Memory,
    /// Read once, so that what is shown and what is judged are the same.
    how: Option<How>,
    out: Decoded,
}

impl Decoder<'_> {
    /// The text of one argument; `None` leaves it out.
    fn argument(&mut self, index: usize, kind: Kind, value: u64) -> Option<String> {
        Some(match kind {
            Kind::Skip | Kind::DirFd => return None,
            Kind::Hex => flags::hex(value),
            Kind::Int | Kind::Fd => flags::int(value),
            Kind::Size => size(value),
            Kind::Pointer => pointer(value),
            Kind::Path(rule) => self.path(index, rule, value),
            Kind::Text => self.string(value),
            Kind::Open => flags::open(value),
            Kind::Mode => flags::mode(value),
            Kind::OpenMode(open) => path::makes_file(self.arg(open)).then(|| flags::mode(value))?,
            Kind::FileMode => flags::file_mode(value),
            Kind::Device(mode) => device(self.arg(mode), value)?,
            Kind::OpenHow(_) => self.how.map_or_else(|| pointer(value), how),
            Kind::Choice(names) => flags::choice(names, value),
            Kind::WideChoice(names) => flags::wide_choice(names, value),
            Kind::Flags(set) => flags::flags(set, value)?,
            Kind::SocketType => flags::socket_type(value),
            Kind::Protocol => flags::protocol(self.arg(0), value),
            Kind::SocketAddress(length) => self.socket_address(value, self.arg(length) as u32),
            Kind::MessageHeader => self.message_header(value),
            Kind::Signal => flags::signal(value),
            Kind::Map => flags::map(value),
            Kind::Clone => flags::clone(value),
            Kind::Clone3(size) => self.clone3(value, self.arg(size)),
        })
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
        (matches!(self.kinds.get(before), Some(Kind::DirFd)) && fd != libc::AT_FDCWD).then_some(fd)
    }

    fn path(&mut self, index: usize, rule: PathRule, address: u64) -> String {
        let dirfd = self.dirfd(index);
        let (text, relative) = match self.c_string(address, PATH_MAX) {
            None => (pointer(address), true),
            Some(CString::Whole(path)) => {
                let shown = (self.quoted_path(&path), !path.starts_with(b"/"));
                self.add_path(dirfd, path, rule);
                shown
            }
            Some(CString::Endless(path)) => (self.quoted_path(&path), !path.starts_with(b"/")),
            Some(CString::Unreadable) => (self.unreadable(address), true),
        };
        match dirfd {
            Some(fd) if relative => format!("{fd}, {text}"),
            _ => text,
        }
    }

    fn add_path(&mut self, dirfd: Option<i32>, path: Vec<u8>, rule: PathRule) {
        if let Some(used) = path::used(&rule, self.args, self.how) {
            let (access, follow, empty_path_ok) = (used.access, used.follow, used.empty);
            self.out.paths.push(PathArgument { dirfd, path, access, follow, empty_path_ok });
        }
    }

    fn quoted_path(&self, path: &[u8]) -> String {
        let strings = self.kinds.iter().filter(|kind| matches!(kind, Kind::Path(_) | Kind::Text)).count();
        format!("\"{}\"", escape(path, if strings > 1 { PATHS_TEXT } else { PATH_TEXT }))
    }

    /// `None` for a null pointer, which some calls take for "no path".
    fn c_string(&self, address: u64, limit: usize) -> Option<CString> {
        (address != 0).then(|| memory::c_string(self.memory, address, limit))
    }

    fn string(&mut self, address: u64) -> String {
        match self.c_string(address, STRING_LIMIT) {
            None => pointer(address),
            Some(CString::Whole(string) | CString::Endless(string)) => {
                format!("\"{}\"", escape(&string, STRING_TEXT))
            }
            Some(CString::Unreadable) => self.unreadable(address),
        }
    }

    fn read_how(&mut self) -> Option<How> {
        let (index, size) = self.kinds.iter().enumerate().find_map(|(index, kind)| match kind {
            Kind::OpenHow(size) => Some((index, *size)),
            _ => None,
        })?;
        if !(HOW_SIZE..=STRUCT_LIMIT).contains(&self.arg(size)) {
            return None;
        }
        let bytes: Option<[u8; HOW_SIZE as usize]> = memory::array(self.memory, self.arg(index));
        self.out.unreadable |= bytes.is_none();
        let bytes = bytes?;
        Some(How { flags: word(&bytes, 0)?, mode: word(&bytes, 8)?, resolve: word(&bytes, 16)? })
    }

    fn clone3(&mut self, address: u64, size: u64) -> String {
        if !(CLONE_ARGS_SIZE..=STRUCT_LIMIT).contains(&size) {
            return format!("{}, {}", pointer(address), self::size(size));
        }
        let bytes: Option<[u8; CLONE_ARGS_USED]> = memory::array(self.memory, address);
        let Some(bytes) = bytes else { return self.unreadable(address) };
        let (flags, signal) = (word(&bytes, 0).unwrap_or_default(), word(&bytes, 32).unwrap_or_default());
        let mut text = flags::flags(&super::names::CLONE3, flags).unwrap_or_default();
        if signal != 0 {
            text.push_str(", ");
            text.push_str(&flags::signal(signal));
        }
        text
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
            return format!("{} of {length} bytes", pointer(address));
        };
        self.out.address = Some(parsed);
        text
    }

    fn message_header(&mut self, address: u64) -> String {
        let header: Option<[u8; 16]> = memory::array(self.memory, address);
        let Some(header) = header else { return self.unreadable(address) };
        let name = word(&header, 0).unwrap_or_default();
        let length = word(&header, 8).unwrap_or_default().to_ne_bytes();
        let length = u32::from_ne_bytes([length[0], length[1], length[2], length[3]]);
        // Here the kernel shortens a length that is too big, and takes no name for a length of 0.
        let length = if length as i32 > 0 { length.min(sockaddr::LIMIT as u32) } else { length };
        self.socket_address(if length == 0 { 0 } else { name }, length)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn pointer(value: u64) -> String {
    if value == 0 { "NULL".into() } else { flags::hex(value) }
}

/// Sizes that no memory or file has are rather numbers with a sign or garbage.
fn size(value: u64) -> String {
    if value >> 48 == 0 { value.to_string() } else { flags::hex(value) }
}

fn how(how: How) -> String {
    let mut text = flags::wide_open(how.flags);
    if path::makes_file(how.flags) {
        text = format!("{text}, {}", flags::mode(how.mode));
    }
    match flags::flags(&super::names::RESOLVE, how.resolve) {
        Some(resolve) => format!("{text}, {resolve}"),
        None => text,
    }
}

fn device(mode: u64, device: u64) -> Option<String> {
    let kind = mode as u32 & libc::S_IFMT;
    let device = u64::from(device as u32);
    (kind == libc::S_IFCHR || kind == libc::S_IFBLK)
        .then(|| format!("{}:{}", libc::major(device), libc::minor(device)))
}

/// The parts are bounded each; together they may still be too long.
fn clamp(mut text: String) -> String {
    if text.len() > TEXT_LIMIT {
        let room = TEXT_LIMIT - '…'.len_utf8();
        let end = (0..=room).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}
