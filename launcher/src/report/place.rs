//! Where reports go. Each place is opened before the command is started, or the run is refused; each report is
//! written whole or not at all.

use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use crate::supervise::output::{Sink, Written};
use crate::supervise::{ENDING, tells_to_end};
use crate::sys::descriptor::Interest;
use crate::sys::file::{self, Usable};
use crate::sys::{Failed, access, descriptor, memory, plain, signal};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Only its owner reads a report: it tells what was run on what.
const MODE: libc::mode_t = 0o600;
/// How long another run may hold the audit log. It does while it writes a line.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked, while nobody reads, whether it is to be waited on.
const LOOK: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_millis(2);

/// A file that is replaced when the run has ended.
pub struct Replaced {
    shown: String,
    /// Where its directory was when the run began.
    parent: PathBuf,
    directory: OwnedFd,
    name: OsString,
    /// Without a name, so nobody else can open it; `None` where the file system makes no such files.
    unnamed: Option<OwnedFd>,
}

impl Replaced {
    /// Makes sure that the report can be put there.
    pub fn prepare(path: &Path) -> Result<Replaced, Refusal> {
        let shown = shown(path);
        let cannot = |why: &str| Refusal::new(format!("cannot write the report '{shown}': {why}"));
        let Some(name) = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/")) else {
            return Err(cannot("it names no file"));
        };
        // Elsewhere this means standard output, which is the command's.
        if path.as_os_str() == "-" {
            return Err(cannot(
                "use --report-fd, as in --report-fd 3 3>report.json, or ./- for a file of that name",
            ));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).to_path_buf();
        let directory = file::open_directory(&parent)
            .map_err(|failed| cannot(&format!("cannot open its directory: {}", plain(&failed.cause))))?;
        replaceable(&directory, name).map_err(cannot)?;
        own_enough(&parent).map_err(|why| cannot(&why))?;
        let unnamed = room(&directory).map_err(|failed| {
            cannot(&format!("cannot make a file in its directory: {}", plain(&failed.cause)))
        })?;
        Ok(Replaced { parent, directory, name: name.to_os_string(), unnamed, shown })
    }

    /// Puts these contents there, in the place of whatever has the name by now.
    pub fn write(self, contents: &[u8]) -> Result<(), String> {
        self.replace(contents).map_err(|why| format!("cannot write the report '{}': {why}", self.shown))
    }

    fn replace(&self, contents: &[u8]) -> Result<(), String> {
        let say = |failed: Failed| plain(&failed.cause);
        let directory = self.directory.as_fd();
        let temporary = temporary_name().map_err(say)?;
        let made;
        let file = match &self.unnamed {
            Some(file) => file.as_fd(),
            None => {
                made = file::create_new(directory, &temporary, MODE).map_err(say)?;
                made.as_fd()
            }
        };
        let named = || match &self.unnamed {
            Some(_) => file::link(file, directory, &temporary),
            None => Ok(()),
        };
        let written = file::write_all(file, contents).and_then(|()| named());
        written.and_then(|()| file::rename(directory, &temporary, &self.name)).map_err(|failed| {
            let _ = file::unlink(directory, &temporary);
            say(failed)
        })?;
        // Whoever else may write to this directory could have been quicker.
        let ours = file::identity(file).map_err(say)?;
        match file::identity_of(directory, &self.name, false) {
            Ok(there) if there == ours => {}
            _ => return Err("something else took its place at once".to_string()),
        }
        // Whoever may rename the directory could have put another one there, with a report of their own in it.
        let there = file::open_directory(&self.parent).and_then(|now| file::identity(now.as_fd()));
        match (there, file::identity(directory)) {
            (Ok(there), Ok(ours)) if there.is(ours) => Ok(()),
            _ => Err("its directory was moved or replaced during the run, and the report went along with it"
                .to_string()),
        }
    }
}

/// Root can make files in everybody's directories now, and in few when the command has run: by a capability.
fn own_enough(directory: &Path) -> Result<(), String> {
    match access::others_directory(directory) {
        None => Ok(()),
        Some(user) => Err(format!(
            "its directory belongs to user {user}, and sbx gives up what lets root write there when the command starts; use --report-fd, or start sbx as that user (setpriv --reuid {user} ...)"
        )),
    }
}

