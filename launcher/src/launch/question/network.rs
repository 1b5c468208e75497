//! What a policy says about ports and sockets.

use super::{Answer, Rule, Verdict, network_rule, own, path};
use crate::cli::Run;
use crate::launch::landlock::Version;
use crate::launch::plan::Plan;
use crate::launch::policy::Mode;
use crate::refusal::Refusal;
use crate::supervise::broker::Broker;
use crate::supervise::suggest::Way;
use crate::sys::access;
use std::path::Path;

pub fn connect(flags: &Run, plan: &Plan, port: u16) -> Answer {
    let entries = plan.profile.network.connect.iter();
    let named = entries.filter(|entry| entry.port == port).map(|entry| Rule::of(&entry.origin)).next();
    tcp(
        flags,
        plan,
        plan.network.connect.contains(&port),
        named,
        Way::of(["--connect", &format!("*:{port}")]),
    )
}

pub fn bind(flags: &Run, plan: &Plan, port: u16) -> Answer {
    let entries = plan.profile.network.bind.iter();
    let named = entries.filter(|entry| entry.value == port).map(|entry| Rule::of(&entry.origin)).next();
    let mut answer =
        tcp(flags, plan, plan.network.bind.contains(&port), named, Way::of(["--bind", &port.to_string()]));
    if plan.network.mode != Mode::Private && !access::may_bind(port) {
        let note = "the kernel refuses ordinary users to listen on this port, whatever sbx allows";
        answer.notes.push(note.to_string());
    }
    answer
}

fn tcp(flags: &Run, plan: &Plan, listed: bool, named: Option<Rule>, way: Way) -> Answer {
    let all = network_rule(flags, plan);
    if plan.network.mode == Mode::Private {
        return inside(all);
    }
    match (plan.network.mode, listed) {
        (Mode::Host, _) => Answer::new(Verdict::Allowed).by(all),
        (Mode::Ports, true) => Answer::new(Verdict::Allowed).by(named.unwrap_or(all)),
        (mode, _) => {
            let mut answer = Answer::new(Verdict::Refused).by(all);
            let why =
                if mode == Mode::None { "there is no network" } else { "only the named ports are open" };
            answer.reason = Some(why.to_string());
            // Single ports take Landlock ABI 4.
            answer.way = Some(if plan.landlock >= Version::TCP { way } else { Way::of(["--net", "host"]) });
            answer
        }
    }
}

/// In a network of the run's own.
fn inside(rule: Rule) -> Answer {
    let mut answer = Answer::new(Verdict::Depends).by(rule);
    answer
        .depends
        .push("allowed between the processes of the run: nobody else is in its network".to_string());
    answer.way = Some(Way::of(["--net", "host"]));
    answer
}

pub fn unix(flags: &Run, plan: &Plan, socket: &Path) -> Result<Answer, Refusal> {
    let (place, exists) = path::place(&plan.directory.join(socket));
    let granted = path::granted(plan)?.unwrap_or_default();
    let broker = Broker { granted, named: plan.sockets.clone(), layout: None, own_network: false };
    let makes = plan.calls.allows("socket");
    let reachable = plan.landlock >= Version::UNIX || plan.calls.brokers();
    let hidden = plan.namespaces.as_ref().ok().and_then(|layout| layout.replaces(&place));
    let mut answer = if own::denies(plan, &place) {
        Answer::of(Verdict::Refused, "it is denied, and a denial always wins")
    } else if let Some(at) = hidden.filter(|_| exists) {
        own::out_of_sight(&place, at, "--unix")
    } else if broker.allows(&place) && makes && reachable {
        let named = plan.profile.network.unix.iter().find(|_| plan.sockets.contains(&place));
        let rule = named.map(|entry| Rule::of(&entry.origin));
        Answer::new(Verdict::Allowed)
            .by(rule.unwrap_or_else(|| Rule::flag("sockets in writable directories")))
    } else {
        let mut answer = Answer::new(Verdict::Refused);
        if makes && !reachable {
            answer = answer.by(network_rule(flags, plan));
            answer.reason =
                Some("with this network UNIX sockets cannot be told apart before Landlock ABI 9".into());
        } else {
            answer = answer.by(Rule::flag(
                "no rule of the policy names this socket, and it is in no writable directory",
            ));
            answer.way = exists.then(|| Way::default().and("--unix", &place));
        }
        answer
    };
    if !exists {
        answer.notes.push("there is no such socket now".to_string());
    }
    Ok(answer)
}
