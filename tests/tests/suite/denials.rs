//! What a profile denies stays denied, whatever a flag adds. Only `--allow-calls` takes a denial back, by its name.

use sbx_tests::{World, in_worlds};
use std::os::unix::net::UnixListener;

/// What a Python program prints under `workspace` with these calls denied: `done`, or an error's number.
fn outcome(world: &World, denied: &str, flags: &[&str], action: &str) -> String {
    let profile = format!(r#"{{"extends": "workspace", "syscalls": {{"deny": [{denied}]}}}}"#);
    world.write("../p.json", profile);
    let script = format!(
        "import fcntl, os, socket\n\
         try: {action}; print('done')\n\
         except OSError as error: print(error.errno)"
    );
    let words =
        [&["run", "-q", "-p", "../p.json"][..], flags, &["--", "/usr/bin/python3", "-c", &script]].concat();
    world.sbx(words).run().success().out().trim().to_string()
}

#[test]
fn a_directory_to_write_to_takes_no_denial_back() {
    in_worlds(|world| {
        let creating = r#""creat", "mknod", "mknodat",
            {"call": "openat", "args": [{"index": 2, "op": "masked_eq", "mask": "0x40", "value": "0x40", "width": 32}]},
            {"call": "open", "args": [{"index": 1, "op": "masked_eq", "mask": "0x40", "value": "0x40", "width": 32}]}"#;
        let flags = ["--rw", world.outside.to_str().unwrap()];
        let make = "os.open('made', os.O_CREAT | os.O_WRONLY)";
        for flags in [&[][..], &flags] {
            assert_eq!(outcome(world, creating, flags, make), "1", "{flags:?}");
            assert!(!world.exists("made"));
        }
        assert_eq!(outcome(world, "", &flags, make), "done");
        assert!(world.exists("made"));
    });
}

#[test]
fn a_denial_by_a_flag_takes_none_back() {
    in_worlds(|world| {
        let flags = ["--deny-calls", "socket[inet6]"];
        let six = "socket.socket(socket.AF_INET6)";
        for (denied, action) in [
            (r#""socket[unix-stream]""#, "socket.socket(socket.AF_UNIX)"),
            (r#""socket""#, "socket.socket(socket.AF_INET)"),
            (r#""socket""#, six),
        ] {
            for flags in [&[][..], &flags] {
                assert_ne!(outcome(world, denied, flags, action), "done", "{denied} {flags:?}");
            }
        }
        for action in ["socket.socket(socket.AF_UNIX)", "socket.socket(socket.AF_INET)"] {
            let expected = outcome(world, "", &[], action);
            assert_eq!(outcome(world, "", &flags, action), expected);
        }
        assert_ne!(outcome(world, "", &flags, six), "done");
    });
}

#[test]
fn a_socket_that_may_be_connected_takes_no_denial_back() {
    in_worlds(|world| {
        let place = world.outside.join("s");
        let _server = UnixListener::bind(&place).unwrap();
        let flags = ["--unix", place.to_str().unwrap()];
        let action = "socket.socketpair()[0].shutdown(0)";
        assert_eq!(outcome(world, r#""shutdown""#, &flags, action), "1");
        assert_eq!(outcome(world, r#""socket""#, &flags, "socket.socket(socket.AF_UNIX)"), "1");
        assert_eq!(outcome(world, "", &flags, action), "done");
    });
}

/// A flag that allows some of a call allows no less than the profile does.
#[test]
fn what_a_flag_allows_is_allowed_too() {
    in_worlds(|world| {
        let allow = ["--allow-calls", "fcntl[owner]"];
        let action =
            "fcntl.fcntl(0, fcntl.F_GETFD); fcntl.fcntl(socket.socketpair()[0], fcntl.F_SETOWN, os.getpid())";
        for level in [&[][..], &["--namespaces", "none"]] {
            assert_eq!(outcome(world, "", &[level, &allow].concat(), action), "done", "{level:?}");
        }
        let back = ["--allow-calls", "shutdown"];
        assert_eq!(outcome(world, r#""shutdown""#, &back, "socket.socketpair()[0].shutdown(0)"), "done");
    });
}

/// What asks for a list cannot go with what keeps anybody from writing one.
#[test]
fn what_is_let_through_is_listed() {
    in_worlds(|world| {
        for flags in [
            &["--on-violation", "log", "--exec"][..],
            &["--on-violation", "log", "-q"],
            &["--on-violation", "log", "--keep-background"],
            &["--on-violation", "log", "--verify"],
        ] {
            let words = [&["run", "-p", "minimal"][..], flags, &["--", "touch", "made"]].concat();
            world.sbx(words).run().refused(125, &["--on-violation log", "contradict"]);
            assert!(!world.exists("made"), "{flags:?}");
        }
        let asked = ["run", "-p", "minimal", "--on-violation", "log", "--", "mkdir", "made"];
        let out = world.sbx(asked).env("SBX_LOG", "quiet").run();
        assert!(out.err().contains("would block mkdir"), "{out}");
        for flags in [&["--bind", "8080"][..], &["--connect", "*:80"], &["--home", "closed"]] {
            let words = [&["run", "--dangerously-unconfined"][..], flags, &["--", "touch", "free"]].concat();
            world.sbx(words).run().refused(125, &["--dangerously-unconfined", "contradict"]);
            assert!(!world.exists("free"), "{flags:?}");
        }
    });
}

/// Flags ask for more than a profile does, and not for less.
#[test]
fn a_flag_lowers_nothing_that_a_profile_requires() {
    in_worlds(|world| {
        let run = |profile: &str, flags: &[&str]| {
            world.write("../p.json", profile);
            world.sbx([&["run", "-p", "../p.json"][..], flags, &["--", "touch", "made"]].concat()).run()
        };
        let full = r#"{"extends": "workspace", "require": "full"}"#;
        run(full, &["--require", "standard", "--namespaces", "none"]).refused(125, &["--namespaces none"]);
        let denied = r#"{"extends": "workspace", "network": {"deny": ["127.0.0.0/8:4"]}}"#;
        run(denied, &["--host-port", "4"]).refused(125, &["--host-port 4", "'127.0.0.0/8:4' is denied"]);
        assert!(!world.exists("made"));
        run(r#"{"extends": "workspace"}"#, &["--require", "minimal"]).success();
        assert!(world.exists("made"));
    });
}

#[test]
fn what_is_denied_is_not_learned() {
    in_worlds(|world| {
        world.write("../p.json", r#"{"extends": "workspace", "syscalls": {"deny": ["mkdir", "mkdirat"]}}"#);
        let learn = |flags: &[&str]| {
            let words =
                [&["learn", "-p", "../p.json", "-o", "learned.json"][..], flags, &["--", "mkdir", "made"]];
            world.sbx(words.concat()).run()
        };
        learn(&[]).failed().says("the profile denies it");
        assert!(!world.exists("learned.json") && !world.exists("made"));
        learn(&["--allow-sensitive"]).success();
        assert!(world.read("learned.json").unwrap().contains("mkdir") && world.exists("made"));
    });
}
