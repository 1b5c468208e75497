//! What a command leaves for the look at the end: however much it is, the look does not run out of memory or stack,
//! after which nothing would be put aside.

use super::aftermath::{FSMONITOR, looked_at, planted};
use super::git::{in_repositories, plain};
use super::{PYTHON, shell};
use sbx_tests::stage;

/// What no process of a run takes, in kilobytes.
const MOST: u64 = 40 << 10;

/// As many long paths as have more bytes than that.
const MANY: u32 = 12_000;

/// Starts a program, and says how many kilobytes of memory the largest process of it had.
const MEASURED: &str = "import resource, subprocess, sys\n\
    status = subprocess.run(sys.argv[1:]).returncode\n\
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n\
    sys.exit(status)";

/// A repository that git outside would act on.
fn made() -> String {
    format!("git init -q lib; git -C lib commit -q --allow-empty -m x; GIT=lib/.git; {FSMONITOR}")
}

#[test]
fn what_a_command_leaves_takes_no_memory_to_look_at() {
    let sparse =
        "f=open(\".git/index\", \"wb\"); f.write(b\"DIRC\\0\\0\\0\\2\\0\\x70\\0\\0\"); f.truncate(200 << 20)";
    let deep = "[(os.mkdir(\"d\" * 255), os.chdir(\"d\" * 255)) for _ in range(15)]";
    for what in [
        format!("python3 -c '{sparse}'; cp .git/index lib/.git/index"),
        format!("python3 -c 'import os; {deep}; [os.mkdir(str(i)) for i in range({MANY})]'"),
        format!("python3 -c 'import os; {deep}; [os.mkdir(str(i), 0) for i in range({MANY})]'"),
    ] {
        in_repositories(|world| {
            let script = planted(world, &format!("set -e; {}; {what}", made()));
            let words = ["run", "--", "bash", "-c", &script];
            let out = world.bare([PYTHON, "-c", MEASURED]).arg(stage::sbx()).args(words).run().success();
            let peak: u64 = out.out().trim().parse().unwrap();
            assert!(peak < MOST, "{what}: {peak} kB");
            assert!(
                !looked_at(world, "lib") && out.err().contains("core.fsmonitor: put aside"),
                "{what}: {out}"
            );
        });
    }
}

#[test]
fn files_that_lead_to_one_another_take_no_stack() {
    in_repositories(|world| {
        let chain = "mkdir -p $(seq -f chain/%g 1500); for n in $(seq 1500); do \
                     echo \"gitdir: ../$((n + 1))/.git\" > chain/$n/.git; done";
        let script = planted(world, &format!("set -e; {}; {chain}", made()));
        let little = "ulimit -s 256; exec \"$@\"";
        let words = ["run", "--", "bash", "-c", &script];
        let out = world.bare(["bash", "-c", little, "bash"]).arg(stage::sbx()).args(words).run().success();
        assert!(!looked_at(world, "lib") && out.err().contains("core.fsmonitor: put aside"), "{out}");
        plain(world, "rm -rf chain lib");
        // The twin: one of them is followed.
        let script =
            planted(world, &format!("set -e; {}; mkdir sub; echo 'gitdir: ../lib/.git' > sub/.git", made()));
        let out = shell(world, &[], &script).run().success();
        assert!(!looked_at(world, "sub") && out.err().contains("core.fsmonitor: put aside"), "{out}");
    });
}
