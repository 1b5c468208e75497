//! The table of rules: for each system call number, what is allowed, denied and logged.

use crate::bpf::{self, Insn};
use crate::calls::{Arch, Call};
use crate::errno;
use crate::program::{Entry, Program, Source, TABLE};
use crate::{calls, restrictions};

/// To what extent a system call is allowed or denied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// Not at all.
    #[default]
    None,
    /// If one of these restrictions matches. Bit i is the i-th restriction of the system call.
    Some(u16),
    /// With any arguments.
    All,
}

/// The rules of one system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Allowed.
    pub allow: Grant,
    /// Denied. A denial wins over a permission.
    pub deny: Grant,
    /// The error number of a denial; 0 stands for the action of the policy.
    pub errno: u16,
    /// Whether the system call is allowed and logged each time.
    pub log: bool,
}

/// The values that the program returns for system calls that are not simply allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actions {
    /// For a violation.
    pub violation: u32,
    /// For a system call that is allowed and logged.
    pub log: u32,
    /// For a number higher than that of any known system call.
    pub unknown: Option<u32>,
}

/// Rules for every system call of one architecture.
#[derive(Clone)]
pub struct Rules {
    arch: Arch,
    end: u32,
    query: u32,
    rows: [Row; TABLE as usize],
    /// Whether system calls that no rule names are allowed (a deny-list) or a violation (an allow-list).
    pub unnamed_allowed: bool,
    /// The return values of the program.
    pub actions: Actions,
}

/// The first argument of the prctl(2) that queries a filter: "SBX1". The second argument is [`Rules::identity`]. The
/// answer is an error: EALREADY from the same policy, EISCONN from another policy of sbx, EINVAL from the kernel if
/// there is no filter.
pub const QUERY: u32 = 0x5342_5831;
/// The same, whether a run of sbx is around: "SBX4". Filters of runs answer EISCONN. Every other one lets the question
/// through, to what is around it: one that the library installs by variables is none of a run.
pub const AROUND: u32 = 0x5342_5834;
/// The same, whether a run is around whose supervisor makes connections: "SBX5".
pub const CONNECTS: u32 = AROUND | 1;

/// When an extra piece is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before anything else.
    First,
    /// With the denials.
    Deny,
    /// With the permissions.
    Allow,
}

/// Pieces of program that only the launcher has: the one-shot exec permit and free conditions.
pub trait Extra {
    /// Passes the numbers of the system calls that have extra pieces to `each`.
    fn numbers(&self, each: &mut dyn FnMut(u32));
    /// Writes the pieces of one stage with [`Program::piece`].
    fn pieces(&self, number: u32, stage: Stage, program: &mut Program<'_>);
}

/// Rules with the extra pieces of the launcher: the source of a program.
pub struct Layout<'a> {
    /// The table.
    pub rules: &'a Rules,
    /// Further pieces.
    pub extra: Option<&'a dyn Extra>,
}

impl Rules {
    /// An empty table: every system call is a violation or, in a deny-list, allowed.
    pub fn new(arch: Arch, unnamed_allowed: bool, actions: Actions) -> Rules {
        let query = Call::named(b"prctl").and_then(|call| call.number(arch)).unwrap_or(u32::MAX);
        Rules {
            arch,
            end: arch.end(),
            query,
            rows: [Row::default(); TABLE as usize],
            unnamed_allowed,
            actions,
        }
    }

    /// The architecture.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The rules of a system call; `None` if the architecture does not have it.
    pub fn row(&self, call: Call) -> Option<&Row> {
        call.number(self.arch).and_then(|number| self.rows.get(number as usize))
    }

    /// The rules of a system call, for changing them.
    pub fn row_mut(&mut self, call: Call) -> Option<&mut Row> {
        call.number(self.arch).and_then(|number| self.rows.get_mut(number as usize))
    }

    /// A hash of the rules (FNV-1a, over words instead of bytes, because every start computes it). It only prevents a
    /// second copy of the same filter; no permission depends on it.
    pub fn identity(&self) -> u32 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |value: u32| hash = (hash ^ u64::from(value)).wrapping_mul(0x0100_0000_01b3);
        let grant = |grant: Grant| match grant {
            Grant::None => 0,
            Grant::Some(mask) => u32::from(mask),
            Grant::All => 0x1_0000,
        };
        add(u32::from(self.unnamed_allowed));
        add(self.actions.violation);
        for row in &self.rows {
            add(grant(row.allow));
            add(grant(row.deny) | u32::from(row.log) << 31);
            add(u32::from(row.errno));
        }
        (hash >> 32) as u32 ^ hash as u32
    }

    fn unnamed(&self) -> u32 {
        if self.unnamed_allowed { bpf::RET_ALLOW } else { self.actions.violation }
    }

    fn refusal(&self, row: &Row) -> u32 {
        if row.errno == 0 { self.actions.violation } else { bpf::RET_ERRNO | u32::from(row.errno) }
    }

    fn permission(&self, row: &Row) -> u32 {
        if row.log { self.actions.log } else { bpf::RET_ALLOW }
    }

    /// The value for a system call if none of its pieces matched.
    fn last(&self, row: &Row) -> u32 {
        match (row.deny, row.allow) {
            (Grant::All, _) => self.refusal(row),
            (_, Grant::All) => self.permission(row),
            (_, Grant::Some(_)) => self.actions.violation,
            (_, Grant::None) if row.log => self.actions.log,
            (_, Grant::None) => self.unnamed(),
        }
    }
}

