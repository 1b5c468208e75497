//! Workspaces that are mounted at two places: a denied or protected path is denied or protected by both names.

use super::{in_namespaces, with_namespaces};
use sbx_tests::world::SECRET;
use sbx_tests::{Cmd, Output, User, World, need, stage};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Everything that reads, changes or makes a denied or protected file, with the name of the workspace in `$AT`.
const ATTEMPTS: &str = r#"
cat "$AT/secret"
for name in .git/hooks/pre-commit .git/config .mcp.json .vscode/tasks.json absent; do
    echo planted > "$AT/$name" && echo "wrote $name"
done
mv "$AT/.git" "$AT/moved" && echo moved
rm -f "$AT/.mcp.json" "$AT/secret" && echo removed
ln "$AT/secret" "$AT/link" && cat "$AT/link"
echo new > "$AT/free/new" && echo allowed
"#;

fn stage_workspace(user: &User) -> World {
    let world = World::new(user);
    for directory in [".vscode", ".claude"] {
        world.make_dir(&world.home.join(directory));
    }
    world.make_dir(&world.path("free"));
    world.make_dir(&world.path(".git/hooks"));
    world.write("secret", format!("{SECRET}\n"));
    world.write(".git/config", "[core]\n\tbare = false\n");
    world.write(".mcp.json", "as it was\n");
    world
}

/// `sbx run` in the workspace, which is mounted at `other` too. `attempt` is the name that the command uses.
fn attempts(world: &World, other: &Path, flags: &[&str], attempt: &Path) -> Output {
    mounted(world, &world.workspace, other, flags, attempt, ATTEMPTS)
}

/// `sbx` where a directory is mounted at another place too.
fn sbx(world: &World, directory: &Path, other: &Path) -> Cmd {
    let script = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
    let words = world.user.unshare(&[]);
    let words = words.iter().copied().chain(["sh", "-c", script, "sh"]);
    world.bare(words).arg(directory).arg(other).arg(stage::sbx())
}

fn mounted(
    world: &World,
    directory: &Path,
    other: &Path,
    flags: &[&str],
    attempt: &Path,
    attempts: &str,
) -> Output {
    let at = format!("AT={}", attempt.display());
    sbx(world, directory, other)
        .args(["run", "-q", "--env", &at])
        .args(flags)
        .args(["--", "bash", "-c", attempts])
        .run()
}

#[track_caller]
fn is_held(world: &World, out: &Output) {
    assert!(!out.out().contains(SECRET), "{out}");
    assert_eq!(out.out(), "allowed\n", "{out}");
    assert_eq!(world.read(".mcp.json").as_deref(), Some("as it was\n"), "{out}");
    assert_eq!(world.read(".git/config").as_deref(), Some("[core]\n\tbare = false\n"), "{out}");
    for name in [".git/hooks/pre-commit", ".vscode", "absent"] {
        assert!(!world.exists(name), "'{name}' is there: {out}");
    }
}

#[test]
fn denied_and_protected_files_are_so_by_every_name_of_a_workspace_that_is_mounted_twice() {
    need!("unshare", "mount");
    with_namespaces(|user| {
        let other = |world: &World| {
            let other = world.outside.join("the other");
            world.make_dir(&other);
            other
        };
        for by_other_name in [false, true] {
            let world = stage_workspace(user);
            let other = other(&world);
            let (secret, absent) = (other.join("secret"), other.join("absent"));
            let named = if by_other_name {
                [secret.to_str().unwrap(), absent.to_str().unwrap()]
            } else {
                ["secret", "absent"]
            };
            let deny = ["--deny", named[0], "--deny", named[1]];
            is_held(&world, &attempts(&world, &other, &deny, &other));
            is_held(&world, &attempts(&world, &other, &deny, &world.workspace));
        }
        let world = stage_workspace(user);
        let other = other(&world);
        let out = attempts(&world, &other, &["--deny", other.to_str().unwrap()], &world.workspace);
        assert!(!out.out().contains(SECRET) && !out.out().contains("allowed"), "{out}");
    });
}

