//! Where a path of a waiting thread leads, step by step.
//!
//! The kernel's own resolution can't be borrowed: `/proc/self` would be us, and the last name need not exist. What
//! cannot be followed as the thread would (an error on the way, a link to something without a name) is no answer.

use crate::launch::files::tidy;
use crate::launch::namespaces::Layout;
use crate::supervise::facts::Caller;
use crate::sys::process::Pid;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// As many links as the kernel follows.
const LINKS: usize = 40;

/// What a path names.
pub struct Entry {
    /// Absolute, without links but perhaps the last name; where we find it.
    pub path: PathBuf,
    /// What is there; `None` for a name that is free.
    pub meta: Option<Metadata>,
    /// The path ended in `/`, so that only a directory will do.
    pub slash: bool,
    /// The path ended in `.` or `..` (or names a descriptor), which is no name that could be made or removed.
    pub nameless: bool,
}

impl Entry {
    /// The directory that it is in.
    pub fn parent(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.meta.as_ref().is_some_and(Metadata::is_dir)
    }
}

/// Whose eyes a path is seen with.
pub struct Viewer<'c> {
    /// The thread, which has the descriptors and the working directory.
    pub thread: Pid,
    /// Its process.
    pub caller: &'c Caller,
    /// What it sees otherwise than we do.
    pub layout: Option<&'c Layout>,
}

impl Viewer<'_> {
    /// Follows a path from the working directory or a descriptor. An empty one is the descriptor itself.
    pub fn follow(&self, dirfd: Option<i32>, path: &[u8], follow: bool) -> Option<Entry> {
        let absolute = path.starts_with(b"/");
        let start = if absolute { PathBuf::from("/") } else { self.start(dirfd)? };
        if path.is_empty() {
            let path = self.outside(&start);
            let meta = path.symlink_metadata().ok()?;
            return Some(Entry { path, meta: Some(meta), slash: false, nameless: true });
        }
        Walk { viewer: self, at: start, left: names(path), links: 0, magic: false }.run(path, follow)
    }

    /// Where we find what the thread finds at a path. What is mounted read-only for it would not show whether the file
    /// system itself allows a change.
    fn outside(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix("/").unwrap_or(path);
        let apart = self.layout.is_some_and(|layout| !layout.keeps_unchanged(path));
        if apart { self.root().join(below) } else { path.to_path_buf() }
    }

    /// The path for the thread of what we find there.
    pub fn inside(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(self.root()) {
            Ok(below) if self.layout.is_some() => Path::new("/").join(below),
            _ => path.to_path_buf(),
        }
    }

    /// The path by its names alone, for the thread.
    pub fn named(&self, dirfd: Option<i32>, path: &[u8]) -> Option<PathBuf> {
        let path = Path::new(OsStr::from_bytes(path));
        let whole = if path.is_absolute() { path.to_path_buf() } else { self.start(dirfd)?.join(path) };
        Some(tidy(&whole))
    }

    fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.thread))
    }

    fn start(&self, dirfd: Option<i32>) -> Option<PathBuf> {
        let link = match dirfd {
            None => format!("/proc/{}/cwd", self.thread),
            Some(number) => format!("/proc/{}/fd/{number}", self.thread),
        };
        fs::read_link(link).ok().filter(|target| target.is_absolute())
    }
}

/// The names of a path, the first at the end.
fn names(path: &[u8]) -> Vec<OsString> {
    let names = path.split(|b| *b == b'/').filter(|name| !name.is_empty() && *name != b".");
    names.rev().map(|name| OsString::from_vec(name.to_vec())).collect()
}

struct Walk<'w> {
    viewer: &'w Viewer<'w>,
    at: PathBuf,
    left: Vec<OsString>,
    links: usize,
    /// A link of /proc was followed, whose text is only a description.
    magic: bool,
}

impl Walk<'_> {
    fn run(mut self, path: &[u8], follow: bool) -> Option<Entry> {
        let slash = path.ends_with(b"/");
        let nameless = path.ends_with(b"/.") || path.ends_with(b"/..") || path == b"." || path == b"..";
        while let Some(name) = self.left.pop() {
            if name == ".." {
                self.at.pop();
                continue;
            }
            let last = self.left.is_empty();
            if let Some(names) = self.own_name(&name) {
                self.left.extend(names.into_iter().rev());
                continue;
            }
            let next = self.at.join(&name);
            let path = self.viewer.outside(&next);
            let meta = match path.symlink_metadata() {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound && last && !self.magic => {
                    return Some(Entry { path, meta: None, slash, nameless });
                }
                Err(_) => return None,
            };
            if meta.is_symlink() && (!last || follow || slash) {
                self.link(&next)?;
            } else if last {
                return Some(Entry { path, meta: Some(meta), slash, nameless });
            } else if meta.is_dir() {
                self.at = next;
            } else {
                return None;
            }
        }
        let path = self.viewer.outside(&self.at);
        let meta = path.symlink_metadata().ok()?;
        Some(Entry { path, meta: Some(meta), slash, nameless: true })
    }

    /// `/proc/self` and `/proc/thread-self` are others for the one who asks.
    fn own_name(&self, name: &OsStr) -> Option<Vec<OsString>> {
        let (process, thread) = self.viewer.caller.inside;
        match name.as_bytes() {
            b"self" if self.at == Path::new("/proc") => Some(vec![process.to_string().into()]),
            b"thread-self" if self.at == Path::new("/proc") => {
                Some(vec![process.to_string().into(), "task".into(), thread.to_string().into()])
            }
            _ => None,
        }
    }

    fn link(&mut self, link: &Path) -> Option<()> {
        self.links += 1;
        let target = fs::read_link(self.viewer.outside(link)).ok()?;
        if self.links > LINKS {
            return None;
        }
        if link.starts_with("/proc") && link != Path::new("/proc/mounts") && link != Path::new("/proc/net") {
            // `pipe:[123]`, `/path (deleted)`.
            self.magic = true;
            target.is_absolute().then_some(())?;
        }
        if target.is_absolute() {
            self.at = PathBuf::from("/");
        }
        self.left.extend(names(target.as_os_str().as_bytes()));
        Some(())
    }
}
