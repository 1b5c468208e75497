//! Rules for one call, side by side: none of them may make another pointless.

use sbx_policy::calls::Call;
use sbx_policy::shadow;

use super::error::{Fault, Plain};
use super::model::{Alternative, CallRules, Grants, Origin, Shared, When};

/// More conditions than this for one call are a mistake; each is compared with every other.
const ALTERNATIVES: usize = 64;

/// `'a' and 'b' (syscalls.allow[1]): why`.
pub(crate) fn sentence(one: &Origin, other: &Origin, cause: &str) -> String {
    let index = other.index.map_or(String::new(), |index| format!("[{index}]"));
    format!(
        "'{}' and '{}' ({}{index}) do not go together: {cause}; keep one of them",
        Plain(&one.entry),
        Plain(&other.entry),
        other.key
    )
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
) -> Result<(), String> {
    let name = call.name();
    let wider = || format!("{name} whatever its arguments are leaves nothing to the narrower one");
    match (&mut *grants, when) {
        (Grants::None, None) => *grants = Grants::All(origin.clone()),
        (Grants::None, Some(when)) => *grants = Grants::Some(vec![alternative(when, origin)].into()),
        (Grants::All(other), None) => {
            // Groups may share calls; a name that a group contains has no effect of its own.
            if !is_group(origin) || !is_group(other) {
                return Err(sentence(origin, other, &format!("both mean every {name}")));
            }
        }
        (Grants::All(other), Some(_)) => return Err(sentence(origin, other, &wider())),
        (Grants::Some(others), None) => {
            let other = others.first().map_or(origin, |other| &other.origin);
            return Err(sentence(origin, other, &wider()));
        }
        (Grants::Some(others), Some(when)) => {
            if let Some(other) =
                others.iter().find(|other| covers(&other.when, when) || covers(when, &other.when))
            {
                let cause = format!("all that one of them matches of {name} the other matches too");
                return Err(sentence(origin, &other.origin, &cause));
            }
            if others.len() >= ALTERNATIVES {
                return Err(format!("{name} has more than {ALTERNATIVES} conditions"));
            }
            others.to_mut().push(alternative(when, origin));
        }
    }
    Ok(())
}

fn alternative(when: &When, origin: &Shared<Origin>) -> Alternative {
    Alternative { when: when.clone(), origin: origin.clone() }
}

/// Whether everything that `narrow` matches is matched by `wide`.
fn covers(wide: &When, narrow: &When) -> bool {
    shadow::covers(&wide.any(), &narrow.any())
}

fn fault(origin: &Origin, text: String) -> Fault {
    let index = origin.index.map_or(String::new(), |index| format!("[{index}]"));
    Fault(format!("{}{index}: {text}", origin.key))
}

/// Adds what `log` says to what `allow` says. A call is allowed by name in one of the two; but a name in
/// `log` may pick a call out of a group in `allow`.
pub(crate) fn note(rules: &mut CallRules, noted: Grants) -> Result<(), Fault> {
    let first = noted.origins().next().cloned();
    let Some(origin) = first else { return Ok(()) };
    let named = rules.allow.origins().find(|allowed| !is_group(allowed) || matches!(noted, Grants::Some(_)));
    if let Some(allowed) = named {
        let cause = "a call is either allowed or allowed and noted";
        return Err(fault(&origin, sentence(&origin, allowed, cause)));
    }
    rules.allow = noted;
    rules.log = Some(origin);
    Ok(())
}

/// Adds what `deny` says. Denied wins, so a name that is denied and allowed is a mistake; but a name in `deny`
/// may pick a call out of a group in `allow`.
pub(crate) fn forbid(rules: &mut CallRules, denied: Grants) -> Result<(), Fault> {
    let dead = |allowed: &Origin, denied: &Origin| {
        let cause = "what is denied is never allowed";
        Err(fault(allowed, sentence(allowed, denied, cause)))
    };
    match &denied {
        Grants::None => return Ok(()),
        Grants::All(denied) => {
            if let Some(allowed) = rules.allow.origins().find(|allowed| !is_group(allowed)) {
                return dead(allowed, denied);
            }
            (rules.allow, rules.log) = (Grants::None, None);
        }
        Grants::Some(refusals) => {
            let Grants::Some(permissions) = &rules.allow else {
                rules.deny = denied;
                return Ok(());
            };
            for allowed in permissions.iter() {
                if let Some(refusal) = refusals.iter().find(|refusal| covers(&refusal.when, &allowed.when)) {
                    return dead(&allowed.origin, &refusal.origin);
                }
            }
        }
    }
    rules.deny = denied;
    Ok(())
}
