//! Ports: of the run's own servers, of this machine's inside, of the run's outside; and how a connection fails.

use super::in_internets;

#[test]
fn servers_of_the_run_are_as_they_were() {
    in_internets(|internet| {
        let serve = "import socket, threading\nserver = socket.create_server((\"0.0.0.0\", 443))\n\
                     def one():\n c, _ = server.accept()\n c.sendall(b\"own\")\n c.close()\n\
                     threading.Thread(target=one).start()\n\
                     print(socket.create_connection((\"127.0.0.1\", 443)).recv(9))";
        let out = internet.run(&format!("$SBX --connect allowed.example -- /usr/bin/python3 -c '{serve}'"));
        out.success().prints("b'own'\n");
        assert_eq!(internet.log, "");
    });
}

#[test]
fn a_port_of_this_machine_is_brought_inside() {
    in_internets(|internet| {
        let curl = "-- curl -sS http://127.0.0.1/";
        internet.run(&format!("$SBX --host-port 80 {curl}")).success().prints("hello from 127.0.0.1\n");
        internet.run(&format!("$SBX --host-port 443 {curl}")).failed();
        internet.saw_nothing_of("connection");
        // It is at 127.0.0.1 and ::1. At other addresses of loopback the run may have servers of its own.
        let own = "import socket\nserver = socket.create_server((\"127.0.0.2\", 80))\n\
                   client = socket.create_connection((\"127.0.0.2\", 80))\n\
                   server.accept()[0].sendall(b\"own\")\nprint(client.recv(9))";
        let out = internet.run(&format!("timeout 60 $SBX --host-port 80 -- /usr/bin/python3 -c '{own}'"));
        out.success().prints("b'own'\n");
    });
}

/// What is sent stays on this machine, and is not held back by a clock for other machines' sake (bbr). In a network
/// without a way out it is as outside.
#[test]
fn what_goes_to_the_broker_is_not_paced() {
    in_internets(|internet| {
        let ask =
            "import socket\nprint(socket.socket().getsockopt(6, socket.TCP_CONGESTION, 16).rstrip(b\"\\0\"))";
        let outside = internet.run(&format!("/usr/bin/python3 -c '{ask}'")).out();
        for (flags, is_reno) in [("--host-port 80", true), ("--connect allowed.example", true), ("", false)] {
            let out = internet.run(&format!("$SBX {flags} -- /usr/bin/python3 -c '{ask}'"));
            out.success().prints(if is_reno { "b'reno'\n" } else { &outside });
        }
    });
}

