//! The real path of a file, and whether there is one.
//!
//! A file that is to be protected must not count as missing because it could not be looked at: a command
//! may remove the permission to look, and restore it in its next run.

use crate::sys::resolve::openat2;
use crate::sys::within::is_within;
use rustix::fs::{CWD, OFlags, ResolveFlags};
use std::collections::HashMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// Whether a path is absolute, and written as real paths are: without `.`, `..` and needless slashes.
pub fn is_plain(path: &Path) -> bool {
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    let names = path.as_os_str().as_bytes().strip_prefix(b"/");
    names.is_some_and(|names| names.split(|byte| *byte == b'/').all(is_name))
}

/// Whether a path is the real path of something: no symbolic link is on the way, and it has no name twice. The kernel
/// walks it at once, where the functions below look at each name. False too where it cannot be told.
fn is_real(path: &Path) -> bool {
    is_plain(path) && openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS).is_ok()
}

/// realpath(3) with a buffer of ours. [`Path::canonicalize`] has it allocate the result, which takes
/// several system calls with some C libraries.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    if is_real(path) {
        return Ok(path.to_path_buf());
    }
    let text = CString::new(path.as_os_str().as_bytes())?;
    let mut buffer = [0_u8; libc::PATH_MAX as usize];
    // SAFETY: a NUL-terminated string, and a buffer of the size that realpath(3) asks for.
    let found = unsafe { libc::realpath(text.as_ptr(), buffer.as_mut_ptr().cast()) };
    if found.is_null() {
        return Err(io::Error::last_os_error());
    }
    let length = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    Ok(PathBuf::from(OsStr::from_bytes(buffer.get(..length).unwrap_or(&[]))))
}

/// A real path that every process gets to: the links of /proc that the kernel resolves by itself (proc(5)) lead each
/// process elsewhere.
pub fn real_for_all(path: &Path) -> io::Result<PathBuf> {
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_MAGICLINKS)?;
    path.canonicalize()
}

