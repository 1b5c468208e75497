//! What a plain run names: the library that programs load, the words of a command, limits and rights.

mod children;
mod hidden;
mod logs;
mod remedies;

use sbx_tests::{World, in_worlds, kernel, need, promise, stage};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

/// The lines of a failing line of shell.
fn lines(world: &World, flags: &[&str], line: &str) -> Vec<String> {
    let words = [&["run"][..], flags, &["--", "sh", "-c", line]].concat();
    world.sbx(words).env("O", world.outside.to_str().unwrap()).run().sbx_lines()
}

/// One line, which has these words.
fn one(lines: &[String], words: &[&str]) {
    assert!(lines.len() == 1 && words.iter().all(|word| lines[0].contains(word)), "{words:?}: {lines:?}");
}

/// No line.
fn none(lines: &[String]) {
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn what_is_out_of_sight_is_named_for_every_way_to_look() {
    promise!(namespaces);
    in_worlds(|world| {
        let hidden = world.home.join("other/file");
        world.write(&hidden, "x\n");
        world.script(world.home.join("other/run"), "#!/bin/sh\n");
        symlink(world.home.join("other/run"), world.path("leads")).unwrap();
        let path = hidden.to_str().unwrap();
        let other = world.home.join("other");
        for (line, named, flag) in [
            (format!("ls -l {path}"), path, "--ro"),
            (format!("stat {path}"), path, "--ro"),
            (format!("rm {path}"), path, "--rw"),
            (format!("cd {}", other.display()), other.to_str().unwrap(), "--ro"),
            ("./leads".to_string(), &*format!("{}/run", other.display()), "--rox"),
        ] {
            let said = lines(world, &[], &line);
            one(&said, &[named, "which is out of sight", &format!("allow it with {flag} ")]);
            let explained = lines(world, &["--explain"], &line);
            one(&explained, &[named, "which is out of sight"]);
            // What is proposed lets it through.
            let flags: Vec<&str> = said[0].split("allow it with ").nth(1).unwrap().split(' ').collect();
            if flag != "--rw" {
                none(&lines(world, &flags, &line));
            }
        }
        // A program that does without is not bothered.
        one(&lines(world, &[], &format!("ls {path}; true")), &[path]);
        none(&lines(world, &[], &format!("test -e {path}; true")));
    });
}

#[test]
fn a_socket_out_of_sight_is_named_and_reached_with_the_flag() {
    need!("python3");
    promise!(namespaces);
    in_worlds(|world| {
        let path = world.home.join("service");
        let server = UnixListener::bind(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let path = path.to_str().unwrap();
        let program = format!("import socket; socket.socket(socket.AF_UNIX).connect('{path}')");
        let line = format!("/usr/bin/python3 -c \"{program}\"");
        one(&lines(world, &[], &line), &["may not connect to", path, "out of sight", "--unix "]);
        none(&lines(world, &["--unix", path], &line));
        drop(server);
        none(&lines(world, &[], &line));
    });
}

#[test]
fn whoever_decides_is_named() {
    in_worlds(|world| {
        world.write("sub/file", "x\n");
        let said = lines(world, &["--deny", "sub"], "cat sub/file");
        one(&said, &["--deny sub denies ", "sub/file"]);
        assert!(!said[0].contains("allow it with"), "{said:?}");
        one(
            &lines(world, &["--allow-command", "sh"], "/usr/bin/date"),
            &["--allow-command names other programs than "],
        );
        // Permissions refuse these outside as well.
        if !world.user.is_root() {
            for line in ["touch /new-file", "mkdir /new-directory", "chmod 777 /etc/passwd"] {
                none(&lines(world, &[], line));
            }
        }
    });
}

#[test]
fn limits_that_are_reached_are_named() {
    need!("python3", "dd");
    promise!(namespaces);
    in_worlds(|world| {
        let many = "/usr/bin/python3 -c 'l = [open(\"/dev/null\") for i in range(100)]'";
        let said = lines(world, &["--max-open-files", "50"], many);
        one(&said, &["a process may have 50 open files", "allow more with --max-open-files"]);
        none(&lines(world, &["--max-open-files", "200"], many));
        let large = "dd if=/dev/zero of=large bs=1M count=3 2> /dev/null; true";
        one(
            &lines(world, &["--max-file-size", "1M"], large),
            &["the kernel ended a child in ", "a file may have 1 MiB", "--max-file-size"],
        );
        none(&lines(world, &["--max-file-size", "4M"], large));
    });
}

/// Where the kernel limits the memory of each process. A program that asks for less then has done without.
#[test]
fn memory_that_a_process_does_not_get_is_named_where_it_fails() {
    need!("python3", "sort", "seq");
    promise!(namespaces);
    in_worlds(|world| {
        let much = "/usr/bin/python3 -c 'bytearray(200000000)'";
        let named = ["the run may use 64 MiB of memory", "allow more with --max-memory"];
        for flags in [&["--max-memory", "64M"][..], &["--max-memory", "64M", "--explain"]] {
            one(&lines(world, flags, much), &named);
        }
        none(&lines(world, &["--max-memory", "1G"], much));
        none(&lines(world, &["--max-memory", "64M"], "seq 9 > few; sort -S 200M few > sorted; exit 3"));
        let caught = "/usr/bin/python3 -c 'try: bytearray(200000000)\nexcept MemoryError: pass'; exit 3";
        none(&lines(world, &["--max-memory", "64M"], &caught.replace("\\n", "\n")));
    });
}

#[test]
fn a_program_that_gains_no_rights_says_so_where_it_fails() {
    promise!(namespaces);
    in_worlds(|world| {
        let own = world.path("own-shell");
        std::fs::copy("/bin/bash", &own).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
        none(&lines(world, &[], "./own-shell -c 'exit 3'"));
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o4755)).unwrap();
        let said = lines(world, &[], "./own-shell -c 'exit 3'");
        one(&said, &["own-shell", "none gains rights in a sandbox"]);
        assert!(!said[0].contains("allow it with"), "{said:?}");
        // Nor is anything proposed for what else it is refused, if it would be root's.
        let outside = world.outside.join("read");
        world.write(&outside, "x\n");
        std::fs::copy("/bin/cat", world.path("own-cat")).unwrap();
        let reads = format!("exec ./own-cat {}", outside.display());
        let of_root = std::fs::metadata(world.path("own-cat")).unwrap().uid() == 0;
        for (mode, proposes) in [(0o755, true), (0o4755, !of_root)] {
            std::fs::set_permissions(world.path("own-cat"), std::fs::Permissions::from_mode(mode)).unwrap();
            let said = lines(world, &["--explain"], &reads);
            let named = said.iter().find(|line| line.contains("may not read")).unwrap();
            assert_eq!(named.contains("allow it with --ro"), proposes, "{mode:o}: {said:?}");
        }
    });
}

