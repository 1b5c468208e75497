//! `--net host` and `--connect` with UNIX sockets: those of the run work, those of the host stay out of reach, and
//! every connection behaves as without a sandbox, though the supervisor makes it.

use sbx_tests::servers::{BODY, HttpServer, UnixServer};
use sbx_tests::{Cmd, World, in_worlds, kernel, need, processes, promise};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

const PYTHON: &str = "/usr/bin/python3";

/// The ways to a network in which the supervisor connects before Landlock ABI 9.
const OPEN: [&[&str]; 2] = [&["--net", "host"], &["--connect", "*:1"]];

fn run(world: &World, flags: &[&str], command: &[&str]) -> Cmd {
    world.sbx([&["run"], flags, &["--"], command].concat())
}

fn ways() -> impl Iterator<Item = &'static [&'static str]> {
    OPEN.into_iter().filter(|flags| flags[0] == "--net" || kernel::promises(kernel::TCP_PORTS))
}

#[test]
fn unix_sockets_of_the_run_work() {
    promise!(kernel::PATHS);
    let own = "\
import os, socket, tempfile
for name in ('own.sock', os.path.join(tempfile.mkdtemp(), 'own.sock')):
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(name); server.listen()
        client.connect(name); print('connected')
";
    // It forks a server and talks to it over a UNIX socket.
    let manager = "import multiprocessing as m\nwith m.Manager() as g: print(g.list([1]))";
    in_worlds(|world| {
        world.write("manager.py", manager);
        for flags in ways() {
            let _ = std::fs::remove_file(world.path("own.sock"));
            run(world, flags, &[PYTHON, "-c", own]).run().success().prints("connected\nconnected\n");
            run(world, flags, &[PYTHON, "manager.py"]).run().success().prints("[1]\n");
        }
    });
}

#[test]
fn node_and_tmux_work() {
    promise!(kernel::PATHS);
    need!("node", "tmux");
    in_worlds(|world| {
        let program = "const n=require('net');const s=n.createServer(c=>c.end('served\\n'));\
            s.listen('./s.sock',()=>n.connect('./s.sock').on('data',d=>{process.stdout.write(d);s.close()}));";
        run(world, &["--net", "host"], &["node", "-e", program]).run().success().prints("served\n");
        let script = "tmux new-session -d 'echo inside > out; sleep 60' && tmux list-sessions >/dev/null && \
                      n=0; until [ -s out ] || [ $n = 100 ]; do n=$((n+1)); sleep 0.1; done; cat out";
        let flags = ["--net", "host", "--env", "SHELL=/bin/sh"];
        run(world, &flags, &["sh", "-c", script]).run().success().prints("inside\n");
    });
}

#[test]
fn sockets_of_the_host_are_reached_only_by_name() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let path = world.outside.join("socket");
        let by_path = UnixServer::at(&path);
        let name = processes::marker();
        let by_name = UnixServer::abstract_name(&name);
        let (path, name) = (path.to_str().unwrap(), format!("@{name}"));
        for flags in ways() {
            let out = run(world, flags, &[&attempt, "connect-unix", path]).run().exited(1);
            let lines = out.sbx_lines();
            if kernel::landlock() < 9 {
                assert!(lines.iter().any(|line| line.contains(&format!("--unix {path}"))), "{out}");
            }
            run(world, flags, &[&attempt, "connect-unix", &name]).run().exited(1);
        }
        assert_eq!((by_path.connections(), by_name.connections()), (0, 0));
        let mut expected = 0;
        for flags in ways().chain([&["-p", "network"][..]]) {
            let named = [flags, &["--unix", path]].concat();
            run(world, &named, &[&attempt, "connect-unix", path]).run().success();
            run(world, &named, &[&attempt, "connect-unix", &name]).run().exited(1);
            expected += 1;
        }
        assert_eq!((by_path.connections(), by_name.connections()), (expected, 0));
    });
}

#[test]
fn an_agent_is_reached_beside_the_network() {
    promise!(kernel::PATHS);
    need!("ssh-agent", "ssh-add", "ssh-keygen");
    in_worlds(|world| {
        let script = "ssh-keygen -q -t ed25519 -N '' -f key && ssh-agent -a agent.sock sh -c '\
            ssh-add -q key && \"$0\" run --net host --unix \"$SSH_AUTH_SOCK\" --env SSH_AUTH_SOCK -- ssh-add -l'";
        let sbx = sbx_tests::stage::sbx().to_str().unwrap();
        let script = script.replace("\"$0\"", sbx);
        let out = world.bare(["sh", "-c", &script]).cwd(&world.outside).run().success();
        assert!(out.out().contains("ED25519"), "{out}");
    });
}

