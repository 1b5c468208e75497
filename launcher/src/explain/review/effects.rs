//! What one profile gives beyond another one, by effect: by the table that a filter is made of, and by what rules about
//! paths cover, whatever the entries are called.

mod agent;
mod network;
mod paths;
mod variables;

use crate::error::Refusal;
use crate::plan::calls::{self, Calls, Extras, Unix};
use crate::plan::network::names_hosts;
use crate::plan::rules::Network;
use crate::profile::foreign::oci::{Asked, is_covered};
use crate::profile::{
    Commands, DefaultAction, Given, Grants, Home, HomeMode, Limits, Namespaces, NetworkMode, Origin, Pattern,
    Profile, SettingsCopy, Shared, StaticMode, Syscalls, Text,
};
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::restrictions;
use sbx_policy::rules::{Actions, Grant, Row, Rules};

/// Something that a profile gives.
#[derive(Clone, Debug)]
pub struct Effect {
    /// What kind of thing it is, in a word.
    pub kind: &'static str,
    /// What exactly.
    pub what: String,
    /// The rule that gives it; none where it is one that is missing.
    pub rule: Option<Shared<Origin>>,
    /// The reason that the profile gives, or what is missing.
    pub why: Option<String>,
}

impl Effect {
    fn new(kind: &'static str, what: impl Into<String>) -> Effect {
        Effect { kind, what: what.into(), rule: None, why: None }
    }

    fn by(self, origin: &Shared<Origin>) -> Effect {
        let why = origin.why.as_ref().map(ToString::to_string);
        Effect { rule: Some(origin.clone()), why, ..self }
    }

    /// Of a rule that there is, or of a key that the profile lacks, which gives it.
    fn of<T>(self, given: Option<&Given<T>>, key: &str, profile: &Profile) -> Effect {
        match given {
            Some(given) => self.by(&given.origin),
            None => Effect { why: Some(format!("profile '{}' has no {key}", profile.name)), ..self },
        }
    }
}

/// What the first profile gives and the second does not.
pub fn beyond(more: &Profile, less: &Profile) -> Result<Vec<Effect>, Refusal> {
    // Whoever adds a key is asked by the compiler what it gives: here, and where its section is compared.
    let Profile {
        // Who a profile is gives nothing.
        name: _,
        source: _,
        files: _,
        description: _,
        lineage: _,
        syscalls: _,
        paths: _,
        home: _,
        network: _,
        env: _,
        limits: _,
        commands: _,
        static_programs: _,
        namespaces: _,
        require: _,
        agent: _,
    } = more;
    let mut effects = Vec::new();
    in_calls(more, less, &mut effects)?;
    paths::differ(&more.paths, &less.paths, &mut effects);
    network::differ(more, less, &mut effects)?;
    in_commands(&more.commands, &less.commands, &mut effects);
    variables::differ(more, less, &mut effects);
    in_limits(more, less, &mut effects);
    in_words(more, less, &mut effects);
    in_home(more, less, &mut effects);
    agent::differ(more, less, &mut effects);
    Ok(effects)
}

/// The calls of a run under a profile, where the machine gives all that it asks for.
struct Table {
    calls: Calls,
    rules: Box<Rules>,
    is_open: bool,
}

/// The network of such a run. One that reaches hosts has one of its own.
fn mode(profile: &Profile) -> Result<NetworkMode, Refusal> {
    Ok(match calls::mode(profile) {
        NetworkMode::Loopback => NetworkMode::Private,
        NetworkMode::Ports if names_hosts(profile)? => NetworkMode::Private,
        mode => mode,
    })
}

fn table(profile: &Profile) -> Result<Table, Refusal> {
    let mode = mode(profile)?;
    let bind = profile.network.bind.iter().map(|entry| entry.value).collect();
    let network = Network { mode, bind, ..Network::default() };
    let view = has_namespaces(profile);
    let calls =
        calls::calls(profile, &network, view || mode == NetworkMode::Private, Unix::ByPath, Arch::HOST)?;
    let calls = calls.inside(view);
    let actions = Actions { violation: bpf::RET_TRAP, log: bpf::RET_LOG, unknown: None };
    let (rules, _) = calls.rules(actions, Extras::default())?;
    let is_open = calls.open_by().is_some();
    Ok(Table { calls, rules, is_open })
}

impl Table {
    /// Whether it lets a call through, with some arguments at least.
    fn allows(&self, call: Call) -> bool {
        let row = self.calls.in_effect(self.rules.row(call).copied().unwrap_or_default());
        !matches!(row.deny, Grant::All) && (self.is_open || !matches!(row.allow, Grant::None))
    }
}

