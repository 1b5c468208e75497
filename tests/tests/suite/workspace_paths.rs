//! Which directory is the workspace, which paths are allowed, denied or cached around it, and what is said about that.

use crate::namespaces::with_namespaces;
use sbx_tests::{User, World, as_users, in_worlds, kernel, promise};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn another_directory_can_be_the_workspace() {
    in_worlds(|world| {
        let there = world.outside.to_str().unwrap();
        world.sbx(["run", "--workspace", there, "--cwd", there, "--", "touch", "made"]).run().success();
        assert!(world.outside.join("made").exists());
        let here = world.path("made").into_os_string().into_string().unwrap();
        world.sbx(["run", "--workspace", there, "--", "touch", &here]).run().failed();
        assert!(!world.exists("made"));
    });
}

#[test]
fn a_denied_path_below_an_allowed_one_is_denied() {
    in_worlds(|world| {
        world.write("private/key", "hidden\n");
        world.write("public/page", "shown\n");
        let deny =
            |command: &[&str]| world.sbx([&["run", "--deny", "private", "--"], command].concat()).run();
        deny(&["cat", "private/key"]).failed().prints("");
        deny(&["ls", "private"]).failed().prints("");
        deny(&["touch", "private/made"]).failed();
        deny(&["mv", "private", "open"]).failed();
        deny(&["cat", "public/page"]).success().prints("shown\n");
        deny(&["touch", "public/made"]).success();
        assert_eq!(world.read("private/key").as_deref(), Some("hidden\n"));
        assert!(!world.exists("private/made") && world.exists("public/made"));
        deny(&["sh", "-c", "cd public && cat ../private/key"]).failed().prints("");
    });
}

#[test]
fn a_denied_command_is_named() {
    let world = World::new(&User::ordinary());
    world.script("private/script", "#!/bin/sh\necho ran\n");
    for denied in ["private", "private/script", "/bin/sh", "/"] {
        let run = world.sbx(["run", "--deny", denied, "--", "private/script"]).run();
        run.refused(126, &["cannot execute", "is denied"]).prints("");
    }
    for denied in ["/proc/self", "/proc/1/environ"] {
        let run = world.sbx(["run", "--deny", denied, "--", "true"]).run();
        run.refused(125, &["cannot deny '/proc/", "deny '/proc'"]);
    }
    world.sbx(["run", "--deny", "/proc", "--", "true"]).run().success();
    world.sbx(["run", "--deny", "/etc/hosts", "--", "private/script"]).run().success().prints("ran\n");
}

