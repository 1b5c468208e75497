//! Plans as values: what is decided for machines that are made up here. Only files are real.

use super::*;
use crate::error::Refusal;
use crate::host::mounts::Mounts;
use crate::host::{Fact, Host, Open};
use crate::hosts::HostName;
use crate::plan::network::Doors;
use crate::profile::{Bound, Namespaces, NetworkMode};
use crate::request::Request;
use crate::sys::SyscallError;
use limits::{LimitKey, Mechanism};
use namespaces::{Missing, Unavailable};
use std::io;
use std::path::Path;
use std::time::Duration;

/// A directory of every machine that may be a workspace, and is no repository.
const WORKSPACE: &str = "/usr/lib";

/// A machine of an ordinary user, with this version of Landlock.
fn machine(landlock: i32) -> Host {
    let environment = [("PATH", "/usr/bin:/bin"), ("HOME", "/nowhere"), ("A_TOKEN", "secret")];
    let host = Host::with_environment(environment.map(|(name, value)| (name.into(), value.into())).to_vec());
    Host {
        directory: host.directory.known(Ok(WORKSPACE.into())),
        landlock: host.landlock.known(Ok(Version(landlock))),
        nested: host.nested.known(false),
        has_connections_made: host.has_connections_made.known(false),
        root: host.root.known(false),
        real_user: host.real_user.known(1000),
        one_identity: host.one_identity.known(true),
        administrator: host.administrator.known(false),
        tasks: host.tasks.known(10),
        mounts: host.mounts.known(Ok(Mounts::default())),
        terminals: host.terminals.known(Vec::new()),
        own_program: host.own_program.known(None),
        opened: |_| Open::Other,
        ..host
    }
}

/// A machine whose kernel answers the question for Landlock with an error.
fn without_landlock(errno: i32) -> Host {
    let failed = SyscallError { call: "landlock_create_ruleset", cause: io::Error::from_raw_os_error(errno) };
    let host = machine(0);
    Host { landlock: Fact::read_by(crate::host::landlock::ask).known(Err(failed)), ..host }
}

/// A machine of a process that `sbx` confines already.
fn nested() -> Host {
    let host = machine(9);
    Host { nested: Fact::read_by(|| true), ..host }
}

fn request(profile: &str) -> Request {
    Request { profile: Some(profile.into()), command: vec!["true".into()], ..Request::default() }
}

fn plan_with(request: &Request, host: &Host, provided: Provided) -> Result<Plan, Refusal> {
    Draft::new(Inputs::read(request, host)?, &Unavailable::default())?.complete(provided)
}

/// A machine that does not give these namespaces.
fn lacking(missing: Missing) -> Unavailable {
    let mut unavailable = Unavailable::default();
    unavailable.add(missing, "the kernel refuses them");
    unavailable
}

fn plan(request: &Request, host: &Host) -> Result<Plan, Refusal> {
    plan_with(request, host, Provided::default())
}

/// The sentence of a refusal has all of these parts.
#[track_caller]
fn refused(planned: Result<Plan, Refusal>, parts: &[&str]) {
    let sentence = planned.err().expect("a refusal").to_string();
    assert!(parts.iter().all(|part| sentence.contains(part)), "{sentence}");
}

#[track_caller]
fn warns(plan: &Plan, part: &str) {
    assert!(plan.warnings.iter().any(|warning| warning.contains(part)), "{:#?}", plan.warnings);
}

fn means(plan: &Plan, limit: LimitKey) -> Option<Mechanism> {
    plan.limits.applied.iter().find(|applied| applied.limit == limit).map(|applied| applied.means)
}

fn seconds(count: u64) -> Option<Bound<Duration>> {
    Some(Bound::At(Duration::from_secs(count)))
}

#[test]
fn a_machine_that_has_everything_gives_the_full_level() {
    let plan = plan(&request("workspace"), &machine(9)).unwrap();
    assert_eq!(plan.level(), Some(Level::Full));
    assert_eq!(plan.workspace.as_deref(), Some(Path::new(WORKSPACE)));
    assert!(plan.namespaces.is_ok() && !plan.unconfined && !plan.nested);
    assert!(plan.paths.is_some_and(|rules| rules.iter().any(|rule| rule.path == Path::new(WORKSPACE))));
    assert!(!plan.environment.iter().any(|entry| entry == "A_TOKEN=secret"));
}

