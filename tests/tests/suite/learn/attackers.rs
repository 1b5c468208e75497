//! What a review says that an attacker gets, a run gives, and nothing else is said.

use super::reviews::{about, review};
use super::{learn, learned};
use sbx_tests::servers::{HttpServer, UnixServer};
use sbx_tests::{World, in_worlds, kernel, need, promise};
use serde_json::{Value, json};

/// A profile that extends another one by this.
pub(super) fn extended(base: &str, added: &Value) -> Value {
    let mut profile = json!({ "extends": base });
    profile.as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
    profile
}

/// Runs a command under the profile that was reviewed last.
pub(super) fn run(world: &World, command: &[&str]) -> sbx_tests::Output {
    world.sbx(["run", "-q", "-p", "../reviewed.json", "--"]).args(command).run()
}

/// Whether a finding of a topic has a text in it.
pub(super) fn has(review: &Value, topic: &str, text: &str) -> bool {
    about(review, topic, text).is_some()
}

/// The text of the review of the profile that was reviewed last.
pub(super) fn shown(world: &World) -> String {
    world.sbx(["profile", "review", "../reviewed.json"]).run().success().out()
}

/// A call that makes or changes files by itself is as good as opening them for writing.
#[test]
fn every_call_that_changes_files_counts_as_writing() {
    promise!(kernel::PATHS);
    need!("python3");
    in_worlds(|world| {
        let script = |act: &str| {
            format!(
                "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nhome = os.environ['HOME']\n\
                 at = lambda name: (home + '/' + name).encode()\n{act}\n"
            )
        };
        let open = json!(["openat[read]", { "call": "openat", "args": [{ "index": 2, "op": "eq", "value": "0x241" }] }]);
        for (calls, act, made) in [
            (json!(["creat"]), "libc.syscall(85, at('.bashrc'), 0o644)", ".bashrc"),
            (json!(["symlink"]), "os.symlink('x', at('.bashrc'))", ".bashrc"),
            (json!(["rename"]), "os.rename(at('plain'), at('.bashrc'))", ".bashrc"),
            (json!(["link"]), "os.link(at('plain'), at('.bashrc'))", ".bashrc"),
            (json!(["mkdirat"]), "libc.mkdirat(-100, at('.emacs.d'), 0o755)", ".emacs.d"),
            (open, "libc.syscall(257, -100, at('.bashrc'), 0x241, 0o644)", ".bashrc"),
            // These change nothing.
            (json!(["getcwd"]), "", ""),
            (json!(["openat[read]", "fchdir"]), "", ""),
        ] {
            if cfg!(not(target_arch = "x86_64")) {
                return;
            }
            world.write(world.home.join("plain"), "echo ran\n");
            let profile = json!({
                "extends": "minimal", "static": "confine",
                "paths": { "write": ["${HOME}"] }, "syscalls": { "allow": calls },
            });
            let review = review(world, &profile);
            let found = about(&review, "runs later", ".bashrc");
            assert_eq!(found.is_some(), !made.is_empty(), "{calls}: {review:#}");
            let program = script(act);
            world
                .sbx(["run", "-q", "-p", "../reviewed.json", "--", "/usr/bin/python3", "-c", &program])
                .run();
            if made.is_empty() {
                continue;
            }
            let made = world.home.join(made);
            assert!(made.symlink_metadata().is_ok(), "{calls}");
            let _ = std::fs::remove_file(&made).or_else(|_| std::fs::remove_dir(&made));
        }
    });
}

#[test]
fn a_rule_about_a_port_is_one_about_every_machine() {
    promise!(kernel::TCP_PORTS);
    need!("curl");
    in_worlds(|world| {
        let server = HttpServer::start();
        let rule = format!("*:{}", server.port);
        let network = json!({ "network": { "mode": "allow", "connect": [rule] } });
        let alone = review(world, &extended("workspace", &network));
        let every = "every machine: this one, private networks, metadata services, the internet";
        assert!(has(&alone, "network", every) && !has(&alone, "network", "any host"), "{alone:#}");
        run(world, &["curl", "-sS", &server.url()]).success();
        // Beside a rule about hosts it is one about public addresses.
        let network = json!({ "network": { "mode": "allow", "connect": [rule, "example.org"] } });
        let beside = review(world, &extended("workspace", &network));
        if kernel::gives_namespaces() {
            assert!(
                has(&beside, "network", " of the internet)") && !has(&beside, "network", every),
                "{beside:#}"
            );
            run(world, &["curl", "-sS", &server.url()]).failed();
        }
    });
}

