//! Whether a plan is one that another run was started by, but for the command.
//!
//! A sandbox that waits for its command was made by a plan. When the command comes, the plan is made anew, by the same
//! code and for everything that was asked for. Only where both plans enforce the same, and are about the same files,
//! is the command started there.

use crate::enforce::start_barrier;
use crate::host::landlock::Version;
use crate::plan::explainer::LibraryPlace;
use crate::plan::home::PrivateHome;
use crate::plan::limits::Limits;
use crate::plan::namespaces::Layout;
use crate::plan::rules::{Network, PathRule};
use crate::plan::{Needs, OnViolation, Plan};
use crate::profile::Source;
use crate::sys::file::{self, Born};
use crate::sys::namespace::Own;
use crate::sys::privilege::CapabilitySet;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What of a plan is in force before its command is known.
pub struct Policy {
    needs: Needs,
    profile: (String, Source),
    /// A hash of the filter, of a profile that is not built in.
    calls: Option<String>,
    explainer: Option<LibraryPlace>,
    on_violation: OnViolation,
    watch_paths: bool,
    paths: Option<Vec<PathRule>>,
    absent: BTreeSet<OsString>,
    denied: Vec<PathBuf>,
    landlock: Version,
    network: Network,
    attributes: bool,
    workspace: Option<PathBuf>,
    home: Option<PathBuf>,
    sockets: Vec<PathBuf>,
    limits: Limits,
    namespaces: Result<Rc<Layout>, String>,
    own: Option<Own>,
    nested: bool,
    directory: PathBuf,
    scratch: Option<PathBuf>,
    cache: Option<PathBuf>,
    private_home: Option<PrivateHome>,
    outside: CapabilitySet,
}

/// Why no run of a plan can wait for its command, if so.
pub fn unsuited(plan: &Plan) -> Option<&'static str> {
    let Plan { seal, loads_shim, commands, network, publish, pass, unconfined, limits, explainer, .. } = plan;
    let outside = matches!(explainer, Some(LibraryPlace::Scratch { .. }));
    let found = [
        (plan.namespaces.is_err(), "its run would have no namespaces of its own"),
        (seal.is_some() && *loads_shim, "its profile has a library loaded that depends on the program"),
        (commands.is_some(), "it restricts which commands may be executed"),
        (network.hosts.is_some(), "its network leads to hosts that rules name"),
        (!publish.is_empty(), "it shows ports on this machine"),
        (!pass.is_empty(), "it gets descriptors of its caller"),
        (*unconfined, "nothing confines it"),
        (limits.keep_background, "what it leaves behind goes on"),
        (outside, "its library is in its scratch directory"),
        (
            !start_barrier::CALLS.iter().all(|name| plan.calls.allows_silently(name)),
            "its filter lets nobody wait",
        ),
        (plan.nested, "a sandbox of sbx is around it"),
    ];
    found.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
}

impl Policy {
    /// Of a plan.
    pub fn of(plan: &Plan, needs: Needs) -> Policy {
        // Named all, so that whoever adds one is asked.
        let Plan {
            profile,
            program: _,
            arguments: _,
            environment: _,
            directory,
            calls: _,
            seal: _,
            loads_shim: _,
            explainer,
            on_violation,
            watch_paths,
            paths,
            absent,
            denied,
            denied_by_flag: _,
            landlock,
            network,
            publish: _,
            attributes,
            workspace,
            record: _,
            missing: _,
            home,
            key_agent: _,
            denied_calls: _,
            sockets,
            commands: _,
            limits,
            pass: _,
            unconfined: _,
            namespaces,
            own,
            nested,
            scratch,
            cache,
            private_home,
            outside,
            loudness: _,
            warnings: _,
            no_home: _,
            names_workspace: _,
        } = plan;
        let is_built_in = profile.source == Source::BuiltIn;
        Policy {
            needs,
            profile: (profile.name.to_string(), profile.source.clone()),
            calls: (!is_built_in).then(|| filter(plan)),
            explainer: explainer.clone(),
            on_violation: *on_violation,
            watch_paths: *watch_paths,
            paths: paths.clone(),
            absent: absent.clone(),
            denied: denied.clone(),
            landlock: *landlock,
            network: network.clone(),
            attributes: *attributes,
            workspace: workspace.clone(),
            home: home.clone(),
            sockets: sockets.clone(),
            limits: limits.clone(),
            namespaces: namespaces.clone(),
            own: *own,
            nested: *nested,
            directory: directory.clone(),
            scratch: scratch.clone(),
            cache: cache.clone(),
            private_home: private_home.clone(),
            outside: *outside,
        }
    }