#[test]
fn without_landlock_files_stay_open_and_that_is_said() {
    let host = without_landlock(libc::ENOSYS);
    let planned = plan(&request("minimal"), &host).unwrap();
    assert_eq!(planned.level(), Some(Level::Minimal));
    assert_eq!(planned.paths, None);
    warns(&planned, "so files are not restricted by this run, only system calls");
}

#[test]
fn without_landlock_nothing_is_started_that_only_path_rules_hold() {
    let host = without_landlock(libc::EOPNOTSUPP);
    let off = "Landlock is turned off in this kernel";
    let denies = Request { deny: vec!["/etc".into()], ..request("minimal") };
    refused(plan(&denies, &host), &["cannot enforce path rules: ", off]);
    let requires = Request { require: Some(Level::Standard), ..request("minimal") };
    refused(plan(&requires, &host), &["cannot enforce the level that --require", off]);
}

#[test]
fn a_kernel_that_cannot_answer_now_is_not_one_without_landlock() {
    refused(
        plan(&request("minimal"), &without_landlock(libc::ENOMEM)),
        &["cannot ask for the version of Landlock"],
    );
}

#[test]
fn landlock_without_tcp_is_not_the_full_level() {
    let host = machine(3);
    let planned = plan(&request("workspace"), &host).unwrap();
    assert_eq!(planned.level(), Some(Level::Standard));
    assert!(planned.namespaces.is_ok());
    let requires = Request { require: Some(Level::Full), ..request("workspace") };
    refused(plan(&requires, &host), &["Landlock's rules for TCP need ABI 4, and this kernel has 3"]);
    let ports = Request { connect: vec!["*:443".into()], ..request("workspace") };
    refused(plan(&ports, &host), &["cannot restrict TCP to some ports", "this kernel has 3"]);
}

#[test]
fn without_namespaces_the_level_is_lower_and_a_denial_holds_by_rules() {
    let host = machine(9);
    let planned = |request: &Request| {
        Draft::new(Inputs::read(request, &host)?, &lacking(Missing::Both))?.complete(Provided::default())
    };
    let mut children = Path::new(WORKSPACE).read_dir().unwrap().map(|child| child.unwrap());
    let denied = children.find(|child| child.file_type().unwrap().is_dir()).unwrap().path();
    let plan = planned(&Request { deny: vec![denied.clone()], ..request("workspace") }).unwrap();
    assert_eq!(plan.level(), Some(Level::Standard));
    assert_eq!(plan.namespaces.as_ref().err().map(String::as_str), Some("the kernel refuses them"));
    assert!(plan.paths.as_ref().unwrap().iter().all(|rule| !denied.starts_with(&rule.path)));
    warns(&plan, "'/usr', '/usr/lib' cannot be listed");
    let requires = Request { require: Some(Level::Full), ..request("workspace") };
    refused(
        planned(&requires),
        &["cannot make namespaces, which level 'full' needs: the kernel refuses them"],
    );
    let private = Request { net: Some(NetworkMode::Private), ..request("workspace") };
    refused(planned(&private), &["which a network of the run's own needs: the kernel refuses them"]);
}

#[test]
fn nobody_enforces_limits_of_a_supervisor_with_exec() {
    let exec = Request { exec: true, ..request("workspace") };
    let planned = plan(&exec, &machine(9)).unwrap();
    assert_eq!(planned.level(), Some(Level::Standard));
    assert!(planned.namespaces.as_ref().is_err_and(|why| why.starts_with("--exec leaves no process")));
    for (limited, flag) in [
        (Request { timeout: seconds(1), ..exec.clone() }, "--timeout"),
        (Request { max_output: Some(Bound::At(1)), ..exec.clone() }, "--max-output"),
        (Request { max_memory: Some(Bound::At(1)), ..exec.clone() }, "--max-memory"),
    ] {
        refused(
            plan(&limited, &machine(9)),
            &[flag, "and --exec contradict each other: without a supervisor"],
        );
    }
    let files = Request { max_open_files: Some(Bound::At(64)), ..exec.clone() };
    assert_eq!(means(&plan(&files, &machine(9)).unwrap(), LimitKey::OpenFiles), Some(Mechanism::Resource));
    refused(
        plan(&Request { net: Some(NetworkMode::Private), ..exec }, &machine(9)),
        &["--net private and --exec"],
    );
}

