//! What a policy says about a path.

use crate::enforce::landlock::{self, Report, View};
use crate::error::Refusal;
use crate::explain::decode::Access;
use crate::explain::hint::{Explainer, Hint};
use crate::explain::infer::InForce;
use crate::explain::query::{Answer, Rule, Subject, Verdict, Wanted, by_name, own};
use crate::plan::Plan;
use crate::plan::commands::Obstacle;
use crate::plan::namespaces::Layout;
use crate::plan::rules::{PathRights, PathRule};
use crate::profile::{PathEntry, Variables};
use crate::sys::access::{self, Permission};
use crate::sys::path::canonical;
use crate::sys::within::is_below;
use crate::text::shown;
use sbx_policy::calls::Call;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Said where a file may be changed, and its name is none of the run's.
const KEEPS_ITS_NAME: &str = "it may be changed, but not removed, replaced or renamed";

/// And what is said of a name alone.
const REMOVES: &str = " may not remove, replace or rename ";

/// One of the things that can be wanted.
struct Want {
    name: &'static str,
    right: fn(PathRights) -> bool,
    access: Access,
    permission: Permission,
}

fn wants(wanted: Wanted, exists: bool) -> Vec<Want> {
    let write = if exists { Access::WRITE } else { Access::WRITE | Access::CREATE };
    let all = [
        (wanted.read, "read", (|r| r.read) as fn(PathRights) -> bool, Access::READ, Permission::READ),
        (wanted.write, "write", |r| r.write, write, Permission::WRITE),
        (wanted.execute, "execute", |r| r.execute, Access::EXECUTE, Permission::EXECUTE),
    ];
    let all = all.into_iter().filter(|(wanted, ..)| *wanted);
    all.map(|(_, name, right, access, permission)| Want { name, right, access, permission }).collect()
}

pub fn answer(about: Subject<'_>, path: &Path, wanted: Wanted) -> Result<Answer, Refusal> {
    let plan = about.plan;
    let given = plan.directory.join(path);
    let (place, exists) = place(&given);
    let Some(granted) = granted(plan)? else { return without_rules(about, &place, exists, wanted) };
    let sources = Sources::new(about);
    if let Some(answer) = before_rules(about, &sources, &given, &place, exists, wanted) {
        return Ok(answer);
    }
    let mut answer = Answer::new(Verdict::Allowed);
    if place != given {
        answer.notes.push(format!("it is {}", shown(&place)));
    }
    // What is to be made needs the right where it is made.
    let at = if exists { &*place } else { place.parent().unwrap_or(&place) };
    let mut missing = Access::NONE;
    let granted = InForce { version: about.plan.landlock, rules: &granted, layout: None, has_failed: false };
    // A name is its directory's.
    let directory = place.parent().unwrap_or(&place);
    let replaceable = !own::is_terminal(&place) && granted.grants(directory, |rights| rights.write);
    if wanted.remove && !replaceable {
        missing = missing | Access::REMOVE;
    }
    for want in wants(wanted, exists) {
        if granted.grants(at, want.right) {
            answer = sources.granting(at, want.right).into_iter().fold(answer, Answer::by);
        } else {
            missing = missing | want.access;
        }
        answer.notes.extend(exists.then(|| of_user(&place, &want)).flatten());
    }
    if !missing.is_empty() {
        answer = refused(answer, plan, &sources, &place, missing);
        answer.notes.extend((missing == Access::REMOVE && wanted.write).then(|| KEEPS_ITS_NAME.to_string()));
    } else if let Some(refused) = own::by_calls(about, &place, exists, wanted, replaceable)? {
        return Ok(refused);
    } else if let Some(whose) = own::of_process(&place) {
        answer.verdict = Verdict::Depends;
        answer.depends.push(whose);
    }
    if !exists {
        answer.notes.push(nothing(&place));
    }
    if answer.verdict == Verdict::Allowed && wanted.write && exists {
        let notes = beside_writing(plan, granted, &place, replaceable);
        answer.notes.extend(notes.into_iter().flatten().map(str::to_string));
    }
    Ok(answer)
}

/// The answer where something else than the path rules decides about a place: a link on the way to it, a directory of
/// the run's own, a mount.
fn before_rules(
    about: Subject<'_>,
    sources: &Sources,
    given: &Path,
    place: &Path,
    exists: bool,
    wanted: Wanted,
) -> Option<Answer> {
    let plan = about.plan;
    let shut = protected(about, sources, place, wanted);
    // Also what the run has for itself stays where it is held.
    if wanted.remove && is_held(plan, place) {
        return shut;
    }
    let by_name = if shut.is_none() { by_name::answer(plan, given, place, exists, wanted) } else { None };
    by_name.or_else(|| own::answer(plan, place, exists, wanted)).or(shut)
}

/// Whether a mount keeps a directory where it is, and nothing in it from being changed.
fn is_held(plan: &Plan, place: &Path) -> bool {
    plan.namespaces.as_ref().is_ok_and(|layout| layout.only_holds(place))
}

