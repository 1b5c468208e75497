//! What leads git outside astray in its own directories: it writes into no file there, and goes into no directory, that
//! a command has chosen.

use super::aftermath::{FSMONITOR, looked_at, planted};
use super::git::{in_repositories, plain};
use super::pointers::keeps_home;
use super::shell;
use super::states::is_only_without;
use sbx_tests::World;
use std::fs;
use std::path::Path;

#[test]
fn no_number_of_links_hides_those_that_git_follows() {
    in_repositories(|world| {
        let precious = world.home.join("precious");
        let known = ["COMMIT_EDITMSG", "MERGE_MSG", "SQUASH_MSG", "FETCH_HEAD", "ORIG_HEAD", "TAG_EDITMSG"];
        let links = known.map(|name| format!("ln -sf ~/precious .git/{name}")).join("; ");
        let script = format!(
            "{links}; python3 -c 'import itertools, os\n\
             for name in itertools.product(\"ABCDE\", repeat=6): os.symlink(\"x\", \".git/\" + \"\".join(name))'"
        );
        let uses = "rm -f ~/precious; touch ~/precious; git commit -q --allow-empty -m message";
        let said = is_only_without(world, &script, uses, |_| fs::read_to_string(&precious).unwrap() != "");
        let all = world.path(".git").read_dir().unwrap().flatten().filter(|entry| entry.path().is_symlink());
        let left = all.filter(|entry| !entry.file_name().to_string_lossy().contains(".sbx-aside"));
        assert_eq!(left.count(), 0, "{said}");
    });
}

/// A log gets the names of whoever commits and of branches, which a command chooses.
#[test]
fn git_appends_to_nothing_by_a_link_for_a_log() {
    in_repositories(|world| {
        let precious = world.home.join("precious");
        for log in ["logs/HEAD", "logs/refs/heads/$(git symbolic-ref --short HEAD)"] {
            let script = format!("rm -f .git/{log}; ln -s ~/precious .git/{log}");
            let uses = "rm -f ~/precious; touch ~/precious; git commit -q --allow-empty -m y";
            let said =
                is_only_without(world, &script, uses, |_| fs::read_to_string(&precious).unwrap() != "");
            assert!(said.contains(".sbx-aside"), "{said}");
        }
    });
}

/// Whatever git writes, it writes through a link: the names of branches into `packed-refs`, a number into `gc.pid`.
#[test]
fn git_writes_through_no_link_of_the_command() {
    in_repositories(|world| {
        let precious = world.home.join("precious");
        let object = "echo known | git hash-object -t blob";
        for (script, uses) in [
            (
                "mkdir -p .git/objects/refs/heads; ln -s ~/precious .git/objects/refs/heads/p; \
                 rm -rf .git/objects/pack; ln -s refs/heads/p .git/objects/pack"
                    .to_string(),
                "git repack -q -a -d".to_string(),
            ),
            (
                "git branch 'b;x'; rm -f .git/packed-refs; ln -s ~/precious/refs .git/packed-refs"
                    .to_string(),
                "git pack-refs --all".to_string(),
            ),
            ("ln -s ~/precious/pid .git/gc.pid".to_string(), "git gc -q --force".to_string()),
            ("ln -s ~/precious .git/refs/new".to_string(), "git update-ref refs/new/x HEAD".to_string()),
            (
                "mkdir .git/refs/more; ln -s ~/precious .git/refs/more/x; chmod 311 .git/refs/more"
                    .to_string(),
                "git update-ref refs/more/x/y HEAD; chmod -f 755 .git/refs/more .git/more.sbx-aside || true"
                    .to_string(),
            ),
            (
                "rm -rf .git/info; ln -s ~/precious .git/info".to_string(),
                "git update-server-info".to_string(),
            ),
            (
                "O=$(echo x | git hash-object -w --stdin); mkdir -p .git/lost-found/other; \
                 ln -s ~/precious/x .git/lost-found/other/$O"
                    .to_string(),
                "git fsck --lost-found".to_string(),
            ),
            (
                "rm -f .git/objects/info/commit-graph; ln -s ~/precious/graph .git/objects/info/commit-graph"
                    .to_string(),
                "git commit-graph write --reachable".to_string(),
            ),
            (
                format!("ln -s ~/precious .git/objects/$({object} --stdin | cut -c 1-2)"),
                format!("{object} -w --stdin"),
            ),
        ] {
            let uses = format!("rm -rf ~/precious; mkdir ~/precious; {uses}");
            let written = |_: &Path| fs::read_dir(&precious).unwrap().next().is_some();
            let said = is_only_without(world, &script, &uses, written);
            assert!(said.contains(".sbx-aside"), "{said}");
        }
    });
}

