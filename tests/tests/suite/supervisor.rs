//! What the supervisor does for the command stays within the command's rules, and the command cannot get rid of
//! the supervisor.

use crate::terminal::on_terminal;
use sbx_tests::command::Running;
use sbx_tests::tree::mode;
use sbx_tests::users::{User, as_users};
use sbx_tests::world::World;
use sbx_tests::{in_worlds, kernel, need, processes, promise};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

/// What a profile allows under conditions on arguments is the supervisor's to answer like the rest.
#[test]
fn conditions_of_a_profile_do_not_pass_the_supervisor_by() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let (inside, outside) = (world.write("file", ""), world.outside.join("kept"));
        world.write(
            "own.json",
            r#"{"extends": "minimal", "paths": {"write": ["${WORKSPACE}"]}, "syscalls": {"allow": [
                {"calls": ["fchmodat", "chmod"], "args": [{"index": 3, "op": "ne", "value": 77}]},
                {"calls": ["clone", "clone3", "fork", "vfork"], "args": [{"index": 5, "op": "ne", "value": 77}]}
            ]}}"#,
        );
        let before = mode(&outside);
        let run = |file: &str| world.run("./own.json", ["chmod", "0751", file]).run();
        run(outside.to_str().unwrap()).failed();
        assert_eq!(mode(&outside), before);
        run("file").success();
        assert_eq!(mode(&inside), 0o751);
    });
}

#[test]
fn modes_and_times_change_inside_and_nowhere_else() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let (inside, outside) = (world.write("file", ""), world.outside.join("kept"));
        let before = (mode(&outside), fs::metadata(&outside).unwrap().modified().unwrap());
        for profile in ["write", "workspace"] {
            for program in [["chmod", "0600"], ["touch", "-d2020-01-01"], ["chown", ":0"]] {
                world.run(profile, [program[0], program[1], outside.to_str().unwrap()]).run().failed();
            }
            fs::set_permissions(&inside, fs::Permissions::from_mode(0o644)).unwrap();
            world.run(profile, ["chmod", "0600", "file"]).run().success().silent();
            world.run(profile, ["touch", "-d2020-01-01", "file"]).run().success().silent();
            assert_eq!(mode(&inside), 0o600);
        }
        assert_eq!((mode(&outside), fs::metadata(&outside).unwrap().modified().unwrap()), before);
        let control = world.bare(["chmod", "0600", outside.to_str().unwrap()]);
        control.run().success();
        assert_eq!(mode(&outside), 0o600);
    });
}

#[test]
fn a_directory_replaced_by_a_link_leads_nowhere_else() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        world.make_dir(&world.path("build"));
        let kept = world.outside.join("kept");
        let before = mode(&kept);
        let script = format!(
            "mv build moved; ln -s / build; i=0; while [ $i -lt 20 ]; do chmod 0600 {0} build{0}; i=$((i+1)); done; \
             chmod 0700 moved",
            kept.display()
        );
        world.sbx(["run", "-q", "--rw", "build", "--", "sh", "-c", &script]).run().success();
        assert_eq!(mode(&kept), before);
        assert_eq!(mode(world.path("moved")), 0o700);
    });
}

#[test]
fn the_target_of_an_earlier_commands_link_is_not_allowed_by_name() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        symlink(&world.outside, world.path("build")).unwrap();
        let made = world.outside.join("made");
        let out = world.sbx(["run", "--rw", "build", "--", "touch", "build/made"]).run();
        out.refused(125, &["build", "leads out of the workspace"]);
        assert!(!made.exists());
        let outside = world.outside.to_str().unwrap();
        world.sbx(["run", "--rw", outside, "--", "touch", "build/made"]).run().success();
        assert!(made.exists());
    });
}

#[test]
fn descriptors_of_other_processes_cannot_be_used() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let script = "import os, time\nend, _ = os.pipe()\nprint(end, flush=True)\ntime.sleep(30)";
        let holder = world.bare(["/usr/bin/python3", "-c", script]).start();
        holder.wait_for("3\n");
        let link = format!("/proc/{}/fd/3", holder.pid());
        let before = mode(&link);
        // Not by chmod(1), which looks at the file first and is already refused that.
        let chmod = ["/usr/bin/python3", "-c", "import os, sys; os.chmod(sys.argv[1], 0o611)", &link];
        world.run("workspace", chmod).run().failed();
        assert_eq!(mode(&link), before);
        world.bare(["chmod", "0611", &link]).run().success();
        assert_eq!(mode(&link), 0o611);
        holder.kill();
        world.write("own", "");
        world.run("workspace", ["sh", "-c", "chmod 0611 /proc/self/fd/0 < own"]).run().success();
        assert_eq!(mode(world.path("own")), 0o611);
    });
}

#[test]
fn devices_keep_their_modes() {
    promise!(kernel::PATHS);
    let before = mode("/dev/null");
    in_worlds(|world| {
        world.run("workspace", ["chmod", "0600", "/dev/null"]).run().failed();
        assert_eq!(mode("/dev/null"), before);
    });
}

#[test]
fn a_command_without_a_reaper_cannot_untie_itself() {
    in_worlds(|world| {
        let marker = processes::marker();
        let script = format!(
            "import ctypes, time\nprint(ctypes.CDLL(None).prctl(1, 0), flush=True)\ntime.sleep(60)\n# {marker}"
        );
        let running = world.run("minimal", ["/usr/bin/python3", "-c", &script]).start();
        running.wait_for("-1\n");
        running.kill();
        processes::none_left(&marker);
    });
}

