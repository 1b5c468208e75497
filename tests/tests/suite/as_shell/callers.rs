//! Programs that take a shell's path, and start it their own way.

use super::shell;
use sbx_tests::{Cmd, User, World, in_worlds, kernel, need};

/// What is not to be written, and the words that try.
fn outside(world: &World) -> (std::path::PathBuf, String) {
    let new = world.outside.join("new");
    let write = format!("echo x > {}", new.display());
    (new, write)
}

#[test]
fn make() {
    need!("make");
    in_worlds(|world| {
        let (new, write) = outside(world);
        let makefile = format!(
            ".SHELLFLAGS = -eu -o pipefail -c\nall:\n\t@echo $$((6 * 7)) > made\n\t@cd /usr && pwd\n\t@pwd\n\
             bad:\n\t@{write}\n"
        );
        world.write("Makefile", makefile);
        let shell = format!("SHELL={}", shell(world).display());
        let out = world.bare(["make", &shell, "all"]).run().success().silent();
        assert_eq!(out.out(), format!("/usr\n{}\n", world.workspace.display()));
        assert_eq!(world.read("made").as_deref(), Some("42\n"));
        if kernel::promises(1) {
            world.bare(["make", &shell, "bad"]).run().failed();
            assert!(!world.exists(&new));
            world.bare(["make", "SHELL=/bin/bash", "bad"]).run().success();
            assert!(world.exists(&new));
        }
    });
}

#[test]
fn python_and_node() {
    let world = World::new(&User::current());
    let shell = shell(&world).display().to_string();
    let (new, write) = outside(&world);
    let python = "import subprocess, sys\n\
                  run = lambda line: subprocess.run(line, shell=True, executable=sys.argv[1], capture_output=True)\n\
                  print(run('echo $0 | wc -l; exit 6').returncode, run(sys.argv[2]).returncode != 0)\n";
    world.bare(["python3", "-c", python, &shell, &write]).run().success().silent().prints("6 True\n");
    need!("node");
    let node = "const { execSync, spawnSync } = require('node:child_process');\n\
                const [shell, write] = process.argv.slice(1);\n\
                console.log(execSync('echo out', { shell }).toString().trim());\n\
                console.log(spawnSync('exit 6', { shell }).status, spawnSync(write, { shell }).status !== 0);\n";
    world.bare(["node", "-e", node, &shell, &write]).run().success().silent().prints("out\n6 true\n");
    assert!(!kernel::promises(1) || !world.exists(&new));
}

#[test]
fn editors_and_terminals() {
    let world = World::new(&User::current());
    let shell = shell(&world).display().to_string();
    let (new, write) = outside(&world);
    let with = |cmd: Cmd| cmd.env("SHELL", &shell).env("SBX_LOG", "quiet");
    if need(&["script"]) {
        let out = with(world.bare(["script", "-qec", "echo by script; exit 5", "/dev/null"])).run();
        assert!(out.code == Some(5) && out.out().contains("by script"), "{out}");
    }
    if need(&["vim"]) {
        let write = format!("!{write}");
        let words = ["vim", "-Nu", "NONE", "-es", "-c", "!echo by vim > vim", "-c", &write, "-c", "qa!"];
        with(world.bare(words)).run();
        assert_eq!(world.read("vim").as_deref(), Some("by vim\n"));
    }
    if need(&["tmux"]) {
        let socket = world.outside.join("tmux");
        let tmux = |words: &[&str]| {
            let start = ["tmux", "-S", socket.to_str().unwrap(), "-f", "/dev/null"];
            with(world.bare(start.iter().chain(words))).run()
        };
        // Both a command line and the shell itself, which is a login shell there.
        tmux(&["new-session", "-d", "echo by tmux > tmux-line; sleep 100"]).success();
        tmux(&["new-window", "-d", "-n", "own"]).success();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while world.read("tmux-shell").is_none() && std::time::Instant::now() < until {
            tmux(&["send-keys", "-t", "own", "echo by tmux > tmux-shell", "Enter"]);
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        tmux(&["kill-server"]);
        assert_eq!(world.read("tmux-line").as_deref(), Some("by tmux\n"));
        assert_eq!(world.read("tmux-shell").as_deref(), Some("by tmux\n"));
    }
    assert!(!kernel::promises(1) || !world.exists(&new));
}

#[test]
fn su_and_what_starts_login_shells() {
    need!("su");
    if sbx_tests::sys::euid() != 0 {
        return sbx_tests::skip("su changes users for root alone");
    }
    let world = World::new(&User::ordinary());
    let shell = shell(&world).display().to_string();
    let su = |words: &[&str]| Cmd::new("su").args(["-s", &shell]).args(words).cwd(&world.workspace).run();
    su(&[world.user.name, "-c", "id -u; exit 4"]).exited(4).prints(&format!("{}\n", world.user.id));
    su(&["-l", world.user.name, "-c", "shopt -q login_shell && echo login"]).success().prints("login\n");
}

#[test]
fn a_caller_that_keeps_the_directory_is_told_it_where_it_says() {
    let world = World::new(&User::current());
    world.make_dir(&world.path("inner"));
    // As agents do it: a file in the caller's own directory for such, which the flags open.
    let own = world.outside.join("told");
    world.make_dir(&own);
    let file = own.join("cwd");
    let line = format!("cd inner && pwd -P >| {}", file.display());
    let flags = format!("--rw '{}'", own.display());
    super::cmd(&world, ["-c", &line]).env("SBX_SHELL_FLAGS", flags).run().success().silent();
    assert_eq!(world.read(&file).unwrap(), format!("{}\n", world.path("inner").display()));
    // Or by a descriptor of the caller's.
    let (mut read, write) = std::io::pipe().unwrap();
    let cmd = super::cmd(&world, ["-c", "cd inner; pwd >&7"]).env("SBX_SHELL_FLAGS", "--pass-fd 7");
    cmd.pass_fd(write.into(), 7).run().success().silent();
    let mut told = String::new();
    std::io::Read::read_to_string(&mut read, &mut told).unwrap();
    assert_eq!(told, format!("{}\n", world.path("inner").display()));
}
