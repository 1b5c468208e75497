//! What is known of a refused call before it is said.

use crate::explain::caller;
use crate::explain::decode::{Access, PathArgument};
use crate::explain::hint::{CHANGES, Explainer, Reason};
use crate::explain::infer::{Beyond, DeniedPath};
use crate::explain::project;
use crate::plan::files::tidy;
use crate::supervise::handlers::refused_paths::RefusedPaths;
use crate::supervise::judge::Judge;
use crate::supervise::violation::Violations;
use crate::supervise::waiting::Told;
use crate::sys::path::{self, is_of_process};
use crate::sys::process::{self, Pid};
use crate::sys::within;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What a program that fails has looked for.
pub struct Sought {
    /// Where it works.
    pub directory: Option<PathBuf>,
    /// The paths that its calls named.
    pub paths: Vec<PathBuf>,
}

/// What is going to be refused of a call.
pub struct Findings {
    pub(super) path: Option<DeniedPath>,
    pub(super) beyond: Option<Beyond>,
    /// Whether the filter refuses it, and nobody was notified.
    pub(super) by_filter: bool,
    /// Whether it may be that the program did without: nothing shows that it missed it.
    pub is_weak: bool,
    /// Whether the program lists a directory that nobody named to it.
    pub is_unasked_list: bool,
    pub(super) told: Told,
}

impl Findings {
    /// That the rules refuse this path, or something else than one about paths the call.
    pub fn new(path: Option<DeniedPath>, beyond: Option<Beyond>, told: Told) -> Findings {
        Findings { path, beyond, by_filter: false, is_weak: false, is_unasked_list: false, told }
    }

    /// That something else than a rule about paths refused the call.
    pub fn of(beyond: Beyond, told: Told) -> Findings {
        Findings::new(None, Some(beyond), told)
    }

    /// That the filter refused the call, and nobody was notified.
    pub fn by_filter(told: Told) -> Findings {
        Findings { by_filter: true, ..Findings::new(None, None, told) }
    }

    /// Whether the filter refused the call.
    pub fn is_by_filter(&self) -> bool {
        self.by_filter
    }

    /// The process that the call is about, where that is outside.
    pub fn process(&self) -> Option<Pid> {
        match self.beyond {
            Some(Beyond::Process(process) | Beyond::Signal(process)) => Some(process),
            _ => None,
        }
    }

    /// Whether a line has told as much: the supervisor refused the call itself, or the program was refused to use what
    /// it looks at.
    pub fn are_known(&self, violations: &Violations) -> bool {
        let (program, arguments) = (&*self.told.caller.name, &*self.told.decoded.text);
        let path = self.path.as_ref().filter(|_| self.only_looks());
        violations.has_said(arguments, program)
            || path.is_some_and(|(path, _)| violations.has_named(path.as_os_str().as_bytes(), program))
    }

    /// Whether it adds nothing to what has been said of the process: the same reason, or one of several that it may
    /// have done without. So it does where a program looks for passwords of machines that it cannot reach.
    pub fn adds_nothing(&self, judge: &Judge) -> bool {
        let process = self.told.caller.process;
        let known = |path: Option<&Path>, reason: &Reason| {
            judge.violations.has_reason(path.map(|path| path.as_os_str().as_bytes()), reason, process)
        };
        let explainer = &judge.explainer;
        let is_useless = || self.path.as_ref().is_some_and(|(path, _)| explainer.is_useless(path));
        (self.is_weak && (judge.violations.has_observed(process) || is_useless()))
            || self
                .path
                .as_ref()
                .is_some_and(|(path, access)| known(Some(path), &explainer.path_reason(path, *access)))
            || self.beyond.as_ref().is_some_and(|beyond| {
                let path = match beyond {
                    Beyond::Capability(closed) => closed.path.as_deref(),
                    _ => None,
                };
                known(path, &explainer.beyond_reason(beyond.clone()))
            })
    }

    /// The file of a process of the run, which its owner or the kernel closes, that the call is about.
    pub fn of_process(&self) -> bool {
        self.path.as_ref().is_some_and(|(path, _)| is_of_process(path))
    }

    /// Whether the path or process is among the words of the command line: many programs look for files that they do
    /// without.
    pub fn is_argument(&self) -> bool {
        let process = self.told.caller.process;
        if let Some(number) = self.process() {
            return caller::names_number(process, number);
        }
        let words = process::about(process, "cmdline").unwrap_or_default();
        self.given().is_some_and(|path| has_name(&words, &String::from_utf8_lossy(path)))
    }

    /// Whether the user knows the file by its name, as the settings are not that programs look for on their own.
    pub fn is_users_own(&self, paths: &RefusedPaths) -> bool {
        self.hidden(paths).is_some_and(|path| !path.iter().any(|name| name.as_bytes().starts_with(b".")))
    }

