//! System calls with unusual numbers or arguments: other architectures, new calls whose arguments lie in memory, and
//! values whose upper half the kernel ignores.

use std::path::PathBuf;

use sbx_tests::machine::{self, older};
use sbx_tests::servers::HttpServer;
use sbx_tests::{Output, User, World, as_users, in_worlds, kernel, promise};

pub(super) const EPERM: &str = "errno 1 (Operation not permitted)\n";
const EACCES: &str = "errno 13 (Permission denied)\n";
const ENOSYS: &str = "errno 38 (Function not implemented)\n";
pub(super) const UPPER_HALF: u64 = 1 << 32;

pub(super) struct Tricks {
    pub(super) world: World,
    pub(super) attempt: String,
}

impl Tricks {
    pub(super) fn new(user: &User) -> Tricks {
        let world = World::new(user);
        let attempt = world.program("attempt");
        Tricks { world, attempt }
    }

    fn run(&self, profile: &str, words: &[&str]) -> Output {
        self.world.run(profile, [&[self.attempt.as_str()], words].concat()).run()
    }

    pub(super) fn call(&self, profile: &str, number: i64, arguments: &[&str]) -> Output {
        self.run(profile, &[&["syscall", number.to_string().as_str()], arguments].concat())
    }

    /// A call that must be refused where the machine has it.
    pub(super) fn refused(&self, profile: &str, number: Option<i64>, arguments: &[&str]) {
        if let Some(number) = number {
            self.call(profile, number, arguments).exited(1);
        }
    }
}

#[test]
fn x32_numbers_are_violations_like_any_other() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        for profile in ["minimal", "workspace", "no-exec"] {
            for call in [libc::SYS_getpid, libc::SYS_mkdirat, libc::SYS_socket] {
                let number = 0x4000_0000 + call;
                tricks.call(profile, number, &["s:made", "0755"]).exited(1).prints(EPERM);
                tricks
                    .world
                    .sbx([
                        "run",
                        "--exec",
                        "-p",
                        profile,
                        "--",
                        &tricks.attempt,
                        "syscall",
                        &number.to_string(),
                    ])
                    .run()
                    .exited(1)
                    .prints(EPERM);
            }
        }
        assert!(!tricks.world.exists("made"));
    });
}

#[test]
fn a_32_bit_system_call_kills() {
    if !machine::has_32_bit_calls() {
        return;
    }
    as_users(|user| {
        let tricks = Tricks::new(user);
        for profile in ["minimal", "workspace", "write", "no-exec", "network", "read-only"] {
            tricks.run(profile, &["int80", "39", "made", "0755"]).exited(159);
            assert!(!tricks.world.exists("made"), "{profile}");
        }
    });
}

#[test]
fn clone3_is_unknown_where_only_threads_are_allowed() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        for profile in ["network", "no-exec"] {
            tricks.run(profile, &["clone3"]).exited(1).prints(ENOSYS);
            tricks.run(profile, &["fork"]).exited(1).prints(EPERM);
            tricks.run(profile, &["thread"]).success().prints("joined\n");
        }
        assert!(!tricks.world.exists("cloned") && !tricks.world.exists("forked"));
        tricks.run("workspace", &["fork"]).success();
        tricks.run("workspace", &["thread"]).success().prints("joined\n");
        assert!(tricks.world.exists("forked"));
    });
}

#[test]
fn clone3_makes_no_user_namespace() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        for flags in [libc::CLONE_NEWUSER, libc::CLONE_NEWUSER | libc::SIGCHLD] {
            let out = tricks.call("workspace", libc::SYS_clone, &[&flags.to_string(), "0"]);
            out.exited(1);
            tricks.call("workspace", libc::SYS_unshare, &[&flags.to_string()]).exited(1);
        }
        tricks.world.run("workspace", ["unshare", "-Ur", "true"]).run().failed();
    });
}

