//! Runs the same commands with and without `sbx` in the same place and compares everything that can be seen.

use std::path::PathBuf;
use std::process::Command;

use sbx_tests::tree::{Tree, differences, snapshot};
use sbx_tests::{Output, World, need};

/// The files in the workspace before each command. Their times are old, so that a time set by a command differs from
/// "now".
const SETUP: &str = r#"
set -e
mkdir -p dir/sub
printf 'one\ntwo\nthree\ntwo\n' > lines
printf 'b 2\na 1\nc 3\n' > table
printf 'one\nTWO\nthree\n' > other
printf 'needle in here\n' > dir/sub/deep
printf 'plain\n' > dir/file
printf '{"name": "sbx", "list": [1, 2, 3]}\n' > data.json
printf 'id,name\n1,x\n2,y\n' > data.csv
printf 'echo from a script\n' > script.sh
gzip -nc lines > packed.gz
tar --sort=name --mtime=@1000000000 -cf archive.tar dir
tar --sort=name --mtime=@1000000000 -czf archive.tgz dir
diff -u --label lines --label other lines other > change.patch || true
ln -s lines link
chmod 755 script.sh
find . -exec touch -h -d @1000000000 {} +
"#;

/// Lays the workspace out anew, as the user that will work in it.
fn lay(world: &World) {
    for entry in std::fs::read_dir(&world.workspace).unwrap().flatten() {
        let path = entry.path();
        let gone = if entry.file_type().unwrap().is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        gone.unwrap();
    }
    world.bare(["sh", "-c", SETUP]).run().success();
}

/// Everything that can be compared between two runs of one command.
#[derive(PartialEq)]
struct Seen {
    code: Option<i32>,
    stdout: String,
    stderr: Vec<String>,
    tree: Tree,
}

impl Seen {
    /// The differences to the other run, for a message.
    fn unlike(&self, other: &Seen) -> String {
        let tree = differences(&self.tree, &other.tree);
        format!("code {:?}, stdout {:?}, stderr {:?}, files {tree:?}", self.code, self.stdout, self.stderr)
    }
}

fn seen(world: &World, out: &Output) -> Seen {
    Seen { code: out.code, stdout: out.out(), stderr: out.own_lines(), tree: snapshot(&world.workspace) }
}

/// Runs every command of a list both ways. Collects all differences, so that one test run shows them all.
pub fn behaves_the_same(world: &World, profile: &str, commands: &[&[&str]]) {
    let outside = snapshot(&world.outside);
    let mut wrong = Vec::new();
    for command in commands {
        if !need(&command[..1]) {
            continue;
        }
        lay(world);
        let plain = world.bare(*command).run();
        assert!(plain.code.is_some_and(|code| code < 2), "the command itself does not work: {plain}");
        let expected = seen(world, &plain);
        lay(world);
        let out = world.run(profile, *command).run();
        let found = seen(world, &out);
        if found != expected {
            wrong.push(format!("{out}\n  unconfined: {}", expected.unlike(&found)));
        } else if !out.sbx_lines().is_empty() {
            wrong.push(format!("works, but something was refused: {out}"));
        }
    }
    assert_eq!(snapshot(&world.outside), outside, "something outside has changed");
    assert!(
        wrong.is_empty(),
        "{} of {} commands differ under {profile}:\n{}",
        wrong.len(),
        commands.len(),
        wrong.join("\n")
    );
}

/// Runs every command under `sbx`, where it must fail and change nothing, then without, where it must change something.
pub fn refused_and_without_effect(world: &World, profile: &str, commands: &[&[&str]]) {
    let mut wrong = Vec::new();
    for command in commands {
        if !need(&command[..1]) {
            continue;
        }
        lay(world);
        let before = (snapshot(&world.workspace), snapshot(&world.outside));
        let out = world.run(profile, *command).run();
        let after = (snapshot(&world.workspace), snapshot(&world.outside));
        if after != before {
            wrong.push(format!("had an effect: {out}"));
        } else if out.code == Some(0) {
            wrong.push(format!("claims success: {out}"));
        }
        lay(world);
        world.bare(*command).run();
        let control = (snapshot(&world.workspace), snapshot(&world.outside));
        assert_ne!(control, before, "has no effect unconfined either: {command:?}");
        restore_outside(world);
    }
    assert!(wrong.is_empty(), "{} of {} under {profile}:\n{}", wrong.len(), commands.len(), wrong.join("\n"));
}

/// Restores what a command has changed outside.
pub fn restore_outside(world: &World) {
    let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(&world.outside).status();
    let _ = std::fs::remove_dir_all(&world.outside);
    world.make_dir(&world.outside);
    world.write(world.outside.join("kept"), "outside\n");
    world.write(world.outside.join("dir/inner"), "inner\n");
}

/// The directory outside the workspace, as the commands of the lists name it: two levels up.
pub fn outside(world: &World) -> PathBuf {
    let relative = PathBuf::from("../../outside");
    assert!(world.path(&relative).join("kept").exists());
    relative
}
