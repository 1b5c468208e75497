//! The questions that an attacker would ask: of the profile, and of the built-in one that it is measured by.

mod calls;
mod files;
mod network;
mod opening;
mod shared;
mod variables;

pub use network::sends_packets;
pub use variables::{SetFor, is_denied, set};

use crate::error::Refusal;
use crate::explain::query::{self, Answer, Question, Subject, Verdict, Wanted};
use crate::explain::review::Finding;
use crate::explain::sensitive::Sensitive;
use crate::profile::{Location, PathEntry, Profile, Variable, Variables};
use crate::sys::access::{self, Permission};
use crate::sys::path::{canonical, is_there};
use opening::{Opening, Sought};
use sbx_policy::calls::Call;
use std::path::{Path, PathBuf};

const PROGRAMS: &str = "programs";
/// What is said of something that a rule gives when it is made.
pub const ABSENT: &str = "not there now";

/// A profile, and the run that it would be.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The run.
    pub about: Subject<'a>,
    /// The profile as it was read, with the rules that the run lacks on this machine.
    pub profile: &'a Profile,
}

/// The two that are asked, and what they answered.
struct Probes<'a> {
    own: Side<'a>,
    base: Option<Side<'a>>,
    findings: Vec<Finding>,
}

/// Something that an attacker gets.
struct Gain {
    topic: &'static str,
    about: String,
    meaning: String,
    rules: Vec<String>,
}

/// What the questions found.
pub struct Found {
    /// What an attacker gets.
    pub findings: Vec<Finding>,
    /// What the rules give, and the permissions of files close to this user.
    pub closed: Vec<PathBuf>,
}

/// All that an attacker gets of a profile. What the other one gives too is marked.
pub fn ask(own: Side<'_>, base: Option<Side<'_>>, sensitive: &Sensitive) -> Result<Found, Refusal> {
    let mut probes = Probes { own, base, findings: Vec::new() };
    let closed = files::ask(&mut probes, sensitive)?;
    probes.compare(|side| Ok(files::of_home(side)))?;
    probes.compare(files::repositories)?;
    probes.compare(files::work)?;
    probes.compare(|side| files::devices(side, sensitive))?;
    probes.compare(processes)?;
    probes.compare(shared::ask)?;
    probes.compare(|side| network::ask(side, sensitive))?;
    probes.compare(|side| Ok(variables::ask(side.profile)))?;
    probes.compare(calls::ask)?;
    probes.compare(programs)?;
    Ok(Found { findings: probes.findings, closed })
}

impl Probes<'_> {
    /// Adds what a profile gives by itself.
    fn compare(&mut self, ask: impl Fn(Side<'_>) -> Result<Vec<Gain>, Refusal>) -> Result<(), Refusal> {
        let known = self.base.map(&ask).transpose()?.unwrap_or_default();
        for gain in ask(self.own)? {
            let usual = known.iter().any(|other| other.about == gain.about && other.meaning == gain.meaning);
            self.add(gain, usual);
        }
        Ok(())
    }

    /// Adds it to the finding of the same rules.
    fn add(&mut self, gain: Gain, usual: bool) {
        let Gain { topic, about, meaning, rules } = gain;
        // Programs come along by any of them.
        let same = |known: &&mut Finding| {
            known.topic == topic
                && (known.rules == rules || topic == PROGRAMS)
                && known.meaning == meaning
                && known.usual == usual
        };
        match self.findings.iter_mut().find(same) {
            Some(known) => {
                known.about.push(about);
                let new = rules.into_iter().filter(|rule| !known.rules.contains(rule)).collect::<Vec<_>>();
                known.rules.extend(new);
            }
            None => self.findings.push(Finding { topic, about: vec![about], meaning, rules, usual }),
        }
    }
}

/// The places of the rules that decide.
fn places(answer: &Answer) -> Vec<String> {
    answer.rules.iter().map(|rule| rule.place.clone()).collect()
}

/// Whether a run gets it of the machine.
fn is_given(answer: &Answer) -> bool {
    answer.verdict == Verdict::Allowed && !answer.own
}

/// An entry with its place: its index, or what it says, where a list of a built-in profile keeps none.
fn place(entry: &PathEntry) -> String {
    let origin = &entry.origin;
    match origin.index {
        Some(_) => origin.to_string(),
        None => format!("{} '{}' of profile '{}'", origin.key, entry.value, origin.profile),
    }
}

/// Other processes of the machine, where a run sees them: who started what, with which arguments.
fn processes(side: Side<'_>) -> Result<Vec<Gain>, Refusal> {
    let arguments = Path::new("/proc/1/cmdline");
    let reading = Wanted { read: true, ..Wanted::default() };
    let answer = query::answer(side.about, &Question::Path(arguments.to_path_buf(), reading))?;
    let is_refused = answer.verdict == Verdict::Refused || !access::allows(arguments, Permission::READ);
    if side.about.plan.namespaces.is_ok() || is_refused {
        return Ok(Vec::new());
    }
    let meaning = "the processes of this machine are seen, of other users too".to_string();
    let about = "their programs and arguments (/proc/PID/cmdline), which may hold passwords".to_string();
    Ok(vec![Gain { topic: "processes", about, meaning, rules: places(&answer) }])
}

/// Programs that the command brings along.
fn programs(side: Side<'_>) -> Result<Vec<Gain>, Refusal> {
    let Some(call) = Call::named(b"execve") else { return Ok(Vec::new()) };
    if query::answer(side.about, &Question::Call(call, None))?.verdict == Verdict::Refused {
        return Ok(Vec::new());
    }
    let paths = &side.profile.paths;
    let is_nowhere =
        |path: &Location| path.base == Some(Variable::Workspace) && side.about.plan.workspace.is_none();
    let home = side.about.host.home();
    let variables =
        Variables { workspace: side.about.plan.workspace.as_deref(), home, ..Variables::default() };
    let holds = |above: &Location, path: &Location| above.base == path.base && above.holds(path);
    // The rule about executing may be about a place that the other one holds.
    let executes = |path: &Location| {
        let is_there = |other: &&PathEntry| other.expand_path(&variables).is_some_and(|path| is_there(&path));
        let around = paths.execute.iter().find(|other| holds(&other.value, path));
        around.or_else(|| paths.execute.iter().filter(is_there).find(|other| holds(path, &other.value)))
    };
    // What is made for each run is the run's own.
    let is_closed = |entry: &PathEntry| -> Result<bool, Refusal> {
        let Some(path) = entry.expand_path(&variables).filter(|path| is_there(path)) else {
            return Ok(false);
        };
        let wanted = Wanted { write: true, execute: true, ..Wanted::default() };
        let is_given =
            |at: &Path| Ok(is_given(&query::answer(side.about, &Question::Path(at.to_path_buf(), wanted))?));
        let opening = opening::of(&canonical(&path), Sought::Anything, |_| false, is_given)?;
        Ok(opening == Opening::Closed)
    };
    let mut gains = Vec::new();
    for entry in paths.write.iter().filter(|entry| !is_nowhere(&entry.value)) {
        let Some(executed) = executes(&entry.value) else { continue };
        if !is_closed(entry)? {
            let meaning = "can be written and executed, so the command brings any program along".to_string();
            let rules = vec![place(entry), place(executed)];
            gains.push(Gain { topic: PROGRAMS, about: entry.value.to_string(), meaning, rules });
        }
    }
    Ok(gains)
}
