//! What static programs, which load no library, may not change.

use sbx_tests::{World, in_worlds, need, stage};
use std::fs;

/// What is said of a line of shell, in which `$O` is the directory outside.
fn lines(world: &World, flags: &[&str], line: &str) -> Vec<String> {
    let line = line.replace("$O", world.outside.to_str().unwrap());
    let words = [&["run"][..], flags, &["--", "sh", "-c", &line]].concat();
    world.sbx(words).run().sbx_lines()
}

fn none(lines: &[String]) {
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn what_static_programs_may_not_change_is_named() {
    need!("busybox");
    in_worlds(|world| {
        let outside = world.outside.to_str().unwrap();
        world.write(world.outside.join("old"), "old\n");
        for change in
            ["mkdir $O/new", "rm $O/old", "mv $O/old $O/new", "exec echo x > $O/old", "exec echo x >> $O/new"]
        {
            // A shell of its own, so that the end is that of the program.
            let line = format!("busybox sh -c '{change} || exit 3'");
            let said = lines(world, &[], &line);
            let words = ["may not change", outside, "allow it with --rw"];
            assert!(said.len() == 1 && words.iter().all(|word| said[0].contains(word)), "{change}: {said:?}");
            assert_eq!(fs::read_to_string(world.outside.join("old")).unwrap(), "old\n", "{change}");
            assert!(!world.outside.join("new").exists(), "{change}");
        }
        // A program that does without is not bothered.
        none(&lines(world, &[], "busybox sh -c 'echo x > $O/old; exit 0'"));
        none(&lines(world, &["--rw", outside], "busybox sh -c 'mkdir $O/new && rm $O/old; exit 3'"));
        assert!(world.outside.join("new").exists() && !world.outside.join("old").exists());
    });
}

/// Devices, what the run has for itself, and streams that lead elsewhere.
#[test]
fn what_static_programs_may_change_is_not_named() {
    need!("busybox");
    in_worlds(|world| {
        for change in [
            "echo x > /dev/null",
            "echo x > /tmp/x",
            "echo x > $TMPDIR/x",
            "mkdir -p .cache/x; rmdir .cache/x",
            "mkdir -p /usr/lib",
            "rm -f /usr/lib/none",
            "echo x > a; mv a b; rm b",
            "mv none a",
        ] {
            none(&lines(world, &[], &format!("busybox sh -c '{change}; exit 3'")));
        }
        let (out, name) = (world.outside.join("out"), stage::sbx().display());
        for stream in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            for shell in ["busybox sh", "sh"] {
                for flag in ["", "--explain"] {
                    let line = format!(
                        "{name} run {flag} -- {shell} -c 'echo x > {stream}; exit 3' > {}",
                        out.display()
                    );
                    let ran = world.bare(["sh", "-c", &line]).run();
                    none(&ran.sbx_lines());
                    assert_eq!(fs::read_to_string(&out).unwrap(), "x\n", "{stream}");
                }
            }
        }
    });
}
