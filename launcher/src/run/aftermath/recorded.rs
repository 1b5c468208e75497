//! The repositories that are recorded, and what a look has seen of them.

use super::index::{Indexes, Inner, may_be_sparse};
use super::new::New;
use super::repository::Before;
use super::state::tree_of;
use super::submodules;
use super::told::RECORDED;
use super::{Aftermath, Look, Opened, PART};
use crate::plan::namespaces::record::Recorded;
use crate::plan::namespaces::{Layout, Record};
use crate::sys::beneath::Directory;
use crate::sys::path::{is_there, says_missing};
use crate::sys::within::is_below;
use crate::sys::{SyscallError, file, process};
use sbx_client::report::FindingKind;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// More repositories of a workspace are not recorded.
const MOST_RECORDED: usize = 4096;
/// The recorded repositories that every run looks at.
pub const MOST_LOOKED_AT: usize = 256;

/// The least time for a search in the first run in a workspace, which finds what has been there all along.
const FIRST: Duration = Duration::from_millis(50);

/// What a look has seen of the indexes of the repositories that are known.
#[derive(Clone, Copy)]
pub struct Looked {
    /// How many bytes it may still read.
    pub left: u64,
    /// Whether one has changed.
    pub has_new: bool,
    /// Whether one could not be seen.
    pub has_unseen: bool,
}

impl Aftermath {
    /// How long directories are looked into that have not changed.
    pub(super) fn time_for_search(&self) -> Duration {
        (self.started.elapsed() / PART).max(if self.is_first() { FIRST } else { Duration::ZERO })
    }

    /// Whether this is the first run in this workspace of those that are recorded.
    fn is_first(&self) -> bool {
        self.record.since.is_some_and(|since| since >= self.record.began)
    }

    /// Looks at the repositories that are known, and those of submodules: the search need not have come so far. The
    /// time of a directory tells nothing of what was written into the files in it.
    pub(super) fn look_at_recorded(&self, look: &mut Look) {
        let held = self.layout.iter().flat_map(|layout| &layout.configs);
        let all = self.recorded().chain(&self.record.found).chain(self.known.keys()).chain(held);
        let all: BTreeSet<&PathBuf> = all.filter(|path| !look.seen.contains(path)).collect();
        for path in all {
            if let Ok(place) = path.strip_prefix(&self.workspace) {
                self.look(place, look);
            }
        }
    }

    /// The recorded repositories that every look sees.
    pub(super) fn recorded(&self) -> impl Iterator<Item = &PathBuf> {
        self.record.repositories.iter().take(MOST_LOOKED_AT)
    }

    /// Puts aside what git outside should not read.
    pub(super) fn look_at_indexes(&self, &Opened { own, place, path, new }: &Opened<'_>, look: &mut Look) {
        let mut left = look.indexes.left;
        // git goes into a submodule wherever a link leads, and nobody looks at what runs keep.
        let submodules = RefCell::new(std::mem::take(&mut look.submodules));
        let leads_away = |directory: &Path, inner: Inner, entry: &[u8]| {
            let tree = tree_of(&path.join(directory));
            let submodule = tree.map(|tree| tree.join(OsStr::from_bytes(entry)));
            if inner == Inner::Sparse {
                return !may_be_sparse(own, directory) || submodule.is_none_or(|path| is_there(&path));
            }
            let leads_away = submodule.as_deref().is_some_and(|submodule| self.leads_to_runs(submodule));
            submodules.borrow_mut().extend(submodule);
            leads_away
        };
        // What an index has named all along, a later run may put a repository in: the first look reads each.
        if !self.is_known(path) || self.is_first() || self.record.since.is_none() {
            Indexes::of(own, New::All, &mut left, &leads_away).find(&mut |_| {});
        }
        let has_new = Indexes::of(own, new, &mut left, &leads_away)
            .find(&mut |odd| self.put_index_aside(&place.join(odd.place), &odd.entries, look));
        look.submodules = submodules.into_inner();
        look.indexes.left = left;
        look.indexes.has_new |= has_new && self.is_known(path);
    }

    fn put_index_aside(&self, index: &Path, entries: &[Vec<u8>], look: &mut Look) {
        let path = self.workspace.join(index);
        let aside = look.put_aside(&self.root, index, &path);
        let names = entries.iter().map(|entry| entry[..].into()).collect();
        look.found_file(&path, FindingKind::IndexChanged, names, aside);
    }

    /// What of git's own files in a repository may have been changed, and nobody has looked: the run before may have
    /// been killed.
    pub(super) fn new_of_git(&self, path: &Path, own: &Directory) -> New {
        // In memory, what is written through a mapping changes no time.
        if own.is_in_memory() { New::All } else { self.new_entries(path, own) }
    }

    /// The same of what is no file.
    pub(super) fn new_entries(&self, path: &Path, own: &Directory) -> New {
        if self.known.get(path).is_some_and(|before| !before.is_it(own)) {
            return New::All;
        }
        New::Since(match self.record.looked.filter(|_| self.is_known(path)) {
            Some(looked) if self.turn.is_after_missed => looked.min(self.since),
            Some(_) => self.since,
            None => self.times(path).since,
        })
    }

    /// Whether every look sees a repository: a recorded one, or that of the workspace.
    pub(super) fn is_known(&self, path: &Path) -> bool {
        let is_own =
            path == self.workspace || path.strip_prefix(&self.workspace).is_ok_and(|path| path == ".git");
        is_own || self.order.get(path).is_some_and(|place| *place < MOST_LOOKED_AT)
    }