/// The compiled piece of a restriction.
fn snippet(index: usize) -> &'static [Insn] {
    let span = calls::SPANS.get(index).copied().unwrap_or((0, 0));
    let (start, len) = (usize::from(span.0), usize::from(span.1));
    calls::CODE.get(start..start + len).unwrap_or(&[])
}

/// Writes the pieces of the restrictions in `grant`, with `value` as their result.
fn restricted(rules: &Rules, number: u32, grant: Grant, value: u32, program: &mut Program<'_>) {
    let Grant::Some(mask) = grant else { return };
    for (bit, index) in restrictions::of_number(rules.arch, number).enumerate() {
        if mask & (1 << bit) != 0 {
            program.piece(snippet(index), value);
        }
    }
}

impl Layout<'_> {
    fn row(&self, number: u32) -> Row {
        self.rules.rows.get(number as usize).copied().unwrap_or_default()
    }

    /// The decision for a system call with these rules, without extra pieces.
    fn of_row(&self, row: &Row) -> Entry {
        match (row.deny, row.allow) {
            (Grant::Some(_), _) | (Grant::None, Grant::Some(_)) => Entry::Chain,
            _ => Entry::Return(self.rules.last(row)),
        }
    }

    fn extra(&self, number: u32, stage: Stage, program: &mut Program<'_>) {
        if let Some(extra) = self.extra {
            extra.pieces(number, stage, program);
        }
    }

    /// Writes the answer to the prctl(2) that queries the filter.
    fn query(&self, program: &mut Program<'_>) {
        let answer = |errno: u16| bpf::RET_ERRNO | u32::from(errno);
        let is_query = bpf::stmt(bpf::LD, bpf::data_arg(0));
        program.piece(
            &[
                is_query,
                bpf::jump(bpf::JEQ, QUERY, 0, 3),
                bpf::stmt(bpf::LD, bpf::data_arg(1)),
                bpf::jump(bpf::JEQ, self.rules.identity(), 0, 1),
                bpf::stmt(bpf::RET, 0),
            ],
            answer(errno::EALREADY),
        );
        program.piece(
            &[is_query, bpf::jump(bpf::JEQ, QUERY, 0, 1), bpf::stmt(bpf::RET, 0)],
            answer(errno::EISCONN),
        );
    }
}

/// prctl(AROUND) and prctl(CONNECTS).
const OF_RUNS: [Insn; 4] = [
    bpf::stmt(bpf::LD, bpf::data_arg(0)),
    bpf::stmt(bpf::AND, !1),
    bpf::jump(bpf::JEQ, AROUND, 0, 1),
    bpf::stmt(bpf::RET, 0),
];

impl Source for Layout<'_> {
    fn arch(&self) -> Arch {
        self.rules.arch
    }

    fn entries(&self) -> [Entry; TABLE as usize] {
        let mut entries = [Entry::Return(self.beyond()); TABLE as usize];
        // Most rows are equal to the row before.
        let mut last = None;
        for (row, entry) in self.rules.rows.iter().zip(&mut entries).take(self.rules.end as usize) {
            *entry = match last {
                Some((same, entry)) if same == row => entry,
                _ => self.of_row(row),
            };
            last = Some((row, *entry));
        }
        let mut chain = |number: u32| {
            if let Some(entry) = entries.get_mut(number as usize) {
                *entry = Entry::Chain;
            }
        };
        chain(self.rules.query);
        if let Some(extra) = self.extra {
            extra.numbers(&mut chain);
        }
        entries
    }

    fn chain(&self, number: u32, program: &mut Program<'_>) {
        let (rules, row) = (self.rules, self.row(number));
        if number == rules.query {
            self.query(program);
        }
        self.extra(number, Stage::First, program);
        if number == rules.query {
            program.piece(&OF_RUNS, bpf::RET_ALLOW);
        }
        if row.deny != Grant::All {
            restricted(rules, number, row.deny, rules.refusal(&row), program);
            self.extra(number, Stage::Deny, program);
            restricted(rules, number, row.allow, rules.permission(&row), program);
            self.extra(number, Stage::Allow, program);
        }
        program.finish(rules.last(&row));
    }

    fn beyond(&self) -> u32 {
        self.rules.actions.unknown.unwrap_or(self.rules.unnamed())
    }

    fn violation(&self) -> u32 {
        self.rules.actions.violation
    }
}
