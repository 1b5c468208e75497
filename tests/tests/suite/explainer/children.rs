//! Whose refusals are told: a child has its parent's memory, or a copy of it.

use super::{lines, none, one};
use sbx_tests::{World, in_worlds, need, promise, subjects};

/// The lines of a program in Python, which finds a file outside as `KEPT` and a directory out of sight as `HIDDEN`.
fn python(world: &World, program: &str) -> Vec<String> {
    let hidden = world.home.join("hidden");
    world.make_dir(&hidden);
    let names =
        format!("KEPT, HIDDEN = '{}', '{}'\n", world.outside.join("kept").display(), hidden.display());
    let before = "import os, subprocess, sys\n\
                  def fails(act, *words):\n\
                  \x20   try: act(*words)\n\
                  \x20   except OSError: return\n\
                  \x20   raise SystemExit(99)\n";
    world.write("program.py", format!("{before}{names}{program}\n"));
    lines(world, &[], "exec /usr/bin/python3 program.py")
}

#[test]
fn a_child_tells_its_own_refusals_and_not_its_parents() {
    need!("python3");
    promise!(namespaces);
    in_worlds(|world| {
        let waits = "else: os.waitpid(child, 0)";
        let fork = "fails(open, KEPT)\nchild = os.fork()";
        none(&python(world, &format!("{fork}\nif child == 0: os._exit(1)\n{waits}")));
        let refused = "fails(open, '/nowhere')\nchild = os.fork()\nif child == 0:\n\x20   fails(open, KEPT)";
        let said = python(world, &format!("{refused}\n\x20   os._exit(1)\n{waits}"));
        one(&said, &["may not read", "kept"]);
        // The parent's stay its own.
        one(&python(world, &format!("{fork}\nif child == 0: os._exit(0)\n{waits}\nsys.exit(1)")), &["kept"]);
    });
}

/// subprocess starts children with vfork(2): they have their parent's memory until they execute a program.
#[test]
fn a_child_that_starts_nothing_says_what_it_was_refused() {
    need!("python3");
    promise!(namespaces);
    in_worlds(|world| {
        let start = |words: &str| format!("subprocess.run(['/bin/true']{words})");
        one(&python(world, &start(", cwd=HIDDEN")), &["hidden", "out of sight"]);
        none(&python(world, &format!("fails(open, KEPT)\n{}", start(""))));
        // What a child has told is not told again, and what comes after it is.
        let fails = "fails(subprocess.run, [KEPT])\n";
        let said = python(world, &format!("{fails}fails(os.listdir, HIDDEN)\nsys.exit(1)"));
        assert!(said.iter().any(|line| line.contains("hidden")), "{said:?}");
    });
}

/// libc starts a program by itself in some functions, and Go does it without libc. Nobody sees the library, and what
/// the program sets stays.
#[test]
fn what_is_started_in_any_way_says_what_it_was_refused() {
    promise!(namespaces);
    in_worlds(|world| {
        let starts = world.install(&subjects::program("starts"), "starts").display().to_string();
        let refused =
            format!("cat {}; echo ${{NEW-none}} $0 $6; exit 3", world.outside.join("kept").display());
        for (way, shows) in [
            ("system", "none sh\nNEW=1\n"),
            ("popen", "none sh\n"),
            ("execl", "none 0 6\n"),
            ("execlp", "none 0 6\n"),
            ("execle", "2 0 6\n"),
        ] {
            let out = world.sbx(["run", "--", &starts, way, &refused]).run().exited(3).prints(shows);
            one(&out.sbx_lines(), &["may not read", "kept", "in cat["]);
        }
        let own = "LD_PRELOAD=libm.so.6 exec";
        let out =
            world.sbx(["run", "--", "sh", "-c", &format!("{own} {starts} system true")]).run().success();
        assert_eq!(out.out(), "LD_PRELOAD=libm.so.6\nNEW=1\n");
    });
}

