//! For which flags the user may be asked.

use crate::explain::sensitive::{Sensitive, Use, is_name_of_secrets};
use crate::host::Host;
use crate::hosts::HostName;
use crate::mcp::places::Places;
use crate::plan::namespaces::Workspaces;
use crate::sys::path;
use sbx_client::report::ViolationRecord;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The one flag that would allow a refused call, if the user may be asked for it. `home` is the user's.
pub fn proposed(
    violation: &ViolationRecord,
    home: Option<&Path>,
    places: &Places,
) -> Option<(String, OsString)> {
    let suggestion = violation.suggestion.as_ref()?;
    let [flag, value] = &suggestion.flags[..] else { return None };
    let (flag, value) = (std::str::from_utf8(&flag.0).ok()?, OsStr::from_bytes(&value.0));
    let may_be_asked = match flag {
        "--ro" | "--rox" => may_be_read(Path::new(value), home, places),
        "--rw" | "--rwx" => may_be_read(Path::new(value), home, places) && may_be_changed(Path::new(value)),
        "--connect" => value.to_str().is_some_and(names_a_host),
        _ => false,
    };
    may_be_asked.then(|| (flag.to_string(), value.to_owned()))
}

/// One host by its name. An address, or every host at a port, says nothing to the user; nor does it that what is said
/// to the host is not looked at (`NAME:443/tcp`).
fn names_a_host(rule: &str) -> bool {
    let (host, port) = rule.rsplit_once(':').unwrap_or((rule, ""));
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let is_name = host.contains('.') && host.chars().any(|letter| letter.is_ascii_alphabetic());
    is_name && !host.contains('*') && HostName::parse(host).is_ok()
}

/// Whether a path is one that the user may be asked to open for reading.
fn may_be_read(path: &Path, home: Option<&Path>, places: &Places) -> bool {
    let is_real = path.is_absolute() && path::real(path).is_ok_and(|real| real == path);
    let above_home = home.is_none_or(|home| home.starts_with(path));
    let in_home = home.is_some_and(|home| path.starts_with(home));
    is_real
        && !above_home
        && (in_home || !is_of_system(path))
        && !looks_secret(path)
        && !places.has_roots_in(path)
}

/// Whether there is something at a path, or below it, that no user should open by a word; or commands of other runs
/// decide what is there. `true` where that cannot be told.
pub fn is_delicate((flag, value): &(String, OsString), workspace: &Path) -> bool {
    let what = match flag.as_str() {
        "--ro" | "--rox" => Use::Read,
        "--rw" | "--rwx" => Use::Write,
        _ => return false,
    };
    let (host, path) = (Host::of_this_process(), Path::new(value));
    let is_harmless =
        || Sensitive::of(&host, Some(workspace)).is_ok_and(|all| all.path(path, what).is_none());
    Workspaces::of(&host).reach(path) || !is_harmless()
}

fn may_be_changed(path: &Path) -> bool {
    const SYSTEM: [&str; 8] = ["/bin", "/boot", "/lib", "/lib64", "/opt", "/sbin", "/usr", "/var"];
    // Users keep files there too (hier(7)).
    path.starts_with("/var/tmp") || !SYSTEM.iter().any(|system| path.starts_with(system))
}

/// The kernel's files, settings of the system, sockets of its services, the home of root, where that is another user.
fn is_of_system(path: &Path) -> bool {
    const SYSTEM: [&str; 6] = ["/dev", "/etc", "/proc", "/root", "/run", "/sys"];
    path.parent().is_none() || SYSTEM.iter().any(|system| path.starts_with(system))
}

/// Hidden files are where programs keep keys and settings; others say by their names what they are.
fn looks_secret(path: &Path) -> bool {
    const WORDS: [&str; 5] = ["id_", "keyring", "passwd", "private", "token"];
    path.iter().any(|name| {
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        let text = name.to_string_lossy().to_lowercase();
        is_hidden || WORDS.iter().any(|word| text.contains(word)) || is_name_of_secrets(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_secrets_is_not_asked_for() {
        for secret in [
            "/home/u/.ssh/id_rsa",
            "/home/u/.config",
            "/srv/app/.env",
            "/srv/app/server.pem",
            "/srv/app/My-Secrets",
            "/srv/tokens.json",
            "/srv/my-tokens-of-old",
            "/srv/id_ed25519",
        ] {
            assert!(looks_secret(Path::new(secret)), "{secret}");
        }
        for harmless in ["/srv/data", "/home/u/data/keys-of-a-piano.txt", "/home/u/docs/a.md"] {
            assert!(!looks_secret(Path::new(harmless)), "{harmless}");
        }
        for system in ["/", "/etc/shadow", "/root/x", "/proc/1/environ", "/dev/sda", "/run/docker.sock"] {
            assert!(is_of_system(Path::new(system)), "{system}");
        }
    }

    #[test]
    fn only_one_host_by_its_name_is_asked_for() {
        for name in ["example.org", "example.org:443", "a.b.example.org:80"] {
            assert!(names_a_host(name), "{name}");
        }
        for other in [
            "*",
            "*:443",
            "*.example.org",
            "192.0.2.1:80",
            "localhost",
            "10.0.0.0/8:22",
            "[::1]:80",
            "",
            "evil.example:443/tcp",
        ] {
            assert!(!names_a_host(other), "{other}");
        }
    }
}
