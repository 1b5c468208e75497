//! Control groups: whether a group of one's own can be made, which is what delegation means.

use super::system::read;
use super::trial::{Fault, Layer, State};
use crate::sys::{memory, plain};
use std::fs;
use std::path::{Path, PathBuf};

/// The layer.
pub fn layer() -> Layer {
    let Some(own) = own_group() else {
        let why = match read("/proc/self/cgroup") {
            Some(_) => "no version 2 hierarchy is mounted",
            None => "/proc is not there to tell which group this process is in",
        };
        return Layer::of("cgroup", Err(Fault::new(State::Missing, why)));
    };
    let controllers = read(own.join("cgroup.controllers")).unwrap_or_default();
    let controllers: Vec<&str> = controllers.split_whitespace().collect();
    let listed = if controllers.is_empty() { "none".to_string() } else { controllers.join(" ") };
    let made = make_and_remove(&own);
    let result = made.map(|()| format!("a group was made below this one; controllers: {listed}"));
    Layer::of("cgroup", result).with("group", own.to_string_lossy()).with("controllers", controllers)
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