#[test]
fn interpreters_that_have_a_shell_start_programs_pass_the_library_on() {
    need!("awk", "perl", "python3", "script", "go");
    promise!(namespaces);
    in_worlds(|world| {
        let kept = world.outside.join("kept").display().to_string();
        world.write("main.go", format!("package main\n\n//go:generate cat {kept}\nfunc main() {{}}\n"));
        for command in [
            format!("awk 'BEGIN {{ exit system(\"cat {kept}\") }}'"),
            format!("awk 'BEGIN {{ exit (\"cat {kept}\" | getline) < 1 }}'"),
            format!("perl -e 'exit(system(\"cat {kept}; exit 3\") >> 8)'"),
            format!("python3 -c 'import os; os._exit(os.system(\"cat {kept}\") >> 8)'"),
            format!("script -qec 'cat {kept}' /dev/null"),
            "go generate main.go".to_string(),
        ] {
            one(&lines(world, &[], &command), &["may not read", "kept", "in cat["]);
        }
    });
}

#[test]
fn the_last_refusals_count_however_much_was_not_found() {
    need!("python3");
    promise!(namespaces);
    in_worlds(|world| {
        let many = "for number in range(100): fails(open, f'/nowhere/{number}')\n";
        one(
            &python(world, &format!("{many}fails(open, KEPT)\n{many}sys.exit(1)")),
            &["may not read", "kept"],
        );
        one(&python(world, &format!("{many}fails(os.listdir, HIDDEN)\nsys.exit(1)")), &["hidden"]);
        none(&python(world, &format!("{many}fails(open, KEPT)\n{many}sys.exit(0)")));
    });
}

/// A thread may have a name of its own (those of Java have), which says nothing to whoever reads the line.
#[test]
fn a_thread_is_named_by_its_process() {
    need!("python3");
    in_worlds(|world| {
        let script = "import ctypes, threading\n\
            def look():\n    \
                ctypes.CDLL(None).prctl(15, b'worker', 0, 0, 0)\n    \
                ctypes.CDLL(None).syscall(ADD_KEY, 0, 0, 0, 0, 0)\n\
            thread = threading.Thread(target=look); thread.start(); thread.join()";
        let script = script.replace("ADD_KEY", &libc::SYS_add_key.to_string());
        let out = world.sbx(["run", "--", "python3", "-c", &script]).run();
        assert!(out.err().contains("blocked add_key") && out.err().contains("in python3["), "{out}");
    });
}

/// A debugger looks for one that has ended meanwhile.
#[test]
fn a_process_whose_number_nobody_wrote_down_is_not_blamed() {
    promise!(namespaces);
    need!("python3");
    in_worlds(|world| {
        let own = std::process::id();
        one(&lines(world, &[], &format!("cat /proc/{own}/status")), &["is outside"]);
        let half = format!("python3 -c 'open(\"/proc/%d/status\" % ({own} * 2 // 2))'")
            .replace(&own.to_string(), &format!("({} + 1)", own - 1));
        none(&lines(world, &[], &half));
        none(&lines(world, &[], "sleep 0 & p=$!; wait; cat /proc/$p/status"));
    });
}

/// A program may have a loader and no libc: those of Go that are position independent, for one. The loader would not
/// start it where the library asked for a name that nobody has.
#[test]
fn a_program_without_libc_is_started() {
    need!("cc");
    let source = r#"
        void _start(void) {
        #ifdef __x86_64__
            __asm__("mov $60, %eax\n mov $7, %edi\n syscall");
        #else
            __asm__("mov x8, 93\n mov x0, 7\n svc 0");
        #endif
        }"#;
    in_worlds(|world| {
        world.write("own.c", source);
        world.bare(["cc", "-nostdlib", "-pie", "-fPIE", "-o", "own", "own.c"]).run().success();
        let out = world.bare(["readelf", "-d", "own"]).run().success();
        assert!(!out.out().contains("NEEDED"), "{out}");
        for flags in [&[][..], &["--namespaces", "none"], &["-p", "read-only"]] {
            world.sbx([&["run"], flags, &["--", "./own"]].concat()).run().exited(7);
            world.sbx([&["run"], flags, &["--", "sh", "-c", "./own; exit $?"]].concat()).run().exited(7);
        }
    });
}
