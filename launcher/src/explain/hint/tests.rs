//! What is advised is followed: the flags are parsed, the calls of a run with them are built, and must let
//! through the very call that was refused.

use crate::cli::{Cli, Command};
use crate::explain::decode::{Access, Address, PathArgument};
use crate::explain::hint::*;
use crate::plan::calls::{self, Unix};
use crate::plan::rules::Network;
use crate::profile::{self, NetworkMode as Mode, Search};
use crate::request::Request;
use clap::Parser;
use sbx_policy::calls::Arch;
use sbx_policy::list::List;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};

const NEWUSER: u64 = 0x1000_0000;
const VFORK: u64 = 0x4111; // CLONE_VM | CLONE_VFORK | SIGCHLD
const CREATE: u64 = 0o101;
const STREAM: u64 = 1;
const DGRAM: u64 = 2;

fn data(name: &str, args: &[u64]) -> Data {
    let number = Call::named(name.as_bytes()).unwrap().number(Arch::HOST).unwrap();
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    Data { nr: number, arch: Arch::HOST.audit(), args: all }
}

fn changing(path: &str) -> Decoded {
    let access = Access::WRITE | Access::CREATE;
    let path = path.as_bytes().to_vec();
    let argument = PathArgument { dirfd: None, path, access, follow: true, empty_path_ok: false };
    Decoded { paths: vec![argument], ..Decoded::default() }
}

fn to(address: Address) -> Decoded {
    Decoded { address: Some(address), ..Decoded::default() }
}

fn loopback() -> Decoded {
    to(Address::Inet { ip: IpAddr::V4(Ipv4Addr::LOCALHOST), port: 80 })
}

/// The command chooses the names that it asks for, and could have the user open more than one host.
#[test]
fn no_name_is_read_as_a_rule() {
    let explainer = explainer("workspace", Mode::Private);
    let advice = |name: &str| advised(&explainer.host_name_reason(name).to_string());
    assert_eq!(advice("a.example.org").unwrap(), ["--connect", "a.example.org:443"]);
    assert_eq!(advice("_https._tcp.a.example.org").unwrap(), ["--connect", "a.example.org:443"]);
    for name in ["*:443", "0.0.0.0/0:443", "evil.example:443/tcp", "*.org", "localhost", "a b.example"] {
        assert_eq!(advice(name), None, "{name}");
    }
    let host = |address: [u8; 4]| Host { name: None, address: IpAddr::from(address), port: 80 };
    let advice = |address| advised(&explainer.host_reason(&host(address)).to_string());
    assert_eq!(advice([192, 0, 2, 1]).unwrap(), ["--connect", "192.0.2.1:80"]);
    assert_eq!(advice([198, 18, 0, 9]), None);
}

fn none() -> Decoded {
    Decoded::default()
}

fn explainer(profile: &'static str, network: Mode) -> Explainer {
    Explainer::of_profile(profile, network, Path::new("/usr/share"))
}

impl Explainer {
    fn call_reason(&mut self, name: &str, data: &Data, decoded: &Decoded) -> String {
        self.reason_of(None, name, data, decoded).to_string()
    }
}

/// The flags in a reason, as a shell would take them apart; no escapes occur here.
fn advised(reason: &str) -> Option<Vec<String>> {
    let (_, hint) = reason.split_once("; allow it with ")?;
    let hint = hint.split(" (").next()?;
    Some(hint.split(' ').map(|word| word.trim_matches('\'').to_string()).collect())
}

fn parsed(flags: &[String]) -> Request {
    let front = ["sbx", "run"].into_iter().map(String::from);
    let line = front.chain(flags.iter().cloned()).chain(["--".to_string(), "true".to_string()]);
    let cli = Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{flags:?}: {error}"));
    match cli.command {
        Command::Run(run) => run.0,
        other => panic!("{other:?}"),
    }
}

