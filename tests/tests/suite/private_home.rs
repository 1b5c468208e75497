//! A home directory of the run's own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use sbx_tests::{Cmd, User, World, need};

use crate::namespaces::with_namespaces;

fn sh(world: &World, flags: &[&str], script: &str) -> Cmd {
    world.sbx(["run", "-q"]).args(flags).args(["--", "sh", "-c", script])
}

/// A path in the user's own home.
fn home(world: &World, name: &str) -> String {
    world.home.join(name).display().to_string()
}

/// A file in the user's own home.
fn read(world: &World, name: &str) -> String {
    fs::read_to_string(world.home.join(name)).unwrap()
}

#[test]
fn what_no_rule_opens_does_not_exist() {
    with_namespaces(|user| {
        let world = World::new(user);
        for name in [".ssh/id_rsa", ".config/tool/token", "letters/one", ".netrc"] {
            world.write_at_home(name, "secret");
        }
        let look = "cat ~/.ssh/id_rsa ~/.config/tool/token ~/letters/one ~/.netrc; ls -A ~; cd ~ && ls -R .";
        let out = sh(&world, &[], look).run();
        assert!(!out.out().contains("secret") && !out.out().contains("letters"), "{out}");
        assert_eq!(out.err().matches("No such file or directory").count(), 4, "{out}");
        // What a flag names is there, and nothing beside it.
        let named =
            sh(&world, &["--ro", &home(&world, ".config/tool")], "cat ~/.config/tool/token; ls -A ~/.config")
                .run()
                .success();
        assert_eq!(named.out(), "secrettool\n");
        let closed = sh(&world, &["--home", "closed"], "cat ~/letters/one; ls ~").run().failed();
        assert_eq!(closed.err().matches("Permission denied").count(), 2, "{closed}");
    });
}

#[test]
fn a_home_lasts_for_one_workspace_and_profile() {
    with_namespaces(|user| {
        let world = World::new(user);
        sh(&world, &[], "mkdir -p ~/.tool && echo kept > ~/.tool/state && echo x > ~/.bashrc")
            .run()
            .success();
        assert!(!world.home.join(".tool").exists() && !world.home.join(".bashrc").exists());
        assert_eq!(sh(&world, &[], "cat ~/.tool/state").run().success().out(), "kept\n");
        for flags in [&["-p", "no-exec"][..], &["-p", "read-only"], &["--home", "temporary"]] {
            let flags = [flags, &["--allow-calls", "execve,execveat,fork,vfork"]].concat();
            sh(&world, &flags, "test ! -e ~/.tool").run().success();
        }
        let other = world.home.join("other");
        world.make_dir(&other);
        sh(&world, &[], "test ! -e ~/.tool").cwd(&other).run().success();
        // One that does not last can be written to all the same.
        let both = "echo x > ~/.new && cat ~/.new";
        assert_eq!(sh(&world, &["-p", "read-only"], both).run().success().out(), "x\n");
        sh(&world, &["-p", "read-only"], "test ! -e ~/.new").run().success();
    });
}

/// Package stores are read, and what is written to them stays in the run's own home.
#[test]
fn stores_are_read_and_never_changed() {
    with_namespaces(|user| {
        let world = World::new(user);
        for store in [".cargo/registry", ".konan", ".cache/pip", "go/pkg/mod", ".m2/repository"] {
            for name in ["deep/one", "two", "three"] {
                world.write_at_home(&format!("{store}/{name}"), "theirs\n");
            }
            let before = stage_of(&world.home.join(store));
            let change = format!(
                "cd ~/{store} && cat deep/one && echo mine >> deep/one && rm two && mkdir new && echo n > new/file \
                 && ln three hard && echo more >> hard && chmod 700 deep && mv deep moved && touch -d @1 moved/one"
            );
            assert_eq!(sh(&world, &[], &change).run().success().out(), "theirs\n");
            assert_eq!(stage_of(&world.home.join(store)), before, "{store}");
            let again = format!("cd ~/{store} && cat moved/one new/file hard && ls");
            let seen = sh(&world, &[], &again).run().success().out();
            assert_eq!(seen, "theirs\nmine\nn\ntheirs\nmore\nhard\nmoved\nnew\nthree\n", "{store}");
            // Another profile sees what is there outside.
            let plain = sh(&world, &["-p", "read-only"], &format!("cd ~/{store} && cat deep/one two"))
                .run()
                .success();
            assert_eq!(plain.out(), "theirs\ntheirs\n");
        }
    });
}

