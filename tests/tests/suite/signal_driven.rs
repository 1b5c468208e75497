//! Descriptors that signal their owner when there is something to read (fcntl(2), F_SETOWN).

use sbx_tests::{in_worlds, promise, stage};

/// Names an owner and has a descriptor signal it, in both orders and by both calls, and waits for the signal.
const ASKS: &str = "import fcntl, os, signal, socket, struct, sys\n\
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])\n\
    FIOASYNC, F_SETOWN_EX = 0x5452, 15\n\
    def by_ioctl(file): fcntl.ioctl(file, FIOASYNC, struct.pack('i', 1))\n\
    def by_flags(file): fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_ASYNC)\n\
    def owned(file): fcntl.fcntl(file, fcntl.F_SETOWN, os.getpid())\n\
    def owned_ex(file): fcntl.fcntl(file, F_SETOWN_EX, struct.pack('ii', 1, os.getpid()))\n\
    def sockets(): return [end.detach() for end in socket.socketpair()]\n\
    def attempt(ends, *calls):\n\
    \x20   try:\n\
    \x20       for call in calls: call(ends[0])\n\
    \x20   except OSError as error: return error.errno\n\
    \x20   os.write(ends[1], b'x')\n\
    \x20   return 'signalled' if signal.sigtimedwait([signal.SIGIO], 1) else 'silence'\n\
    for ends in (sockets, os.pipe):\n\
    \x20   for calls in ((by_ioctl, owned), (owned, by_flags), (owned_ex, by_ioctl)): print(attempt(ends(), *calls))\n\
    def off(file): by_ioctl(file); owned(file); fcntl.ioctl(file, FIOASYNC, struct.pack('i', 0))\n\
    print(attempt(sockets(), off))\n";

#[test]
fn sockets_and_pipes_signal_the_commands_own_processes() {
    promise!(namespaces);
    in_worlds(|world| {
        let python = ["/usr/bin/python3", "-c", ASKS];
        let all = format!("{}silence\n", "signalled\n".repeat(6));
        world.bare(python).run().success().prints(&all);
        for profile in ["workspace", "read-only", "no-exec"] {
            world.run(profile, python).run().success().prints(&all);
        }
        for flags in [&["--namespaces", "none"][..], &["--deny-calls", "fcntl[owner]"], &["--exec"]] {
            let words = [&["run", "-q"][..], flags, &["--"], &python].concat();
            let out = world.sbx(words).run().success();
            assert!(!out.out().contains("signalled"), "{flags:?}: {out}");
        }
        // Who may name no owner, or call neither, has no descriptor signal anybody.
        let alone = "import fcntl, socket, struct\n\
            try: fcntl.ioctl(socket.socketpair()[0], 0x5452, struct.pack('i', 1)); print('done')\n\
            except OSError as error: print(error.errno)";
        for (flags, shown) in [
            (&[][..], "done\n"),
            (&["--deny-calls", "fcntl[owner]"], "1\n"),
            (&["--deny-calls", "ioctl"], "1\n"),
        ] {
            let words = [&["run", "-q"][..], flags, &["--", "/usr/bin/python3", "-c", alone]].concat();
            world.sbx(words).run().success().prints(shown);
        }
    });
}

/// A caller that owns what the command gets at this number. It says whether it was signalled.
const CALLER: &str = "import fcntl, os, signal, socket, subprocess, sys, time\n\
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])\n\
    own, other = socket.socketpair()\n\
    number = int(sys.argv[2])\n\
    os.dup2(own.fileno(), number) if number else None\n\
    owner = int(sys.argv[1]) * os.getpid()\n\
    if owner < 0: os.setpgid(0, 0)\n\
    fcntl.fcntl(own, fcntl.F_SETOWN, owner)\n\
    inside = 'import fcntl, struct\\n' \\\n\
    \x20   f'try: fcntl.ioctl({number}, 0x5452, struct.pack(\"i\", 1)); print(\"done\")\\n' \\\n\
    \x20   'except OSError as error: print(error.errno)\\n' \\\n\
    \x20   f'try: fcntl.fcntl({number}, fcntl.F_SETOWN, {os.getpid()}); print(\"owned\")\\n' \\\n\
    \x20   'except OSError as error: print(error.errno)'\n\
    subprocess.run(sys.argv[3:] + ['/usr/bin/python3', '-c', inside], stdin=own, pass_fds=[number] if number else [], check=True)\n\
    other.send(b'x')\n\
    print('signalled' if signal.sigtimedwait([signal.SIGIO], 0.3) else 'silence')\n\
    print(fcntl.fcntl(own, fcntl.F_GETFL) & os.O_ASYNC)\n";