/// Whether a run of `profile` with the advised flags lets the call through.
fn helps(profile: &str, network: Mode, flags: &[String], data: &Data) -> bool {
    let flags = parsed(flags);
    let name = flags.profile.as_deref().unwrap_or(OsStr::new(profile));
    let profile = profile::load(name, &Search::default()).unwrap();
    // The profile's own network, or the one that this run had by flags that stay.
    let mode = match flags.net {
        Some(mode) => mode,
        None if flags.profile.is_some() => calls::mode(&profile),
        None => network,
    };
    let network = Network { mode, ..Network::default() };
    let mut calls = calls::calls(&profile, &network, false, Unix::Refused, Arch::HOST).unwrap();
    if !flags.rw.is_empty() {
        calls.add_writing().unwrap();
    }
    for list in &flags.allow_calls {
        calls.add(List::Allow, "--allow-calls", list.as_encoded_bytes()).unwrap();
    }
    calls.seal(sbx_policy::bpf::RET_TRAP).unwrap();
    sbx_policy::interpret::lets_through(&calls.strict_program().unwrap(), data)
}

type Case = (&'static str, Mode, &'static str, Vec<u64>, Decoded, &'static str, &'static str);

/// Profile, network, call, arguments, what was decoded, why, the hint.
fn cases() -> Vec<Case> {
    use Mode::{Host, None as Off, Ports};
    let starts = "starts no programs";
    let writes = "writes no files";
    let no_network = "has no network";
    let kernel = "does not allow this part of the kernel";
    let only_inside = "allows this only where the run has namespaces of its own";
    vec![
        ("minimal", Off, "execve", vec![], none(), starts, "--profile workspace"),
        ("minimal", Off, "clone", vec![VFORK], none(), starts, "--profile workspace"),
        ("minimal", Off, "clone", vec![17], none(), starts, "--profile workspace"),
        ("network", Host, "clone", vec![VFORK], none(), starts, "--profile workspace --net host"),
        ("no-exec", Off, "execve", vec![], none(), starts, "--profile workspace"),
        ("no-exec", Host, "execve", vec![], none(), starts, "--profile workspace --net host"),
        ("custom", Off, "execve", vec![], none(), starts, "--allow-calls execve"),
        ("custom", Off, "clone", vec![17], none(), starts, "--allow-calls 'clone[no-namespace]'"),
        (
            "custom",
            Off,
            "clone",
            vec![0x1_0000],
            none(),
            "starts no threads",
            "--allow-calls 'clone[thread]'",
        ),
        (
            "workspace",
            Off,
            "open_tree",
            vec![],
            none(),
            "mounts nothing",
            "--allow-calls open_tree (opens new parts of the kernel)",
        ),
        ("minimal", Off, "unshare", vec![0x400], none(), "does not allow this", "--profile workspace"),
        ("workspace", Off, "ptrace", vec![0], none(), only_inside, "--allow-calls ptrace"),
        ("minimal", Off, "openat", vec![0, 0, CREATE, 0o666], changing("made"), writes, "--rw /usr/share"),
        ("network", Host, "openat", vec![0, 0, CREATE, 0o666], changing("made"), writes, "--rw /usr/share"),
        (
            "minimal",
            Off,
            "openat",
            vec![0, 0, CREATE, 0o666],
            changing("/usr/lib/made"),
            writes,
            "--rw /usr/lib",
        ),
        (
            "minimal",
            Off,
            "openat",
            vec![0, 0, CREATE, 0o666],
            changing("../lib/made"),
            writes,
            "--rw /usr/lib",
        ),
        (
            "minimal",
            Off,
            "mkdirat",
            vec![0, 0, 0o755],
            changing("/usr/lib/no/such/made"),
            writes,
            "--rw /usr/lib",
        ),
        ("network", Host, "mkdirat", vec![0, 0, 0o755], changing("/usr/lib/made"), writes, "--rw /usr/lib"),
        ("custom", Off, "mkdirat", vec![0, 0, 0o755], changing("made"), writes, "--rw /usr/share"),
        ("mine", Off, "mkdirat", vec![0, 0, 0o755], changing("made"), writes, "--rw /usr/share"),
        ("minimal", Off, "ftruncate", vec![3, 0], none(), "does not allow this", "--profile write"),
        ("minimal", Off, "socket", vec![2, STREAM, 6], none(), no_network, "--profile network"),
        ("workspace", Off, "socket", vec![2, STREAM, 6], none(), no_network, "--net host"),
        ("write", Off, "socket", vec![10, DGRAM, 0], none(), no_network, "--net host"),
        ("custom", Off, "socket", vec![2, STREAM, 0], none(), no_network, "--net host"),
        ("mine", Off, "socket", vec![2, STREAM, 0], none(), no_network, "--net host"),
        ("workspace", Off, "connect", vec![3, 1, 16], loopback(), no_network, "--net host"),
        ("workspace", Off, "sendto", vec![3, 1, 1, 0, 1, 16], loopback(), no_network, "--net host"),
        (
            "workspace",
            Ports,
            "socket",
            vec![2, DGRAM, 17],
            none(),
            "may only use TCP, on the ports that were named",
            "--net host (instead of naming ports; names are looked up where hosts are named: --connect HOST:PORT)",
        ),
        (
            "network",
            Host,
            "socket",
            vec![2, 2, 1],
            none(),
            "makes no sockets for ping and raw packets",
            "--allow-calls socket (with any arguments)",
        ),
        ("workspace", Off, "socket", vec![16, 3, 0], none(), "allows no netlink sockets", "--net host"),
        ("minimal", Off, "socket", vec![16, 3, 0], none(), "allows no netlink sockets", "--profile network"),
        (
            "workspace",
            Off,
            "socket",
            vec![40, STREAM, 0],
            none(),
            "makes no sockets of this family",
            "--allow-calls socket (with any arguments)",
        ),
        (
            "workspace",
            Off,
            "socket",
            vec![1, DGRAM, 0],
            none(),
            "makes no UNIX sockets of this type",
            "--allow-calls 'socket[unix]'",
        ),
        (
            "custom",
            Off,
            "socket",
            vec![1, STREAM, 0],
            none(),
            "makes no UNIX sockets",
            "--allow-calls 'socket[unix-stream]'",
        ),
        (
            "custom",
            Off,
            "socketpair",
            vec![1, STREAM, 0],
            none(),
            "makes no UNIX sockets",
            "--allow-calls 'socketpair[unix-stream]'",
        ),
        (
            "workspace",
            Host,
            "socket",
            vec![1, STREAM, 0],
            none(),
            "makes no UNIX sockets",
            "--allow-calls socket (opens every UNIX socket of this machine that file permissions do not close)",
        ),
        ("minimal", Off, "ioctl", vec![0, 0x5402], none(), "does not allow this", "--profile workspace"),
        (
            "custom",
            Off,
            "ioctl",
            vec![0, 0x5401],
            none(),
            "does not allow this",
            "--allow-calls 'ioctl[query]'",
        ),
        (
            "custom",
            Off,
            "mmap",
            vec![0, 1, 3, 0x22],
            none(),
            "does not allow this",
            "--allow-calls 'mmap[no-jit]'",
        ),
        (
            "workspace",
            Off,
            "prctl",
            vec![22],
            none(),
            "does not allow this",
            "--allow-calls 'prctl[safe]:prctl[seccomp]'",
        ),
        ("workspace", Off, "keyctl", vec![0], none(), kernel, "--allow-calls keyctl"),
    ]
}

