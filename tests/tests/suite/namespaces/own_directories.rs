//! Where `sbx` looks for profiles, and keeps what lasts: no command decides what is there, whatever links lead there.

use super::{names, shell, with_namespaces};
use sbx_tests::{User, World, need};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

/// A profile that opens the outside.
fn opening(world: &World) -> String {
    format!(r#"{{"extends": "workspace", "paths": {{"read": ["{}"]}}}}"#, world.outside.display())
}

/// Settings as people keep them in a repository of their own: the workspace of the first run. `links` are made there
/// and at home; `script` has `profile` for the text of a profile, and plants it. `planted` is where it would be read.
fn settings(user: &User, links: &[(&str, &str)], script: &str, planted: &str) {
    let mut world = World::new(user);
    let own = world.workspace.clone();
    let dot = world.home.join("dot");
    world.make_dir(&dot.join("real"));
    world.make_dir(&world.home.join(".config"));
    for (link, target) in links {
        let link = world.home.join(link);
        world.make_dir(link.parent().unwrap());
        symlink(target, link).unwrap();
    }
    world.workspace = dot.clone();
    let script = script.replace("profile", &format!("'{}'", opening(&world)));
    shell(&world, &["-q", "-p", "workspace"], &script).run();
    world.workspace = own;
    let read = ["run", "-q", "--", "cat", world.outside.join("kept").to_str().unwrap()].map(str::to_string);
    assert!(!world.sbx(&read).run().failed().out().contains("outside"), "{links:?}");
    // Its twin: what the user puts there is read.
    let planted = world.home.join(planted);
    fs::create_dir_all(planted.parent().unwrap()).unwrap();
    fs::write(&planted, opening(&world)).unwrap();
    world.sbx(&read).run().success().prints("outside\n");
}

#[test]
fn links_to_profiles_lead_where_they_did() {
    with_namespaces(|user| {
        let default = ".config/sbx/profiles/default.json";
        for (links, script, planted) in [
            (
                &[(".config/sbx", "../dot/made")][..],
                "mkdir -p made/profiles; echo profile > made/profiles/default.json",
                "dot/made/profiles/default.json",
            ),
            (&[(default, "../../../dot/made.json")], "echo profile > made.json", "dot/made.json"),
            (
                &[(".config/sbx/profiles", "../../dot/link"), ("dot/link", "real")],
                "mkdir own; echo profile > own/default.json; rm -f link; mv -T link was; ln -sfn own link",
                "dot/real/default.json",
            ),
            (
                &[(default, "../../../dot/link/own.json"), ("dot/link", "real")],
                "mkdir own; echo profile > own/own.json; rm -f link; mv -T link was; ln -sfn own link",
                "dot/real/own.json",
            ),
            // Over a link of the workspace on the way there, and over a directory that the way leaves again.
            (
                &[(".config/sbx", "../dot/link"), ("dot/link", "real")],
                "mkdir -p own/profiles; echo profile > own/profiles/default.json; mv -T link was; ln -sfn own link",
                "dot/real/profiles/default.json",
            ),
            (
                &[(".config/sbx", "../dot/real/../own"), ("dot/other", "real")],
                "mkdir -p o/real o/own/profiles; echo profile > o/own/profiles/default.json; mv real was; \
                 ln -s o/real real",
                "dot/own/profiles/default.json",
            ),
        ] {
            settings(user, links, script, planted);
        }
    });
}

/// Also where a link leads to it that is no part of its name: it is what the next run reads.
#[test]
fn links_to_the_runs_own_profile_lead_where_they_did() {
    with_namespaces(|user| {
        let world = World::new(user);
        let made = "mkdir conf; ln -s conf link; echo '{\"extends\": \"workspace\"}' > conf/own.json";
        world.bare(["sh", "-c", made]).run().success();
        let child = format!(r#"{{"extends": "{}/own.json"}}"#, world.path("link").display());
        let child = world.write(world.outside.join("child.json"), child);
        let kept = world.outside.join("kept");
        let attack = format!("mkdir o; echo '{}' > o/own.json; mv link was; ln -s o link", opening(&world));
        let read =
            |profile: &Path| world.sbx(["run", "-q", "-p"]).arg(profile).args(["--", "cat"]).arg(&kept).run();
        for profile in [&world.path("link/own.json"), &child] {
            shell(&world, &["-q", "-p", profile.to_str().unwrap()], &attack).run();
            assert!(!read(profile).failed().out().contains("outside"), "{}", profile.display());
            world.bare(["rm", "-rf", "o", "was"]).run().success();
        }
        // The twin, without a run.
        world.bare(["sh", "-c", &attack]).run().success();
        read(&child).success().prints("outside\n");
    });
}

#[test]
fn no_flag_opens_where_sbx_keeps_what_lasts() {
    with_namespaces(|user| {
        let world = World::new(user);
        shell(&world, &["-q"], "true").run().success();
        let state = world.home.join(".local/state/sbx");
        let records = || names(&state.join("workspaces"));
        let before = records();
        assert!(!before.is_empty());
        for below in ["", "workspaces"] {
            let opened = state.join(below);
            let opened = opened.to_str().unwrap();
            let script = format!("rm -rf {0}/workspaces {0}/*; echo x > {0}/made", state.display());
            shell(&world, &["-q", "--rw", opened], &script).run();
            assert!(before.iter().all(|record| records().contains(record)), "{below}");
            assert!(!Path::new(opened).join("made").exists(), "{below}");
        }
    });
}

/// In another directory of what lasts no repository would be known, and no home.
#[test]
fn a_link_to_what_lasts_leads_where_it_did() {
    with_namespaces(|user| {
        let mut world = World::new(user);
        let dot = world.home.join("dot");
        world.make_dir(&dot.join("real"));
        world.make_dir(&world.home.join(".local"));
        for (link, target) in [(".local/state", "../dot/link"), ("dot/link", "real")] {
            symlink(target, world.home.join(link)).unwrap();
        }
        world.workspace = dot.clone();
        let out =
            shell(&world, &["-q"], "mkdir own; rm -f link; ln -sfn own link; echo x > real/sbx/x; ls own")
                .run();
        assert_eq!(fs::read_link(dot.join("link")).unwrap(), Path::new("real"), "{out}");
        assert!(dot.join("real/sbx").is_dir() && !dot.join("real/sbx/x").exists(), "{out}");
        shell(&world, &["-q"], "echo x > real/file").run().success();
        assert!(dot.join("real/file").exists());
    });
}

/// What a link of a protected name leads to is read by it, and the link stays one.
#[test]
fn a_protected_link_is_held_as_it_is() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.write("kept", "kept\n");
        world.make_dir(&world.path("tools"));
        symlink("kept", world.path(".envrc")).unwrap();
        symlink("tools", world.path(".vscode")).unwrap();
        let script = "cat .envrc; readlink .envrc .vscode; rm .envrc; rm .vscode; ln -sfn . .vscode; mv .envrc was; \
                      echo x > tools/file; echo x > kept; true";
        shell(&world, &["-q"], script).run().success().prints("kept\nkept\ntools\n");
        assert_eq!(fs::read_link(world.path(".envrc")).unwrap(), Path::new("kept"));
        assert_eq!(fs::read_link(world.path(".vscode")).unwrap(), Path::new("tools"));
        assert!(
            world.read("kept").unwrap() == "kept\n" && !world.exists("tools/file") && !world.exists("was")
        );
        // A link of another name can be replaced.
        symlink("kept", world.path("other")).unwrap();
        shell(&world, &["-q"], "ln -sfn tools other").run().success();
        assert_eq!(fs::read_link(world.path("other")).unwrap(), Path::new("tools"));
    });
}

