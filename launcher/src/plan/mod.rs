//! The plan of one run: the only place that decides.
//!
//! A plan is made from values: the request, the profile, the program, the facts about the machine. It looks
//! at files, but changes none, starts no process, and reads no state of this one. What cannot be understood
//! or enforced is refused here.
//!
//! `Inputs` -> [`Draft`] (all that can be decided at once) -> what [`Needs`] names is made -> [`Plan`].

mod again;
pub mod by_proxy;
pub mod calls;
pub mod commands;
pub mod deny_expansion;
pub mod directories;
mod draft;
pub mod environment;
mod executed;
pub mod explainer;
pub mod files;
mod flag_warnings;
pub mod home;
mod inputs;
pub mod limits;
pub mod listings;
pub mod namespaces;
mod needs;
pub mod network;
pub mod notified;
mod on_violation;
mod rows;
pub mod rules;
pub mod settings_copy;
pub mod sockets;
pub mod state;
pub mod static_programs;
pub mod validation;
pub mod variables;
pub mod workspace;
pub mod writable_roots;

#[cfg(test)]
mod tests;

pub use draft::Draft;
pub use executed::Executed;
pub use explainer::LibraryPlace;
pub use inputs::{Found, Inputs, find_program, load_profile};
pub use needs::{CacheOf, GroupLimits, HomeOf, Needs, Provided};
pub use on_violation::OnViolation;

use crate::host::landlock::Version;
use crate::profile::{Level, NetworkMode, Profile};
use crate::program::Program;
use crate::request::PortPair;
use crate::sys::namespace::Own;
use crate::sys::privilege::{CapabilitySet, Limit};
use calls::{Calls, Extras, Seal};
use commands::Commands;
use home::{PrivateHome, Store};
use limits::Limits;
use namespaces::placeholder::Watched;
use namespaces::{Layout, Record};
use notified::{Kinds, Notified};
use rules::{Network, PathRule};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use variables::Loudness;

/// What one run will be.
pub struct Plan {
    /// The profile.
    pub profile: Profile,
    /// The command's file.
    pub program: Program,
    /// Its arguments, its name first.
    pub arguments: Vec<OsString>,
    /// Its environment, without the seal's variables.
    pub environment: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// The calls.
    pub calls: Rc<Calls>,
    /// What only the loader needs, and is taken away afterwards.
    pub seal: Option<Seal>,
    /// Whether libsandbox.so is loaded into the program, to do that.
    pub loads_shim: bool,
    /// Where the library is that tells of refused calls on paths, if the run has it.
    pub explainer: Option<LibraryPlace>,
    /// Action on a violation.
    pub on_violation: OnViolation,
    /// Whether refused paths are named.
    pub watch_paths: bool,
    /// The path rules; `None` where the kernel has none, or none are wanted.
    pub paths: Option<Vec<PathRule>>,
    /// Those of them, of built-in profiles, about which nothing is there.
    pub absent: BTreeSet<OsString>,
    /// Denied paths, whatever the rules say.
    pub denied: Vec<PathBuf>,
    /// Those that flags name, as given.
    pub denied_by_flag: Vec<PathBuf>,
    /// Landlock's version here.
    pub landlock: Version,
    /// The network.
    pub network: Network,
    /// Ports of its loopback that the host's shows.
    pub publish: Vec<PortPair>,
    /// Whether changing modes, owners and times is the supervisor's business: where there are path rules, and
    /// calls that could get round them.
    pub attributes: bool,
    /// The workspace.
    pub workspace: Option<PathBuf>,
    /// Whether a flag names it.
    pub names_workspace: bool,
    /// The repositories in it that are known, where a command could make others, or change what git executes.
    pub record: Option<Record>,
    /// What programs outside would act on, and does not exist. What is made there is put aside.
    pub missing: Vec<Watched>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Where the user's agent of ssh listens, as the environment says.
    pub key_agent: Option<PathBuf>,
    /// What --deny-calls names.
    pub denied_calls: Vec<String>,
    /// Socket files that may be connected to.
    pub sockets: Vec<PathBuf>,
    /// Which programs may be executed, where that is restricted.
    pub commands: Option<Rc<Commands>>,
    /// Limits.
    pub limits: Limits,
    /// Descriptors passed on.
    pub pass: Vec<i32>,
    /// Whether no filter at all is wanted.
    pub unconfined: bool,
    /// A view of its own, and what is mounted there; or why there is none.
    pub namespaces: Result<Rc<Layout>, String>,
    /// The namespaces to be made, with a view of its own and without; `None` for none.
    pub own: Option<Own>,
    /// Whether this process is confined by `sbx` already.
    pub nested: bool,
    /// The scratch directory, outside.
    pub scratch: Option<PathBuf>,
    /// The tool caches.
    pub cache: Option<PathBuf>,
    /// A home of the run's own.
    pub private_home: Option<PrivateHome>,
    /// Why it has none, where the profile means it to.
    pub no_home: Option<String>,
    /// The capabilities that the user has outside. The command has none of them.
    pub outside: CapabilitySet,
    /// How much is said on standard error.
    pub loudness: Loudness,
    /// Warnings printed before the start.
    pub warnings: Vec<String>,
}