#[test]
fn each_case_is_told_with_its_way_out() {
    for (profile, network, name, args, decoded, why, hint) in cases() {
        let reason = explainer(profile, network).call_reason(name, &data(name, &args), &decoded);
        assert_eq!(reason, format!("profile '{profile}' {why}; allow it with {hint}"), "{name}({args:x?})");
    }
}

#[test]
fn what_is_advised_lets_the_call_through() {
    for (profile, network, name, args, decoded, ..) in cases() {
        let data = data(name, &args);
        let reason = explainer(profile, network).call_reason(name, &data, &decoded);
        let flags = advised(&reason).unwrap_or_default();
        // A profile of the user's own allows nothing here, as custom does.
        let profile = if profile == "mine" { "custom" } else { profile };
        assert!(
            !helps(profile, network, &[], &data),
            "{name}({args:x?}) is allowed under {profile} as it is"
        );
        assert!(helps(profile, network, &flags, &data), "{name}({args:x?}) under {profile}: {reason}");
    }
}

#[test]
fn what_cannot_be_allowed_has_no_way_out() {
    let mut explainer = explainer("workspace", Mode::None);
    let x32 = Data { nr: 39 | X32_BIT, ..data("getpid", &[]) };
    assert_eq!(explainer.call_reason("getpid", &x32, &none()), "it is an x32 call, which is never allowed");
    let unknown = Data { nr: 500, ..data("getpid", &[]) };
    let reason = explainer.call_reason("syscall 500", &unknown, &none());
    assert_eq!(reason, "sbx does not know this call, so no profile allows it");
    let name = to(Address::UnixAbstract(b"bus".to_vec()));
    let reason = explainer.call_reason("connect", &data("connect", &[3, 1, 6]), &name);
    assert_eq!(reason, "profile 'workspace' reaches no UNIX sockets without a file");
    for request in [0x5412, 0x541c, 0x5423] {
        let reason = explainer.call_reason("ioctl", &data("ioctl", &[0, request]), &none());
        assert_eq!(reason, "profile 'workspace' does nothing to a terminal that acts outside the run");
    }
    for (name, args) in [("fcntl", [3, 10, 1]), ("fcntl", [0, 4, 0x2000]), ("ioctl", [6, 0x5452, 0])] {
        let reason = explainer.call_reason(name, &data(name, &args), &none());
        assert_eq!(reason, "profile 'workspace' has no descriptor send signals, which could reach others");
    }
    let own = explainer.call_reason("fcntl", &data("fcntl", &[3, 8, 1]), &none());
    assert!(own.contains("only where the run has namespaces of its own"), "{own}");
    let queue = data("mq_open", &[0, 0o102, 0o600]);
    let reason = explainer.call_reason("mq_open", &queue, &none());
    assert!(!reason.contains("--allow-calls mq_open"), "{reason}");
}

