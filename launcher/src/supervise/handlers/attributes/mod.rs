//! chmod, chown, utime, setxattr and the like, which no Landlock right covers: without more, a command
//! could change modes, owners, times and attributes of every file that its user owns, wherever it is.
//!
//! So these calls are notified. The supervisor holds the file as a place (O_PATH), looks where it really
//! is, and changes it there if the path rules let the command write; by then no renaming matters any more.
//! The supervisor has no capabilities at that time, so the kernel judges it as it would have judged the
//! command.

mod extended;

use crate::explain::caller::{self, Held};
use crate::explain::decode::{Access, Decoded, Memory, PathArgument, array};
use crate::explain::hint::{Hint, Reason};
use crate::plan::namespaces::renewed::TERMINALS;
use crate::plan::namespaces::{CONFIG, Layout};
use crate::plan::notified::{self, mode_at};
use crate::plan::rules::{self, PathRule};
use crate::supervise::dispatch::{Handler, Step};
use crate::supervise::handlers::git_config;
use crate::supervise::judge::{DecidedBy, Judge, Verdict, error};
use crate::supervise::violation::Fate;
use crate::supervise::waiting::{NotifiedCall, Told, Waiting};
use crate::sys::access::Permission;
use crate::sys::attributes::{self, GET_FLAGS, NOW_BOTH, SET_FLAGS, Times};
use crate::sys::process::Pid;
use crate::sys::seccomp::{Answer, Notification};
use crate::sys::{SyscallError, access, bounded, descriptor, process};
use extended::Extended;
use sbx_policy::errno::EPERM;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The answer of a read-only mount.
const EROFS: u16 = libc::EROFS as u16;
/// Set-user-ID: never set for the command.
const SET_USER: u64 = 0o4000;
/// Set-group-ID: on a directory, what is made there belongs to the directory's group, and nothing runs with
/// it. Never set on anything else.
const SET_GROUP: u64 = 0o2000;

/// Makes the changes that the path rules allow.
pub struct Attributes {
    /// The path rules, with resolved paths.
    pub granted: Rc<[PathRule]>,
    /// What is mounted for the run alone.
    pub layout: Option<Rc<Layout>>,
}

/// What becomes of a call.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Changed,
    /// It fails as it would without a sandbox.
    Fails(i32),
    /// The path rules or a mount refuse it, with this error.
    Refused(PathBuf, u16),
    /// It would make a program that runs as its owner or group, which nothing allows.
    Never,
    /// It is an access list of users who have no number in the run.
    Nobody,
}

/// What a call asks for, with all that its caller has a say in.
pub struct Wanted {
    /// The change, or what becomes of the call in any case.
    change: Result<Wish, Outcome>,
    /// Who asks. Only read for a call of which there may be something to say.
    told: Option<Told>,
}

struct Wish {
    change: Change,
    file: File,
    place: PathBuf,
    /// The path rules and the run's own mounts let the command change it.
    may: bool,
}

enum Change {
    Mode(u32),
    Owner(u32, u32),
    Times(Times),
    Extended(Extended),
    Flags(u32),
}

impl Handler for Attributes {
    type Copy = Wanted;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Wanted> {
        let NotifiedCall { notification: call, name, .. } = waiting.call;
        if !notified::changes_attributes(name) && !sets_flags(name, &call.args) {
            return None;
        }
        let change = self.wish(name, call, waiting.decoded(), &waiting.memory);
        let is_silent = change.as_ref().is_ok_and(|wish| self.is_silent(wish, waiting.call));
        Some(Wanted { change, told: (!is_silent).then(|| waiting.told()) })
    }

