//! Denied and protected files below a directory that may be changed: every way to get at them that we know.

use super::{PYTHON, REFUSING, shell, with_namespaces};
use sbx_tests::tree::{differences, snapshot};
use sbx_tests::world::SECRET;
use sbx_tests::{Cmd, Output, User, World, as_users, kernel, need};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

const ATTEMPTS: &str = include_str!("../../../subjects/shielded.py");

/// Denied: a directory, a file, where a link leads, what is not there yet, and what has nothing above it yet.
const DENY: &[&str] = &["private", "secret", "alias", "later/made", "never/was/here"];
const DENIED: &[&str] = &["private", "private/inside", "secret", "hidden/inside"];
/// Nothing is to be found there, but it cannot be made either.
const ABSENT: &[&str] = &["later/made", "later/made/inside", "never", "never/was/here"];
/// Protected: there, and not there although something outside would read them.
const PROTECTED: &[&str] = &[
    ".git/config",
    ".git/hooks",
    ".git/hooks/inside",
    ".git/hooks/pre-commit",
    ".git/commondir",
    ".vscode",
    ".vscode/inside",
    ".mcp.json",
    ".cursor",
    ".envrc",
];

/// A workspace with all of them; `free` and `twin` are anybody's.
fn stage(user: &User) -> World {
    let world = World::new(user);
    for directory in [".vscode", ".cursor", ".claude", ".config/direnv"] {
        world.make_dir(&world.home.join(directory));
    }
    for name in ["private/inside", "hidden/inside", "secret"] {
        world.write(name, format!("{SECRET}\n"));
    }
    for name in [".vscode/inside", ".git/hooks/inside", "twin/file", "later/other", ".mcp.json"] {
        world.write(name, "as it was\n");
    }
    world.write(".git/config", "[core]\n\tbare = false\n");
    for name in ["free", "twin-new", "twin-other"] {
        world.make_dir(&world.path(name));
    }
    symlink("hidden/inside", world.path("alias")).unwrap();
    world.write("attempts.py", ATTEMPTS);
    world
}

fn denying(world: &World, flags: &[&str]) -> Cmd {
    let held_by_mounts = !flags.contains(&"none");
    let denied =
        DENY.iter().filter(|path| held_by_mounts || world.exists(path)).flat_map(|path| ["--deny", path]);
    world.sbx(["run", "-q"]).args(denied).args(flags).args(["--", PYTHON, "attempts.py"])
}

