//! Rules about hosts in a run that has no network of its own: by a proxy on this machine's loopback.

use super::{FROM_ALLOWED, Internet, in_internets};
use sbx_tests::need;

const WITHOUT: &str = "--namespaces none";

/// A client that goes by no variable.
const PLAIN: &str = "curl -sS --noproxy '*'";

/// Where nobody can take sockets from other processes, as in many containers.
pub const NO_SOCKETS: &[(libc::c_long, i32)] = &[(libc::SYS_pidfd_getfd, libc::EPERM)];

fn report(internet: &Internet<'_>) -> serde_json::Value {
    serde_json::from_str(&internet.world.read("report.json").unwrap()).unwrap()
}

/// With and without the variables: the name of the rule, and not the next one.
#[test]
fn names_are_reached_by_every_program() {
    in_internets(|internet| {
        for profile in ["workspace", "network", "minimal"] {
            for client in ["curl -sS", PLAIN] {
                let run = format!("$SBX {WITHOUT} -p {profile} --connect allowed.example:80 -- {client}");
                let out = internet.run(&format!("{run} http://allowed.example/"));
                out.success().prints(FROM_ALLOWED).says("network: by proxy");
                assert!(internet.saw("bytes 203.0.113.10 80"), "{profile} {client}");
                let out = internet.run(&format!("{run} -f http://other.example/")).failed();
                out.says("other.example").says("allow it with --connect other.example:");
                internet.saw_nothing_of("other.example");
                internet.saw_nothing_of("connection");
            }
        }
        let tls = |client: &str, name: &str| {
            format!(
                "$SBX {WITHOUT} --ro $CA --connect allowed.example -- {client} --cacert $CA https://{name}/"
            )
        };
        for client in ["curl -sS", PLAIN, "sh -c 'curl -sS -x socks5h://${HTTPS_PROXY#http://} \"$@\"' x"] {
            internet.run(&tls(client, "allowed.example")).success().prints(FROM_ALLOWED);
            internet.run(&tls(client, "other.example")).failed().says("other.example");
            internet.saw_nothing_of("connection");
        }
    });
}

/// curl takes an answer of the proxy's for the page.
#[test]
fn a_host_that_cannot_be_reached_is_named() {
    in_internets(|internet| {
        let run = format!("$SBX {WITHOUT} --connect closed.example:80 -- curl -sS http://closed.example/");
        let out = internet.run(&run).success().prints("sbx: the host cannot be reached outside\n");
        out.says("the connection to closed.example:80 failed outside: connection refused");
        internet.saw_nothing_of("connection");
    });
}

#[test]
fn programs_that_know_no_proxy_are_served() {
    need!("wget", "busybox");
    in_internets(|internet| {
        let run = format!("$SBX {WITHOUT} --connect allowed.example:80 --");
        let python = "import asyncio, socket\nasync def main():\n \
            r, w = await asyncio.open_connection(\"allowed.example\", 80)\n \
            w.write(b\"GET / HTTP/1.0\\r\\nHost: allowed.example\\r\\n\\r\\n\")\n print((await r.read())[-24:])\n\
            asyncio.run(main())";
        let out = internet.run(&format!("{run} /usr/bin/python3 -c '{python}'"));
        out.success().prints("b'hello from 203.0.113.10\\n'\n");
        internet
            .run(&format!("{run} busybox wget -q -O - http://allowed.example/"))
            .success()
            .prints(FROM_ALLOWED);
        internet.run(&format!("{run} wget -q -O - http://allowed.example/")).success().prints(FROM_ALLOWED);
        // What fails outside fails as it does outside.
        let connect = "import socket\ntry: socket.create_connection((\"allowed.example\", 1))\nexcept OSError as e: print(e)";
        let out = internet
            .run(&format!("$SBX {WITHOUT} --connect allowed.example:1 -- /usr/bin/python3 -c '{connect}'"));
        out.success().prints("[Errno 111] Connection refused\n");
    });
}

