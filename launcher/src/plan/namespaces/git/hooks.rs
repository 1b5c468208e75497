//! Directories of hooks: what git executes when something happens in a repository (githooks(5)).

use super::{HOOKS, NOTHING_SAID, Repository};
use crate::plan::namespaces::git::shape::MOST_OF_ALL;
use crate::plan::namespaces::git_config;
use crate::plan::namespaces::protect::{IfMissing, Protected};
use crate::sys::path::{self, canonical};
use crate::sys::within::is_below;
use std::path::{Path, PathBuf};

/// How many bytes of paths the links of one directory of hooks lead to. The others are not followed.
const MOST_LINKED: usize = 1 << 20;

impl Repository {
    /// A directory of programs, and what its links lead to: `ln -s ../../scripts/check .git/hooks/pre-commit` has git
    /// execute a file of the working tree.
    pub(super) fn hooks(&mut self, at: PathBuf) {
        let real = canonical(&at);
        let entries = real.read_dir().into_iter().flatten().take(MOST_OF_ALL).flatten();
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let mut size = 0;
        for link in links.map(|entry| entry.path()) {
            if size > MOST_LINKED {
                break;
            }
            size += link.read_link().map_or(0, |target| target.as_os_str().len());
            self.protected.push(Protected::existing(link));
        }
        // What is missing above it may be anything: `node_modules`.
        let is_above_there = at.parent().is_none_or(path::is_there);
        let own = Protected::new(at);
        self.protected.push(match is_above_there {
            true => own,
            false => Protected { missing: IfMissing::SetAside, ..own },
        });
    }

    /// A directory of programs in each of these working trees.
    pub(super) fn hooks_of(&mut self, tops: &[PathBuf], hooks: &Path) {
        for top in tops {
            let path = top.join(hooks);
            self.protected.extend(husky(&path).map(|above| Protected::new(above.to_path_buf())));
            self.hooks(path);
        }
    }

    /// Where a relative `core.hooksPath` leads from a repository's own directory, or that of a linked worktree: there
    /// git starts the hooks of what is pushed to it.
    pub(super) fn hooks_inside(&mut self, at: &Path, named: &[PathBuf]) {
        for named in named {
            let path = at.join(named);
            let path = husky(&path).unwrap_or(&path).to_path_buf();
            let real = path::way(&path).real;
            if real == at.join(HOOKS) {
                continue;
            }
            if path::is_there(&path) {
                self.hooks(path.clone());
            } else {
                self.protected.push(Protected { missing: NOTHING_SAID, ..Protected::new(path.clone()) });
            }
            self.hooks_inside.extend(is_below(&real, at).then_some(real));
        }
    }

    /// The directories of hooks that the user's configuration names from the top of each working tree. What it leads to
    /// besides is protected.
    pub(super) fn hooks_of_user(&mut self, home: Option<&Path>) -> Vec<PathBuf> {
        if self.of_user.is_none() {
            self.of_user = Some(Vec::new());
            let mut read = Vec::new();
            let all = home.into_iter().flat_map(git_config::of_user).chain([PathBuf::from("/etc/gitconfig")]);
            all.for_each(|file| self.configuration(&file, &[], home, &mut read));
        }
        self.of_user.clone().unwrap_or_default()
    }
}

/// Husky: the hooks in `.husky/_` start the scripts in `.husky`.
fn husky(hooks: &Path) -> Option<&Path> {
    hooks.parent().filter(|_| hooks.ends_with(".husky/_"))
}