/// A link that says which ref is meant is read, and not followed.
#[test]
fn a_link_that_stands_for_a_ref_stays() {
    in_repositories(|world| {
        let script = "git branch other; git symbolic-ref refs/heads/too refs/heads/other; \
                      ln -sf refs/heads/other .git/HEAD; ln -s refs/heads/other .git/refs/heads/alias; \
                      git rev-parse alias >&2";
        let said = shell(world, &[], script).run().success().err();
        assert!(!said.contains("sbx: "), "{said}");
        assert!(world.path(".git/HEAD").is_symlink() && world.path(".git/refs/heads/alias").is_symlink());
        plain(
            world,
            "test $(git symbolic-ref HEAD) = refs/heads/other; git rev-parse -q --verify refs/heads/too",
        );
    });
}

/// A ref that stands for `commondir` has git write the name of a directory there, whose settings it obeys from then on.
#[test]
fn git_writes_through_no_ref_that_stands_for_a_file() {
    in_repositories(|world| {
        let own = ".git/commondir";
        for (script, uses, file) in [
            ("echo 'ref: commondir' > .git/ORIG_HEAD", "git merge -q HEAD", own),
            ("printf 'ref:commondir' > .git/refs/heads/y", "git branch -f y HEAD", own),
            ("ln -s ~/other .git/sub; echo 'ref: sub/x' > .git/ORIG_HEAD", "git merge -q HEAD", ".git/sub/x"),
            (
                "git worktree add -q tree 2>/dev/null; echo 'ref: commondir' > .git/worktrees/tree/ORIG_HEAD",
                "cd tree; git merge -q HEAD",
                own,
            ),
        ] {
            plain(world, "mkdir -p ~/other; rm -f ~/other/x");
            let said = is_only_without(world, script, &format!("rm -f ~/other/x; {uses}"), |tree| {
                tree.join(file).exists()
            });
            assert!(said.contains("HEAD.sbx-aside") || said.contains("y.sbx-aside"), "{said}");
        }
    });
}

/// A repository of a submodule has its files in the same working tree, and gets there over no link.
#[test]
fn no_submodule_has_its_files_elsewhere() {
    in_repositories(|world| {
        plain(world, "mkdir ~/victim");
        let victim = world.home.join("victim");
        for (leads, worktree) in [(":", "../../../../victim"), ("ln -s .git out", "../../../out/hooks/in")] {
            let script = format!(
                "{leads}; X=$(mktemp -d); git init -q $X; (cd $X; echo evil > f; git add f; git commit -qm m); \
                 mkdir -p .git/modules n; cp -r $X/.git .git/modules/sm; rm -rf .git/modules/sm/hooks; \
                 git config -f .git/modules/sm/config core.worktree {worktree}; echo gitdir: ../.git/modules/sm > n/.git"
            );
            let uses = "rm -f ~/victim/f; mkdir -p .git/hooks/in; (cd n; git reset -q --hard) || true";
            let written = |tree: &Path| victim.join("f").exists() || tree.join(".git/hooks/in/f").exists();
            let said = is_only_without(world, &script, uses, written);
            assert!(said.contains("config.sbx-aside"), "{said}");
            plain(world, "rm -rf .git/modules n out");
        }
    });
}

