//! How a document changes the rules about system calls of those before it.

use serde_json::Value;

use crate::profile::calls::{CallRules, Grants, Syscalls};
use crate::profile::keys::Part;
use crate::profile::origin::Origin;
use crate::profile::show;

impl Part for Syscalls {
    fn merge(&mut self, said: Syscalls, inherited: &dyn Fn(&Origin) -> bool) {
        self.default.merge(said.default, inherited);
        if self.calls.0.is_empty() {
            self.calls = said.calls;
            return;
        }
        for (call, said) in said.calls.0.into_owned() {
            self.calls.change(call, |known| replace(known, said, inherited));
        }
    }

    fn show(&self) -> Value {
        show::syscalls(self)
    }
}

/// What a document says about a call replaces what was said before, except that a denial under conditions
/// only takes away, and that only its own children can take back what a document denies.
fn replace(known: &mut CallRules, mut said: CallRules, inherited: &dyn Fn(&Origin) -> bool) {
    let allows = !(said.allow.is_none() && said.inside.is_none());
    let only_takes_away = !allows && matches!(said.deny, Grants::Some(_));
    if only_takes_away {
        known.errno = said.errno.or(known.errno);
        let earlier = std::mem::replace(&mut known.deny, said.deny);
        deny_too(&mut known.deny, earlier);
        return;
    }
    let foreign = match std::mem::take(&mut known.deny) {
        Grants::All(origin) if !inherited(&origin) => Grants::All(origin),
        Grants::Some(mut refusals) => {
            refusals.to_mut().retain(|refusal| !inherited(&refusal.origin));
            if refusals.is_empty() { Grants::None } else { Grants::Some(refusals) }
        }
        _ => Grants::None,
    };
    if !foreign.is_none() {
        said.errno = said.errno.or(known.errno);
        deny_too(&mut said.deny, foreign);
        if matches!(said.deny, Grants::All(_)) {
            (said.allow, said.inside, said.log) = (Grants::None, Grants::None, None);
        }
    }
    *known = said;
}

fn deny_too(denied: &mut Grants, more: Grants) {
    match (&mut *denied, more) {
        (Grants::All(_), _) | (_, Grants::None) => {}
        (_, Grants::All(origin)) => *denied = Grants::All(origin),
        (Grants::None, more) => *denied = more,
        (Grants::Some(list), Grants::Some(more)) => {
            for refusal in more.into_owned() {
                if !list.iter().any(|known| known.when == refusal.when) {
                    list.to_mut().push(refusal);
                }
            }
        }
    }
}