/// The attempts that the kernel let happen.
fn done(out: &Output) -> Vec<(String, String)> {
    let text = out.out();
    let lines = text.lines().filter_map(|line| line.strip_suffix("\tdone"));
    lines.filter_map(|line| line.split_once('\t')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

/// What changed of a workspace, but for what is anybody's and what Python leaves.
fn changes(world: &World, before: &sbx_tests::tree::Tree) -> Vec<String> {
    let after = snapshot(&world.workspace);
    let ours = |path: &str| !path.starts_with("free") && !path.starts_with("twin");
    let all = differences(before, &after).into_iter();
    all.map(|(path, was, is)| format!("{}: {was:?} -> {is:?}", path.display()))
        .filter(|line| ours(line))
        .collect()
}

/// Runs all attempts on all of these and demands that nothing came of them.
#[track_caller]
fn none_succeeds(world: &World, targets: &[&str], run: Cmd, harmless: &[&str]) {
    let before = snapshot(&world.workspace);
    let out = run.args(targets).run().success();
    let known = |attempt: &str| harmless.contains(&attempt);
    let succeeded: Vec<_> = done(&out).into_iter().filter(|(_, attempt)| !known(attempt)).collect();
    assert!(succeeded.is_empty(), "{succeeded:?}");
    assert!(out.out().lines().count() > targets.len() * 25, "{out}");
    assert!(!out.out().contains(SECRET), "{out}");
    let changes = changes(world, &before);
    assert!(changes.is_empty(), "{changes:#?}");
}

/// Reading what is protected is no secret; a process may read its own memory maps and make directories of its own.
const READING: &[&str] = &["list", "enter", "read-inside", "copy"];

#[test]
fn denied_files_are_out_of_reach() {
    with_namespaces(|user| {
        let world = stage(user);
        // To stand where nothing can be seen is not to see.
        none_succeeds(&world, DENIED, denying(&world, &[]), &[]);
        none_succeeds(&world, ABSENT, denying(&world, &[]), &["enter", "list"]);
        // The name of a link may come to mean something else; what it led to stays hidden.
        let out = shell(
            &world,
            &["-q", "--deny", "alias"],
            "cat alias hidden/inside; ln -sf twin/file alias; cat alias",
        );
        out.run().success().prints("as it was\n");
    });
}

/// What keeps a name from being made is a directory of this mode, and empty.
#[test]
fn a_denied_directory_is_not_known_by_its_mode() {
    with_namespaces(|user| {
        let world = stage(user);
        for mode in ["1555", "1111", "1000", "1444"] {
            shell(&world, &["-q"], "mkdir held; echo held > held/file").run().success();
            // An earlier command.
            shell(&world, &["-q"], &format!("chmod {mode} held")).run().success();
            let out = shell(
                &world,
                &["-q", "--deny", "held"],
                "cat held/file; ls held; chmod 755 held; cat held/file; cat twin/file",
            );
            out.run().prints("as it was\n");
            shell(&world, &["-q"], "chmod 755 held; cat held/file; rm -r held")
                .run()
                .success()
                .prints("held\n");
        }
    });
}

#[test]
fn denied_files_are_out_of_reach_without_namespaces() {
    as_users(|user| {
        if !kernel::promises(1) {
            return;
        }
        for take_away in [|run: Cmd| run, |run: Cmd| run.docker(), |run: Cmd| run.answering(REFUSING)] {
            let world = stage(user);
            let flags: &[&str] = &["--namespaces", "none"];
            // Landlock lets everybody see what is where, and go there.
            none_succeeds(&world, DENIED, take_away(denying(&world, flags)), &["enter"]);
            let absent = world.sbx(["run", "--namespaces", "none", "--deny", "later/made", "--", "true"]);
            take_away(absent).run().refused(125, &["later/made"]);
        }
    });
}

#[test]
fn protected_files_cannot_be_changed_replaced_or_made() {
    with_namespaces(|user| {
        let world = stage(user);
        let before = snapshot(&world.workspace);
        let out = denying(&world, &[]).args(PROTECTED).run().success();
        let reads = |attempt: &str| attempt.starts_with("read") || READING.contains(&attempt);
        let succeeded: Vec<_> = done(&out).into_iter().filter(|(_, attempt)| !reads(attempt)).collect();
        assert!(succeeded.is_empty(), "{succeeded:?}");
        let changes = changes(&world, &before);
        assert!(changes.is_empty(), "{changes:#?}");
        // They can be read, as ever.
        for name in [".git/config", ".vscode/inside", ".mcp.json"] {
            let read = |(target, attempt): &(String, String)| target == name && attempt == "read";
            assert!(done(&out).iter().any(read), "{name}: {out}");
        }
    });
}

/// The same attempts on what nobody denied or protected: they are real.
#[test]
fn the_attempts_succeed_on_other_files() {
    let expected = [
        "read",
        "read-dot-dot",
        "read-proc-self-root",
        "read-proc-self-cwd",
        "read-symlink",
        "read-through_descriptor",
        "read-through_parent",
        "read-through_socket",
        "read-link",
        "chmod",
        "times",
        "write",
        "truncate",
        "write-proc-self-root",
        "write-through_descriptor",
        "rename-over",
        "exchange",
        "rename-away",
        "rename-parent",
    ];
    as_users(|user| {
        let world = stage(user);
        let out =
            denying(&world, &[]).args(["twin/file", "twin-new/new", "twin-other/other/new"]).run().success();
        let done = done(&out);
        for attempt in expected {
            assert!(done.iter().any(|(_, name)| name == attempt), "{attempt}: {out}");
        }
        let made =
            |name: &str| done.iter().any(|(target, attempt)| target == "twin-new/new" && attempt == name);
        assert!(["create", "make-directory", "symlink-over"].into_iter().any(made), "{out}");
    });
}

/// What cannot be had without namespaces is said to be missing, and by its name.
#[test]
fn what_is_not_protected_is_said() {
    as_users(|user| {
        let world = stage(user);
        let out = shell(&world, &["--namespaces", "none"], "echo planted >> .vscode/inside").run().success();
        assert!(out.err().contains("has no namespaces"), "{out}");
        assert_eq!(world.read(".vscode/inside").unwrap(), "as it was\nplanted\n");
        let out = shell(&world, &[], "echo planted >> .vscode/inside; exit 0").docker().run().success();
        assert!(out.err().contains("has no namespaces"), "{out}");
        let out = shell(&world, &[], "true").answering(REFUSING).run().success();
        if !user.is_root() || out.err().contains("has no namespaces") {
            assert!(out.err().contains("warning: "), "{out}");
        }
        shell(&world, &["--require", "full"], "true").docker().run().refused(125, &["namespaces"]);
        world.sbx(["run", "--namespaces", "none", "--require", "full", "--", "true"]).run().refused(125, &[]);
    });
}

/// Who renews what somebody outside has taken away would mount for ever where it cannot be seen what is mounted.
#[test]
fn where_mounts_cannot_be_seen_no_run_hangs() {
    with_namespaces(|user| {
        let world = stage(user);
        let run =
            |words: &[&str]| world.sbx([&["run"], words, &["--", "/bin/sh", "-c", "echo ran"]].concat());
        let out = run(&[]).answering(&[(libc::SYS_statx, libc::EPERM)]).run().success().prints("ran\n");
        assert!(out.err().contains("has no namespaces") && out.err().contains("statx"), "{out}");
        let refused = run(&["--require", "full"]).answering(&[(libc::SYS_statx, libc::EPERM)]).run();
        refused.refused(125, &["statx"]);
        let out = run(&[]).run().success().prints("ran\n");
        assert!(!out.err().contains("has no namespaces"), "{out}");
    });
}

#[test]
fn git_sees_nothing_of_it() {
    if !need(&["git"]) {
        return;
    }
    with_namespaces(|user| {
        let world = stage(user);
        world.bare(["rm", "-rf", ".git", "alias"]).run().success();
        let git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"];
        for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "all"]] {
            world.bare([&git[..], words].concat()).run().success();
        }
        let clean = || world.bare(["git", "status", "--porcelain", "--ignored"]).run().success().prints("");
        clean();
        let out = shell(&world, &["--deny", "private", "--deny", "none/yet"], "git status --porcelain").run();
        // Inside, what is denied is as good as gone.
        let shown = out.success().out();
        assert!(shown.lines().all(|line| line.contains("private")), "{shown}");
        clean();
    });
}

