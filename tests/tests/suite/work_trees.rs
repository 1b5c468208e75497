//! The workspace of a command that is started somewhere in a git work tree.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sbx_tests::{Cmd, World, in_worlds, kernel, need, promise};

/// A repository with a package in it, below the home directory.
fn stage(world: &World) {
    let script =
        "git init -q . && mkdir -p pkg/a other && echo x > other/file && git add . && git commit -qm one";
    world.write(world.home.join(".gitconfig"), "[user]\n\tname = x\n\temail = x@example.org\n");
    world.bare(["sh", "-c", script]).run().success();
}

fn run(world: &World, directory: &str, flags: &[&str], script: &str) -> Cmd {
    let cmd = world.sbx(["run", "-q"]).args(flags).args(["--", "sh", "-c", script]);
    cmd.cwd(world.path(directory)).env("PWD", world.path(directory))
}

#[test]
fn a_package_of_a_repository_can_use_all_of_it() {
    need!("git");
    promise!(kernel::PATHS);
    in_worlds(|world| {
        stage(world);
        let script = "pwd; cat ../../other/file; echo more >> ../../other/file; git commit -qam more && git log --oneline | wc -l";
        let out = run(world, "pkg/a", &[], script).run().success();
        assert_eq!(out.out(), format!("{}\nx\n2\n", world.path("pkg/a").display()));
        assert_eq!(world.read("other/file").as_deref(), Some("x\nmore\n"));
        let said = world.sbx(["run", "-v", "--", "true"]).cwd(world.path("pkg/a")).run().success();
        said.says(&format!("workspace '{}'", world.workspace.display()));
        // Narrowed.
        run(world, "pkg/a", &["--workspace", "."], "echo evil >> ../../other/file").run().failed();
        assert_eq!(world.read("other/file").as_deref(), Some("x\nmore\n"));
    });
}

/// What programs outside execute is protected at the top, and where the command is started.
#[test]
fn the_package_is_protected_like_the_top() {
    need!("git");
    super::namespaces::with_namespaces(|user| {
        let world = World::new(user);
        stage(&world);
        world.make_dir(&world.home.join(".vscode"));
        world.make_dir(&world.home.join(".config/direnv"));
        let plant = "for d in . .. ../..; do mkdir $d/.vscode; echo x > $d/.vscode/tasks.json; echo x > $d/.envrc; done; sleep 0.05";
        run(&world, "pkg/a", &[], plant).run();
        for place in ["", "pkg/a/"] {
            assert!(
                !world.exists(format!("{place}.vscode")) && !world.exists(format!("{place}.envrc")),
                "{place}"
            );
        }
        // Nobody has said that something is opened there.
        assert!(world.exists("pkg/.vscode/tasks.json"));
    });
}

/// The command could change somebody else's files, or somebody else decide what the workspace is.
#[test]
fn a_work_tree_is_not_taken_where_others_may_write_or_it_is_the_home() {
    need!("git");
    promise!(kernel::PATHS);
    in_worlds(|world| {
        stage(world);
        let refused = |why: &str| {
            run(world, "pkg/a", &[], "echo evil >> ../../other/file").run().failed();
            assert_eq!(world.read("other/file").as_deref(), Some("x\n"), "{why}");
            run(world, "pkg/a", &[], "touch own").run().success();
        };
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(&world.workspace, 0o777);
        refused("others may write at the top");
        set(&world.workspace, 0o755);
        set(&world.path("pkg"), 0o757);
        refused("others may write on the way");
        set(&world.path("pkg"), 0o755);
        // The home directory is a repository of dot files.
        let git = world.path(".git");
        fs::rename(&git, world.home.join(".git")).unwrap();
        refused("the home");
        fs::rename(world.home.join(".git"), &git).unwrap();
        run(world, "pkg/a", &[], "echo more >> ../../other/file").run().success();
    });
}

#[test]
fn the_hooks_of_the_main_repository_run_in_a_linked_worktree() {
    need!("git");
    promise!(kernel::PATHS);
    in_worlds(|world| {
        stage(world);
        world.script(".git/hooks/pre-commit", "#!/bin/sh\necho ran > hooked\n");
        world.bare(["git", "worktree", "add", "-q", "../tree"]).run().success();
        let commit = world.sbx(["run", "-q", "--", "git", "commit", "-q", "--allow-empty", "-m", "x"]);
        commit.cwd(world.home.join("tree")).run().success();
        assert_eq!(fs::read_to_string(world.home.join("tree/hooked")).unwrap(), "ran\n");
        // It is nobody's to change.
        let plant =
            world.sbx(["run", "-q", "--", "sh", "-c", "echo evil >> ../project/.git/hooks/pre-commit"]);
        plant.cwd(world.home.join("tree")).run();
        assert!(!world.read(".git/hooks/pre-commit").unwrap().contains("evil") || kernel::level() != "full");
    });
}

/// Without git nothing tells where a project begins. Its tools say that they find no file, and not why.
#[test]
fn a_failing_command_below_the_top_of_a_project_is_told_of_it() {
    need!("make", "git");
    promise!(namespaces);
    in_worlds(|world| {
        let mut world = World::new(&world.user);
        let top = world.home.join("project");
        world.write(top.join("Makefile"), "all:\n\t@echo made\n");
        world.make_dir(&top.join("part/deeper"));
        world.workspace = top.join("part/deeper");
        let flags = format!("add --workspace {} --cwd .", top.display());
        let make =
            |flags: &[&str]| world.sbx([&["run"], flags, &["--", "make", "-C", "../.."]].concat()).run();
        let said = make(&[]).failed().sbx_lines();
        assert!(
            said.len() == 1 && said[0].contains("Makefile' above it") && said[0].ends_with(&flags),
            "{said:?}"
        );
        let made = make(&["--workspace", top.to_str().unwrap(), "--cwd", "."]).success();
        assert!(made.out().contains("made\n"), "{made}");
        // Who named the workspace knows it; nor is anything said where all is well, or has been said.
        assert!(make(&["--workspace", "."]).failed().sbx_lines().is_empty());
        assert!(world.sbx(["run", "--", "true"]).run().success().sbx_lines().is_empty());
        // What was refused explains a failure, unless it is the project's file.
        for (name, lines) in [("other", 1), ("Makefile", 2)] {
            world.write(top.join(name), "all:\n\t@echo made\n");
            let refused = world.sbx(["run", "--", "cat", top.join(name).to_str().unwrap()]).run().failed();
            assert_eq!(refused.sbx_lines().len(), lines, "{refused}");
            assert_eq!(refused.err().contains("above it"), lines == 2, "{refused}");
        }
        // A repository is a project of its own.
        assert!(world.sbx(["run", "--", "false"]).run().failed().err().contains("above it"));
        world.bare(["git", "init", "-q"]).run().success();
        assert!(world.sbx(["run", "--", "false"]).run().failed().sbx_lines().is_empty());
        // The home is nobody's project.
        world.write_at_home("Makefile", "all:\n");
        world.make_dir(&world.home.join("other"));
        world.workspace = world.home.join("other");
        assert!(world.sbx(["run", "--", "false"]).run().failed().sbx_lines().is_empty());
    });
}
