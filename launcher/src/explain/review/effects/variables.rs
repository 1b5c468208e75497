//! What variables one profile passes on or sets, and another does not.

use crate::explain::review::effects::{Effect, key};
use crate::explain::review::probes::{SetFor, is_denied, set};
use crate::profile::{Env, Given, Location, Pattern, Profile};

/// How far variables of some names are passed on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passing {
    Nothing,
    /// Where the network is open, and no password is in them.
    OpenNetwork,
    /// Where no password is in them.
    NoPassword,
    Whole,
}

/// How far a profile passes them on.
pub fn passing(profile: &Profile, names: &Pattern) -> Passing {
    let inherited = profile.env.inherit.iter().any(|known| known.value.covers(names));
    let is_address = profile.env.addresses.iter().any(|known| known.value.covers(names));
    match (inherited, is_address) {
        _ if is_denied(profile, names) => Passing::Nothing,
        (false, false) => Passing::Nothing,
        (false, true) => Passing::OpenNetwork,
        (true, true) => Passing::NoPassword,
        (true, false) => Passing::Whole,
    }
}

/// How much further such variables are passed on.
fn remark(wide: Passing, narrow: Passing) -> &'static str {
    match (wide, narrow) {
        (Passing::OpenNetwork, _) => ", where the network is open and no password is in it",
        (Passing::NoPassword, Passing::OpenNetwork) => ", where the network is not open too",
        (Passing::NoPassword, _) => ", where no password is in it",
        (_, Passing::OpenNetwork | Passing::NoPassword) => ", with a password in it too",
        _ => "",
    }
}

pub fn differ(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) {
    passed(more, less, effects);
    set_by(more, less, effects);
}

fn passed(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) {
    // What is denied is not passed on, and what is set is compared by itself.
    let Env { inherit, addresses, deny: _, set: _ } = &more.env;
    let named = inherit.iter().chain(addresses.iter());
    let mut told: Vec<&Pattern> = Vec::new();
    for entry in named.clone() {
        let names = &entry.value;
        let (wide, narrow) = (passing(more, names), passing(less, names));
        if wide > narrow && !told.contains(&names) {
            let effect = Effect::new("variable", format!("{names}{}", remark(wide, narrow)));
            effects.push(effect.by(&entry.origin));
            told.push(names);
        }
    }
    // What another profile denies, or looks for passwords in, is a difference where this one passes such names on.
    let mut taken_back = |entry: &Given<Pattern>, how: &str| {
        let effect = Effect::new("variable", entry.value.to_string());
        effects.push(Effect { why: Some(format!("{} {how}", key(&entry.origin))), ..effect });
    };
    for entry in less.env.deny.iter().filter(|entry| !is_denied(more, &entry.value)) {
        if named.clone().any(|known| known.value.overlaps(&entry.value)) {
            taken_back(entry, "denies it");
        }
    }
    for entry in
        less.env.addresses.iter().filter(|entry| !told.iter().any(|names| names.covers(&entry.value)))
    {
        if passing(more, &entry.value) > passing(less, &entry.value) {
            taken_back(entry, "passes no password on");
        }
    }
}

fn set_by(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) {
    for (name, value, who) in set(more) {
        let same = |(known, other, by): (&str, &Given<Location>, SetFor)| {
            known == name && other.value == value.value && (by == SetFor::Every || by == who)
        };
        if !set(less).any(same) {
            let kind = if who == SetFor::Every { "variable" } else { who.label() };
            effects.push(Effect::new(kind, format!("{name}={}", value.value)).by(&value.origin));
        }
    }
}
