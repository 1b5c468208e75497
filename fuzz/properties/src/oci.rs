//! Seccomp documents of OCI: importing them, and exporting what they make.

use super::assert_line;
use super::profile::{ACTIONS, compiled_with, load, questions};
use sbx::profile::foreign::languages::Language;
use sbx::profile::foreign::{ImportError, Imported, Losses, oci as foreign};
use sbx::profile::{DefaultAction, Profile, Variables};
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{self, Data};
use sbx_policy::rules::Actions;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;

/// Input: a document. A refused one gives a one-line message. An accepted one makes a profile that can be read, and the
/// document that this profile makes decides each call as the profile does.
pub fn oci(text: &[u8]) {
    match import(text) {
        Err(error) => assert_line(&error.to_string()),
        Ok(imported) => {
            imported.losses.lines().iter().for_each(|line| assert_line(line));
            let made = imported.document.to_string();
            let profile = load(made.as_bytes()).unwrap_or_else(|error| panic!("{error}: {made}"));
            if imported.losses.lines().is_empty() {
                says_the_same(text, &profile);
            }
            comes_back(&profile);
        }
    }
}

fn import(text: &[u8]) -> Result<Imported, ImportError> {
    // The one with the most keys.
    let language = Language::named("docker").expect("it is one of the languages");
    language.import(OsStr::new("x.json"), text, &Variables::default()).expect("profiles are made of it")
}

/// A document of which nothing is lost, and its profile, decide alike where a rule of the document just holds. Scopes,
/// old keys and alternatives in one rule are left to other tests.
fn says_the_same(text: &[u8], profile: &Profile) {
    let document: Value = serde_json::from_slice(text).expect("it was imported");
    let plain = |rule: &Value| {
        let args = rule["args"].as_array().map_or(&[][..], Vec::as_slice);
        let indices: HashSet<_> = args.iter().map(|arg| arg["index"].as_u64()).collect();
        let old = ["name", "errno", "includes", "excludes"].iter().any(|key| !rule[key].is_null());
        !old && indices.len() == args.len()
    };
    let rules = document["syscalls"].as_array().map_or(&[][..], Vec::as_slice);
    if !document["defaultErrno"].is_null() || !rules.iter().all(plain) {
        return;
    }
    let Some(program) = program(profile, Arch::X86_64) else { return };
    let read = Document::of(&document);
    for rule in rules {
        let mut args = [0; 6];
        for arg in rule["args"].as_array().into_iter().flatten() {
            let number = |key: &str| arg[key].as_u64().unwrap_or(0);
            args[number("index") as usize] = match arg["op"].as_str() {
                Some("SCMP_CMP_MASKED_EQ") => number("valueTwo"),
                Some("SCMP_CMP_NE") => number("value") ^ 1,
                Some("SCMP_CMP_GT") => number("value").wrapping_add(1),
                Some("SCMP_CMP_LT") => number("value").wrapping_sub(1),
                _ => number("value"),
            };
        }
        for name in rule["names"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let number = Call::named(name.as_bytes()).and_then(|call| call.number(Arch::X86_64));
            let Some(nr) = number.filter(|_| name != "prctl") else { continue };
            for args in [args, [0; 6], [u64::MAX; 6]] {
                let data = Data { nr, arch: Arch::X86_64.audit(), args };
                assert_eq!(interpret::run(&program, &data), Some(read.decides(name, &args)), "{name}");
            }
        }
    }
}

/// Exports a profile. The document decides each call as the profile does, and so does the profile that it makes.
/// Calls whose conditions take too many rules are refused, and left out here.
pub fn comes_back(profile: &Profile) {
    let mut losses = Losses::default();
    let document = exported(profile, &mut losses);
    let imported = import(document.to_string().as_bytes());
    // One call may have more rules in a document than a profile may have conditions.
    let again = match imported {
        Ok(imported) => {
            Some(load(imported.document.to_string().as_bytes()).unwrap_or_else(|e| panic!("{e}")))
        }
        Err(error) if error.to_string().contains("conditions") => None,
        Err(error) => panic!("{error}"),
    };
    let read = Document::of(&document);
    let lost: HashSet<_> = losses.lines().iter().filter_map(|line| line.split(':').next()).collect();
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let Some(one) = program(profile, arch) else { continue };
        let other = again.as_ref().and_then(|again| program(again, arch));
        for (nr, audit, args) in questions(profile, arch) {
            let Some(name) = Call::numbered(arch, nr).map(Call::name) else { continue };
            // What each filter answers about itself is its own. Another architecture's call ends the process.
            if name == "prctl" || lost.contains(name) || audit != arch.audit() {
                continue;
            }
            let data = Data { nr, arch: audit, args };
            let meant = interpret::run(&one, &data);
            assert_eq!(meant, Some(read.decides(name, &args)), "{name} {data:x?}");
            if let Some(other) = &other {
                assert_eq!(meant, interpret::run(other, &data), "{name} {data:x?}");
            }
        }
    }
}

