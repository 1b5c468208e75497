//! From the paths of a profile to the directives of a unit.

use crate::profile::foreign::Losses;
use crate::profile::foreign::systemd::drop_in::{Unit, quoted};
use crate::profile::foreign::systemd::own;
use crate::profile::location::Location;
use crate::profile::model::{PathEntry, Profile};
use crate::profile::words::Variable;

/// The directory of caches below `%C`.
const CACHE: &str = "sbx";

/// Writes what the profile opens, closes and protects.
pub fn paths(profile: &Profile, unit: &mut Unit, losses: &mut Losses) {
    let paths = &profile.paths;
    let mut words = |list: &[&PathEntry], binds: bool| -> Vec<String> {
        list.iter().filter_map(|entry| word(entry, binds, losses)).collect()
    };
    let (read, execute): (Vec<_>, Vec<_>) = (paths.read.iter().collect(), paths.execute.iter().collect());
    // What a run has of its own is not the machine's here either.
    let write: Vec<_> = paths.write.iter().filter(|entry| !own::is_own(profile, entry)).collect();
    let deny: Vec<_> = paths.deny.iter().collect();
    let seen: Vec<_> = [&read[..], &execute, &profile.network.unix.iter().collect::<Vec<_>>()].concat();
    // Where all may be read, nothing has to be put into an empty root.
    let shows_all = seen.iter().any(|entry| entry.is_root());
    if shows_all {
        // Beside it nothing could be written.
        if !write.iter().any(|entry| entry.is_root()) {
            unit.set("ProtectSystem", "strict");
        }
        unit.list("ReadWritePaths", "", &words(&write, false));
    } else {
        unit.set("TemporaryFileSystem", "/:ro");
        unit.list("BindReadOnlyPaths", "", &words(&seen, true));
        unit.list("BindPaths", "", &words(&write, true));
    }
    if !execute.iter().any(|entry| entry.is_root()) {
        unit.set("NoExecPaths", "/");
        unit.list("ExecPaths", "", &words(&execute, false));
    }
    unit.list("InaccessiblePaths", "", &words(&deny, false));
    let protected: Vec<String> =
        paths.protect.iter().filter_map(|entry| word(&entry.path, false, losses)).collect();
    unit.list("ReadOnlyPaths", "", &protected);
    // PrivateTmp= would hide /var/tmp too.
    match profile.uses(Variable::Tmp) {
        true if shows_all => unit.set("TemporaryFileSystem", "/tmp:mode=1777"),
        true => unit.set("PrivateTmp", "yes"),
        false => {}
    }
    if profile.uses(Variable::Cache) {
        unit.set("CacheDirectory", CACHE);
    }
}

/// A path as a unit has it: with a specifier for a variable. A missing one is no error, behind `-`.
fn word(location: &Location, binds: bool, losses: &mut Losses) -> Option<String> {
    let rest = location.rest.replace('%', "%%");
    let path = match location.base {
        None => rest,
        Some(Variable::Home) => {
            losses.note(
                "${HOME}",
                "%h is the home of the service manager's user: of root in units of the system",
            );
            format!("%h{rest}")
        }
        // Directories that systemd makes.
        Some(Variable::Tmp) if binds => return None,
        Some(Variable::Tmp) => format!("/tmp{rest}"),
        Some(Variable::Cache) if binds => return None,
        Some(Variable::Cache) => format!("%C/{CACHE}{rest}"),
        Some(Variable::Workspace) => {
            losses.note(
                "${WORKSPACE}",
                "a unit has no workspace: name the directory in BindPaths= and ExecPaths=",
            );
            return None;
        }
    };
    // Behind a colon another name of it would begin.
    let path = if binds { path.replace(':', "\\:") } else { path };
    Some(quoted(&format!("-{path}")))
}