/// The same of a submodule of the user's whose working tree is gone, by a link that a later run changes.
#[test]
fn no_link_takes_the_place_of_a_submodule() {
    in_repositories(|world| {
        let up = "git init -q ~/up; cd ~/up; echo evil > f; git add f; git commit -qm m";
        plain(
            world,
            &format!(
                "mkdir ~/victim; ({up}); git -c protocol.file.allow=always submodule -q add ~/up sub; \
                               git commit -qm sub; rm -rf sub; mkdir sub"
            ),
        );
        let first = "rmdir sub; ln -s n sub; mkdir n; echo gitdir: ../.git/modules/sub > n/.git";
        let said = shell(world, &[], first).run().success().err();
        assert!(said.contains("there as .git.sbx-aside"), "{said}");
        shell(world, &[], "rm sub; ln -s ../victim sub").run().success();
        plain(world, "(cd n; git reset -q --hard) || true");
        assert!(!world.home.join("victim/f").exists());
        // The control.
        plain(
            world,
            "rm -rf sub; ln -s ../victim sub; mv n/.git.sbx-aside n/.git; (cd n; git reset -q --hard)",
        );
        assert!(world.home.join("victim/f").exists());
    });
}

/// Where links lead to, git goes into submodules: into the home of a run as well, where nobody looks.
#[test]
fn no_submodule_is_in_the_home_of_a_run() {
    in_repositories(|world| {
        let _kept = keeps_home(world, &world.workspace);
        let ran = world.outside.join("ran");
        let planted = format!(
            "H=$(awk -v at=$HOME '$5 == at {{ home = $4 }} END {{ print home }}' /proc/self/mountinfo); \
             mkdir -p ~/e/sub; git init -q ~/e/sub; git -C ~/e/sub commit -q --allow-empty -m x; \
             git -C ~/e/sub config core.fsmonitor 'touch {}; false'; ID=$(git -C ~/e/sub rev-parse HEAD)",
            ran.display()
        );
        let gitlink = "printf '[submodule \"s\"]\n\tpath = in/sub\n\turl = ./s\n' > .gitmodules; git add .gitmodules; \
                       git update-index --add --cacheinfo 160000,$ID,in/sub; git config submodule.s.active true";
        let looks = || {
            plain(world, "git ls-files --recurse-submodules >/dev/null 2>&1 || true");
            fs::remove_file(&ran).is_ok()
        };
        for scripts in [
            vec![format!("{planted}; ln -s $H/e in; {gitlink}")],
            vec![
                format!("mkdir in; ID=$(git rev-parse HEAD); {gitlink}"),
                format!("{planted}; rmdir in; ln -s $H/e in"),
            ],
            // Over a link of /proc, which leads each process elsewhere.
            vec![format!("{planted}; ln -s /proc/self/root$H/e in; {gitlink}")],
            vec![format!("{planted}; ln -s /proc/self/cwd/../../../../../../../..$H/e in; {gitlink}")],
        ] {
            let said: String = scripts.iter().map(|script| shell(world, &[], script).run().err()).collect();
            assert!(said.contains("index.sbx-aside") && !looks(), "{said}");
            // The control: it is what the index says.
            plain(world, "mv .git/index.sbx-aside .git/index; mv in.sbx-aside in");
            assert!(looks(), "{said}");
            plain(world, "rm -rf in .gitmodules; git reset -q --hard; git config --unset submodule.s.active");
        }
    });
}

