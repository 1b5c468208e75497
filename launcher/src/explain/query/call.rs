//! What a policy says about a system call.

use crate::error::Refusal;
use crate::explain::decode::{self, Access, PathArgument};
use crate::explain::hint::Explainer;
use crate::explain::hint::capability::Nowhere;
use crate::explain::query::{Answer, Rule, Verdict};
use crate::plan::calls::Extras;
use crate::plan::{Plan, notified};
use crate::profile::{Alternative, Grants, NetworkMode, When};
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::errno;
use sbx_policy::interpret::{self, Data};
use sbx_policy::restrictions::{self, RESTRICTIONS};
use sbx_policy::rules::{Actions, Grant, Row};
use sbx_policy::shadow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub fn answer(plan: &Plan, call: Call, args: Option<[u64; 6]>) -> Result<Answer, Refusal> {
    answer_for(plan, call, args, None)
}

/// The same, of a call for this access to a path.
pub fn answer_for(
    plan: &Plan,
    call: Call,
    args: Option<[u64; 6]>,
    path: Option<(&Path, Access)>,
) -> Result<Answer, Refusal> {
    let Some(number) = call.number(Arch::HOST) else {
        let mut answer = Answer::new(Verdict::Refused);
        answer.reason = Some("this architecture has no such call".to_string());
        return Ok(answer);
    };
    let actions = Actions { violation: bpf::RET_TRAP, log: bpf::RET_LOG, unknown: None };
    let (table, free) = plan.calls.rules(actions, Extras::default())?;
    let row = plan.calls.in_effect(table.row(call).copied().unwrap_or_default());
    let is_open = plan.calls.open_by().is_some() && row.deny == Grant::None;
    let data = Data { nr: number, arch: Arch::HOST.audit(), args: args.unwrap_or_default() };
    let decided = match (row.allow, row.deny) {
        _ if is_open => Some(true),
        _ if free.concerns(number) => None,
        (_, Grant::All) | (Grant::None, _) => Some(false),
        (Grant::All, Grant::None) => Some(true),
        _ => None,
    };
    let decided = match args {
        Some(_) if !is_open => {
            let program = plan.calls.strict_program()?;
            Some(interpret::lets_through(&program, &data))
        }
        _ => decided,
    };
    if call.name() == "connect" && plan.network.mode != NetworkMode::None && plan.calls.supervisor_connects()
    {
        return Ok(connections(plan));
    }
    let mut answer = match decided {
        Some(true) => by_allowing(Answer::new(Verdict::Allowed), plan, call, args),
        Some(false) => refused(plan, call, &data, args.is_some(), path),
        None => depends(plan, call, &row),
    };
    if answer.verdict != Verdict::Refused {
        supervised(plan, call, &mut answer);
    }
    Ok(answer)
}

fn matching<'g>(grants: &'g Grants, args: Option<[u64; 6]>) -> impl Iterator<Item = Rule> + 'g {
    let all = if let Grants::All(origin) = grants { Some(origin) } else { None };
    let some = grants.alternatives().iter();
    let some = some.filter(move |alternative| args.is_none_or(|args| holds(alternative, &args)));
    all.into_iter().chain(some.map(|alternative| &alternative.origin)).map(|origin| Rule::of(origin))
}

fn holds(alternative: &Alternative, args: &[u64; 6]) -> bool {
    let all = |conditions: &[restrictions::Condition]| {
        conditions.iter().all(|c| args.get(usize::from(c.arg)).is_some_and(|value| shadow::holds(c, *value)))
    };
    alternative.when.any().into_iter().any(all)
}

fn by_allowing(answer: Answer, plan: &Plan, call: Call, args: Option<[u64; 6]>) -> Answer {
    let answer = matching(plan.calls.allowed(call), args).fold(answer, |answer, rule| answer.by(rule));
    match plan.calls.open_by() {
        _ if !answer.rules.is_empty() => answer,
        Some(default) => answer.by(Rule::of(default)),
        None => answer.by(Rule::flag(by_network(plan.network.mode))),
    }
}

/// What allows a call that no entry names.
fn by_network(mode: NetworkMode) -> &'static str {
    match mode {
        NetworkMode::Private => "the run's own network",
        NetworkMode::Host => "the network that is open",
        NetworkMode::Ports => "the network, as far as rules open it",
        NetworkMode::None | NetworkMode::Loopback => "what sockets may do without a network",
    }
}

