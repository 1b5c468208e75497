//! Programs and other files of the user's that one run has in its private home, and what later runs see of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use sbx_tests::{Cmd, Output, World, need};

use crate::namespaces::with_namespaces;

fn program(world: &World, name: &str, text: &str) {
    world.write_at_home(name, text);
    Cmd::new("chmod").arg("755").arg(world.home.join(name)).run().success();
}

/// The command is a file in the user's home: a link, or one that needs what is beside it.
#[test]
fn a_command_in_the_home_runs_with_what_belongs_to_it() {
    need!("python3");
    with_namespaces(|user| {
        let world = World::new(user);
        let home = world.home.display().to_string();
        let run = |name: &str| world.sbx(["run", "--"]).arg(world.home.join(name)).run();
        program(&world, "scripts/x.sh", "#!/bin/sh\necho ran\n");
        symlink("scripts/x.sh", world.home.join("one")).unwrap();
        symlink(format!("{home}/one"), world.home.join("two")).unwrap();
        world.write_at_home("scripts/secret", "secret");
        for name in ["one", "two", "scripts/x.sh"] {
            run(name).success().silent().prints("ran\n");
        }
        // An environment of Python: its interpreter is a link that leads out of it.
        world.write_at_home("py/env/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
        let version = "import sys; print('%d.%d' % sys.version_info[:2])";
        let version = Cmd::new("/usr/bin/python3").args(["-c", version]).run().success().out();
        world.write_at_home(
            &format!("py/env/lib/python{}/site-packages/theirs.py", version.trim()),
            "name = 'theirs'\n",
        );
        world.write_at_home("py/secret", "secret");
        world.make_dir(&world.home.join("py/env/bin"));
        symlink("/usr/bin/python3", world.home.join("py/env/bin/python")).unwrap();
        let text = "import theirs, os; print(theirs.name, os.path.exists(os.path.expanduser('~/py/secret')))";
        program(&world, "py/env/bin/tool", &format!("#!{home}/py/env/bin/python\n{text}\n"));
        run("py/env/bin/tool").success().silent().prints("theirs False\n");
        // In use, by PATH. Of another directory only what is in it is there.
        program(&world, "no/bin/tool", "#!/bin/sh\n");
        world.write_at_home("no/lib/secret", "secret");
        let path = format!("{home}/py/env/bin:{home}/no/bin:/usr/bin:/bin");
        let text = "import theirs, os; print(theirs.name, [os.path.exists(os.path.expanduser(name)) \
                    for name in ('~/py/secret', '~/no/bin/tool', '~/no/lib/secret')]); \
                    open(theirs.__file__, 'a')";
        let out = world.sbx(["run", "--", "python", "-c", text]).env("PATH", &path).run();
        out.exited(1).says("theirs.py").prints("theirs [False, True, False]\n");
        // What a command may have written names nothing that is opened.
        world.write_at_home("keys/bin/key", "secret\n");
        program(&world, "keys/bin/interpreter", "#!/bin/cat\n");
        world.write(world.path("planted"), format!("#!{home}/keys/bin/interpreter\n"));
        Cmd::new("chmod").arg("755").arg(world.path("planted")).run().success();
        let key = format!("{home}/keys/bin/key");
        let out = world.sbx(["run", "--", "./planted"]).arg(&key).run();
        assert!(!out.out().contains("secret"), "{out}");
        // The same where a flag lets commands write.
        program(&world, "other/planted", &format!("#!{home}/keys/bin/interpreter\n"));
        let other = world.home.join("other").display().to_string();
        let out = world.sbx(["run", "--rw", &other, "--"]).args([&format!("{other}/planted"), &key]).run();
        assert!(!out.out().contains("secret"), "{out}");
    });
}

/// A JDK, or a distribution of Go: only `bin` is in PATH, and programs there need what is beside it.
#[test]
fn what_was_unpacked_as_a_whole_is_there_as_a_whole() {
    with_namespaces(|user| {
        let world = World::new(user);
        let tool = "#!/bin/sh\ncat \"$(dirname \"$0\")/../conf/settings\"\n";
        for (name, mark) in [("jdk", "release"), ("mine", "VERSION"), ("other", "README")] {
            program(&world, &format!("{name}/bin/{name}-tool"), tool);
            world.write_at_home(&format!("{name}/conf/settings"), "found\n");
            world.write_at_home(&format!("{name}/{mark}"), "1\n");
            world.write_at_home(&format!("{name}/lib/part"), "1\n");
            world.write_at_home(&format!("{name}/pkg/tool/part"), "1\n");
        }
        // A command of another run has made what says so.
        program(&world, "work/bin/work-tool", tool);
        world.write_at_home("work/conf/settings", "found\n");
        let work = world.home.join("work").display().to_string();
        let words =
            ["run", "--workspace", &work, "--cwd", &work, "--", "sh", "-ec", "echo 1 > release; mkdir lib"];
        world.sbx(words).run().success();
        world.write_at_home("mine/.env", "secret");
        let home = world.home.display();
        let path = format!("{home}/jdk/bin:{home}/mine/bin:{home}/other/bin:{home}/work/bin:/usr/bin:/bin");
        let run = |words: [&str; 3]| world.sbx(["run", "--"]).args(words).env("PATH", &path).run();
        run(["sh", "-c", "jdk-tool"]).success().silent().prints("found\n");
        run(["sh", "-c", "echo x > ~/jdk/conf/settings"]).failed();
        for name in ["mine", "other", "work"] {
            run(["sh", "-c", &format!("{name}-tool")]).failed().prints("");
        }
        assert_eq!(world.read(world.home.join("jdk/conf/settings")).as_deref(), Some("found\n"));
    });
}

/// Where a rule opens what is around the home, the run's own home hides what is in it all the same.
#[test]
fn programs_of_path_are_there_in_a_home_that_a_rule_is_around() {
    with_namespaces(|user| {
        let world = World::new(user);
        program(&world, "tools/tool", "#!/bin/sh\necho ran\n");
        let path = format!("{}/tools:/usr/bin:/bin", world.home.display());
        let around = world.home.parent().unwrap().display().to_string();
        let run = world.sbx(["run", "--rox", &around, "--", "sh", "-c", "tool"]).env("PATH", &path).run();
        run.success().prints("ran\n");
    });
}

/// As package managers and people who keep their settings together have them: the directory of PATH is a link, and
/// another one is on the way from a link in one.
#[test]
fn links_on_the_way_to_programs_of_path_are_there() {
    with_namespaces(|user| {
        let world = World::new(user);
        program(&world, "dots/bin/mine", "#!/bin/sh\necho mine\n");
        program(&world, "opt/tool-1/bin/tool", "#!/bin/sh\necho tool\n");
        world.make_dir(&world.home.join("links"));
        let home = |path: &str| world.home.join(path);
        symlink("dots/bin", home("bin")).unwrap();
        symlink("tool-1", home("opt/current")).unwrap();
        symlink("../opt/current/bin/tool", home("links/tool")).unwrap();
        let path = format!("{}:{}:/usr/bin:/bin", home("bin").display(), home("links").display());
        let run = |script: &str| world.sbx(["run", "--", "sh", "-c", script]).env("PATH", &path).run();
        run("mine; tool").success().silent().prints("mine\ntool\n");
        // The links of the user's are none of the run's.
        run("rm -f ~/bin ~/opt/current; ln -s x ~/opt/new");
        assert!(
            home("bin").is_symlink() && home("opt/current").is_symlink() && !home("opt/new").is_symlink()
        );
    });
}

/// What git is told to pass over, an agent's `git add` would take in otherwise.
#[test]
fn git_passes_over_what_the_users_own_list_names() {
    need!("git");
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home(".ignored", "secret.env\n");
        world.write_at_home(".gitconfig", "[core]\n\texcludesFile = ~/.ignored\n");
        world.bare(["git", "init", "-q", "."]).run().success();
        world.write("secret.env", "x\n");
        world.write("file", "x\n");
        let status = world.sbx(["run", "--", "git", "status", "--short"]);
        status.run().success().silent().prints("?? file\n");
        // A command in another workspace, where the list is, leads it elsewhere.
        world.write_at_home(".netrc", "machine example login me\n");
        world.write_at_home("dot/ignored", "x\n");
        world.write_at_home(".gitconfig", "[core]\n\texcludesFile = ~/dot/ignored\n");
        let dot = world.home.join("dot").display().to_string();
        let words = ["run", "--workspace", &dot, "--cwd", &dot, "--", "ln", "-sf", "../.netrc", "ignored"];
        world.sbx(words).run().success();
        let out = world.sbx(["run", "--", "sh", "-c", "cat ~/dot/ignored; cat ~/.netrc"]).run();
        assert!(!out.out().contains("login me"), "{out}");
        world.write_at_home(".gitconfig", "[core]\n\texcludesFile = ~/.ignored\n");
        world.write_at_home(".ignored", "file\n");
        let status = world.sbx(["run", "--", "git", "status", "--short"]);
        status.run().success().silent().prints("?? secret.env\n");
    });
}