#[test]
fn openat2_is_unknown_where_opens_are_restricted() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        for profile in ["minimal", "read-only"] {
            tricks.run(profile, &["openat2", "made"]).exited(1);
            assert!(!tricks.world.exists("made"), "{profile}");
        }
        tricks.run("minimal", &["openat2", "made"]).exited(1).prints(ENOSYS);
        // In `workspace` it either works or tells the caller to fall back.
        let out = tricks.run("workspace", &["openat2", "made"]);
        assert!(out.code == Some(0) && tricks.world.exists("made") || out.out() == ENOSYS, "{out}");
    });
}

#[test]
fn every_way_to_open_for_writing_is_refused() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        let file = tricks.world.write("file", "as before\n");
        let path = format!("s:{}", file.display());
        let at = libc::AT_FDCWD.to_string();
        let high = |flags: i32| (u64::try_from(flags).unwrap() | UPPER_HALF).to_string();
        for flags in
            [libc::O_WRONLY, libc::O_RDWR, libc::O_RDONLY | libc::O_TRUNC, libc::O_CREAT, 3, libc::O_TMPFILE]
        {
            for flags in [flags.to_string(), high(flags)] {
                tricks.call("minimal", libc::SYS_openat, &[&at, &path, &flags, "0644"]).exited(1);
                tricks.refused("minimal", older::OPEN, &[&path, &flags, "0644"]);
                // The scratch directory is writable there, so only Landlock decides. It lets O_CREAT open a file that
                // already exists.
                let refused = |flags: u64| flags & 3 != 0 || flags & 0o1000 != 0;
                if flags.parse().is_ok_and(refused) {
                    tricks.call("read-only", libc::SYS_openat, &[&at, &path, &flags, "0644"]).exited(1);
                }
            }
        }
        tricks.refused("minimal", older::CREAT, &[&path, "0644"]);
        tricks.call("minimal", libc::SYS_truncate, &[&path, "0"]).exited(1);
        assert_eq!(tricks.world.read("file").as_deref(), Some("as before\n"));
        tricks.call("minimal", libc::SYS_openat, &[&at, &path, "0"]).success();
        tricks.call("write", libc::SYS_openat, &[&at, &path, "1"]).success();
    });
}

#[test]
fn io_uring_is_refused_everywhere() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        for profile in ["minimal", "network", "write", "no-exec", "workspace", "read-only"] {
            let out = tricks.call(profile, libc::SYS_io_uring_setup, &["4", "z:256"]).exited(1);
            assert!([EPERM, ENOSYS].contains(&out.out().as_str()), "{profile}: {out}");
        }
        tricks
            .world
            .bare([&tricks.attempt, "syscall", &libc::SYS_io_uring_setup.to_string(), "4", "z:256"])
            .run()
            .success();
    });
}

#[test]
fn socket_families_are_decided_by_the_lower_half() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        let socket = |profile: &str, family: u64, kind: u64| {
            tricks.call(profile, libc::SYS_socket, &[&family.to_string(), &kind.to_string(), "0"])
        };
        let (unix, inet) = (u64::try_from(libc::AF_UNIX).unwrap(), u64::try_from(libc::AF_INET).unwrap());
        let (packet, netlink, vsock, alg, mptcp) = (17, 16, 40, 38, 262);
        for family in [unix, inet, packet, vsock, alg] {
            socket("minimal", family, 1).exited(1);
            socket("minimal", family | UPPER_HALF, 1).exited(1);
            socket("no-exec", packet | UPPER_HALF, 3).exited(1);
        }
        socket("minimal", netlink, 3)
            .exited(1)
            .prints("errno 97 (Address family not supported by protocol)\n");
        for family in [packet, vsock, alg, 45] {
            for family in [family, family | UPPER_HALF] {
                let out = socket("workspace", family, 3).exited(1);
                assert_eq!(out.out(), EPERM, "family {family}: {out}");
            }
        }
        for kind in [3, 3 | UPPER_HALF, 10, 5] {
            socket("network", inet, kind).exited(1).prints(EPERM);
        }
        let protocol = mptcp.to_string();
        tricks.call("network", libc::SYS_socket, &[&inet.to_string(), "1", &protocol]).exited(1);
        let protocol = (mptcp | UPPER_HALF).to_string();
        tricks.call("network", libc::SYS_socket, &[&inet.to_string(), "1", &protocol]).exited(1);
        socket("network", inet, 1).success();
        socket("network", inet, 0o2_000_000 | 1).success();
    });
}

