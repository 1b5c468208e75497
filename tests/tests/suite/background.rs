//! A run in the background of a terminal: what is typed there is for others. And what a run leaves of the open files
//! and the terminal that it shares with its caller.

use crate::terminal::shell;
use sbx_tests::{World, in_worlds, promise, sys};
use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

/// What a command has read of what is typed while it is in the background of a shell.
fn overheard(world: &World, sbx: &str, reader: &str) -> String {
    let (running, terminal) = shell(world);
    terminal
        .types(&format!("{sbx} bash -c 'echo > there; exec setsid bash -c \"{reader}\"' >log 2>&1 <&0 &\n"));
    wait_for(world, "there");
    terminal.types("echo one | tr o O\n");
    std::thread::sleep(Duration::from_millis(300));
    terminal.types("echo two | tr o O\n");
    std::thread::sleep(Duration::from_millis(300));
    // What the reader takes is not executed, so the shell may wait for another one.
    terminal.types("kill %1; exit\nexit\nexit\n");
    running.kill();
    world.read("heard").unwrap_or_default()
}

/// What a script shows on a terminal of its own.
fn shown(world: &World, script: &str) -> String {
    let (running, _terminal) = world.bare(["bash", "-c", script]).start_on_terminal();
    running.wait().out()
}

fn wait_for(world: &World, name: &str) {
    for _ in 0..2000 {
        if world.exists(name) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("there is no '{name}'");
}

/// The kernel keeps only processes of the terminal's own session from reading it there.
#[test]
fn a_run_in_the_background_reads_nothing_of_what_is_typed() {
    promise!(namespaces);
    in_worlds(|world| {
        for (reader, twin) in
            [("timeout 5 cat > heard", true), ("exec 3<>/dev/tty; timeout 5 cat <&3 > heard", false)]
        {
            assert_eq!(overheard(world, "sbx run -q --", reader), "", "{reader}");
            let _ = std::fs::remove_file(world.path("there"));
            if twin {
                assert!(overheard(world, "env", reader).contains("echo"), "{reader}");
                let _ = std::fs::remove_file(world.path("there"));
                let _ = std::fs::remove_file(world.path("heard"));
            }
        }
    });
}

/// Its input has an end, as of a command in the background of a shell without jobs.
#[test]
fn a_run_in_the_background_has_no_input() {
    in_worlds(|world| {
        let (running, terminal) = shell(world);
        for profile in ["workspace", "no-exec", "write"] {
            terminal.types(&format!("sbx run -q -p {profile} -- cat && echo {profile}-$((40+1)) &\n"));
            running.wait_for(&format!("{profile}-41"));
        }
        terminal.types("exit 0\n");
        running.wait().success();
    });
}

/// It is a job all the same: it writes to the terminal, is stopped, continued and interrupted.
#[test]
fn a_run_in_the_background_is_a_job() {
    promise!(namespaces);
    in_worlds(|world| {
        let (running, terminal) = shell(world);
        terminal.types("sbx run -- bash -c 'echo writes; while sleep 0.05; do date +%N > beat; done' &\n");
        running.wait_for("writes\r\n");
        wait_for(world, "beat");
        terminal.types("fg\n");
        // The shell names the job when it is there.
        running.wait_for_times("sbx run -- bash", 2);
        std::thread::sleep(Duration::from_millis(300));
        terminal.types("\u{1a}");
        running.wait_for("Stopped");
        std::thread::sleep(Duration::from_millis(200));
        let then = world.read("beat");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(world.read("beat"), then);
        terminal.types("fg\n");
        let goes_on = |_| {
            std::thread::sleep(Duration::from_millis(10));
            world.read("beat") != then
        };
        assert!((0..2000).any(goes_on), "it does not go on: {}", running.so_far());
        terminal.types("\u{3}");
        terminal.types("echo status-$?-$((40+1))\n");
        running.wait_for("-41");
        terminal.types("exit\n");
        let out = running.wait();
        assert!(out.out().contains("status-130-41"), "{out}");
    });
}

/// Flags of an open file belong to whoever uses it next (fcntl(2)).
#[test]
fn flags_of_the_callers_files_are_as_before() {
    let change = "import fcntl, os\n\
        for n in (0, 1, 2): fcntl.fcntl(n, fcntl.F_SETFL, fcntl.fcntl(n, fcntl.F_GETFL) ^ os.O_NONBLOCK ^ os.O_APPEND)";
    let ask = "import fcntl; print([fcntl.fcntl(n, fcntl.F_GETFL) & 0o6000 for n in (0, 1)])";
    in_worlds(|world| {
        let after = |sbx: &str| {
            let script = format!("{sbx} /usr/bin/python3 -c '{change}'; /usr/bin/python3 -c '{ask}'");
            shown(world, &script)
        };
        let sbx = sbx_tests::stage::sbx();
        assert!(after(&format!("{} run -q --", sbx.display())).contains("[0, 0]"));
        assert!(!after("").contains("[0, 0]"));
        // A file that is written to: no byte of it is lost, and none comes to its end.
        let file = world.write("file", "");
        let opened = File::create(&file).unwrap();
        let run = world.sbx(["run", "-q", "--", "/usr/bin/python3", "-c", change]);
        run.pass_fd(opened.try_clone().unwrap().into(), 1).run().success();
        assert_eq!(sys::status_flags(opened.as_fd()) & (libc::O_NONBLOCK | libc::O_APPEND), 0);
    });
}

/// A terminal in exclusive mode would stay so after the command has ended: no program there could ask for a password.
#[test]
fn the_terminal_cannot_be_made_exclusive() {
    let exclusive = "import fcntl, sys; fcntl.ioctl(0, int(sys.argv[1], 0))";
    let ask = "import fcntl; print('exclusive', fcntl.ioctl(0, 0x80045440, bytes(4))[0])";
    in_worlds(|world| {
        let after = |sbx: &str, command: &str| {
            let script = format!(
                "{sbx} /usr/bin/python3 -c '{exclusive}' {command} 2>/dev/null; /usr/bin/python3 -c \"{ask}\""
            );
            shown(world, &script)
        };
        let sbx = sbx_tests::stage::sbx();
        for profile in ["workspace", "read-only", "no-exec", "minimal"] {
            for command in ["0x540c", "0x10000540c"] {
                let shown = after(&format!("{} run -q -p {profile} --", sbx.display()), command);
                assert!(shown.contains("exclusive 0"), "{profile} {command}: {shown}");
            }
        }
        let shown = after("", "0x540c");
        assert!(shown.contains("exclusive 1"), "{shown}");
    });
}

/// Output that is stopped (TCOOFF) would stay so: nobody would see what is printed next.
#[test]
fn the_terminals_output_cannot_be_stopped() {
    let stop = "import fcntl; fcntl.ioctl(0, 0x540a, 0)";
    let ask = "import select, termios; there = select.select([], [1], [], 0.3)[1]; \
               termios.tcflow(1, termios.TCOON); print('goes on' if there else 'stopped')";
    in_worlds(|world| {
        let after = |sbx: &str| {
            let script =
                format!("{sbx} /usr/bin/python3 -c '{stop}' 2>/dev/null; /usr/bin/python3 -c \"{ask}\"");
            shown(world, &script)
        };
        let sbx = sbx_tests::stage::sbx();
        for profile in ["workspace", "read-only", "no-exec", "minimal"] {
            let shown = after(&format!("{} run -q -p {profile} --", sbx.display()));
            assert!(shown.contains("goes on"), "{profile}: {shown}");
        }
        assert!(after("").contains("stopped"));
    });
}
