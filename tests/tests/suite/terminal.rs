//! Interactive programs on a real pseudo-terminal, and shells that have `sbx` as a job.

use std::time::Duration;

use sbx_tests::command::{Running, Terminal};
use sbx_tests::{User, World, as_users, in_worlds, need, processes, stage, sys};

const TIME: Duration = Duration::from_secs(40);
/// Shows a line, and ends with another one: with the leader of its session a terminal loses what it has not shown yet.
const READS_TWICE: &str = "read -r line; echo \"<$line>\"; read -r line";

/// `sbx run -- COMMAND` on a terminal of its own.
pub fn on_terminal(world: &World, command: &[&str]) -> (Running, Terminal) {
    let words = [&["run", "--"], command].concat();
    world.sbx(words).env("TERM", "xterm").timeout(TIME).start_on_terminal()
}

/// An interactive shell without a sandbox, which finds `sbx`.
pub fn shell(world: &World) -> (Running, Terminal) {
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", stage::sbx().parent().unwrap().display());
    let bash = world.bare(["bash", "--norc", "--noprofile", "-i"]).env("PATH", &path).env("PS1", "ready$ ");
    let (running, terminal) = bash.env("TERM", "xterm").timeout(TIME).start_on_terminal();
    running.wait_for("ready$ ");
    (running, terminal)
}

/// The number of processes with the marker that are stopped.
fn stopped(marker: &str) -> usize {
    processes::with_marker(marker).into_iter().filter(|pid| is_stopped(*pid)).count()
}

fn is_stopped(pid: i32) -> bool {
    stat(pid).first().is_some_and(|state| state == "T")
}

/// The first process of the job that has the marker.
fn leader(marker: &str) -> Option<i32> {
    let first = *processes::with_marker(marker).first()?;
    stat(first).get(2)?.parse().ok()
}

/// State, parent, process group and what follows (proc_pid_stat(5)).
fn stat(pid: i32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    fields.split_whitespace().map(str::to_string).collect()
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..4000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("never happened: {what}");
}

#[test]
fn an_editor_edits() {
    need!("vim");
    in_worlds(|world| {
        world.write("file", "first\nsecond\n");
        let (running, terminal) = on_terminal(world, &["vim", "-u", "NONE", "-N", "-i", "NONE", "file"]);
        running.wait_for("second");
        terminal.types("Gothird\x1b:wq\r");
        running.wait().success();
        assert_eq!(world.read("file").unwrap(), "first\nsecond\nthird\n");
    });
}

#[test]
fn a_pager_pages() {
    need!("less", "bash", "seq");
    in_worlds(|world| {
        let lines: String = (1..=500).map(|number| format!("line-{number}.\n")).collect();
        world.write("file", lines);
        let (running, terminal) = on_terminal(world, &["less", "file"]);
        running.wait_for("line-1.");
        assert!(!running.so_far().contains("line-500."));
        terminal.types("G");
        running.wait_for("line-500.");
        terminal.types("q");
        running.wait().success();
        // At the far end of a pipe, and at the near end of one.
        let (running, terminal) = shell(world);
        terminal.types("sbx run -- seq -f 'row-%.0f.' 500 | less; echo paged-$((40+1))\n");
        running.wait_for("row-1.");
        terminal.types("G");
        running.wait_for("row-500.");
        terminal.types("q");
        running.wait_for("paged-41");
        terminal.types("seq -f 'col-%.0f.' 500 | sbx run -- less; echo paged-$((40+2))\n");
        running.wait_for("col-1.");
        terminal.types("G");
        running.wait_for("col-500.");
        terminal.types("q");
        running.wait_for("paged-42");
        terminal.types("exit 0\n");
        running.wait().success();
    });
}

#[test]
fn python_survives_the_interrupt_key() {
    in_worlds(|world| {
        let (running, terminal) = on_terminal(world, &["/usr/bin/python3", "-i", "-q"]);
        running.wait_for(">>> ");
        terminal.types("40+1\n");
        running.wait_for("41\r\n");
        terminal.types("import time; print('s' + 'leeps'); time.sleep(1000)\n");
        running.wait_for("sleeps");
        terminal.types("\x03");
        running.wait_for("KeyboardInterrupt");
        terminal.types("40+2\n");
        running.wait_for("42\r\n");
        terminal.types("exit(6)\n");
        running.wait().exited(6);
    });
}

