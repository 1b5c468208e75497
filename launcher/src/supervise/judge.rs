//! What becomes of a notified call, and what is said about it.

use crate::launch::guard::OnViolation;
use crate::launch::namespaces::{CONFIG, Layout};
use crate::launch::policy::{Mode, PathRule};
use crate::launch::resolve::Calls;
use crate::supervise::attributes::{self, Changed, Wanted};
use crate::supervise::broker::{Broker, Brokered};
use crate::supervise::census::Census;
use crate::supervise::decode::{self, Access, Call as Shown, Decoded, ProcessMemory};
use crate::supervise::devices::Null;
use crate::supervise::facts::{self, Caller};
use crate::supervise::infer::{self, Domain, InForce};
use crate::supervise::repository::{self, Asked, Configs};
use crate::supervise::suggest::{Adviser, Reason};
use crate::supervise::violation::{Confidence, Fate, Kind, Violation, Violations};
use crate::sys::seccomp::{self, Answer, Notification};
use crate::sys::{Failed, process};
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::errno::EPERM;
use sbx_policy::interpret::{self, Data};
use sbx_policy::program::X32_BIT;
use std::cell::OnceCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::rc::Rc;

/// Whether the run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    GoOn,
    /// The first violation ends it.
    EndRun,
}

/// Decides about notified calls.
pub struct Judge<'a> {
    /// What a violation meets.
    pub on_violation: OnViolation,
    /// The profile's own program, where calls are notified that it allows: to be noted, or to have their
    /// paths looked at.
    pub strict: Option<Strict>,
    /// The path rules in force, with resolved paths.
    pub granted: Vec<PathRule>,
    /// What Landlock restricts besides.
    pub domain: Domain,
    /// Whether refused paths are to be named.
    pub watch_paths: bool,
    /// What is opened for writing where nothing else is.
    pub null: Null,
    /// Whether the supervisor changes modes, owners and times.
    pub attributes: bool,
    /// What is mounted for the run alone.
    pub layout: Option<Rc<Layout>>,
    /// Configurations of git that the supervisor replaces.
    pub configs: Option<Configs>,
    /// Connections to UNIX sockets, and inside a network of the run's own, where the supervisor makes them.
    pub broker: Option<Broker>,
    /// How many tasks there may be, where the supervisor counts them.
    pub census: Option<Census>,
    /// What is said about a violation.
    pub adviser: Adviser<'a>,
    /// All violations so far.
    pub violations: Violations,
}

/// The profile's own program, laid out when it is first asked.
pub struct Strict {
    calls: Rc<Calls>,
    unsealed: Option<u32>,
    program: OnceCell<Option<Vec<Insn>>>,
}

impl Strict {
    /// Of these calls; `unsealed` with what the guard leaves to the loader under a seal for these violations, for what comes
    /// of that afterwards is not asked here.
    pub fn new(calls: Rc<Calls>, unsealed: Option<u32>) -> Strict {
        Strict { calls, unsealed, program: OnceCell::new() }
    }

    /// What it returns; `None` where it can't be laid out, which counts as a refusal.
    fn ask(&self, data: &Data) -> Option<u32> {
        let lay_out = || match self.unsealed {
            Some(violation) => self.calls.unsealed_program(violation).ok(),
            None => self.calls.strict_program().ok(),
        };
        let program = self.program.get_or_init(lay_out);
        program.as_ref().and_then(|program| interpret::run(program, data))
    }
}

/// What a kernel without IPv4 answers.
const EAFNOSUPPORT: u16 = libc::EAFNOSUPPORT as u16;

/// Why a configuration that is harmless is not taken.
const SHARED: &str =
    "another run is in this repository, and could change what takes the place of its configuration";

fn error(errno: i32) -> Answer {
    Answer::Error(u16::try_from(errno).unwrap_or(EPERM))
}

