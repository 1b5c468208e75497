//! A resolved profile for people and programs to read, with the origin of every entry.

use std::fmt::Display;
use std::mem;

use serde_json::{Map, Value, json};

use sbx_policy::restrictions::{self, Condition, Op, Width};

use crate::profile::calls::{Alternative, CallRules, Grants, Syscalls, When, errno_word};
use crate::profile::conditions::OPS;
use crate::profile::keys::{Part, with_origin};
use crate::profile::model::{Profile, Source};
use crate::profile::origin::{Given, Origin, Text};
use crate::profile::words::WhenMade;
use crate::text::tame;

/// The resolved profile as JSON.
pub fn show(profile: &Profile) -> Value {
    let source = match &profile.source {
        Source::BuiltIn => json!("built-in"),
        Source::File(path) => json!(path.to_string_lossy()),
    };
    let mut shown = Part::show(profile);
    shown["name"] = json!(profile.name);
    shown["source"] = source;
    shown["description"] = json!(profile.description);
    shown["lineage"] = profile.lineage.iter().map(ToString::to_string).collect();
    for (place, entry) in profile.paths.protect.iter().enumerate() {
        let shown = &mut shown["paths"]["protect"][place];
        if !entry.readers.is_empty() {
            shown["readers"] = entry.readers.iter().map(ToString::to_string).collect();
        }
        if entry.when_made != WhenMade::default() {
            shown["when_made"] = json!(entry.when_made.word());
        }
    }
    for (place, entry) in profile.home.copies.iter().enumerate() {
        let shown = &mut shown["home"]["copies"][place];
        shown["format"] = json!(entry.format.word());
        shown["keep"] = entry.keep.iter().map(|pattern| json!(**pattern)).collect();
    }
    shown
}

/// The section `syscalls` as JSON.
pub(crate) fn syscalls(syscalls: &Syscalls) -> Value {
    let calls: Map<_, _> =
        syscalls.calls.iter().map(|(call, rules)| (call.name().to_string(), call_rules(rules))).collect();
    json!({ "default": syscalls.default.show(), "calls": calls })
}

fn call_rules(rules: &CallRules) -> Value {
    let mut object = json!({});
    if !rules.allow.is_none() {
        object[if rules.log.is_some() { "log" } else { "allow" }] = grants(&rules.allow).into();
    }
    if !rules.inside.is_none() {
        let mut inside = grants(&rules.only_inside());
        inside.iter_mut().for_each(|entry| entry["needs"] = json!("namespaces"));
        match object["allow"].as_array_mut() {
            Some(list) => list.append(&mut inside),
            None => object["allow"] = inside.into(),
        }
    }
    if !rules.deny.is_none() {
        object["deny"] = grants(&rules.deny).into();
    }
    if let Some(number) = rules.errno {
        object["errno"] = json!(errno_word(number));
    }
    object
}

fn grants(grants: &Grants) -> Vec<Value> {
    let shown = |alternative: &Alternative| {
        let when = match &alternative.when {
            When::Named(place) => json!({ "restriction": restrictions::name(*place) }),
            When::Free(conditions) => json!({ "args": Value::from_iter(conditions.iter().map(condition)) }),
        };
        with_origin(when, &alternative.origin)
    };
    match grants {
        Grants::None => Vec::new(),
        Grants::All(origin) => vec![with_origin(json!({}), origin)],
        Grants::Some(alternatives) => alternatives.iter().map(shown).collect(),
    }
}

pub(crate) fn condition(condition: &Condition) -> Value {
    let Condition { arg, width, op, value } = condition;
    let name = OPS.iter().find(|(_, known)| mem::discriminant(known) == mem::discriminant(op));
    let width = if *width == Width::Dword { 32 } else { 64 };
    let mut object =
        json!({ "index": arg, "op": name.map_or("", |(name, _)| name), "value": value, "width": width });
    if let Op::MaskedEq(mask) = op {
        object["mask"] = json!(mask);
    }
    object
}

/// One line, whatever the texts in it hold.
fn line(text: &str) -> String {
    let blank = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        _ => tame(c),
    };
    text.chars().map(blank).chain(['\n']).collect()
}

