//! Sockets that somebody hands to a command over a UNIX socket. A socket keeps the network that it was made in, so one
//! of the host's must not give a run what its own network does not.

use sbx_tests::servers::HttpServer;
use sbx_tests::{World, in_worlds, need, promise, stage};

const PYTHON: &str = "/usr/bin/python3";

/// Hands sockets of the host's network to whoever connects, and says how often it reached the port that was asked for.
const HELPER: &str = "\
import socket
listener = socket.socket(socket.AF_UNIX); listener.bind('helper.sock'); listener.listen()
print('ready', flush=True)
inside, _ = listener.accept()
kept = [socket.socket() for _ in range(8)] + [socket.socket(socket.AF_INET6)]
socket.send_fds(inside, [b'x'], [one.fileno() for one in kept])
reached = 0
while port := inside.recv(9):
    try: socket.create_connection(('127.0.0.1', int(port)), timeout=2); reached += 1
    except OSError: pass
    inside.send(b'y')
print('reached', reached)
";

/// Does with each socket what leads past connect(2), or out of it. A server of its own in between.
const CLIENT: &str = "\
import ctypes, socket, sys
to = ('127.0.0.1', int(sys.argv[1]))
helper = socket.socket(socket.AF_UNIX); helper.connect('helper.sock')
_, numbers, _, _ = socket.recv_fds(helper, 9, 9)
all = [socket.socket(fileno=number) for number in numbers]
def sent(s): s.sendto(b'x', socket.MSG_FASTOPEN, to)
def told(s): s.sendmsg([b'x'], [], socket.MSG_FASTOPEN, to)
def bound(s): s.bind(('127.0.0.1', 0)); s.listen(); asked(s)
def unbound(s): s.listen(); asked(s)
def asked(s): helper.send(str(s.getsockname()[1]).encode()); helper.recv(1)
def device(s): s.setsockopt(socket.SOL_SOCKET, 25, b'lo\\0')
def interface(s): s.setsockopt(socket.SOL_SOCKET, 62, 1)
def route(s): s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([131, 7, 4, 127, 0, 0, 1, 0]))
def chosen(s): s.setsockopt(socket.IPPROTO_IP, 50, socket.htonl(1))
def header(s): s.setsockopt(socket.IPPROTO_IPV6, 57, bytes([0, 2, 0, 1, 0, 0, 0, 0]) + bytes(15) + b'\\1')
for act, s in zip([sent, told, bound, unbound, device, interface, route, chosen, header], all):
    try: act(s); print(act.__name__, 'done')
    except PermissionError: print(act.__name__, 'refused')
    except OSError as error: print(act.__name__, 'failed', error.errno)
# As ssh-agent does: nobody but its like may take descriptors of it.
ctypes.CDLL(None).prctl(4, 0)
own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen()
socket.socket(socket.AF_UNIX).connect('own.sock'); own.accept()
packets = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); packets.bind('packets.sock'); packets.listen()
print('served')
";

/// What the client prints under these flags, and how often its sockets were reached.
fn handed(world: &World, flags: &[&str], port: u16) -> (String, String) {
    for name in ["helper.sock", "own.sock", "packets.sock"] {
        // None in the first round.
        let _ = std::fs::remove_file(world.workspace.join(name));
    }
    let outside = world.bare([PYTHON, "-c", HELPER]).start();
    outside.wait_for("ready");
    let port = port.to_string();
    let words = [&["run", "-q"][..], flags, &["--", PYTHON, "-c", CLIENT, &port]].concat();
    let printed = world.sbx(words).run().success().out();
    (printed, outside.wait().success().out())
}

#[test]
fn a_socket_of_the_host_leads_nowhere_that_the_run_may_not_go() {
    need!("python3");
    promise!(namespaces);
    let server = HttpServer::start();
    const ACTS: [&str; 9] =
        ["sent", "told", "bound", "unbound", "device", "interface", "route", "chosen", "header"];
    in_worlds(|world| {
        let before = server.connections();
        let refused = ACTS.map(|act| format!("{act} refused\n")).concat() + "served\n";
        let flags: [&[&str]; 7] = [
            &[],
            &["--net", "private"],
            &["--net", "none"],
            &["--namespaces", "none"],
            &["--profile", "no-exec"],
            &["--connect", "allowed.example"],
            &["--bind", "1"],
        ];
        for flags in flags {
            let (printed, reached) = handed(world, flags, server.port);
            assert_eq!((&*printed, &*reached), (&*refused, "ready\nreached 0\n"), "{flags:?}");
        }
        assert_eq!(server.connections(), before);
        // Whom the host's network is open to may do all that.
        let (printed, reached) = handed(world, &["--net", "host"], server.port);
        for act in ["sent", "told", "bound", "unbound", "device"] {
            assert!(printed.contains(&format!("{act} done\n")), "{printed}");
        }
        assert_eq!(reached, "ready\nreached 2\n");
        assert!(server.connections() > before);
    });
}

