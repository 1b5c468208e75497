//! A look at the workspace when the command has ended: what git would execute there outside, that was not there before
//! or could be changed. Mounts hold what was there and known at the start; here is what they cannot hold.
//!
//! - Repositories that the command has made: what they would have git execute is put aside.
//! - Other repositories that nobody had recorded: named if what git executes there was changed meanwhile. All are
//!   recorded, and later runs protect them.
//! - An index that leads git where git puts nothing, and what git goes on with and has not the form that git gives it:
//!   put aside.
//! - What programs outside act on, and was not there: put aside as well.
//! - What was protected, and is another file now, or has changed: something outside did that, and the command may have
//!   had a hand in it.

mod alternates;
pub mod home;
mod index;
mod judge;
mod links;
mod look;
mod made;
mod mercurial;
mod new;
mod pointers;
mod recorded;
mod remotes;
mod replaced;
mod repository;
mod search;
mod sentence;
mod state;
mod submodules;
mod told;
mod turn;
mod worktrees;

use crate::plan::Plan;
use crate::plan::namespaces::git::shape::is_within_git;
use crate::plan::namespaces::placeholder::Watched;
use crate::plan::namespaces::{CONFIG, Layout, Record, Repository};
use crate::sys::beneath::{Directory, from_root};
use crate::sys::path::{is_there, says_missing, way};
use crate::sys::within::is_within;
use crate::sys::{SyscallError, plain, process, timer};
use crate::text::shown;
use judge::{Judged, Known, MayPush, judge};
use look::{Look, Opened};
use new::Times;
use pointers::Kind;
use recorded::known;
use remotes::MOST_REMOTES;
use replaced::Kept;
use repository::Before;
use sbx_client::report::{Bytes, Finding, FindingKind};
use search::is_for_submodules;
pub use sentence::{Outcome, line};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Instant, SystemTime};
use turn::{Ended, Turn};

/// What part of the run's time the search may take for directories that have not changed, and how many of these it
/// looks into in any case.
const PART: u32 = 50;
const LEAST: usize = 8;
/// How many files and links are followed one after the other.
const MOST_LED: usize = 16;

/// A remote counts for nothing where only an old repository is asked about.
const ANYWHERE: Option<MayPush> = Some(&|_| true);

/// What is remembered until the command has ended.
pub struct Aftermath {
    workspace: PathBuf,
    root: Directory,
    record: Record,
    /// Where each recorded repository stands in the record.
    order: BTreeMap<PathBuf, usize>,
    layout: Option<Rc<Layout>>,
    kept: Vec<Kept>,
    /// Where nothing was that programs outside would act on.
    missing: Vec<Watched>,
    /// Repositories outside the workspace that git writes to.
    outside: Vec<PathBuf>,
    home: Option<PathBuf>,
    denied: Vec<PathBuf>,
    /// Where runs write: found when the command has ended, for no start to wait for that.
    runs: OnceCell<Vec<PathBuf>>,
    had_network: bool,
    /// The repositories that are known, where nothing protects them; else those without a configuration.
    known: BTreeMap<PathBuf, Before>,
    /// Where the files lead that lead to repositories, and are known.
    pointers: BTreeMap<PathBuf, Kind>,
    /// The alternates of the repositories that are known.
    alternates: BTreeMap<PathBuf, Vec<u8>>,
    /// By the clock that files go by.
    since: SystemTime,
    /// By a finer clock. What is older has changed before the run, though not a tick of the other one before it.
    precisely_since: SystemTime,
    /// What was not in the workspace: a repository there is new, whatever its times say.
    absent: Vec<&'static Path>,
    started: Instant,
    turn: Turn,
    /// Whether processes may outlive the run.
    goes_on: bool,
}

impl Aftermath {
    /// Before the command starts; `None` where it can write nothing that something outside executes later.
    pub fn before(plan: &Plan) -> Option<Result<Aftermath, SyscallError>> {
        let (record, workspace) = plan.record.clone().zip(plan.workspace.clone())?;
        let layout = plan.namespaces.as_ref().ok().cloned();
        let root = match Directory::open(&workspace) {
            Ok(root) => root,
            Err(failed) => return Some(Err(failed)),
        };
        let (pointers, alternates) =
            (pointers::known(&root, &workspace, &record), alternates::known(&root, &workspace, &record));
        let since = timer::file_time();
        Some(Ok(Aftermath {
            known: known(&workspace, &record, layout.as_deref()),
            kept: layout.as_deref().map(replaced::before).unwrap_or_default(),
            layout,
            missing: plan.missing.clone(),
            pointers,
            alternates,
            outside: record.outside.clone(),
            home: plan.home.clone(),
            denied: plan.denied.clone(),
            runs: OnceCell::new(),
            had_network: plan.network.leads_out(),
            absent: absent(&workspace),
            turn: Turn::begin(record.file.as_deref()),
            goes_on: plan.limits.keep_background,
            since,
            precisely_since: SystemTime::now(),
            order: recorded::order(&record),
            record,
            // What the command closes is opened.
            root: root.opening(since),
            workspace,
            started: Instant::now(),
        }))
    }

