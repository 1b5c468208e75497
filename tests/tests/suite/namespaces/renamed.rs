//! Files that a process outside renames while a command runs: a mount goes with its file, and what takes its place is
//! protected as well.

use super::aftermath::{looked_at, planted};
use super::git::{in_repositories, plain};
use super::shell;
use sbx_tests::world::SECRET;
use std::fs;
use std::time::Duration;

/// As editors save that keep the old file.
#[test]
fn what_takes_the_place_of_a_renamed_file_is_protected() {
    in_repositories(|world| {
        world.write("conf/secret", "old\n");
        world.write("deep/er/secret", "old\n");
        let script = "echo ready; until [ -e go ]; do sleep 0.02; done; cat conf/secret deep/er/secret; \
            printf '[core]\nfsmonitor = \"PLANTED; false\"\n' >> .git/config; echo over";
        let flags = ["-q", "--deny", "conf/secret", "--deny", "deep/er/secret"];
        let running = shell(world, &flags, &planted(world, script)).start();
        running.wait_for("ready");
        let text = world.read(".git/config").unwrap();
        for (name, new) in [("conf/secret", SECRET), (".git/config", &text)] {
            fs::rename(world.path(name), world.path(format!("{name}~"))).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            world.write(name, new);
        }
        // A directory above one.
        fs::rename(world.path("deep"), world.path("old")).unwrap();
        world.write("deep/er/secret", SECRET);
        // A process that waits for this moment may be faster; an ordinary command is not.
        std::thread::sleep(Duration::from_millis(300));
        world.write("go", "");
        running.wait().success().prints("ready\nover\n");
        assert!(!looked_at(world, "."));
        assert_eq!(world.read(".git/config").unwrap(), text);
        // The twin: a new file that nothing names.
        fs::remove_file(world.path("go")).unwrap();
        let running =
            shell(world, &["-q"], "echo ready; until [ -e go ]; do sleep 0.02; done; cat file").start();
        running.wait_for("ready");
        plain(world, "mv file file~; echo new > file; touch go");
        running.wait().success().prints("ready\nnew\n");
    });
}