/// A file that is protected or denied, or a directory, handed over open.
#[test]
fn descriptors_of_shielded_files_are_refused() {
    with_namespaces(|user| {
        let world = stage(user);
        let open = |name: &str| fs::File::open(world.path(name)).unwrap().into();
        let pass = |name: &str, number: &str, as_number: i32| {
            let words =
                ["run", "-q", "--deny", "secret", "--deny", "private", "--pass-fd", number, "--", "true"];
            world.sbx(words).pass_fd(open(name), as_number).run()
        };
        for name in
            [".git/config", ".vscode/inside", ".mcp.json", "secret", "private/inside", "free", ".git/hooks"]
        {
            pass(name, "7", 7).refused(125, &["descriptor 7"]);
        }
        pass("twin/file", "7", 7).success();
        let stdin = |name: &str| {
            world.sbx(["run", "-q", "--deny", "secret", "--", "cat"]).pass_fd(open(name), 0).run()
        };
        stdin("secret").refused(125, &["descriptor 0"]);
        stdin("twin/file").success().prints("as it was\n");
        // What is elsewhere and only lent for reading stays so.
        let outside = world.write(world.outside.join("lent"), "lent\n");
        let file = fs::File::open(&outside).unwrap().into();
        let script = "echo planted > /proc/self/fd/0; echo planted > /dev/stdin; cat";
        shell(&world, &["-q"], script).pass_fd(file, 0).run().success().prints("lent\n");
        assert_eq!(fs::read_to_string(outside).unwrap(), "lent\n");
    });
}

