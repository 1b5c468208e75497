//! Violations as records.

use super::bytes::Bytes;
use super::model::{Address, Confidence, Fate, Kind, Rule, Suggestion, ViolationRecord};
use crate::supervise::decode;
use crate::supervise::suggest;
use crate::supervise::violation::{self, Record, Violations};

/// All of them, in the order in which they first happened.
pub fn of(violations: &Violations) -> Vec<ViolationRecord> {
    violations.records().map(record).collect()
}

fn record(record: Record<'_>) -> ViolationRecord {
    let violation = record.violation;
    ViolationRecord {
        kind: match violation.kind {
            violation::Kind::Syscall => Kind::Syscall,
            violation::Kind::Path => Kind::Path,
            violation::Kind::Address => Kind::Address,
        },
        call: violation.call.clone(),
        args: violation.arguments.clone(),
        path: violation.path.clone().map(Bytes),
        address: violation.address.as_ref().map(address),
        process: Bytes(record.name.to_vec()),
        pid: record.process,
        rule: violation.reason.rule.as_ref().map(rule),
        suggestion: violation.reason.way.as_ref().map(suggestion),
        count: record.count,
        confidence: match violation.confidence {
            violation::Confidence::Observed => Confidence::Observed,
            violation::Confidence::Inferred => Confidence::Inferred,
        },
        fate: match violation.fate {
            violation::Fate::Blocked => Fate::Blocked,
            violation::Fate::Ended => Fate::Ended,
            violation::Fate::WouldBlock => Fate::WouldBlock,
            violation::Fate::Noted => Fate::Noted,
        },
    }
}

fn rule(rule: &suggest::Rule) -> Rule {
    Rule { text: rule.text.clone(), profile: rule.profile.clone(), key: rule.key.map(Into::into) }
}

fn suggestion(way: &suggest::Way) -> Suggestion {
    Suggestion {
        flags: way.flags.iter().map(|word| word.as_os_str().into()).collect(),
        note: way.note.map(Into::into),
    }
}

fn address(address: &decode::Address) -> Address {
    match address {
        decode::Address::Inet { ip, port } => Address::Inet { ip: *ip, port: *port },
        decode::Address::UnixPath(path) => Address::Unix { path: Bytes(path.clone()) },
        decode::Address::UnixAbstract(name) => Address::UnixAbstract { name: Bytes(name.clone()) },
        decode::Address::UnixUnnamed => Address::UnixAbstract { name: Bytes(Vec::new()) },
        decode::Address::Netlink { pid, groups } => Address::Netlink { port: *pid, groups: *groups },
        decode::Address::Other { family } => Address::Other { number: *family },
    }
}