#[test]
fn no_namespace_is_proposed_where_no_user_can_be_mapped() {
    for (profile, name, flags) in [
        ("workspace", "unshare", NEWUSER),
        ("workspace", "clone", NEWUSER | 17),
        ("minimal", "clone", NEWUSER | 17),
    ] {
        let reason = explainer(profile, Mode::None).call_reason(name, &data(name, &[flags]), &none());
        assert!(reason.ends_with("under path rules a user namespace cannot map users"), "{reason}");
    }
}

#[test]
fn what_takes_a_capability_is_not_proposed() {
    const RAW: u64 = 3;
    let device = (libc::S_IFCHR | 0o600).into();
    for (name, args) in [
        ("mount", &[][..]),
        ("pivot_root", &[]),
        ("clock_settime", &[]),
        ("sethostname", &[]),
        ("mknodat", &[0, 0, device]),
        ("setns", &[3]),
        ("unshare", &[0x2_0000]),
        ("socket", &[2, RAW, 1]),
        ("socket", &[17, DGRAM, 0]),
    ] {
        for mode in [Mode::None, Mode::Host] {
            let reason = explainer("workspace", mode).call_reason(name, &data(name, args), &none());
            assert!(
                reason.ends_with("; it takes a capability, and the command has none"),
                "{name}: {reason}"
            );
        }
    }
    let ping = data("socket", &[2, DGRAM, 1]);
    let reason = explainer("workspace", Mode::Host).call_reason("socket", &ping, &none());
    assert!(reason.contains("; allow it with"), "{reason}");
}

#[test]
fn the_files_of_a_process_are_not_proposed() {
    let explainer = explainer("workspace", Mode::None);
    for access in [Access::READ, Access::WRITE] {
        assert_eq!(explainer.path_reason(Path::new("/proc/2/comm"), access).hint, None);
        assert!(explainer.path_reason(Path::new("/proc/sys/vm/swappiness"), access).hint.is_some());
    }
}

#[test]
fn a_socket_file_is_named_where_there_is_one() {
    let connect = data("connect", &[3, 1, 20]);
    let mut explainer = explainer("workspace", Mode::None);
    let mut reason = |path: &str| {
        explainer.call_reason("connect", &connect, &to(Address::UnixPath(path.as_bytes().to_vec())))
    };
    let why = "profile 'workspace' may not connect to this UNIX socket";
    assert_eq!(reason("/usr/lib"), format!("{why}; allow it with --unix /usr/lib"));
    assert_eq!(reason("../lib"), format!("{why}; allow it with --unix /usr/lib"));
    assert_eq!(reason("/no/such/socket"), why);
}

