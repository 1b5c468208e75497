//! What leads git to a repository that nobody looks after: the run's own home has some, outside of every workspace, and
//! a clone may bring a bare one.

use super::aftermath::{FSMONITOR, in_directories, looked_at, planted};
use super::git::plain;
use super::{names, shell};
use sbx_tests::World;
use std::fs::{self, File};
use std::path::Path;

const ASIDE: &str = "sbx-aside";

/// `$H`: where the run's own home is outside. In it, a repository whose configuration and hook git would execute.
pub const EVIL: &str = "H=$(sed -n \"s,^[^/]* \\(/[^ ]*/sbx/homes/[^ ]*\\) $HOME .*,\\1,p\" /proc/self/mountinfo); \
    test -n \"$H\"; rm -rf ~/evil ~/all; git init -q ~/evil; GIT=$HOME/evil/.git; echo x > ~/evil/x; git -C ~/evil add x; \
    git -C ~/evil commit -qm x; printf '#!/bin/sh\\nPLANTED\\n' > $GIT/hooks/post-checkout; \
    cp $GIT/hooks/post-checkout $GIT/hooks/pre-receive; chmod +x $GIT/hooks/*";

/// Beside a run that uses the home. Its path outside stays then: otherwise nothing that a command plants would lead
/// there, and the twins show that it does.
pub fn keeps_home(world: &World, workspace: &Path) -> Vec<File> {
    shell(world, &["-q"], "true").cwd(workspace).run().success();
    let state = world.home.join(".local/state/sbx");
    fs::remove_dir_all(state.join("workspaces")).unwrap();
    let homes = state.join("homes").read_dir().unwrap().flatten();
    let used = homes.map(|home| File::open(home.path()).unwrap());
    used.inspect(|home| home.try_lock_shared().unwrap()).collect()
}

pub fn evil() -> String {
    format!("set -e; {EVIL}; {FSMONITOR}")
}

/// Whether somebody who acts outside executes something.
pub fn executes(world: &World, script: &str) -> bool {
    plain(world, &format!("({script}) >/dev/null 2>&1 || true"));
    fs::remove_file(world.outside.join("ran")).is_ok()
}

pub fn begin_anew(world: &World) {
    plain(world, "rm -rf ./* .git*; git init -q .; echo x > x; git add x; git commit -qm x");
}

/// Puts links of the working tree back: what git itself would follow has been put aside as well.
const LINKS_BACK: &str = "find . -name '*.sbx-aside' -type l -not -path '*/.git/*' -not -name '.git*' | \
                          while read -r link; do mv $link ${link%.sbx-aside}; done";

#[test]
fn a_file_or_link_leads_to_a_repository_of_the_workspace() {
    in_directories(|world| {
        let _kept = keeps_home(world, &world.workspace);
        for entry in [
            // git reads as far as the NUL, however much there is after it.
            "{ printf \"gitdir: $H/evil/.git\\0\"; head -c 5000 /dev/zero | tr '\\0' A; } > sub/.git",
            // Each process gets elsewhere by it.
            "git init -q good; git -C good commit -q --allow-empty -m x; ln -s good/.git p; \
             ln -s $H/evil/.git sub/p; echo 'gitdir: /proc/self/cwd/p' > sub/.git",
            "ln -s /proc/self/cwd/p sub/.git; ln -s $H/evil/.git sub/p",
            "echo \"gitdir: $H/evil/.git\" > sub/.git",
            // It was there under another name.
            "mv old sub/.git",
        ] {
            begin_anew(world);
            let first = format!("{}; echo \"gitdir: $H/evil/.git\" > old", evil());
            shell(world, &[], &planted(world, &first)).run().success();
            let script = format!("{}; mkdir sub; {entry}", EVIL.split(';').next().unwrap());
            let out = shell(world, &[], &planted(world, &script)).run().success();
            assert!(out.err().contains(ASIDE), "{entry}: {out}");
            plain(world, LINKS_BACK);
            assert!(!looked_at(world, "sub"), "{entry}: {out}");
            plain(world, "mv sub/.git.sbx-aside* sub/.git");
            assert!(looked_at(world, "sub"), "{entry}");
        }
        // It was there under another name, and leads to a repository of the user's that is none of this workspace.
        begin_anew(world);
        let theirs = world.outside.join("theirs").display().to_string();
        let make =
            format!("git init -q {theirs}; GIT={theirs}/.git; {FSMONITOR}; echo \"gitdir: $GIT\" > old");
        plain(world, &planted(world, &make));
        shell(world, &[], "true").run().success();
        let out = shell(world, &[], "mkdir sub; mv old sub/.git").run().success();
        assert!(
            out.err().contains("sub/.git") && out.err().contains(ASIDE) && !looked_at(world, "sub"),
            "{out}"
        );
        // What git makes leads where it may.
        begin_anew(world);
        let own = "git init -q --separate-git-dir=real sub; git worktree add -q tree; ln -s real moved; \
                   git -c protocol.file.allow=always submodule add -q ./ lib";
        let out = shell(world, &[], own).run();
        assert!(!out.err().contains(ASIDE), "{out}");
        plain(world, "git -C sub status; git -C tree status");
    });
}