#[test]
fn sockets_in_writable_directories_are_found() {
    promise!(namespaces);
    in_worlds(|world| {
        let (open, shut) = (world.outside.join("open.sock"), world.outside.join("dir/shut.sock"));
        let services = [UnixServer::at(&open), UnixServer::at(&shut)];
        let program = world.program("attempt");
        let paths = json!({ "paths": { "write": [world.outside], "deny": [world.outside.join("dir")] } });
        let writes = review(world, &extended("workspace", &paths));
        let found = about(&writes, "sockets", "any socket in").unwrap_or_else(|| panic!("{writes:#}"));
        let found = found["about"].to_string();
        assert!(found.contains("open.sock: a service outside") && !found.contains("shut.sock"), "{found}");
        for topic in ["secrets", "runs later"] {
            assert!(!has(&writes, topic, ".sock"), "{writes:#}");
        }
        for socket in [&open, &shut] {
            run(world, &[&program, "connect-unix", socket.to_str().unwrap()]);
        }
        assert_eq!([services[0].connections() > 0, services[1].connections() > 0], [true, false]);
        // Whoever may only read there connects to nothing.
        let reads = review(world, &extended("workspace", &json!({ "paths": { "read": [world.outside] } })));
        assert!(!has(&reads, "sockets", "open.sock"), "{reads:#}");
        let before = services[0].connections();
        let words = ["connect-unix", open.to_str().unwrap()];
        run(world, &[&[&*program], &words[..]].concat());
        assert_eq!(services[0].connections(), before);
        // Without any confinement all are within reach.
        let json = world.sbx(["profile", "review", "--json", "unrestricted"]).run().success().out();
        assert!(has(&serde_json::from_str(&json).unwrap(), "sockets", "any socket in /"), "{json}");
        world.sbx(["why", "-p", "unrestricted", "--unix"]).arg(&open).run().success();
        world.sbx(["run", "-q", "--dangerously-unconfined", "--", &program]).args(words).run();
        assert!(services[0].connections() > before);
    });
}

#[test]
fn arguments_of_other_processes_are_found_where_a_run_sees_them() {
    promise!(namespaces);
    in_worlds(|world| {
        let other = std::process::Command::new("sleep").args(["987"]).spawn();
        let mut other = other.unwrap();
        let arguments = format!("/proc/{}/cmdline", other.id());
        for base in ["minimal", "network", "workspace"] {
            let review = review(world, &json!({ "extends": base }));
            let seen = run(world, &["cat", &arguments]).out().contains("987");
            assert_eq!(has(&review, "processes", "arguments"), seen, "{base}: {review:#}");
            assert_eq!(seen, base != "workspace", "{base}");
        }
        other.kill().unwrap();
        other.wait().unwrap();
    });
}

#[test]
fn what_holds_without_namespaces_is_said() {
    promise!(kernel::PATHS);
    need!("git");
    in_worlds(|world| {
        world.bare(["git", "init", "-q"]).run().success();
        review(world, &json!({ "extends": "workspace", "namespaces": "none" }));
        let text = shown(world);
        assert!(
            text.contains("  protected  nothing while it runs") && text.contains("  home       yours"),
            "{text}"
        );
        let write = "echo x > .git/hooks/pre-commit && cat .git/hooks/pre-commit; ls ~";
        let out = run(world, &["sh", "-c", write]).failed();
        assert_eq!(out.out(), "x\n", "{out}");
        review(world, &json!({ "extends": "workspace" }));
        if kernel::gives_namespaces() {
            let text = shown(world);
            assert!(
                text.contains("paths, and what git executes") && text.contains("one of the run's own"),
                "{text}"
            );
            assert!(!run(world, &["sh", "-c", write]).out().contains("x\n"));
        }
    });
}

