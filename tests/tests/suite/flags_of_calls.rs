//! Flags and commands that make allowed calls do more than their names say.

use crate::argument_tricks::{EPERM, Tricks, UPPER_HALF};
use sbx_tests::kernel::promises_namespaces;
use sbx_tests::machine::older;
use sbx_tests::{as_users, in_worlds};

/// Access mode 3 opens a file for ioctl(2) only. No path rule applies to it, so no profile allows it.
#[test]
fn no_file_is_opened_for_ioctl_alone() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        tricks.world.write("mine", "mine\n");
        let secret = format!("s:{}", tricks.world.outside.join("kept").display());
        let at = libc::AT_FDCWD.to_string();
        let bare = |words: &[&str]| tricks.world.bare([&[tricks.attempt.as_str()], words].concat()).run();
        bare(&["syscall", &libc::SYS_openat.to_string(), &at, &secret, "3"]).success();
        for profile in ["workspace", "read-only", "no-exec", "write", "minimal"] {
            for flags in [3, 3 + UPPER_HALF, 0o4003, 0o103] {
                let flags = flags.to_string();
                for path in [secret.as_str(), "s:mine", "s:/dev/null"] {
                    tricks
                        .call(profile, libc::SYS_openat, &[&at, path, &flags, "0644"])
                        .exited(1)
                        .prints(EPERM);
                    tricks.refused(profile, older::OPEN, &[path, &flags, "0644"]);
                }
            }
        }
        for profile in ["workspace", "no-exec", "write"] {
            for flags in [0, 1, 2, 0o101, 0o102] {
                let flags = flags.to_string();
                tricks.call(profile, libc::SYS_openat, &[&at, "s:mine", &flags, "0644"]).success();
            }
        }
    });
}

/// RENAME_WHITEOUT leaves a device node in the place of the file, which makes an overlay hide the file below.
#[test]
fn renaming_leaves_no_device_node() {
    as_users(|user| {
        let tricks = Tricks::new(user);
        let at = libc::AT_FDCWD.to_string();
        for profile in ["workspace", "no-exec", "write"] {
            tricks.world.write("file", "as before\n");
            for flags in [4, 4 + UPPER_HALF, 5] {
                let words = [&at, "s:file", &at, "s:moved", &flags.to_string()];
                tricks.call(profile, libc::SYS_renameat2, &words).exited(1).prints(EPERM);
            }
            assert_eq!(tricks.world.read("file").as_deref(), Some("as before\n"), "{profile}");
            assert!(!tricks.world.exists("moved"), "{profile}");
            tricks.call(profile, libc::SYS_renameat2, &[&at, "s:file", &at, "s:moved", "1"]).success();
            assert!(!tricks.world.exists("file") && tricks.world.exists("moved"), "{profile}");
            std::fs::remove_file(tricks.world.workspace.join("moved")).unwrap();
        }
    });
}

/// A descriptor with O_ASYNC sends a signal to a process or group when there is something to read, and a terminal to
/// all of its foreground group, which includes the programs around the run. On some kernels Landlock's scope of signals
/// does not cover groups (CVE-2026-72183).
#[test]
fn no_descriptor_sends_signals_to_others() {
    let arm = "import fcntl, os, socket\n\
        def attempt(call, *words):\n\
        \x20   try: call(*words); print('done', end=' ')\n\
        \x20   except OSError as error: print(error.errno, end=' ')\n\
        attempt(fcntl.fcntl, 0, 4, fcntl.fcntl(0, 3) | 0o20000)\n\
        attempt(fcntl.fcntl, 0, 4, fcntl.fcntl(0, 3) | 0o4000)\n\
        ends = socket.socketpair()\n\
        own = os.getpid().to_bytes(4, 'little')\n\
        for command in (0x5452, 0x8901, 0x8902): attempt(fcntl.ioctl, ends[0], command, own)\n\
        attempt(fcntl.ioctl, 0, 0x5452, own)\n\
        print()";
    let ask = "import fcntl; print('signals', fcntl.fcntl(0, 3) & 0o20000)";
    in_worlds(|world| {
        let after = |sbx: &str| {
            let script = format!("{sbx} /usr/bin/python3 -c \"{arm}\"; /usr/bin/python3 -c \"{ask}\"");
            let (running, _terminal) = world.bare(["bash", "-c", &script]).start_on_terminal();
            running.wait().out()
        };
        let sbx = sbx_tests::stage::sbx();
        for profile in ["workspace", "read-only", "no-exec", "minimal", "write", "network"] {
            let shown = after(&format!("{} run -q -p {profile} --", sbx.display()));
            let socket = if names_owners(profile) { "done" } else { "1" };
            assert!(shown.contains(&format!("1 done {socket} 1 1 1 ")), "{profile}: {shown}");
            assert!(shown.contains("signals 0"), "{profile}: {shown}");
        }
        let shown = after("");
        assert!(shown.contains("done done done ") && shown.contains("signals 8192"), "{shown}");
    });
}

/// Whether a run may say who owns a descriptor: with process numbers of its own that is one of its own processes.
fn names_owners(profile: &str) -> bool {
    promises_namespaces() && ["workspace", "read-only", "no-exec"].contains(&profile)
}

/// fcntl(3) of glibc asks for the owner by F_GETOWN_EX and makes the answer that of F_GETOWN.
#[test]
fn the_owner_of_a_descriptor_can_be_asked_for() {
    let script = "import fcntl\n\
        print('owner', fcntl.fcntl(0, fcntl.F_GETOWN))\n\
        try: fcntl.fcntl(-1, fcntl.F_GETOWN)\n\
        except (OSError, ValueError) as error: print(error)\n\
        for command in (fcntl.F_SETOWN, 15):\n\
        \x20   try: fcntl.fcntl(0, command, bytes(8)); print('set')\n\
        \x20   except OSError as error: print(error.errno)";
    in_worlds(|world| {
        for profile in ["workspace", "read-only", "no-exec", "minimal", "write", "network"] {
            let out = world.sbx(["run", "-q", "-p", profile, "--", "/usr/bin/python3", "-c", script]).run();
            assert!(out.out().contains("owner 0\n"), "{profile}: {out}");
            assert_eq!(out.out().ends_with("1\n1\n"), !names_owners(profile), "{profile}: {out}");
        }
    });
}
