//! What the profile says about a notified call, what is reported of it, and the answer that it gets where
//! no handler has one.

use crate::explain::caller;
use crate::explain::decode::Decoded;
use crate::explain::hint::{Explainer, Reason, is_for_log};
use crate::plan::calls::Calls;
use crate::plan::{OnViolation, explainer};
use crate::profile::NetworkMode;
use crate::supervise::dispatch::Step;
use crate::supervise::violation::{Confidence, Fate, Kind, Violation, Violations};
use crate::supervise::waiting::{NotifiedCall, Told, Waiting};
use crate::sys::SyscallError;
use crate::sys::seccomp::{Answer, Notification};
use sbx_policy::bpf::{self, Insn};
use sbx_policy::errno::EPERM;
use sbx_policy::interpret::{self, Data};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::rc::Rc;

/// The answer of a kernel without the address family.
const EAFNOSUPPORT: u16 = libc::EAFNOSUPPORT as u16;

/// What the profile and the flags make of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The profile allows it.
    Allowed,
    /// The profile allows it, and wants it noted.
    Noted,
    /// The profile refuses it, and log mode lets it through.
    Logged,
    /// The profile refuses it.
    Violation,
}

/// Knows what the profile says, and reports violations.
pub struct Judge {
    /// Action on a violation.
    pub on_violation: OnViolation,
    /// The policy program, where allowed calls are notified too. Without it every notified call is a
    /// violation.
    pub program: Option<PolicyProgram>,
    /// The network of the run.
    pub network: NetworkMode,
    /// Finds reasons and hints.
    pub explainer: Explainer,
    /// All violations so far.
    pub violations: Violations,
    /// The ports of the run's own loopback at which nobody listened, when all has ended.
    pub unanswered: BTreeSet<u16>,
}

/// The profile's own program, which is laid out when it is first asked.
pub struct PolicyProgram {
    calls: Rc<Calls>,
    unsealed: Option<u32>,
    program: OnceCell<Option<Vec<Insn>>>,
}

impl PolicyProgram {
    /// The program of these calls. With `unsealed`, it allows what the guard leaves to the loader under a
    /// seal for these violations: what becomes of such calls after the seal is not notified.
    pub fn new(calls: Rc<Calls>, unsealed: Option<u32>) -> PolicyProgram {
        PolicyProgram { calls, unsealed, program: OnceCell::new() }
    }

    /// Whether the filter refuses a call by itself, so that nobody is notified.
    pub fn refuses_unseen(&self, notification: &Notification) -> bool {
        self.unseen(notification).is_some()
    }

    /// The error with which the profile refuses a call without a line.
    pub fn unseen(&self, notification: &Notification) -> Option<u16> {
        const ACTION: u32 = 0xffff_0000;
        let action = self.run(&data(notification)).filter(|action| action & ACTION == bpf::RET_ERRNO)?;
        u16::try_from(action & !ACTION).ok()
    }

    /// Whether the profile allows a call.
    pub fn allows(&self, notification: &Notification) -> bool {
        matches!(self.run(&data(notification)), Some(bpf::RET_ALLOW | bpf::RET_LOG))
    }

    /// What the program returns; `None`, which counts as a violation, where it cannot be laid out.
    fn run(&self, data: &Data) -> Option<u32> {
        let lay_out = || match self.unsealed {
            Some(violation) => self.calls.unsealed_program(violation).ok(),
            None => self.calls.strict_program().ok(),
        };
        let program = self.program.get_or_init(lay_out);
        program.as_ref().and_then(|program| interpret::run(program, data))
    }
}

/// Who decided about a call, and by what.
pub enum DecidedBy {
    /// The filter.
    Filter,
    /// The supervisor, by the place that the call is about.
    Place(PathBuf),
    /// The kernel, by what the path rules say about this path.
    PathRules(PathBuf),
    /// The kernel, by what the Landlock domain says about ports and signals.
    Domain,
}

impl Judge {
    /// What the profile and the flags make of a call.
    pub fn verdict(&self, notification: &Notification) -> Verdict {
        match self.program.as_ref().and_then(|program| program.run(&data(notification))) {
            Some(bpf::RET_ALLOW) => Verdict::Allowed,
            Some(bpf::RET_LOG) => Verdict::Noted,
            _ if self.on_violation == OnViolation::Log => Verdict::Logged,
            _ => Verdict::Violation,
        }
    }