/// Whether what has the name may be replaced: a device or a FIFO was not meant to become a file.
fn replaceable(directory: &OwnedFd, name: &OsStr) -> Result<(), &'static str> {
    const OTHER: &str = "it is no ordinary file; use --report-fd";
    // Not there yet.
    let Ok(itself) = file::identity_of(directory.as_fd(), name, false) else { return Ok(()) };
    if itself.is_directory() {
        return Err("it is a directory");
    }
    // /dev/stdout and its like lead to /proc, and to a file only by chance.
    let link = file::read_link(directory.as_fd(), name).unwrap_or_default();
    let target = file::identity_of(directory.as_fd(), name, true).unwrap_or(itself);
    let ordinary = itself.is_regular() || (itself.is_link() && (target.is_regular() || target == itself));
    if ordinary && !Path::new(&link).starts_with("/proc") { Ok(()) } else { Err(OTHER) }
}

/// A file without a name, or none where there are only files with one.
fn room(directory: &OwnedFd) -> Result<Option<OwnedFd>, Failed> {
    match file::create_unnamed(directory.as_fd(), MODE) {
        Ok(file) => return Ok(Some(file)),
        // EISDIR: a kernel or file system that takes O_TMPFILE for an ordinary open of the directory.
        Err(failed) if matches!(failed.errno(), libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL) => {}
        Err(failed) => return Err(failed),
    }
    let name = temporary_name()?;
    file::create_new(directory.as_fd(), &name, MODE)?;
    file::unlink(directory.as_fd(), &name)?;
    Ok(None)
}

fn temporary_name() -> Result<OsString, Failed> {
    memory::random_name(".sbx-report-").map(OsString::from)
}

/// A descriptor that the caller has opened for the report.
pub struct Passed(OwnedFd);

impl Passed {
    /// Takes it over. `closed` are those of the standard ones that only look open.
    pub fn prepare(number: RawFd, passed_on: &[RawFd]) -> Result<Passed, Refusal> {
        let cannot =
            |why: &str| Refusal::new(format!("cannot write the report to descriptor {number}: {why}"));
        if number < 3 {
            return Err(cannot(
                "those below 3 are the command's; name another one, as in --report-fd 3 3>report.json",
            ));
        }
        if passed_on.contains(&number) {
            return Err(cannot("--pass-fd gives it to the command, which could write to it"));
        }
        match file::usable(number) {
            Usable::Yes => Ok(Passed(descriptor::own(number))),
            Usable::Closed => Err(cannot("it is not open")),
            Usable::ReadOnly => Err(cannot("it is not open for writing")),
            Usable::Unread => Err(cannot("nobody is there to read it")),
        }
    }

    /// Writes there, and closes it. Its reader may take its time, but not more than `patience` without taking anything,
    /// and whoever tells us to end is listened to: the command has had a hand in how long a report is.
    pub fn write(self, contents: &[u8], patience: Option<Duration>) -> Result<(), String> {
        let number = self.0.as_raw_fd();
        pour(Sink::new(self.0), contents, patience)
            .map_err(|why| format!("cannot write the report to descriptor {number}: {why}"))
    }
}

fn pour(mut sink: Sink, mut rest: &[u8], patience: Option<Duration>) -> Result<(), String> {
    let say = |failed: Failed| plain(&failed.cause);
    // What has arrived by now was about the command.
    signal::drain(&signal::Set::of(&ENDING));
    let mut since = Instant::now();
    // Some of which poll(2) never says that something fits tell why when they are tried.
    let mut untried = sink.is_quick();
    while !rest.is_empty() {
        let [ready] = descriptor::poll([Interest::write(Some(sink.number()))], Some(LOOK)).map_err(say)?;
        let written = if ready.now || ready.gone || std::mem::take(&mut untried) {
            sink.write(rest)
        } else {
            Written::Later
        };
        match written {
            Written::Some(count) => {
                rest = rest.get(count..).unwrap_or_default();
                since = Instant::now();
                continue;
            }
            // Where poll(2) promises more than there is.
            Written::Later if ready.now => std::thread::sleep(TICK),
            Written::Later => {}
            Written::ReaderGone => return Err("broken pipe".to_string()),
            Written::Failed(failed) => return Err(say(failed)),
        }
        if ENDING.into_iter().any(|number| signal::is_waiting(number) && tells_to_end(number)) {
            return Err("a signal ended the wait for its reader".to_string());
        }
        if patience.is_some_and(|time| since.elapsed() >= time) {
            return Err("its reader takes nothing".to_string());
        }
    }
    Ok(())
}

