//! The runs in which each attempt is made: profiles, and levels of a kernel.

use std::sync::OnceLock;

use super::table::Attempt;
use crate::kernel;

/// A profile, and the flags that select it.
pub struct Profile {
    /// Its name in the tables.
    pub name: &'static str,
    /// The flags.
    pub flags: &'static [&'static str],
    /// The Landlock ABI that it needs.
    pub needs: i64,
    /// The only class that it is tried with.
    pub only: Option<&'static str>,
}

const fn built_in(name: &'static str, flags: &'static [&'static str]) -> Profile {
    Profile { name, flags, needs: 0, only: None }
}

/// Every profile. The last one opens a port that nobody listens on, so TCP sockets can be made there.
pub const PROFILES: &[Profile] = &[
    built_in("minimal", &["-p", "minimal"]),
    built_in("network", &["-p", "network"]),
    built_in("write", &["-p", "write"]),
    built_in("no-exec", &["-p", "no-exec"]),
    built_in("read-only", &["-p", "read-only"]),
    built_in("workspace", &["-p", "workspace"]),
    Profile {
        name: "ports",
        flags: &["-p", "workspace", "--connect", "*:1"],
        needs: 4,
        only: Some("network"),
    },
];

/// A profile that is tried instead of those.
static GIVEN: OnceLock<Profile> = OnceLock::new();

/// Has the attempts be made under the profile of a file, and compared with what `workspace` promises.
pub fn give(file: &str) {
    let flags: &[&str] = vec!["-p", String::leak(file.to_owned())].leak();
    GIVEN.get_or_init(|| built_in("workspace", flags));
}

impl Profile {
    /// Whether an attempt is made under it.
    pub fn is_about(&self, attempt: &Attempt) -> bool {
        let wanted = attempt.values("in");
        let class = self.only.is_none_or(|class| class == attempt.class);
        class && (wanted.is_empty() || wanted.contains(&self.name))
    }

    /// Its name in a document.
    pub fn shown(&self) -> String {
        format!("`{}`", self.name)
    }
}

/// A level, and how this machine's kernel is reduced to it.
pub struct Level {
    /// Its name.
    pub name: &'static str,
    /// Flags of the run.
    pub flags: &'static [&'static str],
    /// Calls that are answered with an error, as by a kernel without them.
    pub lacks: &'static [(libc::c_long, i32)],
    /// Whether it has path rules.
    pub landlock: bool,
    /// Whether it has namespaces of the run's own.
    pub namespaces: bool,
}

/// All levels.
pub const LEVELS: &[Level] = &[
    // Profiles that use no namespaces by default have them here too.
    Level { name: "full", flags: &["--namespaces", "auto"], lacks: &[], landlock: true, namespaces: true },
    Level {
        name: "standard",
        flags: &["--namespaces", "none"],
        lacks: &[],
        landlock: true,
        namespaces: false,
    },
    Level {
        name: "minimal",
        flags: &[],
        namespaces: false,
        lacks: &[(libc::SYS_landlock_create_ruleset, libc::ENOSYS)],
        landlock: false,
    },
];

impl Level {
    /// The Landlock ABI that a run has at this level.
    pub fn abi(&self) -> i64 {
        if self.landlock { kernel::landlock() } else { 0 }
    }

    /// Whether this machine's kernel has it.
    fn is_here(&self) -> bool {
        (!self.landlock || kernel::landlock() >= 1) && (!self.namespaces || kernel::level() == "full")
    }
}

/// The runs in which an attempt is made.
pub fn of(attempt: &Attempt) -> Vec<(&'static Profile, &'static Level)> {
    let all = GIVEN.get().map_or(PROFILES, std::slice::from_ref);
    let profiles = all.iter().filter(|profile| profile.is_about(attempt));
    let pairs = profiles.flat_map(|profile| LEVELS.iter().map(move |level| (profile, level)));
    // Without path rules a learned profile does not start where it protects something.
    let pairs = pairs.filter(|(_, level)| GIVEN.get().is_none() || level.landlock);
    pairs.filter(|(profile, level)| level.is_here() && level.abi() >= profile.needs).collect()
}