/// A protected name that is a link: neither it nor what it leads to can be changed.
#[test]
fn protected_links_stay_what_they_are() {
    with_namespaces(|user| {
        let world = stage(user);
        world.write("tools.json", "as it was\n");
        world.make_dir(&world.home.join(".gemini"));
        world.make_dir(&world.path("editor/inside"));
        fs::remove_file(world.path(".mcp.json")).unwrap();
        symlink("tools.json", world.path(".mcp.json")).unwrap();
        symlink("editor", world.path(".gemini")).unwrap();
        symlink(world.outside.join("kept"), world.path(".envrc")).unwrap();
        let before = snapshot(&world.workspace);
        let script = "for n in .mcp.json .gemini .envrc tools.json editor; do echo x >> $n; echo x > $n; mkdir $n; \
            ln -sfn twin/file $n; mv -T $n was; mv -T twin/file $n; rm -rf $n; touch $n/x; chmod 777 $n; done 2>/dev/null; cat .mcp.json";
        shell(&world, &["-q"], script).run().success().prints("as it was\n");
        let changed = changes(&world, &before);
        assert!(changed.is_empty(), "{changed:#?}");
        assert_eq!(fs::read_to_string(world.outside.join("kept")).unwrap(), "outside\n");
    });
}

/// By each of the names that a program outside reads, and for each of the programs that read one.
#[test]
fn what_programs_of_the_user_read_is_not_made() {
    const READ: [(&str, &[&str]); 16] = [
        (
            ".config/mise",
            &[
                "mise.toml",
                "mise.local.toml",
                ".mise.local.toml",
                ".mise/config.toml",
                "mise/config.toml",
                ".config/mise.toml",
                ".config/mise/conf.d/x.toml",
                ".tool-versions",
                ".miserc.toml",
                ".config/miserc.toml",
            ],
        ),
        (".asdf", &[".tool-versions"]),
        (".cursor", &[".vscode/tasks.json", ".devcontainer/devcontainer.json"]),
        (".windsurf", &[".vscode/tasks.json"]),
        (".config/opencode", &["opencode.json", "opencode.jsonc"]),
        (".vim", &[".exrc", ".gvimrc"]),
        (".config/coc", &[".vim/coc-settings.json"]),
        (".copilot", &[".github/hooks/x.json", ".mcp.json"]),
        (".qwen", &[".qwen/settings.json"]),
        (".config/crush", &[".crushrc", "crushrc", ".crush.json", "crush.json"]),
        (".factory", &[".factory/settings.json"]),
        (".augment", &[".augment/settings.json"]),
        (".config/kilo", &[".kilo/kilo.json", "kilo.json", "kilo.jsonc"]),
        (".kilocode", &[".kilocode/mcp.json"]),
        (".cline", &[".clinerules/hooks/PreToolUse"]),
        (".pi", &[".pi/extensions/x.ts"]),
    ];
    with_namespaces(|user| {
        for (reader, files) in READ {
            let script =
                |file: &str| format!("mkdir -p $(dirname {file}); echo planted > {file}; test -f {file}");
            for is_used in [true, false] {
                let world = World::new(user);
                if is_used {
                    world.make_dir(&world.home.join(reader));
                }
                for file in files {
                    let made = shell(&world, &["-q"], &script(file)).run().code == Some(0);
                    assert_eq!((made, world.exists(file)), (!is_used, !is_used), "{file} for {reader}");
                }
            }
        }
    });
}

/// Where a file has the name of a directory that something protected would be in.
#[test]
fn a_file_is_not_replaced_by_a_directory_that_something_reads() {
    with_namespaces(|user| {
        for (reader, file, below) in
            [(".config/mise", "mise", "config.toml"), (".cline", ".clinerules", "hooks/PreToolUse")]
        {
            let script = format!(
                "echo more >> {file}; mv {file} was; rm -f {file}; mkdir -p $(dirname {file}/{below}); echo planted > {file}/{below}; ls {file}"
            );
            for is_used in [true, false] {
                let world = World::new(user);
                if is_used {
                    world.make_dir(&world.home.join(reader));
                }
                world.write(file, "text\n");
                shell(&world, &["-q"], &script).run().success();
                assert_eq!(world.exists(format!("{file}/{below}")), !is_used, "{file}");
                assert_eq!(world.read(file).as_deref(), is_used.then_some("text\nmore\n"), "{file}");
            }
        }
    });
}

/// Each link on the way stays, or is said not to.
#[test]
fn links_behind_a_protected_one_lead_where_they_led() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.make_dir(&world.home.join(".config/direnv"));
        world.make_dir(&world.home.join(".gemini"));
        for (name, target) in
            [(".envrc", "real/.././second"), ("second", "last"), (".gemini", "dir/file"), ("dir", "real")]
        {
            symlink(target, world.path(name)).unwrap();
        }
        world.write("last", "as it was\n");
        world.write("real/file", "as it was\n");
        let script = "echo planted > planted; for n in second last dir; do rm -f $n; mv $n was; ln -sfn planted $n; done; mkdir made; cat .envrc second";
        let out = shell(&world, &[], script).run();
        out.prints("as it was\nas it was\n").says(".gemini' is not protected");
        assert_eq!(world.read(".envrc").as_deref(), Some("as it was\n"));
        assert!(world.path("second").is_symlink() && world.exists("made"));
    });
}