#[test]
fn job_control_works_on_a_terminal() {
    need!("bash");
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let marker = processes::marker();
        let (running, terminal) = on_terminal(world, &["bash", "--norc", "--noprofile", "-i"]);
        terminal.types(&format!("PS1='in> '; {attempt} sleep {marker}\n"));
        running.wait_for("sleeping");
        terminal.types("\x1a");
        running.wait_for("Stopped");
        assert_eq!(stopped(&marker), 1);
        terminal.types("bg\n");
        wait_until("bg continues it", || stopped(&marker) == 0);
        terminal.types("echo free-$((40+1)); fg\n");
        running.wait_for("free-41");
        std::thread::sleep(Duration::from_millis(300));
        terminal.types("\x03");
        terminal.types("echo status-$?-$((40+2))\n");
        running.wait_for("status-130-42");
        terminal.types("exit 3\n");
        let out = running.wait().exited(3);
        assert!(!out.out().contains("no job control"), "{out}");
        processes::none_left(&marker);
    });
}

#[test]
fn the_window_size_and_its_changes_arrive() {
    in_worlds(|world| {
        let script = "trap 'stty size; exit 0' WINCH; stty size; while :; do sleep 0.05; done";
        let (running, terminal) = on_terminal(world, &["bash", "-c", script]);
        running.wait_for("0 0\r\n");
        terminal.resize(33, 101);
        running.wait_for("33 101\r\n");
        running.wait().success();
    });
}

/// In a shell, `sbx run` is a job like any other.
#[test]
fn a_job_is_stopped_and_continued_as_a_whole() {
    need!("bash");
    in_worlds(|world| {
        let attempt = world.program("attempt");
        // Under a reaper, and without one.
        for profile in ["workspace", "no-exec"] {
            let marker = processes::marker();
            let (running, terminal) = shell(world);
            terminal.types(&format!("sbx run -p {profile} -- {attempt} sleep {marker}\n"));
            running.wait_for("sleeping");
            for round in 1..=3 {
                terminal.types("\x1a");
                running.wait_for_times("Stopped", round);
                // The supervisor and the command; a reaper only waits.
                wait_until("both stop", || stopped(&marker) == 2);
                terminal.types("fg\n");
                wait_until("both go on", || stopped(&marker) == 0);
                // As slow as a person: the job is continued in several steps.
                std::thread::sleep(Duration::from_millis(100));
            }
            terminal.types("\x1a");
            running.wait_for_times("Stopped", 4);
            terminal.types("bg\n");
            wait_until("both go on in the background", || stopped(&marker) == 0);
            terminal.types("kill %1; wait; echo killed-$((40+1))\n");
            running.wait_for("killed-41");
            processes::none_left(&marker);
            terminal.types("exit 0\n");
            running.wait().success();
        }
    });
}

/// timeout(1), debuggers and shells with jobs make process groups of their own, and have the terminal all the same.
#[test]
fn programs_with_groups_of_their_own_have_the_terminal() {
    need!("bash", "timeout");
    in_worlds(|world| {
        for flags in ["", "--namespaces none", "-p read-only"] {
            let (running, terminal) = shell(world);
            let groups = "import os; print(os.getpgrp() == os.tcgetpgrp(0) == os.getpid(), 40+1)";
            terminal.types(&format!("sbx run {flags} -- /usr/bin/python3 -c '{groups}'\n"));
            running.wait_for("True 41");
            terminal.types(&format!(
                "sbx run {flags} -- bash -c 'set -m; sleep 0.05 & fg; echo job-$((40+$?))'\n"
            ));
            running.wait_for("job-40");
            terminal
                .types(&format!("sbx run {flags} -- timeout 60 sh -c 'read -r line; echo got-$line; cat'\n"));
            std::thread::sleep(Duration::from_millis(500));
            terminal.types("one\n");
            running.wait_for("got-one");
            terminal.types("\x1a");
            running.wait_for("Stopped");
            // The shell has the terminal again when it has asked for the fourth time.
            running.wait_for_times("ready$ ", 4);
            terminal.types("fg\n");
            std::thread::sleep(Duration::from_millis(700));
            terminal.types("two\n");
            running.wait_for_times("two", 2);
            terminal.types("\x03");
            // One of them may read what is typed before it has heard of the key.
            std::thread::sleep(Duration::from_millis(500));
            terminal.types("echo over-$((40+2)); exit 0\n");
            running.wait_for("over-42");
            running.wait().success();
        }
    });
}

