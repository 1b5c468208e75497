//! The rules of a document about one call, and the entries of a profile that say the same.

use sbx_policy::calls::Call;
use sbx_policy::errno::EPERM;
use sbx_policy::restrictions::{Condition, Op};
use sbx_policy::shadow;
use serde_json::{Value, json};

use crate::profile::calls::DefaultAction;
use crate::profile::foreign::Losses;
use crate::profile::foreign::oci::Action;
use crate::profile::foreign::oci::names::recognised;
use crate::profile::foreign::oci::read::word;
use crate::profile::show::condition;

/// When a rule holds.
#[derive(Debug, Default)]
enum When {
    #[default]
    Never,
    Always,
    Some(Vec<Vec<Condition>>),
}

impl When {
    fn add(&mut self, all: Vec<Condition>) {
        if all.is_empty() {
            *self = When::Always;
        }
        let list = match self {
            When::Always => return,
            When::Some(list) => list,
            When::Never => {
                *self = When::Some(vec![all]);
                return;
            }
        };
        if list.iter().any(|known| shadow::covers(&[known], &[&all])) {
            return;
        }
        list.retain(|known| !shadow::covers(&[&all], &[known]));
        list.push(all);
    }

    fn unite(&mut self, other: When) {
        match other {
            When::Never => {}
            When::Always => *self = When::Always,
            When::Some(list) => list.into_iter().for_each(|all| self.add(all)),
        }
    }

    fn is_never(&self) -> bool {
        matches!(self, When::Never)
    }

    /// Whether both may hold at once, as far as comparisons in pairs can tell.
    fn meets(&self, other: &When) -> bool {
        match (self, other) {
            (When::Never, _) | (_, When::Never) => false,
            (When::Always, _) | (_, When::Always) => true,
            (When::Some(one), When::Some(other)) => one
                .iter()
                .any(|a| other.iter().any(|b| shadow::satisfiable(&[a.as_slice(), b.as_slice()].concat()))),
        }
    }
}

/// What the rules so far say about a call.
#[derive(Debug, Default)]
pub struct Draft {
    allow: When,
    log: When,
    deny: When,
    /// The error of the denials, if one has an error of its own.
    errno: Option<Option<u16>>,
    place: String,
}

impl Draft {
    /// Adds a rule. Consumers skip one that does what happens anyway.
    pub fn add(
        &mut self,
        action: Action,
        args: &[Condition],
        default: DefaultAction,
        place: &str,
        losses: &mut Losses,
    ) {
        self.place = place.to_string();
        let same = match (action, default) {
            (Action::Allow, DefaultAction::Allow) | (Action::Log, DefaultAction::Log) => true,
            (Action::Errno(one), DefaultAction::Errno(other)) => one == other,
            (Action::KillProcess, DefaultAction::Kill) => true,
            _ => false,
        };
        if same {
            return;
        }
        let whens = alternatives(args, place, losses);
        let errno = match action {
            Action::Allow => return whens.into_iter().for_each(|all| self.allow.add(all)),
            Action::Log => return whens.into_iter().for_each(|all| self.log.add(all)),
            // What a list of denials becomes answers so by default.
            Action::Errno(EPERM) if default == DefaultAction::Allow => None,
            Action::Errno(number) => Some(number),
            Action::KillProcess | Action::Other(_) => {
                let word = if let Action::Other(word) = action { word } else { "SCMP_ACT_KILL_PROCESS" };
                losses.note(
                    place,
                    format_args!("{word} for one call has no counterpart; it is denied instead"),
                );
                None
            }
        };
        if *self.errno.get_or_insert(errno) != errno {
            losses.note(place, "the denials of one call can have one error only; that of the first counts");
        }
        whens.into_iter().for_each(|all| self.deny.add(all));
    }

    /// Settles what rules say against each other: a denial wins, then a note.
    pub fn finish(mut self, call: Call, default: DefaultAction, losses: &mut Losses) -> Draft {
        if self.deny.meets(&self.allow) || self.deny.meets(&self.log) {
            losses.note(
                &self.place,
                "rules that allow the call and rules that refuse it may hold at once, and consumers differ about \
                 which of them counts; here it is the refusal",
            );
        }
        if !self.log.is_never() && !self.allow.is_never() {
            losses.note(&self.place, "a call is either allowed or allowed and noted; here it is noted");
            self.log.unite(std::mem::take(&mut self.allow));
        }
        // With some arguments noted, a profile refuses the others.
        if default == DefaultAction::Allow && matches!(self.log, When::Some(_)) {
            losses.note(
                &self.place,
                format_args!(
                    "{} is noted with some arguments and allowed with others; all are noted",
                    call.name()
                ),
            );
            self.log = When::Always;
        }
        if default == DefaultAction::Allow && self.log.is_never() {
            self.allow = When::Always;
        }
        if matches!(self.deny, When::Always) {
            (self.allow, self.log) = (When::Never, When::Never);
        }
        // What a denial covers would be an entry without effect.
        if let When::Some(refusals) = &self.deny {
            for list in [&mut self.allow, &mut self.log] {
                let When::Some(all) = list else { continue };
                all.retain(|one| !refusals.iter().any(|refusal| shadow::covers(&[refusal], &[one])));
                if all.is_empty() {
                    *list = When::Never;
                }
            }
        }
        self
    }

    /// Writes the entries.
    pub fn write(&self, call: Call, allow: &mut Vec<Value>, deny: &mut Vec<Value>, log: &mut Vec<Value>) {
        let errno = self.errno.flatten();
        for (when, list, errno) in
            [(&self.allow, allow, None), (&self.log, log, None), (&self.deny, deny, errno)]
        {
            let entry = |all: Option<&Vec<Condition>>| {
                let mut entry = json!({ "call": call.name() });
                if let Some(all) = all {
                    entry["args"] = all.iter().map(condition).collect();
                }
                if let Some(number) = errno {
                    entry["errno"] = json!(word(number));
                }
                entry
            };
            match when {
                When::Never => {}
                When::Always if errno.is_none() => list.push(json!(call.name())),
                When::Always => list.push(entry(None)),
                When::Some(all) => {
                    let (names, rest) = recognised(call, all.clone());
                    list.extend(names.iter().map(|name| named(call, name, errno)));
                    list.extend(rest.iter().map(|all| entry(Some(all))));
                }
            }
        }
    }
}

/// An entry with a restriction.
fn named(call: Call, name: &str, errno: Option<u16>) -> Value {
    let text = format!("{}[{name}]", call.name());
    match errno {
        None => json!(text),
        Some(number) => json!({ "call": text, "errno": word(number) }),
    }
}

/// The conditions of one rule. Consumers read several comparisons of one argument as alternatives, and then each
/// comparison of the rule is one.
fn alternatives(args: &[Condition], place: &str, losses: &mut Losses) -> Vec<Vec<Condition>> {
    let shared = args.iter().enumerate().any(|(at, one)| args[..at].iter().any(|other| other.arg == one.arg));
    let rules = if shared { args.chunks(1).map(<[_]>::to_vec).collect() } else { vec![args.to_vec()] };
    let mut kept = Vec::new();
    for mut all in rules {
        // Always true.
        all.retain(|c| !matches!((c.op, c.value), (Op::MaskedEq(0), 0) | (Op::Ge, 0) | (Op::Le, u64::MAX)));
        if shadow::satisfiable(&all) {
            kept.push(all);
        } else {
            losses.note(place, "no arguments meet the comparisons, so the rule never matches");
        }
    }
    kept
}
