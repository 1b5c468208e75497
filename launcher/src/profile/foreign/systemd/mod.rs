//! Units of systemd: the filters, paths, network and limits of a service.
//!
//! What a unit does not say grants nothing: a profile made of it writes only what the unit names.

mod calls;
mod directives;
mod drop_in;
mod kept;
mod own;
mod places;
mod service;
mod unit;
mod values;
mod words;
mod write;
mod write_paths;

pub use write::write;

use crate::profile::error::{Plain, ProfileCause};
use crate::profile::foreign::files::{Access, Files, below, root};
use crate::profile::foreign::meaning::{Base, Meaning};
use crate::profile::foreign::systemd::places::{Places, split};
use crate::profile::foreign::systemd::service::Service;
use crate::profile::foreign::systemd::unit::{Setting, stripped};
use crate::profile::foreign::systemd::values::{count, size, time};
use crate::profile::foreign::{Losses, MOST};
use crate::profile::words::{NetworkMode, Variable};

/// Reads a unit.
pub fn read(text: &[u8], losses: &mut Losses) -> Result<Meaning, ProfileCause> {
    let service = Service::of(unit::settings(text)?, losses);
    let has_filter = service.last("SystemCallFilter").is_some();
    let said = calls::read(&service, losses)?;
    let mut meaning = Meaning {
        description: "made of the [Service] section of a unit of systemd",
        base: if has_filter { Base::Custom } else { Base::ReadOnly },
        calls: said.calls,
        is_whole: true,
        ..Meaning::default()
    };
    files(&service, meaning.base, &mut meaning.files, losses)?;
    network(&service, said.makes_sockets, &mut meaning, losses)?;
    privileges(&service, losses)?;
    environment(&service, &mut meaning, losses)?;
    limits(&service, &mut meaning, losses)?;
    Ok(meaning)
}

fn files(service: &Service, base: Base, files: &mut Files, losses: &mut Losses) -> Result<(), ProfileCause> {
    files.add(root(), Access::Read, "the unit");
    // Scratch is a run's own, with PrivateTmp= and without.
    files.add(below(Variable::Tmp, ""), Access::Write, "PrivateTmp");
    Places::of(service, losses)?.settle(files, losses);
    execution(service, base, files, losses)?;
    if service.is_on("PrivateDevices")? {
        let place = service.last("PrivateDevices").map_or_else(String::new, Setting::place);
        losses.note(
            place,
            "the devices of the machine stay where they are; who may open them, their modes say",
        );
    }
    Ok(())
}

/// What is lost where a part of the file system is closed for execution.
const ONLY_ALL: &str =
    "only '/' can be closed, with what ExecPaths= opens: commands.block of a profile names commands";

/// `NoExecPaths=/` with `ExecPaths=` lists what may be executed. Other exceptions of exceptions are lost.
fn execution(
    service: &Service,
    base: Base,
    files: &mut Files,
    losses: &mut Losses,
) -> Result<(), ProfileCause> {
    let bare = |word: &str| values::path(split(word).1);
    let closed = service.words("NoExecPaths")?;
    let Some((setting, _)) = closed.first() else { return Ok(()) };
    let mut closes_all = false;
    for (setting, word) in &closed {
        match bare(word) {
            Ok(location) if location == root() => closes_all = true,
            Ok(_) => losses.note(setting.place(), ONLY_ALL),
            Err(why) => losses.note(setting.place(), why),
        }
    }
    if !closes_all {
        return Ok(());
    }
    let mut open = Vec::new();
    for (setting, word) in service.words("ExecPaths")? {
        match bare(&word) {
            Ok(location) => open.push((location, split(&word).0)),
            Err(why) => losses.note(setting.place(), why),
        }
    }
    if !open.iter().any(|(location, _)| location.base.is_none() && matches!(&*location.rest, "/usr" | "/")) {
        losses.note(
            setting.place(),
            "programs of the system can be executed in every profile; see commands.allow",
        );
    }
    if base == Base::ReadOnly && !open.iter().any(|(location, _)| *location == root()) {
        losses.note(
            setting.place(),
            "the workspace, scratch and toolchains in the home can be executed as well, as in 'read-only', which the \
             profile extends; with SystemCallFilter= it extends 'custom', and they cannot",
        );
    }
    files.execute_only(open);
    Ok(())
}

