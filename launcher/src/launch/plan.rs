//! The plan of one run: everything that can be decided before there is a child. Flags get their meaning here;
//! what cannot be understood or enforced ends the run.

use crate::cli::{self, Run, variables};
use crate::launch::commands::{self, Commands};
use crate::launch::demands;
use crate::launch::environment::{self, Wishes};
use crate::launch::files::{self, Executed};
use crate::launch::guard::OnViolation;
use crate::launch::landlock::Version;
use crate::launch::limits::{self, Limits, Situation};
use crate::launch::mounts::Mounts;
use crate::launch::namespaces::{self, Choice, Layout, Repository};
use crate::launch::places::{Places, inside_variables, working_directory};
use crate::launch::policy::{Mode, Network, PathRule};
use crate::launch::resolve::{self, Calls, Extras, Seal, Unix};
use crate::launch::scratch::Scratch;
use crate::launch::treatment::{self, StaticMode, Treatment};
use crate::launch::workspace;
use crate::profile::{self, Profile, Search, Variable, Variables};
use crate::program::{self, Program};
use crate::refusal::Refusal;
use crate::report::model;
use crate::supervise::attributes;
use crate::supervise::decode::shown;
use crate::sys::{descriptor, seccomp};
use sbx_policy::calls::Arch;
use sbx_policy::list::List;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
    /// What a violation meets.
    pub on_violation: OnViolation,
    /// Whether refused paths are named.
    pub watch_paths: bool,
    /// The path rules; `None` where the kernel has none, or none are wanted.
    pub paths: Option<Vec<PathRule>>,
    /// What is denied, whatever the rules say.
    pub denied: Vec<PathBuf>,
    /// Landlock's version here.
    pub landlock: Version,
    /// The network.
    pub network: Network,
    /// Whether changing modes, owners and times is the supervisor's business: where there are path rules, and
    /// calls that could get round them.
    pub attributes: bool,
    /// The workspace.
    pub workspace: Option<PathBuf>,
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
    /// Namespaces of its own, and what is mounted there; or why there are none.
    pub namespaces: Result<Rc<Layout>, String>,
    /// Whether this process is confined by `sbx` already.
    pub nested: bool,
    /// The scratch directory.
    pub scratch: Option<Scratch>,
    /// A descriptor that is kept free for the filter's.
    pub spare: Option<OwnedFd>,
    /// What there is to say beforehand.
    pub remarks: Vec<String>,
}