/// node_modules/.bin of a monorepo, and environments of Python, hold links to the programs.
#[test]
fn a_command_is_found_by_a_link_outside_the_workspace() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.script(world.home.join("mono/tool/main"), "#!/bin/sh\necho ran\n");
        world.make_dir(&world.home.join("mono/.bin"));
        let link = world.home.join("mono/.bin/tool");
        symlink("../tool/main", &link).unwrap();
        let by_link = |words: &[&str]| world.sbx(words.iter().map(Path::new).chain([&*link])).run();
        assert_eq!(by_link(&["run", "--"]).success().out(), "ran\n");
        // Nothing beside the link is there.
        world.write(world.home.join("mono/.bin/other"), "");
        let list = world.sbx(["run", "--", "ls", "-A"]).arg(world.home.join("mono/.bin")).run();
        assert!(!list.out().contains("other"), "{list}");
        // A link that a command can replace is not followed out of the workspace.
        symlink(world.home.join("mono/tool/main"), world.path("planted")).unwrap();
        world.sbx(["run", "--", "./planted"]).run().failed();
    });
}

/// A directory of PATH that is in another workspace: a command there may have put links into it.
#[test]
fn a_link_of_another_workspace_opens_nothing_outside_of_it() {
    with_namespaces(|user| {
        let world = World::new(user);
        program(&world, "private/bin/deploy", "#!/bin/sh\n# secret\n");
        world.write_at_home("private/lib/key", "secret");
        program(&world, "other/tool/main", "#!/bin/sh\necho ran\n");
        let [bin, private] = ["other/bin", "private"].map(|name| world.home.join(name));
        world.make_dir(&bin);
        let path = format!("{}:/usr/bin:/bin", bin.display());
        let read = format!("tool; cat {0}/bin/deploy {0}/lib/key", private.display());
        let run = || world.sbx(["run", "--", "sh", "-c", &read]).env("PATH", &path).run();
        let plant = |link: &str, leads: &str| {
            world.sbx(["run", "--", "ln", "-s", leads, link]).cwd(world.home.join("other")).run().success();
        };
        plant("bin/tool", "../tool/main");
        plant("bin/deploy", "../../private/bin/deploy");
        let out = run().failed();
        assert!(out.out() == "ran\n", "{out}");
        // The user's own link, in a directory that is nobody's workspace, is meant.
        world.make_dir(&world.home.join("bin"));
        symlink("../private/bin/deploy", world.home.join("bin/deploy")).unwrap();
        let path = format!("{}/bin:{path}", world.home.display());
        let out = world.sbx(["run", "--", "sh", "-c", &read]).env("PATH", &path).run().success();
        assert_eq!(out.out(), "ran\n#!/bin/sh\n# secret\nsecret");
    });
}

