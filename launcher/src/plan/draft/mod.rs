//! From inputs to a plan, in two steps: what can be decided at once, and [what depends on directories](completion) that
//! are made for the run.

mod completion;

use crate::error::Refusal;
use crate::host::Host;
use crate::host::landlock::Version;
use crate::plan::by_proxy;
use crate::plan::calls::{Calls, calls_of_run};
use crate::plan::commands;
use crate::plan::directories;
use crate::plan::files::Directories;
use crate::plan::flag_warnings;
use crate::plan::home::{self, PrivateHome};
use crate::plan::limits;
use crate::plan::listings::Listings;
use crate::plan::namespaces::{self, Choice, Unavailable, record};
use crate::plan::rules::Network;
use crate::plan::workspace;
use crate::plan::{
    CacheOf, HomeOf, Inputs, Needs, OnViolation, Provided, network, static_programs, validation, variables,
};
use crate::profile::{Given, SettingsCopy, Variable, Variables};
use crate::sys::namespace::{Kinds, Own};
use crate::sys::path::{self, canonical};
use crate::sys::within::is_within;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A plan that lacks the directories and means that are made for the run.
pub struct Draft<'a> {
    inputs: Inputs<'a>,
    landlock: Version,
    nested: bool,
    network: Network,
    view: Choice,
    home: Option<HomeOf>,
    no_home: Option<String>,
    arguments: Vec<OsString>,
    calls: Calls,
    on_violation: OnViolation,
    limits: limits::Asked,
    workspace: Option<PathBuf>,
    /// Whether the scratch directory takes the place of /tmp inside.
    has_own_tmp: bool,
    unavailable: Unavailable,
    listings: Listings,
    warnings: Vec<String>,
}

