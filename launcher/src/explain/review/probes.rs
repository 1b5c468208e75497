//! The questions that an attacker would ask.

use crate::error::Refusal;
use crate::explain::query::{self, Answer, Destination, Question, Rule, Subject, Verdict, Wanted};
use crate::explain::review::Finding;
use crate::explain::sensitive::table::{CALLS, SOCKETS};
use crate::explain::sensitive::{Sensitive, Use};
use crate::hosts::{HostName, HostPattern, HostRule};
use crate::profile::{DefaultAction, Location, Name, NetworkMode, Profile, Variables};
use crate::sys::path::{canonical, is_there};
use crate::sys::within::is_within;
use crate::text::shown;
use sbx_policy::calls::Call;
use std::path::{Path, PathBuf};

const READ: Wanted = Wanted { read: true, write: false, execute: false, remove: false };
const WRITE: Wanted = Wanted { read: false, write: true, execute: false, remove: false };

/// Variables that hold secrets, one of each kind.
const VARIABLES: [&str; 8] = [
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "OPENAI_API_KEY",
    "NPM_TOKEN",
    "DATABASE_URL",
    "SSH_AUTH_SOCK",
    "LD_PRELOAD",
    "BASH_ENV",
];

/// Adds what a rule gives to the finding of the same rules.
fn add(findings: &mut Vec<Finding>, topic: &'static str, about: String, meaning: &str, rules: &[Rule]) {
    let usual = !rules.is_empty() && rules.iter().all(|rule| rule.built_in);
    let rules: Vec<String> = rules.iter().map(|rule| rule.place.clone()).collect();
    match findings.iter_mut().find(|known| known.topic == topic && known.rules == rules) {
        Some(known) => known.about.push(about),
        None => {
            findings.push(Finding { topic, about: vec![about], meaning: meaning.to_string(), rules, usual })
        }
    }
}

/// Secrets that can be read, and what can be changed that something outside executes.
pub fn files(about: Subject<'_>, sensitive: &Sensitive) -> Result<Vec<Finding>, Refusal> {
    let mut findings = Vec::new();
    let topics = [
        ("secrets", sensitive.secrets(), READ, "it can be read"),
        (
            "runs later",
            sensitive.executed_later(),
            WRITE,
            "it can be changed, and something outside executes it",
        ),
    ];
    for (topic, places, wanted, meaning) in topics {
        let mut told: Vec<PathBuf> = Vec::new();
        for (place, what) in places {
            // What is nowhere on this machine is nobody's secret; in a home directory it may come.
            let is_nothing = wanted == READ
                && !is_there(place)
                && !about.host.home().is_some_and(|home| is_within(place, home));
            if is_nothing || told.iter().any(|above| is_within(place, above)) {
                continue;
            }
            let answer = query::answer(about, &Question::Path(place.clone(), wanted))?;
            if !is_given(&answer) {
                continue;
            }
            told.push(place.clone());
            let absent = if is_there(place) { "" } else { ", not there now" };
            add(&mut findings, topic, format!("{} ({what}{absent})", shown(place)), meaning, &answer.rules);
        }
    }
    Ok(findings)
}

/// What entries of files open that is not on the lists, or lies below what is. Each is judged as a command's wish for
/// it would be.
pub fn own_files(
    about: Subject<'_>,
    whole: &Profile,
    sensitive: &Sensitive,
    findings: &mut Vec<Finding>,
) -> Result<(), Refusal> {
    let paths = &whole.paths;
    let secrets = ("secrets", Use::Read, READ, "it can be read");
    let later = ("runs later", Use::Write, WRITE, "it can be changed, and something outside relies on it");
    for (list, kinds) in
        [(&paths.read, &[secrets][..]), (&paths.execute, &[secrets]), (&paths.write, &[later, secrets])]
    {
        for entry in list.iter().filter(|entry| !entry.origin.built_in) {
            let Some(path) = expanded(about, &entry.value) else { continue };
            let rule = Rule::of(&entry.origin);
            for (topic, what, wanted, meaning) in kinds {
                let is_told = |known: &Finding| known.topic == *topic && known.rules.contains(&rule.place);
                if findings.iter().any(is_told) {
                    continue;
                }
                let Some(why) = sensitive.path(&canonical(&path), *what) else { continue };
                let is_there = is_there(&path);
                if is_there && !is_given(&query::answer(about, &Question::Path(path.clone(), *wanted))?) {
                    continue;
                }
                let absent = if is_there { "" } else { ", not there now" };
                let about = format!("{} ({why}{absent})", entry.value);
                add(findings, topic, about, meaning, std::slice::from_ref(&rule));
                break;
            }
        }
    }
    Ok(())
}

/// What a home of the run's own gets of the user's.
pub fn copies(whole: &Profile, findings: &mut Vec<Finding>) {
    for entry in whole.home.copies.iter().filter(|entry| !entry.origin.built_in) {
        let meaning = "a home of the run's own has a copy of these of its lines";
        let keep: Vec<&str> = entry.keep.iter().map(|pattern| &**pattern).collect();
        let about = format!("{}: {}", entry.path, keep.join(", "));
        add(findings, "secrets", about, meaning, &[Rule::of(&entry.origin)]);
    }
    for entry in whole.home.stores.iter().filter(|entry| !entry.origin.built_in) {
        let meaning = "a home of the run's own shows it";
        add(findings, "secrets", entry.value.to_string(), meaning, &[Rule::of(&entry.origin)]);
    }
}

