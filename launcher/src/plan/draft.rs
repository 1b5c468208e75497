//! From inputs to a plan, in two steps: what can be decided at once, and what depends on directories that are made for
//! the run.

use crate::error::Refusal;
use crate::host::landlock::Version;
use crate::plan::calls::{Calls, Unix};
use crate::plan::commands::{self, Commands};
use crate::plan::directories::inside_variables;
use crate::plan::environment::command_environment;
use crate::plan::files::{self, Directories, Executed, Paths};
use crate::plan::limits::{self, Means};
use crate::plan::namespaces::{self, Choice, Layout, Record, Repository, Roots, record};
use crate::plan::rules::Network;
use crate::plan::workspace::{self, Working};
use crate::plan::{
    CacheOf, Inputs, Needs, OnViolation, Plan, Provided, notified, static_programs, validation, variables,
};
use crate::profile::{NetworkMode, Source, Variable, Variables};
use crate::sys::plain;
use crate::text::shown;
use sbx_policy::calls::Arch;
use sbx_policy::list::List;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A plan that lacks the directories and means that are made for the run.
pub struct Draft<'a> {
    inputs: Inputs<'a>,
    landlock: Version,
    nested: bool,
    network: Network,
    choice: Choice,
    calls: Calls,
    on_violation: OnViolation,
    limits: limits::Asked,
    workspace: Option<PathBuf>,
    warnings: Vec<String>,
}

