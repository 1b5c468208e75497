//! `network`: clients work and nothing else does; without it no packet leaves.

use sbx_tests::servers::{BODY, HttpServer, HttpsServer, UnixServer};
use sbx_tests::world::SECRET;
use sbx_tests::{User, World, in_worlds, kernel, need, promise};

const PYTHON: &str = "/usr/bin/python3";

#[test]
fn clients_work_over_http() {
    need!("curl", "wget");
    let server = HttpServer::start();
    in_worlds(|world| {
        let url = server.url();
        world.run("network", ["curl", "-sS", &url]).run().success().silent().prints(BODY);
        world.run("network", ["wget", "-qO-", &url]).run().success().prints(BODY);
        let program =
            "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode(), end='')";
        world.run("network", [PYTHON, "-c", program, &url]).run().success().prints(BODY);
        let by_name = format!("http://localhost:{}/file", server.port);
        world.run("network", ["curl", "-sS", "-4", &by_name]).run().success().prints(BODY);
        world.run("network", ["getent", "hosts", "localhost"]).run().success();
    });
}

#[test]
fn curl_works_over_https_with_its_own_authority() {
    need!("curl", "openssl");
    let server = HttpsServer::start();
    in_worlds(|world| {
        let authority = world.write("ca.pem", std::fs::read(&server.authority).unwrap());
        let curl = ["curl", "-sS", "--cacert", authority.to_str().unwrap(), &server.url()];
        let out = world.run("network", curl).run().success();
        assert!(out.out().contains("<HTML>"), "{out}");
        world.run("network", ["curl", "-sS", &server.url()]).run().exited(60);
    });
}

#[test]
fn downloads_are_written_only_where_the_user_says() {
    promise!(kernel::PATHS);
    need!("curl");
    let server = HttpServer::start();
    in_worlds(|world| {
        let curl = ["curl", "-sS", "-o", "page", &server.url()];
        world.run("network", curl).run().failed();
        assert!(!world.exists("page"));
        let front = ["run", "-p", "network", "--rw", ".", "--"];
        world.sbx([&front[..], &curl].concat()).run().success();
        assert_eq!(world.read("page").as_deref(), Some(BODY));
        let outside = world.outside.join("page");
        let curl = ["curl", "-sS", "-o", outside.to_str().unwrap(), &server.url()];
        world.sbx([&front[..], &curl].concat()).run().failed();
        assert!(!outside.exists());
    });
}

#[test]
fn nothing_but_the_network_is_open() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        world.run("network", ["sh", "-c", "id"]).run().failed().prints("");
        world.run("network", ["sh", "-c", "echo x > made"]).run().failed();
        world.run("network", ["touch", "made"]).run().failed();
        assert!(!world.exists("made"));
        let key = world.home.join(".ssh/id_rsa");
        for file in [key.to_str().unwrap(), "/etc/shadow"] {
            let out = world.run("network", ["cat", file]).run().failed().prints("");
            assert!(!out.err().contains(SECRET) && !out.err().contains("root:"), "{out}");
        }
        world.bare(["cat", key.to_str().unwrap()]).run().success();
    });
}

#[test]
fn without_a_network_the_server_sees_no_connection() {
    need!("curl", "wget");
    let server = HttpServer::start();
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let port = server.port.to_string();
        for profile in ["minimal", "write", "workspace", "read-only"] {
            world.run(profile, ["curl", "-sS", &server.url()]).run().failed().prints("");
            world.run(profile, ["wget", "-t1", "-qO-", &server.url()]).run().failed().prints("");
            world.run(profile, [&attempt, "connect", &port]).run().exited(1);
            for flags in [["--net", "none"], ["--namespaces", "none"]] {
                let front = ["run", "-p", profile, flags[0], flags[1], "--"];
                world.sbx(front).args([&attempt, "connect", &port]).run().exited(1);
            }
            world.sbx(["run", "--exec", "-p", profile, "--", &attempt, "connect", &port]).run().exited(1);
        }
        world.run("workspace", ["bash", "-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{port}")]).run().failed();
        world
            .sbx(["run", "-p", "network", "--net", "none", "--", &attempt, "connect", &port])
            .run()
            .exited(1);
    });
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_refused_client_is_told_the_call_and_the_fix_in_one_line() {
    need!("curl");
    let server = HttpServer::start();
    in_worlds(|world| {
        let out = world.run("minimal", ["curl", "-sS", &server.url()]).run().failed();
        let lines = out.sbx_lines();
        let naming: Vec<_> = lines.iter().filter(|line| line.contains("socket(")).collect();
        assert!(!naming.is_empty(), "no line names the socket call: {out}");
        for word in ["blocked socket(AF_INET", "curl[", "minimal", "--profile network"] {
            assert!(lines.iter().any(|line| line.contains(word)), "no line has {word:?}: {out}");
        }
        let inet = lines.iter().filter(|line| line.contains("blocked socket(AF_INET,")).count();
        assert!(inet <= 1, "the same refusal is told more than once: {out}");
    });
    assert_eq!(server.connections(), 0);
}