impl<'a> Draft<'a> {
    /// Decides what can be decided. `unavailable` says why the machine did not give what was tried.
    pub fn new(mut inputs: Inputs<'a>, unavailable: &Unavailable) -> Result<Draft<'a>, Refusal> {
        let Inputs { request, host, ref profile, ref directory, .. } = inputs;
        let mut warnings = Vec::new();
        warnings.extend(static_programs::decide(&inputs)?);
        let landlock = host.landlock()?;
        let nested = *host.nested.get();
        let asked = network::asked(request, profile, host, landlock)?;
        let itself = inputs.itself;
        let (has_other_way, no_own) = by_proxy::other_way(&inputs, &asked, landlock, nested)?;
        let mode = asked.mode;
        let choices =
            namespaces::Asked { landlock, nested, network: mode, has_other_way, itself, unavailable };
        let choices = namespaces::choose(request, profile, choices)?;
        let on_violation = validation::on_violation(request, profile);
        let logs = on_violation == OnViolation::Log;
        let network = network::settle(asked, no_own.or(choices.network), logs, (request, host));
        let view = choices.view;
        let mut calls = calls_of_run(&inputs, &network, &view, landlock)?;
        by_proxy::check(&network, &calls, on_violation)?;
        if !logs {
            warnings.extend(calls.stay_in_network()?.map(str::to_string));
        }
        validation::level(request, profile, host, landlock, &view, &mut warnings)?;
        warnings.extend(static_programs::without_seal(&inputs, &calls, on_violation)?);
        let workspace = workspace::find(request.workspace.as_deref(), directory, host, &mut warnings)?;
        directories::stays_inside(request, host, workspace.as_deref(), directory)?;
        let (home, no_home) = home::choose(&inputs, &view, workspace.as_deref())?;
        let home = home::of(home, host, || CacheOf::of(profile, workspace.as_deref()));
        let arguments = match inputs.missing.take() {
            None => request.command.clone(),
            Some(missing) => {
                let starts = calls.allows("execve") && !commands::restricts(request, profile);
                let of = home.as_ref().filter(|_| starts);
                of.and_then(|of| home::words_for(&inputs, of)).ok_or(missing)?
            }
        };
        warnings.extend(flag_warnings::unpassed_descriptors(&arguments, &request.pass_fd));
        variables::check_place(&inputs, workspace.as_deref())?;
        validation::home(profile, host.home())?;
        let limits = limits::ask(request, profile)?;
        let homes = [host.home().map(Path::to_path_buf), home.as_ref().map(|home| home.at.clone())];
        let listings = Listings::below(homes.into_iter().chain([workspace.clone()]).flatten());
        let variables =
            Variables { workspace: workspace.as_deref(), home: host.home(), ..Variables::default() };
        let directories = Directories { variables: &variables, working: directory };
        let has_own_tmp = view == Choice::Made && namespaces::has_own_tmp(request, profile, directories);
        Ok(Draft {
            has_own_tmp,
            landlock,
            nested,
            network,
            view,
            home,
            no_home,
            arguments,
            calls,
            on_violation,
            limits,
            workspace,
            listings,
            warnings,
            inputs,
            unavailable: unavailable.clone(),
        })
    }

    /// What has to be made before the plan can be completed.
    pub fn needs(&self) -> Needs {
        let Inputs { request, profile, .. } = &self.inputs;
        if self.inputs.asks() {
            return Needs::default();
        }
        let uses = |variable| !profile.is_unrestricted() && profile.uses(variable);
        let home = self.home.clone();
        Needs {
            // A home that does not last is beside the scratch directory.
            scratch: (uses(Variable::Tmp) || home.is_some()) && !request.exec,
            is_tmp: self.has_own_tmp && !request.keep_background,
            cache: (uses(Variable::Cache) && home.is_none())
                .then(|| CacheOf::of(profile, self.workspace.as_deref())),
            home,
            group: self.limits.of_group().filter(|_| !request.exec),
            record: self.recorded().and_then(|workspace| record::file_of(workspace, self.inputs.host)),
            marks: self.marks(),
            proxy: self.network.proxy().is_some(),
        }
    }

    /// The marks of the directories that have no record, and that flags and rules let the command write to: it can
    /// leave links there, as in a workspace that has one. None of the home itself: all in it may be a command's then.
    fn marks(&self) -> Vec<PathBuf> {
        let Inputs { request, profile, directory, .. } = &self.inputs;
        let (workspace, home) = (self.workspace.as_deref(), self.inputs.host.home());
        let variables = Variables { workspace, home, ..Variables::default() };
        let named = request.rw.iter().chain(&request.rwx).map(|word| directory.join(word));
        let recorded = self.recorded();
        // A built-in profile that protects nothing opens the workspace as well.
        let is_unrecorded = workspace.is_some() && recorded.is_none() && !self.nested;
        let entries = profile.paths.write.iter().filter(|entry| {
            !entry.origin.built_in || is_unrecorded && entry.base == Some(Variable::Workspace)
        });
        let all = named.chain(entries.filter_map(|entry| entry.expand_path(&variables)));
        let is_elsewhere = |path: &PathBuf| {
            let is_around = self.inputs.host.real_home().is_some_and(|home| is_within(home, path));
            path::is_directory(path)
                && !is_around
                && !recorded.is_some_and(|workspace| is_within(path, workspace))
        };
        let all = all.map(|path| canonical(&path)).filter(is_elsewhere);
        all.filter_map(|path| record::mark_of(&path, self.inputs.host)).collect()
    }

    /// The host that it is for.
    pub fn host(&self) -> &Host {
        self.inputs.host
    }

    /// The files of settings that are copied into a home of the run's own, what their variables stand for, and what is
    /// not there.
    pub fn copies(&self) -> (&[Given<SettingsCopy>], Variables<'_>, &Listings) {
        let (workspace, home) = (self.workspace.as_deref(), self.inputs.host.home());
        let variables = Variables { workspace, home, ..Variables::default() };
        (&self.inputs.profile.home.copies, variables, &self.listings)
    }

    /// The home of the run's own. Where a run is only asked about, none is made.
    fn private_home(&self, provided: &Provided) -> Option<PrivateHome> {
        let of = self.home.as_ref()?;
        provided
            .home
            .clone()
            .or_else(|| Some(PrivateHome::imagined(of, self.unavailable.overlays.as_deref())))
    }

    /// What a limit of memory has to be watched for, where this group does not hold it.
    pub fn watches_memory(&self, group: crate::plan::GroupLimits) -> bool {
        !self.inputs.asks() && self.limits.memory.is_some() && group.memory.is_none()
    }

    /// The namespaces of a run that will have a network of its own: it can be made while the rest is decided.
    pub fn own_ahead(&self) -> Option<Own> {
        let starts = self.network.namespace && !self.inputs.asks() && !self.inputs.request.exec;
        starts.then(|| self.own(self.view == Choice::Made)).flatten()
    }

    /// The namespaces of the run.
    fn own(&self, view: bool) -> Option<Own> {
        let (host, network) = (self.inputs.host, self.network.namespace);
        // By the sockets' cookies the supervisor can tell those of the run's network from the host's. On a kernel
        // without them it has to be the owner of the network's user namespace.
        let by_privilege = || *host.administrator.get() && (!network || *host.network_cookies.get());
        // So it has to be where it takes sockets for an open network from processes that keep others from looking at
        // them (PR_SET_DUMPABLE).
        let owns = || self.calls.connects_outside() || !by_privilege();
        (view || network).then(|| {
            let kinds = Kinds { user: owns(), view, network };
            Own { kinds, identity: *host.identity.get() }
        })
    }

    /// The workspace, where something is to be protected in it.
    fn recorded(&self) -> Option<&Path> {
        let protects = !self.inputs.profile.paths.protect.is_empty();
        self.workspace.as_deref().filter(|_| protects && !self.nested)
    }
}
