//! Submodules of a workspace with more directories than a search gets through: their repositories are known, and a look
//! at the end needs no search to find them.

use super::aftermath::{FSMONITOR, in_directories, looked_at, planted};
use super::git::{in_repositories, plain};
use super::pointers::{begin_anew, executes, keeps_home};
use super::shell;
use sbx_tests::World;

/// Submodules, one of them below another, and many directories beside them.
const WIDE: &str = "git init -q ../middle; cd ../middle; git submodule --quiet add ../library deep; git commit -qm middle; \
    cd - >/dev/null; mkdir -p $(seq -f wide/%g 6000); echo > wide/f; git add .; \
    git submodule --quiet add $PWD/../library third/lib; git submodule --quiet add $PWD/../middle mid; \
    git submodule --quiet update --init --recursive; git commit -qm wide";

/// Has the index `$INDEX` of the working tree `$TREE` lead git to a repository in the run's own home, by the name that
/// it has outside. The file is written over, so that no directory changes.
const LEADS: &str = "set -e; \
    H=$(sed -n \"s,^[^/]* \\(/[^ ]*/sbx/homes/[^ ]*\\) $HOME .*,\\1,p\" /proc/self/mountinfo); test -n \"$H\"; \
    git init -q ~/led; git -C ~/led commit -q --allow-empty -m x; C=$(git -C ~/led rev-parse HEAD); GIT=~/led/.git; \
    MONITOR; P=$H/led; N=$(printf %s $P | tr / X); cp $INDEX ~/index; \
    GIT_INDEX_FILE=$HOME/index git -C $TREE update-index --add --cacheinfo 160000,$C,$N; \
    python3 -c 'import hashlib, sys\n\
    source, to, old, new = sys.argv[1:]\n\
    text = open(source, \"rb\").read()[:-20].replace(old.encode(), new.encode())\n\
    open(to, \"r+b\").write(text + hashlib.sha1(text).digest())' ~/index $INDEX $N $P";

fn leads(world: &World, index: &str, tree: &str) -> String {
    planted(world, &format!("INDEX={index}; TREE={tree}; {}", LEADS.replace("MONITOR", FSMONITOR)))
}

#[test]
fn the_index_of_every_submodule_is_looked_at() {
    in_repositories(|world| {
        let _kept = keeps_home(world, &world.workspace);
        plain(world, WIDE);
        plain(world, "git worktree add -q ../tree topic; git worktree move ../tree tree");
        // Which ones there are is known in the first run, and in later ones.
        for _ in 0..2 {
            for (index, tree) in [
                (".git/modules/third/lib/index", "third/lib"),
                (".git/modules/mid/modules/deep/index", "mid/deep"),
                (".git/worktrees/tree/index", "tree"),
            ] {
                let out = shell(world, &[], &leads(world, index, tree)).run().success();
                assert!(!looked_at(world, ".") && !looked_at(world, tree), "{index}: {out}");
                let says = format!("{index}', and git outside would follow it: put aside as '/");
                assert!(out.err().contains(&says), "{index}: {out}");
                // The twin: it does, where nobody looks.
                plain(world, &format!("mv {index}.sbx-aside {index}"));
                assert!(looked_at(world, tree), "{index}");
                plain(world, &format!("rm {index}; git -C {tree} reset -q"));
            }
        }
        // What git goes on with, in a file that is written over.
        let state = ".git/modules/third/lib/rebase-merge";
        plain(world, &format!("mkdir {state}; echo 1 > {state}/msgnum"));
        shell(world, &["-q"], "true").run().success();
        shell(world, &["-q"], &format!("echo 2 > {state}/msgnum")).run().success();
        assert!(world.exists(format!("{state}/msgnum")));
        let out = shell(world, &[], &format!("echo 'a[$(x)]' > {state}/msgnum")).run().success();
        assert!(!world.exists(format!("{state}/msgnum")) && out.err().contains("msgnum.sbx-aside"), "{out}");
        plain(world, &format!("rm -r {state}"));
        // What git itself writes there stays.
        let honest = "cd third/lib; echo y > y; git add y; git commit -qm y; cd ../..; git add third; git commit -qm y";
        let out = shell(world, &[], honest).run().success();
        assert!(!out.err().contains("aside"), "{out}");
        plain(world, "git diff --quiet; git -C third/lib diff --quiet");
    });
}

