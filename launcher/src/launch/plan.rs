//! The plan of one run: everything that can be decided before there is a child. Flags get their meaning here;
//! what cannot be understood or enforced ends the run.

use crate::cli::{self, Run};
use crate::launch::environment::{self, Wishes};
use crate::launch::files;
use crate::launch::guard::OnViolation;
use crate::launch::landlock::{Version, plain};
use crate::launch::policy::{Mode, Network, PathRule};
use crate::launch::resolve::{self, Calls, Extras, Unix};
use crate::launch::scratch::{self, Scratch};
use crate::launch::treatment::{self, StaticMode};
use crate::profile::{self, DefaultAction, Level, PathEntry, Profile, Search, Variable, Variables};
use crate::program::{self, Program};
use crate::refusal::Refusal;
use crate::sys::{descriptor, privilege, seccomp};
use sbx_policy::calls::Arch;
use sbx_policy::list::List;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
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
    /// Landlock's version here.
    pub landlock: Version,
    /// The network.
    pub network: Network,
    /// Socket files that may be connected to.
    pub sockets: Vec<PathBuf>,
    /// Limits.
    pub limits: Vec<(privilege::Limit, u64)>,
    /// Descriptors passed on.
    pub pass: Vec<i32>,
    /// Whether no filter at all is wanted.
    pub unconfined: bool,
    /// Whether this process is confined by `sbx` already.
    pub nested: bool,
    /// The scratch directory.
    pub scratch: Option<Scratch>,
    /// What there is to say beforehand.
    pub remarks: Vec<String>,
}

/// Makes the plan.
pub fn make(flags: &Run) -> Result<Plan, Refusal> {
    contradictions(flags)?;
    let search = cli::search();
    let profile = load(flags, &search)?;
    let mut remarks = Vec::new();
    let unconfined = profile.is_unrestricted();
    if unconfined != flags.dangerously_unconfined {
        return Err(Refusal::new(match unconfined {
            true => format!(
                "refused to run under profile '{}', which confines nothing; add --dangerously-unconfined if that is meant",
                profile.name
            ),
            false => {
                format!("--dangerously-unconfined contradicts --profile {}: name one of them", profile.name)
            }
        }));
    }
    let directory = working_directory(flags)?;
    let (program, remark) = examine(flags, &profile, &directory)?;
    remarks.extend(remark);
    let landlock = Version(seccomp::landlock_version());
    let nested = seccomp::is_confined();
    let network = network(flags, &profile, landlock)?;
    let sockets = sockets(flags, &profile, &network, landlock)?;
    let mut calls = calls(flags, &profile, &network, landlock)?;
    if !sockets.is_empty() {
        calls.add_sockets(landlock < Version::UNIX)?;
    }
    let on_violation = on_violation(flags, &profile);
    level(flags, &profile, landlock, unconfined, &mut remarks)?;
    unenforced(&profile)?;

    let workspace = files::workspace(flags.workspace.as_deref(), &directory, &mut remarks)?;
    let wants = |variable| uses(&profile, variable);
    let scratch =
        if wants(Variable::Tmp) && !flags.exec && !unconfined { Some(make_scratch()?) } else { None };
    let cache = if wants(Variable::Cache) && !unconfined {
        cache(workspace.as_deref(), scratch.as_ref(), &mut remarks)
    } else {
        None
    };
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let variables = Variables {
        workspace: workspace.as_deref(),
        home: home.as_deref(),
        tmp: scratch.as_ref().map(Scratch::path),
        cache: cache.as_deref(),
    };
    // Before ABI 9 the supervisor connects, and Landlock knows no such right.
    let by_path = if landlock >= Version::UNIX { sockets.clone() } else { Vec::new() };
    let paths = (!unconfined && landlock >= Version::FILES)
        .then(|| files::rules(flags, &profile, &variables, &program, &directory, &by_path, &mut remarks))
        .transpose()?;
    let environment = environment(flags, &profile, &variables)?;
    for number in &flags.pass_fd {
        if *number < 3 || !descriptor::is_open(*number) {
            return Err(Refusal::new(format!(
                "cannot pass descriptor {number} on: it is not open, or is one of 0 to 2, which are passed anyway"
            )));
        }
    }
    Ok(Plan {
        limits: limits(&profile),
        arguments: flags.command.clone(),
        pass: flags.pass_fd.clone(),
        watch_paths: flags.log_violations || flags.explain,
        profile,
        program,
        environment,
        directory,
        calls: Rc::new(calls),
        on_violation,
        paths,
        landlock,
        network,
        sockets,
        unconfined,
        nested,
        scratch,
        remarks,
    })
}

