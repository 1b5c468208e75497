//! Extended attributes and access lists: which of them a command may set, and what a call says about them.
//!
//! `user.*` is what a file's owner keeps beside its contents, and an access list is a mode in more words:
//! both go by who owns the file. All other names belong to the system, or say what a program outside takes
//! a file for.

use crate::explain::decode::{CString as Text, Memory, array, bytes, c_string};
use crate::sys::attributes::DEFAULT_LIST;
use std::ffi::CString;

/// What is to become of an attribute.
#[derive(Debug, PartialEq, Eq)]
pub enum Extended {
    /// It gets a value.
    Set {
        /// Its name.
        name: CString,
        /// Its value.
        value: Vec<u8>,
        /// XATTR_CREATE or XATTR_REPLACE.
        flags: i32,
    },
    /// It is taken away.
    Removed(CString),
}

/// Access lists: that of a file, and the one for what is made in a directory.
const LISTS: [&[u8]; 2] = [b"system.posix_acl_access", DEFAULT_LIST.to_bytes()];
const FREE: &[u8] = b"user.";
/// Where programs outside keep owners, modes and kinds of files that they show to others: set-user-ID bits
/// and devices among them. The file systems of containers, virtual machines and images, and the lists of a
/// file server.
const TRUSTED: [&[u8]; 8] = [
    b"user.overlay.",
    b"user.fuseoverlayfs.",
    b"user.containers.",
    b"user.rootlesscontainers",
    b"user.virtfs.",
    b"user.virtiofs.",
    b"user.ostreemeta",
    b"user.NTACL",
];
/// The kernel's XATTR_NAME_MAX, with the NUL, and XATTR_SIZE_MAX.
const NAME_LIMIT: usize = 256;
const VALUE_LIMIT: u64 = 65536;
/// Of `struct xattr_args`.
const ARGS_SIZE: u64 = 16;

impl Extended {
    /// Whether it is an access list that names a user or group without a number: one that was read where the user
    /// namespace does not know them. The kernel would call it invalid, and a program that only copies it would give up.
    pub fn names_nobody(&self) -> bool {
        matches!(self, Extended::Set { name, value, .. } if LISTS.contains(&name.to_bytes()) && names_nobody(value))
    }

    /// The owner's part of the mode that the file, or what is made in it, gets by an access list, if it gets one.
    pub fn mode_of_owner(&self) -> Option<u32> {
        const OWNER: [u8; 2] = 1_u16.to_le_bytes();
        let Extended::Set { name, value, .. } = self else { return None };
        let entry =
            entries(value).find(|entry| LISTS.contains(&name.to_bytes()) && entry.starts_with(&OWNER))?;
        let rights = u16::from_le_bytes(entry.get(2..4)?.try_into().ok()?);
        Some(u32::from(rights) << 6)
    }
}

/// The entries of an access list, each of kind, rights and number, all little-endian. A version is before them.
fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.get(4..).unwrap_or_default().chunks_exact(8)
}

/// What a call asks for, or the error that it meets.
pub fn read(name: &str, args: &[u64; 6], memory: &dyn Memory) -> Result<Extended, i32> {
    match name {
        "setxattr" | "lsetxattr" | "fsetxattr" => {
            set(memory, args[1], Value { address: args[2], size: args[3], flags: args[4] as u32 })
        }
        "setxattrat" => {
            check_flags(args[2])?;
            set(memory, args[3], value_at(memory, args[4], args[5])?)
        }
        "removexattr" | "lremovexattr" | "fremovexattr" => key(memory, args[1]).map(Extended::Removed),
        "removexattrat" => {
            check_flags(args[2])?;
            key(memory, args[3]).map(Extended::Removed)
        }
        _ => Err(libc::ENOSYS),
    }
}

struct Value {
    address: u64,
    size: u64,
    flags: u32,
}

fn set(memory: &dyn Memory, name: u64, value: Value) -> Result<Extended, i32> {
    let flags = value.flags as i32;
    if flags & !(libc::XATTR_CREATE | libc::XATTR_REPLACE) != 0 {
        return Err(libc::EINVAL);
    }
    let name = key(memory, name)?;
    if value.size > VALUE_LIMIT {
        return Err(libc::E2BIG);
    }
    let value = bytes(memory, value.address, value.size as usize).ok_or(libc::EFAULT)?;
    Ok(Extended::Set { name, value, flags })
}

