//! From a profile to the directives of a unit: a drop-in file for a service.
//!
//! A profile opens what it names, so the unit starts from an empty root and binds that. A filter of systemd cannot look
//! at arguments: what other directives do not say of them is lost, and each such call is named.

use std::collections::BTreeSet;

use sbx_policy::calls::{Call, Group};
use sbx_policy::errno::{ENOSYS, EPERM};
use sbx_policy::restrictions::{Condition, Op};

use crate::profile::calls::{DefaultAction, errno_word};
use crate::profile::foreign::languages::Exported;
use crate::profile::foreign::oci::{Asked, Extent};
use crate::profile::foreign::systemd::drop_in::{Unit, quoted};
use crate::profile::foreign::systemd::own;
use crate::profile::foreign::systemd::write_paths::paths;
use crate::profile::foreign::{Losses, rest};
use crate::profile::model::Profile;
use crate::profile::origin::Given;
use crate::profile::pattern::Pattern;
use crate::profile::units::Bound;
use crate::profile::words::{HomeMode, NetworkMode, Variable};

/// What a run always holds.
const ALWAYS: &str = "\
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
SystemCallArchitectures=native
KeyringMode=private
RemoveIPC=yes
PrivateMounts=yes
MountAPIVFS=yes
";

/// The sections that are written here, or hold anyway.
const SAID: [&str; 20] = [
    "paths.read",
    "paths.execute",
    "paths.write",
    "paths.deny",
    "paths.protect",
    "network.mode",
    "network.unix",
    "network.closed_env",
    "env.set",
    "env.inherit",
    "env.deny",
    "env.addresses",
    "limits.timeout",
    "limits.processes",
    "limits.open_files",
    "limits.file_size",
    "limits.memory",
    "limits.cpu",
    "namespaces",
    "static",
];

/// What is about a home of the run's own.
const HOME: [&str; 4] = ["home.mode", "home.stores", "home.copies", "home.closed_env"];

/// Writes the unit's directives.
pub fn write(exported: &Exported<'_>, losses: &mut Losses) -> Vec<u8> {
    let profile = exported.profile;
    let closed = profile.home.mode.as_deref().copied().unwrap_or_default() == HomeMode::Closed;
    let home = if closed { &HOME[..] } else { &[] };
    rest::lose(profile, &[&SAID, home].concat(), "a unit has nothing of that kind", losses);
    let mut unit = Unit(String::from("[Service]\n"));
    if profile.is_unrestricted() {
        calls(exported, &mut unit, losses);
        return unit.0.into_bytes();
    }
    unit.0.push_str(ALWAYS);
    calls(exported, &mut unit, losses);
    network(exported, &mut unit, losses);
    paths(profile, &mut unit, losses);
    own::write(profile, &mut unit, losses);
    environment(profile, &mut unit, losses);
    limits(profile, &mut unit);
    unit.0.into_bytes()
}

