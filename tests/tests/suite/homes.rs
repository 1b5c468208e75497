//! `sbx home` looks after what private homes leave on the disk. The homes here are made by hand.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sbx_tests::{User, World, in_worlds, promise};
use serde_json::Value;

/// The directory of all homes.
fn place(world: &World) -> PathBuf {
    world.home.join(".local/state/sbx/homes")
}

/// The name of a home, of which this is the first digit.
fn name(digit: char) -> String {
    format!("{digit}{}", "0".repeat(31))
}

/// Makes a home as runs leave one, with a closed directory of an overlay, and a link to a directory outside.
fn make(world: &World, digit: char, workspace: &str, profile: &str, used: &str) -> PathBuf {
    let home = place(world).join(name(digit));
    let script = format!(
        "mkdir -p '{outside}' '{inner}/home/.cargo' '{inner}/stores/0/upper/0' '{inner}/stores/0/work/0/work' &&
        cd '{inner}' && echo kept > '{outside}/kept' && ln -s '{outside}' home/link &&
        head -c 300000 /dev/zero > home/.cargo/crate && head -c 100000 /dev/zero > stores/0/upper/0/x &&
        chmod 0 stores/0/work/0/work &&
        printf '{{\"workspace\": \"{workspace}\", \"profile\": \"{profile}\"}}' > ../about.json &&
        touch -d '{used}' ../about.json",
        outside = world.path("outside").display(),
        inner = home.join("0123456789abcdef").display(),
    );
    world.bare(["sh", "-c", &script]).run().success();
    home
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn homes_are_listed_with_what_they_take() {
    in_worlds(|world| {
        world.sbx(["home", "list"]).run().success().prints("no private homes\n");
        assert_eq!(world.sbx(["home", "list", "--json"]).run().success().out(), "[]\n");
        make(world, 'a', "/w/old", "workspace", "40 days ago");
        make(world, 'b', "/w/new", "no-exec", "2 hours ago");
        let odd = make(world, 'c', "/w/odd", "x", "3 days ago");
        let script = format!("cd '{}' && rm about.json && touch -d '50 days ago' .", odd.display());
        world.bare(["sh", "-c", &script]).run().success();
        let out = world.sbx(["home", "list"]).run().success().out();
        let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0].join(" "), "unused for size profile workspace");
        let rows = [
            ["2h", "no-exec", "/w/new"],
            ["40d", "workspace", "/w/old"],
            // As old as its directory.
            ["50d", "unknown", "unknown"],
        ];
        assert_eq!(lines.len(), 1 + rows.len());
        for (line, [age, profile, workspace]) in lines[1..].iter().zip(rows) {
            // How many blocks a file takes depends on the file system.
            assert!((390.0..600.0).contains(&line[1].parse::<f64>().unwrap()), "{out}");
            assert_eq!([line[0], line[2], line[3], line[4]], [age, "KiB", profile, workspace], "{out}");
            assert_eq!(line.get(5), if workspace == "unknown" { None } else { Some(&"(gone)") }, "{out}");
        }
        let entries = json(&world.sbx(["home", "list", "--json"]).run().success().out());
        let entry = entries.as_array().unwrap().iter().find(|entry| entry["workspace"] == "/w/new").unwrap();
        assert_eq!((&entry["profile"], &entry["whole"]), (&"no-exec".into(), &true.into()));
        assert_eq!(entry["path"].as_str().unwrap(), place(world).join(name('b')).to_str().unwrap());
        assert!(
            entry["bytes"].as_u64().unwrap() >= 400_000 && entry["last_use"].as_str().unwrap().ends_with('Z')
        );
        assert!(entries.as_array().unwrap().iter().any(|entry| entry["workspace"].is_null()));
    });
}

#[test]
fn a_home_is_shown_by_its_workspace() {
    in_worlds(|world| {
        let workspace = world.workspace.display().to_string();
        let home = make(world, 'a', &workspace, "workspace", "now");
        make(world, 'b', "/w/other", "workspace", "now");
        let out = world.sbx(["home", "show"]).run().success().out();
        assert!(out.starts_with(&format!("{workspace}, profile workspace\n")), "{out}");
        assert!(
            out.contains(&format!("  home        {}\n", home.join("0123456789abcdef/home").display())),
            "{out}"
        );
        let (crates, packages) =
            (out.find("home/.cargo\n").unwrap(), out.find("stores/0/upper/0\n").unwrap());
        assert!(crates < packages && !out.contains("/w/other"), "{out}");
        for directory in [".", "../project", &*workspace] {
            assert_eq!(world.sbx(["home", "show", directory]).run().success().out(), out);
        }
        // A workspace that is gone may have a home still.
        world.sbx(["home", "show", "/w/x/../other"]).run().success().says("");
        let shown = json(&world.sbx(["home", "show", "--json", "/w/other"]).run().success().out());
        assert_eq!(shown[0]["largest"][0]["path"], "home/.cargo");
        let none = world.sbx(["home", "show", "/w/none"]).run().exited(1);
        assert_eq!(none.err(), "sbx: no private home of '/w/none'\n");
        world.sbx(["home", "show"]).cwd("/").run().refused(125, &["no workspace"]);
    });
}

