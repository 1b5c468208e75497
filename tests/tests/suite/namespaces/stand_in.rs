//! What the reaper does where the supervisor cannot, because it was killed.

use super::aftermath::{FSMONITOR, in_directories, looked_at, planted};
use super::pointers::executes;
use super::shell;
use sbx_tests::World;

/// A repository of the command's own, and one of a submodule, which later runs would take for the user's.
fn script(world: &World) -> String {
    let made = "git init -q lib; GIT=lib/.git; FSMONITOR; git init -q .; git init -q --bare .git/modules/x; \
                GIT=.git/modules/x; FSMONITOR; echo ready; sleep 60";
    planted(world, &made.replace("FSMONITOR", FSMONITOR))
}

#[test]
fn the_reaper_looks_at_the_workspace_of_a_killed_supervisor() {
    for flags in [&[][..], &["--namespaces", "none"]] {
        in_directories(|world| {
            let running = shell(world, flags, &script(world)).start();
            running.wait_for("ready");
            running.signal(libc::SIGKILL);
            let out = running.wait().died_of(libc::SIGKILL);
            for place in ["lib/.git", ".git/modules/x"] {
                let line = format!("made the repository '{}'", world.path(place).display());
                assert_eq!(out.err().matches(&line).count(), 1, "{out}");
                assert!(world.exists(format!("{place}/config.sbx-aside")), "{place}");
            }
            assert!(!looked_at(world, "lib"));
            assert!(!executes(world, "git --git-dir=.git/modules/x --work-tree=. status"));
            // It was written down.
            shell(world, &[], "true").run().success().silent();
            shell(world, &["-q"], &planted(world, &format!("GIT=lib/.git; {FSMONITOR}"))).run();
            assert!(!looked_at(world, "lib"));
        });
    }
}

/// The control: git acts on what is left where nobody looks.
#[test]
fn without_a_reaper_git_acts_on_what_is_left() {
    in_directories(|world| {
        let running = shell(world, &[], &script(world)).start();
        running.wait_for("ready");
        running.kill_with_children();
        assert!(looked_at(world, "lib"));
    });
}
