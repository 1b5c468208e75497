//! From the paths of a profile to the directives of a unit.

use crate::profile::foreign::Losses;
use crate::profile::foreign::systemd::drop_in::{Unit, quoted_path};
use crate::profile::foreign::systemd::own;
use crate::profile::location::Location;
use crate::profile::model::{PathEntry, Profile};
use crate::profile::words::Variable;

/// The directory of caches below `%C`.
const CACHE: &str = "sbx";

/// Writes what the profile opens, closes and protects.
pub fn paths(profile: &Profile, unit: &mut Unit, losses: &mut Losses) {
    let paths = &profile.paths;
    let mut list = |unit: &mut Unit, directive: &'static str, entries: &[&Location]| {
        let words: Vec<_> = entries.iter().filter_map(|entry| word(entry, directive, losses)).collect();
        unit.list(directive, "", &words);
        if entries.iter().any(|entry| entry.base == Some(Variable::Workspace)) {
            let what = "a unit has no workspace: name its directory, or what the profile names in it, in";
            losses.note("${WORKSPACE}", format!("{what} {directive}="));
        }
    };
    let (read, execute) = (locations(&paths.read), locations(&paths.execute));
    // What a run has of its own is not the machine's here either.
    let write: Vec<&Location> =
        paths.write.iter().filter(|entry| !own::is_own(profile, entry)).map(|entry| &entry.value).collect();
    let seen = [&read[..], &execute, &locations(&profile.network.unix)].concat();
    // Where all may be read, nothing has to be put into an empty root.
    let shows_all = seen.iter().any(|entry| entry.is_root());
    if shows_all {
        // Beside it nothing could be written.
        if !write.iter().any(|entry| entry.is_root()) {
            unit.set("ProtectSystem", "strict");
        }
        list(unit, "ReadWritePaths", &write);
    } else {
        unit.set("TemporaryFileSystem", "/:ro");
        list(unit, "BindReadOnlyPaths", &seen);
        list(unit, "BindPaths", &write);
    }
    if !execute.iter().any(|entry| entry.is_root()) {
        unit.set("NoExecPaths", "/");
        list(unit, "ExecPaths", &execute);
    }
    list(unit, "InaccessiblePaths", &locations(&paths.deny));
    list(unit, "ReadOnlyPaths", &paths.protect.iter().map(|entry| &entry.path).collect::<Vec<_>>());
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

fn locations(entries: &[PathEntry]) -> Vec<&Location> {
    entries.iter().map(|entry| &entry.value).collect()
}

/// A path as a unit has it: with a specifier for a variable. A missing one is no error, behind `-`.
fn word(location: &Location, directive: &str, losses: &mut Losses) -> Option<String> {
    let binds = directive.starts_with("Bind");
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
        Some(Variable::Workspace) => return None,
    };
    let word = quoted_path(&format!("-{path}"));
    if word.is_none() {
        losses.note(location, "a list of a unit cannot escape a character that is not shown");
    }
    word
}