fn calls(exported: &Exported<'_>, unit: &mut Unit, losses: &mut Losses) {
    let answer = match exported.default {
        DefaultAction::Kill => None,
        DefaultAction::Errno(number) => Some(number),
        DefaultAction::Allow => Some(EPERM),
        DefaultAction::Log => {
            losses.note("syscalls.default", "a unit cannot let a call through and note it; it is refused");
            Some(EPERM)
        }
    };
    if let Some(number) = answer {
        unit.set("SystemCallErrorNumber", errno_word(number));
    }
    if exported.default == DefaultAction::Allow {
        let denied: Vec<String> = exported.calls.iter().filter_map(denied).collect();
        return unit.list("SystemCallFilter", "~", &denied);
    }
    let said = arguments(exported, unit, losses);
    let is_allowed =
        |asked: &&Asked| !matches!(asked.allow(), Extent::None) && !matches!(asked.deny(), Extent::All);
    let mut allowed: BTreeSet<Call> = exported.calls.iter().filter(is_allowed).map(Asked::call).collect();
    for asked in exported.calls.iter().filter(|asked| !allowed.contains(&asked.call())).collect::<Vec<_>>() {
        match (asked.call().name(), asked.errno()) {
            // The directives beside the filter answer these as a kernel without them does.
            ("clone3", Some(ENOSYS)) if said.namespaces => drop(allowed.insert(asked.call())),
            ("openat2", Some(ENOSYS)) if said.set_id => drop(allowed.insert(asked.call())),
            (name, Some(number)) if Some(number) != answer => losses.note(
                name,
                format_args!(
                    "beside what is allowed, a unit has one error for all calls: it is not {}",
                    errno_word(number)
                ),
            ),
            _ => {}
        }
    }
    let listed: Vec<String> = allowed.iter().map(|call| call.name().to_string()).collect();
    unit.list("SystemCallFilter", "", &listed);
    // systemd adds what every program needs. The first program has to be executed, too.
    let needed = Group::named(b"@default").into_iter().flat_map(Group::members);
    let (execve, others): (Vec<Call>, Vec<Call>) =
        needed.filter(|call| !allowed.contains(call)).partition(|call| call.name() == "execve");
    if let Some(call) = execve.first() {
        losses.note(call.name(), "a unit cannot refuse it: the service is started by it");
    }
    unit.list(
        "SystemCallFilter",
        "~",
        &others.iter().map(|call| call.name().to_string()).collect::<Vec<_>>(),
    );
    let noted = |asked: &&Asked| asked.is_noted();
    let noted: Vec<String> =
        exported.calls.iter().filter(noted).map(|asked| asked.call().name().to_string()).collect();
    unit.list("SystemCallLog", "", &noted);
}

/// A call that is denied, with its error if it has one of its own.
fn denied(asked: &Asked) -> Option<String> {
    let name = asked.call().name();
    let word = asked.errno().map_or(name.to_string(), |number| format!("{name}:{}", errno_word(number)));
    matches!(asked.deny(), Extent::All).then_some(word)
}

/// Which directives stand for conditions of calls.
struct Said {
    namespaces: bool,
    set_id: bool,
}

/// What the filter alone cannot say: the directives that say it, and what is lost.
fn arguments(exported: &Exported<'_>, unit: &mut Unit, losses: &mut Losses) -> Said {
    let with = |name: &str| exported.calls.iter().find(|asked| asked.call().name() == name);
    let kept = |name: &str, restriction: &str| {
        with(name).is_none_or(|asked| {
            matches!(asked.allow(), Extent::None) || asked.allowed_with() == [restriction].as_slice()
        })
    };
    let refuses = |name: &str, allowed: &str, denied: &str| {
        kept(name, allowed) || with(name).is_some_and(|asked| asked.denied_with().contains(&denied))
    };
    let namespaces = kept("clone", "no-namespace") && kept("unshare", "no-namespace");
    // Threads make no namespaces.
    let namespaces =
        namespaces || with("clone").is_some_and(|asked| asked.allowed_with() == ["thread"].as_slice());
    let memory = refuses("mmap", "no-jit", "jit") && refuses("mprotect", "no-exec", "exec");
    let set_id = ["chmod", "fchmod", "fchmodat", "mkdirat", "openat"];
    let set_id = set_id.iter().all(|name| kept(name, "no-setid") || kept(name, "read"));
    let personality = with("personality").is_some_and(|asked| matches!(asked.allow(), Extent::Some(_)));
    for (holds, directive) in [
        (namespaces, "RestrictNamespaces"),
        (memory, "MemoryDenyWriteExecute"),
        (set_id, "RestrictSUIDSGID"),
        (personality, "LockPersonality"),
    ] {
        if holds {
            unit.set(directive, "yes");
        }
    }
    let said = |asked: &Asked, word: &str| match (asked.call().name(), word) {
        ("clone" | "unshare", "no-namespace") => namespaces,
        ("mmap", "no-jit" | "jit") | ("mprotect" | "pkey_mprotect", "no-exec" | "exec") => memory,
        ("personality", _) => true,
        ("shmat", "no-exec") => memory,
        // Device nodes take a capability.
        ("mknod" | "mknodat", "plain") => set_id,
        // Families are said by another directive.
        ("socket" | "socketpair", "unix" | "inet" | "inet6") => true,
        ("socket" | "socketpair", "") => families(asked).is_some_and(|families| families.is_all),
        (_, "no-setid") => set_id,
        _ => false,
    };
    for asked in exported.calls {
        let name = asked.call().name();
        let lost: Vec<&str> =
            asked.allowed_with().iter().filter(|word| !said(asked, word)).copied().collect();
        if !lost.is_empty() {
            losses.note(
                name,
                format_args!("a unit allows it with all arguments, the profile only {}", shown(&lost)),
            );
        }
        // Kinds of sockets that are denied are not among those that are allowed.
        let lost: Vec<&str> = asked.denied_with().iter().filter(|word| !said(asked, word)).copied().collect();
        let is_said = name == "socket" && denied_families(asked).1;
        if !lost.is_empty() && !is_said && !matches!(asked.allow(), Extent::None) {
            losses.note(
                name,
                format_args!("a unit allows it also where the profile denies it: {}", shown(&lost)),
            );
        }
    }
    Said { namespaces, set_id }
}