#[test]
fn inside_a_sandbox_there_are_neither_namespaces_nor_notifications() {
    let host = nested();
    let limited = Request { max_processes: Some(Bound::At(5)), ..request("workspace") };
    let planned = plan(&limited, &host).unwrap();
    assert!(planned.nested);
    assert_eq!(planned.level(), Some(Level::Standard));
    assert!(
        planned.namespaces.as_ref().is_err_and(|why| why.contains("a sandbox of sbx around this process"))
    );
    assert_eq!(means(&planned, LimitKey::Processes), Some(Mechanism::Resource));
    // The kernel counts the user's other tasks too.
    assert!(planned.limits.resources.iter().any(|limit| limit.1 == 15));
    let of_root = Host { real_user: Fact::read_by(|| 0), ..host };
    refused(plan(&limited, &of_root), &["cannot limit processes here", "does not hold for root"]);
}

#[test]
fn a_limit_takes_the_best_means_that_there_is() {
    let host = machine(9);
    let limited = Request {
        max_processes: Some(Bound::At(5)),
        max_memory: Some(Bound::At(1 << 30)),
        ..request("workspace")
    };
    let group = GroupLimits { processes: Some(5), memory: Some(1 << 30) };
    assert_eq!(
        Draft::new(Inputs::read(&limited, &host).unwrap(), &Unavailable::default()).unwrap().needs().group,
        Some(group)
    );
    let by_group = plan_with(&limited, &host, Provided { group, ..Provided::default() }).unwrap();
    assert_eq!(means(&by_group, LimitKey::Processes), Some(Mechanism::Group));
    assert_eq!(means(&by_group, LimitKey::Memory), Some(Mechanism::Group));
    let watched =
        plan_with(&limited, &host, Provided { watches_memory: true, ..Provided::default() }).unwrap();
    assert_eq!(means(&watched, LimitKey::Processes), Some(Mechanism::Notification));
    assert_eq!(means(&watched, LimitKey::Memory), Some(Mechanism::Supervisor));
    assert!(watched.notified().has(Notified::Tasks));
    refused(plan(&limited, &host), &["cannot limit memory here"]);
}

#[test]
fn a_question_needs_nothing_made() {
    let host = machine(9);
    let mut asked = Request { max_memory: Some(Bound::At(1 << 30)), ..request("workspace") };
    let needs = |request: &Request| {
        Draft::new(Inputs::read(request, &host).unwrap(), &Unavailable::default()).unwrap().needs()
    };
    assert!(needs(&asked).scratch);
    asked.command.clear();
    assert_eq!(needs(&asked), Needs::default());
}

#[test]
fn each_network_says_who_reaches_out() {
    let host = machine(9);
    let of = |request: &Request| plan(request, &host).map(|plan| plan.network);
    let none = of(&Request { net: Some(NetworkMode::None), ..request("network") }).unwrap();
    assert!(none.mode == NetworkMode::None && none.handles_tcp());
    let ports =
        Request { connect: vec!["*:443".into(), "80".into()], bind: vec![8080], ..request("workspace") };
    let ports = of(&ports).unwrap();
    assert!(ports.mode == NetworkMode::Ports && ports.handles_tcp());
    assert_eq!((ports.connect, ports.bind), (vec![80, 443], vec![8080]));
    let private = Request { net: Some(NetworkMode::Private), ..request("workspace") };
    let planned = plan(&private, &host).unwrap();
    assert!(!planned.network.handles_tcp() && planned.own.unwrap().kinds.network);
}

