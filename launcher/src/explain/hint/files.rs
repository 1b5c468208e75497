//! Why a file, directory, program or socket was refused, and what would allow it.

use crate::explain::decode::Access;
use crate::explain::hint::{CHANGES, Explainer, Hint, Reason, Rule, place};
use crate::explain::sensitive::{is_of_other_machines, secrets_at, service_at};
use crate::plan::commands::{Obstacle, Place};
use crate::plan::namespaces::git::shape::has_others;
use crate::sys::path::{self, is_of_process};
use crate::sys::within::{is_below, is_within};
use std::path::{Path, PathBuf};

impl Explainer {
    /// Whether a list knows a secret at a path, or around it.
    pub fn knows_secret(&self, path: &Path) -> bool {
        secrets_at(path, self.home.as_deref()).is_some()
    }

    /// Whether a file is of use with other machines only, and the run reaches none.
    pub fn is_useless(&self, path: &Path) -> bool {
        !self.leads_out && is_of_other_machines(path, self.home.as_deref())
    }

    /// Why a path was refused and what would allow it.
    pub fn path_reason(&self, path: &Path, access: Access) -> Reason {
        let writes = access.intersects(CHANGES);
        let executes = access.intersects(Access::EXECUTE);
        if let Some(reason) = self.shield_reason(path, access) {
            return reason;
        }
        if executes
            && !writes
            && let Some(reason) = self.command_reason(path)
        {
            return reason;
        }
        let (verb, flag, key) = match (writes, executes) {
            (true, true) => ("change and execute", "--rwx", "paths.write"),
            (true, _) => ("change", "--rw", "paths.write"),
            (_, true) => ("execute", "--rox", "paths.execute"),
            _ => ("read", "--ro", "paths.read"),
        };
        let target = match writes {
            true => place::to_open(path, access),
            false => Some(path.to_path_buf()).filter(|path| !is_of_process(path)),
        };
        let target = target.map(|target| match place::repository_of(&target) {
            Some(repository) => repository.to_path_buf(),
            None => target,
        });
        let mut what = format!("may not {verb} {}", place::quoted(path));
        if let Some(hidden) = self.out_of_sight(path) {
            what.push_str(&hidden);
        }
        let rule = self.rule(&what, key);
        if access.intersects(Access::CREATE) && target.is_some() && target == self.closed_home {
            return Reason::of(rule, Some(Hint::of(["--home", "private"])));
        }
        let home = self.home.as_deref();
        if !writes && let Some(hint) = self.by_key_agent(path) {
            return Reason::of(rule, Some(hint));
        }
        let hint = target.map(|target| {
            let whole = home.filter(|home| is_within(home, &target));
            let opens_home = whole.map(|_| "opens your home directory, with its keys and passwords");
            Hint::default().and(flag, &target).noting(opens_home.or_else(|| secrets_at(&target, home)))
        });
        Reason::of(rule, hint)
    }

    /// What lets a command use a key of ssh's that it may not read.
    fn by_key_agent(&self, path: &Path) -> Option<Hint> {
        let agent = self.key_agent.as_ref().filter(|_| self.attempts.connects_unix())?;
        agent.hint_for(path, self.home.as_deref()?)
    }

    /// Why a connection to a UNIX socket finds nothing that is there outside, and what would allow it.
    pub fn hidden_socket(&self, path: &Path) -> Option<Reason> {
        if let Some(rule) = self.denial(path) {
            return Some(Reason::of(rule, None));
        }
        let hidden = self.out_of_sight(path)?;
        let rule = self.rule(&format!("may not connect to {}{hidden}", place::quoted(path)), "network.unix");
        Some(Reason::of(rule, Some(Hint::default().and("--unix", path).noting(service_at(path)))))
    }

    /// Why a UNIX socket is not connected to, and what would allow it.
    pub fn socket_reason(&self, path: &Path) -> Reason {
        let rule = self.rule(&format!("may not connect to {}", place::quoted(path)), "network.unix");
        let usable = self.attempts.connects_unix();
        Reason::of(rule, usable.then(|| Hint::default().and("--unix", path).noting(service_at(path))))
    }