/// git writes the file that leads to a linked worktree's directory wherever that is said to be.
#[test]
fn no_linked_worktree_is_in_a_directory_of_the_users() {
    in_repositories(|world| {
        plain(world, "mkdir ~/victim");
        let script = "mkdir -p .git/worktrees/w; echo ../.. > .git/worktrees/w/commondir; \
                      cp .git/HEAD .git/worktrees/w; echo $HOME/victim/.git > .git/worktrees/w/gitdir";
        let uses = "rm -f ~/victim/.git; git worktree repair 2>/dev/null || true";
        let written = |_: &Path| world.home.join("victim/.git").exists();
        let said = is_only_without(world, script, uses, written);
        assert!(said.contains("worktrees/w/gitdir.sbx-aside"), "{said}");
        // Relative to where git is started, and where a later run puts a link.
        for (first, second) in
            [("echo ../victim/.git", "true"), ("echo $PWD/out/.git", "ln -s ../victim out")]
        {
            plain(world, "rm -rf .git/worktrees");
            let first = format!(
                "mkdir -p .git/worktrees/w; echo ../.. > .git/worktrees/w/commondir; \
                 cp .git/HEAD .git/worktrees/w; {first} > .git/worktrees/w/gitdir"
            );
            let said =
                [&first, second].map(|script| shell(world, &[], script).run().success().err()).concat();
            assert!(said.contains("worktrees/w/gitdir.sbx-aside"), "{said}");
            plain(world, uses);
            assert!(!written(Path::new("")), "{said}");
        }
        plain(world, "rm -rf .git/worktrees out");
        // One that git has made stays, also where nothing is outside.
        for place in ["tree", "~/other"] {
            let out = shell(world, &[], &format!("git worktree add -q {place}")).run().success();
            assert!(!out.err().contains("sbx-aside"), "{out}");
        }
        plain(world, "git -C tree status");
    });
}

/// What one run leaves of the repository of a submodule, the next one protects: it has been looked at by then.
#[test]
fn no_submodule_is_put_together_in_two_runs() {
    in_repositories(|world| {
        let own = ".git/modules/n";
        let first =
            format!("mkdir -p {own}/objects; echo ref: refs/heads/x > {own}/HEAD; GIT={own}; {FSMONITOR}");
        let second = format!(
            "mkdir -p {own}/refs/heads n; cp -r .git/objects/. {own}/objects; git rev-parse HEAD > {own}/refs/heads/x; \
             echo gitdir: ../.git/modules/n > n/.git; cp .git/index {own}/index"
        );
        let said = shell(world, &[], &planted(world, &first)).run().success().err();
        shell(world, &[], &second).run().success();
        assert!(said.contains("config.sbx-aside") && !looked_at(world, "n"), "{said}");
        // The control.
        plain(
            world,
            &format!("mv {own}/config.sbx-aside {own}/config; test -e n/.git || mv n/.git.sbx-aside n/.git"),
        );
        assert!(looked_at(world, "n"), "{said}");
    });
}

/// A link leads a user, or a prompt, into a repository that nobody looks at.
#[test]
fn no_link_leads_into_the_home_of_a_run() {
    in_repositories(|world| {
        let _kept = keeps_home(world, &world.workspace);
        let script = format!(
            "H=$(awk -v at=$HOME '$5 == at {{ home = $4 }} END {{ print home }}' /proc/self/mountinfo); \
             git init -q ~/sub; git -C ~/sub commit -q --allow-empty -m x; (cd ~/sub; GIT=.git; {FSMONITOR}); \
             mkdir in; ln -s $H/sub in/vendor; ln -s $PWD/in other; ln -s in/vendor more"
        );
        let said = shell(world, &[], &planted(world, &script)).run().success().err();
        assert!(
            said.contains("in/vendor.sbx-aside'; rename it back") && !looked_at(world, "in/vendor"),
            "{said}"
        );
        assert!(world.path("other").exists() && !world.path("more").exists(), "{said}");
        // The control.
        plain(world, "mv in/vendor.sbx-aside in/vendor");
        assert!(looked_at(world, "in/vendor"), "{said}");
        // A link that stays is on the way, old or new.
        let script = "H=$(awk -v at=$HOME '$5 == at { home = $4 } END { print home }' /proc/self/mountinfo); \
                      test -e top || ln -s / top; ln -s top$H/sub through; ln -s /dev/stdout stream";
        for _ in 0..2 {
            let said = shell(world, &[], script).run().success().err();
            assert!(world.path("top").exists() && world.path("stream").is_symlink(), "{said}");
            assert!(!world.path("through").is_symlink() && said.contains("/through.sbx-aside'"), "{said}");
            plain(world, "mv through.sbx-aside through; rm stream");
            assert!(looked_at(world, "through"), "{said}");
            plain(world, "rm through");
        }
    });
}