    /// What another one has otherwise, if anything.
    pub fn difference(&self, other: &Policy) -> Option<&'static str> {
        let same = [
            (self.needs == other.needs, "what has to be made for it"),
            (self.profile == other.profile && self.calls == other.calls, "its profile"),
            (self.directory == other.directory, "its working directory"),
            (self.workspace == other.workspace, "its workspace"),
            (self.home == other.home && self.private_home == other.private_home, "its home"),
            (self.denied == other.denied, "what is denied"),
            (self.paths == other.paths && self.absent == other.absent, "its path rules"),
            (self.namespaces == other.namespaces && self.own == other.own, "what is mounted"),
            (self.network == other.network && self.sockets == other.sockets, "its network"),
            (self.limits == other.limits, "its limits"),
            (self.explainer == other.explainer, "whether it has the explainer library"),
            (self.on_violation == other.on_violation, "the action on a violation"),
            (
                self.watch_paths == other.watch_paths && self.attributes == other.attributes,
                "what is notified",
            ),
            (self.landlock == other.landlock && self.nested == other.nested, "what the kernel can enforce"),
            (self.scratch == other.scratch && self.cache == other.cache, "its directories"),
            (self.outside == other.outside, "the capabilities of its user"),
        ];
        same.into_iter().find(|(is_same, _)| !is_same).map(|(_, what)| what)
    }

    /// Every path that rules and mounts are about, and that is not new inside.
    fn places(&self) -> BTreeSet<&Path> {
        let mut all: Vec<&PathBuf> = self.paths.iter().flatten().map(|rule| &rule.path).collect();
        let homes = [&self.workspace, &self.home, &self.scratch, &self.cache];
        all.extend(homes.into_iter().flatten().chain(&self.denied).chain(&self.sockets));
        all.extend(self.private_home.iter().flat_map(|home| [&home.at, &home.directory]));
        all.push(&self.directory);
        let Ok(layout) = &self.namespaces else { return all.into_iter().map(PathBuf::as_path).collect() };
        for private in &layout.private {
            all.extend(private.from.iter().chain(private.keep.iter().map(|kept| &kept.path)));
            all.push(&private.at);
        }
        all.extend(layout.systems.iter().flat_map(|system| system.keep.iter().map(|kept| &kept.path)));
        all.extend(layout.without_devices.iter().chain(&layout.pins).chain(&layout.read_only));
        all.extend(layout.denied.iter().chain(&layout.configs));
        all.extend(layout.watched.iter().map(|watched| &watched.above));
        let mut all: BTreeSet<&Path> = all.into_iter().map(PathBuf::as_path).collect();
        all.extend(layout.placeholders.keys().filter_map(|path| path.parent()));
        // Placeholders come later than this is read, and are looked at by themselves.
        all.retain(|path| !layout.renews(path) && !layout.stands_in(path));
        all
    }

    /// The files that are at these paths now.
    pub fn files(&self) -> Files {
        let followed =
            self.places().into_iter().map(|path| (path.to_path_buf(), file::born(path, true).ok()));
        let links = self.namespaces.iter().flat_map(|layout| layout.links.keys());
        let links = links.map(|path| (path.clone(), file::born(path, false).ok()));
        Files { followed: followed.collect(), links: links.collect() }
    }

    /// What stands at names that the command cannot make, once it stands there.
    pub fn placeholders(&self) -> Files {
        let all = self.namespaces.iter().flat_map(|layout| layout.held_free());
        let links = all.map(|path| (path.clone(), file::born(path, false).ok())).collect();
        Files { followed: BTreeMap::new(), links }
    }
}

/// Which files are where.
pub struct Files {
    followed: BTreeMap<PathBuf, Option<Born>>,
    links: BTreeMap<PathBuf, Option<Born>>,
}

impl Files {
    /// The first path at which another file is by now.
    pub fn changed(&self) -> Option<&Path> {
        let is_other = |follow| {
            move |(path, known): &(&PathBuf, &Option<Born>)| file::born(path, follow).ok() != **known
        };
        let followed = self.followed.iter().find(is_other(true));
        followed.or_else(|| self.links.iter().find(is_other(false))).map(|(path, _)| path.as_path())
    }
}

fn filter(plan: &Plan) -> String {
    format!("{:?}", plan.calls.strict_program().ok())
}
