//! What this machine can enforce: `sbx status`.
//!
//! Nothing is concluded from a version number. Each layer is used in a child process, and a refusal is provoked
//! where that can be done: a kernel, a container or a sandbox around may lack or refuse any of it for reasons of
//! its own. Only what a newer Landlock adds goes by its ABI number, which is what the kernel gives it for.

mod cgroup;
mod landlock;
mod namespaces;
mod seccomp;
mod show;
mod system;
mod trial;

pub use landlock::why_none;
pub use namespaces::own_view;
pub use show::{human, json, paint};
pub use trial::{Fault, Layer, State};

use crate::profile::Level;
use serde_json::{Map, Value};

/// The layer that tells whether a run gets namespaces of its own, with all that it mounts in them.
const VIEW: &str = "own-view";

/// The version of the JSON object.
pub const VERSION: u32 = 1;

/// Everything that was found out.
pub struct Status {
    /// What can be enforced; `None` where nothing can be run.
    pub level: Option<Level>,
    /// The layers, each tried.
    pub layers: Vec<Layer>,
    /// The machine: kernel, architecture, libc.
    pub system: Map<String, Value>,
    /// What binds this very process already.
    pub around: Map<String, Value>,
    /// What would raise the level, or say more about it.
    pub raise: Vec<String>,
}

/// Tries everything.
pub fn collect() -> Status {
    let mut layers = vec![trial::children()];
    layers.extend(seccomp::layers());
    layers.extend(landlock::layers());
    layers.extend(namespaces::layers());
    layers.push(cgroup::layer());
    layers.push(system::memory_files());
    let level = level(&layers);
    let raise = raise(level, &layers);
    Status { level, layers, system: system::facts(), around: system::around(), raise }
}

fn works(layers: &[Layer], name: &str) -> bool {
    layers.iter().any(|layer| layer.name == name && layer.state == State::Works)
}

/// The level, by the same rule as that of a run (`launch::demands::level`).
fn level(layers: &[Layer]) -> Option<Level> {
    match (works(layers, "processes") && works(layers, "seccomp"), works(layers, "landlock")) {
        (false, _) => None,
        (true, false) => Some(Level::Minimal),
        (true, true) if works(layers, "landlock-tcp") && works(layers, VIEW) => Some(Level::Full),
        (true, true) => Some(Level::Standard),
    }
}

fn raise(level: Option<Level>, layers: &[Layer]) -> Vec<String> {
    let why = |name: &str| {
        let layer = layers.iter().find(|layer| layer.name == name);
        layer.map_or_else(String::new, |layer| layer.detail.clone())
    };
    match level {
        None if !works(layers, "processes") => {
            vec![format!("sbx starts the command as a process of its own: {}", why("processes"))]
        }
        None => vec![format!(
            "level minimal needs system-call filters (CONFIG_SECCOMP_FILTER): {}",
            why("seccomp")
        )],
        Some(Level::Minimal) => vec![format!("level standard needs Landlock: {}", why("landlock"))],
        Some(Level::Full) => Vec::new(),
        Some(Level::Standard) => [("landlock-tcp", "Landlock's rules for TCP"), (VIEW, "namespaces")]
            .into_iter()
            .filter(|(name, _)| !works(layers, name))
            .map(|(name, what)| format!("level full needs {what}: {}", why(name)))
            .collect(),
    }
}
