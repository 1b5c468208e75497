//! What a command moves, hands over or closes. A directory that is moved brings along what is older than the run; a
//! mount holds only who comes by its path; and permissions keep their owner from nothing.

use super::aftermath::{FSMONITOR, looked_at, planted};
use super::git::{in_repositories, plain};
use super::{in_namespaces, names, shell};
use sbx_tests::{World, as_users, need};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Writes an index with one repository in it: its commit, its path, the file.
const INDEX: &str = "import struct, hashlib, sys\n\
    path = sys.argv[2].encode()\n\
    entry = struct.pack('>10I', 0, 0, 0, 0, 0, 0, 0o160000, 0, 0, 0) + bytes.fromhex(sys.argv[1])\n\
    entry += struct.pack('>H', len(path)) + path\n\
    entry += bytes(8 - len(entry) % 8)\n\
    text = b'DIRC' + struct.pack('>2I', 2, 1) + entry\n\
    open(sys.argv[3], 'wb').write(text + hashlib.sha1(text).digest())\n";

#[test]
fn an_index_in_a_directory_that_is_moved_is_looked_at() {
    need!("python3");
    in_repositories(|world| {
        let evil = world.outside.join("evil");
        let made = "git init -q EVIL; cd EVIL; git commit -q --allow-empty -m one; GIT=.git";
        let made = made.replace("EVIL", evil.to_str().unwrap());
        plain(world, &planted(world, &format!("{made}; {FSMONITOR}")));
        let commit = plain(world, &format!("git -C {} rev-parse HEAD", evil.display()));
        world.write("index.py", INDEX);
        let (commit, up) = (commit.trim(), "../".repeat(20));
        let first = format!(
            "set -e; mkdir -p .git/prep/X; echo ../.. > .git/prep/X/commondir; echo $PWD/wt/.git > .git/prep/X/gitdir; \
             python3 index.py {commit} {up}{} .git/prep/X/index; sleep 0.1; git add index.py",
            evil.strip_prefix("/").unwrap().display()
        );
        let second = "set -e; mkdir .git/worktrees wt; mv .git/prep/X .git/worktrees/X; git branch wt; \
                      echo 'ref: refs/heads/wt' > .git/worktrees/X/HEAD; \
                      echo gitdir: $PWD/.git/worktrees/X > wt/.git; \
                      git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),wt";
        // The twin: git goes there, where nobody looks.
        plain(world, &format!("cp -r . ../twin; cd ../twin; {first}; {second}"));
        assert!(looked_at(world, "../twin"));
        shell(world, &[], &first).run().success();
        let out = shell(world, &[], second).run().success();
        assert!(!looked_at(world, "."), "{out}");
        let put = "worktrees/X/index', and git outside would follow it: put aside as '/";
        assert!(out.err().contains(put), "{out}");
    });
}

#[test]
fn links_in_a_directory_that_is_moved_are_put_aside() {
    in_repositories(|world| {
        let precious = world.home.join("precious");
        world.write(&precious, "mine\n");
        let first = "set -e; I=$(printf %040d 7); mkdir -p prep/rr-cache/$I; sleep 0.1; \
                     ln -s ~/precious prep/rr-cache/$I/thisimage; sleep 0.1";
        let out = shell(world, &[], first).run().success();
        let said = shell(world, &[], "mv prep/rr-cache .git/rr-cache").run().success();
        assert!(said.err().contains("rr-cache"), "{out}\n{said}");
        let resolution = world.path(format!(".git/rr-cache/{:040}", 7));
        assert!(!resolution.join("thisimage").is_symlink(), "{said}");
        // A file that git itself would have put there stays.
        let first = "mkdir -p prep/x; echo x > prep/x/thisimage";
        shell(world, &[], first).run().success();
        shell(world, &[], "mv prep/x .git/rr-cache/").run().success();
        assert_eq!(world.read(".git/rr-cache/x/thisimage").as_deref(), Some("x\n"));
    });
}

/// Without namespaces nothing keeps a directory from the place of `.git`.
#[test]
fn a_directory_in_the_place_of_a_repository_is_another_one() {
    need!("git", "bash");
    as_users(|user| {
        let world = &World::new(user);
        plain(world, "git init -q .; git config core.pager mine; echo x > x; git add x");
        let flags = ["--namespaces", "none"];
        let first = format!(
            "set -e; mkdir -p evil/objects evil/refs evil/hooks; cp .git/config evil/config; GIT=evil; {FSMONITOR}; \
             printf '#!/bin/sh\\nPLANTED\\n' > evil/hooks/post-index-change; chmod +x evil/hooks/*; sleep 0.1"
        );
        let second = "set -e; cp -r .git/objects/. evil/objects/; cp -r .git/refs/. evil/refs/; \
                      cp .git/index .git/HEAD evil/; mv .git .old; mv evil .git";
        plain(world, &planted(world, &format!("cp -r . ../twin; cd ../twin; {first}; {second}")));
        assert!(looked_at(world, "../twin"));
        shell(world, &flags, &planted(world, &first)).run().success();
        let out = shell(world, &flags, second).run().success();
        assert!(!looked_at(world, "."), "{out}");
        assert_eq!(plain(world, "git config core.pager"), "mine\n", "{out}");
        let said = out.err();
        assert!(said.contains("core.fsmonitor") && said.contains("hooks/post-index-change"), "{out}");
    });
}

