//! Reads what the explainer library tells: the calls on paths that were refused, and those that found nothing.
//!
//! The library is the command's: what it tells may be made up. So each call is taken as one that is about to be made,
//! and the rules in force say whether they would refuse it. What they would not refuse is not reported.
//!
//! Most programs that turn an error into words end soon, and tell it then. Others do without what they did not get.
//! Only a shell goes on after its user was refused something: it is about to write the words, so the line comes a
//! moment later, and not in the middle of its own.

use crate::explain::caller;
use crate::explain::decode::Memory;
use crate::explain::hint::{is_done_without, is_for_log};
use crate::explain::infer::Beyond;
use crate::plan::calls::Calls;
use crate::plan::files::tidy;
use crate::plan::limits::LimitKey;
use crate::plan::notified;
use crate::supervise::dispatch::{Flow, Handler, Step};
use crate::supervise::findings::{Findings, Sought};
use crate::supervise::handlers::refused_paths::RefusedPaths;
use crate::supervise::judge::{Judge, PolicyProgram, Verdict, error};
use crate::supervise::waiting::{NotifiedCall, Waiting};
use crate::sys::SyscallError;
use crate::sys::path;
use crate::sys::process::Pid;
use crate::sys::seccomp::{Answer, Notification};
use sbx_policy::tell::{GAINS, MOST, Record, SIZE, SPOKEN, TELL};
use std::cell::{LazyCell, OnceCell};
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long a program has to write its own words.
const MOMENT: Duration = Duration::from_millis(20);

/// Knows the rules in force.
pub struct Told {
    paths: RefusedPaths,
    /// What is said when its time has come.
    waiting: Vec<(Instant, NotifiedCall, Findings)>,
    shells: Shells,
    /// What the filter refuses has been reported already.
    program: PolicyProgram,
    /// Whether all calls but those that only look at a file are notified, so that most have been reported.
    all_are_notified: bool,
}

impl Told {
    /// By these rules.
    pub fn new(paths: RefusedPaths, calls: Rc<Calls>, all_are_notified: bool) -> Told {
        Told {
            paths,
            waiting: Vec::new(),
            shells: Shells::default(),
            program: PolicyProgram::new(calls, None),
            all_are_notified,
        }
    }

    /// Says what is due, or all.
    fn say(&mut self, judge: &mut Judge, now: Option<Instant>) {
        let due = self.waiting.extract_if(.., |(due, ..)| now.is_none_or(|now| *due <= now));
        let mut due: Vec<_> = due.collect();
        // Programs look at a file before they use it: that is one refusal.
        due.sort_by_key(|(_, _, findings)| findings.only_looks());
        for (_, call, findings) in due {
            if !findings.are_known(&judge.violations) && !findings.adds_nothing(judge) {
                self.paths.say(findings, &call, judge);
            }
        }
    }

    /// The file that a call could not give another name, where that fails outside too.
    fn immovable(&self, waiting: &Waiting<'_>, record: &Record) -> Option<Vec<u8>> {
        let is_moving = record.error == libc::EXDEV as u32;
        let call = is_moving.then(|| NotifiedCall::new(of(waiting, record), Verdict::Allowed))?;
        self.paths.immovable(&Waiting::new(&call, waiting.listener()))
    }

    /// What the rules refuse of the calls, as far as it is what the program failed by.
    fn found(&self, waiting: &Waiting<'_>, records: &[Record]) -> Vec<(NotifiedCall, Findings)> {
        let sought = LazyCell::new(|| Sought::of(waiting, records));
        let mut found: Vec<_> =
            records.iter().filter_map(|record| self.meant(waiting, record, (records, &sought))).collect();
        // A directory that is opened to the command has what is in it.
        let above: Vec<PathBuf> = found
            .iter()
            .filter_map(|(_, findings)| findings.hidden(&self.paths))
            .map(Path::to_path_buf)
            .collect();
        found.retain(|(_, findings)| !above.iter().any(|directory| findings.is_below(directory)));
        let immovable: Vec<Vec<u8>> =
            records.iter().filter_map(|record| self.immovable(waiting, record)).collect();
        found.retain(|(_, findings)| !immovable.iter().any(|path| findings.given() == Some(path)));
        // Whatever else it was refused is of no use to a program without the rights that it counts on. Without a group
        // it may do, but for one that others start for themselves.
        if found.iter().any(|(_, findings)| findings.wants_rights()) {
            let process = waiting.call.notification.pid;
            let explains = |findings: &Findings| !findings.wants_rights() && !findings.is_by_filter();
            let is_useless =
                counts_on_rights(process) || !found.iter().any(|(_, findings)| explains(findings));
            found.retain(|(_, findings)| findings.wants_rights() == is_useless);
        }
        found
    }

