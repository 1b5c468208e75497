//! Protected files that are others when the run has ended. A mount goes with its file: between the moment when
//! something outside replaces the file and the moment when the new one is protected, the command could write to it.

use crate::plan::namespaces::git_config;
use crate::plan::namespaces::{CONFIG, Layout};
use crate::supervise::handlers::git_config::harmless::{self, Harm};
use crate::sys::beneath::Directory;
use crate::sys::path::is_there;
use sbx_client::report::{Finding, FindingKind};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Something protected, as it was at the start.
pub struct Kept {
    path: PathBuf,
    identity: Identity,
    /// Of a configuration of git's, which git may replace.
    text: Option<Vec<u8>>,
}

/// What mounts hold in a run.
pub fn before(layout: &Layout) -> Vec<Kept> {
    let files = layout.read_only.iter().chain(layout.links.keys());
    let kept = |path: &PathBuf| {
        let meta = path.symlink_metadata().ok()?;
        let of_git = layout.configs.iter().any(|own| path.parent() == Some(own)) && path.ends_with(CONFIG);
        let text = of_git.then(|| git_config::read(path)).flatten();
        Some(Kept { path: path.clone(), identity: identity(&meta), text })
    };
    files.filter_map(kept).collect()
}

/// Device and inode, and the time of birth where the file system knows it: an inode's number is used again.
type Identity = (u64, u64, Option<SystemTime>);

fn identity(meta: &Metadata) -> Identity {
    (meta.dev(), meta.ino(), meta.created().ok())
}

impl Kept {
    /// What to say of it at the end.
    pub fn finding(&self) -> Option<Finding> {
        let meta = self.path.symlink_metadata().ok()?;
        // A configuration is compared in any case.
        if identity(&meta) == self.identity && self.text.is_none() {
            return None;
        }
        let mut names = Vec::new();
        if let Some(before) = &self.text {
            match harmless::check(before, &read(&self.path)?) {
                Ok(()) => return None,
                Err(Harm::Variable(key)) => names.push(key[..].into()),
                Err(Harm::Unreadable) => {}
            }
        }
        let kind = FindingKind::FileReplaced;
        Some(Finding { path: self.path.as_path().into(), kind, names, put_aside: Vec::new() })
    }
}

/// A configuration of now; empty if it cannot be read as one.
fn read(path: &Path) -> Option<Vec<u8>> {
    let name = path.file_name()?;
    let text = Directory::open(path.parent()?).and_then(|own| own.read(name, git_config::LONGEST));
    is_there(path).then(|| text.ok().flatten().unwrap_or_default())
}