/// A run with namespaces has recorded it.
#[test]
fn without_namespaces_the_configuration_of_a_submodule_is_put_back() {
    in_repositories(|world| {
        plain(world, WIDE);
        shell(world, &["-q"], "true").run().success();
        let script = planted(world, &format!("GIT=.git/modules/third/lib; {FSMONITOR}"));
        plain(world, &format!("cp -r .git/modules/third/lib/config ../config; {script}"));
        assert!(looked_at(world, "third/lib"));
        plain(world, "cp ../config .git/modules/third/lib/config");
        let out = shell(world, &["--namespaces", "none"], &script).run().success();
        assert!(!looked_at(world, "third/lib"), "{out}");
        assert!(out.err().contains("core.fsmonitor: put aside"), "{out}");
        plain(world, "cmp ../config .git/modules/third/lib/config");
        // An honest change stays.
        let honest = "git -C third/lib config user.name Somebody";
        let out = shell(world, &["--namespaces", "none"], honest).run().success();
        assert!(!out.err().contains("aside"), "{out}");
        plain(world, "test $(git -C third/lib config user.name) = Somebody");
    });
}

/// git goes into what an index names, whether a configuration speaks of it or not. In a short run no search gets there.
#[test]
fn a_repository_where_an_index_names_a_submodule_is_looked_at_however_deep_it_is() {
    in_repositories(|world| {
        plain(
            world,
            "mkdir -p $(seq -f wide/%g/a/b 300); echo > wide/7/a/b/f; git add .; git commit -qm wide",
        );
        shell(world, &["-q"], "true").run().success();
        let at = "wide/299/a/b/s";
        let name = format!("git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),{at}");
        let make =
            format!("git init -q {at}; git -C {at} commit -q --allow-empty -m x; GIT={at}/.git; {FSMONITOR}");
        // Another index has one, and a later run what the first one has named.
        let outer = format!(
            "git init -q {at}; git -C {at} commit -q --allow-empty -m x; I=$(git -C {at} rev-parse HEAD); \
             git -C {at} update-index --add --cacheinfo 160000,$I,t"
        );
        let inner = format!(
            "git init -q {at}/t; git -C {at}/t commit -q --allow-empty -m x; GIT={at}/t/.git; {FSMONITOR}"
        );
        for (scripts, at) in [
            (vec![format!("{name}; {make}")], at.to_string()),
            (vec![format!("mkdir {at}; {name}"), "true".into(), make], at.to_string()),
            (vec![format!("{name}; {outer}"), inner], format!("{at}/t")),
        ] {
            let run = |script: &String| shell(world, &[], &planted(world, script)).run().success().err();
            let said: String = scripts.iter().map(run).collect();
            let runs = || executes(world, "git status");
            assert!(said.contains("config.sbx-aside") && !runs(), "{said}");
            // The control.
            plain(world, &format!("mv {at}/.git/config.sbx-aside {at}/.git/config"));
            assert!(runs(), "{said}");
            plain(world, "git reset -q --hard; rm -rf wide/299/a/b/s");
        }
    });
}

/// An index with one entry: a directory that is not checked out, with the tree of `$1`.
const SPARSE: &str = "python3 -c 'import hashlib, sys\n\
    tree, name, to = sys.argv[1:]\n\
    entry = bytes(24) + (0o040000).to_bytes(4, \"big\") + bytes(12) + bytes.fromhex(tree)\n\
    entry += (0x4000 | len(name)).to_bytes(2, \"big\") + (0x4000).to_bytes(2, \"big\") + name.encode()\n\
    entry += bytes(8 - len(entry) % 8)\n\
    text = b\"DIRC\" + (3).to_bytes(4, \"big\") + (1).to_bytes(4, \"big\") + entry + b\"sdir\" + bytes(4)\n\
    open(to, \"wb\").write(text + hashlib.sha1(text).digest())'";

