//! Where the sockets of pools are: in a directory that only this user can enter.

use crate::error::Refusal;
use crate::host::Host;
use crate::pool::key::Key;
use crate::sys::{plain, process};
use crate::text::shown;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the names of the sockets end in.
const END: &str = ".pool";
const PERMISSIONS: u32 = 0o7777;

/// The directory.
fn directory(host: &Host) -> PathBuf {
    let runtime = host.variable("XDG_RUNTIME_DIR").map(Path::new);
    match runtime.filter(|path| path.is_absolute() && is_own(path)) {
        Some(runtime) => runtime.join("sbx"),
        None => PathBuf::from(format!("/tmp/sbx-pool-{}", process::user())),
    }
}

/// Whether it is a directory of this user's that nobody else can enter.
fn is_own(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| {
        meta.is_dir() && meta.uid() == process::user() && meta.mode() & PERMISSIONS == 0o700
    })
}

/// The socket of a pool, which may not be there; `None` where its directory is not this user's alone.
pub fn socket(host: &Host, key: &Key) -> Option<PathBuf> {
    let directory = directory(host);
    is_own(&directory).then(|| directory.join(format!("{}{END}", key.name())))
}

/// The same, in a directory that is made where there is none.
pub fn make(host: &Host, key: &Key) -> Result<PathBuf, Refusal> {
    let directory = directory(host);
    let _mask = process::without_umask();
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Refusal::new(format!("cannot make '{}': {}", shown(&directory), plain(&error))));
        }
        _ => {}
    }
    socket(host, key).ok_or_else(|| {
        Refusal::new(format!(
            "cannot keep a pool in '{}': it is no directory that you alone can enter; set XDG_RUNTIME_DIR to one",
            shown(&directory)
        ))
    })
}

/// Excludes others who would make a socket there, as long as the result is kept. `None` if another one goes on.
pub fn alone(socket: &Path, limit: Duration) -> Option<File> {
    let directory = File::open(socket.parent()?).ok()?;
    let until = Instant::now() + limit;
    while directory.try_lock().is_err() {
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(directory)
}

/// The sockets of all pools.
pub fn all(host: &Host) -> Vec<PathBuf> {
    let directory = directory(host);
    if !is_own(&directory) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut all: Vec<PathBuf> = paths.filter(|path| path.to_string_lossy().ends_with(END)).collect();
    all.sort();
    all
}
