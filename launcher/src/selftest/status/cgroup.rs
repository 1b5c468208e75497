//! Control groups: whether a group can be made below this one, which is what delegation means.

use crate::enforce::cgroup;
use crate::selftest::status::system::read;
use crate::selftest::status::trial::{Attempt, Fault, State};
use crate::sys::{memory, plain};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Makes a group where a run would, and removes it.
pub fn subgroup() -> Attempt {
    let places = cgroup::own_places();
    let Some(own) = places.first() else {
        let why = match read("/proc/self/cgroup") {
            Some(_) => "no version 2 hierarchy is mounted",
            None => "/proc is not there to tell which group this process is in",
        };
        return Err(Fault::new(State::Missing, why));
    };
    let mut refused = None;
    let made = places
        .iter()
        .find(|place| make_and_remove(place).map_err(|fault| refused.get_or_insert(fault)).is_ok());
    let made = match (made, refused) {
        (Some(made), _) => made,
        (None, Some(fault)) => return Err(fault),
        (None, None) => own,
    };
    let controllers = controllers(made);
    let listed = if controllers.is_empty() { "none".to_string() } else { controllers.join(" ") };
    let place = if made == own { "below this one" } else { "beside this one" };
    Ok(format!("a group was made {place}; controllers: {listed}"))
}

pub fn facts() -> Vec<(&'static str, Value)> {
    let Some(own) = cgroup::own_places().into_iter().next() else { return Vec::new() };
    vec![("group", json!(own.to_string_lossy())), ("controllers", json!(controllers(&own)))]
}

fn controllers(group: &Path) -> Vec<String> {
    let text = read(group.join("cgroup.controllers")).unwrap_or_default();
    text.split_whitespace().map(str::to_string).collect()
}

fn make_and_remove(group: &Path) -> Result<(), Fault> {
    let name = group.join(memory::random_name("sbx-status-")?);
    fs::create_dir(&name).map_err(|error| {
        Fault::new(
            State::Refused,
            format!("no group can be made below this one, or beside it: {}", plain(&error)),
        )
    })?;
    let removed = fs::remove_dir(&name);
    removed.map_err(|error| {
        Fault::new(State::Refused, format!("a group could not be removed: {}", plain(&error)))
    })
}
