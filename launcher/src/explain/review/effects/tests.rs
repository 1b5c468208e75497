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
