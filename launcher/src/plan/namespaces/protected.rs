//! What is denied and what is protected, as a layout holds it: by mounts on it and on what is above, and by
//! something in the place of what is not there.

use crate::host::mounts::Mounts;
use crate::plan::listings::{Lacking, Listings};
use crate::plan::namespaces::git::HOOKS;
use crate::plan::namespaces::layout::{Layout, OnLink};
use crate::plan::namespaces::placeholder::{self, Shape, Watched};
use crate::plan::namespaces::places::Roots;
use crate::plan::namespaces::protect::{Found, IfMissing, Protected};
use crate::plan::namespaces::renewed::{changed, is_plain_directory};
use crate::sys::path::{self, Way};
use crate::sys::within::{is_below, is_same, is_within};
use crate::text::shown;
use std::path::{Path, PathBuf};

/// Maximum number of repositories with a replaceable configuration: the reaper holds a descriptor of each `hooks`
/// directory.
const MOST_CONFIGS: usize = 64;

/// What is known of files when what is protected is looked for.
#[derive(Clone, Copy)]
pub struct Looked<'a> {
    /// What may be changed.
    pub roots: &'a Roots,
    /// What is not there.
    pub listings: &'a Listings,
}

/// What git takes for its repository is protected as a whole where a link leads there.
fn only_read(link: &Path) -> String {
    format!(
        "warning: '{link}' is a link, so git changes nothing in the repository that it leads to, and finds none out of \
         the workspace; put a file in its place that holds 'gitdir: ' and the path of the repository",
        link = shown(link)
    )
}

impl Layout {
    /// What is there is kept as it is; what is not, from being made. And so is the way there, as far as the command
    /// could change it.
    pub fn protect(&mut self, protected: Protected, looked: Looked<'_>, warnings: &mut Vec<String>) {
        let Looked { roots, listings } = looked;
        let Some(protected) = self.in_real_directory(protected, looked) else { return };
        if protected.only_way {
            return self.hold(&path::way(&protected.path), &protected, roots);
        }
        let is_left_out = self.leaves_out(&protected.path);
        if is_left_out && listings.is_straight(&protected.path) {
            return;
        }
        let is_below = roots.above(&protected.path).is_some();
        if !is_below && protected.itself {
            // The run's own home is there, and lasts.
            let is_own =
                |root: &Path| self.private.iter().any(|private| private.from.as_deref() == Some(root));
            let all: Vec<&Path> = roots.within(&protected.path).filter(|root| !is_own(root)).collect();
            if !all.is_empty() {
                return self.read_only.extend(all.into_iter().map(Path::to_path_buf));
            }
        }
        // What is in a placeholder's place is asked for there.
        if let Some(Lacking { at, in_placeholder: false }) = listings.first_missing(&protected.path) {
            return self.keep_missing(&protected, Some(at), roots);
        }
        if !is_below && listings.has_directory(&protected.path) {
            return;
        }
        let found = protected.find();
        if is_left_out && found != Found::Link {
            return;
        }
        if let Found::Unseen(why) = &found
            && is_below
        {
            let path = shown(&protected.path);
            warnings.push(format!(
                "warning: '{path}' cannot be looked at, and is protected as if it were there: {why}"
            ));
        }
        match found {
            Found::Nothing => self.keep_missing(&protected, None, roots),
            Found::There | Found::Unseen(_) => self.keep(protected, roots),
            Found::Link => self.protect_linked(protected, looked, warnings),
        }
    }

    /// What is there, as far as the command could change it.
    fn keep(&mut self, protected: Protected, roots: &Roots) {
        if roots.above(&protected.path).is_some() {
            self.pin(&protected.path, roots);
            let repository = protected.path.parent().filter(|_| protected.replaced);
            self.configs.extend(repository.map(Path::to_path_buf));
            self.read_only.insert(protected.path);
        }
    }

