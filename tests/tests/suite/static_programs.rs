//! `--static`: a program that cannot load the shim is refused by name, or runs under the guard alone if the user allows
//! it.

mod named;

use std::path::Path;

use sbx_tests::{User, World, have, in_worlds, need, stage, subjects};

const BUSYBOX: &str = "/bin/busybox";

fn with_mode(world: &World, profile: &str, mode: &str, command: &[&str]) -> sbx_tests::Output {
    world.sbx([&["run", "-p", profile, "--static", mode, "--"], command].concat()).run()
}

#[test]
fn static_programs_are_refused_with_the_fix() {
    need!("busybox", "go");
    in_worlds(|world| {
        let busybox = have("busybox").unwrap();
        let go = world.install(&subjects::go(), "static-go");
        for program in
            [busybox.as_path(), &go, &world.subject("attempt-static"), &world.subject("attempt-static-pie")]
        {
            let shown = program.to_str().unwrap();
            for profile in ["minimal", "network", "write"] {
                let out = world.run(profile, [shown, "echo", "ran"]).run();
                out.refused(126, &["static", "--static confine", shown]);
            }
            with_mode(world, "minimal", "block", &[shown, "echo", "ran"]).refused(126, &["--static"]);
            with_mode(world, "workspace", "block", &[shown, "echo", "ran"]).refused(126, &["--static"]);
        }
    });
}

/// A shell of the same profile could start them, under the same filter.
#[test]
fn profiles_that_start_programs_run_static_ones() {
    need!("busybox");
    in_worlds(|world| {
        let busybox = have("busybox").unwrap();
        let busybox = busybox.to_str().unwrap();
        for profile in ["workspace", "read-only", "no-exec"] {
            world.run(profile, [busybox, "echo", "ran"]).run().success().prints("ran\n").silent();
            // Their rules bind it.
            let out =
                world.run(profile, [busybox, "cat", &world.home.join(".ssh/id_rsa").display().to_string()]);
            out.run().failed().prints("");
            world.run(profile, [busybox, "nc", "127.0.0.1", "1"]).run().failed();
        }
        world.run("no-exec", [busybox, "env", "/bin/echo", "ran"]).run().failed().prints("");
        world.run("read-only", [busybox, "touch", "made"]).run().failed();
        assert!(!world.exists("made"));
        // A program that has file capabilities or set-id bits gets none.
        let sh = world.run(
            "workspace",
            ["sh", "-c", &format!("{busybox} grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status")],
        );
        let direct =
            world.run("workspace", [busybox, "grep", "-E", "^(NoNewPrivs|Seccomp):", "/proc/self/status"]);
        assert_eq!(sh.run().success().out(), direct.run().success().out());
    });
}

#[test]
fn busybox_runs_confined_and_cannot_exec() {
    need!("busybox");
    let busybox = if Path::new(BUSYBOX).exists() { BUSYBOX } else { "/usr/bin/busybox" };
    in_worlds(|world| {
        with_mode(world, "minimal", "confine", &[busybox, "echo", "ran"]).success().prints("ran\n");
        with_mode(world, "minimal", "confine", &[busybox, "env", "/bin/echo", "ran"]).failed().prints("");
        with_mode(world, "minimal", "confine", &[busybox, "touch", "made"]).failed();
        assert!(!world.exists("made"));
        with_mode(world, "workspace", "confine", &[busybox, "env", "/bin/echo", "ran"])
            .success()
            .prints("ran\n");
        with_mode(world, "workspace", "confine", &[busybox, "touch", "made"]).success();
        assert!(world.exists("made"));
    });
}

#[test]
fn a_static_go_program_runs_confined() {
    need!("go");
    in_worlds(|world| {
        let go = world.install(&subjects::go(), "static-go");
        let go = go.to_str().unwrap();
        let out = with_mode(world, "no-exec", "confine", &[go]);
        assert!(out.out().contains("create: done\nexec: "), "{out}");
        assert!(!out.out().contains("ran"), "started a program: {out}");
        let out = with_mode(world, "workspace", "confine", &[go]);
        assert_eq!(out.out(), "create: done\nexec: ran\n", "{out}");
    });
}

