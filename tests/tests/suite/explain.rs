//! `--explain` names what the rules refuse, and nothing else.
//!
//! Each case is one line of shell. It runs without sbx first: what succeeds there and fails under sbx was refused
//! by sbx, and has to be named; what fails there too was not, and must not be named.

mod cases;

use cases::{CLOSED, Case, INNOCENT, REFUSED};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use sbx_tests::servers::HttpServer;
use sbx_tests::{User, World, as_users, in_worlds, kernel, need, parallel, promise, subjects};

fn world(user: &User) -> World {
    let world = World::new(user);
    let outside = |name: &str| world.outside.join(name);
    world.write("sub/file", "file\n");
    world.write("taken", "taken\n");
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    world.write(".git/config", "[core]\n");
    for name in [".git/hooks", ".git/objects", ".git/refs"] {
        world.make_dir(&world.path(name));
    }
    world.write(outside("odd name"), "x\n");
    world.script(outside("run.sh"), "#!/bin/sh\nexit 0\n");
    world.make_dir(&outside("empty"));
    world.make_dir(&outside("fixed"));
    for name in ["closed", "read-only", "closed-dir/inner", "fixed/file"] {
        world.write(outside(name), "x\n");
    }
    world.subject("attempt");
    world.install(&subjects::program("hello"), "../../outside/tool");
    world.script("by-outside", format!("#!{} argv0\n", outside("tool").display()));
    world.script("by-missing", format!("#!{}\n", outside("missing").display()));
    let _ = std::os::unix::net::UnixListener::bind(outside("socket")).unwrap();
    for (name, target) in [
        ("link-kept", outside("kept")),
        ("link-link", "link-kept".into()),
        ("link-dir", outside("dir")),
        ("link-out", outside("")),
        ("link-new", outside("new")),
        ("link-missing", outside("missing/x")),
        ("link-run", outside("run.sh")),
        ("link-loop", "link-loop".into()),
        ("../../outside/dangling", "nowhere".into()),
    ] {
        symlink(target, world.path(name)).unwrap();
    }
    for (name, mode) in [("closed", 0), ("read-only", 0o444), ("closed-dir", 0), ("fixed", 0o555)] {
        std::fs::set_permissions(outside(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    world
}

/// A line as a script, with the names of calls replaced by their numbers.
fn script(world: &World, line: &str) -> String {
    let calls = [
        ("openat", libc::SYS_openat),
        ("truncate", libc::SYS_truncate),
        ("mkdirat", libc::SYS_mkdirat),
        ("mknodat", libc::SYS_mknodat),
        ("unlinkat", libc::SYS_unlinkat),
        ("renameat2", libc::SYS_renameat2),
        ("execveat", libc::SYS_execveat),
    ];
    let mut text = format!("O={}; A={}; export O;", world.outside.display(), world.path("attempt").display());
    for (name, number) in calls {
        text += &format!(" {name}={number};");
    }
    text + " PATH=$PATH:.; " + line
}

/// Each experiment gets a new world, so that it does not see what another one did.
fn bare(user: &User, line: &str) -> bool {
    let world = world(user);
    let out = world.bare(["sh", "-c", &script(&world, line)]).run();
    open_again(&world);
    out.code == Some(0)
}

/// The lines about refused paths, and whether the command succeeded.
fn explained(user: &User, flags: &[&str], line: &str) -> (bool, Vec<String>, World) {
    let world = world(user);
    let out = world.sbx(["run"]).args(flags).args(["--", "sh", "-c", &script(&world, line)]).run();
    open_again(&world);
    (out.code == Some(0), out.sbx_lines(), world)
}

/// Restores the permissions, so that an ordinary user can remove it.
fn open_again(world: &World) {
    for name in ["closed-dir", "fixed"] {
        let _ = std::fs::set_permissions(world.outside.join(name), std::fs::Permissions::from_mode(0o755));
    }
}

/// What is wrong about a refusal that has to be named.
fn misnamed(user: &User, flags: &[&str], (line, expected): &Case) -> Option<String> {
    assert!(bare(user, line), "fails without sbx: {line}");
    let (succeeded, lines, world) = explained(user, flags, line);
    let path = world.outside.with_file_name(expected);
    let path = path.to_str().unwrap();
    let names = |text: &String| {
        let ends = [" (inferred);", ", which is out of sight", ", which the command names, is out of sight"];
        let shown = ends.map(|end| [format!(" {path}{end}"), format!(" '{path}'{end}")]).concat();
        (text.contains("may not") || text.contains("which the command names"))
            && shown.iter().any(|shown| text.contains(shown))
            && text.contains("allow it with --")
    };
    if succeeded || !lines.iter().any(names) {
        return Some(format!("not named: {line} -> {path}: {succeeded} {lines:?}"));
    }
    // Nothing else may be named, except what a tool tries besides at the same place.
    let other = lines.iter().any(|text| !text.contains(path) && !text.contains("/outside"));
    other.then(|| format!("something else is named: {line}: {lines:?}"))
}

/// What is wrong about a failure that must not be named.
fn blamed(user: &User, flags: &[&str], line: &str, control: bool) -> Option<String> {
    assert!(!control || !bare(user, line), "succeeds without sbx: {line}");
    let (succeeded, mut lines, _) = explained(user, flags, line);
    // Outside, root's capabilities open what permissions close.
    lines.retain(|line| {
        control || !line.contains("to this user, and the command has none of its user's capabilities")
    });
    (succeeded || !lines.is_empty()).then(|| format!("falsely: {line}: {succeeded} {lines:?}"))
}

/// Collects the failures of all cases. Several run at a time, since each takes four processes and two worlds.
fn wrong<T: Sync>(cases: &[T], try_one: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    parallel::map(cases, 4, try_one).into_iter().flatten().collect()
}

#[test]
fn refusals_are_named_and_failures_of_the_file_system_are_not() {
    need!("setsid");
    as_users(|user| {
        let misnamed = wrong(REFUSED, |case| misnamed(user, &["--explain"], case));
        let closed = CLOSED.iter().map(|line| (*line, !user.is_root()));
        let innocent: Vec<_> = INNOCENT.iter().map(|line| (*line, true)).chain(closed).collect();
        let blamed = wrong(&innocent, |(line, control)| blamed(user, &["--explain"], line, *control));
        let (all, right) = (REFUSED.len(), REFUSED.len() - misnamed.len());
        eprintln!("as {}: {right} of {all} refusals named right", user.name);
        eprintln!("as {}: {} of {} other failures blamed", user.name, blamed.len(), innocent.len());
        eprintln!("{}", misnamed.join("\n"));
        assert!(misnamed.len() * 50 <= all, "{}", misnamed.join("\n"));
        assert!(blamed.is_empty(), "{}", blamed.join("\n"));
    });
}

/// Without `--explain`, programs that load libraries tell what they were refused. `$A` makes its calls itself.
#[test]
fn programs_tell_what_they_were_refused() {
    need!("setsid");
    promise!(namespaces);
    as_users(|user| {
        let cases: Vec<Case> = REFUSED.iter().filter(|(line, _)| !line.contains("$A")).copied().collect();
        let misnamed = wrong(&cases, |case| misnamed(user, &[], case));
        let closed = CLOSED.iter().map(|line| (*line, !user.is_root()));
        let innocent: Vec<_> = INNOCENT.iter().map(|line| (*line, true)).chain(closed).collect();
        let blamed = wrong(&innocent, |(line, control)| blamed(user, &[], line, *control));
        assert!(misnamed.len() * 20 <= cases.len(), "{}", misnamed.join("\n"));
        assert!(blamed.is_empty(), "{}", blamed.join("\n"));
    });
}

#[test]
fn a_name_that_only_the_run_has_taken_is_not_a_failure_of_the_file_system() {
    promise!(namespaces);
    as_users(|user| {
        let world = world(user);
        std::fs::remove_dir(world.path(".git/hooks")).unwrap();
        let out = world.sbx(["run", "--explain", "--", "mkdir", ".git/hooks"]).run();
        assert_ne!(out.code, Some(0), "{}", out.err());
        let lines = out.sbx_lines();
        assert!(lines.len() == 1 && lines[0].contains(" protects "), "{lines:?}");
    });
}

/// A call that is refused to the program is still allowed to the loader, which could not load it otherwise.
#[test]
fn a_program_is_loaded_with_explain_as_without() {
    as_users(|user| {
        let world = world(user);
        let list = "read:write:exit_group:fstat:close:fadvise64";
        let status = |explain: &[&str]| {
            let flags = [&["run", "-p", "custom", "--allow-calls", list][..], explain].concat();
            let out = world.sbx([&flags[..], &["--", "cat", "sub/file"]].concat()).run();
            assert_ne!(out.code, Some(0), "{}", out.err());
            out.code
        };
        assert_eq!(status(&["--explain"]), status(&[]));
    });
}

#[test]
fn refused_ports_and_signals_are_named_too() {
    promise!(kernel::SCOPES);
    let server = HttpServer::start();
    as_users(|user| {
        let world = World::new(user);
        let attempt = world.program("attempt");
        let port = server.port.to_string();
        let run = |rule: &str, words: &[&str]| {
            world.sbx([&["run", "--explain", "--connect", rule, "--"], words].concat()).run()
        };
        run(&format!("*:{port}"), &[&attempt, "connect", &port]).success().silent();
        let other = if port == "9" { "10" } else { "9" };
        run(&format!("*:{other}"), &[&attempt, "connect", &port]).exited(1).says(&format!(
            "may not connect to TCP port {port} (inferred); allow it with --connect '*:{port}'"
        ));
        let program =
            "import socket; s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(('127.0.0.1', 8099))";
        let bind = |front: &[&str]| {
            let words = ["--", "/usr/bin/python3", "-c", program];
            world.sbx([&["run", "--explain", "--connect", "*:9"], front, &words].concat()).run()
        };
        bind(&["--bind", "8098"])
            .failed()
            .says("may not listen on TCP port 8099 (inferred); allow it with --bind 8099");
        bind(&["--bind", "8099"]).success().silent();
        let mut outside = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = outside.id().to_string();
        let signal = |target: &str| {
            // In a pid namespace it would have no number.
            let words = ["run", "--explain", "--namespaces", "none", "--", "sh", "-c"];
            world.sbx(words).arg(format!("kill -0 {target}")).run()
        };
        signal("$$").success().silent();
        let out = signal(&pid).failed();
        // Another user's process is out of reach anyway.
        let blamed = out.sbx_lines().iter().any(|line| line.contains(&format!("process {pid} is outside")));
        assert_eq!(blamed, !user.switch, "{out}");
        outside.kill().unwrap();
        outside.wait().unwrap();
    });
}

/// A read-only mount refuses there, since the directory above is the run's own and can be written.
#[test]
fn read_only_files_below_tmp_are_named() {
    promise!(namespaces);
    as_users(|user| {
        let world = World::new(user);
        let above = format!("/tmp/{}-{}", sbx_tests::processes::marker(), user.name);
        let above = std::path::Path::new(&above);
        let (project, other) = (above.join("project"), above.join("other"));
        world.make_dir(&project);
        world.make_dir(&other);
        world.write(project.join("closed"), "kept\n");
        std::fs::set_permissions(project.join("closed"), std::fs::Permissions::from_mode(0o444)).unwrap();
        let run = |flags: &[&str], line: &str| {
            let words = [&["run", "--explain"][..], flags, &["--", "sh", "-c", line]].concat();
            world.sbx(words).cwd(&project).run()
        };
        let (project, other) = (project.to_str().unwrap(), other.to_str().unwrap());
        run(&["-p", "read-only"], "touch new").failed().says(&format!(
            "profile 'read-only' may not change {project}/new (inferred); allow it with --rw {project}\n"
        ));
        run(&["-p", "read-only", "--rw", project], "touch new").success().silent();
        run(&["--ro", other], &format!("mkdir {other}/new")).failed().says(&format!(
            "profile 'workspace' may not change {other}/new (inferred); allow it with --rw {other}\n"
        ));
        // No rule is blamed for a call that fails anyway.
        let innocent = "mkdir -p ../project; rm missing; cat new/x; ls > /dev/null; echo x > closed";
        let out = run(&["-p", "read-only"], innocent).failed();
        assert!(out.sbx_lines().is_empty(), "{out}");
        std::fs::remove_dir_all(above).unwrap();
    });
}

/// What is there already is opened itself; for a name that comes or goes, the directory is.
#[test]
fn the_advice_opens_no_more_than_the_call_needs() {
    in_worlds(|world| {
        let (kept, other) = (world.outside.join("kept"), world.outside.join("other"));
        world.write(&kept, "one\n");
        world.write(&other, "other\n");
        let run = |flags: &[&str], line: &str| {
            let words = [&["run", "--explain"][..], flags, &["--", "sh", "-c", line]].concat();
            world.sbx(words).run()
        };
        let (file, directory) = (kept.to_str().unwrap(), world.outside.to_str().unwrap());
        let append = format!("echo two >> {file}");
        run(&[], &append).failed().says(&format!("allow it with --rw {file}\n"));
        run(&["--rw", file], &append).success().silent();
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "one\ntwo\n");
        run(&["--rw", file], &format!("echo two >> {}", other.display())).failed();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "other\n");
        for line in [format!("rm {file}"), format!("echo x > {directory}/new"), format!("mv {file} {file}2")]
        {
            run(&["--ro", directory], &line).failed().says(&format!("allow it with --rw {directory}\n"));
        }
        let here = world.workspace.to_str().unwrap();
        run(&["-p", "read-only"], "chmod 755 .").failed().says(&format!("allow it with --rw {here}\n"));
        run(&["-p", "read-only", "--rw", here], "chmod 755 .").success().silent();
    });
}

/// A program that steals hides its failures, and ends well.
#[test]
fn a_secret_that_a_program_does_without_is_named() {
    need!("python3");
    in_worlds(|world| {
        world.write(world.home.join(".aws/credentials"), "key\n");
        world.write(world.home.join("plans/new"), "plan\n");
        world.write(world.home.join("other/file"), "x\n");
        let tries =
            |path: &str| format!("try: open('{}/{path}')\nexcept OSError: pass\n", world.home.display());
        let script = [".aws/credentials", "plans/new", "other/file"].map(tries).concat();
        let plans = world.home.join("plans");
        let flags = ["run", "--explain", "--deny", plans.to_str().unwrap(), "--", "python3", "-c", &script];
        let out = world.sbx(flags).run().success();
        let lines = out.sbx_lines();
        for named in [".aws/credentials", "plans/new"] {
            assert_eq!(lines.iter().filter(|line| line.contains(named)).count(), 1, "{named}: {out}");
        }
        assert!(!lines.iter().any(|line| line.contains("other/file")), "{out}");
        // The control: a program that fails says it of everything.
        let failing = format!("{script}raise SystemExit(1)");
        let out = world.sbx(["run", "--explain", "--", "python3", "-c", &failing]).run().exited(1);
        assert!(out.sbx_lines().iter().any(|line| line.contains("other/file")), "{out}");
    });
}
