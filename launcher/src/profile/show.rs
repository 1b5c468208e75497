//! A resolved profile for people and programs to read, with the origin of every entry.

use std::time::Duration;

use serde_json::{Map, Value, json};

use sbx_policy::errno;
use sbx_policy::restrictions::{self, Condition, Op, Width};

use super::error::tame;
use super::model::{
    CallRules, DefaultAction, Given, Grants, Limits, Origin, PathEntry, Profile, Protection, Source, When,
};
use super::units::{self, Bound};

/// The resolved profile as JSON.
pub fn show(profile: &Profile) -> Value {
    let source = match &profile.source {
        Source::BuiltIn => json!("built-in"),
        Source::File(path) => json!(path.to_string_lossy()),
    };
    let calls: Map<_, _> = profile
        .syscalls
        .calls
        .iter()
        .map(|(call, rules)| (call.name().to_string(), call_rules(rules)))
        .collect();
    let env_set: Map<_, _> = profile
        .env
        .set
        .iter()
        .map(|(name, value)| (name.to_string(), given(value, ToString::to_string)))
        .collect();
    json!({
        "name": profile.name,
        "source": source,
        "description": profile.description,
        "lineage": profile.lineage.iter().map(|name| name.to_string()).collect::<Vec<_>>(),
        "syscalls": {
            "default": optional(&profile.syscalls.default, |action| action_word(*action)),
            "calls": calls,
        },
        "paths": {
            "read": paths(&profile.paths.read),
            "execute": paths(&profile.paths.execute),
            "write": paths(&profile.paths.write),
            "deny": paths(&profile.paths.deny),
            "protect": profile.paths.protect.iter().map(protection).collect::<Vec<_>>(),
        },
        "network": {
            "mode": optional(&profile.network.mode, |mode| mode.word().to_string()),
            "connect": list(&profile.network.connect, ToString::to_string),
            "bind": list(&profile.network.bind, ToString::to_string),
            "unix": paths(&profile.network.unix),
        },
        "env": {
            "inherit": list(&profile.env.inherit, ToString::to_string),
            "set": env_set,
            "deny": list(&profile.env.deny, ToString::to_string),
        },
        "limits": limits(&profile.limits),
        "commands": {
            "allow": list(&profile.commands.allow, ToString::to_string),
            "block": list(&profile.commands.block, ToString::to_string),
        },
        "static": optional(&profile.static_programs, |mode| mode.word().to_string()),
        "namespaces": optional(&profile.namespaces, |namespaces| namespaces.word().to_string()),
        "require": optional(&profile.require, |level| level.word().to_string()),
    })
}

fn action_word(action: DefaultAction) -> String {
    match action {
        DefaultAction::Allow => "allow".to_string(),
        DefaultAction::Kill => "kill".to_string(),
        DefaultAction::Log => "log".to_string(),
        DefaultAction::Errno(number) => format!("errno={}", errno_word(number)),
    }
}

fn errno_word(number: u16) -> String {
    errno::name(number).map_or(number.to_string(), str::to_string)
}

fn key_of(origin: &Origin) -> String {
    origin.index.map_or(origin.key.to_string(), |index| format!("{}[{index}]", origin.key))
}

fn with_origin(mut object: Map<String, Value>, origin: &Origin) -> Value {
    object.insert("profile".to_string(), json!(*origin.profile));
    object.insert("key".to_string(), json!(key_of(origin)));
    if let Some(why) = &origin.why {
        object.insert("why".to_string(), json!(why));
    }
    Value::Object(object)
}

fn given<T>(given: &Given<T>, word: impl Fn(&T) -> String) -> Value {
    let object = Map::from_iter([("value".to_string(), json!(word(&given.value)))]);
    with_origin(object, &given.origin)
}

fn optional<T>(value: &Option<Given<T>>, word: impl Fn(&T) -> String) -> Value {
    value.as_ref().map_or(Value::Null, |value| given(value, word))
}

fn list<T>(list: &[Given<T>], word: impl Fn(&T) -> String) -> Vec<Value> {
    list.iter().map(|entry| given(entry, &word)).collect()
}

fn paths(list_of: &[PathEntry]) -> Vec<Value> {
    list(list_of, ToString::to_string)
}

fn protection(entry: &Given<Protection>) -> Value {
    let mut shown = given(entry, ToString::to_string);
    if !entry.readers.is_empty() {
        shown["readers"] = entry.readers.iter().map(ToString::to_string).collect();
    }
    shown
}

fn limits(limits: &Limits) -> Value {
    let time = |bound: &Bound<Duration>| word(bound, |time| units::exactly(*time));
    let amount = |bound: &Bound<u64>| word(bound, ToString::to_string);
    json!({
        "timeout": optional(&limits.timeout, time),
        "output": optional(&limits.output, amount),
        "processes": optional(&limits.processes, amount),
        "open_files": optional(&limits.open_files, amount),
        "file_size": optional(&limits.file_size, amount),
        "memory": optional(&limits.memory, amount),
        "cpu": optional(&limits.cpu, time),
    })
}

fn word<T>(bound: &Bound<T>, shown: impl Fn(&T) -> String) -> String {
    match bound {
        Bound::Unlimited => "none".to_string(),
        Bound::At(limit) => shown(limit),
    }
}

