//! What leads to a repository: a `.git` or `.hg` that is a file or a link.

use super::repository::{self, Kind};
use super::{Aftermath, Look};
use crate::plan::namespaces::Record;
use crate::plan::namespaces::git::shape::{common_of, knows};
use crate::sys::beneath::Directory;
use sbx_client::report::{Finding, FindingKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl Aftermath {
    pub(super) fn kind(&self, place: &Path) -> Kind {
        repository::kind(&self.root, &self.workspace, place)
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
        let put_aside = aside.iter().map(|aside| aside.as_os_str().into()).collect();
        look.outcome.findings.push(Finding {
            path: path.as_path().into(),
            kind: if is_made { FindingKind::RepositoryMade } else { FindingKind::RepositoryChanged },
            names: vec![name.into()],
            put_aside,
        });
    }
}

/// The recorded files that lead to repositories, and where they lead.
pub fn known(root: &Directory, workspace: &Path, record: &Record) -> BTreeMap<PathBuf, Kind> {
    let places = record.pointers.iter().filter_map(|path| path.strip_prefix(workspace).ok());
    places.map(|place| (place.to_path_buf(), repository::kind(root, workspace, place))).collect()
}
