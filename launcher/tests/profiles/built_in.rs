//! The eight built-in profiles: what each must contain, and what none may.

use sbx::plan::calls::{self as resolve, Extras, Unix};
use sbx::plan::rules::Network;
use sbx::profile::{self, Grants, Namespaces, NetworkMode as Mode, Profile, Variable};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{Data, run};
use sbx_policy::list::List;
use sbx_policy::program::assemble;
use sbx_policy::rules::{Actions, Layout};
use sbx_policy::{bpf, shadow};

use crate::{Shelf, built_in_profile as built_in};

const CONFINING: [&str; 7] = ["custom", "minimal", "network", "write", "no-exec", "workspace", "read-only"];

/// What the documentation promises for `minimal`.
const MINIMAL: &str = "read write close fstat stat lstat openat mmap mprotect munmap brk exit_group arch_prctl access \
    newfstatat pread64 getrandom rseq set_tid_address set_robust_list prlimit64 madvise futex rt_sigaction rt_sigprocmask";
/// And further for `network`; the calls on sockets themselves come with the network mode.
const NETWORK: &str = "poll epoll_create1 epoll_ctl epoll_wait epoll_pwait fcntl ioctl clone wait4 pipe pipe2 dup dup2 getpid \
    getuid getgid geteuid getegid uname getcwd readlink socketpair";
const WRITE: &str = "unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir pwrite64 fsync fdatasync ftruncate getcwd \
    chdir getpid";
/// What Go's runtime needs without a word of libc.
const GO: &str = "sched_getaffinity sigaltstack rt_sigaction rt_sigprocmask rt_sigreturn clone futex epoll_create1 epoll_ctl \
    epoll_pwait mincore madvise tgkill getpid gettid nanosleep pipe2 eventfd2 timer_create timer_settime timer_delete setitimer \
    prlimit64 sched_yield fcntl openat read mmap munmap";
/// Only in an IPC namespace of the run's own.
const SYSTEM_V: &str = "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl";
/// Never, except in `unrestricted`.
const NEVER: &str = "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr keyctl add_key request_key bpf perf_event_open ptrace process_vm_readv \
    process_vm_writev userfaultfd mount umount2 move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr setns \
    kexec_load kexec_file_load init_module finit_module delete_module clock_settime clock_adjtime settimeofday adjtimex swapon \
    swapoff quotactl quotactl_fd open_by_handle_at name_to_handle_at fanotify_init fanotify_mark acct kcmp pidfd_getfd \
    memfd_secret lookup_dcookie vhangup syslog chroot pivot_root modify_ldt iopl ioperm reboot sethostname setdomainname \
    io_uring_setup io_uring_enter io_uring_register connect openat2 clone3";

fn rules<'a>(profile: &'a Profile, name: &str) -> Option<&'a profile::CallRules> {
    profile.syscalls.calls.get(Call::named(name.as_bytes()).unwrap_or_else(|| panic!("no call {name}")))
}

fn allows(profile: &Profile, name: &str) -> bool {
    rules(profile, name).is_some_and(|rules| !rules.allow.is_none())
}

fn contains(profile: &Profile, names: &str) {
    for name in names.split_whitespace() {
        assert!(allows(profile, name), "{} lacks {name}", profile.name);
    }
}

fn lacks(profile: &Profile, names: &str) {
    for name in names.split_whitespace() {
        assert!(!allows(profile, name), "{} allows {name}", profile.name);
    }
}

