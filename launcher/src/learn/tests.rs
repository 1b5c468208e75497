//! Hostile reports and commands: what they may not teach.

use super::*;
use crate::enforce::scratch::Scratch;
use right::{Access, Right};
use sbx_client::report::{Address, Bytes, Confidence, Fate, Suggestion, ViolationKind, ViolationRecord};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const READ: Access = Access { write: false, execute: false };
const WRITE: Access = Access { write: true, execute: false };

/// A home directory with a secret and data in it, and a workspace.
struct Machine {
    scratch: Scratch,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { scratch: Scratch::create(None).unwrap() };
        for directory in ["home/work", "home/.ssh", "home/data", "home/many"] {
            fs::create_dir_all(machine.path(directory)).unwrap();
        }
        fs::write(machine.path("home/.ssh/id_rsa"), "").unwrap();
        fs::write(machine.path("home/data/plain"), "").unwrap();
        machine
    }

    fn path(&self, below: &str) -> PathBuf {
        canonical(self.scratch.path()).join(below)
    }

    fn learner(&self, rules: LearnerRules) -> Learner {
        let host = Host::with_environment(vec![("HOME".into(), self.path("home").into())]);
        let sensitive = Sensitive::of(&host, Some(&self.path("home/work"))).unwrap();
        let candidate = Candidate::new(vec![self.path("home/work")]);
        Learner::new(candidate, sensitive, KnownCalls::new().unwrap(), rules)
    }
}

fn record(call: &str, path: Option<&Path>, flags: &[&str]) -> ViolationRecord {
    ViolationRecord {
        kind: if path.is_some() { ViolationKind::Path } else { ViolationKind::Syscall },
        call: call.to_string(),
        args: "\x1b[2J\"x\"".to_string(),
        path: path.map(Bytes::from),
        address: None,
        process: Bytes(b"to\x1b]0;ol\x07".to_vec()),
        pid: 7,
        rule: None,
        suggestion: Some(Suggestion {
            flags: flags.iter().map(|word| Bytes(word.as_bytes().to_vec())).collect(),
            note: None,
        }),
        count: 1,
        confidence: Confidence::Observed,
        fate: Fate::Blocked,
    }
}

fn report(violations: Vec<ViolationRecord>) -> Report {
    let text = r#"{ "version": 1, "sbx": "0", "command": [], "program": null, "profile": null, "policy_hash": null,
        "workspace": null, "network": null, "level": null, "layers": [], "degradations": [], "started": "",
        "started_unix_ns": 0, "duration_ms": 0.0, "pid": 7, "exit": null, "exit_status": 0, "cause": "exited",
        "error": null, "rusage": null, "output": { "stdout": null, "stderr": null }, "limits": [], "violations": [],
        "violations_total": 0, "violations_unlisted": 0 }"#;
    Report { violations, ..serde_json::from_str(text).unwrap() }
}

/// What a record teaches, or why it teaches nothing.
fn taught(learner: &mut Learner, record: ViolationRecord) -> Result<Vec<Right>, String> {
    let learned = learner.learn(&report(vec![record]), 1).unwrap();
    match learner.not_learned.pop() {
        Some(refused) => Err(refused.why),
        None => Ok(learned.into_iter().map(|rule| rule.right).collect()),
    }
}

#[test]
fn what_was_refused_is_learned_as_the_report_says_it() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules::default());
    let (plain, data) = (machine.path("home/data/plain"), machine.path("home/data"));
    let flag = plain.to_str().unwrap();
    let learned = taught(&mut learner, record("openat", Some(&plain), &["--ro", flag]));
    assert_eq!(learned, Ok(vec![Right::Path(plain.clone(), READ)]));
    let learned = taught(&mut learner, record("unlink", Some(&plain), &["--rw", data.to_str().unwrap()]));
    assert_eq!(learned, Ok(vec![Right::Path(data, WRITE)]));
    assert_eq!(learner.candidate.rules().len(), 1);
    let learned = taught(&mut learner, record("mlock", None, &["--allow-calls", "mlock"]));
    assert_eq!(learned, Ok(vec![Right::Call("mlock".into())]));
    assert_eq!(taught(&mut learner, record("mlock", None, &["--allow-calls", "mlock"])), Ok(Vec::new()));
}