#[test]
fn a_loopback_is_there_where_it_can_be_had_and_a_reason_is_elsewhere() {
    let host = machine(7);
    let workspace = request("workspace");
    let own = plan(&workspace, &host).unwrap();
    assert!(own.network.mode == NetworkMode::Private && own.network.namespace && own.network.lacks.is_none());
    assert!(own.own.unwrap().kinds.user && own.calls.allows("shmget"));
    // Each namespace by itself.
    let without = |request: &Request, missing| {
        Draft::new(Inputs::read(request, &host)?, &lacking(missing))?.complete(Provided::default())
    };
    let network_alone = without(&workspace, Missing::View).unwrap();
    let kinds = network_alone.own.unwrap().kinds;
    assert!(kinds.network && !kinds.view && network_alone.network.mode == NetworkMode::Private);
    assert!(network_alone.level() == Some(Level::Standard) && network_alone.calls.allows("semget"));
    let private = Request { net: Some(NetworkMode::Private), ..request("workspace") };
    assert!(without(&private, Missing::View).unwrap().own.unwrap().kinds.network);
    let view_alone = without(&workspace, Missing::Network).unwrap();
    let kinds = view_alone.own.unwrap().kinds;
    assert!(kinds.view && !kinds.network && view_alone.level() == Some(Level::Full));
    assert_eq!(view_alone.network.lacks.as_deref(), Some("the kernel refuses them"));
    let neither = without(&workspace, Missing::Both).unwrap();
    assert!(neither.own.is_none() && neither.network.handles_tcp() && !neither.calls.allows("shmget"));
    // Without a reason of the machine's as well.
    let socket =
        Host { opened: |number| if number == 0 { Open::NetworkSocket } else { Open::Other }, ..machine(7) };
    for (request, host, why) in [
        (Request { exec: true, ..request("workspace") }, &host, "--exec"),
        (Request { keep_background: true, ..request("workspace") }, &host, "--keep-background"),
        (Request { namespaces: Some(Namespaces::None), ..request("workspace") }, &host, "--namespaces none"),
        (workspace.clone(), &nested(), "a sandbox of sbx"),
        (workspace.clone(), &socket, "descriptor 0 is a socket of the host's network"),
    ] {
        let planned = plan(&request, host).unwrap();
        assert!(planned.network.mode == NetworkMode::None && planned.network.handles_tcp(), "{why}");
        assert!(planned.network.lacks.as_ref().is_some_and(|lacks| lacks.contains(why)), "{why}");
        assert!(!planned.own.is_some_and(|own| own.kinds.network), "{why}");
    }
    let none = plan(&Request { net: Some(NetworkMode::None), ..workspace.clone() }, &host).unwrap();
    assert!(none.network.mode == NetworkMode::None && none.network.lacks.is_none());
    // Log mode lets connections out, and the others are those of a run with a loopback of its own.
    let logs = plan(&Request { log_violations: true, ..workspace }, &host).unwrap();
    assert!(logs.network.mode == NetworkMode::Private && !logs.network.namespace);
}

#[test]
fn root_needs_a_user_namespace_only_where_a_socket_does_not_tell_its_network() {
    let root = |cookies| {
        let host = machine(7);
        let administrator = host.administrator.known(true);
        Host { administrator, network_cookies: host.network_cookies.known(cookies), ..machine(7) }
    };
    let user = |request: &Request, host: &Host| plan(request, host).unwrap().own.unwrap().kinds.user;
    let workspace = request("workspace");
    assert!(!user(&workspace, &root(true)) && user(&workspace, &root(false)));
    assert!(!user(&Request { net: Some(NetworkMode::None), ..workspace }, &root(false)));
}

#[test]
fn networks_that_cannot_be_enforced_are_refused() {
    let host = machine(9);
    let connects = |to: &str| Request { connect: vec![to.into()], ..request("workspace") };
    refused(plan(&connects("*:0x1"), &host), &["cannot read the host '*:0x1': '0x1' is not a port"]);
    for (net, word) in [(NetworkMode::None, "none"), (NetworkMode::Host, "host")] {
        let both = Request { net: Some(net), ..connects("*:443") };
        refused(plan(&both, &host), &[word, "--connect contradict each other"]);
    }
    let private = Request { net: Some(NetworkMode::Private), pass_fd: vec![7], ..request("workspace") };
    let socket =
        Host { opened: |number| if number == 7 { Open::NetworkSocket } else { Open::Other }, ..host };
    refused(plan(&private, &socket), &["cannot pass descriptor 7 into a network of the run's own"]);
}