#[test]
fn deny_expansion_does_not_open_a_denied_file_by_its_other_name() {
    need!("unshare", "mount");
    sbx_tests::as_users(|user| {
        let world = stage_workspace(user);
        let other = world.outside.join("other");
        world.make_dir(&other);
        let secret = other.join("secret");
        for denied in ["secret", secret.to_str().unwrap()] {
            for attempt in [&world.workspace, &other] {
                let out = attempts(&world, &other, &["--namespaces", "none", "--deny", denied], attempt);
                assert!(!out.out().contains(SECRET) && out.out().contains("allowed"), "{denied}: {out}");
            }
        }
    });
}

#[test]
fn a_configuration_is_not_replaced_where_another_name_would_bypass_its_mount() {
    need!("unshare", "mount", "git");
    in_namespaces(|world| {
        world.bare(["git", "init", "-q"]).run().success();
        let before = world.read(".git/config").unwrap();
        let other = world.outside.join("other");
        world.make_dir(&other);
        let script = "git config user.name x; printf '[core]\n\tpager = evil\n' >> \"$AT/.git/config\"; \
                      echo planted > \"$AT/.git/hooks/pre-commit\"; echo tried";
        let out = mounted(world, &world.workspace, &other, &[], &other, script).prints("tried\n");
        assert_eq!(world.read(".git/config").as_ref(), Some(&before), "{out}");
        assert!(!world.exists(".git/hooks/pre-commit"), "{out}");
        world.sbx(["run", "--", "git", "config", "user.name", "x"]).run().success();
        assert!(world.read(".git/config").unwrap().contains("name = x"), "the allowed twin changed nothing");
    });
}

#[test]
fn a_path_protected_elsewhere_is_protected_in_a_workspace_that_is_its_other_name() {
    need!("unshare", "mount");
    in_namespaces(|world| {
        let profiles = world.home.join(".config/sbx/profiles");
        world.make_dir(&profiles);
        let other = world.outside.join("other");
        world.make_dir(&other);
        let below = ".config/sbx/profiles/loose.json";
        let script = format!(
            "echo 1 > \"$AT/{below}\"; echo 2 > \"$HOME/{below}\"; echo 3 > \"$AT/free\"; echo tried"
        );
        let flags = ["--workspace", other.to_str().unwrap()];
        let out = mounted(world, &world.home, &other, &flags, &other, &script).prints("tried\n");
        assert!(!world.home.join(below).exists(), "{out}");
        assert!(world.home.join("free").exists(), "the allowed twin made nothing: {out}");
    });
}

#[test]
fn a_query_about_the_other_name_is_answered_by_the_denial() {
    need!("unshare", "mount");
    with_namespaces(|user| {
        let world = stage_workspace(user);
        let other = world.outside.join("other");
        world.make_dir(&other);
        let out = sbx(&world, &world.workspace, &other).args(["why", "--deny", "secret", "--path"]);
        let out = out.arg(other.join("secret")).run().exited(1);
        assert!(out.out().contains("by --deny secret"), "{out}");
    });
}

/// What is handed over open may have been opened by another name, or by one that leads there no more.
#[test]
fn a_file_that_is_handed_over_is_judged_by_all_of_its_names() {
    need!("unshare", "mount");
    with_namespaces(|user| {
        // The first three words are for `sh`: what is mounted where, and which file of it is opened.
        let open = "mount --bind \"$1\" \"$2\" && exec <\"$2/$3\"";
        let ways = [open.to_string(), format!("{open} && umount -l \"$2\"")];
        for (way, directory, file, script) in ways.iter().flat_map(|way| {
            let plant = "printf '[core]\\nfsmonitor = x\\n' >>/proc/self/fd/0 && echo done";
            [
                (way, "", ".git/config", plant),
                (way, ".git", "config", plant),
                (way, "", "secret", "cat"),
                (way, "hidden/part", "held", "cat"),
                (way, "", "free/file", "cat; echo done"),
            ]
        }) {
            let (world, _) = with_part(user, "hidden/part");
            world.write("free/file", "free text\n");
            // In the home, where the run has another one.
            let other = world.home.join("alias");
            world.make_dir(&other);
            let sh = |rest: &[&str]| {
                let script = format!("{way} && shift 3 && exec \"$@\"");
                let words = world.user.unshare(&[]).into_iter().map(String::from);
                let words = words.chain(["sh".into(), "-c".into(), script, "sh".into()]);
                let paths = [world.path(directory).display().to_string(), other.display().to_string()];
                let rest = rest.iter().map(|word| word.to_string());
                world.bare(words.chain(paths).chain([file.to_string()]).chain(rest)).run()
            };
            let run = [stage::sbx().to_str().unwrap(), "run", "-q", "--deny", "secret", "--deny", "hidden"];
            let config = world.read(".git/config");
            let out = sh(&[&run[..], &["--", "sh", "-c", script]].concat());
            if file == "free/file" {
                out.success().prints("free text\ndone\n");
                continue;
            }
            // A part that is mounted nowhere any more nobody can tell from another directory.
            if !(file == "held" && way.contains("umount")) {
                out.refused(125, &["cannot pass descriptor 0 on", "kept from being changed or read"])
                    .prints("");
            }
            assert_eq!(world.read(".git/config"), config);
            // The twin, without a run.
            let out = sh(&["sh", "-c", script]).success();
            assert!(out.out().contains(SECRET) || world.read(".git/config") != config, "{out}");
        }
    });
}

