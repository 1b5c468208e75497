//! What is there outside and not inside, because a directory above it is the run's own.

use super::{DeniedPath, permitted};
use crate::explain::decode::{Access, Decoded, PathArgument};
use crate::explain::walk::{Entry, Viewer};
use crate::plan::namespaces::Layout;
use crate::program;
use crate::sys::path::{self, is_of_process};
use crate::sys::process::{self, Pid};
use crate::sys::within::is_below;
use std::fs::Metadata;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The first path of a call that is out of sight. Of a call that has not failed yet, only what it opens below a
/// directory with files counts: programs look for many things, and do without. Where one is to be made, its directory
/// counts.
pub fn missing(
    layout: &Layout,
    name: &str,
    decoded: &Decoded,
    viewer: &Viewer<'_>,
    has_failed: bool,
) -> Option<DeniedPath> {
    let opens = Access::READ | Access::WRITE | Access::EXECUTE | Access::LIST | Access::REMOVE;
    let uses = if has_failed { opens | Access::METADATA } else { opens };
    let makes = |access: Access| access.intersects(Access::CREATE);
    let used = |access: Access| if makes(access) { has_failed } else { access.intersects(uses) };
    let sight = Sight { layout, viewer, has_failed };
    let mut named = decoded.paths.iter().filter(|argument| used(argument.access));
    let of_call = named.find_map(|argument| sight.missing(argument, decoded));
    of_call.or_else(|| {
        let interpreters = interpreters(name, decoded, viewer);
        interpreters.iter().find_map(|argument| sight.missing(argument, decoded))
    })
}

/// What a process sees of the paths that it names.
struct Sight<'s> {
    layout: &'s Layout,
    viewer: &'s Viewer<'s>,
    has_failed: bool,
}

impl Sight<'_> {
    /// What is out of sight of a path, and wanted of it. Links on the way are followed as outside.
    fn missing(&self, argument: &PathArgument, decoded: &Decoded) -> Option<DeniedPath> {
        let PathArgument { dirfd, path, access, follow, .. } = argument;
        let outside = Viewer { layout: None, ..*self.viewer };
        let there = outside.follow(*dirfd, path, *follow)?;
        let makes = access.intersects(Access::CREATE);
        let hidden = self.hidden(&there).filter(|_| makes || there.meta.is_some())?;
        let here = self.viewer.follow(*dirfd, path, *follow);
        here.is_none_or(|entry| !makes && entry.meta.is_none()).then_some(())?;
        let access = if is_target(decoded, there.meta.as_ref()) { Access::WRITE } else { *access };
        let is_looked_at = access == Access::METADATA && there.is_dir();
        let aim = is_looked_at.then(|| aim(self.viewer.caller.process, hidden)).flatten();
        let (path, access) = aim.map_or((hidden.to_path_buf(), access), |file| (file, Access::READ));
        // What permissions refuse outside, no flag allows.
        permitted(&path, access).then_some((path, access))
    }

    /// The first that is hidden on the way to a place: a link, by the name that goes over it, or the place itself. A
    /// flag that names a link brings what it leads to, and one that names that brings no link.
    fn hidden<'e>(&self, there: &'e Entry) -> Option<&'e Path> {
        let mut links = there.links.iter();
        let link = links.find(|link| self.hides(&link.at) && !self.is_there(&link.at));
        let is_hidden = |path: &&Path| self.hides(path) || self.has_failed && is_of_process(path);
        link.map(|link| &*link.whole).or_else(|| Some(&*there.path).filter(is_hidden))
    }

    fn hides(&self, path: &Path) -> bool {
        match self.has_failed {
            true => self.layout.replaces(path).is_some(),
            false => self.layout.hides(path),
        }
    }

    /// Whether the run has a link too: it makes those again by which flags name paths.
    fn is_there(&self, link: &Path) -> bool {
        path::is_there(&self.viewer.outside(link))
    }
}

/// The interpreters of a script that a call executes, which the kernel finds by their own paths.
fn interpreters(name: &str, decoded: &Decoded, viewer: &Viewer<'_>) -> Vec<PathArgument> {
    let ("execve" | "execveat", [script]) = (name, &decoded.paths[..]) else { return Vec::new() };
    let entry = viewer.follow(script.dirfd, &script.path, script.follow);
    let file = entry.filter(|entry| entry.meta.as_ref().is_some_and(Metadata::is_file));
    let Some(Ok(program)) = file.map(|file| program::examine(&file.path)) else { return Vec::new() };
    let executed = |path: PathBuf| PathArgument {
        dirfd: None,
        path: path.into_os_string().into_vec(),
        access: Access::EXECUTE,
        follow: true,
        empty_path_ok: false,
    };
    program.chain.into_iter().skip(1).map(|link| executed(link.path)).collect()
}

/// What a program is after that walks along a path name by name, as realpath(3) does: what its command line names below
/// a directory on the way.
fn aim(process: Pid, directory: &Path) -> Option<PathBuf> {
    let line = process::about(process, "cmdline").ok()?;
    let mut words = line.split(['\0', ':', '=']).map(Path::new);
    words.find(|word| is_below(word, directory) && path::is_there(word)).map(Path::to_path_buf)
}

/// Whether a call opens a directory to name things in it, and not to list it (O_PATH). cp(1), mv(1), ln(1) and
/// install(1) open the directory in this way that they make something in.
fn is_target(decoded: &Decoded, meta: Option<&Metadata>) -> bool {
    let opens = ["O_PATH", "O_DIRECTORY"].iter().all(|flag| decoded.text.contains(flag));
    opens && meta.is_some_and(|meta| meta.is_dir() && meta.uid() == process::user())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use crate::explain::caller;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_interpreters_of_a_script_are_looked_at_by_their_own_paths() {
        let scratch = Scratch::create(None).unwrap();
        let top = scratch.path().canonicalize().unwrap();
        symlink("/bin/sh", top.join("link")).unwrap();
        for (name, interpreter) in [("script", "link"), ("second", "script"), ("broken", "none")] {
            fs::write(top.join(name), format!("#!{}\n", top.join(interpreter).display())).unwrap();
            fs::set_permissions(top.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let caller = caller::caller(process::id());
        let viewer = Viewer { thread: process::id(), caller: &caller, layout: None };
        let found = |call: &str, name: &str| {
            let argument = PathArgument {
                dirfd: None,
                path: top.join(name).as_os_str().as_bytes().to_vec(),
                access: Access::EXECUTE,
                follow: true,
                empty_path_ok: false,
            };
            let decoded = Decoded { paths: vec![argument], ..Decoded::default() };
            let found = interpreters(call, &decoded, &viewer);
            found.into_iter().map(|argument| argument.path).collect::<Vec<_>>()
        };
        let at = |name: &str| top.join(name).as_os_str().as_bytes().to_vec();
        assert_eq!(found("execve", "script"), [at("link")]);
        assert_eq!(found("execveat", "second"), [at("script"), at("link")]);
        for (call, name) in
            [("execve", "broken"), ("execve", "link"), ("execve", "none"), ("openat", "script")]
        {
            assert!(found(call, name).is_empty(), "{call} {name}");
        }
    }
}