    /// There is a command from now on.
    pub fn has_begun(&self) {
        self.turn.has_begun();
    }

    /// After it has ended, with all that it started.
    pub fn after(&self) -> Outcome {
        let mut look = Look::new();
        let began = timer::file_time();
        self.look_at_kept(&mut look);
        let mut failures = Vec::new();
        look.outcome.findings.extend(made::findings(&self.missing, self.since, &mut failures));
        look.outcome.failures.extend(failures);
        self.search(Instant::now() + self.time_for_search(), &mut look);
        if self.has_become_bare() {
            self.look(Path::new(""), &mut look);
        }
        self.look_at_recorded(&mut look);
        for outside in &self.outside {
            let until = Instant::now() + self.started.elapsed() / PART;
            match self.of_outside(outside) {
                Ok(own) => {
                    own.search(until, &mut look);
                    own.look_at_recorded(&mut look);
                }
                Err(failed) => look.outcome.failures.push(format!(
                    "cannot look for what git would execute in '{}': {failed}",
                    shown(outside)
                )),
            }
        }
        self.look_at_submodules(&mut look);
        let found = look.found.below(&self.workspace);
        if let Err(error) = self.write_down(found, look.submodules.all(), look.indexes, began) {
            look.outcome.failures.push(format!(
                "cannot record which repositories there are in '{}', so later runs may not protect them: {}",
                shown(&self.workspace),
                plain(&error)
            ));
        }
        let is_unseen = look.indexes.has_unseen;
        let outcome = look.outcome.outcome();
        self.turn.end(match self.goes_on {
            true => Ended::GoesOn,
            false if is_unseen || !outcome.failures.is_empty() => Ended::Unseen,
            false => Ended::Seen,
        });
        outcome
    }

    /// The descriptors that the look takes.
    pub fn descriptors(&self) -> Vec<RawFd> {
        [self.root.as_fd().as_raw_fd()].into_iter().chain(self.turn.descriptor()).collect()
    }

    /// Looks for repositories. What was closed during the run is named: it may hold some.
    fn search(&self, until: Instant, look: &mut Look) {
        let noticed = search::repositories(&self.root, self.since, until, |place| self.look(place, look));
        if noticed.too_many || look.seen.too_many {
            look.outcome.failures.push(format!(
                "cannot tell what git would execute in '{}': the run changed more directories than are looked into",
                shown(&self.workspace)
            ));
        }
        self.look_at_ways_out(&noticed.leading_out, look);
        for place in noticed.crowded {
            self.turn_away(&place, &Kind::Unclear, look);
        }
        let more = if noticed.more_closed { "' and more, which" } else { "', which" };
        for place in noticed.closed {
            look.outcome.failures.push(format!(
                "cannot tell what git would execute in '{}{more} cannot be looked into since this run: open it \
                 (chmod u+rx) and look at it before you use git there",
                shown(&self.workspace.join(place))
            ));
        }
    }

    /// Looks at a repository once. What many files and links lead to one after the other is not followed: git goes over
    /// one, and each is found by itself.
    fn look(&self, place: &Path, look: &mut Look) {
        if look.led < MOST_LED && look.seen.insert(&self.workspace.join(place)) {
            look.led += 1;
            self.look_at(place, look);
            look.led -= 1;
        }
    }

    /// Looks at a repository, and where a file or link in its place leads.
    fn look_at(&self, place: &Path, look: &mut Look) {
        let path = self.workspace.join(place);
        let is_protected = self.is_protected(&path);
        // A linked worktree's goes with its repository.
        let is_worktree = repository::is_worktree(&self.root, place);
        if is_worktree && let Some(common) = place.ancestors().nth(2) {
            self.look(common, look);
        }
        if !is_protected && !is_worktree && path.symlink_metadata().is_ok() {
            look.found.insert(&path);
        }
        let kind = self.kind(place);
        match &kind {
            Kind::Directory => {
                self.look_into(place, is_protected, look);
                if !is_worktree {
                    self.look_at_own(place, &path, look);
                }
            }
            Kind::Leads(target) if !is_for_submodules(&self.root, place) => match target
                .strip_prefix(&self.workspace)
            {
                Ok(below) => {
                    self.look(below, look);
                    self.look_at_conflicts(place, below, look);
                    let is_other = self.is_changed(place) || self.leads_elsewhere(place, &kind);
                    if is_other && (self.acts(below) || self.borrows(&path, target)) {
                        self.turn_away(place, &kind, look);
                    }
                }
                Err(_) if self.is_of_protected(target, path.parent()) && !self.borrows(&path, target) => {}
                Err(_) => self.turn_away(place, &kind, look),
            },
            Kind::Leads(_) | Kind::Unclear => self.turn_away(place, &kind, look),
            Kind::Nothing => {}
        }
    }