#[test]
fn a_forged_report_teaches_nothing_that_is_not_about_its_call() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules { at_once: true, ..LearnerRules::default() });
    let plain = machine.path("home/data/plain");
    let flag = plain.to_str().unwrap();
    let other = machine.path("home/many");
    for flags in [
        &["--ro", other.to_str().unwrap()][..],
        &["--ro", flag, "--ro", "/etc"],
        &["--rw", other.to_str().unwrap()],
        &["--ro"],
        &[],
        &["--ro", flag, "--dangerously-unconfined"],
        &["--pass-fd", "3"],
        &["--env", "LD_PRELOAD=/x"],
        &["--ro", "relative"],
        &["--ro", "/usr/../etc/shadow"],
        &["--ro", "/*"],
        &["--ro", "${HOME}"],
        &["--allow-calls", "mlock"],
        &["--allow-calls", "@file-system"],
        &["--allow-calls", "openat=EPERM"],
        &["--unix", "/run/docker.sock"],
        &["--host-port", "80"],
        &["--profile", "unrestricted"],
        &["--net", "host"],
        &["--connect", "not a host"],
        &["--connect", "169.254.169.254:80"],
        &["--connect", "*:443"],
        &["--connect", "evil.example:443"],
        &["--bind", "8080"],
    ] {
        let refused = taught(&mut learner, record("openat", Some(&plain), flags));
        assert!(refused.is_err() && learner.candidate.rules().is_empty(), "{flags:?}: {refused:?}");
    }
    // About another address than the call, and wider than any call.
    let connect = |rule: &str, ip: [u8; 4]| {
        let address = Some(Address::Inet { ip: ip.into(), port: 443 });
        ViolationRecord { address, ..record("connect", None, &["--connect", rule]) }
    };
    for (rule, ip, learned) in [
        ("93.184.216.34:443", [93, 184, 216, 34], 1),
        ("93.184.216.35:443", [93, 184, 216, 34], 0),
        ("93.184.216.34:22", [93, 184, 216, 34], 0),
        ("*.com:443", [93, 184, 216, 34], 0),
    ] {
        let mut learner = machine.learner(LearnerRules { at_once: true, ..LearnerRules::default() });
        taught(&mut learner, connect("example.org:443", ip)).unwrap();
        let rights = taught(&mut learner, connect(rule, ip));
        assert_eq!(rights.map_or(0, |rights| rights.len()), learned, "{rule}");
    }
}

/// A refused call names its paths as they were given.
#[test]
fn a_file_teaches_no_path_that_its_call_does_not_name() {
    let machine = Machine::new();
    let (many, sub) = (machine.path("home/many"), machine.path("home/work/sub"));
    fs::create_dir_all(&sub).unwrap();
    symlink(&many, machine.path("home/link")).unwrap();
    let below = |path: &str| machine.path(path).display().to_string();
    let call = |paths: &[&str], rule: &Path| ViolationRecord {
        kind: ViolationKind::Syscall,
        args: paths.iter().map(|path| format!("\"{path}\"")).collect::<Vec<_>>().join(", "),
        ..record("renameat2", Some(Path::new(paths[0])), &["--rw", rule.to_str().unwrap()])
    };
    let (inside, by_link) = (below("home/many/x"), below("home/link/x"));
    for (record, is_own, is_others) in [
        (call(&[&inside], &many), true, true),
        (call(&[&by_link], &many), true, true),
        (call(&["x", &inside], &many), true, true),
        (call(&["x"], &sub), true, true),
        // What they are relative to, only a run of ours has seen.
        (call(&["x"], &many), true, false),
        (call(&["/nowhere/x"], &many), true, false),
        (call(&["/nowhere/x", "y"], &many), true, false),
        (record("openat", Some(Path::new("x")), &["--rwx", many.to_str().unwrap()]), false, false),
    ] {
        for (at_once, is_learned) in [(false, is_own), (true, is_others)] {
            let mut learner = machine.learner(LearnerRules { at_once, ..LearnerRules::default() });
            let learned = taught(&mut learner, record.clone());
            assert_eq!(learned.is_ok(), is_learned, "{at_once} {record:?}: {learned:?}");
        }
    }
}

#[test]
fn what_is_sensitive_is_learned_by_name_alone() {
    let machine = Machine::new();
    let key = machine.path("home/.ssh/id_rsa");
    let link = machine.path("home/data/link");
    symlink(&key, &link).unwrap();
    let hook = machine.path("home/work/.git/hooks/post-commit");
    fs::create_dir_all(machine.path("home/work/.git/hooks")).unwrap();
    let cases = [
        record("openat", Some(&key), &["--ro", key.to_str().unwrap()]),
        record("openat", Some(&link), &["--ro", link.to_str().unwrap()]),
        record("openat", Some(&hook), &["--rw", machine.path("home/work/.git/hooks").to_str().unwrap()]),
        record("ptrace", None, &["--allow-calls", "ptrace"]),
        record("bpf", None, &["--allow-calls", "bpf"]),
    ];
    for case in cases {
        let refused = taught(&mut machine.learner(LearnerRules::default()), case.clone());
        assert!(refused.is_err(), "{case:?}");
        let allowed = LearnerRules { allow_sensitive: true, ..LearnerRules::default() };
        let learned = taught(&mut machine.learner(allowed), case.clone());
        assert_eq!(learned.map(|rights| rights.len()), Ok(1), "{case:?}");
    }
}