/// The user of a run has no more than the permissions of files give, whatever rules say.
#[test]
fn what_permissions_close_to_the_user_is_no_gain() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        // Both belong to whoever runs the tests.
        let of_tester = world.outside.join("of-tester");
        std::fs::create_dir(&of_tester).unwrap();
        std::fs::write(of_tester.join(".envrc"), "").unwrap();
        let paths = json!({ "paths": { "read": ["/etc"], "write": [of_tester] } });
        let review = review(world, &extended("read-only", &paths));
        let envrc = of_tester.join(".envrc");
        let appends = format!("echo x >> {}", envrc.display());
        for (topic, path, act) in
            [("secrets", "/etc/shadow", "cat /etc/shadow"), ("runs later", envrc.to_str().unwrap(), &appends)]
        {
            let can = run(world, &["sh", "-c", act]).code == Some(0);
            assert_eq!(has(&review, topic, &format!("{path} (")), can, "{path}: {review:#}");
            let closed = review["closed"].as_array().unwrap().contains(&json!(path));
            assert_eq!(closed, !can, "{path}: {review:#}");
        }
        let can = run(world, &["mkdir", of_tester.join(".git").to_str().unwrap()]).code == Some(0);
        let repository = about(&review, "runs later", &format!("\"{}\"", of_tester.display()));
        assert_eq!(repository.is_some(), can, "{review:#}");
    });
}

#[test]
fn what_an_agent_gets_is_told_before_its_login_is_there() {
    in_worlds(|world| {
        let claude = review(world, &json!({ "extends": "agent:claude", "require": "minimal" }));
        let login = about(&claude, "secrets", ".claude/.credentials.json");
        assert!(login.is_some_and(|found| found.to_string().contains("not there now")), "{claude:#}");
        // What is no key is not told among keys, and all keys are told at once.
        let gemini = review(world, &json!({ "extends": "agent:gemini", "require": "minimal" }));
        let keys: Vec<&Value> = gemini["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|found| found["meaning"].to_string().contains("sbx agent"))
            .collect();
        assert_eq!(keys.len(), 1, "{gemini:#}");
        assert_eq!(keys[0]["about"], json!(["GEMINI_*", "GOOGLE_API_KEY"]), "{gemini:#}");
    });
}

#[test]
fn packets_and_logins_of_repositories_are_found() {
    need!("python3");
    in_worlds(|world| {
        let network = review(world, &json!({ "extends": "network" }));
        assert!(has(&network, "network", "UDP ports"), "{network:#}");
        let program = "import socket as s\na = s.socket(s.AF_INET, s.SOCK_DGRAM)\na.bind(('127.0.0.1', 0))\n\
            s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'came', a.getsockname())\nprint(a.recv(9))";
        let out = run(world, &["/usr/bin/python3", "-c", program]).success();
        assert!(out.out().contains("came"), "{out}");
        for (url, found) in [("https://me:token@example.org/x", true), ("ssh://git@example.org/x", false)] {
            world.write(".git/config", format!("[remote \"origin\"]\n\turl = {url}\n"));
            let review = review(world, &json!({ "extends": "workspace" }));
            assert_eq!(has(&review, "secrets", ".git/config"), found, "{url}: {review:#}");
            assert!(run(world, &["cat", ".git/config"]).success().out().contains(url), "{url}");
        }
    });
}

#[test]
fn devices_are_named_and_nothing_runs_them_later() {
    in_worlds(|world| {
        let review = review(world, &json!({ "extends": "workspace", "paths": { "write": ["/dev"] } }));
        assert!(!has(&review, "runs later", "/dev") && !has(&review, "secrets", "/dev"), "{review:#}");
        // Of those that this machine has, the ones that the user opens.
        for device in ["/dev/kmsg", "/dev/autofs", "/dev/fuse", "/dev/net/tun"] {
            let there = std::path::Path::new(device).exists();
            let can = there && run(world, &["sh", "-c", &format!("exec 3< {device}")]).code == Some(0);
            let found = has(&review, "devices", device);
            assert!(found || !can, "{device}: {review:#}");
        }
        assert!(!has(&review, "devices", "/dev/null") && !has(&review, "devices", "/dev/full"), "{review:#}");
    });
}

#[test]
fn a_review_says_the_most_in_its_first_lines() {
    in_worlds(|world| {
        let paths = json!({ "paths": { "read": ["${HOME}"] }, "syscalls": { "allow": ["creat"] } });
        let reviewed = review(world, &extended("minimal", &paths));
        let text = shown(world);
        let first = text.split_once("What an attacker gets:\n  in short   secrets ").map(|(_, rest)| rest);
        assert!(first.is_some_and(|rest| rest.contains("kernel: creat")), "{text}");
        // What is there now stands before what is not.
        let secrets = about(&reviewed, "secrets", ".netrc").unwrap()["about"].as_array().unwrap();
        let absent: Vec<bool> =
            secrets.iter().map(|about| about.to_string().contains("not there now")).collect();
        assert!(absent.is_sorted() && absent.contains(&true) && absent.contains(&false), "{secrets:?}");
        // A call has its reason, and the workspace stands first.
        let reason = "creat (built-in profiles allow only creat[no-setid] (no set-user-ID";
        assert!(has(&reviewed, "kernel", reason), "{reviewed:#}");
        assert!(text.contains("\n  read       [0] ${HOME}\n             ${WORKSPACE} "), "{text}");
        let open = review(world, &json!({ "extends": "minimal", "syscalls": { "default": "log" } }));
        assert!(has(&open, "kernel", "every system call that no entry answers"), "{open:#}");
        review(world, &extended("workspace", &json!({ "network": { "mode": "allow", "bind": [8080] } })));
        let text = shown(world);
        assert!(
            text.contains("no host, because it names none") && !text.contains("hosts and ports:"),
            "{text}"
        );
    });
}

/// What no profile can give is not looked for in the next one.
#[test]
fn a_refused_service_of_this_machine_explains_a_failure() {
    promise!(namespaces);
    need!("curl");
    in_worlds(|world| {
        let server = HttpServer::start();
        let script = format!("curl -sS {}", server.url());
        for flags in [&[][..], &["--allow-sensitive"]] {
            let out = learn(world, flags, &script).run().exited(1);
            assert!(out.err().contains(&format!("--host-port {}", server.port)), "{out}");
            assert!(!out.err().contains("beginning again"), "{out}");
            assert_eq!(server.connections(), 0, "{out}");
        }
        let flag = format!("--host-port={}", server.port);
        learn(world, &[&flag], &script).run().success();
        assert!(server.connections() > 0);
    });
}

#[test]
fn a_new_file_in_the_home_directory_has_a_narrow_way() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let (script, notes) = ("echo \"two words\" > ~/notes.txt", world.home.join("notes.txt"));
        let out = learn(world, &[], script).run().exited(1);
        assert!(out.err().contains(&format!("or make {} first", notes.display())), "{out}");
        world.write(&notes, "");
        learn(world, &[], script).run().success();
        let profile = learned(world).unwrap();
        assert_eq!(profile["paths"]["write"][0]["path"], "${HOME}/notes.txt", "{profile:#}");
        assert_eq!(world.read(&notes).as_deref(), Some("two words\n"));
        // The command stands in the description as it is typed.
        assert!(!profile["description"].as_str().unwrap().contains('\\'), "{profile:#}");
    });
}

