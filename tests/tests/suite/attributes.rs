//! Extended attributes, access lists, flags and the group bit of directories: changed where files may be written, and
//! nowhere else.

use sbx_tests::tools::skip;
use sbx_tests::tree::mode;
use sbx_tests::users::as_users;
use sbx_tests::world::World;
use sbx_tests::{Cmd, in_worlds, kernel, promise};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const PYTHON: &str = "/usr/bin/python3";
const ATTEMPTS: &str = include_str!("../../subjects/attributes.py");
/// With namespaces, where there are some, and without.
const LEVELS: [&[&str]; 2] = [&[], &["--namespaces", "none"]];

/// All attributes and the mode of a file, from outside.
fn state(world: &World, file: &Path) -> String {
    let script = "import os, sys, fcntl, struct\n\
        f = sys.argv[1]\n\
        print(sorted((n, os.getxattr(f, n)[:2]) for n in os.listxattr(f)), oct(os.stat(f).st_mode))\n\
        try: print(fcntl.ioctl(os.open(f, 0), 0x80086601, b'\\0' * 4))\n\
        except OSError: pass";
    world.bare([PYTHON, "-c", script]).arg(file).run().success().out()
}

/// A file with two attributes; `false` where the file system here has no attributes.
fn with_attributes(world: &World, file: &Path) -> bool {
    let script = "import os, sys\n\
        for n in ('user.old', 'user.older'): os.setxattr(sys.argv[1], n, b'v')";
    let there = world.bare([PYTHON, "-c", script]).arg(file).run().err().is_empty();
    if !there {
        skip("the file system has no attributes of users");
    }
    there
}

/// The attempts on a file that succeeded.
fn attempts(world: &World, run: Cmd, file: &Path) -> Vec<String> {
    let run = run.pass_fd(File::open(file).unwrap().into(), 0);
    let out = run.args([PYTHON, "attempts.py"]).arg(file).args(["user.old", "user.older"]).run().success();
    assert!(world.exists("attempts.py"));
    out.out().lines().map(str::to_owned).collect()
}

/// Runs a test as each user and with each of some flags, where the file system here has such attributes.
fn staged(levels: &[&[&str]], act: impl Fn(&World, &[&str])) {
    promise!(kernel::PATHS);
    as_users(|user| {
        for flags in levels {
            let world = World::new(user);
            world.write("attempts.py", ATTEMPTS);
            let file = world.write("file", "x\n");
            if !with_attributes(&world, &file) || !with_attributes(&world, &world.outside.join("kept")) {
                return;
            }
            act(&world, flags);
        }
    });
}

#[test]
fn attributes_are_set_where_files_may_be_written() {
    staged(&LEVELS, |world, flags| {
        let file = world.path("file");
        let control = world.write("control", "x\n");
        assert!(with_attributes(world, &control));
        let mut expected = attempts(world, world.bare(["/usr/bin/env", "--"]), &control);
        assert!(expected.len() > 8, "{expected:?}");
        // The supervisor does not follow this kind of link.
        expected.retain(|attempt| attempt != "root");
        let run = world.sbx(["run", "-q"]).args(flags).arg("--");
        let done = attempts(world, run, &file);
        assert_eq!(done, expected, "{flags:?}");
        // The result is the same as without a sandbox.
        let control = state(world, &control).replace("('user.root', b'v'), ", "");
        assert_eq!(state(world, &file), control, "{flags:?}");
    });
}

#[test]
fn attributes_outside_stay_as_they_are() {
    staged(&LEVELS, |world, flags| {
        let outside = world.outside.join("kept");
        let before = state(world, &outside);
        let readable = ["--ro", world.outside.to_str().unwrap()];
        for more in [&[][..], &readable] {
            let run = world.sbx(["run", "-q"]).args(flags).args(more).arg("--");
            let done = attempts(world, run, &outside);
            assert!(done.is_empty(), "{flags:?} {more:?}: {done:?}");
        }
        // In the workspace, under a profile that only reads.
        let inside = state(world, &world.path("file"));
        let run = world.sbx(["run", "-q", "-p", "read-only"]).args(flags).arg("--");
        let done = attempts(world, run, &world.path("file"));
        assert!(done.is_empty(), "{flags:?}: {done:?}");
        assert_eq!(state(world, &world.path("file")), inside);
        assert_eq!(state(world, &outside), before);
    });
}