    /// The same in the real place of its directory; `None` if the way there goes in circles. It is walked by its names:
    /// a command can close a directory on the way, and open it again in its next run.
    fn in_real_directory(&mut self, protected: Protected, looked: Looked<'_>) -> Option<Protected> {
        let Looked { roots, listings } = looked;
        let path = &protected.path;
        if listings.is_straight(path) || path.parent().is_some_and(|above| listings.has_directory(above)) {
            return Some(protected);
        }
        // Where there is nothing to protect, links may change.
        if protected.missing == IfMissing::MadeFreely && !protected.only_way && !path::is_there(path) {
            return None;
        }
        let Some((above, name)) = path.parent().zip(path.file_name()) else {
            // It ends with `..`.
            let way = path::way(path);
            self.hold(&way, &protected, roots);
            return (!way.gave_up).then_some(Protected { path: way.real, ..protected });
        };
        let way = path::way(above);
        self.hold(&way, &protected, roots);
        (!way.gave_up).then(|| Protected { path: way.real.join(name), ..protected })
    }

    /// Keeps a missing path from being made, or from staying. `known` is the first component that is not there, where
    /// that is known.
    fn keep_missing(&mut self, protected: &Protected, known: Option<&Path>, roots: &Roots) {
        let path = &protected.path;
        if roots.above(path).is_none() {
            return;
        }
        match protected.missing {
            IfMissing::Placeholder(shape) => self.placeholder(path, known, shape, roots),
            IfMissing::SetAside => self.watch(path, known, roots),
            // git could make none in the place of something.
            IfMissing::MadeFreely if protected.replaced => {
                self.lacking.extend(path.parent().map(Path::to_path_buf));
            }
            IfMissing::MadeFreely => {}
        }
    }

    /// A protected link, and what it leads over and to: `~/.bashrc` may be a link to that of a project.
    fn protect_linked(&mut self, protected: Protected, looked: Looked<'_>, warnings: &mut Vec<String>) {
        let roots = looked.roots;
        let way = path::way(&protected.path);
        self.hold(&way, &protected, roots);
        let is_own = protected.path.ends_with(".git")
            && protected.path.parent().is_some_and(|top| roots.above(&protected.path) == Some(top));
        if is_own && way.real.is_dir() {
            warnings.push(only_read(&protected.path));
        }
        // As often as the kernel would follow them, links were held.
        if !way.gave_up {
            let missing = protected.missing.of_target();
            let target = Protected { path: way.real, missing, replaced: false, ..protected };
            self.protect(target, looked, warnings);
        }
    }

    /// Holds what decides where a way leads, as far as the command could change that: links, and directories that `..`
    /// leaves. Who makes one of those decides what the path means.
    fn hold(&mut self, way: &Way, protected: &Protected, roots: &Roots) {
        for link in way.links.iter().filter(|link| roots.above(link).is_some()) {
            self.pin(link, roots);
            self.links.entry(link.clone()).or_insert(OnLink::Itself);
        }
        for left in way.left.iter().filter(|left| roots.above(left).is_some()) {
            self.pin(left, roots);
            if path::is_directory(left) {
                self.pins.insert(left.clone());
            } else if path::is_there(left) {
                self.read_only.insert(left.clone());
            } else {
                let missing = protected.missing.of_target();
                let left = Protected { path: left.clone(), missing, replaced: false, ..protected.clone() };
                self.keep_missing(&left, None, roots);
            }
        }
    }

    /// If a directory is replaced inside, directories are made in it that lead to the kept paths. They are pinned,
    /// because the command could rename them. The kept path would then be where no rule or mount expects it.
    pub fn pin_kept(&mut self) {
        for (at, keep) in changed(&self.private, &self.systems) {
            for kept in keep {
                let above = kept.path.ancestors().skip(1).take_while(|above| is_below(above, at));
                let made = above.filter(|above| !keep.iter().any(|other| is_within(above, &other.path)));
                self.pins.extend(made.map(Path::to_path_buf));
            }
        }
    }

    /// New configurations come through the directory of hooks: it has to be there and protected. No other name of
    /// theirs may lead past the mount that they bring along.
    pub fn keep_protected_configs(&mut self, mounts: &Mounts) {
        let Layout { configs, read_only, .. } = self;
        configs.retain(|repository| {
            let hooks = repository.join(HOOKS);
            read_only.contains(&hooks)
                && is_plain_directory(&hooks)
                && mounts.other_names(repository).is_empty()
        });
        configs.truncate(MOST_CONFIGS);
    }

