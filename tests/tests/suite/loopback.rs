//! Without a flag: `workspace`, `no-exec` and `read-only` have a loopback of their own, and nothing leaves it.

use sbx_tests::servers::{HttpServer, UnixServer};
use sbx_tests::{Output, World, in_worlds, kernel, need, promise};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

const PYTHON: &str = "/usr/bin/python3";
const PROFILES: [&str; 3] = ["workspace", "read-only", "no-exec"];
/// What a container refuses that lets namespaces be made, and nothing be mounted in them.
const NO_MOUNTS: &[(libc::c_long, i32)] = &[(libc::SYS_mount, libc::EPERM), (libc::SYS_fsopen, libc::EPERM)];

/// Tries connections: `tcp` or `udp`, an address and a port each. It prints how they end.
const CONNECT: &str = "\
import errno, socket, sys
for kind, host, port in zip(*[iter(sys.argv[1:])] * 3):
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM if kind == 'udp' else socket.SOCK_STREAM) as s:
        s.setblocking(kind != 'nowait')
        code = s.connect_ex((host, int(port)))
        print('connected' if code == 0 else errno.errorcode[code])
";

fn connect(world: &World, flags: &[&str], to: &[&str]) -> Output {
    world.sbx([&["run"], flags, &["--", PYTHON, "-c", CONNECT], to].concat()).run()
}

/// The lines that say how a connection came to nothing.
fn named(out: &Output) -> Vec<String> {
    let lines = out.sbx_lines().into_iter().filter(|line| line.contains("connect("));
    lines.filter(|line| !line.contains(" times in ")).collect()
}

#[test]
fn servers_and_clients_of_a_run_find_each_other_by_every_way() {
    promise!(namespaces);
    let program = "\
import socket, threading
def over(family, address, listens=True):
    with socket.socket(family) as server, socket.socket(family) as client:
        server.bind(address)
        server.listen()
        client.connect(server.getsockname())
        server.accept()[0].send(b'served')
        print(client.recv(9))
over(socket.AF_INET, ('127.0.0.1', 0))
over(socket.AF_INET6, ('::1', 0))
over(socket.AF_UNIX, '\\0name')
import os
over(socket.AF_UNIX, os.environ['TMPDIR'] + '/s')
over(socket.AF_UNIX, '/tmp/t')
with socket.socket(type=socket.SOCK_DGRAM) as server, socket.socket(type=socket.SOCK_DGRAM) as client:
    server.bind(('127.0.0.1', 0))
    client.sendto(b'datagram', server.getsockname())
    print(server.recv(9))
";
    in_worlds(|world| {
        for profile in PROFILES {
            let out = world.run(profile, [PYTHON, "-c", program]).run().success();
            assert_eq!(out.out(), "b'served'\n".repeat(5) + "b'datagram'\n", "{profile}: {out}");
            assert!(named(&out).is_empty(), "{out}");
        }
        let manager = "import multiprocessing as m\nwith m.Manager() as manager:\n d = manager.dict(); d['a'] = 1; print(d)";
        world.run("workspace", [PYTHON, "-c", manager]).run().success().prints("{'a': 1}\n");
    });
}

#[test]
fn a_program_that_closes_itself_to_others_has_its_network_too() {
    const DUMPABLE: &str = "import ctypes; print(ctypes.CDLL(None).prctl(4, 0, 0, 0, 0))\n";
    promise!(namespaces);
    let connects = "\
import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].send(b'served')
print(client.recv(9))
";
    in_worlds(|world| {
        for program in [connects.to_string(), format!("{DUMPABLE}{connects}")] {
            let out = world.run("workspace", [PYTHON, "-c", &program]).run().success();
            assert!(out.out().ends_with("b'served'\n") && out.sbx_lines().is_empty(), "{out}");
        }
    });
}