#[test]
fn addresses_are_reached_exactly() {
    in_internets(|internet| {
        for client in ["curl -sS -f", &format!("{PLAIN} -f")] {
            let curl = format!(
                "$SBX {WITHOUT} --connect 203.0.113.8/29:80 --connect '[2001:db8::]/32:80' -- {client}"
            );
            internet
                .run(&format!("{curl} http://203.0.113.11/"))
                .success()
                .prints("hello from 203.0.113.11\n");
            internet
                .run(&format!("{curl} http://[2001:db8::10]/"))
                .success()
                .prints("hello from 2001:db8::10\n");
            for other in [
                "203.0.113.16",
                "203.0.113.10:7",
                "10.0.0.1",
                "169.254.169.254",
                "127.0.0.1",
                "[::1]",
                "0.0.0.0",
            ] {
                let out = internet.run(&format!("{curl} http://{other}/")).failed();
                out.says("allow it with --");
                internet.saw_nothing_of("connection");
            }
        }
        // Without a sandbox this machine's server is there, and with the flag.
        internet.run("curl -sS http://127.0.0.1/").success().prints("hello from 127.0.0.1\n");
        let host_port = format!("$SBX {WITHOUT} --host-port 80 -- curl -sS http://127.0.0.1");
        internet.run(&format!("{host_port}/")).success().prints("hello from 127.0.0.1\n");
        internet.run(&format!("{host_port}:443/")).failed().says("--host-port 443");
        // Other addresses of loopback may have other servers.
        let serve = |flags: &str| {
            format!(
                "echo other > page; /usr/bin/python3 -m http.server -b 127.0.0.2 8080 > /dev/null 2>&1 & \
                 n=0; until curl -s http://127.0.0.2:8080/page || test $n -gt 200; do n=$((n+1)); sleep 0.05; done; \
                 {flags} curl -fsS http://127.0.0.2:8080/page; s=$?; kill $!; exit $s"
            )
        };
        internet.run(&serve("")).success().prints("other\nother\n");
        let out =
            internet.run(&serve(&format!("$SBX {WITHOUT} --host-port 8080 --"))).failed().prints("other\n");
        assert!(!out.err().contains("--host-port"), "{out}");
    });
}

#[test]
fn what_a_name_leads_to_and_what_is_said_are_looked_at() {
    in_internets(|internet| {
        for client in ["curl -sS -f", &format!("{PLAIN} -f")] {
            for name in ["private.example", "loop.example"] {
                let out =
                    internet.run(&format!("$SBX {WITHOUT} --connect {name}:80 -- {client} http://{name}/"));
                out.failed().says("such as --connect 10.0.0.5:80 (");
                internet.saw_nothing_of("connection");
            }
            let tls = |name: &str| {
                format!(
                    "$SBX {WITHOUT} --ro $CA --connect allowed.example -- {client} --cacert $CA \
                     --connect-to {name}:443:allowed.example:443 https://{name}/"
                )
            };
            internet.run(&tls("allowed.example")).success();
            internet.run(&tls("shared.example")).failed().says("'shared.example'");
            internet.saw_nothing_of("bytes");
        }
    });
}

#[test]
fn udp_is_refused() {
    in_internets(|internet| {
        let send = "import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.sendto(b\"x\", (\"203.0.113.10\", 9))";
        let run = |flags: &str| format!("$SBX {flags} -- /usr/bin/python3 -c '{send}'");
        internet.run(&run(&format!("{WITHOUT} --connect allowed.example"))).failed().says("over TCP alone");
        assert_eq!(internet.log, "");
        // It is written down when it arrives.
        internet.run(&format!("{} && sleep 0.5", run("--net host"))).success();
        assert!(internet.saw("datagram 203.0.113.10 9"), "{}", internet.log);
    });
}

#[test]
fn a_report_says_how_hosts_were_reached() {
    in_internets(|internet| {
        let run = "--report report.json --connect allowed.example:80 -- curl -sS http://allowed.example/";
        internet.run(&format!("$SBX {WITHOUT} {run}")).success();
        let report = report(internet);
        let (network, host) = (&report["network"], &report["network"]["hosts"][0]);
        assert_eq!(
            (&network["mode"], &network["proxy"]),
            (&"hosts".into(), &"supervised".into()),
            "{report}"
        );
        assert_eq!(
            (&host["host"], &host["port"], &host["connections"]),
            (&"allowed.example".into(), &80.into(), &1.into())
        );
        assert!(host["received"].as_u64().unwrap() > 50, "{report}");
        assert!(report["degradations"].to_string().contains("by proxy"), "{report}");
    });
}

/// Without the supervisor's help a program has to go by the variables. What remains open is said.
#[test]
fn without_their_sockets_programs_go_by_variables() {
    in_internets(|internet| {
        let run = "$SBX --report report.json --connect allowed.example:80 --";
        let out = internet.run_answering(&format!("{run} curl -sS -f http://allowed.example/"), NO_SOCKETS);
        out.success().prints(FROM_ALLOWED).says("and what remains open").says("of any host");
        assert_eq!(report(internet)["network"]["proxy"], "by-port");
        internet.run_answering(&format!("{run} curl -sS -f http://other.example/"), NO_SOCKETS).failed();
        internet.saw_nothing_of("connection");
        internet.saw_nothing_of("other.example");
        let direct = format!("{run} {PLAIN} http://203.0.113.10/");
        internet.run_answering(&direct, NO_SOCKETS).failed().says("by a proxy alone");
        internet.saw_nothing_of("connection");
    });
}