/// Stores are parts of one overlay over the whole home. Nothing else of it can be seen, and the mark that would have
/// the kernel refuse the next one goes while the command runs, or with the next run.
#[test]
fn nothing_of_an_overlay_is_there_but_its_stores() {
    with_namespaces(|user| {
        let world = World::new(user);
        for name in [".konan/one", ".cache/pip/two", ".cargo/registry/three", ".secret"] {
            world.write_at_home(name, "theirs\n");
        }
        world.write_at_home("elsewhere/four", "theirs\n");
        world.make_dir(&world.home.join("go/pkg"));
        symlink(world.home.join("elsewhere"), world.home.join("go/pkg/mod")).unwrap();
        let look =
            "grep ' - overlay ' /proc/self/mountinfo | cut -d ' ' -f 4 | grep -v '^/$' | sort; ls -A ~";
        let seen = sh(&world, &[], look).run().success().out();
        let home = world.home.strip_prefix("/").unwrap().parent().unwrap();
        assert!(!seen.contains(".secret") && !seen.contains(home.to_str().unwrap()), "{seen}");
        for part in ["/.cache/pip", "/.cargo/registry", "/.konan"] {
            assert!(seen.lines().any(|line| line == part), "{seen}");
        }
        let change =
            "for s in .konan .cache/pip .cargo/registry go/pkg/mod; do echo x > ~/$s/new || exit; done";
        sh(&world, &[], change).run().success();
        let marks = || {
            let find = ["-c", "find .local/state/sbx/homes -path '*/work/work/incompat*'"];
            Cmd::new("sh").args(find).cwd(&world.home).run().success().out()
        };
        assert_eq!(marks(), "");
        let killed = sh(&world, &[], "echo ready; sleep 60").start();
        killed.wait_for("ready");
        killed.kill();
        sh(&world, &[], change).run().success();
        assert!(!world.home.join(".konan/new").exists() && !world.home.join("elsewhere/new").exists());
    });
}

/// A home that does not last leaves nothing, in memory or on a disk, and is where TMPDIR says.
#[test]
fn a_home_that_does_not_last_leaves_nothing() {
    with_namespaces(|user| {
        let world = World::new(user);
        let name = format!("left-{}", std::process::id());
        let script = format!("touch ~/{name}; mkdir -p ~/a/b; chmod 0 ~/a; echo ready; sleep ${{1:-0}}");
        let left = || {
            let find = format!("find /dev/shm /tmp '{}' -name {name}", world.home.display());
            Cmd::new("sh").args(["-c", &find]).run().out()
        };
        let run = |seconds: &str| sh(&world, &["-p", "read-only"], &script).args(["sh", seconds]);
        run("0").run().success();
        assert_eq!(left(), "");
        let running = run("60").start();
        running.wait_for("ready");
        assert_eq!(left().lines().count(), 1);
        running.kill();
        for _ in 0..100 {
            if left().is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(left(), "");
        let chosen = world.home.join("chosen");
        world.make_dir(&chosen);
        let running = run("60").env("TMPDIR", &chosen).start();
        running.wait_for("ready");
        assert!(left().starts_with(chosen.to_str().unwrap()));
        running.kill();
    });
}

/// Names, contents and modes of everything below a directory, and the times of the files.
fn stage_of(directory: &Path) -> String {
    let list = Cmd::new("sh")
        .args(["-c", "find . -printf '%p %m %T@ %C@ %s %n\\n' | sort && cat $(find . -type f | sort)"]);
    list.cwd(directory).run().success().out()
}

#[test]
fn runs_at_once_do_not_share_layers() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home(".konan/package", "theirs\n");
        let waits = "echo mine > ~/.konan/package; echo ready; while [ ! -e go ]; do sleep 0.02; done; cat ~/.konan/package";
        let first = sh(&world, &[], waits).start();
        first.wait_for("ready");
        let script = "cat ~/.konan/package; echo other > ~/.konan/package; cat ~/.konan/package";
        assert_eq!(sh(&world, &[], script).run().success().out(), "theirs\nother\n");
        world.write("go", "");
        assert_eq!(first.wait().success().out(), "ready\nmine\n");
        assert_eq!(sh(&world, &[], "cat ~/.konan/package").run().success().out(), "mine\n");
        assert_eq!(read(&world, ".konan/package"), "theirs\n");
    });
}