/// git takes what is in such a directory from an object, and finds submodules there too.
#[test]
fn an_index_names_no_submodule_in_a_directory_that_is_not_checked_out() {
    in_repositories(|world| {
        plain(
            world,
            "mkdir -p $(seq -f wide/%g/a/b 300); echo > wide/7/a/b/f; git add .; git commit -qm wide",
        );
        shell(world, &["-q"], "true").run().success();
        let at = "wide/299/a/b/s";
        let make =
            format!("git init -q {at}; git -C {at} commit -q --allow-empty -m x; GIT={at}/.git; {FSMONITOR}");
        // git reads such an index in a repository of which that is said.
        let name = format!(
            "git init -q n; cd n; git config core.sparseCheckout true; git config core.sparseCheckoutCone true; \
             mkdir -p $(seq -f wide/%g/a/b 300); git commit -q --allow-empty -m x; T=$(git rev-parse HEAD); \
             for P in s b a 299; do K=${{K:-160000 commit}}; T=$(printf \"$K $T\\t$P\\n\" | git mktree --missing); \
             K='040000 tree'; done; {SPARSE} $T wide/ .git/index"
        );
        let make = format!("cd n; {make}");
        let run = |script: &str| shell(world, &[], &planted(world, script)).run().success().err();
        let said = format!("{}{}", run(&name), run(&make));
        assert!(!looked_at(world, "n"), "{said}");
        assert!(said.contains("n/.git/index', and git outside would follow it: put aside"), "{said}");
        // The twin: it does, where nobody looks.
        plain(world, "rm -rf n");
        plain(world, &planted(world, &format!("{name}; cd ..; {make}")));
        assert!(looked_at(world, "n"));
        plain(world, "rm -rf n");
    });
}

/// Where the user has git write such indexes, they stay.
#[test]
fn an_index_without_all_files_stays_where_the_user_has_git_write_them() {
    in_repositories(|world| {
        plain(world, "mkdir -p in out; echo > in/f; echo > out/f; git add .; git commit -qm both");
        plain(world, "git sparse-checkout init --cone --sparse-index; git sparse-checkout set in");
        plain(world, "git ls-files --sparse | grep -q '^out/$'");
        let out = shell(world, &[], "echo x >> in/f; git add in/f; git commit -qm x").run().success();
        assert!(!out.err().contains("aside"), "{out}");
        plain(world, "git ls-files --sparse | grep -q '^out/$'; test -z \"$(git status --porcelain)\"");
    });
}

/// A clone without its submodules: the index that names them is older than all runs.
#[test]
fn nothing_is_planted_where_a_submodule_would_be() {
    in_directories(|world| {
        begin_anew(world);
        plain(
            world,
            "mkdir -p $(seq -f wide/%g 6000) third/party/libs/foo; C=$(git rev-parse HEAD); \
             git update-index --add --cacheinfo 160000,$C,third/party/libs/foo; git commit -qm sub; sleep 0.05",
        );
        shell(world, &["-q"], "true").run().success();
        let git = "third/party/libs/foo/.git";
        let plant = format!(
            "set -e; GIT={git}; mkdir $GIT $GIT/objects $GIT/refs; git rev-parse HEAD > $GIT/HEAD; {FSMONITOR}"
        );
        let out = shell(world, &[], &planted(world, &plant)).run().success();
        assert!(out.err().contains("config.sbx-aside") && !executes(world, "git status"), "{out}");
        plain(world, &format!("mv {git}/config.sbx-aside {git}/config"));
        assert!(executes(world, "git status"));
    });
}
