//! Tracing the run's own processes, where it has a pid namespace of its own, and nothing else.

use std::time::Duration;

use sbx_tests::{Cmd, Output, World, in_worlds, need, processes, promise};

const PYTHON: &str = "/usr/bin/python3";
const PROFILES: [&str; 3] = ["workspace", "no-exec", "read-only"];
const ONLY_INSIDE: &str = "allows this only where the run has namespaces of its own";

/// What a script in Python needs to trace.
const TRACER: &str = "
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
TRACEME, CONT, ATTACH, DETACH, SEIZE = 0, 7, 16, 17, 0x4206
def ptrace(request, pid=0):
    return 'done' if libc.ptrace(request, pid, 0, 0) == 0 else os.strerror(ctypes.get_errno())
";

/// A program with a function to stop in; it crashes if it has an argument.
const PROGRAM: &str = "
#include <stdio.h>
int twice(int value) { return value * 2; }
int main(int count, char **arguments) {
    printf(\"%d\\n\", twice(21));
    fflush(stdout);
    return count > 1 ? *(volatile int *)0 : 0;
}
";

/// A program that forgets memory if it has an argument.
const FORGETFUL: &str = "
#include <stdlib.h>
void *volatile kept;
int main(int count, char **arguments) {
    kept = malloc(10);
    if (count > 1) kept = 0; else free(kept);
    return 0;
}
";

fn shell(world: &World, script: &str) -> Cmd {
    world.sbx(["run", "--", "bash", "-ec", script]).timeout(Duration::from_secs(60))
}

fn python(world: &World, profile: &str, script: &str) -> Cmd {
    world.run(profile, [PYTHON, "-c", &format!("{TRACER}{script}")]).timeout(Duration::from_secs(60))
}

/// Compiles outside.
pub fn compile(world: &World, name: &str, text: &str, flags: &[&str]) {
    let source = format!("{name}.c");
    world.write(&source, text);
    world.bare([&["gcc", "-g", "-O0", "-o", name, &source], flags].concat()).run().success();
}

#[test]
fn gdb_stops_a_program_and_tells_where_it_crashed() {
    promise!(namespaces);
    need!("gcc", "gdb", "bash");
    in_worlds(|world| {
        compile(world, "program", PROGRAM, &[]);
        let gdb = "gdb -nx -batch -ex 'break twice' -ex run -ex 'print value * 100' -ex continue -ex backtrace \
                   --args ./program crash";
        let out = shell(world, gdb).run().success();
        assert!(
            out.out().contains("= 2100") && out.out().contains("Program received signal SIGSEGV"),
            "{out}"
        );
        assert!(out.out().contains("in main (count=2"), "{out}");
        assert!(out.sbx_lines().is_empty(), "{out}");
        let outside = world.sbx(["run", "--namespaces", "none", "--", "bash", "-ec", gdb]).run();
        assert!(!outside.out().contains("= 2100") && outside.err().contains(ONLY_INSIDE), "{outside}");
    });
}

#[test]
fn a_running_process_of_the_run_can_be_attached_to() {
    promise!(namespaces);
    need!("gcc", "gdb", "strace", "bash");
    in_worlds(|world| {
        let script = "sleep 30 & p=$!; gdb -nx -batch -ex 'info proc' -p $p 2>/dev/null | grep \"^process $p\" | cut -c1-7; \
                      (until test -s calls; do sleep 0.05; done; kill $p) & strace -q -o calls -p $p; grep -c 'killed by SIGTERM' calls";
        shell(world, script).run().success().silent().prints("process\n1\n");
    });
}

#[test]
fn strace_follows_a_build() {
    promise!(namespaces);
    need!("make", "strace", "bash");
    in_worlds(|world| {
        world.write("Makefile", "all: a b\na b:\n\t@cat Makefile | wc -l > $@; echo $@\n");
        let script = "strace -f -o calls make -s; grep -c 'execve(\"[^\"]*/wc\"' calls";
        shell(world, script).run().success().silent().prints("a\nb\n2\n");
        let out = world.sbx(["run", "--namespaces", "none", "--", "bash", "-c", script]).run().failed();
        assert!(out.err().contains(ONLY_INSIDE), "{out}");
    });
}

#[test]
fn the_leak_sanitizer_finds_leaks_and_only_them() {
    promise!(namespaces);
    need!("gcc");
    const FOUND: &str = "LeakSanitizer: detected memory leaks";
    in_worlds(|world| {
        compile(world, "forgetful", FORGETFUL, &["-fsanitize=address"]);
        for profile in PROFILES {
            let out = world.run(profile, ["./forgetful"]).run().success();
            assert!(out.sbx_lines().is_empty(), "{out}");
            world.run(profile, ["./forgetful", "x"]).run().exited(1).says(FOUND);
        }
        let front = ["run", "--namespaces", "none", "--", "./forgetful", "x"];
        let out = world.sbx(front).run().exited(1).says(ONLY_INSIDE);
        assert!(!out.err().contains(FOUND), "{out}");
        let allowed = ["run", "--namespaces", "none", "--allow-calls", "ptrace", "--", "./forgetful", "x"];
        world.sbx(allowed).run().exited(1).says(FOUND);
    });
}

/// The first process of the namespaces stands above the command, and is not in its Landlock domain.
#[test]
fn the_first_process_is_not_traced_read_or_slowed_down() {
    promise!(namespaces);
    need!("python3");
    let script = "
vector = (ctypes.c_ulong * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
there = (ctypes.c_ulong * 2)(0x1000, 8)
read = lambda pid: libc.process_vm_readv(pid, vector, 1, there, 1, 0) and os.strerror(ctypes.get_errno())
nice = lambda pid: open(f'/proc/{pid}/stat').read().rsplit(')')[1].split()[16]
print(os.getppid(), ptrace(ATTACH, 1), ptrace(SEIZE, 1), read(1), read(os.getpid()), sep='|')
def renice(pid):
    try: os.setpriority(os.PRIO_PROCESS, pid, 5)
    except OSError as error: return error.strerror
print(renice(1), nice(1), renice(os.getpid()), nice(os.getpid()), sep='|')
";
    const NO: &str = "Operation not permitted";
    in_worlds(|world| {
        for profile in PROFILES {
            let out = python(world, profile, script).run().success();
            let expected = format!("1|{NO}|{NO}|{NO}|Bad address\n{NO}|0|None|5\n");
            assert_eq!(out.out(), expected, "{profile}: {out}");
        }
    });
}

/// PTRACE_TRACEME makes the parent the tracer: for the command, that is `sbx`, which lets it go.
#[test]
fn a_command_that_makes_sbx_its_tracer_goes_on() {
    promise!(namespaces);
    need!("python3");
    let signals = "
signal.signal(signal.SIGUSR1, lambda *_: print('arrived'))
print(ptrace(TRACEME))
os.kill(os.getpid(), signal.SIGUSR1)
sys.stdout.flush()
";
    in_worlds(|world| {
        let exec = format!("{signals}\nptrace(TRACEME)\nos.execv('/bin/echo', ['echo', 'executed'])");
        python(world, "workspace", &exec).run().success().prints("done\narrived\nexecuted\n");
        python(world, "no-exec", signals).run().success().prints("done\narrived\n");
        // The same without namespaces, where the call is allowed by name.
        let script = format!("{TRACER}{signals}");
        let front = ["run", "--namespaces", "none", "--allow-calls", "ptrace", "--", PYTHON, "-c", &script];
        world.sbx(front).timeout(Duration::from_secs(60)).run().success().prints("done\narrived\n");
        let raised = "print(ptrace(TRACEME)); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGTERM)";
        python(world, "workspace", raised).run().exited(128 + 15).prints("done\n");
    });
}

/// A tracer that never looks keeps what it traces, even the command, from ending; no limit cares.
#[test]
fn a_tree_of_tracers_ends_with_the_run() {
    promise!(namespaces);
    need!("python3");
    let script = "
me, marker = os.getpid(), sys.argv[1]
ready, told = os.pipe()
if os.fork() == 0:
    print(ptrace(SEIZE, me), flush=True)
    os.write(told, b'x')
    while True: time.sleep(1)
os.read(ready, 1)
";
    in_worlds(|world| {
        let (text, marker) = (format!("{TRACER}{script}"), processes::marker());
        let words = ["run", "-t", "1s", "--kill-after", "100ms", "--", PYTHON, "-c", &text, &marker];
        world.sbx(words).timeout(Duration::from_secs(60)).run().exited(124).prints("done\n");
        processes::none_left(&marker);
    });
}

/// A sandbox of the run's own is a Landlock domain below: it can be traced, and cannot trace.
#[test]
fn a_sandbox_inside_traces_nothing_of_the_one_around_it() {
    promise!(namespaces);
    need!("python3", "bash");
    in_worlds(|world| {
        let sbx = world.install(sbx_tests::stage::sbx(), "sbx");
        let script = format!("{TRACER}\nprint(ptrace(SEIZE, int(sys.argv[1])))");
        world.write("seize.py", script);
        let inside = |flags: &str| {
            format!("sleep 30 & {} run -q {flags} -- {PYTHON} seize.py $!; kill $!", sbx.display())
        };
        const NO: &str = "Operation not permitted\n";
        shell(world, &inside("")).run().prints(NO);
        shell(world, &inside("--allow-calls ptrace")).run().prints(NO);
        shell(world, &format!("sleep 30 & {PYTHON} seize.py $!; kill $!")).run().prints("done\n");
    });
}

#[test]
fn a_process_changes_the_priority_of_its_own_kind() {
    promise!(namespaces);
    need!("renice", "bash", "python3");
    in_worlds(|world| {
        shell(world, "renice -n 5 -p $$ > /dev/null; nice").run().success().silent().prints("5\n");
        shell(world, "nice -n 3 nice").run().success().silent().prints("3\n");
        // With a thread's number, as JavaScript engines do.
        let policy = "import os, threading; me = threading.get_native_id(); \
            os.sched_setscheduler(me, os.SCHED_BATCH, os.sched_param(0)); print(os.sched_getscheduler(0))";
        let python = |program: &str| shell(world, &format!("python3 -c '{program}'")).run();
        python(policy).success().silent().prints("3\n");
        let above = "import os; os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))";
        python(above).failed().says("blocked sched_setscheduler(1, SCHED_IDLE");
        let refused: fn(Output) = |out| drop(out.failed().says("setpriority"));
        refused(shell(world, "renice -n 5 -g 0").run());
        refused(shell(world, "renice -n 5 -u $(id -u)").run());
        refused(world.sbx(["run", "--namespaces", "none", "--", "bash", "-c", "renice -n 5 -p $$"]).run());
    });
}

#[test]
fn a_personality_is_another_name_or_no_randomness_but_never_executable_data() {
    need!("setarch", "gcc");
    in_worlds(|world| {
        let script =
            "uname -m; setarch -R grep -c stack /proc/self/maps; setarch --uname-2.6 uname -r | cut -c1-4";
        let out = shell(world, &format!("setarch linux32 -- {script}")).run().success().silent();
        assert!(out.out().ends_with("\n1\n2.6.\n") && !out.out().starts_with("x86_64"), "{out}");
        shell(world, "setarch -X true").run().failed().says("personality");
        world.bare(["setarch", "-X", "true"]).run().success();
    });
}

/// libaio, and what is left of old or rare ways to map and move memory.
#[test]
fn calls_that_nobody_needs_are_closed() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let call = |number: i64, words: &[&str]| {
            let number = number.to_string();
            world.sbx([&["run", "--", &attempt, "syscall", &number], words].concat()).run()
        };
        let as_without = "errno 38 (Function not implemented)\n";
        // Who fails and says so is told why.
        let out = call(libc::SYS_io_setup, &["1", "z:8"]).exited(1).prints(as_without);
        assert!(out.sbx_lines().iter().all(|line| line.contains("blocked io_setup(1)")), "{out}");
        let no = "errno 1 (Operation not permitted)\n";
        for number in [libc::SYS_vmsplice, libc::SYS_remap_file_pages, libc::SYS_move_pages] {
            call(number, &["0"]).exited(1).prints(no);
        }
        // Interleaved memory, and the local policy that OpenBLAS asks for.
        call(libc::SYS_mbind, &["0", "4096", "3", "0", "0", "0"]).exited(1).prints(no);
        call(libc::SYS_mbind, &["0", "0", "1", "0", "0", "0"]).success().silent();
        call(libc::SYS_mbind, &["0", "0", "4", "0", "0", "2"]).exited(1).prints(no);
    });
}

#[test]
fn the_names_of_keys_are_out_of_sight() {
    promise!(namespaces);
    in_worlds(|world| {
        for profile in ["workspace", "read-only"] {
            world.run(profile, ["cat", "/proc/keys"]).run().failed().says("/proc/keys: Permission denied");
        }
        world.sbx(["run", "--ro", "/proc/keys", "--", "cat", "/proc/keys"]).run().success();
        world.bare(["cat", "/proc/keys"]).run().success();
    });
}
