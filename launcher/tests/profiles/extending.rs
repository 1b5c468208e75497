//! What a child, its parents and their parents make together.

use sbx::profile::{Bound, Grants, NetworkMode, Source, default_profile, list};
use sbx_policy::calls::Call;

use crate::Shelf;

fn allowed(grants: &Grants) -> String {
    match grants {
        Grants::None => "none".to_string(),
        Grants::All(origin) => format!("all from {}", &*origin.profile),
        Grants::Some(list) => {
            list.iter().map(|one| one.origin.entry.to_string()).collect::<Vec<_>>().join(" ")
        }
    }
}

/// What becomes of one call in a profile of the shelf: allowed, denied.
fn call(shelf: &Shelf, profile: &str, name: &str) -> (String, String) {
    let profile = shelf.load(profile).unwrap();
    let rules =
        profile.syscalls.calls.get(Call::named(name.as_bytes()).unwrap()).cloned().unwrap_or_default();
    (allowed(&rules.allow), allowed(&rules.deny))
}

fn pair(a: &str, b: &str) -> (String, String) {
    (a.to_string(), b.to_string())
}

#[test]
fn the_nearest_word_about_a_call_counts() {
    let shelf = Shelf::new();
    shelf.put(
        "a.json",
        r#"{"syscalls": {"allow": ["openat[read]", "mkdir", "kill"], "deny": ["clone3=ENOSYS"]}}"#,
    );
    shelf
        .put("b.json", r#"{"extends": "a", "syscalls": {"allow": ["openat", "clone3"], "deny": ["mkdir"]}}"#);
    assert_eq!(call(&shelf, "a", "openat"), pair("openat[read]", "none"));
    assert_eq!(call(&shelf, "b", "openat"), pair("all from b", "none"));
    assert_eq!(call(&shelf, "b", "mkdir"), pair("none", "all from b"));
    assert_eq!(call(&shelf, "b", "clone3"), pair("all from b", "none"));
    assert_eq!(call(&shelf, "b", "kill"), pair("all from a", "none"));
}

#[test]
fn a_denial_under_conditions_only_takes_away() {
    let shelf = Shelf::new();
    shelf.put("a.json", r#"{"syscalls": {"allow": ["socket"], "deny": ["kill"]}}"#);
    shelf.put("b.json", r#"{"extends": "a", "syscalls": {"deny": ["socket[inet]", {"call": "kill", "args": [{"index": 1, "value": 9}]}]}}"#);
    assert_eq!(call(&shelf, "b", "socket"), pair("all from a", "socket[inet]"));
    assert_eq!(call(&shelf, "b", "kill"), pair("none", "all from a"));
}

#[test]
fn parents_unite_and_the_later_one_replaces() {
    let shelf = Shelf::new();
    shelf.put("base.json", r#"{"syscalls": {"allow": ["openat[read]", "read"]}}"#);
    shelf.put("one.json", r#"{"extends": "base", "syscalls": {"allow": ["openat[no-setid]", "mmap[no-exec]", "pipe"], "deny": ["kill"]}}"#);
    shelf.put("two.json", r#"{"extends": "base", "syscalls": {"allow": ["mmap[no-jit]", "kill", "dup"]}}"#);
    shelf.put("both.json", r#"{"extends": ["one", "two"]}"#);
    shelf.put("child.json", r#"{"extends": ["one", "two"], "syscalls": {"allow": ["kill"]}}"#);
    assert_eq!(call(&shelf, "both", "mmap"), pair("mmap[no-jit]", "none"));
    // What both have from one parent does not undo what one of them made of it.
    assert_eq!(call(&shelf, "both", "openat"), pair("openat[no-setid]", "none"));
    assert_eq!(call(&shelf, "both", "pipe").0, "all from one");
    assert_eq!(call(&shelf, "both", "dup").0, "all from two");
    assert_eq!(call(&shelf, "both", "read").0, "all from base");
    assert_eq!(call(&shelf, "both", "kill"), pair("none", "all from one"));
    assert_eq!(call(&shelf, "child", "kill"), pair("all from child", "none"));
}

#[test]
fn lists_unite_and_single_values_are_the_nearest() {
    let shelf = Shelf::new();
    shelf.put("a.json", r#"{"description": "a", "paths": {"write": ["/a", "/c"], "deny": ["/x"], "protect": ["/a/p"]}, "network": {"mode": "host"},
        "env": {"inherit": ["A"], "set": {"X": "1", "Y": "1"}}, "limits": {"timeout": 5, "memory": "1G"}, "static": "warn"}"#);
    shelf.put(
        "b.json",
        r#"{"extends": "a", "paths": {"write": ["/b", "/a"], "protect": ["/a/p", {"path": "/a/q", "readers": ["/r"], "why": "q"}]}, "network": {"mode": "none"},
        "env": {"inherit": ["B"], "set": {"X": "2"}}, "limits": {"timeout": "2m"}}"#,
    );
    let profile = shelf.load("b").unwrap();
    let words =
        |list: &[sbx::profile::PathEntry]| list.iter().map(|e| e.value.to_string()).collect::<Vec<_>>();
    assert_eq!(words(&profile.paths.write), ["/a", "/c", "/b"]);
    assert_eq!(words(&profile.paths.deny), ["/x"]);
    let protected: Vec<_> = profile.paths.protect.iter().map(|e| e.value.to_string()).collect();
    assert_eq!(protected, ["/a/p", "/a/q"]);
    assert_eq!(profile.paths.protect[1].readers[0].to_string(), "/r");
    assert_eq!(profile.paths.protect[1].origin.why.as_deref(), Some("q"));
    assert_eq!(profile.network.mode.as_deref(), Some(&NetworkMode::None));
    let set = |name| profile.env.set.iter().find(|(known, _)| known == name).map(|(_, value)| value).unwrap();
    assert_eq!(set("X").to_string(), "2");
    assert_eq!(&*set("X").origin.profile, "b");
    assert_eq!(set("Y").to_string(), "1");
    assert_eq!(profile.env.inherit.iter().map(|e| &*e.value).collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(profile.limits.timeout.as_deref(), Some(&Bound::At(std::time::Duration::from_secs(120))));
    assert_eq!(profile.limits.memory.as_deref(), Some(&Bound::At(1 << 30)));
    assert_eq!(profile.static_programs.as_ref().map(|s| s.word()), Some("warn"));
    assert_eq!(profile.description, "");
    assert_eq!(profile.paths.write[2].origin.to_string(), "paths.write[0] of profile 'b'");
}

#[test]
fn what_needs_namespaces_goes_with_the_rest_of_what_is_said_about_a_call() {
    let shelf = Shelf::new();
    shelf.put(
        "base.json",
        r#"{"syscalls": {"allow": ["clone[thread]", "read", {"call": "clone[no-namespace]", "needs": "namespaces"},
            {"calls": ["ptrace", "kcmp"], "needs": "namespaces"}]}}"#,
    );
    shelf.put("closed.json", r#"{"extends": "base", "syscalls": {"deny": ["ptrace"]}}"#);
    shelf.put("open.json", r#"{"extends": "base", "syscalls": {"allow": ["ptrace", "clone[thread]"]}}"#);
    shelf.put("both.json", r#"{"extends": ["base", "closed"]}"#);
    let allowed = |profile: &str, name: &str| {
        let profile = shelf.load(profile).unwrap();
        let rules = profile.syscalls.calls.get(Call::named(name.as_bytes()).unwrap()).unwrap();
        [false, true].map(|namespaces| match rules.allowed(namespaces) {
            Grants::None => "none".to_string(),
            Grants::All(_) => "all".to_string(),
            Grants::Some(list) => list.iter().map(|one| &*one.origin.entry).collect::<Vec<_>>().join(" "),
        })
    };
    assert_eq!(allowed("base", "ptrace"), ["none", "all"]);
    assert_eq!(allowed("base", "read"), ["all", "all"]);
    // The wider one takes the place of the narrower one.
    assert_eq!(allowed("base", "clone"), ["clone[thread]", "clone[no-namespace]"]);
    assert_eq!(allowed("closed", "ptrace"), ["none", "none"]);
    assert_eq!(allowed("both", "ptrace"), ["none", "none"]);
    assert_eq!(allowed("closed", "kcmp"), ["none", "all"]);
    assert_eq!(allowed("open", "ptrace"), ["all", "all"]);
    assert_eq!(allowed("open", "clone"), ["clone[thread]", "clone[thread]"]);
}

#[test]
fn a_log_entry_picks_a_call_out_of_a_group() {
    let shelf = Shelf::new();
    shelf.put(
        "a.json",
        r#"{"syscalls": {"allow": ["@basic-io"], "log": ["read", "socket[inet]"], "deny": ["dup"]}}"#,
    );
    let profile = shelf.load("a").unwrap();
    let rules =
        |name: &str| profile.syscalls.calls.get(Call::named(name.as_bytes()).unwrap()).unwrap().clone();
    assert!(rules("read").log.is_some() && matches!(rules("read").allow, Grants::All(_)));
    assert!(rules("write").log.is_none() && matches!(rules("write").allow, Grants::All(_)));
    assert!(rules("socket").log.is_some() && matches!(rules("socket").allow, Grants::Some(_)));
    assert!(rules("dup").allow.is_none() && matches!(rules("dup").deny, Grants::All(_)));
}

#[test]
fn chains_are_bounded_and_cycles_are_named() {
    let shelf = Shelf::new();
    shelf.put("a.json", r#"{"extends": "b"}"#);
    shelf.put("b.json", r#"{"extends": "c"}"#);
    shelf.put("c.json", r#"{"extends": "a"}"#);
    let error = shelf.load("a").unwrap_err().to_string();
    assert!(error.contains("it extends itself: a -> b -> c -> a"), "{error}");
    for depth in 0..12 {
        shelf.put(&format!("d{depth}.json"), format!("{{\"extends\": \"d{}\"}}", depth + 1));
    }
    shelf.put("d12.json", "{}");
    assert!(shelf.load("d5").is_ok());
    let error = shelf.load("d3").unwrap_err().to_string();
    assert!(error.contains("more than 8 profiles"), "{error}");
}

#[test]
fn names_are_searched_in_order_and_hide_no_built_in() {
    let shelf = Shelf::new();
    assert_eq!(default_profile(&shelf.search()).unwrap().name, "workspace");
    shelf.put("default.json", r#"{"description": "mine", "extends": "minimal"}"#);
    let default = default_profile(&shelf.search()).unwrap();
    assert_eq!((&*default.name, &*default.description), ("default", "mine"));
    assert!(matches!(&default.source, Source::File(_)));
    assert_eq!(shelf.load("minimal").unwrap().source, Source::BuiltIn);
    let file = shelf.put("minimal.json", "{}");
    let error = shelf.load("minimal").unwrap_err().to_string();
    assert!(error.contains("is built in, but") && error.contains("minimal.json"), "{error}");
    assert!(crate::load_path(&file).is_ok());
    shelf.put("broken.json", "{");
    let all = list(&shelf.search());
    let built_in = all.iter().filter(|one| one.source == Source::BuiltIn);
    let (agents, others): (Vec<_>, Vec<_>) = built_in.partition(|one| one.name.starts_with("agent:"));
    assert_eq!((agents.len(), others.len()), (4, 8));
    assert!(all.iter().filter(|one| one.source == Source::BuiltIn).all(|one| one.description.is_ok()));
    assert!(all.iter().any(|one| one.name == "broken" && one.description.is_err()));
    let error = shelf.load("nothing-like-it").unwrap_err().to_string();
    assert!(error.contains("there are custom, minimal") && error.contains("default"), "{error}");
    let error = shelf.load("").unwrap_err().to_string();
    assert!(error.contains("the name is empty"), "{error}");
}

#[test]
fn files_name_their_parents_from_where_they_are() {
    let shelf = Shelf::new();
    std::fs::create_dir(shelf.dir.join("sub")).unwrap();
    shelf.put("sub/parent.json", r#"{"paths": {"read": ["/p"]}}"#);
    shelf.put("sub/child.json", r#"{"extends": "./parent.json"}"#);
    let profile = crate::load_path(&shelf.dir.join("sub/child.json")).unwrap();
    assert_eq!(profile.name, "child");
    assert_eq!(profile.paths.read.len(), 1);
    assert!(!profile.paths.read[0].origin.built_in);
}

#[test]
fn the_guides_examples_work() {
    let guide = include_str!("../../../docs/profiles.md");
    let shelf = Shelf::new();
    let examples: Vec<&str> =
        guide.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 3);
    for example in examples {
        shelf.file(example).unwrap_or_else(|error| panic!("{example}: {error}"));
    }
    let both = shelf.file(r#"{"extends": ["network", "write"]}"#).unwrap();
    let openat = both.syscalls.calls.get(Call::named(b"openat").unwrap()).unwrap();
    assert_eq!(allowed(&openat.allow), "openat[no-setid]");
}