/// A directory that another run had open before it was protected, or that protects nothing.
#[test]
fn what_changes_behind_a_mount_is_named_and_a_new_hook_is_put_aside() {
    need!("git", "bash", "python3");
    in_namespaces(|world| {
        // The one that is moved there is older than the run.
        world.write("prep/post-merge", "");
        let giving = "import os, socket, time\n\
            os.system('git init -q .')\n\
            print('made', flush=True)\n\
            while not os.path.exists('s'): time.sleep(0.02)\n\
            s = socket.socket(socket.AF_UNIX); s.connect('s')\n\
            both = [os.open(name, os.O_RDONLY) for name in ('.git/hooks', 'prep')]\n\
            socket.send_fds(s, [b'x'], both)\n";
        let taking = "import os, socket, time\n\
            s = socket.socket(socket.AF_UNIX); s.bind('s.'); s.listen(1); os.rename('s.', 's')\n\
            hooks, prep = socket.recv_fds(s.accept()[0], 10, 2)[1]\n\
            print('taken', flush=True)\n\
            while not os.path.exists('go'): time.sleep(0.02)\n\
            hook = os.open('pre-commit', os.O_CREAT | os.O_WRONLY, 0o755, dir_fd=hooks)\n\
            os.write(hook, b'#!/bin/sh\\n')\n\
            os.rename('post-merge', 'post-merge', src_dir_fd=prep, dst_dir_fd=hooks)\n";
        let gives = world.sbx(["run", "--", "python3", "-c", giving]).start();
        gives.wait_for("made");
        let takes = world.sbx(["run", "--report", "report.json", "--", "python3", "-c", taking]).start();
        takes.wait_for("taken");
        gives.wait().success();
        world.write("go", "");
        let out = takes.wait().success();
        assert!(!world.exists(".git/hooks/pre-commit"), "{out}");
        let line = format!("'{}' during the run", world.path(".git/hooks").display());
        assert!(
            out.err().contains("something outside replaced or changed") && out.err().contains(&line),
            "{out}"
        );
        let report: Value = serde_json::from_str(&world.read("report.json").unwrap()).unwrap();
        let finding = &report["findings"][0];
        assert_eq!(finding["kind"], "file-replaced", "{report}");
        assert_eq!(finding["names"], serde_json::json!(["post-merge", "pre-commit"]), "{report}");
        let aside = serde_json::json!(["post-merge.sbx-aside", "pre-commit.sbx-aside"]);
        assert_eq!(finding["put_aside"], aside, "{report}");
        // What was there, nobody is told of.
        let out = shell(world, &[], "git status >/dev/null").run().success();
        assert_eq!(out.own_lines(), [""; 0], "{out}");
    });
}

/// In memory a write through a mapping changes no time of a file.
#[test]
fn an_index_in_memory_is_always_looked_at() {
    need!("git", "bash", "python3");
    in_namespaces(|world| {
        let place = Path::new("/dev/shm").join(format!("sbx-index-{}-{}", std::process::id(), world.user.id));
        world.make_dir(&place);
        let at = place.to_str().unwrap();
        let run =
            |words: [&str; 3]| world.sbx(["run", "--workspace", at, "--cwd", at, "--"]).args(words).run();
        let made =
            "git init -q .; mkdir -p Agit/hooks; echo x > Agit/hooks/pre-commit; git add Agit; sleep 0.1";
        run(["bash", "-ec", made]).success();
        let script = "import hashlib, mmap\n\
            file = open('.git/index', 'r+b')\n\
            text = mmap.mmap(file.fileno(), 0)\n\
            new = text[:-20].replace(b'Agit', b'.git')\n\
            text[:] = new + hashlib.sha1(new).digest()\n";
        let out = run(["python3", "-c", script]);
        fs::remove_dir_all(&place).unwrap();
        assert!(out.success().err().contains("index.sbx-aside'; 'git reset'"));
    });
}

#[test]
fn a_closed_directory_keeps_nothing_from_being_put_aside() {
    in_repositories(|world| {
        let made = "git init -q sub; echo x > sub/x; git -C sub add x; GIT=sub/.git";
        let script = format!("set -e; {made}; {FSMONITOR}; chmod 555 sub/.git");
        let out = shell(world, &[], &planted(world, &script)).run().success();
        assert!(!looked_at(world, "sub"), "{out}");
        assert!(out.err().contains("put aside there as config.sbx-aside"), "{out}");
    });
    as_users(|user| {
        let world = &World::new(user);
        plain(world, "git init -q .; echo x > x; git add x");
        let hook = "printf '#!/bin/sh\\nPLANTED\\n' > .git/hooks/post-index-change; chmod +x .git/hooks/*";
        let script = format!("set -e; GIT=.git; {FSMONITOR}; {hook}; chmod 555 .git .git/hooks");
        let out = shell(world, &["--namespaces", "none"], &planted(world, &script)).run().success();
        assert!(!looked_at(world, "."), "{out}");
        let hooks = names(&world.path(".git/hooks"));
        assert!(hooks.iter().any(|name| name == "post-index-change.sbx-aside"), "{out}");
    });
}

/// A `.git` may be a link to a directory in the workspace.
#[test]
fn a_repository_behind_a_link_is_put_back_without_namespaces() {
    need!("git", "bash");
    as_users(|user| {
        let world = &World::new(user);
        plain(world, "git init -q .; echo x > x; git add x; mv .git real; ln -s real .git; sleep 0.1");
        let script = format!("set -e; GIT=.git; {FSMONITOR}");
        let out = shell(world, &["--namespaces", "none"], &planted(world, &script)).run().success();
        assert!(!looked_at(world, "."), "{out}");
        assert!(fs::symlink_metadata(world.path(".git")).unwrap().is_symlink());
        plain(world, "git diff --cached --quiet || git status >/dev/null");
    });
}
