//! What this machine can enforce: `sbx status`.
//!
//! Each layer is used in a child process, and a refusal is provoked where that is possible: the kernel, a
//! container or a sandbox around may lack or refuse any layer. No version number is trusted, except for what
//! a newer Landlock adds: the kernel has its ABI number for that.

mod cgroup;
mod homes;
mod landlock;
mod namespaces;
mod seccomp;
mod show;
mod system;
mod trial;

pub use namespaces::{own_network, own_view};
pub use show::{human, json};
pub use trial::{Fault, Layer, State};

use crate::host::landlock::Version;
use crate::profile::Level;
use crate::sys::seccomp as kernel;
use serde_json::{Map, Value};
use trial::{Attempt, attempt};

/// The layer that shows whether a run gets its own namespaces, with its mounts in them.
const VIEW: &str = "own-view";

/// How a layer is tried.
struct Probe {
    name: &'static str,
    /// The Landlock ABI that it needs. Such layers are left out where there is no Landlock.
    needs: Option<Version>,
    attempt: fn() -> Attempt,
    /// Further facts in JSON.
    facts: fn() -> Vec<(&'static str, Value)>,
}

const fn probe(name: &'static str, attempt: fn() -> Attempt) -> Probe {
    Probe { name, needs: None, attempt, facts: Vec::new }
}

const fn needing(needs: Version, probe: Probe) -> Probe {
    Probe { needs: Some(needs), ..probe }
}

const fn with(facts: fn() -> Vec<(&'static str, Value)>, probe: Probe) -> Probe {
    Probe { facts, ..probe }
}

/// All layers, in the order of the table. A process has to be started for all others.
const LAYERS: &[Probe] = &[
    probe("processes", || attempt(|| Ok("a process was started".to_string()))),
    probe("seccomp", || attempt(seccomp::refused_call)),
    with(seccomp::facts, probe("notification", || attempt(seccomp::notified_call))),
    probe("pidfd-getfd", || attempt(seccomp::descriptor_of_another)),
    with(landlock::facts, probe("landlock", landlock::whole)),
    needing(Version::FILES, probe("landlock-files", || attempt(landlock::refuses_files))),
    needing(Version::TCP, probe("landlock-tcp", || attempt(landlock::refuses_tcp))),
    needing(Version::SCOPES, probe("landlock-signals", || attempt(landlock::refuses_signals))),
    needing(Version::SCOPES, probe("landlock-abstract", || attempt(landlock::refuses_abstract_sockets))),
    probe("user-namespace", || namespaces::explained(namespaces::user)),
    probe("mount-namespace", || namespaces::explained(|| namespaces::other(libc::CLONE_NEWNS))),
    probe("pid-namespace", || namespaces::explained(|| namespaces::other(libc::CLONE_NEWPID))),
    probe("ipc-namespace", || namespaces::explained(|| namespaces::other(libc::CLONE_NEWIPC))),
    probe("uts-namespace", || namespaces::explained(|| namespaces::other(libc::CLONE_NEWUTS))),
    probe("net-namespace", || namespaces::explained(|| namespaces::other(libc::CLONE_NEWNET))),
    probe(VIEW, own_view),
    probe("own-network", own_network),
    with(homes::facts, probe("own-packages", || namespaces::explained(homes::overlay))),
    with(cgroup::facts, probe("cgroup", cgroup::subgroup)),
    with(system::memory_facts, probe("memory-files", || attempt(system::memory_files))),
];

/// The version of the JSON object.
pub const VERSION: u32 = 1;

/// The answers of all layers.
pub struct Status {
    /// What can be enforced; `None` if nothing can be run.
    pub level: Option<Level>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// The machine: kernel, architecture, libc.
    pub system: Map<String, Value>,
    /// What confines this process already.
    pub around: Map<String, Value>,
    /// What would raise the level.
    pub raise: Vec<String>,
}

/// Tries every layer.
pub fn collect() -> Status {
    let abi = Version(kernel::landlock_version());
    let there = |probe: &&Probe| probe.needs.is_none() || abi >= Version::FILES;
    let layers: Vec<Layer> = LAYERS.iter().filter(there).map(|probe| tried(probe, abi)).collect();
    let level = level(&layers);
    let raise = raise(level, &layers);
    Status { level, layers, system: system::facts(), around: system::around(), raise }
}

fn tried(probe: &Probe, abi: Version) -> Layer {
    let outcome = match probe.needs {
        Some(least) if abi < least => {
            let why = format!("needs ABI {}, and this kernel has {}", least.0, abi.0);
            Err(Fault::new(State::Missing, why))
        }
        _ => (probe.attempt)(),
    };
    let (state, detail) = match outcome {
        Ok(detail) => (State::Works, detail),
        Err(fault) => (fault.state, fault.why),
    };
    let facts = (probe.facts)().into_iter().map(|(key, value)| (key.to_string(), value)).collect();
    Layer { name: probe.name, state, detail, facts }
}

fn works(layers: &[Layer], name: &str) -> bool {
    layers.iter().any(|layer| layer.name == name && layer.state == State::Works)
}

/// The level; `None` if not even system calls can be filtered.
fn level(layers: &[Layer]) -> Option<Level> {
    let runs = works(layers, "processes") && works(layers, "seccomp");
    let works = |name| works(layers, name);
    runs.then(|| Level::of(works("landlock"), works("landlock-tcp"), works(VIEW)))
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
