//! The second step: what depends on the directories and means that were made for the run.

use crate::error::Refusal;
use crate::host::landlock::Version;
use crate::plan::by_proxy;
use crate::plan::commands::{self, Commands};
use crate::plan::directories::inside_variables;
use crate::plan::draft::Draft;
use crate::plan::environment::{self, command_environment};
use crate::plan::explainer::{self, LibraryPlace};
use crate::plan::files::{self, Paths};
use crate::plan::home::{self, PrivateHome};
use crate::plan::limits::Means;
use crate::plan::listings::Listings;
use crate::plan::namespaces::{self, Choice, Layout, Record, Repository, Roots, TMP};
use crate::plan::rules::PathRule;
use crate::plan::state;
use crate::plan::variables::{self, Loudness};
use crate::plan::workspace;
use crate::plan::{Executed, Inputs, OnViolation, Plan, Provided, notified, sockets, static_programs};
use crate::profile::{Moved, NetworkMode, Variable, Variables};
use crate::sys::plain;
use crate::text::shown;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

impl Draft<'_> {
    /// Decides the rest.
    pub fn complete(mut self, provided: Provided) -> Result<Plan, Refusal> {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(provided.warnings.iter().cloned());
        warnings.extend(self.network.place_proxy(provided.proxy));
        let listings = std::mem::take(&mut self.listings);
        let private_home = self.private_home(&provided);
        let Inputs { request, host, ref profile, ref program, ref directory, .. } = self.inputs;
        let moved = Moved::all(|name| host.variable(name));
        let variables = Variables {
            moved: &moved,
            workspace: self.workspace.as_deref(),
            home: host.home(),
            tmp: provided.scratch.as_deref(),
            cache: provided.cache.as_deref(),
        };
        let replaced = Replaced { scratch: self.scratch_inside(&variables), home: private_home.as_ref() };
        warnings.extend(self.starts_in_scratch(replaced));
        warnings.extend(self.overhears());
        let environment = self.environment(&variables, replaced, &mut warnings)?;
        let commands = self.commands(&variables, &environment, &mut warnings)?;
        let sockets = sockets::named(&self.inputs, &variables)?;
        let (record, repository) = self.repositories()?;
        warnings.extend(repository.iter().flat_map(Repository::warnings));
        let given = files::Given {
            variables: &variables,
            executed: Executed { program: Some(program), commands: commands.as_ref() },
            // Before ABI 9 the supervisor connects, and Landlock knows no such right.
            sockets: if self.landlock >= Version::UNIX { &sockets } else { &[] },
            more: &repository.as_ref().map(Repository::rules).unwrap_or_default(),
            masks: self.view == Choice::Made,
            home: replaced.home,
            scratch_inside: replaced.scratch,
            listings: &listings,
        };
        let paths = self.paths(given, &mut warnings)?;
        let denied = paths.as_ref().map_or(&[][..], |paths| &paths.denied);
        let sockets = sockets::but_denied(sockets, denied, &mut warnings);
        let said = (&listings, &mut warnings);
        let namespaces = self.layout(&variables, replaced, paths.as_ref(), &sockets, repository, said)?;
        let rules = paths.as_ref().map_or(&[][..], |paths| &paths.rules);
        let workspace = self.workspace.as_deref();
        warnings.extend(workspace.and_then(|workspace| workspace::of_another_user(workspace, host, rules)));
        if let Err(why) = &namespaces {
            warnings.extend(namespaces::without(&self.inputs, &variables, rules, self.nested, why)?);
        }
        let record = record.filter(|_| self.may_change(rules));
        let layout = namespaces.as_ref().ok().map(|layout| &**layout);
        let missing = match layout {
            Some(layout) => layout.watched.iter().cloned().collect(),
            None if record.is_some() => namespaces::missing(profile, &variables, directory, rules, &listings),
            None => Vec::new(),
        };
        let absent = rules.iter().filter(|rule| rule.optional && listings.lack(&rule.path));
        let absent = absent.map(|rule| rule.path.clone().into_os_string()).collect();
        let has_rules = paths.is_some();
        let loudness = variables::loudness(request, host)?;
        let explainer = self.explainer(has_rules, loudness, layout, provided.scratch.as_deref());
        let (paths, denied) = paths.map(|paths| (paths.rules, paths.denied)).unzip();
        let changes = notified::attributes().any(|name| self.calls.allows(name));
        let logs = self.on_violation == OnViolation::Log;
        let unconfined = profile.is_unrestricted();
        let seals = !self.inputs.asks() && !unconfined;
        let seal = if seals { self.calls.seal(self.on_violation.value())? } else { None };
        let means = self.means(&provided);
        Ok(Plan {
            own: self.own(namespaces.is_ok()),
            attributes: has_rules && (changes || logs),
            limits: self.limits.apply(means, host)?,
            arguments: self.arguments,
            denied_calls: request.deny_calls.iter().map(|list| list.to_string_lossy().into_owned()).collect(),
            pass: request.pass_fd.clone(),
            // Without path rules nothing is refused by them.
            watch_paths: has_rules && (request.log_violations || request.explain),
            loudness,
            explainer,
            workspace: self.workspace,
            names_workspace: request.workspace.is_some(),
            record,
            missing,
            home: host.home().map(Path::to_path_buf),
            key_agent: host.key_agent().map(Path::to_path_buf),
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

    /// The command's environment.
    fn environment(
        &self,
        variables: &Variables<'_>,
        Replaced { scratch, home }: Replaced<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<OsString>, Refusal> {
        let own_cache = home.map(|home| home.at.join(home::CACHE));
        let seen = inside_variables(variables, scratch);
        let seen = Variables { cache: own_cache.as_deref().or(seen.cache), ..seen };
        let proxy = self.network.proxy().map(by_proxy::Proxy::variables).unwrap_or_default();
        let means = environment::Means {
            proxy: &proxy,
            // Where a store cannot be written to, its tool is led elsewhere.
            is_home_closed: home.is_none_or(|home| home.layers.is_none()),
            is_network_open: matches!(self.network.mode, NetworkMode::Host | NetworkMode::Ports)
                || self.network.hosts.as_ref().is_some_and(|hosts| !hosts.rules.allow.is_empty()),
        };
        command_environment(&self.inputs, &seen, means, warnings)
    }

    /// The programs that may be executed, of which the command's has to be one.
    fn commands(
        &self,
        variables: &Variables<'_>,
        environment: &[OsString],
        warnings: &mut Vec<String>,
    ) -> Result<Option<Commands>, Refusal> {
        let commands = commands::resolve(&self.inputs, variables, environment, self.landlock, warnings)?;
        let program = &self.inputs.program;
        if let Some(commands) = &commands {
            commands.check(program, static_programs::is_own(program, self.inputs.host))?;
        }
        Ok(commands)
    }

    /// What earlier runs have found in the workspace, and the repositories there, where they are to be protected.
    fn repositories(&self) -> Result<(Option<Record>, Option<Repository>), Refusal> {
        let mut record = self.record()?;
        let repository = self.repository(record.as_ref())?;
        if let Some((record, repository)) = record.as_mut().zip(repository.as_ref()) {
            record.found.clone_from(&repository.submodules);
            record.outside.clone_from(&repository.writes);
            record.pointers.clone_from(&repository.pointers);
        }
        Ok((record, repository))
    }

    /// Whether something new can be found in the workspace afterwards: where nothing can be written, nothing can.
    fn may_change(&self, rules: &[PathRule]) -> bool {
        let is_open = |workspace: &PathBuf| {
            let roots = Roots::of(rules);
            roots.are(workspace) || roots.above(workspace).is_some()
        };
        !self.inputs.itself && self.workspace.as_ref().is_some_and(is_open)
    }

    /// Whether the supervisor can be notified of calls.
    fn listens(&self) -> bool {
        !self.inputs.request.exec && !self.inputs.profile.is_unrestricted() && !self.nested
    }

    /// What there is to apply limits with.
    fn means(&self, provided: &Provided) -> Means {
        Means {
            group: provided.group,
            listens: self.listens(),
            // A question tries nothing.
            watches_memory: provided.watches_memory || self.inputs.asks() && !self.inputs.itself,
        }
    }

    /// Where the library is that tells of what path rules refuse.
    fn explainer(
        &self,
        has_rules: bool,
        loudness: Loudness,
        layout: Option<&Layout>,
        scratch: Option<&Path>,
    ) -> Option<LibraryPlace> {
        let is_wanted = has_rules && self.is_told(loudness, layout);
        let place = is_wanted.then(|| LibraryPlace::of(layout, scratch)).flatten();
        place.filter(|_| *self.inputs.host.largest_file.get() >= explainer::LARGEST)
    }

    /// Whether a library in the programs tells of what path rules refuse.
    fn is_told(&self, loudness: Loudness, layout: Option<&Layout>) -> bool {
        let request = self.inputs.request;
        let has_record =
            request.report.is_some() || request.report_fd.is_some() || request.audit_log.is_some();
        let is_heard = loudness != Loudness::Quiet || request.summary || has_record;
        // Hard links that lead into a mount of the run are asked for by the library.
        let asks = layout.is_some_and(|layout| !layout.pins.is_empty());
        let is_notified = request.log_violations || self.on_violation == OnViolation::Log;
        self.listens() && (is_heard || asks) && !is_notified && !request.no_explainer
    }

    /// The scratch directory, where it takes the place of /tmp inside.
    fn scratch_inside<'v>(&self, variables: &Variables<'v>) -> Option<&'v Path> {
        let imagined = self.inputs.asks() && self.inputs.profile.uses(Variable::Tmp);
        let scratch = variables.tmp.or_else(|| imagined.then_some(Path::new(namespaces::NO_SCRATCH)));
        scratch.filter(|_| self.has_own_tmp)
    }

    /// Says that what is written where the command starts goes with the run.
    fn starts_in_scratch(&self, Replaced { scratch, .. }: Replaced<'_>) -> Option<String> {
        let is_own = self.workspace.is_none() && scratch.is_some() && self.inputs.directory == Path::new(TMP);
        is_own.then(|| format!("'{TMP}' is the run's own: what is written there is gone afterwards"))
    }

    /// Says that what is typed for others can be read.
    fn overhears(&self) -> Option<String> {
        let overhears = !self.inputs.asks() && *self.inputs.host.overhears.get();
        overhears.then(|| {
            "warning: the run begins in the background of a terminal that is another user's, and the command can read \
             what is typed there: redirect its input and output, as in '</dev/null >log 2>&1'"
                .to_string()
        })
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
                 have left it so: look at it, then open it with 'chmod u+rwx' or put it aside",
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
                state::named(host).as_deref(),
                listings,
            ),
            named: &paths.named,
            mounts: host.mounts()?,
            sockets,
            scratch,
            home,
            links: home
                .map(|home| home::named_links(&self.inputs, self.workspace.as_deref(), &home.at))
                .unwrap_or_default()
                .into_iter()
                .chain(paths.links.iter().cloned())
                .collect(),
            copies: home
                .filter(|_| !paths.denied.is_empty())
                .map(|home| home.copies(&profile.home.copies, variables))
                .unwrap_or_default(),
            stores: home
                .map(|home| home.stores(&profile.home.stores, variables, (listings, host)))
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