#[test]
fn set_id_bits_cannot_be_set() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        let at = libc::AT_FDCWD.to_string();
        tricks.world.write("file", "");
        for value in [0o4755_u64, 0o2755, 0o6755, 0o4755 | UPPER_HALF] {
            let bits = value.to_string();
            for profile in ["write", "workspace"] {
                tricks.refused(profile, older::CHMOD, &["s:file", &bits]);
                tricks.call(profile, libc::SYS_fchmodat, &[&at, "s:file", &bits]).exited(1);
                tricks.call(profile, 452, &[&at, "s:file", &bits, "0"]).exited(1);
                tricks.call(profile, libc::SYS_openat, &[&at, "s:made", "0101", &bits]).exited(1);
                tricks.refused(profile, older::CREAT, &["s:made", &bits]);
                tricks.refused(profile, older::MKNOD, &["s:made", &bits, "0"]);
                if value & 0o4000 != 0 {
                    tricks.refused(profile, older::MKDIR, &["s:made", &bits]);
                    tricks.call(profile, libc::SYS_mkdirat, &[&at, "s:made", &bits]).exited(1);
                }
                tricks.call(profile, libc::SYS_mknodat, &[&at, "s:made", &bits, "0"]).exited(1);
            }
        }
        assert!(!tricks.world.exists("made"));
        // The kernel itself makes a directory without that bit.
        tricks.call("write", libc::SYS_mkdirat, &[&at, "s:made", &0o2755.to_string()]).success();
        let made = std::fs::metadata(tricks.world.path("made")).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&made) & 0o6000, 0);
        tricks.call("write", libc::SYS_fchmodat, &[&at, "s:file", "0700"]).success();
        tricks.call("workspace", libc::SYS_fchmodat, &[&at, "s:file", "0755"]).success();
        // With all arguments allowed, the supervisor handles the call, and it never sets this bit.
        if kernel::promises(kernel::PATHS) {
            let number = libc::SYS_fchmodat.to_string();
            let run = ["run", "--allow-calls", "fchmodat", "--", &tricks.attempt];
            let words = [&run[..], &["syscall", &number, &at, "s:file"]].concat();
            let change = |mode| tricks.world.sbx([&words[..], &[mode]].concat()).run();
            change("04755").exited(1).prints(EPERM);
            change("0711").success();
            let mode = std::fs::metadata(tricks.world.path("file")).unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o7777, 0o711);
        }
    });
}