/// What may not be done to a file that may be written to.
fn beside_writing(
    plan: &Plan,
    granted: InForce<'_>,
    place: &Path,
    replaceable: bool,
) -> [Option<&'static str>; 2] {
    let keeps_name = is_held(plan, place) || !replaceable;
    // What is written to a device changes no file.
    let keeps_mode = !granted.grants(place, PathRights::changes_files);
    [
        keeps_name.then_some(KEEPS_ITS_NAME),
        keeps_mode.then_some("its mode, owner and times may not be changed"),
    ]
}

/// What is said of a path with nothing there: another question may be meant.
fn nothing(place: &Path) -> String {
    let name = place.file_name().unwrap_or_default();
    let call = Call::named(name.as_bytes()).map(Call::name);
    let other = call.map(|call| format!("; about the system call, ask sbx why --call {call}"));
    format!("there is nothing of this name now{}", other.unwrap_or_default())
}

/// That the kernel refuses it to this user anyway.
fn of_user(place: &Path, want: &Want) -> Option<String> {
    let text = "the file's permissions, or its file system, refuse this user to";
    let refuses = !access::allows(place, want.permission);
    refuses.then(|| format!("{text} {} it, whatever sbx allows", want.name))
}

/// The answer where there are no path rules: calls are refused all the same.
fn without_rules(about: Subject<'_>, place: &Path, exists: bool, wanted: Wanted) -> Result<Answer, Refusal> {
    if let Some(refused) = own::by_calls(about, place, exists, wanted, true)? {
        return Ok(refused);
    }
    let mut answer = Answer::of(Verdict::Allowed, "without Landlock files are not restricted");
    let wants = wants(wanted, exists);
    answer.notes = wants.iter().filter(|_| exists).filter_map(|want| of_user(place, want)).collect();
    answer.notes.extend((!exists).then(|| nothing(place)));
    Ok(answer)
}

/// The answer where a mount decides, whatever the rules grant.
fn protected(about: Subject<'_>, sources: &Sources, place: &Path, wanted: Wanted) -> Option<Answer> {
    let plan = about.plan;
    let layout =
        plan.namespaces.as_ref().ok().filter(|layout| layout.shuts(place, wanted.write || wanted.remove))?;
    let is_held = layout.only_holds(place) && place.is_dir();
    if is_held && !wanted.remove {
        return None;
    }
    let access = match (wanted.write, wanted.remove) {
        (_, true) => Access::REMOVE,
        (true, false) => Access::WRITE,
        (false, false) => Access::READ,
    };
    let mut answer = Answer::new(Verdict::Refused).told(Explainer::of(plan).path_reason(place, access));
    answer.notes.extend((is_held && wanted.write).then(|| KEEPS_ITS_NAME.to_string()));
    if let Some(rule) = sources.denying(place) {
        return Some(answer.by(rule));
    }
    let workspace = plan.workspace.as_deref();
    let variables = Variables { workspace, home: about.host.home(), ..Variables::default() };
    let mut entries = plan.profile.paths.protect.iter();
    let entry =
        entries.find(|entry| entry.path.expand_path(&variables).is_some_and(|path| place.starts_with(path)));
    Some(answer.by(match entry {
        Some(entry) => Rule::of(&entry.origin),
        None if layout.closes(place) => Rule::flag("the /proc of the run's own"),
        None if is_held => Rule::flag("the protection of what is in it"),
        None => Rule::flag("the protection of what git executes, and of the directories that it is in"),
    }))
}

fn refused(answer: Answer, plan: &Plan, sources: &Sources, place: &Path, missing: Access) -> Answer {
    let mut answer = told(answer, plan, place, missing);
    answer.verdict = Verdict::Refused;
    // What is granted is not what decides.
    answer.rules.clear();
    if let Some(rule) = sources.denying(place) {
        return answer.by(rule);
    }
    let commands = plan.commands.as_ref().filter(|_| missing.contains(Access::EXECUTE));
    if let Some(Obstacle::Blocked(blocked)) = commands.and_then(|commands| commands.obstacle(place)) {
        let rule = Rule::flag(&blocked.rule);
        return answer.by(rule);
    }
    answer.by(Rule::flag("no rule, because the policy names what is allowed"))
}

/// What a run would say of a path.
pub(super) fn told(answer: Answer, plan: &Plan, place: &Path, missing: Access) -> Answer {
    let mut answer = answer.told(Explainer::of(plan).path_reason(place, missing));
    if missing.contains(Access::WRITE | Access::EXECUTE) {
        for flag in answer.hint.iter_mut().flat_map(|hint| &mut hint.flags).filter(|flag| **flag == "--rw") {
            *flag = "--rwx".into();
        }
    }
    if missing == Access::REMOVE {
        answer.reason = answer.reason.map(|reason| reason.replacen(" may not change ", REMOVES, 1));
        let layout = plan.namespaces.as_deref().ok();
        let opens_itself = |hint: &Hint| hint.flags.last().is_some_and(|last| Path::new(last) == place);
        let stays = || layout.is_some_and(|layout| has_protected(layout, place));
        answer.hint = answer.hint.filter(|hint| !opens_itself(hint) && !stays());
    }
    answer
}