    /// What the rules refuse of one of these calls, unless its program did without.
    fn meant(
        &self,
        waiting: &Waiting<'_>,
        record: &Record,
        (all, sought): (&[Record], &LazyCell<Sought, impl FnOnce() -> Sought>),
    ) -> Option<(NotifiedCall, Findings)> {
        let (call, findings) = self.finding(waiting, record)?;
        let process = call.notification.pid;
        let is_argument = LazyCell::new(|| findings.is_argument());
        let is_shell = LazyCell::new(|| self.shells.is_one(process));
        // What the kernel closes of other processes of the run, programs that list processes do without.
        if findings.of_process() && !*is_argument {
            return None;
        }
        // A group may only keep others from tracing a program (ssh-agent): it is missed where something is refused.
        let is_refused = |other: &Record| matches!(other.error as i32, libc::EPERM | libc::EACCES);
        if findings.wants_rights() && !counts_on_rights(process) && !all.iter().any(is_refused) {
            return None;
        }
        let is_missing = matches!(record.error as i32, libc::ENOENT | libc::ENOSYS | libc::ESRCH)
            || call.name == "sendto"
            || findings.is_by_filter();
        // Who speaks of an error late has failed in other calls since.
        let is_of_user = || {
            let is_of_spoken = |other: &Record| other.flags & SPOKEN != 0 && other.error == record.error;
            all.iter().any(is_of_spoken) && findings.is_users_own(&self.paths)
        };
        let is_spoken = record.flags & SPOKEN != 0;
        let is_meant =
            || is_spoken || *is_argument || is_of_user() || findings.is_beside(&self.paths, sought);
        let is_weak = is_missing && !is_meant();
        // What a shell lists, its script says.
        let is_unasked_list = findings.listed().is_some() && !*is_argument && !*is_shell;
        // A shell looks for commands and files that it does without.
        let is_last = || {
            all.last().is_some_and(|last| last.order == record.order) && !(findings.only_looks() && *is_shell)
        };
        let is_said = !is_weak || is_last() && !findings.is_manifest_above(sought);
        // What such a program was refused says that it gains no rights.
        let is_weak = is_weak || (findings.wants_rights() && caller::counts_on_root(process));
        is_said.then_some((call, Findings { is_weak, is_unasked_list, ..findings }))
    }

    /// What the rules refuse of a call.
    fn finding(&self, waiting: &Waiting<'_>, record: &Record) -> Option<(NotifiedCall, Findings)> {
        let notification = of(waiting, record);
        let is_allowed = self.program.allows(&notification);
        let call = NotifiedCall::new(notification, Verdict::Allowed);
        let is_unsaid = || {
            let args = &notification.args;
            let has_no_line = is_done_without(&call.name, args) || is_for_log(&call.name, args);
            has_no_line || self.program.refuses_unseen(&notification)
        };
        if !is_allowed && !is_unsaid() {
            return None;
        }
        let about = Waiting::new(&call, waiting.listener());
        if !is_allowed {
            let findings = Findings::by_filter(about.told());
            return Some((call, findings));
        }
        if let Some(beyond) = beyond_paths(record, &call) {
            let findings = Findings::of(beyond, about.told());
            return Some((call, findings));
        }
        if call.name == "sendto" {
            let findings = self.paths.find_datagram(&about)?;
            return Some((call, findings));
        }
        let is_of_attributes = notified::changes_attributes(&call.name);
        let findings = if is_of_attributes { None } else { self.paths.find(&about, true) };
        let Some(findings) = findings else {
            let is_refused = matches!(record.error as i32, libc::EPERM | libc::EACCES);
            let findings = is_refused.then(|| self.paths.find_capability(&about)).flatten()?;
            return Some((call, findings));
        };
        let is_known =
            self.all_are_notified && !findings.only_looks() && self.paths.find(&about, false).is_some();
        (!is_known).then_some((call, findings))
    }
}

/// What is made of what a program tells.
pub enum Heard {
    /// This is said, after a while.
    Now(Vec<(NotifiedCall, Findings)>, Duration),
    /// It is to be told again if the program fails.
    Later,
}

/// The programs that the system calls shells (shells(5)), by their real paths.
#[derive(Default)]
pub struct Shells(OnceCell<Vec<PathBuf>>);

impl Shells {
    /// Whether a process runs one.
    pub fn is_one(&self, process: Pid) -> bool {
        let read = || {
            let list = std::fs::read_to_string("/etc/shells").unwrap_or_default();
            let paths = list.lines().filter(|line| line.starts_with('/'));
            paths.filter_map(|path| path::real(Path::new(path.trim())).ok()).collect()
        };
        let program = std::fs::read_link(format!("/proc/{process}/exe"));
        program.is_ok_and(|program| self.0.get_or_init(read).contains(&program))
    }
}