    /// Whether another run has found a repository since this one began: what git would act on there came after that.
    pub(super) fn was_recorded_meanwhile(&self, path: &Path) -> bool {
        let text = || fs::read(self.record.file.as_deref()?).ok();
        let is_recorded = |text: Vec<u8>| {
            Record::parse(&text, &self.workspace).repositories.iter().any(|found| found == path)
        };
        !self.order.contains_key(path) && text().is_some_and(is_recorded)
    }

    /// The look at a repository outside that a linked worktree or a submodule belongs to: submodules are put there.
    pub(super) fn of_outside(&self, repository: &Path) -> Result<Aftermath, SyscallError> {
        // What is older than this run is none of this workspace's.
        let record = Record { since: None, repositories: Vec::new(), file: None, ..self.record.clone() };
        Ok(Aftermath {
            workspace: repository.to_path_buf(),
            root: Directory::open(repository)?.opening(self.since),
            record,
            order: BTreeMap::new(),
            layout: self.layout.clone(),
            kept: Vec::new(),
            missing: Vec::new(),
            outside: Vec::new(),
            home: self.home.clone(),
            denied: self.denied.clone(),
            runs: OnceCell::from(self.runs().to_vec()),
            had_network: self.had_network,
            known: self.known.clone(),
            pointers: BTreeMap::new(),
            alternates: BTreeMap::new(),
            absent: Vec::new(),
            turn: self.turn.of_another(),
            goes_on: self.goes_on,
            since: self.since,
            precisely_since: self.precisely_since,
            started: self.started,
        })
    }

    /// Adds what is new to the record, and takes out what is gone. Nothing is written where nothing changes. The file's
    /// time says which indexes a look has seen, which `began` at some time.
    pub(super) fn write_down(
        &self,
        found: BTreeSet<PathBuf>,
        submodules: &BTreeSet<PathBuf>,
        Looked { has_new, has_unseen, .. }: Looked,
        began: SystemTime,
    ) -> io::Result<()> {
        let Some(file) = &self.record.file else { return Ok(()) };
        let is_written = self.write_record(file, found, submodules)?;
        let looked = if has_unseen { self.record.looked.unwrap_or(self.since) } else { began };
        if is_written || has_new {
            OpenOptions::new().write(true).open(file)?.set_modified(looked)?;
        }
        Ok(())
    }

    /// Returns whether anything was written.
    fn write_record(
        &self,
        file: &Path,
        found: BTreeSet<PathBuf>,
        submodules: &BTreeSet<PathBuf>,
    ) -> io::Result<bool> {
        // The workspace's own is looked for at each start.
        let own = [self.workspace.join(".git"), self.workspace.clone()];
        let found: Vec<PathBuf> = self.record.found.iter().cloned().chain(found).collect();
        let is_new = |path: &&PathBuf| {
            is_below(path, &self.workspace) && !own.contains(path) && !self.order.contains_key(*path)
        };
        let is_gone = |path: &PathBuf| path.symlink_metadata().is_err_and(|error| says_missing(&error));
        let new: Vec<&PathBuf> = found.iter().filter(is_new).collect();
        let known: BTreeSet<&PathBuf> = self.record.submodules.iter().collect();
        let knows_all = new.is_empty() && submodules.iter().all(|path| known.contains(path));
        if knows_all && self.record.since.is_some() && !self.record.repositories.iter().any(is_gone) {
            return Ok(false);
        }
        // Another run may have written meanwhile.
        let Recorded { since, repositories: mut all, submodules: known } =
            Record::parse(&fs::read(file).unwrap_or_default(), &self.workspace);
        let since = since.unwrap_or(self.record.began);
        let submodules = submodules::together(known, submodules);
        let missing: Vec<PathBuf> = new.into_iter().filter(|path| !all.contains(path)).cloned().collect();
        all.extend(missing);
        all.retain(|path| !is_gone(path));
        all.truncate(MOST_RECORDED);
        let mut size = 0;
        all.retain(|path| {
            size += path.as_os_str().len();
            size <= RECORDED
        });
        let directory = file.parent().unwrap_or(file);
        let _mask = process::without_umask();
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let directory = Directory::open(directory).map_err(|failed| failed.cause)?;
        let name = file.file_name().unwrap_or_default();
        let written = file::replace(directory.as_fd(), name, &Record::text(since, &all, &submodules), 0o600);
        written.map(|()| true).map_err(|failed| failed.cause)
    }
}

/// Where each recorded repository stands in the record.
pub fn order(record: &Record) -> BTreeMap<PathBuf, usize> {
    record.repositories.iter().cloned().zip(0..).collect()
}

/// The repositories that are known, as far as no mount holds their configurations. The workspace's own may be elsewhere
/// in it: its `.git` may be a link.
pub fn known(workspace: &Path, record: &Record, layout: Option<&Layout>) -> BTreeMap<PathBuf, Before> {
    let own = || {
        let git = workspace.join(".git");
        let led = git.canonicalize().ok().filter(|led| *led != git && is_below(led, workspace));
        [Some(git), led, Some(workspace.to_path_buf())].into_iter().flatten()
    };
    let all = || own().chain(record.repositories.iter().cloned()).collect();
    let all = layout.map_or_else(all, |layout| layout.lacking.clone());
    all.into_iter().filter_map(|path| Some((path.clone(), Before::of(&path)?))).collect()
}
