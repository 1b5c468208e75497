//! Denied paths below granted ones. Landlock cannot subtract, so the children of the granted directory are
//! granted one by one, all but the one that leads to the denied path, and so on down to it. What is made
//! directly in such a directory later is granted to nobody.

use crate::launch::landlock::{canonical, is_below, plain};
use crate::launch::policy::PathRule;
use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use std::path::{Path, PathBuf};

/// More rules than this are a mistake: each costs microseconds at every start.
const MOST: usize = 4096;

/// The same rules without the denied paths, and the directories that are granted by their children only.
pub fn without(rules: Vec<PathRule>, denied: &[PathBuf]) -> Result<(Vec<PathRule>, Vec<PathBuf>), Refusal> {
    if denied.is_empty() {
        return Ok((rules, Vec::new()));
    }
    let denied: Vec<PathBuf> = denied.iter().map(|path| resolve(path)).collect();
    let (mut kept, mut opened) = (Vec::with_capacity(rules.len()), Vec::new());
    for rule in rules {
        let rule = PathRule { path: canonical(&rule.path), ..rule };
        if !denied.iter().any(|d| rule.path.starts_with(d)) {
            grant(rule, &denied, &mut kept, &mut opened)?;
        }
    }
    Ok((kept, opened))
}

/// Where a denied path really is. Of one that does not exist, the part that does is resolved, so that it can't
/// be made under another name.
fn resolve(path: &Path) -> PathBuf {
    let missing = path.ancestors().take_while(|p| p.symlink_metadata().is_err()).count();
    let Some(existing) = path.ancestors().nth(missing) else { return path.to_path_buf() };
    let rest: PathBuf = path.strip_prefix(existing).map(Path::to_path_buf).unwrap_or_default();
    if rest.as_os_str().is_empty() { canonical(existing) } else { canonical(existing).join(rest) }
}

fn grant(
    rule: PathRule,
    denied: &[PathBuf],
    kept: &mut Vec<PathRule>,
    opened: &mut Vec<PathBuf>,
) -> Result<(), Refusal> {
    if !denied.iter().any(|d| is_below(d, &rule.path)) {
        kept.push(rule);
        return if kept.len() > MOST { Err(too_many(&rule_path(kept))) } else { Ok(()) };
    }
    let unreadable = |error: std::io::Error| {
        let (path, cause) = (shown(&rule.path), plain(&error));
        Refusal::new(format!(
            "cannot deny a path below '{path}': listing the rest of it failed: {cause}; deny '{path}' as a whole"
        ))
    };
    if !opened.contains(&rule.path) {
        opened.push(rule.path.clone());
    }
    for entry in rule.path.read_dir().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        let path = entry.path();
        // A rule follows a symbolic link; what the link leads to has rules of its own, or none.
        if kind.is_symlink() || denied.contains(&path) {
            continue;
        }
        // Gone by the time it is opened: nothing is lost.
        grant(PathRule { path, optional: true, ..rule }, denied, kept, opened)?;
    }
    Ok(())
}

fn rule_path(kept: &[PathRule]) -> PathBuf {
    kept.last().map(|rule| rule.path.clone()).unwrap_or_default()
}

fn too_many(path: &Path) -> Refusal {
    let path = shown(path);
    Refusal::new(format!(
        "cannot deny paths one by one around '{path}': more than {MOST} rules; deny a whole directory instead"
    ))
}