/// A link to the directory that something protected would be in can be replaced, which is said; what it leads to stays.
#[test]
fn a_link_that_leads_to_something_protected_is_said() {
    with_namespaces(|user| {
        for is_used in [true, false] {
            let mut world = World::new(user);
            // Whose name says something to a terminal.
            let workspace = world.path("odd\u{1b}[2Jname");
            world.make_dir(&workspace);
            world.workspace = workspace;
            if is_used {
                world.make_dir(&world.home.join(".config/mise"));
            }
            world.make_dir(&world.path("settings"));
            symlink("settings", world.path(".config")).unwrap();
            let out =
                shell(&world, &[], "mkdir settings/mise; echo planted > settings/mise/config.toml; true")
                    .run()
                    .success();
            assert_eq!(out.err().contains(".config' is a symbolic link"), is_used, "{out}");
            assert!(!out.err().contains('\u{1b}'), "{out}");
            assert_eq!(world.exists("settings/mise/config.toml"), !is_used);
        }
    });
}

/// What Mercurial executes of the repository that a workspace is; where there is none the command may make its own.
#[test]
fn mercurial_executes_nothing_that_is_planted() {
    with_namespaces(|user| {
        let plants = [
            "printf '[hooks]\npre-status = touch ran\n' >> .hg/hgrc",
            "printf '[hooks]\npre-status = touch ran\n' >> .hg/hgrc-not-shared",
            "printf 'shared\n' >> .hg/requires",
            "printf evil > .hg/sharedpath",
            "mv .hg was; cp -r was .hg; printf '[hooks]\npre-status = touch ran\n' >> .hg/hgrc",
        ];
        for plant in plants {
            let world = World::new(user);
            world.write(".hg/requires", "dotencode\nfncache\ngeneralv2\nrevlogv1\nshare-safe\nstore\n");
            world.write(".hg/store/requires", "");
            let before = snapshot(&world.path(".hg"));
            shell(&world, &["-q"], &format!("echo x > .hg/dirstate && {plant}")).run();
            assert_eq!(world.read(".hg/dirstate").as_deref(), Some("x\n"), "{plant}");
            fs::remove_file(world.path(".hg/dirstate")).unwrap();
            let after = snapshot(&world.path(".hg"));
            let changed = differences(&before, &after);
            assert!(changed.is_empty(), "{plant}: {changed:#?}");
        }
        let world = World::new(user);
        shell(&world, &["-q"], &format!("mkdir -p .hg/store && {}", plants[0])).run().success();
        assert!(world.exists(".hg/hgrc"));
    });
}

/// A workspace that holds the files of programs outside, which links in the home directory lead to: they are not changed,
/// and no later run is led on to something else by them.
#[test]
fn what_the_home_directory_leads_to_stays_as_it_is() {
    with_namespaces(|user| {
        let world = stage(user);
        world.make_dir(&world.home.join(".config/git"));
        world.make_dir(&world.path("fish/conf.d"));
        let links = [
            (".gitconfig", "dot/gitconfig"),
            (".config/git/config", "dot/config"),
            (".ssh/config", "dot/ssh"),
            (".tmux.conf", "dot/tmux"),
            (".vimrc", "dot/vimrc"),
        ];
        for (name, target) in links {
            world.write(target, "# as it was\n");
            symlink(world.path(target), world.home.join(name)).unwrap();
        }
        symlink(world.path("fish"), world.home.join(".config/fish")).unwrap();
        let before = snapshot(&world.workspace);
        let script = "for n in gitconfig config ssh tmux vimrc; do n=dot/$n; echo x >> $n; rm -f $n; ln -sf ~/.ssh/id_rsa $n; done 2>/dev/null
            echo x > fish/conf.d/x.fish
            for n in fish dot dot/gitconfig; do python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[1] + \"x\")' $n 2>/dev/null; done; echo made > dot/made && cat ~/.gitconfig dot/made";
        shell(&world, &["-q"], script).run().success().prints("# as it was\nmade\n");
        fs::remove_file(world.path("dot/made")).unwrap();
        let changed = changes(&world, &before);
        assert!(changed.is_empty(), "{changed:#?}");
        // What is not there is nobody's yet.
        fs::remove_file(world.home.join(".vimrc")).unwrap();
        shell(&world, &["-q"], "echo x >> dot/vimrc && git config --file dot/new user.name x")
            .run()
            .success();
    });
}

