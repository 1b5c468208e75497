//! What a run has of its own and what it leaves alone, as directives of a unit: an empty root, as well as
//! `ProtectSystem=strict`, leaves `/proc`, `/sys` and `/dev` as they are.

use crate::profile::foreign::Losses;
use crate::profile::foreign::systemd::drop_in::Unit;
use crate::profile::foreign::systemd::kept;
use crate::profile::model::{PathEntry, Profile};
use crate::profile::words::Namespaces;
use crate::sys::within::is_within;
use std::path::Path;

/// Directories of devices of which a run has its own, and what a unit has instead.
const OWN: [(&str, Option<(&str, &str)>); 3] = [
    ("/dev/shm", Some(("TemporaryFileSystem", "/dev/shm:mode=1777"))),
    ("/dev/pts", None),
    ("/dev/ptmx", None),
];

/// The devices that a service has with `PrivateDevices=`.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev"];

/// Whether a run has an own one in the place of a directory.
pub fn is_own(profile: &Profile, entry: &PathEntry) -> bool {
    has_namespaces(profile) && entry.base.is_none() && OWN.iter().any(|(path, _)| *path == entry.rest)
}

fn has_namespaces(profile: &Profile) -> bool {
    profile.namespaces.as_deref() == Some(&Namespaces::Auto)
}

/// Writes the directives, and notes what they leave open.
pub fn write(profile: &Profile, unit: &mut Unit, losses: &mut Losses) {
    let paths = &profile.paths;
    let named = || paths.read.iter().chain(paths.execute.iter()).chain(paths.write.iter());
    let named = || named().filter(|entry| entry.base.is_none()).map(|entry| &*entry.rest);
    let is_in = |outer: &str, path: &str| is_within(Path::new(path), Path::new(outer));
    let writes = |place: &str| {
        let mut written = paths.write.iter().filter(|entry| entry.base.is_none());
        written.any(|entry| is_in(&entry.rest, place))
    };
    // Where the profile writes to such a place, a run may change it, too.
    for directive in ["ProtectKernelTunables", "ProtectControlGroups"] {
        let mut places = kept::ALL.iter().filter(|row| row.directive == directive).flat_map(|row| row.places);
        if !places.any(|place| writes(place)) {
            unit.set(directive, "yes");
        }
    }
    let reads_all = named().any(|path| path == "/");
    if !writes("/dev") {
        unit.set("PrivateDevices", "yes");
        let is_there = |path: &str| DEVICES.contains(&path) || OWN.iter().any(|(own, _)| *own == path);
        for path in named().filter(|path| is_in("/dev", path) && !is_there(path)) {
            losses.note(path, "a unit with PrivateDevices= does not have it");
        }
        for (path, instead) in OWN {
            let is_named = named().any(|named| named == path);
            match instead.filter(|_| has_namespaces(profile)) {
                Some((directive, value)) if is_named => unit.set(directive, value),
                _ if is_named && !has_namespaces(profile) => {}
                _ => unit.set("InaccessiblePaths", format_args!("-{path}")),
            }
            if is_named && instead.is_none() && has_namespaces(profile) {
                losses.note(path, "a unit has no terminals of its own: it has none");
            }
        }
    }
    if !reads_all && !named().any(|path| is_in("/sys", path)) {
        unit.set("InaccessiblePaths", "-/sys");
    } else if !reads_all {
        losses.note("/sys", "a unit has all of it for reading, where the profile names a part");
    }
    if has_namespaces(profile) {
        unit.set("ProtectProc", "invisible");
        unit.set("PrivateIPC", "yes");
        unit.set("PrivatePIDs", "yes");
        losses.note(
            "namespaces",
            "before systemd 257, which knows PrivatePIDs=, the service can signal other processes of its user",
        );
    }
}