impl Plan {
    /// Whether changing modes, owners and times is the supervisor's business: where there are path rules.
    pub fn guards_attributes(&self) -> bool {
        self.paths.is_some()
    }

    /// What the guard allows beyond the calls.
    pub fn extras(&self, sealed: bool) -> Extras {
        Extras { loader: sealed, watch_paths: self.watch_paths, attributes: self.guards_attributes() }
    }
}

fn contradictions(flags: &Run) -> Result<(), Refusal> {
    let given = |yes: bool, what: &'static str| yes.then_some(what);
    let pairs = [
        (given(flags.log_violations, "--log-violations"), given(flags.exec, "--exec")),
        (
            given(flags.log_violations, "--log-violations"),
            given(
                matches!(flags.on_violation, Some(v) if v != cli::OnViolation::Log),
                "--on-violation kill or errno",
            ),
        ),
        (given(flags.log_violations, "--log-violations"), given(flags.quiet, "--quiet")),
        (given(flags.explain, "--explain"), given(flags.exec, "--exec")),
        (given(flags.explain, "--explain"), given(flags.quiet, "--quiet")),
        (given(flags.explain, "--explain"), given(flags.log_violations, "--log-violations")),
        (
            given(flags.net == Some(cli::Net::Host), "--net host"),
            given(!flags.connect.is_empty(), "--connect"),
        ),
        (given(flags.net == Some(cli::Net::Host), "--net host"), given(!flags.bind.is_empty(), "--bind")),
        (
            given(flags.net == Some(cli::Net::None), "--net none"),
            given(!flags.connect.is_empty(), "--connect"),
        ),
        (given(flags.net == Some(cli::Net::None), "--net none"), given(!flags.bind.is_empty(), "--bind")),
        (
            given(flags.dangerously_unconfined, "--dangerously-unconfined"),
            given(restricts(flags), "flags that confine"),
        ),
    ];
    match pairs.into_iter().find_map(|(a, b)| a.zip(b)) {
        Some((a, b)) => {
            Err(Refusal::new(format!("{a} and {b} contradict each other: leave one of them out")))
        }
        None => Ok(()),
    }
}

fn restricts(flags: &Run) -> bool {
    let lists = [&flags.deny, &flags.ro, &flags.rox, &flags.rw, &flags.rwx, &flags.unix];
    lists.iter().any(|list| !list.is_empty())
        || !flags.deny_calls.is_empty()
        || !flags.allow_calls.is_empty()
        || flags.net.is_some()
        || flags.on_violation.is_some()
        || flags.log_violations
        || flags.require.is_some()
}

fn load(flags: &Run, search: &Search) -> Result<Profile, Refusal> {
    let loaded = match &flags.profile {
        Some(name) => profile::load(name, search),
        None if flags.dangerously_unconfined => profile::load(OsStr::new("unrestricted"), search),
        None => profile::default_profile(search),
    };
    loaded.map_err(|e| Refusal::new(e.to_string()))
}