#[test]
fn only_what_was_meant_is_removed() {
    in_worlds(|world| {
        let (old, new) =
            (make(world, 'a', "/w/old", "p", "40 days ago"), make(world, 'b', "/w/new", "p", "1 day ago"));
        let (same, last) = (make(world, 'c', "/w/new", "q", "now"), make(world, 'd', "/w/last", "p", "now"));
        world.sbx(["home", "clear"]).run().refused(125, &["name a workspace"]);
        world.sbx(["home", "clear", "--older-than", "none"]).run().refused(125, &["--older-than"]);
        let there = || [&old, &new, &same, &last].map(|home| home.exists());
        assert_eq!(there(), [true; 4]);
        let out = world.sbx(["home", "clear", "--older-than", "30d"]).run().success();
        assert_eq!(out.out(), "removed the home of '/w/old' (profile p)\n");
        assert_eq!(there(), [false, true, true, true]);
        world.sbx(["home", "clear", "/w/none", "/w/new", "--older-than", "30d"]).run().exited(1);
        assert_eq!(there(), [false, true, true, true]);
        let gone = json(&world.sbx(["home", "clear", "--json", "/w/new"]).run().success().out());
        assert_eq!((&gone[0]["result"], &gone[1]["result"]), (&"removed".into(), &"removed".into()));
        assert_eq!(there(), [false, false, false, true]);
        assert_eq!(world.read("outside/kept").as_deref(), Some("kept\n"));
        world.sbx(["home", "clear", "--all"]).run().success();
        assert_eq!(there(), [false; 4]);
        assert_eq!(std::fs::read_dir(place(world)).unwrap().count(), 0);
        assert_eq!(world.read("outside/kept").as_deref(), Some("kept\n"));
    });
}

#[test]
fn homes_of_workspaces_that_are_gone_are_removed() {
    in_worlds(|world| {
        world.make_dir(&world.path("kept"));
        let there = world.path("kept").canonicalize().unwrap();
        let kept = make(world, 'a', there.to_str().unwrap(), "p", "40 days ago");
        let unknown = make(world, 'b', "", "p", "40 days ago");
        let (left, new) =
            (make(world, 'c', "/w/left", "p", "40 days ago"), make(world, 'd', "/w/new", "p", "now"));
        let out = world.sbx(["home", "list"]).run().success().out();
        assert_eq!(out.lines().filter(|line| line.ends_with(" (gone)")).count(), 2, "{out}");
        world.sbx(["home", "clear", "--gone", "--older-than", "30d"]).run().success();
        assert!(kept.exists() && unknown.exists() && !left.exists() && new.exists());
        let cleared = json(&world.sbx(["home", "clear", "--gone", "--json"]).run().success().out());
        assert_eq!((&cleared[0]["gone"], cleared.as_array().unwrap().len()), (&true.into(), 1));
        assert!(kept.exists() && unknown.exists() && !new.exists());
    });
}

/// What a flag opens has a place in the run's own home, which the run makes itself.
#[test]
fn only_what_the_command_writes_is_said_to_be_written() {
    promise!(namespaces);
    in_worlds(|world| {
        let file = world.write_at_home(".vimrc", "x\n");
        for flag in ["--ro", "--rw"] {
            let out = world.sbx(["run", flag, file.to_str().unwrap(), "--", "true"]).run().success();
            assert!(out.sbx_lines().is_empty(), "{flag}: {out}");
        }
        let out = world.sbx(["run", "--", "sh", "-c", "echo y > ~/.vimrc"]).run().success();
        out.says("written to the run's own home, and not to yours: '.vimrc'");
        assert_eq!(world.read(&file).as_deref(), Some("x\n"));
        // Many programs replace their files, as readline does `~/.python_history`: that is no new one.
        let replace = "echo z > ~/.vimrc.new && mv ~/.vimrc.new ~/.vimrc";
        world.sbx(["run", "--", "sh", "-c", replace]).run().success().silent();
    });
}

