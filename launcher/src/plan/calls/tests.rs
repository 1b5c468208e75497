//! What the filter notifies, by the table of rules.

use super::*;
use crate::plan::notified;
use crate::plan::rows::row;
use crate::profile::{Alternative, Given, Shared, load};
use sbx_policy::errno::ENOSYS;
use sbx_policy::rules::Grant;

fn calls_of(profile: &str) -> Calls {
    let profile = load(OsStr::new(profile), &Search::default()).unwrap();
    calls(&profile, &Network::default(), false, Unix::Refused, Arch::HOST).unwrap()
}

/// The rules of a built-in profile, with notifications of these kinds.
fn rules_of(profile: &str, notified: Kinds) -> Box<Rules> {
    let calls = calls_of(profile);
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

/// The calls of a built-in profile, of which a profile of the user's denies one, or a part of it.
fn denying(profile: &str, name: &str, part: Option<&str>, default: Option<DefaultAction>) -> Calls {
    let mut calls = calls_of(profile);
    let origin = Shared::from(Origin {
        profile: Shared::Fixed("own"),
        built_in: false,
        optional: false,
        unless_credentials: false,
        key: "syscalls.deny",
        index: Some(0),
        entry: name.to_string().into(),
        why: None,
    });
    if let Some(value) = default {
        calls.syscalls.default = Some(Given { value, origin: origin.clone() });
    }
    calls.syscalls.calls.change(Call::named(name.as_bytes()).unwrap(), |said| {
        said.errno = Some(ENOSYS);
        said.deny = match part.map(|part| When::named(name, part)) {
            Some(when) => Grants::Some(vec![Alternative { when, origin: origin.clone() }].into()),
            None => Grants::All(origin.clone()),
        };
    });
    calls
}

/// What is allowed and denied of a call with a flag, by the table.
fn with_flag(mut calls: Calls, entry: &str) -> Result<(Grant, Grant), String> {
    calls.add(List::Allow, "--allow-calls", entry.as_bytes()).map_err(|refusal| refusal.to_string())?;
    let mut rules = calls.rules(calls.plain_actions(bpf::RET_TRAP), Extras::default()).unwrap().0;
    let row = row(&mut rules, name_of(entry)).unwrap();
    Ok((row.allow, row.deny))
}

#[test]
fn a_part_of_a_call_lifts_no_more_of_a_denial_than_itself() {
    let inet6 = || denying("workspace", "socket", Some("inet6"), None);
    assert_ne!(with_flag(inet6(), "socket[unix]").unwrap().1, Grant::None);
    assert_eq!(with_flag(inet6(), "socket[inet6]").unwrap().1, Grant::None);
    assert_eq!(with_flag(inet6(), "socket").unwrap(), (Grant::All, Grant::None));
    // What a denial and the part have in common cannot be lifted by itself.
    let unix = denying("workspace", "socket", Some("unix"), None);
    assert!(
        with_flag(unix, "socket[unix-stream]")
            .unwrap_err()
            .contains("write --allow-calls socket in its place")
    );
    // The built-in profiles deny a part of what they allow, or only choose an error.
    assert_ne!(with_flag(calls_of("minimal"), "mmap[no-jit]").unwrap().1, Grant::None);
    assert_eq!(with_flag(calls_of("minimal"), "mmap[jit]").unwrap(), (Grant::All, Grant::None));
    assert_eq!(with_flag(calls_of("minimal"), "socket[unix-stream]").unwrap().1, Grant::None);
}

#[test]
fn a_part_of_a_call_that_is_denied_is_all_that_is_allowed() {
    let denied = |default| denying("workspace", "chmod", None, default);
    let (allow, deny) = with_flag(denied(None), "chmod[no-setid]").unwrap();
    assert!(matches!(allow, Grant::Some(_)) && deny == Grant::None, "{allow:?} {deny:?}");
    // Without the denial all of it would be let through.
    for default in [DefaultAction::Log, DefaultAction::Allow] {
        let why = with_flag(denied(Some(default)), "chmod[no-setid]").unwrap_err();
        assert!(why.contains("syscalls.deny[0] of profile 'own' denies more of chmod"), "{why}");
        assert_eq!(with_flag(denied(Some(default)), "chmod").unwrap(), (Grant::All, Grant::None));
    }
}
