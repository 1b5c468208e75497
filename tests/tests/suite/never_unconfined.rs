//! Every known way around a preloaded library: each subject tries to make a file that the profile forbids.
//!
//! The harness suite proves that the same subjects make it when nothing confines them.

use std::ffi::OsString;
use std::path::PathBuf;

use sbx_tests::command::Cmd;
use sbx_tests::servers::HttpServer;
use sbx_tests::{User, World, as_users, have, in_worlds, need, stage, subjects};

/// Runs a program under the guard alone if necessary, and requires that it left no mark.
#[track_caller]
fn makes_no_mark(world: &World, front: &[&str], command: &[&str]) {
    let words = [&["run", "-p", "minimal"], front, &["--"], command].concat();
    let out = world.sbx(words).run();
    assert!(!world.exists("mark"), "made its mark: {out}");
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}

#[test]
fn code_before_main_is_confined() {
    as_users(|user| {
        for name in ["ifunc", "preinit"] {
            let world = World::new(user);
            let program = world.program(name);
            makes_no_mark(&world, &[], &[&program]);
            world.run("workspace", [&program]).run().success();
            assert!(world.exists("mark"), "{name}: the allowed twin left no mark");
        }
    });
}

#[test]
fn static_programs_are_confined() {
    as_users(|user| {
        for name in ["attempt-static", "attempt-static-pie", "attempt-musl-static"] {
            let world = World::new(user);
            let program = world.program(name);
            for mode in ["warn", "allow", "confine"] {
                makes_no_mark(&world, &["--static", mode], &[&program, "create", "mark"]);
            }
            world
                .sbx(["run", "-p", "workspace", "--static", "confine", "--", &program, "create", "mark"])
                .run()
                .success();
            assert!(world.exists("mark"), "{name}: the allowed twin left no mark");
        }
    });
}

#[test]
fn a_program_with_its_own_loader_is_confined() {
    in_worlds(|world| {
        let program = text(subjects::with_own_loader(&world.subject("loader")));
        for mode in ["block", "warn", "allow", "confine"] {
            makes_no_mark(world, &["--static", mode], &[&program]);
        }
        world.sbx(["run", "-p", "workspace", "--static", "confine", "--", &program]).run().success();
        assert!(world.exists("mark"), "the allowed twin left no mark");
    });
}

#[test]
fn a_program_of_another_class_is_confined() {
    in_worlds(|world| {
        let program = world.program("narrow");
        for profile in ["minimal", "workspace"] {
            for mode in ["block", "warn", "allow", "confine"] {
                let out = world.sbx(["run", "-p", profile, "--static", mode, "--", &program]).run().failed();
                assert!(!world.exists("mark"), "made its mark by a 32-bit call: {out}");
            }
        }
    });
}

#[test]
fn a_program_of_another_class_is_confined_as_a_child() {
    let world = World::new(&User::ordinary());
    let program = world.program("narrow");
    world.run("workspace", ["sh", "-c", &format!("{program}; exit $?")]).run().failed();
    assert!(!world.exists("mark"));
}

#[test]
fn a_musl_program_is_confined() {
    need!("musl-gcc");
    in_worlds(|world| {
        let program = world.program("attempt-musl");
        for mode in ["block", "warn", "allow", "confine"] {
            makes_no_mark(world, &["--static", mode], &[&program, "create", "mark"]);
        }
        world
            .sbx(["run", "-p", "workspace", "--static", "confine", "--", &program, "create", "mark"])
            .run()
            .success();
        assert!(world.exists("mark"), "the allowed twin left no mark");
    });
}

#[test]
fn the_loader_as_a_program_is_confined() {
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let loader = loaders.into_iter().find(|path| PathBuf::from(path).exists()).expect("a loader");
    in_worlds(|world| {
        let program = world.program("attempt");
        for mode in ["block", "warn", "allow", "confine"] {
            makes_no_mark(world, &["--static", mode], &[loader, &program, "create", "mark"]);
            let ifunc = world.program("ifunc");
            makes_no_mark(world, &["--static", mode], &[loader, &ifunc]);
        }
    });
}

