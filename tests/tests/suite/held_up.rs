//! Nothing that a command does blocks the supervisor, whose one thread enforces every limit.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use sbx_tests::{Output, User, World, as_users, in_worlds, processes, stage};

/// Runs it in a session of its own, so without a terminal, wherever the tests are run from.
fn without_terminal(world: &World, words: &[&str]) -> Output {
    world.bare(["setsid", "-w"]).arg(stage::sbx()).args(words).run()
}

/// Fills its standard error without waiting, and then makes a call that is refused.
const FILLS: &str = "\
import os, socket, sys, time
os.set_blocking(2, False)
for size in 4096, 1:
    try:
        while True: os.write(2, b'x' * size)
    except BlockingIOError: pass
os.set_blocking(2, True)
try: socket.socket(40)
except OSError: pass
time.sleep(1000)
";

#[test]
fn a_late_reader_delays_lines_and_not_the_end() {
    in_worlds(|world| {
        let marker = processes::marker();
        world.write("fills.py", FILLS);
        // Not among the arguments of sbx, which lives longer.
        world.write("fills.sh", format!("exec python3 fills.py {marker}"));
        let (mut reader, writer) = std::io::pipe().unwrap();
        let running =
            world.sbx(["run", "-t", "1s", "--", "sh", "fills.sh"]).pass_fd(OwnedFd::from(writer), 2).start();
        processes::wait_for(&marker, 1);
        std::thread::sleep(Duration::from_secs(2));
        processes::none_left(&marker);
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        running.wait().exited(124);
        let lines = said.trim_start_matches('x');
        assert!(said.len() > 60_000 && lines.starts_with("sbx: blocked socket(AF_VSOCK"), "{lines}");
        assert!(lines.contains("timed out after 1s"), "{lines}");
    });
}

/// Makes the run end with a sentence for which there is no room.
#[test]
fn a_reader_that_does_not_take_the_last_sentence_delays_nothing() {
    as_users(|user| {
        for (waits, comes) in [("True", false), ("True", true), ("False", true)] {
            let world = World::new(user);
            world.make_dir(&world.path("place"));
            let fills = FILLS.split_once("os.set_blocking(2, True)").unwrap().0;
            let fills = format!("{fills}os.set_blocking(2, {waits})\nos.rename('place', 'away')");
            world.write("fills.py", fills);
            let (mut reader, writer) = std::io::pipe().unwrap();
            let running = world
                .sbx(["run", "-t", "1s", "--report", "place/r", "--", "python3", "fills.py"])
                .pass_fd(OwnedFd::from(writer), 2)
                .start();
            let mut said = String::new();
            if comes {
                std::thread::sleep(Duration::from_secs(2));
                reader.read_to_string(&mut said).unwrap();
                assert!(said.contains("its directory was moved"), "{}", said.trim_start_matches('x'));
            }
            // Within the time limit of a test.
            running.wait().exited(125);
        }
    });
}

#[test]
fn a_terminal_that_takes_no_output_delays_nothing() {
    let world = World::new(&User::ordinary());
    let waits = "import os, socket, time\nprint('up', flush=True)\n\
                 while not os.path.exists('stopped'): time.sleep(0.01)\n\
                 try: socket.socket(40)\nexcept OSError: pass\ntime.sleep(1000)";
    let (running, terminal) =
        world.sbx(["run", "-t", "3s", "--", "python3", "-c", waits]).start_on_terminal();
    running.wait_for("up");
    // As the stop key does (stty stop).
    terminal.types("\u{13}");
    world.write("stopped", "");
    running.wait().exited(124);
}

#[test]
fn a_terminal_that_stops_background_writers_delays_nothing() {
    let world = World::new(&User::ordinary());
    let program = "import os, signal, socket, termios, time\n\
                   signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n\
                   modes = termios.tcgetattr(0)\nmodes[3] |= termios.TOSTOP\n\
                   termios.tcsetattr(0, termios.TCSANOW, modes)\n\
                   os.setpgid(0, 0)\nos.tcsetpgrp(0, os.getpid())\n\
                   try: socket.socket(40)\nexcept OSError: pass\ntime.sleep(1000)";
    let program = world.write("program.py", program);
    let sbx = stage::sbx();
    let script =
        format!("set -m; {} run -t 1s -- python3 {}; echo \"ended $?\"", sbx.display(), program.display());
    let (running, _terminal) = world.bare(["bash", "-c", &script]).start_on_terminal();
    running.wait_for("ended 124");
    assert!(running.wait().out().contains("sbx: blocked socket(AF_VSOCK"));
}