/// A script of another workspace: a command there may have written its first line.
#[test]
fn a_script_of_another_workspace_opens_nothing_outside_of_it() {
    with_namespaces(|user| {
        let world = World::new(user);
        let home = world.home.display().to_string();
        program(&world, "private/bin/interpreter", "#!/bin/cat\n");
        world.write_at_home("private/lib/key", "secret\n");
        world.write_at_home("private/bin/deploy", "secret\n");
        world.make_dir(&world.home.join("other"));
        let script = format!("printf '#!{home}/private/bin/interpreter\\n' > tool; chmod 755 tool");
        world.sbx(["run", "--", "sh", "-c", &script]).cwd(world.home.join("other")).run().success();
        let files = ["lib/key", "bin/deploy"].map(|name| format!("{home}/private/{name}"));
        let run = |script: String| world.sbx(["run", "--", &script]).args(&files).run();
        let out = run(format!("{home}/other/tool"));
        assert!(!out.out().contains("secret"), "{out}");
        // What the user's own script names is meant, but not where a link in another workspace is on the way.
        let first = format!("#!{home}/private/bin/interpreter\n");
        program(&world, "bin/mine", &first);
        let out = run(format!("{home}/bin/mine")).success();
        assert_eq!(out.out().matches("secret").count(), 2, "{out}");
        program(&world, "bin/led", &format!("#!{home}/other/tool\n"));
        let out = run(format!("{home}/bin/led"));
        assert!(!out.out().contains("secret"), "{out}");
    });
}