fn working_directory(flags: &Run) -> Result<PathBuf, Refusal> {
    let start = flags.cwd.as_deref().or(flags.workspace.as_deref());
    let here = || {
        std::env::current_dir().map_err(|e| {
            Refusal::new(format!("cannot find the working directory: {}; name one with --cwd", plain(&e)))
        })
    };
    let directory = match start {
        Some(path) if path.is_absolute() => path.to_path_buf(),
        Some(path) => here()?.join(path),
        None => here()?,
    };
    match directory.metadata() {
        Ok(meta) if meta.is_dir() => Ok(directory),
        Ok(_) => Err(Refusal::new(format!("cannot enter '{}': it is not a directory", directory.display()))),
        Err(error) => Err(Refusal::new(format!("cannot enter '{}': {}", directory.display(), plain(&error)))),
    }
}

fn examine(flags: &Run, profile: &Profile, directory: &Path) -> Result<(Program, Option<String>), Refusal> {
    let command = flags.command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let path = std::env::var_os("PATH");
    let found = program::find(command, path.as_deref(), directory)
        .map_err(|e| Refusal::with_code(e.exit_code(), e.to_string()))?;
    let program = program::examine_from(&found, directory)
        .map_err(|e| Refusal::with_code(e.exit_code(), e.to_string()))?;
    let mode = match (flags.static_programs, profile.static_programs.as_deref()) {
        (Some(cli::Static::Block), _) | (None, Some(profile::StaticMode::Block) | None) => StaticMode::Block,
        (Some(cli::Static::Warn), _) | (None, Some(profile::StaticMode::Warn)) => StaticMode::Warn,
        (Some(cli::Static::Allow), _) | (None, Some(profile::StaticMode::Allow)) => StaticMode::Allow,
        (Some(cli::Static::Confine), _) | (None, Some(profile::StaticMode::Confine)) => StaticMode::Confine,
    };
    if profile.is_unrestricted() {
        return Ok((program, None));
    }
    let name = crate::supervise::decode::escape(command.as_bytes(), 200);
    let decided = treatment::of(&program).decide(mode, &name);
    match decided {
        // sbx itself may well be static, and has to be able to run inside sbx.
        Err(_) if is_own(&program) => Ok((program, None)),
        decided => decided.map(|remark| (program, remark)),
    }
}

fn is_own(program: &Program) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| path.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    let own = identity(Path::new("/proc/self/exe"));
    own.is_some() && program.chain.last().and_then(|link| identity(&link.path)) == own
}

fn network(flags: &Run, profile: &Profile, landlock: Version) -> Result<Network, Refusal> {
    let mut network = Network { mode: resolve::mode(profile), ..Network::default() };
    if network.mode == Mode::Ports {
        network.bind = profile.network.bind.iter().map(|port| port.value).collect();
        for endpoint in &profile.network.connect {
            network.connect.push(any_host(&endpoint.host, endpoint.port)?);
        }
    }
    match flags.net {
        Some(cli::Net::Host) => network = Network { mode: Mode::Host, ..Network::default() },
        Some(cli::Net::None) => network = Network::default(),
        None => {}
    }
    if !flags.connect.is_empty() || !flags.bind.is_empty() {
        network.mode = Mode::Ports;
        for text in &flags.connect {
            let (host, port) = text.rsplit_once(':').unwrap_or(("*", text));
            let port = port.parse().map_err(|_| {
                Refusal::new(format!("cannot read --connect '{text}': '{port}' is no port; write '*:443'"))
            })?;
            network.connect.push(any_host(host, port)?);
        }
        network.bind.extend(&flags.bind);
    }
    if network.mode == Mode::Ports && landlock < Version::TCP {
        return Err(Refusal::new(format!(
            "cannot restrict TCP to some ports: that needs Landlock ABI 4 (Linux 6.7), and this kernel has {}; use --net none or --net host",
            landlock.0
        )));
    }
    Ok(network)
}

/// Landlock knows ports, not addresses.
fn any_host(host: &str, port: u16) -> Result<u16, Refusal> {
    if host == "*" {
        return Ok(port);
    }
    Err(Refusal::new(format!(
        "cannot restrict connections to the host '{host}': the kernel can check the port, not the address; allow the port on every host with '*:{port}'"
    )))
}