    /// Also protects the other names of each protected path, and places where part of it is mounted. Path rules go by
    /// file and hold for every name; a mount covers only one. (What is held in its place is held by every name: the
    /// kernel looks whether anything is mounted on it.)
    pub fn shield_elsewhere(&mut self, mounts: &Mounts) {
        let names = |of: &PathBuf| {
            let names = mounts.ways_around(of).into_iter();
            names.filter(|name| self.replaces(name).is_none() && !self.denies(name)).collect::<Vec<_>>()
        };
        let read_only: Vec<_> = self.read_only.iter().flat_map(names).collect();
        let denied: Vec<_> = self.denied.iter().flat_map(names).collect();
        let placeholders: Vec<_> = self.placeholders.keys().flat_map(names).collect();
        let watched = self.watched.iter().flat_map(|Watched { above, below }| {
            let elsewhere = names(&above.join(below)).into_iter();
            elsewhere.filter_map(|name| {
                let above = name.ancestors().nth(below.iter().count())?.to_path_buf();
                Some(Watched { above, below: below.clone() })
            })
        });
        let watched: Vec<Watched> = watched.collect();
        let links = self.links.iter();
        let links: Vec<_> =
            links.flat_map(|(link, seen)| names(link).into_iter().map(|name| (name, *seen))).collect();
        self.read_only.extend(read_only);
        self.denied.extend(denied);
        self.watched.extend(watched);
        self.placeholders_elsewhere.extend(placeholders);
        self.links.extend(links);
    }

    /// Keeps a missing path from being created: puts a placeholder at its first missing component.
    pub(super) fn placeholder(&mut self, path: &Path, known: Option<&Path>, wanted: Shape, roots: &Roots) {
        let Some(missing) = self.first_missing(path, known, wanted, roots) else { return };
        let missing = missing.to_path_buf();
        let wanted = if missing == path { wanted } else { Shape::Directory };
        // Another run's serves as well.
        let standing = || placeholder::standing(&missing, wanted).ok().flatten();
        let standing = if known.is_some() { None } else { standing() };
        self.pin(&missing, roots);
        // Where nothing can be made, there is nothing to put aside either: the entries of two profiles may name one
        // place.
        self.watched.retain(|watched| !is_within(&watched.path(), &missing));
        self.placeholders.insert(missing, standing.unwrap_or(wanted));
    }

    /// Has a missing path watched. Where the link of another run stands, it is held, and goes with that run.
    fn watch(&mut self, path: &Path, known: Option<&Path>, roots: &Roots) {
        let Some(missing) = self.first_missing(path, known, Shape::Link, roots) else { return };
        let standing = || placeholder::standing(missing, Shape::Link).ok().flatten();
        if known.is_none() && standing() == Some(Shape::Directory) {
            return self.placeholder(path, None, Shape::Directory, roots);
        }
        self.pin(missing, roots);
        self.watched.insert(Watched::of(path, missing));
    }

    /// The first component of a path that does not exist and could be made; `None` too if it has a placeholder
    /// already.
    fn first_missing<'p>(
        &mut self,
        path: &'p Path,
        known: Option<&'p Path>,
        wanted: Shape,
        roots: &Roots,
    ) -> Option<&'p Path> {
        // Where something has come there meanwhile, making the placeholder fails.
        let missing = known.or_else(|| placeholder::first_missing(path, wanted)).unwrap_or(path);
        let is_file = |above: &Path| above.symlink_metadata().is_ok_and(|meta| !meta.is_dir());
        if known.is_none() && missing.parent().is_some_and(is_file) {
            // Below a file nothing can be made, as long as it stays where it is.
            self.pin(missing, roots);
            return None;
        }
        let is_new = !self.placeholders.contains_key(missing);
        (is_new && placeholder::can_be_made(missing)).then_some(missing)
    }

    /// Keeps the directories above a path from being renamed or removed, so that the path stays what it is.
    pub(super) fn pin(&mut self, path: &Path, roots: &Roots) {
        let Some(root) = roots.above(path) else { return };
        let above = path.ancestors().skip(1).take_while(|above| !is_same(above, root));
        self.pins.extend(above.map(Path::to_path_buf));
    }
}