impl Plan {
    /// What confines the run; `None` where nothing does.
    pub fn level(&self) -> Option<Level> {
        let tcp = self.landlock >= Version::TCP;
        (!self.unconfined).then(|| Level::of(self.paths.is_some(), tcp, self.namespaces.is_ok()))
    }

    /// The directories outside that commands may change, by their real paths: the workspace also where these may not.
    pub fn writable(&self) -> Vec<PathBuf> {
        let rules = self.paths.iter().flatten().filter(|rule| rule.rights.write && !rule.rights.devices);
        // What the run has of its own stands in the place of these.
        let hidden =
            |path: &Path| self.namespaces.as_ref().is_ok_and(|layout| layout.replaces(path).is_some());
        let written = rules.map(|rule| rule.place().into_owned()).filter(|path| !hidden(path));
        self.workspace.iter().cloned().chain(written).collect()
    }

    /// The directories of packages that the run changes without changing the user's own.
    pub fn stores(&self) -> &[Store] {
        let layout = self.namespaces.as_ref().ok();
        let all = layout.and_then(|layout| layout.private.iter().find(|private| !private.stores.is_empty()));
        all.map_or(&[], |private| &private.stores)
    }

    /// What the guard allows beyond the calls.
    pub fn extras(&self) -> Extras {
        // In log mode nothing is taken away, and what the loader needs is noted like everything else.
        let seal = self.seal.as_ref().filter(|_| self.on_violation != OnViolation::Log);
        let notified = self.notified();
        let connects = self.network.namespace && self.calls.supervisor_connects();
        let takes = connects || self.calls.connects_outside() || notified.has(Notified::Listen);
        let owns_processes = self.own.is_some_and(|own| own.kinds.user);
        Extras {
            logs: self.on_violation == OnViolation::Log,
            loader: seal.map(|seal| seal.needs).unwrap_or_default(),
            notified,
            large: self.large_request(),
            // Without a user namespace of the run, nobody takes a socket from a process that closes itself to others.
            // It would have no network.
            dumpable: takes && !owns_processes,
        }
    }

    /// From how many bytes on a request for memory is looked at, where the kernel limits each process: smaller ones are
    /// many, and seldom the one that fails.
    fn large_request(&self) -> Option<u64> {
        const SHARE: u64 = 8;
        let is_noted = !self.nested && !self.unconfined;
        self.limits.resource(Limit::Data).filter(|_| is_noted).map(|bytes| bytes / SHARE)
    }

    /// The system calls that the supervisor answers in a way of its own, by the kind of their handlers.
    pub fn notified(&self) -> Kinds {
        let connects = self.calls.supervisor_connects();
        let changes_configs = self.namespaces.as_ref().is_ok_and(|layout| !layout.configs.is_empty());
        let links = self.explainer.is_some();
        Kinds::of(|kind| match kind {
            Notified::Tasks => self.limits.counted.is_some(),
            Notified::Memory => self.large_request().is_some(),
            Notified::Domains => {
                self.calls.allows("landlock_restrict_self") && (connects || changes_configs || links)
            }
            Notified::GitConfig => changes_configs,
            Notified::Listen => {
                let is_kept = self.network.mode != NetworkMode::Host && self.on_violation != OnViolation::Log;
                is_kept && self.calls.allows("listen")
            }
            Notified::Connect => connects,
            Notified::DatagramPairs => self.calls.packets_stand_in(),
            Notified::NullDevice => self.on_violation != OnViolation::Log,
            Notified::SignalDriven => {
                self.on_violation != OnViolation::Log && self.namespaces.is_ok() && self.calls.allows("fcntl")
            }
            Notified::Attributes => self.attributes,
            Notified::Ports => {
                let restricts = self.network.mode == NetworkMode::Ports && self.landlock >= Version::TCP;
                let is_silent = self.on_violation == OnViolation::Log || self.loudness == Loudness::Quiet;
                restricts && !is_silent && !self.unconfined && !self.watch_paths && !connects
            }
            Notified::Links | Notified::Told => links,
            Notified::StaticPrograms => links && !self.watch_paths,
            Notified::RefusedPaths => self.watch_paths,
        })
    }
}
