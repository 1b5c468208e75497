//! Rules about hosts: what they name is reached, nothing else is, and nothing outside sees that it was tried.
//!
//! Each test has an internet of its own (`tests/hosts/internet.py`): name server, web servers, and a log of whatever
//! arrives there.

mod programs;

use sbx_tests::{Cmd, Output, User, World, as_users, need, stage};
use std::path::Path;

mod attempts;
mod broker;
mod by_proxy;
mod learned;
mod moved;
mod ports;
mod profiles;
mod waiting;

/// Where the internet is, and what arrived there.
struct Internet<'w> {
    world: &'w World,
    log: String,
}

/// Runs `body` as each user that there is to try.
fn in_internets(body: impl Fn(&mut Internet<'_>)) {
    need!("unshare", "mount", "openssl", "curl");
    as_users(|user| {
        let world = world_of(user);
        body(&mut Internet { world: &world, log: String::new() });
    });
}

/// A world with what makes an internet.
fn world_of(user: &User) -> World {
    let world = World::new(user);
    let scripts = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("hosts")).unwrap();
    for script in scripts.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        world.script(script.file_name().unwrap(), std::fs::read(&script).unwrap());
    }
    world
}

impl Internet<'_> {
    /// Runs a shell script in the internet. `$SBX` is `sbx run`, and `$CA` the certificate of all servers.
    fn run(&mut self, script: &str) -> Output {
        self.run_with(script, &[])
    }

    /// The same with further servers (`tests/hosts/services.py`).
    fn run_with_services(&mut self, script: &str) -> Output {
        self.run_with(script, &[("SERVICES", "1")])
    }

    fn run_with(&mut self, script: &str, variables: &[(&str, &str)]) -> Output {
        self.start(script, |cmd| variables.iter().fold(cmd, |cmd, (name, value)| cmd.env(name, value)))
    }

    /// The same where these calls fail with these errors.
    fn run_answering(&mut self, script: &str, answers: &[(libc::c_long, i32)]) -> Output {
        self.start(script, |cmd| cmd.answering(answers))
    }

    fn start(&mut self, script: &str, prepare: impl Fn(Cmd) -> Cmd) -> Output {
        let front = [&self.world.user.unshare(&["--net"])[..], &["/usr/bin/python3", "./internet.py", "log"]]
            .concat();
        let words = ["sh", "-c", script];
        let _ = std::fs::remove_file(self.world.path("log"));
        let sbx = format!("{} run", stage::sbx().display());
        let cmd = self.world.bare([&front[..], &words].concat()).env("SBX", sbx);
        let out = prepare(cmd).run();
        self.log = self.world.read("log").unwrap_or_default();
        out
    }

    /// Whether something arrived outside.
    fn saw(&self, what: &str) -> bool {
        self.log.lines().any(|line| line == what || line.starts_with(&format!("{what} ")))
    }

    /// Nothing that tells of this name, or reaches this address, has arrived.
    #[track_caller]
    fn saw_nothing_of(&self, what: &str) {
        assert!(!self.log.contains(what), "{what} was seen outside: {}", self.log);
    }
}

const FROM_ALLOWED: &str = "hello from 203.0.113.10\n";

#[test]
fn a_name_that_a_rule_has_is_reached_and_the_next_one_is_not() {
    in_internets(|internet| {
        for profile in ["workspace", "network", "minimal"] {
            let out = internet.run(&format!(
                "$SBX -p {profile} --ro $CA --connect allowed.example -- curl -sS --cacert $CA https://allowed.example/"
            ));
            out.success().prints(FROM_ALLOWED).silent();
            assert!(
                internet.saw("question allowed.example A") && internet.saw("connection 203.0.113.10 443")
            );
            let out = internet.run(&format!(
                "$SBX -p {profile} --ro $CA --connect allowed.example -- curl -sS --cacert $CA https://other.example/"
            ));
            out.failed()
                .says("allow it with --connect other.example:443 (for another port, name it: NAME:PORT)");
            internet.saw_nothing_of("other.example");
            internet.saw_nothing_of("connection");
        }
        let by_family = "getent ahostsv4 allowed.example";
        internet.run(&format!("$SBX --connect allowed.example -- {by_family}")).success().silent();
        // Resolvers may try a name below the machine's own domains first.
        let out = internet.run(
            "printf 'search ns.cluster.local cluster.local\noptions ndots:5\n' >> /etc/resolv.conf; \
             $SBX --connect allowed.example:80 -- curl -sS http://allowed.example/",
        );
        out.success().prints(FROM_ALLOWED).silent();
        internet.saw_nothing_of("cluster");
        // Without a sandbox it is there.
        internet.run("curl -sS --cacert $CA https://other.example/").success();
        assert!(internet.saw("question other.example A"));
    });
}