impl Handler for Told {
    type Copy = Heard;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Self::Copy> {
        let [option, _, _, speaks, ..] = waiting.call.notification.args;
        if option as u32 != TELL {
            return None;
        }
        let goes_on = speaks != 0 && !self.shells.is_one(waiting.call.notification.pid);
        let pause = match speaks {
            // What was held until the program ends comes first.
            0 if !self.all_are_notified => Duration::ZERO,
            _ => MOMENT,
        };
        let records = records(waiting);
        // What a mount keeps as it is fails in one of these ways.
        let by_mount = |record: &Record| matches!(record.error as i32, libc::EROFS | libc::EBUSY);
        if goes_on && !records.iter().any(by_mount) {
            return Some(Heard::Later);
        }
        let found = self.found(waiting, &records);
        // A program that has spoken of a protected file may go on as if that had its new content.
        if goes_on && !found.iter().any(|(_, findings)| findings.is_of_protected(&self.paths)) {
            return Some(Heard::Later);
        }
        Some(Heard::Now(found, pause))
    }

    fn act(&mut self, heard: Heard, _: &NotifiedCall, judge: &mut Judge) -> Result<Step, SyscallError> {
        let Heard::Now(mut found, pause) = heard else {
            return Ok(Step::Answer(error(libc::EAGAIN)));
        };
        // Programs list a directory for the files in it that are open to them, and do without the list.
        found.retain(|(_, findings)| {
            let listed = findings.listed().filter(|_| findings.is_unasked_list);
            !listed.is_some_and(|directory| judge.explainer.opens_below(directory))
        });
        let due = Instant::now() + pause;
        self.waiting.extend(found.into_iter().map(|(call, findings)| (due, call, findings)));
        Ok(Step::Answer(Answer::Done))
    }

    fn pause(&self) -> Option<Duration> {
        let next = self.waiting.iter().map(|(due, ..)| *due).min();
        next.map(|due| due.saturating_duration_since(Instant::now()))
    }

    fn retry(&mut self, _: BorrowedFd<'_>, judge: &mut Judge) -> Result<Flow, SyscallError> {
        self.say(judge, Some(Instant::now()));
        Ok(Flow::GoOn)
    }

    fn end(&mut self, judge: &mut Judge) {
        self.say(judge, None);
    }
}

/// What a program tells, in the order in which it happened.
fn records(waiting: &Waiting<'_>) -> Vec<Record> {
    let [_, address, count, ..] = waiting.call.notification.args;
    let mut bytes = vec![0; SIZE * MOST.min(usize::try_from(count).unwrap_or(MOST))];
    let read = waiting.memory.read(address, &mut bytes);
    let records = bytes[..read].chunks_exact(SIZE).filter_map(Record::read);
    let mut records: Vec<Record> = records.filter(|record| record.number != 0).collect();
    records.sort_by_key(|record| record.order);
    records
}

/// The call of a record, as one that its caller is about to make.
fn of(waiting: &Waiting<'_>, record: &Record) -> Notification {
    Notification { nr: record.number, args: record.args, ..waiting.call.notification }
}

/// Whether a program does nothing without the rights that its file would give it.
fn counts_on_rights(process: Pid) -> bool {
    caller::would_gain(process) || caller::is_helper(process)
}

impl Sought {
    /// Of a program, by the calls that it tells.
    fn of(waiting: &Waiting<'_>, records: &[Record]) -> Sought {
        let directory = caller::named(waiting.call.notification.pid, None).ok();
        let named = |record: &Record| {
            let call = NotifiedCall::new(of(waiting, record), Verdict::Allowed);
            let about = Waiting::new(&call, waiting.listener());
            let argument = about.decoded().paths.first()?;
            Some(tidy(&directory.as_deref()?.join(OsStr::from_bytes(&argument.path))))
        };
        let paths = records.iter().filter_map(named).collect();
        Sought { directory, paths }
    }
}

/// What else than a rule about paths refused a call, or ended a child.
fn beyond_paths(record: &Record, call: &NotifiedCall) -> Option<Beyond> {
    match (&*call.name, record.error as i32) {
        _ if record.flags & GAINS != 0 => {
            let process = call.notification.pid;
            let gains = caller::would_gain(process) || caller::would_join(process);
            gains.then(|| Beyond::Gain { by_helper: caller::is_helper(process) })
        }
        ("wait4", libc::SIGXFSZ) => Some(Beyond::Limit(LimitKey::FileSize)),
        ("wait4", libc::SIGXCPU) => Some(Beyond::Limit(LimitKey::Cpu)),
        ("prlimit64", libc::EPERM | libc::EINVAL)
            if call.notification.args[1] == libc::RLIMIT_CORE as u64 =>
        {
            Some(Beyond::Cores)
        }
        (_, libc::EFBIG) => Some(Beyond::Limit(LimitKey::FileSize)),
        (_, libc::EMFILE) => Some(Beyond::Limit(LimitKey::OpenFiles)),
        _ => None,
    }
}
