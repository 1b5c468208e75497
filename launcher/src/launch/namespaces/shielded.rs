//! What is denied and what is protected, as a layout holds it: by mounts on it and on what is above, and by something in the
//! place of what is not there.

use super::git::HOOKS;
use super::layout::Layout;
use super::places::Roots;
use super::protect::{Found, Protected, find, links_behind, replaceable};
use super::renewed::{changed, is_plain_directory};
use super::stubs::{self, Stub};
use crate::launch::landlock::canonical;
use crate::launch::mounts::Mounts;
use crate::launch::policy::PathRule;
use crate::launch::siblings;
use crate::launch::within::{is_below, is_same, is_within};
use crate::supervise::decode::shown;
use crate::sys::path;
use std::path::{Path, PathBuf};

/// For so many repositories a way in is held open.
const MOST_CONFIGS: usize = 64;

impl Layout {
    /// What is granted below is taken away by mounts; where nothing is granted, there is nothing to take.
    pub fn deny(&mut self, path: &Path, roots: &Roots, rules: &[PathRule]) {
        let path = siblings::resolve(path);
        let granted = rules.iter().any(|rule| is_below(&path, &canonical(&rule.path)));
        if !granted {
            return;
        }
        if !stubs::is_free(&path, None) {
            self.pin(&path, roots);
            self.denied.insert(path);
        } else if roots.above(&path).is_some() {
            self.stub(&path, None, roots);
        }
    }

    /// What is there is kept as it is; what is not, from being made.
    pub fn protect(
        &mut self,
        protected: Protected,
        roots: &Roots,
        rules: &[PathRule],
        remarks: &mut Vec<String>,
    ) {
        if roots.above(&protected.path).is_none() {
            if protected.itself && roots.are(&protected.path) {
                self.read_only.insert(protected.path);
                return;
            }
            // A file elsewhere may be a link to one that can be changed: ~/.bashrc to that of a project.
            let leads_elsewhere = match protected.path.symlink_metadata() {
                Ok(meta) => meta.is_symlink(),
                Err(error) => !path::says_missing(&error),
            };
            let target = leads_elsewhere.then(|| protected.path.canonicalize().ok()).flatten();
            if let Some(target) = target.filter(|target| roots.above(target).is_some()) {
                self.pin(&target, roots);
                self.read_only.insert(target);
            }
            return;
        }
        let Some((protected, found)) = find(protected, roots, remarks) else { return };
        if let Found::Unseen(why) = &found {
            let path = shown(&protected.path);
            remarks.push(format!(
                "warning: '{path}' cannot be looked at, and is protected as if it were there: {why}"
            ));
        }
        match found {
            Found::Nothing if protected.made_freely => {}
            Found::Nothing => self.stub(&protected.path, protected.stub, roots),
            Found::There | Found::Unseen(_) => {
                self.pin(&protected.path, roots);
                let repository = protected.path.parent().filter(|_| protected.replaced);
                self.configs.extend(repository.map(Path::to_path_buf));
                self.read_only.insert(protected.path);
            }
            Found::Link(target) => self.hold_link(protected.path, target, roots, rules, remarks),
            Found::Behind(_) => {}
        }
    }

    /// A protected link, and what it leads over and to, as far as the command could change that.
    fn hold_link(
        &mut self,
        path: PathBuf,
        target: Option<PathBuf>,
        roots: &Roots,
        rules: &[PathRule],
        remarks: &mut Vec<String>,
    ) {
        self.pin(&path, roots);
        // A link that an earlier command has made leads where it wants.
        let seen = target.clone().filter(|target| self.can_be_read(target, rules));
        for link in links_behind(&path).into_iter().filter(|link| roots.above(link).is_some()) {
            if link.is_dir() {
                remarks.push(replaceable(&path, &link));
            } else {
                self.pin(&link, roots);
                self.links.insert(link, seen.clone());
            }
        }
        self.links.insert(path, seen);
        if let Some(target) = target.filter(|target| roots.above(target).is_some()) {
            self.pin(&target, roots);
            self.read_only.insert(target);
        }
    }