fn refused(plan: &Plan, call: Call, data: &Data, exact: bool, path: Option<(&Path, Access)>) -> Answer {
    let shown = decode::Call { name: call.name(), args: data.args, foreign: false };
    let mut decoded = decode::decode(&shown, &Nowhere);
    decoded.paths.extend(path.map(|(path, access)| PathArgument {
        dirfd: None,
        path: path.as_os_str().as_bytes().to_vec(),
        access,
        follow: false,
        empty_path_ok: false,
    }));
    let mut answer =
        Answer::new(Verdict::Refused).told(Explainer::of(plan).reason_of(None, call.name(), data, &decoded));
    // What is answered like this is no part of what the profile is for: `workspace` without clone3 starts programs.
    let said = plan.calls.rules_of(call).filter(|said| matches!(said.deny, Grants::All(_)));
    if let Some(error) = said.and_then(|said| said.errno).and_then(errno::name) {
        answer.reason = Some(format!("profile '{}' answers it with {error}", plan.profile.name));
    }
    let denials = plan.calls.rules_of(call).map(|said| &said.deny);
    let denials = denials.into_iter().flat_map(|deny| matching(deny, exact.then_some(data.args)));
    let answer = denials.fold(answer, |answer, rule| answer.by(rule));
    match &plan.profile.syscalls.default {
        Some(default) if answer.rules.is_empty() => answer.by(Rule::of(&default.origin)),
        _ => answer,
    }
}

/// By the table that the filter is made of; the profile says where the entries come from.
fn depends(plan: &Plan, call: Call, row: &Row) -> Answer {
    let mut answer = Answer::new(Verdict::Depends);
    for (word, grant) in [("allowed", row.allow), ("refused", row.deny)] {
        match grant {
            Grant::All => answer.depends.push(format!("{word} otherwise")),
            Grant::None => {}
            Grant::Some(mask) => {
                let named = restrictions::of_call(call).enumerate().filter(|(bit, _)| mask & (1 << bit) != 0);
                answer.depends.extend(named.map(|(_, place)| describe(word, call, place)));
            }
        }
    }
    let Some(said) = plan.calls.rules_of(call) else { return answer };
    let allowed = plan.calls.allowed(call);
    for (word, grants) in [("allowed", allowed), ("refused", &said.deny)] {
        let free = grants.alternatives().iter().filter(|a| matches!(a.when, When::Free(_)));
        answer.depends.extend(free.map(|a| format!("{word} under the conditions of {}", *a.origin)));
    }
    let rules: Vec<Rule> = matching(allowed, None).chain(matching(&said.deny, None)).collect();
    rules.into_iter().fold(answer, |answer, rule| answer.by(rule))
}

fn describe(word: &str, call: Call, place: usize) -> String {
    let meaning = RESTRICTIONS.get(place).map_or("", |restriction| restriction.meaning);
    format!("{word} as {}[{}]: {meaning}", call.name(), restrictions::name(place))
}

/// The supervisor connects.
fn connections(plan: &Plan) -> Answer {
    let mut answer = Answer::new(Verdict::Depends);
    answer.depends.push(match plan.network.mode {
        NetworkMode::Private => {
            "allowed inside the run's own network: ask with --connect, or --unix".to_string()
        }
        _ => "allowed to what the network reaches, and to some UNIX sockets: ask with --connect, or --unix"
            .to_string(),
    });
    answer
}

/// What the filter leaves to others.
fn supervised(plan: &Plan, call: Call, answer: &mut Answer) {
    let name = call.name();
    if plan.attributes && notified::changes_attributes(name) {
        answer.verdict = Verdict::Depends;
        answer.depends.push("allowed where the file may be written: ask with --path and --op w".to_string());
        if notified::XATTRS.contains(&name) {
            answer.notes.push("only user.* and access lists; others are 'not supported'".to_string());
        }
    } else if plan.attributes && notified::UNSUPPORTED.contains(&name) {
        answer.verdict = Verdict::Refused;
        answer.reason = Some("it is answered with 'operation not supported'".to_string());
    } else if plan.paths.is_some() && notified::DECIDED_BY_LANDLOCK.contains(&name) {
        answer.notes.push("the path rules decide about the file: ask with --path".to_string());
    }
}
