//! Hard links between the workspace and what of it is in a mount of its own.
//!
//! What holds something protected (`.git`) is mounted on itself, so that it cannot be renamed, and no hard link leads
//! from one mount to another (EXDEV). `git clone` of a repository beside it links objects all the same, and `cp -l`
//! too. Outside the run's namespaces both are one mount. So the supervisor, which is there, makes such a link, where
//! the explainer library asks for it by prctl(2) after the kernel has refused it. To be notified of link(2) itself
//! would cost git a quarter more for every object that it writes.
//!
//! It makes none that the kernel would not make if the mount were not there. Both ends are held as places (O_PATH), as
//! the command sees them. Each has to be on a mount that can be written to, and to be the same file at the same path
//! outside: what is protected, denied or replaced for the run is not. By its new name the file may not gain rights, as
//! Landlock asks for a link, and the profile has to allow the call.

use crate::explain::caller;
use crate::explain::decode::PathArgument;
use crate::plan::calls::Calls;
use crate::plan::namespaces::Layout;
use crate::plan::rules::{self, PathRights, PathRule};
use crate::supervise::dispatch::{Handler, Step};
use crate::supervise::handlers::domains::Marks;
use crate::supervise::judge::{Judge, PolicyProgram, Verdict, error};
use crate::supervise::waiting::{NotifiedCall, Waiting};
use crate::sys::seccomp::{Answer, Notification};
use crate::sys::{SyscallError, access, bounded, descriptor, file};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::tell::LINK;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Makes the links.
pub struct Links {
    /// The path rules, with resolved paths.
    granted: Rc<[PathRule]>,
    /// What is mounted for the run alone.
    layout: Option<Rc<Layout>>,
    program: PolicyProgram,
    marks: Rc<Marks>,
}

/// A link between two mounts that are one outside, with both of its ends as they are there.
pub struct Wanted {
    file: File,
    directory: File,
    name: OsString,
}

/// An end of a link, held as the caller sees it.
struct End {
    held: File,
    place: PathBuf,
}

impl Handler for Links {
    /// The link, if it may be made.
    type Copy = Option<Wanted>;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Self::Copy> {
        let notification = waiting.call.notification;
        let [option, args @ ..] = notification.args;
        if option as u32 != LINK {
            return None;
        }
        let number = Call::named(b"linkat").and_then(|call| call.number(Arch::HOST))?;
        let mut asked = Notification { nr: number, ..notification };
        asked.args[..args.len()].copy_from_slice(&args);
        // Those of a further domain the kernel has refused by what nobody here knows.
        let is_allowed = self.marks.of(notification.pid).is_none() && self.program.allows(&asked);
        let call = NotifiedCall::new(asked, Verdict::Allowed);
        Some(is_allowed.then(|| self.wanted(&Waiting::new(&call, waiting.listener()))).flatten())
    }

    fn act(&mut self, wanted: Self::Copy, _: &NotifiedCall, _: &mut Judge) -> Result<Step, SyscallError> {
        let Some(Wanted { file, directory, name }) = wanted else {
            return Ok(Step::Answer(error(libc::EXDEV)));
        };
        // Who changes the directory can keep it from being changed.
        let linked = bounded::within(move || file::link(file.as_fd(), directory.as_fd(), &name));
        Ok(Step::Answer(match linked {
            Some(Ok(())) => Answer::Done,
            Some(Err(failed)) => error(failed.errno()),
            None => error(libc::EINTR),
        }))
    }
}

impl Links {
    /// By these rules.
    pub fn new(
        granted: Rc<[PathRule]>,
        layout: Option<Rc<Layout>>,
        calls: Rc<Calls>,
        marks: Rc<Marks>,
    ) -> Links {
        Links { granted, layout, program: PolicyProgram::new(calls, None), marks }
    }

    /// The link that a call asks for, if it may be made.
    fn wanted(&self, waiting: &Waiting<'_>) -> Option<Wanted> {
        let [old, new, ..] = &*waiting.decoded().paths else { return None };
        let thread = waiting.call.notification.pid;
        let hold = |argument: &PathArgument, path: &[u8], follow| {
            let held = caller::hold(thread, argument.dirfd, path, follow).ok()?;
            let place = descriptor::place(&held).ok()?;
            let is_there = !access::holds_read_only(&held) && caller::is_at(thread, &held, &place);
            is_there.then_some(End { held, place })
        };
        let (above, name) = split(&new.path)?;
        let directory = hold(new, above, true)?;
        let file = (!old.path.is_empty()).then(|| hold(old, &old.path, old.follow)).flatten()?;
        let is_regular = file::identity(file.held.as_fd()).is_ok_and(file::Identity::is_regular);
        if !is_regular || !self.may_link(&file.place, &directory.place.join(name)) {
            return None;
        }
        Some(Wanted { file: file.outside()?, directory: directory.outside()?, name: name.to_os_string() })
    }

    /// Whether the rules let a file at one path have another name, too. By that it may not gain rights.
    fn may_link(&self, old: &Path, new: &Path) -> bool {
        let layout = self.layout.as_deref();
        let is_shut = |path: &Path| layout.is_some_and(|layout| layout.shuts(path, true));
        let writes = |path: &Path| rules::may_change(&self.granted, layout, path) && !is_shut(path);
        let rights = |path: &Path| {
            let rules = self.granted.iter().filter(|rule| rules::holds(rule, layout, path));
            rules.fold(PathRights::default(), |all, rule| all.union(rule.rights))
        };
        writes(old) && writes(new) && rights(new).without(rights(old)) == PathRights::default()
    }
}

impl End {
    /// The same file outside, where none of the run's mounts are.
    fn outside(&self) -> Option<File> {
        let own = descriptor::hold(&self.place).ok()?;
        let identity = |file: &File| file::identity(file.as_fd()).ok();
        identity(&own).zip(identity(&self.held)).is_some_and(|(own, held)| own.is(held)).then_some(own)
    }
}

/// The directory of a path that something can be made at, and the name in it.
fn split(path: &[u8]) -> Option<(&[u8], &OsStr)> {
    let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (&b"/"[..], path.get(1..)?),
        Some(at) => (path.get(..at)?, path.get(at + 1..)?),
        None => (&b"."[..], path),
    };
    (!matches!(name, b"" | b"." | b"..")).then_some((above, OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_directory_and_a_name() {
        let parts = |path: &'static str| split(path.as_bytes()).map(|(above, name)| (above, name.as_bytes()));
        assert_eq!(parts("name"), Some((&b"."[..], &b"name"[..])));
        assert_eq!(parts("/name"), Some((&b"/"[..], &b"name"[..])));
        assert_eq!(parts("a/b//name"), Some((&b"a/b/"[..], &b"name"[..])));
        for nothing in ["", "/", "a/", ".", "a/..", "a/."] {
            assert_eq!(parts(nothing), None, "{nothing}");
        }
    }
}
