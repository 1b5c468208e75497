//! Services of the host and their sockets: out of reach in `workspace`, with and without namespaces.

use super::{PYTHON, in_namespaces, names, shell};
use sbx_tests::servers::UnixServer;
use sbx_tests::{Cmd, World, as_users, in_worlds, kernel, processes};
use std::fs;
use std::path::{Path, PathBuf};

/// A directory for sockets that is removed afterwards.
struct Place(PathBuf);

impl Place {
    fn below(directory: &str) -> Place {
        let path = Path::new(directory).join(processes::marker());
        fs::create_dir(&path).unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn sockets_of_the_host_are_not_reached() {
    as_users(|user| {
        let world = World::new(user);
        let attempt = world.program("attempt");
        let is_root = tested_as_root();
        let directories = if is_root {
            &["/run", "/tmp", "/dev/shm", "/var/tmp"][..]
        } else {
            &["/tmp", "/dev/shm", "/var/tmp"]
        };
        let places: Vec<Place> = directories.iter().map(|directory| Place::below(directory)).collect();
        let mut paths: Vec<PathBuf> = places.iter().map(|place| place.0.join("docker.sock")).collect();
        paths.push(world.home.join("agent.1"));
        world.make_dir(&world.home.join(".docker/run"));
        paths.push(world.home.join(".docker/run/docker.sock"));
        let servers: Vec<UnixServer> = paths.iter().map(|path| UnixServer::at(path)).collect();
        let name = processes::marker();
        let hidden = UnixServer::abstract_name(&name);
        for path in &paths {
            world.bare([&attempt, "connect-unix", path.to_str().unwrap()]).run().success();
        }
        let by_name = format!("@{name}");
        world.bare([&attempt, "connect-unix", &by_name]).run().success();
        let take_away: [fn(Cmd) -> Cmd; 2] = [|run| run, |run| run.docker()];
        // Shared memory is the host's where it cannot be the run's own.
        let shared = |path: &Path, own: bool| !own && path.starts_with("/dev/shm");
        for (flags, around) in
            [(&[][..], take_away[0]), (&["--namespaces", "none"][..], take_away[0]), (&[], take_away[1])]
        {
            let own =
                flags.is_empty() && std::ptr::fn_addr_eq(around, take_away[0]) && super::available(user);
            for path in paths.iter().filter(|path| !shared(path, own)) {
                let words =
                    [&["run", "-q"], flags, &["--", &attempt, "connect-unix", path.to_str().unwrap()]]
                        .concat();
                around(world.sbx(words)).run().exited(1);
                // By another name of the same directory.
                let other = format!("/proc/self/root{}", path.display());
                if other.len() < 100 {
                    let words = [&["run", "-q"], flags, &["--", &attempt, "connect-unix", &other]].concat();
                    around(world.sbx(words)).run().exited(1);
                }
            }
            if kernel::landlock() >= 6 {
                let words = [&["run", "-q"], flags, &["--", &attempt, "connect-unix", &by_name]].concat();
                around(world.sbx(words)).run().exited(1);
            }
        }
        for (server, path) in servers.iter().zip(&paths) {
            assert_eq!(server.connections(), 1, "{}", path.display());
        }
        if kernel::landlock() >= 6 {
            assert_eq!(hidden.connections(), 1);
        }
    });
}

fn tested_as_root() -> bool {
    sbx_tests::User::current().is_root()
}

#[test]
fn sockets_of_the_runs_own_work() {
    let program = "\
import os, socket, tempfile
for name in ('own.sock', os.path.join(tempfile.gettempdir(), 'agent.1'), '/tmp/own.sock', '/dev/shm/own.sock'):
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(name); server.listen()
        client.connect(name); print('connected'); os.unlink(name)
";
    in_namespaces(|world| {
        for flags in [&["run", "--"][..], &["run", "--net", "private", "--"]] {
            world.sbx(flags).args([PYTHON, "-c", program]).run().success().prints(&"connected\n".repeat(4));
        }
    });
}

/// A socket that is allowed by name exists, and nothing else beside it.
#[test]
fn an_allowed_socket_is_reached_at_its_own_path() {
    if !tested_as_root() {
        return;
    }
    in_worlds(|world| {
        let attempt = world.program("attempt");
        for directory in ["/run", "/tmp", "/var/tmp"] {
            let place = Place::below(directory);
            let (allowed, other) = (place.0.join("allowed"), place.0.join("other"));
            let (server, beside) = (UnixServer::at(&allowed), UnixServer::at(&other));
            let allowed = allowed.to_str().unwrap();
            let flags = ["run", "-q", "--unix", allowed, "--", &attempt, "connect-unix"];
            world.sbx(flags).arg(allowed).run().success();
            world.sbx(flags).arg(&other).run().exited(1);
            assert_eq!((server.connections(), beside.connections()), (1, 0), "{directory}");
            // An earlier command may have put a link in the place of a socket of the workspace.
            std::os::unix::fs::symlink(&other, world.path("link")).unwrap();
            let flags = ["run", "-q", "--unix", "link", "--", &attempt, "connect-unix", "link"];
            world.sbx(flags).run().refused(125, &["leads out of the workspace"]);
            fs::remove_file(world.path("link")).unwrap();
            assert_eq!(beside.connections(), 0);
        }
    });
}

/// What is kept below the run's own /tmp stays in its place: elsewhere it would be as open as everything there.
#[test]
fn kept_directories_cannot_be_moved() {
    in_namespaces(|world| {
        let attempt = world.program("attempt");
        let place = Place::below("/tmp");
        let kept = place.0.join("above/kept");
        fs::create_dir_all(&kept).unwrap();
        let server = UnixServer::at(&kept.join("socket"));
        let script = format!(
            "{attempt} connect-unix {1}/socket; mv {0} /tmp/moved || mv {0}/above {0}/moved; \
             for at in /tmp/moved/above {0}/moved; do cd $at/kept && {attempt} connect-unix socket; done; \
             mkdir -p /tmp/own/other; mv /tmp/own /tmp/free && ls -d /tmp/free/other",
            place.0.display(),
            kept.display(),
        );
        let out = shell(world, &["-q", "--ro", kept.to_str().unwrap()], &script).run();
        assert!(out.out().ends_with("/tmp/free/other\n"), "{out}");
        assert_eq!(server.connections(), 0);
        // Where it may be changed it may be connected to.
        let path = kept.join("socket");
        let words = ["run", "-q", "--rw", kept.to_str().unwrap(), "--", &attempt, "connect-unix"];
        world.sbx(words).arg(&path).run().success();
        assert_eq!(server.connections(), 1);
    });
}

#[test]
fn tmp_and_shared_memory_are_the_runs_own() {
    in_namespaces(|world| {
        let (tmp, memory) = (Place::below("/tmp"), Place::below("/dev/shm"));
        for place in [&tmp, &memory] {
            fs::write(place.0.join("seen"), "").unwrap();
            let path = place.0.to_str().unwrap();
            shell(world, &["-q"], &format!("ls {path}/seen {path}")).run().failed().prints("");
        }
        let mark = processes::marker();
        let make =
            format!("echo x > /tmp/{mark} && echo x > /dev/shm/{mark} && ls -A /tmp /dev/shm && sleep 1");
        let listing = format!("/dev/shm:\n{mark}\n\n/tmp:\n{mark}\n");
        // Two runs at once: neither sees what the other has made.
        let first = shell(world, &[], &make).start();
        first.wait_for(&mark);
        shell(world, &[], "ls -A /tmp /dev/shm").run().success().prints("/dev/shm:\n\n/tmp:\n");
        assert!(!Path::new("/tmp").join(&mark).exists() && !Path::new("/dev/shm").join(&mark).exists());
        first.wait().success().prints(&listing);
        // What may be executed in /tmp may be executed there.
        let script = "printf '#!/bin/sh\\necho ran\\n' > /tmp/s && chmod +x /tmp/s && /tmp/s";
        shell(world, &[], script).run().success().prints("ran\n");
        shell(world, &[], "cd /tmp && touch a && mkdir b && mv a b && rm -r b && echo $TMPDIR")
            .run()
            .success()
            .prints("/tmp\n");
    });
}

/// Everything that a run makes for itself is gone with it.
#[test]
fn the_scratch_directory_is_removed() {
    in_namespaces(|world| {
        let place = world.home.join("tmp");
        world.make_dir(&place);
        let run = |script: &str| shell(world, &["-q"], script).env("TMPDIR", &place);
        run("mkdir -p /tmp/a/b && touch /tmp/a/b/c && chmod 0 /tmp/a").run().success();
        assert_eq!(names(&place), [""; 0]);
        run("touch /tmp/x; kill -9 $$").run().exited(137);
        assert_eq!(names(&place), [""; 0]);
        // Even if the command has mounted nothing and the supervisor is gone.
        let running = run("touch /tmp/x; echo ready; sleep 100").start();
        running.wait_for("ready");
        assert_eq!(names(&place).len(), 1);
        running.signal(libc::SIGKILL);
        running.wait().died_of(libc::SIGKILL);
        for _ in 0..600 {
            if names(&place).is_empty() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("left behind: {:?}", names(&place));
    });
}

#[test]
fn terminals_can_be_made_and_the_hosts_are_hidden() {
    in_namespaces(|world| {
        let (held, _terminal) = world.bare(["sleep", "60"]).start_on_terminal();
        shell(world, &[], "ls /dev/pts").run().success().prints("ptmx\n");
        if sbx_tests::have("script").is_some() {
            shell(world, &[], "script -qc 'echo hi; tty' /dev/null | tr -d '\\r'")
                .run()
                .success()
                .prints("hi\n/dev/pts/0\n");
        }
        let program = "import pty, os; p, t = pty.openpty(); print(os.ttyname(t))";
        world.sbx(["run", "--", PYTHON, "-c", program]).run().success().prints("/dev/pts/0\n");
        held.kill();
    });
}

#[test]
fn directories_of_services_cannot_be_changed() {
    in_namespaces(|world| {
        shell(world, &["-q"], "touch /run/x || mkdir /run/y || ln -s /etc /run/z").run().failed();
        if tested_as_root() {
            let place = Place::below("/run");
            let path = place.0.display();
            world.bare(["ls", "-d", place.0.to_str().unwrap()]).run().success();
            // The command cannot even find out whether it exists.
            shell(world, &["-q"], &format!("[ -e {path} ] || [ -e /var{path} ]")).run().exited(1);
            shell(world, &["-q", "--ro", place.0.to_str().unwrap()], &format!("[ -e {path} ]"))
                .run()
                .success();
        }
    });
}

/// What a denial is about may be hidden anyway, but not where a flag has put a part of it back.
#[test]
fn a_denial_holds_in_a_directory_that_is_hidden_and_around_what_is_put_back() {
    if !tested_as_root() {
        return;
    }
    in_namespaces(|world| {
        let place = Place::below("/run");
        let (denied, open) = (place.0.display(), place.0.join("open"));
        let file = open.join("file");
        fs::create_dir(&open).unwrap();
        fs::write(&file, "text").unwrap();
        let [open, file] = [open, file].map(|path| path.display().to_string());
        let cat = |flags: &[&str]| shell(world, &[&["-q"], flags].concat(), &format!("cat {file}")).run();
        cat(&["--ro", "/", "--ro", &open]).success().prints("text");
        cat(&["--ro", "/", "--ro", &open, "--deny", &denied.to_string()]).failed().prints("");
        // It does not keep the run from starting where nothing is put back.
        let denial = ["-q", "--ro", "/", "--deny", &denied.to_string()];
        shell(world, &denial, &format!("[ -e {denied} ]")).run().exited(1);
    });
}

/// Changes the mode of a terminal that it makes, and of the caller's, and says of which the mode is another one.
const TERMINALS: &str = "
import os, pty
made = pty.openpty()
for name in os.ttyname(made[1]), os.ttyname(0):
    before = os.stat(name).st_mode
    try: os.chmod(name, 0o604)
    except PermissionError: pass
    print('changed' if os.stat(name).st_mode != before else 'same')
";

#[test]
fn terminals_of_the_run_can_be_changed_and_the_callers_cannot() {
    in_namespaces(|world| {
        let on_terminal = |cmd: Cmd| {
            let (running, terminal) = cmd.start_on_terminal();
            let out = running.wait().success();
            drop(terminal);
            out
        };
        on_terminal(world.sbx(["run", "-q", "--", PYTHON, "-c", TERMINALS])).prints("changed\r\nsame\r\n");
        // The terminal is root's.
        let callers = if world.user.is_root() { "changed" } else { "same" };
        let outside = format!("changed\r\n{callers}\r\n");
        on_terminal(world.bare([PYTHON, "-c", TERMINALS])).prints(&outside);
    });
}