/// A call's named restrictions in a profile: `openat[read]`.
fn restricted(profile: &Profile, name: &str) -> Vec<String> {
    match &rules(profile, name).unwrap().allow {
        Grants::Some(list) => list.iter().map(|one| one.origin.entry.to_string()).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn each_has_its_calls() {
    for name in ["minimal", "network", "write", "no-exec", "workspace", "read-only"] {
        let profile = built_in(name);
        contains(&profile, MINIMAL);
        contains(&profile, GO);
        lacks(&profile, NEVER);
    }
    contains(&built_in("network"), NETWORK);
    contains(&built_in("write"), WRITE);
    for name in ["minimal", "network", "write", "no-exec"] {
        lacks(&built_in(name), "execve execveat fork vfork");
        assert_eq!(restricted(&built_in(name), "clone"), ["clone[thread]"]);
    }
    for name in ["minimal", "network"] {
        assert_eq!(restricted(&built_in(name), "openat"), ["openat[read]"]);
        lacks(&built_in(name), "unlink mkdir rename truncate chmod socket creat kill");
    }
    for name in ["write", "workspace", "read-only", "no-exec"] {
        assert_eq!(restricted(&built_in(name), "openat"), ["openat[no-setid]"]);
        assert_eq!(restricted(&built_in(name), "mkdir"), ["mkdir[no-setid]"]);
    }
    contains(
        &built_in("workspace"),
        "execve execveat fork vfork seccomp landlock_restrict_self chmod utimensat setxattr",
    );
    contains(&built_in("read-only"), "execve fork vfork chmod utimensat setxattr");
    assert!(built_in("custom").syscalls.calls.0.is_empty());
    assert!(CONFINING.iter().all(|name| !built_in(name).is_unrestricted()));
    assert!(built_in("unrestricted").is_unrestricted());
}

#[test]
fn what_all_processes_of_a_machine_share_is_open_only_where_it_is_the_runs_own() {
    let calls = |profile: &Profile, own_ipc| {
        resolve::calls(profile, &Network::default(), own_ipc, Unix::Refused, Arch::X86_64).unwrap()
    };
    for name in CONFINING {
        let profile = built_in(name);
        let wanted = ["workspace", "read-only", "no-exec"].contains(&name);
        for call in SYSTEM_V.split_whitespace() {
            assert_eq!(calls(&profile, true).allows(call), wanted, "{name}: {call}");
            assert!(!calls(&profile, false).allows(call), "{name}: {call}");
        }
    }
    assert_eq!(restricted(&built_in("no-exec"), "shmat"), ["shmat[no-exec]"]);
    // What a flag allows is not taken back.
    let mut calls = calls(&built_in("workspace"), false);
    calls.add(List::Allow, "--allow-calls", b"shmget").unwrap();
    assert!(calls.allows("shmget"));
}

#[test]
fn sockets_that_are_merely_tried_are_refused_quietly() {
    const EAFNOSUPPORT: u16 = 97;
    for name in ["minimal", "network", "write", "no-exec", "read-only", "workspace"] {
        let profile = built_in(name);
        let rules = rules(&profile, "socket").unwrap();
        let Grants::Some(denied) = &rules.deny else { panic!("{name} denies no sockets") };
        let denied: Vec<_> = denied.iter().map(|one| one.origin.entry.to_string()).collect();
        for family in ["socket[inet6]=EAFNOSUPPORT", "socket[netlink-route]=EAFNOSUPPORT"] {
            assert!(denied.contains(&family.to_string()), "{name}: {family}");
        }
        assert_eq!(rules.errno, Some(EAFNOSUPPORT), "{name}");
        assert!(!denied.iter().any(|entry| entry.contains("[inet]")), "{name}: IPv4 has to be reported");
    }
}

/// A socket of a run with a network, as the filter decides about it.
fn socket_decision(profile: &Profile, mode: Mode, family: u64) -> u32 {
    decision(profile, mode, Unix::Refused, "socket", [family, 1, 0, 0, 0, 0])
}

fn decision(profile: &Profile, mode: Mode, unix: Unix, call: &str, args: [u64; 6]) -> u32 {
    let network = Network { mode, ..Network::default() };
    let calls = resolve::calls(profile, &network, false, unix, Arch::X86_64).unwrap();
    let actions = Actions { violation: bpf::RET_USER_NOTIF, log: bpf::RET_LOG, unknown: None };
    let (rules, free) = calls.rules(actions, Extras::default()).unwrap();
    let program = assemble(&Layout { rules: &rules, extra: Some(&free) }).unwrap();
    let number = Call::named(call.as_bytes()).unwrap().number(Arch::X86_64).unwrap();
    let data = Data { nr: number, arch: Arch::X86_64.audit(), args };
    run(&program, &data).unwrap()
}

/// What reaches other processes of the run, where it cannot reach more than those.
#[test]
fn tracing_and_priorities_of_others_take_namespaces() {
    let allows = |profile: &Profile, namespaces, call: &str, args: [u64; 6]| {
        let calls = resolve::calls(profile, &Network::default(), true, Unix::Refused, Arch::X86_64).unwrap();
        let program = calls.inside(namespaces).strict_program().unwrap();
        let nr = Call::named(call.as_bytes()).unwrap().number(Arch::X86_64).unwrap();
        run(&program, &Data { nr, arch: Arch::X86_64.audit(), args }) == Some(bpf::RET_ALLOW)
    };
    const TRACER: u64 = 0x80_0700;
    for name in ["minimal", "network", "write", "read-only", "workspace", "no-exec"] {
        let (profile, opens) = (built_in(name), matches!(name, "read-only" | "workspace" | "no-exec"));
        for (call, args) in [
            ("ptrace", [16, 4711, 0, 0, 0, 0]),
            ("process_vm_readv", [4711, 0, 0, 0, 0, 0]),
            ("setpriority", [0, 4711, 5, 0, 0, 0]),
        ] {
            assert!(!allows(&profile, false, call, args), "{name}: {call}");
            assert_eq!(allows(&profile, true, call, args), opens, "{name}: {call}");
        }
        let both =
            |call: &str, args| [false, true].map(|namespaces| allows(&profile, namespaces, call, args));
        // Not the first process, not with high bits set, no groups, no users.
        for args in [[0, 1, 5], [0, 1 << 32 | 1, 5], [1, 4711, 5], [1, 0, 5], [2, 4711, 5]] {
            let [which, who, priority] = args;
            assert_eq!(both("setpriority", [which, who, priority, 0, 0, 0]), [false; 2], "{name}: {args:x?}");
        }
        assert_eq!(both("process_vm_writev", [4711, 0, 0, 0, 0, 0]), [false; 2], "{name}");
        let makes = matches!(name, "read-only" | "workspace");
        assert_eq!(both("clone", [TRACER, 0, 0, 0, 0, 0]), [makes, opens], "{name}");
        assert_eq!(both("clone", [TRACER | 0x1000_0000, 0, 0, 0, 0, 0]), [false; 2], "{name}: a namespace");
        assert_eq!(both("clone", [TRACER | 17, 0, 0, 0, 0, 0]), [makes; 2], "{name}: a process");
    }
}

#[test]
fn a_network_takes_the_quiet_refusals_away_but_not_the_users() {
    let quiet = bpf::RET_ERRNO | 97;
    let (unix, inet, inet6) = (1, 2, 10);
    for name in ["minimal", "write", "read-only", "workspace", "no-exec"] {
        let profile = built_in(name);
        assert_eq!(socket_decision(&profile, Mode::None, inet), bpf::RET_USER_NOTIF, "{name}");
        assert_eq!(socket_decision(&profile, Mode::Host, unix), quiet, "{name}");
        assert_eq!(socket_decision(&profile, Mode::Host, inet), bpf::RET_ALLOW, "{name}");
        assert_eq!(socket_decision(&profile, Mode::None, inet6), quiet, "{name}");
        assert_eq!(socket_decision(&profile, Mode::Host, inet6), bpf::RET_ALLOW, "{name}");
    }
    let shelf = Shelf::new();
    let own = shelf.file(r#"{"extends": "workspace", "syscalls": {"deny": ["socket[inet6]"]}}"#).unwrap();
    assert_eq!(socket_decision(&own, Mode::Host, inet6), quiet);
    assert_eq!(socket_decision(&own, Mode::Host, inet), bpf::RET_ALLOW);
}

#[test]
fn in_a_network_of_its_own_everything_is_open_but_the_way_to_the_hosts_sockets() {
    const FAST_OPEN: u64 = 0x2000_0000;
    let (unix, inet, inet6, netlink, packet) = (1, 2, 10, 16, 17);
    let (stream, datagram, raw) = (1, 2, 3);
    for name in ["minimal", "network", "write", "read-only", "workspace", "no-exec"] {
        let profile = built_in(name);
        let decide = |by, call, args: [u64; 3]| {
            decision(&profile, Mode::Private, by, call, [args[0], args[1], args[2], 0, 0, 0])
        };
        let before = |call, args| decide(Unix::Refused, call, args);
        for (family, kind) in
            [(inet, stream), (inet, datagram), (inet6, stream), (inet6, datagram), (netlink, raw)]
        {
            assert_eq!(before("socket", [family, kind, 0]), bpf::RET_ALLOW, "{name}: {family} {kind}");
        }
        for call in ["bind", "listen", "accept4", "poll", "epoll_pwait", "getsockname", "sendto", "sendmsg"] {
            assert_eq!(before(call, [3, 1, 1]), bpf::RET_ALLOW, "{name}: {call}");
        }
        assert_eq!(before("sendto", [3, 1, FAST_OPEN]), bpf::RET_ALLOW, "{name}");
        assert_ne!(before("socket", [packet, raw, 0]), bpf::RET_ALLOW, "{name}");
        assert_ne!(before("socket", [inet, raw, 1]), bpf::RET_ALLOW, "{name}");
        assert_ne!(before("socket", [unix, datagram, 0]), bpf::RET_ALLOW, "{name}");
        assert_ne!(before("socketpair", [unix, datagram, 0]), bpf::RET_ALLOW, "{name}");
        let own = matches!(name, "read-only" | "workspace" | "no-exec");
        assert_eq!(before("socket", [unix, stream, 0]) == bpf::RET_ALLOW, own, "{name}");
        // The supervisor connects, until the kernel can tell sockets by their path.
        assert_eq!(before("connect", [3, 1, 16]), bpf::RET_USER_NOTIF, "{name}");
        assert_eq!(decide(Unix::ByPath, "connect", [3, 1, 16]), bpf::RET_ALLOW, "{name}");
    }
    let shelf = Shelf::new();
    let own = shelf.file(r#"{"extends": "workspace", "syscalls": {"allow": ["socket[unix]"]}}"#).unwrap();
    let socket = |kind| decision(&own, Mode::Private, Unix::Refused, "socket", [unix, kind, 0, 0, 0, 0]);
    assert_eq!(socket(stream), bpf::RET_ALLOW);
    assert_ne!(socket(datagram), bpf::RET_ALLOW);
}

/// What is not looked for at each start, because the texts do not change.
#[test]
fn their_texts_pass_as_files_and_name_nothing_twice() {
    fn twice<'a, T: ToString + 'a>(list: impl IntoIterator<Item = &'a profile::Given<T>>) -> Option<String> {
        let mut all: Vec<String> = list.into_iter().map(|given| given.value.to_string()).collect();
        all.sort();
        all.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
    }
    let shelf = Shelf::new();
    for name in sbx_profiles::NAMES {
        let file = shelf.file(sbx_profiles::built_in(name).unwrap()).unwrap();
        let profile = built_in(name);
        assert_eq!(file.syscalls.calls.0.len(), profile.syscalls.calls.0.len());
        for list in [&profile.paths.read, &profile.paths.execute, &profile.paths.write, &file.paths.read] {
            assert_eq!(twice(list.iter()), None, "{name}");
        }
        assert_eq!(twice(profile.paths.protect.iter()), None, "{name}");
        assert_eq!(twice(profile.env.inherit.iter()).or(twice(profile.env.deny.iter())), None, "{name}");
    }
}

#[test]
fn executable_memory_is_refused_quietly_where_no_compiler_has_to_run() {
    for name in ["minimal", "network", "write", "no-exec", "read-only", "workspace"] {
        let profile = built_in(name);
        let compilers = matches!(name, "read-only" | "workspace");
        for (call, restriction) in [("mmap", "jit"), ("mprotect", "exec"), ("pkey_mprotect", "exec")] {
            let rules = rules(&profile, call).unwrap();
            let denied: Vec<_> = match &rules.deny {
                Grants::Some(list) => list.iter().map(|one| one.origin.entry.to_string()).collect(),
                _ => Vec::new(),
            };
            let expected = if compilers { vec![] } else { vec![format!("{call}[{restriction}]=EACCES")] };
            assert_eq!((denied, rules.errno), (expected, (!compilers).then_some(13)), "{name}: {call}");
        }
    }
}

#[test]
fn no_file_of_secrets_is_below_an_allowed_path() {
    let secrets = [
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/ssl/private/key",
        "/etc/ssh/ssh_host_rsa_key",
        "/etc/pki/tls/private/k",
        "/etc/machine-id",
        "/var/lib/secret",
        "/root/x",
        "/home/other/x",
        "${HOME}/.ssh/id_rsa",
        "${HOME}/.aws/credentials",
        "${HOME}/.gnupg/x",
        "${HOME}/.netrc",
        "${HOME}/.docker/config.json",
        "${HOME}/.cargo/credentials.toml",
        "${HOME}/.config/gh/hosts.yml",
        "${HOME}/.config/git/credentials",
        "${HOME}/.git-credentials",
        "${HOME}/.npmrc",
        "${HOME}/.pypirc",
        "${HOME}/.config/pip/pip.conf",
        "${HOME}/.bash_history",
        "${HOME}/.m2/settings.xml",
        "${HOME}/.local/share/keyrings/login.keyring",
        "/run/docker.sock",
        "/dev/sda",
        "/dev/mem",
        "/tmp/x",
    ];
    for name in CONFINING {
        let paths = built_in(name).paths;
        for entry in paths.read.iter().chain(paths.execute.iter()).chain(paths.write.iter()) {
            let above = entry.value.to_string();
            for secret in secrets {
                let below =
                    secret.strip_prefix(&above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                assert!(!below, "{name}: {secret} is below {above}");
            }
        }
    }
}

#[test]
fn only_those_that_write_have_a_place_to_write_to() {
    for name in ["custom", "minimal", "network"] {
        let profile = built_in(name);
        assert!(profile.paths.write.iter().all(|entry| entry.value.to_string().starts_with("/dev/")));
        assert!(!profile.uses(Variable::Tmp) && !profile.uses(Variable::Cache));
    }
    for name in ["write", "workspace", "no-exec", "read-only"] {
        let profile = built_in(name);
        let workspace = profile.paths.write.iter().any(|entry| entry.value.to_string() == "${WORKSPACE}");
        assert_eq!(workspace, name != "read-only");
        assert!(profile.uses(Variable::Tmp));
    }
}

#[test]
fn what_others_execute_is_protected_where_the_workspace_is_written_by_programs() {
    for name in sbx_profiles::NAMES {
        let protected = built_in(name).paths.protect;
        if !matches!(name, "workspace" | "no-exec") {
            assert!(protected.is_empty(), "{name}");
            continue;
        }
        // Each costs a look at every start, and a mount or two where it is there. Those of a directory of the home that
        // is missing cost nothing: without agents, the forty files of theirs made no difference that could be measured.
        assert!((30..=130).contains(&protected.len()), "{name}: {}", protected.len());
        for entry in protected.iter() {
            let path = entry.value.to_string();
            assert!(entry.origin.why.is_some(), "{name}: {path}");
            // What is in every project is kept from being made only for who has something that reads it; what is in
            // the home directory matters only to who works there.
            let (project, home) = (path.starts_with("${WORKSPACE}/"), path.starts_with("${HOME}/"));
            assert!(project != home && home == entry.readers.is_empty(), "{name}: {path}");
            // A repository's own are found by looking at it.
            assert!(home || !path.contains("/.git/"), "{name}: {path}");
        }
    }
}

/// What an agent only reads of the home may be a link into a workspace, which commands write: a repository of dotfiles.
#[test]
fn what_an_agent_may_only_read_is_protected_wherever_it_is() {
    for name in sbx_profiles::AGENTS {
        let profile = built_in(&format!("{}{name}", sbx_profiles::AGENT));
        let own = profile.paths.read.iter().filter(|entry| *entry.origin.profile == *profile.name);
        let own: Vec<String> = own.map(|entry| entry.value.to_string()).collect();
        assert!(!own.is_empty() && own.iter().all(|path| path.starts_with("${HOME}/")), "{name}: {own:?}");
        let protected: Vec<String> =
            profile.paths.protect.iter().map(|entry| entry.value.to_string()).collect();
        for path in own {
            assert!(protected.contains(&path), "{name}: {path}");
        }
    }
}

#[test]
fn namespaces_are_for_those_that_start_programs() {
    for name in sbx_profiles::NAMES {
        let profile = built_in(name);
        let expected = matches!(name, "read-only" | "workspace" | "no-exec").then_some("auto");
        assert_eq!(profile.namespaces.as_ref().map(|given| given.word()), expected, "{name}");
    }
    let shelf = Shelf::new();
    let own = shelf.file(r#"{"extends": "workspace", "namespaces": "none"}"#).unwrap();
    assert_eq!(own.namespaces.as_deref(), Some(&Namespaces::None));
}

#[test]
fn every_condition_can_match_and_every_odd_rule_has_its_reason() {
    for name in sbx_profiles::NAMES {
        let profile = built_in(name);
        for (call, rules) in profile.syscalls.calls.iter() {
            for grants in [&rules.allow, &rules.deny] {
                let Grants::Some(list) = grants else { continue };
                assert!(list.iter().all(|one| one.when.any().iter().all(|all| shadow::satisfiable(all))));
            }
            if rules.errno.is_some() {
                assert!(rules.deny.origins().all(|origin| origin.why.is_some()), "{name}: {}", call.name());
            }
        }
        assert!(!profile.description.is_empty());
        assert!(profile::show(&profile)["syscalls"]["calls"].is_object());
        assert!(profile::human(&profile).starts_with(name));
    }
}

#[test]
fn the_environment_lets_no_secret_and_no_hook_through() {
    // Patterns have `*` alone, at either end.
    fn matches(pattern: &str, name: &str) -> bool {
        match pattern.split_once('*') {
            None => pattern == name,
            Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
                (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(tail, &rest[at..]))
            }),
        }
    }
    for name in CONFINING {
        let env = built_in(name).env;
        let passes = |variable: &str| {
            env.inherit.iter().any(|p| matches(&p.value, variable))
                && !env.deny.iter().any(|p| matches(&p.value, variable))
        };
        for variable in ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "TZ"] {
            assert!(passes(variable), "{name}: {variable}");
        }
        for variable in [
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_PROFILE",
            "OPENAI_API_KEY",
            "MY_PASSWORD",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "BASH_ENV",
            "ENV",
            "PERL5LIB",
            "RUBYOPT",
            "CMAKE_TOKEN",
            "MISE_GITHUB_TOKEN",
        ] {
            assert!(!passes(variable), "{name}: {variable}");
            assert!(
                env.deny.iter().any(|p| matches(&p.value, variable)),
                "{name}: {variable} is not denied by name"
            );
        }
        assert!(
            name != "workspace" || (passes("GIT_AUTHOR_NAME") && passes("CARGO_HOME") && passes("JAVA_HOME"))
        );
    }
}

#[test]
fn the_schema_is_json_and_names_every_key() {
    let schema: serde_json::Value = serde_json::from_str(profile::schema()).unwrap();
    let keys = schema["properties"].as_object().unwrap();
    for key in [
        "description",
        "extends",
        "syscalls",
        "paths",
        "network",
        "env",
        "limits",
        "commands",
        "static",
        "require",
        "$schema",
    ] {
        assert!(keys.contains_key(key), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn every_group_and_restriction_is_documented() {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/calls.md")).unwrap();
    for group in sbx_policy::calls::Group::all() {
        let row = format!("| `{}` | {} |", group.name(), group.meaning());
        assert!(document.contains(&row), "{row}");
    }
    for restriction in sbx_policy::restrictions::RESTRICTIONS {
        let name = format!("`{}[{}]`", restriction.call, restriction.name);
        let documented =
            document.lines().any(|line| line.contains(&name) && line.contains(restriction.meaning));
        assert!(documented, "{name}");
    }
}
