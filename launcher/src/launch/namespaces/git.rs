//! What git executes, of the repository that the workspace is: hooks, and whatever a configuration names. Also where
//! the workspace is a linked worktree or a submodule, whose repository is elsewhere (gitrepository-layout(5)).
//!
//! All of it is read from files that an earlier command may have written; so a repository outside the workspace counts
//! only if it knows the workspace as its own, and only that: where one file says that another place belongs to it, that
//! place has to agree.

use super::protect::Protected;
use super::settings::{Leads, Setting, read, settings};
use super::stubs;
use crate::launch::files::tidy;
use crate::launch::landlock::canonical;
use crate::launch::policy::{PathRights, PathRule};
use crate::supervise::decode::shown;
use crate::sys::{path, plain};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// So many submodules, linked worktrees and configurations are looked at; where there are more, they cannot be
/// changed at all.
const MOST: usize = 256;
/// Files among the directories that are looked at count too: reading must come to an end.
const MOST_OF_ALL: usize = 16 * MOST;
/// Submodules of submodules.
const DEEPEST: usize = 4;

/// A repository's own configuration.
pub const CONFIG: &str = "config";
/// The directory of what git executes.
pub const HOOKS: &str = "hooks";
/// A checked configuration on its way: where no command can write, whatever the mounts.
pub const NEW_CONFIG: &str = "hooks/sbx-config";

/// The repository that one is a part of, as a submodule.
pub fn outermost(repository: &Path) -> &Path {
    // The command of another run may have removed HEAD, for this one to look for that run elsewhere; but not what keeps
    // it from making a `commondir`.
    let holds = |above: &&Path| {
        let has = |name| path::is_there(&above.join(name));
        above.file_name().is_some_and(|name| name == ".git") || has("HEAD") || has("commondir")
    };
    let is_part =
        |path: &Path| matches!(path.file_name(), Some(name) if name == "modules" || name == "worktrees");
    let parts = repository.ancestors().filter(|path| is_part(path));
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
}

/// Where a file like `.git` of a linked worktree leads.
fn pointer(file: &Path) -> Option<PathBuf> {
    let text = read(file)?;
    let path = text.strip_prefix(b"gitdir:")?;
    Some(tidy(&file.parent()?.join(line(path))))
}

/// A path that is all there is in a file.
fn line(text: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(text.trim_ascii()))
}

/// The repository that a git directory shares with others; its own if it shares none.
fn common_of(own: &Path) -> Option<PathBuf> {
    match read(&own.join("commondir")) {
        Some(text) => own.join(line(&text)).canonicalize().ok(),
        None => own.join("HEAD").is_file().then(|| own.to_path_buf()),
    }
}

/// Whether a git directory is that of this worktree in its own words: a linked worktree's says which `.git` leads to it, a
/// submodule's configuration where its files are.
fn knows(own: &Path, entry: &Path, workspace: &Path) -> bool {
    if let Some(text) = read(&own.join("gitdir")) {
        return line(&text).canonicalize().is_ok_and(|back| back == entry);
    }
    let settings = settings(&own.join(CONFIG)).unwrap_or_default();
    files_of(own, &settings).is_some_and(|files| files == workspace)
}

/// Where a submodule's files are, in its own words.
fn files_of(own: &Path, settings: &[Setting]) -> Option<PathBuf> {
    let named = settings.iter().find(|setting| setting.is("core", "worktree"))?;
    own.join(named.path()).canonicalize().ok()
}

/// Whether a path is that of a `.git`, or below it.
fn is_within_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

/// Whether a git directory is a repository, or one of those that this one has for its linked worktrees. What `commondir`
/// says counts for nothing by itself: it could name any directory, and make it the command's.
fn belongs(own: &Path, common: &Path) -> bool {
    let is_its = own == common || own.parent().is_some_and(|parent| parent == common.join("worktrees"));
    is_its
        && ["objects", "refs"].iter().all(|name| common.join(name).is_dir())
        && path::is_there(&common.join("HEAD"))
        // This would be a directory that one is in.
        && stubs::is_free(&common.join(".git"), None)
}

/// The repository that a directory is the top of, where that is above the workspace: it is out of the command's reach, but
/// what it executes may lie in the workspace.
fn around(top: &Path) -> Option<(PathBuf, &Path)> {
    let entry = top.join(".git");
    let own = match entry.symlink_metadata() {
        Ok(meta) if meta.is_dir() => entry,
        Ok(_) => pointer(&entry)?.canonicalize().ok()?,
        Err(_) => return None,
    };
    Some((common_of(&own)?, top))
}