/// The same in a directory that a flag has let a command write to.
#[test]
fn a_link_in_a_directory_that_was_opened_opens_nothing_outside_of_it() {
    with_namespaces(|user| {
        let world = World::new(user);
        program(&world, "private/bin/deploy", "#!/bin/sh\n");
        world.write_at_home("private/lib/key", "secret");
        world.make_dir(&world.home.join("tools/bin"));
        world.make_dir(&world.home.join("bin"));
        symlink("../tools/bin/tool", world.home.join("bin/tool")).unwrap();
        let tool = world.home.join("tools/bin/tool");
        let path = format!("{}/bin:/usr/bin:/bin", world.home.display());
        let key = world.home.join("private/lib/key");
        let read = || world.sbx(["run", "--", "cat"]).arg(&key).env("PATH", &path).run();
        // As long as no command could write there, the link is the user's.
        symlink("../../private/bin/deploy", &tool).unwrap();
        read().success().prints("secret");
        fs::remove_file(&tool).unwrap();
        let tools = world.home.join("tools");
        let plant =
            world.sbx(["run", "--rw"]).arg(&tools).args(["--", "ln", "-s", "../../private/bin/deploy"]);
        plant.arg(&tool).run().success();
        assert!(fs::exists(&tool).unwrap());
        let out = read().failed();
        assert!(!out.out().contains("secret"), "{out}");
    });
}

/// A built-in rule names a place in the home from which a link of the user's leads to where commands write.
#[test]
fn another_run_leads_no_built_in_rule_out() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home("dot/ignore", "*.o\n");
        world.write_at_home("keys/id", "secret\n");
        world.make_dir(&world.home.join(".config/git"));
        let named = world.home.join(".config/git/ignore");
        symlink("../../dot/ignore", &named).unwrap();
        let levels = [&[][..], &["--namespaces", "none"]];
        let read = |flags: &[&str]| world.sbx(["run"]).args(flags).args(["--", "cat"]).arg(&named).run();
        for flags in levels {
            read(flags).success().prints("*.o\n");
        }
        let plant = ["run", "--", "ln", "-sf", "../keys/id", "ignore"];
        world.sbx(plant).cwd(world.home.join("dot")).run().success();
        for flags in levels {
            let out = read(flags).failed();
            assert!(!out.out().contains("secret"), "{out}");
            out.says("ignore' is not opened: a link in a directory where commands of other runs write leads from there to");
        }
        // Nor a package store.
        world.write_at_home("dot/mod/x", "x\n");
        world.make_dir(&world.home.join("go/pkg"));
        symlink("../../dot/mod", world.home.join("go/pkg/mod")).unwrap();
        let script = "ls ~/go/pkg/mod";
        world.sbx(["run", "--", "sh", "-c", script]).run().success().prints("x\n");
        let plant = "mv mod was; ln -s ../keys mod";
        world.sbx(["run", "--", "sh", "-c", plant]).cwd(world.home.join("dot")).run().success();
        let out = world.sbx(["run", "--", "sh", "-c", script]).run();
        assert!(!out.out().contains("id"), "{out}");
        // The user's own link leads anywhere.
        fs::remove_file(&named).unwrap();
        symlink("../../keys/id", &named).unwrap();
        for flags in levels {
            read(flags).success().prints("secret\n");
        }
    });
}

