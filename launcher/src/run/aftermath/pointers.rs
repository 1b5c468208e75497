//! What leads to a repository: a `.git` or `.hg` that is a file or a link.

use super::{Aftermath, Look};
use crate::plan::namespaces::Record;
use crate::plan::namespaces::git::shape::{common_of, is_within_git, knows, named_by};
use crate::plan::namespaces::git_config::LONGEST;
use crate::sys::beneath::Directory;
use crate::sys::path::{real_for_all, says_missing};
use crate::sys::{SyscallError, file};
use sbx_client::report::{Finding, FindingKind};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

impl Aftermath {
    pub(super) fn kind(&self, place: &Path) -> Kind {
        kind(&self.root, &self.workspace, place)
    }

    /// Whether a file that is as it was leads elsewhere: a command has changed what is on the way.
    pub(super) fn leads_elsewhere(&self, place: &Path, now: &Kind) -> bool {
        self.pointers.get(place).is_some_and(|before| before != now)
    }

    /// Whether a `.git` leads to a repository that does not name it, and would have git execute something there: what
    /// that repository's configuration, or the user's, names from the top of each working tree.
    pub(super) fn borrows(&self, entry: &Path, target: &Path) -> bool {
        let top = entry.parent().unwrap_or(entry);
        let common = common_of(target).unwrap_or_else(|| target.to_path_buf());
        !knows(target, entry, top)
            && (self.is_protected(&common) || !self.led_to(&common, Some(top)).is_empty())
    }

    /// Puts new links aside that lead to where runs write: what is there, nobody looks at, and git goes into submodules
    /// over links.
    pub(super) fn look_at_ways_out(&self, links: &[PathBuf], look: &mut Look) {
        // Those of git's own are put aside, wherever they lead.
        for place in links.iter().filter(|place| !is_within_git(place)) {
            let path = self.workspace.join(place);
            if look.aside.contains(&path) || !self.leads_to_runs(&path) {
                continue;
            }
            let aside = look.put_aside(&self.root, place, &path);
            look.found_file(&path, FindingKind::FileMade, Vec::new(), aside);
        }
    }

    /// Puts a file or link aside that leads to a repository which nobody can look after, if it is new there, or leads
    /// elsewhere. One that is known, and was touched, is named.
    pub(super) fn turn_away(&self, place: &Path, kind: &Kind, look: &mut Look) {
        let is_changed = self.is_changed(place);
        let is_made = self.is_made(place)
            || self.leads_elsewhere(place, kind)
            || is_changed && !self.pointers.contains_key(place)
            || matches!(kind, Kind::Leads(target) if self.is_of_runs(target));
        if !is_made && !is_changed {
            return;
        }
        let name = place.file_name().unwrap_or_default();
        let path = self.workspace.join(place);
        let aside = if is_made { look.put_aside(&self.root, place, &path) } else { None };
        let put_aside = aside.iter().filter_map(|aside| Some(aside.file_name()?.into())).collect();
        look.outcome.findings.push(Finding {
            path: path.as_path().into(),
            kind: if is_made { FindingKind::RepositoryMade } else { FindingKind::RepositoryChanged },
            names: vec![name.into()],
            put_aside,
        });
    }
}

/// What a `.git` or `.hg` is.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file or link that leads to one, by its real path.
    Leads(PathBuf),
    /// One that leads where nobody can tell, or where nothing is yet.
    Unclear,
    /// Nothing that a program would follow.
    Nothing,
}

/// Tells what an entry is, whose directory's real path is given.
fn kind(root: &Directory, workspace: &Path, place: &Path) -> Kind {
    let Some(name) = place.file_name() else { return Kind::Directory };
    let above = place.parent().unwrap_or(Path::new(""));
    let Ok(directory) = root.place(above) else { return Kind::Unclear };
    let from = &workspace.join(above);
    let led = |path: &Path| real_for_all(path).map_or(Kind::Unclear, Kind::Leads);
    match file::identity_of(directory.as_fd(), name, false) {
        Ok(identity) if identity.is_directory() => Kind::Directory,
        Ok(identity) if identity.is_link() => match led(&workspace.join(place)) {
            // git takes the path in a file from where the link is.
            Kind::Leads(real) if real.is_file() => {
                pointed(Directory::open(real.parent().unwrap_or(&real)), &real, from, led)
            }
            kind => kind,
        },
        Ok(_) => pointed(Ok(directory), place, from, led),
        Err(failed) if says_missing(&failed.cause) => Kind::Nothing,
        Err(_) => Kind::Unclear,
    }
}

/// Where the text of a file leads, from a directory.
fn pointed(
    directory: Result<Directory, SyscallError>,
    file: &Path,
    from: &Path,
    led: impl Fn(&Path) -> Kind,
) -> Kind {
    let name = file.file_name().unwrap_or_default();
    match directory.and_then(|directory| directory.read(name, LONGEST)) {
        Ok(Some(text)) => named_by(&text).map_or(Kind::Nothing, |named| led(&from.join(named))),
        Ok(None) => Kind::Nothing,
        Err(_) => Kind::Unclear,
    }
}

/// The recorded files that lead to repositories, and where they lead.
pub fn known(root: &Directory, workspace: &Path, record: &Record) -> BTreeMap<PathBuf, Kind> {
    let places = record.pointers.iter().filter_map(|path| path.strip_prefix(workspace).ok());
    places.map(|place| (place.to_path_buf(), kind(root, workspace, place))).collect()
}
