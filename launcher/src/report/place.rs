//! The places that reports are written to. Each is opened before the command starts, or the run is refused. A
//! report is written whole or not at all.

use crate::error::EndsRun;
use crate::host::Host;
use crate::plan::namespaces::record::{Unopened, Workspaces};
use crate::supervise::output::{Sink, Written};
use crate::supervise::{Caller, ENDING, tells_to_end};
use crate::sys::descriptor::{self, Interest};
use crate::sys::file::{self, Usable};
use crate::sys::path::directory_of;
use crate::sys::{SyscallError, access, memory, plain, signal};
use crate::text::shown;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Only its owner may read a report, which tells what was run on what.
const MODE: libc::mode_t = 0o600;
/// How long another run may lock the audit log. It does so while it writes a line.
const LOCK_LIMIT: Duration = Duration::from_secs(10);
/// Poll interval while the reader takes nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Pause before an attempt is repeated that nothing announces.
const PAUSE: Duration = Duration::from_millis(2);

/// A place that cannot take its report.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct PlaceError {
    place: Place,
    why: Why,
}

impl EndsRun for PlaceError {}

/// Which place it is, as the flag names it.
#[derive(Clone, Debug)]
enum Place {
    File(PathBuf),
    Descriptor(RawFd),
    AuditLog(PathBuf),
}

impl Place {
    fn because(&self, why: impl Into<Why>) -> PlaceError {
        PlaceError { place: self.clone(), why: why.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "cannot write the report '{}'", shown(path)),
            Place::Descriptor(number) => write!(f, "cannot write the report to descriptor {number}"),
            Place::AuditLog(path) => write!(f, "cannot add to the audit log '{}'", shown(path)),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("{0}")]
    Unfit(&'static str),
    #[error(
        "its directory belongs to user {0}, and sbx gives up what lets root write there when the command starts; use \
         --report-fd, or start sbx as that user (setpriv --reuid {0} ...)"
    )]
    OthersDirectory(u32),
    #[error("cannot {step}: {}", plain(&.failed.cause))]
    Step { step: &'static str, failed: SyscallError },
    #[error("{}", plain(&.0.cause))]
    Call(SyscallError),
    #[error(transparent)]
    Unopened(Unopened),
}

impl From<&'static str> for Why {
    fn from(why: &'static str) -> Why {
        Why::Unfit(why)
    }
}

impl From<SyscallError> for Why {
    fn from(failed: SyscallError) -> Why {
        Why::Call(failed)
    }
}

/// A file that is replaced when the run has ended.
pub struct Replaced {
    place: Place,
    /// The path of its directory when the run began.
    parent: PathBuf,
    directory: OwnedFd,
    name: OsString,
    /// A file without a name, which nobody else can open. `None` if the file system has no such files.
    unnamed: Option<OwnedFd>,
}

impl Replaced {
    /// Checks that the report can be put there.
    pub fn prepare(path: &Path) -> Result<Replaced, PlaceError> {
        let place = Place::File(path.to_path_buf());
        Replaced::open(path, &place).map_err(|why| place.because(why))
    }

    fn open(path: &Path, place: &Place) -> Result<Replaced, Why> {
        let name = name_of(path)?;
        // Elsewhere "-" means standard output, which belongs to the command.
        if path.as_os_str() == "-" {
            return Err(
                "use --report-fd, as in --report-fd 3 3>report.json, or ./- for a file of that name".into()
            );
        }
        let parent = directory_of(path).to_path_buf();
        let step = |step| move |failed| Why::Step { step, failed };
        let directory = open_directory(&parent).map_err(Why::Unopened)?;
        check_replaceable(&directory, name)?;
        check_owner(&parent)?;
        let unnamed = room(&directory).map_err(step("make a file in its directory"))?;
        Ok(Replaced { place: place.clone(), parent, directory, name: name.to_os_string(), unnamed })
    }

    /// Puts these contents there, in place of whatever has the name by now.
    pub fn write(self, contents: &[u8]) -> Result<(), PlaceError> {
        self.replace(contents).map_err(|why| self.place.because(why))
    }

