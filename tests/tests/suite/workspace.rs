//! `workspace`, the default: a developer's or an agent's day in one directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use sbx_tests::command::Cmd;
use sbx_tests::servers::HttpServer;
use sbx_tests::tools::PATH;
use sbx_tests::{User, World, as_users, kernel, need, skip};

const PYTHON: &str = "/usr/bin/python3";

/// A shell script under the default profile.
fn shell(world: &World, script: &str) -> Cmd {
    world.sbx(["run", "--", "bash", "-ec", script])
}

#[test]
fn git_makes_and_shows_history() {
    if !need(&["git", "bash"]) {
        return;
    }
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
    if !need(&["make", "gcc"]) {
        return;
    }
    as_users(|user| {
        let world = World::new(user);
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

/// Where the toolchain lives: past the proxies of a toolchain manager, which want a home of their own.
fn sysroot() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

#[test]
fn node_and_npm_run() {
    if !need(&["node", "npm"]) {
        return;
    }
    as_users(|user| {
        let world = World::new(user);
        let program = "const fs = require('fs'); fs.writeFileSync('made', 'x'); console.log([1,2,3].map(x => x * 2).join())";
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
    as_users(|user| {
        let world = World::new(user);
        world.write(
            "test_it.py",
            "def test_tmp(tmp_path):\n    (tmp_path / 'f').write_text('x')\n    assert 1 + 1 == 2\n",
        );
        let script =
            format!("{PYTHON} -m venv --system-site-packages env && env/bin/python -m pytest -q test_it.py");
        let out = shell(&world, &script).run().success();
        assert!(out.out().contains("1 passed"), "{out}");
    });
}

#[test]
fn virtual_environments_work_where_tools_keep_them() {
    if Cmd::new(PYTHON).args(["-c", "import venv"]).run().code != Some(0) {
        return skip("needs python3-venv");
    }
    const KEPT: [&str; 3] = [".virtualenvs/v", ".local/share/virtualenvs/v", ".cache/pypoetry/virtualenvs/v"];
    as_users(|user| {
        let world = World::new(user);
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
            // To use, not to change: something outside runs what is in it.
            world.sbx(["run", "--", "touch", &format!("{place}/bin/planted")]).run().failed();
            assert!(!PathBuf::from(&place).join("bin/planted").exists());
        }
        let elsewhere = make("environments/v");
        prefix(&elsewhere, &[]).failed();
        prefix(&elsewhere, &["--rox", &elsewhere]).success().prints(&format!("{elsewhere}\n"));
    });
}

#[test]
fn shells_have_all_their_machinery() {
    if !need(&["bash"]) {
        return;
    }
    as_users(|user| {
        let world = World::new(user);
        let same = |script: &str| {
            let plain = world.bare(["bash", "-ec", script]).run().success();
            shell(&world, script).run().success().silent().prints(&plain.out());
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
fn pythons_machinery_works() {
    as_users(|user| {
        let world = World::new(user);
        let programs = [
            "import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))",
            "from multiprocessing import shared_memory as s; x = s.SharedMemory(create=True, size=8); x.close(); x.unlink()",
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
fn a_link_that_a_command_has_left_opens_nothing_outside() {
    if !kernel::promises(1) {
        return;
    }
    as_users(|user| {
        let world = World::new(user);
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
        // What is to be executed may be a link to a program, but to nothing else.
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

/// Has two names change places, over and over, until there is a file `stop`.
const EXCHANGE: &str = "\
import ctypes, os, time
libc, end = ctypes.CDLL(None), time.monotonic() + 120
print('begun', flush=True)
while not os.path.exists('stop') and time.monotonic() < end:
    for _ in range(100): libc.renameat2(-100, b'data', -100, b'link', 2)
";

/// The command of another run, in the same directory, can rename as it likes while this one starts: what was looked up
/// is not looked up again.
#[test]
fn a_link_that_another_run_puts_in_between_opens_nothing_outside() {
    if !need(&["python3"]) {
        return;
    }
    as_users(|user| {
        if !kernel::promises(1) {
            return;
        }
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
            // Some find the link and say so.
            run(flags, secret).run().prints("");
        }
        // Nor is the directory that somebody is in another one by then.
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
fn the_home_directory_is_no_workspace_by_accident() {
    if !kernel::promises(1) {
        return;
    }
    as_users(|user| {
        let world = World::new(user);
        let home = world.home.to_str().unwrap();
        let make = |directory: &str| world.run("workspace", ["touch", "made"]).cwd(directory).run();
        make(home).says("more than one project lives there").failed();
        assert!(!world.home.join("made").exists());
        // Nor is what the kernel shows of itself.
        for directory in ["/sys/fs/cgroup", "/proc/sys", "/dev/pts"] {
            make(directory).says("is not opened to the command as its workspace").failed();
        }
        make(world.path("").to_str().unwrap()).success();
        assert!(world.exists("made"));
    });
}

#[test]
fn compiled_and_written_files_run_in_tmp_too() {
    as_users(|user| {
        let world = World::new(user);
        let script =
            "printf '#!/bin/sh\\necho from tmp\\n' > \"$TMPDIR/s\"; chmod +x \"$TMPDIR/s\"; \"$TMPDIR/s\"";
        shell(&world, script).run().success().prints("from tmp\n");
        let script =
            "cp /bin/echo ./mine; ./mine from here; f=$(mktemp); echo x > \"$f\"; cat \"$f\"; rm \"$f\"";
        shell(&world, script).run().success().prints("from here\nx\n");
    });
}

#[test]
fn a_terminal_multiplexer_finds_a_place_for_its_socket() {
    if !need(&["tmux"]) {
        return;
    }
    as_users(|user| {
        let script =
            "tmux -f /dev/null new-session -d 'sleep 5' && tmux list-sessions | wc -l; tmux kill-server";
        // The account of an ordinary user of the suites has no shell that tmux could start.
        shell(&World::new(user), script).env("SHELL", "/bin/sh").run().success().prints("1\n");
    });
}

#[test]
fn programs_that_change_their_user_may_ask_to_keep_capabilities_and_have_none() {
    if !need(&["setpriv"]) {
        return;
    }
    as_users(|user| {
        let world = World::new(user);
        let script = "setpriv --no-new-privs grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status | cut -f2";
        let none = "0000000000000000\n".repeat(3);
        shell(&world, script).run().success().silent().prints(&none);
    });
}

#[test]
fn the_kernels_surface_is_closed() {
    as_users(|user| {
        let world = World::new(user);
        let attempt = world.subject("attempt");
        let attempt = attempt.to_str().unwrap();
        for (name, number) in [
            ("ptrace", libc::SYS_ptrace),
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
            let known = ["errno 1 (Operation not permitted)\n", "errno 38 (Function not implemented)\n"];
            assert!(known.contains(&out.out().as_str()), "{name}: {out}");
        }
    });
}

#[test]
fn loopback_of_the_host_is_not_reachable() {
    let server = HttpServer::start();
    as_users(|user| {
        let world = World::new(user);
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}", server.port);
        shell(&world, &script).run().failed();
        world.bare(["bash", "-c", &script]).run().success();
    });
    assert!(server.connections() <= 2);
}

#[test]
fn another_directory_can_be_the_workspace() {
    as_users(|user| {
        let world = World::new(user);
        let there = world.outside.to_str().unwrap();
        world.sbx(["run", "--workspace", there, "--cwd", there, "--", "touch", "made"]).run().success();
        assert!(world.outside.join("made").exists());
        let here = world.path("made").into_os_string().into_string().unwrap();
        world.sbx(["run", "--workspace", there, "--", "touch", &here]).run().failed();
        assert!(!world.exists("made"));
    });
}

#[test]
fn a_denied_path_below_an_allowed_one_holds() {
    as_users(|user| {
        let world = World::new(user);
        world.write("private/key", "hidden\n");
        world.write("public/page", "shown\n");
        let deny =
            |command: &[&str]| world.sbx([&["run", "--deny", "private", "--"], command].concat()).run();
        deny(&["cat", "private/key"]).failed().prints("");
        deny(&["ls", "private"]).failed().prints("");
        deny(&["touch", "private/made"]).failed();
        deny(&["mv", "private", "open"]).failed();
        deny(&["cat", "public/page"]).success().prints("shown\n");
        deny(&["touch", "public/made"]).success();
        assert_eq!(world.read("private/key").as_deref(), Some("hidden\n"));
        assert!(!world.exists("private/made") && world.exists("public/made"));
        deny(&["sh", "-c", "cd public && cat ../private/key"]).failed().prints("");
    });
}

#[test]
fn a_command_that_is_denied_is_named() {
    let world = World::new(&User::ordinary());
    world.script("private/script", "#!/bin/sh\necho ran\n");
    for denied in ["private", "private/script", "/bin/sh", "/"] {
        let run = world.sbx(["run", "--deny", denied, "--", "private/script"]).run();
        run.refused(126, &["cannot execute", "is denied"]).prints("");
    }
    for denied in ["/proc/self", "/proc/1/environ"] {
        let run = world.sbx(["run", "--deny", denied, "--", "true"]).run();
        run.refused(125, &["cannot deny '/proc/", "deny '/proc'"]);
    }
    world.sbx(["run", "--deny", "/proc", "--", "true"]).run().success();
    world.sbx(["run", "--deny", "/etc/hosts", "--", "private/script"]).run().success().prints("ran\n");
}

#[test]
fn a_flag_that_something_else_undoes_is_said_to_be() {
    let world = World::new(&User::ordinary());
    for name in ["private/key", "private/open/page", "notes/text"] {
        world.write(name, "text\n");
    }
    let said = |flags: &[&str]| {
        let out = world.sbx(["run"]).args(flags).args(["--", "cat", "notes/text"]).run().success();
        out.prints("text\n").err()
    };
    assert!(said(&["--ro", "notes"]).contains("'notes' can be changed although a flag names it for reading"));
    let denied = said(&["--deny", "private", "--rw", "private/open"]);
    assert!(denied.contains("'private/open' stays denied"), "{denied}");
    assert_eq!(said(&["--rw", "notes"]), "");
    assert_eq!(said(&["-p", "read-only", "--ro", "notes"]), "");
    // What the line advises.
    let advised = ["run", "-p", "read-only", "--rw", "private", "--", "sh", "-c"];
    world.sbx(advised).arg("echo more >> private/key").run().success();
    world.sbx(advised).arg("echo more >> notes/text").run().failed();
    assert_eq!(world.read("notes/text").as_deref(), Some("text\n"));
}

/// Around what is denied the rest is allowed one by one, which takes a list of it.
#[test]
fn around_a_denied_path_the_rest_has_to_be_known() {
    as_users(|user| {
        let world = World::new(user);
        world.write("closed/kept", "secret\n");
        world.write("closed/open", "text\n");
        let mode = |mode| fs::set_permissions(world.path("closed"), Permissions::from_mode(mode)).unwrap();
        let run = |more: &[&str]| {
            let front = ["run", "-q", "--namespaces", "none", "--deny", "closed/kept"];
            world.sbx([&front[..], more, &["--", "cat", "closed/open"]].concat()).run()
        };
        mode(0o311);
        if user.is_root() {
            run(&[]).success();
        } else {
            run(&[]).refused(125, &["cannot deny a path below", "closed"]);
        }
        mode(0o755);
        run(&[]).success().prints("text\n");
        run(&["--ro", "closed/kept", "--deny", "closed"]).failed().prints("");
    });
}

/// Rules are about files: one for another name beside a denied one would open it by its own.
#[test]
fn another_name_beside_a_denied_file_does_not_open_it() {
    as_users(|user| {
        let world = World::new(user);
        world.write("private/key", "hidden\n");
        world.write("private/page", "shown\n");
        fs::hard_link(world.path("private/key"), world.path("private/other")).unwrap();
        for more in [&[][..], &["--rw", "private/other"]] {
            let run = |command: &[&str]| {
                let front = ["run", "-q", "--namespaces", "none", "--deny", "private/key"];
                world.sbx([&front[..], more, &["--"], command].concat()).run()
            };
            run(&["cat", "private/key"]).failed().prints("");
            run(&["sh", "-c", "echo planted >> private/key"]).failed();
            run(&["cat", "private/other"]).failed().prints("");
            run(&["cat", "private/page"]).success().prints("shown\n");
            assert_eq!(world.read("private/key").as_deref(), Some("hidden\n"));
        }
    });
}

#[test]
fn a_workspace_that_holds_the_home_directory_is_told() {
    as_users(|user| {
        let world = World::new(user);
        let run = |at: &str| world.sbx(["run", "--workspace", at, "--", "true"]).run().success();
        run("..").says("holds your home directory");
        run(".").silent();
    });
}

/// Nor can a command close them to later runs.
#[test]
fn a_cache_that_was_closed_is_opened_again() {
    as_users(|user| {
        let world = World::new(user);
        let run = |script: &str| world.sbx(["run", "--", "sh", "-c", script]).run().success().silent();
        run("echo kept > \"$XDG_CACHE_HOME/file\" && chmod 0 \"$XDG_CACHE_HOME\"").prints("");
        run("cat \"$XDG_CACHE_HOME/file\" && echo more > \"$XDG_CACHE_HOME/other\"").prints("kept\n");
    });
}

/// Tool caches last, and so does what a run leaves in their place that may write there: it leads no later run anywhere.
#[test]
fn a_link_in_the_place_of_a_cache_leads_nowhere() {
    as_users(|user| {
        let mut world = World::new(user);
        let cache = world.home.join("caches");
        world.make_dir(&cache);
        let script = |world: &World, profile: &str, script: &str| {
            let command = world.sbx(["run", "-p", profile, "--", "bash", "-c", script]);
            command.env("XDG_CACHE_HOME", &cache).run()
        };
        const KEPT: &str = "touch \"$XDG_CACHE_HOME/kept\" && ls \"$XDG_CACHE_HOME\"";
        script(&world, "workspace", KEPT).success().silent().prints("kept\n");
        let theirs = fs::read_dir(cache.join("sbx")).unwrap().next().unwrap().unwrap().path();
        // The command of a run in another directory that is allowed the caches of all.
        let workspace = std::mem::replace(&mut world.workspace, world.outside.clone());
        let plant = format!("rm -r {0} && ln -s {1}/.ssh {0}", theirs.display(), world.home.display());
        world.sbx(["run", "-q", "--rw"]).arg(&cache).args(["--", "bash", "-c", &plant]).run().success();
        world.workspace = workspace;
        assert!(theirs.is_symlink());
        for profile in ["workspace", "read-only"] {
            let out =
                script(&world, profile, "cat ~/.ssh/id_rsa; touch ~/.ssh/made \"$XDG_CACHE_HOME/made\"");
            out.failed().prints("").says("is reached over a symbolic link");
        }
        assert!(!world.home.join(".ssh/made").exists());
        // With the link gone it is a cache again.
        fs::remove_file(&theirs).unwrap();
        script(&world, "workspace", KEPT).success().silent().prints("kept\n");
    });
}
