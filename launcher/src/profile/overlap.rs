//! Rules for one call, side by side: none of them may make another pointless.

use sbx_policy::calls::Call;
use sbx_policy::shadow;

use crate::profile::calls::{Alternative, CallRules, Grants, When};
use crate::profile::error::{Fault, Mistake};
use crate::profile::origin::{Origin, Shared};

/// More conditions than this for one call are a mistake; each is compared with every other.
const ALTERNATIVES: usize = 64;

/// That `one` makes no sense beside `other`.
pub(crate) fn conflict(one: &Origin, other: &Origin, cause: impl Into<String>) -> Mistake {
    Mistake::Conflict {
        one: one.entry.to_string(),
        other: other.entry.to_string(),
        place: other.place(),
        cause: cause.into(),
    }
}

/// The same between two lists, at the place of `one`.
fn fault(one: &Origin, other: &Origin, cause: &str) -> Fault {
    Fault { place: one.place(), mistake: conflict(one, other, cause) }
}

fn is_group(origin: &Origin) -> bool {
    origin.entry.starts_with('@')
}

/// Adds an entry of a list to what the same list says about the call already.
pub(crate) fn extend(
    grants: &mut Grants,
    call: Call,
    when: Option<&When>,
    origin: &Shared<Origin>,
) -> Result<(), Mistake> {
    let name = call.name();
    let wider = |other: &Origin| {
        let cause = format!("{name} whatever its arguments are leaves nothing to the narrower one");
        Err(conflict(origin, other, cause))
    };
    let alternative = |when: &When| Alternative { when: when.clone(), origin: origin.clone() };
    match (&mut *grants, when) {
        (Grants::None, None) => *grants = Grants::All(origin.clone()),
        (Grants::None, Some(when)) => *grants = Grants::Some(vec![alternative(when)].into()),
        // Groups may share calls; a name that a group contains has no effect of its own.
        (Grants::All(other), None) if is_group(origin) && is_group(other) => {}
        (Grants::All(other), None) => {
            return Err(conflict(origin, other, format!("both mean every {name}")));
        }
        (Grants::All(other), Some(_)) => return wider(other),
        (Grants::Some(others), None) => return wider(others.first().map_or(origin, |other| &other.origin)),
        (Grants::Some(others), Some(when)) => {
            let mut others_covered =
                others.iter().filter(|other| covers(&other.when, when) || covers(when, &other.when));
            if let Some(other) = others_covered.next() {
                let cause = format!("all that one of them matches of {name} the other matches too");
                return Err(conflict(origin, &other.origin, cause));
            }
            if others.len() >= ALTERNATIVES {
                return Err(format!("{name} has more than {ALTERNATIVES} conditions").into());
            }
            others.to_mut().push(alternative(when));
        }
    }
    Ok(())
}

/// Whether everything that `narrow` matches is matched by `wide`.
fn covers(wide: &When, narrow: &When) -> bool {
    shadow::covers(&wide.any(), &narrow.any())
}

/// Adds what `log` says to what `allow` says. Only one of the two lists may name a call; but a name in `log`
/// may pick a call out of a group in `allow`.
pub(crate) fn log(rules: &mut CallRules, logged: Grants) -> Result<(), Fault> {
    let Some(origin) = logged.origins().next().cloned() else { return Ok(()) };
    let conditional = matches!(logged, Grants::Some(_));
    if let Some(allowed) = rules.allow.origins().find(|allowed| !is_group(allowed) || conditional) {
        return Err(fault(&origin, allowed, "a call is either allowed or allowed and noted"));
    }
    rules.allow = logged;
    rules.log = Some(origin);
    Ok(())
}

/// Adds what `deny` says. A denial wins, so a name that is denied and allowed is a mistake; but a name in
/// `deny` may pick a call out of a group in `allow`.
pub(crate) fn deny(rules: &mut CallRules, denied: Grants) -> Result<(), Fault> {
    let dead = |allowed, denied| Err(fault(allowed, denied, "what is denied is never allowed"));
    match (&denied, &rules.allow) {
        (Grants::None, _) => return Ok(()),
        (Grants::All(denied), allowed) => {
            if let Some(allowed) = allowed.origins().find(|allowed| !is_group(allowed)) {
                return dead(allowed, denied);
            }
            (rules.allow, rules.log) = (Grants::None, None);
        }
        (Grants::Some(refusals), Grants::Some(permissions)) => {
            for allowed in permissions.iter() {
                if let Some(refusal) = refusals.iter().find(|refusal| covers(&refusal.when, &allowed.when)) {
                    return dead(&allowed.origin, &refusal.origin);
                }
            }
        }
        (Grants::Some(_), _) => {}
    }
    rules.deny = denied;
    Ok(())
}