/// A file that every run adds a line to.
pub struct AuditLog {
    shown: String,
    path: PathBuf,
    file: File,
}

impl AuditLog {
    /// Opens it, and makes it where it is not there.
    pub fn prepare(path: &Path) -> Result<AuditLog, Refusal> {
        let shown = shown(path);
        let cannot = |why: &str| Refusal::new(format!("cannot add to the audit log '{shown}': {why}"));
        let file = file::open_to_append(path, MODE).map_err(|failed| match failed.errno() {
            libc::ELOOP => cannot("it is a symbolic link, which is not followed"),
            libc::ENXIO => cannot("it is no ordinary file"),
            _ => cannot(&plain(&failed.cause)),
        })?;
        let what = file::identity(file.as_fd()).map_err(|failed| cannot(&plain(&failed.cause)))?;
        if !what.is_regular() {
            return Err(cannot("it is no ordinary file"));
        }
        let file = File::from(file);
        let path = descriptor::place(&file).unwrap_or_else(|_| path.to_path_buf());
        Ok(AuditLog { shown, path, file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line.
    pub fn write(self, line: &[u8]) -> Result<(), String> {
        self.add(line).map_err(|why| format!("cannot add to the audit log '{}': {why}", self.shown))
    }

    fn add(&self, line: &[u8]) -> Result<(), String> {
        let say = |failed: Failed| plain(&failed.cause);
        let file = self.file.as_fd();
        let start = Instant::now();
        while !file::try_lock(file).map_err(say)? {
            if start.elapsed() > PATIENCE {
                return Err("something keeps it locked".to_string());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let before = file::length(file).map_err(say)?;
        let written = file::write(file, line).map_err(say)?;
        if written < line.len() {
            file::truncate(file, before).map_err(say)?;
            return Err("only a part of the line fitted, and was taken back".to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Directory(PathBuf);

    impl Directory {
        fn new() -> Directory {
            let path = std::env::temp_dir().join(memory::random_name("sbx-place-").unwrap());
            fs::create_dir(&path).unwrap();
            Directory(path)
        }

        fn names(&self) -> Vec<OsString> {
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_replaced_with_and_without_unnamed_files() {
        let directory = Directory::new();
        let path = directory.0.join("report");
        for (unnamed, contents) in [(true, "one"), (false, "two"), (true, "three")] {
            let mut place = Replaced::prepare(&path).unwrap();
            if !unnamed {
                place.unnamed = None;
            }
            place.write(contents.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), contents);
            assert_eq!(directory.names(), ["report"]);
        }
    }

    #[test]
    fn what_fails_leaves_nothing_behind() {
        let directory = Directory::new();
        let path = directory.0.join("report");
        for unnamed in [true, false] {
            let mut place = Replaced::prepare(&path).unwrap();
            if !unnamed {
                place.unnamed = None;
            }
            fs::create_dir(&path).unwrap();
            let why = place.write(b"text").unwrap_err();
            assert!(why.ends_with("is a directory"), "{why}");
            assert_eq!(directory.names(), ["report"]);
            fs::remove_dir(&path).unwrap();
        }
    }

    #[test]
    fn lines_are_added_one_run_at_a_time() {
        let directory = Directory::new();
        let path = directory.0.join("log");
        AuditLog::prepare(&path).unwrap().write(b"one\n").unwrap();
        let log = AuditLog::prepare(&path).unwrap();
        let holder = AuditLog::prepare(&path).unwrap();
        assert!(file::try_lock(holder.file.as_fd()).unwrap());
        let second = std::thread::spawn(move || log.write(b"two\n"));
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        drop(holder);
        second.join().unwrap().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }
}
