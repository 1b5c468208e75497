//! The index of a repository, which any command may write, and repositories that are put together of old parts: git
//! outside is led to nothing that it would execute.

use super::aftermath::{FSMONITOR, looked_at, planted};
use super::git::{in_repositories, plain, works};
use super::shell;
use sbx_tests::World;
use sbx_tests::servers::HttpServer;
use serde_json::Value;
use std::fs;

/// Changes paths in the index of the current repository: git itself takes none like these.
const RENAME: &str = "rename() { python3 -c 'import hashlib, sys\n\
    old, new = (word.encode() for word in sys.argv[1:])\n\
    text = open(\".git/index\", \"rb\").read()[:-20]\n\
    assert old in text\n\
    text = text.replace(old, new)\n\
    open(\".git/index\", \"wb\").write(text + hashlib.sha1(text).digest())' $1 $2; }; ";

/// A repository that has git run something, in a directory of which git outside is told by the index.
fn linked(place: &str) -> String {
    let made = "git init -q $PLACE; git -C $PLACE commit -q --allow-empty -m one; GIT=$PLACE/.git";
    let names = "rename .giX/inside .git/inside";
    format!(
        "set -e; {RENAME}PLACE={place}; {made}; {FSMONITOR}; \
         git update-index --add --cacheinfo 160000,$(git -C $PLACE rev-parse HEAD),.giX/inside; {names}"
    )
}

/// Runs it in the sandbox, and looks from outside.
fn is_led(world: &World, script: &str) -> (bool, String) {
    let out = shell(world, &[], &planted(world, script)).run().success();
    (looked_at(world, "."), out.err())
}

#[test]
fn an_index_leads_git_to_no_repository_that_is_not_looked_at() {
    in_repositories(|world| {
        let script = linked(".git/inside");
        // The twin: it does, where nobody looks.
        plain(world, &format!("cp -r . ../twin; cd ../twin; {}", planted(world, &script)));
        assert!(looked_at(world, "../twin"));
        let (is_led, said) = is_led(world, &script);
        assert!(!is_led, "{said}");
        let line = "the command put what git never puts there (.git/inside) into the index";
        assert!(said.contains(line) && said.contains("index.sbx-aside'; 'git reset'"), "{said}");
        plain(world, "git reset -q; git diff --quiet");
    });
}

#[test]
fn an_index_has_git_write_nothing_into_its_own_directory() {
    in_repositories(|world| {
        let script = format!(
            "set -e; {RENAME}hook=$(printf '#!/bin/sh\\nPLANTED\\n' | git hash-object -w --stdin); \
             git update-index --add --cacheinfo 100755,$hook,.giX/hooks/post-checkout; rename .giX/hooks .git/hooks"
        );
        let uses = "(git checkout -- . ; git checkout -q -b new) >/dev/null 2>&1 || true";
        let ran = world.outside.join("ran");
        plain(world, &format!("cp -r . ../twin; cd ../twin; {}; {uses}", planted(world, &script)));
        assert!(ran.exists());
        fs::remove_file(&ran).unwrap();
        let out = shell(world, &["--report", "report.json"], &planted(world, &script)).run().success();
        plain(world, uses);
        assert!(!ran.exists() && !world.exists(".git/hooks/post-checkout"), "{out}");
        let report: Value = serde_json::from_str(&world.read("report.json").unwrap()).unwrap();
        let finding = &report["findings"][0];
        assert_eq!(finding["kind"], "index-changed", "{report}");
        assert_eq!(finding["names"], serde_json::json!([".git/hooks/post-checkout"]), "{report}");
    });
}

/// Nobody looks at the end of a run whose supervisor and reaper are killed: the next run does.
#[test]
fn an_index_of_a_killed_run_is_looked_at_by_the_next_one() {
    in_repositories(|world| {
        plain(world, "git init -q sub; cd sub; echo x > x; git add x; git commit -qm x");
        shell(world, &["-q"], "true").run().success();
        let uses = "(cd sub; git checkout -- . ; git checkout -q -b new) >/dev/null 2>&1 || true";
        let ran = world.outside.join("ran");
        let script = format!(
            "set -e; {RENAME}cd sub; hook=$(printf '#!/bin/sh\\nPLANTED\\n' | git hash-object -w --stdin); \
             git update-index --add --cacheinfo 100755,$hook,.giX/hooks/post-checkout; \
             rename .giX/hooks .git/hooks; echo ready; sleep 60"
        );
        let running = shell(world, &[], &planted(world, &script)).start();
        running.wait_for("ready");
        running.kill_with_children();
        let next = shell(world, &[], "true").run().success();
        plain(world, uses);
        assert!(!ran.exists(), "{next}");
        assert!(next.err().contains("sub/.git/index"), "{next}");
        // Once.
        let next = shell(world, &[], "true").run().success();
        assert!(!next.err().contains("sub/.git/index"), "{next}");
    });
}

