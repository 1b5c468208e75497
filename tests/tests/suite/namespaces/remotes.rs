//! Remotes on this machine: `git push` has git execute the hooks of the repository that it finds there.

use super::aftermath::{in_directories, planted};
use super::git::plain;
use super::pointers::{begin_anew, evil, executes, keeps_home};
use super::{names, shell};
use sbx_tests::World;

const PUSH: &str = "cd c && git push origin HEAD:refs/heads/new";
/// A repository of the command's own, in the directory `c`.
const MADE: &str = "git init -q c; git -C c commit -q --allow-empty -m y";

/// Only where nobody looks has the script of a run git execute something, by a file or directory of this name.
#[track_caller]
fn leads_nowhere(world: &World, flags: &[&str], script: &str, name: &str) {
    let out = shell(world, flags, &planted(world, script)).run().success();
    assert!(out.err().contains("sbx-aside"), "{script}: {out}");
    assert!(!executes(world, PUSH), "{script}: {out}");
    plain(world, &format!("rm -rf {name}; mv {name}.sbx-aside {name}"));
    assert!(executes(world, PUSH), "{script}");
}

/// Where a configuration has no address, git looks for one in two directories.
#[test]
fn no_file_names_a_remote_of_a_new_repository() {
    in_directories(|world| {
        let _kept = keeps_home(world, &world.workspace);
        for (name, write) in [
            ("remotes", "echo \"URL: $H/evil\" > c/.git/remotes/origin"),
            ("branches", "echo $H/evil > c/.git/branches/origin"),
            ("remotes", "rmdir c/.git/remotes; echo \"URL: $H/evil\" > ~/origin; ln -s $H c/.git/remotes"),
        ] {
            begin_anew(world);
            let script = format!("{}; {MADE}; mkdir -p c/.git/{name}; {write}", evil());
            leads_nowhere(world, &[], &script, &format!("c/.git/{name}"));
        }
        // An empty one, as some versions of git make it, stays.
        begin_anew(world);
        shell(world, &[], &format!("{MADE}; mkdir -p c/.git/branches")).run().success().silent();
    });
}

/// git writes nothing there, whatever other remotes a repository has.
#[test]
fn no_new_file_names_a_remote_of_a_known_repository() {
    in_directories(|world| {
        let _kept = keeps_home(world, &world.workspace);
        let push = |branch: &str| format!("git push fork HEAD:refs/heads/{branch}");
        for (name, text) in [("remotes", "URL: $H/evil"), ("branches", "$H/evil")] {
            begin_anew(world);
            plain(
                world,
                &format!("git remote add origin /nowhere; mkdir -p .git/{name}; echo x > .git/{name}/mine"),
            );
            plain(world, "sleep 0.05");
            shell(world, &[], "true").run().success().silent();
            let write = format!("{}; echo \"{text}\" > .git/{name}/fork", evil());
            let said = shell(world, &[], &planted(world, &write)).run().success().err();
            let file = format!(".git/{name}/fork");
            assert!(said.contains(&format!("{file}.sbx-aside")) && !executes(world, &push("one")), "{said}");
            plain(world, &format!("mv {file}.sbx-aside {file}"));
            assert!(executes(world, &push("two")));
        }
    });
}

/// Commands write in the caches of a workspace too, and nobody looks there.
#[test]
fn a_new_repository_pushes_into_no_cache() {
    in_directories(|world| {
        begin_anew(world);
        let evil = evil().replace("~/", "$XDG_CACHE_HOME/").replace("GIT=$HOME", "GIT=$XDG_CACHE_HOME");
        let (_, evil) = evil.split_once("; test").unwrap();
        let evil = format!("set -e; H=$XDG_CACHE_HOME; test{evil}");
        let script = format!("{evil}; {MADE}; git -C c remote add origin $H/evil");
        leads_nowhere(world, &["--home", "closed"], &script, "c/.git/config");
    });
}

/// What is at the path of a remote may be another thing in a later run.
#[test]
fn no_remote_leads_into_a_home_later() {
    in_directories(|world| {
        let _kept = keeps_home(world, &world.workspace);
        for (url, leads, name) in [
            ("$PWD/up", "ln -s $H/evil/.git up", "up"),
            ("$PWD/up", "echo \"gitdir: $H/evil/.git\" > up.git", "up.git"),
            ("$PWD/up/evil", "ln -s $H up", "up"),
        ] {
            begin_anew(world);
            let first = format!("{MADE}; git -C c remote add origin {url}");
            shell(world, &[], &first).run().success().silent();
            leads_nowhere(world, &[], &format!("{}; {leads}", evil()), name);
        }
        // A repository of the user's, with a relative one.
        begin_anew(world);
        plain(world, &format!("{MADE}; git -C c remote add origin ../up"));
        shell(world, &["-q"], "true").run().success();
        leads_nowhere(world, &[], &format!("{}; ln -s $H/evil up", evil()), "up");
    });
}

/// To look where a path leads takes its time.
#[test]
fn a_new_repository_has_few_remotes_on_this_machine() {
    in_directories(|world| {
        begin_anew(world);
        let add = |count: usize| {
            format!("{MADE}; for n in $(seq {count}); do git -C c remote add r$n $PWD/bare$n; done")
        };
        shell(world, &[], &add(16)).run().success().silent();
        plain(world, "rm -rf c");
        let out = shell(world, &[], &add(17)).run().success();
        assert!(out.err().contains("remote.r17.url: put aside"), "{out}");
        let kept = world.read("c/.git/config").unwrap();
        assert!(kept.contains("bare16") && !kept.contains("bare17"), "{kept}");
        // In many repositories, nobody asks for all of them.
        let script = "for r in $(seq 40); do mkdir -p many/$r/.git; for n in $(seq 16); do \
                      printf '[remote \"r%s\"]\n\turl = %s/%s/%s\n' $n $PWD $r $n; done > many/$r/.git/config; done";
        shell(world, &[], script).run().success().says("remote.r16.url");
        let all = names(&world.path("many"));
        let left: usize = all.iter().map(|name| names(&world.path(format!("many/{name}/.git"))).len()).sum();
        assert!(left > 40, "{left}");
    });
}
