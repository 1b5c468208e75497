//! `sbx agent` and `sbx hook`, with agents that behave as the real ones where it matters. `make test-agents` has the
//! real ones.

mod hook_answers;
mod hook_settings;
mod hooks;
mod whole;

use sbx_tests::{Cmd, World};
use std::path::Path;

/// `sbx`, with the programs of the home's `bin` found first.
fn sbx(world: &World, words: &[&str]) -> Cmd {
    with_path(world, world.sbx(words))
}

fn with_path(world: &World, command: Cmd) -> Cmd {
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", world.home.join("bin").display()))
}

/// A file of the home, by its name there.
fn read(world: &World, name: impl AsRef<Path>) -> Option<String> {
    world.read(world.home.join(name))
}

fn write(world: &World, name: impl AsRef<Path>, text: &str) {
    world.write(world.home.join(name), text);
}