#[test]
fn programs_on_path_run_and_stay_as_they_are() {
    with_namespaces(|user| {
        let world = World::new(user);
        let program = |name: &str, says: &str| {
            world.write_at_home(name, format!("#!/bin/sh\necho {says}\n"));
            Cmd::new("chmod").args(["755"]).arg(world.home.join(name)).run().success();
        };
        program("bin/plain", "plain");
        program("tools/app/bin/app", "app");
        world.write_at_home("tools/app/lib/data", "data\n");
        world.write_at_home("tools/secret", "secret\n");
        world.write_at_home("tools/app/share/keyring", "secret\n");
        program(".local/bin/one", "one");
        symlink("one", world.home.join(".local/bin/other")).unwrap();
        world.write_at_home(".local/share/keyrings/login", "secret\n");
        symlink("../tools/app/bin/app", world.home.join("bin/app")).unwrap();
        // An earlier command has put this link into the workspace.
        world.write(world.home.join(".ssh-key"), "secret\n");
        symlink(world.home.join(".ssh-key"), world.path("planted")).unwrap();
        symlink(world.path("planted"), world.home.join("bin/outside")).unwrap();
        let path = format!("{0}/bin:{0}/.local/bin:/usr/bin:/bin", world.home.display());
        let run = |script: &str| sh(&world, &[], script).env("PATH", &path).run();
        assert_eq!(
            run("plain && app && other && cat ~/tools/app/lib/data").success().out(),
            "plain\napp\none\ndata\n"
        );
        let out = run(
            "cat ~/.local/share/keyrings/login ~/tools/app/share/keyring ~/tools/secret ~/bin/outside ~/.ssh-key; for f in ~/bin/plain ~/bin/new ~/tools/app/bin/app; do echo evil > $f; done; rm -f ~/bin/plain; mv ~/bin/app ~/bin/b",
        );
        assert!(!out.out().contains("secret"), "{out}");
        assert_eq!(read(&world, "bin/plain"), "#!/bin/sh\necho plain\n");
        assert_eq!(read(&world, "tools/app/bin/app"), "#!/bin/sh\necho app\n");
        assert!(!world.home.join("bin/new").exists() && world.home.join("bin/app").exists());
    });
}

/// What a command leaves in its home is in the way of a later run's mounts, and leads them nowhere.
#[test]
fn nothing_that_is_left_in_a_home_leads_out() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home(".cargo/registry/package", "theirs\n");
        world.write_at_home(".rustup/toolchain", "theirs\n");
        world.write_at_home("victim/file", "untouched\n");
        world.make_dir(&world.home.join("elsewhere"));
        let (victim, elsewhere) = (world.home.join("victim"), world.home.join("elsewhere"));
        let look = "cat ~/.cargo/registry/package ~/.rustup/toolchain";
        let plants = [
            format!("ln -s {} ~/.cargo && ln -s {} ~/.rustup", elsewhere.display(), victim.display()),
            "mkfifo ~/.cargo; echo file > ~/.rustup".to_string(),
            "mkdir ~/.cargo && echo file > ~/.cargo/registry && mkfifo ~/.rustup".to_string(),
            format!(
                "mkdir ~/.cargo && ln -s {} ~/.cargo/registry; ln -s loop ~/loop; ln -s loop ~/.rustup",
                victim.display()
            ),
            "mkdir -p ~/.cargo/registry ~/.rustup && chmod 000 ~/.cargo/registry ~/.rustup ~/.cargo"
                .to_string(),
            "chmod 000 ~".to_string(),
        ];
        for plant in plants {
            // What is mounted cannot be removed, so its names are free only in a home where it has not been mounted.
            let hidden = world.home.join("hidden");
            let names = [".cargo", ".rustup"];
            world.make_dir(&hidden);
            names.iter().for_each(|name| fs::rename(world.home.join(name), hidden.join(name)).unwrap());
            sh(
                &world,
                &[],
                &format!("chmod -R 700 ~/.cargo ~/.rustup; rm -rf ~/.cargo ~/.rustup ~/loop; {plant}"),
            )
            .run();
            names.iter().for_each(|name| fs::rename(hidden.join(name), world.home.join(name)).unwrap());
            let before = stage_of(&victim);
            let seen = sh(&world, &[], look).run();
            assert_eq!(seen.out(), "theirs\ntheirs\n", "{plant}: {seen}");
            assert_eq!(stage_of(&victim), before, "{plant}");
            assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{plant}");
        }
    });
}