    /// Whether something is a file that the command can read, and the same inside as outside.
    fn can_be_read(&self, path: &Path, rules: &[PathRule]) -> bool {
        let renewed = self.systems.iter().any(|system| path.starts_with(&system.at));
        let mut reads = rules.iter().filter(|rule| rule.rights.read);
        path.is_file() && !renewed && reads.any(|rule| path.starts_with(canonical(&rule.path)))
    }

    /// What is kept below a directory that is another inside is reached through directories made for that, which the
    /// command could rename: it would be elsewhere then than rules and mounts are about.
    pub fn pin_kept(&mut self) {
        for (at, keep) in changed(&self.private, &self.systems) {
            for kept in keep {
                let above = kept.path.ancestors().skip(1).take_while(|above| is_below(above, at));
                let made = above.filter(|above| !keep.iter().any(|other| is_within(above, &other.path)));
                self.pins.extend(made.map(Path::to_path_buf));
            }
        }
    }

    /// New configurations come through the directory of hooks, which has to be there and shielded; and no other name of
    /// theirs may lead past the mount that they bring along.
    pub fn keep_shielded_configs(&mut self, mounts: &Mounts) {
        let Layout { configs, read_only, .. } = self;
        configs.retain(|repository| {
            let hooks = repository.join(HOOKS);
            read_only.contains(&hooks)
                && is_plain_directory(&hooks)
                && mounts.other_names(repository).is_empty()
        });
        configs.truncate(MOST_CONFIGS);
    }

    /// Shields by each of its names, and wherever a part of it is mounted, what is shielded by one: a mount covers that one,
    /// while rules, which go by files, hold for all. (What is held in its place is held by every name: the kernel looks whether anything is mounted on
    /// it.)
    pub fn shield_elsewhere(&mut self, mounts: &Mounts) {
        let names = |of: &PathBuf| {
            let names = mounts.ways_around(of).into_iter();
            names.filter(|name| self.replaces(name).is_none() && !self.denies(name)).collect::<Vec<_>>()
        };
        let read_only: Vec<_> = self.read_only.iter().flat_map(names).collect();
        let denied: Vec<_> = self.denied.iter().flat_map(names).collect();
        let stubs: Vec<_> = self.stubs.iter().flat_map(|stub| names(&stub.path)).collect();
        let links = self.links.iter();
        let links: Vec<_> =
            links.flat_map(|(link, seen)| names(link).into_iter().map(|name| (name, seen.clone()))).collect();
        self.read_only.extend(read_only);
        self.denied.extend(denied);
        self.stubs_elsewhere.extend(stubs);
        self.links.extend(links);
    }

    /// Has the first name of a path that is not there yet never be.
    fn stub(&mut self, path: &Path, contents: Option<&'static str>, roots: &Roots) {
        // Those of other runs go when they end.
        let is_free = |part: &&Path| stubs::is_free(part, contents.filter(|_| *part == path));
        // Where something has come there meanwhile, making the stub fails.
        let missing = path.ancestors().take_while(is_free).last().unwrap_or(path);
        let contents = contents.filter(|_| missing == path);
        let above = missing.parent().and_then(|above| above.symlink_metadata().ok());
        if above.is_some_and(|above| !above.is_dir()) {
            // Below a file nothing can be made, as long as it stays where it is.
            self.pin(missing, roots);
            return;
        }
        if self.stubs.iter().all(|stub| stub.path != missing) && stubs::can_be_made(missing) {
            self.pin(missing, roots);
            self.stubs.push(Stub { path: missing.to_path_buf(), contents });
        }
    }

    /// Has no directory above a path be renamed or removed, so that the path stays what it is.
    fn pin(&mut self, path: &Path, roots: &Roots) {
        let Some(root) = roots.above(path) else { return };
        let above = path.ancestors().skip(1).take_while(|above| !is_same(above, root));
        self.pins.extend(above.map(Path::to_path_buf));
    }
}
