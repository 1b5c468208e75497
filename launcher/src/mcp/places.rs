//! What commands must not move: the paths that the policy names, and where commands may write.
//!
//! A run looks its paths up anew. Who may write in a directory on the way to one could have put a link there before,
//! and the run would open what that leads to. So no path of the policy may lie below what another one lets commands
//! change. This holds for the flags, and for each flag that the user grants later, in both directions.

use crate::error::Refusal;
use crate::plan::Plan;
use crate::sys::path;
use crate::sys::within::is_within;
use crate::text::shown;
use std::path::{Path, PathBuf};

/// Flags whose values are paths that they open.
pub const OPENING: [&str; 6] = ["ro", "rox", "rw", "rwx", "unix", "audit-log"];

/// What a path is to the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    /// The workspace.
    Workspace,
    /// A flag, of this name, opens it.
    Flag(String),
    /// The profile of this name is in it.
    Profile(String),
}

/// A path that the policy names.
#[derive(Clone, Debug)]
struct Named {
    role: Role,
    path: PathBuf,
    /// No link was in it when the server started.
    was_real: bool,
}

/// All of them, and the directories that commands may change, by their real paths.
#[derive(Clone, Debug)]
pub struct Places {
    named: Vec<Named>,
    roots: Vec<PathBuf>,
}

impl Places {
    /// Those of a plan, without its flags.
    pub fn of(plan: &Plan, workspace: &Path, directory: &Path) -> Places {
        let mut places = Places { named: Vec::new(), roots: plan.writable() };
        places.name(Role::Workspace, workspace.to_path_buf());
        for file in plan.profile.files.iter() {
            places.name(Role::Profile(plan.profile.name.to_string()), directory.join(file));
        }
        places
    }

    fn name(&mut self, role: Role, path: PathBuf) {
        let was_real = path::real(&path).is_ok_and(|real| real == path);
        self.named.push(Named { role, path, was_real });
    }

    /// With the value of a flag, whose name has no dashes.
    pub fn add(&mut self, flag: &str, value: &Path) {
        if matches!(flag, "rw" | "rwx") {
            self.roots.push(value.to_path_buf());
        }
        if OPENING.contains(&flag) {
            self.name(Role::Flag(flag.to_string()), value.to_path_buf());
        }
    }

    /// The same with a flag that the user is asked for. `None` where commands would decide what is at a path, or a link
    /// is in the one that the flag opens.
    pub fn with(&self, flag: &str, value: &Path) -> Option<Places> {
        let mut places = self.clone();
        places.add(flag, value);
        let is_real = places.named.iter().skip(self.named.len()).all(|named| named.was_real);
        (is_real && places.check().is_ok()).then_some(places)
    }

    /// Refuses a policy that names a path of which commands decide what it is.
    pub fn check(&self) -> Result<(), Refusal> {
        let moved = self.named.iter().find_map(|named| {
            let root = self.roots.iter().find(|root| named.is_decided_in(root))?;
            Some((named, root))
        });
        let Some((Named { role, path, .. }, root)) = moved else { return Ok(()) };
        let (path, root) = (shown(path), shown(root));
        Err(Refusal::new(match role {
            Role::Workspace => format!(
                "refused the workspace '{path}': commands may change '{root}', and so what is at that path when the \
                 next one starts; name a workspace elsewhere, or open less"
            ),
            Role::Flag(name) => format!(
                "refused --{name} '{path}': commands may change '{root}', and so what is at that path when the next \
                 one starts; leave the flag out, or name a path elsewhere"
            ),
            Role::Profile(name) => format!(
                "refused the profile '{name}': commands may change '{root}', and so what is in '{path}', the policy \
                 of the next one; keep the file elsewhere"
            ),
        }))
    }

    /// Whether commands may change what is at a path, or below it.
    pub fn has_roots_in(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| is_within(root, path))
    }

    /// Refuses to go on where a link has come into a path. Nobody but the user could have put it there.
    pub fn are_still_real(&self) -> Result<(), String> {
        let is_other =
            |named: &&Named| named.was_real && path::real(&named.path).is_ok_and(|real| real != named.path);
        match self.named.iter().find(is_other) {
            None => Ok(()),
            Some(named) => Err(format!(
                "refused to run the command: a link has come into the path '{}' since this server started, whose \
                 policy names it; the user can take the link away, or start the server anew",
                shown(&named.path)
            )),
        }
    }
}

impl Named {
    /// Whether who may write in a directory decides what is at this path.
    fn is_decided_in(&self, root: &Path) -> bool {
        let way = path::way(&self.path);
        let stays_ours = match &self.role {
            Role::Workspace => false,
            Role::Flag(name) => name == "audit-log",
            Role::Profile(_) => true,
        };
        self.path != root && way.passes(root) || stays_ours && is_within(&way.real, root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_question_is_about_its_own_path_alone() {
        let scratch = Scratch::create(None).unwrap();
        let base = path::real(scratch.path()).unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        symlink("real", base.join("link")).unwrap();
        let mut places = Places { named: Vec::new(), roots: vec![base.join("workspace")] };
        // A profile may be named by a link of the user's.
        places.name(Role::Profile("own".to_string()), base.join("link/own.json"));
        assert!(places.with("connect", Path::new("example.org:443")).is_some());
        assert!(places.with("ro", &base.join("real")).is_some());
        assert!(places.with("ro", &base.join("link")).is_none());
        assert!(places.with("ro", &base.join("workspace/file")).is_none());
    }
}