/// At loopback, and at no other address of this machine.
#[test]
fn a_port_of_the_run_is_shown_on_this_machine() {
    in_internets(|internet| {
        let serve = |flags: &str, then: &str| {
            format!(
                "$SBX {flags} -- sh -c 'echo served > page; exec /usr/bin/python3 -m http.server -b 127.0.0.1 3000' \
                 2> said & n=0; until curl -s http://127.0.0.1:8080/page || test $n -gt 60; do n=$((n+1)); \
                 kill -0 $! || break; sleep 0.05; done; {then}; kill $!; wait; cat said >&2; true"
            )
        };
        let more = "curl -s 'http://[::1]:8080/page'; curl -s http://203.0.113.10:8080/page || echo no; \
                    curl -s http://127.0.0.1:3000/page || echo no";
        let out = internet.run(&serve("--publish 8080:3000 --report report.json", more));
        out.prints("served\nserved\nno\nno\n");
        let report = internet.world.read("report.json").unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let used = &report["network"]["published"][0];
        assert_eq!((&used["port"], &used["inside"]), (&8080.into(), &3000.into()));
        // The run's server answers, so it is the run that sends a page.
        let (sent, received) = (used["sent"].as_u64().unwrap(), used["received"].as_u64().unwrap());
        assert!(used["connections"].as_u64().unwrap() >= 2 && sent > received && received > 50, "{used}");
        assert!(used["first"].as_str().unwrap() <= used["last"].as_str().unwrap(), "{used}");
        let out = internet.run(&serve("--publish 8080:3000 --connect allowed.example:80", "true"));
        out.prints("served\n");
        internet.run("$SBX --publish 8080:3000 --report report.json -- true").success();
        let unused = internet.world.read("report.json").unwrap();
        assert!(unused.contains(r#""connections":0"#) && unused.contains(r#""first":null"#), "{unused}");
        internet.run(&serve("", "true")).prints("");
        internet.run(&serve("--publish 80:3000", "true")).says("cannot show port 3000 of the run").says(
            "in use, because another program listens there; to show it at another, --publish OTHER:3000",
        );
        internet.run(&serve("--publish 8080:3000 --publish 8080:3000", "true")).prints("served\n");
        for (flags, why) in [
            ("--publish 8080 -p minimal", "'minimal' it has no network"),
            ("--publish 8080 -p network", "this machine's network"),
            ("--publish 8080 --net host", "contradict"),
            ("--publish 8080:", "not PORT or PORT:PORT"),
            ("--publish 8080 --host-port 8080", "would lead in a circle"),
            ("--publish 1:2 --publish 2:1 --host-port 1", "would lead in a circle"),
            ("--publish 8080:1 --publish 8080:2", "names port 8080 of this machine twice"),
        ] {
            internet.run(&format!("$SBX {flags} -- touch ran")).refused(125, &[why]);
            assert!(!internet.world.exists("ran"));
        }
    });
}

/// What serves the ports is confined, and ends with the run.
#[test]
fn if_the_publisher_is_killed_the_ports_are_closed() {
    in_internets(|internet| {
        let out = internet.run(
            "rm -f started go; $SBX --publish 8080:3000 -- sh -c ': > started; n=0; until test -e go || \
             test $n -gt 200; do n=$((n+1)); sleep 0.05; done' & \
             n=0; killed=; own=$(readlink /proc/self/ns/net); \
             until test \"$killed\" || test $n -gt 200; do n=$((n+1)); sleep 0.05; test -e started || continue; \
             for child in $(pgrep -P $!); do test \"$(cat /proc/$child/task/$child/children)\" || \
             test \"$(readlink /proc/$child/ns/net)\" = \"$own\" || \
             { kill -KILL $child && killed=1; break; }; done; done; sleep 0.2; \
             curl -s http://127.0.0.1:8080/; echo $?; : > go; wait $!",
        );
        out.prints("7\n").says("the process for --publish has ended: the ports are closed");
    });
}

/// A server that resets a connection before it has read anything sends no end in order.
#[test]
fn a_reset_arrives_as_one() {
    in_internets(|internet| {
        let ask = "import collections, socket\nseen = collections.Counter()\n\
            for timeout in (None, 9) * 100:\n\
            \x20   client = socket.socket()\n\
            \x20   client.settimeout(timeout)\n\
            \x20   try:\n\
            \x20       client.connect((\"allowed.example\", 11))\n\
            \x20       client.sendall(b\"x\")\n\
            \x20       seen[client.recv(9)] += 1\n\
            \x20   except OSError as error: seen[error.strerror] += 1\n\
            print(dict(seen))";
        let by_all = "{'Connection reset by peer': 200}\n";
        internet.run(&format!("/usr/bin/python3 -c '{ask}'")).success().prints(by_all);
        let inside =
            internet.run(&format!("$SBX --connect allowed.example:11 -- /usr/bin/python3 -c '{ask}'"));
        inside.success().prints(by_all);
    });
}

/// A call that waits has the error of the host outside, and the socket can be connected again.
#[test]
fn a_connection_fails_as_it_does_outside() {
    in_internets(|internet| {
        let connect = r#"import ctypes, errno, signal, socket, struct, time
def address(name):
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", 80, socket.inet_aton(socket.gethostbyname(name)))
def connect(s, name, port=80):
    try: s.connect((name, port)); return "made"
    except OSError as error: return errno.errorcode[error.errno]
s = socket.socket()
print(connect(s, "closed.example"), connect(s, "missing.allowed.example"), connect(s, "allowed.example"))
s.sendall(b"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
print(s.makefile().readline().strip())
print(connect(socket.socket(), "127.0.0.1", 4), connect(socket.socket(), "private.example"))
def late(*_): raise TimeoutError(errno.ETIME, "")
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.5)
begun = time.monotonic()
print(connect(socket.socket(), "silent.example"), time.monotonic() - begun < 2)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
s = socket.socket()
slow = address("slow.example")
begun = time.monotonic()
print(ctypes.CDLL(None, use_errno=True).connect(s.fileno(), slow, 16), time.monotonic() - begun > 0.8)
signal.setitimer(signal.ITIMER_REAL, 0)
s.sendall(b"GET / HTTP/1.1\r\nHost: slow.example\r\n\r\n")
print(s.makefile().readline().strip())
s = socket.socket()
s.setblocking(False)
begun = time.monotonic()
print(s.connect_ex(("silent.example", 80)) in (0, errno.EINPROGRESS), time.monotonic() - begun < 1)
"#;
        internet.world.write("connect.py", connect);
        let rules = "--connect '*.example:80' --host-port 4";
        let out = internet.run(&format!("$SBX {rules} -- /usr/bin/python3 connect.py"));
        out.success().prints(
            "ECONNREFUSED EHOSTUNREACH made\nHTTP/1.1 200 OK\nECONNREFUSED ECONNREFUSED\nETIME True\n0 True\nHTTP/1.1 200 OK\nTrue True\n",
        );
    });
}
