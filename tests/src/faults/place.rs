//! Where the runs take place, and what a run may have left there.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::scenario::{CALLS, Scenario};
use crate::command::Cmd;
use crate::tree::{self, Tree};
use crate::{User, World, stage, subjects};

/// A world with a repository, and something to attack outside of it.
pub struct Place {
    world: World,
    root: PathBuf,
    program: PathBuf,
    listener: TcpListener,
    bystander: Child,
}

/// A file that the command makes in its cache, among others.
const IN_CACHE: &str = "made";

/// Files that the command makes, and may not be able to remove. Where `sbx` puts something in their place, it is a
/// directory, or `sbx` reports it.
const MADE: [&str; 6] =
    [IN_CACHE, "outside/witness", "linked", "hooks/pre-commit", ".git/commondir", ".mcp.json"];

/// The files and mounts.
#[derive(PartialEq, Eq)]
pub struct State {
    files: Tree,
    mounts: Vec<String>,
}

impl Place {
    /// A new one.
    pub fn new(user: &User) -> Place {
        let world = World::new(user);
        let root = world.home.parent().expect("a home below the world").to_path_buf();
        for (path, text) in [
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", "[core]\n\tbare = false\n"),
            (".git/refs/heads/.keep", ""),
            (".git/objects/.keep", ""),
            (".git/hooks/sample", ""),
            (".envrc", "true\n"),
            (".claude/settings.json", "{}\n"),
            ("denied/secret", "secret\n"),
        ] {
            world.write(path, text);
        }
        world.write(world.home.join(".bashrc"), "\n");
        for dir in ["tmp", "cache", "reports"] {
            world.make_dir(&root.join(dir));
        }
        let program = world.install(&subjects::program("facts"), "facts");
        let bystander = stage::spawn(Command::new("sleep").arg("3600").stdin(Stdio::null()));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a listener that does not wait");
        Place { world, root, program, listener, bystander }
    }

    /// A run of this kind, with a report where the kind has one.
    pub fn run(&self, scenario: &Scenario) -> Cmd {
        self.name_homes();
        let words = [
            self.program.as_path(),
            &self.world.home,
            &self.world.outside,
            Path::new(&self.listener.local_addr().expect("an address").port().to_string()),
            Path::new(&self.bystander.id().to_string()),
        ]
        .map(|word| word.as_os_str().to_owned());
        let cmd = if scenario.alone {
            let cmd = self.world.bare(words).env("LD_PRELOAD", stage::shim());
            cmd.env("SECCOMP_SYSCALL_ALLOW", CALLS).env("SECCOMP_DEFAULT_ACTION", "errno")
        } else {
            let report = self.report();
            let mut flags = vec!["run"];
            flags.extend(scenario.flags);
            if scenario.report {
                flags.extend(["--report", report.to_str().expect("a name of ours")]);
            }
            self.world.sbx(flags).arg("--").args(words)
        };
        cmd.env("TMPDIR", self.root.join("tmp")).env("XDG_CACHE_HOME", self.root.join("cache"))
    }

    fn report(&self) -> PathBuf {
        self.root.join("reports/report.json")
    }

