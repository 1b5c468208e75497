//! What is proposed: the flag that helps, and no other.

use super::{lines, none, one};
use sbx_tests::{in_worlds, kernel, need, promise, stage};
use std::os::unix::fs::PermissionsExt;

/// The run's own home is the narrower answer, and lets the program succeed. A file that is there is named itself.
#[test]
fn a_new_file_in_a_closed_home_asks_for_a_home_of_the_run() {
    promise!(namespaces);
    in_worlds(|world| {
        world.write(world.home.join("kept"), "kept\n");
        let closed = ["--home", "closed"];
        let new = format!("touch {}/new", world.home.display());
        for flags in [&closed[..], &["--home", "closed", "--explain"]] {
            one(&lines(world, flags, &new), &["/new", "allow it with --home private"]);
        }
        world.sbx(["run", "-q", "--home", "private", "--", "sh", "-c", &new]).run().success();
        assert!(!world.home.join("new").exists());
        let kept = format!("echo changed > {}/kept", world.home.display());
        let flag = format!("allow it with --rw {}/kept", world.home.display());
        one(&lines(world, &closed, &kept), &[&flag]);
        // With a home that a flag opens, there is none of the run's own.
        let home = world.home.to_str().unwrap();
        let mut opened = lines(world, &["--ro", home], &new);
        opened.retain(|line| !line.contains("warning"));
        one(&opened, &[&format!("allow it with --rw {home}")]);
    });
}

/// cp(1) opens the directory that it copies into, and not to list it.
#[test]
fn a_directory_out_of_sight_is_opened_for_what_is_to_be_made_in_it() {
    need!("cp", "ls");
    promise!(namespaces);
    in_worlds(|world| {
        let other = world.home.join("other");
        world.make_dir(&other);
        world.write("file", "x\n");
        let (copy, list) = (format!("cp file {}/", other.display()), format!("ls {}/", other.display()));
        let (write, read) = (format!("--rw {}", other.display()), format!("--ro {}", other.display()));
        one(&lines(world, &[], &list), &[&format!("allow it with {read}")]);
        one(&lines(world, &[], &copy), &[&format!("allow it with {write}")]);
        assert!(!other.join("file").exists());
        none(&lines(world, &["--rw", other.to_str().unwrap()], &copy));
        assert!(other.join("file").exists());
    });
}

/// By a hard link in the workspace a file could be executed, so Landlock wants that right for its first name, too.
#[test]
fn a_link_into_the_workspace_asks_for_all_rights_that_it_takes() {
    need!("ln");
    promise!(namespaces);
    in_worlds(|world| {
        let other = world.home.join("other");
        world.write(other.join("file"), "x\n");
        let (at, link) = (other.to_str().unwrap(), format!("ln {}/file linked", other.display()));
        for flag in ["--ro", "--rw"] {
            one(&lines(world, &[flag, at], &link), &[&format!("allow it with --rwx {at}")]);
            assert!(!world.path("linked").exists());
        }
        none(&lines(world, &["--rwx", at], &link));
        assert!(world.path("linked").exists());
    });
}

/// git needs many files of a repository. A flag for each that it asks for first would be one refusal after the other.
#[test]
fn a_repository_is_opened_as_a_whole() {
    need!("git");
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let other = world.outside.join("other.git");
        let at = other.to_str().unwrap();
        for make in [&["init", "-q", "."][..], &["init", "-q", "--bare", at]] {
            world.bare([&["git"], make].concat()).run().success();
        }
        let save = [
            "-c",
            "user.name=u",
            "-c",
            "user.email=u@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "one",
        ];
        world.bare([&["git"][..], &save].concat()).run().success();
        let push = format!("git push -q {at} HEAD:refs/heads/pushed");
        // Who pushes is to write there, though the first that is refused is to read.
        let said = lines(world, &[], &push);
        assert!(said.len() == 1 && said[0].ends_with(&format!("allow it with --rw {at}")), "{said:?}");
        assert!(!other.join("refs/heads/pushed").exists());
        let list = format!("git ls-remote {at}");
        let said = lines(world, &[], &list);
        assert!(said.len() == 1 && said[0].ends_with(&format!("allow it with --ro {at}")), "{said:?}");
        none(&lines(world, &["--ro", at], &list));
        none(&lines(world, &["--rw", at], &push));
        assert!(other.join("refs/heads/pushed").exists());
        // Both ends of a push look at a repository that is out of sight.
        let hidden = world.home.join("hidden.git");
        let at_home = hidden.to_str().unwrap();
        world.bare(["git", "init", "-q", "--bare", at_home]).run().success();
        let push = format!("git push -q {at_home} HEAD:refs/heads/pushed");
        let said = lines(world, &[], &push);
        let reads = said.iter().any(|line| line.contains("allow it with --ro"));
        assert!(said[0].ends_with(&format!("allow it with --rw {at_home}")) && !reads, "{said:?}");
        none(&lines(world, &["--rw", at_home], &push));
        let write = format!("echo x > {at}/objects/made");
        let said = lines(world, &[], &write);
        assert!(said.len() == 1 && said[0].ends_with(&format!("allow it with --rw {at}")), "{said:?}");
    });
}