#[test]
fn a_command_that_stops_itself_can_be_continued_by_its_own_child() {
    in_worlds(|world| {
        let script = "(sleep 0.3; kill -CONT $$) & kill -STOP $$; echo went on";
        without_terminal(world, &["run", "--", "sh", "-c", script]).success().prints("went on\n");
    });
}

#[test]
fn memory_is_watched_while_the_command_is_stopped() {
    in_worlds(|world| {
        let child = "import time; kept = b'x' * (30 << 20); time.sleep(1000)";
        let script = format!("for n in 1 2 3 4 5 6; do python3 -c \"{child}\" & done; kill -STOP $$");
        let out = without_terminal(world, &["run", "--max-memory", "100M", "--", "sh", "-c", &script]);
        out.exited(137).says("more than 100 MiB of memory");
    });
}

/// The state of a process, as ps(1) shows it.
fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[test]
fn on_a_terminal_the_whole_run_is_stopped() {
    in_worlds(|world| {
        let script = "(while :; do echo x >>log; sleep 0.02; done) & sleep 0.3; kill -STOP $$; echo went on";
        let (running, _terminal) = world.sbx(["run", "--", "sh", "-c", script]).start_on_terminal();
        let start = Instant::now();
        while state(running.pid()) != Some('T') && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(500));
        let written = world.read("log").unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(written, world.read("log").unwrap());
        running.signal(libc::SIGCONT);
        running.wait_for("went on");
        running.wait().success();
    });
}

/// Connects to a server that accepts nobody, and lifts the socket's own time limit meanwhile.
const CONNECTS: &str = "\
import os, socket, struct, threading
server = socket.socket(socket.AF_UNIX)
server.bind('socket')
server.listen(0)
first = socket.socket(socket.AF_UNIX)
first.connect('socket')
other = socket.socket(socket.AF_UNIX)
def lift():
    while True: other.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('qq', 0, 0))
for _ in range(2): threading.Thread(target=lift, daemon=True).start()
other.connect('socket')
print('connected', flush=True)
os._exit(0)
";

#[test]
fn a_server_with_a_full_queue_delays_nothing() {
    in_worlds(|world| {
        // The command waits, as without a sandbox. The supervisor goes on, and ends it in time.
        let start = Instant::now();
        world.sbx(["run", "-t", "2s", "--", "python3", "-c", CONNECTS]).run().exited(124).prints("");
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    });
}

/// Runs `words` under a time limit in whole seconds; returns how long the run lasted after that. A busy machine may
/// need more than `seconds` until the command is ready; then it gets more.
fn once_ready(world: &World, seconds: u64, words: &[&str]) -> (Output, Duration) {
    let run = |seconds: u64| {
        let (start, limit) = (Instant::now(), format!("{seconds}s"));
        let out = world.sbx(["run", "-t", &limit]).args(words).run();
        (out, start.elapsed().saturating_sub(Duration::from_secs(seconds)))
    };
    let first = run(seconds);
    if first.0.out().is_empty() { run(6 * seconds) } else { first }
}

/// Reading the memory of a process, or changing a file, waits behind all that queue for its lock.
#[test]
fn locks_that_a_thousand_threads_queue_for_delay_nothing() {
    in_worlds(|world| {
        let convoy = world.program("convoy");
        for (profile, what) in [("minimal", "memory"), ("workspace", "memory"), ("workspace", "file")] {
            let (out, late) = once_ready(world, 3, &["-q", "-p", profile, "--", &convoy, what]);
            out.exited(124).prints("ready\n");
            assert!(late < Duration::from_secs(5), "{profile} {what}: {late:?} late");
        }
    });
}

/// Counting the memory of many processes takes long if each is slow to tell, or cannot be compared with its parent.
#[test]
fn processes_that_are_slow_to_inspect_delay_no_limit() {
    in_worlds(|world| {
        let crowd = world.program("crowd");
        for (limit, what) in [("150M", "exec"), ("2G", "look")] {
            let (out, late) = once_ready(world, 5, &["--max-memory", limit, "--", &crowd, what]);
            let out = out.failed();
            // A count that takes too long counts shared memory in full for each process: on a busy machine that ends
            // the run before all of them are there.
            let by_time = out.err().contains("timed out after") && out.out() == "ready\n";
            assert!(by_time || out.err().contains("iB of memory"), "{out}");
            assert!(late < Duration::from_secs(10), "{what}: {late:?} late");
        }
    });
}
