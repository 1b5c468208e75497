//! What the path rules alone do not tell: what of a run is its own and not the machine's, and which calls open a file.

use crate::enforce::home_places;
use crate::error::Refusal;
use crate::explain::decode::Access;
use crate::explain::query::{Answer, Rule, Subject, Verdict, Wanted, call, path};
use crate::plan::Plan;
use crate::plan::home::PrivateHome;
use crate::plan::namespaces::Layout;
use crate::plan::namespaces::renewed::{TERMINALS, number_of_terminal};
use crate::profile::{PathEntry, Variable, Variables};
use crate::sys::path::{canonical, is_of_process, is_there};
use crate::sys::within::{is_below, is_within};
use crate::text::shown;
use sbx_policy::calls::Call;
use std::path::Path;

/// What a refusal to execute does not say.
pub const COMMAND_ITSELF: &str = "the command of the run itself is executed all the same";

/// Whether a path is denied, or something above it.
pub fn denies(plan: &Plan, place: &Path) -> bool {
    plan.denied.iter().any(|denied| is_within(place, &canonical(denied)))
}

/// The answer where another directory stands in the place of the machine's.
pub fn answer(plan: &Plan, place: &Path, exists: bool, wanted: Wanted) -> Option<Answer> {
    let layout = plan.namespaces.as_ref().ok()?;
    if denies(plan, place) || is_callers_terminal(layout, place) {
        return None;
    }
    let tmp = layout.scratch();
    let home = plan.private_home.as_ref();
    let is_whole = |at: &&Path| *at == place;
    let at = layout.replaces(place).or_else(|| tmp.filter(is_whole));
    let at = at.or_else(|| home.map(|home| &*home.at).filter(is_whole))?;
    if let Some(home) = home.filter(|home| home.at == at)
        && let Some(answer) = in_home(plan, home, place, exists, wanted)
    {
        return Some(answer);
    }
    let is_hidden = exists || place.parent().is_some_and(|parent| parent != at && is_there(parent));
    if is_hidden && at != place {
        return Some(path::told(Answer::new(Verdict::Refused), plan, place, access(wanted)));
    }
    if tmp != Some(at) {
        // What may be done there, the rules about it say.
        return None;
    }
    let paths = &plan.profile.paths;
    let lists = [
        (wanted.write, vec![&paths.write]),
        (wanted.execute, vec![&paths.execute]),
        (wanted.read, vec![&paths.read, &paths.execute, &paths.write]),
    ];
    let scratch = |entry: &&PathEntry| entry.value.base == Some(Variable::Tmp) && entry.value.rest.is_empty();
    let mut answer = Answer { own: true, ..Answer::new(Verdict::Allowed) };
    for (_, lists) in lists.into_iter().filter(|(wanted, _)| *wanted) {
        let entry = lists.into_iter().find_map(|list| list.iter().find(scratch))?;
        answer = answer.by(Rule::of(&entry.origin));
    }
    answer.notes.push(format!(
        "in the run '{}' is its scratch directory, empty at first and removed afterwards",
        shown(at)
    ));
    Some(answer)
}

/// What is wanted, as a call would want it.
pub fn access(wanted: Wanted) -> Access {
    let all = [
        (wanted.read, Access::READ),
        (wanted.write, Access::WRITE),
        (wanted.execute, Access::EXECUTE),
        (wanted.remove, Access::REMOVE),
    ];
    let all = all.into_iter().filter(|(wanted, _)| *wanted);
    all.fold(Access::NONE, |all, (_, access)| all | access)
}

/// Whether a path is the name of a terminal. Their file system has none removed.
pub fn is_terminal(place: &Path) -> bool {
    place.parent() == Some(Path::new(TERMINALS))
}

/// Whether it is one of the caller's, which keep their names where all others are out of sight.
fn is_callers_terminal(layout: &Layout, place: &Path) -> bool {
    number_of_terminal(place).is_some_and(|number| layout.terminals.contains(&number))
}

/// The answer for what is in a home of the run's own.
fn in_home(plan: &Plan, home: &PrivateHome, place: &Path, exists: bool, wanted: Wanted) -> Option<Answer> {
    let inside = home.directory.join(place.strip_prefix(&home.at).ok()?);
    let at = shown(&home.at);
    let mut answer = Answer::new(Verdict::Allowed);
    let mut stores = plan.stores().iter();
    let is_store = plan.stores().iter().any(|store| is_within(place, &store.at));
    let note = if let Some(store) = stores.find(|store| is_within(place, &store.at)) {
        let store = shown(&store.at);
        format!("what the run writes to '{store}' stays in a home of its own, and yours is read below it")
    } else if place == home.at {
        format!("in the run '{at}' is a home of its own, with what the rules open of yours")
    } else if is_copy(plan, home, place) {
        "in the run it is a copy of yours, without secrets".to_string()
    } else if is_found(plan, home, place, &inside) {
        format!("in the run '{at}' is a home of its own, and this is not in yours")
    } else if !exists && !is_below_hidden(plan, home, place, &inside) {
        if !wanted.write {
            answer.verdict = Verdict::Depends;
            let made = "allowed once the run has made it: there is nothing of this name now";
            answer.depends.push(made.to_string());
        }
        format!("in the run '{at}' is a home of its own, and nothing of yours is seen by this name")
    } else {
        return None;
    };
    answer.own = !is_store;
    let mode = plan.profile.home.mode.as_ref();
    answer = answer.by(mode.map_or_else(|| Rule::flag("--home"), |mode| Rule::of(&mode.origin)));
    answer.notes.push(note);
    Some(answer)
}

