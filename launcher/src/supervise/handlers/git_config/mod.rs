//! Configurations of git that the command may change as far as that is harmless.
//!
//! git writes a configuration anew as `config.lock` and renames that onto `config`, which is mounted
//! read-only for the command, so the kernel refuses it. Where there is such a mount, rename(2) is therefore
//! notified. If it is about these two names in a repository that is protected, the supervisor copies the
//! new text, checks the copy (`harmless`), and puts a file of its own with it in the place of the old. What
//! the command does to the file that it wrote, or to the call's arguments, changes nothing any more. All
//! other calls are left to the kernel.
//!
//! A mount goes with the file that it is on, so at no time may there be a `config` that nothing is mounted
//! on:
//!
//! 1. The new file is made in `hooks`, which the command sees through a read-only mount: it cannot open it
//!    for writing.
//! 2. The first process of the run's namespaces mounts on it what keeps it from being changed, below that
//!    mount (`enforce::mounts`), and tells which file that was.
//! 3. Renamed outside, the file takes the mount along to its new name.
//!
//! Other runs in the repository could not follow, so there may be none (`presence`).

pub mod harmless;
pub mod sift;

use crate::enforce::presence::{Alone, Presence};
use crate::enforce::reaper;
use crate::explain::caller;
use crate::explain::decode::{Memory, read_path};
use crate::explain::hint::Reason;
use crate::plan::namespaces::{CONFIG, LONGEST, Layout, NEW_CONFIG};
use crate::supervise::dispatch::{Handler, Step};
use crate::supervise::handlers::domains::Marks;
use crate::supervise::judge::{DecidedBy, Judge, Verdict, error};
use crate::supervise::violation::Fate;
use crate::supervise::waiting::{NotifiedCall, Told, Waiting};
use crate::sys::process::Pid;
use crate::sys::seccomp::{self, Answer, Notification};
use crate::sys::{SyscallError, attributes, descriptor, file};
use harmless::Harm;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// git's own lock file, the new configuration. While it exists, other git processes do not write.
const LOCK: &str = "config.lock";

/// Why a configuration that is harmless is not taken.
const SHARED: &str = "another run is in this repository, and could change what takes the place of its configuration; \
                      end that one, or run this command outside";

/// The configurations of a run.
pub struct Configs {
    layout: Rc<Layout>,
    presence: Rc<Presence>,
    marks: Rc<Marks>,
    reaper: Pid,
    pending: Option<Pending>,
}

/// A new configuration, written to `hooks`, that waits for its mount and is then renamed to `config`.
struct Pending {
    id: u64,
    repository: File,
    alone: Alone,
    /// What the new one was compared with.
    present: Vec<u8>,
    lock: file::Identity,
    made: file::Identity,
}

/// A call that would put a new configuration in its place.
pub struct Replacement {
    repository: PathBuf,
    told: Told,
}

/// What becomes of such a call.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It waits for the mount.
    Waits,
    /// It fails.
    Fails(i32),
    /// The new configuration is not harmless.
    Harmful(Harm),
    /// Another run is in the repository.
    Shared,
}

impl Handler for Configs {
    type Copy = Replacement;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Replacement> {
        let NotifiedCall { notification, name, verdict } = waiting.call;
        // Of a further domain the kernel decides: the configuration is mounted, and stays as it is.
        if *verdict != Verdict::Allowed || self.marks.of(notification.pid).is_some() {
            return None;
        }
        let repository = self.repository(name, notification, &waiting.memory)?;
        Some(Replacement { repository, told: waiting.told() })
    }

    fn act(
        &mut self,
        Replacement { repository, told }: Replacement,
        call: &NotifiedCall,
        judge: &mut Judge,
    ) -> Result<Step, SyscallError> {
        let (reason, errno) = match self.replace(&repository, call.notification.id)? {
            Outcome::Waits => return Ok(Step::Settled),
            Outcome::Fails(errno) => return Ok(Step::Answer(error(errno))),
            Outcome::Harmful(harm) => (Reason::always(&harm.to_string()), libc::EPERM),
            Outcome::Shared => (Reason::always(SHARED), libc::EBUSY),
        };
        judge.say(Fate::Blocked, call, &told, reason, DecidedBy::Place(repository.join(CONFIG)));
        Ok(Step::Answer(error(errno)))
    }

    /// Puts the new configuration in its place, if the file of this number is the one that was mounted on.
    fn covered(&mut self, listener: Option<BorrowedFd<'_>>, number: u32) -> Result<(), SyscallError> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let result = pending.finish(number);
        let Pending { id, repository, alone, .. } = pending;
        if result.is_err() {
            let _ = file::unlink(repository.as_fd(), OsStr::new(NEW_CONFIG));
        }
        alone.end()?;
        let answer = result.map_or_else(error, |()| Answer::Done);
        listener.map_or(Ok(()), |listener| seccomp::answer(listener, id, answer))
    }
}

impl Configs {
    /// Those of a layout, in whose namespaces `reaper` is the first process.
    pub fn new(layout: Rc<Layout>, presence: Rc<Presence>, marks: Rc<Marks>, reaper: Pid) -> Configs {
        Configs { layout, presence, marks, reaper, pending: None }
    }

    /// The repository whose configuration a call would replace by what stands beside it.
    fn repository(&self, name: &str, call: &Notification, memory: &dyn Memory) -> Option<PathBuf> {
        let [old, new] = match name {
            "rename" => [(None, call.args[0]), (None, call.args[1])],
            _ => [(Some(call.args[0] as i32), call.args[1]), (Some(call.args[2] as i32), call.args[3])],
        };
        let new_directory = directory_of(call.pid, new, CONFIG, memory)?;
        let old_directory = directory_of(call.pid, old, LOCK, memory)?;
        let is_one = |path: &&PathBuf| {
            let held = descriptor::hold(path).ok();
            let own = held.and_then(|held| file::identity(held.as_fd()).ok());
            own.is_some_and(|own| own.is(new_directory) && own.is(old_directory))
        };
        self.layout.configs.iter().find(is_one).cloned()
    }