/// The kernel would deliver it after the end of a program, too.
#[test]
fn what_a_run_has_sent_last_arrives() {
    promise!(namespaces);
    const LENGTH: usize = 24_000_000;
    in_worlds(|world| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // By then the command has ended.
            std::thread::sleep(Duration::from_millis(700));
            std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
        });
        let sends = format!(
            "import socket\nsocket.create_connection(('127.0.0.1', {port})).sendall(bytes({LENGTH}))\n"
        );
        let flags = ["run", "--host-port", &port.to_string(), "--", PYTHON, "-c", &sends];
        let out = world.sbx(flags).run().success();
        assert_eq!((server.join().unwrap(), out.sbx_lines()), (LENGTH as u64, Vec::<String>::new()));
    });
}

/// Threads need not share their descriptors, and the first one may end before the others.
#[test]
fn a_thread_connects_its_own_socket() {
    promise!(namespaces);
    let own = "\
import ctypes, os, socket, threading
server = socket.create_server(('127.0.0.1', 0))
ready, made = threading.Event(), threading.Event()
def connects():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    client = socket.socket()
    ready.set(); made.wait(9)
    assert client.fileno() == other.fileno()
    client.connect(server.getsockname())
    print(client.getpeername() == server.getsockname(), flush=True)
thread = threading.Thread(target=connects)
thread.start()
ready.wait(9)
other = socket.socket()
made.set()
thread.join()
try: other.getpeername()
except OSError: print('not connected')
";
    let last = "\
import ctypes, os, socket, threading, time
server = socket.create_server(('127.0.0.1', 0))
def connects():
    time.sleep(.2)
    socket.create_connection(server.getsockname())
    os.write(1, b'connected\\n')
    os._exit(0)
threading.Thread(target=connects).start()
ctypes.CDLL(None).pthread_exit(None)
";
    in_worlds(|world| {
        let out = world.run("workspace", [PYTHON, "-c", own]).run().success();
        assert_eq!(out.out(), "True\nnot connected\n", "{out}");
        // Before Linux 6.9 a thread cannot be held. (The scopes came with 6.12.)
        if kernel::landlock() >= kernel::SCOPES {
            world.run("workspace", [PYTHON, "-c", last]).run().success().prints("connected\n");
        }
    });
}

#[test]
fn a_server_of_the_host_is_named_once_and_gets_nothing() {
    promise!(namespaces);
    let server = HttpServer::start();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let (tcp, udp) = (server.port.to_string(), datagrams.local_addr().unwrap().port().to_string());
    in_worlds(|world| {
        for profile in PROFILES {
            let to = ["tcp", "127.0.0.1", &tcp, "tcp", "127.0.0.1", &tcp, "udp", "127.0.0.1", &udp];
            let out = connect(world, &["-p", profile], &to).prints("ECONNREFUSED\nECONNREFUSED\nconnected\n");
            let lines = named(&out);
            assert_eq!(lines.len(), 2, "{profile}: {out}");
            let flags = [format!("--host-port {tcp}"), "--net host".to_string()];
            for ((line, port), flags) in lines.iter().zip([&tcp, &udp]).zip(&flags) {
                let words = [&format!("127.0.0.1:{port}"), "the server on this port is the host's", flags];
                assert!(words.iter().all(|word| line.contains(*word)), "{line}");
            }
        }
        // Clients that do not wait learn of it later, and so do we.
        let out = connect(world, &[], &["nowait", "127.0.0.1", &tcp]);
        assert_eq!(named(&out).len(), 1, "{out}");
    });
    assert_eq!(server.connections(), 0);
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "a datagram got out");
    in_worlds(|world| {
        connect(world, &["--net", "host"], &["tcp", "127.0.0.1", &tcp]).prints("connected\n");
    });
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_port_where_nobody_is_yet_is_not_named() {
    promise!(namespaces);
    // Nobody has it: it was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    in_worlds(|world| {
        let to = ["tcp", "127.0.0.1", &free, "tcp", "::1", &free, "udp", "127.0.0.1", &free];
        let out = connect(world, &[], &to).prints("ECONNREFUSED\nECONNREFUSED\nconnected\n");
        assert!(out.sbx_lines().is_empty(), "{out}");
    });
    // The run's own server at a port that a server of the host has as well.
    let host = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = host.local_addr().unwrap().port();
    let program = format!(
        "import socket\ns = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', {port}))\n\
         c = socket.socket(type=socket.SOCK_DGRAM); c.connect(('127.0.0.1', {port})); c.send(b'x'); print(s.recv(9))"
    );
    in_worlds(|world| {
        let out = world.run("workspace", [PYTHON, "-c", &program]).run().success().prints("b'x'\n");
        assert!(out.sbx_lines().is_empty(), "{out}");
    });
}