/// A path from a place below some directory, by its words alone; `None` if it is absolute, goes above the directory, or
/// goes up behind a name: where `name/..` is, only the file system knows, for the name may be a link.
pub fn joined_below(place: &Path, path: &Path) -> Option<PathBuf> {
    let mut joined = place.to_path_buf();
    let mut has_name = false;
    for part in path.components() {
        match part {
            Component::Normal(name) => {
                joined.push(name);
                has_name = true;
            }
            Component::ParentDir => (!has_name && joined.pop()).then_some(())?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(joined)
}

/// The same from a directory by its real path, for a path that may be absolute.
pub fn joined(directory: &Path, path: &Path) -> Option<PathBuf> {
    let (from, path) = match path.strip_prefix("/") {
        Ok(below) => (Path::new("/"), below),
        Err(_) => (directory, path),
    };
    joined_below(from, path)
}

/// The directory that has the entry of a path, as a path from where that begins.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Most links that the kernel follows.
const MOST_LINKS: usize = 40;

/// How an absolute path leads to a file.
#[derive(Debug, Default)]
pub struct Way {
    /// Where it leads, whether something is there or not.
    pub real: PathBuf,
    /// The symbolic links, each by its name in the real place of its directory.
    pub links: Vec<PathBuf>,
    /// The real directories in which names were looked up. A process that may write in one of them decides
    /// where the path leads.
    pub directories: Vec<PathBuf>,
    /// The real directories that a `..` left: another one in the place of one of these leads elsewhere.
    pub left: Vec<PathBuf>,
    /// The kernel would have given up: more links than it follows.
    pub gave_up: bool,
}

impl Way {
    /// Whether a link in a directory leads out of it.
    pub fn leads_out_of(&self, directory: &Path) -> bool {
        !is_within(&self.real, directory) && self.links.iter().any(|link| is_within(link, directory))
    }

    /// Whether a process that may write in a directory (by its real path) decides where this leads.
    pub fn passes(&self, directory: &Path) -> bool {
        self.directories.iter().any(|looked_up| looked_up.starts_with(directory))
    }
}

/// Walks a path once, so that the results belong together even if its links change meanwhile.
pub fn way(path: &Path) -> Way {
    if is_real(path) {
        return straight(Path::new("/"), path.to_path_buf());
    }
    walk(Path::new("/"), path)
}

/// The way to a real path from a directory above it.
fn straight(directory: &Path, real: PathBuf) -> Way {
    let above = real.ancestors().skip(1);
    let mut directories: Vec<PathBuf> =
        above.take_while(|above| is_within(above, directory)).map(Path::to_path_buf).collect();
    directories.reverse();
    Way { real, directories, ..Way::default() }
}

/// The same from a directory on, by its real path.
pub fn way_from(directory: &Path, path: &Path) -> Way {
    let whole = directory.join(path);
    if path.is_relative() && is_real(&whole) {
        return straight(directory, whole);
    }
    walk(directory, path)
}

fn walk(directory: &Path, path: &Path) -> Way {
    let mut way = Way { real: directory.to_path_buf(), ..Way::default() };
    let mut walk = Walk::along(path);
    // A path may pass one name thousands of times: `link/../link/..`.
    let mut known: HashMap<PathBuf, Option<PathBuf>> = HashMap::new();
    while let Some(next) = walk.next(&mut way.real) {
        let target = known.entry(next.clone()).or_insert_with(|| {
            way.directories.push(way.real.clone());
            let target = next.read_link().ok();
            way.links.extend(target.is_some().then(|| next.clone()));
            target
        });
        match target {
            Some(target) if walk.follow(target) => {}
            target => (way.gave_up, way.real) = (way.gave_up || target.is_some(), next),
        }
    }
    way.left = walk.left;
    way
}

/// A walk along a path, name by name.
pub struct Walk {
    /// The names that remain, the next one last.
    names: Vec<OsString>,
    /// How many links were followed.
    links: usize,
    /// The directories that it has left by `..`.
    left: Vec<PathBuf>,
}

impl Walk {
    /// At its beginning.
    pub fn along(path: &Path) -> Walk {
        Walk { names: parts(path), links: 0, left: Vec::new() }
    }

    /// The path of the next name, in the real directory `at` by then. It is up to the caller to go there.
    pub fn next(&mut self, at: &mut PathBuf) -> Option<PathBuf> {
        loop {
            let name = self.names.pop()?;
            match name.as_bytes() {
                b"." => {}
                b".." => {
                    if !self.left.contains(at) {
                        self.left.push(at.clone());
                    }
                    at.pop();
                }
                // What was walked counts no more.
                b"/" => *at = PathBuf::from("/"),
                _ => return Some(at.join(name)),
            }
        }
    }

    /// Goes on where the symbolic link leads that was next. False if the kernel would not.
    pub fn follow(&mut self, target: &Path) -> bool {
        let follows = self.links < MOST_LINKS;
        if follows {
            self.links += 1;
            self.names.extend(parts(target));
        }
        follows
    }

    /// A path with the names that remain.
    pub fn rest_below(self, path: PathBuf) -> PathBuf {
        self.names.into_iter().rev().fold(path, |path, name| path.join(name))
    }
}

/// The last one first.
fn parts(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// A path by its own name in the real place of its directory.
pub fn in_real_directory(path: &Path) -> Option<PathBuf> {
    let (directory, name) = path.parent().zip(path.file_name())?;
    Some(real(directory).ok()?.join(name))
}

/// Whether a path belongs to one process (`/proc/2/comm`): the process has another number in another /proc,
/// or another run.
pub fn is_of_process(path: &Path) -> bool {
    let number = |name: &OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
    path.strip_prefix("/proc").is_ok_and(|below| below.iter().next().is_some_and(number))
}

/// Whether an error says that there is nothing at a path, and not only that it could not be looked at. A
/// circle of links, or a path that is too long, leads to nothing either.
pub fn says_missing(error: &io::Error) -> bool {
    let nowhere = matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENAMETOOLONG));
    nowhere || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether there is something at a path, if only a link. True if it cannot be looked at.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().map_or_else(|error| !says_missing(&error), |_| true)
}

/// Whether a path leads to the file of a socket.
pub fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.file_type().is_socket())
}

/// Whether a path leads to a regular file that somebody may execute.
pub fn is_program(path: &Path) -> bool {
    const ANY_EXECUTE: u32 = 0o111;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & ANY_EXECUTE != 0)
}

