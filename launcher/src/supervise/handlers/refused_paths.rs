//! Names the paths, ports and signals that Landlock is going to refuse (`--explain`, `--log-violations`):
//! the kernel does not report its denials.
//!
//! The kernel decides about the call afterwards. A wrong guess changes nothing but a line.

use crate::explain::caller;
use crate::explain::decode::Address;
use crate::explain::hint::Reason;
use crate::explain::infer::{self, Beyond, Domain, InForce};
use crate::explain::servers::{self, Protocol};
use crate::explain::unprivileged::{self, Closed};
use crate::explain::walk::Viewer;
use crate::plan::limits::LimitKey;
use crate::plan::namespaces::Layout;
use crate::plan::notified::SOCKETS;
use crate::plan::rules::PathRule;
use crate::supervise::dispatch::{Flow, Handler, Step};
use crate::supervise::findings::Findings;
use crate::supervise::handlers::told::Shells;
use crate::supervise::judge::{DecidedBy, Judge, Verdict};
use crate::supervise::violation::Fate;
use crate::supervise::waiting::{NotifiedCall, Told, Waiting};
use crate::sys::SyscallError;
use crate::sys::privilege::CapabilitySet;
use crate::sys::process::{self, Pid};
use crate::sys::seccomp::Answer;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long a refusal waits for the end of a program that runs on.
const LONGEST: Duration = Duration::from_secs(1);

/// Longer than any program runs.
const EVER: Duration = Duration::from_secs(1 << 20);

/// Maximum number of refusals that wait: a command can provoke any number.
const MOST: usize = 1024;

/// Knows the rules in force.
pub struct RefusedPaths {
    /// The path rules, with resolved paths.
    pub granted: Rc<[PathRule]>,
    /// What is mounted for the run alone.
    pub layout: Option<Rc<Layout>>,
    /// What Landlock restricts besides.
    pub domain: Domain,
    /// The capabilities that the user has outside.
    pub outside: CapabilitySet,
}

/// A process that a caller names, and that is not there for it.
enum Named {
    /// It is outside.
    Outside(Pid),
    /// It was one of the run's: between the numbers of its command and the caller, all were.
    Ended,
}

impl RefusedPaths {
    /// What the rules refuse of a call that is about to be made, or has failed.
    pub fn find(&self, waiting: &Waiting<'_>, has_failed: bool) -> Option<Findings> {
        let NotifiedCall { notification, name, .. } = waiting.call;
        let told = waiting.told();
        let version = self.domain.version;
        let layout = self.layout.as_deref();
        let in_force = InForce { version, rules: &self.granted, layout, has_failed };
        let path = if waiting.call.is_x32() {
            None
        } else {
            infer::refused(in_force, name, notification, &told.decoded, &told.caller)
        };
        let mut beyond = self.domain.refused(name, notification, &told.decoded);
        let mut path = path;
        match self.process_named(&told).filter(|_| has_failed) {
            Some(Named::Outside(process)) => (path, beyond) = (None, Some(Beyond::Process(process))),
            Some(Named::Ended) => return None,
            None => {}
        }
        (path.is_some() || beyond.is_some()).then(|| Findings::new(path, beyond, told))
    }

    /// The process that a caller has not found, by a file of it or by its number: its own /proc has no such number.
    fn process_named(&self, told: &Told) -> Option<Named> {
        self.layout.as_ref()?;
        let named = told.decoded.process;
        let of_path = || {
            let path = Path::new(OsStr::from_bytes(&told.decoded.paths.first()?.path));
            path.strip_prefix("/proc").ok()?.iter().next()?.to_str()?.parse().ok()
        };
        let process: Pid = named.or_else(of_path).filter(|process| *process > 0)?;
        let number = process.to_string();
        let inside = Path::new("/proc").join(told.caller.process.to_string()).join("root/proc").join(&number);
        if inside.exists() || !Path::new("/proc").join(&number).exists() {
            return None;
        }
        // Numbers are given in turn.
        let first = caller::eldest(told.caller.process).and_then(process::number_inside);
        let own = process::number_inside(told.caller.process);
        if first.zip(own).is_some_and(|(first, own)| (first..own).contains(&process)) {
            return Some(Named::Ended);
        }
        // A number that nobody wrote down may be that of a child that has ended.
        let is_meant = caller::names_number(told.caller.process, process);
        // Outside the user could do no more with it.
        let is_closed = || {
            named.is_some() && !process::can_signal(process) && !self.outside.contains(CapabilitySet::KILL)
        };
        (is_meant && !is_closed()).then_some(Named::Outside(process))
    }

    /// The TCP port that is going to be refused.
    pub fn find_port(&self, waiting: &Waiting<'_>) -> Option<Findings> {
        let NotifiedCall { notification, name, .. } = waiting.call;
        let beyond = self.domain.refused(name, notification, waiting.decoded())?;
        Some(Findings::of(beyond, waiting.told()))
    }