/// What is not there yet, a run in another workspace may make.
#[test]
fn a_file_leads_to_something_that_is_there() {
    in_directories(|world| {
        begin_anew(world);
        let other = world.outside.join("other");
        world.make_dir(&other);
        let _kept = keeps_home(world, &other);
        let make = planted(world, &format!("{}; echo $H", evil()));
        let made = shell(world, &[], &make).cwd(&other).run().success();
        let home = made.out().trim().to_string();
        plain(world, &format!("mv {home}/evil {home}/later"));
        let lead = format!("mkdir sub; echo 'gitdir: {home}/evil/.git' > sub/.git");
        let out = shell(world, &[], &lead).run().success();
        assert!(out.err().contains(ASIDE), "{out}");
        shell(world, &[], "mv ~/later ~/evil").cwd(&other).run().success();
        assert!(!looked_at(world, "sub"));
        plain(world, "mv sub/.git.sbx-aside sub/.git");
        assert!(looked_at(world, "sub"));
    });
}

/// git follows a link in the place of a submodule's repository, and makes none there.
#[test]
fn no_link_stands_for_a_submodules_repository() {
    in_directories(|world| {
        let _kept = keeps_home(world, &world.workspace);
        for (place, tree) in [
            (".git/modules/lib", "."),
            (".git/modules", "."),
            // A git directory may have any name.
            ("store/modules/lib", "tree"),
            ("store/modules", "tree"),
            ("store/worktrees/other/modules/lib", "other"),
        ] {
            begin_anew(world);
            let update = format!("cd {tree}; rm -rf lib; git submodule update --init");
            let all = place.strip_suffix("/lib").unwrap_or(place);
            let link = match place.ends_with("lib") {
                false => format!("mkdir ~/all; mv ~/evil/.git ~/all/lib; ln -s $H/all {place}"),
                true => format!("mkdir -p {all}; ln -s $H/evil/.git {place}"),
            };
            let script = format!(
                "{}; git init -q --separate-git-dir=store tree; git -C tree commit -q --allow-empty -m x; \
                 git -C tree worktree add -q ../other; \
                 git -C {tree} update-index --add --cacheinfo 160000,$(git -C ~/evil rev-parse HEAD),lib; \
                 printf '[submodule \"lib\"]\\npath = lib\\nurl = https://127.0.0.1:9/x\\n' > {tree}/.gitmodules; \
                 {link}",
                evil()
            );
            let out = shell(world, &[], &planted(world, &script)).run().success();
            assert!(out.err().contains(ASIDE), "{place}: {out}");
            assert!(!executes(world, &update), "{place}: {out}");
            plain(world, &format!("rm -rf {place}; mv {place}.sbx-aside {place}"));
            assert!(executes(world, &update), "{place}");
        }
        // In a directory of that name that is none of git's a link stays.
        begin_anew(world);
        let out =
            shell(world, &[], "mkdir -p src/modules/x; ln -s .. src/modules/up; ln -s x src/modules/y").run();
        out.success().silent();
    });
}

/// A name may be as long as the file system takes.
#[test]
fn what_is_put_aside_has_a_name_that_there_is_room_for() {
    in_directories(|world| {
        for length in [100, 200, 240, 255] {
            begin_anew(world);
            let name = "n".repeat(length);
            let script = format!("{EVIL}; mkdir .git/modules; ln -s $H/evil/.git .git/modules/{name}");
            let out = shell(world, &[], &planted(world, &script)).run().success();
            let left = names(&world.path(".git/modules"));
            assert!(left.len() == 1 && left[0] != name && left[0].contains(ASIDE), "{left:?}: {out}");
        }
    });
}

/// A push runs the hooks of the repository that a path leads to.
#[test]
fn a_new_repository_pushes_nowhere_that_has_hooks() {
    in_directories(|world| {
        let _kept = keeps_home(world, &world.workspace);
        let push = "cd c && git push origin HEAD:refs/heads/new";
        for url in [
            "$H/evil",
            "file://$H/evil/.git",
            "./way",
            "../bare",
            "$PWD/../bare",
            // git expands the first, decodes the second, and finds `//localhost/...` by the third.
            "\"~/${H#$HOME/}/evil\"",
            "file://${H/local/loc%61l}/evil",
            "file://localhost$H/evil",
            // git tries more names, and follows files that lead to repositories.
            "$PWD/../led",
            "$PWD/../ending",
        ] {
            begin_anew(world);
            plain(world, "git init -q --bare bare");
            let hook = planted(world, "printf '#!/bin/sh\\nPLANTED\\n' > bare/hooks/pre-receive");
            plain(
                world,
                &format!("{hook}; chmod +x bare/hooks/pre-receive; touch -d 2001-01-01 bare/hooks/*"),
            );
            shell(world, &[], "true").run().success();
            let script = format!(
                "{}; git init -q c; cd c; echo y > y; git add y; git commit -qm y; ln -s $H/evil way; \
                 echo \"gitdir: $H/evil/.git\" > ../led; ln -s $H/evil ../ending.git; git remote add origin {url}",
                evil()
            );
            let out = shell(world, &[], &planted(world, &script)).run().success();
            assert!(out.err().contains("remote.origin.url"), "{url}: {out}");
            plain(world, LINKS_BACK);
            assert!(!executes(world, push), "{url}: {out}");
            plain(world, "cp c/.git/config.sbx-aside c/.git/config");
            assert!(executes(world, push), "{url}");
        }
        // To one without hooks, it does.
        begin_anew(world);
        let clone = "git init -q --bare up; git clone -q up c 2>/dev/null; cd c; echo y > y; git add y; git commit -qm y";
        let out = shell(world, &[], clone).run().success();
        assert!(!out.err().contains("remote.origin.url"), "{out}");
        plain(world, push);
    });
}
