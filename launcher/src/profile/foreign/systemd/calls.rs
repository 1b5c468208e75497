//! `SystemCallFilter=` and the directives that stand for filters of calls, as entries of a profile.

use std::collections::{BTreeMap, BTreeSet};

use sbx_policy::calls::{Call, Group};
use sbx_policy::errno;
use serde_json::{Value, json};

use crate::profile::calls::{NETWORK_CALLS, errno_word};
use crate::profile::error::{Plain, ProfileCause};
use crate::profile::foreign::Losses;
use crate::profile::foreign::meaning::Calls;
use crate::profile::foreign::oci::is_elsewhere;
use crate::profile::foreign::systemd::kept;
use crate::profile::foreign::systemd::service::{Families, Service};
use crate::profile::foreign::systemd::unit::Setting;
use crate::profile::foreign::systemd::words::words;

/// What meets a call that the filter refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Kill,
    Errno(u16),
}

impl Refusal {
    /// `kill`, the name of an error, or its number.
    fn read(text: &str) -> Option<Refusal> {
        if text == "kill" {
            return Some(Refusal::Kill);
        }
        let number = text.parse().ok().filter(|number| (1..=errno::MAX).contains(number));
        number.or_else(|| errno::parse(text.as_bytes())).map(Refusal::Errno)
    }

    fn word(self) -> String {
        match self {
            Refusal::Kill => "kill".to_string(),
            Refusal::Errno(errno::EPERM) => "errno".to_string(),
            Refusal::Errno(number) => format!("errno={}", errno_word(number)),
        }
    }
}

/// The filter, while its assignments are read.
#[derive(Default)]
struct Filter {
    /// Whether it lists what is allowed.
    allows: bool,
    /// The calls that are listed, each with an answer of its own.
    listed: BTreeMap<Call, Option<Refusal>>,
    exists: bool,
}

impl Filter {
    fn assign(&mut self, setting: &Setting, losses: &mut Losses) -> Result<(), ProfileCause> {
        let (inverted, text) = match setting.value.strip_prefix('~') {
            Some(rest) => (true, rest),
            None => (false, &*setting.value),
        };
        if !self.exists {
            (self.exists, self.allows) = (true, !inverted);
            // What every program needs is allowed by every list.
            if self.allows {
                self.change("@default", None, true, setting, losses);
            }
        }
        let words =
            words(&Setting { value: text.to_string(), name: setting.name.clone(), line: setting.line })?;
        for word in words {
            let (name, refusal) = match word.split_once(':') {
                Some((name, answer)) => {
                    let refusal = Refusal::read(answer).ok_or_else(|| {
                        setting.wrong(format!("'{}' is no error, like EPERM", Plain(answer)))
                    })?;
                    // systemd does not heed such a word.
                    if !inverted && self.allows {
                        losses.note(
                            setting.place(),
                            format_args!("'{}': what is allowed has no error", Plain(&word)),
                        );
                        continue;
                    }
                    (name, Some(refusal))
                }
                None => (&*word, None),
            };
            self.change(name, refusal, inverted != self.allows, setting, losses);
        }
        Ok(())
    }

    fn change(
        &mut self,
        name: &str,
        refusal: Option<Refusal>,
        adds: bool,
        setting: &Setting,
        losses: &mut Losses,
    ) {
        for call in named(name, setting, losses) {
            if adds {
                self.listed.insert(call, refusal);
            } else {
                self.listed.remove(&call);
            }
        }
    }
}

/// The calls of a name or of a group.
fn named(name: &str, setting: &Setting, losses: &mut Losses) -> Vec<Call> {
    if name == "@known" {
        return Call::all().collect();
    }
    if let Some(group) = Group::named(name.as_bytes()) {
        return group.members().collect();
    }
    if let Some(call) = Call::named(name.as_bytes()) {
        return vec![call];
    }
    if !is_elsewhere(name) {
        let known = Group::all().map(Group::name).chain(Call::all().map(Call::name));
        let near = losses.hint(name, known);
        let place = setting.place();
        losses.note(place, format_args!("'{}' is neither a call nor a group{near}", Plain(name)));
    }
    Vec::new()
}

/// How far a call is allowed: with all arguments, or as these entries say.
type Grants = BTreeMap<Call, Option<Vec<Value>>>;