    /// The path rules decide in log mode too.
    fn act(
        &mut self,
        Wanted { change, told }: Wanted,
        call: &NotifiedCall,
        judge: &mut Judge,
    ) -> Result<Step, SyscallError> {
        let stands_for = change.as_ref().ok().and_then(|wish| wish.stands_for(call));
        let verdict = stands_for.map_or(call.verdict, |other| judge.verdict(&other));
        if verdict == Verdict::Violation {
            return Ok(Step::Next);
        }
        if let (Verdict::Logged, Some(told)) = (verdict, &told) {
            let reason = judge.reason(call, told);
            judge.say(Fate::WouldBlock, call, told, reason, DecidedBy::Filter);
        }
        let (reason, by, errno) = match change.map_or_else(|outcome| outcome, |wish| self.change(wish)) {
            Outcome::Changed => return Ok(Step::Answer(Answer::Done)),
            Outcome::Fails(errno) => return Ok(Step::Answer(error(errno))),
            Outcome::Refused(place, errno) => {
                (judge.explainer.path_reason(&place, Access::WRITE), DecidedBy::Place(place), errno)
            }
            Outcome::Never => {
                let reason = Reason::always(
                    "no file gets a set-user-ID or set-group-ID bit, whatever the flags; set it outside",
                );
                (reason, DecidedBy::Filter, EPERM)
            }
            Outcome::Nobody => {
                let what = "the access list names users who have no number in the run's namespaces";
                let hint = Some(Hint::of(["--namespaces", "none"]));
                (Reason { hint, ..Reason::always(what) }, DecidedBy::Filter, libc::EOPNOTSUPP as u16)
            }
        };
        if let Some(told) = told {
            judge.say(Fate::Blocked, call, &told, reason, by);
        }
        Ok(Step::Answer(Answer::Error(errno)))
    }
}

impl Attributes {
    /// The change that a call asks for, and the file.
    fn wish(
        &self,
        name: &str,
        call: &Notification,
        decoded: &Decoded,
        memory: &dyn Memory,
    ) -> Result<Wish, Outcome> {
        let failed = |error: io::Error| Outcome::Fails(error.raw_os_error().unwrap_or(libc::EIO));
        let layout = self.layout.as_deref();
        let change = read(name, &call.args, memory)?;
        if matches!(&change, Change::Extended(list) if list.names_nobody()) {
            return Err(Outcome::Nobody);
        }
        let held = hold(name, call, decoded).map_err(failed)?;
        let is_handed = matches!(held, Held::ByDescriptor(_));
        let (Held::ByPath(file) | Held::ByDescriptor(file)) = held;
        let place = descriptor::place(&file).map_err(failed)?;
        if matches!(change, Change::Mode(mode) if u64::from(mode) & SET_GROUP != 0) && !is_directory(&file) {
            return Err(Outcome::Never);
        }
        // A descriptor from outside may have a name that is another file's inside.
        let is_there = || !is_handed || !place.is_absolute() || caller::is_at(call.pid, &file, &place);
        let is_own_terminal =
            || layout.is_some_and(|layout| is_own_terminal(layout, call.pid, &file, &place));
        let may = (writable(&self.granted, layout, &place) || is_own_terminal())
            && is_there()
            && !layout.is_some_and(|layout| closes(&change, &place, layout));
        Ok(Wish { change, file, place, may })
    }

    /// Whether nothing will be said of a call, so that nobody has to know who makes it.
    fn is_silent(&self, wish: &Wish, call: &NotifiedCall) -> bool {
        let is_allowed = matches!(call.verdict, Verdict::Allowed | Verdict::Noted);
        is_allowed
            && wish.may
            && wish.stands_for(call).is_none()
            && !is_held(self.layout.as_deref(), &wish.place)
    }

    /// Makes the change, if the command may.
    fn change(&self, wish: Wish) -> Outcome {
        let layout = self.layout.as_deref();
        if !wish.may {
            return match wish.error_of_permissions() {
                Some(errno) => Outcome::Fails(errno),
                None => Outcome::Refused(wish.place, EPERM),
            };
        }
        if let (Change::Mode(mode), Some(layout)) = (&wish.change, layout)
            && wish.place.ends_with(CONFIG)
            && tried_by_git(layout, &wish.file, *mode)
        {
            return Outcome::Changed;
        }
        // Who writes to a file can keep it from being changed.
        let place = wish.place.clone();
        match bounded::within(move || apply(&wish.file, &wish.change)) {
            Some(Ok(())) => Outcome::Changed,
            Some(Err(failed)) if failed.errno() == libc::EROFS && is_held(layout, &place) => {
                Outcome::Refused(place, EROFS)
            }
            Some(Err(failed)) => Outcome::Fails(failed.errno()),
            None => Outcome::Fails(libc::EINTR),
        }
    }
}