#[test]
fn quiet_prints_nothing() {
    need!("curl");
    let world = World::new(&User::ordinary());
    let out =
        world.sbx(["run", "-q", "-p", "minimal", "--", "curl", "-sS", "http://127.0.0.1:1/"]).run().failed();
    assert!(out.sbx_lines().is_empty(), "{out}");
}

#[test]
fn connect_opens_named_ports_only() {
    let (named, other) = (HttpServer::start(), HttpServer::start());
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let allowed = format!("*:{}", named.port);
        let to = |port: u16| {
            let front = ["run", "-p", "network", "--connect", &allowed, "--"];
            world.sbx(front).args([&attempt, "connect", &port.to_string()]).run()
        };
        if kernel::promises(kernel::TCP_PORTS) {
            to(named.port).success();
            to(other.port).exited(1);
        } else {
            to(named.port).refused(125, &["needs Landlock ABI 4", "--net none or --net host"]);
        }
    });
    assert_eq!(other.connections(), 0);
    assert_eq!(named.connections() > 0, kernel::landlock() >= 4);
}

#[test]
fn unix_sockets_of_the_host_are_not_reachable() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let path = world.outside.join("socket");
        let by_path = UnixServer::at(&path);
        let name = sbx_tests::processes::marker();
        let by_name = UnixServer::abstract_name(&name);
        for target in [path.to_str().unwrap(), &format!("@{name}")] {
            world.bare([&attempt, "connect-unix", target]).run().success();
            for profile in ["minimal", "write", "network", "workspace", "read-only", "no-exec"] {
                let out = world.run(profile, [&attempt, "connect-unix", target]).run();
                out.exited(1);
            }
            // With an open network connect(2) is open too, so Unix sockets must not be available.
            for more in [&[][..], &["--deny-calls", "socket[inet6]"]] {
                let words = [&["run", "--net", "host"], more, &["--", &attempt, "connect-unix", target]];
                world.sbx(words.concat()).run().exited(1);
            }
        }
        assert_eq!((by_path.connections(), by_name.connections()), (1, 1));
    });
}

#[test]
fn the_supervisor_connects_only_sockets_that_send_to_their_peer() {
    promise!(kernel::PATHS);
    if kernel::landlock() >= 9 {
        return;
    }
    // A command gets a datagram socket by way of socketpair(2).
    let script = "import socket, sys; a, b = socket.socketpair(type=getattr(socket, sys.argv[1]))\n\
                  a.connect(sys.argv[2]); a.send(b'x')";
    in_worlds(|world| {
        let target = world.path("listener");
        let server = std::os::unix::net::UnixDatagram::bind(&target).unwrap();
        std::fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        server.set_nonblocking(true).unwrap();
        let words = ["/usr/bin/python3", "-c", script, "SOCK_DGRAM", "listener"];
        world.bare(words).run().success();
        assert!(server.recv(&mut [0; 8]).is_ok());
        let run = ["run", "--allow-calls", "socketpair", "--"];
        world.sbx([&run[..], &words].concat()).run().exited(1).says("Operation not permitted");
        assert!(server.recv(&mut [0; 8]).is_err());
    });
}

