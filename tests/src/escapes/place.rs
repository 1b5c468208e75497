//! Where one attempt is made: a home directory with what attackers look for, a workspace with what they bring along,
//! a process to attack, and sockets that show who came.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use super::table::Attempt;
use super::witness::Listeners;
use crate::world::{SECRET, World};
use crate::{User, stage, subjects, sys};

/// A day in 2017: times before 2020 are compared.
const THEN: Duration = Duration::from_secs(1_500_000_000);
/// The number of the victim's descriptor of a secret.
const VICTIMS_FILE: i32 = 7;
/// Directories that programs outside read.
const LOOKED_INTO: &[&str] = &[
    ".config/autostart",
    ".config/systemd/user",
    ".config/sbx/profiles",
    ".local/bin",
    ".claude",
    ".vscode",
    "project/.git/hooks",
    "project/.vscode",
    "project/.cursor",
    "project/.claude",
    "project/node_modules/.bin",
];
const SECRETS: &[&str] =
    &[".config/git/credentials", ".m2/settings.xml", ".bash_history", "../outside/secret"];

/// Everything around one attempt. Removed when dropped.
pub struct Place {
    /// The directories.
    pub world: World,
    /// The listeners, which notice every visit.
    pub listeners: Listeners,
    /// The process outside, and the address of its secret.
    pub victim: Victim,
    /// Further words for the attempt.
    pub extra: String,
    held: Vec<Held>,
    files: Vec<Entry>,
}

/// The state of a file of the workspace, which shows whether it was changed.
type Entry = (PathBuf, u32, u64);

/// Things that last as long as the attempt.
enum Held {
    Terminal { _both: (OwnedFd, OwnedFd) },
    File(PathBuf),
    Segment { _memory: sys::Segment },
}

impl Place {
    /// A new place for this attempt.
    pub fn new(attempt: &Attempt, user: &User) -> Place {
        let world = World::new(user);
        furnish(&world);
        world.subject("escape");
        for name in attempt.values("with") {
            bring(&world, name);
        }
        let listeners = Listeners::start(&world.outside);
        let victim = Victim::start(&world);
        let mut place =
            Place { world, listeners, victim, extra: String::new(), held: Vec::new(), files: Vec::new() };
        place.give(attempt);
        place.files = entries(&place.world.workspace);
        place
    }

    /// Whether the workspace is as it was at first, so that another attempt can be made here.
    pub fn is_as_new(&self) -> bool {
        self.files == entries(&self.world.workspace)
    }

    fn give(&mut self, attempt: &Attempt) {
        let user = self.world.user;
        for what in attempt.values("extra") {
            let number = number();
            match what {
                "terminal" => {
                    let (controller, terminal) = sys::open_terminal();
                    let path = fs::read_link(format!("/proc/self/fd/{}", terminal.as_raw_fd())).unwrap();
                    stage::give(&path, &user);
                    self.extra = path.display().to_string();
                    self.held.push(Held::Terminal { _both: (controller, terminal) });
                }
                "shared-file" => {
                    let path = PathBuf::from(format!("/dev/shm/sbx-escape-{number}"));
                    stage::write(&path, SECRET.as_bytes());
                    stage::give(&path, &user);
                    self.extra = path.display().to_string();
                    self.held.push(Held::File(path));
                }
                "segment" => {
                    let key = i32::try_from(0x5b00_0000 + number % 0x00ff_ffff).unwrap();
                    let text = CString::new(SECRET).unwrap();
                    self.extra = key.to_string();
                    self.held.push(Held::Segment { _memory: sys::Segment::new(key, &text, user.id) });
                }
                other => panic!("attempts.tbl: nothing is called extra={other}"),
            }
        }
    }

    /// The facts for the attempt, as words of its command line.
    pub fn facts(&self) -> Vec<String> {
        let (world, heard) = (&self.world, &self.listeners);
        let mut facts = vec![
            format!("home={}", world.home.display()),
            format!("outside={}", world.outside.display()),
            format!("victim={}", self.victim.pid()),
            format!("secret={}", self.victim.secret),
            format!("abstract={}", heard.abstract_name),
            format!("key={}", super::trial::KEY.to_str().unwrap()),
            format!("extra={}", self.extra),
        ];
        let ports = ["tcp", "tcp6", "udp", "udp6"].iter().zip(heard.ports());
        facts.extend(ports.map(|(name, port)| format!("{name}={port}")));
        facts
    }