#[test]
fn a_connection_that_leads_out_is_named_with_the_way_to_allow_it() {
    promise!(namespaces);
    in_worlds(|world| {
        let to = ["tcp", "192.0.2.1", "443", "udp", "192.0.2.1", "53", "tcp", "2001:db8::1", "80"];
        let out = connect(world, &[], &to).prints(&"ENETUNREACH\n".repeat(3));
        let lines = named(&out);
        let expected = [
            ("192.0.2.1:443", "allow it with --connect 192.0.2.1:443"),
            (
                "192.0.2.1:53",
                "looks up only the hosts that --connect names; allow it with --net host (or one host alone: \
                 --connect HOST; 'sbx learn' finds which)",
            ),
            ("[2001:db8::1]:80", "allow it with --connect '[2001:db8::1]:80'"),
        ];
        for (line, (address, hint)) in lines.iter().zip(expected) {
            assert!(line.contains(address) && line.contains(hint), "{line}");
        }
        assert_eq!(lines.len(), 3, "{out}");
        // It is a violation like others.
        let out = connect(world, &["--on-violation", "kill"], &to);
        assert!(out.out().is_empty() && out.err().contains("ended the run at connect("), "{out}");
    });
}

#[test]
fn sockets_of_other_families_stay_closed() {
    promise!(namespaces);
    let program = "\
import socket
for family, kind, number in ((2, 3, 1), (2, 2, 1), (10, 3, 58), (17, 3, 0), (40, 1, 0), (16, 3, 4), (16, 3, 16), (1, 2, 0)):
    try: socket.socket(family, kind, number)
    except OSError: continue
    print('made', family, kind, number)
";
    in_worlds(|world| {
        for profile in PROFILES {
            world.run(profile, [PYTHON, "-c", program]).run().success().prints("");
        }
    });
}

#[test]
fn what_processes_of_a_machine_share_is_the_runs_own() {
    promise!(namespaces);
    let program = "\
import ctypes, sys
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
key = int(sys.argv[1])
memory = libc.shmget(key, 4096, 0o1600)
print(memory >= 0, libc.semget(key, 1, 0o1600) >= 0, libc.msgget(key, 0o1600) >= 0)
if memory >= 0: print(libc.shmat(memory, None, 0) != 2 ** 64 - 1, libc.shmat(memory, None, 0o100000) != 2 ** 64 - 1)
";
    let key = (0x5b00_0000 + std::process::id()).to_string();
    in_worlds(|world| {
        for profile in PROFILES {
            // Executable memory of this kind is closed to all.
            let out = world.run(profile, [PYTHON, "-c", program, &key]).run().success();
            assert_eq!(out.out(), "True True True\nTrue False\n", "{profile}: {out}");
            let front = ["run", "-p", profile, "--namespaces", "none", "--", PYTHON, "-c", program, &key];
            world.sbx(front).run().success().prints("False False False\n");
        }
    });
    let shared = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    assert!(!shared.lines().any(|line| line.split_whitespace().next() == Some(&key)), "{shared}");
}