/// sed(1) writes a new file and gives it the name of the old one, which a mount holds where a flag has opened that file
/// alone.
#[test]
fn a_file_that_is_opened_alone_is_replaced_where_its_directory_is_opened() {
    need!("sed");
    promise!(namespaces);
    in_worlds(|world| {
        let file = world.write_at_home("lib/index", "5\n");
        let (path, directory) = (file.to_str().unwrap(), file.parent().unwrap().to_str().unwrap());
        let named = [
            &*format!("may not change {path}, which a rule opens without the directory that it is in"),
            &*format!("allow it with --rw {directory}"),
        ];
        let (edit, remove) = (format!("sed -i s/5/6/ {path}"), format!("rm -f {path}"));
        for flag in ["--ro", "--rw"] {
            for line in [&edit, &remove] {
                one(&lines(world, &[flag, path], line), &named);
            }
            one(&lines(world, &["--explain", flag, path], &remove), &named);
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "5\n");
        }
        // A file of the run's own beside it is nobody's business.
        let own = format!(
            "echo x > {directory}/own; mv {directory}/own {directory}/none; rm {directory}/none; exit 3"
        );
        none(&lines(world, &["--rw", path], &own));
        none(&lines(world, &["--rw", directory], &edit));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "6\n");
        none(&lines(world, &["--rw", directory], &remove));
        assert!(!file.exists());
    });
}

/// A rule opens what is read from a device and written to it.
#[test]
fn no_flag_is_proposed_for_the_mode_of_a_device() {
    need!("touch", "tty");
    promise!(namespaces);
    in_worlds(|world| {
        let said = lines(world, &[], "touch /dev/null");
        one(&said, &["opens /dev/null to be read and written", "no flag lets"]);
        assert!(!said[0].contains("allow it with"), "{said:?}");
        none(&lines(world, &[], "echo x > /dev/null; exit 3"));
        // Programs do without the mode of the caller's terminal.
        let script =
            "\"$0\" run -- sh -c 'chmod 600 \"$0\" || echo kept' \"$(tty)\"; echo all-told; read -r line";
        let (running, terminal) = world.bare(["sh", "-c", script]).arg(stage::sbx()).start_on_terminal();
        running.wait_for("all-told");
        let told = running.so_far();
        terminal.types("\r");
        running.wait();
        assert!(told.contains("kept") && !told.contains("sbx:"), "{told}");
    });
}

/// A profile refuses such sockets without a line, for most programs do without.
#[test]
fn a_netlink_socket_is_named_with_explain_where_the_program_fails() {
    need!("python3");
    in_worlds(|world| {
        let said = |flags: &[&str], ends: &str| {
            let program = format!(
                "import socket\ntry: socket.socket(16, 3)\nexcept OSError as e: print(e.errno)\nexit({ends})"
            );
            let words =
                [&["run", "--profile", "minimal"][..], flags, &["--", "/usr/bin/python3", "-c", &program]];
            let out = world.sbx(words.concat()).run();
            assert_eq!(out.out().trim(), if flags.contains(&"private") { "" } else { "97" }, "{out}");
            out.sbx_lines()
        };
        one(
            &said(&["--explain"], "1"),
            &["socket(AF_NETLINK", "allows no netlink sockets", "allow it with --profile network"],
        );
        none(&said(&["--explain"], "0"));
        none(&said(&[], "1"));
        if kernel::promises_namespaces() {
            none(&said(&["--explain", "--net", "private"], "1"));
        }
    });
}