/// One thread keeps putting another socket in the place of the one that is connected, and another address in the place
/// of the one that it is connected to.
const SWAPS: &str = "
import ctypes, os, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
server = socket.create_server(('127.0.0.1', 0), backlog=1000)
inet = struct.pack('=H', socket.AF_INET) + struct.pack('>H', server.getsockname()[1]) + b'\\x7f\\0\\0\\1' + bytes(8)
unix = struct.pack('=H', socket.AF_UNIX) + sys.argv[1].encode() + b'\\0'
own = struct.pack('=H', socket.AF_UNIX) + b'own.sock\\0'
listener = socket.socket(socket.AF_UNIX); listener.bind('own.sock'); listener.listen(1000)
place = ctypes.create_string_buffer(128)
number = os.dup(0)
done = []
def swap():
    while not done:
        a, b = socket.socket(), socket.socket(socket.AF_UNIX)
        a.setblocking(False); b.setblocking(False)
        for s, address in ((a, inet), (b, unix), (a, unix), (b, own), (b, inet)) * 4:
            libc.dup2(s.fileno(), number)
            ctypes.memmove(place, address, len(address))
        a.close(); b.close()
threads = [threading.Thread(target=swap) for _ in range(2)]
for t in threads: t.start()
end = time.monotonic() + 3
tried = made = 0
while time.monotonic() < end or (time.monotonic() < end + 30 and (tried <= 50 or made == 0)):
    tried += 1
    made += libc.connect(number, place, len(unix)) == 0 or ctypes.get_errno() == 115
done.append(1)
for t in threads: t.join()
print('tried', tried > 50, 'made', made > 0)
";

#[test]
fn another_socket_or_address_in_the_place_of_the_first_leads_nowhere() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let path = world.outside.join("socket");
        let server = UnixServer::at(&path);
        world.write("swaps.py", SWAPS);
        let command = [PYTHON, "swaps.py", path.to_str().unwrap()];
        run(world, &["-q", "--net", "host"], &command).run().success().prints("tried True made True\n");
        assert_eq!(server.connections(), 0);
        world.bare(["rm", "own.sock"]).run().success();
        world.bare(command).run().success();
        assert!(server.connections() > 0);
    });
}

/// Prints how connections to servers with full queues, and others, end.
const SEMANTICS: &str = "
import ctypes, errno, os, signal, socket, struct, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def address(port): return struct.pack('=H', socket.AF_INET) + struct.pack('>H', port) + b'\\x7f\\0\\0\\1' + bytes(8)
def connect(s, to):
    start = time.monotonic()
    number = s if isinstance(s, int) else s.fileno()
    result = libc.connect(number, to, len(to))
    code = errno.errorcode[ctypes.get_errno()] if result else 'done'
    return code, round((time.monotonic() - start) * 2) / 2
def timeout(s, seconds): s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, int(seconds * 1e6)))
# It comes again: on a busy machine the first may come before the call.
def alarm(restarts, after, again=2):
    signal.siginterrupt(signal.SIGALRM, not restarts)
    signal.setitimer(signal.ITIMER_REAL, after, again)
signal.signal(signal.SIGALRM, lambda *_: None)
full = socket.socket(); full.bind(('127.0.0.1', 0)); full.listen(0)
to = address(full.getsockname()[1])
fill = []
for _ in range(4):
    s = socket.socket(); s.setblocking(False); s.connect_ex(full.getsockname()); fill.append(s)
time.sleep(0.2)
s = socket.socket(); alarm(False, 1); print('signal', connect(s, to))
alarm(False, 1); print('signal again', connect(s, to))
s = socket.socket(); timeout(s, 0.5); print('timeout', connect(s, to))
s = socket.socket(); timeout(s, 0.9); alarm(True, 0.5); print('signal before timeout', connect(s, to))
s = socket.socket(); s.setblocking(False); print('at once', connect(s, to), connect(s, to))
child = os.fork()
if not child:
    time.sleep(1)
    while True: full.accept()
s = socket.socket(); alarm(True, 0.3, 0.1); code = connect(s, to); alarm(True, 0); print('restarted', code[0], code[1] >= 0.5)
os.kill(child, 9); os.waitpid(child, 0)
free = socket.create_server(('127.0.0.1', 0)); nobody = free.getsockname()[1]; free.close()
print('refused', connect(socket.socket(), address(nobody)))
print('no descriptor', connect(-1, to), 'no socket', connect(os.open('/dev/null', os.O_RDONLY), to))
print('short', connect(socket.socket(), to[:4]), 'other family', connect(socket.socket(socket.AF_INET6), to))
s = socket.socket(type=socket.SOCK_DGRAM); print('datagrams', connect(s, to), connect(s, bytes(16)))
path = struct.pack('=H', socket.AF_UNIX) + b'full.sock\\0'
server = socket.socket(socket.AF_UNIX); server.bind('full.sock'); server.listen(0)
first = socket.socket(socket.AF_UNIX); print('unix', connect(first, path))
s = socket.socket(socket.AF_UNIX); s.setblocking(False); print('unix at once', connect(s, path))
s = socket.socket(socket.AF_UNIX); timeout(s, 0.5); print('unix timeout', connect(s, path))
s = socket.socket(socket.AF_UNIX); alarm(False, 0.5); print('unix signal', connect(s, path))
s = socket.socket(socket.AF_UNIX); threading.Timer(0.5, server.accept).start(); print('unix waits', connect(s, path))
print('unix missing', connect(socket.socket(socket.AF_UNIX), struct.pack('=H', socket.AF_UNIX) + b'missing\\0'))
print('unix with another address', connect(socket.socket(socket.AF_UNIX), to))
";