/// By another name of the file, a later run would write what mounts protect by the one.
#[test]
fn no_configuration_has_two_names() {
    in_repositories(|world| {
        let said = shell(world, &[], "git init -q n; ln n/.git/config name").run().success().err();
        assert!(said.contains("config.sbx-aside"), "{said}");
        shell(world, &[], &planted(world, &format!("mkdir x; GIT=x; {FSMONITOR}; cat x/config > name")))
            .run()
            .success();
        assert!(!looked_at(world, "n"), "{said}");
        plain(world, "git -C n config core.bare");
        plain(world, "mv n/.git/config.sbx-aside n/.git/config");
        assert!(looked_at(world, "n"), "{said}");
    });
}

/// `git am` hands on flags that it has kept, and one of them names a file to write.
#[test]
fn git_am_writes_no_file_by_a_flag() {
    in_repositories(|world| {
        let precious = world.home.join("precious");
        plain(
            world,
            "echo four >> file; git commit -qam four; git format-patch -q -1; git reset -q --hard HEAD~1; \
                      echo other >> file; git commit -qam other; cat 0001* 0001* > patches; rm 0001*",
        );
        let script = "git am patches >/dev/null 2>&1 || true; \
                      printf \" '--build-fake-ancestor=$HOME/precious'\" > .git/rebase-apply/apply-opt";
        let uses = "rm -f ~/precious; git am --skip >/dev/null 2>&1 || true";
        let said = is_only_without(world, script, uses, |_| precious.exists());
        assert!(said.contains("apply-opt.sbx-aside"), "{said}");
        // Those that git writes stay.
        plain(world, "git am --abort");
        let out = shell(world, &[], "git am -C1 --whitespace=nowarn --directory=x patches").run();
        assert!(!out.err().contains("sbx-aside"), "{out}");
    });
}

/// A repository outside, with the same names in it each time.
const VICTIM: &str = "export GIT_AUTHOR_DATE=@1700000000 GIT_COMMITTER_DATE=@1700000000; rm -rf ~/victim; \
                      git init -q ~/victim; for n in 1 2 3; do git -C ~/victim commit -q --allow-empty -m $n; done; \
                      git -C ~/victim commit-graph write --reachable --split; git -C ~/victim repack -adq; \
                      unset GIT_AUTHOR_DATE GIT_COMMITTER_DATE";

/// The only file with this end in a directory of that repository, without the end.
fn of_victim(world: &World, directory: &str, end: &str) -> String {
    let all = world.home.join("victim/.git").join(directory).read_dir().unwrap().flatten();
    let names = all.map(|entry| entry.file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(end).map(str::to_string)).next().unwrap()
}

/// Puts a pack of another directory into an index of packs, in which git finds no object of it. It writes to the file
/// that is there: the directory looks as before.
const OTHER_PACK: &str = "\
import struct, hashlib, sys, os
name = '.git/objects/pack/multi-pack-index'
old = open(name, 'rb').read()
rows = [(old[12 + i * 12:16 + i * 12], struct.unpack('>Q', old[16 + i * 12:24 + i * 12])[0]) for i in range(old[6] + 1)]
chunks = {kind: old[begin:end] for (kind, begin), (_, end) in zip(rows, rows[1:]) if kind != b'RIDX'}
packs = [b'../../../../victim/.git/objects/pack/' + sys.argv[1].encode()] + chunks[b'PNAM'].rstrip(b'\\0').split(b'\\0')
chunks[b'OOFF'] = b''.join(struct.pack('>II', p + 1, o) for p, o in struct.iter_unpack('>II', chunks[b'OOFF']))
names = b'\\0'.join(packs) + b'\\0'
chunks[b'PNAM'] = names + b'\\0' * (-len(names) % 4)
at, table = 12 + 12 * (len(chunks) + 1), b''
for kind, chunk in chunks.items():
    table += kind + struct.pack('>Q', at)
    at += len(chunk)