/// Address families, by their numbers.
const FAMILIES: [(u64, &str); 4] = [(1, "AF_UNIX"), (2, "AF_INET"), (10, "AF_INET6"), (16, "AF_NETLINK")];

/// The families of the sockets that a call may make.
struct MadeFamilies {
    names: BTreeSet<&'static str>,
    /// Whether the families are all that is said of the sockets.
    is_all: bool,
}

/// `None` if it may make any.
fn families(asked: &Asked) -> Option<MadeFamilies> {
    let alternatives = match asked.allow() {
        Extent::All => return None,
        Extent::None => &[][..],
        Extent::Some(alternatives) => alternatives,
    };
    let mut made = MadeFamilies { names: BTreeSet::new(), is_all: true };
    for all in alternatives {
        let family = all.iter().find(|c| c.arg == 0 && c.op == Op::Eq).map(|c| c.value);
        let name = FAMILIES.iter().find(|(number, _)| Some(*number) == family).map(|(_, name)| *name);
        made.names.extend(name);
        made.is_all &= name.is_some() && all.len() == 1;
    }
    Some(made)
}

/// The families that a call may not make, and whether that is all that is denied of it.
fn denied_families(asked: &Asked) -> (BTreeSet<&'static str>, bool) {
    let words = [
        ("netlink-route", &["AF_NETLINK"][..]),
        ("unix", &["AF_UNIX"]),
        ("inet6", &["AF_INET6"]),
        ("inet", &["AF_INET", "AF_INET6"]),
    ];
    let said = words.iter().filter(|(word, _)| asked.denied_with().contains(word));
    let mut names: BTreeSet<&str> = said.flat_map(|(_, names)| names.iter().copied()).collect();
    let alternatives = if let Extent::Some(alternatives) = asked.deny() { &alternatives[..] } else { &[] };
    let family = |all: &[Condition]| {
        let value = all.iter().find(|c| c.arg == 0 && c.op == Op::Eq)?.value;
        FAMILIES.iter().find(|(number, _)| *number == value).map(|(_, name)| *name)
    };
    names.extend(alternatives.iter().filter(|all| all.len() == 1).filter_map(|all| family(all)));
    let is_all = alternatives.iter().all(|all| family(all).is_some_and(|name| names.contains(name)));
    (names, is_all)
}

