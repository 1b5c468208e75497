//! Profiles that are learned, compared and reviewed.

mod attackers;
mod closed;
mod compared;
mod differences;
mod flags;
mod hostile;
mod outsiders;
mod permissions;
mod places;
mod reports;
mod reviews;
mod rounds;
mod shared;
mod words;

use sbx_tests::command::Cmd;
use sbx_tests::{Output, World};
use serde_json::Value;

/// The file of the learned profile, beside the workspace.
const FILE: &str = "../learned.json";

/// A shell script to be learned from.
fn learn(world: &World, flags: &[&str], script: &str) -> Cmd {
    world.sbx(["learn", "-o", FILE]).args(flags).args(["--", "/bin/sh", "-c", script])
}

/// The same under the learned profile.
fn under_learned(world: &World, script: &str) -> Output {
    world.sbx(["run", "-p", FILE, "--", "/bin/sh", "-c", script]).run()
}

/// The learned profile, if there is one.
fn learned(world: &World) -> Option<Value> {
    world.read(FILE).map(|text| serde_json::from_str(&text).unwrap())
}
