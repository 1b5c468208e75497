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
pub(crate) fn covers(wide: &When, narrow: &When) -> bool {
    shadow::covers(&wide.any(), &narrow.any())
}

/// Adds what is allowed only where the run has namespaces of its own. An entry that the others make pointless is a
/// mistake; one that is wider than others takes their place there.
pub(crate) fn inside(rules: &mut CallRules, inside: Grants) -> Result<(), Fault> {
    const POINTLESS: &str = "the latter allows it without namespaces too";
    rules.inside = match (inside, &rules.allow) {
        (inside, Grants::All(other)) => match inside.origins().find(|origin| !is_group(origin)) {
            Some(origin) => return Err(fault(origin, other, POINTLESS)),
            None => Grants::None,
        },
        (Grants::Some(more), Grants::Some(known)) => {
            for wish in more.iter() {
                if let Some(other) = known.iter().find(|other| covers(&other.when, &wish.when)) {
                    return Err(fault(&wish.origin, &other.origin, POINTLESS));
                }
            }
            let others =
                known.iter().filter(|other| !more.iter().any(|wish| covers(&wish.when, &other.when)));
            Grants::Some(others.chain(more.iter()).cloned().collect())
        }
        (inside, _) => inside,
    };
    Ok(())
}

/// An entry that allows the call; groups do not count unless they are to.
fn permission(rules: &CallRules, groups_count: bool) -> Option<Shared<Origin>> {
    let mut all = rules.allow.origins().chain(rules.inside.origins());
    all.find(|origin| groups_count || !is_group(origin)).cloned()
}

/// Adds what `log` says to what `allow` says. Only one of the two lists may name a call; but a name in `log`
/// may pick a call out of a group in `allow`.
pub(crate) fn log(rules: &mut CallRules, logged: Grants) -> Result<(), Fault> {
    let Some(origin) = logged.origins().next().cloned() else { return Ok(()) };
    let conditional = matches!(logged, Grants::Some(_));
    if let Some(allowed) = permission(rules, conditional) {
        return Err(fault(&origin, &allowed, "a call is either allowed or allowed and noted"));
    }
    (rules.allow, rules.inside) = (logged, Grants::None);
    rules.log = Some(origin);
    Ok(())
}

/// Adds what `deny` says. A denial wins, so a name that is denied and allowed is a mistake; but a name in
/// `deny` may pick a call out of a group in `allow`.
pub(crate) fn deny(rules: &mut CallRules, denied: Grants) -> Result<(), Fault> {
    let dead =
        |allowed: &Origin, denied: &Origin| Err(fault(allowed, denied, "what is denied is never allowed"));
    match &denied {
        Grants::None => return Ok(()),
        Grants::All(denied) => {
            if let Some(allowed) = permission(rules, false) {
                return dead(&allowed, denied);
            }
            (rules.allow, rules.inside, rules.log) = (Grants::None, Grants::None, None);
        }
        Grants::Some(refusals) => {
            for allowed in [&rules.allow, &rules.inside].into_iter().flat_map(Grants::alternatives) {
                if let Some(refusal) = refusals.iter().find(|refusal| covers(&refusal.when, &allowed.when)) {
                    return dead(&allowed.origin, &refusal.origin);
                }
            }
        }
    }
    rules.deny = denied;
    Ok(())
}
