//! `--explain` names what the rules refuse, and nothing else.
//!
//! Each case is one line of shell. It runs without sbx first: what succeeds there and fails under sbx was refused
//! by sbx, and has to be named; what fails there too was not, and must not be named.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use sbx_tests::servers::HttpServer;
use sbx_tests::{User, World, as_users, in_worlds, kernel, need, parallel, promise, subjects};

/// A line, and the path to be named: below the workspace's parent, or absolute.
type Case = (&'static str, &'static str);

/// Refused by path rules. `$O` is a directory outside, `$A` a program that makes single system calls.
const REFUSED: &[Case] = &[
    // Reading.
    ("cat $O/kept", "outside/kept"),
    ("cat ../../outside/kept", "outside/kept"),
    ("cat ./sub/.././../../outside//kept", "outside/kept"),
    ("cat link-kept", "outside/kept"),
    ("cat link-link", "outside/kept"),
    ("cat link-dir/inner", "outside/dir/inner"),
    ("cat link-dir/../kept", "outside/kept"),
    ("cat < $O/kept", "outside/kept"),
    ("cd $O && cat kept", "outside/kept"),
    ("cd $O/dir && cat ../kept", "outside/kept"),
    ("cat /proc/self/cwd/../../outside/kept", "outside/kept"),
    ("cat /proc/self/root$O/kept", "outside/kept"),
    ("cat /proc/thread-self/cwd/../../outside/kept", "outside/kept"),
    ("exec 3<. && cat /proc/self/fd/3/../../outside/kept", "outside/kept"),
    ("exec 3<. && cat /dev/fd/3/../../outside/kept", "outside/kept"),
    ("exec 3<. && $A syscall $openat 3 s:../../outside/kept 0", "outside/kept"),
    ("exec 3<sub && $A syscall $openat 3 s:../../../outside/kept 0", "outside/kept"),
    ("exec 3<. && $A syscall $openat 3 s:$O/kept 0", "outside/kept"),
    ("exec 3<. && $A syscall $openat 3 s:link-kept 0", "outside/kept"),
    ("$A syscall $openat -100 s:link-dir/inner 0x20000", "outside/dir/inner"),
    ("$A syscall $openat -100 s:$O/kept 0x8000", "outside/kept"),
    ("cat ~/.ssh/id_rsa", "home/.ssh/id_rsa"),
    ("cat $HOME/.netrc", "home/.netrc"),
    ("cat ../other-project/.env", "home/other-project/.env"),
    ("cat ~/.aws/credentials", "home/.aws/credentials"),
    ("cat \"$O/odd name\"", "outside/odd name"),
    ("ls $O", "outside"),
    ("ls $O/", "outside"),
    ("ls $O/dir/.", "outside/dir"),
    ("ls $O/dir/..", "outside"),
    ("ls link-dir/", "outside/dir"),
    ("cd $O && ls", "outside"),
    ("$A syscall $openat -100 s:$O/dir 0x10000", "outside/dir"),
    ("grep -r inner $O/dir", "outside/dir"),
    ("wc -c $O/kept", "outside/kept"),
    ("head -1 $O/dir/inner", "outside/dir/inner"),
    ("cp $O/kept copied", "outside/kept"),
    ("sh -c 'sh -c \"cat $O/kept\"'", "outside/kept"),
    ("(cat $O/kept)", "outside/kept"),
    ("cat $O/kept | cat | grep -q outside", "outside/kept"),
    ("(sleep 0.05; cat $O/kept) & wait $!", "outside/kept"),
    (". $O/run.sh", "outside/run.sh"),
    ("setsid -w cat $O/kept", "outside/kept"),
    // Writing.
    ("echo x > $O/kept", "outside/kept"),
    ("echo x >> $O/kept", "outside/kept"),
    ("echo x > $O/new", "outside/new"),
    ("echo x > ../../outside/new", "outside/new"),
    ("echo x > link-kept", "outside/kept"),
    ("echo x > link-new", "outside/new"),
    ("echo x > link-dir/new", "outside/dir/new"),
    ("set -C; echo x > $O/new", "outside/new"),
    ("touch $O/new", "outside/new"),
    ("cd $O && touch new", "outside/new"),
    ("cp sub/file $O/new", "outside/new"),
    ("tee $O/new < sub/file", "outside/new"),
    ("dd if=sub/file of=$O/kept conv=notrunc status=none", "outside/kept"),
    ("truncate -s 0 $O/kept", "outside/kept"),
    ("$A syscall $truncate s:$O/kept 0", "outside/kept"),
    ("$A syscall $truncate s:link-kept 0", "outside/kept"),
    ("$A syscall $openat -100 s:$O/kept 2", "outside/kept"),
    ("$A syscall $openat -100 s:$O/kept 0x200", "outside/kept"),
    ("$A syscall $openat -100 s:$O 0x410001 0600", "outside"),
    ("echo x > $O/dir/inner", "outside/dir/inner"),
    // Names.
    ("mkdir $O/made", "outside/made"),
    ("mkdir $O/made/", "outside/made"),
    ("cd $O && mkdir made", "outside/made"),
    ("mkdir link-dir/made", "outside/dir/made"),
    ("exec 3<. && $A syscall $mkdirat 3 s:../../outside/made 0755", "outside/made"),
    ("mkfifo $O/fifo", "outside/fifo"),
    ("$A syscall $mknodat -100 s:$O/node 0100644 0", "outside/node"),
    ("ln -s x $O/link", "outside/link"),
    ("ln sub/file $O/hard", "outside/hard"),
    ("ln $O/kept hard", "outside/kept"),
    ("ln $O/kept $O/hard", "outside/hard"),
    ("rm $O/kept", "outside/kept"),
    ("rm -f ../../outside/kept", "outside/kept"),
    ("cd $O && rm kept", "outside/kept"),
    ("rm $O/dangling", "outside/dangling"),
    ("rmdir $O/empty", "outside/empty"),
    ("rmdir link-out/empty", "outside/empty"),
    ("$A syscall $unlinkat -100 s:$O/empty 0x200", "outside/empty"),
    ("mv -T $O/kept $O/moved", "outside/kept"),
    ("$A syscall $renameat2 -100 s:$O/kept -100 s:taken 0", "outside/kept"),
    ("$A syscall $renameat2 -100 s:sub/file -100 s:$O/moved 0", "outside/moved"),
    ("$A syscall $renameat2 -100 s:sub/file -100 s:$O/kept 0", "outside/kept"),
    ("$A syscall $renameat2 -100 s:sub -100 s:$O/empty 0", "outside/empty"),
    ("$A syscall $renameat2 -100 s:sub/file -100 s:$O/kept 2", "outside/kept"),
    ("$A syscall $renameat2 -100 s:$O/kept -100 s:sub/file 2", "outside/kept"),
    ("$A syscall $renameat2 -100 s:$O/kept -100 s:free 1", "outside/kept"),
    ("mv $O/dir $O/other", "outside/dir"),
    // Executing.
    ("$O/run.sh", "outside/run.sh"),
    ("link-run", "outside/run.sh"),
    ("$O/tool", "outside/tool"),
    ("cd $O && ./tool", "outside/tool"),
    ("sh -c '$O/tool'", "outside/tool"),
    ("env $O/tool", "outside/tool"),
    ("./by-outside", "outside/tool"),
    ("exec 3<. && $A syscall $execveat 3 s:../../outside/tool 0 0 0", "outside/tool"),
];

