//! Violations, counted: one line on stderr for each distinct one, a sum at the end.

use crate::supervise::decode;
use crate::supervise::facts::Caller;
use std::collections::HashMap;
use std::io::{IsTerminal, Write};

/// Distinct violations that are remembered. A command can make up any number of different arguments; what
/// goes beyond is counted together.
const MOST: usize = 1024;
/// Lines that are written while the command runs, for the same reason.
const MOST_LINES: usize = 200;

/// What happened to the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It failed.
    Blocked,
    /// It failed, and the run ended.
    Ended,
    /// It was let through, and would have failed without log mode.
    WouldBlock,
    /// It was let through; the profile wants to know.
    Noted,
}

impl Fate {
    fn verb(self) -> &'static str {
        match self {
            Fate::Blocked => "blocked",
            Fate::Ended => "ended the run at",
            Fate::WouldBlock => "would block",
            Fate::Noted => "noted",
        }
    }
}

/// One refused or noted call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Violation {
    /// What happened to it.
    pub fate: Fate,
    /// The call's name.
    pub call: String,
    /// Its arguments, decoded.
    pub arguments: String,
    /// The rule that decides, and the way to allow it.
    pub reason: String,
}

/// How violations are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Not at all.
    Nothing,
    /// A line for each distinct one.
    Lines,
}

/// All violations of a run.
pub struct Violations {
    show: Show,
    seen: HashMap<(Violation, Vec<u8>), u64>,
    order: Vec<(Violation, Vec<u8>)>,
    uncounted: u64,
    lines: usize,
    prefix: &'static str,
}

impl Violations {
    /// None yet.
    pub fn new(show: Show) -> Violations {
        let colour = show == Show::Lines
            && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            && std::io::stderr().is_terminal();
        let prefix = if colour { "\x1b[1;31msbx:\x1b[0m" } else { "sbx:" };
        Violations { show, seen: HashMap::new(), order: Vec::new(), uncounted: 0, lines: 0, prefix }
    }

    /// Whether this one is known already; if so, it is counted.
    pub fn again(&mut self, violation: &Violation, caller: &Caller) -> bool {
        // One process name a violation: the same refusal in a thousand processes is one line.
        match self.seen.get_mut(&(violation.clone(), caller.name.clone())) {
            Some(count) => {
                *count += 1;
                true
            }
            None => false,
        }
    }

    /// Takes a new one in, and says it.
    pub fn add(&mut self, violation: Violation, caller: &Caller) {
        if self.order.len() >= MOST {
            self.uncounted += 1;
            return;
        }
        if self.lines < MOST_LINES {
            let Violation { fate, call, arguments, reason } = &violation;
            let (name, process) = (decode::escape(&caller.name, 32), caller.process);
            self.line(&format!("{} {call}({arguments}) in {name}[{process}]: {reason}", fate.verb()));
            self.lines += 1;
        }
        let key = (violation, caller.name.clone());
        self.order.push(key.clone());
        self.seen.insert(key, 1);
    }

    /// Any other line, in the same dress.
    pub fn line(&self, text: &str) {
        if self.show == Show::Lines {
            // Where stderr is gone there is nobody to tell.
            let _ = writeln!(std::io::stderr().lock(), "{} {text}", self.prefix);
        }
    }

    /// Sums up what happened more than once.
    pub fn sum_up(&self) {
        for key in &self.order {
            let count = self.seen.get(key).copied().unwrap_or(1);
            if count > 1 {
                let Violation { fate, call, arguments, .. } = &key.0;
                self.line(&format!(
                    "{} {call}({arguments}) {count} times in {}",
                    fate.verb(),
                    decode::escape(&key.1, 32)
                ));
            }
        }
        let unsaid = self.order.len().saturating_sub(self.lines) as u64 + self.uncounted;
        if unsaid > 0 {
            self.line(&format!("and {unsaid} more violations with other arguments"));
        }
    }

    /// How many distinct ones there were.
    pub fn distinct(&self) -> usize {
        self.order.len()
    }
}