/// A document, read as its consumers read it.
struct Document<'d> {
    default: u32,
    /// The rules of each name.
    rules: HashMap<&'d str, Vec<&'d Value>>,
}

impl<'d> Document<'d> {
    fn of(document: &'d Value) -> Document<'d> {
        let mut rules: HashMap<_, Vec<_>> = HashMap::new();
        for rule in document["syscalls"].as_array().into_iter().flatten() {
            let conditions = rule["args"].as_array().map_or(&[][..], Vec::as_slice);
            let indices: HashSet<_> = conditions.iter().map(|arg| arg["index"].as_u64()).collect();
            assert_eq!(indices.len(), conditions.len(), "consumers read these as alternatives: {rule}");
            let names: BTreeSet<_> =
                rule["names"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            names.into_iter().for_each(|name| rules.entry(name).or_default().push(rule));
        }
        Document { default: action(&document["defaultAction"], &document["defaultErrnoRet"]), rules }
    }

    /// What it says of a call. Rules that hold at once have to agree.
    fn decides(&self, name: &str, args: &[u64; 6]) -> u32 {
        let mut answer = None;
        for rule in self.rules.get(name).into_iter().flatten() {
            if rule["args"].as_array().into_iter().flatten().all(|arg| holds(arg, args)) {
                let value = action(&rule["action"], &rule["errnoRet"]);
                // Consumers skip a rule that does what happens anyway.
                if value != self.default {
                    assert_eq!(*answer.get_or_insert(value), value, "{name} {args:x?}");
                }
            }
        }
        answer.unwrap_or(self.default)
    }
}

fn action(word: &Value, errno: &Value) -> u32 {
    match word.as_str() {
        Some("SCMP_ACT_ALLOW") => bpf::RET_ALLOW,
        Some("SCMP_ACT_LOG") => bpf::RET_LOG,
        Some("SCMP_ACT_KILL_PROCESS") => bpf::RET_KILL_PROCESS,
        Some("SCMP_ACT_ERRNO") => bpf::RET_ERRNO | errno.as_u64().map_or(1, |number| number as u32),
        other => panic!("{other:?}"),
    }
}

fn holds(arg: &Value, args: &[u64; 6]) -> bool {
    let number = |key: &str| arg[key].as_u64().unwrap_or(0);
    let (left, value) = (args[number("index") as usize], number("value"));
    match arg["op"].as_str() {
        Some("SCMP_CMP_EQ") => left == value,
        Some("SCMP_CMP_NE") => left != value,
        Some("SCMP_CMP_LT") => left < value,
        Some("SCMP_CMP_LE") => left <= value,
        Some("SCMP_CMP_GT") => left > value,
        Some("SCMP_CMP_GE") => left >= value,
        Some("SCMP_CMP_MASKED_EQ") => left & value == number("valueTwo") & value,
        other => panic!("{other:?}"),
    }
}

fn exported(profile: &Profile, losses: &mut Losses) -> Value {
    let rules =
        |arch| profile.syscalls.to_rules(arch, ACTIONS, false).expect("checked conditions can be compiled").0;
    let (x86_64, aarch64) = (rules(Arch::X86_64), rules(Arch::Aarch64));
    let tables = [(Arch::X86_64, &*x86_64), (Arch::Aarch64, &*aarch64)];
    let said = |call| profile.syscalls.calls.get(call);
    let asked: Vec<_> = Call::all().filter_map(|call| foreign::of_first(&tables, said(call), call)).collect();
    foreign::write(&asked, default(profile), losses)
}

fn default(profile: &Profile) -> DefaultAction {
    profile.syscalls.default.as_deref().copied().unwrap_or(DefaultAction::Kill)
}

/// The program with the profile's own answers.
fn program(profile: &Profile, arch: Arch) -> Option<Vec<Insn>> {
    let violation = default(profile).violation().unwrap_or(bpf::RET_ERRNO | 1);
    compiled_with(profile, arch, Actions { violation, log: bpf::RET_LOG, unknown: None })
}
