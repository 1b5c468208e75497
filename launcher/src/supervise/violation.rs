//! Violations, counted: one line on stderr for each distinct one, and a sum at the end.

pub use sbx_client::report::{Confidence, Fate, ViolationKind as Kind};

use crate::explain::caller::Caller;
use crate::explain::decode::Address;
use crate::explain::hint::Reason;
use crate::explain::total::{Refused, Sameness, Total};
use crate::supervise::stderr::Stderr;
use crate::sys::process::Pid;
use crate::text::{escape, wants_colours};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::RawFd;
use std::rc::Rc;

/// How many distinct violations are remembered. A command can make up any number of different arguments;
/// what goes beyond is counted together.
const MOST: usize = 1024;
/// How many lines are written while the command runs, for the same reason.
const MOST_LINES: usize = 200;
/// How many lines the sum at the end has.
const MOST_SUMS: usize = 5;
/// How many processes a line of the sum names.
const MOST_NAMES: usize = 3;

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
            hint: self.reason.hint.as_ref().map(|hint| hint.flags.iter().map(OsString::as_os_str).collect()),
        }
    }
}

/// How violations are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Not at all.
    Nothing,
    /// A line for each distinct one.
    Lines,
    /// A line for all that are the same to people, whatever process makes the call, and however.
    Groups,
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

/// All violations of a run.
pub struct Violations {
    show: Show,
    /// Whether calls that fail outside too get a line.
    shows_all: bool,
    seen: HashMap<Rc<Key>, u64>,
    order: Vec<(Rc<Key>, Pid)>,
    /// How many violations there were beyond those in `order`.
    unremembered: u64,
    /// What shares a line, by places in `order`, in the order of the lines.
    lines: Vec<Vec<usize>>,
    /// The place in `lines` of each group.
    groups: HashMap<Sameness, usize>,
    prefix: &'static str,
    stderr: RefCell<Stderr>,
}

impl Violations {
    /// None yet.
    pub fn new(show: Show) -> Violations {
        let colour = show != Show::Nothing && wants_colours(&std::io::stderr());
        let prefix = if colour { "\x1b[1;31msbx:\x1b[0m" } else { "sbx:" };
        let stderr = RefCell::default();
        let (seen, order) = (HashMap::new(), Vec::new());
        let (lines, groups) = (Vec::new(), HashMap::new());
        let (shows_all, unremembered) = (false, 0);
        Violations { show, shows_all, seen, order, unremembered, lines, groups, prefix, stderr }
    }

    /// Shows also what the sandbox is not to blame for.
    #[must_use]
    pub fn showing_all(self, shows_all: bool) -> Violations {
        Violations { shows_all, ..self }
    }

    /// Whether people are told of a violation: what fails outside too, or is done without, is for reports, unless it
    /// has ended the run.
    fn tells(&self, violation: &Violation) -> bool {
        let Reason { fails_outside, is_done_without, .. } = violation.reason;
        !(fails_outside || is_done_without) || self.shows_all || violation.fate == Fate::Ended
    }

    /// Counts a violation, and writes the line of one that is new.
    pub fn tell(&mut self, violation: Violation, caller: &Caller) {
        self.tell_of(violation, &caller.name, caller.process);
    }