fn shown(words: &[&str]) -> String {
    let word =
        |word: &&str| if word.is_empty() { "with some numbers".to_string() } else { format!("[{word}]") };
    words.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn network(exported: &Exported<'_>, unit: &mut Unit, losses: &mut Losses) {
    let mode = exported.profile.network.mode.as_deref().copied().unwrap_or_default();
    if mode == NetworkMode::Ports {
        losses.note("network.mode", "a unit has no rules about hosts or ports: it has no network");
    }
    if mode != NetworkMode::Host {
        unit.set("PrivateNetwork", "yes");
    }
    let of = |call: &str| exported.calls.iter().find(|asked| asked.call().name() == call);
    let mut denied = of("socket").map_or_else(BTreeSet::new, |asked| denied_families(asked).0);
    // These two are denied where there is no network, and a unit always has one of its own.
    let without = ["AF_INET6", "AF_NETLINK"];
    if mode == NetworkMode::Loopback && without.iter().all(|name| denied.contains(name)) {
        denied.retain(|name| !without.contains(name));
    }
    let mut names = BTreeSet::new();
    for asked in ["socket", "socketpair"].into_iter().filter_map(of) {
        match families(asked) {
            Some(made) => names.extend(made.names),
            None if denied.is_empty() => return,
            None => {
                let denied = denied.into_iter().collect::<Vec<_>>().join(" ");
                return unit.set("RestrictAddressFamilies", format_args!("~{denied}"));
            }
        }
    }
    match mode {
        // There, internet sockets lead nowhere else.
        NetworkMode::Private | NetworkMode::Loopback => names.extend(["AF_INET", "AF_INET6", "AF_NETLINK"]),
        NetworkMode::Ports => names = BTreeSet::from(["AF_UNIX"]),
        NetworkMode::None | NetworkMode::Host => {}
    }
    names.retain(|name| !denied.contains(name));
    let names = names.into_iter().collect::<Vec<_>>().join(" ");
    unit.set("RestrictAddressFamilies", if names.is_empty() { "none" } else { &names });
}

fn environment(profile: &Profile, unit: &mut Unit, losses: &mut Losses) {
    let is_open = profile.network.mode.as_deref() == Some(&NetworkMode::Host);
    let offline = profile.network.closed_env.iter().filter(|_| !is_open);
    for (name, value) in offline.chain(profile.env.set.iter()) {
        let value = match value.base {
            None => value.rest.replace('%', "%%"),
            Some(Variable::Home) => format!("%h{}", value.rest.replace('%', "%%")),
            Some(variable) => {
                losses.note(
                    format_args!("env.set.{name}"),
                    format_args!("a unit has nothing for ${{{variable}}}"),
                );
                continue;
            }
        };
        unit.set("Environment", quoted(&format!("{name}={value}")));
    }
    // A service starts from few variables, and what is not passed on need not be taken away.
    let plain =
        |name: &str| !name.contains('*') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // What is denied outranks that, and a unit cannot look whether an address has a password in it.
    let withheld = [&profile.env.deny, &profile.env.addresses];
    let is_withheld = |name: &Given<Pattern>| withheld.iter().any(|list| list.iter().any(|w| w.covers(name)));
    let passed = profile.env.inherit.iter().filter(|name| plain(name) && !is_withheld(name));
    let passed: Vec<String> = passed.map(|name| name.to_string()).collect();
    unit.list("PassEnvironment", "", &passed);
}

fn limits(profile: &Profile, unit: &mut Unit) {
    let limits = &profile.limits;
    let numbers = [
        ("LimitNOFILE", &limits.open_files),
        ("TasksMax", &limits.processes),
        ("LimitFSIZE", &limits.file_size),
        ("MemoryMax", &limits.memory),
    ];
    for (name, limit) in numbers {
        if let Some(Bound::At(value)) = limit.as_ref().map(|limit| limit.value) {
            unit.set(name, value);
        }
    }
    for (name, limit) in [("LimitCPU", &limits.cpu), ("RuntimeMaxSec", &limits.timeout)] {
        if let Some(Bound::At(value)) = limit.as_ref().map(|limit| limit.value) {
            unit.set(name, format_args!("{}ms", value.as_millis().max(1)));
        }
    }
}
