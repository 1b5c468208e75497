//! What the filter notifies, by the table of rules.

use super::*;
use crate::plan::notified;
use crate::plan::rows::row;
use crate::profile::load;
use sbx_policy::errno::ENOSYS;
use sbx_policy::rules::Grant;

/// The rules of a built-in profile, with notifications of these kinds.
fn rules_of(profile: &str, notified: Kinds) -> Box<Rules> {
    let profile = load(OsStr::new(profile), &Search::default()).unwrap();
    let calls = calls(&profile, &Network::default(), false, Unix::Refused, Arch::HOST).unwrap();
    let actions = calls.plain_actions(bpf::RET_USER_NOTIF);
    calls.rules(actions, Extras { notified, ..Extras::default() }).unwrap().0
}

#[test]
fn every_call_that_makes_a_task_is_notified_and_none_is_added() {
    for profile in ["workspace", "network", "minimal", "no-exec"] {
        let (mut before, mut after) =
            (rules_of(profile, Kinds::default()), rules_of(profile, Kinds::default().and(Notified::Tasks)));
        for name in notified::TASKS {
            let allowed = row(&mut before, name).unwrap().allow;
            let counted = row(&mut after, name).unwrap();
            match name {
                "clone3" => assert_eq!((counted.deny, counted.errno), (Grant::All, ENOSYS), "{profile}"),
                _ => assert_eq!((counted.allow, counted.log), (allowed, allowed != Grant::None), "{name}"),
            }
        }
    }
}