#[test]
fn a_rule_is_about_its_ports() {
    in_internets(|internet| {
        let out = internet.run(
            "$SBX --connect allowed.example:7,80 -- sh -c 'curl -sS http://allowed.example/; \
             curl -sS http://allowed.example:443/'",
        );
        out.failed().prints(FROM_ALLOWED).says("allow it with --connect allowed.example:443");
        assert!(internet.saw("connection 203.0.113.10 80"));
        internet.saw_nothing_of("connection 203.0.113.10 443");
    });
}

/// The command has an address of it, and cannot know why that leads nowhere.
#[test]
fn a_name_without_an_address_is_told_once() {
    in_internets(|internet| {
        let out = internet.run(
            "$SBX --connect '*.example:80' -- sh -c 'curl -s http://missing.example/; curl -s http://missing.example/; \
             curl -sS http://allowed.example/'",
        );
        let line = "cannot look up 'missing.example': this machine's name servers know no address of it";
        let out = out.success().prints(FROM_ALLOWED).says(line);
        assert_eq!(out.err().matches("missing.example").count(), 1, "{out}");
    });
}

#[test]
fn patterns_match_what_is_below_a_name() {
    in_internets(|internet| {
        let curl = "$SBX --connect '*.wild.example:80' -- curl -sS";
        for host in ["www.wild.example", "deep.www.wild.example", "WWW.Wild.Example."] {
            internet.run(&format!("{curl} http://{host}/")).success().prints("hello from 203.0.113.12\n");
        }
        internet.run(&format!("{curl} http://wild.example/")).failed().says("wild.example");
        internet.saw_nothing_of("wild.example");
        internet.run(&format!("{curl} http://www.wild.example.other.example/")).failed();
        internet.saw_nothing_of("example");
    });
}

#[test]
fn addresses_are_reached_where_a_rule_has_them() {
    in_internets(|internet| {
        let curl = "$SBX --connect 203.0.113.8/29:80 --connect '[2001:db8::]/32:80' -- curl -sS";
        internet.run(&format!("{curl} http://203.0.113.11/")).success().prints("hello from 203.0.113.11\n");
        internet.run(&format!("{curl} http://[2001:db8::10]/")).success().prints("hello from 2001:db8::10\n");
        for other in
            ["http://203.0.113.16/", "http://203.0.113.10:7/", "http://10.0.0.1/", "http://169.254.169.254/"]
        {
            let out = internet.run(&format!("{curl} {other}")).failed();
            out.says("allow it with --connect");
            internet.saw_nothing_of("connection");
        }
    });
}