/// Where something of the user's was once, there is nothing in a run that may not see it.
#[test]
fn what_an_earlier_run_had_is_not_there_empty() {
    with_namespaces(|user| {
        let world = World::new(user);
        program(&world, "deploy.sh", "#!/bin/sh\necho deployed\n");
        world.write_at_home("data/file", "data\n");
        world.write_at_home(".keys/id", "key\n");
        symlink("data", world.home.join("alias")).unwrap();
        let named = |name: &str| world.home.join(name).display().to_string();
        world.sbx(["run", "--"]).arg(world.home.join("deploy.sh")).run().success().prints("deployed\n");
        let all = ["run", "--ro", &named("alias"), "--ro", &named(".keys/id"), "--"];
        let script = "cat ~/alias/file ~/.keys/id; echo kept > ~/.kept; mkdir ~/.empty";
        world.sbx(all).args(["sh", "-c", script]).run().success().silent().prints("data\nkey\n");
        let look =
            "cd ~; for f in deploy.sh data alias .keys .empty .kept; do test -e $f && echo $f; done; true";
        let left = |out: Output| out.success().silent().prints(".empty\n.kept\n");
        left(world.sbx(["run", "--", "sh", "-c", look]).run());
        // While another run has it, it stays for that one.
        let other = world.sbx(all).args(["sh", "-c", "echo up; read x; cat ~/alias/file"]).stdin("").start();
        other.wait_for("up\n");
        world.sbx(["run", "--", "true"]).run().success();
        other.wait().success().prints("up\ndata\n");
        left(world.sbx(["run", "--", "sh", "-c", look]).run());
        // What a command has put there stays.
        world.sbx(all).arg("true").run().success();
        let state = world.sbx(["run", "--", "sh", "-c", "echo mine > ~/data; cat ~/data"]).run().success();
        state.prints("mine\n");
        assert_eq!(fs::read_to_string(world.home.join("data/file")).unwrap(), "data\n");
    });
}

#[test]
fn a_program_that_a_run_has_installed_is_found() {
    with_namespaces(|user| {
        let world = World::new(user);
        let path = format!("{}/go/bin:/usr/bin:/bin", world.home.display());
        let run = |flags: &[&str], command: &[&str]| {
            world.sbx(["run"]).args(flags).arg("--").args(command).env("PATH", &path).run()
        };
        let install = "mkdir -p ~/go/bin ~/.t && printf '#!/bin/sh\\necho app $# \"$2\"\\n' > ~/.t/app && \
            chmod +x ~/.t/app && ln -s ~/.t/app ~/go/bin/app";
        run(&[], &["app"]).refused(127, &["app", "not found in PATH"]);
        run(&[], &["sh", "-c", install]).success();
        run(&[], &["app", "one", "two  words"]).success().silent().prints("app 2 two  words\n");
        let whole = world.home.join("go/bin/app").display().to_string();
        run(&[], &[&whole, "one"]).success().prints("app 1 \n");
        run(&[], &["apps"]).refused(127, &["apps", "not found in PATH"]);
        for flags in [["--home", "closed"], ["-p", "no-exec"], ["-p", "minimal"], ["--allow-command", "ls"]] {
            run(&flags, &["app"]).refused(127, &["app", "not found in PATH"]);
        }
        assert!(!world.home.join("go").exists());
    });
}

/// What somebody may look for in vain is told, and what tools keep for themselves is not.
#[test]
fn what_is_written_for_people_is_told() {
    with_namespaces(|user| {
        let world = World::new(user);
        let run = |script: &str| world.sbx(["run", "--", "sh", "-c", script]).run().success();
        world.write_at_home(".profile", "yours\n");
        world.write_at_home(".gitconfig", "[user]\n\tname = x\n");
        let writes = "mkdir ~/letters; echo x > ~/letters/one; echo x > ~/letter; echo x > ~/.hidden";
        let told = run(&format!("{writes}; echo x >> ~/.profile; echo '# x' >> ~/.gitconfig"));
        told.says("not to yours: '.profile', 'letter', 'letters/one' ('sbx home show' says where that is)");
        run("echo x >> ~/.profile").silent();
        assert_eq!(fs::read_to_string(world.home.join(".profile")).unwrap(), "yours\n");
        let gone = world.sbx(["run", "--home", "temporary", "--", "sh", "-c", "echo x > ~/letter"]).run();
        gone.success().says("not to yours: 'letter' (it is gone now)");
        let tools = "mkdir -p ~/.cache/x ~/go/pkg/mod; echo x > ~/.cache/x/y; echo x > ~/go/pkg/mod/z";
        run(tools).silent();
        run("cat ~/letter > out").silent();
        assert!(!world.home.join("letter").exists() && world.path("out").exists());
    });
}