    /// Descriptors that the caller has forgotten to close, and its standard input; each with its number.
    pub fn forgotten(&self, attempt: &Attempt) -> Vec<(OwnedFd, i32)> {
        let outside = &self.world.outside;
        let open = |path: PathBuf| OwnedFd::from(File::open(path).unwrap());
        let datagrams = || OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        let stdin = if attempt.has("socket-stdin") { datagrams() } else { open(outside.join("stdin")) };
        let mut all =
            vec![(open(outside.join("secret")), 208), (open(outside.clone()), 209), (datagrams(), 210)];
        if !attempt.has("tty") {
            all.push((stdin, 0));
        }
        if attempt.has("report") {
            let report = File::create(self.world.path("report.json")).unwrap();
            all.push((report.into(), 211));
        }
        all
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Held::File(path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// A number that no other attempt of this or another suite has.
pub fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (std::process::id() << 12).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn entries(dir: &Path) -> Vec<Entry> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, meta) = (entry.path(), entry.metadata());
        let (mode, size) = meta.map_or((0, 0), |meta| (meta.permissions().mode(), meta.len()));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(entries(&path));
        }
        found.push((path, mode, size));
    }
    found.sort_unstable();
    found
}

fn furnish(world: &World) {
    for secret in SECRETS {
        world.write(world.home.join(secret), format!("{SECRET}\n"));
    }
    for dir in LOOKED_INTO {
        world.make_dir(&world.home.join(dir));
    }
    world.make_dir(&world.outside.join("empty"));
    world.write(world.home.join(".gitconfig"), "[user]\n");
    world.make_dir(&world.home.join(".local/bin"));
    world.write(world.home.join(".local/bin/readable"), "");
    world.write("inside", "inside\n");
    world.write(world.outside.join("stdin"), "what the command reads\n");
    let attributes = world.write(world.outside.join("attributes"), "");
    let file = File::options().write(true).open(attributes).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + THEN).unwrap();
    let program = world.subject("escape");
    fs::rename(program, world.outside.join("program")).unwrap();
    // Files that come with many workspaces.
    for (link, target) in [
        (world.path("way-to-secret"), world.home.join(".ssh/id_rsa")),
        (world.path("way-outside"), world.outside.clone()),
        (world.outside.join("link"), PathBuf::from("kept")),
    ] {
        symlink(target, link).unwrap();
    }
}

/// Adds something to the workspace that only this attempt needs.
fn bring(world: &World, name: &str) {
    let rights = |name: &str, mode: u32| {
        let path = world.path(name);
        stage::copy(&subjects::program("escape"), &path);
        if User::current().is_root() {
            chown(&path, Some(0), Some(0)).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    match name {
        "rooted" => drop(rights(name, 0o4755)),
        "grouped" => drop(rights(name, 0o2755)),
        "capable" => {
            let path = rights(name, 0o755);
            sys::give_raw_sockets(&CString::new(path.as_os_str().as_bytes()).unwrap());
        }
        "hooks" => {
            world.write("hook.sh", "echo escaped\n");
            world.write("hooks/sitecustomize.py", "print('escaped')\n");
            world.write("hooks/Hook.pm", "print \"escaped\\n\"; 1;\n");
            world.write("hooks/hook.js", "console.log('escaped')\n");
        }
        other => drop(world.subject(other)),
    }
}

/// A process outside, of the same user.
pub struct Victim {
    child: Child,
    secret: String,
}

impl Victim {
    fn start(world: &World) -> Victim {
        let program = world.outside.join("program");
        let mut command = Command::new(program);
        command
            .args(["--victim", SECRET])
            .env_clear()
            .env("AGENT_API_TOKEN", SECRET)
            .current_dir(&world.outside);
        if world.user.switch {
            command.uid(world.user.id).gid(world.user.id);
        }
        sys::inherit_as(&mut command, File::open(world.outside.join("secret")).unwrap().into(), VICTIMS_FILE);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = stage::spawn(&mut command);
        let mut secret = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut secret).unwrap();
        Victim { child, secret: secret.trim().to_owned() }
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The address of its secret.
    pub fn address(&self) -> u64 {
        self.secret.parse().unwrap_or(0)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