impl Wish {
    /// The error that the file's permissions answer with, whatever the rules say: most changes are its owner's.
    fn error_of_permissions(&self) -> Option<i32> {
        let is_owner = self.file.metadata().is_ok_and(|meta| meta.uid() == process::user());
        let writes = || access::allows(&self.place, Permission::WRITE);
        match &self.change {
            Change::Mode(_) | Change::Owner(..) | Change::Flags(_) => (!is_owner).then_some(libc::EPERM),
            Change::Times(times) if is_now(times) => (!is_owner && !writes()).then_some(libc::EACCES),
            Change::Times(_) => (!is_owner).then_some(libc::EPERM),
            Change::Extended(_) => (!writes()).then_some(libc::EACCES),
        }
    }

    /// What a profile has to allow for a call whose arguments a filter refuses, since it does not see which
    /// file they are for: the same without the bit that a directory may get, and asking for flags.
    fn stands_for(&self, call: &NotifiedCall) -> Option<Notification> {
        let mut other = call.notification;
        match self.change {
            Change::Mode(mode) if u64::from(mode) & SET_GROUP != 0 => {
                *other.args.get_mut(mode_at(&call.name))? &= !SET_GROUP;
            }
            Change::Flags(_) => other.args[1] = GET_FLAGS.into(),
            _ => return None,
        }
        Some(other)
    }
}

/// Whether a call sets flags of a file, as chattr(1) does. The kernel takes the command as an unsigned int.
fn sets_flags(name: &str, args: &[u64; 6]) -> bool {
    name == "ioctl" && args[1] as u32 == SET_FLAGS
}

/// Whether a file is on the file system of terminals that the run has for itself. The caller's terminals, which keep
/// their names there, are on another one.
fn is_own_terminal(layout: &Layout, thread: Pid, file: &File, place: &Path) -> bool {
    let terminals = Path::new(TERMINALS);
    let device = |file: &File| file.metadata().ok().map(|meta| meta.dev());
    let top = || caller::hold(thread, None, TERMINALS.as_bytes(), false).ok();
    place.parent() == Some(terminals)
        && layout.renews(terminals)
        && top().and_then(|top| device(&top)).is_some_and(|own| device(file) == Some(own))
}

/// Whether git tries, on a configuration, whether the file system knows modes, as `git init` does in a
/// repository that is there already: it adds the owner's bit for executing, looks, and takes it away.
/// Nothing executes a configuration.
fn tried_by_git(layout: &Layout, file: &File, mode: u32) -> bool {
    let Some(own) = git_config::configuration(layout, file) else { return false };
    let only_that = own.metadata().is_ok_and(|meta| (meta.mode() ^ mode) & 0o7777 & !libc::S_IXUSR == 0);
    only_that && bounded::within(move || attributes::set_mode(&own, mode)).is_some_and(|set| set.is_ok())
}

/// Whether a change would close a directory above something protected or watched, or what is made there: no later run
/// could tell what is in it.
fn closes(change: &Change, place: &Path, layout: &Layout) -> bool {
    let is_above = || layout.watched.iter().any(|watched| watched.path().starts_with(place));
    let mode = match change {
        Change::Mode(mode) => Some(*mode),
        Change::Extended(list) => list.mode_of_owner(),
        _ => None,
    };
    mode.is_some_and(access::is_closed) && (layout.pins.contains(place) || is_above())
}

/// Whether a mount of the run keeps a file from being changed.
fn is_held(layout: Option<&Layout>, place: &Path) -> bool {
    layout.is_some_and(|layout| layout.refuses(place, true))
}

fn is_directory(file: &File) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_dir())
}