/// A store that is the user's link may lead through a workspace, where a command may have put another link.
#[test]
fn a_store_is_not_read_over_a_link_of_a_command() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home(".ssh/id_rsa", "secret\n");
        symlink(world.path("store"), world.home.join(".konan")).unwrap();
        world.make_dir(&world.path("store"));
        world.write(world.path("store/package"), "mine\n");
        assert_eq!(sh(&world, &[], "cat ~/.konan/package").run().success().out(), "mine\n");
        fs::remove_dir_all(world.path("store")).unwrap();
        symlink(world.home.join(".ssh"), world.path("store")).unwrap();
        let out = sh(&world, &[], "cat ~/.konan/id_rsa").run().failed();
        assert!(!out.out().contains("secret"), "{out}");
    });
}

#[test]
fn links_of_the_user_lead_where_they_did() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home("dots/nvm/version", "one\n");
        world.write_at_home("dots/app/settings", "two\n");
        world.write_at_home("dots/secret", "three\n");
        symlink("dots/nvm", world.home.join(".nvm")).unwrap();
        symlink("dots/app", world.home.join(".app")).unwrap();
        let out = sh(
            &world,
            &["--ro", &home(&world, ".app")],
            "cat ~/.nvm/version ~/.app/settings; readlink ~/.nvm ~/.app; ls ~/dots",
        );
        assert_eq!(out.run().success().out(), "one\ntwo\ndots/nvm\ndots/app\napp\nnvm\n");
    });
}

#[test]
fn the_users_own_home_is_there_where_it_is_meant() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home("letter", "own\n");
        assert_eq!(sh(&world, &["--ro", &home(&world, "")], "cat ~/letter").run().success().out(), "own\n");
        assert_eq!(
            sh(&world, &["--workspace", &home(&world, "")], "cat ~/letter").run().success().out(),
            "own\n"
        );
        let words = ["cannot make a home directory of the run's own", "a flag names it"];
        sh(&world, &["--ro", &home(&world, ""), "--home", "private"], "true").run().refused(125, &words);
        sh(&world, &["--home", "private", "--namespaces", "none"], "true")
            .run()
            .refused(125, &["a home of the run's own"]);
    });
}

#[test]
fn other_homes_cannot_be_changed() {
    with_namespaces(|user| {
        let world = World::new(user);
        let other = world.home.join("other");
        world.make_dir(&other);
        sh(&world, &[], "echo kept > ~/.mine").cwd(&other).run().success();
        let homes = world.home.join(".local/state/sbx/homes");
        let find = || Cmd::new("sh").args(["-c", "cat */*/home/.mine"]).cwd(&homes).run().success().out();
        assert_eq!(find(), "kept\n");
        sh(&world, &[], "test ! -e ~/.local/state/sbx").run().success();
        let plant = "cd ~/.local/state/sbx/homes && for d in */*/home; do echo evil > $d/.mine; echo evil > $d/.new; done";
        sh(&world, &["--rw", &home(&world, ".local")], plant).run();
        assert_eq!(find(), "kept\n");
        Cmd::new("sh").args(["-c", "test ! -e */*/home/.new"]).cwd(&homes).run().success();
    });
}

#[test]
fn what_was_written_is_told_on_request() {
    need!("python3");
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home(".konan/package", "theirs\n");
        let script = "mkdir -p ~/.a/b/c && echo x > ~/.a/b/c/d && echo y > ~/.konan/new";
        world.sbx(["run", "--", "sh", "-c", script]).run().success().silent();
        let said = world.sbx(["run", "-v", "--", "sh", "-c", script]).run().success();
        let said = said
            .says("a home of its own")
            .says("written to the run's own home, and not to yours: '.a/b', '.konan'");
        drop(said);
        let report = world.path("report.json");
        let report_flag = report.to_str().unwrap().to_string();
        sh(&world, &["--report", &report_flag], script).run().success();
        let query = "import json,sys; h=json.load(open(sys.argv[1]))['home']; print(h['written'], h['lasts'], h['stores_read_only'])";
        let told = Cmd::new("python3").args(["-c", query]).arg(&report).run().success().out();
        assert_eq!(told, "['.a/b', '.konan'] True None\n");
        // Nothing is written, nothing is said.
        let quiet = world.sbx(["run", "-v", "--", "true"]).run().success();
        assert!(!quiet.err().contains("written to"), "{quiet}");
    });
}

