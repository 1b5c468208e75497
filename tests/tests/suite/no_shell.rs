//! Runs on a terminal that was opened for them: no shell with jobs is there to continue what has stopped.

use super::terminal::on_terminal;
use sbx_tests::{in_worlds, need};
use std::time::Duration;

#[test]
fn without_a_shell_the_stop_key_stops_nothing() {
    in_worlds(|world| {
        let (running, terminal) = on_terminal(world, &["cat"]);
        terminal.types("one\n");
        running.wait_for_times("one", 2);
        terminal.types("\x1a");
        std::thread::sleep(Duration::from_millis(300));
        terminal.types("two\n");
        running.wait_for_times("two", 2);
        terminal.types("\x04");
        running.wait().success();
    });
}

/// dash gives the terminal back, at its end, to the process group that had it.
#[test]
fn a_shell_with_jobs_ends_with_its_own_status() {
    need!("bash", "dash");
    in_worlds(|world| {
        for shell in ["bash", "dash"] {
            let (running, _terminal) = on_terminal(world, &[shell, "-c", "set -m; (sleep 0.05); exit 4"]);
            running.wait().exited(4).prints("");
        }
    });
}
