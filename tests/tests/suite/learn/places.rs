//! Places that a review knows: what it says of them, a run does.

use super::attackers::{extended, has, run};
use super::reviews::review;
use sbx_tests::{in_worlds, kernel, promise};
use serde_json::json;

#[test]
fn secrets_are_found_by_the_form_of_their_names_and_in_mailboxes() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        for (file, rule) in [
            ("data/infra/prod.tfstate", "data"),
            ("data/infra/prod-kubeconfig.yaml", "data"),
            ("data/.vault_pass.txt", "data"),
            ("Maildir/new/1", "Maildir"),
            ("snap/firefox/common/logins", "snap"),
            ("data/plain.txt", ""),
        ] {
            let path = world.write(world.home.join(file), "held\n");
            let rule = format!("${{HOME}}/{}", if rule.is_empty() { file } else { rule });
            let reviewed = review(world, &extended("read-only", &json!({ "paths": { "read": [rule] } })));
            let out = run(world, &["cat", path.to_str().unwrap()]).success();
            assert_eq!(out.out(), "held\n");
            assert_eq!(
                has(&reviewed, "secrets", "data"),
                file.starts_with("data/") && !file.contains("plain")
            );
            assert_eq!(
                has(&reviewed, "secrets", "home/Maildir"),
                file.starts_with("Maildir"),
                "{reviewed:#}"
            );
            assert_eq!(has(&reviewed, "secrets", "home/snap"), file.starts_with("snap"), "{reviewed:#}");
            std::fs::remove_file(path).unwrap();
        }
    });
}

/// A directory in which shells look for commands is one whether PATH names it now or not.
#[test]
fn commands_that_a_run_leaves_on_the_path_are_found() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        world.make_dir(&world.home.join("go/bin"));
        world.make_dir(&world.home.join("tools/here"));
        let path = format!("{}:/usr/bin:/bin", world.home.join("tools/here").display());
        for (rule, found) in [("go/bin", true), ("tools/here", true), ("tools/here", false)] {
            let paths = json!({ "paths": { "write": [format!("${{HOME}}/{rule}")] } });
            world.write("../reviewed.json", extended("read-only", &paths).to_string());
            let words = ["profile", "review", "--json", "../reviewed.json"];
            let review = world.sbx(words);
            let review = if found { review.env("PATH", &path) } else { review };
            let reviewed = serde_json::from_str(&review.run().success().out()).unwrap();
            assert_eq!(has(&reviewed, "runs later", &format!("{rule} (shells")), found, "{reviewed:#}");
            let file = world.home.join(rule).join("left");
            let leave = format!("printf '#!/bin/sh\\necho left\\n' > {0} && chmod +x {0}", file.display());
            run(world, &["sh", "-c", &leave]).success();
            let directory = file.parent().unwrap().display().to_string();
            let outside = world.bare(["sh", "-c", "left"]).env("PATH", format!("{directory}:{path}"));
            assert_eq!(outside.run().out(), "left\n");
            std::fs::remove_file(file).unwrap();
        }
    });
}

/// A device that comes later is opened then.
#[test]
fn devices_that_are_not_there_are_judged() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let path = format!("/dev/sbx-test-{}", std::process::id());
        let optional = json!([{ "path": path, "optional": true }, { "path": "/dev/full", "optional": true }]);
        let profile = extended("read-only", &json!({ "namespaces": "none", "paths": { "read": optional } }));
        let before = review(world, &profile);
        assert!(has(&before, "devices", &format!("{path} (not there now)")), "{before:#}");
        assert!(!has(&before, "devices", "/dev/full"), "{before:#}");
        let made = std::process::Command::new("mknod").args(["-m", "666", &path, "c", "1", "5"]).status();
        if !made.is_ok_and(|status| status.success()) {
            return;
        }
        let out = run(world, &["head", "-c", "3", &path]);
        let closed = run(world, &["head", "-c", "3", "/dev/zero"]);
        let after = review(world, &profile);
        std::fs::remove_file(&path).unwrap();
        assert!(out.success().stdout == [0; 3] && closed.code.is_some(), "{after:#}");
        assert!(has(&after, "devices", &format!("\"{path}\"")), "{after:#}");
    });
}

/// A file is what it is by any of its names.
#[test]
fn another_name_of_a_known_file_is_found() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let known = world.write(world.home.join(".bashrc"), "as it was\n");
        let other = world.write(world.outside.join("box/other"), "plain\n");
        let name = world.outside.join("box/rc");
        for (of, found) in [(&known, true), (&other, false)] {
            std::fs::hard_link(of, &name).unwrap();
            for rule in [&name, &world.outside.join("box")] {
                let added = json!({ "paths": { "write": [rule] } });
                let reviewed = review(world, &extended("read-only", &added));
                let told = format!("another name of {}", known.display());
                assert_eq!(has(&reviewed, "runs later", &told), found, "{rule:?} {reviewed:#}");
                run(world, &["sh", "-c", &format!("echo more >> {}", name.display())]).success();
            }
            assert_eq!(world.read(of).unwrap().matches("more").count(), 2);
            std::fs::remove_file(&name).unwrap();
        }
        let key = world.write(world.home.join(".ssh/own/key"), "as it was\n");
        for (of, found) in [(&key, true), (&other, false)] {
            std::fs::hard_link(of, &name).unwrap();
            let added = json!({ "paths": { "read": [&name] } });
            let reviewed = review(world, &extended("read-only", &added));
            let told = format!("another name of {}", key.display());
            assert_eq!(has(&reviewed, "secrets", &told), found, "{reviewed:#}");
            std::fs::remove_file(&name).unwrap();
        }
    });
}
