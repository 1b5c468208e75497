//! What the filter notifies although the profile allows it.

use crate::plan::notified::{self, Notified};
use crate::plan::rows::row;
use crate::profile::FreeConditions;
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::errno::{ENOSYS, EOPNOTSUPP};
use sbx_policy::restrictions::{Condition, Op, Width};
use sbx_policy::rules::{Grant, Row, Rules};

/// The rules of a filter, with both of their parts.
pub struct Table<'r> {
    /// Whose numbers the calls have.
    pub arch: Arch,
    /// What the filter returns for a call that is allowed and noted.
    pub log: u32,
    /// The rules about names.
    pub rules: &'r mut Rules,
    /// The conditions without a name.
    pub free: &'r mut FreeConditions,
}

impl Table<'_> {
    /// Has the filter notify the calls of a kind although the profile allows them. What it refuses is notified anyway.
    pub fn notify(&mut self, kind: Notified, listens: bool) {
        match kind {
            Notified::Tasks => {
                self.note(&notified::TASKS);
                // The arguments of clone3 are in memory, which may change while it is looked at. Libraries go on with
                // clone.
                let unknown = Row { deny: Grant::All, errno: ENOSYS, ..Row::default() };
                row(self.rules, "clone3").into_iter().for_each(|row| *row = unknown);
            }
            Notified::Attributes => {
                let unsupported = Row { deny: Grant::All, errno: EOPNOTSUPP, ..Row::default() };
                // Without a listener, a violation is refused.
                let violation = Row::default();
                self.replace(&notified::ATTRIBUTES, violation);
                self.replace(&notified::XATTRS, if listens { violation } else { unsupported });
                self.replace(&notified::UNSUPPORTED, unsupported);
            }
            Notified::Domains => self.note(&notified::DOMAINS),
            Notified::GitConfig => self.note(&notified::REPLACING),
            Notified::Ports => self.note(&notified::PORTS),
            Notified::Listen if listens => self.note(&notified::LISTENING),
            Notified::RefusedPaths => {
                self.note(&notified::DECIDED_BY_LANDLOCK);
                // Whether a program has done without what it was refused, its end tells.
                self.note(&["exit_group"]);
            }
            // Whether a program has done without what it did not get, its end tells.
            Notified::Memory => self.note(&["exit_group"]),
            Notified::StaticPrograms if listens => self.note_static(),
            Notified::Listen
            | Notified::StaticPrograms
            | Notified::Connect
            | Notified::DatagramPairs
            | Notified::NullDevice
            | Notified::SignalDriven
            | Notified::Links
            | Notified::Told => {}
        }
    }

    /// Has sockets that a profile refuses without a line be told of a program that fails.
    pub fn tell_of_sockets(&mut self) {
        for name in notified::SOCKETS {
            row(self.rules, name).into_iter().for_each(|row| row.errno = 0);
        }
    }

    /// Has calls noted where they are allowed.
    fn note(&mut self, names: &[&str]) {
        for call in names.iter().filter_map(|name| Call::named(name.as_bytes())) {
            if let Some(row) = self.rules.row_mut(call).filter(|row| row.allow != Grant::None) {
                row.log = true;
            }
            call.number(self.arch).into_iter().for_each(|number| self.free.note(number, self.log));
        }
    }

    /// Has calls noted by which static programs change files, and their ends, which tell whether a program has done
    /// without what it was refused.
    fn note_static(&mut self) {
        const MATCH: Insn = bpf::stmt(bpf::RET, 0);
        let is_static = [bpf::stmt(bpf::LD, bpf::DATA_CODE_HIGH), bpf::jump(bpf::JEQ, 0, 0, 1), MATCH];
        let changes = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;
        let opens = |flags| {
            [
                bpf::stmt(bpf::LD, bpf::DATA_CODE_HIGH),
                bpf::jump(bpf::JEQ, 0, 0, 3),
                bpf::stmt(bpf::LD, bpf::data_arg(flags)),
                bpf::jump(bpf::JSET, changes, 0, 1),
                MATCH,
            ]
        };
        for (name, flags) in notified::OPENING.into_iter().zip([1, 2]) {
            self.note_where(name, &opens(flags));
        }
        for name in notified::CHANGING.into_iter().chain(["exit_group"]) {
            self.note_where(name, &is_static);
        }
    }

    /// Has calls noted where a piece of a program returns, if they are allowed.
    fn note_where(&mut self, name: &str, piece: &[Insn]) {
        let unnoted = self.allowed(name).filter(|(row, _)| !row.log);
        unnoted.into_iter().for_each(|(_, number)| self.free.note_where(number, piece.to_vec(), self.log));
    }

    /// The rules of a call that is allowed, at least with some arguments, and its number.
    fn allowed(&self, name: &str) -> Option<(Row, u32)> {
        let call = Call::named(name.as_bytes())?;
        let row = self.rules.row(call).filter(|row| row.allow != Grant::None)?;
        Some((*row, call.number(self.arch)?))
    }

    /// Has requests for so much private memory noted, where they are allowed.
    pub fn note_large(&mut self, bytes: u64) {
        let at_least = |arg| Condition { arg, width: Width::Qword, op: Op::Ge, value: bytes };
        let has = |arg, bits: i32| {
            let bits = bits as u64;
            Condition { arg, width: Width::Dword, op: Op::MaskedEq(bits), value: bits }
        };
        let private = has(3, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let conditions = [vec![at_least(1), has(2, libc::PROT_WRITE), private], vec![at_least(2)]];
        for (name, conditions) in notified::MEMORY.into_iter().zip(conditions) {
            let allowed = self.allowed(name);
            allowed.into_iter().for_each(|(_, number)| self.free.note_first(number, &conditions, self.log));
        }
    }

    /// Gives calls other rules where they are allowed.
    fn replace(&mut self, names: &[&str], other: Row) {
        for call in names.iter().filter_map(|name| Call::named(name.as_bytes())) {
            if let Some(row) = self.rules.row_mut(call).filter(|row| row.allow != Grant::None) {
                *row = other;
            }
            call.number(self.arch).into_iter().for_each(|number| self.free.remove(number));
        }
    }
}