/// In every form that git writes an index in.
#[test]
fn what_git_writes_is_left_alone() {
    in_repositories(|world| {
        let many = "mkdir -p many/a.git; for n in $(seq 300); do echo $n > many/a.git/$n; done; git add .; \
                    git commit -qm many --allow-empty";
        for script in [
            "echo more >> file; git add file; git commit -qm more",
            "git update-index --index-version 4",
            "git update-index --split-index; echo x > split; git add split; git commit -qm split",
            "git update-index --split-index; echo more >> many/a.git/7; git add many; git commit -qm more",
            "git sparse-checkout init --cone --sparse-index; git sparse-checkout set many/a.git; git status",
            "git -c index.threads=4 -c index.recordEndOfIndexEntries=true -c index.recordOffsetTable=true add -A; \
             git -c index.threads=4 -c index.recordOffsetTable=true update-index --force-write-index",
            "git update-index --untracked-cache; git status",
            "git worktree add -q other; cd other; echo y > y; git add y; git commit -qm y",
            "git init -q --object-format=sha256 made; cd made; echo z > z; git add z; git commit -qm z; \
             git worktree add -q ../tree; cd ../tree; echo w > w; git add w; git commit -qm w",
            // It is protected by now.
            "cd tree; echo v > v; git add v; git commit -qm v; cd ../made; echo v > v; git add v",
            "git switch -q topic; git merge -q main || git add -A; git status",
        ] {
            let out = shell(world, &[], &format!("set -e; {many}; {script} || true")).run();
            assert!(
                !out.err().contains("never puts there") && !out.err().contains("aside"),
                "{script}: {out}"
            );
        }
        works(world, "git fsck 2>&1");
    });
}

/// Somebody else's repository brings the parts of one; a command of the first run puts them together.
#[test]
fn a_repository_of_old_parts_is_found() {
    let joined = "mv g/HEAD.was g/HEAD; mv g .git";
    // All that a file leads to is there.
    let pointed = "mv g/HEAD.was g/HEAD; echo 'gitdir: g' > .git";
    for (join, aside) in [(joined, false), (pointed, true)] {
        in_repositories(|world| {
            let parts = format!(
                "git init -q sub/m; git -C sub/m commit -q --allow-empty -m one; GIT=sub/m/.git; {FSMONITOR}; \
                 git -C sub/m rev-parse HEAD > sub/commit; mv sub/m/.git sub/g; mv sub/g/HEAD sub/g/HEAD.was; \
                 rm -r sub/m sub/g/hooks; sleep 0.05"
            );
            plain(world, &planted(world, &parts));
            let script = format!(
                "set -e; cd sub; {join}; cd ..; git update-index --add --cacheinfo 160000,$(cat sub/commit),sub"
            );
            plain(world, &format!("cp -r . ../twin; cd ../twin; {script}"));
            assert!(looked_at(world, "../twin"));
            let (is_led, said) = is_led(world, &script);
            assert_eq!(is_led, !aside, "{said}");
            let says = if aside {
                "put aside there as .git.sbx-aside"
            } else {
                "would act on its core.fsmonitor, which may be new"
            };
            assert!(said.contains(says), "{said}");
        });
    }
}

/// git fetches what a partial clone lacks as soon as it looks for it: what a run without a network has learned must not
/// leave so.
#[test]
fn no_look_from_outside_sends_what_a_run_wants_to_be_sent() {
    in_repositories(|world| {
        let server = HttpServer::start();
        let script = |place: &str| {
            format!(
                "set -e; git init -q {place}; cd {place}; echo x > x; git add x; git commit -qm one; \
                 tree=$(git rev-parse HEAD^{{tree}}); git config core.repositoryformatversion 1; \
                 git config extensions.partialClone origin; git config remote.origin.promisor true; \
                 git config remote.origin.url {}/leak; rm -f .git/index .git/objects/${{tree:0:2}}/${{tree:2}}; cd ..; \
                 git update-index --add --cacheinfo 160000,$(git -C {place} rev-parse HEAD),{place}",
                server.url()
            )
        };
        let out = shell(world, &[], &script("without")).run().success();
        assert!(out.err().contains("remote.origin.promisor"), "{out}");
        plain(world, "git status >/dev/null 2>&1 || true");
        assert_eq!(server.connections(), 0, "{out}");
        // The twin: what had a network could send by itself.
        let out = shell(world, &["--net", "host"], &script("with")).run().success();
        assert!(!out.err().contains("remote.origin.promisor"), "{out}");
        plain(world, "git status >/dev/null 2>&1 || true");
        assert!(server.connections() > 0, "{out}");
    });
}

/// A bare repository of the workspace is recorded and protected from the second run on. Its settings are still those
/// of whoever made the workspace.
#[test]
fn a_new_file_leads_to_no_bare_repository_with_settings_of_its_own() {
    in_repositories(|world| {
        let bare = format!(
            "git init -q --bare bare; git -C bare config core.bare false; GIT=bare; {FSMONITOR}; rm -r bare/hooks; \
             mkdir sub; sleep 0.05"
        );
        plain(world, &planted(world, &bare));
        let script = "rm -f sub/.git; echo 'gitdir: ../bare' > sub/.git";
        plain(world, &format!("cp -r . ../twin; cd ../twin; {script}"));
        assert!(looked_at(world, "../twin/sub"));
        shell(world, &["-q"], "true").run().success();
        for _ in 0..2 {
            let out = shell(world, &[], script).run().success();
            assert!(
                !looked_at(world, "sub") && out.err().contains("put aside there as .git.sbx-aside"),
                "{out}"
            );
        }
        // What git itself makes for a clone of the user's, with hooks of the user's, stays.
        let clone = "git clone -q . clone; printf '#!/bin/sh\\n' > clone/.git/hooks/post-commit; \
                     chmod +x clone/.git/hooks/post-commit";
        plain(world, clone);
        shell(world, &["-q"], "true").run().success();
        let out = shell(world, &[], "git -C clone worktree add -q ../tree").run().success();
        assert!(!out.err().contains("aside"), "{out}");
        plain(world, "git -C tree status");
    });
}