fn has_namespaces(profile: &Profile) -> bool {
    profile.namespaces.as_deref() == Some(&Namespaces::Auto)
}

fn in_calls(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) -> Result<(), Refusal> {
    // What is done with a call that is refused is a word; which error it fails with gives nothing.
    let Syscalls { default: _, calls: _ } = &more.syscalls;
    let profile = more;
    let views = (has_namespaces(more), has_namespaces(less));
    let (more, less) = (table(more)?, table(less)?);
    if more.is_open && !less.is_open {
        let effect = Effect::new("call", "every system call that no entry answers with an error");
        effects.push(effect.of(profile.syscalls.default.as_ref(), "syscalls.default", profile));
        return Ok(());
    }
    for call in Call::all() {
        let row = |table: &Table| table.calls.in_effect(table.rules.row(call).copied().unwrap_or_default());
        // There all is allowed that nothing denies.
        if less.is_open && matches!(row(&less).deny, Grant::None) {
            continue;
        }
        let asked = |table: &Table, view| Asked::of(&table.rules, table.calls.rules_of(call), call, view);
        let (wide, narrow) = (asked(&more, views.0), asked(&less, views.1));
        // Whatever the conditions are called.
        let covered = is_covered(wide.as_ref(), narrow.as_ref());
        if covered == Some(true) {
            continue;
        }
        let said = more.calls.allowed(call);
        let mut beyond = beyond_row(call, row(&more), row(&less));
        let by_numbers = beyond.is_empty() && covered == Some(false);
        if by_numbers {
            beyond.push(format!("{} with some numbers", call.name()));
        }
        for what in beyond {
            // What no entry says as widely comes with the network.
            let by_entry = by_numbers || matches!(said, Grants::All(_)) || what.contains('[');
            let origin = said.origins().next().filter(|_| by_entry);
            let origin = origin.or(profile.network.mode.as_ref().map(|mode| &mode.origin));
            let effect = Effect::new("call", what);
            effects.push(match origin {
                Some(origin) => effect.by(origin),
                None => effect,
            });
        }
    }
    Ok(())
}

/// What a row of a table lets through and another does not.
fn beyond_row(call: Call, more: Row, less: Row) -> Vec<String> {
    let name = call.name();
    let places = |mask: u16| {
        restrictions::of_call(call)
            .enumerate()
            .filter(move |(bit, _)| mask & (1 << bit) != 0)
            .map(|(_, place)| place)
    };
    let denied = |row: Row| match row.deny {
        Grant::All => None,
        Grant::Some(mask) => Some(mask),
        Grant::None => Some(0),
    };
    let (Some(denied_more), Some(denied_less)) = (denied(more), denied(less)) else {
        return match (denied(more), more.allow) {
            (None, _) | (_, Grant::None) => Vec::new(),
            (Some(_), Grant::All) => vec![name.to_string()],
            (Some(_), Grant::Some(mask)) => named(name, places(mask)),
        };
    };
    let taken_back = named(name, places(denied_less & !denied_more));
    match (more.allow, less.allow) {
        (Grant::None, _) => Vec::new(),
        (Grant::All, Grant::None) => vec![name.to_string()],
        (Grant::All, Grant::Some(_)) => vec![format!("{name} with any arguments")],
        (Grant::All, Grant::All) => taken_back,
        (Grant::Some(_), Grant::All) => Vec::new(),
        (Grant::Some(mask), Grant::None) => named(name, places(mask)),
        (Grant::Some(mask), Grant::Some(known)) => {
            let is_known = |place: &usize| {
                places(known)
                    .any(|wide| wide == *place || crate::explain::hint::includes_restriction(wide, *place))
            };
            named(name, places(mask).filter(|place| !is_known(place)))
        }
    }
}

fn named(call: &str, places: impl Iterator<Item = usize>) -> Vec<String> {
    places.map(|place| format!("{call}[{}]", restrictions::name(place))).collect()
}

fn in_commands(more: &Commands, less: &Commands, effects: &mut Vec<Effect>) {
    let has = |list: &[Given<Text>], name: &Text| list.iter().any(|entry| entry.value == *name);
    let Commands { allow, block } = more;
    if allow.is_empty() && !less.allow.is_empty() {
        effects.push(Effect::new("start", "commands that no list names"));
    }
    let allowed = allow.iter().filter(|entry| !less.allow.is_empty() && !has(&less.allow, &entry.value));
    effects.extend(allowed.map(|entry| Effect::new("start", entry.value.to_string()).by(&entry.origin)));
    for entry in less.block.iter().filter(|entry| !has(block, &entry.value)) {
        let effect = Effect::new("start", entry.value.to_string());
        effects.push(Effect { why: Some(format!("{} blocks it", key(&entry.origin))), ..effect });
    }
}