/// Attributes of the system, and those that programs outside read as owners and modes, get the answer of a file system
/// without them.
#[test]
fn only_attributes_of_users_are_set() {
    staged(&[&[]], |world, _| {
        let file = world.path("file");
        let before = state(world, &file);
        let names = "trusted.x security.x security.capability user.overlay.redirect user.containers.override_stat \
            user.virtfs.mode user.rootlesscontainers system.x x";
        let script = "import errno, os, sys\n\
            for n in sys.argv[1:]:\n\
            \x20   for act in (lambda: os.setxattr('file', n, b'v'), lambda: os.removexattr('file', n)):\n\
            \x20       try: act(); print(n)\n\
            \x20       except OSError as e: print(n) if e.errno != errno.EOPNOTSUPP else None";
        for profile in ["write", "workspace"] {
            let run = world.run(profile, [PYTHON, "-c", script]).args(names.split_whitespace()).run();
            run.success().prints("").silent();
        }
        assert_eq!(state(world, &file), before);
        // Nobody listens: none is set.
        let one = "import errno, os\n\
            try: os.setxattr('file', 'user.x', b'v')\n\
            except OSError as e: print(e.errno == errno.EOPNOTSUPP)";
        world.sbx(["run", "-q", "--exec", "--", PYTHON, "-c", one]).run().success().prints("True\n");
        assert_eq!(state(world, &file), before);
    });
}

#[test]
fn only_harmless_flags_are_set() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        world.write("file", "x\n");
        let script = "import fcntl, os, struct, sys\n\
            fd = os.open('file', 0)\n\
            present = struct.unpack('i', fcntl.ioctl(fd, 0x80086601, b'\\0' * 4))[0]\n\
            for flag in map(int, sys.argv[1:]):\n\
            \x20   try: fcntl.ioctl(fd, 0x40086602, struct.pack('l', present | flag)); print(flag)\n\
            \x20   except OSError as e: pass";
        // No dump, no update of the access time; append only, immutable, undelete.
        let (harmless, others) = (["64", "128"], ["32", "16", "2"]);
        let control = world.bare([PYTHON, "-c", script]).args(harmless).run().out();
        if control.is_empty() {
            return skip("the file system has no flags");
        }
        for profile in ["workspace", "write"] {
            let run = |flags: &[&str]| {
                world.sbx(["run", "-q", "-p", profile, "--", PYTHON, "-c", script]).args(flags).run()
            };
            // `write` allows no call that reads flags.
            let expected = if profile == "write" { "" } else { &control };
            run(&harmless).prints(expected);
            run(&others).prints("");
        }
        let control = world.bare([PYTHON, "-c", script]).args(others).run().out();
        assert!(control.contains('2'), "{control}");
    });
}

#[test]
fn a_name_that_changes_in_memory_after_the_check_has_no_effect() {
    staged(&[&[]], |world, _| {
        let script = "import ctypes, threading\n\
            libc = ctypes.CDLL(None)\n\
            name = ctypes.create_string_buffer(b'user.overlay.x')\n\
            going = True\n\
            def change():\n\
            \x20   while going:\n\
            \x20       name[5:8] = b'abc'\n\
            \x20       name[5:8] = b'ove'\n\
            thread = threading.Thread(target=change); thread.start()\n\
            for _ in range(300): libc.setxattr(b'file', name, b'v', 1, 0)\n\
            going = False; thread.join()";
        world.sbx(["run", "-q", "--", PYTHON, "-c", script]).run().success();
        let after = state(world, &world.path("file"));
        assert!(!after.contains("user.overlay"), "{after}");
    });
}

#[test]
fn directories_get_the_group_bit_and_files_do_not() {
    promise!(kernel::PATHS);
    as_users(|user| {
        for flags in LEVELS {
            for profile in ["write", "workspace"] {
                let world = World::new(user);
                let (file, directory) = (world.write("file", ""), world.path("shared"));
                world.make_dir(&directory);
                world.make_dir(&world.outside.join("directory"));
                let outside = world.outside.join("directory");
                let before = (mode(&file), mode(&outside));
                let run = |command: &[&str]| {
                    world.sbx(["run", "-q", "-p", profile]).args(flags).arg("--").args(command).run()
                };
                run(&["chmod", "2775", "shared"]).success();
                assert_eq!(mode(&directory), 0o2775, "{profile}");
                run(&["chmod", "2755", "file"]).failed();
                run(&["chmod", "6755", "shared"]).failed();
                run(&["chmod", "4755", "shared"]).failed();
                run(&["chmod", "2775", outside.to_str().unwrap()]).failed();
                run(&["cp", "-a", "shared", "copy"]).success();
                assert_eq!(mode(world.path("copy")), 0o2775);
                assert_eq!((mode(&file), mode(&outside), mode(&directory)), (before.0, before.1, 0o2775));
                fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
            }
        }
        let world = World::new(user);
        let directory = world.outside.join("directory");
        world.make_dir(&directory);
        world.bare(["chmod", "2775"]).arg(&directory).run().success();
        assert_eq!(mode(&directory), 0o2775);
    });
}