/// Nobody is reached, and the run says so.
#[test]
fn if_the_proxy_is_killed_nobody_is_reached() {
    need!("pgrep");
    in_internets(|internet| {
        // The broker is the child of the supervisor's that listens.
        let script = format!(
            "$SBX {WITHOUT} --connect allowed.example:80 -- sh -c 'echo $http_proxy > started; n=0; \
             until test -e go || test $n -gt 400; do n=$((n+1)); sleep 0.05; done; \
             curl -sS http://allowed.example/ || {PLAIN} http://203.0.113.10/' & \
             n=0; until test -e started || test $n -gt 400; do n=$((n+1)); sleep 0.05; done; sleep 0.3; \
             for child in $(pgrep -P $!); do grep -q '^Seccomp:.2' /proc/$child/status && \
             test $(cat /proc/$child/comm) = sbx && kill -KILL $child && : > killed; done; sleep 0.2; \
             /usr/bin/python3 taking.py 2> taken; : > go; wait $!"
        );
        // Somebody who would answer in its place.
        internet.world.write(
            "taking.py",
            "import socket\nport = int(open('started').read().rsplit(':', 1)[1].strip('/\\n'))\n\
             taking = socket.socket()\ntaking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n\
             taking.bind(('127.0.0.1', port))\n",
        );
        let out = internet.run(&script).failed();
        assert!(internet.world.exists("killed"), "{out}");
        let taken = internet.world.read("taken").unwrap();
        assert!(taken.contains("Address already in use"), "{taken}");
        out.says("no host is reached any more");
        internet.saw_nothing_of("connection");
    });
}

#[test]
fn what_cannot_be_kept_does_not_start() {
    in_internets(|internet| {
        internet.world.write("loose.json", r#"{"extends": "workspace", "syscalls": {"allow": ["connect"]}}"#);
        let connect = "--connect allowed.example -- touch ran";
        for (flags, why) in [
            ("--net private", "a network of the run's own needs"),
            ("--publish 3000", "a network of the run's own needs"),
            ("--keep-background", "a network of the run's own needs"),
            ("-p ./loose.json", "decides about connect(2) without a look"),
            ("--allow-calls connect", "decides about connect(2) without a look"),
            ("--allow-calls socket", "decides about sockets of UDP without a look"),
        ] {
            internet.run(&format!("$SBX {WITHOUT} {flags} {connect}")).refused(125, &[why]);
            assert!(!internet.world.exists("ran"), "{flags}");
        }
        let run = format!("$SBX --allow-calls socket {connect}");
        internet.run_answering(&run, NO_SOCKETS).refused(125, &["sockets of UDP"]);
        // Nobody would hear of connections.
        let run = format!("$SBX {WITHOUT} {connect}");
        let out = internet.run_answering(&run, &[(libc::SYS_seccomp, libc::EBUSY)]);
        out.refused(125, &["nobody tells named hosts from others"]);
        assert!(!internet.world.exists("ran"));
        internet.run(&run).success();
        assert!(internet.world.exists("ran"));
    });
}

/// The kernel asks nobody which way an option has the packets of a connection go.
#[test]
fn packets_go_to_the_proxy_and_nowhere_else() {
    in_internets(|internet| {
        let set = |options: &str| {
            format!(
                "/usr/bin/python3 -c 'import socket, struct\nfor level, name in {options}:\n \
                 s = socket.socket(socket.AF_INET6 if level == 41 else socket.AF_INET)\n \
                 s.setsockopt(level, name, struct.pack(\"ii\", 1, 1) if name == 13 else 1)'"
            )
        };
        let run = format!("$SBX {WITHOUT} --connect allowed.example:80 --");
        for attempt in ["a_routing_header", "another_device"] {
            let inside = format!("/usr/bin/python3 attacks.py inside {attempt}");
            internet.run(&inside).success();
            assert!(internet.saw("strayed"), "{attempt} without a sandbox: {}", internet.log);
            let out = internet.run(&format!("$SBX {WITHOUT} --connect allowed.example:80 -- {inside}"));
            out.success().says("setsockopt");
            internet.saw_nothing_of("strayed");
            assert!(internet.saw("bytes 203.0.113.10 80"), "{attempt}: {}", internet.log);
        }
        // What programs set for connections of their own.
        let usual = "((1, 2), (1, 7), (1, 8), (1, 9), (1, 13), (1, 15), (6, 1), (6, 3), (6, 4), (6, 5), \
                     (6, 6), (6, 12), (6, 18), (0, 1), (41, 26))";
        internet.run(&format!("{run} {}", set(usual))).success();
        internet.run(&format!("{run} {}", set("((0, 50),)"))).failed().says("setsockopt");
    });
}