    /// The file that a call cannot give another name, here or outside.
    pub fn immovable(&self, waiting: &Waiting<'_>) -> Option<Vec<u8>> {
        let NotifiedCall { notification, name, .. } = waiting.call;
        if !name.starts_with("rename") {
            return None;
        }
        let told = waiting.told();
        let viewer =
            Viewer { thread: notification.pid, caller: &told.caller, layout: self.layout.as_deref() };
        let path = || told.decoded.paths.first().map(|argument| argument.path.clone());
        infer::cannot_move(name, &told.decoded, &viewer).then(path).flatten()
    }

    /// A datagram that is lost, because its receiver is not in the run's own network.
    pub fn find_datagram(&self, waiting: &Waiting<'_>) -> Option<Findings> {
        let told = waiting.told();
        let Some(Address::Inet { ip, port }) = told.decoded.address else { return None };
        let address = SocketAddr::new(ip, port);
        let inside = told.caller.process.to_string();
        let own = caller::network("self").ok()? != caller::network(&inside).ok()?;
        let waits = |process: &str| servers::waits(process, Protocol::Udp, address);
        let hosts = ip.to_canonical().is_loopback();
        let is_lost = own && port != 0 && if hosts { !waits(&inside) && waits("self") } else { true };
        is_lost.then(|| Findings::of(Beyond::Datagram { hosts, port }, told))
    }

    /// What a call lacked that has failed with EPERM or EACCES, where it is a capability that the user has outside.
    pub fn find_capability(&self, waiting: &Waiting<'_>) -> Option<Findings> {
        if self.outside.is_empty() {
            return None;
        }
        let NotifiedCall { notification, name, .. } = waiting.call;
        let told = waiting.told();
        let viewer =
            Viewer { thread: notification.pid, caller: &told.caller, layout: self.layout.as_deref() };
        let closed = unprivileged::refused(name, &told.decoded, &viewer)?;
        let is_lacking = self.outside.intersects(closed.any_of);
        is_lacking.then(|| Findings::of(Beyond::Capability(closed), told))
    }

    /// Reports what is going to be refused of a call.
    pub fn say(&self, findings: Findings, call: &NotifiedCall, judge: &mut Judge) {
        let Findings { path, beyond, by_filter, told, .. } = findings;
        if by_filter {
            let reason = Reason { is_done_without: false, ..judge.reason(call, &told) };
            judge.say(Fate::Blocked, call, &told, reason, DecidedBy::Filter);
        }
        if let Some((path, access)) = path {
            let reason = judge.explainer.path_reason(&path, access);
            judge.say(Fate::Blocked, call, &told, reason, DecidedBy::PathRules(path));
        }
        // A limit of the caller's is none of ours.
        let is_ours = |beyond: &Beyond| match beyond {
            Beyond::Limit(key) => judge.explainer.has_limit(*key),
            _ => true,
        };
        if let Some(beyond) = beyond.filter(is_ours) {
            let by = match &beyond {
                Beyond::Capability(Closed { path: Some(path), .. }) => DecidedBy::PathRules(path.clone()),
                _ => DecidedBy::Domain,
            };
            let reason = judge.explainer.beyond_reason(beyond);
            judge.say(Fate::Blocked, call, &told, reason, by);
        }
    }
}

/// Whose calls are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of every program.
    All,
    /// Those of static programs: others load the explainer library.
    StaticCode,
}

/// Names refusals as they come, or once it is known that the program has not done without.
pub struct Refusals {
    paths: RefusedPaths,
    shells: Shells,
    whose: Whose,
    /// Whether every refusal is named at once.
    at_once: bool,
    /// What waits for the end of its program, or for its time.
    held: Vec<(Instant, NotifiedCall, Findings)>,
    /// Files that processes could not rename outside either.
    immovable: Vec<(Pid, Vec<u8>)>,
}

/// What a call is to the handler.
pub enum Seen {
    /// It is going to be refused.
    Refused(Findings, Hold),
    /// The profile may refuse it without a line.
    Unsaid(Told),
    /// The process ends, and has failed or not.
    Ended(Pid, bool),
    /// It tries to rename a file that permissions keep in its place.
    Immovable(Pid, Vec<u8>),
}

/// Whether a refusal may wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A shell goes on with its script after its own refusals.
    No,
    /// Programs look for much that they do without.
    Yes,
    /// However long the program runs.
    ToTheEnd,
}

impl Refusals {
    /// By these rules.
    pub fn new(paths: RefusedPaths, whose: Whose, at_once: bool) -> Refusals {
        let (shells, held, immovable) = (Shells::default(), Vec::new(), Vec::new());
        Refusals { paths, shells, whose, at_once, held, immovable }
    }

    fn say_of(&mut self, judge: &mut Judge, chosen: impl Fn(Instant, &Findings) -> bool) {
        let chosen = self.held.extract_if(.., |(due, _, findings)| chosen(*due, findings));
        for (_, call, findings) in chosen.collect::<Vec<_>>() {
            if !(findings.is_weak && findings.adds_nothing(judge)) {
                self.paths.say(findings, &call, judge);
            }
        }
    }
}

