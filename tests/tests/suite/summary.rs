//! What people read when a run is over: the last line on a terminal.

use std::time::Duration;

use sbx_tests::{World, in_worlds, kernel, need, promise};

const TIME: Duration = Duration::from_secs(40);

/// The lines of a terminal on which `sbx run` with these flags ran a script.
fn on_terminal(world: &World, flags: &[&str], script: &str) -> Vec<String> {
    let words = [&["run"], flags, &["--", "sh", "-c", script]].concat();
    let (running, _terminal) = world.sbx(words).timeout(TIME).start_on_terminal();
    running.wait().out().lines().map(|line| line.trim_end().to_string()).collect()
}

/// The lines that sum up.
fn sums(lines: &[String]) -> Vec<&String> {
    lines.iter().filter(|line| line.starts_with("sbx: ") && line.contains("refusals (")).collect()
}

/// Has a shell run `sbx run` with the flags that a line ends in, and tells whether the command succeeded.
fn pasted(world: &World, last: &str, script: &str) -> bool {
    let flags = last.split_once(": --").unwrap_or_else(|| panic!("no flags: {last}")).1;
    world.write("script", script);
    let line = format!("{} run --{flags} -- sh script", sbx_tests::stage::sbx().display());
    let out = world.bare(["sh", "-c", &line]).run();
    eprintln!("{line}: {out}");
    out.code == Some(0)
}

#[test]
fn the_last_line_has_the_flags_that_would_have_allowed_everything() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let outside = world.outside.display();
        world.write(world.outside.join("odd name"), "odd\n");
        let script = format!(
            "cat {outside}/kept; cat '{outside}/odd name'; cat {outside}/dir/inner; echo x > {outside}/dir/new; \
             cat {outside}/dir/new"
        );
        let lines = on_terminal(world, &["--explain"], &script);
        assert!(!world.exists(world.outside.join("dir/new")), "{lines:#?}");
        assert!(
            !lines.iter().any(|line| line == "odd" || line == "outside" || line == "inner"),
            "{lines:#?}"
        );
        let last = lines.last().unwrap();
        let expected = format!(
            "sbx: 4 refusals (4 files); to allow all: --ro {outside}/kept --ro '{outside}/odd name' --rw {outside}/dir"
        );
        assert_eq!(*last, expected, "{lines:#?}");
        assert!(pasted(world, last, &script));
        assert_eq!(world.read(world.outside.join("dir/new")).unwrap(), "x\n");
        // One refusal has said everything in its own line.
        let lines = on_terminal(world, &["--explain"], &format!("cat {outside}/kept; cat {outside}/kept"));
        assert!(lines.iter().any(|line| line.contains("may not read")), "{lines:#?}");
        assert!(sums(&lines).is_empty(), "{lines:#?}");
    });
}

#[test]
fn different_profiles_and_networks_become_one() {
    need!("python3");
    in_worlds(|world| {
        let script = "id > /dev/null; python3 -c 'import socket; socket.socket()' && echo > made";
        let lines = on_terminal(world, &["--profile", "write", "--log-violations"], script);
        let last = lines.last().unwrap();
        assert!(last.contains(" all let through (") && last.contains("; to allow "), "{lines:#?}");
        assert_eq!(last.matches("--profile ").count(), 1, "{last}");
        assert!(last.contains("--profile workspace"), "{last}");
        std::fs::remove_file(world.path("made")).unwrap();
        assert!(pasted(world, last, script));
        assert!(world.exists("made"));
    });
}

#[test]
fn what_no_flag_allows_is_counted() {
    in_worlds(|world| {
        let script = "id; echo > file; sh -c id; unshare -U true; chroot / true; true";
        let flags = ["--deny-calls", "unshare:chroot"];
        let lines = on_terminal(world, &flags, script);
        let last = lines.last().unwrap();
        assert!(last.contains("2 refusals (2 system calls); no flag allows them"), "{lines:#?}");
    });
}

#[test]
fn only_a_terminal_gets_the_last_line() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let outside = world.outside.display();
        let script = format!("cat {outside}/kept {outside}/dir/inner; true");
        let lines = on_terminal(world, &["--explain"], &script);
        assert_eq!(sums(&lines).len(), 1, "{lines:#?}");
        assert!(sums(&on_terminal(world, &["--explain", "-q"], &script)).is_empty());
        assert!(sums(&on_terminal(world, &[], "true")).is_empty());
        let out = world.sbx(["run", "--explain", "--", "sh", "-c", &script]).run().success();
        let lines = out.sbx_lines();
        assert_eq!(lines.len(), 2, "{out}");
        assert!(sums(&lines).is_empty(), "{out}");
    });
}