    /// Looks at what git keeps for itself in a repository.
    fn look_at_own(&self, place: &Path, path: &Path, look: &mut Look) {
        let own = match self.root.below(place) {
            Ok(own) => own,
            // A file that leads to one.
            Err(failed) if says_missing(&failed.cause) => return,
            // That is told of elsewhere.
            Err(_) => {
                look.indexes.has_unseen |= self.is_known(path);
                return;
            }
        };
        let opened = Opened { own: &own, place, path, new: self.new_of_git(path, &own) };
        self.look_at_indexes(&opened, look);
        self.look_at_states(&opened, look);
        self.look_at_links(&opened, look);
        self.look_at_alternates(&opened, look);
        self.look_at_remotes(&opened, look);
    }

    /// Looks at a repository's directory.
    fn look_into(&self, place: &Path, is_protected: bool, look: &mut Look) {
        let path = self.workspace.join(place);
        match is_protected {
            true => {
                let held = |place: &Path| self.holds(&path.join(place));
                let astray = |own: Directory| worktrees::came_astray(&own, self.times(&path), &held);
                for file in self.root.below(place).into_iter().flat_map(astray) {
                    let aside = look.put_aside(&self.root, &place.join(&file), &path.join(&file));
                    look.found_file(&path.join(file), FindingKind::FileMade, Vec::new(), aside);
                }
                // Hooks of linked worktrees that the command has added.
                let names = if self.has_new_worktrees(place) { self.led_to(&path, None) } else { Vec::new() };
                if !names.is_empty() {
                    let kind = FindingKind::RepositoryChanged;
                    let path = path.as_path().into();
                    look.outcome.findings.push(Finding { path, kind, names, put_aside: Vec::new() });
                }
            }
            false => {
                let was_absent = self.absent.contains(&place);
                let (before, had_network) = (self.known.get(&path), self.had_network);
                let left = Cell::new(MOST_REMOTES);
                let may_push = |address: &[u8]| {
                    left.replace(left.get().saturating_sub(1)) > 0 && self.may_push(address, &look.followed)
                };
                let may_push: Option<MayPush<'_>> = Some(&may_push);
                let known = Known { before, was_absent, tree: None, had_network, may_push };
                let judged = judge(&self.root, place, self.times(&path), known);
                let with_hooks = |judged: Judged| judged.with(|| self.hooks_inside(&path));
                self.conclude(place, judged.map(|judged| judged.map(with_hooks)), look);
            }
        }
    }

    /// Whether git would act on anything in a repository, however old it is: a new file leads to it. That the settings
    /// are protected says nothing of who wrote them, but in a `.git`: no clone brings one.
    fn acts(&self, place: &Path) -> bool {
        let is_open = |place: &Path| {
            let known = Known {
                was_absent: true,
                had_network: self.had_network,
                may_push: ANYWHERE,
                ..Known::default()
            };
            let times = Times { began: self.record.began, since: self.since };
            let judged = || judge(&self.root, place, times, known);
            let is_own = place.as_os_str().is_empty() || is_within_git(place);
            !(is_own && self.is_protected(&self.workspace.join(place)))
                && judged().is_ok_and(|judged| judged.is_some_and(|judged| !judged.names().is_empty()))
        };
        let common = place.ancestors().nth(2).filter(|_| repository::is_worktree(&self.root, place));
        is_open(place) || common.is_some_and(is_open)
    }

    fn is_changed(&self, place: &Path) -> bool {
        repository::ages(&self.root, place).is_ok_and(|ages| ages.changed >= self.since)
    }

    fn times(&self, path: &Path) -> Times {
        let began = self.record.began;
        let is_new = !self.order.contains_key(path) && !self.known.contains_key(path);
        let unrecorded = self.record.since.filter(|_| is_new);
        Times { began, since: unrecorded.unwrap_or(self.since).min(self.since) }
    }

