//! The path that a run's own home has outside leads nowhere when the run has ended.

use super::aftermath::{in_directories, planted};
use super::git::plain;
use super::pointers::{executes, keeps_home};
use super::shell;
use sbx_tests::{Cmd, World, need};
use std::path::Path;

/// `$H`: where the home is outside.
const H: &str = "H=$(sed -n \"s,^[^/]* \\(/[^ ]*/sbx/homes/[^ ]*\\) $HOME .*,\\1,p\" /proc/self/mountinfo); test -n \"$H\"";

fn run(world: &World, script: &str) -> Cmd {
    shell(world, &["-q"], &format!("set -e; {H}; {script}"))
}

/// Whether the file `it` of the home is where a command saw it.
fn leads(seen: &str) -> bool {
    Path::new(seen.trim()).join("it").exists()
}

#[test]
fn a_home_has_another_path_when_nobody_uses_it_any_more() {
    in_directories(|world| {
        let seen = run(world, "echo x > ~/it; echo $H").run().success().out();
        assert!(!leads(&seen));
        // The next run has it, by another path.
        let later = run(world, "cat ~/it >&2; echo $H").run().success();
        assert!(later.err().contains("x\n") && later.out() != seen && !leads(&later.out()), "{later}");
        // Also after a run that was interrupted, which ends by the signal itself.
        let (interrupted, terminal) =
            run(world, "echo $H > h; echo ready; exec sleep 60").start_on_terminal();
        interrupted.wait_for("ready");
        assert!(leads(&world.read("h").unwrap()));
        terminal.types("\x03");
        interrupted.wait().died_of(libc::SIGINT);
        assert!(!leads(&world.read("h").unwrap()));
        // As long as another run uses it, its path stays.
        let other = run(world, "echo ready; sleep 60").start();
        other.wait_for("ready");
        let seen = run(world, "echo $H").run().success().out();
        assert!(leads(&seen));
        other.signal(libc::SIGTERM);
        other.wait();
        assert!(!leads(&seen));
    });
}

/// Mercurial loads the extensions of a repository on this machine that a subrepository comes from, in whichever
/// revision `.hgsub` says so.
#[test]
fn no_subrepository_of_mercurial_comes_from_a_home() {
    need!("hg");
    in_directories(|world| {
        let make =
            "printf '[ui]\\nusername = x\\n' > ~/.hgrc; hg init .; echo a > a; hg add -q a; hg commit -m 0";
        plain(world, make);
        let script = format!(
            "export HGUSER=x; rm -rf ~/evil sub; hg init ~/evil; (cd ~/evil; echo z > z; hg add -q z; hg commit -q -m z); \
             hg clone -q ~/evil sub; echo \"sub = $H/evil\" > .hgsub; hg add -q .hgsub; hg commit -q -m s; \
             hg update -q 0; rm -rf sub; printf \"[extensions]\\nx = $H/evil/x.py\\n\" > ~/evil/.hg/hgrc; \
             {}",
            planted(world, "printf 'import os\\nos.system(\"PLANTED\")\\n' > ~/evil/x.py")
        );
        run(world, &script).run().success();
        let update = "hg update tip; hg update -C 0";
        assert!(!executes(world, update));
        // The twin: it does, where the path stays.
        let _kept = keeps_home(world, &world.workspace);
        run(world, &script).run().success();
        assert!(executes(world, update));
    });
}