fn network(
    service: &Service,
    makes_sockets: bool,
    meaning: &mut Meaning,
    losses: &mut Losses,
) -> Result<(), ProfileCause> {
    let has_internet = makes_sockets && service.families()?.have_internet();
    let private = service.is_on("PrivateNetwork")?;
    // In a network of its own a run may make internet sockets.
    let mut mode = if private && has_internet {
        NetworkMode::Private
    } else if has_internet {
        NetworkMode::Host
    } else {
        NetworkMode::None
    };
    let denied: Vec<(&Setting, String)> = service.words("IPAddressDeny")?;
    let allowed: Vec<(&Setting, String)> = service.words("IPAddressAllow")?;
    if let Some((setting, _)) = denied.first().filter(|_| mode == NetworkMode::Host) {
        let is_all = denied.iter().any(|(_, word)| word == "any");
        let is_local = |word: &str| {
            word == "localhost" || word.starts_with("127.") || word == "::1" || word == "::1/128"
        };
        if is_all && allowed.iter().all(|(_, word)| is_local(word)) {
            mode = NetworkMode::Private;
            if let Some((setting, _)) = allowed.first() {
                losses.note(
                    setting.place(),
                    "loopback is the run's own: servers of this machine are not in it",
                );
            }
        } else {
            let what = "rules about addresses of a profile name ports, and are about what a run connects to: the \
                        network is closed; name hosts in network.connect";
            mode = NetworkMode::Private;
            losses.note(setting.place(), what);
        }
    }
    meaning.network.mode = Some(mode);
    Ok(())
}

/// A command of a run has no capabilities.
fn privileges(service: &Service, losses: &mut Losses) -> Result<(), ProfileCause> {
    for name in ["CapabilityBoundingSet", "AmbientCapabilities"] {
        // What is taken away leaves those that were named before.
        let named = service.all(name).rfind(|setting| !setting.value.starts_with('~'));
        if let Some(setting) = named {
            losses.note(setting.place(), "a command of a run has no capabilities");
        }
    }
    Ok(())
}

fn environment(service: &Service, meaning: &mut Meaning, losses: &mut Losses) -> Result<(), ProfileCause> {
    for (setting, word) in service.words("Environment")? {
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(setting.wrong(format!("'{}' is no NAME=VALUE", Plain(&word))));
        };
        if value.contains("${") || value.contains('%') {
            losses
                .note(setting.place(), format_args!("'{}' has a variable or a specifier in it", Plain(name)));
        } else {
            meaning.env.set.insert(name.to_string(), value.to_string());
        }
    }
    for (name, list) in
        [("PassEnvironment", &mut meaning.env.inherit), ("UnsetEnvironment", &mut meaning.env.deny)]
    {
        for (setting, word) in service.words(name)? {
            let name = word.split_once('=').map_or(&*word, |(name, _)| name);
            if name.is_empty() || name.contains('*') {
                return Err(setting.wrong(format!("'{}' is no name of a variable", Plain(&word))));
            }
            if list.len() > MOST || !list.iter().any(|known| known == name) {
                list.push(name.to_string());
            }
        }
    }
    Ok(())
}

/// What a limit counts.
#[derive(Clone, Copy)]
enum Unit {
    Count,
    Size,
    Time,
}

impl Unit {
    /// The number in a part of a value, which is in bytes or milliseconds. `None` for `infinity`.
    fn read(self, setting: &Setting, part: &str) -> Result<Option<u64>, ProfileCause> {
        let one = Setting { value: part.to_string(), name: setting.name.clone(), line: setting.line };
        match self {
            Unit::Count => count(&one),
            Unit::Size => size(&one),
            Unit::Time => time(&one),
        }
    }
}

/// Directives that a profile has a limit for.
const LIMITS: [(&str, &str, Unit); 9] = [
    ("LimitNOFILE", "open_files", Unit::Count),
    ("LimitNPROC", "processes", Unit::Count),
    ("TasksMax", "processes", Unit::Count),
    ("LimitFSIZE", "file_size", Unit::Size),
    ("LimitAS", "memory", Unit::Size),
    ("MemoryLimit", "memory", Unit::Size),
    ("MemoryMax", "memory", Unit::Size),
    ("LimitCPU", "cpu", Unit::Time),
    ("RuntimeMaxSec", "timeout", Unit::Time),
];

