//! `--net private`: servers and clients inside find each other, and the host's network is out of reach.

use sbx_tests::servers::{BODY, HttpServer, UnixServer};
use sbx_tests::{World, in_worlds, kernel, need, promise, sys};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const PYTHON: &str = "/usr/bin/python3";

/// Waits for a server that the shell has started, for ten seconds at most.
const AWAIT: &str = "await() { n=0; until curl -s -o /dev/null \"$1\"; do n=$((n+1)); [ $n -lt 100 ] || exit 9; \
                     sleep 0.1; done; }\n";

fn private(world: &World, command: &[&str]) -> sbx_tests::Cmd {
    world.sbx([&["run", "--net", "private", "--"][..], command].concat())
}

#[test]
fn a_server_and_its_client_work_inside() {
    promise!(namespaces);
    need!("curl");
    in_worlds(|world| {
        world.write("file", BODY);
        for (bind, url) in [("127.0.0.1", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000")] {
            let script = format!(
                "{AWAIT}{PYTHON} -m http.server --bind {bind} 8000 >/dev/null 2>&1 & await {url}/; curl -sS {url}/file"
            );
            // Two at a time: each has the port to itself.
            let both = [
                private(world, &["bash", "-c", &script]).start(),
                private(world, &["bash", "-c", &script]).start(),
            ];
            for one in both {
                one.wait().success().prints(BODY);
            }
        }
    });
}

/// getaddrinfo(3) passes loopback's first addresses over where it is asked for usable ones (AI_ADDRCONFIG).
#[test]
fn addresses_of_one_family_are_found() {
    promise!(namespaces);
    need!("getent");
    in_worlds(|world| {
        for (database, address) in [("ahostsv4", "127.0.0.1"), ("ahostsv6", "::1")] {
            let found = private(world, &["getent", database, address]).run().success().out();
            assert!(found.starts_with(address), "{found}");
        }
    });
}

#[test]
fn a_server_can_listen_on_a_low_port() {
    promise!(namespaces);
    let program = "\
import socket
for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    with socket.socket(family) as server, socket.socket(family) as client:
        server.bind((host, 80))
        server.listen()
        client.connect((host, 80))
        server.accept()[0].send(b'served')
        print(client.recv(9))
";
    const FIRST: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
    let outside = std::fs::read_to_string(FIRST).expect("cannot read it");
    in_worlds(|world| {
        private(world, &[PYTHON, "-c", program]).run().success().prints("b'served'\nb'served'\n");
        // The command has no more rights than before, and the host's network is another one.
        let program = format!("open('{FIRST}', 'w').write('1024')");
        private(world, &[PYTHON, "-c", &program]).run().failed().says("Error");
        assert_eq!(std::fs::read_to_string(FIRST).expect("cannot read it"), outside);
    });
}

#[test]
fn node_serves_and_connects_to_itself() {
    promise!(namespaces);
    need!("node");
    in_worlds(|world| {
        let program = "const h=require('http');const s=h.createServer((q,r)=>r.end('served\\n'));\
            s.listen(0,'127.0.0.1',()=>h.get({port:s.address().port,host:'127.0.0.1'},r=>{r.pipe(process.stdout);r.on('end',()=>s.close())}));";
        private(world, &["node", "-e", program]).run().success().prints("served\n");
    });
}

#[test]
fn udp_works_connected_or_not_and_interfaces_can_be_listed() {
    promise!(namespaces);
    let program = "\
import socket
for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    for connects in (False, True):
        with socket.socket(family, socket.SOCK_DGRAM) as server, socket.socket(family, socket.SOCK_DGRAM) as client:
            server.bind((host, 0))
            server.settimeout(10)
            if connects:
                client.connect(server.getsockname())
                client.send(b'x')
            else:
                client.sendto(b'x', server.getsockname())
            assert server.recv(9) == b'x'
print([name for _, name in socket.if_nameindex()])
";
    in_worlds(|world| {
        private(world, &[PYTHON, "-c", program]).run().success().prints("['lo']\n");
    });
}

#[test]
fn connections_fail_and_time_out_as_without_a_sandbox() {
    promise!(namespaces);
    let program = "\
import errno, select, socket
listener = socket.create_server(('127.0.0.1', 0))
place = listener.getsockname()
free = socket.create_server(('127.0.0.1', 0)); nobody = free.getsockname(); free.close()
with socket.socket() as s: print(errno.errorcode[s.connect_ex(nobody)])
with socket.socket() as s:
    s.setblocking(False)
    code = s.connect_ex(place)
    assert code in (0, errno.EINPROGRESS), code
    select.select([], [s], [], 10)
    print(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.getpeername() == place)
with socket.socket() as s: print(errno.errorcode[s.connect_ex(('192.0.2.1', 80))])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    try: s.sendto(b'x', ('192.0.2.1', 9))
    except OSError as error: print(errno.errorcode[error.errno])
";
    in_worlds(|world| {
        let expected = "ECONNREFUSED\n0 True\nENETUNREACH\nENETUNREACH\n";
        private(world, &[PYTHON, "-c", program]).run().success().prints(expected);
    });
}

#[test]
fn unix_sockets_of_the_run_can_be_reached_and_those_of_the_host_cannot() {
    promise!(namespaces);
    in_worlds(|world| {
        let own = "\
import socket
for name in ('own.sock', '\\0own'):
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(name); server.listen()
        client.connect(name); print('connected')
";
        private(world, &[PYTHON, "-c", own]).run().success().prints("connected\nconnected\n");
        let attempt = world.program("attempt");
        let path = world.outside.join("socket");
        let by_path = UnixServer::at(&path);
        let name = sbx_tests::processes::marker();
        let by_name = UnixServer::abstract_name(&name);
        for target in [path.to_str().unwrap(), &format!("@{name}")] {
            world.bare([&attempt, "connect-unix", target]).run().success();
            private(world, &[&attempt, "connect-unix", target]).run().exited(1);
        }
        assert_eq!((by_path.connections(), by_name.connections()), (1, 1));
    });
}

#[test]
fn the_hosts_servers_receive_nothing() {
    promise!(namespaces);
    need!("curl");
    let server = HttpServer::start();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let (port, udp) = (server.port.to_string(), datagrams.local_addr().unwrap().port());
    let send =
        format!("import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp}))");
    in_worlds(|world| {
        let attempt = world.program("attempt");
        private(world, &["curl", "-sS", &server.url()]).run().failed().prints("");
        private(world, &[&attempt, "connect", &port]).run().exited(1);
        let _ = private(world, &[PYTHON, "-c", &send]).run();
        world.write("own.json", r#"{"extends": "minimal", "network": {"mode": "private"}}"#);
        world.run("./own.json", [&attempt, "connect", &port]).run().exited(1);
    });
    assert_eq!(server.connections(), 0);
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "a datagram got out");
    // Both can be reached from outside.
    let world = World::new(&sbx_tests::User::ordinary());
    world.bare([PYTHON, "-c", &send]).run().success();
    assert!(datagrams.recv(&mut [0; 8]).is_ok());
    world.bare(["curl", "-sS", &server.url()]).run().success().prints(BODY);
}

#[test]
fn a_socket_of_the_host_is_not_passed_in() {
    promise!(namespaces);
    in_worlds(|world| {
        let inherited: [fn() -> OwnedFd; 3] = [
            sys::netlink,
            || UdpSocket::bind("127.0.0.1:0").unwrap().into(),
            || TcpListener::bind("127.0.0.1:0").unwrap().into(),
        ];
        for socket in inherited {
            let words = ["run", "--net", "private", "--pass-fd", "7", "--", "true"];
            let named = ["descriptor 7", "socket of the host's network"];
            world.sbx(words).pass_fd(socket(), 7).run().refused(125, &named);
            private(world, &["true"]).pass_fd(socket(), 0).run().refused(125, &["descriptor 0"]);
            let words = ["run", "--net", "host", "--pass-fd", "7", "--", "true"];
            world.sbx(words).pass_fd(socket(), 7).run().success();
        }
        let (end, _other) = UnixStream::pair().unwrap();
        private(world, &["true"]).pass_fd(end.into(), 0).run().success();
    });
}

/// A helper of the user's, at a socket that is allowed by name, passes one in: it still cannot be connected.
#[test]
fn a_socket_of_the_host_that_is_passed_in_later_is_not_connected() {
    promise!(namespaces);
    // Then the kernel decides about connecting.
    if kernel::landlock() >= 9 {
        return;
    }
    let server = HttpServer::start();
    in_worlds(|world| {
        let helper = "\
import socket
listener = socket.socket(socket.AF_UNIX); listener.bind('helper.sock'); listener.listen()
print('ready', flush=True)
inside, _ = listener.accept()
hosts = socket.socket()
socket.send_fds(inside, [b'x'], [hosts.fileno()])
inside.recv(1)
";
        let client = format!(
            "import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect('helper.sock')
_, numbers, _, _ = socket.recv_fds(s, 9, 1)
try: socket.socket(fileno=numbers[0]).connect(('127.0.0.1', {}))
except PermissionError: print('refused')
",
            server.port
        );
        let outside = world.bare([PYTHON, "-c", helper]).start();
        outside.wait_for("ready");
        private(world, &[PYTHON, "-c", &client]).run().success().prints("refused\n");
        outside.wait().success();
    });
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_command_that_needs_a_network_is_told_of_the_private_one() {
    promise!(namespaces);
    const HINT: &str = "allow it with --net host (--net private, where 127.0.0.1 is enough)";
    const LISTENS: &str = "import socket; socket.create_server(('127.0.0.1', 0)); print('listens')";
    in_worlds(|world| {
        let listening =
            |flags: &[&str]| world.sbx([&["run"][..], flags, &["--", PYTHON, "-c", LISTENS]].concat()).run();
        listening(&["--net", "none"]).failed().says(HINT);
        listening(&[]).success().prints("listens\n");
        listening(&["--net", "private"]).success().prints("listens\n");
        // No hint suggests what the run could not have.
        let out = listening(&["--namespaces", "none"]).failed().says("allow it with --net host");
        assert!(!out.err().contains("--net private"), "{}", out.err());
        // Nor does one suggest the private network for what that refuses as well.
        let raw = "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)";
        let out = world.sbx(["run", "--net", "none", "--", PYTHON, "-c", raw]).run().failed();
        assert!(!out.err().contains("--net private"), "{}", out.err());
    });
}

/// Somebody who watches is told, once, of a server that waits for long at a port that was chosen for it.
#[test]
fn a_server_that_this_machine_does_not_reach_is_named() {
    need!("python3");
    let waits = |port: &str, time: &str| {
        format!(
            "import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', {port})); s.listen(); time.sleep({time})"
        )
    };
    in_worlds(|world| {
        const LINE: &str = "port 8765 is in the run's own network, where this machine does not reach it; \
                            show it here with --publish 8765";
        for (flags, port, time, is_named) in [
            (&["-v"][..], "8765", "2.5", true),
            (&["-v"], "8765", "0", false),
            (&["-v"], "0", "2.5", false),
            (&["-v", "--publish", "8766:8765"], "8765", "2.5", false),
            // Nobody watches.
            (&[], "8765", "2.5", false),
        ] {
            let program = waits(port, time);
            let words = [&["run"], flags, &["--", "/usr/bin/python3", "-c", &program]].concat();
            let out = world.sbx(words).run().success();
            assert_eq!(out.err().matches("--publish").count(), usize::from(is_named), "{flags:?} {out}");
            assert!(!is_named || out.err().contains(LINE), "{out}");
        }
    });
}

/// A server that one run starts is in a network of its own, and a client that another starts in another one.
#[test]
fn a_server_of_another_run_is_named_to_a_client_that_fails() {
    promise!(namespaces);
    need!("curl");
    in_worlds(|world| {
        const SERVER: &str = "import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 47123)); s.listen()\n\
                              print('up', flush=True); time.sleep(60)";
        let server = world.sbx(["run", "--", PYTHON, "-c", SERVER]).start();
        server.wait_for("up");
        let connect = |port: u16, then: &str| {
            let script = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) 2> errors; {then}");
            world.sbx(["run", "--", "bash", "-c", &script]).run()
        };
        connect(47123, "exit 1").failed().says("with --host-port 47123");
        // One of its own comes up at the same port.
        let own = format!(
            "{PYTHON} -m http.server --bind 127.0.0.1 47123 > log 2>&1 & {AWAIT}await \
                           http://127.0.0.1:47123/; exit 1"
        );
        assert!(connect(47123, &own).failed().sbx_lines().is_empty());
        // Nobody listens at that one, and who does without has not failed.
        assert!(connect(47124, "exit 1").failed().sbx_lines().is_empty());
        connect(47123, "true").success().silent();
        server.signal_group(libc::SIGTERM);
        server.wait();
        assert!(connect(47123, "exit 1").failed().sbx_lines().is_empty());
    });
}

/// `--host-port` brings a server to 127.0.0.1, and is led to what can be had there.
#[test]
fn a_server_at_another_address_of_loopback_takes_the_hosts_network() {
    promise!(namespaces);
    in_worlds(|world| {
        for (listens, flag) in [("127.0.0.2:0", "--net host"), ("0.0.0.0:0", "--host-port")] {
            let server = TcpListener::bind(listens).unwrap();
            let port = server.local_addr().unwrap().port();
            let script = format!("exec 3<>/dev/tcp/127.0.0.2/{port}");
            let out = world.sbx(["run", "--", "bash", "-c", &script]).run().failed();
            assert!(out.err().contains(&format!("allow it with {flag}")), "{listens}: {out}");
            server.set_nonblocking(true).unwrap();
            assert!(server.accept().is_err());
            // With the one that reaches it there.
            if flag == "--net host" {
                world.sbx(["run", "--net", "host", "--", "bash", "-c", &script]).run().success();
                assert!(server.accept().is_ok());
            }
        }
    });
}
