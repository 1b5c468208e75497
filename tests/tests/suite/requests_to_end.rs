//! A signal to `sbx` that asks for an end: whom it reaches, and what happens to those who stay.

use sbx_tests::{Cmd, World, in_worlds, need, processes};
use std::time::Duration;

/// Longer than any of these runs takes.
const LONG: Duration = Duration::from_secs(40);

fn run(world: &World, flags: &[&str], script: &str) -> Cmd {
    world.sbx(["run"]).args(flags).args(["--", "bash", "-c", script]).timeout(LONG)
}

/// A shell handles a signal only after the program that it waits for, so that has to get it too.
#[test]
fn it_reaches_the_process_group_of_the_command() {
    need!("bash");
    in_worlds(|world| {
        let attempt = world.program("attempt");
        for (name, number) in [("TERM", libc::SIGTERM), ("INT", libc::SIGINT)] {
            let marker = processes::marker();
            let script = format!("trap 'echo got {name}; exit 3' {name}; {attempt} sleep {marker}; echo on");
            let running = run(world, &["--kill-after", "30s"], &script).start();
            running.wait_for("sleeping\n");
            running.signal(number);
            running.wait().exited(3).prints(&format!("sleeping\ngot {name}\n"));
            processes::none_left(&marker);
        }
        // Any other is for the command alone, and its program goes on.
        let script =
            "trap 'echo got USR1' USR1; (trap 'echo child' USR1; echo up; sleep 1; sleep 1); echo on";
        let running = run(world, &[], script).start();
        running.wait_for("up\n");
        running.signal(libc::SIGUSR1);
        running.wait().success().prints("up\ngot USR1\non\n");
    });
}

#[test]
fn who_does_not_end_is_killed_with_all_that_it_started() {
    need!("bash", "perl");
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let marker = processes::marker();
        let script =
            format!("trap '' TERM INT; (setsid {attempt} sleep {marker} &); {attempt} sleep {marker}");
        for number in [libc::SIGTERM, libc::SIGINT] {
            let running = run(world, &["--kill-after", "300ms"], &script).start();
            running.wait_for("sleeping\nsleeping\n");
            running.signal(number);
            let out = running.wait().exited(137);
            out.says("it had not ended 300ms after SIG").says("--kill-after");
            processes::none_left(&marker);
        }
        // The second signal does not wait. That of timeout(1) to the whole group is none.
        let running = run(world, &["--kill-after", "30s"], &script).start();
        running.wait_for("sleeping\nsleeping\n");
        running.signal(libc::SIGTERM);
        running.signal(libc::SIGTERM);
        std::thread::sleep(Duration::from_millis(300));
        assert!(processes::with_marker(&marker).len() > 2);
        running.signal(libc::SIGTERM);
        running.wait().exited(137).says("SIGTERM came a second time");
        processes::none_left(&marker);
        let program = "$| = 1; $SIG{TERM} = 'IGNORE'; print qq(up\\n); sleep 60";
        let words = ["run", "-p", "minimal", "--kill-after", "200ms", "--", "perl", "-e", program, &marker];
        let running = world.sbx(words).timeout(LONG).start();
        running.wait_for("up\n");
        running.signal(libc::SIGTERM);
        running.wait().exited(137);
        processes::none_left(&marker);
    });
}

#[test]
fn a_command_may_take_its_time_where_that_is_allowed_or_nobody_asked() {
    need!("bash");
    in_worlds(|world| {
        let script =
            "trap 'echo got' TERM INT; echo up; for i in 1 2 3 4 5 6 7; do sleep 0.1; done; echo done";
        let running = run(world, &["--kill-after", "none"], script).start();
        running.wait_for("up\n");
        running.signal(libc::SIGTERM);
        assert!(running.wait().success().out().ends_with("done\n"));
        // The caller ignores it (nohup(1), a background job of a script), so it asks for nothing.
        let ignoring = run(world, &["--kill-after", "100ms"], script).ignoring(libc::SIGINT).start();
        ignoring.wait_for("up\n");
        ignoring.signal(libc::SIGINT);
        assert!(ignoring.wait().success().out().ends_with("done\n"));
        // The interrupt key only interrupts.
        let (running, terminal) = run(world, &["--kill-after", "100ms"], script).start_on_terminal();
        running.wait_for("up");
        terminal.types("\x03");
        std::thread::sleep(Duration::from_millis(250));
        terminal.types("\x03");
        let out = running.wait().success().out();
        assert!(out.contains("got") && out.contains("done"), "{out}");
    });
}
