//! Flags of a run that `sbx learn` is given: what a profile can say of them it says.

use super::{FILE, learn, learned, under_learned};
use sbx_tests::servers::HttpServer;
use sbx_tests::{Output, World, in_worlds, kernel, need};

/// The words of the line that says how the command is run under the profile.
fn way_to_run(out: &Output) -> Vec<String> {
    let err = out.err();
    let line = err.lines().find_map(|line| line.strip_prefix("sbx: run it with: sbx "));
    let line = line.unwrap_or_else(|| panic!("no way to run it: {out}"));
    line.split(' ').map(String::from).collect()
}

#[test]
fn limits_and_variables_are_in_the_profile() {
    in_worlds(|world| {
        let script = "echo $(ulimit -n) $GREETING $PASSED_ON";
        let flags =
            ["--max-open-files", "20", "--timeout", "1m", "--env", "GREETING=hello", "--env", "PASSED_ON"];
        let out = learn(world, &flags, script).env("PASSED_ON", "outside").run().success();
        let profile = learned(world).unwrap();
        assert_eq!(profile["limits"]["timeout"], "1m", "{profile:#}");
        assert!(!out.err().contains("on the command line"), "{out}");
        let run = world.sbx(["run", "-p", FILE, "--", "/bin/sh", "-c", script]).env("PASSED_ON", "other");
        run.run().success().prints("20 hello other\n");
        world.sbx(["profile", "check", FILE]).run().success();
        // The twin: without the flags the run has none of it.
        learn(world, &[], script).run().success();
        let out = under_learned(world, script).success();
        assert!(!out.out().starts_with("20 ") && !out.out().contains("hello"), "{out}");
    });
}

/// A profile is a file that is shown and kept. A flag may pass a secret on, for this one run.
#[test]
fn no_secret_of_a_flag_is_in_the_profile() {
    in_worlds(|world| {
        let script = "test -n \"$MY_TOKEN\"";
        for (value, shown) in [("MY_TOKEN=of-the-flag", "--env MY_TOKEN=..."), ("MY_TOKEN", "--env MY_TOKEN")]
        {
            let out = learn(world, &["--env", value], script).env("MY_TOKEN", "of-outside").run().success();
            assert!(!world.read(FILE).unwrap().contains("TOKEN\": \"of-"), "{out}");
            assert!(out.err().contains(&format!("on the command line as well: {shown}\n")), "{out}");
            assert!(!out.err().contains("of-the-flag"), "{out}");
            under_learned(world, script).failed();
            let run = world.sbx(["run", "-p", FILE, "--env", value, "--", "/bin/sh", "-c", script]);
            run.env("MY_TOKEN", "of-outside").run().success();
        }
    });
}

/// In a profile a value may begin with a variable of sbx; on the command line it is what it is.
#[test]
fn a_value_that_a_profile_would_read_otherwise_stays_on_the_command_line() {
    in_worlds(|world| {
        let (value, script) = ("LITERAL=${TMP}/x", "test \"$LITERAL\" = '${TMP}/x'");
        let out = learn(world, &["--env", value], script).run().success();
        assert!(out.err().contains("on the command line as well: --env 'LITERAL=${TMP}/x'\n"), "{out}");
        world.sbx(["run", "-p", FILE, "--env", value, "--", "/bin/sh", "-c", script]).run().success();
        // What loads code is passed with a flag of its own alone.
        let out = learn(world, &["--allow-dangerous-env", "--env", "PERL5OPT=-w"], "true").run().success();
        let says = "on the command line as well: --env 'PERL5OPT=-w' --allow-dangerous-env\n";
        assert!(out.err().contains(says), "{out}");
        // The twin.
        learn(world, &["--env", "LITERAL=x"], "test $LITERAL = x").run().success();
        under_learned(world, "test $LITERAL = x").success();
    });
}

#[test]
fn flags_that_no_profile_can_say_are_in_the_printed_way_to_run_it() {
    in_worlds(|world: &World| {
        need!("curl");
        if !kernel::promises_namespaces() {
            return;
        }
        let server = HttpServer::start();
        let port = server.port.to_string();
        let flags = ["learn", "-o", FILE, "--host-port", &port, "--", "curl", "-sS", &server.url()];
        let out = world.sbx(flags).run().success();
        let before = server.connections();
        assert!(before > 0, "{out}");
        let says = format!("on the command line as well: --host-port {port}\n");
        assert!(out.err().contains(&says), "{out}");
        let way = way_to_run(&out);
        let again = world.sbx(&way).run().success();
        assert_eq!(server.connections(), before + 1, "{again}");
        // The twin: the profile alone reaches nothing.
        let alone: Vec<_> = way.iter().filter(|word| **word != "--host-port" && **word != port).collect();
        world.sbx(alone).run().failed();
        assert_eq!(server.connections(), before + 1);
    });
}