#[test]
fn a_pair_of_datagram_sockets_keeps_messages_apart_and_reaches_nobody_else() {
    promise!(kernel::PATHS);
    let program = "\
import os, socket, sys
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.send(b'one'); a.send(b'two'); print(b.recv(9), b.recv(9), os.get_inheritable(a.fileno()))
try: a.sendto(b'out', sys.argv[1])
except OSError: pass
try: a.sendmsg([b'out'], [], 0, sys.argv[1])
except OSError: pass
try: a.connect(sys.argv[1]); a.send(b'out')
except OSError: pass
c, d = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
try: d.recv(9)
except BlockingIOError: print('waits for nothing')
import ctypes
print(ctypes.CDLL(None).socketpair(1, 2, 0, ctypes.c_void_p(8)))
";
    let expected = "b'one' b'two' False\nwaits for nothing\n-1\n";
    in_worlds(|world| {
        let path = world.path("datagrams");
        let server = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        server.set_nonblocking(true).unwrap();
        let command = [PYTHON, "-c", program, path.to_str().unwrap()];
        for profile in ["workspace", "read-only"] {
            for flags in [&[][..], &["--net", "none"], &["--namespaces", "none"]] {
                let words = [&["run", "-q", "-p", profile], flags, &["--"], &command].concat();
                world.sbx(words).run().success().prints(expected);
            }
        }
        // Where executable memory is guarded, the numbers cannot be written safely.
        world.run("no-exec", command).run().failed().says("socketpair(AF_UNIX, SOCK_DGRAM");
        world.sbx(["run", "-q", "--deny-calls", "socketpair", "--"]).args(command).run().failed();
        assert!(server.recv(&mut [0; 8]).is_err(), "a datagram got out");
        world.bare(command).run().success();
        assert!(server.recv(&mut [0; 8]).is_ok());
    });
}

/// A machine that gives namespaces, and on which nothing can be mounted in them.
#[test]
fn a_network_is_had_where_nothing_can_be_mounted() {
    promise!(namespaces);
    let server = HttpServer::start();
    let tcp = server.port.to_string();
    let inside = "import socket\ns = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())\n\
                  a = socket.socket(1); a.bind('\\0own'); a.listen(); socket.socket(1).connect('\\0own'); print('served')";
    in_worlds(|world| {
        let name = sbx_tests::processes::marker();
        let by_name = UnixServer::abstract_name(&name);
        let by_path = UnixServer::at(&world.outside.join("socket"));
        let attempt = world.program("attempt");
        for flags in [&[][..], &["--net", "private"]] {
            let sbx = |command: &[&str]| {
                world.sbx([&["run", "-v"], flags, &["--"], command].concat()).answering(NO_MOUNTS).run()
            };
            let out = sbx(&[PYTHON, "-c", inside]).success().prints("served\n");
            assert!(
                out.err().contains("a network of its own") && out.err().contains("at level standard"),
                "{out}"
            );
            assert!(out.err().contains("no namespaces but that of the network (cannot "), "{out}");
            let out = sbx(&[PYTHON, "-c", CONNECT, "tcp", "127.0.0.1", &tcp]).prints("ECONNREFUSED\n");
            assert_eq!(named(&out).len(), 1, "{out}");
            sbx(&[&attempt, "connect-unix", &format!("@{name}")]).exited(1);
            sbx(&[&attempt, "connect-unix", world.outside.join("socket").to_str().unwrap()]).exited(1);
        }
        // What takes more than that is refused, as before.
        let full = ["run", "--require", "full", "--", "true"];
        world.sbx(full).answering(NO_MOUNTS).run().refused(125, &["level 'full' needs"]);
        assert_eq!((by_name.connections(), by_path.connections()), (0, 0));
    });
    assert_eq!(server.connections(), 0);
}

#[test]
fn without_a_namespace_there_is_no_network_and_a_reason() {
    promise!(namespaces);
    let refused: &[(libc::c_long, i32)] = &[(libc::SYS_unshare, libc::EPERM)];
    let server = HttpServer::start();
    let to = ["tcp", "127.0.0.1", &server.port.to_string()];
    in_worlds(|world| {
        let command = [&["run", "-v", "--", PYTHON, "-c", CONNECT], &to[..]].concat();
        let out = world.sbx(&command).answering(refused).run().failed();
        let why = "has no network, and no loopback of its own: cannot make a network namespace";
        assert!(out.err().contains(why) && out.err().contains("at level full"), "{out}");
        let private = ["run", "--net", "private", "--", "true"];
        world.sbx(private).answering(refused).run().refused(125, &["a network of the run's own needs"]);
        // A socket of the host's network leads there.
        let socket = || OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        let out = world.sbx(&command).pass_fd(socket(), 0).run().failed();
        assert!(out.err().contains("descriptor 0 is a socket of the host's network"), "{out}");
    });
    assert_eq!(server.connections(), 0);
}

