//! How a document changes what those before it gave.

use std::collections::HashSet;
use std::hash::Hash;

use super::location::Location;
use super::model::{CallRules, CallTable, Given, Grants, Limits, List, Origin, Profile, Text};
use super::resolve::Loaded;

/// Applies one document of the family to the profile.
pub(crate) fn apply(profile: &mut Profile, family: &mut [Loaded], index: usize) {
    let Some(loaded) = family.get_mut(index) else { return };
    let document = std::mem::take(&mut loaded.document);
    profile.lineage.to_mut().push(loaded.name.clone());
    profile.description = document.description.unwrap_or_default();
    nearest(&mut profile.syscalls.default, document.syscalls.default);
    calls(&mut profile.syscalls.calls, document.syscalls.calls, family, index);
    unite(&mut profile.paths.read, document.paths.read);
    unite(&mut profile.paths.execute, document.paths.execute);
    unite(&mut profile.paths.write, document.paths.write);
    unite(&mut profile.paths.deny, document.paths.deny);
    unite(&mut profile.paths.protect, document.paths.protect);
    nearest(&mut profile.network.mode, document.network.mode);
    unite(&mut profile.network.connect, document.network.connect);
    unite(&mut profile.network.bind, document.network.bind);
    unite(&mut profile.network.unix, document.network.unix);
    unite(&mut profile.env.inherit, document.env.inherit);
    unite(&mut profile.env.deny, document.env.deny);
    set(&mut profile.env.set, document.env.set);
    limits(&mut profile.limits, document.limits);
    unite(&mut profile.commands.allow, document.commands.allow);
    unite(&mut profile.commands.block, document.commands.block);
    nearest(&mut profile.static_programs, document.static_programs);
    nearest(&mut profile.namespaces, document.namespaces);
    nearest(&mut profile.require, document.require);
}

fn nearest<T>(slot: &mut Option<T>, said: Option<T>) {
    if said.is_some() {
        *slot = said;
    }
}

fn unite<T: Eq + Hash + Clone>(list: &mut List<Given<T>>, said: List<Given<T>>) {
    let mut said = said.into_owned();
    // Of the built-in profiles a test says that they do not repeat each other.
    let built_in = |list: &[Given<T>]| list.iter().all(|given| given.origin.built_in);
    let apart = list.is_empty() || said.is_empty() || (built_in(list) && built_in(&said));
    if !apart {
        let known: HashSet<&T> = list.iter().map(|given| &given.value).collect();
        said.retain(|given| !known.contains(&given.value));
    }
    list.to_mut().append(&mut said);
}

/// The value that was said last counts.
fn set(list: &mut List<(Text, Given<Location>)>, said: List<(Text, Given<Location>)>) {
    let list = list.to_mut();
    for (name, value) in said.into_owned() {
        match list.binary_search_by(|(known, _)| known.cmp(&name)) {
            Ok(place) => list[place].1 = value,
            Err(place) => list.insert(place, (name, value)),
        }
    }
}

fn limits(limits: &mut Limits, said: Limits) {
    nearest(&mut limits.timeout, said.timeout);
    nearest(&mut limits.output, said.output);
    nearest(&mut limits.processes, said.processes);
    nearest(&mut limits.open_files, said.open_files);
    nearest(&mut limits.file_size, said.file_size);
    nearest(&mut limits.memory, said.memory);
    nearest(&mut limits.cpu, said.cpu);
}

fn calls(calls: &mut CallTable, said: CallTable, family: &[Loaded], index: usize) {
    if calls.0.is_empty() {
        *calls = said;
        return;
    }
    for (call, said) in said.0.into_owned() {
        calls.change(call, |known| replace(known, said, |origin| inherited(origin, family, index)));
    }
}

/// Whether an entry is that of an ancestor, which a document may take back; not that of another parent of a
/// common child.
pub(crate) fn inherited(origin: &Origin, family: &[Loaded], index: usize) -> bool {
    let place = family.iter().position(|loaded| std::ptr::eq(&*loaded.name, &*origin.profile));
    let ancestors = family.get(index).map(|loaded| &loaded.ancestors);
    place.zip(ancestors).is_some_and(|(place, ancestors)| ancestors.contains(&place))
}

/// What a document says about a call replaces what was said before, except that a denial under conditions
/// only takes away, and that only its own children can take back what a document denies.
fn replace(known: &mut CallRules, mut said: CallRules, inherited: impl Fn(&Origin) -> bool) {
    let only_takes_away = said.allow.is_none() && matches!(said.deny, Grants::Some(_));
    if only_takes_away {
        known.errno = said.errno.or(known.errno);
        let earlier = std::mem::replace(&mut known.deny, said.deny);
        deny_too(&mut known.deny, earlier);
        return;
    }
    let foreign = match std::mem::take(&mut known.deny) {
        Grants::All(origin) if !inherited(&origin) => Grants::All(origin),
        Grants::Some(mut refusals) => {
            refusals.to_mut().retain(|refusal| !inherited(&refusal.origin));
            if refusals.is_empty() { Grants::None } else { Grants::Some(refusals) }
        }
        _ => Grants::None,
    };
    if !foreign.is_none() {
        said.errno = said.errno.or(known.errno);
        deny_too(&mut said.deny, foreign);
        if matches!(said.deny, Grants::All(_)) {
            (said.allow, said.log) = (Grants::None, None);
        }
    }
    *known = said;
}

fn deny_too(denied: &mut Grants, more: Grants) {
    match (&mut *denied, more) {
        (Grants::All(_), _) | (_, Grants::None) => {}
        (_, Grants::All(origin)) => *denied = Grants::All(origin),
        (Grants::None, more) => *denied = more,
        (Grants::Some(list), Grants::Some(more)) => {
            for refusal in more.into_owned() {
                if !list.iter().any(|known| known.when == refusal.when) {
                    list.to_mut().push(refusal);
                }
            }
        }
    }
}
