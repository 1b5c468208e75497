//! `workspace`, the default: a developer's or an agent's day in one directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use sbx_tests::command::Cmd;
use sbx_tests::servers::HttpServer;
use sbx_tests::tools::PATH;
use sbx_tests::{User, World, as_users, in_worlds, kernel, need, promise, skip};

const PYTHON: &str = "/usr/bin/python3";

/// A shell script under the default profile.
fn shell(world: &World, script: &str) -> Cmd {
    world.sbx(["run", "--", "bash", "-ec", script])
}

#[test]
fn git_makes_and_shows_history() {
    need!("git", "bash");
    as_users(|user| {
        let world = World::new(user);
        world.write(world.home.join(".gitconfig"), "[user]\nname = A Tester\nemail = a@example.org\n");
        let script = "git init -q . && git add -A && git commit -qm first && echo more > file && git commit -qam second \
                      && git branch side && git checkout -q side && git log --oneline | wc -l && git status --short";
        world.write("file", "text\n");
        shell(&world, script).run().success().silent().prints("2\n");
        world.bare(["git", "fsck", "--strict"]).run().success();
        let world = World::new(user);
        world.write("file", "text\n");
        let control =
            world.bare(["bash", "-ec", script]).env("GIT_AUTHOR_NAME", "x").env("GIT_COMMITTER_NAME", "x");
        control.env("EMAIL", "x@example.org").run().success().prints("2\n");
    });
}

#[test]
fn make_and_gcc_build_and_the_result_runs() {
    need!("make", "gcc");
    in_worlds(|world| {
        world.write("main.c", "#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n");
        world.write("Makefile", "run: prog\n\t./prog\nprog: main.c\n\tgcc -O1 -o $@ $<\n");
        world.sbx(["run", "--", "make", "-s", "-j2"]).run().success().silent().prints("built\n");
    });
}

