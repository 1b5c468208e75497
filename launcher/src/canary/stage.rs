//! What canaries are let loose on: files with a secret among them, listeners on loopback, and a process to attack.
//! All of it belongs to one run, and is looked at from outside when that is over.

use super::acts::{self, Brief};
use crate::launch::scratch::Scratch;
use crate::refusal::Refusal;
use crate::sys::process::Pid;
use crate::sys::{canary as sys, descriptor, memory, plain};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

const KEPT: &str = "kept\n";
const SET_ID: u32 = 0o6000;
/// Bounded, since what is looked at was in the hands of the command.
const LONGEST: u64 = 1 << 16;

/// What was touched, by name.
pub type Touched = BTreeSet<&'static str>;

/// The surroundings of one run.
pub struct Stage {
    scratch: Scratch,
    /// What nothing inside may get to see.
    pub secret: String,
    victim: Pid,
    before: (i32, Option<u64>),
    tcp: Option<TcpListener>,
    udp: Option<UdpSocket>,
    unix: Option<UnixListener>,
    abstract_socket: Option<UnixListener>,
    /// A descriptor that no run may pass on: held open for it.
    _leak: File,
}

impl Stage {
    /// Lays everything out.
    pub fn new() -> Result<Stage, Refusal> {
        let scratch = Scratch::create(std::env::var_os("TMPDIR").as_deref())?;
        let system =
            |failed: crate::sys::Failed| Refusal::new(format!("cannot prepare the canaries: {failed}"));
        let secret = memory::random_name("sbx-canary-").map_err(system)?;
        let leak = files(scratch.path(), &secret)
            .map_err(|error| Refusal::new(format!("cannot prepare the canaries: {}", plain(&error))))?;
        descriptor::keep_on_exec(leak.as_raw_fd()).map_err(system)?;
        let victim = sys::victim().map_err(system)?;
        let root = scratch.path();
        let here = (Ipv4Addr::LOCALHOST, 0);
        let quiet = |listener: UnixListener| listener.set_nonblocking(true).map(|()| listener);
        Ok(Stage {
            // Where one of them cannot be made, its canary fails without a sandbox too, and proves nothing.
            tcp: TcpListener::bind(here).and_then(|it| it.set_nonblocking(true).map(|()| it)).ok(),
            udp: UdpSocket::bind(here).and_then(|it| it.set_nonblocking(true).map(|()| it)).ok(),
            unix: UnixListener::bind(root.join("home/outside/socket")).and_then(quiet).ok(),
            abstract_socket: acts::abstract_name(root)
                .and_then(|name| UnixListener::bind_addr(&name))
                .and_then(quiet)
                .ok(),
            before: (sys::priority(victim), sys::file_limit(victim, false).ok()),
            scratch,
            secret,
            victim,
            _leak: leak,
        })
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        self.scratch.path()
    }

    /// A path below it.
    pub fn path(&self, below: &str) -> PathBuf {
        self.root().join(below)
    }

    /// What a canary has to know.
    pub fn brief(&self) -> Brief {
        let tcp = self.tcp.as_ref().and_then(|it| it.local_addr().ok()).map_or(1, |address| address.port());
        let udp = self.udp.as_ref().and_then(|it| it.local_addr().ok()).map_or(1, |address| address.port());
        let memory = (self.secret.as_ptr() as usize, self.secret.len());
        Brief { root: self.root().to_path_buf(), ports: (tcp, udp), victim: self.victim, memory }
    }