#[test]
fn rules_about_hosts_take_a_network_of_the_runs_own() {
    let host = machine(9);
    let connects = |to: &[&str], profile| Request {
        connect: to.iter().map(ToString::to_string).collect(),
        ..request(profile)
    };
    for profile in ["workspace", "network", "minimal"] {
        let planned = plan(&connects(&["Example.org", "10.0.0.0/8:22", "*:80"], profile), &host).unwrap();
        assert!(planned.network.mode == NetworkMode::Private && planned.network.namespace);
        let hosts = planned.network.hosts.as_ref().unwrap();
        assert_eq!(hosts.doors.ports, [22, 80, 443]);
        let name = HostName::parse("example.org").unwrap();
        assert!(hosts.rules.allow_name(&name, 443) && !hosts.rules.allow_name(&name, 22));
        // Also where Landlock tells UNIX sockets apart (ABI 9): the supervisor decides about hosts.
        assert!(planned.calls.supervisor_connects() && !planned.calls.connects_outside());
    }
    let private = Request { net: Some(NetworkMode::Private), ..connects(&["*:443"], "workspace") };
    assert!(plan(&private, &host).unwrap().network.hosts.is_some());
    let own = plan(&Request { host_port: vec![5432], ..request("workspace") }, &host).unwrap().network;
    assert_eq!(own.hosts.unwrap().doors, Doors { ports: Vec::new(), host_ports: vec![5432] });
    refused(plan(&Request { host_port: vec![0], ..request("workspace") }, &host), &["names no port"]);
    let exec = Request { exec: true, ..connects(&["example.org"], "minimal") };
    refused(plan(&exec, &host), &["cannot reach named hosts together with --exec"]);
    let bind = Request { bind: vec![80], ..connects(&["example.org"], "workspace") };
    refused(plan(&bind, &host), &["leave --bind (profile key network.bind) out"]);
    for (rule, why) in [
        ("localhost:5432", "with '--host-port 5432'"),
        ("127.0.0.1:80", "with '--host-port 80'"),
        ("[::1]", "with '--host-port 443'"),
        ("198.18.0.0/16", "for the names of hosts"),
        ("224.0.0.0/4", "connections go to one host"),
    ] {
        refused(plan(&connects(&[rule], "workspace"), &host), &["the rule '", "never applies", why]);
    }
    let takes_descriptors = host.takes_descriptors.known(false);
    let without = Host { takes_descriptors, ..machine(9) };
    let private = Request { net: Some(NetworkMode::Private), ..connects(&["example.org"], "workspace") };
    refused(plan(&private, &without), &["refuses pidfd_getfd(2)"]);
}

#[test]
fn without_one_hosts_are_reached_by_a_proxy() {
    let connects = |profile| Request {
        connect: vec!["example.org".to_string()],
        namespaces: Some(Namespaces::None),
        ..request(profile)
    };
    let proxied = |request: &Request, host: &Host| {
        let planned = plan(request, host).unwrap();
        let proxy = planned.network.proxy().unwrap().clone();
        assert!(planned.network.mode == NetworkMode::Ports && !planned.network.namespace);
        assert!(planned.warnings.iter().any(|warning| warning.contains("by proxy")));
        assert_eq!(planned.calls.connects_outside(), proxy.is_supervised);
        // Only the supervisor's threads connect.
        assert!(planned.network.connect.is_empty());
        proxy.is_supervised
    };
    for profile in ["workspace", "network", "minimal"] {
        assert!(proxied(&connects(profile), &machine(9)));
        let takes_descriptors = machine(9).takes_descriptors.known(false);
        assert!(!proxied(&connects(profile), &Host { takes_descriptors, ..machine(9) }));
    }
    refused(plan(&connects("workspace"), &machine(3)), &["a network of the run's own needs"]);
    for request in [
        Request { keep_background: true, ..connects("workspace") },
        Request { net: Some(NetworkMode::Private), ..connects("workspace") },
        Request { require: Some(Level::Full), ..connects("workspace") },
    ] {
        refused(plan(&request, &machine(9)), &["cannot make namespaces"]);
    }
}

#[test]
fn a_ring_passes_no_filter_that_keeps_a_network() {
    let host = machine(9);
    let with = |net, connect: &[&str]| Request {
        net,
        connect: connect.iter().map(ToString::to_string).collect(),
        allow_calls: vec!["io_uring_setup".into()],
        ..request("workspace")
    };
    for request in [
        with(Some(NetworkMode::None), &[]),
        with(None, &["*:80"]),
        Request { namespaces: Some(Namespaces::None), ..with(None, &["example.org"]) },
        Request { namespaces: Some(Namespaces::None), ..with(None, &[]) },
    ] {
        refused(plan(&request, &host), &["io_uring pass no filter", "--net private"]);
        plan(&Request { log_violations: true, ..request }, &host).unwrap();
    }
    for net in [Some(NetworkMode::Private), Some(NetworkMode::Host), None] {
        plan(&with(net, &[]), &host).unwrap();
    }
}

#[test]
fn a_run_is_unconfined_only_if_that_is_asked_for_twice() {
    let host = machine(9);
    let once = request("unrestricted");
    refused(plan(&once, &host), &["which confines nothing; add --dangerously-unconfined"]);
    let twice = plan(&Request { dangerously_unconfined: true, ..once }, &host).unwrap();
    assert!(twice.unconfined && twice.level().is_none() && twice.paths.is_none() && twice.seal.is_none());
    let other = Request { dangerously_unconfined: true, ..request("workspace") };
    refused(plan(&other, &host), &["--dangerously-unconfined contradicts --profile workspace"]);
}