#[test]
fn no_hint_suggests_what_would_stay_refused() {
    promise!(kernel::PATHS);
    const ALLOWED: [&str; 2] = ["--allow-calls", "chmod:fchmod:fchmodat:fchmodat2"];
    as_users(|user| {
        for flags in LEVELS {
            let world = World::new(user);
            let file = world.write("file", "");
            for (more, why) in [
                (
                    &[][..],
                    "profile 'workspace' makes no set-user-ID or set-group-ID files, and no flag helps\n",
                ),
                (
                    &ALLOWED[..],
                    "no file gets a set-user-ID or set-group-ID bit, whatever the flags; set it outside\n",
                ),
            ] {
                let run = |mode: &str| {
                    world.sbx(["run"]).args(flags).args(more).args(["--", "chmod", mode, "file"]).run()
                };
                run("640").success().silent();
                for bits in ["4640", "2640"] {
                    run(bits).failed().says(why);
                }
                assert_eq!(mode(&file), 0o640);
            }
        }
    });
}

/// File systems do these for the owner of a file that was opened for reading, and Landlock has no rule about them.
#[test]
fn files_open_for_reading_are_not_changed() {
    const SUBVOLUMES: [u32; 12] = [
        0x5000_9401,
        0x5000_9402,
        0x5000_940e,
        0x5000_940f,
        0x4030_9410,
        0x5000_9417,
        0x5000_9418,
        0x4008_941a,
        0xc0c8_9425,
        0xc0c0_9425,
        0x5000_943f,
        0x4020_bc10,
    ];
    const FILES: [u32; 24] = [
        0x4080_6685,
        0x800c_6613,
        0xc050_6617,
        0xc040_6618,
        0x4018_6f04,
        0x4020_bc11,
        0xf501,
        0xf502,
        0xf503,
        0xf504,
        0xf505,
        0xf519,
        0x4004_f50d,
        0x4004_7211,
        0x4008_8302,
        0x6609,
        0xc028_660f,
        0xc0c0_586d,
        0x4028_5881,
        0xc020_f509,
        0x4008_7602,
        0x8008_bc40,
        0x4028_9702,
        0x4028_9705,
    ];
    // EXT4_IOC_SETVERSION, with the upper half too; then the error of each of the others; FS_IOC_GETVERSION.
    let script = "import ctypes, os, sys\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]\n\
        fd = os.open('file', 0)\n\
        def ask(command, value=0):\n\
        \x20   room = ctypes.create_string_buffer(value.to_bytes(4, 'little'), 8192)\n\
        \x20   failed = libc.ioctl(fd, command, room)\n\
        \x20   return ctypes.get_errno() if failed else int.from_bytes(room.raw[:4], 'little')\n\
        if sys.argv[1] == 'set': ask(0x40086604, 77), ask(0x140086604, 77)\n\
        print([hex(c) for c in map(int, sys.argv[2:]) if ask(c) != 1], ask(0x80087601))";
    in_worlds(|world| {
        world.write("file", "x\n");
        let version = |how: &str| world.bare([PYTHON, "-c", script, how]).run().success().out();
        let before = version("look");
        let commands: Vec<String> = SUBVOLUMES.iter().chain(&FILES).map(u32::to_string).collect();
        for profile in ["read-only", "workspace", "no-exec"] {
            let run = world.sbx(["run", "-q", "-p", profile, "--", PYTHON, "-c", script, "set"]);
            // Reading is answered as without a sandbox.
            run.args(&commands).run().success().prints(&before);
            assert_eq!(version("look"), before, "{profile}");
        }
        if version("set") == before {
            skip("the file system has no version of a file that can be set");
        }
    });
}

/// What is read of an access list names nobody, where its users have no number in the run's user namespace.
#[test]
fn an_access_list_that_names_nobody_is_named() {
    promise!(namespaces);
    as_users(|user| {
        let world = World::new(user);
        let name = "system.posix_acl_access";
        ["one", "two"].iter().for_each(|file| drop(world.write(file, "")));
        let sets = format!(
            "import os, struct\n\
             all = ((1, 6, 2**32 - 1), (2, 4, 12345), (4, 4, 2**32 - 1), (16, 4, 2**32 - 1), (32, 4, 2**32 - 1))\n\
             entries = [struct.pack('<HHI', *each) for each in all]\n\
             os.setxattr('one', '{name}', b'\\2\\0\\0\\0' + b''.join(entries))"
        );
        if !world.bare([PYTHON, "-c", &sets]).run().err().is_empty() {
            return skip("the file system has no access lists");
        }
        let lists = || state(&world, &world.path("two")).contains("posix_acl");
        let copies = format!("import os; os.setxattr('two', '{name}', os.getxattr('one', '{name}'))");
        let run = |flags: &[&str]| world.sbx(["run"]).args(flags).args(["--", PYTHON, "-c", &copies]).run();
        let out = run(&[]);
        // Root's namespace has all numbers.
        assert_eq!(lists(), user.is_root(), "{out}");
        if !user.is_root() {
            out.failed().says(
                "the access list names users who have no number in the run's namespaces; allow it with",
            );
            run(&["--namespaces", "none"]).success();
            assert!(lists());
        }
    });
}