/// Whether an access list names a user or group without a number.
fn names_nobody(list: &[u8]) -> bool {
    const NAMED: [[u8; 2]; 2] = [2_u16.to_le_bytes(), 8_u16.to_le_bytes()];
    entries(list).any(|entry| NAMED.iter().any(|kind| entry.starts_with(kind)) && entry.ends_with(&[0xff; 4]))
}

fn check_flags(flags: u64) -> Result<(), i32> {
    let known = (libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH) as u32;
    // The kernel takes them as an unsigned int.
    if flags as u32 & !known == 0 { Ok(()) } else { Err(libc::EINVAL) }
}

/// `struct xattr_args`: where the value is, how long, and flags. A larger one means something that nobody
/// here knows.
fn value_at(memory: &dyn Memory, address: u64, size: u64) -> Result<Value, i32> {
    if size < ARGS_SIZE {
        return Err(libc::EINVAL);
    }
    if size > ARGS_SIZE {
        return Err(libc::E2BIG);
    }
    let value: [u8; 8] = array(memory, address).ok_or(libc::EFAULT)?;
    let after =
        |offset: u64| address.checked_add(offset).and_then(|at| array(memory, at)).ok_or(libc::EFAULT);
    let (size, flags): ([u8; 4], [u8; 4]) = (after(8)?, after(12)?);
    Ok(Value {
        address: u64::from_ne_bytes(value),
        size: u32::from_ne_bytes(size).into(),
        flags: u32::from_ne_bytes(flags),
    })
}

/// The name of an attribute that the command may change.
fn key(memory: &dyn Memory, address: u64) -> Result<CString, i32> {
    let name = match c_string(memory, address, NAME_LIMIT) {
        Text::Whole(name) if !name.is_empty() => name,
        Text::Whole(_) | Text::Endless(_) => return Err(libc::ERANGE),
        Text::Unreadable => return Err(libc::EFAULT),
    };
    if !may_change(&name) {
        return Err(libc::EOPNOTSUPP);
    }
    CString::new(name).map_err(|_| libc::EINVAL)
}

