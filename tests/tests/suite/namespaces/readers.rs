//! Files that programs outside read, the links that lead to them, and profiles: a command can neither make nor replace
//! them.

use super::protected::{changes, staged};
use super::{in_namespaces, shell, with_namespaces};
use sbx_tests::World;
use sbx_tests::tree::{differences, snapshot};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Where a variable says that the settings of a program are.
#[test]
fn readers_are_found_where_variables_say() {
    with_namespaces(|user| {
        for (variable, place, reader, file) in [
            ("XDG_CONFIG_HOME", "cfg", "cfg/direnv", ".envrc"),
            ("XDG_CONFIG_HOME", "cfg", "cfg/zed", ".zed/settings.json"),
            ("XDG_DATA_HOME", "data", "data/direnv", ".envrc"),
            ("CLAUDE_CONFIG_DIR", "cc", "cc", ".claude/settings.json"),
            ("CODEX_HOME", "ch", "ch", ".codex/config.toml"),
            ("GEMINI_CLI_HOME", "g", "g/.gemini", ".gemini/settings.json"),
        ] {
            for is_used in [true, false] {
                let world = World::new(user);
                if is_used {
                    world.make_dir(&world.home.join(reader));
                }
                let script = format!("mkdir -p $(dirname {file}); echo planted > {file}");
                shell(&world, &["-q"], &script).env(variable, world.home.join(place)).run();
                assert_eq!(world.exists(file), !is_used, "{file} by {variable}");
            }
        }
    });
}

/// By each of the names that a program outside reads, and for each program that reads one.
#[test]
fn files_that_the_users_programs_read_cannot_be_made() {
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
                    // What is put aside is there for a moment.
                    assert!(made || is_used, "{file} for {reader}");
                    assert_eq!(world.exists(file), !is_used, "{file} for {reader}");
                    assert!(!world.path(file).is_symlink(), "{file} for {reader}");
                }
            }
        }
    });
}

