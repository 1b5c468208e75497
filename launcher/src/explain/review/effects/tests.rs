use super::*;
use crate::profile::{self, Search};
use std::ffi::OsStr;

fn built_in(name: &str) -> Profile {
    profile::load(OsStr::new(name), &Search::default()).unwrap()
}

fn shown(more: &Profile, less: &Profile) -> Vec<String> {
    beyond(more, less).unwrap().into_iter().map(|effect| format!("{} {}", effect.kind, effect.what)).collect()
}

/// A profile in a file, which is gone afterwards.
fn of(text: &str) -> Profile {
    let scratch = crate::enforce::scratch::Scratch::create(None).unwrap();
    let file = scratch.path().join("p.json");
    std::fs::write(&file, text).unwrap();
    profile::load(file.as_os_str(), &Search::default()).unwrap()
}

#[test]
fn a_profile_gives_nothing_beyond_itself() {
    for name in sbx_profiles::NAMES {
        assert_eq!(shown(&built_in(name), &built_in(name)), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn what_a_child_adds_is_beyond_its_parent_and_nothing_the_other_way() {
    for (more, less) in [("minimal", "custom"), ("network", "minimal"), ("write", "minimal")] {
        assert!(!shown(&built_in(more), &built_in(less)).is_empty(), "{more} {less}");
        assert_eq!(shown(&built_in(less), &built_in(more)), Vec::<String>::new(), "{more} {less}");
    }
    // Where nothing is refused, nothing more can be given.
    let calls = beyond(&built_in("workspace"), &built_in("unrestricted")).unwrap();
    assert!(calls.iter().all(|effect| effect.kind != "call"), "{calls:?}");
    let (shell, readers) = (built_in("workspace"), built_in("read-only"));
    assert!(shown(&shell, &readers).contains(&"write ${WORKSPACE}".to_string()));
    assert_eq!(shown(&readers, &shell), ["home temporary"]);
}

#[test]
fn each_difference_is_found_and_only_one_way() {
    let base =
        of(r#"{ "extends": "workspace", "limits": { "memory": "1G" }, "commands": { "block": ["ssh"] } }"#);
    for (added, expected) in [
        (r#""paths": { "read": ["/srv"] }"#, "read /srv"),
        (r#""paths": { "write": ["/srv"] }"#, "write /srv"),
        (r#""syscalls": { "allow": ["bpf"] }"#, "call bpf"),
        (r#""network": { "mode": "host" }"#, "reach the whole network of this machine"),
        (r#""network": { "mode": "allow", "connect": ["example.org"] }"#, "reach example.org"),
        (r#""network": { "unix": ["/run/x.sock"] }"#, "socket /run/x.sock"),
        (r#""env": { "inherit": ["NEW_*"] }"#, "variable NEW_*"),
        (r#""limits": { "memory": "2G" }"#, "limit memory: 2 GiB"),
    ] {
        let child = of(&format!(
            r#"{{ "extends": "workspace", "commands": {{ "block": ["ssh"] }}, {} {added} }}"#,
            if added.contains("limits") { "" } else { r#""limits": { "memory": "1G" }, "# }
        ));
        let found = shown(&child, &base);
        assert!(
            found.iter().any(|effect| effect.starts_with(expected.split(':').next().unwrap())),
            "{added}: {found:?}"
        );
        let back = shown(&base, &child);
        assert!(!back.iter().any(|effect| effect.starts_with(expected)), "{added}: {back:?}");
    }
}

#[test]
fn what_one_takes_back_the_other_gives() {
    let base = built_in("workspace");
    let tight = of(
        r#"{ "extends": "workspace", "paths": { "deny": ["${WORKSPACE}/secret"], "protect": ["${WORKSPACE}/src"] },
             "syscalls": { "deny": ["execve"] }, "commands": { "block": ["ssh"] } }"#,
    );
    let found = shown(&base, &tight);
    for effect in ["write ${WORKSPACE}/secret", "write ${WORKSPACE}/src", "call execve", "start ssh"] {
        assert!(found.contains(&effect.to_string()), "{effect}: {found:?}");
    }
    assert_eq!(shown(&tight, &base), Vec::<String>::new());
}

/// What one adds to a parent, what the other does, and what only the first gives.
#[test]
fn every_word_of_an_entry_is_compared() {
    let protect =
        |words: &str| format!(r#""paths": {{ "protect": [{{ "path": "${{WORKSPACE}}/x"{words} }}] }}"#);
    let read = |words: &str| format!(r#""paths": {{ "read": [{{ "path": "/srv/x"{words} }}] }}"#);
    let agent = |programs: &str| format!(r#""agent": {{ "programs": {programs} }}"#);
    let (unless, optional) = (r#", "unless": "credentials""#, r#", "optional": true"#);
    let (aside, readers) = (r#", "when_made": "set-aside""#, r#", "readers": ["/bin/x", "/bin/y"]"#);
    let other_readers = r#", "readers": ["/bin/x"]"#;
    let copies = |format: &str| {
        format!(
            r#""home": {{ "copies": [{{ "path": "${{HOME}}/.x", "format": "{format}", "keep": ["a"] }}] }}"#
        )
    };
    let set = |key: &str| format!(r#"{key}: {{ "XY": "z" }}"#);
    let in_env = format!(r#""env": {{ {} }}"#, set(r#""set""#));
    let in_closed = format!(r#""home": {{ {} }}"#, set(r#""closed_env""#));
    let offline = format!(r#""network": {{ {} }}"#, set(r#""closed_env""#));
    let addresses = r#""env": { "addresses": ["XY"] }"#.to_string();
    let inherited = r#""env": { "inherit": ["XY"] }"#.to_string();
    let both = r#""env": { "inherit": ["XY"], "addresses": ["XY"] }"#.to_string();
    let group = |host: &str| {
        format!(r#""network": {{ "mode": "allow", "groups": {{ "g": ["{host}"] }}, "connect": ["@g"] }}"#)
    };
    for (more, less, expected) in [
        (read(""), read(unless), "read /srv/x, with credentials in it too"),
        (read(unless), String::new(), "read /srv/x, unless it holds credentials"),
        (read(optional), read(""), "run where /srv/x is not there"),
        (protect(aside), protect(""), "make ${WORKSPACE}/x, until it is set aside"),
        (protect(readers), protect(""), "make ${WORKSPACE}/x, where nothing is there of what reads it"),
        (
            protect(other_readers),
            protect(readers),
            "make ${WORKSPACE}/x, where nothing is there of what reads it",
        ),
        (String::new(), protect(""), "write ${WORKSPACE}/x"),
        (copies("ini"), copies("npm"), "home copies of ${HOME}/.x as ini: a"),
        (in_env.clone(), in_closed.clone(), "variable XY=z"),
        (in_closed, String::new(), "if closed XY=z"),
        (in_env.clone(), offline.clone(), "variable XY=z"),
        (offline, String::new(), "if offline XY=z"),
        (addresses.clone(), String::new(), "variable XY, where the network is open and no password is in it"),
        (both.clone(), addresses, "variable XY, where the network is not open too"),
        (inherited, both, "variable XY, with a password in it too"),
        (agent(r#"["a", "b"]"#), agent(r#"["a"]"#), "agent as b"),
        (agent(r#"["b", "a"]"#), agent(r#"["a", "b"]"#), "agent as b, a, in this order"),
        (group("a.example"), group("b.example"), "reach a.example"),
        (String::new(), r#""syscalls": { "default": "kill" }"#.into(), "run on after a call that is refused"),
    ] {
        let added = |text: &str| {
            let comma = if text.is_empty() { "" } else { "," };
            of(&format!(r#"{{ "extends": "workspace"{comma} {text} }}"#))
        };
        let (wide, narrow) = (added(&more), added(&less));
        let found = shown(&wide, &narrow);
        assert!(found.iter().any(|effect| effect.starts_with(expected)), "{more} {less}: {found:?}");
        assert!(!shown(&narrow, &wide).iter().any(|effect| effect.starts_with(expected)), "{more} {less}");
        assert_eq!(shown(&wide, &wide), Vec::<String>::new());
    }
}