/// What decided about a call.
enum About {
    /// The filter.
    Call,
    /// The supervisor, by the path that the call is about.
    Place(PathBuf),
    /// The kernel, by what the path rules say about this path.
    Rules(PathBuf),
    /// The kernel, by what the Landlock domain says about ports and signals.
    Domain,
}

/// What the profile says about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    Violation,
    Noted,
    Allowed,
}

impl Judge<'_> {
    /// Takes the next notification and answers it.
    pub fn notified(&mut self, listener: BorrowedFd<'_>) -> Result<Verdict, Failed> {
        let Some(notification) = seccomp::receive(listener)? else { return Ok(Verdict::GoOn) };
        let finding = self.find(&notification);
        let name = name(&notification);
        if finding == Finding::Allowed && self.counted(listener, &name, &notification)? {
            return Ok(Verdict::GoOn);
        }
        if finding == Finding::Allowed && self.replaces(listener, &name, &notification)? {
            return Ok(Verdict::GoOn);
        }
        let shown = Shown { name: &name, args: notification.args, foreign: notification.nr & X32_BIT != 0 };
        let memory = ProcessMemory::new(notification.pid);
        let mut decoded = decode::decode(&shown, &memory);
        if shown.foreign {
            // Their arguments mean nothing here, and would make each call another violation.
            decoded.text.clear();
        }
        let caller = facts::caller(notification.pid);
        let refused_path = self.refused_path(&name, &notification, &decoded, &caller);
        let wanted =
            self.attributes.then(|| attributes::look(&name, &notification, &decoded, &memory)).flatten();
        let connects = self.broker.is_some() && name == "connect" && finding == Finding::Violation;
        // Before it is asked whether this is the caller's number still; afterwards it may be another's at any time.
        let held = connects.then(|| process::open_pid(caller.process));
        // What was read is worth something only if the caller waits still: its number could have been reused.
        if !seccomp::still_waits(listener, notification.id)? {
            return Ok(Verdict::GoOn);
        }
        if let Some(answer) = held.and_then(|held| self.brokered(&notification, &decoded, &memory, held)) {
            seccomp::answer(listener, notification.id, answer)?;
            return Ok(Verdict::GoOn);
        }
        if finding == Finding::Violation
            && self.on_violation != OnViolation::Log
            && let Some(device) = self.null.opened(&name, &notification, &decoded)
            && seccomp::answer_with(listener, notification.id, device.file.as_fd(), device.close_on_exec)
                .is_ok()
        {
            return Ok(Verdict::GoOn);
        }
        if let Some(wanted) = wanted
            && let Some(answer) = self.changed(&name, finding, &notification, &decoded, wanted, &caller)
        {
            seccomp::answer(listener, notification.id, answer)?;
            return Ok(Verdict::GoOn);
        }
        if let Some((path, access)) = refused_path.filter(|_| finding != Finding::Violation) {
            let reason = self.adviser.path_reason(&path, access);
            self.say(Fate::Blocked, &name, &decoded, reason, About::Rules(path), &caller);
        }
        if self.watch_paths
            && finding != Finding::Violation
            && let Some(beyond) = self.domain.refused(&name, &notification, &decoded)
        {
            let reason = self.adviser.beyond_reason(beyond);
            self.say(Fate::Blocked, &name, &decoded, reason, About::Domain, &caller);
        }
        match finding {
            Finding::Violation => {
                let reason =
                    self.adviser.reason_of(Some(notification.pid), &name, &data(&notification), &decoded);
                self.say(self.fate(), &name, &decoded, reason, About::Call, &caller);
            }
            Finding::Noted => {
                self.say(Fate::Noted, &name, &decoded, Reason::default(), About::Call, &caller);
            }
            Finding::Allowed => {}
        }
        let Some(mut answer) = self.answer(finding) else {
            // It waits until it is killed. Were it the first to end, others would go on for a moment.
            return Ok(Verdict::EndRun);
        };
        if answer == Answer::Error(EPERM) && self.is_for_internet(&name, &notification) {
            answer = Answer::Error(EAFNOSUPPORT);
        }
        if answer == Answer::Continue && self.counted(listener, &name, &notification)? {
            return Ok(Verdict::GoOn);
        }
        seccomp::answer(listener, notification.id, answer)?;
        Ok(Verdict::GoOn)
    }

    /// Whether the call makes a task and is therefore the census's to answer.
    fn counted(&mut self, listener: BorrowedFd<'_>, name: &str, call: &Notification) -> Result<bool, Failed> {
        let Some(census) = self.census.as_mut().filter(|_| Census::concerns(name)) else { return Ok(false) };
        census.asked(listener, call).map(|()| true)
    }

    /// Whether the call would replace a file, and the answer is found here: where it is a configuration of git, or nobody
    /// wants to know more about it.
    fn replaces(
        &mut self,
        listener: BorrowedFd<'_>,
        name: &str,
        call: &Notification,
    ) -> Result<bool, Failed> {
        let Some(configs) = self.configs.as_mut().filter(|_| repository::CALLS.contains(&name)) else {
            return Ok(false);
        };
        let memory = ProcessMemory::new(call.pid);
        let Some(place) = configs.concerned(name, call, &memory) else {
            if !self.watch_paths {
                seccomp::answer(listener, call.id, Answer::Continue)?;
            }
            return Ok(!self.watch_paths);
        };
        if !seccomp::still_waits(listener, call.id)? {
            return Ok(true);
        }
        let (reason, errno) = match configs.replace(&place, call.id)? {
            Asked::Waits => return Ok(true),
            Asked::Fails(errno) => {
                seccomp::answer(listener, call.id, error(errno))?;
                return Ok(true);
            }
            Asked::Harmful(harm) => (Reason::always(&harm.to_string()), libc::EPERM),
            Asked::Shared => (Reason::always(SHARED), libc::EBUSY),
        };
        let shown = Shown { name, args: call.args, foreign: false };
        let decoded = decode::decode(&shown, &memory);
        let about = About::Place(place.join(CONFIG));
        self.say(Fate::Blocked, name, &decoded, reason, about, &facts::caller(call.pid));
        seccomp::answer(listener, call.id, error(errno))?;
        Ok(true)
    }

    /// The new configuration with this number is shielded, so it can be put in its place.
    pub fn shielded(&mut self, listener: Option<BorrowedFd<'_>>, number: u32) -> Result<(), Failed> {
        let Some(configs) = &mut self.configs else { return Ok(()) };
        match (configs.covered(number)?, listener) {
            (Some((id, failed)), Some(listener)) => {
                seccomp::answer(listener, id, failed.map_or(Answer::Done, error))
            }
            _ => Ok(()),
        }
    }

    /// The answer to a change of attributes, which path rules decide about in log mode too.
    fn changed(
        &mut self,
        name: &str,
        finding: Finding,
        call: &Notification,
        decoded: &Decoded,
        wanted: Wanted,
        caller: &Caller,
    ) -> Option<Answer> {
        let finding = wanted.stands_for(name, call).map_or(finding, |other| self.find(&other));
        if finding == Finding::Violation {
            if self.on_violation != OnViolation::Log {
                return None;
            }
            let reason = self.adviser.reason_of(Some(call.pid), name, &data(call), decoded);
            self.say(Fate::WouldBlock, name, decoded, reason, About::Call, caller);
        }
        Some(match wanted.change(&self.granted, self.layout.as_deref()) {
            Changed::Done => Answer::Done,
            Changed::Fails(errno) => error(errno),
            Changed::Refused(place) => {
                let reason = self.adviser.path_reason(&place, Access::WRITE);
                self.say(Fate::Blocked, name, decoded, reason, About::Place(place), caller);
                Answer::Error(EPERM)
            }
            Changed::Never => {
                let reason = Reason::always("no file gets a set-user-ID or set-group-ID bit");
                self.say(Fate::Blocked, name, decoded, reason, About::Call, caller);
                Answer::Error(EPERM)
            }
        })
    }

    /// The answer to a connection that the broker made, or that would have failed anyway.
    fn brokered(
        &self,
        call: &Notification,
        decoded: &Decoded,
        memory: &ProcessMemory,
        caller: Result<OwnedFd, Failed>,
    ) -> Option<Answer> {
        match self.broker.as_ref()?.connect(call, decoded, memory, caller) {
            Brokered::Done => Some(Answer::Done),
            Brokered::Fails(errno) => Some(error(errno)),
            Brokered::Refused => None,
        }
    }

    /// Whether a call makes a socket for a network that the run does not have. Programs do without such a family; EPERM
    /// they take for something that passes, and some try again for minutes.
    fn is_for_internet(&self, name: &str, call: &Notification) -> bool {
        let family = call.args[0] as i32;
        name == "socket"
            && self.domain.network.mode == Mode::None
            && matches!(family, libc::AF_INET | libc::AF_INET6)
    }

    fn find(&self, notification: &Notification) -> Finding {
        let Some(strict) = &self.strict else { return Finding::Violation };
        match strict.ask(&data(notification)) {
            Some(bpf::RET_ALLOW) => Finding::Allowed,
            Some(bpf::RET_LOG) => Finding::Noted,
            _ => Finding::Violation,
        }
    }

    fn fate(&self) -> Fate {
        match self.on_violation {
            OnViolation::Errno(_) => Fate::Blocked,
            OnViolation::Kill => Fate::Ended,
            OnViolation::Log => Fate::WouldBlock,
        }
    }

    /// The answer; `None` where the run is to end.
    fn answer(&self, finding: Finding) -> Option<Answer> {
        match (finding, self.on_violation) {
            (Finding::Allowed | Finding::Noted, _) | (_, OnViolation::Log) => Some(Answer::Continue),
            (Finding::Violation, OnViolation::Errno(number)) => Some(Answer::Error(number)),
            (Finding::Violation, OnViolation::Kill) => None,
        }
    }

    fn say(
        &mut self,
        fate: Fate,
        call: &str,
        decoded: &Decoded,
        reason: Reason,
        about: About,
        caller: &Caller,
    ) {
        let given = || decoded.paths.first().map(|argument| argument.path.clone());
        let (kind, confidence, path) = match about {
            About::Call if decoded.address.is_some() => (Kind::Address, Confidence::Observed, given()),
            About::Call => (Kind::Syscall, Confidence::Observed, given()),
            About::Domain if decoded.address.is_some() => (Kind::Address, Confidence::Inferred, given()),
            About::Domain => (Kind::Syscall, Confidence::Inferred, None),
            About::Place(path) => (Kind::Path, Confidence::Observed, Some(path.into_os_string().into_vec())),
            About::Rules(path) => (Kind::Path, Confidence::Inferred, Some(path.into_os_string().into_vec())),
        };
        let (call, arguments) = (call.to_string(), decoded.text.clone());
        let address = decoded.address.clone();
        let violation = Violation { fate, kind, confidence, call, arguments, path, address, reason };
        if !self.violations.again(&violation, caller) {
            self.violations.add(violation, caller);
        }
    }

    /// The first path that the path rules refuse.
    fn refused_path(
        &self,
        name: &str,
        call: &Notification,
        decoded: &Decoded,
        caller: &Caller,
    ) -> Option<infer::Refused> {
        if !self.watch_paths || call.nr & X32_BIT != 0 {
            return None;
        }
        let in_force = InForce { rules: &self.granted, layout: self.layout.as_deref() };
        infer::refused(in_force, name, call, decoded, caller)
    }
}

fn data(notification: &Notification) -> Data {
    Data { nr: notification.nr, arch: notification.arch, args: notification.args }
}

fn name(notification: &Notification) -> String {
    let number = notification.nr & !X32_BIT;
    let known = Call::numbered(Arch::HOST, number).map(|call| call.name().to_string());
    known.unwrap_or_else(|| format!("syscall {number}"))
}
