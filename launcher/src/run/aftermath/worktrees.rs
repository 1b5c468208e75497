//! What git keeps of linked worktrees: nothing there leads it elsewhere.

use super::new::{New, Times};
use super::repository::{COMMON, MOST_WORKTREES, OF_WORKTREE, WORKTREES, is_absent_or, leads_to};
use crate::plan::namespaces::git::shape::{self, line};
use crate::plan::namespaces::git_config::LONGEST;
use crate::supervise::handlers::git_config::sift::sift;
use crate::sys::beneath::Directory;
use crate::sys::descriptor;
use crate::sys::file;
use crate::sys::path::joined;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

/// Names the file that leads to a linked worktree's directory.
const GITDIR: &str = "gitdir";

/// What of linked worktrees git would act on: another shared repository, settings of their own. Of those that `stayed`
/// where they were, the time of each file says whether it is new.
pub fn astray(own: &Directory, new: New, stayed: &dyn Fn(&OsStr) -> bool) -> Vec<PathBuf> {
    let at = Path::new(WORKTREES);
    let listed = own.below(at).and_then(|all| Ok((all.names_like(MOST_WORKTREES, |_| true)?, all)));
    let (names, all) = match listed {
        Ok(((names, false), all)) => (names, all),
        Err(failed) if failed.errno() == libc::ENOENT => return Vec::new(),
        _ => return if new.is(own, at.as_os_str()) { vec![at.to_path_buf()] } else { Vec::new() },
    };
    let in_all = new.within(own, at.as_os_str());
    let mut harmful = Vec::new();
    for name in names {
        let place = at.join(&name);
        let Ok(worktree) = own.below(&place) else {
            // A link, or closed. In a file git finds nothing: it may be what a run has in the place of hooks.
            let may_hold = file::identity_of(all.as_fd(), &name, false)
                .map_or(true, |found| found.is_link() || found.is_directory());
            harmful.extend((may_hold && new.is(own, place.as_os_str())).then_some(place));
            continue;
        };
        let new = if stayed(&name) { new } else { in_all.within(&all, &name) };
        let plain = |text: &[u8]| sift(text, |_| false).is_ok_and(|sifted| sifted.harmful.is_empty());
        if new.is(&worktree, COMMON.as_ref())
            && !is_absent_or(&worktree, COMMON, |text| leads_to(text, "../..") || leads_to(text, "."))
        {
            harmful.push(place.join(COMMON));
        }
        if leads_astray(&worktree, new.is(&worktree, GITDIR.as_ref())) {
            harmful.push(place.join(GITDIR));
        }
        if new.is(&worktree, OF_WORKTREE.as_ref()) && !is_absent_or(&worktree, OF_WORKTREE, plain) {
            harmful.push(place.join(OF_WORKTREE));
        }
    }
    harmful
}

/// Whether git would write a file into another directory than that of a linked worktree, by what is said to be its
/// `.git`: one that is there and does not lead back, or that a link leads to, which a later command could change.
fn leads_astray(worktree: &Directory, is_new: bool) -> bool {
    let Some(own) = descriptor::path_of(worktree.as_fd().as_raw_fd()) else { return true };
    let Ok(text) = worktree.read(GITDIR.as_ref(), LONGEST) else { return is_new };
    let Some(text) = text else { return false };
    // Versions of git take a relative one from here, or from where they are started.
    let tree = own.ancestors().nth(3);
    let from = |from: &Path| {
        let Some(entry) = joined(from, line(&text)) else { return is_new };
        let Some(top) = entry.parent().filter(|_| entry.ends_with(".git")) else { return is_new };
        let leads =
            || shape::led_to(&entry).and_then(|led| led.canonicalize().ok()).is_some_and(|led| led == own);
        top.canonicalize().is_ok_and(|real| match real == top {
            true => is_new && !leads(),
            false => is_new || !leads(),
        })
    };
    from(&own) || tree.is_some_and(from)
}

/// The same of the linked worktrees that a protected repository has got. Mounts held those that were there.
pub fn came_astray(
    own: &Directory,
    Times { began, .. }: Times,
    held: &dyn Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let stayed = |name: &OsStr| held(&Path::new(WORKTREES).join(name).join(OF_WORKTREE));
    astray(own, New::Since(began), &stayed)
}
