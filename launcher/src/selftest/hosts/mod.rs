//! Rules about hosts: whether what they name is reached, and nothing else.
//!
//! Both have to be seen from outside, and a run reaches no address of the machine it is on. So the self-test has a
//! machine of its own, which is a network namespace, and an outside behind it, which is another one ([`outside`]). Each
//! run starts on that machine, with rules about some of the names that the outside has.

pub mod acts;
pub mod outside;
mod server;

use crate::error::Refusal;
use crate::hosts::HostName;
use crate::request::Request;
use crate::selftest::claims::{Claim, Claims};
use crate::selftest::rows::{HOST_ROWS, Row};
use crate::selftest::stage::Stage;
use crate::selftest::{Report, Subject, Verdict, confined, control, judge, request};
use outside::Outside;
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// The profile whose runs are tried where none is named.
const USUAL: &str = "workspace";

/// The rules of the self-test: all its names but those that nobody is to reach.
const RULES: [&str; 3] = ["listed.test:80,443", "rebinding.test:80", "metadata.test:80"];

/// The names that the outside knows, and where they lead.
const LISTED: (&str, Ipv4Addr) = ("listed.test", Ipv4Addr::new(203, 0, 113, 10));
const UNLISTED: (&str, Ipv4Addr) = ("unlisted.test", Ipv4Addr::new(203, 0, 113, 11));
const METADATA: (&str, Ipv4Addr) = ("metadata.test", Ipv4Addr::new(169, 254, 169, 254));
/// Whatever it led to when the rule was made: it has a private address when it is connected to.
const REBINDING: (&str, Ipv4Addr) = ("rebinding.test", Ipv4Addr::new(10, 0, 0, 1));
/// An address that no name leads to.
const NAMELESS: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 12);
/// Name servers: the one that the machine is told of, and another one.
const SERVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 53), Ipv4Addr::new(203, 0, 113, 54)];

/// The ports of web servers; datagrams are sent to the second one.
const PORTS: [u16; 2] = [80, 443];

/// What arrived, as [`Row::evidence`] says it.
const EVIDENCE: [&str; 8] = [
    "listed-host-reached",
    "unlisted-host-reached",
    "address-reached",
    "question-about-an-unlisted-name",
    "private-address-reached",
    "metadata-service-reached",
    "other-host-named",
    "datagram-arrived",
];

/// Tests runs that have rules about hosts: of these profiles, if their own name some; without any, of the usual one.
pub fn test(own: &Path, profiles: &[OsString], against: Option<&OsStr>) -> Result<Vec<Report>, Refusal> {
    let rows: Vec<&Row> = HOST_ROWS.iter().collect();
    let stage = Stage::new()?;
    let named = |profile: &&OsString| {
        let asked = request(own, against.unwrap_or(profile), &stage);
        asked
            .and_then(|request| Claims::of(&request, &stage))
            .is_ok_and(|claims| claims.names_hosts().is_ok())
    };
    let usual = [OsString::from(USUAL)];
    let tested: Vec<&OsString> =
        if profiles.is_empty() { usual.iter().collect() } else { profiles.iter().filter(named).collect() };
    let mut reports = Vec::new();
    for profile in tested {
        let rows = seen(own, profile, against, &rows)?;
        reports.push(Report { subject: Subject::Hosts, profile: profile.clone(), added: Vec::new(), rows });
    }
    Ok(reports)
}

/// The verdicts where nothing confines the self-test.
pub fn test_without_sandbox(own: &Path) -> Result<Vec<(&'static Row, Verdict)>, Refusal> {
    let rows: Vec<&Row> = HOST_ROWS.iter().collect();
    let outside = Outside::begin()?;
    let seen = control(own, &rows, Some(&outside))?;
    Ok(rows.iter().map(|row| (*row, judge::judge(row, Ok(()), Ok(()), &seen, Some(&seen)))).collect())
}

fn seen(
    own: &Path,
    profile: &OsString,
    against: Option<&OsStr>,
    rows: &[&'static Row],
) -> Result<Vec<(&'static Row, Verdict)>, Refusal> {
    let untried = |why: String| rows.iter().map(|row| (*row, Verdict::Untried(why.clone()))).collect();
    let stage = Stage::new()?;
    let outside = match Outside::begin() {
        Ok(outside) => outside,
        Err(why) => return Ok(untried(why.to_string())),
    };
    let control = control(own, rows, Some(&outside))?;
    let tried = with_rules(request(own, profile, &stage)?, &stage);
    let promised = match against {
        Some(other) => with_rules(request(own, other, &stage)?, &stage),
        None => tried.clone(),
    };
    let tested = Claims::of(&promised, &stage).and_then(|claims| {
        // What came before is not of this run.
        outside.arrived()?;
        Ok((claims, confined(&tried, &stage, rows, Some(&outside))?))
    });
    Ok(match tested {
        Ok((claims, seen)) => rows
            .iter()
            .map(|row| (*row, super::verdict(row, &claims, &stage, &seen, Some(&control))))
            .collect(),
        Err(refusal) => untried(refusal.to_string()),
    })
}

/// The request with the rules of the self-test, unless the profile opens the network as a whole.
fn with_rules(mut request: Request, stage: &Stage) -> Request {
    let opens_all = Claims::of(&request, stage).is_ok_and(|claims| claims.has_whole_network());
    if !opens_all {
        request.connect.extend(RULES.map(String::from));
    }
    request
}

fn name(text: &str) -> Option<HostName> {
    HostName::parse(text).ok()
}

/// Nothing leads to a name, or an address, at the ports of the self-test.
pub fn no_way(claims: &Claims, (text, address): (&str, Option<Ipv4Addr>)) -> Claim {
    let rules = claims.host_rules()?;
    let by_name = |port| name(text).is_some_and(|name| rules.allow_name(&name, port));
    let by_address = |port| address.is_some_and(|address| rules.allow_address(IpAddr::V4(address), port));
    claims.unless(PORTS.into_iter().any(|port| by_name(port) || by_address(port)))
}

/// No rule allows the host that is not to be reached.
pub fn unlisted(claims: &Claims) -> Claim {
    no_way(claims, (UNLISTED.0, None))
}

/// No rule allows the address that no name leads to.
pub fn nameless(claims: &Claims) -> Claim {
    no_way(claims, ("", Some(NAMELESS)))
}

/// A name that a rule allows does not lead to this address.
fn not_resolved(claims: &Claims, address: Ipv4Addr) -> Claim {
    let rules = claims.host_rules()?;
    claims.unless(rules.allow_resolved(IpAddr::V4(address), PORTS[0]))
}

/// No rule allows the private address.
pub fn private(claims: &Claims) -> Claim {
    not_resolved(claims, REBINDING.1)
}

/// No rule allows the address of metadata services.
pub fn metadata(claims: &Claims) -> Claim {
    not_resolved(claims, METADATA.1)
}

/// Each rule about the host has the first bytes looked at.
pub fn said(claims: &Claims) -> Claim {
    let rules = claims.host_rules()?;
    let is_free = |port| name(LISTED.0).is_some_and(|name| rules.protocols_of_name(&name, port).is_empty());
    claims.unless(PORTS.into_iter().any(is_free))
}