/// A home of its own cannot be had where the command starts in the user's: then it is not proposed.
#[test]
fn a_home_of_the_run_is_not_proposed_where_there_can_be_none() {
    promise!(namespaces);
    in_worlds(|world| {
        let home = world.home.to_str().unwrap();
        let touch = |flags: &[&str]| {
            let out = world.sbx([&["run", "--cwd", home], flags, &["--", "touch", "new"]].concat()).run();
            (out.err(), world.home.join("new").exists())
        };
        let (said, made) = touch(&[]);
        assert!(said.contains(&format!("allow it with --rw {home}")) && !made, "{said}");
        let (said, made) = touch(&["--home", "private"]);
        assert!(said.contains("the command starts in") && !made, "{said}");
        assert!(touch(&["--rw", home]).1);
    });
}

/// A profile that opens the workspace and lacks a call: the call is proposed. A path would open what is open, and may
/// be gone by then.
#[test]
fn a_call_is_proposed_where_its_path_is_open() {
    in_worlds(|world| {
        let calls = r#"{"extends": "workspace", "syscalls": {"deny": ["chmod", "fchmodat", "fchmodat2"]}}"#;
        std::fs::write(world.outside.join("calls.json"), calls).unwrap();
        let profile = world.outside.join("calls.json").into_os_string().into_string().unwrap();
        world.write("file", "");
        let chmod = |flags: &[&str]| {
            let out = world.sbx([&["run", "-p", &profile], flags, &["--", "chmod", "600", "file"]].concat());
            (out.run().err(), std::fs::metadata(world.path("file")).unwrap().permissions().mode() & 0o777)
        };
        let (said, mode) = chmod(&[]);
        let list = said.split("--allow-calls '").nth(1).and_then(|rest| rest.split('\'').next());
        let list = list.map(str::to_string);
        assert!(!said.contains("--rw") && mode != 0o600, "{said}");
        let list = list.expect("a list of calls is proposed");
        assert_eq!(chmod(&["--allow-calls", &list]).1, 0o600, "{list}");
    });
}

/// A shell that cannot list a directory hands the pattern on as it is.
#[test]
fn a_pattern_in_a_closed_directory_asks_for_the_directory() {
    in_worlds(|world| {
        let line = "ls /etc/*.con[f]";
        let said = lines(world, &[], line);
        assert!(
            said[0].contains("may not read /etc ") && said[0].ends_with("allow it with --ro /etc"),
            "{said:?}"
        );
        none(&lines(world, &["--ro", "/etc"], line));
        // Of one that can be listed, nothing is said.
        none(&lines(world, &[], "ls *.none"));
    });
}

/// Programs set the other limits as they do outside.
#[test]
fn the_limit_of_core_files_is_told() {
    need!("bash");
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let line = "bash -c 'ulimit -c unlimited'";
        one(&lines(world, &[], line), &["RLIMIT_CORE", "no command writes core files"]);
        none(&lines(world, &[], "bash -c 'ulimit -c 0 && ulimit -n 100'"));
    });
}

/// xargs(1) opens the root to come back, and make(1) lists where it looks for what to make anew.
#[test]
fn what_a_program_opens_beside_its_task_is_not_blamed() {
    need!("make");
    promise!(kernel::PATHS);
    in_worlds(|world| {
        none(&lines(world, &[], "xargs -a none/of/this echo"));
        none(&lines(world, &[], "printf 'a:\\n\\tfalse\\n' | make -f /dev/stdin"));
        let kept = world.outside.join("kept").display().to_string();
        one(&lines(world, &[], &format!("xargs -a {kept} echo")), &["may not read", "kept"]);
        one(&lines(world, &[], "ls /"), &["may not read / "]);
    });
}

/// Whether an event is one of the kernel, which takes a capability, is in memory: perf(1) tries again without.
#[test]
fn a_performance_event_is_allowed_by_a_flag_whatever_it_counts() {
    need!("python3");
    promise!(namespaces);
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    // There no user counts anything.
    if level.trim().parse().is_ok_and(|level: i32| level > 2) {
        return;
    }
    in_worlds(|world| {
        let number = libc::SYS_perf_event_open;
        let call = format!("ctypes.CDLL(None).syscall({number}, bytes(128), 0, -1, -1, 0)");
        let line = format!("/usr/bin/python3 -c 'import ctypes; exit({call} < 0)'");
        for flags in [&[][..], &["--explain"]] {
            let said = lines(world, flags, &line);
            one(&said, &["perf_event_open(", "allow it with --allow-calls perf_event_open"]);
        }
    });
}