/// A file has the name of a directory that a protected file would be in.
#[test]
fn a_file_is_not_replaced_by_a_directory_that_a_program_reads() {
    with_namespaces(|user| {
        for (reader, file, below) in
            [(".config/mise", "mise", "config.toml"), (".cline", ".clinerules", "hooks/PreToolUse")]
        {
            let script = format!(
                "echo more >> {file}; mv {file} was; rm -f {file}; mkdir -p $(dirname {file}/{below}); \
                 echo planted > {file}/{below}; ls {file}"
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

/// Each link on the way stays, or is reported as unprotected.
#[test]
fn links_behind_a_protected_link_keep_their_targets() {
    in_namespaces(|world| {
        world.make_dir(&world.home.join(".config/direnv"));
        world.make_dir(&world.home.join(".gemini"));
        for (name, target) in
            [(".envrc", "real/.././second"), ("second", "last"), (".gemini", "dir/file"), ("dir", "real")]
        {
            symlink(target, world.path(name)).unwrap();
        }
        world.write("last", "as it was\n");
        world.write("real/file", "as it was\n");
        let script = "echo planted > planted; for n in second last dir; do rm -f $n; mv $n was; ln -sfn planted $n; \
                      done; mkdir made; cat .envrc second";
        let out = shell(world, &[], script).run();
        out.prints("as it was\nas it was\n");
        for (link, target) in [("second", "last"), ("dir", "real"), (".gemini", "dir/file")] {
            assert_eq!(fs::read_link(world.path(link)).unwrap().to_str(), Some(target));
        }
        assert_eq!(world.read(".envrc").as_deref(), Some("as it was\n"));
        assert!(!world.exists("was") && world.exists("made"));
    });
}

/// A link to the directory of a protected file leads where it does, and what is protected there is.
#[test]
fn a_link_to_the_directory_of_a_protected_file_stays() {
    with_namespaces(|user| {
        for is_used in [true, false] {
            let mut world = World::new(user);
            // Its name has control characters for a terminal.
            let workspace = world.path("odd\u{1b}[2Jname");
            world.make_dir(&workspace);
            world.workspace = workspace;
            if is_used {
                world.make_dir(&world.home.join(".config/mise"));
            }
            world.make_dir(&world.path("settings"));
            symlink("settings", world.path(".config")).unwrap();
            let script = "mkdir settings/mise; echo planted > settings/mise/config.toml; \
                          mkdir -p made/mise; echo planted > made/mise/config.toml; rm -f .config && ln -s made .config; \
                          true";
            let out = shell(&world, &[], script).run().success();
            assert!(!out.err().contains('\u{1b}'), "{out}");
            assert_eq!(world.exists("settings/mise/config.toml"), !is_used);
            let leads = fs::read_link(world.path(".config")).unwrap();
            assert_eq!(leads.to_str(), Some(if is_used { "settings" } else { "made" }), "{out}");
        }
    });
}

/// The files that Mercurial executes in a repository; where there is none, the command may make its own.
#[test]
fn mercurial_executes_no_planted_file() {
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
        assert!(world.exists(".hg/hgrc.sbx-aside") && !world.exists(".hg/hgrc"));
    });
}

/// A workspace holds files of programs outside, which links in the home directory lead to: they are not changed,
/// and they lead no later run to anything else.
#[test]
fn targets_of_links_in_the_home_directory_stay_as_they_are() {
    staged(|world| {
        world.make_dir(&world.home.join(".config/git"));
        world.make_dir(&world.path("fish/conf.d"));
        world.make_dir(&world.path("gemini/extensions"));
        for agent in [".claude", ".codex", ".cursor"] {
            world.make_dir(&world.home.join(agent));
        }
        let links = [
            (".gitconfig", "dot/gitconfig"),
            (".config/git/config", "dot/config"),
            (".ssh/config", "dot/ssh"),
            (".tmux.conf", "dot/tmux"),
            (".vimrc", "dot/vimrc"),
            (".claude/settings.json", "dot/claude"),
            (".codex/config.toml", "dot/codex"),
            (".cursor/hooks.json", "dot/cursor"),
        ];
        for (name, target) in links {
            world.write(target, "# as it was\n");
            symlink(world.path(target), world.home.join(name)).unwrap();
        }
        symlink(world.path("fish"), world.home.join(".config/fish")).unwrap();
        symlink(world.path("gemini"), world.home.join(".gemini")).unwrap();
        let before = snapshot(&world.workspace);
        let script = "for n in gitconfig config ssh tmux vimrc claude codex cursor; do n=dot/$n; echo x >> $n; rm -f $n; ln -sf ~/.ssh/id_rsa $n; done 2>/dev/null
            echo x > fish/conf.d/x.fish; echo x > gemini/extensions/x; echo {} > gemini/settings.json
            for n in fish dot dot/gitconfig; do python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[1] + \"x\")' $n 2>/dev/null; done; echo made > dot/made && cat ~/.gitconfig dot/made";
        shell(world, &["-q"], script).run().success().prints("made\n");
        fs::remove_file(world.path("dot/made")).unwrap();
        // What programs outside would read, and was not there, is put aside.
        fs::remove_file(world.path("gemini/settings.json.sbx-aside")).unwrap();
        let changed = changes(world, &before);
        assert!(changed.is_empty(), "{changed:#?}");
        // A file that does not exist yet may be made.
        fs::remove_file(world.home.join(".vimrc")).unwrap();
        shell(world, &["-q"], "echo x >> dot/vimrc && git config --file dot/new user.name x").run().success();
    });
}

/// The command of one run must not decide what a later run may do, wherever it may write.
#[test]
fn a_command_cannot_write_profiles() {
    with_namespaces(|user| {
        const PROFILE: &str = r#"{"extends": "read-only", "description": "as it was"}"#;
        let plant = "d=$1; mkdir -p $d/sbx/profiles; echo {} > $d/sbx/profiles/default.json; rm -f $d/sbx/profiles/*; \
            python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[1] + \"x\")' $d/sbx; ln -s . $d/sbx; \
                echo made > made";
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
        // A link to a file of the workspace.
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

/// The same for a profile that lies in the workspace and is named by its path.
#[test]
fn a_command_cannot_write_the_profile_of_its_own_run() {
    in_namespaces(|world| {
        let files =
            [("own.json", r#"{"extends": "base/it.json"}"#), ("base/it.json", r#"{"extends": "workspace"}"#)];
        let stage = || files.iter().for_each(|(name, text)| drop(world.write(name, text)));
        stage();
        symlink("own.json", world.path("link.json")).unwrap();
        let script = "for n in own.json base/it.json link.json; do echo {} > $n; rm -f $n; done 2>/dev/null
            for n in own.json link.json base; do python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[1] + \"x\")' $n 2>/dev/null; done
            ln -sf other.json link.json 2>/dev/null; echo x > other.json; echo x > base/other.json";
        for profile in ["link.json", "./own.json"] {
            shell(world, &["-q", "-p", profile], script).run();
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
        // Without namespaces this is reported.
        let flags = ["-p", "./own.json", "--namespaces", "none"];
        shell(world, &flags, "echo x > own.json").run().success().says("can change its profile");
        assert_eq!(world.read("own.json").as_deref(), Some("x\n"));
        // So is a directory of profiles that is in the workspace.
        world.write("dot/profiles/x.json", "{}\n");
        let profiles = world.home.join(".config/sbx/profiles");
        world.make_dir(profiles.parent().unwrap());
        symlink(world.path("dot/profiles"), &profiles).unwrap();
        let out =
            shell(world, &["--namespaces", "none"], "echo x > dot/profiles/default.json").run().success();
        out.says(".config/sbx/profiles', where profiles are");
    });
}
