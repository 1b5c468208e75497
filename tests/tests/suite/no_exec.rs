//! `no-exec`: everything but starting programs.

use sbx_tests::in_worlds;

const PYTHON: &str = "/usr/bin/python3";

#[test]
fn threads_run() {
    in_worlds(|world| {
        let program = "import threading\nl = []\nt = [threading.Thread(target=l.append, args=(i,)) for i in range(8)]\n\
                       [x.start() for x in t]\n[x.join() for x in t]\nprint(sum(l))";
        world.run("no-exec", [PYTHON, "-c", program]).run().success().silent().prints("28\n");
        let pool =
            "from concurrent.futures import ThreadPoolExecutor as P\nprint(sum(P(4).map(abs, range(-5, 0))))";
        world.run("no-exec", [PYTHON, "-c", pool]).run().success().silent().prints("15\n");
    });
}

#[test]
fn programs_and_processes_are_refused() {
    in_worlds(|world| {
        let tries = [
            "import subprocess; subprocess.run(['/bin/touch', 'made'], check=True)",
            "import os; os.system('touch made') == 0 or exit(1)",
            "import os; os.execv('/bin/touch', ['touch', 'made'])",
            "import os; os.posix_spawn('/bin/touch', ['touch', 'made'], {})",
            "import os; os.fork() or open('made', 'w')",
            "import multiprocessing as m; p = m.Process(target=open, args=('made', 'w')); p.start(); p.join()",
            "import os; f = os.memfd_create('x'); os.write(f, open('/bin/touch', 'rb').read()); \
             os.execve(f, ['touch', 'made'], {})",
        ];
        for program in tries {
            world.run("no-exec", [PYTHON, "-c", program]).run().failed();
            assert!(!world.exists("made"), "{program}");
        }
        world.run("workspace", [PYTHON, "-c", tries[0]]).run().success();
        assert!(world.exists("made"));
    });
}

#[test]
fn shells_keep_their_builtins() {
    in_worlds(|world| {
        world.run("no-exec", ["sh", "-c", "echo built in"]).run().success().prints("built in\n");
        let out = world.run("no-exec", ["sh", "-c", "/bin/echo ran"]).run().failed();
        assert!(!out.out().contains("ran"), "{out}");
        assert!(!out.sbx_lines().is_empty(), "the refusal is not told: {out}");
    });
}

#[test]
fn files_can_be_read_and_computed_with() {
    in_worlds(|world| {
        world.write("data", "b\na\n");
        world.run("no-exec", ["sort", "data"]).run().success().silent().prints("a\nb\n");
    });
}

#[test]
fn injected_code_does_not_run() {
    in_worlds(|world| {
        let attempt = world.subject("attempt");
        let attempt = attempt.to_str().unwrap();
        for profile in ["minimal", "network", "write", "no-exec"] {
            world.run(profile, [attempt, "wx"]).run().exited(1);
        }
        for profile in ["workspace", "read-only"] {
            world.run(profile, [attempt, "wx"]).run().success().prints("42\n");
        }
    });
}
