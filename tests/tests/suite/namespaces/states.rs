//! What git goes on with after a stop, and prompts of shells show: nothing there leads git or a shell outside astray,
//! and what git itself leaves there is left alone.

use super::git::{in_repositories, plain};
use super::shell;
use sbx_tests::{World, need};
use std::fs;
use std::path::Path;

/// git's own prompt, as Debian and others install it.
const PROMPT: &str = "/usr/lib/git-core/git-sh-prompt";

/// A resolution that git takes for recorded in part: it records the rest from the file that stands in `MERGE_RR`.
const RESOLUTION: &str = "I=$(printf %040d 7); mkdir -p .git/rr-cache/$I; echo x > .git/rr-cache/$I/preimage";

/// Runs a script in a copy of the workspace where nobody looks, and in the sandbox. Each time the user does something
/// outside, and something is looked at: it has to be so without the sandbox, and never with it. Returns what was said.
pub fn is_only_without(world: &World, script: &str, uses: &str, is_so: impl Fn(&Path) -> bool) -> String {
    let twin = world.home.join("twin");
    plain(world, &format!("rm -rf ~/twin; cp -r . ~/twin; cd ~/twin; {script}; {uses}"));
    assert!(is_so(&twin), "not without: {script}");
    plain(world, "rm -f ~/ran");
    let out = shell(world, &[], &format!("set -e; {script}")).run().success();
    plain(world, uses);
    assert!(!is_so(&world.workspace), "{script}: {out}");
    out.err()
}

#[test]
fn git_copies_no_file_that_a_merge_does_not_have() {
    in_repositories(|world| {
        world.write(world.outside.join("secret"), "a secret\n");
        let outside = world.outside.display();
        let has_secret = |tree: &Path| {
            let all = tree.join(".git/rr-cache").read_dir().unwrap().flatten();
            all.filter_map(|entry| fs::read_to_string(entry.path().join("postimage")).ok())
                .any(|text| text.contains("a secret"))
        };
        for (list, name) in [
            (format!(r"printf '%s\t{outside}/secret\0' $I > .git/MERGE_RR"), "MERGE_RR"),
            (format!(r"ln -s {outside} away; printf '%s\taway/secret\0' $I > .git/MERGE_RR"), "MERGE_RR"),
            (format!(r"ln -s {outside}/secret away; printf '%s\taway\0' $I > .git/MERGE_RR"), "MERGE_RR"),
        ] {
            let script = format!("{RESOLUTION}; {list}");
            let said = is_only_without(world, &script, "echo y >> file; git commit -qam y", has_secret);
            assert!(said.contains(&format!("put aside there as {name}.sbx-aside")), "{said}");
            plain(world, "rm -rf .git/rr-cache .git/MERGE* away");
        }
        // Of a linked worktree.
        let list = format!(r"printf '%s\t{outside}/secret\0' $I > .git/worktrees/tree/MERGE_RR");
        let script = format!("git worktree add -q tree 2>/dev/null; {RESOLUTION}; {list}");
        let said = is_only_without(world, &script, "cd tree; git commit -q --allow-empty -m y", has_secret);
        assert!(said.contains("worktrees/tree/MERGE_RR"), "{said}");
    });
}

