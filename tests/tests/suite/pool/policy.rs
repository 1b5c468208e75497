//! No command gets another policy than was asked for.

use super::{Pool, cold, place};
use sbx_tests::{have, in_worlds, need};
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn other_flags_are_not_served() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        world.make_dir(&world.path("sub"));
        // Of these flags there is no pool.
        let flags: [&[&str]; 5] = [
            &["-p", "read-only"],
            &["--net", "none"],
            &["--deny", "file"],
            &["--ro", "/etc/hostname"],
            &["--max-open-files", "64"],
        ];
        world.write("file", "text\n");
        for flags in flags {
            cold(pool.cmd(&[flags, &["-v"]].concat(), "true"), "there is no pool for these flags here");
        }
        // From elsewhere, the workspace would be another.
        let elsewhere = world.sbx(["run", "--pool", "-v", "--", "true"]).cwd(world.path("sub"));
        cold(place(elsewhere, world), "there is no pool for these flags here");
        // The policy that was asked for is in force.
        let out = cold(pool.cmd(&["-v", "-p", "read-only"], "echo x > file"), "no pool");
        assert!(out.code != Some(0) && world.read("file").unwrap() == "text\n", "{out}");
        pool.sh("echo y > file").success();
        assert_eq!(world.read("file").unwrap(), "y\n");
    });
}

