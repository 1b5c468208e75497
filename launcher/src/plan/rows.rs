//! Changing single rows of a table of rules, by the names of calls and restrictions.

use sbx_policy::calls::Call;
use sbx_policy::restrictions;
use sbx_policy::rules::{Grant, Row, Rules};

/// What a kernel without a family of sockets answers.
const EAFNOSUPPORT: u16 = libc::EAFNOSUPPORT as u16;

/// The rules of a call.
pub fn row<'r>(rules: &'r mut Rules, name: &str) -> Option<&'r mut Row> {
    Call::named(name.as_bytes()).and_then(|call| rules.row_mut(call))
}

/// These restrictions of a call, as the bits of a grant.
pub fn bits(name: &str, wanted: &[&str]) -> u16 {
    let Some(call) = Call::named(name.as_bytes()) else { return 0 };
    let places = restrictions::of_call(call).enumerate();
    places
        .filter(|(_, place)| wanted.contains(&restrictions::name(*place)))
        .fold(0, |mask, (bit, _)| mask | 1 << bit)
}

/// Allows a call in addition to what is allowed of it; a denial stays one.
pub fn grant(rules: &mut Rules, name: &str, restriction: Option<&str>) {
    let added = restriction.map(|restriction| bits(name, &[restriction]));
    if let Some(row) = row(rules, name) {
        row.allow = match (row.allow, added) {
            (Grant::All, _) | (_, None) => Grant::All,
            (Grant::Some(mask), Some(bit)) => Grant::Some(mask | bit),
            (Grant::None, Some(bit)) => Grant::Some(bit),
        };
    }
}

/// Allows a call, and forgets what was allowed of it.
pub fn replace(rules: &mut Rules, name: &str, restriction: Option<&str>) {
    if let Some(row) = row(rules, name) {
        row.allow = Grant::None;
    }
    grant(rules, name, restriction);
}

/// Takes restrictions of a call out of what is allowed of it.
pub fn revoke(rules: &mut Rules, name: &str, restrictions: &[&str]) {
    let gone = bits(name, restrictions);
    if let Some(row) = row(rules, name) {
        row.allow = without(row.allow, gone);
    }
}

/// Every name lookup asks name service daemons first, and goes on without them.
pub fn answer_quietly(rules: &mut Rules) {
    let (unix, routes) = (bits("socket", &["unix"]), bits("socket", &["netlink-route"]));
    let Some(row) = row(rules, "socket") else { return };
    let denied = match row.deny {
        Grant::None if row.errno == 0 || row.errno == EAFNOSUPPORT => 0,
        // The other family that lookups merely try.
        Grant::Some(mask) if mask == routes && row.errno == EAFNOSUPPORT => mask,
        _ => return,
    };
    if row.allow != Grant::All {
        (row.deny, row.errno) = (Grant::Some(denied | unix), EAFNOSUPPORT);
    }
}

pub fn without(grant: Grant, gone: u16) -> Grant {
    match grant {
        Grant::Some(mask) if mask & !gone == 0 => Grant::None,
        Grant::Some(mask) => Grant::Some(mask & !gone),
        other => other,
    }
}