impl Repository {
    /// That of a workspace, or around it; empty where there is none.
    pub fn of(workspace: &Path, home: Option<&Path>) -> Repository {
        let mut found = Repository::default();
        let entry = workspace.join(".git");
        if stubs::is_free(&entry, None) {
            // A bare one, or nothing that git looks at.
            if belongs(workspace, workspace) {
                found.whole(workspace, workspace, home);
            } else if let Some((common, top)) = workspace.ancestors().skip(1).find_map(around) {
                found.whole(&common, top, home);
            }
            return found;
        }
        if path::is_directory(&entry) {
            found.whole(&entry, workspace, home);
            return found;
        }
        found.protected.push(Protected::existing(entry.clone()));
        let Some(own) = pointer(&entry).and_then(|path| path.canonicalize().ok()) else { return found };
        let Some(common) = common_of(&own) else { return found };
        if !own.starts_with(workspace) {
            if !knows(&own, &entry, workspace) || !belongs(&own, &common) {
                return found;
            }
            found.writes.push(common.clone());
        }
        found.worktree(&own, workspace, home, 0);
        found.whole(&common, workspace, home);
        found
    }

    /// What is to be said of it.
    pub fn remarks(&self) -> Vec<String> {
        let remark = |(file, cause): (&PathBuf, &String)| {
            let file = shown(file);
            format!(
                "warning: hooks and files that '{file}' names are not protected, for it cannot be read: {cause}"
            )
        };
        self.unread.iter().map(remark).collect()
    }

    /// What git writes to that may be more than a repository's own directory: a bare one's, or what has been made to look
    /// like one, may be a workspace in another run.
    pub fn workspaces(&self) -> impl Iterator<Item = &Path> {
        self.writes.iter().map(PathBuf::as_path).filter(|path| !is_within_git(path))
    }

    /// The rules that let git write.
    pub fn rules(&self) -> Vec<PathRule> {
        let rights = PathRights { read: true, write: true, ..PathRights::default() };
        self.writes
            .iter()
            .map(|path| PathRule { path: path.clone(), rights, optional: false, follows: false })
            .collect()
    }

    /// A git directory that holds a whole repository, and is no part of another.
    fn whole(&mut self, at: &Path, top: &Path, home: Option<&Path>) {
        let settings = self.settings(&at.join(CONFIG));
        self.common(at, &settings, top, home, 0);
    }

    /// A git directory that holds a whole repository, with this configuration.
    fn common(&mut self, at: &Path, settings: &[Setting], top: &Path, home: Option<&Path>, depth: usize) {
        let config = at.join(CONFIG);
        self.hooks(at.join(HOOKS));
        self.protected.push(Protected { replaced: true, ..Protected::existing(config.clone()) });
        // It would have git look for configuration and hooks elsewhere; this one says what is so anyway.
        self.protected.push(Protected { stub: Some(".\n"), ..Protected::new(at.join("commondir")) });
        self.addresses(at, settings);
        // In a bare one git would look there first.
        if !is_within_git(at) && belongs(at, at) {
            self.protected.push(Protected::new(at.join(".git")));
        }
        let of_home = home.filter(|_| depth == 0).into_iter();
        let of_home = of_home.flat_map(|home| [home.join(".gitconfig"), home.join(".config/git/config")]);
        let mut read = Vec::new();
        of_home.for_each(|file| self.configuration(&file, top, home, &mut read));
        self.follow(settings, &config, top, home, &mut read);
        self.config_of_worktree(at, settings, top, home);
        match entries(&at.join("worktrees")) {
            Some(worktrees) => worktrees.iter().for_each(|own| {
                self.worktree(own, top, home, depth);
                self.config_of_worktree(own, settings, top, home);
            }),
            None => self.protected.push(Protected::existing(at.join("worktrees"))),
        }
        self.modules(&at.join("modules"), top, home, depth + 1);
    }

    /// Files that say where a remote is which has no address in the configuration. `git push` sends to the one of this name if
    /// nothing else is said, and executes the hooks of a repository that it finds there.
    fn addresses(&mut self, at: &Path, settings: &[Setting]) {
        let mut own = settings.iter().filter(|setting| setting.key == b"remote.origin.url");
        // An empty one takes those before it away.
        if own.next_back().is_none_or(|last| last.value.as_ref().is_none_or(|url| url.is_empty())) {
            self.protected.extend(["remotes", "branches"].map(|name| Protected::new(at.join(name))));
        }
    }

    /// A directory of programs, and what its links lead to: `ln -s ../../scripts/check .git/hooks/pre-commit` has git
    /// execute a file of the working tree.
    fn hooks(&mut self, at: PathBuf) {
        let real = canonical(&at);
        let entries = real.read_dir().into_iter().flatten().take(MOST_OF_ALL).flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        for link in links.map(|entry| entry.path()) {
            let named = link.read_link().map(|target| tidy(&real.join(target)));
            let targets: BTreeSet<PathBuf> = named.into_iter().chain(link.canonicalize()).collect();
            self.protected.extend(targets.into_iter().map(Protected::existing));
        }
        self.protected.push(Protected::new(at));
    }