/// The key of an entry, and its profile: for what many entries have in common.
pub fn key(origin: &Origin) -> String {
    format!("{} of profile '{}'", origin.key, origin.profile)
}

/// Limits that the second profile has, and the first does not or more loosely.
fn in_limits(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) {
    macro_rules! looser {
        ($($field:ident $word:literal,)*) => {
            let Limits { $($field,)* } = &more.limits;
            $({
            let (loose, tight) = ($field, &less.limits.$field);
            let tight = tight.as_ref().and_then(|given| given.value.limit());
            let bound = loose.as_ref().and_then(|given| given.value.limit());
            if tight.is_some_and(|tight| bound.is_none_or(|bound| bound > tight)) {
                let text = loose.as_ref().map_or("no limit".to_string(), |given| given.value.to_string());
                let effect = Effect::new("limit", format!("{}: {text}", $word));
                effects.push(effect.of(loose.as_ref(), concat!("limits.", stringify!($field)), more));
            }
            })*
        };
    }
    limits!(looser);
}

/// Single words, of which one lets more be done than another.
fn in_words(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) {
    let mode = |profile: &Profile| profile.static_programs.as_deref().copied().unwrap_or_default();
    if mode(more) != StaticMode::Block && mode(less) == StaticMode::Block {
        let effect = Effect::new("start", "programs that are linked statically");
        effects.push(effect.of(more.static_programs.as_ref(), "static", more));
    }
    if has_namespaces(less) && !has_namespaces(more) {
        let effect = Effect::new("see", "the processes and the /tmp of this machine");
        effects.push(effect.of(more.namespaces.as_ref(), "namespaces", more));
    }
    let level = |profile: &Profile| profile.require.as_deref().copied();
    if level(more) < level(less) {
        let effect = Effect::new("run", "where less can be enforced than the other requires");
        effects.push(effect.of(more.require.as_ref(), "require", more));
    }
    let default = |profile: &Profile| profile.syscalls.default.as_deref().copied();
    if default(less) == Some(DefaultAction::Kill) && default(more).is_none_or(refuses) {
        let effect = Effect::new("run", "on after a call that is refused");
        effects.push(effect.of(more.syscalls.default.as_ref(), "syscalls.default", more));
    }
}

/// Whether a call that is not allowed fails, and the process goes on.
fn refuses(default: DefaultAction) -> bool {
    matches!(default, DefaultAction::Errno(_))
}

/// Maximum number of kinds of lines of a copy that are told.
const MOST_LINES: usize = 2;

/// Whose the home is, and what one of the run's own gets of the user's.
fn in_home(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) {
    // What is set where it is closed is a variable.
    let Home { mode, stores, copies, closed_env: _ } = &more.home;
    let home = |mode: &Option<Given<HomeMode>>| mode.as_deref().copied().unwrap_or_default();
    if home(mode) != home(&less.home.mode) {
        effects.push(Effect::new("home", home(mode).to_string()).of(mode.as_ref(), "home.mode", more));
    }
    for entry in stores.iter() {
        if !less.home.stores.iter().any(|other| other.value.holds(&entry.value)) {
            effects.push(Effect::new("home", format!("shows {}", entry.value)).by(&entry.origin));
        }
    }
    for entry in copies.iter() {
        let SettingsCopy { path, format, keep } = &entry.value;
        let known = less.home.copies.iter().filter(|other| other.path == *path && other.format == *format);
        let known: Vec<&Pattern> = known.flat_map(|other| other.keep.iter()).collect();
        let new = keep.iter().filter(|pattern| !known.contains(pattern));
        let new: Vec<&str> = new.map(|pattern| &**pattern).collect();
        if !new.is_empty() {
            let others = new.len().saturating_sub(MOST_LINES);
            let others = if others > 0 { format!(" and {others} others") } else { String::new() };
            let first: Vec<&str> = new.into_iter().take(MOST_LINES).collect();
            let what = format!("copies of {path} as {format}: {}{others}", first.join(", "));
            effects.push(Effect::new("home", what).by(&entry.origin));
        }
    }
}

#[cfg(test)]
mod tests;