/// The resolved profile as text: lists that can be read at a glance, each entry with its origin.
pub fn human(profile: &Profile) -> String {
    let mut text = line(&format!("{}: {}", profile.name, profile.description));
    if profile.lineage.len() > 1 {
        let parents: Vec<_> = profile.lineage.iter().map(|name| &**name).collect();
        text.push_str(&line(&format!("made of: {}", parents.join(", then "))));
    }
    if let Some(default) = &profile.syscalls.default {
        text.push_str(&format!("default action: {}\n", default.value));
    }
    let (mut allowed, mut logged, mut denied) = (Vec::new(), Vec::new(), Vec::new());
    for (call, rules) in profile.syscalls.calls.iter() {
        let name = call.name();
        let errno = rules.errno.map_or(String::new(), |number| format!("={}", errno_word(number)));
        if rules.log.is_some() { &mut logged } else { &mut allowed }.extend(granted(name, &rules.allow, ""));
        allowed.extend(granted(name, &rules.only_inside(), ", where the run has namespaces of its own"));
        denied.extend(granted(name, &rules.deny, &errno));
    }
    let paths = &profile.paths;
    let protected = paths.protect.iter().map(|entry| {
        let readers: Vec<_> = entry.readers.iter().map(ToString::to_string).collect();
        let readers = if readers.is_empty() { "" } else { &format!(" read by {}", readers.join(", ")) };
        let when_made = if entry.when_made == WhenMade::SetAside { ", set aside when made" } else { "" };
        format!("{}{readers}{when_made}{}", entry.path, from(&entry.origin))
    });
    let Profile { home, network, env, limits, commands, agent, .. } = profile;
    let copies = home.copies.iter().map(|copy| {
        let keep: Vec<&str> = copy.keep.iter().map(|pattern| &**pattern).collect();
        format!("{} ({}: {}){}", copy.path, copy.format, keep.join(" "), from(&copy.origin))
    });
    let bounds = [
        word("timeout", &limits.timeout),
        word("output", &limits.output),
        word("processes", &limits.processes),
        word("open_files", &limits.open_files),
        word("file_size", &limits.file_size),
        word("memory", &limits.memory),
        word("cpu", &limits.cpu),
    ];
    let words = [
        word("home", &home.mode),
        word("network", &network.mode),
        word("static", &profile.static_programs),
        word("namespaces", &profile.namespaces),
        word("require", &profile.require),
    ];
    for (title, entries) in [
        ("calls allowed", allowed),
        ("calls allowed and noted", logged),
        ("calls denied", denied),
        ("paths to read", list(&paths.read)),
        ("paths to read and execute", list(&paths.execute)),
        ("paths to read and write", list(&paths.write)),
        ("paths not to touch", list(&paths.deny)),
        ("paths not to change", protected.collect()),
        ("directories of packages in a private home", list(&home.stores)),
        ("settings copied into a private home", copies.collect()),
        ("variables set where the home is closed", named(&home.closed_env)),
        ("groups of hosts", named(&network.groups)),
        ("hosts to connect to", list(&network.connect)),
        ("hosts not to connect to", list(&network.deny)),
        ("ports to listen on", list(&network.bind)),
        ("sockets of the machine", list(&network.unix)),
        ("variables set where no other machine can be reached", named(&network.closed_env)),
        ("variables passed on", list(&env.inherit)),
        ("variables passed on where the network is open", list(&env.addresses)),
        ("variables never passed on", list(&env.deny)),
        ("variables set", named(&env.set)),
        ("commands allowed, and no others", list(&commands.allow)),
        ("commands blocked", list(&commands.block)),
        ("limits", bounds.into_iter().flatten().collect()),
        ("how it runs", words.into_iter().flatten().collect()),
        ("names of the agent's program", list(&agent.programs)),
        ("arguments of the agent", list(&agent.arguments)),
        ("keys passed to the agent", list(&agent.keys)),
        ("what does not work in the agent", list(&agent.noise)),
    ] {
        if !entries.is_empty() {
            text.push_str(&format!("\n{title}:\n"));
            text.extend(entries.iter().map(|entry| line(&format!("  {entry}"))));
        }
    }
    text
}

/// A single value, with its name.
fn word<T: Display>(name: &str, given: &Option<Given<T>>) -> Option<String> {
    given.as_ref().map(|given| format!("{name} {}{}", given.value, from(&given.origin)))
}

fn named<T: Display>(entries: &[(Text, Given<T>)]) -> Vec<String> {
    let line = |(name, given): &(Text, Given<T>)| format!("{name}={}{}", given.value, from(&given.origin));
    entries.iter().map(line).collect()
}

fn list<T: Display>(entries: &[Given<T>]) -> Vec<String> {
    entries.iter().map(|entry| format!("{}{}", entry.value, from(&entry.origin))).collect()
}

fn from(origin: &Origin) -> String {
    let why = origin.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
    let optional = if origin.optional && !origin.built_in { ", may be missing" } else { "" };
    let unless = if origin.unless_credentials { ", unless it holds credentials" } else { "" };
    format!("{optional}{unless}  ({} {}{why})", origin.profile, origin.place())
}

/// A line for each condition under which a call is allowed or denied.
fn granted(name: &str, grants: &Grants, suffix: &str) -> Vec<String> {
    let line = |when: String, origin: &Origin| format!("{name}{when}{suffix}{}", from(origin));
    match grants {
        Grants::None => Vec::new(),
        Grants::All(origin) => vec![line(String::new(), origin)],
        Grants::Some(alternatives) => alternatives
            .iter()
            .map(|entry| {
                let when = match &entry.when {
                    When::Named(place) => format!("[{}]", restrictions::name(*place)),
                    When::Free(list) => format!(" {}", Value::from_iter(list.iter().map(condition))),
                };
                line(when, &entry.origin)
            })
            .collect(),
    }
}