/// Makes the plan; a second time, if the machine `failed` to give the namespaces of the first one.
pub fn make(flags: &Run, failed: Option<&str>) -> Result<Plan, Refusal> {
    demands::contradictions(flags)?;
    let search = cli::search();
    let profile = load(flags, &search)?;
    let mut remarks = Vec::new();
    let unconfined = profile.is_unrestricted();
    means_unconfined(flags, &profile)?;
    let directory = working_directory(flags)?;
    // Without a command the policy is only asked (see `question`): nothing is examined, nothing made.
    let asked = flags.command.is_empty();
    let (program, remark) =
        if asked { (Program::default(), None) } else { examine(flags, &profile, &directory)? };
    remarks.extend(remark);
    let landlock = demands::landlock()?;
    let nested = seccomp::is_confined();
    let network = demands::network(flags, &profile, landlock)?;
    let situation = namespaces::Situation { landlock, nested, network: &network, failed };
    let choice = namespaces::choose(flags, &profile, situation)?;
    let mut calls = calls(flags, &profile, &network, landlock)?;
    if demands::names_sockets(flags, &profile, &network, landlock)? {
        calls.add_sockets(landlock < Version::UNIX)?;
    }
    let on_violation = demands::on_violation(flags, &profile);
    demands::level(flags, &profile, landlock, &choice, &mut remarks)?;
    if !asked && !unconfined {
        remarks.extend(without_seal(flags, &profile, &program, &calls, on_violation)?);
    }
    let places = Places::find(flags, &profile, &directory, !asked && !unconfined, &mut remarks)?;
    variables::check_place(flags, places.workspace.as_deref())?;
    if !unconfined {
        demands::home(&profile, places.home.as_deref())?;
    }
    let variables = places.variables();
    let (workspace, home) = (places.workspace.as_deref(), places.home.as_deref());
    let apart = choice == Choice::Made;
    let directories = files::Directories { variables: &variables, working: &directory };
    let stand_in = || (asked && profile.uses(Variable::Tmp)).then_some(Path::new(namespaces::NO_SCRATCH));
    let inside = variables
        .tmp
        .or_else(stand_in)
        .filter(|_| apart && namespaces::has_own_tmp(flags, &profile, directories));
    let environment =
        environment(flags, &profile, &inside_variables(&variables, inside), std::env::vars_os())?;
    let commands =
        commands::resolve(flags, &profile, &variables, &directory, &environment, landlock, &mut remarks)?;
    if let Some(commands) = &commands {
        commands.check(&program, is_own(&program))?;
    }
    let sockets = files::sockets(flags, &profile, &variables, &directory)?;
    // Before ABI 9 the supervisor connects, and Landlock knows no such right.
    let by_path = if landlock >= Version::UNIX { sockets.clone() } else { Vec::new() };
    let shielded = workspace.filter(|_| apart);
    if let Some(workspace) = shielded {
        workspace::can_be_searched(workspace)?;
    }
    let repository = shielded.filter(|_| !profile.paths.protect.is_empty());
    let repository = repository.map(|workspace| Repository::of(workspace, home));
    remarks.extend(repository.iter().flat_map(Repository::remarks));
    let more = repository.as_ref().map(Repository::rules).unwrap_or_default();
    let paths = (!unconfined && landlock >= Version::FILES)
        .then(|| {
            let executed = Executed { program: Some(&program), commands: commands.as_ref() };
            let given = files::Given {
                variables: &variables,
                executed,
                directory: &directory,
                sockets: &by_path,
                more: &more,
                masks: apart,
            };
            files::rules(flags, &profile, given, &mut remarks)
        })
        .transpose()?;
    let denied = paths.as_ref().map_or(&[][..], |paths| &paths.denied);
    let sockets = files::but_denied(sockets, denied, &mut remarks);
    let namespaces = match (choice, &paths) {
        (Choice::Made, Some(paths)) => {
            let given = namespaces::Given {
                rules: &paths.rules,
                denied: &paths.denied,
                protected: namespaces::protected(&profile, &variables, repository, &search.dirs),
                named: &paths.named,
                mounts: &paths.mounts.clone().map_or_else(Mounts::now, Ok)?,
                sockets: &sockets,
                scratch: inside,
                directory: &directory,
                home,
                network: network.mode == Mode::Private,
            };
            Ok(Rc::new(Layout::of(given, &mut remarks)))
        }
        (Choice::None(why), _) => Err(why),
        (Choice::Made, None) => Err("without path rules they would add little".to_string()),
    };
    let rules = paths.as_ref().map_or(&[][..], |paths| &paths.rules);
    remarks.extend(workspace.and_then(|workspace| workspace::of_another_user(workspace, rules)));
    if let Err(why) = &namespaces {
        namespaces::check_own_wishes(flags, &profile, why)?;
    }
    // What surrounds us has protected what it could, or said that it could not.
    if let (Err(why), false) = (&namespaces, nested) {
        remarks.extend(namespaces::unprotected(&profile, &variables, rules, why));
        remarks.extend(namespaces::own_profile_exposed(&profile, rules, why));
    }
    let (paths, denied) = paths.map(|paths| (paths.rules, paths.denied)).unzip();
    let situation = Situation { supervised: !flags.exec, listens: !flags.exec && !unconfined && !nested };
    let limits = limits::resolve(flags, &profile, situation)?;
    let changes = attributes::all().any(|name| calls.allows(name));
    Ok(Plan {
        attributes: paths.is_some() && (changes || on_violation == OnViolation::Log),
        limits,
        arguments: flags.command.clone(),
        denied_calls: flags.deny_calls.iter().map(|list| list.to_string_lossy().into_owned()).collect(),
        workspace: places.workspace,
        pass: flags.pass_fd.clone(),
        // Without path rules none refuses anything.
        watch_paths: paths.is_some() && (flags.log_violations || flags.explain),
        profile,
        program,
        environment,
        directory,
        calls: Rc::new(calls),
        on_violation,
        paths,
        denied: denied.unwrap_or_default(),
        landlock,
        network,
        sockets,
        commands: commands.map(Rc::new),
        unconfined,
        namespaces,
        nested,
        scratch: places.scratch,
        spare: None,
        remarks,
    })
}