/// The run's own home has a file by the name of the caller's.
#[test]
fn a_file_that_is_handed_over_is_not_taken_for_another_one_of_its_name() {
    with_namespaces(|user| {
        let world = World::new(user);
        let file = world.write_at_home("file", "x\n");
        let script = "cp /dev/null ~/file; chmod 700 ~/file && touch -d @1 ~/file && echo own
            chmod 711 /proc/self/fd/0; touch -d @2 /proc/self/fd/0; stat -c '%a %Y' ~/file";
        let state = |path: &Path| path.metadata().map(|meta| (meta.mode(), meta.mtime())).unwrap();
        let before = state(&file);
        let run =
            |run: Cmd| run.args(["sh", "-c", script]).pass_fd(File::open(&file).unwrap().into(), 0).run();
        run(world.sbx(["run", "--"])).prints("own\n700 1\n");
        assert_eq!(state(&file), before);
        // The twin, without a run: both names are one file.
        run(world.bare(["env"])).prints("own\n711 2\n");
        assert_ne!(state(&file), before);
    });
}

/// A workspace in which a part of a denied or protected directory is mounted at another place.
fn with_part(user: &User, part: &str) -> (World, std::path::PathBuf) {
    let world = stage_workspace(user);
    for directory in [part, "way"] {
        world.make_dir(&world.path(directory));
    }
    world.write(format!("{part}/held"), format!("{SECRET}\n"));
    let way = world.path("way");
    (world, way)
}

#[test]
fn a_part_of_a_denied_directory_is_not_opened_where_it_is_mounted_too() {
    need!("unshare", "mount");
    sbx_tests::as_users(|user| {
        let script = "cat \"$AT/held\" 2>/dev/null; cat .mcp.json";
        for (flags, secret) in [
            (&["--deny", "hidden"][..], ""),
            (&["--deny", "hidden", "--namespaces", "none"], ""),
            (&["--deny", "free"], &*format!("{SECRET}\n")),
        ] {
            let (world, way) = with_part(user, "hidden/part");
            let out = mounted(&world, &world.path("hidden/part"), &way, flags, &way, script);
            out.prints(&format!("{secret}as it was\n"));
        }
    });
}

#[test]
fn a_part_of_a_protected_directory_is_not_changed_where_it_is_mounted_too() {
    need!("unshare", "mount");
    with_namespaces(|user| {
        let script = "echo planted > \"$AT/held\"; echo planted > \"$AT/new\"; echo tried";
        for (part, kept) in [(".vscode/part", true), ("free/part", false)] {
            let (world, way) = with_part(user, part);
            let out = mounted(&world, &world.path(part), &way, &[], &way, script).prints("tried\n");
            let held = world.read(format!("{part}/held"));
            assert_eq!(held == Some(format!("{SECRET}\n")), kept, "{part}: {out}");
            assert_eq!(!world.exists(format!("{part}/new")), kept, "{part}: {out}");
        }
    });
}
