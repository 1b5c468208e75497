//! What a command was refused, told by its words, where nobody else tells.
//!
//! Profiles of one program (`minimal`, `network`) have no place for the explainer library, which would cost their
//! short start too much. Such a command names what it reads on its command line. So where it fails and no line says
//! why, those words are looked at that are files which the rules close and permissions open.
//!
//! Where the run has a view of its own, so are words that are files out of sight: a static program, and calls within
//! libc, pass the library by.

use crate::explain::decode::Access;
use crate::explain::hint::Reason;
use crate::explain::infer::{InForce, closed};
use crate::host::landlock::Version;
use crate::plan::namespaces::Layout;
use crate::plan::rules::{self, PathRule};
use crate::plan::{OnViolation, Plan};
use crate::supervise::judge::Judge;
use crate::supervise::violation::{Confidence, Fate, Kind, Violation};
use crate::supervise::{Ending, Summary};
use crate::sys::access::{self, Permission};
use crate::sys::path;
use crate::sys::process::Pid;
use crate::text::escape;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Maximum number of words that are looked at.
const MOST: usize = 64;
/// And of their parts in one word.
const MOST_PIECES: usize = 256;
/// Maximum number of files out of sight that are named.
const MOST_HIDDEN: usize = 3;

/// The words of a command, and what is looked for in them.
pub struct Arguments {
    /// The name of the program.
    name: OsString,
    words: Vec<OsString>,
    directory: PathBuf,
    looks_for: Wanted,
}

/// Which files are named.
enum Wanted {
    /// What the rules close.
    Closed(InRules),
    /// What is out of sight in this view. `home`: what a shell makes of `~`.
    Hidden { layout: Rc<Layout>, home: Option<PathBuf> },
}

/// The rules that a command runs under.
struct InRules {
    rules: Vec<PathRule>,
    /// Socket files that it may connect to.
    sockets: Vec<PathBuf>,
    /// Whether files are named too.
    names_files: bool,
    version: Version,
}

impl Arguments {
    /// Of a run whose refusals nobody else names.
    pub fn of(plan: &Plan) -> Option<Arguments> {
        let rules = plan.paths.as_ref()?;
        let refuses = matches!(plan.on_violation, OnViolation::Errno(_)) && !plan.unconfined && !plan.nested;
        // What a command that writes was refused, its words do not tell.
        let writes = || rules.iter().any(|rule| rule.rights.changes_files() && rule.path.is_dir());
        let looks_for = match &plan.namespaces {
            Ok(layout) => Wanted::Hidden { layout: layout.clone(), home: plan.home.clone() },
            Err(_) if plan.explainer.is_some() || plan.calls.allows("execve") || writes() => return None,
            Err(_) => Wanted::Closed(InRules {
                rules: rules.clone(),
                sockets: plan.sockets.clone(),
                names_files: !plan.watch_paths,
                version: plan.landlock,
            }),
        };
        let name = plan.arguments.first().map(Path::new).and_then(Path::file_name)?;
        refuses.then(|| Arguments {
            name: name.to_os_string(),
            words: plan.arguments.iter().skip(1).take(MOST).cloned().collect(),
            directory: plan.directory.clone(),
            looks_for,
        })
    }

    /// Names the files, if the command has failed without a line.
    pub fn tell(self, summary: &Summary, process: Pid, judge: &mut Judge) {
        let failed = matches!(summary.ending, Ending::Exited(status) if status != 0);
        if !failed || judge.violations.distinct() > 0 {
            return;
        }
        match &self.looks_for {
            Wanted::Hidden { layout, home } => self.tell_hidden(layout, home.as_deref(), process, judge),
            Wanted::Closed(closed) => self.tell_closed(closed, process, judge),
        }
    }

    fn tell_closed(&self, own: &InRules, process: Pid, judge: &mut Judge) {
        let in_force = InForce { version: own.version, rules: &own.rules, layout: None, has_failed: true };
        for word in &self.words {
            let path = self.directory.join(word);
            let Some((closed, call, reason)) = own.socket(&path, judge).or_else(|| {
                // With --explain the opening of a file has been named.
                let closed = own.names_files.then(|| closed(in_force, &path)).flatten()?;
                let reason = judge.explainer.path_reason(&closed, Access::READ);
                Some((closed, "openat", reason))
            }) else {
                continue;
            };
            self.tell_one(word.as_bytes(), closed, (call, reason), process, judge);
        }
    }