/// The signal that ties a command to its supervisor belongs to its first thread.
#[test]
fn a_program_that_another_thread_executes_is_tied_too() {
    in_worlds(|world| {
        let marker = processes::marker();
        let sleep = format!("import time; print('on', flush=True); time.sleep(60) # {marker}");
        let script = "import os, sys, threading, time\n\
                      threading.Thread(target=os.execv, \
                      args=(sys.executable, [sys.executable, '-c', sys.argv[1]])).start()\n\
                      time.sleep(60)";
        let flags = ["run", "-p", "no-exec", "--namespaces", "none", "--allow-calls", "execve", "--"];
        let running = world.sbx(flags).args(["/usr/bin/python3", "-c", script, &sleep]).start();
        running.wait_for("on\n");
        running.kill();
        processes::none_left(&marker);
    });
}

#[test]
fn in_log_mode_no_process_outlives_the_run_either() {
    in_worlds(|world| {
        let marker = processes::marker();
        // A loop in the interpreter: a call that nobody answers any more would end it.
        let script = format!(
            "import os, signal\nif os.fork(): os._exit(3)\nsignal.signal(15, signal.SIG_IGN)\n\
             while True: pass # {marker}"
        );
        let flags = ["run", "-p", "minimal", "--log-violations", "--", "/usr/bin/python3", "-c", &script];
        world.sbx(flags).run().exited(3);
        processes::none_left(&marker);
    });
}

#[test]
fn a_helper_that_is_stopped_at_once_does_not_disable_the_time_limit() {
    // Where signals are not scoped, the command can stop the process above it before that has reported anything. The
    // moment is a matter of luck, so there are several tries, all at once, since some last two seconds.
    let world = World::new(&User::current());
    let stopper = world.subject("stopper");
    let flags = ["run", "-t", "500ms", "--kill-after", "50ms", "--static", "allow", "--"];
    let start = |_| {
        let cmd = world.sbx(flags).arg(&stopper).timeout(Duration::from_secs(20));
        cmd.answering(&[(libc::SYS_landlock_create_ruleset, libc::ENOSYS)]).start()
    };
    let started: Vec<Running> = (0..16).map(start).collect();
    for running in started {
        let out = running.wait();
        assert!(matches!(out.code, Some(124 | 125)), "{out}");
    }
}

/// The command's process is made while path rules are still being added, where it can be told when they are complete.
#[test]
fn where_waiting_is_impossible_the_path_rules_come_first() {
    promise!(kernel::PATHS);
    as_users(|user| {
        for call in [libc::SYS_pidfd_open, libc::SYS_eventfd2] {
            let world = World::new(user);
            let kept = world.outside.join("kept");
            let before = fs::read(&kept).unwrap();
            let script = format!("echo x > made; echo x > '{}'", kept.display());
            let run = world.sbx(["run", "--", "sh", "-c", &script]).answering(&[(call, libc::EPERM)]).run();
            run.failed();
            assert_eq!(fs::read(&kept).unwrap(), before);
            assert!(world.exists("made"));
            world.bare(["sh", "-c", &script]).run().success();
            assert_ne!(fs::read(&kept).unwrap(), before);
        }
    });
}

/// The calls of programs from before utimensat(2), and their errors for wrong arguments.
#[test]
#[cfg(target_arch = "x86_64")]
fn older_calls_that_set_times_are_handled_too() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let outside = world.outside.join("kept");
        let before = fs::metadata(&outside).unwrap().modified().unwrap();
        let seconds = |path: &std::path::Path| {
            let since = fs::metadata(path).unwrap().modified().unwrap().duration_since(std::time::UNIX_EPOCH);
            since.unwrap().as_secs()
        };
        // utime, utimes, futimesat; a million microseconds and an invalid address are errors.
        let script = r#"
my ($path, $seconds, $micro) = ($ARGV[0], pack("q2", 1, 1001), pack("q4", 1, 0, 1002, 0));
my ($last, $wrong) = (pack("q4", 1, 0, 1003, 999_999), pack("q4", 1, 0, 5, 1_000_000));
my @made = (syscall(132, $path, $seconds), syscall(235, $path, $micro), syscall(261, -100, $path, $last));
my @not = (syscall(235, $path, $wrong), $! + 0, syscall(132, $path, 4096), $! + 0);
print join(" ", @made, @not);
"#;
        let inside = world.write("file", "");
        for profile in ["write", "workspace"] {
            fs::File::options().append(true).open(&inside).unwrap().set_modified(before).unwrap();
            let out = world.run(profile, ["perl", "-e", script, "file"]).run().success().silent();
            assert_eq!(out.out(), "0 0 0 -1 22 -1 14", "{profile}");
            assert_eq!(seconds(&inside), 1003, "{profile}");
            let out = world.run(profile, ["perl", "-e", script, outside.to_str().unwrap()]).run();
            assert!(out.out().starts_with("-1 -1 -1 -1"), "{out}");
        }
        assert_eq!(fs::metadata(&outside).unwrap().modified().unwrap(), before);
        world.bare(["perl", "-e", script, outside.to_str().unwrap()]).run().prints("0 0 0 -1 22 -1 14");
        assert_eq!(seconds(&outside), 1003);
    });
}

/// Programs that fill the screen take it from the terminal to begin a line after a newline.
#[test]
fn lines_of_the_supervisor_begin_at_the_left_on_any_terminal() {
    need!("bash");
    in_worlds(|world| {
        for modes in ["-opost", "-onlcr", "opost"] {
            let script = format!("stty {modes}; exec 3<>/dev/tcp/192.0.2.1/9");
            let (running, _terminal) = on_terminal(world, &["bash", "-c", &script]);
            running.wait_for("blocked connect");
            let out = running.wait().failed().out();
            let line = out.split_inclusive('\n').find(|line| line.contains("blocked connect"));
            assert!(
                line.is_some_and(|line| line.ends_with("\r\n") && !line.ends_with("\r\r\n")),
                "{modes}: {out:?}"
            );
        }
    });
}