/// What a command may not read, it can have git copy to where it may, by a conflict that there is not.
#[test]
fn git_copies_no_file_that_the_command_may_not_read() {
    in_repositories(|world| {
        let has_secret = |tree: &Path| {
            let look = format!("grep -rl 'a secret' --include=postimage {}/.git || true", tree.display());
            !plain(world, &look).is_empty()
        };
        // In a working tree outside, which a linked worktree as the workspace does not show.
        let main = world.home.join("main");
        plain(
            world,
            "mkdir ~/main; cd ~/main; git init -q .; echo .env > .gitignore; git add .; git commit -qm 1",
        );
        world.write(main.join(".env"), "a secret\n");
        plain(world, "cd ~/main; git worktree add -q ~/linked 2>/dev/null; sleep 0.1");
        let plant = "I=$(printf %040d 7); G=$(git rev-parse --path-format=absolute --git-common-dir); \
                     mkdir -p $G/rr-cache/$I; echo x > $G/rr-cache/$I/preimage; printf '%s\\t.env\\0' $I > $G/MERGE_RR";
        let uses = "echo y >> ~/main/y; cd ~/main; git add y; git commit -qm y";
        plain(world, &format!("cd ~/linked; {plant}; {uses}"));
        assert!(has_secret(&main));
        plain(world, "rm -rf ~/main/.git/rr-cache ~/main/.git/MERGE_RR");
        let out = shell(world, &["--cwd", "../linked", "--workspace", "../linked"], plant).run().success();
        plain(world, uses);
        assert!(!has_secret(&main), "{out}");
        assert!(out.err().contains("MERGE_RR"), "{out}");
        // In the workspace, by a flag.
        world.write(".env", "a secret\n");
        let out = shell(world, &["--deny", ".env"], plant).run().success();
        plain(world, "echo y >> file; git commit -qam y");
        assert!(!has_secret(&world.workspace), "{out}");
        assert!(out.err().contains("put aside there as MERGE_RR.sbx-aside"), "{out}");
    });
}

/// Nobody can tell whether a link is on the way to a path, where nobody knows where the working tree is.
#[test]
fn git_copies_no_file_of_a_working_tree_that_is_unknown() {
    in_repositories(|world| {
        world.write(world.outside.join("secret"), "a secret\n");
        let outside = world.outside.display();
        let has_secret = |tree: &Path| {
            let look = format!("grep -rl 'a secret' --include=postimage {} || true", tree.display());
            !plain(world, &look).is_empty()
        };
        let plant = |own: &str, shared: &str, tree: &str| {
            format!(
                "I=$(printf %040d 7); mkdir -p {shared}/rr-cache/$I; echo x > {shared}/rr-cache/$I/preimage; \
                 ln -s {outside}/secret {tree}/away; printf '%s\\taway\\0' $I > {own}/MERGE_RR"
            )
        };
        let separate = "git init -q --separate-git-dir=store sub";
        let added = "git worktree add -q tree";
        let in_tree = plant(".git/worktrees/tree", ".git", "tree");
        let other = plant("sub/.git", "sub/.git", "tree");
        for (script, tree) in [
            (format!("{separate}; {}", plant("store", "store", "sub")), "sub"),
            (format!("{added}; {in_tree}; echo $PWD/nowhere/.git > .git/worktrees/tree/gitdir"), "tree"),
            (format!("{added}; {in_tree}; echo $PWD/.git > .git/worktrees/tree/gitdir"), "tree"),
            // Another one leads there as well.
            (format!("git init -q sub; mkdir tree; echo gitdir: $PWD/sub/.git > tree/.git; {other}"), "tree"),
        ] {
            let uses = format!("git -C {tree} commit -q --allow-empty -m y");
            let said = is_only_without(world, &script, &uses, has_secret);
            assert!(said.contains("MERGE_RR.sbx-aside"), "{said}");
            plain(world, "rm -rf store sub tree .git/rr-cache .git/worktrees; git branch -q -D tree || true");
        }
    });
}

#[test]
fn git_goes_over_no_link_in_a_state() {
    in_repositories(|world| {
        world.write(world.outside.join("secret"), "a secret\n");
        let (outside, ran) = (world.outside.display(), world.home.join("ran"));
        let script = format!("git rev-parse HEAD > .git/MERGE_HEAD; ln -s {outside}/secret .git/MERGE_MSG");
        let uses = "git commit -q --no-edit --cleanup=verbatim --allow-empty-message; \
                    git log -1 --format=%B > .git/last";
        let said = is_only_without(world, &script, uses, |tree| {
            fs::read_to_string(tree.join(".git/last")).unwrap().contains("a secret")
        });
        assert!(said.contains("MERGE_MSG.sbx-aside"), "{said}");
        // A file of the user's that git would write what it compares to.
        let script = format!(
            r"{RESOLUTION}; cp .git/rr-cache/$I/preimage .git/rr-cache/$I/postimage; \
             ln -s ~/ran .git/rr-cache/$I/thisimage; printf '%s\tfile\0' $I > .git/MERGE_RR; \
             printf 'planted\n<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n' > file"
        );
        let said = is_only_without(world, &script, "git commit -q --allow-empty -m y", |_| ran.exists());
        assert!(said.contains("thisimage.sbx-aside"), "{said}");
    });
}

