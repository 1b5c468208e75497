//! The plan of a run that waits is the one of its command only as long as nothing has changed that it was made from.

use super::Pool;
use sbx_tests::{Output, World, in_worlds, need};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

const LASTED: &str = "warm start: nothing has changed since the run was planned";
const ANEW: &str = "warm start: planned anew";

/// Runs a command until it has the plan that its run was started with. A run that is asked for at once keeps none, and
/// something may have changed since.
#[track_caller]
fn lasts(run: impl Fn() -> Output) -> Output {
    // Longer and longer: a busy machine takes its time.
    let mut tries = (1..20).map(|times| {
        std::thread::sleep(Duration::from_millis(50 * times));
        run().success()
    });
    tries.find(|out| out.err().contains(LASTED)).unwrap_or_else(|| panic!("no plan lasts: {}", run()))
}

/// Waits until a run has a plan that lasts. The next one waits by then as well.
#[track_caller]
pub fn settled(pool: &Pool<'_>) {
    lasts(|| pool.sh("true"));
    std::thread::sleep(Duration::from_millis(200));
}

#[test]
fn a_plan_lasts_from_command_to_command() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        // Neither what commands write in the workspace, nor another program makes a difference.
        for script in ["echo text > file", "mkdir -p a/b && cp file a/b", "rm -rf a; touch x y z", "ls -la"] {
            lasts(|| pool.sh(script));
        }
        let ls = || super::place(world.sbx(["run", "--pool", "-v", "--", "ls"]), world).run();
        assert!(lasts(ls).out().contains('z'));
        // Other variables are another environment.
        let out = pool.within(|| pool.cmd(&["-v"], "true").env("MORE", "1").run()).success();
        assert!(out.err().contains(ANEW), "{out}");
    });
}

/// What a change has as its effect.
type Effect = fn(&World, &Pool<'_>);

/// Has something changed while a run with its plan waits, and requires that the next command is bound as if it had been
/// planned then.
#[track_caller]
fn changed(change: fn(&World), effect: Effect) {
    in_worlds(|world| {
        for name in ["file", "denied/key", "tools/tool"] {
            world.write(name, "text\n");
        }
        let flags = ["--deny", "denied"];
        let pool = Pool::start(world, "1", &flags);
        settled(&pool);
        change(world);
        effect(world, &pool);
    });
}

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_programs_outside_act_on_is_protected_from_its_appearance_on() {
    let plant = |_: &World, pool: &Pool<'_>| {
        let out = pool.cmd(&["-v"], "echo planted >> .envrc; echo planted >> .vscode/tasks.json").run();
        assert!(!out.err().contains(LASTED), "{out}");
    };
    changed(
        |world| {
            world.write(".envrc", "own\n");
            world.write(".vscode/tasks.json", "own\n");
        },
        plant,
    );
    changed(
        |world| {
            world.write(".envrc", "own\n");
            world.write(".vscode/tasks.json", "own\n");
        },
        |world, pool| {
            pool.cmd(&[], "echo planted >> .envrc; echo planted >> .vscode/tasks.json").run();
            for name in [".envrc", ".vscode/tasks.json"] {
                assert_eq!(world.read(name).unwrap(), "own\n", "{name}");
            }
        },
    );
}

#[test]
fn a_repository_that_appears_is_protected() {
    if !need(&["git"]) {
        return;
    }
    changed(
        |world| {
            world.bare(["git", "init", "-q", "."]).run().success();
        },
        |world, pool| {
            let plant = "printf '#!/bin/sh\\n' > .git/hooks/post-commit; \
                         printf '[core]\\nfsmonitor = x\\n' >> .git/config";
            pool.cmd(&[], plant).run();
            assert!(!world.exists(".git/hooks/post-commit"));
            assert!(!world.read(".git/config").unwrap().contains("fsmonitor"));
        },
    );
}

#[test]
fn what_is_denied_stays_so_whatever_takes_its_place() {
    let is_closed = |_: &World, pool: &Pool<'_>| {
        let out = pool.cmd(&[], "cat denied/key; cat denied/*").run();
        assert!(!out.out().contains("text"), "{out}");
    };
    changed(
        |world| {
            fs::rename(world.path("denied"), world.path("old")).unwrap();
            world.write("denied/key", "text\n");
            fs::remove_dir_all(world.path("old")).unwrap();
        },
        is_closed,
    );
    changed(
        |world| {
            fs::rename(world.path("denied"), world.path("hidden")).unwrap();
            symlink("hidden", world.path("denied")).unwrap();
        },
        is_closed,
    );
}