#[test]
fn a_script_with_a_static_interpreter_is_confined() {
    in_worlds(|world| {
        let interpreter = world.program("attempt-static");
        // The kernel runs `attempt-static create ./script`, so the script itself would be overwritten.
        let script = text(world.script("script", format!("#!{interpreter} create\n")));
        for mode in ["block", "warn", "allow", "confine"] {
            world.sbx(["run", "-p", "minimal", "--static", mode, "--", &script]).run().failed();
            assert!(world.read("script").unwrap().starts_with("#!"), "--static {mode} let it write");
        }
        world.sbx(["run", "-p", "minimal", "--", &script]).run().refused(126, &["--static"]);
        world.bare([&script]).run().success();
        assert_eq!(world.read("script").as_deref(), Some("made\n"));
    });
}

#[test]
fn exhausted_descriptors_confine_or_refuse() {
    as_users(|user| {
        let world = World::new(user);
        let program = world.program("attempt");
        for limit in 3..24 {
            let out = world.run("minimal", [&program, "create", "mark"]).open_files(limit).run();
            assert!(!world.exists("mark"), "with {limit} descriptors: {out}");
            out.failed();
        }
        // The same limits, set by the user and by a shell inside.
        for limit in ["3", "4", "5"] {
            let script = format!("ulimit -n {limit}; exec {program} connect 1");
            let out = world.sbx(["run", "--net", "none", "--", "sh", "-c", &script]).run().failed();
            assert!(!out.out().contains("errno 111"), "reached the network: {out}");
        }
    });
}

#[test]
fn closing_every_descriptor_does_not_help() {
    in_worlds(|world| {
        let program = world.program("attempt");
        world.run("minimal", [&program, "close-all", "create", "mark"]).run().failed();
        assert!(!world.exists("mark"));
        let server = HttpServer::start();
        let port = server.port.to_string();
        world.run("workspace", [&program, "close-all", "connect", &port]).run().failed();
        world
            .run("workspace", ["sh", "-c", &format!("exec 0<&- 1>&- 2>&-; {program} connect {port}")])
            .run()
            .failed();
        assert_eq!(server.connections(), 0);
    });
}

#[test]
fn altered_variables_do_not_help_a_child() {
    in_worlds(|world| {
        let server = HttpServer::start();
        let inner = format!("{} connect {}", world.program("attempt"), server.port);
        let scripts = [
            format!("env -i {inner}"),
            format!("LD_PRELOAD= {inner}"),
            format!("unset LD_PRELOAD SECCOMP_SYSCALL_ALLOW SECCOMP_SYSCALL_DENY; {inner}"),
            format!("SECCOMP_SYSCALL_ALLOW=socket:connect {inner}"),
            format!("SECCOMP_DEFAULT_ACTION=log SBX_CONFINED= {inner}"),
            format!("exec {inner}"),
            format!("setsid {inner}"),
            format!("(({inner}) &) ; sleep 0.2; exit 1"),
        ];
        for script in &scripts {
            world.run("workspace", ["sh", "-c", script]).run().failed();
            assert_eq!(server.connections(), 0, "reached the server with: {script}");
        }
        // The same program does reach it where the profile allows that.
        world
            .run("network", [&world.program("attempt"), "connect", &server.port.to_string()])
            .run()
            .success();
        assert_eq!(server.connections(), 1);
    });
}

#[test]
fn variables_of_the_caller_do_not_weaken_the_run() {
    in_worlds(|world| {
        let program = world.program("attempt");
        let hook = world.subject("hook.so");
        let tries: &[(&str, OsString)] = &[
            ("LD_PRELOAD", hook.clone().into()),
            ("LD_AUDIT", hook.into()),
            ("SECCOMP_SYSCALL_ALLOW", "openat:write:exit_group".into()),
            ("SECCOMP_DEFAULT_ACTION", "log".into()),
            ("LD_LIBRARY_PATH", "/nonexistent".into()),
            ("LD_TRACE_LOADED_OBJECTS", "1".into()),
            ("LD_BIND_NOW", "1".into()),
            ("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=0".into()),
        ];
        for (key, value) in tries {
            // The launcher starts with the same variables, and they must not mislead it either.
            world.run("minimal", [&program, "create", "inner"]).env(key, value).run();
            assert!(!world.exists("inner"), "{key} let the program write");
        }
    });
}

