//! `sbx-shell`: sbx under the name of a shell, started by what starts shells.

mod callers;

use sbx_tests::{Cmd, Output, User, World, in_worlds, kernel, need, processes, stage};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The name, as `make install` makes it: a link to sbx.
pub fn shell(world: &World) -> PathBuf {
    link(world, "sbx-shell")
}

fn link(world: &World, name: &str) -> PathBuf {
    let link = world.outside.join(name);
    if !world.exists(&link) {
        std::os::unix::fs::symlink(stage::sbx(), &link).unwrap();
    }
    link
}

fn run<S: AsRef<OsStr>>(world: &World, arguments: impl IntoIterator<Item = S>) -> Output {
    cmd(world, arguments).run()
}

pub fn cmd<S: AsRef<OsStr>>(world: &World, arguments: impl IntoIterator<Item = S>) -> Cmd {
    world.bare([shell(world)]).args(arguments)
}

#[test]
fn each_way_to_call_a_shell_means_what_it_means() {
    in_worlds(|world| {
        run(world, ["-c", "echo \"$0 $1\"; exit 7", "name", "one"]).exited(7).silent().prints("name one\n");
        run(world, ["-ec", "false; echo on"]).exited(1).silent().prints("");
        run(world, ["-o", "pipefail", "-c", "false | true"]).exited(1).silent();
        run(world, ["-c", "kill -KILL $$"]).exited(137);
        run(world, ["-c", "no-such-command"]).exited(127).says("not found");
        cmd(world, ["-s", "one"])
            .stdin("echo \"from $1\"\nexit 4\n")
            .run()
            .exited(4)
            .silent()
            .prints("from one\n");
        cmd(world, [] as [&str; 0]).stdin("echo typed\n").run().success().silent().prints("typed\n");
        let script = world.script("script", "echo \"$0 $1 $#\"\n");
        let out = run(world, [script.as_os_str(), OsStr::new("a b"), OsStr::new("-c")]).success().silent();
        assert_eq!(out.out(), format!("{} a b 2\n", script.display()));
        // An argument that is a subcommand of sbx is a script like any other.
        world.write("run", "echo the script\n");
        run(world, ["run"]).success().silent().prints("the script\n");
        assert!(run(world, ["--version"]).success().silent().out().contains("bash"));
    });
}

#[test]
fn login_shells_start_without_a_word() {
    in_worlds(|world| {
        // Files that a login shell would read, were they there inside.
        for file in [".bashrc", ".profile", ".bash_profile"] {
            world.write(world.home.join(file), "echo stumbled; exit 9\n");
        }
        for login in [&["-l", "-c"][..], &["-lc"], &["--login", "-c"]] {
            let words = login.iter().chain(&["shopt -q login_shell && echo in"]);
            run(world, words).success().silent().prints("in\n");
        }
        for name in ["-sbx-shell", "-/usr/bin/sbx-shell"] {
            let out = cmd(world, ["-c", "shopt -q login_shell && echo in"]).arg0(name).run();
            out.success().silent().prints("in\n");
            let out = cmd(world, [] as [&str; 0]).arg0(name).stdin("shopt -q login_shell && echo in\n").run();
            out.success().silent().prints("in\n");
        }
        cmd(world, ["-c", "echo in"]).arg0("-sbx-sh").run().success().silent().prints("in\n");
        // A home that is closed has them, and they may not be read.
        let closed =
            cmd(world, ["-lc", "echo in"]).env("SBX_SHELL_FLAGS", "--home closed").env("SBX_LOG", "quiet");
        let out = closed.run().success();
        assert_eq!(out.out(), "in\n", "{out}");
    });
}