#[test]
fn a_changed_profile_is_not_served_as_it_was() {
    in_worlds(|world| {
        let secret = world.write(world.home.join("data/secret"), "data\n");
        let read = format!("cat {}", secret.display());
        let profile = |rule: &str| format!(r#"{{"extends": "workspace", "paths": {{{rule}}}}}"#);
        let file = world.home.join("own.json");
        let allow = format!(r#""read": ["{}"]"#, secret.display());
        world.write(&file, profile(&allow));
        let flags = ["-p", file.to_str().unwrap()];
        let pool = Pool::start(world, "2", &flags);
        pool.sh(&read).success().prints("data\n");
        // Written anew in place, and by another file in its place.
        for way in [false, true] {
            let next = world.write(world.home.join("next.json"), profile(""));
            if way {
                fs::rename(&next, &file).unwrap();
            } else {
                fs::write(&file, profile("")).unwrap();
            }
            // An empty file may stand there that something was mounted on.
            let out = pool.cmd(&["-v"], &read).run();
            assert!(out.out().is_empty(), "{out}");
            // The pool is of the new one by then.
            let out = pool.sh(&read);
            assert!(out.out().is_empty(), "{out}");
            fs::write(&file, profile(&allow)).unwrap();
            pool.cmd(&[], &read).run().success().prints("data\n");
            pool.sh(&read).success().prints("data\n");
        }
        // A denied call is one too.
        world.write(&file, r#"{"extends": "workspace", "syscalls": {"deny": ["mkdir", "mkdirat"]}}"#);
        pool.cmd(&[], "mkdir made").run().failed();
        assert!(!world.exists("made"));
        pool.sh("mkdir made").failed();
        assert!(!world.exists("made"));
    });
}

#[test]
fn a_file_in_the_place_of_another_is_not_taken_for_it() {
    in_worlds(|world| {
        let denied = world.write("closed/key", "key\n");
        let flags = ["--deny", "closed"];
        let pool = Pool::start(world, "2", &flags);
        pool.sh("cat closed/key").failed();
        // What was mounted over it went with the directory.
        fs::rename(world.path("closed"), world.path("old")).unwrap();
        world.write("closed/key", "key\n");
        // It starts cold, or in a run that was started since.
        let out = pool.cmd(&["-v"], "cat closed/key").run().failed();
        assert!(out.out().is_empty(), "{out}");
        assert!(denied.exists());
        let out = pool.sh("cat closed/key").failed();
        assert!(out.out().is_empty(), "{out}");
    });
}

#[test]
fn what_git_executes_stays_protected() {
    if !need(&["git"]) {
        return;
    }
    in_worlds(|world| {
        let init = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a";
        world.bare(["sh", "-c", init]).run().success();
        let pool = Pool::start(world, "2", &[]);
        let plant = "printf '#!/bin/sh\\n' > .git/hooks/post-commit; printf '[core]\\nfsmonitor = x\\n' >> .git/config";
        pool.sh(plant);
        assert!(!world.exists(".git/hooks/post-commit"));
        assert!(!world.read(".git/config").unwrap().contains("fsmonitor"));
        // A repository that a command has made is known to the next one, which waited before it was there.
        pool.sh("git init -q sub").success();
        let plant = "printf '#!/bin/sh\\n' > sub/.git/hooks/post-commit; \
                     printf '[core]\\nfsmonitor = x\\n' >> sub/.git/config";
        pool.cmd(&[], plant).run();
        assert!(!world.exists("sub/.git/hooks/post-commit"));
        assert!(!world.read("sub/.git/config").unwrap().contains("fsmonitor"));
        // git replaces its configuration where no other run is; those that wait are none. A command that starts cold
        // does so as well, and runs that waited are of before that.
        let warm = || {
            std::thread::sleep(Duration::from_secs(1));
            pool.cmd(&["-v"], "git config user.name warm").run()
        };
        pool.within(warm).success();
        assert!(world.read(".git/config").unwrap().contains("warm"));
    });
}

#[test]
fn runs_that_lost_what_protects_files_give_way_before_anybody_asks() {
    if !need(&["git"]) {
        return;
    }
    in_worlds(|world| {
        world.bare(["git", "init", "-q", "."]).run().success();
        let pool = Pool::start(world, "2", &[]);
        let two = |of: &dyn Fn(&[i32]) -> bool, seconds: u64| {
            let until = Instant::now() + Duration::from_secs(seconds);
            loop {
                let runs = pool.runs();
                if runs.len() == 2 && of(&runs) || Instant::now() > until {
                    return runs;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let before = two(&|_| true, 20);
        // What one has, each has: a directory of its own for what it covers.
        pool.sh("true").success();
        let before = [before, two(&|_| true, 20)].concat();
        // git puts another file in the place of its configuration. A run that was just being made may have covered that
        // one, and gives way to the next.
        let all_give_way = |_| {
            world.bare(["git", "config", "user.name", "outside"]).run().success();
            let are_new = |runs: &[i32]| runs.iter().all(|run| !before.contains(run));
            are_new(&two(&are_new, 4))
        };
        assert!((0..5).any(all_give_way), "{before:?} and {:?}", pool.runs());
        pool.sh("git config user.name").success().prints("outside\n");
    });
}

#[test]
fn a_caller_that_passes_on_something_else_is_not_served() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        cold(pool.cmd(&["-v"], "ulimit -n").open_files(200), "no pool").success().prints("200\n");
        cold(pool.cmd(&["-v"], "true").ignoring(libc::SIGHUP), "the caller is not what the pool is")
            .success();
        let masked =
            format!("umask 077; exec {} run --pool -v -- sh -c 'umask'", sbx_tests::stage::sbx().display());
        cold(place(world.bare(["sh", "-c", &masked]), world), "the caller is not").success().prints("0077\n");
        if have("unshare").is_some() {
            let words = world.user.unshare(&["--net"]);
            let sbx = sbx_tests::stage::sbx().display().to_string();
            let words =
                words.into_iter().chain([&*sbx, "run", "--pool", "-v", "--net", "host", "--", "true"]);
            let host = Pool::start(world, "1", &["--net", "host"]);
            let out = place(world.bare(words), world).run();
            assert!(out.err().contains("no warm start"), "{out}");
            drop(host);
        }
        pool.sh("true").success();
    });
}

/// Changes something that a process passes on, and executes a command.
const CHANGED: &str = "\
import ctypes, os, resource, signal, sys
prctl = ctypes.CDLL(None, use_errno=True).prctl
if sys.argv[1] == 'memory that is written and executed':
    assert prctl(65, 1, 0, 0, 0) == 0
elif sys.argv[1] == 'huge pages':
    assert prctl(41, 1, 0, 0, 0) == 0
elif sys.argv[1] == 'scheduling':
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
elif sys.argv[1] == 'who is killed first':
    open('/proc/self/oom_score_adj', 'w').write('500')
elif sys.argv[1] == 'a limit':
    resource.setrlimit(resource.RLIMIT_CPU, (1000, 1000))
elif sys.argv[1] == 'priority':
    os.nice(3)
else:
    assert sys.argv[1] == 'nothing'
for number in signal.SIGPIPE, signal.SIGXFSZ:
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[2], sys.argv[2:])
";

#[test]
fn what_the_caller_passes_on_is_the_commands() {
    if !need(&["python3"]) {
        return;
    }
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        let sbx = sbx_tests::stage::sbx().display().to_string();
        let show = "import ctypes, os, resource\n\
                    prctl = ctypes.CDLL(None).prctl\n\
                    print(prctl(66, 0, 0, 0, 0), prctl(42, 0, 0, 0, 0), os.sched_getscheduler(0), \
                    open('/proc/self/oom_score_adj').read().strip(), resource.getrlimit(resource.RLIMIT_CPU)[0], \
                    os.nice(0))";
        let run = |what: &str| {
            let words = ["run", "--pool", "-v", "--", "python3", "-c", show];
            place(world.bare(["python3", "-c", CHANGED, what, &sbx].iter().chain(&words)), world)
        };
        let usual = pool.within(|| run("nothing").run()).success().out();
        for what in [
            "memory that is written and executed",
            "huge pages",
            "scheduling",
            "who is killed first",
            "a limit",
            "priority",
        ] {
            let out = cold(run(what), "there is no pool for these flags here").success();
            assert_ne!(out.out(), usual, "{what}");
        }
    });
}