/// Whether something in a directory is protected, so that it is held in its place wherever its own name may be changed.
fn has_protected(layout: &Layout, directory: &Path) -> bool {
    let mut watched = layout.watched.iter();
    layout.shielded().any(|held| is_below(held, directory))
        || watched.any(|watched| is_below(&watched.path(), directory))
}

/// The rules as they would be in force, by real paths; `None` where there would be none.
pub fn granted(plan: &Plan) -> Result<Option<Vec<PathRule>>, Refusal> {
    let Some(paths) = &plan.paths else { return Ok(None) };
    let view = View { report: Report::All, ..View::default() };
    // The home of a run need not have been made yet.
    let own = plan.private_home.as_ref().map(|home| &home.directory);
    let paths: Vec<PathRule> = paths.iter().filter(|rule| Some(&rule.path) != own).cloned().collect();
    Ok(Some(landlock::prepare(plan.landlock, &paths, &plan.network, view)?.fill(view)?))
}

/// Where a path leads, and whether there is something: of one that is not there, the part that is is followed.
pub(super) fn place(path: &Path) -> (PathBuf, bool) {
    if let Ok(real) = path.canonicalize() {
        return (real, true);
    }
    let (parent, name) = (path.parent(), path.file_name());
    match parent.zip(name) {
        Some((parent, name)) => (place(parent).0.join(name), false),
        None => (path.to_path_buf(), false),
    }
}

/// Where the rules come from.
struct Sources {
    rules: Vec<(PathBuf, PathRights, Rule)>,
    denied: Vec<(PathBuf, Rule)>,
}

impl Sources {
    fn new(about: Subject<'_>) -> Sources {
        let Subject { request, host, plan, .. } = about;
        let workspace = plan.workspace.as_deref();
        let variables = Variables { workspace, home: host.home(), ..Variables::default() };
        let of_profile = |entry: &PathEntry| {
            let path = entry.expand_path(&variables)?;
            Some((canonical(&path), Rule::of(&entry.origin)))
        };
        let of_flag = |flag: &str, path: &PathBuf| {
            (canonical(&plan.directory.join(path)), Rule::flag(format!("{flag} {}", shown(path))))
        };
        let read = PathRights { read: true, ..PathRights::default() };
        let (execute, write) = (PathRights { execute: true, ..read }, PathRights { write: true, ..read });
        let both = PathRights { execute: true, ..write };
        let (paths, mut rules) = (&plan.profile.paths, Vec::new());
        let allow = plan.commands.as_ref().and_then(|commands| commands.allow.as_ref());
        // Where there is a list of commands, nothing else gives the right.
        let rest = PathRights { execute: allow.is_none(), ..PathRights::ALL };
        for place in allow.into_iter().flatten() {
            rules.push((place.file.path.clone(), execute, Rule::flag(&place.rule)));
        }
        for (list, rights) in [(&paths.read, read), (&paths.execute, execute), (&paths.write, write)] {
            rules.extend(
                list.iter().filter_map(of_profile).map(|(path, rule)| (path, rights.common(rest), rule)),
            );
        }
        for (flag, list, rights) in [
            ("--ro", &request.ro, read),
            ("--rox", &request.rox, execute),
            ("--rw", &request.rw, write),
            ("--rwx", &request.rwx, both),
        ] {
            let named = list.iter().map(|path| of_flag(flag, path));
            rules.extend(named.map(|(path, rule)| (path, rights.common(rest), rule)));
        }
        let denied = paths.deny.iter().filter_map(of_profile);
        let mut denied: Vec<(PathBuf, Rule)> =
            denied.chain(request.deny.iter().map(|path| of_flag("--deny", path))).collect();
        let mounts = host.mounts().ok();
        let other = |(path, rule): &(PathBuf, Rule)| {
            let Some(mounts) = mounts else { return Vec::new() };
            mounts.ways_around(path).into_iter().map(|name| (name, rule.clone())).collect::<Vec<_>>()
        };
        let others: Vec<_> = denied.iter().flat_map(other).collect();
        denied.extend(others);
        Sources { rules, denied }
    }

    /// The nearest rule above that gives a right.
    fn granting(&self, path: &Path, right: fn(PathRights) -> bool) -> Option<Rule> {
        let above = self.rules.iter().filter(|(place, rights, _)| right(*rights) && path.starts_with(place));
        let nearest = above.max_by_key(|(place, ..)| place.components().count());
        nearest.map(|(.., rule)| rule.clone())
    }

    /// The rule that keeps a path closed although something above it is open: what leads to a denied path is
    /// closed too.
    fn denying(&self, path: &Path) -> Option<Rule> {
        let opened = self.rules.iter().any(|(place, ..)| path.starts_with(place));
        let found = self
            .denied
            .iter()
            .find(|(place, _)| path.starts_with(place) || (opened && place.starts_with(path)));
        found.map(|(_, rule)| rule.clone())
    }
}