/// Makes sure that the descriptors to be passed on are the caller's: before one is opened that is ours.
pub fn passable(numbers: &[i32]) -> Result<(), Refusal> {
    match numbers.iter().find(|number| **number < 3 || !descriptor::is_open(**number)) {
        None => Ok(()),
        Some(number) => Err(Refusal::new(format!(
            "cannot pass descriptor {number} on: it is not open, or is one of 0 to 2, which are passed anyway"
        ))),
    }
}

impl Plan {
    /// What confines the run, in one word.
    pub fn level(&self) -> model::Level {
        match (self.unconfined, &self.paths) {
            (true, _) => model::Level::None,
            (false, None) => model::Level::Minimal,
            (false, Some(_)) if self.namespaces.is_ok() && self.landlock >= Version::TCP => {
                model::Level::Full
            }
            (false, Some(_)) => model::Level::Standard,
        }
    }

    /// What the guard allows beyond the calls.
    pub fn extras(&self, seal: Option<&Seal>) -> Extras {
        Extras {
            loader: seal.map(|seal| seal.needs).unwrap_or_default(),
            watch_paths: self.watch_paths,
            attributes: self.attributes,
            configs: self.namespaces.as_ref().is_ok_and(|layout| !layout.configs.is_empty()),
            counts_tasks: false,
        }
    }
}

/// The profile that flags, the variable or the user name.
pub fn load(flags: &Run, search: &Search) -> Result<Profile, Refusal> {
    let loaded = match &flags.profile {
        Some(name) => profile::load(name, search),
        None if flags.dangerously_unconfined => profile::load(OsStr::new("unrestricted"), search),
        None => return by_default(search),
    };
    loaded.map_err(|e| Refusal::new(e.to_string()))
}

fn by_default(search: &Search) -> Result<Profile, Refusal> {
    let Some(name) = variables::profile() else {
        return profile::default_profile(search).map_err(|e| Refusal::new(e.to_string()));
    };
    profile::load(&name, search).map_err(|e| Refusal::new(format!("{e} (named by {})", variables::PROFILE)))
}

/// A run that nothing confines has to be wished for twice.
fn means_unconfined(flags: &Run, profile: &Profile) -> Result<(), Refusal> {
    match (profile.is_unrestricted(), flags.dangerously_unconfined) {
        (true, false) => Err(Refusal::new(format!(
            "refused to run under profile '{}', which confines nothing; add --dangerously-unconfined if that is meant",
            profile.name
        ))),
        (false, true) => Err(Refusal::new(format!(
            "--dangerously-unconfined contradicts --profile {}: name one of them",
            profile.name
        ))),
        _ => Ok(()),
    }
}

/// What is to be said where the library cannot be trusted to seal a program that takes one, or the refusal: only where there
/// is something to seal, else nothing is missing.
fn without_seal(
    flags: &Run,
    profile: &Profile,
    program: &Program,
    calls: &Calls,
    on_violation: OnViolation,
) -> Result<Option<String>, Refusal> {
    let sealed = !treatment::takes_library(program) || treatment::is_sealable(program);
    if sealed || on_violation == OnViolation::Log || calls.seal(on_violation.value())?.is_none() {
        return Ok(None);
    }
    let name = shown(Path::new(flags.command.first().map_or(OsStr::new(""), OsString::as_os_str)));
    treatment::distrusted().decide(static_mode(flags, profile), &name)
}

