//! The Rust interface: commands run through `sbx` by a program with threads, and a process that confines itself.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sbx::embed::confine_self;
use sbx_client::report::{Cause, Level};
use sbx_client::{Command, Error, ErrorKind, OnViolation, Output, Sandbox};
use sbx_tests::world::SECRET;
use sbx_tests::{Cmd, User, World, as_users, kernel, processes, servers, stage};

const PROGRAM: &str = env!("CARGO_BIN_EXE_embedding");

/// As `Command::output`, out of step with files that other tests write.
fn output(command: Command) -> Result<Output, Error> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    stage::starting(|| command.spawn())?.wait_with_output()
}

fn sandbox(profile: &str, world: &World) -> Sandbox {
    Sandbox::new(profile).program(stage::sbx()).workspace(&world.workspace)
}

/// What runs have here.
fn level() -> Level {
    match kernel::level() {
        "full" => Level::Full,
        "standard" => Level::Standard,
        _ => Level::Minimal,
    }
}

#[test]
fn output_and_report_are_those_of_the_command() {
    let world = World::new(&User::current());
    let sandbox = sandbox("workspace", &world).env("COLOUR", "r e d");
    let script = "echo out $COLOUR $1; echo err >&2; pwd > where; cat; exit 7";
    let run = output(sandbox.command("sh").args(["-c", script, "sh", "--", "x"])).unwrap();
    assert_eq!(run.stdout, b"out r e d --\n");
    assert_eq!(run.stderr, b"err\n");
    assert_eq!(run.left_out, [0, 0]);
    let report = &run.report;
    assert_eq!((report.cause, report.exit_status), (Cause::Exited, 7));
    assert_eq!(report.exit.as_ref().unwrap().code, Some(7));
    assert_eq!(report.profile.as_ref().unwrap().name, "workspace");
    assert_eq!(report.level, Some(level()));
    assert_eq!(world.read("where").unwrap(), format!("{}\n", world.workspace.display()));
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

#[test]
fn what_is_wished_for_is_what_runs_get() {
    let world = World::new(&User::current());
    let run = |sandbox: &Sandbox, words: &[&str]| {
        let run = output(sandbox.command(words[0]).args(&words[1..])).unwrap();
        (run.report.exit_status, String::from_utf8(run.stdout).unwrap())
    };
    let script = world.script(world.outside.join("script"), "#!/bin/sh\necho ran\n");
    // As the command itself it could be executed anyway.
    let script = ["sh", "-c", script.to_str().unwrap()];
    let workspace = || sandbox("workspace", &world);
    if kernel::promises(1) {
        assert_ne!(run(&workspace(), &script).0, 0);
    }
    assert_eq!(run(&workspace().execute(&world.outside), &script), (0, "ran\n".to_string()));
    let write = || sandbox("minimal", &world).write(&world.workspace);
    assert_ne!(run(&write().deny_calls("mkdir:mkdirat"), &["mkdir", "made"]).0, 0);
    assert_eq!(run(&write().allow_calls("mkdir:mkdirat"), &["mkdir", "made"]).0, 0);
    assert!(world.exists("made"));
    let passed = [workspace(), workspace().pass_env("CARGO_MANIFEST_DIR")];
    let passed = passed.map(|sandbox| run(&sandbox, &["printenv", "CARGO_MANIFEST_DIR"]).0);
    assert_eq!(passed, [1, i32::from(std::env::var_os("CARGO_MANIFEST_DIR").is_none())]);
    let namespaces = |level| {
        let sandbox = workspace().flag("--namespaces", "none").require(level);
        output(sandbox.command("true")).map(|run| run.report.cause).map_err(|error| error.kind())
    };
    assert_eq!(namespaces(Level::Full), Err(ErrorKind::Refused));
    assert_eq!(namespaces(Level::Minimal), Ok(Cause::Exited));
}

#[test]
fn what_is_refused_is_in_the_report_alone() {
    let world = World::new(&User::current());
    let run = output(sandbox("minimal", &world).command("mkdir").arg("made")).unwrap();
    assert!(!world.exists("made"));
    assert!(!String::from_utf8_lossy(&run.stderr).contains("sbx:"), "{run:?}");
    let violation = &run.report.violations[0];
    assert!(violation.call.starts_with("mkdir"), "{violation:?}");
    assert_eq!(violation.path.as_ref().unwrap().0, b"made");
    output(sandbox("write", &world).command("mkdir").arg("made")).unwrap();
    assert!(world.exists("made"));
}

#[test]
fn builders_mean_their_flags() {
    let world = World::new(&User::current());
    world.write("closed/file", "text\n");
    let outside = world.outside.join("kept");
    let read = |sandbox: Sandbox, path: &Path| output(sandbox.command("cat").arg(path)).unwrap().stdout;
    let plain = || sandbox("workspace", &world);
    assert_eq!(read(plain(), &outside), b"");
    assert_eq!(read(plain().read(&outside), &outside), b"outside\n");
    assert_eq!(read(plain(), Path::new("closed/file")), b"text\n");
    assert_eq!(read(plain().deny("closed"), Path::new("closed/file")), b"");
    let write = |sandbox: Sandbox| {
        output(sandbox.command("touch").arg(world.outside.join("new"))).unwrap();
        world.exists(world.outside.join("new"))
    };
    assert!(!write(plain().read(&world.outside)));
    assert!(write(plain().write(&world.outside)));
    let mkdir = |sandbox: Sandbox, name: &str| {
        output(sandbox.command("mkdir").arg(name)).unwrap();
        world.exists(name)
    };
    assert!(!mkdir(plain().deny_calls("mkdir:mkdirat"), "a"));
    assert!(mkdir(plain(), "b"));
    let killed = sandbox("minimal", &world).on_violation(OnViolation::Kill);
    assert_eq!(output(killed.command("mkdir").arg("c")).unwrap().report.cause, Cause::Violation);
    let long = "head -c 5000 /dev/zero";
    let capped = output(plain().max_output(1000).command("sh").args(["-c", long])).unwrap();
    assert_eq!(capped.report.output.stdout.unwrap().bytes, 5000);
    assert!(capped.stdout.len() < 1500);
}

#[test]
fn how_sbx_is_started_can_be_changed_and_the_profile_left_to_the_user() {
    let world = World::new(&User::current());
    let usual = || Sandbox::usual().program(stage::sbx()).workspace(&world.workspace);
    let command = || usual().command("sh").args(["-c", "echo $TERM; touch made"]);
    let run = output(command()).unwrap();
    assert_ne!(run.stdout, b"marked\n");
    assert_eq!(run.report.profile.unwrap().name, "workspace");
    assert!(world.exists("made"));
    let adjusted = command().adjust(|sbx| {
        sbx.env("TERM", "marked").env("SBX_PROFILE", "read-only");
    });
    let run = output(adjusted).unwrap();
    assert_eq!(run.stdout, b"marked\n");
    assert_eq!(run.report.profile.unwrap().name, "read-only");
}

#[test]
fn time_is_limited() {
    let world = World::new(&User::current());
    let marker = processes::marker();
    let script = format!("sleep 1000 & sleep 1000 # {marker}");
    let start = Instant::now();
    let limited = sandbox("workspace", &world).timeout(Duration::from_secs(1));
    let run = output(limited.command("bash").args(["-c", &script])).unwrap();
    assert_eq!((run.report.cause, run.report.exit_status), (Cause::Timeout, 124));
    assert!(start.elapsed() < Duration::from_secs(30));
    processes::none_left(&marker);
}

#[test]
fn a_command_that_did_not_run_is_an_error_with_a_sentence() {
    let world = World::new(&User::current());
    let fails = |sandbox: Sandbox, command: &str| output(sandbox.command(command)).unwrap_err();
    let cases = [
        (fails(sandbox("minimla", &world), "true"), ErrorKind::Refused, "did you mean 'minimal'?"),
        (fails(sandbox("minimal", &world).switch("--explian"), "true"), ErrorKind::Refused, "--explain"),
        (fails(sandbox("minimal", &world), "no-such-command"), ErrorKind::NotFound, "no-such-command"),
        (fails(sandbox("minimal", &world), "/etc/hostname"), ErrorKind::NotExecutable, "/etc/hostname"),
        (fails(Sandbox::new("minimal").program("/no/such/sbx"), "true"), ErrorKind::NoSbx, "/no/such/sbx"),
        (fails(Sandbox::new("minimal").program("/bin/true"), "true"), ErrorKind::NoReport, "no report"),
    ];
    for (error, kind, word) in &cases {
        assert_eq!(error.kind(), *kind, "{error}");
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
    assert_eq!(cases[2].0.report().unwrap().exit_status, 127);
}

/// A command puts a link called `sbx` into a directory of `PATH`: it lies in the workspace, what it leads to
/// does not. A shell takes `run` for the name of a script.
#[test]
fn what_a_command_calls_sbx_is_not_started() {
    as_users(|user| {
        let world = World::new(user);
        let embedding = world.outside.join("embedding");
        world.install(Path::new(PROGRAM), embedding.to_str().unwrap());
        world.make_dir(&world.path("bin"));
        let kept = world.outside.join("kept");
        let run = |directory: &Path| {
            let path = format!("{}:/usr/bin:/bin", directory.display());
            let words = [embedding.to_str().unwrap(), "run", "", "minimal", "echo", "ran"];
            world.bare(words).env("PATH", path).run()
        };
        let planted = format!("ln -s /bin/sh bin/sbx; echo 'echo planted > {}' > run", kept.display());
        world.run("workspace", ["sh", "-c", &planted]).run().success();
        world.bare(["sh", "run"]).run().success();
        assert_eq!(world.read(&kept).unwrap(), "planted\n");
        world.write(&kept, "outside\n");
        let out = run(&world.path("bin")).exited(1).out();
        assert!(out.contains("where commands may change it"), "{out}");
        assert_eq!(world.read(&kept).unwrap(), "outside\n");
        let tools = world.outside.join("tools");
        world.make_dir(&tools);
        std::os::unix::fs::symlink(stage::sbx(), tools.join("sbx")).unwrap();
        assert!(run(&tools).success().out().contains("stdout: \"ran\\n\""));
    });
}

#[test]
fn the_command_does_not_get_the_report() {
    let world = World::new(&User::current());
    let run = output(sandbox("workspace", &world).command("ls").arg("/proc/self/fd")).unwrap();
    // The last is the directory that ls reads.
    assert_eq!(run.stdout, b"0\n1\n2\n3\n", "{run:?}");
}

#[test]
fn killing_leaves_nothing() {
    let world = World::new(&User::current());
    let marker = processes::marker();
    let attempt = world.subject("attempt");
    let command = sandbox("workspace", &world).command(&attempt).args(["sleep", &marker]);
    let mut child = stage::starting(|| command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()).unwrap();
    processes::wait_for(&marker, 1);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap_err().kind(), ErrorKind::NoReport);
    processes::none_left(&marker);
}

#[test]
fn many_threads_start_commands_at_once() {
    let world = World::new(&User::current());
    let words = [PROGRAM.as_ref(), "threads".as_ref(), stage::sbx().as_os_str()];
    world.bare(words).run().success().prints(
        "40 of 40
",
    );
}

#[test]
fn an_ordinary_user_embeds_it_too() {
    as_users(|user| {
        let world = World::new(user);
        let program = world.install(Path::new(PROGRAM), "embedding");
        let words = [program.as_os_str(), "run".as_ref(), stage::sbx().as_os_str()];
        let shell = ["minimal", "sh", "-c", "echo out; id; exit 4"].map(AsRef::as_ref);
        let out = world.bare([&words[..], &shell].concat()).run().success().out();
        assert!(out.contains("cause: exited\n") && out.contains("stdout: \"out\\n\"\n"), "{out}");
        assert!(out.contains("refused: "), "{out}");
    });
}

#[test]
fn a_process_confines_itself() {
    as_users(|user| {
        let world = World::new(user);
        let program = world.install(Path::new(PROGRAM), "embedding");
        let confined = |profile: &str, act: &str, argument: &str| -> Cmd {
            world.bare([program.to_str().unwrap(), "confine", profile, act, argument])
        };
        let secret = world.home.join(".ssh/id_rsa");
        let secret = secret.to_str().unwrap();
        assert!(confined("none", "read", secret).run().success().out().contains(SECRET));
        for profile in ["minimal", "workspace", "network", "read-only", "write", "no-exec"] {
            let out = confined(profile, "read", secret).run().failed();
            assert!(!out.out().contains(SECRET), "{profile}: {out}");
            confined(profile, "read", "/etc/passwd").run().success();
            let file = format!("by-{profile}");
            let writes = ["workspace", "write", "no-exec"].contains(&profile);
            assert_eq!(confined(profile, "write", &file).run().code == Some(0), writes, "{profile}");
            assert_eq!(world.exists(&file), writes, "{profile}");
            let execs = ["workspace", "read-only"].contains(&profile);
            let out = confined(profile, "exec", "echo started").run();
            assert_eq!(out.out().contains("started"), execs, "{profile}: {out}");
            let server = servers::HttpServer::start();
            let connects = profile == "network";
            let out = confined(profile, "connect", &format!("127.0.0.1:{}", server.port)).run();
            assert_eq!(out.code == Some(0), connects, "{profile}: {out}");
            assert_eq!(server.connections() > 0, connects, "{profile}: {out}");
        }
        // What it starts is confined like itself.
        let script = format!("cat {secret}; echo went on");
        let out = confined("workspace", "exec", &script).run();
        assert!(out.out().contains("went on") && !out.out().contains(SECRET), "{out}");
    });
}

#[test]
fn what_cannot_be_confined_is_refused_as_a_whole() {
    let world = World::new(&User::ordinary());
    let program = world.install(Path::new(PROGRAM), "embedding");
    let refused = |profile: &str, act: &str, word: &str| {
        let out = world.bare([program.to_str().unwrap(), "confine", profile, act, "made"]).run().exited(1);
        assert!(out.out().contains("cannot confine") && out.out().contains(word), "{out}");
        assert!(!world.exists("made"));
    };
    refused("minimal", "with-thread", "2 threads");
    refused("unrestricted", "write", "confines nothing");
    world.write(
        "own.json",
        r#"{ "description": "x", "extends": "workspace", "limits": { "timeout": "5s" } }"#,
    );
    refused("./own.json", "write", "limits.timeout");
    assert!(confine_self("minimal").unwrap_err().to_string().contains("threads"));
}
