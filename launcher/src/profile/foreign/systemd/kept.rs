//! What directives keep of the file system, whatever else a unit opens (systemd.exec(5)).

use crate::profile::error::{Plain, ProfileCause};
use crate::profile::foreign::files::Access;
use crate::profile::foreign::systemd::service::Service;
use crate::profile::foreign::systemd::values::maybe_truth;

/// What is at a place. Of two at one place the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mount {
    /// Nothing, nor below, whatever is named there.
    Closed,
    /// The machine's, for reading, although what is above may be hidden.
    BindRead,
    /// The machine's, although what is above may be hidden.
    Bind,
    /// The service's own: what the machine has there is out of sight, but for what is bound.
    Hidden,
    /// What is there anyway, for reading.
    Read,
    /// What is there anyway.
    Write,
}

impl Mount {
    /// What may be done there.
    pub fn access(self) -> Access {
        match self {
            Mount::Closed | Mount::Hidden => Access::Deny,
            Mount::BindRead | Mount::Read => Access::Fixed,
            Mount::Bind | Mount::Write => Access::Write,
        }
    }

    /// What two at one place come to: what is bound is read-only where anything says so.
    pub fn and(self, other: Mount) -> Mount {
        match (self.min(other), self.max(other)) {
            (Mount::Bind, Mount::Read) => Mount::BindRead,
            (first, _) => first,
        }
    }
}

/// What a directive keeps with some of its values.
pub struct Kept {
    /// The directive.
    pub directive: &'static str,
    /// The values that keep it.
    values: &'static [&'static str],
    /// What is at the places then.
    pub mount: Mount,
    /// The places, as far as they are there.
    pub places: &'static [&'static str],
}

const fn row(
    directive: &'static str,
    values: &'static [&'static str],
    mount: Mount,
    places: &'static [&'static str],
) -> Kept {
    Kept { directive, values, mount, places }
}

const YES: &[&str] = &["yes"];
/// Where the file system has the users' own.
const HOMES: &[&str] = &["/home", "/root", "/run/user"];
/// What changes the kernel. Reading the rest of what systemd closes takes privileges, which no command has.
const TUNABLES: &[&str] = &[
    "/proc/acpi",
    "/proc/apm",
    "/proc/asound",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/latency_stats",
    "/proc/mtrr",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/timer_stats",
    "/sys",
];

/// Every directive that keeps places.
pub const ALL: [Kept; 15] = [
    row("ProtectSystem", &["yes", "full"], Mount::Read, &["/usr", "/boot", "/efi"]),
    row("ProtectSystem", &["full"], Mount::Read, &["/etc"]),
    row("ProtectSystem", &["strict"], Mount::Read, &["/"]),
    row("ProtectHome", YES, Mount::Closed, HOMES),
    row("ProtectHome", &["tmpfs"], Mount::Hidden, HOMES),
    row("ProtectHome", &["read-only"], Mount::Read, HOMES),
    row("PrivateTmp", &["yes", "disconnected"], Mount::Hidden, &["/tmp", "/var/tmp"]),
    row("DynamicUser", YES, Mount::Read, &["/", "/home", "/root", "/run/user"]),
    row("DynamicUser", YES, Mount::Hidden, &["/tmp", "/var/tmp"]),
    row("ProtectKernelTunables", YES, Mount::Read, TUNABLES),
    row("ProtectControlGroups", &["yes", "private", "strict"], Mount::Read, &["/sys/fs/cgroup"]),
    row("ProtectKernelModules", YES, Mount::Closed, &["/usr/lib/modules", "/lib/modules"]),
    // Reading /proc/kmsg takes privileges.
    row("ProtectKernelLogs", YES, Mount::Closed, &["/dev/kmsg"]),
    row("ProtectHostname", &["yes", "private"], Mount::Read, HOSTNAME),
    // What else it keeps takes privileges.
    row("ProtectClock", YES, Mount::Read, &[]),
];
const HOSTNAME: &[&str] = &["/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname"];

/// What a directive of the table says, as one of its words; `no` where it says nothing.
fn word(service: &Service, directive: &str) -> Result<&'static str, ProfileCause> {
    let Some(setting) = service.last(directive) else { return Ok("no") };
    let known = || ALL.iter().filter(|row| row.directive == directive).flat_map(|row| row.values).copied();
    // The name of the host may stand behind a colon.
    let value = setting.value.split(':').next().unwrap_or("");
    let found = match maybe_truth(value) {
        Some(on) => Some(if on { "yes" } else { "no" }),
        None => known().find(|word| *word == value),
    };
    found.ok_or_else(|| {
        let more = known().filter(|word| *word != "yes").collect::<Vec<_>>().join(" nor ");
        let more = if more.is_empty() { more } else { format!(" nor {more}") };
        setting.wrong(format!("'{}' is neither yes nor no{more}", Plain(&setting.value)))
    })
}

/// Whether a directive of the table is on, with any of its values.
pub fn is_on(service: &Service, directive: &str) -> Result<bool, ProfileCause> {
    Ok(word(service, directive)? != "no")
}

/// The rows that hold in a service. Values that no version knows are an error.
pub fn rows(service: &Service) -> Result<Vec<&'static Kept>, ProfileCause> {
    let mut rows = Vec::new();
    for row in &ALL {
        if row.values.contains(&word(service, row.directive)?) {
            rows.push(row);
        }
    }
    Ok(rows)
}
