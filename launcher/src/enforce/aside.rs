//! Puts aside what a command made where a program outside would act on it: it gets another name in its directory.

use crate::plan::namespaces::placeholder::{NOWHERE, is_link};
use crate::sys::beneath::Directory;
use crate::sys::path::says_missing;
use crate::sys::{SyscallError, file, memory};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What comes after the name of something that is put aside. git takes no file of such a name for a hook.
const ASIDE: &str = ".sbx-aside";

/// How many bytes of a name are kept in a new one, which has to have room for more. Some file systems take no more than
/// 143.
const MOST_KEPT: usize = 100;

/// What of a name is kept: no part of a character, which some file systems do not take.
fn kept(name: &OsStr) -> &[u8] {
    let name = name.as_bytes();
    let is_within_character = |at: &usize| name.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let end = (0..=MOST_KEPT).rev().find(|at| !is_within_character(at)).unwrap_or(MOST_KEPT);
    &name[..end.min(name.len())]
}

/// Whether a name is that of something that was put aside from another.
pub fn is_aside_of(name: &OsStr, original: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(kept(original));
    rest.is_some_and(|rest| rest.starts_with(ASIDE.as_bytes()))
}

/// Whether a name is that of something that was put aside.
pub fn is_aside(name: &OsStr) -> bool {
    name.as_bytes().windows(ASIDE.len()).any(|part| part == ASIDE.as_bytes())
}

/// The names for what is put aside from a name, in the order in which they are tried. After some numbers come names
/// that no command can have taken beforehand.
fn names(name: &OsStr) -> impl Iterator<Item = OsString> {
    const NUMBERED: u32 = 9;
    let numbered = (2..=NUMBERED).map(|number| format!("{ASIDE}-{number}"));
    let random = std::iter::repeat_with(|| memory::random_name(&format!("{ASIDE}-"))).map_while(Result::ok);
    let ends = [ASIDE.to_string()].into_iter().chain(numbered).chain(random);
    ends.map(move |end| OsString::from_vec([kept(name), end.as_bytes()].concat()))
}

/// Renames an entry. Returns its new name.
pub fn set_aside(directory: &Directory, name: &OsStr) -> Result<OsString, SyscallError> {
    move_aside(directory, name, directory)
}

/// Puts an entry into another directory.
fn move_aside(directory: &Directory, name: &OsStr, to: &Directory) -> Result<OsString, SyscallError> {
    let is_taken = |name: &OsString| file::identity_of(to.as_fd(), name, false).is_ok();
    let free = names(name).find(|name| !is_taken(name)).unwrap_or_default();
    directory.change(|| to.change(|| file::rename_to(directory.as_fd(), name, to.as_fd(), &free)))?;
    Ok(free)
}

/// The same of a place below a directory. Returns its new place.
pub fn set_aside_below(root: &Directory, place: &Path) -> Result<PathBuf, SyscallError> {
    let directory = root.place(place.parent().unwrap_or(Path::new("")))?;
    set_aside(&directory, place.file_name().unwrap_or_default()).map(|name| place.with_file_name(name))
}

/// Puts what is at a place below a directory into that directory, where its new name has no meaning.
pub fn set_aside_above(root: &Directory, place: &Path) -> Result<PathBuf, SyscallError> {
    let directory = root.place(place.parent().unwrap_or(Path::new("")))?;
    move_aside(&directory, place.file_name().unwrap_or_default(), root).map(PathBuf::from)
}

/// Renames an entry, and leaves a placeholder link in its place, in one step where the file system can do that. It is
/// no error if there is nothing of the name.
pub fn replace(directory: &Directory, name: &OsStr) -> Result<(), SyscallError> {
    let in_directory = directory.as_fd();
    let made = |aside: &OsString| match file::make_link(NOWHERE.as_ref(), in_directory, aside) {
        Err(failed) if failed.errno() == libc::EEXIST => None,
        made => Some(made.map(|()| aside.clone())),
    };
    let Some(Ok(aside)) = names(name).find_map(|aside| made(&aside)) else {
        return match set_aside(directory, name) {
            Err(failed) if !says_missing(&failed.cause) => Err(failed),
            _ => Ok(()),
        };
    };
    let exchanged = file::exchange(in_directory, &aside, name);
    // Another run may have been faster: then this is its link.
    if exchanged.is_err() || is_link(in_directory, &aside) {
        file::unlink(in_directory, &aside)?;
    }
    match exchanged {
        Err(failed) if says_missing(&failed.cause) => Ok(()),
        Err(_) => {
            set_aside(directory, name).and_then(|_| file::make_link(NOWHERE.as_ref(), in_directory, name))
        }
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;

    #[test]
    fn a_long_name_is_kept_in_part() {
        let scratch = Scratch::create(None).unwrap();
        let directory = Directory::open(scratch.path()).unwrap();
        for (name, expected) in [
            ("n".repeat(255), format!("{}.sbx-aside", "n".repeat(100))),
            // Another one.
            (format!("{}m", "n".repeat(254)), format!("{}.sbx-aside-2", "n".repeat(100))),
            ("\u{20ac}".repeat(85), format!("{}.sbx-aside", "\u{20ac}".repeat(33))),
            ("n".repeat(100), format!("{}.sbx-aside-3", "n".repeat(100))),
        ] {
            fs::write(scratch.path().join(&name), "").unwrap();
            assert_eq!(set_aside(&directory, name.as_ref()).unwrap(), expected.as_str());
            assert!(is_aside_of(expected.as_ref(), name.as_ref()));
        }
    }

    #[test]
    fn a_link_to_nowhere_takes_the_place_of_what_is_put_aside() {
        let scratch = Scratch::create(None).unwrap();
        let directory = Directory::open(scratch.path()).unwrap();
        let at = |name: &str| scratch.path().join(name);
        for expected in ["x.sbx-aside", "x.sbx-aside-2", "x.sbx-aside-3"] {
            fs::write(at("x"), expected).unwrap();
            replace(&directory, "x".as_ref()).unwrap();
            assert_eq!(fs::read_link(at("x")).unwrap(), Path::new(NOWHERE));
            assert_eq!(fs::read_to_string(at(expected)).unwrap(), expected);
            fs::remove_file(at("x")).unwrap();
        }
        // Another run has done it already, or it is gone.
        replace(&directory, "x".as_ref()).unwrap();
        fs::create_dir(at("y")).unwrap();
        replace(&directory, "y".as_ref()).unwrap();
        replace(&directory, "y".as_ref()).unwrap();
        let mut names: Vec<_> = directory.below(Path::new("")).unwrap().names().unwrap();
        names.sort();
        assert_eq!(names, ["x.sbx-aside", "x.sbx-aside-2", "x.sbx-aside-3", "y", "y.sbx-aside"]);
        assert!(is_aside_of(&names[1], "x".as_ref()) && !is_aside_of(&names[4], "x".as_ref()));
    }
}