/// What a service says about calls.
pub struct Said {
    /// The calls; none if it says nothing about them.
    pub calls: Option<Calls>,
    /// Whether it may make sockets.
    pub makes_sockets: bool,
}

/// Reads what a service says about calls.
pub fn read(service: &Service, losses: &mut Losses) -> Result<Said, ProfileCause> {
    let answer = answer(service)?;
    let mut filter = Filter::default();
    for setting in service.all("SystemCallFilter") {
        filter.assign(setting, losses)?;
    }
    architectures(service, losses)?;
    let noted = noted(service, losses)?;
    if !filter.exists {
        return without_filter(service, noted, losses);
    }
    let mut calls = Calls { default: Some(answer.word()), ..Calls::default() };
    let mut grants = Grants::new();
    for call in Call::all() {
        let said = filter.listed.get(&call);
        match said {
            Some(Some(refusal)) => refuse(call, *refusal, answer, &mut calls, setting_of(service), losses),
            Some(None) if filter.allows => {
                grants.insert(call, None);
            }
            None if !filter.allows => {
                grants.insert(call, None);
            }
            Some(None) | None => {}
        }
    }
    let makes_sockets = Call::named(b"socket").is_some_and(|call| grants.contains_key(&call));
    narrow(service, &mut grants, &mut calls.deny, losses)?;
    let has = |name: &str| Call::named(name.as_bytes()).is_some_and(|call| grants.contains_key(&call));
    // What a network brings with it does not undo what the filter refuses. It brings `connect` where a run may make
    // sockets, and then path rules are about UNIX sockets too.
    let refused = NETWORK_CALLS.iter().chain(&["bind"]).filter(|name| makes_sockets && !has(name));
    let refused = refused.filter(|name| !calls.deny.iter().any(|known| known["call"] == **name));
    let refused: Vec<Value> = refused.map(|name| json!(name)).collect();
    calls.deny.extend(refused);
    remove(&mut grants, "connect");
    if makes_sockets {
        calls.deny.extend(service.families()?.refused());
    }
    let groups = groups(&grants, &noted);
    let covered: BTreeSet<Call> = groups.iter().flat_map(|group| group.members()).collect();
    calls.allow.extend(groups.iter().map(|group| json!(group.name())));
    for (call, entries) in grants {
        let list = if noted.contains(&call) { &mut calls.log } else { &mut calls.allow };
        match entries {
            Some(entries) => list.extend(entries),
            None if covered.contains(&call) => {}
            None => list.push(json!(call.name())),
        }
    }
    Ok(Said { calls: Some(calls), makes_sockets })
}

fn setting_of(service: &Service) -> Option<&Setting> {
    service.all("SystemCallFilter").last()
}

/// Refuses one call with an answer of its own.
fn refuse(
    call: Call,
    refusal: Refusal,
    answer: Refusal,
    calls: &mut Calls,
    setting: Option<&Setting>,
    losses: &mut Losses,
) {
    match refusal {
        refusal if refusal == answer => {}
        Refusal::Errno(number) => {
            calls.deny.push(json!({ "call": call.name(), "errno": errno_word(number) }))
        }
        Refusal::Kill => {
            let place = setting.map_or_else(String::new, Setting::place);
            losses
                .note(place, format_args!("{}: one call cannot end the process; it is refused", call.name()));
        }
    }
}

/// What a refused call meets.
fn answer(service: &Service) -> Result<Refusal, ProfileCause> {
    let Some(setting) = service.last("SystemCallErrorNumber") else { return Ok(Refusal::Kill) };
    Refusal::read(&setting.value)
        .ok_or_else(|| setting.wrong(format!("'{}' is no error, like EPERM", Plain(&setting.value))))
}

/// A run has the machine's own architecture alone.
fn architectures(service: &Service, losses: &mut Losses) -> Result<(), ProfileCause> {
    for setting in service.all("SystemCallArchitectures") {
        for word in words(setting)? {
            if matches!(&*word, "x86" | "x32" | "arm") {
                losses.note(setting.place(), format_args!("programs for {word} cannot be run"));
            }
        }
    }
    Ok(())
}

/// The calls of `SystemCallLog=`.
fn noted(service: &Service, losses: &mut Losses) -> Result<BTreeSet<Call>, ProfileCause> {
    let mut filter = Filter { exists: true, allows: true, ..Filter::default() };
    let mut all_but = false;
    for (at, setting) in service.all("SystemCallLog").enumerate() {
        if at == 0 && setting.value.starts_with('~') {
            (all_but, filter.allows) = (true, false);
        }
        filter.assign(setting, losses)?;
    }
    let listed = |call: &Call| filter.listed.contains_key(call);
    Ok(Call::all().filter(|call| listed(call) != all_but).collect())
}