/// The path that an entry names in this run.
fn expanded(about: Subject<'_>, entry: &Location) -> Option<PathBuf> {
    let variables = Variables {
        workspace: about.plan.workspace.as_deref(),
        home: about.host.home(),
        ..Variables::default()
    };
    entry.expand_path(&variables)
}

/// Whether a run gets it of the machine.
fn is_given(answer: &Answer) -> bool {
    answer.verdict == Verdict::Allowed && !answer.own
}

/// Calls that are more than programs ask for.
pub fn calls(about: Subject<'_>) -> Result<Vec<Finding>, Refusal> {
    let mut findings = Vec::new();
    if let Some(default) = &about.plan.profile.syscalls.default
        && **default == DefaultAction::Log
    {
        let about = "every call that no rule denies".to_string();
        add(
            &mut findings,
            "kernel",
            about,
            "it is let through, and only noted",
            &[Rule::of(&default.origin)],
        );
    }
    for (name, what) in CALLS {
        let Some(call) = Call::named(name.as_bytes()) else { continue };
        let answer = query::answer(about, &Question::Call(call, None))?;
        match answer.verdict {
            Verdict::Refused => {}
            Verdict::Allowed => {
                add(
                    &mut findings,
                    "kernel",
                    format!("{name} ({what})"),
                    "the call is allowed",
                    &answer.rules,
                );
            }
            Verdict::Depends => {
                let about = format!("{name} ({what})");
                add(&mut findings, "kernel", about, "the call is allowed with some arguments", &answer.rules);
            }
        }
    }
    Ok(findings)
}

/// Where data can go, and whom it can ask.
pub fn network(about: Subject<'_>, whole: &Profile, sensitive: &Sensitive) -> Result<Vec<Finding>, Refusal> {
    let mut findings = Vec::new();
    let anywhere = [
        ("any host of the internet", "example.com", "93.184.216.34", 443),
        ("metadata services, which give out keys", "", "169.254.169.254", 80),
        ("machines of private networks", "", "10.0.0.1", 22),
    ];
    for (what, name, address, port) in anywhere {
        let destination = Destination {
            text: format!("{address}:{port}"),
            port,
            is_elsewhere: true,
            name: HostName::parse(name).ok().filter(|_| !name.is_empty()),
            address: address.parse().ok(),
        };
        let answer = query::answer(about, &Question::Connect(destination))?;
        if is_given(&answer) {
            add(&mut findings, "network", what.to_string(), "what can be read can leave", &answer.rules);
        }
    }
    for entry in whole.network.connect.iter().filter(|_| about.plan.network.mode != NetworkMode::Host) {
        let rule = Rule::of(&entry.origin);
        let is_wide = HostRule::parse(&entry.value).is_ok_and(|rule| rule.hosts == HostPattern::Any);
        let meaning = match is_wide {
            true => "every host: what can be read can leave",
            false => "what can be read can leave to it, and to whom it passes that on",
        };
        add(&mut findings, "network", entry.value.to_string(), meaning, std::slice::from_ref(&rule));
    }
    for entry in whole.network.unix.iter() {
        // By any of its names, and whether it is there or not.
        let path = expanded(about, &entry.value);
        let what = path.and_then(|path| sensitive.unix(&canonical(&path)));
        let what = what.unwrap_or_else(|| "a service in the workspace".to_string());
        let about = format!("{} ({what})", entry.value);
        let rule = Rule::of(&entry.origin);
        add(&mut findings, "sockets", about, "the command can ask it for whatever it does", &[rule]);
    }
    for (socket, what) in SOCKETS.iter().filter(|(socket, _)| is_there(Path::new(socket))) {
        let answer = query::answer(about, &Question::Unix(PathBuf::from(socket)))?;
        if is_given(&answer) && !whole.network.unix.iter().any(|entry| entry.value.to_string() == **socket) {
            let about = format!("{socket} ({what})");
            add(
                &mut findings,
                "sockets",
                about,
                "the command can ask it for whatever it does",
                &answer.rules,
            );
        }
    }
    Ok(findings)
}

/// Programs that the command brings along.
pub fn programs(about: Subject<'_>, whole: &Profile) -> Result<Vec<Finding>, Refusal> {
    let Some(call) = Call::named(b"execve") else { return Ok(Vec::new()) };
    let starts = query::answer(about, &Question::Call(call, None))?;
    if starts.verdict == Verdict::Refused {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let executes = |entry: &Location| {
        whole.paths.execute.iter().find(|other| {
            let rest = entry.rest.strip_prefix(&*other.rest);
            other.base == entry.base && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    for entry in whole.paths.write.iter() {
        let Some(executed) = executes(&entry.value) else { continue };
        let rules = [&entry.origin, &executed.origin].map(|origin| Rule::of(origin));
        let meaning = "it can be written and executed: the command brings any program along";
        add(&mut findings, "programs", entry.value.to_string(), meaning, &rules);
    }
    Ok(findings)
}

/// Variables with secrets, or that load code into programs.
pub fn variables(whole: &Profile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in VARIABLES {
        let key = Name::new(name.as_bytes());
        let passed = whole.env.inherit.iter().find(|entry| entry.value.matches(key));
        let denied = whole.env.deny.iter().any(|entry| entry.value.matches(key));
        if let Some(entry) = passed.filter(|_| !denied) {
            let rule = Rule::of(&entry.origin);
            add(&mut findings, "variables", name.to_string(), "it is passed on, if it is set", &[rule]);
        }
    }
    findings
}