#[test]
fn nothing_is_made_for_a_run_that_asks_for_none_of_it() {
    promise!(namespaces);
    let link = |out: Output| out.success().out();
    in_worlds(|world| {
        let of = |flags: &[&str]| {
            link(world.sbx([&["run"], flags, &["--", "readlink", "/proc/self/ns/net"]].concat()).run())
        };
        let outside = link(world.bare(["readlink", "/proc/self/ns/net"]).run());
        assert_ne!(of(&[]), outside);
        for flags in [&["--exec"][..], &["--net", "none"], &["--net", "host"], &["-p", "minimal"]] {
            assert_eq!(of(flags), outside, "{flags:?}");
        }
    });
}

#[test]
fn log_mode_lets_connections_out_and_lists_them() {
    promise!(namespaces);
    let server = HttpServer::start();
    in_worlds(|world| {
        let to = ["tcp", "127.0.0.1", &server.port.to_string(), "udp", "192.0.2.1", "9"];
        let out = connect(world, &["--log-violations"], &to);
        assert!(out.out().starts_with("connected\n"), "{out}");
        let lines = named(&out);
        let hint = format!("allow it with --host-port {}", server.port);
        assert!(
            lines[0].contains("would block connect(AF_INET 127.0.0.1:") && lines[0].contains(&hint),
            "{out}"
        );
        assert!(lines.len() == 2 && lines[1].contains("would block connect(AF_INET 192.0.2.1:9)"), "{out}");
        // What the run serves itself is no violation.
        let own = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())";
        world.sbx(["run", "--log-violations", "--", PYTHON, "-c", own]).run().success().silent();
    });
    assert_eq!(server.connections(), 2);
}

#[test]
fn tools_of_every_day_serve_and_are_reached() {
    promise!(namespaces);
    need!("curl", "node");
    in_worlds(|world| {
        world.write("file", "served\n");
        let script = "python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 & \
                      curl -sS --retry 50 --retry-connrefused --retry-delay 0 --retry-max-time 10 http://localhost:8000/file";
        let out = world.run("workspace", ["bash", "-c", script]).run().success().prints("served\n");
        assert!(out.sbx_lines().is_empty(), "{out}");
        let program = "const h=require('http');const s=h.createServer((q,r)=>r.end('served\\n'));\
            s.listen(0,()=>h.get({port:s.address().port,host:'localhost'},r=>{r.pipe(process.stdout);r.on('end',()=>s.close())}));";
        world.run("workspace", ["node", "-e", program]).run().success().prints("served\n");
        let lists = "console.log(Object.keys(require('os').networkInterfaces()))";
        world.run("workspace", ["node", "-e", lists]).run().success().prints("[ 'lo' ]\n");
    });
}

/// A filter around us may answer unshare(2) or setns(2) with success and do nothing. What is done to a network of the
/// run's own would be done to the host's, and its connections would lead there.
#[test]
fn a_network_that_was_only_promised_is_not_the_hosts() {
    promise!(namespaces);
    need!("curl");
    const PORTS: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
    in_worlds(|world| {
        let server = HttpServer::start();
        let before = std::fs::read_to_string(PORTS).unwrap();
        let fetch =
            |flags: &[&str]| world.sbx([&["run"], flags, &["--", "curl", "-s", &server.url()]].concat());
        for call in [libc::SYS_unshare, libc::SYS_setns] {
            fetch(&[]).answering(&[(call, 0)]).run().failed();
            fetch(&["--net", "private"]).answering(&[(call, 0)]).run().failed();
        }
        assert_eq!((server.connections(), std::fs::read_to_string(PORTS).unwrap()), (0, before));
        fetch(&["--net", "host"]).run().success();
        assert_eq!(server.connections(), 1);
    });
}
