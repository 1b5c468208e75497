//! Calls of the kernel that are more than a program asks for.

use crate::error::Refusal;
use crate::explain::review::probes::{Gain, Side};
use crate::explain::sensitive::KnownCalls;
use crate::explain::sensitive::table::CALLS;
use crate::host::landlock::Version;
use crate::plan::calls::Extras;
use crate::profile::Origin;
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::restrictions::{self, RESTRICTIONS};
use sbx_policy::rules::{Actions, Grant};

const MEANING: &str = "the kernel lets it do this";
const EVERY: &str = "every system call that no entry answers with an error";

/// Looks at every call: what goes beyond the built-in profiles, and what is known to be much.
pub fn ask(side: Side<'_>) -> Result<Vec<Gain>, Refusal> {
    let plan = side.about.plan;
    let known = KnownCalls::in_run(plan.namespaces.is_ok())?;
    let inside = KnownCalls::in_run(true)?;
    let actions = Actions { violation: bpf::RET_TRAP, log: bpf::RET_LOG, unknown: None };
    let (table, free) = plan.calls.rules(actions, Extras::default())?;
    // In namespaces of its own, or in a Landlock domain, a process reaches those of the run alone. From ABI 6 on the
    // reaper has one around every run, for its signals.
    let has_domain = plan.paths.is_some() || plan.landlock >= Version::SCOPES;
    let reaches_all = plan.namespaces.is_err() && !has_domain;
    let whose = if reaches_all { "other processes of the user" } else { "other processes of the run" };
    let (mut telling, mut others) = (Vec::new(), Vec::new());
    let gain = |about: String, rules: Vec<String>| Gain {
        topic: "kernel",
        about,
        meaning: MEANING.to_string(),
        rules,
    };
    let open = plan.calls.open_by();
    telling.extend(open.map(|open| gain(EVERY.to_string(), vec![open.to_string()])));
    for call in Call::all() {
        let Some(number) = call.number(Arch::HOST) else { continue };
        let row = plan.calls.in_effect(table.row(call).copied().unwrap_or_default());
        let is_free = free.concerns(number);
        let claim = CALLS.iter().find(|(name, _)| *name == call.name()).map(|(_, claim)| *claim);
        let (name, is_beyond) = (call.name(), !known.give(call, None));
        let about: Vec<String> = match (row.allow, row.deny) {
            (_, Grant::All) => Vec::new(),
            (Grant::All, _) => match claim {
                Some(claim) => vec![format!("{name} ({})", claim.replace("{whose}", whose))],
                None if is_beyond => vec![format!("{name} ({})", beyond([&known, &inside], call))],
                None => Vec::new(),
            },
            (Grant::None | Grant::Some(_), _) if is_free && is_beyond => {
                vec![format!("{name} (under the conditions of its entry)")]
            }
            (Grant::None, _) => Vec::new(),
            (Grant::Some(mask), _) => {
                let places = restrictions::of_call(call).enumerate();
                let places =
                    places.filter(|(bit, place)| mask & (1 << bit) != 0 && !known.give(call, Some(*place)));
                places.map(|(_, place)| restricted(name, place)).collect()
            }
        };
        let entries = plan.calls.allowed(call).origins().map(|origin| &**origin);
        let mut rules: Vec<&Origin> = open.map_or_else(|| entries.collect(), |open| vec![open]);
        if rules.is_empty() {
            // What no entry says comes with the network.
            rules.extend(plan.profile.network.mode.as_ref().map(|mode| &*mode.origin));
        }
        let rules: Vec<String> = rules.into_iter().map(Origin::to_string).collect();
        let list = match claim {
            Some(_) => &mut telling,
            // It is one of all.
            None if open.is_some() => continue,
            None => &mut others,
        };
        list.extend(about.into_iter().map(|about| gain(about, rules.clone())));
    }
    telling.append(&mut others);
    Ok(telling)
}

/// Why a call with any arguments is more than built-in profiles give: in such a run, and in namespaces of its own.
fn beyond(known: [&KnownCalls; 2], call: Call) -> String {
    let [given, inside] = known.map(|known| {
        let places = known.restrictions(call).into_iter();
        places.map(|place| restricted(call.name(), place)).collect::<Vec<_>>().join(", ")
    });
    match (&*given, &*inside) {
        ("", _) if known[1].give(call, None) => {
            "built-in profiles allow it only in namespaces of the run's own".to_string()
        }
        ("", "") => "no built-in profile allows it".to_string(),
        ("", inside) => {
            format!("built-in profiles allow only {inside}, and only in namespaces of the run's own")
        }
        (given, _) => format!("built-in profiles allow only {given}"),
    }
}

fn restricted(call: &str, place: usize) -> String {
    let meaning = RESTRICTIONS.get(place).map_or("", |restriction| restriction.meaning);
    format!("{call}[{}] ({meaning})", restrictions::name(place))
}