    /// The report of the last run, which is removed, with the file that it made outside and the marks of its
    /// connections.
    pub fn take_report(&self) -> Option<serde_json::Value> {
        while self.listener.accept().is_ok() {}
        let _ = fs::remove_file(Path::new("/tmp").join(self.bystander.id().to_string()));
        let bytes = fs::read(self.report()).ok()?;
        fs::remove_file(self.report()).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The current state. Caches are meant to last.
    pub fn state(&self) -> State {
        self.name_homes();
        let files = tree::snapshot_but(&self.root, &|path| path.starts_with("cache"));
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let here = self.root.to_string_lossy().into_owned();
        let mounts = table.lines().filter(|line| line.contains(&here)).map(str::to_owned).collect();
        State { files, mounts }
    }

    /// Restores the state; returns what was different, except for what the command may have made, if it `ran`.
    pub fn restore(&self, before: &State, ran: bool) -> Option<String> {
        self.clear_caches();
        let now = self.state();
        if now == *before {
            return None;
        }
        let changed = tree::differences(&before.files, &now.files);
        let new: Vec<&Path> =
            changed.iter().filter(|(_, old, _)| old.is_none()).map(|(path, ..)| *path).collect();
        for path in new.iter().rev().map(|path| self.root.join(path)) {
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        if now.mounts != before.mounts {
            return Some("a mount".into());
        }
        let of_command = |path: &Path| ran && MADE.iter().any(|name| path.ends_with(name));
        let left = changed.iter().find(|(path, ..)| !of_command(path));
        left.map(|(path, ..)| format!("'{}' is not what it was", path.display()))
    }

    /// Each run leaves a home by another name.
    fn name_homes(&self) {
        let below = |path: &Path| {
            path.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let all = below(&self.root.join("home/.local/state/sbx/homes"));
        for inner in all.iter().flat_map(|home| below(home)).filter(|path| path.is_dir()) {
            fs::rename(&inner, inner.with_file_name("0000000000000000")).unwrap();
        }
    }

    /// A command that was ended between making something in its cache and removing it would have the next one find it
    /// there.
    fn clear_caches(&self) {
        let caches = fs::read_dir(self.root.join("cache/sbx")).into_iter().flatten().flatten();
        for cache in caches {
            let _ = fs::remove_file(cache.path().join(IN_CACHE));
        }
    }

    /// The output of a run without the parts that differ each time.
    pub fn normal(&self, text: &str) -> String {
        let text = text.replace(&self.root.to_string_lossy().into_owned(), "ROOT");
        text.lines().filter_map(normal_line).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

/// The control group that a run has left, if any: below ours, or beside it.
pub fn group_of(pid: i32) -> Option<String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = Path::new(own.lines().find_map(|line| line.strip_prefix("0::/"))?);
    let start = format!("sbx-{pid}-");
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(|mount| Path::new(mount).join(own));
    let entries = places.iter().flat_map(|place| [Some(place.as_path()), place.parent()]).flatten();
    let mut names =
        entries.filter_map(|place| place.read_dir().ok()).flatten().flatten().map(|e| e.file_name());
    names.any(|name| name.to_string_lossy().starts_with(&start)).then(|| "its control group".to_owned())
}

/// The parts of the table of mounts that a run is about.
const MOUNTED: [&str; 7] = ["/", "/tmp", "/run", "/proc", "/dev", "/dev/shm", "/dev/pts"];

/// Signals 32 and 33, which glibc's posix_spawn(3) leaves ignored.
const OF_GLIBC: u64 = 0x1_8000_0000;

fn normal_line(line: &str) -> Option<String> {
    if let Some(ignored) = line.strip_prefix("/proc/self/status: SigIgn:\t") {
        let ignored = u64::from_str_radix(ignored, 16).unwrap_or(u64::MAX) & !OF_GLIBC;
        return Some(format!("ignored signals: {ignored:x}"));
    }
    let Some(mount) = line.strip_prefix("/proc/self/mountinfo: ") else { return Some(numberless(line)) };
    let fields: Vec<&str> = mount.split(' ').collect();
    let (root, at, options) = (fields.get(3)?, fields.get(4)?, fields.get(5)?);
    let wanted = MOUNTED.contains(at) || at.contains("ROOT");
    // By its path on its own file system.
    let root = if root.contains("/sbx-") { &"a scratch directory" } else { root };
    wanted.then(|| numberless(&format!("mounted {root} at {at}: {options}")))
}

/// Removes process numbers, addresses and the random part of scratch directories.
fn numberless(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['[', '-', 'x']) {
        let (before, after) = rest.split_at(at + 1);
        text.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        let number = (text.ends_with('[') && digits > 0 && after[digits..].starts_with(']'))
            || (text.ends_with("sbx-") && digits == 16)
            || (text.ends_with("0x") && digits > 8);
        text.push_str(if number { "N" } else { "" });
        rest = if number { &after[digits..] } else { after };
    }
    // The place of a scratch directory is no matter of confinement.
    ["ROOT/tmp/sbx-N", "/tmp/sbx-N"]
        .iter()
        .fold(text + rest, |text, scratch| text.replace(scratch, "SCRATCH"))
}