#[test]
fn settings_that_change_are_copied_anew_without_their_secrets() {
    changed(
        |world| {
            let text = "registry=https://example.org/\n//example.org/:_authToken=hunter2\n";
            world.write(world.home.join(".npmrc"), text);
        },
        |_, pool| {
            let out = pool.cmd(&[], "cat ~/.npmrc").run();
            assert!(!out.out().contains("hunter2"), "{out}");
            let out = pool.within(|| pool.cmd(&["-v"], "cat ~/.npmrc").run());
            assert!(!out.out().contains("hunter2") && out.out().contains("example.org"), "{out}");
        },
    );
}

#[test]
fn a_program_that_is_denied_does_not_start() {
    in_worlds(|world| {
        let tool = world.path("denied/tool");
        world.write(&tool, "#!/bin/sh\necho started\n");
        executable(&tool);
        let pool = Pool::start(world, "1", &["--deny", "denied"]);
        settled(&pool);
        let words = ["run", "--pool", "--deny", "denied", "--", "denied/tool"];
        let out = super::place(world.sbx(words), world).run().failed();
        assert!(!out.out().contains("started"), "{out}");
    });
}

/// Each command is bound by the rules that were in force when it was asked for, however soon after a change that was.
#[test]
fn a_command_that_follows_a_change_at_once_is_bound_by_it() {
    in_worlds(|world| {
        let secret = world.write(world.home.join("data/secret"), "data\n");
        let read = format!("cat {}", secret.display());
        let file = world.home.join("own.json");
        let put = |rule: &str| {
            let next = world.home.join("next.json");
            world.write(&next, format!(r#"{{"extends": "workspace", "paths": {{{rule}}}}}"#));
            fs::rename(next, &file).unwrap();
        };
        let allow = format!(r#""read": ["{}"]"#, secret.display());
        put(&allow);
        let pool = Pool::start(world, "2", &["-p", file.to_str().unwrap()]);
        settled(&pool);
        for round in 0..8 {
            // Sooner and later after the run has begun to wait.
            std::thread::sleep(Duration::from_millis(15 * round));
            put("");
            let out = pool.cmd(&[], &read).run();
            assert!(out.out().is_empty(), "{round}: {out}");
            put(&allow);
            pool.cmd(&[], &read).run().success().prints("data\n");
        }
    });
}

/// Whatever is younger than a run and executable was made by its command, as far as it can tell.
#[test]
fn what_the_user_made_while_a_run_waited_is_not_the_commands() {
    if !need(&["git"]) {
        return;
    }
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        settled(&pool);
        let own = "git init -q own; printf '#!/bin/sh\\n' > own/.git/hooks/pre-commit; \
                   chmod +x own/.git/hooks/pre-commit; git -C own config core.sshCommand 'ssh -i key'";
        world.bare(["sh", "-c", own]).run().success();
        // The clock of the file system has gone on by then.
        std::thread::sleep(Duration::from_millis(50));
        lasts(|| pool.sh("true"));
        assert!(world.exists("own/.git/hooks/pre-commit"), "{:?}", world.read("own/.git/config"));
        assert!(world.read("own/.git/config").unwrap().contains("sshCommand"));
    });
}

/// What a run that waited put into a directory goes with it. What stands in the place of that directory by then is the
/// user's, and is left as it is.
#[test]
fn what_came_into_the_place_of_a_repository_is_left_alone() {
    if !need(&["git"]) {
        return;
    }
    in_worlds(|world| {
        world.bare(["git", "init", "-q", "."]).run().success();
        let pool = Pool::start(world, "2", &[]);
        settled(&pool);
        let elsewhere = world.outside.join("repository");
        let script = format!("mv .git {0} && echo 'gitdir: {0}' > .git", elsewhere.display());
        world.bare(["sh", "-c", &script]).run().success();
        let before = fs::metadata(world.path(".git")).unwrap();
        // The clock that files go by is a coarse one.
        std::thread::sleep(Duration::from_millis(50));
        // It starts cold, and the runs that waited end meanwhile.
        pool.cmd(&[], "mv .git other; sleep 0.5").run();
        assert!(!world.exists(".git.sbx-aside"));
        let after = fs::metadata(world.path(".git")).unwrap();
        assert_eq!(
            (after.modified().unwrap(), after.ctime_nsec()),
            (before.modified().unwrap(), before.ctime_nsec())
        );
    });
}