#[test]
fn cargo_builds_and_tests_a_crate_offline() {
    let Some(sysroot) = sysroot() else { return skip("needs rustc") };
    let user = User::current();
    let world = World::new(&user);
    world.write("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    world.write("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n");
    world.write("src/main.rs", "fn main() {\n    println!(\"tiny\");\n}\n");
    let path = format!("{}/bin:{PATH}", sysroot.display());
    let cargo = |words: &[&str]| {
        let front = ["run", "--rox", sysroot.to_str().unwrap(), "--", "cargo"];
        world.sbx([&front[..], words].concat()).env("PATH", &path).run().success()
    };
    cargo(&["build", "-q", "--offline"]);
    cargo(&["run", "-q", "--offline"]).prints("tiny\n");
    let out = cargo(&["test", "--offline"]);
    assert!(out.out().contains("1 passed"), "{out}");
    assert!(out.sbx_lines().is_empty(), "{out}");
}

/// cargo looks for a repository with libgit2, and makes one where it finds none.
#[test]
fn cargo_finds_the_repository_that_a_new_crate_is_in() {
    need!("git");
    let Some(sysroot) = sysroot() else { return skip("needs rustc") };
    let world = World::new(&User::current());
    world.bare(["git", "init", "-q"]).run().success();
    let path = format!("{}/bin:{PATH}", sysroot.display());
    let front = ["run", "--rox", sysroot.to_str().unwrap(), "--", "cargo"];
    world.sbx([&front[..], &["new", "-q", "made"]].concat()).env("PATH", &path).run().success();
    assert!(world.exists("made/Cargo.toml") && !world.exists("made/.git"));
    // The same where there is no repository.
    let world = World::new(&User::current());
    world.sbx([&front[..], &["new", "-q", "made"]].concat()).env("PATH", &path).run().success();
    assert!(world.exists("made/.git"));
}

/// Where the toolchain is: the proxies of a toolchain manager need a home of their own.
fn sysroot() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

#[test]
fn node_and_npm_run() {
    need!("node", "npm");
    in_worlds(|world| {
        let program = "const fs = require('fs'); fs.writeFileSync('made', 'x'); \
                       console.log([1,2,3].map(x => x * 2).join())";
        world.sbx(["run", "--", "node", "-e", program]).run().success().silent().prints("2,4,6\n");
        assert!(world.exists("made"));
        world.write(
            "package.json",
            r#"{"name": "p", "version": "1.0.0", "scripts": {"test": "node -p 6*7"}}"#,
        );
        let out = world.sbx(["run", "--", "npm", "run", "--silent", "test"]).run().success();
        assert_eq!(out.out(), "42\n", "{out}");
    });
}

#[test]
fn a_virtual_environment_with_pytest_works() {
    let module = Cmd::new(PYTHON).args(["-c", "import pytest, ensurepip, venv"]).run();
    if module.code != Some(0) {
        return skip("needs python3-pytest and python3-venv");
    }
    in_worlds(|world| {
        world.write(
            "test_it.py",
            "def test_tmp(tmp_path):\n    (tmp_path / 'f').write_text('x')\n    assert 1 + 1 == 2\n",
        );
        let script =
            format!("{PYTHON} -m venv --system-site-packages env && env/bin/python -m pytest -q test_it.py");
        let out = shell(world, &script).run().success();
        assert!(out.out().contains("1 passed"), "{out}");
    });
}

#[test]
fn virtual_environments_work_in_the_usual_places() {
    if Cmd::new(PYTHON).args(["-c", "import venv"]).run().code != Some(0) {
        return skip("needs python3-venv");
    }
    const KEPT: [&str; 3] = [".virtualenvs/v", ".local/share/virtualenvs/v", ".cache/pypoetry/virtualenvs/v"];
    in_worlds(|world| {
        let make = |place: &str| {
            let place = world.home.join(place).display().to_string();
            let made = Cmd::new(PYTHON).args(["-m", "venv", "--without-pip", &place]).user(&world.user);
            made.run().success();
            place
        };
        let prefix = |place: &str, flags: &[&str]| {
            let python = format!("{place}/bin/python -c 'import sys; print(sys.prefix)'");
            world.sbx([&["run"][..], flags, &["--", "sh", "-c", &python]].concat()).run()
        };
        for place in KEPT.map(make) {
            prefix(&place, &[]).success().prints(&format!("{place}\n"));
            // It may be used, not changed: something outside runs what is in it.
            world.sbx(["run", "--", "touch", &format!("{place}/bin/planted")]).run();
            assert!(!PathBuf::from(&place).join("bin/planted").exists());
        }
        let elsewhere = make("environments/v");
        prefix(&elsewhere, &[]).failed();
        prefix(&elsewhere, &["--rox", &elsewhere]).success().prints(&format!("{elsewhere}\n"));
    });
}

#[test]
fn shells_have_all_their_features() {
    need!("bash");
    in_worlds(|world| {
        let same = |script: &str| {
            let plain = world.bare(["bash", "-ec", script]).run().success();
            shell(world, script).run().success().silent().prints(&plain.out());
        };
        same("diff <(printf 'a\\nb\\n') <(printf 'a\\nb\\n') && echo equal");
        same("seq 5 | grep -v 3 | paste -sd+ | tee made | sed 's/+/ + /g'");
        same("(sleep 0.05; echo late) & echo early; wait; echo done");
        same("for i in 1 2 3; do echo $i & wait $!; done; jobs");
        same("cat <<END\nhere\nEND");
        same("exec 3> out; echo x >&3; exec 3>&-; cat out");
        same("trap 'echo leaving' EXIT; (exit 3) || echo $?");
        same("umask 077; touch private; stat -c %a private; rm private");
        same("ulimit -n; ulimit -c");
        same("kill -0 $$ && sleep 100 & kill $!; wait $! || echo $?");
        same("mkfifo pipe; (echo through > pipe) & cat pipe; wait; rm pipe");
        same("coproc cat; echo x >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l");
        same("xargs -P2 -n1 echo <<< 'a' | sort");
        same("[ -n \"$HOME\" ] && [ -n \"$PATH\" ] && [ -n \"$TERM\" ] && pwd");
        same("set -m; sleep 0.01 & fg >/dev/null; echo back");
        same("timeout 5 echo quick; nohup echo on 2>/dev/null; nice echo nicer");
    });
}

#[test]
fn pythons_standard_library_works() {
    in_worlds(|world| {
        let programs = [
            "import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))",
            "from multiprocessing import shared_memory as s; x = s.SharedMemory(create=True, size=8); x.close(); \
             x.unlink()",
            "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))",
            "import socket; s = socket.socket(socket.AF_UNIX); s.bind('own'); s.listen(); c = socket.socket(socket.AF_UNIX); \
             c.connect('own')",
            "import asyncio; asyncio.run(asyncio.sleep(0)); print('slept')",
            "import subprocess as s; print(s.run(['echo', 'x'], capture_output=True).stdout)",
            "import tempfile, os; d = tempfile.mkdtemp(); open(d + '/f', 'w').close(); print(os.listdir(d))",
            "import pty, os; p, t = pty.openpty(); os.write(t, b'x'); print(os.read(p, 1))",
            "import os; print(os.sched_getaffinity(0) != set(), os.getsid(0) != 0, os.cpu_count() > 0)",
            "import mmap; m = mmap.mmap(-1, 4096); m[:1] = b'x'; print(m[:1])",
        ];
        for program in programs {
            let out = world.sbx(["run", "--", PYTHON, "-c", program]).run().success();
            assert!(out.sbx_lines().is_empty(), "{out}");
        }
    });
}

#[test]
fn a_link_left_by_a_command_opens_nothing_outside() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        world.run("workspace", ["ln", "-s", "../../outside", "out"]).run().success();
        world.make_dir(&world.path("own"));
        world.run("workspace", ["ln", "-s", "own", "in"]).run().success();
        let named = |path: &str| {
            world.write(
                "p.json",
                format!(r#"{{ "extends": "minimal", "paths": {{ "read": ["${{WORKSPACE}}/{path}"] }} }}"#),
            );
            world.run("./p.json", ["cat", "readme"]).run()
        };
        world.write("readme", "text\n");
        let alias = world.home.join("alias");
        std::os::unix::fs::symlink(&world.workspace, &alias).unwrap();
        let deep = world.home.join("deep");
        std::os::unix::fs::symlink(world.path("own"), &deep).unwrap();
        let planted = "ln -s ../../../outside own/out && echo text > own/file";
        world.run("workspace", ["sh", "-c", planted]).run().success();
        for flag in ["--ro", "--rox", "--rw", "--rwx"] {
            let opened =
                |path: &str| world.sbx(["run", "-p", "write", flag, path, "--", "cat", "readme"]).run();
            opened("out").refused(125, &["leads out of the workspace"]);
            opened("in").success();
            // The workspace by another name.
            let by = |path: &str| {
                let path = alias.join(path).into_os_string();
                let command = ["--", "cat", "readme"].map(Into::into);
                let words = ["run", "-p", "write", "--workspace"].map(std::ffi::OsString::from);
                let flags = [alias.clone().into(), flag.into(), path];
                world.sbx(words.into_iter().chain(flags).chain(command)).run()
            };
            by("out").refused(125, &["leads out of the workspace"]);
            by("in").success();
            by(world.outside.to_str().unwrap()).success();
            // A directory of it by another name.
            opened(deep.join("out").to_str().unwrap()).refused(125, &["leads out of the workspace"]);
            opened(deep.join("file").to_str().unwrap()).success();
            opened("own/../../../outside").success();
        }
        named("out").refused(125, &["leads out of the workspace"]);
        named("in").success();
        // A file to be executed may be a link to a program, and to nothing else.
        let secret = world.write(world.outside.join("secret"), "secret\n");
        let link =
            |name: &str, target: &str| world.run("workspace", ["ln", "-s", target, name]).run().success();
        link("tool", "../../outside/secret");
        link("program", "/usr/bin/true");
        let allowed = |name: &str, command: &[&str]| {
            let flags = ["run", "-q", "--allow-command", name, "--allow-command", "cat", "--"];
            world.sbx(flags).args(command).run()
        };
        allowed("./tool", &["cat", secret.to_str().unwrap()]).failed().prints("");
        allowed("./program", &["./program"]).success();
        allowed("./out", &["cat", "readme"]).refused(125, &["leads out of the workspace"]);
        allowed("./own", &["cat", "readme"]).success().prints("text\n");
    });
}