#[test]
fn why_knows_the_home() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home("letter", "own\n");
        world.write_at_home(".konan/package", "theirs\n");
        let why = |path: &str, flags: &[&str]| {
            let out = world.sbx(["why"]).args(flags).args(["--path", &home(&world, path)]).run();
            format!("{} {}", out.code.unwrap(), out.out())
        };
        let letter = why("letter", &[]);
        assert!(
            letter.starts_with("1 ") && letter.contains("out of sight") && letter.contains("--ro "),
            "{letter}"
        );
        let closed = why("letter", &["--home", "closed"]);
        assert!(closed.starts_with("1 ") && closed.contains("no rule"), "{closed}");
        let store = why(".konan/package", &[]);
        assert!(store.starts_with("0 ") && store.contains("stays in a home of its own"), "{store}");
        // What is not there may be made, and nothing of the user's is found by its name.
        let new = why(".new", &[]);
        assert!(new.starts_with("2 depends") && new.contains("once the run has made it"), "{new}");
        let made = why(".new", &["--op", "w"]);
        assert!(made.starts_with("0 ") && made.contains("a home of its own"), "{made}");
        assert!(!world.home.join(".local/state/sbx/homes").exists());
    });
}

/// Without namespaces the home is closed, and tools are led elsewhere.
#[test]
fn without_namespaces_caches_are_elsewhere() {
    let world = World::new(&User::ordinary());
    world.write_at_home("letter", "own\n");
    let run = |flags: &[&str]| sh(&world, flags, "cat ~/letter; env").run().out();
    let closed = run(&["--namespaces", "none"]);
    for name in ["npm_config_cache", "PIP_CACHE_DIR", "GOCACHE", "XDG_CACHE_HOME"] {
        assert!(closed.contains(&format!("\n{name}=")), "{name}: {closed}");
    }
    assert!(!closed.contains("own\n"), "{closed}");
}

/// A home has the settings of the user without their secrets, and a command changes its own copy.
#[test]
fn settings_are_copied_without_secrets() {
    need!("git");
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home(".npmrc", "save-exact=true\n//registry.example.org/:_authToken=SECRET\n");
        world.write_at_home(
            ".gitconfig",
            "[user]\n name = Ann\n[url \"https://SECRET@example.org/\"]\n insteadOf = x\n",
        );
        let before = (read(&world, ".npmrc"), read(&world, ".gitconfig"));
        for profile in ["workspace", "read-only"] {
            let look = "cat ~/.npmrc ~/.gitconfig; git config --global user.name";
            let out = sh(&world, &["-p", profile], look).run().success().out();
            assert!(out.contains("save-exact=true") && out.ends_with("Ann\n"), "{out}");
            assert!(!out.contains("SECRET"), "{out}");
        }
        let change = "git config --global user.name Bob && git config --global user.name";
        assert_eq!(sh(&world, &[], change).run().success().out(), "Bob\n");
        assert_eq!((read(&world, ".npmrc"), read(&world, ".gitconfig")), before);
        // The file itself is there where it is named.
        let named = sh(&world, &["--ro", &home(&world, ".npmrc")], "cat ~/.npmrc").run().success();
        assert!(named.out().contains("SECRET"));
    });
}

/// The hint about signatures goes by the settings that the command has, and not by the user's own.
#[test]
fn signing_is_told_by_the_settings_of_the_home() {
    need!("git");
    with_namespaces(|user| {
        let world = World::new(user);
        world.write_at_home(".gitconfig", "[commit]\n\tgpgsign = true\n[user]\n\tname = x\n\temail = x@y\n");
        world.bare(["git", "init", "-q"]).run().success();
        let git = |arguments: &[&str]| world.sbx([&["run", "--", "git"], arguments].concat()).run();
        let told = |arguments: &[&str]| {
            git(arguments).failed().sbx_lines().iter().any(|line| line.contains("commit.gpgsign=false"))
        };
        assert!(!told(&["commit", "-m", "nothing"]));
        git(&["commit", "--allow-empty", "-m", "x"]).success().says("is not signed");
        git(&["config", "--global", "commit.gpgsign", "true"]).success();
        git(&["config", "--global", "gpg.program", "/bin/false"]).success();
        assert!(told(&["commit", "--allow-empty", "-m", "x"]));
    });
}
