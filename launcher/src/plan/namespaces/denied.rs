//! What is denied, as a layout holds it: by mounts on it, and by something in the place of what is not there.

use crate::plan::deny_expansion;
use crate::plan::namespaces::layout::{Given, Layout, OnLink};
use crate::plan::namespaces::placeholder::{self, Shape};
use crate::plan::namespaces::places::Roots;
use crate::plan::namespaces::renewed::Private;
use crate::plan::rules::PathRule;
use crate::sys::path;
use crate::sys::within::{is_below, is_within, rest_below};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

impl Layout {
    /// Holds all that is denied.
    pub fn deny_all(&mut self, given: &Given<'_>, roots: &Roots) {
        for path in given.denied {
            self.deny(path, roots, given.rules);
            for name in names_inside(path, given) {
                self.deny_in_replaced(name);
            }
        }
        // What is below another one is out of sight with it.
        let all = self.denied.clone();
        self.denied.retain(|path| !all.iter().any(|above| is_below(path, above)));
    }

    /// Hides a denied path by a mount, or keeps a missing one from being made. Nothing is done if no rule above grants
    /// the path.
    fn deny(&mut self, named: &Path, roots: &Roots, rules: &[PathRule]) {
        let path = deny_expansion::resolve(named);
        let is_granted = |path: &Path| rules.iter().any(|rule| is_below(path, &rule.place()));
        // Somebody outside may put a file in the place of a link.
        let link = path::in_real_directory(named).filter(|link| *link != path && link.is_symlink());
        if let Some(link) = link.filter(|link| is_granted(link)) {
            self.pin(&link, roots);
            self.links.insert(link, OnLink::Nothing);
        }
        if !is_granted(&path) || self.empties(&path) {
            return;
        }
        if !placeholder::is_free(&path, Shape::Directory) {
            self.pin(&path, roots);
            self.denied.insert(path);
        } else if roots.above(&path).is_some() {
            self.placeholder(&path, None, Shape::Directory, roots);
        }
    }

    /// Whether an empty directory above takes a path and all below it out of sight, and nothing can be made there.
    fn empties(&self, path: &Path) -> bool {
        let touches = |kept: &Path| is_within(path, kept) || is_within(kept, path);
        let kept = |private: &Private| private.keep.iter().any(|kept| touches(&kept.path));
        self.private
            .iter()
            .any(|private| private.from.is_none() && is_below(path, &private.at) && !kept(private))
    }

    /// Hides a path in a directory that is another inside. Nothing there needs a rule of its own: the run may do
    /// anything in it, and an earlier one may have made the path. It is made for the mount where it is missing.
    fn deny_in_replaced(&mut self, path: PathBuf) {
        let Some(at) = self.replaces(&path).map(Path::to_path_buf) else { return };
        // Nothing can be made in one that is empty.
        let mut own = self.private.iter_mut().filter(|private| private.from.is_some());
        let Some(private) = own.find(|private| private.at == at) else { return };
        let above = path.ancestors().skip(1).take_while(|above| *above != private.at);
        self.pins.extend(above.map(Path::to_path_buf));
        private.denied.insert(path.clone(), !path.is_file());
        self.denied.insert(path);
    }
}

/// The names under which a denied file may be found inside, in directories that are others there.
fn names_inside(named: &Path, given: &Given<'_>) -> BTreeSet<PathBuf> {
    let real = deny_expansion::resolve(named);
    let stores = given.stores.iter().map(|store| (&store.at, store.below.join(&store.part)));
    let copies = given.copies.iter().map(|(copy, of)| (copy, of.clone()));
    let shown = stores.chain(copies).filter_map(|(at, outside)| match rest_below(&real, &outside) {
        Some(rest) if !rest.as_os_str().is_empty() => Some(at.join(rest)),
        _ => is_within(&outside, &real).then(|| at.clone()),
    });
    let name = path::in_real_directory(named).filter(|name| !name.is_symlink());
    shown.chain(name).chain([real.clone()]).collect()
}