impl<'a> Draft<'a> {
    /// Decides what can be decided. `unavailable` says why the machine did not give namespaces when they were tried.
    pub fn new(inputs: Inputs<'a>, unavailable: Option<&str>) -> Result<Draft<'a>, Refusal> {
        let Inputs { request, host, ref profile, ref directory, .. } = inputs;
        let mut warnings = Vec::new();
        warnings.extend(static_programs::decide(&inputs)?);
        let landlock = host.landlock()?;
        let nested = *host.nested.get();
        let network = validation::network(request, profile, host, landlock)?;
        let situation =
            namespaces::Situation { landlock, nested, network: &network, itself: inputs.itself, unavailable };
        let choice = namespaces::choose(request, profile, situation)?;
        let calls = calls(&inputs, &network, landlock)?;
        let on_violation = validation::on_violation(request, profile);
        validation::level(request, profile, host, landlock, &choice, &mut warnings)?;
        warnings.extend(static_programs::without_seal(&inputs, &calls, on_violation)?);
        let working = Working { directory, is_own: request.cwd.is_none() };
        let workspace = workspace::find(request.workspace.as_deref(), working, host, &mut warnings)?;
        variables::check_place(request, host, workspace.as_deref())?;
        validation::home(profile, host.home())?;
        let limits = limits::ask(request, profile)?;
        Ok(Draft {
            landlock,
            nested,
            network,
            choice,
            calls,
            on_violation,
            limits,
            workspace,
            warnings,
            inputs,
        })
    }

    /// What has to be made before the plan can be completed.
    pub fn needs(&self) -> Needs {
        let Inputs { request, profile, .. } = &self.inputs;
        if self.inputs.asks() {
            return Needs::default();
        }
        let uses = |variable| !profile.is_unrestricted() && profile.uses(variable);
        Needs {
            scratch: uses(Variable::Tmp) && !request.exec,
            cache: uses(Variable::Cache).then(|| CacheOf {
                workspace: self.workspace.clone(),
                profile: match &profile.source {
                    Source::BuiltIn => profile.name.to_string().into(),
                    Source::File(path) => path.into(),
                },
            }),
            group: self.limits.of_group().filter(|_| !request.exec),
            record: self.recorded().and_then(|workspace| record::file_of(workspace, self.inputs.host)),
        }
    }

    /// What a limit of memory has to be watched for, where this group does not hold it.
    pub fn watches_memory(&self, group: crate::plan::GroupLimits) -> bool {
        !self.inputs.asks() && self.limits.memory.is_some() && group.memory.is_none()
    }

    /// Decides the rest.
    pub fn complete(mut self, provided: Provided) -> Result<Plan, Refusal> {
        self.warnings.extend(provided.warnings.iter().cloned());
        let mut warnings = std::mem::take(&mut self.warnings);
        let Inputs { request, host, ref profile, ref program, ref directory, .. } = self.inputs;
        let variables = Variables {
            workspace: self.workspace.as_deref(),
            home: host.home(),
            tmp: provided.scratch.as_deref(),
            cache: provided.cache.as_deref(),
        };
        let inside = self.scratch_inside(&variables);
        let environment = command_environment(&self.inputs, &inside_variables(&variables, inside))?;
        let commands =
            commands::resolve(&self.inputs, &variables, &environment, self.landlock, &mut warnings)?;
        if let Some(commands) = &commands {
            commands.check(program, static_programs::is_own(program, host))?;
        }
        let sockets = files::sockets(request, profile, &variables, directory)?;
        let mut record = self.record()?;
        let repository = self.repository(record.as_ref())?;
        if let Some((record, repository)) = record.as_mut().zip(repository.as_ref()) {
            record.found.clone_from(&repository.embedded);
            record.outside.clone_from(&repository.writes);
        }
        warnings.extend(repository.iter().flat_map(Repository::warnings));
        let paths =
            self.paths(&variables, commands.as_ref(), &sockets, repository.as_ref(), &mut warnings)?;
        let denied = paths.as_ref().map_or(&[][..], |paths| &paths.denied);
        let sockets = files::but_denied(sockets, denied, &mut warnings);
        let namespaces =
            self.layout(&variables, inside, paths.as_ref(), &sockets, repository, &mut warnings)?;
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
                namespaces::missing(&self.inputs.profile, &variables, &self.inputs.directory, rules)
            }
            Err(_) => Vec::new(),
        };
        let (paths, denied) = paths.map(|paths| (paths.rules, paths.denied)).unzip();
        let unconfined = profile.is_unrestricted();
        let means = Means {
            group: provided.group,
            listens: !request.exec && !unconfined && !self.nested,
            watches_memory: provided.watches_memory,
        };
        let limits = self.limits.apply(means, host)?;
        let changes = notified::attributes().any(|name| self.calls.allows(name));
        let logs = self.on_violation == OnViolation::Log;
        let seals = !self.inputs.asks() && !unconfined;
        let seal = if seals { self.calls.seal(self.on_violation.value())? } else { None };
        Ok(Plan {
            attributes: paths.is_some() && (changes || logs),
            limits,
            arguments: request.command.clone(),
            denied_calls: request.deny_calls.iter().map(|list| list.to_string_lossy().into_owned()).collect(),
            pass: request.pass_fd.clone(),
            // Without path rules nothing is refused by them.
            watch_paths: paths.is_some() && (request.log_violations || request.explain),
            loudness: variables::loudness(request, host)?,
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
            denied: denied.unwrap_or_default(),
            landlock: self.landlock,
            network: self.network,
            sockets,
            commands: commands.map(Rc::new),
            unconfined,
            namespaces,
            nested: self.nested,
            scratch: provided.scratch,
            cache: provided.cache,
            warnings,
            profile: self.inputs.profile,
            program: self.inputs.program,
            directory: self.inputs.directory,
        })
    }

    /// The scratch directory, where it takes the place of /tmp inside.
    fn scratch_inside<'v>(&self, variables: &Variables<'v>) -> Option<&'v Path> {
        let Inputs { request, profile, directory, .. } = &self.inputs;
        let directories = Directories { variables, working: directory };
        let imagined = self.inputs.asks() && profile.uses(Variable::Tmp);
        let scratch = variables.tmp.or_else(|| imagined.then_some(Path::new(namespaces::NO_SCRATCH)));
        scratch
            .filter(|_| self.choice == Choice::Made && namespaces::has_own_tmp(request, profile, directories))
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
        let Some(workspace) = self.workspace.as_deref().filter(|_| self.choice == Choice::Made) else {
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

    fn paths(
        &self,
        variables: &Variables<'_>,
        commands: Option<&Commands>,
        sockets: &[PathBuf],
        repository: Option<&Repository>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Paths>, Refusal> {
        if self.inputs.profile.is_unrestricted() || self.landlock < Version::FILES {
            return Ok(None);
        }
        let given = files::Given {
            variables,
            executed: Executed { program: Some(&self.inputs.program), commands },
            // Before ABI 9 the supervisor connects, and Landlock knows no such right.
            sockets: if self.landlock >= Version::UNIX { sockets } else { &[] },
            more: &repository.map(Repository::rules).unwrap_or_default(),
            masks: self.choice == Choice::Made,
        };
        files::rules(&self.inputs, given, warnings).map(Some)
    }

    fn layout(
        &self,
        variables: &Variables<'_>,
        scratch: Option<&Path>,
        paths: Option<&Paths>,
        sockets: &[PathBuf],
        repository: Option<Repository>,
        warnings: &mut Vec<String>,
    ) -> Result<Result<Rc<Layout>, String>, Refusal> {
        let Inputs { request, host, ref profile, ref directory, .. } = self.inputs;
        let paths = match (&self.choice, paths) {
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
                record::directory(host).as_deref(),
            ),
            named: &paths.named,
            mounts: host.mounts()?,
            sockets,
            scratch,
            directory,
            network: self.network.mode == NetworkMode::Private,
            host,
        };
        let layout = Layout::of(given, warnings);
        namespaces::check_passed(&request.pass_fd, host, &layout)?;
        Ok(Ok(Rc::new(layout)))
    }
}

/// The calls of a run, with what the flags say about them.
fn calls(inputs: &Inputs<'_>, network: &Network, landlock: Version) -> Result<Calls, Refusal> {
    let Inputs { request, profile, .. } = inputs;
    let unix = if landlock >= Version::UNIX { Unix::ByPath } else { Unix::Refused };
    let mut calls = crate::plan::calls::calls(profile, network, unix, Arch::HOST)?;
    if !request.rw.is_empty() || !request.rwx.is_empty() {
        calls.add_writing()?;
    }
    let lists = [
        (List::Allow, "--allow-calls", &request.allow_calls),
        (List::Deny, "--deny-calls", &request.deny_calls),
    ];
    for (list, flag, texts) in lists {
        texts.iter().try_for_each(|text: &OsString| calls.add(list, flag, text.as_bytes()))?;
    }
    if validation::names_sockets(request, profile, network, landlock)? {
        calls.add_sockets(landlock < Version::UNIX && !inputs.itself)?;
    }
    Ok(calls)
}