/// Whether an attribute is the command's to change, where it may write the file.
fn may_change(name: &[u8]) -> bool {
    LISTS.contains(&name)
        || (name.starts_with(FREE) && !TRUSTED.iter().any(|trusted| name.starts_with(trusted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory from this address on.
    struct Bytes(Vec<u8>);
    const START: u64 = 4096;

    impl Memory for Bytes {
        fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
            let from = address.checked_sub(START).map_or(usize::MAX, |from| from as usize);
            let rest = self.0.get(from..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            count
        }
    }

    fn memory(parts: &[&[u8]]) -> (Bytes, Vec<u64>) {
        let starts = parts.iter().scan(START, |at, part| {
            let start = *at;
            *at += part.len() as u64;
            Some(start)
        });
        let starts = starts.collect();
        (Bytes(parts.concat()), starts)
    }

    #[test]
    fn only_the_owners_names_are_changed() {
        for free in [
            "user.x",
            "user.mime_type",
            "user.overlays",
            "system.posix_acl_access",
            "system.posix_acl_default",
        ] {
            assert!(may_change(free.as_bytes()), "{free}");
        }
        for other in [
            "security.capability",
            "security.selinux",
            "security.ima",
            "trusted.overlay.opaque",
            "system.nfs4_acl",
            "system.posix_acl_access.x",
            "user",
            "USER.x",
            "x.user.y",
            "user.overlay.redirect",
            "user.virtfs.mode",
            "user.containers.override_stat",
            "user.ostreemeta",
            "",
        ] {
            assert!(!may_change(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn a_call_is_read_as_the_kernel_reads_it() {
        let (memory, at) = memory(&[b"user.x\0", b"value", b"trusted.x\0", &[b'n'; 300]]);
        let set = |name: usize, size: u64, flags: u64| {
            read("setxattr", &[0, at[name], at[1], size, flags, 0], &memory)
        };
        let done = Extended::Set { name: c"user.x".into(), value: b"value".to_vec(), flags: 1 };
        assert_eq!(set(0, 5, 1 | 1 << 32), Ok(done));
        assert_eq!(set(0, 0, 0), Ok(Extended::Set { name: c"user.x".into(), value: vec![], flags: 0 }));
        assert_eq!(set(0, 5, 4), Err(libc::EINVAL));
        assert_eq!(set(0, 65537, 0), Err(libc::E2BIG));
        assert_eq!(set(0, 1 << 40 | 5, 0), Err(libc::E2BIG));
        assert_eq!(set(0, 65536, 0), Err(libc::EFAULT));
        assert_eq!(set(2, 5, 0), Err(libc::EOPNOTSUPP));
        assert_eq!(set(3, 5, 0), Err(libc::ERANGE));
        assert_eq!(read("setxattr", &[0, 1, at[1], 5, 0, 0], &memory), Err(libc::EFAULT));
        assert_eq!(
            read("fremovexattr", &[0, at[0], 0, 0, 0, 0], &memory),
            Ok(Extended::Removed(c"user.x".into()))
        );
        assert_eq!(read("removexattrat", &[0, 0, 0x400, at[0], 0, 0], &memory), Err(libc::EINVAL));
    }

    #[test]
    fn access_lists_of_users_without_numbers_are_not_set() {
        let list = |kind: u16, id: u32| {
            let entry = |kind: u16, id: u32| [&kind.to_le_bytes()[..], &[4, 0], &id.to_le_bytes()].concat();
            [&2_u32.to_le_bytes()[..], &entry(1, u32::MAX), &entry(kind, id)].concat()
        };
        for (kind, id, nobody) in
            [(2, 1, false), (2, u32::MAX, true), (8, u32::MAX, true), (16, u32::MAX, false)]
        {
            assert_eq!(names_nobody(&list(kind, id)), nobody, "{kind} {id}");
        }
        assert!(!names_nobody(b"") && !names_nobody(&[0xff; 11]));
    }

    #[test]
    fn an_access_list_gives_the_owner_a_mode() {
        let mode = |name: &std::ffi::CStr, list: &[u8]| {
            Extended::Set { name: name.into(), value: list.to_vec(), flags: 0 }.mode_of_owner()
        };
        let entry = |kind: u8, rights: u8| [kind, 0, rights, 0, 0xff, 0xff, 0xff, 0xff];
        let list =
            |rights: u8| [&[2, 0, 0, 0][..], &entry(4, 7), &entry(1, rights), &entry(0x20, 7)].concat();
        assert_eq!(mode(c"system.posix_acl_access", &list(5)), Some(0o500));
        assert_eq!(mode(c"system.posix_acl_access", &list(0)), Some(0));
        assert_eq!(mode(c"system.posix_acl_default", &list(0)), Some(0));
        assert_eq!(mode(c"user.x", &list(0)), None);
        assert_eq!(mode(c"system.posix_acl_access", &list(0)[..12]), None);
        assert_eq!(Extended::Removed(c"system.posix_acl_access".into()).mode_of_owner(), None);
    }

    #[test]
    fn the_newest_call_has_a_structure() {
        let value = START + 7 + 16;
        let words = [&value.to_ne_bytes()[..], &5u32.to_ne_bytes(), &2u32.to_ne_bytes()].concat();
        let (memory, at) = memory(&[b"user.x\0", &words, b"value"]);
        let call = |flags: u64, place: u64, size: u64| {
            read("setxattrat", &[0, 0, flags, at[0], place, size], &memory)
        };
        let done = Extended::Set { name: c"user.x".into(), value: b"value".to_vec(), flags: 2 };
        assert_eq!(call(0x1100, at[1], 16), Ok(done));
        assert_eq!(call(0, at[1], 15), Err(libc::EINVAL));
        assert_eq!(call(0, at[1], 24), Err(libc::E2BIG));
        assert_eq!(call(2, at[1], 16), Err(libc::EINVAL));
        assert_eq!(call(0, u64::MAX, 16), Err(libc::EFAULT));
    }
}