    fn replace(&self, contents: &[u8]) -> Result<(), Why> {
        let directory = self.directory.as_fd();
        let temporary = temporary_name()?;
        let made;
        let file = match &self.unnamed {
            Some(file) => file.as_fd(),
            None => {
                made = file::create_new(directory, &temporary, MODE)?;
                made.as_fd()
            }
        };
        let named = || match &self.unnamed {
            Some(_) => file::link(file, directory, &temporary),
            None => Ok(()),
        };
        let written = file::write_all(file, contents).and_then(|()| named());
        written.and_then(|()| file::rename(directory, &temporary, &self.name)).inspect_err(|_| {
            let _ = file::unlink(directory, &temporary);
        })?;
        // Others that may write to this directory could have replaced the file at once.
        let ours = file::identity(file)?;
        if !file::identity_of(directory, &self.name, false).is_ok_and(|there| there == ours) {
            return Err("something else took its place at once".into());
        }
        // Others that may rename the directory could have put another one there, with a report of their own in it.
        match file::leads_to(&self.parent, directory) {
            true => Ok(()),
            false => {
                Err("its directory was moved or replaced during the run, and the report went along with it"
                    .into())
            }
        }
    }
}

fn name_of(path: &Path) -> Result<&OsStr, &'static str> {
    let name = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/"));
    name.ok_or("it names no file")
}

fn open_directory(path: &Path) -> Result<OwnedFd, Unopened> {
    Workspaces::of(&Host::of_this_process()).open_directory(path)
}

/// Refuses a directory that only a capability of root opens: root has few of them left when the report is written.
fn check_owner(directory: &Path) -> Result<(), Why> {
    access::others_directory(directory).map_or(Ok(()), |user| Err(Why::OthersDirectory(user)))
}

/// Refuses to replace a device or a FIFO, which was not meant to become a file.
fn check_replaceable(directory: &OwnedFd, name: &OsStr) -> Result<(), Why> {
    let Ok(itself) = file::identity_of(directory.as_fd(), name, false) else { return Ok(()) };
    if itself.is_directory() {
        return Err("it is a directory".into());
    }
    // /dev/stdout and the like are links to /proc, and lead to a regular file only by chance.
    let link = file::read_link(directory.as_fd(), name).unwrap_or_default();
    let target = file::identity_of(directory.as_fd(), name, true).unwrap_or(itself);
    let ordinary = itself.is_regular() || (itself.is_link() && (target.is_regular() || target == itself));
    match ordinary && !Path::new(&link).starts_with("/proc") {
        true => Ok(()),
        false => Err("it is no ordinary file; use --report-fd".into()),
    }
}

/// A file without a name, or `None` if the directory can have only files with a name.
fn room(directory: &OwnedFd) -> Result<Option<OwnedFd>, SyscallError> {
    match file::create_unnamed(directory.as_fd(), MODE) {
        Ok(file) => return Ok(Some(file)),
        // EISDIR: the kernel or the file system ignores O_TMPFILE, and opens the directory itself.
        Err(failed) if matches!(failed.errno(), libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL) => {}
        Err(failed) => return Err(failed),
    }
    let name = temporary_name()?;
    file::create_new(directory.as_fd(), &name, MODE)?;
    file::unlink(directory.as_fd(), &name)?;
    Ok(None)
}

fn temporary_name() -> Result<OsString, SyscallError> {
    memory::random_name(".sbx-report-").map(OsString::from)
}

/// A descriptor that the caller has opened for the report.
pub struct Passed(OwnedFd);

impl Passed {
    /// Takes the descriptor over, unless the command gets it too.
    pub fn prepare(number: RawFd, passed_on: &[RawFd]) -> Result<Passed, PlaceError> {
        let unfit = |why: &'static str| Err(Place::Descriptor(number).because(why));
        if number < 3 {
            return unfit(
                "descriptors 0 to 2 belong to the command; name another one, as in --report-fd 3 3>report.json",
            );
        }
        if passed_on.contains(&number) {
            return unfit("--pass-fd gives it to the command, which could write to it");
        }
        match file::usable(number) {
            Usable::Yes => Ok(Passed(descriptor::own(number))),
            Usable::Closed => unfit("it is not open"),
            Usable::ReadOnly => unfit("it is not open for writing"),
            Usable::Unread => unfit("nobody is there to read it"),
        }
    }

