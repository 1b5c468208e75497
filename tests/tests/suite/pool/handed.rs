//! What a caller hands a command as standard input, output and error: a pool refuses of it what a run that starts cold
//! refuses, and gives back what it does not take.

use super::lasting::settled;
use super::{Pool, place, warm};
use sbx_tests::{Output, World, in_worlds, need};
use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Runs a script with this as its standard input.
fn with_stdin(world: &World, flags: &[&str], stdin: impl Into<OwnedFd>, script: &str) -> Output {
    warm(world, flags, script).pass_fd(stdin.into(), 0).run()
}

fn open(path: impl AsRef<Path>) -> File {
    File::open(path).unwrap()
}

#[test]
fn what_leads_around_mounts_is_refused_by_a_pool_too() {
    if !need(&["git"]) {
        return;
    }
    in_worlds(|world| {
        world.bare(["git", "init", "-q", "."]).run().success();
        world.write("denied", "denied text\n");
        world.write("granted", "granted text\n");
        let config = world.read(".git/config");
        let hook = "printf '#!/bin/sh\\n' >/proc/self/fd/0/.git/hooks/post-checkout && echo done";
        let rewrite = "printf '[core]\\nfsmonitor = x\\n' >>/proc/self/fd/0 && echo done";
        let read = "cat /proc/self/fd/0";
        let cases = [(".", hook, "is the directory"), (".git/config", rewrite, "kept from being changed")];
        let cases = cases.into_iter().chain([("denied", read, "kept from being changed or read")]);
        for flags in [&["-v"][..], &["-v", "--deny", "denied"]] {
            let pool = Pool::start(world, "2", &flags[1..]);
            settled(&pool);
            for (stdin, script, why) in cases.clone().take(flags.len()) {
                let run = || with_stdin(world, flags, open(world.path(stdin)), script);
                let out = run().refused(125, &["cannot pass descriptor 0 on", why]).prints("");
                assert!(out.err().contains("no warm start"), "{out}");
            }
            assert!(!world.exists(".git/hooks/post-checkout"));
            assert_eq!(world.read(".git/config"), config);
            // The twin: what may be handed over is, and the pool takes the command.
            let run = || with_stdin(world, flags, open(world.path("granted")), read);
            pool.within(run).success().prints("granted text\n");
        }
        // Outside, each of them does what it says.
        let bare = |stdin: &str, script| {
            world.bare(["sh", "-c", script]).pass_fd(open(world.path(stdin)).into(), 0).run().success()
        };
        bare(".", hook).prints("done\n");
        bare(".git/config", rewrite).prints("done\n");
        bare("denied", read).prints("denied text\n");
        assert!(world.exists(".git/hooks/post-checkout") && world.read(".git/config") != config);
    });
}

#[test]
fn a_socket_of_another_network_does_not_lead_out_of_a_pool() {
    if !need(&["python3"]) {
        return;
    }
    in_worlds(|world| {
        let pool = Pool::start(world, "2", &[]);
        settled(&pool);
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        listener.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let port = listener.local_addr().unwrap().port();
        let send = format!(
            "python3 -c 'import socket; s = socket.socket(fileno=0); s.sendto(b\"out\", (\"127.0.0.1\", {port}))'"
        );
        let arrived = || listener.recv(&mut [0; 16]).is_ok();
        let unconnected = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let out = with_stdin(world, &["-v"], unconnected(), &send);
        assert!(out.err().contains("no warm start") && !arrived(), "{out}");
        // The twins: outside it arrives, and the pool serves who hands over something else.
        world.bare(["sh", "-c", &send]).pass_fd(unconnected().into(), 0).run().success();
        assert!(arrived());
        pool.sh("true").success();
    });
}

#[test]
fn a_descriptor_for_the_report_of_a_refused_command_is_given_back() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        let report = |program: &str| {
            let (mut reader, writer) = std::io::pipe().unwrap();
            let command = ["run", "--pool", "-v", "--report-fd", "7", "--", program];
            let out = place(world.sbx(command), world).pass_fd(writer.into(), 7).run();
            let (told, hears) = mpsc::channel();
            std::thread::spawn(move || told.send(reader.read_to_end(&mut Vec::new()).is_ok()));
            (out, hears.recv_timeout(Duration::from_secs(5)) == Ok(true))
        };
        let run = pool.runs()[0];
        for (program, code) in [("no-such-program", 127), ("true", 0)] {
            let (out, ended) = report(program);
            let out = out.exited(code);
            assert_eq!(out.err().contains("no warm start"), code != 0, "{out}");
            // The end is heard although the run of the pool still waits.
            assert!(ended && (code == 0 || pool.runs() == [run]), "{program}: {out}");
        }
    });
}
