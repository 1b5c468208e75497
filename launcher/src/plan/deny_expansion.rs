//! Rights that are taken from paths below granted ones. Landlock cannot subtract, so the children of the granted
//! directory get them one by one, all but the one that leads to such a path, and so on down to it. What is made
//! directly in such a directory later does not have them.

use crate::error::Refusal;
use crate::plan::rules::{PathRights, PathRule};
use crate::sys::number::FileNumber;
use crate::sys::path::{self, canonical, is_there};
use crate::sys::plain;
use crate::text::shown;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// More rules than this are a mistake: each costs microseconds at every start.
const MOST: usize = 16384;

/// The same rules without the denied paths, and the directories that are granted by their children only.
pub fn without(rules: Vec<PathRule>, denied: &[PathBuf]) -> Result<(Vec<PathRule>, Vec<PathBuf>), Refusal> {
    take(rules, denied, PathRights::ALL, "deny")
}

/// The same rules without those about denied paths and what is below them: where the rest is held by mounts.
pub fn without_denied(rules: Vec<PathRule>, denied: &[PathBuf]) -> Vec<PathRule> {
    if denied.is_empty() {
        return rules;
    }
    let ends: HashSet<PathBuf> = denied.iter().map(|path| resolve(path)).collect();
    let denied = |rule: &PathRule| rule.place().ancestors().any(|path| ends.contains(path));
    rules.into_iter().filter(|rule| !denied(rule)).collect()
}

/// The same rules without the right to execute these paths.
pub fn without_executing(rules: Vec<PathRule>, blocked: &[PathBuf]) -> Result<Vec<PathRule>, Refusal> {
    let execute = PathRights { execute: true, ..PathRights::default() };
    Ok(take(rules, blocked, execute, "block")?.0)
}

fn take(
    rules: Vec<PathRule>,
    from: &[PathBuf],
    rights: PathRights,
    verb: &'static str,
) -> Result<(Vec<PathRule>, Vec<PathBuf>), Refusal> {
    if from.is_empty() {
        return Ok((rules, Vec::new()));
    }
    let ends: HashSet<PathBuf> = from.iter().map(|path| resolve(path)).collect();
    let above = ends.iter().flat_map(|end| end.ancestors().skip(1)).collect();
    let linked = if rights == PathRights::ALL { with_other_names(&ends) } else { HashSet::new() };
    let mut taking =
        Taking { ends: &ends, linked, above, rights, verb, kept: Vec::new(), opened: Vec::new() };
    for rule in rules {
        let rule = real(rule);
        if rule.path.ancestors().any(|path| ends.contains(path)) || taking.is_linked(&rule.path) {
            taking.keep(PathRule { rights: rule.rights.without(rights), ..rule });
        } else {
            taking.grant(rule)?;
        }
    }
    Ok((taking.kept, taking.opened))
}

/// Which of these files have several names. A rule is about a file, not about a name: one for another name would open
/// this one as well. (Of programs that may not be executed all names are among the ends.)
fn with_other_names(ends: &HashSet<PathBuf>) -> HashSet<FileNumber> {
    let files = ends.iter().filter_map(|end| end.symlink_metadata().ok());
    files.filter(|meta| !meta.is_dir() && meta.nlink() > 1).map(|meta| FileNumber::of(&meta)).collect()
}

/// The same rule by its real path; of what is not there the path stays as it is.
pub fn real(rule: PathRule) -> PathRule {
    match path::real(&rule.path) {
        Ok(path) => PathRule { path, follows: false, ..rule },
        Err(_) => rule,
    }
}

/// Where a denied path really is. Of one that does not exist, the part that does is resolved, so that it can't
/// be made under another name.
pub fn resolve(path: &Path) -> PathBuf {
    let missing = path.ancestors().take_while(|above| !is_there(above)).count();
    let Some(existing) = path.ancestors().nth(missing) else { return path.to_path_buf() };
    let rest: PathBuf = path.strip_prefix(existing).map(Path::to_path_buf).unwrap_or_default();
    if rest.as_os_str().is_empty() { canonical(existing) } else { canonical(existing).join(rest) }
}

/// One taking of rights.
struct Taking<'a> {
    /// From these, and all below.
    ends: &'a HashSet<PathBuf>,
    /// The files among them that have other names.
    linked: HashSet<FileNumber>,
    /// The directories above them.
    above: HashSet<&'a Path>,
    rights: PathRights,
    /// What is done to them, for messages.
    verb: &'static str,
    kept: Vec<PathRule>,
    /// The directories whose children were granted one by one.
    opened: Vec<PathBuf>,
}

impl Taking<'_> {
    fn keep(&mut self, rule: PathRule) {
        if rule.rights != PathRights::default() {
            self.kept.push(rule);
        }
    }

    /// Whether a path is another name of one of the ends.
    fn is_linked(&self, path: &Path) -> bool {
        let same = |meta: std::fs::Metadata| self.linked.contains(&FileNumber::of(&meta));
        !self.linked.is_empty() && path.symlink_metadata().is_ok_and(same)
    }

    /// Keeps a rule that is about none of the ends itself.
    fn grant(&mut self, rule: PathRule) -> Result<(), Refusal> {
        let lost = rule.rights.common(self.rights);
        if lost == PathRights::default() || !self.above.contains(&*rule.path) {
            self.keep(rule);
            return if self.kept.len() > MOST { Err(self.too_many()) } else { Ok(()) };
        }
        let verb = self.verb;
        let unreadable = |error: std::io::Error| {
            let (path, cause) = (shown(&rule.path), plain(&error));
            Refusal::new(format!(
                "cannot {verb} a path below '{path}': listing the rest of it failed: {cause}; {verb} '{path}' \
                 as a whole"
            ))
        };
        if !self.opened.contains(&rule.path) {
            self.opened.push(rule.path.clone());
        }
        for entry in rule.path.read_dir().map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            let path = entry.path();
            // A rule follows a symbolic link; what the link leads to has rules of its own, or none.
            if kind.is_symlink() || self.ends.contains(&path) || self.is_linked(&path) {
                continue;
            }
            // Gone by the time it is opened: nothing is lost.
            self.grant(PathRule { path, rights: lost, optional: true, built_in: true, follows: false })?;
        }
        self.keep(PathRule { rights: rule.rights.without(self.rights), ..rule });
        Ok(())
    }

    fn too_many(&self) -> Refusal {
        let path = self.opened.last().map_or_else(String::new, |path| shown(path));
        let verb = self.verb;
        Refusal::new(format!(
            "cannot {verb} paths one by one around '{path}': more than {MOST} rules; {verb} a whole directory instead"
        ))
    }
}