fn call_rules(rules: &CallRules) -> Value {
    let mut object = Map::new();
    if !rules.allow.is_none() {
        let key = if rules.log.is_some() { "log" } else { "allow" };
        object.insert(key.to_string(), grants(&rules.allow));
    }
    if !rules.deny.is_none() {
        object.insert("deny".to_string(), grants(&rules.deny));
    }
    if let Some(number) = rules.errno {
        object.insert("errno".to_string(), json!(errno_word(number)));
    }
    Value::Object(object)
}

fn grants(grants: &Grants) -> Value {
    match grants {
        Grants::None => Value::Null,
        Grants::All(origin) => json!([with_origin(Map::new(), origin)]),
        Grants::Some(alternatives) => alternatives
            .iter()
            .map(|alternative| {
                let when = match &alternative.when {
                    When::Named(place) => ("restriction", json!(restrictions::name(*place))),
                    When::Free(conditions) => ("args", conditions.iter().map(condition).collect()),
                };
                with_origin(Map::from_iter([(when.0.to_string(), when.1)]), &alternative.origin)
            })
            .collect(),
    }
}

fn condition(condition: &Condition) -> Value {
    let (op, mask) = match condition.op {
        Op::Eq => ("eq", None),
        Op::Ne => ("ne", None),
        Op::Lt => ("lt", None),
        Op::Le => ("le", None),
        Op::Gt => ("gt", None),
        Op::Ge => ("ge", None),
        Op::MaskedEq(mask) => ("masked_eq", Some(mask)),
    };
    let width = if condition.width == Width::Dword { 32 } else { 64 };
    let mut object = Map::from_iter([
        ("index".to_string(), json!(condition.arg)),
        ("op".to_string(), json!(op)),
        ("value".to_string(), json!(condition.value)),
        ("width".to_string(), json!(width)),
    ]);
    if let Some(mask) = mask {
        object.insert("mask".to_string(), json!(mask));
    }
    Value::Object(object)
}

/// One line, whatever the texts in it hold.
fn line(text: &str) -> String {
    let blank = |c: char| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { tame(c) };
    text.chars().map(blank).chain(['\n']).collect()
}

/// The resolved profile as text: lists that can be read at a glance, each entry with where it comes from when
/// that is not the profile itself.
pub fn human(profile: &Profile) -> String {
    let mut text = line(&format!("{}: {}", profile.name, profile.description));
    if profile.lineage.len() > 1 {
        let parents: Vec<_> = profile.lineage.iter().map(|name| &**name).collect();
        text.push_str(&line(&format!("made of: {}", parents.join(", then "))));
    }
    if let Some(default) = &profile.syscalls.default {
        text.push_str(&format!("default action: {}\n", action_word(default.value)));
    }
    let mut section = |title: &str, entries: Vec<String>| {
        if !entries.is_empty() {
            text.push_str(&format!("\n{title}:\n"));
            entries.iter().for_each(|entry| text.push_str(&line(&format!("  {entry}"))));
        }
    };
    let foreign = |origin: &Origin| {
        let why = origin.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
        format!("  ({} {}{why})", origin.profile, key_of(origin))
    };
    let mut allowed = Vec::new();
    let mut noted = Vec::new();
    let mut denied = Vec::new();
    for (call, rules) in profile.syscalls.calls.iter() {
        let errno = rules.errno.map_or(String::new(), |number| format!("={}", errno_word(number)));
        let lines = |grants: &Grants, suffix: &str| match grants {
            Grants::None => Vec::new(),
            Grants::All(origin) => vec![format!("{}{suffix}{}", call.name(), foreign(origin))],
            Grants::Some(list) => list
                .iter()
                .map(|entry| {
                    let when = match &entry.when {
                        When::Named(place) => format!("[{}]", restrictions::name(*place)),
                        When::Free(list) => {
                            format!(" {}", Value::from_iter(list.iter().map(condition)))
                        }
                    };
                    format!("{}{when}{suffix}{}", call.name(), foreign(&entry.origin))
                })
                .collect(),
        };
        if rules.log.is_some() { &mut noted } else { &mut allowed }.extend(lines(&rules.allow, ""));
        denied.extend(lines(&rules.deny, &errno));
    }
    section("calls allowed", allowed);
    section("calls allowed and noted", noted);
    section("calls denied", denied);
    let paths = |list: &[PathEntry]| {
        list.iter().map(|entry| format!("{}{}", entry.value, foreign(&entry.origin))).collect::<Vec<_>>()
    };
    section("paths to read", paths(&profile.paths.read));
    section("paths to read and execute", paths(&profile.paths.execute));
    section("paths to read and write", paths(&profile.paths.write));
    section("paths not to touch", paths(&profile.paths.deny));
    let protected = profile.paths.protect.iter();
    let protected = protected.map(|entry| {
        let readers: Vec<_> = entry.readers.iter().map(ToString::to_string).collect();
        let readers =
            if readers.is_empty() { String::new() } else { format!(" read by {}", readers.join(", ")) };
        format!("{}{readers}{}", entry.path, foreign(&entry.origin))
    });
    section("paths not to change", protected.collect());
    text
}