/// What a later run may do is not for the command of this one to say, wherever it may write.
#[test]
fn profiles_are_not_a_commands_to_write() {
    with_namespaces(|user| {
        const PROFILE: &str = r#"{"extends": "read-only", "description": "as it was"}"#;
        let plant = "d=$1; mkdir -p $d/sbx/profiles; echo {} > $d/sbx/profiles/default.json; rm -f $d/sbx/profiles/*; \
            python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[1] + \"x\")' $d/sbx; ln -s . $d/sbx; echo made > made";
        for (there, elsewhere) in [(false, false), (true, false), (true, true)] {
            let mut world = World::new(user);
            world.workspace = world.home.clone();
            let config = if elsewhere { "conf" } else { ".config" };
            if there {
                world.write(format!("{config}/sbx/profiles/default.json"), PROFILE);
            }
            let run = |flags: &[&str]| {
                let command =
                    world.sbx(["run", "-q"]).args(flags).args(["--", "bash", "-c", plant, "sh", config]);
                let command =
                    if elsewhere { command.env("XDG_CONFIG_HOME", world.path("conf")) } else { command };
                command.run().success()
            };
            for flags in [&["-p", "workspace", "--workspace", "."][..], &["-p", "read-only", "--rw", "."]] {
                run(flags);
                assert_eq!(world.read("made").as_deref(), Some("made\n"));
                let default = world.read(format!("{config}/sbx/profiles/default.json"));
                assert_eq!(default.as_deref(), there.then_some(PROFILE), "{flags:?} {there} {elsewhere}");
                fs::remove_file(world.path("made")).unwrap();
            }
        }
        // The directory itself, as workspace and by flags.
        let mut world = World::new(user);
        let own = world.home.join(".config/sbx/profiles");
        world.make_dir(&own);
        let plant = format!("echo {{}} > {0}/default.json; touch {0}/../made", own.display());
        for more in ["../.config/sbx", "../.config/sbx/profiles"] {
            shell(&world, &["-q", "--rw", more], &plant).run();
            assert!(!own.join("default.json").exists(), "{more}");
        }
        assert!(own.join("../made").exists());
        world.workspace = own.clone();
        for flags in [&["-q"][..], &["-q", "-p", "read-only", "--rw", "."]] {
            shell(&world, flags, &plant).run();
            assert!(!own.join("default.json").exists(), "{flags:?}");
        }
        // A link to a file of the workspace's.
        let world = World::new(user);
        world.write("mine.json", PROFILE);
        world.make_dir(&world.home.join(".config/sbx/profiles"));
        symlink(world.path("mine.json"), world.home.join(".config/sbx/profiles/default.json")).unwrap();
        shell(
            &world,
            &["-q", "-p", "workspace"],
            "echo {} > mine.json; rm -f mine.json; echo x > other.json",
        )
        .run();
        assert_eq!(world.read("mine.json").as_deref(), Some(PROFILE));
        assert_eq!(world.read("other.json").as_deref(), Some("x\n"));
    });
}

