//! Trying hints: the calls that the run would have with a flag more, or under another profile.

use crate::host::landlock::Version;
use crate::plan::calls::{self, Calls, Unix};
use crate::plan::rules::Network;
use crate::profile::{self, CallRules, Grants, NetworkMode, Profile, Search, Variables};
use crate::sys::within::is_below;
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{Data, lets_through};
use sbx_policy::list::List;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

/// Programs that are kept. There are far fewer hints than this.
const MOST: usize = 64;

/// Something that could be changed about a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Nothing.
    Nothing,
    /// Another profile, with the host's network or one of the run's own if that is what there is now.
    Profile(&'static str),
    /// `--net host`.
    HostNetwork,
    /// `--net private`.
    OwnNetwork,
    /// `--rw`.
    Writing,
    /// `--allow-calls`.
    Calls(String),
    /// Namespaces of the run's own.
    Namespaces,
}

/// Tries changes, and remembers their programs.
pub struct Attempts {
    /// The built-in profile in force. For a user's own profile, whose file may have changed since, `custom`
    /// stands, which allows nothing.
    own: &'static str,
    network: NetworkMode,
    unix: Unix,
    /// Whether the run has an IPC namespace of its own.
    own_ipc: bool,
    path_rules: bool,
    view: bool,
    profile: Option<Option<Profile>>,
    programs: HashMap<Change, Option<Vec<Insn>>>,
}

impl Attempts {
    /// For a run of `profile`; `own` is that profile where it is not a built-in one.
    pub fn new(
        profile: &str,
        own: Option<Profile>,
        (network, unix): (NetworkMode, Unix),
        landlock: Version,
    ) -> Attempts {
        let name = sbx_profiles::NAMES.into_iter().find(|name| *name == profile).unwrap_or("custom");
        let path_rules = landlock >= Version::FILES;
        let (view, own_ipc, profile, programs) = (false, false, own.map(Some), HashMap::new());
        Attempts { own: name, network, unix, view, own_ipc, path_rules, profile, programs }
    }

    /// For a run with or without a view, and an IPC namespace, of its own.
    #[must_use]
    pub fn inside(self, view: bool, own_ipc: bool) -> Attempts {
        Attempts { view, own_ipc, ..self }
    }

    /// The built-in profile in force, or the one that stands for it.
    pub fn own(&self) -> &'static str {
        self.own
    }

    /// Whether sockets of the run can be connected to single UNIX sockets.
    pub fn connects_unix(&self) -> bool {
        self.unix != Unix::Refused || matches!(self.network, NetworkMode::None | NetworkMode::Private)
    }

    /// Whether the kernel has path rules; flags that make one are refused elsewhere.
    pub fn has_path_rules(&self) -> bool {
        self.path_rules
    }

    /// Whether a change lets the call through.
    pub fn help(&mut self, change: Change, data: &Data) -> bool {
        if self.programs.len() >= MOST {
            self.programs.clear();
        }
        if !self.programs.contains_key(&change) {
            let program = self.calls(&change).and_then(|calls| program(&calls));
            self.programs.insert(change.clone(), program);
        }
        self.programs.get(&change).and_then(Option::as_ref).is_some_and(|program| lets_through(program, data))
    }

    /// Whether the profile in force makes UNIX sockets of the usual type.
    pub fn makes_unix_sockets(&mut self) -> bool {
        let number = Call::named(b"socket").and_then(|call| call.number(Arch::HOST)).unwrap_or(u32::MAX);
        let args = [libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0];
        self.help(Change::Nothing, &Data { nr: number, arch: Arch::HOST.audit(), args })
    }

    /// Whether the profile in force opens something below a directory.
    pub fn opens_below(&mut self, directory: &Path) -> bool {
        let Some(profile) = self.own_profile() else { return false };
        let lists = [&profile.paths.read, &profile.paths.execute, &profile.paths.write];
        let opened = lists.into_iter().flat_map(|list| list.iter());
        let mut opened = opened.filter_map(|entry| entry.expand_path(&Variables::default()));
        opened.any(|path| is_below(&path, directory))
    }

    /// What the profile in force says about a call.
    pub fn rules(&mut self, call: Call) -> Option<&CallRules> {
        self.own_profile()?.syscalls.calls.get(call)
    }

    /// How far it allows a call in this run.
    pub fn allowed(&mut self, call: Call) -> &Grants {
        let view = self.view;
        self.rules(call).map_or(&Grants::None, |rules| rules.allowed(view))
    }

    fn own_profile(&mut self) -> Option<&Profile> {
        let own = self.own;
        self.profile.get_or_insert_with(|| built_in(own)).as_ref()
    }

    fn calls(&mut self, change: &Change) -> Option<Calls> {
        let (unix, network) = (self.unix, self.network);
        let view = self.view || *change == Change::Namespaces;
        let own_ipc = self.own_ipc || view;
        let of = |profile: &Profile, mode: NetworkMode| {
            let network = Network { mode, asked: *change == Change::HostNetwork, ..Network::default() };
            Some(calls::calls(profile, &network, own_ipc, unix, Arch::HOST).ok()?.inside(view))
        };
        if let Change::Profile(name) = change {
            let profile = built_in(name)?;
            let mode = match network {
                NetworkMode::Host | NetworkMode::Private => network,
                NetworkMode::None | NetworkMode::Loopback | NetworkMode::Ports => calls::mode(&profile),
            };
            return of(&profile, mode);
        }
        let mode = match change {
            Change::HostNetwork => NetworkMode::Host,
            Change::OwnNetwork => NetworkMode::Private,
            _ => network,
        };
        let mut calls = of(self.own_profile()?, mode)?;
        match change {
            Change::Writing => calls.add_writing().ok()?,
            Change::Calls(list) => calls.add(List::Allow, "--allow-calls", list.as_bytes()).ok()?,
            _ => {}
        }
        Some(calls)
    }
}

/// A built-in profile.
pub(super) fn built_in(name: &str) -> Option<Profile> {
    profile::load(OsStr::new(name), &Search::default()).ok()
}

/// The program without the needs of the loader; none where the loader could not do its work any more, for
/// such a run is refused.
fn program(calls: &Calls) -> Option<Vec<Insn>> {
    calls.seal(bpf::RET_TRAP).ok()?;
    calls.strict_program().ok()
}