#[test]
fn a_prompt_executes_nothing_of_a_state() {
    if !Path::new(PROMPT).exists() {
        return sbx_tests::skip("git's prompt is not installed");
    }
    in_repositories(|world| {
        let ran = world.home.join("ran");
        world.write(
            world.home.join("rc"),
            format!(". {PROMPT}\nPROMPT_COMMAND='__git_ps1 \"\\w\" \"\\$ \"'\n").as_str(),
        );
        let uses = "D=$PWD; cd ~; echo \"cd $D\" | bash --rcfile ~/rc -i >/dev/null 2>&1; true";
        for (state, one, other) in [
            ("rebase-merge", "msgnum", "end"),
            ("rebase-merge", "end", "msgnum"),
            ("rebase-apply", "next", "last"),
            ("rebase-apply", "last", "next"),
        ] {
            let script = format!(
                "mkdir .git/{state}; echo '$(touch ~/ran)' > .git/{state}/{one}; echo 1 > .git/{state}/{other}"
            );
            let said = is_only_without(world, &script, uses, |_| ran.exists());
            assert!(said.contains(&format!("{state}/{one}.sbx-aside")), "{said}");
            plain(world, &format!("rm -r .git/{state}"));
        }
        if Path::new("/usr/bin/zsh").exists() {
            // zsh hands the names of commits to `git log`, which takes a word with a dash for an option.
            let script = "mkdir .git/rebase-apply; cd .git/rebase-apply; echo 1 > next; echo 1 > last; \
                          printf -- '--output=%s x\\n%s x\\n' ~/ran $(git rev-parse HEAD) > rewritten; cd ../..";
            let uses = "zsh -fc 'autoload -Uz vcs_info; vcs_info'";
            let said = is_only_without(world, script, uses, |_| ran.exists());
            assert!(said.contains("rebase-apply/rewritten.sbx-aside"), "{said}");
        }
    });
}

/// In a directory that did not change, of a repository that the search does not come to.
#[test]
fn a_state_is_looked_at_wherever_it_is() {
    in_repositories(|world| {
        let deep = "1/2/3";
        let state = format!("{deep}/.git/rebase-merge");
        plain(
            world,
            &format!(
                "mkdir -p $(seq -f 1/wide%g 400); git init -q {deep}; mkdir {state}; echo 1 > {state}/msgnum; cp -r {state} {deep}/.git/x"
            ),
        );
        shell(world, &[], &format!("touch {deep}/.git/y")).run().success();
        for _ in 0..20 {
            if records(world).contains(deep) {
                break;
            }
            shell(world, &["-q"], "sleep 1").run().success();
        }
        let out = shell(world, &[], &format!("echo 'a[$(x)]' > {state}/msgnum")).run().success();
        assert!(out.err().contains("rebase-merge/msgnum.sbx-aside"), "{out}");
        assert!(!world.exists(format!("{state}/msgnum")));
    });
}

/// What is recorded of workspaces.
fn records(world: &World) -> String {
    let all = world.home.join(".local/state/sbx/workspaces").read_dir().unwrap().flatten();
    all.map(|entry| String::from_utf8(fs::read(entry.path()).unwrap()).unwrap()).collect()
}

