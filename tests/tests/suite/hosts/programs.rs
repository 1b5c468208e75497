//! Real programs: each reaches the name that a rule has, and is refused the next one, of which nothing is seen outside.
//! None of them is told of a proxy or of a certificate authority of `sbx`'s.

use super::{FROM_ALLOWED, Internet, in_internets};
use sbx_tests::{need, subjects};
use std::fmt::Write;

const ALLOWED: &str = "allowed.example";
const OTHER: &str = "other.example";

/// A program, and what it does.
struct Program {
    name: &'static str,
    /// The port that it connects to.
    port: u16,
    /// A shell script. The host is `$1`.
    script: &'static str,
    /// What it prints if it reaches the host.
    prints: &'static str,
}

const fn program(name: &'static str, port: u16, script: &'static str, prints: &'static str) -> Program {
    Program { name, port, script, prints }
}

/// What the web servers say.
const HELLO: &str = "hello from 203.0.113.1";

/// Runs the programs in an internet with all services, as each user that there is to try.
fn each(programs: &[Program], prepare: impl Fn(&Internet<'_>)) {
    need!("git", "ssh", "ssh-keygen", "sshd", "redis-server", "setpriv", "python:grpc");
    // In a network of the run's own, and by a proxy, where no home is the run's own either.
    let ways = ["", "--namespaces none --rw $HOME/.cargo"];
    ways.into_iter().for_each(|flags| each_by(programs, &prepare, flags));
}

fn each_by(programs: &[Program], prepare: &impl Fn(&Internet<'_>), flags: &str) {
    // Without variables a program asks for names over UDP, and knows of no proxy.
    let is_possible = |program: &&Program| flags.is_empty() || program.name != "no-variables";
    let programs: Vec<&Program> = programs.iter().filter(is_possible).collect();
    in_internets(|internet| {
        prepare(internet);
        let mut script = String::new();
        for Program { name, port, script: own, .. } in &programs {
            let body = format!("cd {name}.d\nfor host; do\n(set -- $host\n{own}\n)\necho \"== $?\"\ndone\n");
            internet.world.write(format!("{name}.sh"), body);
            internet.world.make_dir(&internet.world.path(format!("{name}.d")));
            let run = format!("timeout 40 $SBX {flags} --env CA --ro $CA --connect");
            writeln!(
                script,
                "echo '== {name}' >> log; {run} {ALLOWED}:{port} -- sh {name}.sh {ALLOWED} {OTHER} >{name}.out 2>&1\n\
                 echo '== {name}, allowed' >> log; {run} {OTHER}:{port} -- sh {name}.sh {OTHER} >{name}.other 2>&1"
            )
            .unwrap();
        }
        internet.run_with_services(&format!("mkdir -p ~/.cargo\n{script}")).success();
        programs.iter().for_each(|program| program.judge(internet));
    });
}

impl Program {
    /// The first host was reached, and nothing of the other one was seen until a rule had it.
    fn judge(&self, internet: &Internet<'_>) {
        let Program { name, port, prints, .. } = self;
        let said = |file: &str| internet.world.read(format!("{name}.{file}")).unwrap();
        let (both, other) = (said("out"), said("other"));
        let mut parts = both.split("== ");
        let (first, second) = (parts.next().unwrap(), parts.next().unwrap_or_default());
        assert!(first.contains(prints) && second.starts_with("0\n"), "{name} is not let through: {both}");
        assert!(!second.contains(prints), "{name} reaches what no rule has: {both}");
        assert!(parts.next().is_some_and(|status| !status.starts_with("0\n")), "{name} succeeded: {both}");
        // A question about a name does not tell the port, a proxy is told. The line may come a little later.
        assert!(
            both.split(&format!("does not reach {OTHER}")).skip(1).any(|rest| {
                let port = rest.strip_prefix(':').unwrap_or(rest);
                let rest = port.trim_start_matches(|digit: char| digit.is_ascii_digit());
                rest.starts_with(&format!("; allow it with --connect {OTHER}:"))
            }),
            "{name} is not told: {both}"
        );
        assert!(other.contains(prints) && other.ends_with("== 0\n"), "{name} cannot reach {OTHER}: {other}");

        let section = |title: &str| {
            let mut sections = internet.log.split("== ");
            sections.find_map(|section| section.strip_prefix(title)?.strip_prefix('\n')).unwrap().to_owned()
        };
        let (seen, seen_allowed) = (section(name), section(&format!("{name}, allowed")));
        assert!(seen.contains(&format!("question {ALLOWED} A\n")), "{name}: {seen}");
        assert!(seen.contains(&format!("connection 203.0.113.10 {port}\n")), "{name}: {seen}");
        assert!(!seen.contains(OTHER) && !seen.contains("203.0.113.11"), "{name} was seen outside: {seen}");
        assert!(
            seen_allowed.contains(&format!("connection 203.0.113.11 {port}\n")),
            "{name}: {seen_allowed}"
        );
    }
}

#[test]
fn clients_of_the_web() {
    need!("wget", "busybox");
    let programs = [
        program("curl", 443, "curl -sS --cacert $CA https://$1/", HELLO),
        program("wget", 443, "wget -t 2 -qO- --ca-certificate=$CA https://$1/", HELLO),
        program("busybox", 80, "busybox wget -qO- http://$1/", HELLO),
        program("no-variables", 443, "env -i /usr/bin/curl -sS --cacert $CA https://$1/", HELLO),
        program(
            "git",
            443,
            "git -c http.sslCAInfo=$CA clone -q https://$1/repository $1; cat $1/greeting",
            "hello",
        ),
    ];
    each(&programs, |_| {});
}

#[test]
fn secure_shells() {
    const SSH: &str = "ssh -F none -o BatchMode=yes -i ../ssh_key -o UserKnownHostsFile=../known_hosts";
    let git =
        format!("GIT_SSH_COMMAND='{SSH}' git clone -q guest@$1:$OLDPWD/site/repository $1; cat $1/greeting");
    let ssh = format!("{SSH} guest@$1 'echo in as $(id -un)'");
    let programs =
        [program("ssh", 22, ssh.leak(), "in as guest"), program("git-ssh", 22, git.leak(), "hello")];
    each(&programs, |_| {});
}

/// The index of a registry is a git repository for a cargo before 1.68, and files of a web server after it.
#[test]
fn package_managers() {
    need!("npm", "cargo", "go", "python:pip");
    let programs = [
        program(
            "pip",
            443,
            "/usr/bin/python3 -m pip install -q --retries 0 --cert $CA --index-url https://$1/simple \
             --target $1 thing 2>&1 && cd $1 && /usr/bin/python3 -c 'import thing'",
            "imported",
        ),
        program(
            "npm",
            443,
            "npm install --no-audit --fetch-retries 0 --cafile $CA --registry https://$1 --prefix $1 thing && \
             grep version $1/node_modules/thing/package.json",
            "1.0.0",
        ),
        program(
            "cargo",
            443,
            "mkdir -p $1/src; : > $1/src/lib.rs; cd $1\n\
             printf '[package]\\nname=\"a\"\\nversion=\"1.0.0\"\\n[dependencies]\\nthing={version=\"1\", \
             registry=\"test\"}\\n' > Cargo.toml\n\
             case $(cargo --version) in\n\
             *' 1.'[1-5]?.* | *' 1.6'[0-7].*) index=https://$1/index-$1 ;;\n\
             *) index=sparse+https://$1/index/ ;;\n\
             esac\n\
             cargo fetch --config net.retry=0 --config \"http.cainfo='$CA'\" \
             --config \"registries.test.index='$index'\" && cat Cargo.lock",
            "checksum",
        ),
        program(
            "go-modules",
            443,
            "mkdir -p $1; cd $1; printf 'module a\\n' > go.mod; export GOPROXY=https://$1/go GONOSUMDB=* \
             SSL_CERT_FILE=$CA \
             GOFLAGS=-modcacherw GOMODCACHE=$PWD/modules\n\
             go get site.example/thing@v1.0.0 && cat go.mod",
            "site.example/thing v1.0.0",
        ),
    ];
    each(&programs, |_| {});
}

#[test]
fn clients_in_go() {
    need!("go", "cc");
    let programs = [
        program("go", 443, "SSL_CERT_FILE=$CA GODEBUG=netdns=go ../go-client $1", HELLO),
        program("go-libc", 443, "SSL_CERT_FILE=$CA GODEBUG=netdns=cgo ../go-client $1", HELLO),
        program("go-static", 443, "SSL_CERT_FILE=$CA GODEBUG=netdns=go ../static-go-client $1", HELLO),
    ];
    each(&programs, |internet| {
        internet.world.install(&subjects::go_client(false), "go-client");
        internet.world.install(&subjects::go_client(true), "static-go-client");
    });
}

#[test]
fn clients_in_java() {
    need!("java", "javac");
    let programs = [
        program("java", 443, "java -cp .. Client HttpClient $1", HELLO),
        program("java-old", 80, "java -cp .. Client HttpURLConnection $1", HELLO),
    ];
    each(&programs, |internet| {
        for class in std::fs::read_dir(subjects::java_client()).unwrap().map(|entry| entry.unwrap().path()) {
            internet.world.install(&class, class.file_name().unwrap().to_str().unwrap());
        }
    });
}

#[test]
fn clients_in_node() {
    need!("node");
    let programs = [
        program("node-fetch", 443, "NODE_EXTRA_CA_CERTS=$CA node ../client.js fetch $1", HELLO),
        program("node-http", 80, "node ../client.js http $1", HELLO),
    ];
    each(&programs, |_| {});
}

#[test]
fn clients_in_python() {
    need!("python:requests", "python:aiohttp", "python:grpc");
    let programs = [
        program("requests", 443, "/usr/bin/python3 ../client.py requests $1", HELLO),
        program("aiohttp", 443, "/usr/bin/python3 ../client.py aiohttp $1", HELLO),
        program("asyncio", 7, "/usr/bin/python3 ../client.py asyncio $1", "echoed"),
        program("grpc", 443, "/usr/bin/python3 ../client.py grpc $1", "hello you"),
    ];
    each(&programs, |_| {});
}

#[test]
fn clients_of_databases() {
    need!("psql", "redis-cli");
    let programs = [
        program("psql", 5432, "psql -h $1 -U guest -tc 'select answer' base", "stored"),
        program("redis", 6379, "redis-cli -h $1 ping", "PONG"),
    ];
    each(&programs, |_| {});
}

/// A proxy variable opens nothing, whether a program goes by it or not.
#[test]
fn proxies_that_no_rule_names() {
    need!("node");
    in_internets(|internet| {
        let run = |proxy: &str, command: &str| {
            format!(
                "export HTTPS_PROXY=http://{proxy} NODE_EXTRA_CA_CERTS=$CA; \
                 $SBX --ro $CA --connect {ALLOWED} -- sh -c 'echo $HTTPS_PROXY; {command}'"
            )
        };
        let curl = format!("curl -sS --cacert $0 https://{ALLOWED}/' $CA '");
        let out = internet.run(&run("other.example:443", &curl)).failed();
        out.prints("http://other.example:443\n").says("allow it with --connect other.example:443");
        assert_eq!(internet.log, "");
        let out = internet.run(&run("203.0.113.11:80", &curl)).failed();
        out.says("allow it with --connect 203.0.113.11:80");
        assert_eq!(internet.log, "");
        for proxy in ["other.example:443", "203.0.113.11:80"] {
            let fetch = format!("node client.js fetch {ALLOWED}");
            let out = internet.run(&run(proxy, &fetch)).success();
            out.silent().prints(&format!("http://{proxy}\nhello from 203.0.113.10\n\n"));
            assert!(internet.saw("connection 203.0.113.10 443"));
            internet.saw_nothing_of("203.0.113.11");
        }
    });
}

/// The program sees one address. Of those behind it, one where nobody listens is passed over, and if there is no other,
/// the connection breaks.
#[test]
fn the_next_address_is_tried() {
    in_internets(|internet| {
        let curl = |name: &str| format!("$SBX --connect {name}:80 -- curl -sS http://{name}/");
        internet.run(&curl("several.example")).success().prints("hello from 203.0.113.10\n");
        let out = internet.run(&curl("closed.example")).failed();
        // Before curl has looked at the connection, or after.
        assert!(matches!(out.code, Some(7 | 55 | 56)), "{out}");
        // Where it fails before the call was answered, nobody can tell yet that it waits for nothing.
        let line = "the connection to closed.example:80 failed outside, and was reset: connection refused";
        let is_told = |_| internet.run(&curl("closed.example")).failed().err().contains(line);
        assert!(out.err().contains(line) || (0..10).any(is_told), "{out}");
        internet.saw_nothing_of("connection");
        // Who waits is told by the call.
        let connect = "import socket; socket.create_connection(('closed.example', 80))";
        let out =
            internet.run(&format!("$SBX --connect closed.example:80 -- python3 -c \"{connect}\"")).failed();
        assert!(out.err().contains("Connection refused") && out.sbx_lines().is_empty(), "{out}");
    });
}

/// Programs that read the file themselves connect to its addresses. The name is what rules, lines and learned profiles
/// are about.
#[test]
fn names_in_the_file_of_hosts_are_reached_by_their_rules() {
    in_internets(|internet| {
        let file = |lines: &str| {
            format!("{{ cat /etc/hosts; printf '{lines}'; }} > names; mount --bind names /etc/hosts; ")
        };
        let both =
            file("203.0.113.10 corp.test db.corp.test\\n203.0.113.11 next.test\\n10.0.0.1 inner.test\\n");
        let ask = |name: &str| format!("-- curl -sS -m 9 --cacert $CA http://{name}/");
        for flags in ["", "--namespaces none"] {
            let mut run = |rules: &str, name: &str| {
                let out = internet.run(&format!("{both} $SBX {flags} --ro $CA {rules} {}", ask(name)));
                (out, internet.log.clone())
            };
            for (rules, name) in [
                ("--connect corp.test:80", "corp.test"),
                ("--connect *.corp.test:80", "db.corp.test"),
                ("--connect 203.0.113.0/28:80 --connect corp.test:80", "corp.test"),
            ] {
                let (out, log) = run(rules, name);
                out.success().prints(FROM_ALLOWED);
                assert!(log.contains("bytes 203.0.113.10 80"), "{log}");
            }
            let (out, _) = run("--connect 203.0.113.0/28:80", "corp.test");
            out.says("allow it with --connect corp.test:80");
            // The next name, a name at another port, a denied one, and one that leads to a private network.
            let (out, log) = run("--connect corp.test:80", "next.test");
            out.says("allow it with --connect next.test:");
            assert!(!log.contains("connection"), "{log}");
            for (rules, name) in [
                ("--connect corp.test:443", "corp.test"),
                ("--connect inner.test:80", "inner.test"),
                ("--connect corp.test:80", "db.corp.test"),
            ] {
                let (_, log) = run(rules, name);
                assert!(!log.contains("bytes"), "{rules} {name}: {log}");
            }
            let (out, _) = run("--connect inner.test:80 --connect 10.0.0.1:80", "inner.test");
            out.success().prints("hello from 10.0.0.1\n");
        }
        // What is said has to name one of the names that the file has there.
        let two = "--connect corp.test:80 --connect db.corp.test:80";
        for (rules, curl, is_reached) in [
            (two, "-H 'Host: db.corp.test' http://corp.test/", true),
            (two, "-H 'Host: 203.0.113.10' http://corp.test/", false),
            (
                "--connect corp.test:80 --connect allowed.example:80",
                "-H 'Host: allowed.example' http://corp.test/",
                false,
            ),
            ("--connect corp.test", "-k https://203.0.113.10/", false),
            ("--connect corp.test --connect 203.0.113.10", "-k https://203.0.113.10/", true),
        ] {
            let out = internet.run(&format!("{both} $SBX {rules} -- curl -sS -m 9 {curl}"));
            assert_eq!(out.code == Some(0), is_reached, "{rules} {curl}: {out}");
            assert_eq!(internet.log.contains("bytes"), is_reached, "{rules} {curl}: {}", internet.log);
        }
        let why = format!("{both} ${{SBX% run}} why --connect 203.0.113.10:80 -p ./corp.json");
        internet.world.write(
            "corp.json",
            r#"{"extends": "workspace", "network": {"mode": "allow", "connect": ["corp.test:80"]}}"#,
        );
        internet.run(&why).success();
        let learn = format!("{both} ${{SBX% run}} learn -o corp.json -- curl -sS http://corp.test/");
        internet.run(&learn).success();
        assert!(internet.world.read("corp.json").unwrap().contains("\"corp.test:80\""));
    });
}