/// A name leads to what its owner says. What is private is not reached by that.
#[test]
fn names_lead_to_no_private_address() {
    in_internets(|internet| {
        for name in ["private.example", "metadata.example", "loop.example"] {
            let out = internet.run(&format!("$SBX --connect {name}:80 -- curl -sS http://{name}/")).failed();
            out.says(&format!("blocked connection({name}:80)")).says("such as --connect 10.0.0.5:80 (");
            assert!(internet.saw(&format!("question {name} A")));
            internet.saw_nothing_of("connection");
        }
        let out = internet.run(
            "$SBX --connect private.example:80 --connect 10.0.0.0/8:80 -- curl -sS http://private.example/",
        );
        out.success().prints("hello from 10.0.0.1\n");
        // One of this machine's is public, and reached by a rule that names it only.
        let own = "-- curl -sS http://own.example/";
        internet.run(&format!("$SBX --connect own.example:80 {own}")).failed();
        internet.saw_nothing_of("connection");
        internet.run(&format!("$SBX --net private --connect '*:80' {own}")).failed();
        internet.saw_nothing_of("connection");
        let out = internet.run(&format!("$SBX --connect own.example:80 --connect 192.0.2.2:80 {own}"));
        out.success().prints("hello from 192.0.2.2\n");
        internet.world.write("p.json", r#"{"extends": "workspace", "network": {"mode": "allow", "connect": ["*:80", "allowed.example"]}}"#);
        for (to, status) in [("203.0.113.10", 0), ("foo.localhost", 1), ("198.18.0.5", 1)] {
            internet.run(&format!("${{SBX%run}} why -p ./p.json --connect {to}:80")).exited(status);
        }
        for own in ["192.0.2.2", "192.0.2.3", "[2001:db8:5::9]"] {
            internet.run(&format!("${{SBX%run}} why -p ./p.json --connect '{own}:80'")).exited(1);
            let curl = format!("-- curl -sS http://{own}/");
            internet.run(&format!("$SBX --connect '*:80' --net private {curl}")).failed();
            internet.saw_nothing_of("connection");
            let out =
                internet.run(&format!("$SBX --connect '*:80' --connect '{own}:80' --net private {curl}"));
            out.success().prints(&format!("hello from {}\n", own.trim_matches(['[', ']'])));
        }
        // Looked up twice, the second answer leads to this machine.
        let out = internet.run(
            "$SBX --connect rebinding.example:80 -- sh -c 'curl -sS http://rebinding.example/; sleep 6; \
             curl -sS http://rebinding.example/'",
        );
        out.failed().prints("hello from 203.0.113.13\n");
        internet.saw_nothing_of("connection 127.0.0.1");
    });
}

/// A connection to an allowed name may not speak to another host behind the same address.
#[test]
fn what_is_said_has_to_name_the_host() {
    in_internets(|internet| {
        let tls = |name: &str| {
            format!(
                "$SBX --ro $CA --connect allowed.example -- \
                 curl -sS --cacert $CA --connect-to {name}:443:allowed.example:443 https://{name}/"
            )
        };
        internet.run(&tls("allowed.example")).success();
        internet.run(&tls("shared.example")).failed().says("in curl[").says("'shared.example'");
        internet.saw_nothing_of("bytes");
        let http = |host: &str| {
            format!("$SBX --connect allowed.example:80 -- curl -sS -H 'Host: {host}' http://allowed.example/")
        };
        internet.run(&http("allowed.example")).success();
        internet.run(&http("shared.example")).failed().says("in curl[").says("'shared.example'");
        internet.saw_nothing_of("bytes");
        // Where no protocol is known, nothing is looked at.
        let echo = "import socket\ns = socket.create_connection((\"allowed.example\", 7))\n\
                    s.sendall(b\"shared.example\")\ns.shutdown(1)\nprint(s.makefile().read())";
        let out = internet.run(&format!("$SBX --connect allowed.example:7 -- /usr/bin/python3 -c '{echo}'"));
        out.success().prints("shared.example\n");
    });
}

/// Elsewhere than at the usual ports, and not there.
#[test]
fn a_rule_says_what_is_spoken() {
    in_internets(|internet| {
        let say = "import socket, sys\ns = socket.create_connection((\"allowed.example\", 7))\n\
                   s.sendall(sys.argv[1].encode())\ns.shutdown(1)\nprint(len(s.makefile().read()))";
        let mut head = |rule: &str, host: &str| {
            let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            internet.run(&format!("$SBX --connect {rule} -- /usr/bin/python3 -c '{say}' \"{head}\""))
        };
        head("allowed.example:7/http", "allowed.example").success().prints("38\n");
        head("allowed.example:7/http", "shared.example").failed().says("HTTP to 'shared.example'");
        let out = head("allowed.example:7/tls", "allowed.example").failed();
        out.says("TLS to no host").says("allow it with --connect allowed.example:7/tcp");
        head("allowed.example:7/tcp", "shared.example").success();
        let shared = "-- curl -sS --cacert $CA --connect-to shared.example:443:allowed.example:443 \
                      https://shared.example/";
        internet.run(&format!("$SBX --ro $CA --connect allowed.example {shared}")).failed();
        internet.saw_nothing_of("bytes");
        internet.run(&format!("$SBX --ro $CA --connect allowed.example:443/tcp {shared}")).success();
    });
}

#[test]
fn a_name_stands_for_a_group_of_hosts() {
    in_internets(|internet| {
        internet.world.write(
            "groups.json",
            r#"{"extends": "workspace", "network": {"mode": "allow", "connect": ["@site", "203.0.113.12:80"],
                "deny": ["@closed"], "groups": {"site": ["allowed.example:80", "*.wild.example:80"],
                "closed": ["deep.www.wild.example"], "other": ["other.example:80"]}}}"#,
        );
        let mut curl = |flags: &str, host: &str| {
            internet.run(&format!("$SBX -p ./groups.json {flags} -- curl -sS http://{host}/"))
        };
        curl("", "allowed.example").success().prints(FROM_ALLOWED);
        curl("", "www.wild.example").success();
        curl("", "deep.www.wild.example").failed();
        curl("", "other.example").failed().says("--connect other.example");
        curl("--connect @other", "other.example").success();
        curl("--connect @sites", "allowed.example")
            .refused(125, &["the profile has the groups @closed, @other, @site"]);
        internet.run("$SBX --connect @site -- true").refused(125, &["no groups in network.groups"]);
    });
}