#[test]
fn git_reads_a_repository_behind_a_link_and_changes_nothing_there() {
    need!("git");
    with_namespaces(|user| {
        let world = World::new(user);
        let commit = "git -c user.name=x -c user.email=x@example.org commit -qm";
        let script = format!(
            "git init -q . && git add . && {commit} one --allow-empty && mv .git real && ln -s real .git"
        );
        world.bare(["sh", "-c", &script]).run().success();
        let script = format!(
            "git log --format=%s; {commit} two --allow-empty; echo x > .git/hooks/pre-commit; rm .git; \
                              ln -sfn /tmp .git; git log --format=%s"
        );
        let out = shell(&world, &["-q"], &script).run().success();
        assert_eq!(out.out(), "one\none\n", "{out}");
        assert!(!world.exists("real/hooks/pre-commit"), "{out}");
        assert_eq!(fs::read_link(world.path(".git")).unwrap(), Path::new("real"));
        shell(&world, &[], "true").run().success().says(".git' is a link, so git changes nothing");
    });
}

/// With package stores an overlay is below the home of the run, and hides the workspace in it.
#[test]
fn a_run_whose_supervisor_is_killed_leaves_nothing_and_blames_nobody() {
    with_namespaces(|user| {
        let mut world = World::new(user);
        world.write_at_home(".npm/_cacache/file", "x\n");
        let project = world.home.join("project");
        world.make_dir(&project);
        world.workspace = project.clone();
        shell(&world, &["-q"], "git init -q . && echo x > file && git add file").run().success();
        let before = names(&project.join(".git"));
        let running = shell(&world, &[], "echo ready; sleep 60").start();
        running.wait_for("ready");
        assert_ne!(names(&project.join(".git")), before);
        let out = running.killed();
        let deadline = Instant::now() + Duration::from_secs(20);
        while names(&project.join(".git")) != before && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(names(&project.join(".git")), before);
        assert!(out.sbx_lines().is_empty(), "{out}");
    });
}