fn limits(service: &Service, meaning: &mut Meaning, losses: &mut Losses) -> Result<(), ProfileCause> {
    for (name, key, unit) in LIMITS {
        let Some(setting) = service.last(name) else { continue };
        // Of a soft and a hard limit the soft one is what the service meets first. Other directives have one.
        let both = setting.value.split_once(':').filter(|_| name.starts_with("Limit"));
        let (soft, hard) = both.unwrap_or((&*setting.value, "infinity"));
        if soft.ends_with('%') {
            losses.note(setting.place(), "a limit of a profile is a number, and no share of the machine");
            continue;
        }
        let (soft, hard) = (unit.read(setting, soft)?, unit.read(setting, stripped(hard))?);
        // systemd passes over such a pair, and the one before it would hold.
        if soft.unwrap_or(u64::MAX) > hard.unwrap_or(u64::MAX) {
            return Err(setting.wrong("the soft limit is above the hard one"));
        }
        let Some(soft) = soft else { continue };
        if soft == 0 || (key == "open_files" && soft < 4) {
            losses.note(setting.place(), "nothing runs with so little");
            continue;
        }
        let value = match unit {
            Unit::Time => format!("{soft}ms"),
            Unit::Size | Unit::Count => {
                // Where two directives limit the same, the smaller one is met first.
                let known = meaning.limits.get(key).and_then(|known| known.parse().ok()).unwrap_or(u64::MAX);
                soft.min(known).to_string()
            }
        };
        meaning.limits.insert(key, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits_of(lines: &str) -> Result<String, ProfileCause> {
        let meaning = read(format!("[Service]\n{lines}\n").as_bytes(), &mut Losses::default())?;
        let limits = meaning.limits.iter().map(|(key, value)| format!("{key}={value}"));
        Ok(limits.collect::<Vec<_>>().join(" "))
    }

    /// An empty limit of a control group is none again. systemd passes over one of a process, and of a time.
    #[test]
    fn a_later_limit_counts() {
        for (lines, limits) in [
            ("LimitNOFILE=64\nLimitNOFILE=", "open_files=64"),
            ("LimitNOFILE=64\nLimitNOFILE=128:infinity", "open_files=128"),
            ("LimitNOFILE=64\nLimitNOFILE=infinity", ""),
            ("RuntimeMaxSec=9\nRuntimeMaxSec=", "timeout=9000ms"),
            ("LimitCPU=1min:2min", "cpu=60000ms"),
            ("TasksMax=9\nTasksMax=", ""),
            ("MemoryMax=1M\nMemoryLimit=1K\nMemoryLimit=", "memory=1048576"),
            ("MemoryMax=1M\nMemoryMax=\nMemoryMax=2M", "memory=2097152"),
        ] {
            assert_eq!(limits_of(lines).unwrap(), limits, "{lines}");
        }
        for wrong in ["LimitNOFILE=infinity:64", "LimitNOFILE=64:", "LimitAS=2M:1M", "TasksMax=1:2"] {
            assert!(limits_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_set_of_capabilities_can_be_emptied() {
        let lost = |lines: &str| {
            let mut losses = Losses::default();
            read(format!("[Service]\n{lines}\n").as_bytes(), &mut losses).unwrap();
            losses.lines().len()
        };
        for name in ["CapabilityBoundingSet", "AmbientCapabilities"] {
            assert_eq!(lost(&format!("{name}=CAP_KILL\n{name}=~CAP_CHOWN")), 1);
            assert_eq!(lost(&format!("{name}=CAP_KILL\n{name}=")), 0);
        }
    }

    /// Every directive that is said to be read is asked for somewhere.
    #[test]
    fn what_is_read_is_read() {
        let text = [include_str!("mod.rs"), include_str!("calls.rs"), include_str!("service.rs")];
        let text = [&text[..], &[include_str!("places.rs"), include_str!("kept.rs")]].concat().concat();
        for name in directives::read() {
            assert!(text.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