#[test]
fn the_name_chooses_the_shell_inside() {
    let world = World::new(&User::current());
    let which = "readlink /proc/$$/exe; echo $SHELL";
    let real = |shell: &str| std::fs::canonicalize(shell).unwrap().display().to_string();
    let started = |name: &str, program: Option<&str>| {
        let cmd = world.bare([link(&world, name)]).args(["-c", which]);
        let cmd = program.iter().fold(cmd, |cmd, program| cmd.env("SBX_SHELL_PROGRAM", program));
        cmd.run().success().silent().out()
    };
    for (name, program, shell) in [
        ("sbx-sh", None, "/bin/sh"),
        ("sbx-bash", None, "/bin/bash"),
        ("sbx-shell", None, "/bin/bash"),
        ("sbx-shell", Some("/bin/sh"), "/bin/sh"),
        // A name that says which one is meant, stands.
        ("sbx-sh", Some("/bin/bash"), "/bin/sh"),
    ] {
        assert_eq!(started(name, program), format!("{}\n{shell}\n", real(shell)), "{name} {program:?}");
    }
    let own = stage::sbx();
    for (program, why) in
        [("bash", "no absolute path"), ("/no/such", "no program"), (own.to_str().unwrap(), "sbx itself")]
    {
        let cmd = cmd(&world, ["-c", "true"]).env("SBX_SHELL_PROGRAM", program);
        cmd.run().refused(125, &["SBX_SHELL_PROGRAM", why]);
    }
}

#[test]
fn it_is_a_run_and_the_variable_has_its_flags() {
    in_worlds(|world| {
        if !kernel::promises(1) {
            return;
        }
        let outside = world.outside.join("new");
        let write = format!("echo x > '{}'", outside.display());
        run(world, ["-c", &write]).failed();
        assert!(!world.exists(&outside));
        run(world, ["-c", "echo x > here"]).success();
        assert!(world.exists("here"));
        let flags = format!("--rw '{}' -q", world.outside.display());
        cmd(world, ["-c", &write]).env("SBX_SHELL_FLAGS", flags).run().success().silent();
        assert!(world.exists(&outside));
        // The commands inside do not get the variables.
        for flags in ["-q", "--inherit-env"] {
            let out =
                cmd(world, ["-c", "env"]).env("SBX_SHELL_FLAGS", flags).env("API_TOKEN", "secret").run();
            let out = out.success().out();
            assert!(!out.contains("SBX_SHELL"), "{flags}: {out}");
            assert!(flags == "--inherit-env" || !out.contains("secret"), "{out}");
        }
        // A variable whose name begins alike is another one.
        let out =
            cmd(world, ["-c", "echo $SHELL"]).env("SHELL", shell(world)).env("SHELLOPTS", "braceexpand");
        let out = out.env("SBX_SHELL_FLAGS", "--env SHELLOPTS").run().success();
        assert!(out.out().ends_with("/bash\n") && !out.out().contains("sbx"), "{out}");
    });
}

