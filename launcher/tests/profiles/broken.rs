//! Each mistake in a profile has its sentence, and nothing that is read makes the reader panic.

use std::os::unix::fs::symlink;

use crate::{Shelf, load_path};

/// Documents, each with what the sentence about it must contain.
const BROKEN: &[(&str, &[&str])] = &[
    // The document as a whole.
    ("", &["the file is empty"]),
    ("{", &["line 1 column 1"]),
    ("[]", &["a list instead of an object"]),
    ("null", &["null instead of an object"]),
    ("{} {}", &["trailing characters at line 1 column 4"]),
    ("{\"description\": \"\u{1}\"}", &["control character"]),
    (r#"{"description": "a", "description": "b"}"#, &["key 'description' stands twice at line 1"]),
    (r#"{"env": {"set": {"A": "1", "A": "2"}}}"#, &["key 'A' stands twice"]),
    (r#"{"sycalls": {}}"#, &["unknown key 'sycalls' (did you mean 'syscalls'?)"]),
    (r#"{"nothing-like-it": {}}"#, &["unknown key 'nothing-like-it'; there are description, extends"]),
    (r#"{"description": 7}"#, &["description: a number instead of a string"]),
    (r#"{"extends": 7}"#, &["extends: a number instead of a name or a list of names"]),
    (r#"{"extends": ["minimale"]}"#, &["extends 'minimale'", "did you mean 'minimal'?", "unrestricted"]),
    (r#"{"extends": ["minimal", "minimal"]}"#, &["extends[1]: 'minimal' stands above already"]),
    (r#"{"extends": "./p.json"}"#, &["it extends itself", "p.json ->"]),
    (r#"{"extends": "./missing.json"}"#, &["there is no such file"]),
    (r#"{"static": "blok"}"#, &["static: unknown value 'blok' (did you mean 'block'?)"]),
    (r#"{"require": "all"}"#, &["it is one of full, standard, minimal"]),
    // Calls.
    (r#"{"syscalls": {"alow": []}}"#, &["syscalls: unknown key 'alow' (did you mean 'allow'?)"]),
    (r#"{"syscalls": {"allow": "read"}}"#, &["syscalls.allow: a string instead of a list"]),
    (
        r#"{"syscalls": {"default": "ernno"}}"#,
        &["syscalls.default: unknown action 'ernno' (did you mean 'errno'?)"],
    ),
    (r#"{"syscalls": {"default": "errno=EPREM"}}"#, &["did you mean 'EPERM'?"]),
    (r#"{"syscalls": {"default": "trap"}}"#, &["for the library alone"]),
    (
        r#"{"syscalls": {"allow": ["read", "opennat"]}}"#,
        &["syscalls.allow[1]: unknown system call 'opennat' (did you mean 'openat'?)"],
    ),
    (r#"{"syscalls": {"allow": ["@file-sistem"]}}"#, &["did you mean '@file-system'?"]),
    (r#"{"syscalls": {"allow": ["openat[reed]"]}}"#, &["openat[reed]", "did you mean 'read'?"]),
    (r#"{"syscalls": {"allow": ["read[x]"]}}"#, &["no restrictions of read"]),
    (r#"{"syscalls": {"allow": ["openat[read"]}}"#, &["cannot read 'openat[read'"]),
    (r#"{"syscalls": {"allow": ["read=EPERM"]}}"#, &["only 'deny' can"]),
    (r#"{"syscalls": {"allow": [{"call": "read", "errno": "EPERM"}]}}"#, &["only 'deny' can"]),
    (r#"{"syscalls": {"deny": [{"call": "read", "errno": "EPREM"}]}}"#, &["did you mean 'EPERM'?"]),
    (r#"{"syscalls": {"deny": [{"call": "read=EIO", "errno": "EPERM"}]}}"#, &["named twice"]),
    (r#"{"syscalls": {"allow": [7]}}"#, &["syscalls.allow[0]: a number instead of a call"]),
    (r#"{"syscalls": {"allow": [{}]}}"#, &["the key 'call' is missing"]),
    (r#"{"syscalls": {"allow": [{"call": "read", "calls": ["write"]}]}}"#, &["both 'call' and 'calls'"]),
    (r#"{"syscalls": {"allow": [{"cal": "read"}]}}"#, &["unknown key 'cal' (did you mean 'call'?)"]),
    (r#"{"syscalls": {"allow": [{"calls": ["openat[read]", "read"]}]}}"#, &["must be a bare name"]),
    // Entries that get into each other's way.
    (r#"{"syscalls": {"allow": ["read", "read"]}}"#, &["syscalls.allow[1]", "both mean every read"]),
    (
        r#"{"syscalls": {"allow": ["openat", "openat[read]"]}}"#,
        &["'openat[read]' and 'openat' (syscalls.allow[0])"],
    ),
    (r#"{"syscalls": {"allow": ["openat[read]", "openat"]}}"#, &["leaves nothing to the narrower"]),
    (r#"{"syscalls": {"allow": ["openat[read]", "openat[no-setid]"]}}"#, &["matches too"]),
    (r#"{"syscalls": {"allow": ["@basic-io", "read"]}}"#, &["'read' and '@basic-io'"]),
    (r#"{"syscalls": {"allow": ["read", "@basic-io"]}}"#, &["'@basic-io' and 'read'"]),
    (r#"{"syscalls": {"allow": ["@system-service", "@basic-io"]}}"#, &["contains the former"]),
    (r#"{"syscalls": {"allow": ["@basic-io", "@basic-io"]}}"#, &["contains the former"]),
    (
        r#"{"syscalls": {"allow": ["read"], "deny": ["read"]}}"#,
        &["syscalls.allow[0]", "what is denied is never allowed"],
    ),
    (
        r#"{"syscalls": {"allow": ["socket[tcp]"], "deny": ["socket[inet]"]}}"#,
        &["what is denied is never allowed"],
    ),
    (r#"{"syscalls": {"allow": ["read"], "deny": ["@basic-io"]}}"#, &["what is denied is never allowed"]),
    (r#"{"syscalls": {"allow": ["read"], "log": ["read"]}}"#, &["syscalls.log[0]", "allowed and noted"]),
    (r#"{"syscalls": {"log": ["read"], "deny": ["read"]}}"#, &["what is denied is never allowed"]),
    (r#"{"syscalls": {"deny": ["openat2=ENOSYS", "openat2=EPERM"]}}"#, &["both mean every openat2"]),
    (r#"{"syscalls": {"deny": ["socket[unix]=EPERM", "socket[inet]=EACCES"]}}"#, &["one error only"]),
    // Conditions.
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": []}]}}"#,
        &["syscalls.allow[0].args: the list is empty"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"value": 0}]}]}}"#,
        &["the key 'index' is missing"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 6, "value": 0}]}]}}"#,
        &["6 is no argument"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0}]}]}}"#,
        &["the key 'value' is missing"],
    ),
    (r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "value": -1}]}]}}"#, &["negative"]),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "value": "5412"}]}]}}"#,
        &["is no number"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "op": "eqq", "value": 1}]}]}}"#,
        &["args[0].op: unknown value 'eqq' (did you mean 'eq'?)"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "mask": 4, "value": 3}]}]}}"#,
        &["value 0x3 has bits outside mask 0x4"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "mask": 0, "value": 0}]}]}}"#,
        &["leaves nothing to compare"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "op": "masked_eq", "value": 0}]}]}}"#,
        &["the key 'mask' is missing"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "op": "eq", "mask": 1, "value": 0}]}]}}"#,
        &["masked_eq only"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "value": 4294967296, "width": 32}]}]}}"#,
        &["0x100000000 does not fit in the width of 32 bits"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "value": 1, "width": 16}]}]}}"#,
        &["16 is no width"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "value": 1}, {"index": 0, "value": 2}]}]}}"#,
        &["can never match"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "op": "lt", "value": 0}]}]}}"#,
        &["can never match"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "value": 1}, {"index": 0, "value": 1}]}]}}"#,
        &["args[1]", "stands above already"],
    ),
    (
        r#"{"syscalls": {"allow": ["kill", {"call": "kill", "args": [{"index": 0, "value": 0}]}]}}"#,
        &["narrower one"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "op": "SCMP_CMP_LE", "value": 9}]},
                                   {"call": "kill", "args": [{"index": 0, "op": "le", "value": 5}]}]}}"#,
        &["syscalls.allow[1]", "matches too"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "@signal", "args": [{"index": 0, "value": 0}]}]}}"#,
        &["the bare name of a call, not with '@signal'"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "openat[read]", "args": [{"index": 0, "value": 0}]}]}}"#,
        &["not with 'openat[read]'"],
    ),
    // What is allowed in namespaces alone.
    (r#"{"syscalls": {"deny": [{"call": "ptrace", "needs": "namespaces"}]}}"#, &["an entry of 'allow' only"]),
    (r#"{"syscalls": {"log": [{"call": "ptrace", "needs": "namespaces"}]}}"#, &["an entry of 'allow' only"]),
    (
        r#"{"syscalls": {"allow": [{"call": "ptrace", "needs": "namespace"}]}}"#,
        &["unknown value 'namespace'", "did you mean 'namespaces'?"],
    ),
    (
        r#"{"syscalls": {"allow": ["ptrace", {"call": "ptrace", "needs": "namespaces"}]}}"#,
        &["syscalls.allow[1]", "'ptrace' and 'ptrace' (syscalls.allow[0])", "without namespaces too"],
    ),
    (
        r#"{"syscalls": {"allow": ["openat[no-setid]", {"call": "openat[read]", "needs": "namespaces"}]}}"#,
        &["syscalls.allow[1]", "without namespaces too"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "ptrace", "needs": "namespaces"}], "deny": ["ptrace"]}}"#,
        &["syscalls.allow[0]", "what is denied is never allowed"],
    ),
    (
        r#"{"syscalls": {"allow": [{"call": "ptrace", "needs": "namespaces"}], "log": ["ptrace"]}}"#,
        &["syscalls.log[0]", "allowed and noted"],
    ),
    // The other keys.
    (r#"{"paths": {"wirte": []}}"#, &["paths: unknown key 'wirte' (did you mean 'write'?)"]),
    (
        r#"{"paths": {"write": ["${WROKSPACE}/x"]}}"#,
        &["paths.write[0]: unknown variable 'WROKSPACE' (did you mean 'WORKSPACE'?)"],
    ),
    (r#"{"paths": {"read": ["relative"]}}"#, &["neither absolute nor below a variable"]),
    (r#"{"paths": {"read": ["${HOME}x"]}}"#, &["neither absolute nor below a variable"]),
    (r#"{"paths": {"read": ["~/x"]}}"#, &["write ${HOME}"]),
    (
        r#"{"paths": {"deny": ["${WORKSPACE}/*.pem"]}}"#,
        &["paths.deny[0]", "patterns of paths are not expanded"],
    ),
    (r#"{"commands": {"block": ["pytho?"]}}"#, &["commands.block[0]", "only '*' is known"]),
    (r#"{"paths": {"read": ["/a/../b"]}}"#, &["has a part '.' or '..'"]),
    (r#"{"paths": {"read": ["/a/${HOME}"]}}"#, &["not at its beginning"]),
    (r#"{"paths": {"read": ["${HOME"]}}"#, &["lacks its '}'"]),
    (r#"{"paths": {"read": ["/a\u0000b"]}}"#, &["NUL"]),
    (r#"{"paths": {"read": ["/a", "/a/"]}}"#, &["paths.read[1]: the same entry stands above"]),
    (r#"{"paths": {"read": [{"why": "x"}]}}"#, &["the key 'path' is missing"]),
    (
        r#"{"network": {"mode": "maybe"}}"#,
        &["network.mode: unknown value 'maybe'; it is one of none, host, allow"],
    ),
    (r#"{"network": {"connect": ["*"]}}"#, &["'*' needs a port"]),
    (r#"{"network": {"connect": ["example.org:0"]}}"#, &["'0' is not a port; expected 1 to 65535"]),
    (r#"{"network": {"connect": ["::1:80"]}}"#, &["an IPv6 address needs brackets"]),
    (r#"{"network": {"connect": ["example.org:80/ssh"]}}"#, &["'ssh' is not a protocol"]),
    (r#"{"network": {"deny": ["example.org:80/tls"]}}"#, &["leave the protocol out"]),
    (r#"{"network": {"groups": {"a b": []}}}"#, &["network.groups.a b: 'a b' is no name of a group"]),
    (r#"{"network": {"groups": {"a": ["b:x"]}}}"#, &["network.groups.a[0]: 'b:x': 'x' is not a port"]),
    (r#"{"network": {"groups": {"a": ["@b"]}}}"#, &["'@b' is not the name of a host"]),
    (
        r#"{"network": {"connect": ["@b"], "groups": {"a": []}}}"#,
        &["names the group '@b', which there is not; network.groups has @a"],
    ),
    (r#"{"network": {"connect": ["@a"], "groups": {"a": ["*"]}}}"#, &["'*' needs a port"]),
    (r#"{"network": {"connect": ["example.org:+80"]}}"#, &["'+80' is not a port"]),
    (r#"{"network": {"connect": ["[::1:80"]}}"#, &["expected HOST[:PORT[,PORT...][/PROTOCOL]]"]),
    (r#"{"network": {"connect": ["a]:80"]}}"#, &["is not the name of a host"]),
    (r#"{"network": {"connect": ["a\u202eb:80"]}}"#, &["'a?b:80': ", "is not the name of a host"]),
    (r#"{"a\u001b\u202e\u2028b": {}}"#, &["unknown key 'a???b'"]),
    (r#"{"network": {"bind": [70000]}}"#, &["70000 is no port"]),
    (r#"{"env": {"inherit": ["A=b"]}}"#, &["'A=b' is no name of a variable"]),
    (r#"{"env": {"set": {"A": 1}}}"#, &["env.set.A: a number instead of a string"]),
    (r#"{"limits": {"timeout": "soon"}}"#, &["'soon': it is no duration"]),
    (r#"{"limits": {"memory": "1X"}}"#, &["'1X': it is no size"]),
    (r#"{"limits": {"memory": "99999999999T"}}"#, &["more than can be counted"]),
    (r#"{"limits": {"processes": "x"}}"#, &["'x': it is no number"]),
    (r#"{"limits": {"processes": 0}}"#, &["a limit of zero"]),
    (r#"{"limits": {"timeout": 0}}"#, &["a limit of zero"]),
    (r#"{"limits": {"output": "0K"}}"#, &["a limit of zero"]),
    (r#"{"limits": {"open_files": -4}}"#, &["negative"]),
    (r#"{"limits": {"cpu": true}}"#, &["instead of a duration"]),
    (r#"{"limits": {"proceses": 3}}"#, &["did you mean 'processes'?"]),
    (r#"{"commands": {"allow": [""]}}"#, &["empty"]),
    (r#"{"commands": {"allow": ["bin/sh"]}}"#, &["commands.allow[0]", "neither absolute nor below"]),
    (r#"{"commands": {"block": ["${WORKSPCE}/a"]}}"#, &["unknown variable", "did you mean 'WORKSPACE'?"]),
    (r#"{"commands": {"block": ["/usr/*/sh"]}}"#, &["'*' before its last part"]),
];

#[test]
fn each_mistake_has_its_sentence() {
    let shelf = Shelf::new();
    for (text, words) in BROKEN {
        let error = shelf.file(text).map(|_| ()).expect_err(text).to_string();
        assert!(error.starts_with("cannot open profile '") && error.contains("p.json': "), "{text}: {error}");
        assert!(!error.contains('\n'), "{text}: {error}");
        for word in *words {
            assert!(error.contains(word), "{text}: no {word:?} in: {error}");
        }
    }
}

#[test]
fn sizes_and_kinds_of_files_are_bounded() {
    let shelf = Shelf::new();
    let refused = |text: &str, word: &str| {
        let error = shelf.file(text).map(|_| ()).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(&"[".repeat(100_000), "recursion limit");
    refused(&format!("{{\"description\": \"{}\"}}", "x".repeat(2_000_000)), "more than the 1048576 bytes");
    let many: Vec<_> = (0..50_000).map(|i| format!("\"k{i}\":\"\"")).collect();
    refused(&format!("{{\"env\": {{\"set\": {{{},\"k0\":\"\"}}}}}}", many.join(",")), "'k0' stands twice");
    let path = shelf.put("b.json", b"\xff\xfe{}");
    assert!(load_path(&path).is_err());
    assert!(load_path(&shelf.dir.join("missing.json")).unwrap_err().to_string().contains("no such file"));
    std::fs::create_dir(shelf.dir.join("d.json")).unwrap();
    let error = load_path(&shelf.dir.join("d.json")).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    let error = load_path(std::path::Path::new("/dev/null")).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    symlink("loop.json", shelf.dir.join("loop.json")).unwrap();
    assert!(load_path(&shelf.dir.join("loop.json")).is_err());
}

#[test]
fn ports_that_the_mode_does_not_look_at_are_refused() {
    let shelf = Shelf::new();
    shelf.put("closed.json", r#"{"network": {"mode": "allow", "connect": ["*:443"], "bind": [80]}}"#);
    let refused = [
        (
            r#"{"extends": "network", "network": {"connect": ["*:443"]}}"#,
            "network.connect[0]",
            "every port is open",
        ),
        (r#"{"extends": "network", "network": {"bind": [80]}}"#, "network.bind[0]", "every port is open"),
        (
            r#"{"network": {"mode": "none", "connect": ["*:443"]}}"#,
            "network.connect[0]",
            "there is no network",
        ),
        (r#"{"network": {"connect": ["*:443"]}}"#, "network.connect[0]", "there is no network"),
        (r#"{"extends": ["closed", "network"]}"#, "network.connect[0]", "every port is open"),
    ];
    for (text, entry, opens) in refused {
        shelf.put("p.json", text);
        let error = shelf.load("p").unwrap_err().to_string();
        assert!(error.contains(entry) && error.contains(opens) && error.contains("allow"), "{text}: {error}");
    }
    let meant = [
        r#"{"extends": "network", "network": {"mode": "allow", "connect": ["*:443"]}}"#,
        r#"{"extends": "closed", "network": {"mode": "host"}}"#,
        r#"{"extends": "closed", "network": {"mode": "none"}}"#,
        r#"{"extends": ["network", "closed"]}"#,
    ];
    for text in meant {
        shelf.put("p.json", text);
        shelf.load("p").unwrap();
    }
}

/// A small generator: the same documents every time.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 33).unwrap()
}

#[test]
fn mutated_documents_never_panic() {
    let shelf = Shelf::new();
    let mut seeds: Vec<Vec<u8>> = sbx_profiles::NAMES
        .iter()
        .map(|name| sbx_profiles::built_in(name).unwrap().as_bytes().to_vec())
        .collect();
    seeds.extend(BROKEN.iter().map(|(text, _)| text.as_bytes().to_vec()));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..4000 {
        let mut text = seeds[round % seeds.len()].clone();
        for _ in 0..=random(&mut state) % 4 {
            let at = random(&mut state) % (text.len() + 1);
            match random(&mut state) % 4 {
                0 if at < text.len() => text[at] = random(&mut state) as u8,
                1 if at < text.len() => drop(text.remove(at)),
                2 => text.insert(at, b"{}[]\",:0\\$/@="[random(&mut state) % 13]),
                _ => {
                    let end = (at + random(&mut state) % 40).min(text.len());
                    let piece = text[at..end].to_vec();
                    text.splice(at..at, piece);
                }
            }
        }
        let path = shelf.put("m.json", &text);
        if let Err(error) = load_path(&path) {
            assert!(error.to_string().starts_with("cannot open profile '"));
        }
    }
}