    /// Whether it is a file of the user's that somebody has named, as modules and included scripts are: the run has a
    /// directory of its own above it and above the directory that the program works in. Programs look for settings in
    /// one directory after the other up to the root, and do without. Of these the name was `sought` in others as well.
    pub fn is_beside(&self, paths: &RefusedPaths, sought: &Sought) -> bool {
        let is_beside = || {
            let path = self.hidden(paths)?;
            let above = paths.layout.as_deref()?.replaces(path)?;
            let directory = sought.directory.as_deref()?;
            // What a link leads to was not looked for under its own name.
            let given = tidy(&directory.join(OsStr::from_bytes(self.given()?)));
            let elsewhere =
                |other: &PathBuf| other.file_name() == given.file_name() && other.parent() != given.parent();
            let is_on_the_way = within::is_within(directory, given.parent()?);
            let is_looked_for = is_on_the_way && sought.paths.iter().any(elsewhere);
            Some(within::is_below(directory, above) && !is_looked_for && !self.is_manifest_above(sought))
        };
        self.is_users_own(paths) && is_beside().unwrap_or(false)
    }

    /// Whether it is the manifest of a project that the program works in. What there is to say of such a project, the
    /// run says at its end.
    pub fn is_manifest_above(&self, sought: &Sought) -> bool {
        let top = self.path.as_ref().and_then(|(path, _)| project::of_manifest(path));
        top.zip(sought.directory.as_deref()).is_some_and(|(top, directory)| within::is_within(directory, top))
    }

    /// The path, if it is there outside and not inside.
    pub fn hidden(&self, paths: &RefusedPaths) -> Option<&Path> {
        let (path, _) = self.path.as_ref()?;
        paths.layout.as_deref()?.hides(path).then_some(path)
    }

    /// Whether it is about a device: the rules that open devices are not among those that say where files change.
    pub fn is_of_device(&self) -> bool {
        let kind = self.path.as_ref().and_then(|(path, _)| Some(std::fs::metadata(path).ok()?.file_type()));
        kind.is_some_and(|kind| kind.is_char_device() || kind.is_block_device())
    }

    /// Whether it is about something in this directory.
    pub fn is_below(&self, directory: &Path) -> bool {
        self.path.as_ref().is_some_and(|(path, _)| within::is_below(path, directory))
    }

    /// Whether it would change what a mount keeps as it is.
    pub fn is_of_protected(&self, paths: &RefusedPaths) -> bool {
        let layout = paths.layout.as_deref().zip(self.path.as_ref());
        layout.is_some_and(|(layout, (path, access))| {
            access.intersects(CHANGES) && !layout.denies(path) && layout.keeper(path).is_some()
        })
    }

    /// Whether it is about a secret, as lists know it, or about what is denied.
    pub fn is_of_secret(&self, paths: &RefusedPaths, explainer: &Explainer) -> bool {
        let is_denied = |path: &Path| paths.layout.as_ref().is_some_and(|layout| layout.denies(path));
        self.path.as_ref().is_some_and(|(path, _)| is_denied(path) || explainer.knows_secret(path))
    }

    /// Whether it is about rights that the program would have outside.
    pub fn wants_rights(&self) -> bool {
        matches!(self.beyond, Some(Beyond::Gain { .. }))
    }

    /// Whether the call only looks at its files, and opens none.
    pub fn only_looks(&self) -> bool {
        self.beyond.is_none()
            && !self.by_filter
            && self.told.decoded.paths.iter().all(|argument| argument.access == Access::METADATA)
    }

    /// The directory that the call lists, or only opens, by its full name.
    pub fn listed(&self) -> Option<&Path> {
        let (directory, _) = self.path.as_ref()?;
        let lists = |argument: &PathArgument| {
            let is_read = argument.access == Access::READ && path::is_directory(directory);
            (argument.access == Access::LIST || is_read) && argument.path.starts_with(b"/")
        };
        self.told.decoded.paths.iter().all(lists).then_some(directory)
    }

    /// The path as the caller gave it.
    pub fn given(&self) -> Option<&[u8]> {
        self.told.decoded.paths.first().map(|argument| &*argument.path)
    }
}

/// Whether the words of a command have a name, and not only one that begins with it: `/dev` is not in `/dev/stdin`.
fn has_name(words: &str, name: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || "/._-".contains(next));
    let ends = |rest: &str| !goes_on(rest.strip_prefix('/').unwrap_or(rest));
    !name.is_empty()
        && words.match_indices(name).any(|(at, _)| words.get(at + name.len()..).is_some_and(ends))
}

#[cfg(test)]
mod tests {
    use super::has_name;

    #[test]
    fn a_name_is_among_the_words_as_a_whole() {
        for words in [
            "cat\0/srv/x\0",
            "sh\0-c\0cat /srv/x; ls\0",
            "cc\0-I/srv/x\0",
            "a\0--at=/srv/x:/y\0",
            "/srv/x",
            "ls\0/srv/x/\0",
        ] {
            assert!(has_name(words, "/srv/x"), "{words}");
        }
        for words in ["cat\0/srv/xy\0", "cat\0/srv/x/y\0", "cat\0/srv/x.c\0", "", "/srv"] {
            assert!(!has_name(words, "/srv/x"), "{words}");
        }
        assert!(!has_name("xargs\0-a\0a/b\0", "/") && has_name("ls\0/\0", "/") && !has_name("ls\0", ""));
    }
}