/// The same of a profile that lies in the workspace, where its path is named.
#[test]
fn the_profile_of_a_run_is_not_its_commands_to_write() {
    with_namespaces(|user| {
        let world = World::new(user);
        let files =
            [("own.json", r#"{"extends": "base/it.json"}"#), ("base/it.json", r#"{"extends": "workspace"}"#)];
        let stage = || files.iter().for_each(|(name, text)| drop(world.write(name, text)));
        stage();
        symlink("own.json", world.path("link.json")).unwrap();
        let script = "for n in own.json base/it.json link.json; do echo {} > $n; rm -f $n; done 2>/dev/null
            for n in own.json link.json base; do python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[1] + \"x\")' $n 2>/dev/null; done
            ln -sf other.json link.json 2>/dev/null; echo x > other.json; echo x > base/other.json";
        for profile in ["link.json", "./own.json"] {
            shell(&world, &["-q", "-p", profile], script).run();
            for (name, text) in files {
                assert_eq!(world.read(name).as_deref(), Some(text), "{profile}: {name}");
            }
            if profile == "link.json" {
                assert_eq!(fs::read_link(world.path("link.json")).unwrap(), Path::new("own.json"));
            }
            for name in ["other.json", "base/other.json"] {
                assert_eq!(world.read(name).as_deref(), Some("x\n"), "{profile}: {name}");
                fs::remove_file(world.path(name)).unwrap();
            }
        }
        // Without namespaces that is said.
        let flags = ["-p", "./own.json", "--namespaces", "none"];
        shell(&world, &flags, "echo x > own.json").run().success().says("can change its profile");
        assert_eq!(world.read("own.json").as_deref(), Some("x\n"));
    });
}

/// Two runs in the same place: one hands the other what it has open.
#[test]
fn another_run_cannot_hand_over_more_than_it_has() {
    with_namespaces(|user| {
        let world = stage(user);
        world.write(
            "giver.py",
            "import os, socket\ns = socket.socket(socket.AF_UNIX); s.bind('free/s'); s.listen(); print('ready', flush=True)\nc, _ = s.accept()\nsocket.send_fds(c, [b'x'], [os.open('.', os.O_PATH), os.open('.git/config', os.O_RDONLY), os.open('.vscode', os.O_RDONLY)])\nc.recv(1)\n",
        );
        world.write(
            "taker.py",
            "import os, socket\ns = socket.socket(socket.AF_UNIX); s.connect('free/s')\n_, f, _, _ = socket.recv_fds(s, 9, 3)\ndef attempt(what):\n  try: what(); print('done')\n  except OSError: print('refused')\nw = os.O_WRONLY | os.O_CREAT\nattempt(lambda: os.open('.git/config', w, dir_fd=f[0]))\nattempt(lambda: os.open('.cursor/x', w, dir_fd=f[0]))\nattempt(lambda: os.rename('.vscode', 'was', src_dir_fd=f[0], dst_dir_fd=f[0]))\nattempt(lambda: os.open(f'/proc/self/fd/{f[1]}', os.O_RDWR))\nattempt(lambda: os.open('x', w, dir_fd=f[2]))\nattempt(lambda: os.mkdir('.cursor/y', dir_fd=f[0]))\nattempt(lambda: os.open('free/handed', w, dir_fd=f[0]))\n",
        );
        let before = snapshot(&world.workspace);
        let giver = world.sbx(["run", "-q", "--", PYTHON, "giver.py"]).start();
        giver.wait_for("ready");
        let taker = world.sbx(["run", "-q", "--", PYTHON, "taker.py"]).run().success();
        taker.prints(&("refused\n".repeat(6) + "done\n"));
        giver.wait();
        let changed = changes(&world, &before);
        assert!(changed.is_empty(), "{changed:#?}");
    });
}

/// An editor outside writes a file anew: its mount goes with the old one, and comes back.
#[test]
fn files_replaced_from_outside_stay_shielded() {
    with_namespaces(|user| {
        let world = stage(user);
        let script = "echo ready; until [ -e go ]; do sleep 0.02; done; cat secret; echo x >> .git/config; echo x > .cursor/x; \
            mkdir .cursor/y; rm -rf secret .mcp.json .git/config; cat twin/file";
        let running = shell(&world, &["-q", "--deny", "secret"], script).start();
        running.wait_for("ready");
        for name in ["secret", ".git/config", ".mcp.json", "twin/file"] {
            let new = world.write("new", format!("{SECRET}\n"));
            fs::rename(new, world.path(name)).unwrap();
        }
        // Whoever is waiting for it may be quicker; an ordinary command is not.
        std::thread::sleep(Duration::from_millis(500));
        let before = snapshot(&world.workspace);
        world.write("go", "");
        running.wait().success().prints(&format!("ready\n{SECRET}\n"));
        fs::remove_file(world.path("go")).unwrap();
        let changed: Vec<String> = changes(&world, &before);
        // The stubs have been there before, and are gone now.
        assert!(changed.iter().all(|line| line.ends_with("-> None")), "{changed:#?}");
        for name in ["secret", ".git/config", ".mcp.json"] {
            assert!(world.exists(name), "{name}");
        }
    });
}