#[test]
fn what_git_executes_is_protected_with_the_whole_workspace() {
    let machine = Machine::new();
    for directory in ["home/work/.git/objects", "home/work/.git/hooks", "home/work/sub/.git", "home/work/src"]
    {
        fs::create_dir_all(machine.path(directory)).unwrap();
    }
    for (path, rule) in [
        ("home/work/.git/index.lock", "home/work/.git"),
        ("home/work/.git/worktrees/x/config", "home/work/.git/worktrees"),
        ("home/work/sub/file", "home/work/sub"),
    ] {
        let (path, rule) = (machine.path(path), machine.path(rule));
        let mut learner = machine.learner(LearnerRules::default());
        learner.candidate = Candidate::default();
        let learned = taught(&mut learner, record("openat", Some(&path), &["--rw", rule.to_str().unwrap()]));
        assert_eq!(learned, Ok(vec![Right::Path(machine.path("home/work"), WRITE)]), "{path:?}");
    }
    for rule in ["home/work/.git/objects", "home/work/src"] {
        let mut learner = machine.learner(LearnerRules::default());
        learner.candidate = Candidate::default();
        let (path, rule) = (machine.path(rule).join("x"), machine.path(rule));
        let learned = taught(&mut learner, record("openat", Some(&path), &["--rw", rule.to_str().unwrap()]));
        assert_eq!(learned, Ok(vec![Right::Path(rule, WRITE)]));
    }
}

/// What a command leaves in the place of a path when it has ended, the next round would follow.
#[test]
fn a_link_in_the_place_of_what_was_learned_ends_the_rule() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules::default());
    let plain = machine.path("home/data/plain");
    taught(&mut learner, record("openat", Some(&plain), &["--ro", plain.to_str().unwrap()])).unwrap();
    assert!(!learner.settle());
    fs::remove_file(&plain).unwrap();
    symlink(machine.path("home/.ssh/id_rsa"), &plain).unwrap();
    assert!(learner.settle());
    assert!(learner.candidate.rules().is_empty());
    assert!(learner.not_learned[0].why.contains("link"), "{:?}", learner.not_learned);
}

#[test]
fn made_up_names_end_learning() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules::default());
    let violation = |number: usize| {
        let path = format!("/srv/made-up/{number}/file");
        record("openat", Some(Path::new(&path)), &["--ro", &path])
    };
    let all: Vec<_> = (0..=candidate::MOST).map(violation).collect();
    let refusal = learner.learn(&report(all), 1).map(|_| ()).unwrap_err().to_string();
    assert!(refusal.contains("more than 256 rules"), "{refusal}");
    // In one directory they are one rule about it, if that may be learned.
    let mut learner = machine.learner(LearnerRules::default());
    let many = machine.path("home/many");
    let files = (0..100).map(|number| {
        let path = many.join(number.to_string());
        fs::write(&path, "").unwrap();
        record("openat", Some(&path), &["--ro", path.to_str().unwrap()])
    });
    learner.learn(&report(files.collect()), 1).unwrap();
    let rights: Vec<_> = learner.candidate.rules().iter().map(|rule| rule.right.clone()).collect();
    assert_eq!(rights, [Right::Path(many, READ)]);
}

/// A rule about a directory opens what else is in it.
#[test]
fn a_crowd_of_files_opens_no_directory_with_a_secret() {
    for (mode, is_joined) in [(0o600, false), (0o644, true)] {
        let machine = Machine::new();
        let mut learner = machine.learner(LearnerRules::default());
        let many = machine.path("home/many");
        fs::write(many.join("other"), "").unwrap();
        fs::set_permissions(many.join("other"), fs::Permissions::from_mode(mode)).unwrap();
        let written = (0..20).map(|number| {
            let path = many.join(number.to_string());
            fs::write(&path, "").unwrap();
            record("openat", Some(&path), &["--rw", path.to_str().unwrap()])
        });
        learner.learn(&report(written.collect()), 1).unwrap();
        assert_eq!(learner.candidate.has(&Right::Path(many, WRITE)), is_joined, "{mode:o}");
    }
}

