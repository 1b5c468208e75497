//! What is said of a path by the name that is asked about. In a run a symbolic link on the way may be out of sight, and
//! nothing is found over it, wherever it leads.

use crate::explain::query::{Answer, Verdict, Wanted, own, path};
use crate::plan::Plan;
use crate::plan::namespaces::Layout;
use crate::sys::path::Walk;
use crate::sys::within::is_below;
use crate::text::shown;
use std::path::{Path, PathBuf};

/// A symbolic link that a run does not see.
#[derive(Debug, PartialEq, Eq)]
struct Hidden {
    /// Where it is.
    link: PathBuf,
    /// What is asked about, by the name that goes over the link.
    named: PathBuf,
}

/// The answer where a link is out of sight on the way from the path that was given to the place that it leads to.
pub fn answer(plan: &Plan, given: &Path, place: &Path, exists: bool, wanted: Wanted) -> Option<Answer> {
    let layout = plan.namespaces.as_ref().ok()?;
    if given == place || own::denies(plan, place) {
        return None;
    }
    let Hidden { link, named } = first_hidden(layout, given)?;
    let mut answer = own::answer(plan, &named, exists, wanted)?;
    if answer.verdict != Verdict::Refused {
        return Some(answer);
    }
    answer
        .notes
        .push(format!("the symbolic link '{}' is out of sight itself, wherever it leads", shown(&link)));
    let home = plan.private_home.as_ref().map(|home| &*home.at);
    // Elsewhere a flag brings what a link leads to, and not the link.
    let hint = answer.hint.filter(|_| layout.replaces(&link) == home);
    answer.hint = hint.map(|hint| {
        let of_target = path::told(Answer::new(Verdict::Refused), plan, place, own::access(wanted)).hint;
        let note = hint.note.or(of_target.and_then(|hint| hint.note));
        hint.noting(note)
    });
    answer.notes.extend(wanted.execute.then(|| own::COMMAND_ITSELF.to_string()));
    Some(answer)
}

/// The first link on a path that leads somewhere and is out of sight. The name of one that leads nowhere is free in a
/// run, and others say so.
fn first_hidden(layout: &Layout, path: &Path) -> Option<Hidden> {
    let mut at = PathBuf::from("/");
    let mut walk = Walk::along(path);
    while let Some(next) = walk.next(&mut at) {
        let target = next.read_link().ok();
        if target.is_some() && hides(layout, &next) && next.exists() {
            return Some(Hidden { link: next.clone(), named: walk.rest_below(next) });
        }
        match target {
            Some(target) if walk.follow(&target) => {}
            _ => at = next,
        }
    }
    None
}

/// Whether a link is not there in a run. Of those in a directory that is another there, some are made again, and a
/// store shows what is in it.
fn hides(layout: &Layout, link: &Path) -> bool {
    let mut private = layout.private.iter();
    let is_shown = private.any(|private| {
        private.links.contains_key(link) || private.stores.iter().any(|store| is_below(link, &store.at))
    });
    !is_shown && layout.replaces(link).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use crate::host::Host;
    use crate::plan::home::Store;
    use crate::plan::namespaces::renewed::{Kept, Private};
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// The view of a run that has another directory in the place of a home, with `bin`, the link `shown` and the store
    /// `store` of it.
    fn layout(home: &Path) -> Layout {
        let kept = Kept { path: home.join("bin"), write: false, execute: true, is_socket: false };
        let store = Store {
            at: home.join("store"),
            below: home.to_path_buf(),
            layers: home.with_file_name("layers"),
            part: "store".into(),
        };
        let private = Private {
            at: home.to_path_buf(),
            from: Some(home.with_file_name("own")),
            keep: vec![kept],
            stores: vec![store],
            links: [(home.join("shown"), "opt".into())].into(),
            denied: BTreeMap::new(),
        };
        Layout { private: vec![private], ..Layout::smallest(&Host::with_environment(Vec::new())) }
    }

    #[test]
    fn the_first_link_that_is_out_of_sight_is_found() {
        let scratch = Scratch::create(None).unwrap();
        let home = scratch.path().canonicalize().unwrap().join("home");
        for directory in ["bin", "opt/tool", "store"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        fs::write(home.join("opt/tool/file"), "x").unwrap();
        for (target, link) in [
            ("opt", "shown"),
            ("opt", "hidden"),
            ("hidden/tool", "twice"),
            ("nowhere", "nothing"),
            ("../opt/tool/file", "bin/direct"),
            ("../hidden/tool/file", "bin/over"),
            ("../opt/tool/file", "store/direct"),
        ] {
            symlink(target, home.join(link)).unwrap();
        }
        let layout = layout(&home);
        for (path, expected) in [
            ("opt/tool/file", None),
            ("shown/tool/file", None),
            ("hidden/tool/file", Some(("hidden", "hidden/tool/file"))),
            ("hidden/new", Some(("hidden", "hidden/new"))),
            ("twice/file", Some(("twice", "twice/file"))),
            ("bin/../hidden", Some(("hidden", "hidden"))),
            ("nothing", None),
            ("nothing/file", None),
            ("bin/direct", None),
            ("bin/over", Some(("hidden", "hidden/tool/file"))),
            ("store/direct", None),
        ] {
            let found = first_hidden(&layout, &home.join(path));
            let expected =
                expected.map(|(link, named)| Hidden { link: home.join(link), named: home.join(named) });
            assert_eq!(found, expected, "{path}");
        }
    }
}
