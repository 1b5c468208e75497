//! Violations, counted: one line on stderr for each distinct one, and a sum at the end.

mod sum;

pub use sbx_client::report::{Confidence, Fate, ViolationKind as Kind};

use crate::explain::caller::Caller;
use crate::explain::decode::Address;
use crate::explain::hint::Reason;
use crate::explain::total::{Refused, Sameness, Total};
use crate::supervise::stderr::Stderr;
use crate::sys::process::Pid;
use crate::text::{process_name, wants_colours};
use sbx_policy::calls::Call;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::RawFd;
use std::rc::Rc;

/// How many distinct violations are remembered. A command can make up any number of different arguments; what goes
/// beyond is counted by its call. The first violation of a call is remembered in any case, so that none hides another.
const MOST: usize = 1024;
/// How many lines are written while the command runs, for the same reason, with the same exception.
const MOST_LINES: usize = 200;
/// One refused or noted call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Violation {
    /// What happened to it.
    pub fate: Fate,
    /// What it was refused for.
    pub kind: Kind,
    /// How that is known.
    pub confidence: Confidence,
    /// The call's name.
    pub call: String,
    /// Its arguments, decoded.
    pub arguments: String,
    /// Its path: where that leads for [`Kind::Path`], else as it was given.
    pub path: Option<Vec<u8>>,
    /// The address in its arguments.
    pub address: Option<Address>,
    /// The rule that decides, and what would allow the call.
    pub reason: Reason,
}

impl Violation {
    /// Whether the supervisor has seen it, and programs do not do without.
    fn is_observed(&self) -> bool {
        self.confidence == Confidence::Observed && !self.reason.is_done_without
    }

    /// As it is counted.
    fn refused(&self) -> Refused<'_> {
        let rule = self.reason.rule.as_ref();
        Refused {
            fate: self.fate,
            kind: self.kind,
            call: &self.call,
            arguments: &self.arguments,
            path: self.path.as_deref(),
            has_address: self.address.is_some(),
            rule: rule.map_or("", |rule| &rule.text),
            key: rule.and_then(|rule| rule.key).unwrap_or_default(),
            is_noted: self.reason.hint.as_ref().is_some_and(|hint| hint.note.is_some()),
            hint: self.reason.hint.as_ref().map(|hint| hint.flags.iter().map(OsString::as_os_str).collect()),
        }
    }
}

/// A violation, and the name of its process: the same one in a thousand processes of one name is one line.
type Key = (Violation, Vec<u8>);

/// One distinct violation for a report.
pub struct Record<'a> {
    /// What was refused.
    pub violation: &'a Violation,
    /// The name of the process that made the call.
    pub name: &'a [u8],
    /// The first process that made it.
    pub process: Pid,
    /// How often it happened.
    pub count: u64,
}

/// What shares a line.
struct Line {
    /// Places in `order`.
    members: Vec<usize>,
    /// Whether it was written.
    is_said: bool,
}

/// All violations of a run.
pub struct Violations {
    is_shown: bool,
    /// Whether calls that fail outside too get a line.
    shows_all: bool,
    seen: HashMap<Rc<Key>, u64>,
    order: Vec<(Rc<Key>, Pid)>,
    /// How many violations of each call there were beyond those in `order`.
    unremembered: BTreeMap<String, u64>,
    /// The calls of which something was told.
    told: HashSet<String>,
    /// In the order in which they are written.
    lines: Vec<Line>,
    /// The place in `lines` of each group.
    groups: HashMap<Sameness, usize>,
    prefix: &'static str,
    stderr: RefCell<Stderr>,
}

impl Violations {
    /// None yet. Lines are written of them, or not.
    pub fn new(is_shown: bool) -> Violations {
        let colour = is_shown && wants_colours(&std::io::stderr());
        let prefix = if colour { "\x1b[1;31msbx:\x1b[0m" } else { "sbx:" };
        let stderr = RefCell::default();
        let (seen, order, told) = (HashMap::new(), Vec::new(), HashSet::new());
        let (lines, groups) = (Vec::new(), HashMap::new());
        let (shows_all, unremembered) = (false, BTreeMap::new());
        Violations { is_shown, shows_all, seen, order, unremembered, told, lines, groups, prefix, stderr }
    }

    /// Whether lines are written.
    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Shows also what the sandbox is not to blame for.
    #[must_use]
    pub fn showing_all(self, shows_all: bool) -> Violations {
        Violations { shows_all, ..self }
    }

    /// Whether people are told of a violation: what fails outside too, or is done without, is for reports, unless it
    /// has ended the run. Log mode lists what programs do without.
    fn tells(&self, violation: &Violation) -> bool {
        let Reason { fails_outside, is_done_without, .. } = violation.reason;
        let is_quiet = fails_outside || (is_done_without && violation.fate != Fate::WouldBlock);
        !is_quiet || self.shows_all || violation.fate == Fate::Ended
    }

    /// Counts a violation, and writes the line of one that is new.
    pub fn tell(&mut self, violation: Violation, caller: &Caller) {
        self.tell_of(violation, &caller.name, caller.process);
    }

    /// The same, of a process that is gone.
    pub fn tell_of(&mut self, violation: Violation, name: &[u8], process: Pid) {
        let key = (violation, name.to_vec());
        if let Some(count) = self.seen.get_mut(&key) {
            *count += 1;
            return;
        }
        match self.order.len() < MOST || self.is_first_of_call(&key.0) {
            false => *self.unremembered.entry(key.0.call).or_default() += 1,
            true => {
                if self.tells(&key.0) {
                    self.join(&key.0, name, process);
                }
                let key = Rc::new(key);
                self.order.push((Rc::clone(&key), process));
                self.seen.insert(key, 1);
            }
        }
    }