/// The largest groups of which every call is allowed with all arguments, and not noted.
fn groups(grants: &Grants, noted: &BTreeSet<Call>) -> Vec<Group> {
    let whole = |call: Call| matches!(grants.get(&call), Some(None)) && !noted.contains(&call);
    let mut fitting: Vec<(Group, BTreeSet<Call>)> = Group::all()
        .map(|group| (group, group.members().collect::<BTreeSet<_>>()))
        .filter(|(_, members)| members.iter().all(|call| whole(*call)))
        .collect();
    fitting.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    let mut chosen: Vec<(Group, BTreeSet<Call>)> = Vec::new();
    for (group, members) in fitting {
        // Entries of a profile may not cover each other.
        if chosen.iter().all(|(_, known)| known.is_disjoint(&members)) {
            chosen.push((group, members));
        }
    }
    chosen.into_iter().map(|(group, _)| group).collect()
}

/// A unit without a filter: the calls are those of the base, but for what other directives refuse.
fn without_filter(
    service: &Service,
    noted: BTreeSet<Call>,
    losses: &mut Losses,
) -> Result<Said, ProfileCause> {
    let mut calls = Calls::default();
    // Values are looked at, whatever comes of them.
    let (mut grants, mut denials) = (Grants::new(), Vec::new());
    narrow(service, &mut grants, &mut denials, &mut Losses::default())?;
    namespaces(service, &mut grants, &mut denials, losses)?;
    if service.is_on("MemoryDenyWriteExecute")? {
        calls.deny.extend(MEMORY.map(|entry| json!(entry)));
    }
    if service.is_on("LockPersonality")? {
        let other = [0, u64::from(u32::MAX)]
            .map(|same| json!({ "index": 0, "op": "ne", "value": same, "width": 32 }));
        calls.deny.push(json!({ "call": "personality", "args": other }));
    }
    if service.is_on("RestrictRealtime")? {
        // SCHED_FIFO, SCHED_RR and SCHED_DEADLINE.
        calls.deny.extend([1, 2, 6].map(scheduling));
        calls.deny.push(json!("sched_setattr"));
    }
    let families = service.families()?;
    if !families.have("AF_UNIX") {
        calls.deny.push(json!({ "call": "socket[unix]", "errno": "EAFNOSUPPORT" }));
        calls.deny.push(json!({ "call": "socketpair", "errno": "EAFNOSUPPORT" }));
    }
    calls.deny.extend(families.refused());
    if let Some(setting) = service.last("SystemCallLog").filter(|_| !noted.is_empty()) {
        losses.note(setting.place(), "calls are noted only beside a SystemCallFilter=");
    }
    let empty = calls.deny.is_empty();
    let makes_sockets = families != Families::Only(BTreeSet::new());
    Ok(Said { calls: (!empty).then_some(calls), makes_sockets })
}

/// A way to schedule, with or without SCHED_RESET_ON_FORK.
fn scheduling(policy: u64) -> Value {
    json!({ "call": "sched_setscheduler",
            "args": [{ "index": 1, "value": policy, "mask": 0xbfff_ffff_u64, "width": 32 }] })
}

/// Executable memory that no file backs, or that is made executable later. The base refuses it for System V memory.
const MEMORY: [&str; 3] = ["mmap[jit]", "mprotect[exec]", "pkey_mprotect[exec]"];

/// Namespaces that a process can be made in, by the words of `RestrictNamespaces=`.
const NAMESPACES: [(&str, u64); 7] = [
    ("cgroup", 0x0200_0000),
    ("uts", 0x0400_0000),
    ("ipc", 0x0800_0000),
    ("user", 0x1000_0000),
    ("pid", 0x2000_0000),
    ("net", 0x4000_0000),
    ("mnt", 0x0002_0000),
];