#[test]
fn device_nodes_are_not_made_or_controlled_where_every_call_is_allowed() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        let attempt = tricks.attempt.as_str();
        // The kernel lets everybody make a node with the number 0.
        let make = |kind: libc::mode_t| {
            let (call, mode) = (libc::SYS_mknodat.to_string(), (kind | 0o600).to_string());
            let at = libc::AT_FDCWD.to_string();
            [attempt, "syscall", &call, &at, "s:made", &mode, "0"].map(str::to_owned)
        };
        let run = ["run", "--allow-calls", "mknodat", "--"].map(str::to_owned);
        let remove = || std::fs::remove_file(tricks.world.path("made")).unwrap();
        tricks.world.bare(make(libc::S_IFCHR)).run().success();
        remove();
        if kernel::promises(kernel::PATHS) {
            // Newer kernels treat it as an overlay does, as the mark of a missing file, and guard it
            // like a regular file (Landlock's erratum 4). No device is behind it.
            let out = tricks.world.sbx([&run[..], &make(libc::S_IFCHR)].concat()).run();
            if out.code == Some(0) {
                remove();
            } else {
                out.exited(1).prints(EACCES);
                assert!(!tricks.world.exists("made"));
            }
        }
        tricks.world.sbx([&run[..], &make(libc::S_IFIFO)].concat()).run().success();
        remove();
        // A copy of /dev/full, which is no terminal: the kernel's error shows that a rule is about the node itself.
        if user.is_root() && kernel::promises(kernel::DEVICE_COMMANDS) {
            tricks.world.bare(["mknod", "node", "c", "1", "7"]).run().success();
            let script = "import fcntl, sys\ntry: fcntl.ioctl(open(sys.argv[1]), 0x5401, bytes(64))\n\
                          except OSError as error: print(error.errno)";
            let ask = |cmd: fn(&World, &[&str]) -> sbx_tests::Cmd, node| {
                cmd(&tricks.world, &["/usr/bin/python3", "-c", script, node]).run().success().out()
            };
            assert_eq!(ask(|world, words| world.bare(words), "node"), "25\n");
            assert_eq!(ask(|world, words| world.run("workspace", words), "node"), "13\n");
            assert_eq!(ask(|world, words| world.run("workspace", words), "/dev/full"), "25\n");
        }
    });
}

/// Pushes a character into the terminal's input; returns what the terminal shows.
fn push_into_terminal(user: &User, front: &[&str], command: u64) -> String {
    let world = World::new(user);
    let attempt = world.program("attempt");
    let (ioctl, command) = (libc::SYS_ioctl.to_string(), command.to_string());
    let words = [attempt.as_str(), "syscall", &ioctl, "0", &command, "s:x"];
    let run = if front.is_empty() { world.bare(words) } else { world.sbx([front, &words].concat()) };
    let (running, _terminal) = run.start_on_terminal();
    running.wait().out()
}

#[test]
fn no_input_is_pushed_into_the_terminal() {
    let user = User::current();
    let legacy = PathBuf::from("/proc/sys/dev/tty/legacy_tiocsti");
    let works = std::fs::read_to_string(legacy).map_or(true, |text| text.trim() == "1") || user.is_root();
    if !works {
        return sbx_tests::skip("needs a kernel that still has TIOCSTI");
    }
    let plain = push_into_terminal(&user, &[], libc::TIOCSTI);
    assert!(plain.contains("= 0"), "the control must succeed: {plain}");
    for profile in ["minimal", "network", "write", "no-exec", "workspace", "read-only"] {
        for command in [libc::TIOCSTI, libc::TIOCSTI + UPPER_HALF, 0x541C, 0x541C + UPPER_HALF] {
            for front in [&["run", "-p", profile, "--"][..], &["run", "--exec", "-p", profile, "--"]] {
                let seen = push_into_terminal(&user, front, command);
                assert!(seen.contains("errno ") && !seen.contains("= 0"), "{profile} {command:#x}: {seen}");
            }
        }
    }
}

#[test]
fn no_other_kind_of_tcp_socket_bypasses_the_port_rules() {
    promise!(kernel::TCP_PORTS);
    // Landlock would ignore an SMC socket, where a kernel has them. Every kernel has an answer for an unknown name.
    let script =
        "import socket, sys\ns = socket.socket()\ns.setsockopt(6, int(sys.argv[1]), sys.argv[2].encode())";
    let set = |option: &'static str, value: &'static str| {
        ["/usr/bin/python3", "-c", script, option, value].map(str::to_owned)
    };
    let (other, congestion) = (set("31", "none such"), set("13", "reno"));
    in_worlds(|world| {
        world.bare(&other).run().exited(1).says("FileNotFoundError");
        world.run("workspace", &other).run().failed();
        for profile in ["network", "workspace"] {
            let front = ["run", "-p", profile, "--connect", "1", "--"].map(str::to_owned);
            let ports = |rest: &[String]| world.sbx([&front[..], rest].concat()).run();
            ports(&other).exited(1).says("PermissionError").says("setsockopt");
            ports(&congestion).success();
        }
        // Where every TCP port is open, there is nothing to bypass.
        world
            .sbx(["run", "--net", "host", "--"].map(str::to_owned).iter().chain(&other))
            .run()
            .says("FileNotFoundError");
    });
}

