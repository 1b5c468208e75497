//! How `sbx agent` starts an agent under one profile and not under another.

use crate::explain::review::effects::Effect;
use crate::explain::review::effects::variables::{Passing, passing};
use crate::profile::{Agent, Given, Profile, Text};

pub fn differ(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) {
    // What is known not to work is told to people.
    let Agent { programs, arguments, keys, places, noise: _ } = &more.agent;
    in_order("as", programs, &less.agent.programs, effects);
    in_order("with the argument", arguments, &less.agent.arguments, effects);
    for entry in keys.iter().filter(|entry| passing(less, &entry.value) < Passing::NoPassword) {
        if !less.agent.keys.iter().any(|known| known.value.covers(&entry.value)) {
            let effect = Effect::new("variable", format!("{} (by sbx agent)", entry.value));
            effects.push(effect.by(&entry.origin));
        }
    }
    for (name, value) in places.iter() {
        if !less.agent.places.iter().any(|(known, other)| known == name && other.value == value.value) {
            let effect = Effect::new("agent", format!("with its settings in {name}={}", value.value));
            effects.push(effect.by(&value.origin));
        }
    }
}

/// Words whose order counts.
fn in_order(how: &str, more: &[Given<Text>], less: &[Given<Text>], effects: &mut Vec<Effect>) {
    let new = |entry: &&Given<Text>| !less.iter().any(|other| other.value == entry.value);
    effects.extend(
        more.iter()
            .filter(new)
            .map(|entry| Effect::new("agent", format!("{how} {}", entry.value)).by(&entry.origin)),
    );
    let common = |list: &[Given<Text>], other: &[Given<Text>]| -> Vec<Text> {
        let is_common = |entry: &&Given<Text>| other.iter().any(|known| known.value == entry.value);
        list.iter().filter(is_common).map(|entry| entry.value.clone()).collect()
    };
    let (own, others) = (common(more, less), common(less, more));
    if own != others
        && let Some(first) = more.first()
    {
        effects
            .push(Effect::new("agent", format!("{how} {}, in this order", own.join(", "))).by(&first.origin));
    }
}
