//! Secrets that can be read, and what can be changed that something outside acts on.

use crate::error::Refusal;
use crate::explain::query::{self, Question, Wanted};
use crate::explain::review::probes::{Gain, Probes, Side, is_given, place, places};
use crate::explain::sensitive::{Sensitive, Use};
use crate::profile::{PathEntry, Variables};
use crate::sys::path::{canonical, is_there};
use crate::sys::within::is_within;
use crate::text::shown;
use std::path::{Path, PathBuf};

const READ: Wanted = Wanted { read: true, write: false, execute: false, remove: false };
const WRITE: Wanted = Wanted { read: false, write: true, execute: false, remove: false };
/// Maximum number of places that are told of one rule, of those that no list names.
const MOST_BELOW: usize = 8;

/// A path that a rule gives, with the rule.
type Granted<'a> = (PathBuf, &'a PathEntry);

/// Asks about every path that the profile gives: whether it lies in, is, or holds something sensitive. Whether a run
/// gets that, the policy says.
pub fn ask(probes: &mut Probes<'_>, sensitive: &Sensitive) -> Result<(), Refusal> {
    let (own, base) = (probes.own, probes.base);
    let topics = [
        ("secrets", Use::Read, READ, "can be read"),
        ("runs later", Use::Write, WRITE, "can be changed, and something outside executes or trusts it"),
    ];
    for (topic, what, wanted, meaning) in topics {
        let granted = granted(own, what);
        for (point, why) in points(own, &granted, sensitive, what) {
            let question = Question::Path(point.clone(), wanted);
            let answer = query::answer(own.about, &question)?;
            // What an entry of a file names is given when it comes.
            let comes = |(path, entry): &Granted<'_>| *path == point && !entry.origin.built_in;
            if !is_given(&answer) && (is_there(&point) || !granted.iter().any(comes)) {
                continue;
            }
            let around = granted.iter().filter(|(path, _)| is_within(&point, path));
            let nearest = around.max_by_key(|(path, _)| path.components().count());
            let rules = nearest.map_or_else(|| places(&answer), |(_, entry)| vec![place(entry)]);
            let absent = if is_there(&point) { "" } else { ", not there now" };
            let about = format!("{} ({why}{absent})", shown(&point));
            let usual = base.map(|base| query::answer(base.about, &question)).transpose()?;
            let usual = usual.is_some_and(|answer| is_given(&answer));
            probes.add(Gain { topic, about, meaning: meaning.to_string(), rules }, usual);
        }
    }
    Ok(())
}

/// Directories in which a command may make a repository that nobody looks at afterwards: git outside executes what its
/// settings and hooks name.
pub fn repositories(side: Side<'_>) -> Result<Vec<Gain>, Refusal> {
    let plan = side.about.plan;
    // What the run looks through when it has ended.
    let looked_at = plan.workspace.as_ref().filter(|_| plan.record.is_some());
    let mut gains = Vec::new();
    for (path, entry) in granted(side, Use::Write) {
        let is_looked_at = looked_at.is_some_and(|own| is_within(&path, own));
        if is_looked_at || !path.is_dir() || is_within(&path, Path::new("/dev")) {
            continue;
        }
        if is_given(&query::answer(side.about, &Question::Path(path.clone(), WRITE))?) {
            let meaning =
                "a repository (.git) can be made in it, and git outside executes what its settings name";
            let (about, rules) = (shown(&path), vec![place(entry)]);
            gains.push(Gain { topic: "runs later", about, meaning: meaning.to_string(), rules });
        }
    }
    Ok(gains)
}

/// What a home of the run's own gets of the user's, beside what built-in profiles give it.
pub fn of_home(side: Side<'_>) -> Vec<Gain> {
    let home = &side.profile.home;
    let gain = |about: String, meaning: &str, rule: String| Gain {
        topic: "secrets",
        about,
        meaning: meaning.to_string(),
        rules: vec![rule],
    };
    let copies = home.copies.iter().filter(|entry| !entry.origin.built_in).map(|entry| {
        let keep: Vec<&str> = entry.keep.iter().map(|pattern| &**pattern).collect();
        let about = format!("{}: {}", entry.path, keep.join(", "));
        gain(about, "a home of the run's own has a copy of these of its lines", entry.origin.to_string())
    });
    let stores = home.stores.iter().filter(|entry| !entry.origin.built_in);
    let stores =
        stores.map(|entry| gain(entry.value.to_string(), "a home of the run's own shows it", place(entry)));
    copies.chain(stores).collect()
}

/// The paths that the profile gives. What is made for each run is the run's own.
fn granted(Side { about, profile }: Side<'_>, what: Use) -> Vec<Granted<'_>> {
    let plan = about.plan;
    let variables =
        Variables { workspace: plan.workspace.as_deref(), home: about.host.home(), ..Variables::default() };
    let paths = &profile.paths;
    let lists = match what {
        Use::Read => vec![&paths.read, &paths.execute, &paths.write],
        Use::Write => vec![&paths.write],
    };
    let entries = lists.into_iter().flat_map(|list| list.iter());
    entries.filter_map(|entry| Some((canonical(&entry.expand_path(&variables)?), entry))).collect()
}

/// What to ask about, each with what it is.
fn points(
    side: Side<'_>,
    granted: &[Granted<'_>],
    sensitive: &Sensitive,
    what: Use,
) -> Vec<(PathBuf, String)> {
    let home = side.about.host.home();
    // What is nowhere on this machine is nobody's secret; in a home directory it may come.
    let is_something =
        |path: &Path| what == Use::Write || is_there(path) || home.is_some_and(|home| is_within(path, home));
    // Without path rules everything is given.
    let everything = side.about.plan.paths.is_none().then(|| PathBuf::from("/"));
    let mut below: Vec<(PathBuf, String)> = Vec::new();
    let mut here: Vec<(PathBuf, String)> = Vec::new();
    for path in granted.iter().map(|(path, _)| path).chain(&everything) {
        let (held, around): (Vec<_>, Vec<_>) =
            sensitive.touched(path, what, MOST_BELOW).into_iter().partition(|touched| touched.is_below);
        // The nearest place says best what it is.
        let nearest = around.into_iter().max_by_key(|touched| touched.at.components().count());
        here.extend(nearest.map(|touched| (path.clone(), touched.why)));
        below.extend(held.into_iter().map(|touched| (touched.at, touched.why)));
    }
    let mut points: Vec<(PathBuf, String)> = Vec::new();
    for (path, why) in below.into_iter().filter(|(path, _)| is_something(path)) {
        if !points.iter().any(|(above, _)| is_within(&path, above)) {
            points.push((path, why));
        }
    }
    for (path, why) in here {
        if !points.iter().any(|(known, _)| *known == path) {
            points.push((path, why));
        }
    }
    points
}