#[test]
fn a_file_swapped_after_the_check_gains_nothing() {
    let world = World::new(&User::ordinary());
    let (dynamic, fixed) = (world.subject("attempt"), world.subject("attempt-static"));
    let target = world.path("target");
    std::fs::hard_link(&dynamic, &target).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                let source = if round % 2 == 0 { &fixed } else { &dynamic };
                let next = world.path("next");
                let _ = std::fs::hard_link(source, &next).and_then(|()| std::fs::rename(&next, &target));
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        let ends: Vec<_> =
            (0..60).map(|_| world.run("minimal", [&text(target.clone()), "create", "mark"]).run()).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        ends.into_iter().for_each(|out| drop(out.failed()));
    });
    assert!(!world.exists("mark"));
}

#[test]
fn set_id_programs_gain_nothing() {
    let Some(tool) = have("su").or_else(|| have("passwd")) else {
        return sbx_tests::skip("needs a set-id program");
    };
    let world = World::new(&User::ordinary());
    let out = world
        .run("workspace", ["sh", "-c", &format!("{} -c id root </dev/null", tool.display())])
        .run()
        .failed();
    assert!(!out.out().contains("uid=0"), "became root: {out}");
}

#[test]
fn a_dead_supervisor_leaves_the_command_refused() {
    // When the reader of notifications is gone, the kernel answers for it: still a refusal.
    let world = World::new(&User::ordinary());
    let program = world.program("attempt");
    let marker = sbx_tests::processes::marker();
    let script = format!("echo up; while :; do {program} connect 1 && touch mark; : {marker}; done");
    let running = world.run("workspace", ["sh", "-c", &script]).start();
    running.wait_for("up");
    running.kill();
    sbx_tests::processes::none_left(&marker);
    assert!(!world.exists("mark"));
}

#[test]
fn the_fastest_start_is_confined_too() {
    in_worlds(|world| {
        let program = world.program("attempt");
        world.sbx(["run", "--exec", "-p", "minimal", "--", &program, "create", "mark"]).run().failed();
        world.sbx(["run", "--exec", "-p", "minimal", "--", &program, "exec", "/bin/echo"]).run().failed();
        assert!(!world.exists("mark"));
        world.sbx(["run", "--exec", "-p", "workspace", "--", &program, "create", "mark"]).run().success();
        assert!(world.exists("mark"));
    });
}

#[test]
fn only_profiles_that_start_programs_allow_a_second_exec() {
    in_worlds(|world| {
        let program = world.program("attempt");
        let exec = |profile: &str| world.run(profile, [program.as_str(), "exec", "/bin/echo", "ran"]).run();
        for profile in ["minimal", "network", "write", "no-exec"] {
            assert_eq!(exec(profile).exited(1).out(), "errno 1 (Operation not permitted)\n", "{profile}");
        }
        exec("workspace").success().prints("ran\n");
        exec("read-only").success().prints("ran\n");
    });
}

#[test]
fn the_launcher_needs_no_shim_on_disk() {
    // A missing or replaced library on disk changes nothing: the launcher carries its own.
    let world = World::new(&User::ordinary());
    let program = world.program("attempt");
    let alone = world.install(stage::sbx(), "sbx-alone");
    let cmd = Cmd::new(&alone).args(["run", "-p", "minimal", "--", &program, "create", "mark"]);
    cmd.cwd(&world.workspace).env("HOME", &world.home).user(&world.user).run().failed();
    assert!(!world.exists("mark"));
}
