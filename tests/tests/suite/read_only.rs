//! `read-only`: looking around with any tool, changing nothing.

use serde_json::json;
use std::path::Path;

use sbx_tests::{World, as_users, in_worlds, kernel, need, promise};

use crate::corpus;

#[test]
fn commands_that_only_look_work() {
    as_users(|user| {
        corpus::behaves_the_same(
            &World::new(user),
            "read-only",
            &[
                &["sh", "-c", "cat lines | sort | uniq -c"],
                &["bash", "-c", "diff <(sort lines) <(sort other)"],
                &["find", ".", "-name", "*.sh", "-exec", "cat", "{}", ";"],
                &["sh", "-c", "grep -rl needle dir | xargs wc -l"],
                &["ls", "-la", "dir"],
                &["jq", ".", "data.json"],
                &[
                    "/usr/bin/python3",
                    "-c",
                    "import subprocess; print(subprocess.check_output(['cat', 'lines']))",
                ],
                &["node", "-p", "require('fs').readFileSync('lines', 'utf8').length"],
                &["make", "-v"],
                &["gcc", "-fsyntax-only", "-x", "c", "/dev/null"],
                &["awk", "{print $1}", "table"],
                &["tar", "-tzf", "archive.tgz"],
                &["sh", "-c", "(sleep 0.01; echo late) & wait; echo done"],
                &["sh", "-c", "f=$(mktemp) && chmod 700 $f && touch -d @5 $f && stat -c '%a %Y' $f"],
            ],
        );
    });
}

/// Java lists them. Each of its failures would seem to be due to that.
#[test]
fn the_sizes_of_pages_can_be_listed() {
    const PAGES: &str = "/sys/kernel/mm/hugepages";
    promise!(kernel::PATHS);
    if !Path::new(PAGES).is_dir() {
        return sbx_tests::skip("no large pages here");
    }
    in_worlds(|world| {
        let names = world.bare(["ls", PAGES]).run().success().out();
        for profile in ["read-only", "workspace"] {
            world.run(profile, ["ls", PAGES]).run().success().silent().prints(&names);
            world.run(profile, ["ls", "/sys/kernel/mm"]).run().failed().prints("");
        }
    });
}

#[test]
fn names_of_interfaces_can_be_listed_and_nothing_else() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        for profile in ["read-only", "workspace"] {
            for flags in [&[][..], &["--namespaces", "none"]] {
                let run = |command: &[&str]| {
                    world.sbx(["run", "-q", "-p", profile]).args(flags).arg("--").args(command).run()
                };
                let names = world.bare(["ls", "/sys/class/net"]).run().out();
                run(&["ls", "/sys/class/net"]).success().prints(&names);
                run(&["cat", "/sys/class/net/lo/address"]).failed().prints("");
            }
        }
        world.bare(["cat", "/sys/class/net/lo/address"]).run().success();
    });
}

#[test]
fn an_entry_unless_credentials_opens_no_file_that_has_one() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let file = world.outside.join("settings");
        let link = world.outside.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let read = |named: &Path, unless: bool| {
            let mut entry = json!({ "path": named });
            if unless {
                entry["unless"] = json!("credentials");
            }
            let profile = json!({ "extends": "read-only", "paths": { "read": [entry] } });
            world.write("../entry.json", profile.to_string());
            world.sbx(["run", "-p", "../entry.json", "--", "cat"]).arg(named).run()
        };
        let harmless = "[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n";
        std::fs::write(&file, harmless).unwrap();
        for named in [&file, &link] {
            read(named, true).success().prints(harmless);
        }
        let address = format!("{harmless}index-url = https://me:hunter2@pypi.example/simple\n");
        let long = "# nothing\n".repeat(200_000);
        for text in [address.as_bytes(), b"# the token\n", b"\xff\xfe", b"a\0b", long.as_bytes()] {
            std::fs::write(&file, text).unwrap();
            assert!(read(&file, true).failed().stdout.is_empty());
            assert!(read(&link, true).failed().stdout.is_empty());
            assert!(!read(&file, false).success().stdout.is_empty());
        }
        std::fs::write(&file, harmless).unwrap();
        let directory = world.outside.clone();
        let profile = |unless: &str| {
            json!({ "extends": "read-only",
                "paths": { "read": [{ "path": directory, "unless": unless }] } })
        };
        world.write("../entry.json", profile("credentials").to_string());
        assert!(
            world
                .sbx(["run", "-p", "../entry.json", "--", "cat"])
                .arg(&file)
                .run()
                .failed()
                .stdout
                .is_empty()
        );
        world.write("../entry.json", profile("passwords").to_string());
        world
            .sbx(["run", "-p", "../entry.json", "--", "true"])
            .run()
            .refused(125, &["unknown value 'passwords'"]);
    });
}

#[test]
fn git_shows_history_and_changes_nothing() {
    promise!(kernel::PATHS);
    need!("git");
    in_worlds(|world| {
        world.write("file", "text\n");
        world.write(world.home.join(".gitconfig"), "[user]\nname = A Tester\nemail = a@example.org\n");
        world.bare(["sh", "-ec", "git init -q . && git add -A && git commit -qm first"]).run().success();
        let git = |words: &[&str]| world.run("read-only", [&["git"], words].concat()).run();
        let out = git(&["log", "--oneline"]).success();
        assert!(out.out().ends_with(" first\n"), "{out}");
        git(&["diff", "--stat", "HEAD"]).success();
        git(&["status", "--short"]).success();
        git(&["show", "HEAD:file"]).success().prints("text\n");
        let before = sbx_tests::tree::snapshot(&world.workspace);
        git(&["commit", "--allow-empty", "-m", "second"]).failed();
        git(&["tag", "made"]).failed();
        assert_eq!(sbx_tests::tree::snapshot(&world.workspace), before);
    });
}

#[test]
fn nothing_can_be_changed() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        corpus::refused_and_without_effect(
            world,
            "read-only",
            &[
                &["touch", "made"],
                &["sh", "-c", "echo x > made"],
                &["sh", "-c", "echo x >> lines"],
                &["rm", "-rf", "dir"],
                &["mkdir", "made"],
                &["mv", "lines", "made"],
                &["cp", "lines", "made"],
                &["ln", "-s", "lines", "made"],
                &["ln", "lines", "made"],
                &["sed", "-i", "s/one/ONE/", "lines"],
                &["truncate", "-s", "0", "lines"],
                &["chmod", "600", "lines"],
                &["touch", "-d", "@900000000", "lines"],
                &["/usr/bin/python3", "-c", "open('made', 'w')"],
                &["/usr/bin/python3", "-c", "import os; os.rename('lines', 'made')"],
                &["node", "-e", "require('fs').writeFileSync('made', 'x')"],
                &["perl", "-e", "unlink('lines') or exit 1"],
                &["touch", "../../outside/made"],
            ],
        );
    });
}