#[test]
fn the_interrupt_key_reaches_only_the_command() {
    need!("bash");
    in_worlds(|world| {
        let (running, terminal) = shell(world);
        let caught = "trap \"echo caught; exit 5\" INT; echo up-1; while :; do sleep 0.02; done";
        terminal.types(&format!("sbx run -- bash -c '{caught}'; echo status-$?\n"));
        running.wait_for("up-1\r");
        terminal.types("\x03");
        running.wait_for("status-5");
        assert!(running.so_far().contains("caught"));
        terminal.types("sbx run -- bash -c 'echo up-2; exec sleep 1000'\n");
        running.wait_for("up-2\r");
        terminal.types("\x03");
        terminal.types("echo status-$?; exit 0\n");
        running.wait_for("status-130");
        running.wait().success();
    });
}

/// readline(3) has the terminal go on then, which nothing has stopped.
#[test]
fn the_interrupt_key_at_a_prompt_is_no_refusal() {
    need!("bash", "python3");
    in_worlds(|world| {
        let (running, terminal) = on_terminal(world, &["bash", "--norc", "--noprofile", "-i"]);
        terminal.types("PS1='re''ady$ '\n");
        running.wait_for("ready$ ");
        terminal.types("abc\x03");
        running.wait_for_times("ready$ ", 2);
        terminal.types("echo on-$((40+1))\n");
        running.wait_for("on-41");
        assert!(!running.so_far().contains("blocked"), "{}", running.so_far());
        // What would stop it is one.
        terminal.types("/usr/bin/python3 -c 'import fcntl; fcntl.ioctl(0, 0x540a, 0)'\n");
        running.wait_for("blocked ioctl(0, TCXONC)");
        terminal.types("exit 0\n");
        running.wait().success();
    });
}

/// A shell ends its script when a program that it waits for was ended by the interrupt key, and goes on after a status.
#[test]
fn the_interrupt_key_ends_a_script_around_a_run() {
    need!("bash");
    in_worlds(|world| {
        let (running, terminal) = shell(world);
        let script =
            "for i in 1 2 3; do sbx run -- sh -c 'echo up-'$i'; exec sleep 1000'; echo over-$?; done";
        world.write("script", script);
        terminal.types("bash script; echo all-$((40+2))\n");
        running.wait_for("up-1\r");
        terminal.types("\x03");
        terminal.types("echo still-$((40+3)); exit 0\n");
        running.wait_for("still-43");
        let said = running.so_far();
        assert!(!said.contains("over-130") && !said.contains("up-2"), "{said}");
        running.wait().success();
    });
}

/// With `stty tostop` the kernel stops every process that writes to the terminal, or changes it, from the background.
#[test]
fn with_pipes_the_terminal_is_not_touched() {
    need!("bash");
    in_worlds(|world| {
        let (running, terminal) = shell(world);
        for profile in ["workspace", "no-exec"] {
            terminal.types("stty tostop\n");
            let marker = processes::marker();
            let command = format!("sbx run -v -p {profile} -- sh -c 'echo text; echo more >&2' {marker}");
            terminal.types(&format!("</dev/null {command} 2>&1 | cat >collected-{profile} &\n"));
            wait_until("it ends", || {
                assert_eq!(stopped(&marker), 0, "{profile}: {}", running.so_far());
                world.read(format!("collected-{profile}")).is_some_and(|text| text.contains("exited with 0"))
            });
            assert!(!running.so_far().contains("sbx: "), "{}", running.so_far());
            // The control: what does write there is stopped.
            terminal.types(&format!("</dev/null sh -c 'echo text' {marker} &\n"));
            wait_until("a writer is stopped", || leader(&marker).is_some_and(is_stopped));
            terminal.types("stty -tostop; fg; jobs; echo next-$((40+1))\n");
            running.wait_for_times("next-41", if profile == "workspace" { 1 } else { 2 });
        }
        terminal.types("exit 0\n");
        running.wait().success();
    });
}

/// Stops and continues faster than a person could, as scripts do, and shells under load.
#[test]
fn a_job_that_is_continued_at_once_goes_on() {
    need!("bash");
    as_users(|user| {
        for profile in ["workspace", "no-exec", "write"] {
            let world = World::new(user);
            world.write("ticks", "");
            let (running, terminal) = shell(&world);
            let marker = processes::marker();
            let script = "while :; do echo >> ticks; for i in 1 2 3 4 5 6 7 8 9; do :; done; done";
            let command = format!("sbx run -p {profile} -- bash -c '{script}' {marker}");
            terminal.types(&format!("{command} </dev/null &\n"));
            let ticks = || world.read("ticks").unwrap_or_default().len();
            wait_until("it runs", || ticks() > 0);
            let sbx = leader(&marker).expect("it has ended");
            for round in 0..60 {
                // A request to stop may be overtaken while the tree is still being continued.
                let stops = || {
                    sys::kill_group(sbx, libc::SIGTSTP);
                    round % 2 == 1 || (0..20_000).any(|_| is_stopped(sbx))
                };
                assert!((0..50).any(|_| stops()), "it does not stop in round {round}");
                sys::kill_group(sbx, libc::SIGCONT);
                std::thread::sleep(Duration::from_millis(5));
                let before = ticks();
                wait_until(&format!("it goes on in round {round}"), || ticks() > before);
            }
            terminal.types("kill %1; wait %1; echo status-$?; exit 0\n");
            running.wait_for("status-143");
            running.wait().success();
        }
    });
}

