//! Finds what git executes in the workspace's repository: hooks, and whatever a configuration names. The workspace may
//! also be a linked worktree or a submodule, whose repository is elsewhere (gitrepository-layout(5)).
//!
//! All of it is read from files that an earlier command may have written. So a repository outside the workspace is
//! opened for writing only if both sides agree: a file in the workspace leads to it, and its own files lead back to the
//! workspace. What it has git execute in the workspace is protected in any case.

mod hooks;
pub mod shape;

use crate::plan::files::tidy;
use crate::plan::namespaces::git_config::{Leads, Setting, settings};
use crate::plan::namespaces::placeholder::{self, Shape};
use crate::plan::namespaces::protect::{IfMissing, Protected};
use crate::plan::namespaces::renewed::is_plain_directory;
use crate::plan::rules::{PathRights, PathRule};
use crate::sys::path;
use crate::sys::plain;
use crate::sys::within::is_below;
use crate::text::shown;
use shape::{
    MOST, OF_WORKTREE, around, belongs, common_named, common_of, entries, entry_of, files_named, files_of,
    has_others, is_bare, is_repository, is_whole, is_within_git, knows, led_to, reads_of_worktree,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What stands where git would read a file, or files of a directory: it finds nothing there.
const NOTHING_SAID: IfMissing = IfMissing::Placeholder(Shape::File("\n"));

/// Submodules of submodules.
const DEEPEST: usize = 4;

/// How many bytes of paths are protected one by one. What comes then is protected by whole directories.
const MOST_PROTECTED: usize = 4 << 20;

/// A repository's own configuration.
pub const CONFIG: &str = "config";
/// The directory of what git executes.
pub const HOOKS: &str = "hooks";
/// Where a checked new configuration is written before it is renamed to `config`: no command can write in `hooks`.
pub const NEW_CONFIG: &str = "hooks/sbx-config";
/// There too: a file that one run at a time holds a lock on, while others are to keep out of the repository.
pub const CONFIG_LOCK: &str = "sbx-config.lock";

/// What of a Mercurial repository names programs, or another repository whose settings count.
pub const OF_MERCURIAL: [&str; 3] = ["hgrc", "hgrc-not-shared", SHARED];
/// The last of these.
pub const SHARED: &str = "sharedpath";

/// The outermost repository that one is part of, as a submodule or linked worktree.
pub fn outermost(repository: &Path) -> &Path {
    // The command of another run may have removed HEAD, so that this run looks for that run's lock in the wrong place.
    // It cannot remove the placeholder of `commondir`.
    let holds = |above: &&Path| {
        let has = |name| path::is_there(&above.join(name));
        above.file_name().is_some_and(|name| name == ".git") || has("HEAD") || has("commondir")
    };
    let parts = repository.ancestors().filter(|path| has_others(path));
    parts.filter_map(Path::parent).filter(holds).last().unwrap_or(repository)
}

/// A repository's parts.
#[derive(Debug, Default)]
pub struct Repository {
    /// What is not to be changed.
    pub protected: Vec<Protected>,
    /// Directories outside the workspace that git writes to: of the repository that the workspace is a worktree of.
    pub writes: Vec<PathBuf>,
    /// Configurations that cannot be read, and so may lead to what is not protected.
    pub unread: BTreeMap<PathBuf, String>,
    /// What an earlier command may have closed: nobody knows which repositories and working trees it leads to.
    pub closed: Option<(PathBuf, String)>,
    /// The repositories of submodules. A command may change what says where they are, and a run without namespaces
    /// does not read that.
    pub submodules: BTreeSet<PathBuf>,
    /// Files that lead to repositories.
    pub pointers: Vec<PathBuf>,
    /// How many of the others are too many.
    beyond: usize,
    /// How much is protected, in bytes of paths, and how many of these were counted.
    weight: (usize, usize),
    /// Directories of hooks that the user's configuration names from the top of each working tree, once it was read.
    of_user: Option<Vec<PathBuf>>,
    /// Those that a repository's configuration names from the top of a working tree.
    of_tops: BTreeSet<PathBuf>,
    /// Where the same names lead from the directory of a repository.
    pub hooks_inside: Vec<PathBuf>,
}

impl Repository {
    /// That of a workspace, or around it; empty where there is none.
    pub fn of(workspace: &Path, home: Option<&Path>) -> Repository {
        let mut found = Repository::default();
        let entry = workspace.join(".git");
        if placeholder::is_free(&entry, Shape::Directory) {
            if is_bare(workspace) {
                found.whole(workspace, workspace, home);
            } else if let Some((common, top)) = workspace.ancestors().skip(1).find_map(around) {
                found.whole(&common, top, home);
            } else {
                // What it names from everywhere is for the user's other repositories.
                found.hooks_of_user(home);
            }
            return found;
        }
        if path::is_directory(&entry) {
            found.whole(&entry, workspace, home);
            // git takes the workspace itself for one where `.git` is none any more.
            if is_whole(workspace) {
                found.whole(workspace, workspace, home);
            }
            return found;
        }
        found.pointer(&entry);
        let Some(named) = led_to(&entry) else { return found };
        let Ok(own) = named.canonicalize() else {
            // An earlier command may have removed it, for a later one to make it anew.
            found.protected.push(Protected::new(named));
            return found;
        };
        let common = if own.starts_with(workspace) {
            // Whatever is left of it.
            common_of(&own).unwrap_or_else(|| own.clone())
        } else {
            let Some(common) = common_of(&own) else { return found };
            // git goes there in any case. Only what knows the workspace is opened for writing.
            if knows(&own, &entry, workspace) && belongs(&own, &common) {
                found.writes.push(common.clone());
            }
            common
        };
        found.worktree(&own, workspace, home, 0);
        found.whole(&common, workspace, home);
        found
    }

    /// The same with other repositories below the workspace, which earlier runs have found.
    pub fn with(mut self, others: &[PathBuf], home: Option<&Path>) -> Repository {
        let others: Vec<&PathBuf> = others.iter().filter(|own| !self.submodules.contains(*own)).collect();
        let (mut known, mut seen) = (BTreeSet::new(), 0);
        for own in others.iter().copied().take(MOST) {
            let config = own.join(CONFIG);
            known.extend(self.protected.iter().skip(seen).map(|protected| protected.path.clone()));
            seen = self.protected.len();
            // Some directories are protected as a whole.
            if config.ancestors().any(|above| known.contains(above)) {
                continue;
            }
            match own.symlink_metadata() {
                Ok(meta) if meta.is_dir() && own.file_name().is_some_and(|name| name == ".hg") => {
                    self.protected.extend(OF_MERCURIAL.map(|name| Protected::new(own.join(name))));
                    self.protected.push(Protected::existing(own.join("requires")));
                }
                Ok(meta) if meta.is_dir() => {
                    let top = if own.ends_with(".git") { own.parent().unwrap_or(own) } else { own };
                    let settings = self.settings_of(own);
                    self.common(own, &settings, top, home, 1);
                }
                Ok(_) => {
                    self.pointers.push(own.clone());
                    self.pointer(own);
                    let target = led_to(own).and_then(|target| common_of(&target.canonicalize().ok()?));
                    if let Some((common, top)) = target.zip(own.parent()) {
                        self.executed(&common, &[top.to_path_buf()], home);
                    }
                }
                Err(error) if path::says_missing(&error) => {}
                Err(error) => drop(self.closed.get_or_insert_with(|| (own.clone(), plain(&error)))),
            }
        }
        self.beyond = others.len().saturating_sub(MOST);
        self
    }

    /// What is to be said of it.
    pub fn warnings(&self) -> Vec<String> {
        let remark = |(file, cause): (&PathBuf, &String)| {
            let file = shown(file);
            format!(
                "warning: hooks and files that '{file}' names are not protected, because it cannot be read: {cause}"
            )
        };
        let beyond = (self.beyond > 0).then(|| {
            format!(
                "warning: {} repositories below the workspace are not protected, because there are more than {MOST}; \
                 run in one of them, or name it with --workspace",
                self.beyond
            )
        });
        self.unread.iter().map(remark).chain(beyond).collect()
    }

    /// What git writes to that may be more than a repository's own directory: a bare one's, or what has been
    /// made to look like one, may be a workspace in another run.
    pub fn workspaces(&self) -> impl Iterator<Item = &Path> {
        self.writes.iter().map(PathBuf::as_path).filter(|path| !is_within_git(path))
    }

    /// One that is known by its directory, as git sees it from a working tree, if not from its own.
    pub fn of_one(own: &Path, top: Option<&Path>, home: Option<&Path>) -> Repository {
        let mut found = Repository::default();
        let beside = || if own.ends_with(".git") { own.parent().unwrap_or(own) } else { own };
        let top = top.unwrap_or_else(beside);
        found.whole(own, top, home);
        found
    }

    /// The rules that let git write, and run the hooks.
    pub fn rules(&self) -> Vec<PathRule> {
        let written = self.writes.iter().map(|path| PathRule::new(path.clone(), PathRights::WRITE));
        let hooks = self.writes.iter().map(|path| path.join(HOOKS)).filter(|hooks| is_plain_directory(hooks));
        written.chain(hooks.map(|hooks| PathRule::new(hooks, PathRights::EXECUTE))).collect()
    }

    /// A git directory that holds a whole repository, and is no part of another.
    fn whole(&mut self, at: &Path, top: &Path, home: Option<&Path>) {
        let settings = self.settings_of(at);
        self.common(at, &settings, top, home, 0);
    }

    /// A git directory that holds a whole repository, with this configuration.
    fn common(&mut self, at: &Path, settings: &[Setting], top: &Path, home: Option<&Path>, depth: usize) {
        if depth > 0 {
            if self.is_full() {
                return self.protected.push(Protected::existing(at.to_path_buf()));
            }
            self.submodules.insert(at.to_path_buf());
        }
        let config = at.join(CONFIG);
        let worktrees = self.entries(&at.join("worktrees"));
        let of_worktrees =
            worktrees.iter().flatten().filter_map(|own| Some(entry_of(own)?.parent()?.to_path_buf()));
        let files = files_named(at, settings);
        self.protected.extend(files.clone().map(Protected::way));
        let own_tops = [top.to_path_buf()].into_iter().chain(files_of(at, settings)).chain(files);
        let own_tops: Vec<PathBuf> = own_tops.collect();
        let tops: Vec<PathBuf> = own_tops.iter().cloned().chain(of_worktrees).collect();
        self.hooks(at.join(HOOKS));
        self.protected.push(Protected { replaced: true, ..Protected::existing(config.clone()) });
        // A `commondir` makes git look for configuration and hooks elsewhere. The placeholder says `./`, which changes
        // nothing. (libgit2 takes a `.` for the working tree, in which it finds no repository.)
        self.protected.push(Protected {
            missing: IfMissing::Placeholder(Shape::File("./\n")),
            ..Protected::new(at.join("commondir"))
        });
        self.addresses(at, settings);
        // In a bare one git would look there first.
        let first = at.join(".git");
        if !is_within_git(at) && !self.protected.iter().any(|known| known.path.starts_with(&first)) {
            self.protected.push(Protected::new(first));
        }
        self.of_tops.clear();
        self.named(settings, &config, &tops, home);
        self.config_of_worktree(at, settings, &own_tops, home);
        let relative: Vec<PathBuf> =
            std::mem::take(&mut self.of_tops).into_iter().chain(self.hooks_of_user(home)).collect();
        self.hooks_inside(at, &relative);
        match worktrees {
            Some(worktrees) => worktrees.iter().for_each(|own| {
                self.entries(own);
                self.worktree(own, top, home, depth);
                self.config_of_worktree(own, settings, &tops, home);
                self.hooks_inside(own, &relative);
            }),
            None => self.protected.push(Protected::existing(at.join("worktrees"))),
        }
        self.modules(&at.join("modules"), top, home, depth + 1);
        self.embedded(settings, top, home, depth + 1);
    }

    /// What a repository has git execute in working trees that lead to it, wherever it is.
    fn executed(&mut self, common: &Path, tops: &[PathBuf], home: Option<&Path>) {
        if self.is_full() {
            return self.protected.extend(tops.iter().cloned().map(Protected::existing));
        }
        let config = common.join(CONFIG);
        let settings = self.settings(&config);
        self.named(&settings, &config, tops, home);
    }

    /// What the user's configuration and that of a repository name in these working trees.
    fn named(&mut self, settings: &[Setting], config: &Path, tops: &[PathBuf], home: Option<&Path>) {
        for hooks in self.hooks_of_user(home) {
            self.hooks_of(tops, &hooks);
        }
        self.follow(settings, config, tops, home, &mut Vec::new());
    }

    /// Submodules that have their repository in their own directory. git says where they are in `.gitmodules`, which a
    /// command may have changed, and in its configuration, by a name that mostly is the path.
    fn embedded(&mut self, of_repository: &[Setting], top: &Path, home: Option<&Path>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let listed = self.own_settings(&top.join(".gitmodules"));
        let paths = listed.iter().filter(|setting| setting.is("submodule", "path")).map(Setting::path);
        let names = of_repository.iter().filter(|setting| setting.is("submodule", "url"));
        let names = names.filter_map(|setting| Some(Path::new(OsStr::from_bytes(setting.parts()?.1?))));
        let places: BTreeSet<PathBuf> = paths.chain(names).map(|path| tidy(&top.join(path))).collect();
        for place in places.iter().filter(|place| is_below(place, top)).take(MOST) {
            let own = place.join(".git");
            if path::is_directory(&own) && is_repository(&own) {
                let settings = self.settings_of(&own);
                self.common(&own, &settings, place, home, depth);
            }
        }
    }

    /// Protects `remotes` and `branches` if `remote.origin.url` is not set: git would read the address of `origin` from
    /// a file there, and `git push` executes the hooks of a repository that it finds there.
    fn addresses(&mut self, at: &Path, settings: &[Setting]) {
        let mut own = settings.iter().filter(|setting| setting.key == b"remote.origin.url");
        // An empty value clears the values before it.
        if own.next_back().is_none_or(|last| last.value.as_ref().is_none_or(|url| url.is_empty())) {
            // Below a file git looks for nothing. It costs less than a directory, whose removal takes longer than all
            // else at the end of a run.
            let kept = |name| Protected { missing: NOTHING_SAID, ..Protected::new(at.join(name)) };
            self.protected.extend(["remotes", "branches"].map(kept));
        }
    }

    /// A git directory that leads to the one that it shares.
    fn worktree(&mut self, at: &Path, top: &Path, home: Option<&Path>, depth: usize) {
        let names = ["commondir", "gitdir"];
        self.protected.extend(names.iter().map(|name| Protected::existing(at.join(name))));
        self.protected.extend(common_named(at).map(Protected::way));
        entry_of(at).iter().for_each(|entry| self.pointer(entry));
        self.modules(&at.join("modules"), top, home, depth + 1);
    }

    /// A file that leads to a repository, or a link in its place, and the way there.
    fn pointer(&mut self, entry: &Path) {
        self.protected.extend(led_to(entry).map(Protected::way));
        self.protected.push(Protected::existing(entry.to_path_buf()));
    }

    /// Whether no more is protected one by one: a command may make any number of repositories.
    fn is_full(&mut self) -> bool {
        let (weight, counted) = &mut self.weight;
        let new = self.protected.iter().skip(*counted);
        *weight += new.map(|protected| protected.path.as_os_str().len()).sum::<usize>();
        *counted = self.protected.len();
        *weight > MOST_PROTECTED
    }

    /// The directories in one; nothing if there are too many, or if they cannot be told.
    fn entries(&mut self, at: &Path) -> Option<Vec<PathBuf>> {
        entries(at).unwrap_or_else(|error| {
            self.closed.get_or_insert_with(|| (at.to_path_buf(), plain(&error)));
            None
        })
    }

    /// The settings of a repository, with those that it has for its own working tree alone (git-worktree(1)).
    fn settings_of(&mut self, at: &Path) -> Vec<Setting> {
        let mut settings = self.own_settings(&at.join(CONFIG));
        if reads_of_worktree(&settings) {
            settings.extend(self.own_settings(&at.join(OF_WORKTREE)));
        }
        settings
    }

    /// A configuration that says where files, hooks and submodules of a repository are.
    fn own_settings(&mut self, file: &Path) -> Vec<Setting> {
        settings(file).unwrap_or_else(|error| {
            self.closed.get_or_insert_with(|| (file.to_path_buf(), plain(&error)));
            Vec::new()
        })
    }

    fn settings(&mut self, file: &Path) -> Vec<Setting> {
        settings(file).unwrap_or_else(|error| {
            self.unread.insert(file.to_path_buf(), plain(&error));
            Vec::new()
        })
    }

    /// What a configuration leads to: the user's, or that of these working trees.
    fn configuration(&mut self, file: &Path, tops: &[PathBuf], home: Option<&Path>, read: &mut Vec<PathBuf>) {
        if read.len() < MOST && !read.iter().any(|other| other == file) {
            let settings = self.settings(file);
            self.follow(&settings, file, tops, home, read);
        }
    }

    /// What the settings of a configuration lead to.
    fn follow(
        &mut self,
        settings: &[Setting],
        file: &Path,
        tops: &[PathBuf],
        home: Option<&Path>,
        read: &mut Vec<PathBuf>,
    ) {
        read.push(file.to_path_buf());
        let directory = file.parent().unwrap_or(file);
        // Of those that lead nowhere the command may have made any number.
        let leading = settings.iter().filter_map(|setting| setting.leads_to(directory, home));
        for leads in leading.take(MOST) {
            match leads {
                Leads::Hooks(path) => self.hooks_of(&[PathBuf::new()], &path),
                Leads::HooksOfTop(path) if tops.is_empty() => self.of_user.get_or_insert_default().push(path),
                Leads::HooksOfTop(path) => {
                    self.hooks_of(tops, &path);
                    self.of_tops.insert(path);
                }
                Leads::More(path) => {
                    self.configuration(&path, tops, home, read);
                    // git fails on a directory there, and so it would in every repository outside.
                    self.protected.push(Protected { missing: NOTHING_SAID, ..Protected::new(path) });
                }
            }
        }
    }

    /// A configuration that git reads only if the repository's says so. `git sparse-checkout` has it say so
    /// one day, and what is there then counts.
    fn config_of_worktree(&mut self, at: &Path, settings: &[Setting], tops: &[PathBuf], home: Option<&Path>) {
        let file = at.join(OF_WORKTREE);
        if reads_of_worktree(settings) {
            self.configuration(&file, tops, home, &mut Vec::new());
        }
        self.protected.push(Protected { missing: NOTHING_SAID, ..Protected::new(file) });
    }

    /// The git directories of submodules; their names may have several parts.
    fn modules(&mut self, at: &Path, top: &Path, home: Option<&Path>, depth: usize) {
        let Some(found) = self.entries(at).filter(|_| depth <= DEEPEST) else {
            self.protected.push(Protected::existing(at.to_path_buf()));
            return;
        };
        for entry in found {
            if self.is_full() {
                return self.protected.push(Protected::existing(at.to_path_buf()));
            }
            if is_repository(&entry) {
                let settings = self.settings_of(&entry);
                let files = files_of(&entry, &settings);
                self.common(&entry, &settings, files.as_deref().unwrap_or(top), home, depth);
                files.iter().for_each(|files| self.pointer(&files.join(".git")));
            }
            // A command can give any directory above others what makes it look like a repository.
            if !belongs(&entry, &entry) {
                self.modules(&entry, top, home, depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