#[test]
fn tcp_fast_open_does_not_bypass_connect() {
    // sendto with MSG_FASTOPEN connects by itself.
    let server = HttpServer::start();
    let world = World::new(&User::ordinary());
    let script = "import socket,sys\ns=socket.socket()\ns.sendto(b'GET / HTTP/1.0\\r\\n\\r\\n', 0x20000000, \
                  ('127.0.0.1', int(sys.argv[1])))\n";
    let port = server.port.to_string();
    for profile in ["minimal", "workspace", "no-exec", "read-only"] {
        world.run(profile, ["/usr/bin/python3", "-c", script, &port]).run().failed();
    }
    // Landlock's port rules do not cover it. Nobody listens on the allowed port.
    if kernel::promises(kernel::TCP_PORTS) {
        for profile in ["network", "workspace"] {
            let words =
                ["run", "-p", profile, "--connect", "1", "--", "/usr/bin/python3", "-c", script, &port];
            world.sbx(words).run().failed();
        }
    }
    assert_eq!(server.connections(), 0);
    world.bare(["/usr/bin/python3", "-c", script, &port]).run().success();
    assert_eq!(server.connections(), 1);
}

/// The filter loads an argument once for several comparisons.
#[test]
fn each_alternative_of_a_users_profile_holds() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        let number = libc::SYS_getpriority.to_string();
        // Each allows 0 and 2, and not 1.
        for pair in
            [[("eq", 0), ("eq", 2)], [("lt", 1), ("gt", 1)], [("le", 0), ("ge", 2)], [("eq", 2), ("lt", 1)]]
        {
            let entries = pair.map(|(op, value)| {
                format!(
                    r#"{{"call": "getpriority", "args": [{{"index": 0, "width": 32, "op": "{op}", "value": {value}}}]}}"#
                )
            });
            for (list, parent) in [("allow", "minimal"), ("deny", "workspace")] {
                let text = format!(
                    r#"{{"extends": "{parent}", "syscalls": {{"{list}": [{}]}}}}"#,
                    entries.join(", ")
                );
                tricks.world.write("own.json", text);
                for which in 0..3 {
                    let out = tricks.run("./own.json", &["syscall", &number, &which.to_string()]);
                    let goes_through = (which != 1) == (list == "allow");
                    assert_eq!(out.code, Some(i32::from(!goes_through)), "{list} {pair:?}: {out}");
                }
            }
        }
    });
}

/// The console that a command is started on is neither switched nor muted. For a descriptor that is no console the
/// kernel has an error of its own; a filter refuses the call before that.
#[test]
fn consoles_are_not_switched() {
    let script = "import fcntl\n\
        for command in (0x5602, 0x5606, 0x560f, 0x4b3a, 0x4b45, 0x4b51, 0x5603):\n\
        \x20   try: fcntl.ioctl(0, command, bytes(64))\n\
        \x20   except OSError as error: print(error.errno, end=' ')";
    in_worlds(|world| {
        let words = ["/usr/bin/python3", "-c", script];
        world.bare(words).run().success().prints("25 25 25 25 25 25 25 ");
        for profile in ["workspace", "read-only", "no-exec"] {
            // The last one asks for the state of the console.
            let run = ["run", "-q", "-p", profile, "--"];
            world.sbx([&run[..], &words].concat()).run().success().prints("1 1 1 1 1 1 25 ");
        }
    });
}