#[test]
fn a_variable_that_means_nothing_good_ends_it() {
    let world = World::new(&User::current());
    world.write("own.json", r#"{"description": "own", "extends": "workspace"}"#);
    let child = format!(r#"{{"description": "child", "extends": "{}"}}"#, world.path("own.json").display());
    let child = world.write(world.outside.join("child.json"), &child);
    let child = format!("--profile {}", child.display());
    for (flags, why) in [
        ("--ro '", "quote"),
        ("--profil minimal", "did you mean '--profile'?"),
        ("--dangerously-unconfined", "--dangerously-unconfined"),
        ("-- ls", "ls"),
        ("--help", "flags of sbx run alone"),
        ("--profile ./own.json", "in the workspace"),
        (child.as_str(), "in the workspace"),
    ] {
        let out = cmd(&world, ["-c", "touch made"]).env("SBX_SHELL_FLAGS", flags).run();
        out.refused(125, &["SBX_SHELL_FLAGS", why]);
        assert!(!world.exists("made"));
    }
}

#[test]
fn in_a_run_it_is_the_shell_and_widens_nothing() {
    let world = World::new(&User::current());
    if !kernel::promises(1) {
        return;
    }
    let shell = shell(&world);
    let flags = [
        "run",
        "-q",
        "--rox",
        world.outside.to_str().unwrap(),
        "--rox",
        stage::sbx().to_str().unwrap(),
        "--",
    ];
    let inside = |script: &str| world.sbx(flags).args(["sh", "-c", script]).run();
    let shell = shell.display();
    inside(&format!("'{shell}' -c 'echo in; exit 5'")).exited(5).silent().prints("in\n");
    let new = world.outside.join("new");
    for flags in ["", "SBX_SHELL_FLAGS='--rw /'", "SBX_SHELL_FLAGS=--dangerously-unconfined"] {
        inside(&format!("{flags} '{shell}' -c 'echo x > \"{}\"'", new.display())).failed();
        assert!(!world.exists(&new), "{flags}");
    }
}

/// Variables have the library confine whatever is started, to as little as they say. That is no run.
#[test]
fn under_a_filter_of_the_library_it_is_a_run() {
    in_worlds(|world| {
        if !kernel::promises(1) {
            return;
        }
        let new = world.outside.join("new");
        let write = format!("echo x > '{}'", new.display());
        let narrowed = |cmd: Cmd| {
            let cmd = cmd.env("LD_PRELOAD", stage::shim()).env("SECCOMP_SYSCALL_DENY", "swapon");
            cmd.env("SECCOMP_DEFAULT_ACTION", "errno")
        };
        let within = |shell: String, script: &str| {
            let words = ["sh", "-c", "\"$0\" -c \"$1\"; exit $?", &shell, script];
            narrowed(world.bare(words)).run()
        };
        let shell = shell(world).display().to_string();
        within(shell.clone(), &write).failed();
        within(shell.clone(), "echo x > here").success().silent();
        assert!(world.exists("here") && !world.exists(&new));
        // The twin: the library's own rules let it.
        within("/bin/sh".to_string(), &write).success();
        assert!(world.exists(&new));
        // In a run whose command has itself narrowed so it is the shell, and the rules of the run hold.
        std::fs::remove_file(&new).unwrap();
        let readable =
            [world.outside.as_path(), stage::sbx(), stage::shim()].map(|path| path.to_str().unwrap());
        let readable: Vec<&str> = readable.into_iter().flat_map(|path| ["--rox", path]).collect();
        let script = format!(
            "LD_PRELOAD='{}' SECCOMP_SYSCALL_DENY=swapon:prctl SECCOMP_DEFAULT_ACTION=errno \
             sh -c '\"$0\" -c \"$1\"' '{shell}' \"$1\"",
            stage::shim().display()
        );
        let inside = |what: &str| {
            let words = [&["run", "-q"], &readable[..], &["--", "sh", "-c", &script, "sh", what]];
            world.sbx(words.concat()).run()
        };
        inside("echo in; exit 5").exited(5).silent().prints("in\n");
        inside(&write).failed();
        assert!(!world.exists(&new));
    });
}

#[test]
fn the_end_of_it_is_the_end_of_what_it_started() {
    let world = World::new(&User::current());
    let marker = processes::marker();
    let script = format!("sleep 1000 {marker} & sh -c 'sleep 1000; :' {marker} & wait");
    let running = cmd(&world, ["-c", &script]).start();
    processes::wait_for(&marker, 3);
    running.signal(libc::SIGTERM);
    assert_eq!(running.wait().code, Some(143));
    processes::none_left(&marker);
}

#[test]
fn at_a_terminal_keys_do_what_they_do() {
    need!("bash");
    let world = World::new(&User::current());
    let (running, terminal) =
        cmd(&world, ["-i"]).env("PS1", "ready$ ").env("TERM", "dumb").start_on_terminal();
    terminal.types("PS1='ready'; echo $((40 + 2))\n");
    running.wait_for("42");
    terminal.types("sleep 1000\n");
    running.wait_for("sleep 1000");
    std::thread::sleep(std::time::Duration::from_millis(500));
    terminal.types("\x03");
    terminal.types("echo alive $((40 + 3))\n");
    running.wait_for("alive 43");
    terminal.types("exit 3\n");
    assert_eq!(running.wait().code, Some(3));
}
