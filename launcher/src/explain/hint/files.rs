//! Why a file, directory, program or socket was refused, and what would allow it.

use crate::explain::decode::Access;
use crate::explain::hint::{CHANGES, Explainer, Hint, Reason, Rule, place};
use crate::explain::project;
use crate::explain::sensitive::{is_of_other_machines, secrets_at, service_at};
use crate::plan::commands::{Obstacle, Place};
use crate::plan::namespaces::Layout;
use crate::plan::namespaces::git::shape::has_others;
use crate::plan::namespaces::renewed::{TERMINALS, number_of_terminal};
use crate::sys::path::{self, is_of_process};
use crate::sys::within::{is_below, is_within};
use std::fs;
use std::os::unix::ffi::OsStrExt;
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
        let shielded = self.shield_reason(path, access).or_else(|| self.device_reason(path, access));
        if let Some(reason) = shielded.or_else(|| self.replacing_reason(path, access)) {
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
        let target = target.map(|target| {
            let project =
                || self.project(&target).filter(|_| verb == "read" && access.intersects(Access::READ));
            let whole = place::whole_of(&target, executes && !writes).or_else(project).map(Path::to_path_buf);
            whole.unwrap_or(target)
        });
        let mut what = format!("may not {verb} {}", place::quoted(path));
        if let Some(hidden) = self.out_of_sight(path) {
            what.push_str(", which ");
            what.push_str(&hidden);
        }
        let rule = self.rule(&what, key);
        if access.intersects(Access::CREATE) && target.is_some() && target == self.closed_home {
            return Reason::of(rule, Some(Hint::of(["--home", "private"])));
        }
        if !writes && let Some(hint) = self.by_key_agent(path) {
            return Reason::of(rule, Some(hint));
        }
        Reason::of(rule, target.map(|target| self.opening(flag, &target)))
    }

    /// The project whose manifest a path is, where all of it is out of sight: a tool that reads the manifest of a
    /// dependency reads the rest of it next. It is not opened as a whole for what has secrets at its top, or more
    /// than itself: settings, the workspace, the home.
    fn project<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let project = project::of_manifest(path)?;
        let is_hidden = self.layout.as_deref().is_some_and(|layout| layout.hides(project));
        let is_of_settings = || project.iter().any(|name| name.as_bytes().starts_with(b"."));
        let holds = |own: &Option<PathBuf>| own.as_deref().is_some_and(|own| is_within(own, project));
        let has_secrets = || {
            let mut names = fs::read_dir(project).into_iter().flatten().filter_map(Result::ok);
            names.any(|entry| self.knows_secret(&entry.path()))
        };
        let is_meant = is_hidden && !is_of_settings() && !holds(&self.workspace) && !holds(&self.home);
        (is_meant && !has_secrets()).then_some(project)
    }

    /// A flag that opens a path, with what else that opens.
    fn opening(&self, flag: &str, path: &Path) -> Hint {
        let home = self.home.as_deref();
        let whole = home.filter(|home| is_within(home, path));
        let opens_home = whole.map(|_| "opens your home directory, with its keys and passwords");
        Hint::default().and(flag, path).noting(opens_home.or_else(|| secrets_at(path, home)))
    }

    /// Why a device that the run may write to keeps its mode, owner and times: a rule opens what is read and written
    /// there, and no flag opens more. Programs do without the mode of a terminal, as screen(1) does.
    fn device_reason(&self, path: &Path, access: Access) -> Option<Reason> {
        let of_entry = Access::CREATE | Access::REMOVE | Access::REFER;
        let changes = access.intersects(Access::WRITE | Access::ATTRIBUTES) && !access.intersects(of_entry);
        (changes && self.writes_device(path)).then_some(())?;
        let shown = place::quoted(path);
        let what = format!(
            "opens {shown} to be read and written, and no flag lets its mode, owner and times be changed"
        );
        let is_done_without = path.parent() == Some(Path::new(TERMINALS));
        Some(Reason { is_done_without, ..Reason::of(self.rule(&what, "paths.write"), None) })
    }

    /// Whether the run has a device, and may write to it. Of the terminals outside it has the caller's.
    fn writes_device(&self, path: &Path) -> bool {
        let is_callers = |layout: &Layout| {
            number_of_terminal(path).is_some_and(|number| layout.terminals.contains(&number))
        };
        let has = |layout: &Layout| layout.replaces(path).is_none() || is_callers(layout);
        let is_there = self.layout.as_deref().is_none_or(has);
        is_there && self.devices.iter().any(|device| is_within(path, device))
    }

    /// Why nothing takes the place of what a rule opens by itself, and nothing removes it: a mount holds its name.
    fn replacing_reason(&self, path: &Path, access: Access) -> Option<Reason> {
        let of_contents = Access::WRITE | Access::TRUNCATE | Access::ATTRIBUTES;
        let of_name = access.intersects(Access::CREATE | Access::REMOVE) && !access.intersects(of_contents);
        self.layout.as_deref().filter(|layout| of_name && place::is_opened_alone(layout, path))?;
        let directory = path.parent()?;
        let shown = place::quoted(path);
        let what = format!("may not change {shown}, which a rule opens without the directory that it is in");
        Some(Reason::of(self.rule(&what, "paths.write"), Some(self.opening("--rw", directory))))
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
        let what = format!("may not connect to {}, which {hidden}", place::quoted(path));
        let rule = self.rule(&what, "network.unix");
        Some(Reason::of(rule, Some(Hint::default().and("--unix", path).noting(service_at(path)))))
    }

    /// Why a UNIX socket is not connected to, and what would allow it.
    pub fn socket_reason(&self, path: &Path) -> Reason {
        let rule = self.rule(&format!("may not connect to {}", place::quoted(path)), "network.unix");
        let usable = self.attempts.connects_unix();
        Reason::of(rule, usable.then(|| Hint::default().and("--unix", path).noting(service_at(path))))
    }

    /// Why a command that has failed may have missed a path that its words name. Nobody has seen a call. `closed`: why
    /// it could not use that.
    pub fn named_reason(&self, path: &Path, closed: Reason) -> Reason {
        let shown = place::quoted(path);
        let hidden = self.out_of_sight(path);
        let rule = closed.rule.map(|rule| {
            let why = hidden.unwrap_or_else(|| format!("is closed: {}", rule.text));
            Rule { text: format!("{shown}, which the command names, {why}"), ..rule }
        });
        Reason { rule, ..closed }
    }

    /// That a path which is there outside is not there inside.
    fn out_of_sight(&self, path: &Path) -> Option<String> {
        let is_there = || path::is_there(path) || path.parent().is_some_and(path::is_there);
        let at = self.layout.as_ref()?.replaces(path).filter(|_| is_there())?;
        Some(format!("is out of sight: the run has a directory of its own at {}", place::quoted(at)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use crate::host::Host;
    use crate::plan::namespaces::renewed::{Kept, Private, System};
    use crate::profile::NetworkMode;
    use crate::sys::mount::Kind;
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::fs;
    use std::rc::Rc;

    fn smallest() -> Layout {
        Layout::smallest(&Host::with_environment(Vec::new()))
    }

    fn explainer(layout: Option<Layout>) -> Explainer {
        let explainer = Explainer::of_profile("workspace", NetworkMode::Private, Path::new("/usr/share"));
        Explainer { layout: layout.map(Rc::new), ..explainer }
    }

    #[test]
    fn a_flag_for_the_mode_of_a_device_is_not_proposed() {
        let terminals =
            System { kind: Kind::Terminals, at: TERMINALS.into(), keep: Vec::new(), closed: None };
        let layout = Layout { systems: vec![terminals], terminals: [3].into(), ..smallest() };
        let devices = ["/dev/null", TERMINALS].map(PathBuf::from).to_vec();
        let mut explainer = Explainer { devices, ..explainer(Some(layout)) };
        let said = |explainer: &Explainer, path: &str, access| {
            let reason = explainer.path_reason(Path::new(path), access);
            (reason.hint.is_some(), reason.is_done_without)
        };
        for (path, expected) in [
            ("/dev/null", (false, false)),
            ("/dev/pts/3", (false, true)),
            // Out of sight, where a flag brings it back, and not open at all.
            ("/dev/pts/4", (true, false)),
            ("/dev/full", (true, false)),
        ] {
            assert_eq!(said(&explainer, path, Access::WRITE), expected, "{path}");
        }
        // What is read there, and a name, are no business of this.
        assert_eq!(said(&explainer, "/dev/null", Access::READ), (true, false));
        assert_eq!(said(&explainer, "/dev/pts/3", Access::REMOVE), (true, false));
        explainer.layout = None;
        assert_eq!(said(&explainer, "/dev/pts/4", Access::WRITE), (false, true));
    }

    #[test]
    fn what_takes_the_place_of_a_file_that_is_opened_alone_asks_for_its_directory() {
        let kept = |path: &str| Kept { path: path.into(), write: true, execute: false, is_socket: false };
        let home = Private {
            at: "/home/u".into(),
            from: Some("/own".into()),
            keep: vec![kept("/home/u/lib/index.js"), kept("/home/u/work"), kept("/home/u/work/bin")],
            stores: Vec::new(),
            links: BTreeMap::new(),
            denied: BTreeMap::new(),
        };
        let explainer = explainer(Some(Layout { private: vec![home], ..smallest() }));
        let said = |path: &str, access| explainer.path_reason(Path::new(path), access).to_string();
        let why = "which a rule opens without the directory that it is in";
        for access in [Access::CREATE, Access::REMOVE | Access::REFER] {
            let expected = format!(
                "profile 'workspace' may not change /home/u/lib/index.js, {why}; allow it with --rw /home/u/lib"
            );
            assert_eq!(said("/home/u/lib/index.js", access), expected);
        }
        for (path, access) in [
            ("/home/u/lib/index.js", Access::WRITE | Access::CREATE),
            ("/home/u/lib/index.js", Access::READ),
            ("/home/u/lib/other", Access::CREATE),
            ("/home/u/work/bin", Access::REMOVE),
        ] {
            assert!(!said(path, access).contains(why), "{path}: {}", said(path, access));
        }
    }

    #[test]
    fn what_words_name_is_not_said_to_be_a_call() {
        let said = |explainer: &Explainer, path: &str| {
            let closed = explainer.path_reason(Path::new(path), Access::READ);
            explainer.named_reason(Path::new(path), closed).to_string()
        };
        assert_eq!(
            said(&explainer(None), "/usr/none"),
            "/usr/none, which the command names, is closed: profile 'workspace' may not read /usr/none; allow it with \
             --ro /usr/none"
        );
        let private = Private {
            at: "/usr".into(),
            from: Some("/own".into()),
            keep: Vec::new(),
            stores: Vec::new(),
            links: BTreeMap::new(),
            denied: BTreeMap::new(),
        };
        assert_eq!(
            said(&explainer(Some(Layout { private: vec![private], ..smallest() })), "/usr/bin"),
            "/usr/bin, which the command names, is out of sight: the run has a directory of its own at /usr; allow it \
             with --ro /usr/bin"
        );
    }

    #[test]
    fn a_program_of_an_environment_asks_for_all_of_it() {
        let scratch = Scratch::create(None).unwrap();
        let top = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("v/bin/deep")).unwrap();
        fs::write(top.join("v/pyvenv.cfg"), "").unwrap();
        let explainer = explainer(None);
        for (path, access, flag, opened) in [
            ("v/bin/python", Access::EXECUTE, "--rox", "v"),
            ("v/python", Access::EXECUTE, "--rox", "v"),
            ("v/bin/deep/tool", Access::EXECUTE, "--rox", "v/bin/deep/tool"),
            ("v/bin/python", Access::READ, "--ro", "v/bin/python"),
        ] {
            let hint = explainer.path_reason(&top.join(path), access).hint.unwrap();
            assert_eq!(hint.flags, [OsString::from(flag), top.join(opened).into()], "{path}");
        }
    }
}