/// Failures that the file system itself reports.
const INNOCENT: &[&str] = &[
    "cat $O/missing",
    "cat missing",
    "cat link-missing",
    "cat $O/kept/below",
    "cat $O/missing/below",
    "cat link-loop",
    "cat $O/missing/../kept",
    "cat ''",
    "echo x > $O/missing/new",
    "echo x > missing/new",
    "echo x > $O/dir",
    "echo x > $O/kept/",
    "ls $O/missing",
    "ls -d $O/kept/",
    "mkdir $O/dir",
    "mkdir $O/kept",
    "mkdir $O/missing/made",
    "mkdir $O/kept/made",
    "rmdir $O/dir",
    "rmdir $O/kept",
    "rmdir $O/missing",
    "rm $O/missing",
    "rm $O/dir",
    "$A syscall $unlinkat -100 s:$O/dir 0",
    "ln $O/missing hard",
    "ln $O/dir hard",
    "ln sub/file $O/kept",
    "ln -s x $O/kept",
    "mv $O/missing here",
    "mv -T sub/file $O/dir",
    "$A syscall $renameat2 -100 s:$O/dir -100 s:$O/kept 0",
    "$A syscall $renameat2 -100 s:$O/empty -100 s:$O/dir 0",
    "$A syscall $renameat2 -100 s:$O/kept -100 s:$O/dir/inner 1",
    "$A syscall $renameat2 -100 s:$O/dir -100 s:$O/dir/below 0",
    "$A syscall $openat -100 s:$O/kept 0x10000",
    "$A syscall $openat -100 s:$O/kept 0xc1 0600",
    "$A syscall $openat -100 s:link-kept 0x20000",
    "$A syscall $openat -100 s:$O/socket 0",
    "$A syscall $openat 77 s:kept 0",
    "$A syscall $openat -100 0 0",
    "$A syscall $truncate s:$O/dir 0",
    "$A syscall $truncate s:$O/missing 0",
    "$O/kept",
    "$O/dir",
    "$O/missing",
    "./by-missing",
    "cd $O/missing",
    "cat /proc/self/fd/77",
    "cat /proc/999999999/status",
    "exec 3<$O/missing",
    // The path is protected, but exists already.
    "mkdir .git",
    "mkdir .git/hooks",
    "ln -sT x .git/hooks",
    "ln sub/file .git/config",
    "mkfifo .git/config",
    "$A syscall $openat -100 s:.git/config 0xc1 0600",
    "$A syscall $renameat2 -100 s:sub/file -100 s:.git/config 1",
];