    /// Whether it is the first of a call that people are told of. A command can make up numbers, but no names.
    fn is_first_of_call(&self, violation: &Violation) -> bool {
        let call = &violation.call;
        self.tells(violation) && !self.told.contains(call) && Call::named(call.as_bytes()).is_some()
    }

    /// Whether a refusal with these arguments was observed in a program of this name, of whatever call, and no call
    /// that programs do without.
    pub fn has_said(&self, arguments: &str, name: &[u8]) -> bool {
        let said = |(violation, program): &Key| {
            violation.is_observed() && violation.arguments == arguments && program == name
        };
        self.order.iter().any(|(key, _)| said(key))
    }

    /// Whether a refusal for the same reason has been counted for a process, of whatever call at this path.
    pub fn has_reason(&self, path: Option<&[u8]>, reason: &Reason, process: Pid) -> bool {
        let same = |violation: &Violation| violation.reason == *reason && violation.path.as_deref() == path;
        self.order.iter().any(|(key, of)| *of == process && same(&key.0))
    }

    /// Whether the supervisor has seen a call of this process refused that programs do not do without.
    pub fn has_observed(&self, process: Pid) -> bool {
        self.order.iter().any(|(key, of)| *of == process && key.0.is_observed())
    }

    /// Whether a refusal at this path has been counted for a program of this name.
    pub fn has_named(&self, path: &[u8], name: &[u8]) -> bool {
        self.order.iter().any(|(key, _)| key.0.path.as_deref() == Some(path) && key.1 == name)
    }

    /// Adds a new violation to the line of those that are the same to people, whatever process makes the call, and
    /// however, or writes that line.
    fn join(&mut self, violation: &Violation, name: &[u8], process: Pid) {
        let (place, next) = (self.order.len(), self.lines.len());
        let line = *self.groups.entry(violation.refused().sameness()).or_insert(next);
        if let Some(line) = self.lines.get_mut(line) {
            line.members.push(place);
            return;
        }
        let is_said = next < MOST_LINES || self.is_first_of_call(violation);
        if is_said {
            self.line(&told(violation, name, process));
        }
        self.told.insert(violation.call.clone());
        self.lines.push(Line { members: vec![place], is_said });
    }

    /// Writes any other line, with the same prefix.
    pub fn line(&self, text: &str) {
        if self.is_shown {
            self.stderr.borrow_mut().say(&format!("{} {text}\n", self.prefix));
        }
    }

    /// From now on lines wait for their reader, and the supervisor does not: the command runs.
    pub fn never_wait(&self) {
        self.stderr.borrow_mut().never_wait();
    }

    /// The descriptor that has to be writable for lines that wait, if there are some.
    pub fn waits_for(&self) -> Option<RawFd> {
        self.stderr.borrow().waits_for()
    }

    /// Writes what can be written at once.
    pub fn pass_on(&self) {
        self.stderr.borrow_mut().pass_on();
    }

    /// Writes the lines that still wait, for a bounded time.
    pub fn finish(&self) {
        self.stderr.borrow_mut().finish();
    }

    /// Sums up what happened more than once, and what was not said at all.
    pub fn sum_up(&self) {
        for line in self.sums() {
            self.line(&line);
        }
    }

    /// The last line of a run on a terminal, where several calls were refused: how many, and what would allow them.
    pub fn total_up(&self) {
        if !self.is_shown || self.order.len() < 2 || !std::io::stderr().is_terminal() {
            return;
        }
        let mut total = Total::default();
        for Record { violation, .. } in self.records().filter(|record| self.tells(record.violation)) {
            total.add(&violation.refused());
        }
        if total.count() > 1 {
            self.line(&total.line(!self.unremembered.is_empty()));
        }
    }

    fn count(&self, key: &Key) -> u64 {
        self.seen.get(key).copied().unwrap_or(1)
    }

    /// How many distinct violations there were.
    pub fn distinct(&self) -> usize {
        self.order.len()
    }

    /// Each distinct violation, in the order in which they first happened.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.order.iter().map(|(key, process)| {
            let (violation, name) = &**key;
            Record { violation, name, process: *process, count: self.count(key) }
        })
    }

    /// How many violations are in no record.
    pub fn unlisted(&self) -> u64 {
        self.unremembered.values().sum()
    }
}

/// What happened to a call, as a verb before its name.
pub fn verb(fate: Fate) -> &'static str {
    match fate {
        Fate::Blocked => "blocked",
        Fate::Ended => "ended the run at",
        Fate::WouldBlock => "would block",
        // Only a report that is read has values of a later version.
        Fate::Noted | Fate::Unknown => "noted",
    }
}

/// The line of a violation.
fn told(violation: &Violation, name: &[u8], process: Pid) -> String {
    let Violation { reason, confidence, .. } = violation;
    let reason = match confidence {
        Confidence::Named => return reason.to_string(),
        Confidence::Observed | Confidence::Unknown => reason.to_string(),
        Confidence::Inferred => format!("{reason:#}"),
    };
    let name = process_name(name);
    format!("{} in {name}[{process}]: {reason}", act(violation))
}

/// What happened. A limit that ends a child is told of by its parent, who waits for that.
fn act(Violation { fate, call, arguments, .. }: &Violation) -> String {
    match &**call {
        "wait4" => "the kernel ended a child".to_string(),
        _ => format!("{} {call}({arguments})", verb(*fate)),
    }
}