impl Handler for Refusals {
    type Copy = Seen;

    /// Of a violation something else is told.
    fn look(&self, waiting: &Waiting<'_>) -> Option<Seen> {
        if self.whose == Whose::StaticCode && !waiting.call.notification.is_of_static_code() {
            return None;
        }
        if waiting.call.verdict == Verdict::Violation && SOCKETS.contains(&&*waiting.call.name) {
            return Some(Seen::Unsaid(waiting.told()));
        }
        if !matches!(waiting.call.verdict, Verdict::Allowed | Verdict::Noted) {
            return None;
        }
        if waiting.call.name == "exit_group" {
            let failed = waiting.call.notification.args[0] & 0xff != 0;
            return (!self.held.is_empty()).then(|| Seen::Ended(waiting.caller().process, failed));
        }
        let Some(mut findings) = self.paths.find(waiting, false) else {
            let path = self.paths.immovable(waiting)?;
            return Some(Seen::Immovable(waiting.caller().process, path));
        };
        if self.whose == Whose::StaticCode && findings.is_of_device() {
            return None;
        }
        let process = waiting.caller().process;
        let is_copied = |path| self.immovable.iter().any(|(of, from)| (*of, &**from) == (process, path));
        if findings.given().is_some_and(is_copied) {
            return None;
        }
        findings.is_weak = findings.hidden(&self.paths).is_some() && !findings.is_argument();
        // A program that asks for less, and goes on, has done without.
        if findings.beyond == Some(Beyond::Limit(LimitKey::Memory)) {
            return Some(Seen::Refused(findings, Hold::ToTheEnd));
        }
        let waits =
            findings.hidden(&self.paths).is_some() || !self.shells.is_one(waiting.call.notification.pid);
        let waits = waits && !self.at_once && self.held.len() < MOST;
        let hold = if waits { Hold::Yes } else { Hold::No };
        Some(Seen::Refused(findings, hold))
    }

    fn act(&mut self, seen: Seen, call: &NotifiedCall, judge: &mut Judge) -> Result<Step, SyscallError> {
        match seen {
            Seen::Unsaid(told) => {
                let errno = judge.program.as_ref().and_then(|program| program.unseen(&call.notification));
                let Some(errno) = errno else { return Ok(Step::Next) };
                // libc asks services of the host for users by some, and tries IPv6: programs that fail without those do
                // so for other reasons.
                let is_netlink = call.notification.args[0] == libc::AF_NETLINK as u64;
                if is_netlink && self.held.len() < MOST {
                    let findings = Findings { is_weak: true, ..Findings::by_filter(told) };
                    self.held.push((Instant::now() + EVER, call.clone(), findings));
                }
                return Ok(Step::Answer(Answer::Error(errno)));
            }
            Seen::Refused(findings, Hold::No) => self.paths.say(findings, call, judge),
            Seen::Refused(findings, Hold::Yes) => {
                self.held.push((Instant::now() + LONGEST, call.clone(), findings));
            }
            Seen::Refused(findings, Hold::ToTheEnd) => {
                // An allocator asks several times for the same.
                let is_same = |other: &Findings| {
                    other.beyond == findings.beyond
                        && other.told.caller.process == findings.told.caller.process
                };
                if self.held.len() < MOST && !self.held.iter().any(|(.., other)| is_same(other)) {
                    self.held.push((Instant::now() + EVER, call.clone(), findings));
                }
            }
            Seen::Ended(process, true) => {
                self.say_of(judge, |_, findings| findings.told.caller.process == process);
                self.immovable.retain(|(of, _)| *of != process);
            }
            Seen::Immovable(process, path) => {
                if self.immovable.len() < MOST {
                    self.immovable.push((process, path));
                }
            }
            Seen::Ended(process, false) => {
                // It has done without. What is meant to stay out of reach is named all the same: a program that steals
                // hides its failures.
                let (paths, explainer) = (&self.paths, &judge.explainer);
                self.held.retain(|(_, _, findings)| {
                    findings.told.caller.process != process
                        || findings.is_of_protected(paths)
                        || findings.is_of_secret(paths, explainer)
                });
            }
        }
        Ok(Step::Next)
    }

    fn pause(&self) -> Option<Duration> {
        let next = self.held.iter().map(|(due, ..)| *due).min();
        next.map(|due| due.saturating_duration_since(Instant::now()))
    }

    fn retry(&mut self, _: BorrowedFd<'_>, judge: &mut Judge) -> Result<Flow, SyscallError> {
        let now = Instant::now();
        self.say_of(judge, |due, _| due <= now);
        Ok(Flow::GoOn)
    }

    fn end(&mut self, judge: &mut Judge) {
        self.say_of(judge, |_, _| true);
    }
}