/// The change that a call asks for.
fn read(name: &str, args: &[u64; 6], memory: &dyn Memory) -> Result<Change, Outcome> {
    let owner = |at: usize| Ok(Change::Owner(args[at] as u32, args[at + 1] as u32));
    let changed = match name {
        "chmod" | "fchmod" | "fchmodat" | "fchmodat2" => {
            let mode = args[mode_at(name)];
            if mode & SET_USER != 0 {
                return Err(Outcome::Never);
            }
            Ok(Change::Mode(mode as u32 & 0o7777))
        }
        "chown" | "lchown" | "fchown" => owner(1),
        "fchownat" => owner(2),
        "utime" => times(memory, args[1], Unit::Seconds).map(Change::Times),
        "utimes" => times(memory, args[1], Unit::Microseconds).map(Change::Times),
        "futimesat" => times(memory, args[2], Unit::Microseconds).map(Change::Times),
        "utimensat" => times(memory, args[2], Unit::Nanoseconds).map(Change::Times),
        "ioctl" => array(memory, args[2]).map(u32::from_ne_bytes).map(Change::Flags).ok_or(libc::EFAULT),
        _ => extended::read(name, args, memory).map(Change::Extended),
    };
    changed.map_err(Outcome::Fails)
}

/// Whether both times become the present, which who may write to a file may do too.
fn is_now(times: &Times) -> bool {
    times.iter().all(|time| time.tv_nsec == libc::UTIME_NOW)
}

enum Unit {
    /// `struct utimbuf`: two numbers.
    Seconds,
    /// `struct timeval[2]`.
    Microseconds,
    /// `struct timespec[2]`.
    Nanoseconds,
}

fn times(memory: &dyn Memory, address: u64, unit: Unit) -> Result<Times, i32> {
    if address == 0 {
        return Ok(NOW_BOTH);
    }
    let words = if matches!(unit, Unit::Seconds) { 2 } else { 4 };
    let mut bytes = [0; 32];
    let wanted = bytes.get_mut(..words * 8).ok_or(libc::EFAULT)?;
    if memory.read(address, wanted) != wanted.len() {
        return Err(libc::EFAULT);
    }
    let word = |index: usize| {
        let word = bytes.get(index * 8..index * 8 + 8).and_then(|word| word.try_into().ok());
        word.map_or(0, i64::from_ne_bytes)
    };
    let time = |seconds: i64, nanoseconds: i64| libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let micro =
        |value: i64| if (0..1_000_000).contains(&value) { Ok(value * 1000) } else { Err(libc::EINVAL) };
    Ok(match unit {
        Unit::Seconds => [time(word(0), 0), time(word(1), 0)],
        Unit::Microseconds => [time(word(0), micro(word(1))?), time(word(2), micro(word(3))?)],
        Unit::Nanoseconds => [time(word(0), word(1)), time(word(2), word(3))],
    })
}

/// The file that the call means.
fn hold(name: &str, call: &Notification, decoded: &Decoded) -> io::Result<Held> {
    // utimensat with a null path means the descriptor.
    let by_descriptor = matches!(name, "fchmod" | "fchown" | "fsetxattr" | "fremovexattr" | "ioctl")
        || (name == "utimensat" && call.args[1] == 0);
    match decoded.paths.first() {
        Some(argument) if !by_descriptor => reach(call, argument),
        None if !by_descriptor => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        _ => of_caller(call, call.args[0] as i32),
    }
}

fn reach(call: &Notification, argument: &PathArgument) -> io::Result<Held> {
    if argument.path.is_empty() {
        return match argument.dirfd.filter(|_| argument.empty_path_ok) {
            Some(number) => of_caller(call, number),
            None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        };
    }
    caller::reach(call.pid, argument.dirfd, &argument.path, argument.follow)
}

/// A descriptor of the caller.
fn of_caller(call: &Notification, number: i32) -> io::Result<Held> {
    caller::descriptor_of(call.pid, number).map(Held::ByDescriptor)
}

/// What may be written may have its attributes changed, and so may what has no name at all.
fn writable(granted: &[PathRule], layout: Option<&Layout>, place: &Path) -> bool {
    !place.is_absolute() || rules::may_change(granted, layout, place)
}

fn apply(file: &File, change: &Change) -> Result<(), SyscallError> {
    match change {
        Change::Mode(mode) => attributes::set_mode(file, *mode),
        Change::Owner(user, group) => attributes::set_owner(file, *user, *group),
        Change::Times(times) => attributes::set_times(file, times),
        Change::Extended(Extended::Set { name, value, flags }) => {
            attributes::set_extended(file, name, value, *flags)
        }
        Change::Extended(Extended::Removed(name)) => attributes::remove_extended(file, name),
        Change::Flags(flags) => attributes::set_flags(file, *flags),
    }
}