#[test]
fn a_profile_of_the_users_own_keeps_what_it_has() {
    let reason = |like: &str, name: &str, args: &[u64]| {
        let mut own = profile::load(OsStr::new(like), &Search::default()).unwrap();
        own.source = Source::File("mine.json".into());
        own.name = "mine".into();
        let mut explainer = explainer("mine", Mode::None);
        explainer.attempts = Attempts::new("mine", Some(own), (Mode::None, Unix::Refused), Version::FILES);
        explainer.call_reason(name, &data(name, args), &none())
    };
    let reason_of_filter = reason("workspace", "prctl", &[22]);
    assert_eq!(advised(&reason_of_filter).unwrap(), ["--allow-calls", "prctl[safe]:prctl[seccomp]"]);
    let reason = reason("workspace", "socket", &[1, DGRAM, 0]);
    assert!(reason.contains("makes no UNIX sockets of this type"), "{reason}");
}

#[test]
fn a_denial_by_flag_is_its_own_reason() {
    let denied = |lists: &[&str], name: &str, args: &[u64]| {
        let lists = lists.iter().map(ToString::to_string).collect();
        let mut explainer = explainer("workspace", Mode::None);
        explainer.denied_calls = lists;
        explainer.call_reason(name, &data(name, args), &none()) == "--deny-calls refuses it"
    };
    assert!(denied(&["mkdir:mkdirat"], "mkdirat", &[]));
    assert!(denied(&["read,mkdirat=EACCES"], "mkdirat", &[]));
    assert!(denied(&["read", "@mount"], "mount", &[]));
    assert!(denied(&["socket[unix-stream]"], "socket", &[1, STREAM]));
    assert!(!denied(&["socket[unix-stream]"], "socket", &[2, STREAM]));
    assert!(!denied(&["mkdir"], "mkdirat", &[]));
    assert!(!denied(&["", ":no-such-call["], "mkdirat", &[]));
}

#[test]
fn the_key_that_decides_is_named() {
    let key = |profile: &'static str, name: &str, args: &[u64]| {
        let mut explainer = explainer(profile, Mode::None);
        explainer.denied_calls = vec!["getcwd".to_string()];
        let rule = explainer.reason_of(None, name, &data(name, args), &none()).rule.unwrap();
        (rule.profile, rule.key.unwrap())
    };
    let of = |profile: &str| Some(profile.to_string());
    assert_eq!(key("minimal", "mkdirat", &[]), (of("minimal"), "syscalls.default"));
    assert_eq!(key("minimal", "socket", &[2, STREAM]), (of("minimal"), "network.mode"));
    assert_eq!(key("no-exec", "execve", &[]), (of("no-exec"), "syscalls.deny"));
    assert_eq!(key("workspace", "getcwd", &[]), (None, "--deny-calls"));
}

#[test]
fn the_root_is_never_proposed() {
    let made = data("mkdirat", &[0, 0, 0o755]);
    let reason = explainer("minimal", Mode::None).call_reason("mkdirat", &made, &changing("/made"));
    assert!(!reason.contains("--rw / ") && !reason.ends_with("--rw /"), "{reason}");
}

#[test]
fn nothing_is_proposed_for_an_empty_path() {
    let made = data("openat", &[0, 0, CREATE, 0o666]);
    let reason = explainer("minimal", Mode::None).call_reason("openat", &made, &changing(""));
    assert_eq!(reason, "profile 'minimal' writes no files; its path is empty, so it fails in any case");
}

#[test]
fn paths_are_quoted_for_a_shell() {
    let quoted = |bytes: &[u8]| place::quoted(Path::new(OsStr::from_bytes(bytes)));
    use std::os::unix::ffi::OsStrExt;
    assert_eq!(quoted(b"/a/b-c.d"), "/a/b-c.d");
    assert_eq!(quoted(b"/a b"), "'/a b'");
    assert_eq!(quoted(b"/it's \"\\"), "'/it'\\''s \"\\'");
    assert_eq!(quoted("/größe 1".as_bytes()), "'/größe 1'");
    assert_eq!(quoted(b"/a\nb\xff'\\"), "$'/a\\nb\\xff\\'\\\\'");
    assert_eq!(quoted("/\u{202e}".as_bytes()), "$'/\\xe2\\x80\\xae'");
    assert!(quoted(&[b'/'; 5000]).len() < 500);
}