    /// Whether a directory outside the workspace belongs to a protected repository, and git would act on nothing there
    /// that is new.
    fn is_of_protected(&self, target: &Path, tree: Option<&Path>) -> bool {
        let Some(common) = target.ancestors().find(|above| self.is_protected(above)) else { return false };
        let times = Times { began: self.record.began, since: self.since };
        let held = |place: &Path| self.holds(&common.join(place));
        let none_astray = |own: Directory| worktrees::came_astray(&own, times, &held).is_empty();
        let known = Known { tree, had_network: self.had_network, may_push: ANYWHERE, ..Known::default() };
        let own = Directory::open(Path::new("/"))
            .and_then(|root| judge(&root, from_root(target), times, known))
            .map(Option::unwrap_or_default);
        let is_plain =
            |judged: Result<Judged, SyscallError>| judged.is_ok_and(|judged| judged.names().is_empty());
        Directory::open(common).is_ok_and(none_astray) && (self.is_protected(target) || is_plain(own))
    }

    /// Whether an entry was not there at the start.
    fn is_made(&self, place: &Path) -> bool {
        let born = || repository::ages(&self.root, place).ok()?.born;
        self.absent.contains(&place) || born().is_some_and(|born| born >= self.record.began)
    }

    /// Whether mounts held a repository, or the file that leads to one, during this run.
    fn is_protected(&self, path: &Path) -> bool {
        let parts = [path.to_path_buf(), path.join(CONFIG), path.join("hgrc")];
        parts.iter().any(|part| self.holds(part) || self.holds_link(part))
    }

    /// Whether mounts held a link, and all behind it: then it leads where it has led.
    fn holds_link(&self, path: &Path) -> bool {
        let Some(layout) = self.layout.as_ref().filter(|layout| layout.links.contains_key(path)) else {
            return false;
        };
        let led = way(path);
        let is_kept = self.holds(&led.real) || !is_within(&led.real, &self.workspace);
        is_kept && led.links.iter().all(|link| layout.links.contains_key(link))
    }

    /// Whether a mount held what is at a path, or kept it from being made.
    fn holds(&self, path: &Path) -> bool {
        self.layout.as_ref().is_some_and(|layout| layout.shields(path) || layout.stands_in(path))
    }

    /// Acts on what was found of a repository that no mount held.
    fn conclude(&self, place: &Path, judged: Result<Option<Judged>, SyscallError>, look: &mut Look) {
        let path = self.workspace.join(place);
        let judged = match judged {
            Ok(Some(judged)) => judged,
            Ok(None) => return,
            // Closed. A `.git` that the command made is put aside as a whole.
            Err(_) if place.ends_with(".git") && self.is_made(place) => {
                return self.turn_away(place, &Kind::Directory, look);
            }
            Err(failed) => {
                let sentence = format!("cannot tell what git would execute in '{}': {failed}", shown(place));
                return look.outcome.failures.push(sentence);
            }
        };
        let mut names = judged.names();
        if names.is_empty() && !self.known.contains_key(&path) {
            names = self.led_to(&path, None);
        }
        if names.is_empty() {
            return;
        }
        let kind = if judged.is_made { FindingKind::RepositoryMade } else { FindingKind::RepositoryChanged };
        let mut finding = Finding { path: path.as_path().into(), kind, names, put_aside: Vec::new() };
        if judged.is_made || self.known.contains_key(&path) || self.was_recorded_meanwhile(&path) {
            let _mask = process::without_umask();
            match judged.put_aside(&self.root, place) {
                Ok(aside) => finding.put_aside = aside.iter().map(|name| name.as_os_str().into()).collect(),
                Err(failed) => look
                    .outcome
                    .failures
                    .push(format!("cannot put aside what git would execute in '{}': {failed}", shown(place))),
            }
        }
        look.outcome.findings.push(finding);
    }

    fn has_new_worktrees(&self, place: &Path) -> bool {
        self.is_changed(&place.join("worktrees"))
    }

    /// What the hooks and configuration of a repository lead to in the workspace, and no mount held: from this working
    /// tree, or its own.
    fn led_to(&self, own: &Path, top: Option<&Path>) -> Vec<Bytes> {
        let of_git = Repository::of_one(own, top, self.home.as_deref());
        repository::led_to(of_git, own, &self.workspace, self.times(own), |path| self.holds(path))
    }
}

/// Where no repository is in a workspace: in it, and in its place.
fn absent(workspace: &Path) -> Vec<&'static Path> {
    let all = [(".git", ".git"), (".hg", ".hg"), ("", "HEAD")];
    let missing = all.into_iter().filter(|(_, name)| !is_there(&workspace.join(name)));
    missing.map(|(place, _)| Path::new(place)).collect()
}