/// Swaps two names over and over, until there is a file `stop`.
const EXCHANGE: &str = "\
import ctypes, os, time
libc, end = ctypes.CDLL(None), time.monotonic() + 120
print('begun', flush=True)
while not os.path.exists('stop') and time.monotonic() < end:
    for _ in range(100): libc.renameat2(-100, b'data', -100, b'link', 2)
";

/// The command of another run, in the same directory, can rename as it likes while this one starts: a path that was
/// looked up is not looked up again.
#[test]
fn a_link_made_by_another_run_in_between_opens_nothing_outside() {
    need!("python3");
    as_users(|user| {
        promise!(kernel::PATHS);
        let world = World::new(user);
        world.write("data/file", "data\n");
        world.write("other/file", "other\n");
        world.write(world.outside.join("secrets/file"), "secret\n");
        std::os::unix::fs::symlink(world.outside.join("secrets"), world.path("link")).unwrap();
        let secret = world.outside.join("secrets/file");
        let secret = secret.to_str().unwrap();
        let flags: [&[&str]; 3] = [
            &["-p", "minimal", "--ro", "data"],
            &["--namespaces", "none", "--deny", "other"],
            &["--namespaces", "none", "--rw", "data"],
        ];
        let run = |flags: &[&str], file: &str| world.sbx(["run", "-q"]).args(flags).args(["--", "cat", file]);
        for flags in flags {
            run(flags, "data/file").run().success().prints("data\n");
            run(flags, secret).run().failed();
        }
        let other = world.sbx(["run", "-q", "--namespaces", "none", "--", PYTHON, "-c", EXCHANGE]).start();
        other.wait_for("begun");
        for flags in flags.iter().cycle().take(60) {
            // Some runs find the link and report it.
            run(flags, secret).run().prints("");
        }
        // Nor is the current directory another one by then.
        let inside = ["sh", "-c", "cd data || exit 0; for n in $(seq 20); do \"$@\"; done", "sh"];
        for _ in 0..4 {
            let out = world
                .bare(inside)
                .arg(sbx_tests::stage::sbx())
                .args(["run", "-q", "--", "cat", secret])
                .run();
            let stood_elsewhere = out.out() == "secret\n".repeat(20);
            assert!(out.out().is_empty() || stood_elsewhere, "{out}");
        }
        world.write("stop", "");
        other.wait().success();
    });
}

