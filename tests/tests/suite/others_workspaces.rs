//! What commands of other runs have left in their workspaces and homes decides nothing in this one.

use crate::as_shell::cmd as as_shell;
use sbx_tests::world::SECRET;
use sbx_tests::{User, World, in_worlds, promise};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// A directory that has been the workspace of a run, where `used`, and looks like one otherwise.
fn place(world: &World, name: &str, used: bool) -> PathBuf {
    let place = world.outside.join(name);
    world.make_dir(&place);
    if used {
        world.sbx(["run", "-q", "--workspace", text(&place), "--", "true"]).run().success();
    }
    place
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_link_in_another_workspace_leads_no_rule_out_of_it() {
    promise!(namespaces);
    in_worlds(|world| {
        for used in [true, false] {
            let place = place(world, if used { "used" } else { "unused" }, used);
            let secret = world.write(world.outside.join("far/secret"), SECRET);
            let far = secret.parent().unwrap();
            symlink(far, place.join("link")).unwrap();
            symlink("inner", place.join("near")).unwrap();
            world.write(place.join("inner/file"), "inner\n");
            let profile =
                format!(r#"{{"extends": "workspace", "paths": {{"read": ["{}/link"]}}}}"#, place.display());
            let profile = world.write(world.outside.join("own.json"), profile);
            let (link, near) = (place.join("link/secret"), place.join("near"));
            for flags in [["--ro", text(&link)], ["--rw", text(&link)], ["-p", text(&profile)]] {
                let out = world.sbx(["run"]).args(flags).args(["--", "cat", text(&link)]).run();
                match used {
                    true => drop(
                        out.refused(125, &["leads out of a directory where commands of other runs write"]),
                    ),
                    false => assert!(out.success().out().contains(SECRET)),
                }
            }
            // A link that stays where it is opens nothing that a command there could not have copied.
            let file = near.join("file");
            world
                .sbx(["run", "--ro", text(&near), "--", "cat", text(&file)])
                .run()
                .success()
                .prints("inner\n");
        }
    });
}

/// Neither for what `sbx` writes, nor for where a run is.
#[test]
fn a_link_in_another_workspace_leads_nothing_else_out_of_it() {
    promise!(namespaces);
    in_worlds(|world| {
        for used in [true, false] {
            let place = place(world, if used { "used" } else { "unused" }, used);
            let far = world.outside.join(if used { "far" } else { "away" });
            world.make_dir(&far);
            symlink(&far, place.join("link")).unwrap();
            let (link, at) = (place.join("link"), |name: &str| place.join("link").join(name));
            let profile = world.write(far.join("own.json"), r#"{"extends": "workspace"}"#);
            let leads_out = "leads out of";
            for (name, flag) in [("report", "--report"), ("log", "--audit-log")] {
                let out = world.sbx(["run", flag, text(&at(name)), "--", "true"]).run();
                match used {
                    true => out.refused(125, &[leads_out, "name that path itself"]),
                    false => out.success(),
                };
                assert_eq!(far.join(name).exists(), !used);
            }
            for flag in ["--workspace", "--cwd"] {
                let out = world.sbx(["run", "-q", flag, text(&link), "--", "touch", "made"]).run();
                match used {
                    true => out.refused(125, &[leads_out, "name that path itself"]),
                    false => out.success(),
                };
                assert_eq!(far.join("made").exists(), !used);
                let _ = std::fs::remove_file(far.join("made"));
            }
            let run = || world.sbx(["run", "--", "true"]).env("SBX_PROFILE", at("own.json")).run();
            let mcp = || world.sbx(["mcp", "-p", text(&at("own.json"))]).stdin("").run();
            if used {
                run().refused(125, &["SBX_PROFILE", "or a link on the way there"]);
                mcp().refused(125, &["or a link on the way there"]);
            }
            // Where no link of theirs leads, the same is as always.
            world.sbx(["run", "-q", "-p", text(&profile), "--cwd", text(&far), "--", "true"]).run().success();
        }
    });
}

/// All homes of runs.
fn homes_below(all: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| path.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let inner = below(all).flat_map(|home| below(&home).collect::<Vec<_>>());
    inner.map(|inner| inner.join("home")).filter(|home| home.is_dir()).collect()
}

/// `sbx home show` says where that is, for the user to look at.
#[test]
fn a_link_in_the_home_of_a_run_leads_no_flag_out_of_it() {
    promise!(namespaces);
    in_worlds(|world| {
        let secret = world.write(world.outside.join("far/secret"), SECRET);
        let far = text(secret.parent().unwrap());
        let script = format!("ln -s {far} ~/result");
        world.sbx(["run", "-q", "--", "sh", "-c", &script]).run().success();
        let homes = world.home.join(".local/state/sbx/homes");
        // Each run leaves the home another path.
        let link = || {
            let mut links = homes_below(&homes).into_iter().map(|home| home.join("result"));
            links.find(|link| link.is_symlink()).unwrap()
        };
        let read = |link: &Path| {
            let found = link.join("secret");
            world.sbx(["run", "--ro", text(link), "--", "cat", text(&found)]).run()
        };
        read(&link()).refused(125, &["where commands of other runs write"]);
        let report = link().join("report");
        world.sbx(["run", "--report", text(&report), "--", "true"]).run().refused(125, &["leads out of"]);
        assert!(!Path::new(far).join("report").exists());
        // The twin: a link of the user's.
        let own = world.outside.join("own");
        symlink(far, &own).unwrap();
        assert!(read(&own).success().out().contains(SECRET));
    });
}

/// Whatever opens a directory to a run marks it.
#[test]
fn links_are_left_by_commands_of_any_profile() {
    promise!(namespaces);
    let in_workspace = r#"{"extends": "write", "paths": {"write": ["${WORKSPACE}"]}}"#;
    let other = r#"{"extends": "write"}"#;
    in_worlds(|world| {
        let own = world.write(world.outside.join("own.json"), in_workspace);
        let derived = world.write(world.outside.join("derived.json"), other);
        let secret = world.write(world.outside.join("far/secret"), SECRET);
        for (number, flags) in [
            &["-p", "read-only", "--rw", "."][..],
            &["-p", "read-only", "--rw", "sub"],
            &["-p", "minimal", "--rw", ".", "--allow-calls", "symlink:symlinkat"],
            &["-p", "network", "--rwx", ".", "--allow-calls", "symlink:symlinkat"],
            &["-p", "write"],
            &["-p", text(&derived)],
            &["-p", text(&own)],
        ]
        .into_iter()
        .enumerate()
        {
            let place = world.outside.join(format!("place{number}"));
            world.make_dir(&place.join("sub"));
            let link = place.join("sub/link");
            let ln = ["--", "ln", "-s", text(secret.parent().unwrap()), text(&link)];
            world.sbx(["run", "-q"]).args(flags).args(ln).cwd(&place).run().success();
            let read = |flag: &str| {
                let found = link.join("secret");
                world.sbx(["run", flag, text(&link), "--", "cat", text(&found)]).run()
            };
            read("--ro").refused(125, &["where commands of other runs write"]);
            // The twin: a link that no command has left.
            std::fs::remove_file(&link).unwrap();
            let link = world.outside.join(format!("link{number}"));
            symlink(secret.parent().unwrap(), &link).unwrap();
            let found = link.join("secret");
            let out = world.sbx(["run", "--ro", text(&link), "--", "cat", text(&found)]).run();
            assert!(out.success().out().contains(SECRET));
        }
    });
}

/// Whatever is mounted for a run can be read, so it has to be a socket.
#[test]
fn only_a_socket_is_opened_as_one() {
    promise!(namespaces);
    in_worlds(|world| {
        let secret = world.write_at_home("kept/secret", SECRET);
        let directory = secret.parent().unwrap();
        let link = world.outside.join("link");
        symlink(&secret, &link).unwrap();
        let profile =
            format!(r#"{{"extends": "workspace", "network": {{"unix": ["{}"]}}}}"#, secret.display());
        let profile = world.write(world.outside.join("own.json"), profile);
        for (flags, why) in [
            (["--unix", text(&secret)], "it is no socket"),
            (["--unix", text(&link)], "it is no socket"),
            (["--unix", text(directory)], "it is a directory; name the sockets in it"),
            (["-p", text(&profile)], "it is no socket"),
        ] {
            let out = world.sbx(["run"]).args(flags).args(["--", "cat", text(&secret)]).run();
            out.refused(125, &["cannot allow the socket", why]);
        }
        let socket = directory.join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let script = format!("test -S {} && cat {}", socket.display(), secret.display());
        let out = world.sbx(["run", "-q", "--unix", text(&socket), "--", "sh", "-c", &script]).run();
        assert!(out.failed().err().contains("No such file"));
    });
}

#[test]
fn a_variable_names_no_profile_that_commands_of_other_runs_may_have_written() {
    promise!(namespaces);
    let world = World::new(&User::current());
    let profile = r#"{"description": "own", "extends": "workspace"}"#;
    let used = place(&world, "used", true);
    world.write(used.join("own.json"), profile);
    world.sbx(["run", "-q", "--", "sh", "-c", &format!("echo '{profile}' > ~/own.json")]).run().success();
    let homes = world.home.join(".local/state/sbx/homes");
    let mut of_home = homes_below(&homes).into_iter().map(|home| home.join("own.json"));
    let of_home = of_home.find(|file| file.exists()).expect("a run has written to its home");
    let writable = place(&world, "writable", false);
    world.write(writable.join("own.json"), profile);
    let elsewhere = world.write(world.outside.join("own.json"), profile);
    let run = |file: &Path| world.sbx(["run", "--", "true"]).env("SBX_PROFILE", file).run();
    let shell = |flags: &str| as_shell(&world, ["-c", "true"]).env("SBX_SHELL_FLAGS", flags).run();
    for file in [&used.join("own.json"), &of_home] {
        // In the home directory, which is no workspace, as well.
        for directory in [&world.workspace, &world.home] {
            let out = world.sbx(["run", "--", "true"]).env("SBX_PROFILE", file).cwd(directory).run();
            out.refused(125, &["SBX_PROFILE", "commands of other runs may have written it"]);
        }
        shell(&format!("-p {}", file.display())).refused(125, &["SBX_SHELL_FLAGS", "commands of other runs"]);
        world.sbx(["mcp", "-p", text(file)]).run().refused(125, &["commands of other runs may have written"]);
        // The user may mean it.
        world.sbx(["run", "-p", text(file), "--", "true"]).run().success();
    }
    let rw = format!("--rw {0} -p {0}/own.json", writable.display());
    shell(&rw).refused(125, &["SBX_SHELL_FLAGS", "commands may change it"]);
    run(&elsewhere).success();
    shell(&format!("-p {}", elsewhere.display())).success();
}