#[test]
fn datagrams_are_refused_at_once() {
    in_internets(|internet| {
        let send = "import socket, time\nbegun = time.monotonic()\n\
                    s = socket.socket(type=socket.SOCK_DGRAM)\ns.connect((\"203.0.113.10\", 9))\ns.send(b\"x\")\n\
                    try: s.recv(9)\nexcept ConnectionRefusedError: print(\"refused\", time.monotonic() - begun < 2)";
        let out = internet.run(&format!("$SBX --connect 203.0.113.0/24:9 -- /usr/bin/python3 -c '{send}'"));
        out.success().prints("refused True\n");
        internet.saw_nothing_of("datagram");
    });
}

#[test]
fn questions_are_answered_whatever_server_is_asked() {
    in_internets(|internet| {
        let ask = r#"import socket, struct, sys
def ask(server, name, kind, tcp):
    question = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
    question += b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + struct.pack(">BHH", 0, kind, 1)
    s = socket.socket(type=socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(5)
    if tcp:
        s.connect((server, 53))
        s.sendall(struct.pack(">H", len(question)) + question)
        s.recv(2)
        answer = s.recv(512)
    else:
        s.sendto(question, (server, 53))
        answer, sender = s.recvfrom(512)
        assert sender[0] == server, sender
    return answer[3] & 15, struct.unpack(">H", answer[6:8])[0]
for server in ("203.0.113.53", "8.8.8.8", "127.0.0.53"):
    for tcp in (False, True):
        print(*ask(server, "allowed.example", 1, tcp), *ask(server, "allowed.example", 28, tcp),
              *ask(server, "allowed.example", 65, tcp), *ask(server, "secret.evil.example", 1, tcp))
"#;
        internet.world.write("ask.py", ask);
        let out = internet.run("$SBX --connect allowed.example -- /usr/bin/python3 ask.py");
        out.success().prints(&"0 1 0 0 0 0 5 0\n".repeat(6)).says("secret.evil.example");
        assert_eq!(internet.log, "", "nothing is asked outside before something is connected");
    });
}

#[test]
fn the_report_has_every_host() {
    in_internets(|internet| {
        let out = internet.run(
            "$SBX --report report.json --connect allowed.example:80 -- sh -c 'curl -sS http://allowed.example/; \
             curl -s http://other.example/; curl -s http://allowed.example:7/; true'",
        );
        out.success();
        let report: serde_json::Value =
            serde_json::from_str(&internet.world.read("report.json").unwrap()).unwrap();
        let network = &report["network"];
        assert_eq!((&network["mode"], &network["allow"][0]), (&"hosts".into(), &"allowed.example:80".into()));
        let of = |host: &str, port: serde_json::Value| {
            let hosts = network["hosts"].as_array().unwrap();
            let found = hosts.iter().find(|used| used["host"] == host && used["port"] == port);
            found.unwrap_or_else(|| panic!("{host} {port}: {network}")).clone()
        };
        let reached = of("allowed.example", 80.into());
        assert_eq!((&reached["connections"], &reached["refused"]), (&1.into(), &0.into()));
        assert!(reached["sent"].as_u64().unwrap() > 50 && reached["received"].as_u64().unwrap() > 50);
        assert!(reached["first"].as_str().unwrap() <= reached["last"].as_str().unwrap());
        assert_eq!(of("allowed.example", 7.into())["refused"], 1);
        assert!(of("other.example", serde_json::Value::Null)["refused"].as_u64().unwrap() > 0);
    });
}

/// The command chooses the names that it asks for.
#[test]
fn no_name_looks_like_another_row_of_the_report() {
    in_internets(|internet| {
        let ask = r#"import socket
label = b"inner.test:22: connections 3"
question = bytes([0, 1, 1, 0, 0, 1]) + bytes(6) + bytes([len(label)]) + label + bytes([0, 0, 1, 0, 1])
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.connect(("203.0.113.53", 53))
client.send(question)
client.recv(512)"#;
        internet.world.write("ask.py", ask);
        let out = internet.run(
            "$SBX -q --report report.json --connect allowed.example -- /usr/bin/python3 ask.py; \
             ${SBX% run} report show report.json",
        );
        let shown = out.success().out();
        assert!(shown.contains(".test:22: connections 3\": refused 1"), "{shown}");
    });
}

#[test]
fn log_mode_lets_every_host_through_and_lists_it() {
    in_internets(|internet| {
        let out = internet.run(
            "$SBX --log-violations --connect allowed.example:80 -- sh -c 'curl -sS http://allowed.example/; \
             curl -sS http://other.example/; curl -sS http://203.0.113.12/'",
        );
        let out = out.success();
        assert_eq!(out.out(), "hello from 203.0.113.10\nhello from 203.0.113.11\nhello from 203.0.113.12\n");
        let out =
            out.says("would block dns(A other.example)").says("would block connection(203.0.113.12:80)");
        out.says("--connect 203.0.113.12:80");
        // Nobody takes connections to other ports, and the line says so.
        let out = internet
            .run("$SBX --log-violations --connect allowed.example -- curl -s http://other.example:7/");
        out.failed().says("sbx: blocked connect(").says("allow it with --connect other.example:7");
        // A name that rules have may lead where they do not. To this machine's loopback it does not lead in log mode.
        let names = ["private", "metadata", "own", "loop"].map(|name| format!("http://{name}.example/"));
        let curl = format!("$SBX --log-violations --connect '*.example:80' -- curl -sS {}", names.join(" "));
        let out = internet.run(&curl).failed();
        let mut out = out.prints("hello from 10.0.0.1\nhello from 169.254.169.254\nhello from 192.0.2.2\n");
        for name in ["private", "metadata", "own"] {
            out = out.says(&format!("would block connection({name}.example:80)"));
        }
        out.says("sbx: blocked connection(loop.example:80)");
        internet.saw_nothing_of("connection 127.0.0.1");
        // The broker's own sockets are no host, in log mode either.
        let own = r#"import socket
for row in open("/proc/net/tcp").read().splitlines()[1:]:
    place, state = row.split()[1], row.split()[3]
    if state == "0A" and not place.endswith(":0035"):
        try: print(socket.create_connection(("127.0.0.1", int(place.split(":")[1], 16)), 5).recv(1))
        except OSError as error: print(error.strerror)"#;
        internet.world.write("own.py", own);
        let run = "$SBX --log-violations --connect allowed.example:80 -- /usr/bin/python3 own.py";
        let refused = internet.run(run).success();
        let lines = refused.out();
        assert!(!lines.is_empty() && lines.lines().all(|line| line.starts_with("Connection re")), "{lines}");
        refused.says("blocked connection(127.0.0.1:");
        internet.saw_nothing_of("connection 127.0.0.1");
    });
}

#[test]
fn rules_that_say_nothing_are_refused() {
    in_internets(|internet| {
        for (flags, why) in [
            ("--connect localhost:80", "--host-port 80"),
            ("--connect 127.0.0.1", "--host-port 443"),
            ("--host-port 53", "questions about names"),
            ("--connect 0x7f.1", "is a number"),
            ("--connect allowed.example --exec", "--exec"),
            ("--connect allowed.example --bind 80", "leave --bind (profile key network.bind) out"),
            ("--connect allowed.example --net host", "contradict"),
            ("--connect 'evil.example/.allowed.example'", "is not a range"),
        ] {
            internet.run(&format!("$SBX {flags} -- touch ran")).refused(125, &[why]);
            assert!(!internet.world.exists("ran"));
        }
    });
}