#[test]
fn a_process_outside_is_said_to_be_outside() {
    promise!(namespaces);
    in_worlds(|world| {
        let outside = world.bare(["sleep", "60"]).start();
        let number = outside.pid().to_string();
        let words = [&*format!("process {number} is outside")];
        one(&lines(world, &[], &format!("kill -0 {number}")), &words);
        one(&lines(world, &[], &format!("cat /proc/{number}/cmdline")), &words);
        // Nobody has that number, outside either.
        none(&lines(world, &[], "kill -0 4194303"));
        none(&lines(world, &[], "sleep 0 & wait; kill -0 $!"));
        outside.kill();
    });
}

#[test]
fn every_call_on_a_process_outside_says_so() {
    need!("python3");
    promise!(namespaces);
    in_worlds(|world| {
        let outside = world.bare(["sleep", "60"]).start();
        let number = outside.pid().to_string();
        let words = [&*format!("process {number} is outside")];
        let python = |text: &str| format!("/usr/bin/python3 -c \"import ctypes, os; {text}\" {number}");
        let checked = "libc = ctypes.CDLL(None, use_errno=True); n =";
        for line in [
            format!("/usr/bin/kill -TERM {number}"),
            format!("ls -l /proc/{number}/fd"),
            python(&format!("os.setpriority(os.PRIO_PROCESS, {number}, 19)")),
            // By syscall(2): ptrace(PTRACE_SEIZE), pidfd_open.
            python(&format!("{checked} libc.syscall(101, 0x4206, {number}, 0, 0); os._exit(n + 2)")),
            python(&format!("{checked} libc.syscall(434, {number}, 0); os._exit(n + 2)")),
        ] {
            if cfg!(target_arch = "x86_64") || !line.contains("syscall") {
                one(&lines(world, &[], &line), &words);
            }
        }
        // Where all processes have numbers, signals stay inside.
        let line = python(&format!("os.kill({number}, 0)"));
        let said = lines(world, &["--namespaces", "none"], &line);
        let said: Vec<_> = said.into_iter().filter(|line| !line.contains("warning")).collect();
        if !said.is_empty() {
            one(&said, &[&number, "outside"]);
        }
        outside.kill();
    });
}

