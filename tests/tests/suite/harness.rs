//! The subjects do what they claim when nothing confines them. Without this, a refusal would prove nothing.

use sbx_tests::servers::{HttpServer, UnixServer};
use sbx_tests::{World, in_worlds, machine, need, subjects};

#[test]
fn attempts_succeed_unconfined() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let run = |words: &[&str]| world.bare([&[attempt.as_str()], words].concat()).run();
        run(&["create", "made"]).success();
        assert_eq!(world.read("made").as_deref(), Some("made\n"));
        run(&["read", "made"]).success().prints("made\n");
        run(&["exec", "/bin/echo", "ran"]).success().prints("ran\n");
        run(&["spawn", "/bin/echo", "ran"]).success().prints("ran\n");
        run(&["fork"]).success();
        assert!(world.exists("forked"));
        run(&["thread"]).success().prints("joined\n");
        run(&["clone3"]).success();
        assert!(world.exists("cloned"));
        run(&["clone3-thread"]).success();
        run(&["openat2", "opened2"]).success();
        assert!(world.exists("opened2"));
        run(&["wx"]).success().prints("42\n");
        run(&["close-all", "create", "closed"]).success();
        assert!(world.exists("closed"));
    });
}

#[test]
fn attempts_reach_servers_unconfined() {
    let tcp = HttpServer::start();
    let user = sbx_tests::User::ordinary();
    let world = World::new(&user);
    let path = world.path("socket");
    let unix = UnixServer::at(&path);
    let attempt = world.subject("attempt");
    let attempt = attempt.to_str().unwrap();
    world.bare([attempt, "connect", &tcp.port.to_string()]).run().success();
    world.bare([attempt, "connect-unix", path.to_str().unwrap()]).run().success();
    assert_eq!((tcp.connections(), unix.connections()), (1, 1));
}

#[test]
fn every_kind_of_program_makes_its_mark_unconfined() {
    let user = sbx_tests::User::ordinary();
    for name in ["ifunc", "preinit", "narrow"] {
        let world = World::new(&user);
        let program = world.subject(name);
        world.bare([&program]).run().success();
        assert!(world.exists("mark"), "{name} left no mark");
    }
    let world = World::new(&user);
    let program = subjects::with_own_loader(&world.subject("loader"));
    world.bare([&program]).run().success();
    assert!(world.exists("mark"), "the loader left no mark");
    let world = World::new(&user);
    world.bare(["/bin/true"]).env("LD_PRELOAD", world.subject("hook.so")).run().success();
    assert!(world.exists("mark"), "the preloaded library left no mark");
    for name in ["attempt-static", "attempt-static-pie"] {
        let world = World::new(&user);
        let program = world.subject(name);
        world.bare([program.to_str().unwrap(), "create", "mark"]).run().success();
        assert!(world.exists("mark"), "{name} left no mark");
    }
    if need(&["musl-gcc"]) {
        let world = World::new(&user);
        let program = world.subject("attempt-musl");
        world.bare([program.to_str().unwrap(), "create", "mark"]).run().success();
        assert!(world.exists("mark"), "the musl program left no mark");
    }
}

#[test]
fn a_32_bit_system_call_works_unconfined() {
    if !machine::has_32_bit_calls() {
        return;
    }
    let world = World::new(&sbx_tests::User::ordinary());
    let attempt = world.subject("attempt");
    world.bare([attempt.to_str().unwrap(), "int80", "39", "made", "0755"]).run().success();
    assert!(world.path("made").is_dir());
}

#[test]
fn the_hostile_environment_refuses_the_calls_that_it_should() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let call = |number: i64, argument: &str| {
            world.bare([attempt.as_str(), "syscall", &number.to_string(), argument]).docker().run()
        };
        let new_user_namespace = libc::CLONE_NEWUSER.to_string();
        call(libc::SYS_unshare, &new_user_namespace).exited(1).prints("errno 1 (Operation not permitted)\n");
        call(libc::SYS_ptrace, "0").exited(1).prints("errno 1 (Operation not permitted)\n");
        call(libc::SYS_pidfd_getfd, "0").exited(1).prints("errno 1 (Operation not permitted)\n");
        call(libc::SYS_getpid, "0").success();
        world
            .bare([attempt.as_str(), "clone3"])
            .docker()
            .run()
            .exited(1)
            .prints("errno 38 (Function not implemented)\n");
        world.bare([attempt.as_str(), "fork"]).docker().run().success();
        world.bare([attempt.as_str(), "thread"]).docker().run().success();
    });
}

#[test]
fn a_program_that_hangs_is_killed() {
    let world = World::new(&sbx_tests::User::ordinary());
    let limit = std::time::Duration::from_millis(200);
    let running = world.bare(["sleep", "1000"]).timeout(limit).start();
    let pid = running.pid();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.wait()));
    assert!(outcome.is_err(), "a command past its limit must fail the test");
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}
