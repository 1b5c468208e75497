//! The surroundings of the self-test: files with a secret among them, listeners on loopback, and a process to
//! attack. Each run has its own, and they are looked at from outside when the run has ended.

use crate::enforce::scratch::Scratch;
use crate::error::Refusal;
use crate::selftest::acts::{self, Brief};
use crate::selftest::error::SelfTestError;
use crate::sys::process::Pid;
use crate::sys::status::Status;
use crate::sys::{descriptor, memory, selftest as sys};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

const KEPT: &[u8] = b"kept\n";
/// How much of a file is read: the command may have made it longer.
const LONGEST: u64 = 1 << 16;

/// The names of what was touched.
pub type Touched = BTreeSet<&'static str>;

/// The surroundings of one run.
pub struct Stage {
    scratch: Scratch,
    /// A text that nothing inside may see.
    pub secret: String,
    victim: Pid,
    tcp: Option<TcpListener>,
    udp: Option<UdpSocket>,
    unix: Option<UnixListener>,
    abstract_socket: Option<UnixListener>,
    /// An open descriptor that no run may pass on.
    _leak: File,
}

impl Stage {
    /// Lays everything out.
    pub fn new() -> Result<Stage, Refusal> {
        let scratch = Scratch::create(std::env::var_os("TMPDIR").as_deref())?;
        let failed = |failed| SelfTestError::Call("prepare", failed);
        let secret = memory::random_name("sbx-self-test-").map_err(failed)?;
        let leak = files(scratch.path(), &secret).map_err(SelfTestError::Files)?;
        descriptor::keep_on_exec(leak.as_raw_fd()).map_err(failed)?;
        let victim = sys::victim().map_err(failed)?;
        let root = scratch.path();
        let here = (Ipv4Addr::LOCALHOST, 0);
        let quiet = |listener: UnixListener| listener.set_nonblocking(true).map(|()| listener);
        Ok(Stage {
            // If a listener cannot be made, its act fails without a sandbox too, and proves nothing.
            tcp: TcpListener::bind(here).and_then(|it| it.set_nonblocking(true).map(|()| it)).ok(),
            udp: UdpSocket::bind(here).and_then(|it| it.set_nonblocking(true).map(|()| it)).ok(),
            unix: UnixListener::bind(root.join("home/outside/socket")).and_then(quiet).ok(),
            abstract_socket: acts::abstract_name(root)
                .and_then(|name| UnixListener::bind_addr(&name))
                .and_then(quiet)
                .ok(),
            scratch,
            secret,
            victim,
            _leak: leak,
        })
    }

    /// A path below it.
    pub fn path(&self, below: &str) -> PathBuf {
        self.scratch.path().join(below)
    }

    /// What the part inside has to know.
    pub fn brief(&self) -> Brief {
        let tcp = self.tcp.as_ref().and_then(|it| it.local_addr().ok()).map_or(1, |address| address.port());
        let udp = self.udp.as_ref().and_then(|it| it.local_addr().ok()).map_or(1, |address| address.port());
        Brief { root: self.scratch.path().to_path_buf(), ports: (tcp, udp), victim: self.victim }
    }

    /// Everything that is not as it was made.
    pub fn touched(&self) -> Touched {
        let exists = |below: &str| self.path(below).symlink_metadata().is_ok();
        let mode = self.path("home/outside/attributes").metadata().map(|meta| meta.mode() & 0o777);
        let left = self.path("tmp").read_dir().is_ok_and(|mut entries| entries.next().is_some());
        let all = [
            (exists("home/outside/made"), "file-made-outside"),
            (read(&self.path("home/outside/kept")).as_deref() != Some(KEPT), "file-changed-outside"),
            (exists("home/project/made"), "file-made-in-workspace"),
            (mode.is_ok_and(|mode| mode != 0o600), "mode-changed-outside"),
            (left, "scratch-left"),
            (self.tcp.as_ref().is_some_and(|it| it.accept().is_ok()), "tcp-connection"),
            (self.udp.as_ref().is_some_and(|it| it.recv(&mut [0; 8]).is_ok()), "udp-packet"),
            (self.unix.as_ref().is_some_and(|it| it.accept().is_ok()), "unix-connection"),
            (self.abstract_socket.as_ref().is_some_and(|it| it.accept().is_ok()), "abstract-connection"),
            (self.victim_was_signalled(), "signal-arrived"),
        ];
        all.into_iter().filter(|(yes, _)| *yes).map(|(_, name)| name).collect()
    }

    /// The victim blocks all signals, so one that has arrived is pending.
    fn victim_was_signalled(&self) -> bool {
        let status = Status::of(self.victim).ok();
        status.is_some_and(|status| status.set("SigPnd") | status.set("ShdPnd") != 0)
    }

    /// The environment of a run: some secrets, and directories of the stage for all that sbx makes.
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
        let secrets = ["SBX_TEST_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "DATABASE_PASSWORD"];
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
    for directory in ["home/.ssh", "home/project", "home/outside", "tmp", "cache"] {
        fs::create_dir_all(root.join(directory))?;
    }
    for file in ["home/project/readme", "home/outside/kept", "home/outside/attributes"] {
        fs::write(root.join(file), KEPT)?;
    }
    fs::set_permissions(root.join("home/outside/attributes"), Permissions::from_mode(0o600))?;
    fs::write(root.join("home/.ssh/id_rsa"), secret)?;
    File::open(root.join("home/.ssh/id_rsa"))
}

/// The beginning of a file.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