/// Takes away what the directives beside the filter refuse.
fn narrow(
    service: &Service,
    grants: &mut Grants,
    deny: &mut Vec<Value>,
    losses: &mut Losses,
) -> Result<(), ProfileCause> {
    for (directive, group) in [("ProtectKernelModules", "@module"), ("ProtectClock", "@clock")] {
        if service.is_on(directive)? {
            let members = Group::named(group.as_bytes()).into_iter().flat_map(Group::members);
            members.for_each(|call| drop(grants.remove(&call)));
        }
    }
    for (directive, names) in
        [("ProtectKernelLogs", &["syslog"][..]), ("ProtectHostname", &["sethostname", "setdomainname"])]
    {
        if kept::is_on(service, directive)? {
            names.iter().for_each(|name| remove(grants, name));
        }
    }
    if service.is_on("MemoryDenyWriteExecute")? {
        only(grants, "mmap", &[json!("mmap[no-jit]")]);
        only(grants, "mprotect", &[json!("mprotect[no-exec]")]);
        only(grants, "pkey_mprotect", &[json!("pkey_mprotect[no-exec]")]);
        only(grants, "shmat", &[json!("shmat[no-exec]")]);
    }
    if service.is_on("RestrictSUIDSGID")? || service.is_on("DynamicUser")? {
        for name in SET_ID {
            only(grants, name, &[json!(format!("{name}[no-setid]"))]);
        }
        for name in ["mknod", "mknodat"] {
            only(grants, name, &[json!(format!("{name}[plain]"))]);
        }
        unavailable(grants, "openat2", deny);
    }
    if service.is_on("LockPersonality")? {
        let same = |value: u64| json!({ "call": "personality", "args": [{ "index": 0, "value": value, "width": 32 }] });
        only(grants, "personality", &[same(0), same(0xffff_ffff)]);
    }
    if service.is_on("RestrictRealtime")? {
        // SCHED_OTHER, SCHED_BATCH and SCHED_IDLE.
        let policies = [0, 3, 5].map(scheduling);
        only(grants, "sched_setscheduler", &policies);
        remove(grants, "sched_setattr");
    }
    namespaces(service, grants, deny, losses)?;
    service.families()?.narrow(grants, service.last("RestrictAddressFamilies"), losses);
    Ok(())
}

const SET_ID: [&str; 9] =
    ["chmod", "creat", "fchmod", "fchmodat", "fchmodat2", "mkdir", "mkdirat", "open", "openat"];

/// `RestrictNamespaces=`: the flags of namespaces that may be made.
fn namespaces(
    service: &Service,
    grants: &mut Grants,
    deny: &mut Vec<Value>,
    losses: &mut Losses,
) -> Result<(), ProfileCause> {
    let Some(forbidden) = service.forbidden_namespaces(&NAMESPACES, losses)? else { return Ok(()) };
    if forbidden == 0 {
        return Ok(());
    }
    if NAMESPACES.iter().all(|(_, flag)| forbidden & flag != 0) {
        for name in ["clone", "unshare"] {
            only(grants, name, &[json!(format!("{name}[no-namespace]"))]);
        }
        remove(grants, "setns");
    } else {
        for name in ["clone", "unshare"] {
            let entry = json!({ "call": name, "args": [{ "index": 0, "value": 0, "mask": forbidden }] });
            only(grants, name, &[entry]);
        }
        // Without a type, the descriptor may be of any namespace.
        let types = json!({ "call": "setns", "args": [{ "index": 1, "op": "ne", "value": 0, "width": 32 },
                                                      { "index": 1, "value": 0, "mask": forbidden, "width": 32 }] });
        only(grants, "setns", &[types]);
    }
    // The flags of clone3 are in memory; libraries go on with clone.
    unavailable(grants, "clone3", deny);
    Ok(())
}

fn remove(grants: &mut Grants, name: &str) {
    if let Some(call) = Call::named(name.as_bytes()) {
        grants.remove(&call);
    }
}

/// Keeps a call to some arguments, if it is allowed.
pub fn only(grants: &mut BTreeMap<Call, Option<Vec<Value>>>, name: &str, entries: &[Value]) {
    if let Some(grant) = Call::named(name.as_bytes()).and_then(|call| grants.get_mut(&call)) {
        *grant = Some(entries.to_vec());
    }
}

/// Answers a call as a kernel without it does, if it is allowed.
fn unavailable(grants: &mut Grants, name: &str, deny: &mut Vec<Value>) {
    if Call::named(name.as_bytes()).and_then(|call| grants.remove(&call)).is_some() {
        deny.push(json!({ "call": name, "errno": "ENOSYS" }));
    }
}