    /// The same, of a process that is gone.
    pub fn tell_of(&mut self, violation: Violation, name: &[u8], process: Pid) {
        let key = (violation, name.to_vec());
        match self.seen.get_mut(&key) {
            Some(count) => *count += 1,
            None if self.order.len() >= MOST => self.unremembered += 1,
            None => {
                if self.tells(&key.0) {
                    self.join(&key.0, name, process);
                }
                let key = Rc::new(key);
                self.order.push((Rc::clone(&key), process));
                self.seen.insert(key, 1);
            }
        }
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

    /// Adds a new violation to the line of its group, or writes that.
    fn join(&mut self, violation: &Violation, name: &[u8], process: Pid) {
        let (place, next) = (self.order.len(), self.lines.len());
        let refused = violation.refused();
        if self.show == Show::Groups || refused.is_of_many() {
            let line = *self.groups.entry(refused.sameness()).or_insert(next);
            if let Some(members) = self.lines.get_mut(line) {
                members.push(place);
                return;
            }
        }
        if next < MOST_LINES {
            self.line(&told(violation, name, process));
        }
        self.lines.push(vec![place]);
    }

    /// Writes any other line, with the same prefix.
    pub fn line(&self, text: &str) {
        if self.show != Show::Nothing {
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
        if self.show == Show::Nothing || self.order.len() < 2 || !std::io::stderr().is_terminal() {
            return;
        }
        let mut total = Total::default();
        for Record { violation, .. } in self.records().filter(|record| self.tells(record.violation)) {
            total.add(&violation.refused());
        }
        if total.count() > 1 {
            self.line(&total.line(self.unremembered > 0));
        }
    }

    /// The lines of the sum: the most frequent violations first, and one line for the others.
    fn sums(&self) -> Vec<String> {
        let (said, unsaid) = self.lines.split_at(self.lines.len().min(MOST_LINES));
        let mut repeated: Vec<(u64, &[usize])> =
            said.iter().map(|line| (self.times(line), &line[..])).filter(|(count, _)| *count > 1).collect();
        // Stable: equals stay in the order in which they happened.
        repeated.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let (first, others) = repeated.split_at(repeated.len().min(MOST_SUMS));
        let mut lines: Vec<String> =
            first.iter().filter_map(|(count, line)| self.sum(*count, line)).collect();
        if !others.is_empty() {
            let times: u64 = others.iter().map(|(count, _)| count).sum();
            lines.push(format!("and {} more, {times} times in all", others.len()));
        }
        let unsaid = unsaid.iter().map(|line| self.times(line)).sum::<u64>() + self.unremembered;
        if unsaid > 0 {
            lines.push(format!("and {unsaid} more violations with other arguments, which are not listed"));
        }
        lines
    }

    /// How often what shares a line happened.
    fn times(&self, line: &[usize]) -> u64 {
        line.iter().filter_map(|place| self.order.get(*place)).map(|(key, _)| self.count(key)).sum()
    }

    /// How often it was, in which processes.
    fn sum(&self, count: u64, line: &[usize]) -> Option<String> {
        let keys: Vec<&Key> = line.iter().filter_map(|place| Some(&*self.order.get(*place)?.0)).collect();
        let first = &keys.first()?.0;
        let mut names: Vec<&[u8]> = Vec::new();
        for (_, name) in &keys {
            if !names.contains(&&name[..]) {
                names.push(name);
            }
        }
        let mut named: Vec<String> = names.iter().take(MOST_NAMES).map(|name| escape(name, 32)).collect();
        named.extend((names.len() > MOST_NAMES).then(|| format!("{} more", names.len() - MOST_NAMES)));
        let named = match named.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        };
        let is_one = keys.iter().all(|(violation, _)| violation.path == first.path);
        let times = if is_one { format!("{count} times") } else { format!("and {} more", count - 1) };
        Some(format!("{} {times} in {named}", act(first)))
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
        self.unremembered
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
        Confidence::Observed | Confidence::Unknown => reason.to_string(),
        Confidence::Inferred => format!("{reason:#}"),
    };
    let name = escape(name, 32);
    format!("{} in {name}[{process}]: {reason}", act(violation))
}

/// What happened. A limit that ends a child is told of by its parent, who waits for that.
fn act(Violation { fate, call, arguments, .. }: &Violation) -> String {
    match &**call {
        "wait4" => "the kernel ended a child".to_string(),
        _ => format!("{} {call}({arguments})", verb(*fate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(calls: &[(&str, u64)]) -> Violations {
        let mut violations = Violations::new(Show::Nothing);
        let caller = Caller { name: b"tool".to_vec(), process: 7, inside: (7, 7) };
        for (call, count) in calls {
            for _ in 0..*count {
                let violation = Violation {
                    fate: Fate::Blocked,
                    kind: Kind::Syscall,
                    confidence: Confidence::Observed,
                    call: call.to_string(),
                    arguments: "0".to_string(),
                    path: None,
                    address: None,
                    reason: Reason::default(),
                };
                violations.tell(violation, &caller);
            }
        }
        violations
    }

    #[test]
    fn what_happened_once_is_not_summed_up() {
        assert!(all(&[]).sums().is_empty());
        assert!(all(&[("a", 1), ("b", 1)]).sums().is_empty());
    }

    #[test]
    fn the_most_frequent_come_first_and_the_others_together() {
        let violations =
            all(&[("a", 2), ("b", 9), ("c", 1), ("d", 3), ("e", 2), ("f", 2), ("g", 2), ("h", 4)]);
        let sums = violations.sums();
        let expected = [
            "blocked b(0) 9 times in tool",
            "blocked h(0) 4 times in tool",
            "blocked d(0) 3 times in tool",
            "blocked a(0) 2 times in tool",
            "blocked e(0) 2 times in tool",
            "and 2 more, 4 times in all",
        ];
        assert_eq!(sums, expected);
        assert_eq!(violations.distinct(), 8);
    }

    #[test]
    fn memory_and_lines_are_bounded_and_the_count_is_exact() {
        let names: Vec<String> = (0..2000).map(|number| format!("c{number}")).collect();
        let calls: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 3)).collect();
        let violations = all(&calls);
        let sums = violations.sums();
        assert_eq!(violations.distinct(), MOST);
        assert_eq!(sums.len(), MOST_SUMS + 2);
        assert_eq!((violations.records().count(), violations.unlisted()), (MOST, (2000 - MOST as u64) * 3));
        assert!(violations.records().all(|record| record.count == 3 && record.process == 7));
        assert_eq!(sums[MOST_SUMS], "and 195 more, 585 times in all");
        assert_eq!(
            sums[MOST_SUMS + 1],
            "and 5400 more violations with other arguments, which are not listed"
        );
    }
}
