//! Violations as records of a report.

use crate::explain::{decode, hint};
use crate::supervise::violation::{Record, Violations};
use sbx_client::report::{Address, Bytes, Rule, Suggestion, ViolationRecord};

/// All records, in the order in which the violations first happened.
pub fn of(violations: &Violations) -> Vec<ViolationRecord> {
    violations.records().map(record).collect()
}

fn record(record: Record<'_>) -> ViolationRecord {
    let violation = record.violation;
    ViolationRecord {
        kind: violation.kind,
        call: violation.call.clone(),
        args: violation.arguments.clone(),
        path: violation.path.clone().map(Bytes),
        address: violation.address.as_ref().map(address),
        process: Bytes(record.name.to_vec()),
        pid: record.process,
        rule: violation.reason.rule.as_ref().map(rule),
        suggestion: violation.reason.hint.as_ref().map(suggestion),
        count: record.count,
        confidence: violation.confidence,
        fate: violation.fate,
    }
}

fn rule(rule: &hint::Rule) -> Rule {
    Rule { text: rule.text.clone(), profile: rule.profile.clone(), key: rule.key.map(Into::into) }
}

fn suggestion(hint: &hint::Hint) -> Suggestion {
    Suggestion {
        flags: hint.flags.iter().map(|word| word.as_os_str().into()).collect(),
        note: hint.note.map(Into::into),
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
