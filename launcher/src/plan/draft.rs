//! From inputs to a plan, in two steps: what can be decided at once, and what depends on directories that are made for
//! the run.

use crate::error::Refusal;
use crate::host::landlock::Version;
use crate::plan::by_proxy;
use crate::plan::calls::{Calls, calls_of_run};
use crate::plan::commands;
use crate::plan::directories::{self, inside_variables};
use crate::plan::environment::{self, command_environment};
use crate::plan::explainer::{self, LibraryPlace};
use crate::plan::files::{self, Directories, Paths};
use crate::plan::home::{self, PrivateHome};
use crate::plan::limits::{self, Means};
use crate::plan::listings::Listings;
use crate::plan::namespaces::{self, Choice, Layout, Record, Repository, Roots, Unavailable, record};
use crate::plan::rules::Network;
use crate::plan::variables::Loudness;
use crate::plan::workspace;
use crate::plan::{
    CacheOf, Executed, HomeOf, Inputs, Needs, OnViolation, Plan, Provided, network, notified,
    static_programs, validation, variables,
};
use crate::profile::{Given, NetworkMode, SettingsCopy, Variable, Variables};
use crate::sys::namespace::{Kinds, Own};
use crate::sys::plain;
use crate::text::shown;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
        let calls = calls_of_run(&inputs, &network, &view, landlock)?;
        by_proxy::check(&network, &calls, on_violation)?;
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
            proxy: self.network.proxy().is_some(),
        }
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

    /// Decides the rest.
    pub fn complete(mut self, provided: Provided) -> Result<Plan, Refusal> {
        self.warnings.extend(provided.warnings.iter().cloned());
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(self.network.place_proxy(provided.proxy));
        let Inputs { request, host, ref profile, ref program, ref directory, .. } = self.inputs;
        let private_home = self.private_home(&provided);
        let listings = std::mem::take(&mut self.listings);
        let variables = Variables {
            workspace: self.workspace.as_deref(),
            home: host.home(),
            tmp: provided.scratch.as_deref(),
            cache: provided.cache.as_deref(),
        };
        let inside = self.scratch_inside(&variables);
        let own_cache = private_home.as_ref().map(|home| home.at.join(home::CACHE));
        let seen = inside_variables(&variables, inside);
        let seen = Variables { cache: own_cache.as_deref().or(seen.cache), ..seen };
        let proxy = self.network.proxy().map(by_proxy::Proxy::variables).unwrap_or_default();
        let means = environment::Means {
            proxy: &proxy,
            // Where a store cannot be written to, its tool is led elsewhere.
            is_home_closed: private_home.as_ref().is_none_or(|home| home.layers.is_none()),
            is_network_open: matches!(self.network.mode, NetworkMode::Host | NetworkMode::Ports)
                || self.network.hosts.as_ref().is_some_and(|hosts| !hosts.rules.allow.is_empty()),
        };
        let environment = command_environment(&self.inputs, &seen, means, &mut warnings)?;
        let commands =
            commands::resolve(&self.inputs, &variables, &environment, self.landlock, &mut warnings)?;
        if let Some(commands) = &commands {
            commands.check(program, static_programs::is_own(program, host))?;
        }
        let sockets = files::sockets(request, profile, &variables, directory)?;
        let mut record = self.record()?;
        let repository = self.repository(record.as_ref())?;
        if let Some((record, repository)) = record.as_mut().zip(repository.as_ref()) {
            record.found.clone_from(&repository.submodules);
            record.outside.clone_from(&repository.writes);
            record.pointers.clone_from(&repository.pointers);
        }
        warnings.extend(repository.iter().flat_map(Repository::warnings));
        let given = files::Given {
            variables: &variables,
            executed: Executed { program: Some(program), commands: commands.as_ref() },
            // Before ABI 9 the supervisor connects, and Landlock knows no such right.
            sockets: if self.landlock >= Version::UNIX { &sockets } else { &[] },
            more: &repository.as_ref().map(Repository::rules).unwrap_or_default(),
            masks: self.view == Choice::Made,
            home: private_home.as_ref(),
            scratch_inside: inside,
            listings: &listings,
        };
        let paths = self.paths(given, &mut warnings)?;
        let denied = paths.as_ref().map_or(&[][..], |paths| &paths.denied);
        let sockets = files::but_denied(sockets, denied, &mut warnings);
        let replaced = Replaced { scratch: inside, home: private_home.as_ref() };
        let said = (&listings, &mut warnings);
        let namespaces = self.layout(&variables, replaced, paths.as_ref(), &sockets, repository, said)?;
        let rules = paths.as_ref().map_or(&[][..], |paths| &paths.rules);
        warnings.extend(
            self.workspace
                .as_deref()
                .and_then(|workspace| workspace::of_another_user(workspace, host, rules)),
        );
        if let Err(why) = &namespaces {
            warnings.extend(namespaces::without(&self.inputs, &variables, rules, self.nested, why)?);
        }
        // Where nothing can be written, nothing new can be found.
        let is_open = |workspace: &PathBuf| {
            let roots = Roots::of(rules);
            roots.are(workspace) || roots.above(workspace).is_some()
        };
        let record = record.filter(|_| !self.inputs.itself && self.workspace.as_ref().is_some_and(is_open));
        let missing = match &namespaces {
            Ok(layout) => layout.watched.iter().cloned().collect(),
            Err(_) if record.is_some() => {
                let Inputs { profile, directory, .. } = &self.inputs;
                namespaces::missing(profile, &variables, directory, rules, &listings)
            }
            Err(_) => Vec::new(),
        };
        let absent = rules.iter().filter(|rule| rule.optional && listings.lack(&rule.path));
        let absent = absent.map(|rule| rule.path.clone().into_os_string()).collect();
        let (paths, denied) = paths.map(|paths| (paths.rules, paths.denied)).unzip();
        let unconfined = profile.is_unrestricted();
        let own = self.own(namespaces.is_ok());
        let means = Means {
            group: provided.group,
            listens: !request.exec && !unconfined && !self.nested,
            // A question tries nothing.
            watches_memory: provided.watches_memory || self.inputs.asks() && !self.inputs.itself,
        };
        let limits = self.limits.apply(means, host)?;
        let changes = notified::attributes().any(|name| self.calls.allows(name));
        let logs = self.on_violation == OnViolation::Log;
        let loudness = variables::loudness(request, host)?;
        // Without path rules nothing is refused by them.
        let watch_paths = paths.is_some() && (request.log_violations || request.explain);
        let is_heard = loudness != Loudness::Quiet
            || request.summary
            || [request.report.is_some(), request.report_fd.is_some(), request.audit_log.is_some()]
                .contains(&true);
        // Hard links that lead into a mount of the run are asked for by the library.
        let asks = namespaces.as_ref().is_ok_and(|layout| !layout.pins.is_empty());
        let is_told = paths.is_some()
            && means.listens
            && (is_heard || asks)
            && !request.log_violations
            && !logs
            && !request.no_explainer;
        let place = || {
            LibraryPlace::of(namespaces.as_ref().ok().map(|layout| &**layout), provided.scratch.as_deref())
                .filter(|_| *host.largest_file.get() >= explainer::LARGEST)
        };
        let seals = !self.inputs.asks() && !unconfined;
        let seal = if seals { self.calls.seal(self.on_violation.value())? } else { None };
        Ok(Plan {
            attributes: paths.is_some() && (changes || logs),
            limits,
            arguments: self.arguments,
            denied_calls: request.deny_calls.iter().map(|list| list.to_string_lossy().into_owned()).collect(),
            pass: request.pass_fd.clone(),
            watch_paths,
            loudness,
            explainer: is_told.then(place).flatten(),
            workspace: self.workspace,
            record,
            missing,
            home: host.home().map(Path::to_path_buf),
            environment,
            loads_shim: seal.is_some() && !logs && static_programs::is_sealable(program, host),
            seal,
            calls: Rc::new(self.calls),
            on_violation: self.on_violation,
            paths,
            absent,
            denied: denied.unwrap_or_default(),
            denied_by_flag: request.deny.clone(),
            landlock: self.landlock,
            network: self.network,
            sockets,
            publish: request.publish.clone(),
            commands: commands.map(Rc::new),
            unconfined,
            namespaces,
            own,
            nested: self.nested,
            outside: *host.capabilities.get(),
            scratch: provided.scratch,
            cache: provided.cache,
            private_home,
            no_home: self.no_home,
            warnings,
            profile: self.inputs.profile,
            program: self.inputs.program,
            directory: self.inputs.directory,
        })
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

    /// The scratch directory, where it takes the place of /tmp inside.
    fn scratch_inside<'v>(&self, variables: &Variables<'v>) -> Option<&'v Path> {
        let imagined = self.inputs.asks() && self.inputs.profile.uses(Variable::Tmp);
        let scratch = variables.tmp.or_else(|| imagined.then_some(Path::new(namespaces::NO_SCRATCH)));
        scratch.filter(|_| self.has_own_tmp)
    }

    /// The workspace, where something is to be protected in it.
    fn recorded(&self) -> Option<&Path> {
        let protects = !self.inputs.profile.paths.protect.is_empty();
        self.workspace.as_deref().filter(|_| protects && !self.nested)
    }

    /// What earlier runs have found in the workspace, where something is to be protected there.
    fn record(&self) -> Result<Option<Record>, Refusal> {
        let Some(workspace) = self.recorded() else { return Ok(None) };
        Record::of(workspace, self.inputs.host).map(Some).map_err(|error| {
            Refusal::new(format!(
                "cannot tell which repositories in '{}' are to be protected: their record cannot be read: {}",
                shown(workspace),
                plain(&error)
            ))
        })
    }

    /// The repository that the workspace is, and others in it, where they are to be protected.
    fn repository(&self, record: Option<&Record>) -> Result<Option<Repository>, Refusal> {
        let Some(workspace) = self.workspace.as_deref().filter(|_| self.view == Choice::Made) else {
            return Ok(None);
        };
        workspace::can_be_searched(workspace)?;
        if self.inputs.profile.paths.protect.is_empty() {
            return Ok(None);
        }
        let home = self.inputs.host.home();
        let mut repository = Repository::of(workspace, home);
        if let Some(record) = record {
            repository = repository.with(&record.repositories, home);
        }
        match &repository.closed {
            Some((path, why)) => Err(Refusal::new(format!(
                "cannot protect the repository of '{}': '{}' cannot be looked into: {why}; an earlier command may \
                 have closed it, 'chmod u+rwx' opens it",
                shown(workspace),
                shown(path)
            ))),
            None => Ok(Some(repository)),
        }
    }

    fn paths(&self, given: files::Given<'_>, warnings: &mut Vec<String>) -> Result<Option<Paths>, Refusal> {
        if self.inputs.profile.is_unrestricted() || self.landlock < Version::FILES {
            return Ok(None);
        }
        files::rules(&self.inputs, given, warnings).map(Some)
    }

    fn layout(
        &self,
        variables: &Variables<'_>,
        Replaced { scratch, home }: Replaced<'_>,
        paths: Option<&Paths>,
        sockets: &[PathBuf],
        repository: Option<Repository>,
        (listings, warnings): (&Listings, &mut Vec<String>),
    ) -> Result<Result<Rc<Layout>, String>, Refusal> {
        let Inputs { request, host, ref profile, ref directory, .. } = self.inputs;
        let paths = match (&self.view, paths) {
            (Choice::None(why), _) => return Ok(Err(why.clone())),
            (Choice::Made, None) => return Ok(Err(namespaces::ADD_LITTLE.to_string())),
            (Choice::Made, Some(paths)) => paths,
        };
        let given = namespaces::Given {
            rules: &paths.rules,
            denied: &paths.denied,
            protected: namespaces::protected(
                profile,
                variables,
                directory,
                repository,
                &host.search().dirs,
                record::directory(host).as_deref().and_then(Path::parent),
                listings,
            ),
            named: &paths.named,
            mounts: host.mounts()?,
            sockets,
            scratch,
            home,
            links: home
                .map(|home| home::named_links(&self.inputs, self.workspace.as_deref(), &home.at))
                .unwrap_or_default(),
            copies: home
                .filter(|_| !paths.denied.is_empty())
                .map(|home| home.copies(&profile.home.copies, variables))
                .unwrap_or_default(),
            stores: home
                .map(|home| home.stores(&profile.home.stores, variables, listings))
                .unwrap_or_default(),
            directory,
            host,
            listings,
        };
        let layout = Layout::of(given, warnings);
        namespaces::check_passed(&request.pass_fd, host, &layout, &paths.denied)?;
        Ok(Ok(Rc::new(layout)))
    }
}

/// Directories of the run's own that take the place of others inside.
#[derive(Clone, Copy)]
struct Replaced<'a> {
    scratch: Option<&'a Path>,
    home: Option<&'a PrivateHome>,
}