#[test]
fn a_network_is_learned_in_steps_and_no_whole_one() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules::default());
    let socket = || record("socket", None, &["--net", "host"]);
    let host = |rule: &str| record("connect", None, &["--connect", rule]);
    assert_eq!(taught(&mut learner, host("example.org")), Ok(vec![Right::Hosts]));
    assert!(taught(&mut learner, socket()).unwrap_err().contains("only the network of this machine"));
    let learned = taught(&mut learner, host("example.org:80"));
    assert_eq!(learned, Ok(vec![Right::Connect("example.org:80".into())]));
    for rule in ["10.0.0.1:22", "169.254.169.254:80", "*:443", "127.0.0.1:80"] {
        assert!(taught(&mut learner, host(rule)).is_err(), "{rule}");
    }
    let given = LearnerRules { network_is_given: true, ..LearnerRules::default() };
    assert!(taught(&mut machine.learner(given), socket()).is_err());
}

/// A name is asked for without a port, so its rule is a guess: one that nothing was connected by is taken out, and not
/// learned again.
#[test]
fn a_host_that_nothing_is_connected_to_is_tried_once() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules { at_once: true, ..LearnerRules::default() });
    let asked = || record("dns", None, &["--connect", "private.example"]);
    assert_eq!(taught(&mut learner, asked()).map(|rights| rights.len()), Ok(1));
    assert_eq!(learner.prune(&report(Vec::new())).len(), 1);
    assert!(taught(&mut learner, asked()).unwrap_err().contains("nothing was connected"));
    assert!(learner.candidate.rules().is_empty() && learner.prune(&report(Vec::new())).is_empty());
}

/// A command that has thousands of other calls refused does not hide what it wanted.
#[test]
fn a_crowd_of_refusals_hides_no_sensitive_one() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules::default());
    let others = (0..5000).map(|number| record("openat", None, &["--pass-fd", &number.to_string()]));
    let key = machine.path("home/.ssh/id_rsa");
    let wanted = record("openat", Some(&key), &["--ro", key.to_str().unwrap()]);
    learner.learn(&report(others.chain([wanted]).collect()), 1).unwrap();
    assert!(learner.unlisted > 4000);
    let listed: Vec<_> = learner.not_learned.iter().filter(|refused| refused.sensitive).collect();
    assert!(listed.len() == 1 && listed[0].what.ends_with("id_rsa"), "{listed:?}");
}

#[test]
fn shared_directories_become_ones_of_the_runs_own() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules::default());
    let tmp = || record("openat", Some(Path::new("/tmp/x")), &["--rw", "/tmp"]);
    assert_eq!(taught(&mut learner, tmp()), Ok(vec![Right::Scratch]));
    assert_eq!(taught(&mut learner, tmp()), Ok(vec![Right::Namespaces]));
    assert!(taught(&mut learner, tmp()).is_err());
    let name = Path::new("/dev/shm/sem.Ab12");
    let learned = taught(&mut learner, record("openat", Some(name), &["--rw", "/dev/shm/sem.Ab12"]));
    assert_eq!(learned, Ok(vec![Right::Path("/dev/shm".into(), WRITE)]));
}

#[test]
fn texts_of_a_report_do_not_steer_a_terminal() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules::default());
    let path = Path::new("/srv/\x1b[31mred");
    let told = record("openat", Some(path), &["--ro", path.to_str().unwrap()]);
    learner.learn(&report(vec![told, record("x\x1b[1m", None, &["--net"])]), 1).unwrap();
    let rules = learner.candidate.rules();
    let mut texts: Vec<String> = rules.iter().map(|rule| rule.right.to_string()).collect();
    texts.extend(rules.iter().map(|rule| right::why(&rule.right, &rule.evidence, "round")));
    texts.extend(learner.not_learned.iter().flat_map(|refused| [refused.what.clone(), refused.why.clone()]));
    assert!(texts.len() >= 4, "{texts:?}");
    assert!(texts.iter().all(|text| !text.contains(char::is_control)), "{texts:?}");
}

/// Another command may exchange a path for a link at any time.
#[test]
fn the_profile_names_the_path_that_was_judged() {
    let machine = Machine::new();
    let mut learner = machine.learner(LearnerRules::default());
    let plain = machine.path("home/data/plain");
    let flag = plain.to_str().unwrap();
    let learned = taught(&mut learner, record("openat", Some(&plain), &["--ro", flag]));
    assert_eq!(learned, Ok(vec![Right::Path(plain.clone(), READ)]));
    assert!(!learner.settle());
    fs::remove_file(&plain).unwrap();
    symlink(machine.path("home/.ssh/id_rsa"), &plain).unwrap();
    let given = Request::default();
    let frame = Frame {
        extends: "minimal".to_string(),
        description: String::new(),
        given: &given,
        keys: Vec::new(),
        workspace: None,
        home: Some(machine.path("home")),
        counted: "round",
    };
    let document = frame.document(&learner.candidate);
    assert_eq!(document["paths"]["read"][0]["path"], "${HOME}/data/plain");
    // Its twin: where the link is there before, the rule goes.
    assert!(learner.settle() && learner.candidate.rules().is_empty());
}