#[test]
fn warn_prints_a_line_and_allow_and_confine_do_not() {
    in_worlds(|world| {
        let program = world.subject("attempt-static");
        let command = [program.to_str().unwrap(), "argv0"];
        let out = with_mode(world, "minimal", "warn", &command).success().says("static");
        assert_eq!(out.sbx_lines().len(), 1, "{out}");
        with_mode(world, "minimal", "allow", &command).success().silent();
        with_mode(world, "minimal", "confine", &command).success().silent();
    });
}

#[test]
fn profiles_without_a_seal_need_no_shim_and_accept_static_programs() {
    in_worlds(|world| {
        let program = world.subject("attempt-static");
        let script = format!("{} argv0", program.display());
        world.run("workspace", ["sh", "-c", &script]).run().success();
    });
}

#[test]
fn inspect_tells_programs_apart() {
    let world = World::new(&User::ordinary());
    let kind = |path: &Path| world.sbx(["inspect"]).arg(path).run().success().out().to_lowercase();
    assert!(kind(&world.subject("attempt-static")).contains("static"));
    assert!(kind(&world.subject("attempt-static-pie")).contains("static"));
    let dynamic = kind(&world.subject("attempt"));
    assert!(dynamic.contains("dynamic") && dynamic.contains("ld-linux"), "{dynamic}");
    let narrow = world.sbx(["inspect"]).arg(world.subject("narrow")).run();
    assert!(narrow.out().contains("32"), "{narrow}");
    let loader = world.subject("loader");
    let own = kind(&subjects::with_own_loader(&loader));
    assert!(own.contains(loader.to_str().unwrap()), "{own}");
    let script = world.script("script", "#!/usr/bin/env python3\n");
    let chain = kind(&script);
    assert!(chain.contains("script") && chain.contains("/usr/bin/env"), "{chain}");
}

/// The loader then treats the program as a set-user-ID one, and ignores LD_PRELOAD.
#[test]
fn a_program_to_be_sealed_is_refused_under_two_identities() {
    if !User::current().is_root() {
        return;
    }
    need!("setpriv");
    let world = World::new(&User::current());
    let attempt = world.program("attempt");
    let short = ["-p", "custom", "--allow-calls", "write:exit_group:fstat:newfstatat:fcntl"];
    let read = |identity: &[&str], flags: &[&str]| {
        let front = ["setpriv", "--clear-groups"].iter().chain(identity).map(std::ffi::OsStr::new);
        let sbx = stage::sbx().as_os_str();
        let words = front.chain([sbx]).chain(["run"].iter().chain(flags).map(std::ffi::OsStr::new));
        world.bare(words).args(["--", &attempt, "read", "/etc/passwd"]).run()
    };
    // Sealed, it opens nothing.
    let sealed = read(&["--ruid", "0"], &short).failed();
    assert!(!sealed.out().contains("root:"), "{sealed}");
    for identity in [["--ruid", "65534"], ["--rgid", "65534"], ["--egid", "65534"]] {
        let out = read(&identity, &short).refused(126, &["effective", "--static confine"]);
        assert!(!out.out().contains("root:"), "{out}");
        read(&identity, &[&short[..], &["--static", "warn"]].concat()).success().says("effective");
        read(&identity, &[&short[..], &["--static", "confine"]].concat()).success().silent();
        // Where nothing is to be sealed, nothing is missing.
        read(&identity, &["-p", "minimal"]).success().silent();
    }
}

/// The file that `sbx` finds by a name in its own /proc is not the one that the kernel finds for the command.
#[test]
fn a_loader_below_proc_is_not_taken_for_the_systems() {
    in_worlds(|world| {
        let known = "lib64/ld-linux-x86-64.so.2";
        if !Path::new("/").join(known).exists() {
            return;
        }
        let named = format!("/proc/self/cwd/{known}");
        let program = subjects::with_loader_named(Path::new(&named), world.path("named"));
        world.make_dir(&world.path("lib64"));
        world.install(&subjects::program("attempt-static-pie"), known);
        let (workspace, program) = (world.workspace.to_str().unwrap(), program.to_str().unwrap());
        let run = |flags: &[&str]| {
            let front = ["run", "-p", "minimal", "--workspace", workspace];
            world.sbx([&front, flags, &["--", program, "argv0"]].concat()).cwd("/").run()
        };
        run(&[]).refused(126, &["which is not this system's own", "--static confine"]);
        let ran = run(&["--static", "confine"]);
        assert_ne!(ran.code, Some(126), "{ran}");
    });
}
