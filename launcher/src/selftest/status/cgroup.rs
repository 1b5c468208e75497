//! Control groups: whether a group can be made below this one, which is what delegation means.

use crate::selftest::status::system::read;
use crate::selftest::status::trial::{Attempt, Fault, State};
use crate::sys::{memory, plain};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Makes a group, and removes it.
pub fn subgroup() -> Attempt {
    let own = own_group().ok_or_else(|| {
        let why = match read("/proc/self/cgroup") {
            Some(_) => "no version 2 hierarchy is mounted",
            None => "/proc is not there to tell which group this process is in",
        };
        Fault::new(State::Missing, why)
    })?;
    make_and_remove(&own)?;
    let controllers = controllers(&own);
    let listed = if controllers.is_empty() { "none".to_string() } else { controllers.join(" ") };
    Ok(format!("a group was made below this one; controllers: {listed}"))
}

pub fn facts() -> Vec<(&'static str, Value)> {
    let Some(own) = own_group() else { return Vec::new() };
    vec![("group", json!(own.to_string_lossy())), ("controllers", json!(controllers(&own)))]
}

fn controllers(group: &Path) -> Vec<String> {
    let text = read(group.join("cgroup.controllers")).unwrap_or_default();
    text.split_whitespace().map(str::to_string).collect()
}

/// The directory of this process's group.
fn own_group() -> Option<PathBuf> {
    let membership = read("/proc/self/cgroup")?;
    let path = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = read("/proc/self/mountinfo")?;
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        (after.starts_with("cgroup2 ")).then_some((root, point))
    })?;
    let (root, point) = mount;
    let inside = if root == "/" { path } else { path.strip_prefix(root)? };
    Some(Path::new(point).join(inside.trim_start_matches('/')))
}

fn make_and_remove(group: &Path) -> Result<(), Fault> {
    let name = group.join(memory::random_name("sbx-status-")?);
    fs::create_dir(&name).map_err(|error| {
        Fault::new(State::Refused, format!("no group can be made below this one: {}", plain(&error)))
    })?;
    let removed = fs::remove_dir(&name);
    removed.map_err(|error| {
        Fault::new(State::Refused, format!("a group could not be removed: {}", plain(&error)))
    })
}