/// A path that is no text is written down like another one.
#[test]
fn a_workspace_by_any_name_has_its_own_home() {
    promise!(namespaces);
    in_worlds(|world| {
        let names: [&[u8]; 2] = [b"p\xff", "p\u{fffd}".as_bytes()];
        let directories = names.map(|name| world.path(OsStr::from_bytes(name)));
        for directory in &directories {
            world.make_dir(directory);
            world.sbx(["run", "-q", "--", "touch", "made"]).cwd(directory).run().success();
        }
        let homes = || place(world).read_dir().unwrap().count();
        assert_eq!(homes(), 2);
        let shown = |directory: &Path| world.sbx(["home", "show"]).cwd(directory).run();
        world.sbx(["home", "clear", "."]).cwd(&directories[1]).run().success();
        assert_eq!(homes(), 1);
        shown(&directories[0]).success();
        shown(&directories[1]).exited(1);
        world.sbx(["home", "clear", "."]).cwd(&directories[0]).run().success();
        assert_eq!(homes(), 0);
    });
}

#[test]
fn a_home_that_a_run_uses_stays() {
    in_worlds(|world| {
        let (used, free) = (make(world, 'a', "/w/used", "p", "now"), make(world, 'b', "/w/free", "p", "now"));
        let run = File::open(&used).unwrap();
        run.try_lock_shared().unwrap();
        let named = world.sbx(["home", "clear", "/w/used"]).run().exited(1);
        assert_eq!(named.err(), "sbx: the home of '/w/used' (profile p) is in use: a run has it\n");
        let all = world.sbx(["home", "clear", "--all"]).run().success();
        assert!(all.err().contains("in use") && all.out() == "removed the home of '/w/free' (profile p)\n");
        assert!(used.join("0123456789abcdef/home/.cargo/crate").exists() && !free.exists());
        drop(run);
        world.sbx(["home", "clear", "/w/used"]).run().success();
        assert!(!used.exists());
    });
}

#[test]
fn what_is_no_home_of_the_users_stays() {
    in_worlds(|world| {
        let home = make(world, 'a', "/w", "p", "now");
        let away = world.path("away");
        let script = format!(
            "cd '{}' && mv {a} '{away}' && ln -s '{away}' {a} && mkdir mine && touch {b}",
            place(world).display(),
            a = name('a'),
            b = name('b'),
            away = away.display()
        );
        world.bare(["sh", "-c", &script]).run().success();
        world.sbx(["home", "clear", "--all"]).run().success().prints("no private homes to remove\n");
        assert!(home.is_symlink() && away.join("0123456789abcdef/home/.cargo/crate").exists());
        assert!(place(world).join("mine").exists() && place(world).join(name('b')).exists());
    });
    if User::current().is_root() {
        let world = World::new(&User::current());
        let home = make(&world, 'a', "/w", "p", "now");
        std::os::unix::fs::chown(&home, Some(65534), None).unwrap();
        world.sbx(["home", "clear", "--all"]).run().success().silent();
        assert!(home.exists());
        std::os::unix::fs::chown(&home, Some(0), None).unwrap();
        world.sbx(["home", "clear", "--all"]).run().success();
        assert!(!home.exists());
    }
}

/// Programs that go through all files of a user are not stopped by what runs leave there.
#[test]
fn what_a_run_leaves_in_its_home_can_be_listed() {
    promise!(namespaces);
    in_worlds(|world| {
        world.write(world.home.join(".cargo/registry/x"), "x\n");
        world.run("workspace", ["true"]).run().success();
        let out =
            world.bare(["find", place(world).to_str().unwrap(), "-name", "work", "-type", "d", "-ls"]).run();
        let out = out.success();
        // Root may list everything.
        assert!(out.out().lines().count() >= 2 && !out.out().contains(" d--------- "), "{out}");
    });
}

/// Whoever makes a key looks for it. Other programs keep what nobody misses where it begins with a dot.
#[test]
fn a_key_that_a_command_makes_in_its_home_is_told() {
    promise!(namespaces);
    in_worlds(|world| {
        let make = |name: &str| {
            let script = format!("mkdir -p ~/.{name} && echo x > ~/.{name}/new");
            world.sbx(["run", "--", "sh", "-c", &script]).run().success().sbx_lines()
        };
        let said = make("ssh");
        assert!(said.len() == 1 && said[0].contains("written to the run's own home"), "{said:?}");
        assert!(said[0].contains("'.ssh/new'") && make("cached").is_empty(), "{said:?}");
        // Sockets are no keys.
        let wait = |name: &str| format!("mkdir -p ~/.gnupg && mkfifo ~/.gnupg/{name}");
        let out = world.sbx(["run", "--", "sh", "-c", &wait("S.gpg-agent")]).run().success();
        assert!(out.sbx_lines().is_empty(), "{out}");
        let out = world.sbx(["run", "--", "sh", "-c", &format!("{}; : > ~/.gnupg/new", wait("other"))]).run();
        out.success().says("'.gnupg/new'");
        // It is the command's own: nobody has it outside.
        assert!(!world.home.join(".ssh/new").exists());
    });
}