    /// Reports a call that no handler has answered, and answers it.
    pub fn answer_plainly(&mut self, waiting: &Waiting<'_>) -> Result<Step, SyscallError> {
        let call = waiting.call;
        if call.verdict != Verdict::Allowed {
            let told = waiting.told();
            if !waiting.still_waits()? {
                return Ok(Step::Settled);
            }
            self.report(call, &told);
        }
        Ok(match (call.verdict, self.on_violation) {
            (Verdict::Allowed | Verdict::Noted | Verdict::Logged, _) => Step::Answer(Answer::Continue),
            (Verdict::Violation, OnViolation::Errno(number)) => Step::Answer(self.error(number, call)),
            (Verdict::Violation, OnViolation::Kill | OnViolation::Log) => Step::EndRun,
        })
    }

    /// What becomes of a call that a handler refuses: what is told, and the answer, which is this error.
    pub fn refusal(&self, errno: i32) -> (Fate, Step) {
        match self.on_violation {
            OnViolation::Kill => (Fate::Ended, Step::EndRun),
            OnViolation::Log => (Fate::WouldBlock, Step::Answer(Answer::Continue)),
            OnViolation::Errno(_) => (Fate::Blocked, Step::Answer(error(errno))),
        }
    }

    /// Reports what the verdict says about a call.
    pub fn report(&mut self, call: &NotifiedCall, told: &Told) {
        let (fate, reason) = match (call.verdict, self.on_violation) {
            (Verdict::Allowed, _) => return,
            (Verdict::Noted, _) => (Fate::Noted, Reason::default()),
            (Verdict::Logged, _) => (Fate::WouldBlock, self.reason(call, told)),
            (Verdict::Violation, OnViolation::Errno(_)) => {
                let reason = self.reason(call, told);
                let Notification { pid, args, .. } = &call.notification;
                let is_told = is_for_log(&call.name, args) && caller::maps(*pid, explainer::NAME);
                (Fate::Blocked, Reason { is_done_without: reason.is_done_without || is_told, ..reason })
            }
            (Verdict::Violation, _) => (Fate::Ended, self.reason(call, told)),
        };
        self.say(fate, call, told, reason, DecidedBy::Filter);
    }

    /// Why the filter refuses a call, and what would allow it.
    pub fn reason(&mut self, call: &NotifiedCall, told: &Told) -> Reason {
        let Notification { pid, .. } = call.notification;
        self.explainer.reason_of(Some(pid), &call.name, &data(&call.notification), &told.decoded)
    }

    /// Reports what became of a call.
    pub fn say(&mut self, fate: Fate, call: &NotifiedCall, told: &Told, reason: Reason, by: DecidedBy) {
        let Decoded { text, paths, address, .. } = &*told.decoded;
        let given = || paths.first().map(|argument| argument.path.clone());
        let of_no_use = reason.hint.is_some() && caller::counts_on_root(told.caller.process);
        let reason = if of_no_use { reason.without_rights() } else { reason };
        let real = |path: PathBuf| Some(path.into_os_string().into_vec());
        let of_call = if address.is_some() { Kind::Address } else { Kind::Syscall };
        let (kind, confidence, path) = match by {
            DecidedBy::Filter => (of_call, Confidence::Observed, given()),
            DecidedBy::Domain if address.is_some() => (of_call, Confidence::Inferred, given()),
            DecidedBy::Domain => (of_call, Confidence::Inferred, None),
            DecidedBy::Place(path) => (Kind::Path, Confidence::Observed, real(path)),
            DecidedBy::PathRules(path) => (Kind::Path, Confidence::Inferred, real(path)),
        };
        let (name, arguments, address) = (call.name.to_string(), text.clone(), address.clone());
        let violation = Violation { fate, kind, confidence, call: name, arguments, path, address, reason };
        self.violations.tell(violation, &told.caller);
    }

    /// The error of a violation. A socket of a network that the run does not have gets the answer of a
    /// kernel without that family, which programs do without: EPERM they take for something that passes,
    /// and some try again for minutes.
    fn error(&self, number: u16, call: &NotifiedCall) -> Answer {
        let family = call.notification.args[0] as i32;
        let is_for_internet = call.name == "socket"
            && self.network == NetworkMode::None
            && matches!(family, libc::AF_INET | libc::AF_INET6);
        Answer::Error(if is_for_internet && number == EPERM { EAFNOSUPPORT } else { number })
    }
}

fn data(notification: &Notification) -> Data {
    Data { nr: notification.nr, arch: notification.arch, args: notification.args }
}

/// An error number as the answer to a call.
pub fn error(errno: i32) -> Answer {
    Answer::Error(u16::try_from(errno).unwrap_or(EPERM))
}