/// Whether it is a file of settings, of which the run gets a copy: by this name, wherever the user's own is.
fn is_copy(plan: &Plan, home: &PrivateHome, place: &Path) -> bool {
    let variables = Variables { home: plan.home.as_deref(), ..Variables::default() };
    let copies = home.copies(&plan.profile.home.copies, &variables);
    place.is_file() && copies.iter().any(|(at, _)| at == place)
}

/// Whether the run finds something there in its home: what another run mounted on is removed before, and so is a link
/// on the way that it made.
fn is_found(plan: &Plan, home: &PrivateHome, place: &Path, inside: &Path) -> bool {
    let Ok(layout) = &plan.namespaces else { return is_there(inside) };
    let names = place.ancestors().zip(inside.ancestors());
    let names = names.take_while(|(name, _)| is_below(name, &home.at));
    let mut made = names.filter(|(name, inside)| *name == place || inside.is_symlink());
    is_there(inside) && !made.any(|(name, _)| home_places::is_left_over(home, layout, name))
}

/// Whether a file cannot be made: its directory is there outside, and not in the run's home.
fn is_below_hidden(plan: &Plan, home: &PrivateHome, place: &Path, inside: &Path) -> bool {
    place.parent().zip(inside.parent()).is_some_and(|(above, inside)| {
        above != home.at && is_there(above) && !is_found(plan, home, above, inside)
    })
}

/// The refusal where the rules grant a path, and the filter none of the calls that it takes. `replaceable`: the rules
/// let its name be given to another file.
pub fn by_calls(
    about: Subject<'_>,
    place: &Path,
    exists: bool,
    wanted: Wanted,
    replaceable: bool,
) -> Result<Option<Answer>, Refusal> {
    const AT_FDCWD: u64 = -100_i64 as u64;
    let open = |flags: i32| ("openat", [AT_FDCWD, 0, flags as u64, 0, 0, 0]);
    let access = if exists { Access::WRITE } else { Access::WRITE | Access::CREATE };
    // The supervisor opens it where the filter does not.
    let served = place == Path::new("/dev/null");
    let plan = about.plan;
    let reach = about.reach.of(plan)?;
    let changes = match (exists, place.is_dir()) {
        (false, _) => reach.intersects(Access::CREATE),
        (true, true) => reach.intersects(Access::CREATE | Access::WRITE | Access::TRUNCATE),
        // Another file takes its place.
        (true, false) if replaceable && reach.contains(Access::CREATE | Access::REMOVE) => true,
        (true, false) => reach.intersects(Access::WRITE | Access::TRUNCATE),
    };
    // What is wanted, whether some call does it, and a call that tells why not.
    let ways = [
        (
            wanted.read && !served,
            reach.intersects(Access::READ | Access::LIST),
            open(libc::O_RDONLY),
            Access::READ,
        ),
        (wanted.write && !served, changes, open(libc::O_WRONLY), access),
        (wanted.execute, reach.intersects(Access::EXECUTE), ("execve", [0; 6]), Access::EXECUTE),
        (
            wanted.remove,
            reach.intersects(Access::REMOVE),
            ("unlinkat", [AT_FDCWD, 0, 0, 0, 0, 0]),
            Access::REMOVE,
        ),
    ];
    for (_, _, (name, args), access) in ways.into_iter().filter(|(wanted, can, ..)| *wanted && !can) {
        let Some(call) = Call::named(name.as_bytes()) else { continue };
        let mut refused = call::answer_for(plan, call, Some(args), Some((place, access)))?;
        refused.reason = refused.reason.map(|reason| format!("{}: {reason}", shown(place)));
        if plan.paths.is_some() {
            refused.notes.push("the path rules alone would allow it".to_string());
        }
        if wanted.execute {
            refused.notes.push(COMMAND_ITSELF.to_string());
        }
        return Ok(Some(refused));
    }
    Ok(None)
}

/// Whose a file of a process is, no path rule knows; but a process's own are its own.
pub fn of_process(place: &Path) -> Option<String> {
    let own = place.starts_with(format!("/proc/{}", std::process::id()));
    (is_of_process(place) && !own).then(|| {
        "allowed of processes of the run, whose numbers are others in namespaces of its own; of all others memory, \
         environment and descriptors are closed"
            .to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;

    #[test]
    fn of_terminals_the_callers_are_in_sight() {
        let smallest = Layout::smallest(&Host::with_environment(Vec::new()));
        let layout = Layout { terminals: [3].into(), ..smallest };
        for (path, is_callers) in
            [("/dev/pts/3", true), ("/dev/pts/4", false), ("/dev/pts", false), ("/dev/pts/ptmx", false)]
        {
            assert_eq!(is_callers_terminal(&layout, Path::new(path)), is_callers, "{path}");
        }
        assert!(is_terminal(Path::new("/dev/pts/4")) && !is_terminal(Path::new("/dev/pts")));
    }
}
