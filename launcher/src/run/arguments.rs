//! What a command that starts no programs was refused to read, told by its words.
//!
//! Profiles of one program (`minimal`, `network`) have no place for the explainer library, which would cost their
//! short start too much. Such a command names what it reads on its command line. So where it fails and no line says
//! why, those words are looked at that are files which the rules close and permissions open.

use crate::explain::decode::Access;
use crate::explain::hint::Reason;
use crate::explain::infer::{InForce, closed};
use crate::host::landlock::Version;
use crate::plan::rules::{self, PathRule};
use crate::plan::{OnViolation, Plan};
use crate::supervise::judge::Judge;
use crate::supervise::violation::{Confidence, Fate, Kind, Violation};
use crate::supervise::{Ending, Summary};
use crate::sys::access::{self, Permission};
use crate::sys::process::Pid;
use crate::text::escape;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Maximum number of words that are looked at.
const MOST: usize = 64;

/// The words of a command, and the rules that it runs under.
pub struct Arguments {
    /// The name of the program.
    name: OsString,
    words: Vec<OsString>,
    directory: PathBuf,
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
        let is_explained = plan.explainer.is_some() || plan.namespaces.is_ok();
        // What a command that writes was refused, its words do not tell.
        let writes = rules.iter().any(|rule| rule.rights.changes_files() && rule.path.is_dir());
        let refuses = matches!(plan.on_violation, OnViolation::Errno(_)) && !plan.unconfined && !plan.nested;
        let is_meant = !is_explained && !writes && refuses && !plan.calls.allows("execve");
        let name = plan.arguments.first().map(Path::new).and_then(Path::file_name)?;
        is_meant.then(|| Arguments {
            name: name.to_os_string(),
            words: plan.arguments.iter().skip(1).take(MOST).cloned().collect(),
            directory: plan.directory.clone(),
            rules: rules.clone(),
            sockets: plan.sockets.clone(),
            names_files: !plan.watch_paths,
            version: plan.landlock,
        })
    }

    /// Names the files, if the command has failed without a line.
    pub fn tell(self, summary: &Summary, process: Pid, judge: &mut Judge) {
        let failed = matches!(summary.ending, Ending::Exited(status) if status != 0);
        if !failed || judge.violations.distinct() > 0 {
            return;
        }
        let in_force = InForce { version: self.version, rules: &self.rules, layout: None, has_failed: true };
        for word in &self.words {
            let path = Path::new(word);
            let path = self.directory.join(path);
            let Some((closed, call, reason)) = self.socket(&path, judge).or_else(|| {
                // With --explain the opening of a file has been named.
                let closed = self.names_files.then(|| closed(in_force, &path)).flatten()?;
                let reason = judge.explainer.path_reason(&closed, Access::READ);
                Some((closed, "openat", reason))
            }) else {
                continue;
            };
            let violation = Violation {
                fate: Fate::Blocked,
                kind: Kind::Path,
                confidence: Confidence::Inferred,
                call: call.to_string(),
                arguments: format!("\"{}\"", escape(word.as_bytes(), 400)),
                path: Some(closed.into_os_string().into_vec()),
                address: None,
                reason,
            };
            judge.violations.tell_of(violation, self.name.as_bytes(), process);
        }
    }
    /// A UNIX socket that permissions open and no rule of the run does.
    fn socket(&self, path: &Path, judge: &Judge) -> Option<(PathBuf, &'static str, Reason)> {
        let real = path.canonicalize().ok()?;
        let is_socket = real.metadata().is_ok_and(|meta| meta.file_type().is_socket());
        let is_closed = || !rules::may_connect(&self.rules, &self.sockets, None, &real);
        let is_refused = is_socket && access::allows(&real, Permission::WRITE) && is_closed();
        is_refused.then(|| (real.clone(), "connect", judge.explainer.socket_reason(&real)))
    }
}
