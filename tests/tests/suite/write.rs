//! `write`: changing files inside the workspace, and nowhere else.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use sbx_tests::{User, World, as_users, in_worlds, kernel, promise};

use crate::corpus;

const COMMANDS: &[&[&str]] = &[
    &["cp", "lines", "made"],
    &["cp", "-a", "dir", "copied"],
    &["cp", "-r", "dir", "copied"],
    &["cp", "-p", "lines", "made"],
    &["cp", "--reflink=auto", "lines", "made"],
    &["cp", "-l", "lines", "made"],
    &["cp", "-s", "lines", "made"],
    &["mv", "lines", "made"],
    &["mv", "dir", "moved"],
    &["mv", "-n", "lines", "table"],
    &["rm", "lines"],
    &["rm", "-r", "dir"],
    &["rm", "-rf", "dir", "missing"],
    &["rmdir", "dir"],
    &["unlink", "lines"],
    &["mkdir", "made"],
    &["mkdir", "-p", "made/a/b/c"],
    &["mkdir", "-m", "700", "made"],
    &["ln", "lines", "made"],
    &["ln", "-s", "lines", "made"],
    &["ln", "-sf", "table", "link"],
    &["link", "lines", "made"],
    &["chmod", "600", "lines"],
    &["chmod", "-R", "go-rwx", "dir"],
    &["touch", "made"],
    &["touch", "-d", "@900000000", "lines"],
    &["touch", "-r", "lines", "made"],
    &["truncate", "-s", "3", "lines"],
    &["truncate", "-s", "1M", "made"],
    &["fallocate", "-l", "4096", "made"],
    &["sed", "-i", "s/one/ONE/", "lines"],
    &["sed", "-i.orig", "2d", "lines"],
    &["perl", "-pi", "-e", "s/two/2/", "lines"],
    &["tar", "-xf", "archive.tar", "-C", "dir"],
    &["tar", "-cf", "made.tar", "--mtime=@1000000000", "--sort=name", "dir"],
    &["gzip", "-n", "lines"],
    &["gzip", "-nk", "lines"],
    &["gzip", "-d", "packed.gz"],
    &["bzip2", "-k", "lines"],
    &["xz", "-k", "lines"],
    &["patch", "-s", "lines", "change.patch"],
    &["split", "-l", "1", "lines", "part-"],
    &["csplit", "-s", "lines", "2"],
    &["sort", "-o", "table", "table"],
    &["tee", "made"],
    &["dd", "if=lines", "of=made", "bs=4", "status=none"],
    &["install", "-m", "640", "lines", "made"],
    &["install", "-d", "made/deep"],
    &["mkfifo", "made"],
    &["shred", "-n", "1", "-u", "other"],
    &["sqlite3", "made.db", "create table t(a); insert into t values (1); select * from t;"],
    &[
        "/usr/bin/python3",
        "-c",
        "import shutil, os; shutil.copytree('dir', 'made'); os.rename('made', 'there')",
    ],
    &[
        "/usr/bin/python3",
        "-c",
        "import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b'x'); print('fine')",
    ],
    &["sh", "-c", "echo text > made; echo more >> made; : > lines"],
    &["sh", "-c", "cd dir && echo text > made"],
    &["cp", "lines", "/dev/null"],
];

#[test]
fn editing_commands_behave_as_without_sbx() {
    as_users(|user| corpus::behaves_the_same(&World::new(user), "write", COMMANDS));
}

#[test]
fn the_same_commands_work_in_a_shell_under_workspace() {
    as_users(|user| corpus::behaves_the_same(&World::new(user), "workspace", COMMANDS));
}

#[test]
fn rsync_copies_inside_the_workspace() {
    // rsync forks its receiver, so it is a command for `workspace`.
    as_users(|user| {
        corpus::behaves_the_same(&World::new(user), "workspace", &[&["rsync", "-a", "dir/", "copied/"]]);
    });
}

#[test]
fn files_outside_stay_as_they_were() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let there = corpus::outside(world);
        let path = |name: &str| there.join(name).into_os_string().into_string().unwrap();
        let (kept, dir, made) = (path("kept"), path("dir"), path("made"));
        let commands: Vec<Vec<&str>> = vec![
            vec!["cp", "lines", &made],
            vec!["cp", "lines", &kept],
            vec!["mv", "lines", &made],
            vec!["mv", &kept, "."],
            vec!["rm", &kept],
            vec!["rm", "-r", &dir],
            vec!["mkdir", &made],
            vec!["ln", &kept, "made"],
            vec!["ln", "lines", &made],
            vec!["ln", "-s", "lines", &made],
            vec!["touch", &made],
            vec!["sed", "-i", "s/o/0/", &kept],
            vec!["tar", "-xf", "archive.tar", "-C", &dir],
            vec!["dd", "if=lines", "status=none", "conv=notrunc", "of=../../outside/kept"],
            vec!["mkfifo", &made],
            vec!["sh", "-c", "ln -s ../../outside/kept way 2>/dev/null; echo x > way"],
            vec![
                "/usr/bin/python3",
                "-c",
                "import os; os.symlink('../../outside', 'w'); open('w/made', 'w')",
            ],
        ];
        let truncate = ["truncate", "-s", "1", &kept];
        let mut commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
        if kernel::promises(kernel::TRUNCATION) {
            commands.push(&truncate);
        }
        nothing_changes_outside(world, "write", &commands);
        nothing_changes_outside(world, "workspace", &commands);
    });
}