    /// Writes there, and closes it. The command has some influence on the length of a report; so the wait
    /// ends if the reader takes nothing for `patience`, or if a signal, or who asked for the run, tells us to end.
    pub fn write(
        self,
        contents: &[u8],
        patience: Option<Duration>,
        caller: Option<&Caller>,
    ) -> Result<(), PlaceError> {
        let place = Place::Descriptor(self.0.as_raw_fd());
        pour(Sink::new(self.0), contents, patience, caller).map_err(|why| place.because(why))
    }
}

fn pour(
    mut sink: Sink,
    mut rest: &[u8],
    patience: Option<Duration>,
    caller: Option<&Caller>,
) -> Result<(), Why> {
    // Signals that have arrived by now were meant for the command.
    signal::drain(&signal::Set::of(&ENDING));
    caller.iter().for_each(|caller| caller.drain());
    let mut since = Instant::now();
    // poll(2) never reports some sinks as writable; the attempt tells why.
    let mut untried = sink.is_quick();
    while !rest.is_empty() {
        let [ready] = descriptor::poll([Interest::write(Some(sink.number()))], Some(POLL_INTERVAL))?;
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
            // poll(2) has promised more room than there is.
            Written::Later if ready.now => std::thread::sleep(PAUSE),
            Written::Later => {}
            Written::ReaderGone => return Err("broken pipe".into()),
            Written::Failed(failed) => return Err(failed.into()),
        }
        let is_told = || ENDING.into_iter().any(|number| signal::is_waiting(number) && tells_to_end(number));
        if is_told() || caller.is_some_and(Caller::tells_to_end) {
            return Err("a signal ended the wait for its reader".into());
        }
        if patience.is_some_and(|time| since.elapsed() >= time) {
            return Err("its reader takes nothing".into());
        }
    }
    Ok(())
}

/// A file to which every run adds a line.
pub struct AuditLog {
    place: Place,
    path: PathBuf,
    file: File,
}

impl AuditLog {
    /// Opens the log, and creates it if it is missing.
    pub fn prepare(path: &Path) -> Result<AuditLog, PlaceError> {
        const ODD: &str = "it is no ordinary file";
        let place = Place::AuditLog(path.to_path_buf());
        let name = name_of(path).map_err(|why| place.because(why))?;
        let directory =
            open_directory(directory_of(path)).map_err(|why| place.because(Why::Unopened(why)))?;
        let file =
            file::open_to_append(directory.as_fd(), name, MODE).map_err(|failed| match failed.errno() {
                libc::ELOOP => place.because("it is a symbolic link, which is not followed"),
                libc::ENXIO => place.because(ODD),
                _ => place.because(failed),
            })?;
        if !file::identity(file.as_fd()).map_err(|failed| place.because(failed))?.is_regular() {
            return Err(place.because(ODD));
        }
        let file = File::from(file);
        let path = descriptor::place(&file).unwrap_or_else(|_| path.to_path_buf());
        Ok(AuditLog { place, path, file })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line.
    pub fn write(self, line: &[u8]) -> Result<(), PlaceError> {
        self.add(line).map_err(|why| self.place.because(why))
    }

    fn add(&self, line: &[u8]) -> Result<(), Why> {
        let file = self.file.as_fd();
        let start = Instant::now();
        while !file::try_lock(file)? {
            if start.elapsed() > LOCK_LIMIT {
                return Err("something keeps it locked".into());
            }
            std::thread::sleep(PAUSE);
        }
        let before = file::length(file)?;
        if file::write(file, line)? < line.len() {
            file::truncate(file, before)?;
            return Err("only a part of the line fitted, and was taken back".into());
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
            assert!(matches!(&why.why, Why::Call(failed) if failed.errno() == libc::EISDIR), "{why}");
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
        // A process that another test has started may share the first one's file for a moment.
        let locks = || file::try_lock(holder.file.as_fd()).unwrap();
        assert!((0..500).any(|_| locks() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }));
        let second = std::thread::spawn(move || log.write(b"two\n"));
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        drop(holder);
        second.join().unwrap().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }
}