    /// Everything that is not as it was laid out.
    pub fn touched(&self) -> Touched {
        let mut touched = Touched::new();
        let mut note = |yes: bool, name: &'static str| {
            if yes {
                touched.insert(name);
            }
        };
        let exists = |below: &str| self.path(below).symlink_metadata().is_ok();
        note(exists("home/outside/made"), "file-made-outside");
        note(!self.holds("home/outside/kept", KEPT), "file-changed-outside");
        note(!self.holds("home/outside/emptied", KEPT), "file-emptied-outside");
        note(!exists("home/outside/removed"), "file-removed-outside");
        note(!exists("home/outside/renamed") || exists("home/outside/moved"), "file-renamed-outside");
        note(!self.holds("home/granted/file", KEPT), "granted-file-changed");
        note(exists("home/project/made"), "file-made-in-workspace");
        note(exists("home/project/link"), "link-made");
        note(exists("home/project/device"), "device-made");
        let attributes = self.path("home/outside/attributes").metadata();
        note(attributes.as_ref().is_ok_and(|meta| meta.mode() & 0o777 != 0o600), "mode-changed-outside");
        note(attributes.is_ok_and(|meta| meta.mtime() == 0), "times-changed-outside");
        note(self.has_set_id(), "set-id-bit");
        note(self.path("tmp").read_dir().is_ok_and(|mut entries| entries.next().is_some()), "scratch-left");
        note(self.tcp.as_ref().is_some_and(|it| it.accept().is_ok()), "tcp-connection");
        note(self.udp.as_ref().is_some_and(|it| it.recv(&mut [0; 8]).is_ok()), "udp-packet");
        note(self.unix.as_ref().is_some_and(|it| it.accept().is_ok()), "unix-connection");
        note(self.abstract_socket.as_ref().is_some_and(|it| it.accept().is_ok()), "abstract-connection");
        note(self.victim_was_signalled(), "signal-arrived");
        note(sys::priority(self.victim) != self.before.0, "priority-changed");
        note(sys::file_limit(self.victim, false).ok() != self.before.1, "limit-changed");
        touched
    }

    fn holds(&self, below: &str, expected: &str) -> bool {
        read(&self.path(below)).is_some_and(|bytes| bytes == expected.as_bytes())
    }

    fn has_set_id(&self) -> bool {
        let entries = self.path("home/project").read_dir().into_iter().flatten().flatten();
        entries
            .take(100)
            .any(|entry| entry.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & SET_ID != 0))
    }

    /// It blocks all signals, so one that has arrived is pending.
    fn victim_was_signalled(&self) -> bool {
        let status = read(Path::new(&format!("/proc/{}/status", self.victim))).unwrap_or_default();
        let status = String::from_utf8_lossy(&status);
        let pending = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.is_some_and(|mask| mask.trim().bytes().any(|digit| digit != b'0'))
        };
        pending("SigPnd:") || pending("ShdPnd:")
    }

    /// The environment of a run: secrets in it, and every directory that sbx makes below this one.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let config = std::env::var_os("XDG_CONFIG_HOME").filter(|path| Path::new(path).is_absolute());
        let config =
            config.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".config").into()));
        let mut all = vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("HOME".into(), self.path("home").into()),
            ("TMPDIR".into(), self.path("tmp").into()),
            ("XDG_CACHE_HOME".into(), self.path("cache").into()),
        ];
        all.extend(config.map(|config| ("XDG_CONFIG_HOME".into(), config)));
        let secrets = ["SBX_CANARY_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "DATABASE_PASSWORD"];
        all.extend(secrets.map(|name| (name.into(), self.secret.as_str().into())));
        all
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        sys::end(self.victim);
    }
}

fn files(root: &Path, secret: &str) -> io::Result<File> {
    use std::os::unix::fs::PermissionsExt;
    for directory in ["home/.ssh", "home/project", "home/outside", "home/granted", "tmp", "cache"] {
        fs::create_dir_all(root.join(directory))?;
    }
    for file in [
        "home/outside/kept",
        "home/outside/emptied",
        "home/outside/removed",
        "home/outside/renamed",
        "home/outside/attributes",
    ] {
        fs::write(root.join(file), KEPT)?;
    }
    fs::set_permissions(root.join("home/outside/attributes"), fs::Permissions::from_mode(0o600))?;
    fs::write(root.join("home/granted/file"), KEPT)?;
    fs::write(root.join("home/project/readme"), KEPT)?;
    fs::write(root.join("home/outside/secret"), secret)?;
    fs::write(root.join("home/.ssh/id_rsa"), secret)?;
    std::os::unix::fs::symlink("../.ssh/id_rsa", root.join("home/project/way-out"))?;
    File::open(root.join("home/outside/secret"))
}

/// The beginning of a file.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    use io::Read;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