/// The kernel would refuse the exec, and say no more than that.
#[test]
fn a_profile_that_forgets_the_loader_is_told_of_it() {
    promise!(kernel::PATHS);
    let world = World::new(&User::ordinary());
    let rules = r#""syscalls": {"allow": ["@system-service"]}"#;
    world.write("own.json", format!("{{{rules}}}"));
    world.run("./own.json", ["true"]).run().refused(126, &["its loader", "ld-linux", "--rox"]);
    world.write("own.json", format!(r#"{{"extends": "minimal", {rules}}}"#));
    world.run("./own.json", ["true"]).run().success().silent();
}

#[test]
fn a_flag_that_another_rule_overrides_is_reported() {
    let world = World::new(&User::ordinary());
    for name in ["private/key", "private/open/page", "notes/text"] {
        world.write(name, "text\n");
    }
    let said = |flags: &[&str]| {
        let out = world.sbx(["run"]).args(flags).args(["--", "cat", "notes/text"]).run().success();
        out.prints("text\n").err()
    };
    assert!(said(&["--ro", "notes"]).contains("'notes' can be changed although a flag names it for reading"));
    let denied = said(&["--deny", "private", "--rw", "private/open"]);
    assert!(denied.contains("'private/open' stays denied"), "{denied}");
    assert_eq!(said(&["--rw", "notes"]), "");
    assert_eq!(said(&["-p", "read-only", "--ro", "notes"]), "");
    // Following the hint works.
    let advised = ["run", "-p", "read-only", "--rw", "private", "--", "sh", "-c"];
    world.sbx(advised).arg("echo more >> private/key").run().success();
    world.sbx(advised).arg("echo more >> notes/text").run().failed();
    assert_eq!(world.read("notes/text").as_deref(), Some("text\n"));
}

/// Deny expansion allows everything beside a denied path one by one, which takes a list of it.
#[test]
fn deny_expansion_needs_to_list_the_directories() {
    as_users(|user| {
        let world = World::new(user);
        world.write("closed/kept", "secret\n");
        world.write("closed/open", "text\n");
        let mode = |mode| fs::set_permissions(world.path("closed"), Permissions::from_mode(mode)).unwrap();
        let run = |more: &[&str]| {
            let front = ["run", "-q", "--namespaces", "none", "--deny", "closed/kept"];
            world.sbx([&front[..], more, &["--", "cat", "closed/open"]].concat()).run()
        };
        mode(0o311);
        if user.is_root() {
            run(&[]).success();
        } else {
            run(&[]).refused(125, &["cannot deny a path below", "closed"]);
        }
        mode(0o755);
        run(&[]).success().prints("text\n");
        run(&["--ro", "closed/kept", "--deny", "closed"]).failed().prints("");
    });
}

/// Rules are about files: a rule for another name of a denied file would open the file by its denied name.
#[test]
fn another_name_beside_a_denied_file_does_not_open_it() {
    in_worlds(|world| {
        world.write("private/key", "hidden\n");
        world.write("private/page", "shown\n");
        fs::hard_link(world.path("private/key"), world.path("private/other")).unwrap();
        for more in [&[][..], &["--rw", "private/other"]] {
            let run = |command: &[&str]| {
                let front = ["run", "-q", "--namespaces", "none", "--deny", "private/key"];
                world.sbx([&front[..], more, &["--"], command].concat()).run()
            };
            run(&["cat", "private/key"]).failed().prints("");
            run(&["sh", "-c", "echo planted >> private/key"]).failed();
            run(&["cat", "private/other"]).failed().prints("");
            run(&["cat", "private/page"]).success().prints("shown\n");
            assert_eq!(world.read("private/key").as_deref(), Some("hidden\n"));
        }
    });
}

#[test]
fn a_workspace_that_contains_the_home_directory_is_reported() {
    in_worlds(|world| {
        let run = |at: &str| world.sbx(["run", "--workspace", at, "--", "true"]).run().success();
        run("..").says("holds your home directory");
        run(".").silent();
        let home = world.home.display().to_string();
        for (flag, path) in [("--ro", &*home), ("--rw", "/")] {
            let out = world.sbx(["run", flag, path, "--", "true"]).run().success();
            out.says("opens '").says("keys and passwords");
        }
        world.sbx(["run", "--ro", &format!("{home}/.ssh"), "--", "true"]).run().success().silent();
    });
}

/// A command cannot close the caches to later runs.
#[test]
fn a_cache_that_was_closed_is_opened_again() {
    in_worlds(|world| {
        let run = |script: &str| {
            world.sbx(["run", "--home", "closed", "--", "sh", "-c", script]).run().success().silent()
        };
        run("echo kept > \"$XDG_CACHE_HOME/file\" && chmod 0 \"$XDG_CACHE_HOME\"").prints("");
        run("cat \"$XDG_CACHE_HOME/file\" && echo more > \"$XDG_CACHE_HOME/other\"").prints("kept\n");
    });
}

/// Tool caches last, and a run that may write there can leave something in their place: it leads no later run anywhere.
#[test]
fn a_link_in_the_place_of_a_cache_leads_nowhere() {
    as_users(|user| {
        ["workspace", "read-only"].into_iter().for_each(|profile| {
            let mut world = World::new(user);
            let cache = world.home.join("caches");
            world.make_dir(&cache);
            let script = |world: &World, profile: &str, script: &str| {
                let command =
                    world.sbx(["run", "--home", "closed", "-p", profile, "--", "bash", "-c", script]);
                command.env("XDG_CACHE_HOME", &cache).run()
            };
            const KEPT: &str = "touch \"$XDG_CACHE_HOME/kept\" && ls \"$XDG_CACHE_HOME\"";
            script(&world, profile, KEPT).success().silent().prints("kept\n");
            let theirs = fs::read_dir(cache.join("sbx")).unwrap().next().unwrap().unwrap().path();
            // The command of a run in another directory that may write to all caches.
            let workspace = std::mem::replace(&mut world.workspace, world.outside.clone());
            let plant = format!("rm -r {0} && ln -s {1}/.ssh {0}", theirs.display(), world.home.display());
            world.sbx(["run", "-q", "--rw"]).arg(&cache).args(["--", "bash", "-c", &plant]).run().success();
            world.workspace = workspace;
            assert!(theirs.is_symlink());
            let out =
                script(&world, profile, "cat ~/.ssh/id_rsa; touch ~/.ssh/made \"$XDG_CACHE_HOME/made\"");
            out.failed().prints("").says("is reached over a symbolic link");
            assert!(!world.home.join(".ssh/made").exists());
            // Without the link it is a cache again.
            fs::remove_file(&theirs).unwrap();
            script(&world, profile, KEPT).success().silent().prints("kept\n");
        })
    });
}

#[test]
fn a_profile_that_names_what_is_not_there_is_told_by_file_and_entry() {
    let world = World::new(&User::ordinary());
    let fixtures = world.outside.join("fixtures");
    let profile = format!(r#"{{"extends": "workspace", "paths": {{"read": ["{}"]}}}}"#, fixtures.display());
    world.write("own.json", profile);
    let run = || world.sbx(["run", "-p", "./own.json", "--", "touch", "made"]).run();
    run().refused(125, &["fixtures", "paths.read[0] of profile './own.json'", "no such file"]);
    assert!(!world.exists("made"));
    fs::create_dir(&fixtures).unwrap();
    run().success();
    assert!(world.exists("made"));
}

/// The directory is entered by its real path: in a home of the run's own, something else may have its name.
#[test]
fn a_directory_named_by_a_link_of_the_home_is_the_real_one() {
    with_namespaces(|user| {
        let world = World::new(user);
        let (real, link) = (world.home.join("real"), world.home.join("link"));
        world.make_dir(&real);
        symlink(&real, &link).unwrap();
        let expected = format!("{}\n", real.display());
        for flag in ["--workspace", "--cwd"] {
            for directory in [&link, &real] {
                let script = "echo result > out.txt; pwd -P";
                let run = world.sbx(["run", flag]).arg(directory).args(["--", "sh", "-c", script]).run();
                run.success().silent().prints(&expected);
                assert_eq!(fs::read_to_string(real.join("out.txt")).unwrap(), "result\n", "{flag}");
                fs::remove_file(real.join("out.txt")).unwrap();
            }
        }
        fs::remove_dir(&real).unwrap();
        let run = world.sbx(["run", "--cwd"]).arg(&link).args(["--", "true"]).run();
        run.refused(125, &["cannot enter", link.to_str().unwrap()]);
    });
}

/// An earlier command may have put the link there. What flags say would be meant from where it leads.
#[test]
fn a_link_in_the_workspace_leads_to_no_directory_outside() {
    in_worlds(|world| {
        world.write("inside/kept", "inside\n");
        symlink("inside", world.path("here")).unwrap();
        symlink(&world.outside, world.path("out")).unwrap();
        let run = |directory: &str| {
            world.sbx(["run", "--workspace", ".", "--cwd", directory, "--rw", ".", "--", "cat", "kept"]).run()
        };
        run("here").success().prints("inside\n");
        run("out")
            .refused(125, &["cannot enter 'out'", "leads out of a directory where commands of runs write"])
            .prints("");
        run(world.outside.to_str().unwrap()).success().prints("outside\n");
    });
}

/// A shell keeps the names in PWD, and build trees keep them as well.
#[test]
fn the_links_by_which_the_user_names_the_workspace_are_there() {
    with_namespaces(|user| {
        let world = World::new(user);
        let at = |name: &str| world.home.join(name);
        world.write(at("real/project/a.txt"), "text\n");
        symlink("real/project", at("one")).unwrap();
        symlink(at("one"), at("two")).unwrap();
        symlink("other-project", at("theirs")).unwrap();
        let script = "cat \"$1/a.txt\" && echo x >> \"$1/a.txt\"";
        let words = ["--", "sh", "-c", script, "sh"];
        let reached = |out: sbx_tests::Output| {
            out.success().silent().prints("text\n");
            assert_eq!(fs::read_to_string(at("real/project/a.txt")).unwrap(), "text\nx\n");
            world.write(at("real/project/a.txt"), "text\n");
        };
        for link in ["one", "two"] {
            let path = at(link);
            reached(world.sbx(["run"]).args(words).arg(&path).cwd(&path).env("PWD", &path).run());
            for flag in ["--workspace", "--cwd"] {
                reached(world.sbx(["run", flag]).arg(&path).args(words).arg(&path).run());
            }
        }
        // Only where the variable is about the current directory; and no other link.
        let links = "for name in one two theirs; do test -L ~/$name && echo $name; done; true";
        let run = |pwd: &str| world.sbx(["run", "--", "sh", "-c", links]).env("PWD", at(pwd)).run().success();
        run("one").silent().prints("");
        run("theirs").silent().prints("");
        let out = world.sbx(["run", "--", "sh", "-c", links]).cwd(at("two")).env("PWD", at("two")).run();
        out.success().silent().prints("one\ntwo\n");
        // What a command of another run has put into its workspace is no link of the user's.
        world.sbx(["run", "--", "ln", "-s", "../real/project", "planted"]).run().success();
        let planted = world.path("planted");
        let look = ["run", "--", "sh", "-c", "test -L \"$0\""];
        world.sbx(look).arg(&planted).cwd(&planted).env("PWD", &planted).run().failed();
    });
}
