//! What is denied stays out of a home directory of the run's own: whatever shows it there, and whatever an earlier run
//! has put in its place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use sbx_tests::stage::{Removed, give};
use sbx_tests::world::SECRET;
use sbx_tests::{Cmd, World, as_users, in_worlds, kernel, promise, skip};

use crate::namespaces::with_namespaces;

fn sh(world: &World, flags: &[&str], script: &str) -> Cmd {
    let words: Vec<String> =
        flags.iter().map(|flag| flag.replace('~', &world.home.to_string_lossy())).collect();
    world.sbx(["run", "-q"]).args(words).args(["--", "sh", "-c", script])
}

fn own(world: &World, name: &str) {
    world.write_at_home(name, "[user]\n\tname = theirs\n");
}

#[test]
fn stores_copies_and_what_earlier_runs_made() {
    with_namespaces(|user| {
        let world = World::new(user);
        for name in [".konan/mine", ".cargo/registry/src/x/mine", ".gitconfig", "data/pip/mine", "dots/npmrc"]
        {
            own(&world, name);
        }
        world.write(world.home.join("dots/npmrc"), "registry=https://theirs.example/\n");
        world.make_dir(&world.home.join(".cache"));
        symlink(world.home.join("data/pip"), world.home.join(".cache/pip")).unwrap();
        let _ = fs::remove_file(world.home.join(".npmrc"));
        symlink(world.home.join("dots/npmrc"), world.home.join(".npmrc")).unwrap();
        let plant = "mkdir ~/.foo; echo theirs | tee ~/.bashrc ~/.foo/x ~/.konan/planted";
        sh(&world, &[], plant).run().success();
        for (denied, read) in [
            (&["~/.konan"][..], ".konan/mine"),
            (&["~/.konan/mine"], ".konan/mine"),
            (&["~/.konan/planted"], ".konan/planted"),
            (&["~/.cargo"], ".cargo/registry/src/x/mine"),
            (&["~/.cargo/registry", "~/.cargo/registry/src/x"], ".cargo/registry/src/x/mine"),
            (&["~/.gitconfig"], ".gitconfig"),
            // What shows a file is a link of the user's own.
            (&["~/data"], ".cache/pip/mine"),
            (&["~/data/pip/mine"], ".cache/pip/mine"),
            (&["~/.cache/pip"], ".cache/pip/mine"),
            (&["~/dots"], ".npmrc"),
            // What only earlier runs have made.
            (&["~/.bashrc"], ".bashrc"),
            (&["~/.foo"], ".foo/x"),
            (&["~/.foo/x"], ".foo/x"),
        ] {
            let read = format!("cat ~/{read}");
            assert!(sh(&world, &[], &read).run().success().out().contains("theirs"), "{read}");
            let flags: Vec<&str> = denied.iter().flat_map(|path| ["--deny", path]).collect();
            let out = sh(&world, &flags, &read).run().failed();
            assert!(!out.out().contains("theirs"), "{denied:?}: {out}");
            // Not by another name either.
            let moved = format!(
                "cd ~ && mv {read} ~/new; mv ~/.konan ~/.cargo ~/.cache ~/.foo ~/n; cat ~/new ~/n/*/*",
                read = &read[4..]
            );
            assert!(!sh(&world, &flags, &moved).run().out().contains("theirs"), "{denied:?}");
        }
    });
}

#[test]
fn what_is_not_there_cannot_be_made() {
    with_namespaces(|user| {
        let world = World::new(user);
        own(&world, ".konan/mine");
        let make = "mkdir -p ~/.new/deep ~/.konan/new /tmp/new; echo x > ~/.new/deep/x; echo x > ~/.konan/x; echo x > /tmp/new/x; cat ~/.new/deep/x ~/.konan/x /tmp/new/x";
        assert_eq!(sh(&world, &["--home", "temporary"], make).run().out().matches('x').count(), 2);
        let flags = ["--deny", "~/.new", "--deny", "~/.konan", "--deny", "/tmp/new"];
        for more in [&[][..], &["--home", "temporary"], &["-p", "no-exec"], &["-p", "read-only"]] {
            let flags = [&flags[..], more].concat();
            let out = sh(&world, &flags, make).run().failed();
            assert_eq!(out.out(), "", "{more:?}");
        }
        // Without the flags, it is as if they had never been given.
        let out = sh(&world, &[], "ls -A ~ | grep new; ls ~/.konan; cat ~/.konan/mine").run().success();
        assert_eq!(out.out(), "mine\n[user]\n\tname = theirs\n");
        assert!(fs::read_dir(world.home.join(".konan")).unwrap().count() == 1);
    });
}