/// The command stops in the middle, and the user goes on outside.
#[test]
fn what_git_leaves_is_gone_on_with() {
    in_repositories(|world| {
        let made =
            "git switch -qc side HEAD~1; for n in 1 2; do echo side$n >> file; git commit -qam side$n; done";
        let goes_on = "git checkout -q --theirs file; git add file; GIT_EDITOR=true git";
        for (stops, goes_on) in [
            ("git rebase main", format!("{goes_on} rebase --skip")),
            ("git rebase --apply main", format!("{goes_on} rebase --skip")),
            ("git rebase -r --autostash main", format!("{goes_on} rebase --skip")),
            (
                "GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -i HEAD~2",
                "git rebase --continue".into(),
            ),
            ("git switch -q main; git cherry-pick side~1 side", format!("{goes_on} cherry-pick --skip")),
            ("git switch -q main; git merge side", format!("{goes_on} merge --continue")),
            ("git revert HEAD~1 HEAD", format!("{goes_on} revert --skip")),
            (
                "git format-patch -q -o p main..side; git switch -q main; git am -3 p/*",
                format!("{goes_on} am --skip"),
            ),
            (
                "git worktree add -q tree main; cd tree; git merge side",
                format!("cd tree; {goes_on} merge --continue"),
            ),
        ] {
            plain(world, &format!("rm -rf ~/kept; cp -r . ~/kept; {made}; mkdir -p .git/rr-cache"));
            let out =
                shell(world, &[], &format!("({stops}) 2>/dev/null || true; git status | head -3")).run();
            assert!(!out.err().contains("sbx-aside"), "{stops}: {out}");
            plain(world, &format!("{goes_on} >/dev/null 2>&1 || git status"));
            let left = plain(world, "find .git -name '*.sbx-aside*'");
            assert_eq!(left, "", "{stops}");
            plain(world, "find . -mindepth 1 -delete; cp -r ~/kept/. .");
        }
    });
}

/// A strategy is a program, and git looks for one with a slash in the working tree. `git-merge-octopus` has the shell
/// evaluate an option, `git-merge-resolve` has git write what one names.
#[test]
fn git_merges_by_no_program_and_no_option_of_the_commands() {
    in_repositories(|world| {
        let ran = world.home.join("ran");
        let made = "git switch -qc side HEAD~1; echo side >> file; git commit -qam side1; echo x > x; git add x; \
                    git commit -qm side2; mkdir git-merge-evil; G=git-merge-evil/x; \
                    printf '#!/bin/sh\\ntouch ~/ran; exit 1\\n' > $G; chmod +x $G";
        let rebase = "git rebase main >/dev/null 2>&1 || true; cd .git/rebase-merge";
        let pick =
            "git switch -q main; git cherry-pick side~1 side >/dev/null 2>&1 || true; cd .git/sequencer";
        let set = "git config -f opts --add options.strategy";
        let evaluated = "`touch${IFS}$HOME/ran`";
        for (stops, leaves, goes_on, aside) in [
            (rebase, "echo evil/x > strategy".to_string(), "rebase", "rebase-merge/strategy"),
            (
                rebase,
                format!("echo octopus > strategy; echo '\"\" \"a\" \"{evaluated}\" b' > strategy_opts"),
                "rebase",
                "rebase-merge/strategy_opts",
            ),
            (
                rebase,
                "echo resolve > strategy; echo index-output=$HOME/ran > strategy_opts".to_string(),
                "rebase",
                "rebase-merge/strategy_opts",
            ),
            (pick, format!("{set} evil/x"), "cherry-pick", "sequencer/opts"),
            (
                pick,
                format!("{set} octopus; for o in '' a '{evaluated}' b; do {set}-option \"$o\"; done"),
                "cherry-pick",
                "sequencer/opts",
            ),
        ] {
            plain(world, "rm -rf ~/kept; cp -r . ~/kept");
            let script = format!("{made}; {stops}; {leaves}; cd ../..");
            let uses = format!("git {goes_on} --skip >/dev/null 2>&1 || true");
            let said = is_only_without(world, &script, &uses, |_| ran.exists());
            assert!(said.contains(&format!("{aside}.sbx-aside")), "{leaves}: {said}");
            plain(world, "rm -f ~/ran; find . -mindepth 1 -delete; cp -r ~/kept/. .");
        }
    });
}

