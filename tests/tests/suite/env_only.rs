//! `libsandbox.so` with its variables alone, as cloudflare/sandbox is used: same variables, same effects, but silent.

use sbx_tests::command::Cmd;
use sbx_tests::{User, World, as_users, in_worlds, machine, need, stage};

const SIGSYS: i32 = libc::SIGSYS;

/// The calls that the smallest stdio program makes after linking, under any libc of the last ten years.
const HELLO: &str = "fstat:newfstatat:getrandom:brk:write:exit_group";

fn preloaded(world: &World, command: &[&str]) -> Cmd {
    world.bare(command).env("LD_PRELOAD", stage::shim())
}

#[test]
fn an_allow_list_runs_the_program_silently() {
    in_worlds(|world| {
        let out = preloaded(world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", HELLO).run();
        out.success().silent().prints("Hello, world!\n");
    });
}

#[test]
fn a_missing_call_dies_of_sigsys() {
    in_worlds(|world| {
        let list = HELLO.replace(":write", "");
        let out = preloaded(world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", list).run();
        out.died_of(SIGSYS).silent().prints("");
    });
}

/// glibc asks for random bytes with its first allocation, and does without them.
#[test]
fn a_program_that_does_without_random_bytes_goes_on() {
    in_worlds(|world| {
        let list = HELLO.replace(":getrandom", "");
        let run = |name: &str, list: &str| preloaded(world, &[&world.program("hello")]).env(name, list).run();
        run("SECCOMP_SYSCALL_ALLOW", &list).success().silent().prints("Hello, world!\n");
        // Where it is named, that counts.
        let python = "import os; os.getrandom(1)";
        let denied = preloaded(world, &["python3", "-c", python]).env("SECCOMP_SYSCALL_DENY", "getrandom");
        denied.run().died_of(SIGSYS);
    });
}

#[test]
fn an_empty_list_allows_nothing_and_empty_entries_are_skipped() {
    let world = World::new(&User::ordinary());
    preloaded(&world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", "").run().died_of(SIGSYS);
    let list = format!("::{}::", HELLO.replace(':', "::"));
    preloaded(&world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", list).run().success().silent();
}

#[test]
fn a_deny_list_kills_at_the_named_call_only() {
    in_worlds(|world| {
        let deny =
            |command: &[&str]| preloaded(world, command).env("SECCOMP_SYSCALL_DENY", "execve:mprotect").run();
        deny(&[&world.program("hello")]).success().silent().prints("Hello, world!\n");
        deny(&["env", "true"]).died_of(SIGSYS).silent();
    });
}

#[test]
fn a_misspelt_variable_is_refused() {
    in_worlds(|world| {
        let hello = world.program("hello");
        for name in
            ["SECCOMP_SYSCAL_ALLOW", "SECCOMP_SYSCALLS_DENY", "SECOMP_SYSCALL_ALLOW", "SECCOMP_DEFAULT_ACTON"]
        {
            let out = preloaded(world, &[&hello]).env(name, "write").run();
            out.exited(125).says(&format!("unknown variable '{name}' (did you mean 'SECCOMP_")).prints("");
        }
        // Other programs have variables too.
        let out = preloaded(world, &[&hello]).env("SECCOMP_PROFILE", "x").env("SECRET", "x").run();
        out.success().prints("Hello, world!\n");
    });
}

#[test]
fn a_call_on_both_lists_is_denied() {
    let world = World::new(&User::ordinary());
    let both = |deny: &str| {
        let cmd = preloaded(&world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", HELLO);
        cmd.env("SECCOMP_SYSCALL_DENY", deny).run()
    };
    both("write").died_of(SIGSYS);
    both("mkdir").success().prints("Hello, world!\n");
}

#[test]
fn log_mode_lets_everything_through() {
    in_worlds(|world| {
        let cmd = preloaded(world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", "");
        cmd.env("SECCOMP_DEFAULT_ACTION", "log").run().success().silent().prints("Hello, world!\n");
    });
}

#[test]
fn a_program_can_be_linked_with_it_permanently() {
    need!("patchelf");
    in_worlds(|world| {
        let program = world.subject("hello");
        let linked = world.path("linked");
        let patch = Cmd::new("patchelf").arg("--add-needed").arg(stage::shim()).arg("--output").arg(&linked);
        patch.arg(&program).run().success();
        let program = linked;
        let run = |list: &str| world.bare([&program]).env("SECCOMP_SYSCALL_ALLOW", list).run();
        run(HELLO).success().silent().prints("Hello, world!\n");
        run("fstat:newfstatat:getrandom:brk:exit_group").died_of(SIGSYS).silent();
        world.bare([&program]).run().success().silent();
    });
}

#[test]
fn the_status_file_shows_a_filter_only_where_one_is_asked_for() {
    let world = World::new(&User::ordinary());
    let grep = ["grep", "^Seccomp:", "/proc/self/status"];
    preloaded(&world, &grep).run().success().silent().prints("Seccomp:\t0\n");
    let list =
        "brk:close:exit_group:fstat:newfstatat:futex:mmap:openat:read:rt_sigaction:sigaltstack:stat:write";
    let cmd = preloaded(&world, &grep).env("SECCOMP_SYSCALL_ALLOW", list);
    cmd.env("SECCOMP_DEFAULT_ACTION", "log").run().success().silent().prints("Seccomp:\t2\n");
}

#[test]
fn each_default_action_does_what_it_says() {
    let world = World::new(&User::ordinary());
    let attempt = world.program("attempt");
    let (mkdirat, at) = (libc::SYS_mkdirat.to_string(), libc::AT_FDCWD.to_string());
    let words = [attempt.as_str(), "syscall", &mkdirat, &at, "s:made", "0755"];
    let with = |action: &str| {
        let cmd = preloaded(&world, &words).env("SECCOMP_SYSCALL_DENY", "mkdirat");
        let out = cmd.env("SECCOMP_DEFAULT_ACTION", action).run();
        assert!(action == "log" || !world.exists("made"), "{action} let the call through");
        out
    };
    with("kill").died_of(SIGSYS).silent();
    with("trap").died_of(SIGSYS).silent();
    with("errno").exited(1).prints("errno 1 (Operation not permitted)\n");
    with("errno=ENOSYS").exited(1).prints("errno 38 (Function not implemented)\n");
    with("errno=EACCES").exited(1).prints("errno 13 (Permission denied)\n");
    with("log").success();
    assert!(world.exists("made"));
}

#[test]
fn trap_can_be_caught_and_kill_cannot() {
    need!("perl");
    let world = World::new(&User::ordinary());
    let program = "$SIG{SYS} = sub { print qq(caught\\n); exit 3 }; mkdir q(made); print qq(went on\\n)";
    let with = |action: &str| {
        let cmd = preloaded(&world, &["perl", "-e", program]).env("SECCOMP_SYSCALL_DENY", "mkdir:mkdirat");
        cmd.env("SECCOMP_DEFAULT_ACTION", action).run()
    };
    with("trap").exited(3).prints("caught\n");
    with("kill").died_of(SIGSYS).prints("");
}

#[test]
fn children_stay_confined_without_the_variables() {
    in_worlds(|world| {
        let deny = |script: &str| {
            let cmd = preloaded(world, &["sh", "-c", script]).env("SECCOMP_SYSCALL_DENY", "mkdir:mkdirat");
            cmd.env("SECCOMP_DEFAULT_ACTION", "errno").run()
        };
        deny("env -i /bin/mkdir made").failed();
        deny("exec /bin/mkdir made").failed();
        deny("unset LD_PRELOAD SECCOMP_SYSCALL_DENY; /bin/mkdir made").failed();
        deny("SECCOMP_SYSCALL_DENY=read SECCOMP_SYSCALL_ALLOW=mkdir /bin/mkdir made").failed();
        assert!(!world.exists("made"));
        deny("env -i /bin/touch allowed").success();
        assert!(world.exists("allowed"));
    });
}

#[test]
fn a_static_child_stays_confined_too() {
    let world = World::new(&User::ordinary());
    let program = world.subject("attempt-static");
    let script =
        format!("{} syscall {} {} s:made 0755", program.display(), libc::SYS_mkdirat, libc::AT_FDCWD);
    let cmd = preloaded(&world, &["sh", "-c", &script]).env("SECCOMP_SYSCALL_DENY", "mkdirat");
    cmd.env("SECCOMP_DEFAULT_ACTION", "errno").run().exited(1);
    assert!(!world.exists("made"));
}

#[test]
fn the_variables_are_gone_when_main_runs() {
    in_worlds(|world| {
        let cmd = preloaded(world, &[&world.program("attempt"), "env"]).env("SECCOMP_SYSCALL_DENY", "mkdir");
        let cmd = cmd.env(
            "SECCOMP_SYSCALL_ALLOW",
            "@default:mkdir:fstat:newfstatat:write:read:brk:mmap:close:getrandom",
        );
        let out =
            cmd.env("SECCOMP_DEFAULT_ACTION", "log").env("AAA", "1").env("ZZZ", "2").run().success().silent();
        let text = out.out();
        for gone in ["SECCOMP_", "SBX_", "libsandbox"] {
            assert!(!text.contains(gone), "{gone} is still there: {out}");
        }
        for kept in ["AAA=1\n", "ZZZ=2\n", "HOME="] {
            assert!(text.contains(kept), "{kept} was lost: {out}");
        }
    });
}

#[test]
fn other_preloaded_libraries_stay_in_the_environment() {
    let world = World::new(&User::ordinary());
    let hook = world.subject("hook.so");
    let list = format!("{}:{}", stage::shim().display(), hook.display());
    let cmd = world
        .bare([&world.program("attempt"), "env"])
        .env("LD_PRELOAD", list)
        .env("SECCOMP_SYSCALL_DENY", "mkdir");
    let out = cmd.run().success();
    assert!(
        out.out().contains(&format!("LD_PRELOAD={}\n", hook.display())),
        "the other entry was lost: {out}"
    );
    assert!(!out.out().contains("libsandbox"), "our own entry is still there: {out}");
    assert!(world.exists("mark"), "the other library was not loaded");
}

/// A library that is loaded later and asks to come first does come first, and has a thread before there is a filter.
#[test]
fn threads_that_exist_already_are_confined_too() {
    as_users(|user| {
        for (denied, bound) in [("mkdirat", true), ("rmdir", false)] {
            let world = World::new(user);
            let list = format!("{}:{}", stage::shim().display(), world.subject("rival.so").display());
            let script = "echo >begun; while [ ! -e mark ]; do sleep 0.02; done";
            let cmd = world.bare(["sh", "-c", script]).env("LD_PRELOAD", list);
            cmd.env("SECCOMP_DEFAULT_ACTION", "errno").env("SECCOMP_SYSCALL_DENY", denied).run().success();
            assert_eq!(world.exists("made"), !bound, "{denied}");
        }
    });
}

#[test]
fn verbose_prints_one_line() {
    let world = World::new(&User::ordinary());
    let cmd = preloaded(&world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", HELLO);
    let out = cmd.env("SBX_VERBOSE", "1").run().success().prints("Hello, world!\n");
    assert_eq!(out.err().lines().count(), 1, "not one line: {out}");
}

#[test]
fn variables_that_cannot_be_understood_end_with_125_before_main() {
    in_worlds(|world| {
        let hello = world.program("hello");
        let with = |key: &str, value: &str, words: &[&str]| {
            preloaded(world, &[&hello]).env(key, value).run().refused(125, words);
        };
        with("SECCOMP_SYSCALL_ALLOW", "wirte", &["wirte", "write"]);
        with("SECCOMP_SYSCALL_ALLOW", "read:opennat:write", &["opennat", "openat"]);
        with("SECCOMP_SYSCALL_DENY", "exeve", &["exeve", "execve"]);
        with("SECCOMP_SYSCALL_ALLOW", "@file-sistem", &["@file-sistem", "@file-system"]);
        with("SECCOMP_SYSCALL_ALLOW", "openat[reed]", &["reed", "read"]);
        with("SECCOMP_SYSCALL_ALLOW", "openat[read", &["openat[read"]);
        with("SECCOMP_SYSCALL_ALLOW", "read,write", &["read,write"]);
        with("SECCOMP_SYSCALL_ALLOW", "READ", &["READ", "read"]);
        with("SECCOMP_SYSCALL_ALLOW", " read", &["read"]);
    });
}

#[test]
fn a_variable_that_is_set_twice_ends_with_125() {
    // The library would read one of them, and a program that searches for itself the other.
    let script = "import ctypes, sys\n\
                  words = [word.encode() for word in sys.argv[1:]]\n\
                  args = (ctypes.c_char_p * 2)(words[0])\n\
                  envp = (ctypes.c_char_p * len(words))(*words[1:])\n\
                  ctypes.CDLL(None).execve(words[0], args, envp)";
    let world = World::new(&User::ordinary());
    let (hello, preload) = (world.program("hello"), format!("LD_PRELOAD={}", stage::shim().display()));
    let allow = format!("SECCOMP_SYSCALL_ALLOW={HELLO}");
    let start = |variables: &[&str]| {
        let words = ["/usr/bin/python3", "-c", script, &hello, &preload];
        world.bare([&words[..], variables].concat()).run()
    };
    start(&[&allow]).success();
    for twice in [
        [allow.as_str(), "SECCOMP_SYSCALL_ALLOW=@file-system"],
        ["SECCOMP_SYSCALL_DENY=mkdir", "SECCOMP_SYSCALL_DENY="],
    ] {
        start(&twice).refused(125, &["is set twice"]);
    }
}

#[test]
fn variables_that_cannot_be_enforced_end_with_125() {
    let world = World::new(&User::ordinary());
    for name in ["LL_FS_RO", "LL_FS_RW", "LL_TCP_BIND", "LL_TCP_CONNECT", "LL_SCOPED"] {
        let cmd = preloaded(&world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", HELLO);
        cmd.env(name, "/usr").run().refused(125, &[name, "cannot enforce"]);
    }
}

#[test]
fn a_bad_default_action_ends_with_125() {
    let world = World::new(&User::ordinary());
    let hello = world.program("hello");
    for action in ["explode", "errno=EWHAT", "errno=", "KILL", "allow", ""] {
        let cmd = preloaded(&world, &[&hello]).env("SECCOMP_SYSCALL_ALLOW", HELLO);
        cmd.env("SECCOMP_DEFAULT_ACTION", action).run().refused(125, &["SECCOMP_DEFAULT_ACTION"]);
    }
}

#[test]
fn bytes_that_are_not_utf8_are_refused_without_a_crash() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new(&User::ordinary());
    for bytes in [&b"\xff\xfe"[..], b"read:\x80write", b"[", b"]", b"@", b"@:", b"a[b[c]]", b"read[]", b"[x]"]
    {
        let value = std::ffi::OsStr::from_bytes(bytes);
        preloaded(&world, &[&world.program("hello")])
            .env("SECCOMP_SYSCALL_ALLOW", value)
            .run()
            .refused(125, &[]);
    }
}

#[test]
fn a_very_long_list_is_accepted_or_refused() {
    let world = World::new(&User::ordinary());
    let list = format!("{}{HELLO}", "read:".repeat(20_000));
    preloaded(&world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", list).run().success().silent();
    let name = "x".repeat(100_000);
    preloaded(&world, &[&world.program("hello")]).env("SECCOMP_SYSCALL_ALLOW", name).run().refused(125, &[]);
}

#[test]
fn groups_and_restrictions_work_in_lists() {
    let world = World::new(&User::ordinary());
    let attempt = world.program("attempt");
    world.write("file", "text\n");
    let with = |list: &str, words: &[&str]| {
        let cmd =
            preloaded(&world, &[&[attempt.as_str()], words].concat()).env("SECCOMP_SYSCALL_ALLOW", list);
        cmd.env("SECCOMP_DEFAULT_ACTION", "errno").run()
    };
    let base = "fstat:newfstatat:getrandom:brk:mmap:read:write:close:exit_group";
    with(&format!("{base}:openat[read]"), &["read", "file"]).success().prints("text\n");
    with(&format!("{base}:openat[read]"), &["create", "made"]).exited(1);
    assert!(!world.exists("made"));
    with(&format!("{base}:@file-system"), &["create", "made"]).success();
    assert!(world.exists("made"));
    with(base, &["read", "file"]).exited(1).prints("errno 1 (Operation not permitted)\n");
}

#[test]
fn calls_of_another_architecture_do_not_get_past_a_list() {
    let world = World::new(&User::ordinary());
    let attempt = world.program("attempt");
    let deny = |words: &[&str]| {
        let cmd =
            preloaded(&world, &[&[attempt.as_str()], words].concat()).env("SECCOMP_SYSCALL_DENY", "mkdirat");
        cmd.env("SECCOMP_DEFAULT_ACTION", "errno").run()
    };
    if machine::has_32_bit_calls() {
        deny(&["int80", "39", "made", "0755"]).died_of(SIGSYS);
    }
    let x32 = (0x4000_0000_i64 + libc::SYS_mkdirat).to_string();
    deny(&["syscall", &x32, &libc::AT_FDCWD.to_string(), "s:made", "0755"]).failed();
    assert!(!world.exists("made"));
}

#[test]
fn a_musl_program_is_confined_or_refused() {
    need!("musl-gcc");
    let world = World::new(&User::ordinary());
    let program = world.program("attempt-musl");
    let cmd =
        preloaded(&world, &[&program, "create", "mark"]).env("SECCOMP_SYSCALL_DENY", "open:openat:creat");
    cmd.run().failed();
    assert!(!world.exists("mark"));
}

#[test]
fn descriptors_stay_as_they_were() {
    let world = World::new(&User::ordinary());
    let command = [&world.program("attempt"), "fds"];
    let plain = world.bare(command).run().success().out();
    let out = world.bare(command).env("LD_PRELOAD", stage::shim()).env("SECCOMP_SYSCALL_DENY", "mkdir").run();
    assert_eq!(out.success().out(), plain);
}

#[test]
fn the_library_is_small_and_needs_no_other() {
    need!("nm", "readelf");
    let shim = stage::shim();
    assert!(shim.metadata().unwrap().len() <= 32 * 1024, "larger than 32 KB");
    let dynamic = Cmd::new("readelf").args(["-dW"]).arg(shim).run().success().out();
    assert!(!dynamic.contains("(NEEDED)"), "needs libraries: {dynamic}");
    assert!(dynamic.contains("INITFIRST"), "not marked initfirst: {dynamic}");
    Cmd::new("nm").args(["-D", "--defined-only"]).arg(shim).run().success().prints("");
}

#[test]
fn shim_writes_the_same_library_to_stdout() {
    let world = World::new(&User::ordinary());
    let out = world.sbx(["shim"]).run().success();
    assert_eq!(out.stdout, std::fs::read(stage::shim()).unwrap());
}

#[test]
fn env_prints_variables_that_confine_a_program() {
    let world = World::new(&User::ordinary());
    let attempt = world.program("attempt");
    world.write("file", "text\n");
    let script = r#"set -a; eval "$("$0" env --profile minimal)"; LD_PRELOAD="$1"; shift; exec "$@""#;
    let run = |words: &[&str]| {
        let front = ["sh", "-c", script].into_iter().map(std::ffi::OsString::from);
        let middle = [stage::sbx(), stage::shim()].into_iter().map(|path| path.as_os_str().to_owned());
        world.bare(front.chain(middle).chain(words.iter().map(std::ffi::OsString::from))).run()
    };
    run(&["cat", "file"]).success().prints("text\n");
    run(&[&attempt, "create", "made"]).failed();
    run(&[&attempt, "connect", "1"]).failed();
    assert!(!world.exists("made"));
}
