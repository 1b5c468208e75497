//! Where a path of a waiting thread leads, step by step.
//!
//! The kernel cannot resolve it for us: `/proc/self` would be this process, and the last name need not exist.
//! There is no answer where we cannot follow the path as the thread would: after an error, or over a link to
//! something without a name.

use crate::explain::caller::{self, Caller};
use crate::plan::files::tidy;
use crate::plan::namespaces::Layout;
use crate::sys::process::Pid;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The number of links that the kernel follows.
const LINKS: usize = 40;

/// What a path names.
pub struct Entry {
    /// Where we find it: absolute, without links except perhaps the last name.
    pub path: PathBuf,
    /// The file there; `None` for a name that is free.
    pub meta: Option<Metadata>,
    /// Whether the path ended in `/`, so that only a directory will do.
    pub slash: bool,
    /// Whether the path ended in `.` or `..`, or names a descriptor: nothing that could be made or removed.
    pub nameless: bool,
    /// The symbolic links on the way that were followed.
    pub links: Vec<Link>,
}

/// A symbolic link on the way of a path.
pub struct Link {
    /// Where it is.
    pub at: PathBuf,
    /// The whole path, as it goes on from there by its names.
    pub whole: PathBuf,
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

/// The thread whose view of the file system counts.
pub struct Viewer<'c> {
    /// The thread: its descriptors and working directory count.
    pub thread: Pid,
    /// Its process.
    pub caller: &'c Caller,
    /// The mounts of the run, which make its view differ from ours.
    pub layout: Option<&'c Layout>,
}

impl Viewer<'_> {
    /// Follows a path from the working directory or a descriptor. An empty path is the descriptor itself.
    pub fn follow(&self, dirfd: Option<i32>, path: &[u8], follow: bool) -> Option<Entry> {
        let absolute = path.starts_with(b"/");
        let start = if absolute { PathBuf::from("/") } else { self.start(dirfd)? };
        if path.is_empty() {
            return self.nameless(&start, false);
        }
        Walk { viewer: self, at: start, left: names(path), links: Vec::new(), magic: false }.run(path, follow)
    }

    /// The file at a path that stands, for the thread, for no name that could be made or removed.
    fn nameless(&self, path: &Path, slash: bool) -> Option<Entry> {
        let path = self.outside(path);
        let meta = path.symlink_metadata().ok()?;
        Some(Entry { path, meta: Some(meta), slash, nameless: true, links: Vec::new() })
    }

    /// Our path to what the thread finds at its path. Only where the run mounts something else do we look
    /// through its root: a file that it sees mounted read-only would not show whether the file system itself
    /// allows a change.
    pub fn outside(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix("/").unwrap_or(path);
        let apart = self.layout.is_some_and(|layout| !layout.keeps_unchanged(path));
        if apart { self.root().join(below) } else { path.to_path_buf() }
    }

    /// The thread's path to what we find at ours.
    pub fn inside(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(self.root()) {
            Ok(below) if self.layout.is_some() => Path::new("/").join(below),
            _ => path.to_path_buf(),
        }
    }

    /// The thread's path, made absolute by its names alone.
    pub fn named(&self, dirfd: Option<i32>, path: &[u8]) -> Option<PathBuf> {
        let path = Path::new(OsStr::from_bytes(path));
        let whole = if path.is_absolute() { path.to_path_buf() } else { self.start(dirfd)?.join(path) };
        Some(tidy(&whole))
    }

    fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.thread))
    }

    fn start(&self, dirfd: Option<i32>) -> Option<PathBuf> {
        caller::named(self.thread, dirfd).ok().filter(|directory| directory.is_absolute())
    }
}

/// The names in a path, the first one last.
fn names(path: &[u8]) -> Vec<OsString> {
    let names = path.split(|b| *b == b'/').filter(|name| !name.is_empty() && *name != b".");
    names.rev().map(|name| OsString::from_vec(name.to_vec())).collect()
}

struct Walk<'w> {
    viewer: &'w Viewer<'w>,
    at: PathBuf,
    left: Vec<OsString>,
    links: Vec<Link>,
    /// Whether it followed a link of /proc, whose text is only a description.
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
                    return Some(Entry { path, meta: None, slash, nameless, links: self.links });
                }
                Err(_) => return None,
            };
            if meta.is_symlink() && (!last || follow || slash) {
                self.link(&next)?;
            } else if last {
                return Some(Entry { path, meta: Some(meta), slash, nameless, links: self.links });
            } else if meta.is_dir() {
                self.at = next;
            } else {
                return None;
            }
        }
        let entry = self.viewer.nameless(&self.at, slash)?;
        Some(Entry { links: self.links, ..entry })
    }

    /// The target of `/proc/self` and `/proc/thread-self` as the thread means them: for us they are others.
    fn own_name(&self, name: &OsStr) -> Option<Vec<OsString>> {
        let (process, thread) = self.viewer.caller.inside;
        let (process, thread) = (process.to_string().into(), thread.to_string().into());
        match name.as_bytes() {
            _ if self.at != Path::new("/proc") => None,
            b"self" => Some(vec![process]),
            b"thread-self" => Some(vec![process, "task".into(), thread]),
            _ => None,
        }
    }

    fn link(&mut self, link: &Path) -> Option<()> {
        let target = fs::read_link(self.viewer.outside(link)).ok()?;
        if self.links.len() >= LINKS {
            return None;
        }
        let whole = self.left.iter().rev().fold(link.to_path_buf(), |whole, name| whole.join(name));
        self.links.push(Link { at: link.to_path_buf(), whole });
        if link.starts_with("/proc") && link != Path::new("/proc/mounts") && link != Path::new("/proc/net") {
            // Like `pipe:[123]` or `/path (deleted)`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use crate::sys::process;
    use std::os::unix::fs::symlink;

    #[test]
    fn each_link_is_told_with_the_path_that_goes_over_it() {
        let scratch = Scratch::create(None).unwrap();
        let top = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("real/below")).unwrap();
        fs::write(top.join("real/below/file"), "").unwrap();
        for (target, link) in [("real", "direct"), ("direct/below", "twice"), ("circle", "circle")] {
            symlink(target, top.join(link)).unwrap();
        }
        let caller = caller::caller(process::id());
        let viewer = Viewer { thread: process::id(), caller: &caller, layout: None };
        let follow = |path: &str, last| {
            viewer.follow(None, top.join(path).as_os_str().as_bytes(), last).map(|entry| entry.links)
        };
        for (path, last, expected) in [
            ("real/below/file", true, &[][..]),
            ("direct/below/new", true, &[("direct", "direct/below/new")]),
            ("twice/./file", true, &[("twice", "twice/file"), ("direct", "direct/below/file")]),
            ("direct/../twice", false, &[("direct", "direct/../twice")]),
            ("twice", true, &[("twice", "twice"), ("direct", "direct/below")]),
        ] {
            let links = follow(path, last).unwrap();
            let links: Vec<_> = links.into_iter().map(|link| (link.at, link.whole)).collect();
            let expected: Vec<_> =
                expected.iter().map(|(at, whole)| (top.join(at), top.join(whole))).collect();
            assert_eq!(links, expected, "{path}");
        }
        assert!(follow("circle", true).is_none());
    }
}