#[test]
fn the_home_directory_does_not_become_the_workspace_by_accident() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let home = world.home.to_str().unwrap();
        let make = |directory: &str| world.run("workspace", ["touch", "made"]).cwd(directory).run();
        make(home).says("because it is your home directory").failed();
        assert!(!world.home.join("made").exists());
        // Nor do the kernel's own file systems.
        for directory in ["/sys/fs/cgroup", "/proc/sys", "/dev/pts"] {
            make(directory).says("is not opened to the command as its workspace").failed();
        }
        make(world.path("").to_str().unwrap()).success();
        assert!(world.exists("made"));
    });
}

#[test]
fn settings_of_the_home_directory_do_not_become_the_workspace_by_accident() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let make = |directory: &Path| world.run("workspace", ["touch", "made"]).cwd(directory).run();
        for name in [".ssh", ".config", ".config/gh", ".config/nvim"] {
            let directory = world.home.join(name);
            world.make_dir(&directory);
            let hidden = name.split('/').next().unwrap();
            make(&directory)
                .says(&format!("programs keep settings and keys in '{}/{hidden}'", world.home.display()));
            assert!(!directory.join("made").exists());
        }
        let editor = world.home.join(".config/nvim");
        world.make_dir(&editor.join(".git"));
        make(&editor).success();
        assert!(editor.join("made").exists());
    });
}