#[test]
fn terminal_modes_are_restored_when_the_command_could_not() {
    let script = "stty -echo -icanon; echo raw; sleep 1000";
    in_worlds(|world| {
        for killer in ["timeout", "violation", "kill"] {
            let flags: &[&str] = match killer {
                "timeout" => &["--timeout", "1s"],
                "violation" => &["--on-violation", "kill"],
                _ => &[],
            };
            let script = match killer {
                "violation" => "stty -echo -icanon; echo raw; read -r line; exec 3<>/dev/tcp/192.0.2.1/9",
                "kill" => "stty -echo -icanon; echo raw; read -r line; kill -KILL $$",
                _ => script,
            };
            let words = [&["run"], flags, &["--", "bash", "-c", script]].concat();
            // The terminal's other side is held by a script that goes on afterwards, without job control.
            let outer = format!("{} \"$@\"; echo status-$?; {READS_TWICE}", stage::sbx().display());
            let all = [&["sh", "-c", &outer, "sh"], &words[..]].concat();
            let (running, terminal) = world.bare(all).timeout(TIME).start_on_terminal();
            running.wait_for("raw");
            assert_eq!(terminal.modes(), (false, false), "{killer}");
            if killer != "timeout" {
                terminal.types("x\n");
            }
            running.wait_for("status-");
            assert_eq!(terminal.modes(), (true, true), "{killer}: {}", running.so_far());
            terminal.types("typed\n");
            running.wait_for("<typed>");
            terminal.types("\n");
            running.wait().success();
        }
        // Changes that the command makes on purpose stay.
        let words = ["run", "--", "sh", "-c", "stty -echo; exit 3"];
        let outer = format!("{} \"$@\"; echo status-$?; read -r line", stage::sbx().display());
        let all = [&["sh", "-c", &outer, "sh"], &words[..]].concat();
        let (running, terminal) = world.bare(all).timeout(TIME).start_on_terminal();
        running.wait_for("status-3");
        assert_eq!(terminal.modes(), (false, true));
        terminal.types("x\n");
        running.wait().success();
    });
}

/// An interactive shell makes its own process group the terminal's; if it is killed, it cannot give the terminal back.
#[test]
fn the_caller_gets_the_terminal_back_after_a_killed_shell() {
    need!("bash");
    let world = World::new(&User::ordinary());
    let inner = "run --timeout 1s -- bash --norc --noprofile -i";
    let outer = format!("{} {inner}; echo status-$?; {READS_TWICE}", stage::sbx().display());
    let (running, terminal) = world.bare(["sh", "-c", &outer]).timeout(TIME).start_on_terminal();
    running.wait_for("status-124");
    assert_eq!(terminal.modes(), (true, true));
    terminal.types("typed\n");
    running.wait_for("<typed>");
    terminal.types("\n");
    running.wait().success();
}

/// When a terminal is gone, the kernel tells the leader of its session, which is `sbx` if nothing is around it.
#[test]
fn a_terminal_that_hangs_up_ends_the_run() {
    need!("script", "bash");
    in_worlds(|world| {
        for profile in ["workspace", "no-exec"] {
            let marker = processes::marker();
            let trap =
                "trap 'echo heard >heard; exit' HUP; echo up; while :; do read -t 0.01 <>/dev/null; done";
            let plain = "echo up; while :; do read -t 0.01 <>/dev/null; done";
            for script in [trap, plain] {
                let line = format!(
                    "exec {} run -p {profile} -- bash -c \"{script}\" {marker}",
                    stage::sbx().display()
                );
                let running = world.bare(["script", "-qec", &line, "/dev/null"]).timeout(TIME).start();
                running.wait_for("up");
                assert!(!processes::with_marker(&marker).is_empty());
                running.signal(libc::SIGKILL);
                wait_until("the run ends", || processes::with_marker(&marker).is_empty());
                running.wait().died_of(libc::SIGKILL);
            }
            assert_eq!(world.read("heard").as_deref(), Some("heard\n"), "{profile}");
            world.bare(["rm", "heard"]).run().success();
        }
    });
}