fn examine(flags: &Run, profile: &Profile, directory: &Path) -> Result<(Program, Option<String>), Refusal> {
    let command = flags.command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let path = std::env::var_os("PATH");
    let found = program::find(command, path.as_deref(), directory)
        .map_err(|e| Refusal::with_code(e.exit_code(), e.to_string()))?;
    let program = program::examine_from(&found, directory)
        .map_err(|e| Refusal::with_code(e.exit_code(), e.to_string()))?;
    let mode = static_mode(flags, profile);
    let treatment = treatment::of(&program);
    if profile.is_unrestricted() || matches!(treatment, Treatment::Both) {
        return Ok((program, None));
    }
    let name = crate::supervise::decode::escape(command.as_bytes(), 200);
    match treatment.decide(mode, &name) {
        // sbx itself may well be static, and has to be able to run inside sbx.
        Err(_) if is_own(&program) => Ok((program, None)),
        decided => decided.map(|remark| (program, remark)),
    }
}

fn static_mode(flags: &Run, profile: &Profile) -> StaticMode {
    match (flags.static_programs, profile.static_programs.as_deref()) {
        (Some(cli::Static::Block), _) | (None, Some(profile::StaticMode::Block) | None) => StaticMode::Block,
        (Some(cli::Static::Warn), _) | (None, Some(profile::StaticMode::Warn)) => StaticMode::Warn,
        (Some(cli::Static::Allow), _) | (None, Some(profile::StaticMode::Allow)) => StaticMode::Allow,
        (Some(cli::Static::Confine), _) | (None, Some(profile::StaticMode::Confine)) => StaticMode::Confine,
    }
}

/// Whether this is the program that is running.
pub fn is_own(program: &Program) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| path.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    let own = identity(Path::new("/proc/self/exe"));
    own.is_some() && program.chain.last().and_then(|link| identity(&link.path)) == own
}

/// The calls of a run, with what the flags say about them.
pub(crate) fn calls(
    flags: &Run,
    profile: &Profile,
    network: &Network,
    landlock: Version,
) -> Result<Calls, Refusal> {
    let unix = if landlock >= Version::UNIX { Unix::ByPath } else { Unix::Refused };
    let mut calls = resolve::calls(profile, network, unix, Arch::HOST)?;
    if !flags.rw.is_empty() || !flags.rwx.is_empty() {
        calls.add_writing()?;
    }
    for list in &flags.allow_calls {
        calls.add(List::Allow, "--allow-calls", list.as_bytes())?;
    }
    for list in &flags.deny_calls {
        calls.add(List::Deny, "--deny-calls", list.as_bytes())?;
    }
    Ok(calls)
}

/// The environment of a run, of what the host's holds.
pub(crate) fn environment(
    flags: &Run,
    profile: &Profile,
    variables: &Variables<'_>,
    host: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Vec<OsString>, Refusal> {
    let set: Vec<_> = profile
        .env
        .set
        .iter()
        .filter_map(|(name, value)| Some((OsString::from(&**name), value.expand(variables)?)))
        .collect();
    let named = flags.env.iter().map(|text| environment::named(text)).collect::<Result<Vec<_>, _>>()?;
    let wishes = Wishes {
        inherit: &profile.env.inherit,
        deny: &profile.env.deny,
        set: &set,
        named: &named,
        inherit_all: flags.inherit_env || profile.is_unrestricted(),
        allow_dangerous: flags.allow_dangerous_env,
    };
    let mut built = environment::build(host, &wishes)?;
    let fallback = variables.tmp.unwrap_or(Path::new("/"));
    built.entry("HOME".into()).or_insert_with(|| fallback.into());
    Ok(environment::entries(built))
}