#[test]
fn compiled_and_written_files_run_in_tmp_too() {
    in_worlds(|world| {
        let script =
            "printf '#!/bin/sh\\necho from tmp\\n' > \"$TMPDIR/s\"; chmod +x \"$TMPDIR/s\"; \"$TMPDIR/s\"";
        shell(world, script).run().success().prints("from tmp\n");
        let script =
            "cp /bin/echo ./mine; ./mine from here; f=$(mktemp); echo x > \"$f\"; cat \"$f\"; rm \"$f\"";
        shell(world, script).run().success().prints("from here\nx\n");
    });
}

#[test]
fn a_terminal_multiplexer_finds_a_place_for_its_socket() {
    need!("tmux");
    as_users(|user| {
        let script =
            "tmux -f /dev/null new-session -d 'sleep 5' && tmux list-sessions | wc -l; tmux kill-server";
        // The ordinary user of the suites has no login shell that tmux could start.
        shell(&World::new(user), script).env("SHELL", "/bin/sh").run().success().prints("1\n");
    });
}

#[test]
fn programs_that_change_their_user_may_ask_to_keep_capabilities_and_get_none() {
    need!("setpriv");
    in_worlds(|world| {
        let script = "setpriv --no-new-privs grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status | cut -f2";
        let none = "0000000000000000\n".repeat(3);
        shell(world, script).run().success().silent().prints(&none);
    });
}

#[test]
fn the_kernels_attack_surface_is_closed() {
    in_worlds(|world| {
        let attempt = world.subject("attempt");
        let attempt = attempt.to_str().unwrap();
        for (name, number) in [
            ("kcmp", libc::SYS_kcmp),
            ("bpf", libc::SYS_bpf),
            ("perf_event_open", libc::SYS_perf_event_open),
            ("userfaultfd", libc::SYS_userfaultfd),
            ("keyctl", libc::SYS_keyctl),
            ("add_key", libc::SYS_add_key),
            ("mount", libc::SYS_mount),
            ("umount2", libc::SYS_umount2),
            ("pivot_root", libc::SYS_pivot_root),
            ("setns", libc::SYS_setns),
            ("kexec_load", libc::SYS_kexec_load),
            ("init_module", libc::SYS_init_module),
            ("reboot", libc::SYS_reboot),
            ("swapon", libc::SYS_swapon),
            ("process_vm_writev", libc::SYS_process_vm_writev),
            ("open_by_handle_at", libc::SYS_open_by_handle_at),
            ("name_to_handle_at", libc::SYS_name_to_handle_at),
            ("clock_settime", libc::SYS_clock_settime),
            ("quotactl", libc::SYS_quotactl),
            ("acct", libc::SYS_acct),
        ] {
            let out = world.sbx(["run", "--", attempt, "syscall", &number.to_string()]).run().exited(1);
            let known = match name {
                // As where counters are closed to users.
                "perf_event_open" => ["errno 13 (Permission denied)\n"; 2],
                _ => ["errno 1 (Operation not permitted)\n", "errno 38 (Function not implemented)\n"],
            };
            assert!(known.contains(&out.out().as_str()), "{name}: {out}");
        }
    });
}

#[test]
fn loopback_of_the_host_is_not_reachable() {
    let server = HttpServer::start();
    in_worlds(|world| {
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}", server.port);
        shell(world, &script).run().failed();
        world.bare(["bash", "-c", &script]).run().success();
    });
    assert!(server.connections() <= 2);
}