/// A socket that the caller hands over signals the caller, if it asked for that. Whether it does is the caller's
/// to say.
#[test]
fn nobody_outside_is_signalled() {
    promise!(namespaces);
    in_worlds(|world| {
        let sbx = stage::sbx();
        let by = |owner: &str, number: &str, words: &[&str]| {
            let all = [&["/usr/bin/python3", "-c", CALLER, owner, number][..], words].concat();
            world.bare(all).run().success().out()
        };
        let sbx = sbx.to_string_lossy();
        // 0: nobody, until the caller says so.
        for owner in ["1", "-1", "0"] {
            for (number, run) in
                [("0", &[&*sbx, "run", "-q", "--"][..]), ("7", &[&*sbx, "run", "-q", "--pass-fd", "7", "--"])]
            {
                let twin = by(owner, number, &[]);
                assert_eq!(twin, "done\nowned\nsignalled\n8192\n", "{owner} {number}");
                // Process numbers of the caller are not those of the run.
                assert_eq!(by(owner, number, run), "1\n3\nsilence\n0\n", "{owner} {number}");
            }
        }
    });
}

/// A caller that sends a descriptor of its own over a UNIX socket. It says whether it was signalled.
const SENDER: &str = "import array, fcntl, os, signal, socket, subprocess, sys\n\
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])\n\
    own, other = socket.socketpair()\n\
    fcntl.fcntl(own, fcntl.F_SETOWN, int(sys.argv[1]) * os.getpid())\n\
    server = socket.socket(socket.AF_UNIX)\n\
    server.bind('s')\n\
    server.listen()\n\
    inside = 'import fcntl, socket, struct\\n' \\\n\
    \x20   's = socket.socket(socket.AF_UNIX); s.connect(\"s\")\\n' \\\n\
    \x20   'file = socket.recv_fds(s, 1, 1)[1][0]\\n' \\\n\
    \x20   'try: fcntl.ioctl(file, 0x5452, struct.pack(\"i\", 1)); print(\"done\")\\n' \\\n\
    \x20   'except OSError as error: print(error.errno)'\n\
    run = subprocess.Popen(sys.argv[2:] + ['/usr/bin/python3', '-c', inside])\n\
    socket.send_fds(server.accept()[0], [b'x'], [own.fileno()])\n\
    assert run.wait() == 0\n\
    os.unlink('s')\n\
    other.send(b'x')\n\
    print('signalled' if signal.sigtimedwait([signal.SIGIO], 0.3) else 'silence')\n";

/// What belongs to somebody outside stays as it is, by whatever way it comes. What belongs to nobody may signal.
#[test]
fn what_belongs_to_others_does_not_signal_them() {
    promise!(namespaces);
    in_worlds(|world| {
        let sbx = stage::sbx();
        let by = |owner: &str, words: &[&str]| {
            let all = [&["/usr/bin/python3", "-c", SENDER, owner][..], words].concat();
            world.bare(all).run().success().out()
        };
        let run = [&*sbx.to_string_lossy(), "run", "-q", "--"];
        assert_eq!(by("1", &[]), "done\nsignalled\n");
        assert_eq!(by("1", &run), "1\nsilence\n");
        assert_eq!(by("0", &run), "done\nsilence\n");
    });
}