#[test]
fn socket_paths_of_a_profile_may_begin_with_a_variable() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let (named, other) = (world.home.join("named.sock"), world.home.join("other.sock"));
        let (at_named, at_other) = (UnixServer::at(&named), UnixServer::at(&other));
        let profile =
            |socket: &str| format!(r#"{{"extends": "workspace", "network": {{"unix": ["{socket}"]}}}}"#);
        world.write("p.json", profile("${HOME}/named.sock"));
        let connect =
            |to: &std::path::Path| world.run("./p.json", [&attempt, "connect-unix", to.to_str().unwrap()]);
        connect(&named).run().success();
        connect(&other).run().exited(1);
        assert_eq!((at_named.connections(), at_other.connections()), (1, 0));
        for (socket, why) in [
            ("${HOME}/missing.sock", "no such file"),
            ("/missing.sock", "no such file"),
            ("${WORKSPACE}/link.sock", "leads out of the workspace"),
        ] {
            let _ = std::os::unix::fs::symlink(&other, world.path("link.sock"));
            world.write("p.json", profile(socket));
            connect(&other).run().refused(125, &[why]);
        }
        let file = world.write("p.json", profile("${WORKSPACE}/x.sock"));
        let out = world.run(file.to_str().unwrap(), ["true"]).cwd("/").run();
        out.refused(125, &["${WORKSPACE}/x.sock", "stands for nothing", "network.unix[0]"]);
        // A path in a flag starts at the command's working directory.
        let flag =
            ["run", "--unix", "../named.sock", "--", &attempt, "connect-unix", named.to_str().unwrap()];
        world.sbx(flag).run().success();
    });
}

#[test]
fn without_a_listening_port_not_even_one_of_the_kernels_choice_listens() {
    promise!(kernel::TCP_PORTS);
    let listens = "import socket; s = socket.socket(); s.listen(); print(s.getsockname()[1] > 0)";
    in_worlds(|world| {
        for profile in ["network", "workspace"] {
            let run = |flags: &[&str]| {
                let words = [&["run", "-p", profile], flags, &["--", PYTHON, "-c", listens]].concat();
                world.sbx(words).run()
            };
            run(&["--connect", "*:1"]).failed().prints("").says("listen");
            run(&["--net", "host"]).success().prints("True\n");
        }
        // A profile for clients, unless the whole network is asked for.
        let out = world.sbx(["run", "-p", "network", "--", PYTHON, "-c", listens]).run().failed().prints("");
        assert!(
            out.sbx_lines().iter().any(|line| line.contains("listen(") && line.contains("--net host")),
            "{out}"
        );
        let profile = r#"{"extends": "workspace", "network": {"mode": "host"}}"#;
        world.write("server.json", profile);
        world
            .sbx(["run", "-p", "./server.json", "--", PYTHON, "-c", listens])
            .run()
            .success()
            .prints("True\n");
        world.sbx(["why", "-p", "network", "--bind", "8080"]).run().exited(1);
        world.sbx(["why", "-p", "network", "--net", "host", "--bind", "8080"]).run().exited(0);
        world.bare([PYTHON, "-c", listens]).run().success().prints("True\n");
    });
}

/// Hosts that a profile denies are reached by nobody: not in an open network, and by no flag that is proposed.
#[test]
fn denied_hosts_stay_denied() {
    promise!(namespaces);
    in_worlds(|world| {
        let server = HttpServer::start();
        let port = server.port;
        let (open, listed) = (r#""mode": "host""#, format!(r#""mode": "allow", "connect": ["*:{port}"]"#));
        for (name, network) in [("open", open), ("listed", &listed)] {
            let deny = r#""deny": ["127.0.0.0/8", "*.example.org"]"#;
            let profile = format!(r#"{{"extends": "workspace", "network": {{{network}, {deny}}}}}"#);
            world.write(format!("../{name}.json"), profile);
        }
        let url = server.url();
        let run = |flags: &[&str]| world.sbx(["run"]).args(flags).args(["--", "curl", "-sS", &url]).run();
        for flags in [&["-p", "../open.json"][..], &["-p", "../listed.json", "--net", "host"]] {
            run(flags).refused(125, &["network.deny", "--connect '*:443'"]);
            let asked = world.sbx(["why", "--connect", "www.example.org:443"]).args(flags).run();
            asked.refused(125, &["network.deny"]);
        }
        assert_eq!(server.connections(), 0);
        // The twin without a denial.
        run(&["--net", "host"]).success();
        let script = format!(": < /dev/tcp/www.example.org/{port}");
        let out = world.sbx(["run", "-p", "../listed.json", "--", "bash", "-c", &script]).run().failed();
        assert!(out.err().contains("denies '*.example.org'") && !out.err().contains("allow it"), "{out}");
    });
}

/// libc asks by netlink which addresses there are, and does without an answer.
#[test]
fn names_of_this_machine_are_looked_up_without_a_line() {
    promise!(kernel::TCP_PORTS);
    need!("getent");
    in_worlds(|world| {
        for profile in ["workspace", "network", "minimal"] {
            let flags = ["run", "-p", profile, "--connect", "*:443", "--namespaces", "none", "--"];
            world.sbx(flags).args(["getent", "ahosts", "127.0.0.1"]).run().success().silent();
        }
    });
}