new = old[:6] + bytes([len(chunks), old[7]]) + struct.pack('>I', len(packs)) + table + bytes(4) + struct.pack('>Q', at)
new += b''.join(chunks.values())
os.chmod(name, 0o644)
open(name, 'wb').write(new + hashlib.sha1(new).digest())
";

#[test]
fn git_removes_no_packs_of_another_repository() {
    in_repositories(|world| {
        plain(world, VICTIM);
        let pack = of_victim(world, "objects/pack", ".idx");
        plain(
            world,
            "for n in 1 2; do git commit -q --allow-empty -m $n; git repack -dq; done; git multi-pack-index write",
        );
        world.write("other.py", OTHER_PACK);
        let uses = format!("{VICTIM}; git multi-pack-index expire || true");
        let is_gone = |_: &Path| !world.home.join(format!("victim/.git/objects/pack/{pack}.pack")).exists();
        let said = is_only_without(world, &format!("python3 other.py {pack}.idx"), &uses, is_gone);
        assert!(said.contains("multi-pack-index.sbx-aside"), "{said}");
    });
}

#[test]
fn git_takes_no_commit_graph_of_another_repository() {
    in_repositories(|world| {
        plain(world, VICTIM);
        let graph = of_victim(world, "objects/info/commit-graphs", ".graph");
        let other =
            format!("{}/../../../../../../victim/.git/objects/info/commit-graphs/{graph}", &graph[6..]);
        let script = format!(
            "D=.git/objects/info/commit-graphs; mkdir -p $D/{graph}; echo {other} > $D/commit-graph-chain"
        );
        let uses = format!("{VICTIM}; git commit-graph write --reachable --split=no-merge");
        let place = world.home.join(format!("victim/.git/objects/info/commit-graphs/{graph}.graph"));
        let said = is_only_without(world, &script, &uses, |_| !place.exists());
        assert!(said.contains("commit-graph-chain.sbx-aside"), "{said}");
        // As git writes it.
        plain(world, "rm -rf .git/objects/info/commit-graphs");
        shell(world, &[], "git commit-graph write --reachable --split").run().success().silent();
    });
}

/// By alternates git outside would copy what the command may not read to where it may.
#[test]
fn git_reads_no_objects_of_another_repository() {
    in_repositories(|world| {
        plain(world, VICTIM);
        let victim = world.home.join("victim/.git/objects");
        let borrow =
            format!("mkdir -p .git/objects/info; echo {} > .git/objects/info/alternates", victim.display());
        let found =
            |tree: &Path| tree.join(".git/lost-found/commit").read_dir().is_ok_and(|all| all.count() > 0);
        let uses = "git fsck --lost-found >/dev/null 2>&1 || true";
        let said = is_only_without(world, &borrow, uses, found);
        assert!(said.contains("alternates.sbx-aside"), "{said}");
        // Over a link that came later. What leads to the workspace stays, as does what was there before.
        plain(world, "git clone -q -s ~/victim borrowed; mkdir a; git clone -q -s . own");
        shell(world, &[], "echo $PWD/a > .git/objects/info/alternates; git clone -q -s . copy")
            .run()
            .success()
            .silent();
        for place in ["borrowed", "own", "copy"] {
            assert!(world.exists(format!("{place}/.git/objects/info/alternates")), "{place}");
        }
        let said = is_only_without(world, "rm -rf a; ln -s ~/victim/.git/objects a", uses, |tree| {
            tree != world.workspace || found(tree)
        });
        assert!(said.contains("alternates.sbx-aside"), "{said}");
        // The user's, in a clone made anew since the run before.
        plain(world, &format!("{borrow}; rm -f a; mkdir a"));
        shell(world, &["-q"], "git commit -q --allow-empty -m own; git gc -q; true").run();
        assert!(world.read(".git/objects/info/alternates").unwrap().contains("victim"));
    });
}