#[test]
fn connections_wait_fail_and_end_as_without_a_sandbox() {
    promise!(namespaces);
    in_worlds(|world| {
        world.write("semantics.py", SEMANTICS);
        let bare = world.bare([PYTHON, "-u", "semantics.py"]).run().success().out();
        assert!(bare.contains("signal ('EINTR', 1.0)") && bare.contains("restarted done True"), "{bare}");
        let same = |flags: [&str; 2]| {
            std::fs::remove_file(world.path("full.sock")).unwrap();
            let out = run(world, &flags, &[PYTHON, "-u", "semantics.py"]).run().success().out();
            // In a private network a socket that is not of it is refused before the kernel has an error for it.
            let private = |text: &str| {
                let own = |line: &&str| !line.starts_with("no descriptor") && !line.starts_with("unix with");
                text.lines().filter(own).map(str::to_owned).collect::<Vec<_>>()
            };
            let same = if flags[1] == "host" { out == bare } else { private(&out) == private(&bare) };
            if same { Ok(()) } else { Err(format!("{flags:?}: {out}\n{bare}")) }
        };
        for flags in [["--net", "host"], ["--net", "private"]] {
            // Half a second may become a whole one on a busy machine.
            same(flags).or_else(|_| same(flags)).or_else(|_| same(flags)).unwrap();
        }
        let own = "import socket; s = socket.socket(socket.AF_UNIX); s.bind('one.sock'); s.listen(0)\n\
                   a, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)\n\
                   a.connect('one.sock'); b.setblocking(False); print(b.connect_ex('one.sock'))";
        run(world, &[], &[PYTHON, "-c", own]).run().success().prints("11\n");
    });
}

/// Threads that wait for a server with a full queue, and one that goes on.
const BLOCKED: &str = "
import os, signal, socket, sys, threading, time
full = socket.socket(); full.bind(('127.0.0.1', 0)); full.listen(0)
fill = []
for _ in range(4):
    s = socket.socket(); s.setblocking(False); s.connect_ex(full.getsockname()); fill.append(s)
time.sleep(0.2)
ended = []
def block():
    s = socket.socket(); ended.append(s.connect_ex(full.getsockname()))
for _ in range(int(sys.argv[1])): threading.Thread(target=block, daemon=True).start()
time.sleep(1)
others = socket.create_server(('127.0.0.1', 0), backlog=100)
start = time.monotonic()
for _ in range(20):
    s = socket.socket(); s.setblocking(sys.argv[2] == 'waits'); s.connect_ex(others.getsockname())
    others.accept()
print(len(ended), time.monotonic() - start < 5, flush=True)
if sys.argv[2] == 'at-once': os._exit(0)
time.sleep(1000)
";

#[test]
fn connections_that_wait_hold_nobody_else_up() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        world.write("blocked.py", BLOCKED);
        let command = |count: &'static str, how: &'static str| [PYTHON, "blocked.py", count, how];
        let running = run(world, &["--net", "host", "--kill-after", "1s"], &command("100", "waits")).start();
        running.wait_for("True\n");
        let start = Instant::now();
        running.signal(libc::SIGTERM);
        running.wait().exited(143).prints("0 True\n");
        assert!(start.elapsed() < Duration::from_secs(20));
        // More than threads that are kept for those that wait; the rest fails. Those that do not wait go on.
        let out = run(world, &["--net", "host"], &command("300", "at-once")).run().success();
        if kernel::landlock() < 9 {
            assert_eq!(out.out(), "44 True\n");
        }
    });
}