    /// That a path which is there outside is not there inside.
    fn out_of_sight(&self, path: &Path) -> Option<String> {
        let is_there = || path::is_there(path) || path.parent().is_some_and(path::is_there);
        let at = self.layout.as_ref()?.replaces(path).filter(|_| is_there())?;
        Some(format!(", which is out of sight: the run has a directory of its own at {}", place::quoted(at)))
    }

    /// Why no rule can open a path: it is denied, or something outside relies on it.
    fn shield_reason(&self, path: &Path, access: Access) -> Option<Reason> {
        let layout = self.layout.as_ref();
        let writes = access.intersects(CHANGES);
        let of_entry = access.intersects(Access::CREATE | Access::REMOVE | Access::REFER);
        let parent = path.parent().filter(|_| of_entry && self.layout.is_none());
        if let Some(rule) = self.denial(path).or_else(|| self.denial(parent?)) {
            return Some(Reason::of(rule, None));
        }
        let layout = layout.filter(|layout| layout.shuts(path, writes))?;
        if layout.denies(path) {
            return Some(Reason::of(
                self.rule(&format!("denies {}", place::quoted(path)), "paths.deny"),
                None,
            ));
        }
        // Of all that is refused below one that is protected, one line is told.
        let kept = layout.keeper(path).map_or(path, PathBuf::as_path);
        let is_above = kept == path && layout.pins.contains(path);
        let what = match self.other_repository(kept).filter(|_| access.contains(Access::REMOVE)) {
            Some(top) => format!(
                "protects what git executes in {}; to remove that repository, run rm -rf {0} outside",
                place::quoted(top)
            ),
            None => format!(
                "protects {}{}, which something outside could execute or trust later; run this command outside",
                if is_above { "what is in " } else { "" },
                place::quoted(kept),
            ),
        };
        Some(Reason::of(self.rule(&what, "paths.protect"), None))
    }

    /// The working tree of the repository that a path is in, if that is another one than the workspace's. What it keeps
    /// of linked worktrees and submodules, and the file that leads to it, go with one of those.
    fn other_repository<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let git = path.ancestors().find(|above| above.ends_with(".git"))?;
        let top = git.parent()?;
        let is_of_other = path.ancestors().any(|above| above.parent() == Some(git) && has_others(above));
        if is_of_other || !path::is_directory(git) {
            return None;
        }
        let is_below = |workspace: &PathBuf| is_below(top, workspace);
        self.workspace.as_ref().is_some_and(is_below).then_some(top)
    }

    /// The rule that denies a path. Without mounts, what leads to a denied path is closed too.
    fn denial(&self, path: &Path) -> Option<Rule> {
        let closes =
            |denied: &PathBuf| is_within(path, denied) || (self.layout.is_none() && is_within(denied, path));
        let said = |denied: &Path| match is_within(path, denied) {
            true => format!("denies {}", place::quoted(path)),
            false => format!("denies {}, so {} is closed", place::quoted(denied), place::quoted(path)),
        };
        if let Some((given, real)) = self.denied_by_flag.iter().find(|(_, real)| closes(real)) {
            let text = format!("--deny {} {}", place::quoted(given), said(real));
            return Some(Rule { text, profile: None, key: Some("--deny") });
        }
        let denied = self.denied.iter().find(|denied| closes(denied))?;
        Some(self.rule(&said(denied), "paths.deny"))
    }

    /// Why a program may not be executed, where that is a rule about programs.
    fn command_reason(&self, path: &Path) -> Option<Reason> {
        let commands = self.commands.as_ref()?;
        match commands.obstacle(path)? {
            Obstacle::Blocked(place) => {
                let text = format!("{} blocks {}", place.rule, place::quoted(&place.file.path));
                let rule = Rule { text, profile: None, key: Some("commands.block") };
                Some(Reason::of(rule, None))
            }
            Obstacle::NotAllowed => {
                let shown = place::quoted(path);
                let by_flag = |place: &Place| place.rule.starts_with("--allow-command");
                let rule = match commands.allow.iter().flatten().any(by_flag) {
                    true => Rule {
                        text: format!("--allow-command names other programs than {shown}"),
                        profile: None,
                        key: Some("--allow-command"),
                    },
                    false => self.rule(&format!("may not execute {shown}"), "commands.allow"),
                };
                Some(Reason::of(rule, Some(Hint::default().and("--allow-command", path))))
            }
        }
    }
}