    /// A git directory that leads to the one that it shares.
    fn worktree(&mut self, at: &Path, top: &Path, home: Option<&Path>, depth: usize) {
        let names = ["commondir", "gitdir"];
        self.protected.extend(names.iter().map(|name| Protected::existing(at.join(name))));
        // The file by which git gets here from where the files are, if that may be written too.
        let entry = read(&at.join("gitdir")).map(|text| tidy(&at.join(line(&text))));
        let entry = entry.filter(|path| path.file_name().is_some_and(|name| name == ".git"));
        self.protected.extend(entry.map(Protected::existing));
        self.modules(&at.join("modules"), top, home, depth + 1);
    }

    fn settings(&mut self, file: &Path) -> Vec<Setting> {
        settings(file).unwrap_or_else(|error| {
            self.unread.insert(file.to_path_buf(), plain(&error));
            Vec::new()
        })
    }

    /// What a configuration leads to.
    fn configuration(&mut self, file: &Path, top: &Path, home: Option<&Path>, read: &mut Vec<PathBuf>) {
        if read.len() < MOST && !read.iter().any(|other| other == file) {
            let settings = self.settings(file);
            self.follow(&settings, file, top, home, read);
        }
    }

    /// What the settings of a configuration lead to.
    fn follow(
        &mut self,
        settings: &[Setting],
        file: &Path,
        top: &Path,
        home: Option<&Path>,
        read: &mut Vec<PathBuf>,
    ) {
        read.push(file.to_path_buf());
        let directory = file.parent().unwrap_or(file);
        // Of those that lead nowhere the command may have made any number.
        let leading = settings.iter().filter_map(|setting| setting.leads_to(directory, top, home));
        for leads in leading.take(MOST) {
            match leads {
                // These are started by those in the directory above.
                Leads::Hooks(path) if path.ends_with(".husky/_") => {
                    self.protected.extend(path.parent().map(|above| Protected::new(above.to_path_buf())));
                }
                Leads::Hooks(path) => self.hooks(path),
                Leads::More(path) => {
                    self.configuration(&path, top, home, read);
                    self.protected.push(Protected::new(path));
                }
            }
        }
    }

    /// A configuration that git reads only if the repository's says so. `git sparse-checkout` has it say so one day, and what
    /// is there then counts.
    fn config_of_worktree(&mut self, at: &Path, settings: &[Setting], top: &Path, home: Option<&Path>) {
        let file = at.join("config.worktree");
        let is_read = |setting: &Setting| setting.is("extensions", "worktreeconfig") && setting.holds();
        if settings.iter().any(is_read) {
            self.configuration(&file, top, home, &mut Vec::new());
        }
        self.protected.push(Protected { stub: Some("\n"), ..Protected::new(file) });
    }

    /// The git directories of submodules; their names may have several parts.
    fn modules(&mut self, at: &Path, top: &Path, home: Option<&Path>, depth: usize) {
        let Some(found) = entries(at).filter(|_| depth <= DEEPEST) else {
            self.protected.push(Protected::existing(at.to_path_buf()));
            return;
        };
        for entry in found {
            if is_repository(&entry) {
                let settings = self.settings(&entry.join(CONFIG));
                let files = files_of(&entry, &settings);
                self.common(&entry, &settings, files.as_deref().unwrap_or(top), home, depth);
                self.protected.extend(files.map(|files| Protected::existing(files.join(".git"))));
            } else {
                self.modules(&entry, top, home, depth + 1);
            }
        }
    }
}

/// Whether this is a git directory, or what an earlier command has left of one.
fn is_repository(at: &Path) -> bool {
    // One that cannot be looked into may be one.
    let is_file = |name| match at.join(name).symlink_metadata() {
        Ok(meta) => !meta.is_dir(),
        Err(error) => !path::says_missing(&error),
    };
    is_file("HEAD") || is_file("config")
}

/// The directories in one; nothing if there are too many, or if they cannot be told.
fn entries(at: &Path) -> Option<Vec<PathBuf>> {
    let mut directories = Vec::new();
    let found = match at.read_dir() {
        Ok(found) => found,
        Err(error) => return path::says_missing(&error).then_some(directories),
    };
    for (number, entry) in found.enumerate() {
        let entry = entry.ok()?;
        if number >= MOST_OF_ALL || directories.len() > MOST {
            return None;
        }
        if entry.file_type().ok()?.is_dir() {
            directories.push(entry.path());
        }
    }
    Some(directories)
}

#[cfg(test)]
mod tests;