/// Landlock has no rules about attributes of files.
#[test]
fn attributes_outside_stay_as_they_were() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let there = corpus::outside(world);
        let kept = there.join("kept").into_os_string().into_string().unwrap();
        let commands: &[&[&str]] = &[
            &["chmod", "600", &kept],
            &["touch", "-d", "@900000000", &kept],
            &["/usr/bin/python3", "-c", "import os; os.utime('../../outside/kept', (1, 1))"],
        ];
        nothing_changes_outside(world, "write", commands);
        nothing_changes_outside(world, "workspace", commands);
    });
}

/// The supervisor makes these changes, and must have as few rights as the command meanwhile. Only root has rights to
/// lose there.
#[test]
fn roots_capabilities_do_not_change_attributes_of_others_files() {
    let user = User::current();
    if !user.is_root() {
        return;
    }
    let world = World::new(&user);
    let file = world.write("others", "x\n");
    let others = User::ordinary().id;
    let (mode, owner) = (|| file.metadata().unwrap().mode() & 0o7777, || file.metadata().unwrap().uid());
    std::os::unix::fs::chown(&file, Some(others), None).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    for profile in ["write", "workspace"] {
        world.run(profile, ["chmod", "600", "others"]).run().failed();
        world.run(profile, ["chown", "0", "others"]).run().failed();
        assert_eq!((mode(), owner()), (0o644, others), "{profile}");
    }
    world.bare(["chmod", "600", "others"]).run().success();
    world.bare(["chown", "0", "others"]).run().success();
    assert_eq!((mode(), owner()), (0o600, 0));
    world.run("write", ["chmod", "640", "others"]).run().success();
    assert_eq!(mode(), 0o640);
}

/// For example a container's root in a directory of a user outside.
#[test]
fn root_is_warned_that_it_cannot_write_in_anothers_workspace() {
    let user = User::current();
    if !user.is_root() {
        return;
    }
    let world = World::new(&user);
    let directory = world.path("theirs");
    world.make_dir(&directory);
    let others = User::ordinary().id;
    std::os::unix::fs::chown(&directory, Some(others), None).unwrap();
    let run = |flags: &[&str]| {
        let run =
            world.sbx(["run", "--cwd", directory.to_str().unwrap(), "--workspace", "theirs"]).args(flags);
        run.args(["--", "touch", "new"]).run()
    };
    for flags in [&["-p", "write"][..], &["-p", "workspace"], &["-p", "workspace", "--namespaces", "none"]] {
        let out = run(flags).failed().says(&format!("belongs to user {others}")).says("setpriv --reuid");
        assert!(!directory.join("new").exists(), "{out}");
    }
    // Nothing is reported where the profile writes nothing, or everybody may write.
    assert_eq!(run(&["-p", "read-only"]).failed().sbx_lines(), Vec::<String>::new());
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    run(&["-p", "write"]).success().silent();
    assert!(directory.join("new").exists());
    // Nor to the owner.
    let own = World::new(&User::ordinary());
    own.run("write", ["touch", "new"]).run().success().silent();
}

fn nothing_changes_outside(world: &World, profile: &str, commands: &[&[&str]]) {
    let before = sbx_tests::tree::snapshot(&world.outside);
    let mut wrong = Vec::new();
    for command in commands {
        world.write("lines", "one\n");
        let out = world.run(profile, *command).run();
        if sbx_tests::tree::snapshot(&world.outside) != before {
            wrong.push(format!("changed something outside: {out}"));
            corpus::restore_outside(world);
        }
        if out.code == Some(0) {
            wrong.push(format!("claims success: {out}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} under {profile}:\n{}", wrong.len(), commands.len(), wrong.join("\n"));
}

#[test]
fn no_program_is_started() {
    in_worlds(|world| {
        world.run("write", ["sh", "-c", "/bin/touch made"]).run().failed();
        world.run("write", ["env", "touch", "made"]).run().failed();
        world.run("write", ["find", ".", "-exec", "touch", "made", ";"]).run();
        world
            .run("write", ["/usr/bin/python3", "-c", "import os; os.execv('/bin/touch', ['touch', 'made'])"])
            .run()
            .failed();
        assert!(!world.exists("made"));
    });
}