/// Whether there is a directory at a path, and no link to one. True if it cannot be looked at.
pub fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().map_or_else(|error| !says_missing(&error), |meta| meta.is_dir())
}

/// Whether there is a directory at a path, or a link.
pub fn is_directory_or_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir() || meta.is_symlink())
}

/// Whether a name is one that a pattern stands for in a shell: none that begins with a dot, unless the pattern does.
pub fn matches(pattern: &OsStr, name: &OsStr) -> bool {
    let text = |of: &OsStr| CString::new(of.as_bytes());
    let (Ok(pattern), Ok(name)) = (text(pattern), text(name)) else { return false };
    // SAFETY: two NUL-terminated strings.
    unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), libc::FNM_PERIOD) == 0 }
}

/// A canonical path, or the path itself where it cannot be resolved.
pub fn canonical(path: &Path) -> PathBuf {
    real(path).unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_pattern_stands_for_the_names_that_it_does_in_a_shell() {
        for (pattern, name, is_one) in [
            ("*.c", "a.c", true),
            ("*.c", "a.h", false),
            ("*", ".a", false),
            (".*", ".a", true),
            ("[ab]?", "bx", true),
            ("[ab]?", "cx", false),
            ("[", "a", false),
        ] {
            assert_eq!(matches(OsStr::new(pattern), OsStr::new(name)), is_one, "{pattern} {name}");
        }
    }

    #[test]
    fn words_say_where_a_path_leads_as_long_as_it_goes_up_first() {
        for (path, expected) in [
            ("x", Some("a/b/x")),
            ("../x/./y", Some("a/x/y")),
            ("../../x", Some("x")),
            ("../../../x", None),
            ("x/../y", None),
            ("../x/../y", None),
            ("/x", None),
        ] {
            let found = joined_below(Path::new("a/b"), Path::new(path));
            assert_eq!(found.as_deref(), expected.map(Path::new), "{path}");
        }
        assert_eq!(joined(Path::new("/a"), Path::new("../x")).as_deref(), Some(Path::new("/x")));
        assert_eq!(joined(Path::new("/a"), Path::new("/b/c")).as_deref(), Some(Path::new("/b/c")));
        assert_eq!(joined(Path::new("/a"), Path::new("/b/../c")), None);
    }

    #[test]
    fn a_way_tells_what_it_left_and_when_it_goes_in_circles() {
        let scratch = Scratch::create(None).unwrap();
        let base = real(scratch.path()).unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        symlink("a/b/..", base.join("link")).unwrap();
        symlink("other", base.join("one")).unwrap();
        symlink("one", base.join("other")).unwrap();
        let led = way(&base.join("link/../x"));
        assert_eq!(led.real, base.join("x"));
        assert_eq!(led.left, [base.join("a/b"), base.join("a")]);
        assert!(!led.gave_up && way(&base.join("one")).gave_up);
    }

    #[test]
    fn one_look_says_the_same_as_a_walk() {
        let scratch = Scratch::create(None).unwrap();
        let base = scratch.path();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/file"), "").unwrap();
        symlink("a/b", base.join("link")).unwrap();
        symlink("nowhere", base.join("a/dangling")).unwrap();
        symlink("..", base.join("a/b/up")).unwrap();
        let below = [
            "",
            "a",
            "a/b",
            "a/file",
            "a/file/x",
            "a/none",
            "a/none/x",
            "link",
            "link/up/file",
            "a/dangling",
            "a/b/up",
            "a/./b",
            "a/b/..",
            "a//b",
            "a/",
            "a/b/../file",
            "link/../file",
            ".",
            "..",
        ];
        for below in below {
            let path = PathBuf::from(format!("{}/{below}", base.display()));
            assert_eq!(real(&path).ok(), path.canonicalize().ok(), "{below}");
            for (one, other) in [
                (way(&path), walk(Path::new("/"), &path)),
                (way_from(base, Path::new(below)), walk(base, Path::new(below))),
            ] {
                assert_eq!(one.real, other.real, "{below}");
                assert_eq!(one.links, other.links, "{below}");
                assert_eq!(one.directories, other.directories, "{below}");
            }
        }
    }
}