#[test]
fn what_is_sensitive_is_marked_where_it_is_learned() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let out = learn(world, &["--allow-sensitive"], "cat ~/.ssh/id_rsa").run().success();
        let lines: Vec<String> =
            out.err().lines().filter(|line| line.contains("id_rsa")).map(String::from).collect();
        let rules: Vec<&String> =
            lines.iter().filter(|line| line.trim_start().starts_with("read ")).collect();
        assert!(!rules.is_empty() && rules.iter().all(|line| line.contains("sensitive: ")), "{out}");
        let plain =
            learn(world, &[], &format!("cat {}", world.outside.join("kept").display())).run().success();
        assert!(!plain.err().contains("sensitive"), "{plain}");
    });
}

/// Landlock's rules about connections are of TCP: calls that an entry allows lead past them.
#[test]
fn packets_that_no_rule_holds_are_told() {
    need!("python3");
    in_worlds(|world| {
        for (added, leaves) in [
            (json!({}), false),
            (json!({ "syscalls": { "allow": ["socket[inet]", "connect"] } }), true),
            (json!({ "syscalls": { "default": "log" } }), true),
        ] {
            let review = review(world, &extended("minimal", &added));
            assert_eq!(has(&review, "network", "by protocols that no rule holds"), leaves, "{review:#}");
            assert_eq!(shown(world).contains("no network"), !leaves, "{}", shown(world));
            let listener = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let send = format!(
                "import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.connect(('127.0.0.1', {}))\ns.send(b'x')",
                listener.local_addr().unwrap().port()
            );
            run(world, &["/usr/bin/python3", "-c", &send]);
            assert_eq!(listener.recv(&mut [0; 8]).is_ok(), leaves, "{added}");
        }
    });
}