/// What a profile refuses of listen(2) stays refused, though the supervisor has sockets wait.
#[test]
fn no_socket_waits_that_the_profile_refuses() {
    need!("python3");
    in_worlds(|world| {
        world.write(
            "few.json",
            r#"{"extends": "workspace", "syscalls": {"deny": [{"call": "listen", "args": [{"index": 1, "op": "gt", "value": 5}]}]}}"#,
        );
        let program = "import socket, sys\nown = socket.socket(socket.AF_UNIX); own.bind('own.sock')\n\
                       own.listen(int(sys.argv[1]))\nsocket.socket(socket.AF_UNIX).connect('own.sock')\nprint('met')";
        for flags in [&[][..], &["--net", "none"], &["--connect", "*:80"]] {
            let run = |backlog: &str| {
                let _ = std::fs::remove_file(world.workspace.join("own.sock"));
                let words =
                    [&["run", "--profile", "./few.json"], flags, &["--", PYTHON, "-c", program, backlog]];
                world.sbx(words.concat()).run()
            };
            // With ports the network refuses it as well, but where nothing else is said of it.
            if flags != ["--connect", "*:80"] {
                run("5").success().prints("met\n");
            }
            run("6").failed().says("blocked listen(");
        }
    });
}

/// Starts a run with a socket of its own, of this type and protocol, and says whether its server was reached.
const CALLER: &str = "\
import os, socket, subprocess, sys
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(); server.settimeout(0.5)
port = str(server.getsockname()[1])
handed = socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[1]))
words = [word.replace('PORT', port) for word in sys.argv[2:]]
subprocess.run(words + [port], stdin=handed)
try: server.accept(); print('reached')
except TimeoutError: print('not reached')
";

/// Landlock holds the ports of TCP alone.
#[test]
fn a_socket_of_multipath_tcp_connects_to_no_port() {
    need!("python3");
    const MULTIPATH: &str = "262";
    let program = "import socket, sys\ns = socket.socket(fileno=0)\n\
                   try: s.connect(('127.0.0.1', int(sys.argv[1])))\nexcept OSError: pass";
    in_worlds(|world| {
        for (protocol, flags, reached) in [
            ("6", &["--connect", "*:PORT"][..], "reached\n"),
            ("6", &["--bind", "1"], "not reached\n"),
            (MULTIPATH, &["--connect", "*:PORT"], "not reached\n"),
            (MULTIPATH, &["--bind", "1"], "not reached\n"),
            (MULTIPATH, &["--net", "host"], "reached\n"),
        ] {
            let sbx = stage::sbx().to_str().unwrap();
            let run = [&[sbx, "run", "-q"], flags, &["--", PYTHON, "-c", program]].concat();
            let words = [&[PYTHON, "-c", CALLER, protocol], &run[..]].concat();
            world.bare(words).run().success().prints(reached);
        }
    });
}

/// Nobody can look at the sockets of a process then. Where a run has no network, its UNIX sockets alone may wait.
#[test]
fn nothing_waits_for_the_network_where_sockets_cannot_be_looked_at() {
    need!("python3");
    let program = "import socket\ntry:\n own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen()\n \
                   print('own')\nexcept OSError: pass\n\
                   handed = socket.socket(fileno=0)\n\
                   try: handed.listen(); print('waits')\nexcept PermissionError: print('refused')";
    in_worlds(|world| {
        for (flags, waits) in [
            (&[][..], "own\nrefused"),
            (&["--net", "none"], "own\nrefused"),
            (&["--namespaces", "none"], "own\nrefused"),
            (&["--net", "host"], "waits"),
        ] {
            let _ = std::fs::remove_file(world.workspace.join("own.sock"));
            let sbx = stage::sbx().to_str().unwrap();
            let run = [&[sbx, "run", "-q"], flags, &["--", PYTHON, "-c", program]].concat();
            let words = [&[PYTHON, "-c", CALLER, "0"], &run[..]].concat();
            let out = world.bare(words).docker().run().success();
            out.prints(&format!("{waits}\nnot reached\n"));
        }
    });
}