/// The socket files that `--unix` names.
fn sockets(
    flags: &Run,
    profile: &Profile,
    network: &Network,
    landlock: Version,
) -> Result<Vec<PathBuf>, Refusal> {
    if flags.unix.is_empty() && profile.network.unix.is_empty() {
        return Ok(Vec::new());
    }
    if landlock < Version::UNIX && (flags.exec || network.mode != Mode::None) {
        let other = if flags.exec { "--exec" } else { "an open network" };
        return Err(Refusal::new(format!(
            "cannot allow one UNIX socket together with {other}: without Landlock ABI 9 (Linux 7.1; here it is {}) the supervisor has to make the connection itself",
            landlock.0
        )));
    }
    let named =
        flags.unix.iter().map(|path| files::existing(path, Path::new("/"))).collect::<Result<Vec<_>, _>>()?;
    let variables = Variables::default();
    let of_profile = profile.network.unix.iter().filter_map(|entry| entry.expand_path(&variables));
    Ok(named.into_iter().chain(of_profile).collect())
}

fn calls(flags: &Run, profile: &Profile, network: &Network, landlock: Version) -> Result<Calls, Refusal> {
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

fn on_violation(flags: &Run, profile: &Profile) -> OnViolation {
    let by_profile = match profile.syscalls.default.as_deref() {
        Some(DefaultAction::Kill) => OnViolation::Kill,
        Some(DefaultAction::Log) => OnViolation::Log,
        Some(DefaultAction::Errno(number)) => OnViolation::Errno(*number),
        Some(DefaultAction::Allow) | None => OnViolation::Errno(sbx_policy::errno::EPERM),
    };
    match (flags.on_violation, by_profile) {
        _ if flags.log_violations => OnViolation::Log,
        (None, by_profile) => by_profile,
        (Some(cli::OnViolation::Kill), _) => OnViolation::Kill,
        (Some(cli::OnViolation::Log), _) => OnViolation::Log,
        (Some(cli::OnViolation::Errno), OnViolation::Errno(number)) => OnViolation::Errno(number),
        (Some(cli::OnViolation::Errno), _) => OnViolation::Errno(sbx_policy::errno::EPERM),
    }
}

/// What the kernel can enforce against what is asked for.
fn level(
    flags: &Run,
    profile: &Profile,
    landlock: Version,
    unconfined: bool,
    remarks: &mut Vec<String>,
) -> Result<(), Refusal> {
    let required = flags.require.map(|level| match level {
        cli::Level::Full => Level::Full,
        cli::Level::Standard => Level::Standard,
        cli::Level::Minimal => Level::Minimal,
    });
    let required = required.or(profile.require.as_deref().copied());
    let files = landlock >= Version::FILES;
    let has = if files { Level::Standard } else { Level::Minimal };
    if required.is_some_and(|required| required > has) {
        let missing =
            if files { "this version of sbx uses no namespaces" } else { "this kernel has no Landlock" };
        return Err(Refusal::new(format!(
            "cannot enforce the level that --require or the profile asks for: {missing}"
        )));
    }
    if !files && !unconfined {
        let lists = [&flags.ro, &flags.rox, &flags.rw, &flags.rwx, &flags.deny];
        if lists.iter().any(|list| !list.is_empty()) {
            return Err(Refusal::new(
                "cannot enforce path rules: this kernel has no Landlock (Linux 5.13, and 'landlock' in the list of security modules)",
            ));
        }
        remarks.push(
            "warning: this kernel has no Landlock, so files are not restricted, only system calls"
                .to_string(),
        );
    }
    Ok(())
}

/// Keys whose enforcement is not there yet: what a profile asks for is enforced or refused, never passed over.
fn unenforced(profile: &Profile) -> Result<(), Refusal> {
    let limits = &profile.limits;
    let keys = [
        ("limits.timeout", limits.timeout.is_some()),
        ("limits.output", limits.output.is_some()),
        ("limits.processes", limits.processes.is_some()),
        ("limits.memory", limits.memory.is_some()),
        ("commands.allow", !profile.commands.allow.is_empty()),
        ("commands.block", !profile.commands.block.is_empty()),
    ];
    match keys.into_iter().find(|(_, asked)| *asked) {
        Some((key, _)) => Err(Refusal::new(format!(
            "cannot enforce '{key}' of profile '{}': this version does not; take the key out",
            profile.name
        ))),
        None => Ok(()),
    }
}

fn limits(profile: &Profile) -> Vec<(privilege::Limit, u64)> {
    let limits = &profile.limits;
    // A core file would hold what the command had in memory, and lie about for others.
    let mut all = vec![(privilege::Limit::Core, 0)];
    all.extend(limits.open_files.as_deref().map(|n| (privilege::Limit::OpenFiles, *n)));
    all.extend(limits.file_size.as_deref().map(|n| (privilege::Limit::FileSize, *n)));
    all.extend(limits.cpu.as_deref().map(|time| (privilege::Limit::Cpu, time.as_secs().max(1))));
    all
}

/// Whether a profile's paths or variables mention a variable.
fn uses(profile: &Profile, variable: Variable) -> bool {
    let paths = &profile.paths;
    let lists: [&[PathEntry]; 3] = [&paths.read, &paths.execute, &paths.write];
    lists.into_iter().flatten().any(|entry| entry.base == Some(variable))
        || profile.env.set.values().any(|value| value.base == Some(variable))
}

fn make_scratch() -> Result<Scratch, Refusal> {
    Scratch::create(std::env::var_os("TMPDIR").as_deref())
}

/// The tool caches; where they cannot be made they are part of the scratch directory, and do not last.
fn cache(workspace: Option<&Path>, scratch: Option<&Scratch>, remarks: &mut Vec<String>) -> Option<PathBuf> {
    let (cache_home, home) = (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"));
    let lasting =
        workspace.map(|workspace| scratch::cache(cache_home.as_deref(), home.as_deref(), workspace));
    match lasting {
        Some(Ok(path)) => Some(path),
        Some(Err(error)) => {
            remarks.push(format!("tool caches do not last beyond this run: {}", plain(&error)));
            scratch
                .map(|scratch| scratch.path().join("cache"))
                .filter(|path| std::fs::create_dir(path).is_ok())
        }
        None => scratch
            .map(|scratch| scratch.path().join("cache"))
            .filter(|path| std::fs::create_dir(path).is_ok()),
    }
}

fn environment(flags: &Run, profile: &Profile, variables: &Variables<'_>) -> Result<Vec<OsString>, Refusal> {
    fn patterns<'a>(list: &'a [profile::Given<Cow<'static, str>>]) -> Vec<&'a str> {
        list.iter().map(|pattern| &*pattern.value).collect()
    }
    let (inherit, deny) = (patterns(&profile.env.inherit), patterns(&profile.env.deny));
    let set: Vec<_> = profile
        .env
        .set
        .iter()
        .filter_map(|(name, value)| Some((OsString::from(&**name), value.expand(variables)?)))
        .collect();
    let named = flags.env.iter().map(|text| environment::named(text)).collect::<Result<Vec<_>, _>>()?;
    let wishes = Wishes {
        inherit: &inherit,
        deny: &deny,
        set: &set,
        named: &named,
        inherit_all: flags.inherit_env || profile.is_unrestricted(),
        allow_dangerous: flags.allow_dangerous_env,
    };
    let mut built = environment::build(std::env::vars_os(), &wishes)?;
    let fallback = variables.tmp.unwrap_or(Path::new("/"));
    built.entry("HOME".into()).or_insert_with(|| fallback.into());
    Ok(environment::entries(built))
}