#[test]
fn datagrams_go_by_internet_sockets_alone() {
    promise!(kernel::PATHS);
    let unix =
        "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', sys.argv[1])";
    let pair =
        "import socket, sys; a, b = socket.socketpair(type=socket.SOCK_DGRAM); a.sendto(b'x', sys.argv[1])";
    let internet = "\
import socket
a, b, c = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(3))
a.bind(('127.0.0.1', 0)); a.settimeout(10)
b.sendto(b'x', a.getsockname()); c.connect(a.getsockname()); c.send(b'y')
print(sorted(a.recv(9) for _ in range(2)))
";
    in_worlds(|world| {
        let place = world.outside.join("log");
        let server = UnixDatagram::bind(&place).unwrap();
        std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        server.set_nonblocking(true).unwrap();
        // Sequenced-packet sockets stand in for a pair, and send to each other whatever address a message has.
        for (program, is_made) in [(unix, false), (pair, true)] {
            let command = [PYTHON, "-c", program, place.to_str().unwrap()];
            let out = run(world, &["--net", "host"], &command).run();
            if is_made {
                out.success()
            } else {
                out.failed()
            };
            assert!(server.recv(&mut [0; 8]).is_err());
            world.bare(command).run().success();
            assert!(server.recv(&mut [0; 8]).is_ok());
        }
        run(world, &["--net", "host"], &[PYTHON, "-c", internet]).run().success().prints("[b'x', b'y']\n");
    });
}

#[test]
fn a_port_that_is_not_named_is_refused_and_said() {
    promise!(kernel::TCP_PORTS);
    let (named, other) = (HttpServer::start(), HttpServer::start());
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let flag = format!("*:{}", named.port);
        let to =
            |port: u16| run(world, &["--connect", &flag], &[&attempt, "connect", &port.to_string()]).run();
        to(named.port).success().silent();
        let out = to(other.port).exited(1);
        if kernel::landlock() < 9 {
            let hint = format!("--connect '*:{}'", other.port);
            assert!(out.sbx_lines().iter().any(|line| line.contains(&hint)), "{out}");
        }
    });
    assert_eq!(other.connections(), 0);
    assert!(named.connections() > 0);
}

#[test]
fn a_program_that_closes_itself_to_others_keeps_its_network() {
    promise!(kernel::PATHS);
    let server = HttpServer::start();
    let program = format!(
        "import ctypes, socket\nassert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\n\
         socket.create_connection(('127.0.0.1', {})); print('connected')",
        server.port
    );
    in_worlds(|world| {
        for flags in [&["--net", "host"][..], &["--net", "host", "--namespaces", "none", "-q"]] {
            run(world, flags, &[PYTHON, "-c", &program]).run().success().prints("connected\n");
        }
    });
}

#[test]
fn where_no_socket_can_be_taken_the_network_is_as_before() {
    promise!(kernel::PATHS);
    need!("curl");
    let server = HttpServer::start();
    in_worlds(|world| {
        let own = "import socket; socket.socket(socket.AF_UNIX)";
        let curl = ["curl", "-sS", &server.url()];
        run(world, &["--net", "host"], &curl).docker().run().success().prints(BODY);
        run(world, &["--net", "host", "--exec"], &curl).run().success().prints(BODY);
        if kernel::landlock() < 9 {
            for run in [run(world, &["--net", "host"], &[PYTHON, "-c", own]).docker()]
                .into_iter()
                .chain([run(world, &["--net", "host", "--exec"], &[PYTHON, "-c", own])])
            {
                run.run().failed().says("Address family not supported");
            }
            let socket = world.path("s.sock");
            let _server = UnixServer::at(&socket);
            let flags = ["--net", "host", "--unix", "s.sock"];
            run(world, &flags, &["true"]).docker().run().refused(125, &["one UNIX socket", "open network"]);
        }
    });
}

#[test]
fn what_flags_deny_the_supervisor_does_not_do_either() {
    promise!(kernel::TCP_PORTS);
    let server = HttpServer::start();
    let listens =
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('l.sock'); s.listen(); print('listens')";
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let socket = world.path("s.sock");
        let inside = UnixServer::at(&socket);
        let port = server.port.to_string();
        for network in [&["--net", "host"][..], &["--connect", &format!("*:{port}")], &[]] {
            let denied = [network, &["--deny-calls", "connect"]].concat();
            run(world, &denied, &[&attempt, "connect", &port]).run().exited(1);
            run(world, &denied, &[&attempt, "connect-unix", "s.sock"]).run().exited(1);
            let denied = [network, &["--deny-calls", "listen"]].concat();
            let _ = std::fs::remove_file(world.path("l.sock"));
            run(world, &denied, &[PYTHON, "-c", listens]).run().failed().prints("");
            let _ = std::fs::remove_file(world.path("l.sock"));
            run(world, network, &[PYTHON, "-c", listens]).run().success().prints("listens\n");
        }
        assert_eq!((server.connections(), inside.connections()), (0, 0));
        run(world, &["--net", "host"], &[&attempt, "connect-unix", "s.sock"]).run().success();
        // A client that may use one socket waits for no connections.
        let _ = std::fs::remove_file(world.path("l.sock"));
        let client = ["-p", "network", "--rw", ".", "--unix", "s.sock"];
        run(world, &client, &[PYTHON, "-c", listens]).run().failed().prints("");
    });
}