    fn tell_hidden(&self, layout: &Layout, home: Option<&Path>, process: Pid, judge: &mut Judge) {
        let mut told = BTreeSet::new();
        for piece in self.words.iter().flat_map(|word| pieces(word.as_bytes())) {
            if told.len() == MOST_HIDDEN {
                return;
            }
            let path = self.directory.join(as_a_shell(piece, home));
            if let Some(path) = hidden(layout, &path).filter(|path| told.insert(path.clone())) {
                let reason = judge.explainer.path_reason(&path, Access::READ);
                self.tell_one(piece, path, ("openat", reason), process, judge);
            }
        }
    }

    /// The call is the one that would have failed: what has failed, the words do not tell.
    fn tell_one(
        &self,
        word: &[u8],
        path: PathBuf,
        (call, reason): (&str, Reason),
        process: Pid,
        judge: &mut Judge,
    ) {
        let reason = judge.explainer.named_reason(&path, reason);
        let violation = Violation {
            fate: Fate::Blocked,
            kind: Kind::Path,
            confidence: Confidence::Named,
            call: call.to_string(),
            arguments: format!("\"{}\"", escape(word, 400)),
            path: Some(path.into_os_string().into_vec()),
            address: None,
            reason,
        };
        judge.violations.tell_of(violation, self.name.as_bytes(), process);
    }
}

impl InRules {
    /// A UNIX socket that permissions open and no rule of the run does.
    fn socket(&self, path: &Path, judge: &Judge) -> Option<(PathBuf, &'static str, Reason)> {
        let real = path.canonicalize().ok()?;
        let is_closed = || !rules::may_connect(&self.rules, &self.sockets, None, &real);
        let is_refused = path::is_socket(&real) && access::allows(&real, Permission::WRITE) && is_closed();
        is_refused.then(|| (real.clone(), "connect", judge.explainer.socket_reason(&real)))
    }
}

/// What may be paths in a word: all of it, and what it has where a shell would take it apart, or a flag its value.
fn pieces(word: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = [word].into_iter().filter(|word| word.len() < libc::PATH_MAX as usize);
    let parts =
        word.split(|byte| b" \t\n'\"=;|&()<>:,".contains(byte)).filter(move |part| part.len() < word.len());
    whole.chain(parts).filter(|piece| piece.contains(&b'/')).take(MOST_PIECES)
}

fn as_a_shell(piece: &[u8], home: Option<&Path>) -> PathBuf {
    let below = ["~/", "$HOME/", "${HOME}/"].into_iter().find_map(|name| piece.strip_prefix(name.as_bytes()));
    match home.zip(below) {
        Some((home, below)) => home.join(OsStr::from_bytes(below)),
        None => PathBuf::from(OsStr::from_bytes(piece)),
    }
}

/// The file at a path, where permissions let it be read and it is out of sight. Connections to sockets are all seen.
fn hidden(layout: &Layout, path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok().filter(|real| !path::is_socket(real))?;
    let is_there = |outside: PathBuf| path::is_there(&outside);
    let is_hidden = layout.hides(&real) && !layout.outside(&real).is_some_and(is_there);
    (is_hidden && access::allows(&real, Permission::READ)).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_where_a_shell_or_a_flag_has_them() {
        let found =
            |word: &'static str| pieces(word.as_bytes()).map(String::from_utf8_lossy).collect::<Vec<_>>();
        assert_eq!(found("../a b"), ["../a b", "../a"]);
        assert_eq!(
            found("cd \"$HOME/src\" && cat <~/x;ls"),
            ["cd \"$HOME/src\" && cat <~/x;ls", "$HOME/src", "~/x"]
        );
        assert_eq!(found("--file=../t"), ["--file=../t", "../t"]);
        assert!(found("name").is_empty());
        let home = Path::new("/home/u");
        assert_eq!(as_a_shell(b"${HOME}/x", Some(home)), Path::new("/home/u/x"));
        assert_eq!(as_a_shell(b"a/~/x", Some(home)), Path::new("a/~/x"));
        assert_eq!(as_a_shell(b"~/x", None), Path::new("~/x"));
    }
}