/// Permissions, which do not stop root outside.
const CLOSED: &[&str] = &[
    "cat $O/closed",
    "echo x > $O/closed",
    "echo x > $O/read-only",
    "ls $O/closed-dir",
    "cat $O/closed-dir/inner",
    "echo x > $O/fixed/new",
    "mkdir $O/fixed/made",
    "rm -f $O/fixed/file",
    "mv $O/kept $O/fixed/",
    "$A syscall $truncate s:$O/read-only 0",
    "ln -s x $O/fixed/link",
];

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
fn explained(user: &User, line: &str) -> (bool, Vec<String>, World) {
    let world = world(user);
    let out = world.sbx(["run", "--explain", "--", "sh", "-c", &script(&world, line)]).run();
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
fn misnamed(user: &User, (line, expected): &Case) -> Option<String> {
    assert!(bare(user, line), "fails without sbx: {line}");
    let (succeeded, lines, world) = explained(user, line);
    let path = world.outside.with_file_name(expected);
    let path = path.to_str().unwrap();
    let names = |text: &String| {
        let shown = [format!(" {path} (inferred);"), format!(" '{path}' (inferred);")];
        text.contains("may not")
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
fn blamed(user: &User, line: &str, control: bool) -> Option<String> {
    assert!(!control || !bare(user, line), "succeeds without sbx: {line}");
    let (succeeded, lines, _) = explained(user, line);
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
        let misnamed = wrong(REFUSED, |case| misnamed(user, case));
        let closed = CLOSED.iter().map(|line| (*line, !user.is_root()));
        let innocent: Vec<_> = INNOCENT.iter().map(|line| (*line, true)).chain(closed).collect();
        let blamed = wrong(&innocent, |(line, control)| blamed(user, line, *control));
        let (all, right) = (REFUSED.len(), REFUSED.len() - misnamed.len());
        eprintln!("as {}: {right} of {all} refusals named right", user.name);
        eprintln!("as {}: {} of {} other failures blamed", user.name, blamed.len(), innocent.len());
        eprintln!("{}", misnamed.join("\n"));
        assert!(misnamed.len() * 50 <= all, "{}", misnamed.join("\n"));
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