/// The twin: git goes on by the strategies and options that the user has chosen.
#[test]
fn strategies_of_gits_own_stay() {
    in_repositories(|world| {
        let made =
            "git switch -qc side HEAD~1; for n in 1 2; do echo side$n >> file; git commit -qam side$n; done";
        let pick = "git switch -q main; git cherry-pick";
        for (stops, at, left) in [
            ("git rebase -s ort main".to_string(), "rebase-merge/strategy*", "ort"),
            ("git rebase -s resolve main".to_string(), "rebase-merge/strategy*", "resolve"),
            ("git rebase -X theirs --exec false main".to_string(), "rebase-merge/strategy_opts", "theirs"),
            ("git rebase -X 'subtree=a b' main".to_string(), "rebase-merge/strategy_opts", "subtree=a b"),
            (format!("{pick} --strategy=resolve side~1 side"), "sequencer/opts", "strategy = resolve"),
            (
                format!("{pick} --strategy=recursive -X 'subtree=a b' -X patience side~1 side"),
                "sequencer/opts",
                "strategy-option = patience",
            ),
            (
                format!("{pick} -x -s --edit --allow-empty --cleanup=scissors side~1 side"),
                "sequencer/opts",
                "default-msg-cleanup = scissors",
            ),
        ] {
            plain(world, &format!("rm -rf ~/kept; cp -r . ~/kept; {made}"));
            let script = format!("export GIT_EDITOR=true; ({stops}) >/dev/null 2>&1 || true");
            let out = shell(world, &[], &script).run().success();
            assert!(!out.err().contains("sbx-aside"), "{stops}: {out}");
            let kept = plain(world, &format!("cat .git/{at}"));
            assert!(kept.contains(left), "{stops}: {kept}");
            plain(world, "find . -mindepth 1 -delete; cp -r ~/kept/. .");
        }
    });
}

/// `hg recover` removes, cuts and replaces whatever files a transaction names.
#[test]
fn hg_takes_nothing_back_outside_of_a_repository() {
    need!("hg");
    in_repositories(|world| {
        let victim = world.outside.join("victim");
        let file = victim.display();
        plain(world, "hg init r; cd r; echo a > a; hg add -q a; hg commit -q -u me -m a");
        let begun =
            ": > store/journal; for f in dirstate branch desc bookmarks; do cp undo.$f journal.$f; done";
        let away = format!("ln -s {} store/away", world.outside.display());
        let restores = |name: &str| format!(r"printf '2\nplain\0{name}\0\0000\n'");
        let recovers = format!("echo orig > {file}; cd r; hg recover -q || hg rollback -q || true");
        for (script, aside) in [
            (format!("{begun}; {} > store/journal.backupfiles", restores(&file.to_string())), "journal"),
            (
                format!("{begun}; {away}; {} > store/journal.backupfiles", restores("store/away/victim")),
                "journal",
            ),
            (format!("{} > store/undo.backupfiles", restores(&file.to_string())), "undo"),
        ] {
            plain(world, "rm -rf ~/kept; cp -r . ~/kept");
            let is_gone = |_: &Path| !victim.exists();
            let said = is_only_without(world, &format!("(cd r/.hg; {script})"), &recovers, is_gone);
            assert!(said.contains(&format!("(store/{aside}.backupfiles)")), "{script}: {said}");
            plain(world, "find . -mindepth 1 -delete; cp -r ~/kept/. .");
        }
        // What hg itself leaves stays: it takes that back.
        let out = shell(world, &[], "cd r; echo b > a; HGPLAIN=1 hg commit -q -u me -m b").run().success();
        assert_eq!(out.err(), "");
        plain(world, "cd r; hg rollback -q");
        assert_eq!(plain(world, "cd r; hg log --template '{desc}'; find . -name '*.sbx-aside*'"), "a");
    });
}