    /// Checks and writes the new configuration, and asks the reaper for the mount; `covered` finishes.
    fn replace(&mut self, repository: &Path, id: u64) -> Result<Outcome, SyscallError> {
        if self.pending.is_some() {
            return Ok(Outcome::Fails(libc::EBUSY));
        }
        let texts = descriptor::hold(repository).and_then(|held| {
            let (new, lock) = text(&held, LOCK)?;
            let (present, _) = text(&held, CONFIG)?;
            Ok((held, new, lock, present))
        });
        let (held, new, lock, present) = match texts {
            Ok(texts) => texts,
            Err(error) => return Ok(Outcome::Fails(error.raw_os_error().unwrap_or(libc::EFBIG))),
        };
        if let Err(harm) = harmless::check(&present, &new) {
            return Ok(Outcome::Harmful(harm));
        }
        let Some(alone) = self.presence.alone(repository)? else { return Ok(Outcome::Shared) };
        match make(&held, &new) {
            Ok(made) => {
                self.pending = Some(Pending { id, repository: held, alone, present, lock, made });
                reaper::protect_config(self.reaper);
                Ok(Outcome::Waits)
            }
            Err(failed) => {
                alone.end()?;
                Ok(Outcome::Fails(failed.errno()))
            }
        }
    }
}

/// If `file` is a protected configuration, opens it by the supervisor's own view, where no mount is on it.
pub fn configuration(layout: &Layout, file: &File) -> Option<File> {
    let wanted = file::identity(file.as_fd()).ok()?;
    layout.configs.iter().find_map(|repository| {
        let held = descriptor::hold(repository).ok()?;
        let own = descriptor::open_entry(&held, CONFIG.as_bytes()).ok()?;
        file::identity(own.as_fd()).is_ok_and(|found| found.is(wanted) && found.is_regular()).then_some(own)
    })
}

impl Drop for Configs {
    fn drop(&mut self) {
        if let Some(pending) = self.pending.take() {
            let _ = file::unlink(pending.repository.as_fd(), OsStr::new(NEW_CONFIG));
            let _ = pending.alone.end();
        }
    }
}

impl Pending {
    fn finish(&self, number: u32) -> Result<(), i32> {
        let directory = self.repository.as_fd();
        let identity = |name| file::identity_of(directory, OsStr::new(name), false).ok();
        let made = identity(NEW_CONFIG).filter(|found| found.is(self.made));
        // Somebody outside may have changed it meanwhile.
        let present = text(&self.repository, CONFIG).is_ok_and(|(present, _)| present == self.present);
        if made.is_none_or(|made| made.low_number() != number) || !present {
            return Err(libc::EBUSY);
        }
        let renamed = file::rename(directory, OsStr::new(NEW_CONFIG), OsStr::new(CONFIG));
        renamed.map_err(|failed| failed.errno())?;
        if identity(LOCK).is_some_and(|found| found.is(self.lock)) {
            let _ = file::unlink(directory, OsStr::new(LOCK));
        }
        Ok(())
    }
}

/// The directory of a path argument that ends in this name.
fn directory_of(
    thread: Pid,
    (dirfd, address): (Option<i32>, u64),
    name: &str,
    memory: &dyn Memory,
) -> Option<file::Identity> {
    let dirfd = dirfd.filter(|number| *number != libc::AT_FDCWD);
    let path = read_path(memory, address)?;
    let above = path.strip_suffix(name.as_bytes())?;
    let above = match above {
        b"" => b".",
        above if above.ends_with(b"/") => above,
        _ => return None,
    };
    let held = caller::hold(thread, dirfd, above, true).ok()?;
    file::identity(held.as_fd()).ok()
}

/// What a regular file holds, and which file that is; an error if it is too long.
fn text(directory: &File, name: &str) -> io::Result<(Vec<u8>, file::Identity)> {
    let opened = file::open_to_read(directory.as_fd(), OsStr::new(name)).map_err(|failed| failed.cause)?;
    let identity = file::identity(opened.as_fd()).map_err(|failed| failed.cause)?;
    if !identity.is_regular() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let text = file::read_most(&opened, LONGEST)?;
    Ok((text.ok_or_else(|| io::Error::from_raw_os_error(libc::EFBIG))?, identity))
}

/// Makes the new configuration, which can be read by whom the present one can.
fn make(repository: &File, text: &[u8]) -> Result<file::Identity, SyscallError> {
    let (directory, name) = (repository.as_fd(), OsStr::new(NEW_CONFIG));
    // A run that was killed in the middle of this has left it.
    let _ = file::unlink(directory, name);
    let present = File::from(file::open_to_read(directory, OsStr::new(CONFIG))?);
    let meta = present.metadata().map_err(|cause| SyscallError { call: "stat", cause })?;
    // After the rename the old file has no mount. A second name (hard link) would leave it in reach, and writable.
    if meta.nlink() != 1 {
        return Err(SyscallError { call: "rename", cause: io::Error::from_raw_os_error(libc::EMLINK) });
    }
    let mode = meta.mode() & 0o666;
    let made = File::from(file::create_new(directory, name, 0o600)?);
    let written = file::write_all(made.as_fd(), text).and_then(|()| attributes::set_mode(&made, mode));
    let identity = written.and_then(|()| file::identity(made.as_fd()));
    if identity.is_err() {
        let _ = file::unlink(directory, name);
    }
    identity
}