#[test]
fn profiles_deny_as_flags_do() {
    with_namespaces(|user| {
        let world = World::new(user);
        own(&world, ".config/gh/hosts");
        own(&world, ".config/other");
        let profile = world.outside.join("profile.json");
        world.write(
            &profile,
            r#"{"extends": "workspace", "home": {"stores": ["${HOME}/.config"]}, "paths": {"deny": ["${HOME}/.config/gh"]}}"#,
        );
        let profile = profile.display().to_string();
        let flags = ["-p", &profile];
        assert!(sh(&world, &flags, "cat ~/.config/other").run().success().out().contains("theirs"));
        let out = sh(&world, &flags, "cat ~/.config/gh/hosts; ls ~/.config/gh").run().failed();
        assert_eq!(out.out(), "", "{out}");
    });
}

/// A home or a directory of state that is reached through a link is the same one.
#[test]
fn links_to_the_home_lead_to_it() {
    with_namespaces(|user| {
        let world = World::new(user);
        let link = world.outside.join("link");
        symlink(&world.home, &link).unwrap();
        let write = sh(&world, &[], "echo mine > ~/.note && cat ~/.note").env("HOME", &link).run().success();
        assert_eq!(write.out(), "mine\n");
        let local = world.home.join(".local");
        fs::rename(&local, world.home.join("real")).unwrap();
        symlink("real", &local).unwrap();
        assert_eq!(sh(&world, &[], "cat ~/.note").run().success().out(), "mine\n");
    });
}

/// Everybody may read /opt, and execute what is there. That is no rule about the homes of services there.
#[test]
fn a_home_below_a_directory_of_the_system_is_closed_as_well() {
    promise!(kernel::PATHS);
    as_users(|user| {
        let place = PathBuf::from(format!("/opt/sbx-tests-{}-{}", std::process::id(), user.id));
        if fs::create_dir(&place).is_err() {
            return skip("only root can make a home below /opt");
        }
        let place = Removed(place);
        let (home, tool) = (place.0.join("home"), place.0.join("tool"));
        let key = home.join(".ssh/key");
        fs::create_dir_all(home.join(".ssh")).unwrap();
        fs::write(&key, SECRET).unwrap();
        fs::write(&tool, "echo tool\n").unwrap();
        [&home, &home.join(".ssh"), &key].into_iter().for_each(|path| give(path, user));
        let world = World::new(user);
        let cat = |flags: &[&str], file: &Path| {
            let words = [&["run"], flags, &["--", "cat", file.to_str().unwrap()]].concat();
            world.sbx(words).env("HOME", home.to_str().unwrap()).run()
        };
        for profile in ["workspace", "read-only", "no-exec", "minimal", "network", "write"] {
            for more in [&[][..], &["--home", "closed"], &["--namespaces", "none"]] {
                let flags = [&["-p", profile], more].concat();
                cat(&flags, &key).failed().prints("");
                cat(&flags, &tool).success().prints("echo tool\n");
            }
        }
        cat(&["--ro", key.to_str().unwrap()], &key).success().prints(SECRET);
    });
}

/// Tools keep credentials beside their packages.
#[test]
fn no_store_brings_the_credentials_beside_it() {
    promise!(namespaces);
    in_worlds(|world| {
        for (secret, package) in [
            (".npm/_logs/debug-0.log", ".npm/_cacache/package"),
            (".local/share/gem/credentials", ".local/share/gem/ruby/package"),
            (".cache/deno/deno_history.txt", ".cache/deno/npm/package"),
        ] {
            world.write_at_home(secret, "token\n");
            world.write_at_home(package, "package\n");
            for profile in ["workspace", "read-only", "no-exec"] {
                let [package, secret] =
                    [package, secret].map(|name| world.home.join(name).display().to_string());
                let out = world.run(profile, ["cat", &package, &secret]).run();
                assert_eq!(out.out(), "package\n", "{secret} under {profile}: {out}");
            }
        }
    });
}