#[test]
fn what_fails_outside_too_is_for_reports_only() {
    need!("python3", "chroot");
    promise!(namespaces);
    in_worlds(|world| {
        for line in ["chroot / true", "/usr/bin/python3 -c 'import socket; socket.socket(2, 3, 1)'"] {
            let said = lines(world, &[], line);
            let report = world.path("report.json");
            let words = ["run", "--report", report.to_str().unwrap(), "--", "sh", "-c", line];
            world.sbx(words).run().failed();
            let report = world.read(&report).unwrap();
            if world.user.is_root() {
                one(&said, &["it takes a capability, and the command has none"]);
            } else {
                none(&said);
                assert!(report.contains("this user has none, so it fails outside as well"), "{report}");
                let said = lines(world, &["-v"], line);
                assert!(said.iter().any(|line| line.contains("fails outside as well")), "{said:?}");
            }
        }
        // A file in the place of another, which permissions keep there: what follows is not to blame.
        if !world.user.is_root() {
            let fixed = world.outside.join("fixed");
            world.write(fixed.join("file"), "x\n");
            std::fs::set_permissions(&fixed, std::fs::Permissions::from_mode(0o555)).unwrap();
            let line = format!("mv {}/file here", fixed.display());
            none(&lines(world, &[], &line));
            none(&lines(world, &["--explain"], &line));
            std::fs::set_permissions(&fixed, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    });
}

#[test]
fn root_is_told_what_takes_its_capabilities() {
    need!("chown", "setpriv", "python3");
    promise!(namespaces);
    in_worlds(|world| {
        world.write("file", "x\n");
        world.write("closed", "x\n");
        std::fs::set_permissions(world.path("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
        let listen = "/usr/bin/python3 -c 'import socket; socket.socket().bind((\"127.0.0.1\", 81))'";
        for (line, named, why) in [
            (listen, "bind(AF_INET 127.0.0.1:81)", "it takes a capability"),
            ("chown 65534 file", "fchownat(\"file\"", "it takes a capability (CAP_CHOWN)"),
            ("cat closed", "closed", "permissions close "),
            ("echo x > closed", "closed", "permissions close "),
            ("setpriv --reuid 65533 true", "setresuid", "it takes a capability"),
        ] {
            // A port of the run's own network is nobody else's.
            let flags = if line == listen { &["--net", "host"][..] } else { &[] };
            let said = lines(world, flags, line);
            if world.user.is_root() {
                one(&said, &[named, why, "the command has none of its user's"]);
                assert!(!said[0].contains("allow it with"), "{said:?}");
            } else {
                none(&said);
            }
        }
    });
}

/// Programs list a directory for the files in it that are open to them, as pip does for those that name the system.
#[test]
fn a_list_that_a_program_does_without_is_not_named() {
    need!("python3");
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let list = |at: &str| {
            format!("import os, sys\ntry: os.listdir('{at}')\nexcept OSError: pass\nsys.exit(1)\n")
        };
        world.write("look.py", list("/etc"));
        none(&lines(world, &[], "/usr/bin/python3 look.py"));
        // What the user or a script lists, and a directory of which nothing is open.
        world.script("list.sh", "#!/bin/sh\nls /etc/*.conf\n");
        for line in ["ls /etc", "cd /etc; ls", "./list.sh", "/usr/bin/python3 look.py /etc"] {
            one(&lines(world, &[], line)[..1], &["may not read /etc", "allow it with --ro /etc"]);
        }
        let closed = world.outside.to_str().unwrap();
        world.write("closed.py", list(closed));
        one(&lines(world, &[], "/usr/bin/python3 closed.py"), &[closed]);
    });
}

#[test]
fn a_datagram_for_a_server_of_the_host_is_named_where_the_program_fails() {
    need!("python3");
    promise!(namespaces);
    in_worlds(|world| {
        let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let program = |then: &str| {
            format!(
                "/usr/bin/python3 -c \"import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                 {then}s.sendto(b'x', ('127.0.0.1', {port})); sys.exit(1)\""
            )
        };
        let said = lines(world, &[], &program(""));
        one(&said, &[&format!("127.0.0.1:{port}"), "the server on this port is the host's", "--net host"]);
        // It was for a socket of the run's own.
        let own =
            format!("t = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); t.bind(('127.0.0.1', {port})); ");
        none(&lines(world, &[], &program(&own)));
    });
}

#[test]
fn a_variable_that_does_not_pass_is_named_where_the_command_names_it() {
    in_worlds(|world| {
        let run = |flags: &[&str], line: &str| {
            let words = [&["run"][..], flags, &["--", "sh", "-c", line]].concat();
            world.sbx(words).env("SOME_TOKEN", "secret").run().sbx_lines()
        };
        let said = run(&[], "test \"$SOME_TOKEN\" = secret");
        one(&said, &["'SOME_TOKEN'", "not passed on", "pass it with --env SOME_TOKEN"]);
        none(&run(&["--env", "SOME_TOKEN"], "test \"$SOME_TOKEN\" = other"));
        none(&run(&[], "test -z \"$SOME_TOKEN\""));
        none(&run(&[], "SOME_TOKEN=x; test \"$SOME_TOKEN\" = secret"));
        none(&run(&[], "test -n \"$NO_SUCH_VARIABLE\""));
    });
}

#[test]
fn ports_and_sockets_are_named_under_profiles_of_one_program() {
    need!("python3");
    promise!(kernel::TCP_PORTS);
    in_worlds(|world| {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let program = format!("import socket; socket.create_connection(('127.0.0.1', {port}))");
        let run = |flags: &[&str]| {
            let words =
                [&["run", "-p", "minimal"], flags, &["--", "/usr/bin/python3", "-c", &program]].concat();
            world.sbx(words).run().sbx_lines()
        };
        let own = format!("*:{port}");
        one(&run(&["--connect", "*:1"]), &[&format!("may not connect to TCP port {port}"), "--connect"]);
        none(&run(&["--connect", &own]));
    });
}

#[test]
fn the_words_of_a_command_of_one_program_are_looked_at() {
    in_worlds(|world| {
        let kept = world.outside.join("kept");
        let kept = kept.to_str().unwrap();
        let run = |flags: &[&str], words: &[&str]| {
            world.sbx([&["run", "-p", "minimal"], flags, &["--"], words].concat()).run().sbx_lines()
        };
        one(&run(&[], &["cat", kept]), &[kept, "which the command names, is closed: ", "with --ro "]);
        none(&run(&["--ro", kept], &["cat", kept]));
        none(&run(&[], &["cat", "missing"]));
        // It does not fail.
        none(&run(&[], &["echo", kept]));
        // Nobody may read it anyway.
        if !world.user.is_root() {
            none(&run(&[], &["cat", "/etc/shadow"]));
        }
        none(&run(&[], &["bash", "-c", ":"]));
    });
}

#[test]
fn the_library_is_not_seen_and_not_needed() {
    need!("python3");
    promise!(namespaces);
    in_worlds(|world| {
        let kept = world.outside.join("kept");
        let cat = format!("cat {}", kept.display());
        one(&lines(world, &[], &cat), &["may not read", kept.to_str().unwrap()]);
        none(&lines(world, &["--no-explainer"], &cat));
        let shows = |line: &str| {
            let out = world.sbx(["run", "--", "sh", "-c", line]).run();
            out.success().out().to_string()
        };
        assert_eq!(shows("env | grep -c LD_PRELOAD; true"), "0\n");
        assert_eq!(shows("sh -c 'env | grep -c LD_PRELOAD'; true"), "0\n");
        assert!(!shows("ldd /bin/cat").contains("libsbx"));
        // The command's own library stays the first.
        let own = ["run", "--allow-dangerous-env", "--env", "LD_PRELOAD=/lib/none.so", "--", "sh", "-c"];
        let out = world.sbx(own).arg("echo $LD_PRELOAD; /bin/true").run();
        assert_eq!(out.success().out(), "/lib/none.so\n");
        // What cannot be read, or makes no sense, is told in vain.
        let tells = "import ctypes; c = ctypes.CDLL(None).prctl\n\
            for address in (0, 1, 2**47 - 4096, 2**64 - 1):\n\
            \x20   for count in (0, 1, 16, 2**40, 2**64 - 1):\n\
            \x20       c(0x53425832, ctypes.c_ulong(address), ctypes.c_ulong(count), 0, 0)\n\
            \x20       c(0x53425832, ctypes.c_ulong(address), ctypes.c_ulong(count), 1, 0)\n\
            print('done')";
        world.sbx(["run", "--", "/usr/bin/python3", "-c", tells]).run().success().prints("done\n").silent();
        // Neither a umask nor a limit of the caller's is in its way.
        for before in ["umask 0777", "ulimit -f 8"] {
            let script = format!("{before}; exec {} run -- {cat}", stage::sbx().display());
            let out = world.bare(["bash", "-c", &script]).run().exited(1);
            assert!(
                out.err().contains("Permission denied") && !out.err().contains("cannot"),
                "{before}: {out}"
            );
        }
    });
}

/// git says of a protected file that it cannot be replaced, and has switched all the same. What is committed next has
/// the file as it was.
#[test]
fn a_protected_file_is_named_although_the_program_goes_on() {
    need!("git");
    promise!(namespaces);
    in_worlds(|world| {
        let script = "git config user.email u@example.org; git config user.name u; \
                      echo 1 > .vscode/settings.json; echo 1 > plain; git add -A; git commit -qm one; \
                      git switch -qc next; echo 2 > .vscode/settings.json; echo 2 > plain; git commit -qam two; \
                      git switch -q -";
        world.write(".vscode/settings.json", "");
        world.bare(["sh", "-c", &format!("git init -q; {script}")]).run().success();
        for flags in [&[][..], &["--explain"]] {
            let said = lines(world, flags, "git switch -q next");
            one(&said, &["unlink", "protects", ".vscode", "run this command outside"]);
            assert_eq!(world.read("plain").as_deref(), Some("2\n"));
            assert_eq!(world.read(".vscode/settings.json").as_deref(), Some("1\n"));
            world.bare(["sh", "-c", "git checkout -q .; git switch -q -"]).run().success();
        }
        // Of what is not protected nothing is said.
        none(&lines(world, &[], "rm plain; git checkout -q plain"));
    });
}

/// A filter refuses a call without a look at what its addresses lead to.
#[test]
fn an_address_that_cannot_be_read_is_an_error_as_without_the_library() {
    need!("python3");
    let program = "\
import ctypes, mmap
c = ctypes.CDLL(None, use_errno=True)
# A page that ends where no memory is, and an address of 16 bytes in its last 8.
page = c.mmap; page.restype = ctypes.c_void_p; page.argtypes = [ctypes.c_void_p] + [ctypes.c_size_t] * 5
start = page(None, 8192, 3, 0x22, -1 & (1 << 64) - 1, 0)
assert c.munmap(ctypes.c_void_p(start + 4096), 4096) == 0
ctypes.memset(start, 65, 4096)
for bad in (8, start + 4088):
    bad = ctypes.c_void_p(bad)
    for call in (lambda: c.sendto(0, b'x', 1, 0x40, bad, 16), lambda: c.connect(0, bad, 16), lambda: c.mkdir(bad, 0o700)):
        assert call() == -1
print('lives')
";
    in_worlds(|world| {
        let out = world.sbx(["run", "--net", "none", "--", "python3", "-c", program]).run();
        assert!(out.success().out() == "lives\n");
    });
}
