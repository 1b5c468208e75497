//! Which repositories there are in a workspace, as runs have found them. Looking for them at each start would take
//! longer than the start; what is recorded is protected from the first moment on. The record lies where no command
//! can write: what a command does to the workspace takes nothing out of it.

use crate::digest;
use crate::host::Host;
use crate::plan::state;
use crate::sys::path::{Way, is_plain, is_there, says_missing, way};
use crate::sys::within::{is_below, is_within};
use crate::sys::{SyscallError, descriptor, file, plain};
use crate::text::shown;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::iter;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The repositories of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where they are recorded; `None` for a user without a home.
    pub file: Option<PathBuf>,
    /// What is recorded, in the order in which it was found: each a directory with a repository in it, or a file that
    /// leads to one.
    pub repositories: Vec<PathBuf>,
    /// When the first run began: what is older, no command made. `None` where nothing is recorded yet.
    pub since: Option<SystemTime>,
    /// What is older in the repositories that are recorded, and in the workspace's own, a look has seen: the time of
    /// the file's last change. `None` where nothing is recorded yet.
    pub looked: Option<SystemTime>,
    /// When this run began.
    pub began: SystemTime,
    /// The submodules that indexes were found to name, by the paths that they have there.
    pub submodules: Vec<PathBuf>,
    /// Those of them that are files which lead to one.
    pub pointers: Vec<PathBuf>,
    /// What this run's plan has found besides.
    pub found: BTreeSet<PathBuf>,
    /// Repositories outside the workspace that git writes to.
    pub outside: Vec<PathBuf>,
    /// The directory of all caches of runs, by a path that nobody has looked at.
    pub caches: Option<PathBuf>,
}

/// What a record's file says.
pub struct Recorded {
    /// When the first run began.
    pub since: Option<SystemTime>,
    /// See [`Record`].
    pub repositories: Vec<PathBuf>,
    /// See [`Record`].
    pub submodules: Vec<PathBuf>,
}

/// The directory of all records.
pub fn directory(host: &Host) -> Option<PathBuf> {
    state::directory(host, "workspaces")
}

/// The file of a workspace's record, where the user can have one.
pub fn file_of(workspace: &Path, host: &Host) -> Option<PathBuf> {
    let all = directory(host).filter(|_| state::is_own(host))?;
    Some(all.join(digest::short(workspace.as_os_str().as_bytes())))
}

/// The file that says that commands have been able to write in a directory that is nobody's workspace. Like a record it
/// is about what their links lead to; it lists nothing.
pub fn mark_of(directory: &Path, host: &Host) -> Option<PathBuf> {
    file_of(directory, host).map(|record| marked(&record))
}

fn marked(record: &Path) -> PathBuf {
    record.with_extension("opened")
}

impl Record {
    /// That of a workspace.
    pub fn of(workspace: &Path, host: &Host) -> io::Result<Record> {
        let none = Record {
            file: None,
            repositories: Vec::new(),
            since: None,
            looked: None,
            began: host.began,
            submodules: Vec::new(),
            pointers: Vec::new(),
            found: BTreeSet::new(),
            outside: Vec::new(),
            caches: state::caches(host),
        };
        let Some(file) = directory(host).map(|all| all.join(digest::short(workspace.as_os_str().as_bytes())))
        else {
            return Ok(none);
        };
        let (text, looked) = match read(&file) {
            Ok((text, changed)) => (text, Some(changed)),
            Err(_) if !state::is_own(host) => return Ok(none),
            Err(error) if says_missing(&error) => (Vec::new(), None),
            Err(error) => return Err(error),
        };
        let Recorded { since, repositories, submodules } = Record::parse(&text, workspace);
        Ok(Record { file: Some(file), repositories, submodules, since, looked, ..none })
    }

    /// The directories in which commands write what lasts and is in no workspace, by their real paths.
    pub fn of_runs(&self) -> Vec<PathBuf> {
        let kept = self.file.as_deref().and_then(Path::parent).and_then(Path::parent);
        let caches = self.caches.as_deref().map(|caches| way(caches).real);
        kept.map(Path::to_path_buf).into_iter().chain(caches).collect()
    }

    /// What a file says.
    pub fn parse(text: &[u8], workspace: &Path) -> Recorded {
        let mut parts = text.split(|byte| *byte == 0).map(OsStr::from_bytes);
        let since = parts.next().and_then(OsStr::to_str).and_then(|text| text.parse().ok());
        let since = since.map(|since| SystemTime::UNIX_EPOCH + Duration::from_nanos(since));
        let paths = parts.map(PathBuf::from).filter(|path| is_below(path, workspace));
        let (submodules, repositories) = paths.partition(|path| path.as_os_str().as_bytes().ends_with(b"/"));
        Recorded { since, repositories, submodules }
    }

    /// What is written to the file: nanoseconds since 1970, and the paths, each with a NUL after it. Those of
    /// submodules end with a slash.
    pub fn text<'a>(
        since: SystemTime,
        repositories: &[PathBuf],
        submodules: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Vec<u8> {
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
        let paths = repositories.iter().cloned().chain(submodules.into_iter().map(|path| path.join("")));
        let parts = iter::once(OsString::from(since)).chain(paths.map(PathBuf::into_os_string));
        parts.flat_map(|part| [part.as_bytes(), b"\0"].concat()).collect()
    }
}

/// A file's text, and when it was changed last.
fn read(path: &Path) -> io::Result<(Vec<u8>, SystemTime)> {
    let mut file = File::open(path)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok((text, file.metadata()?.modified()?))
}

/// Why a directory is not written to.
#[derive(Debug, thiserror::Error)]
pub enum Unopened {
    /// A command may have left a link that leads there.
    #[error(
        "a link in a directory where commands of runs write leads out of that, to '{}'; name that path itself if it is \
         meant", shown(.0)
    )]
    LedOut(PathBuf),
    /// Something is at its path now that was not there before.
    #[error("what leads to its directory has changed at this moment; try again")]
    Moved,
    /// A system call failed.
    #[error("cannot open its directory: {}", plain(&.0.cause))]
    Failed(SyscallError),
}

/// The workspaces of all runs, by their records, and the directories that rules let them write to, by their marks: of
/// each only a digest is there, so they can be asked for and not listed.
pub struct Workspaces<'h> {
    host: &'h Host,
    /// Where they are. Most starts meet no link, and need not know.
    records: OnceCell<Option<PathBuf>>,
    /// What runs keep for themselves.
    kept: OnceCell<Vec<PathBuf>>,
    /// What was found for directories.
    known: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
}

impl Workspaces<'_> {
    /// Those of this user's runs.
    pub fn of(host: &Host) -> Workspaces<'_> {
        Workspaces { host, records: OnceCell::new(), kept: OnceCell::new(), known: RefCell::default() }
    }

    /// Whether one of these links is in a workspace, and leads out of it.
    pub fn lead_out(&self, links: &[PathBuf], to: &Path) -> bool {
        let mut holding = links.iter().filter_map(|link| self.holding(link));
        holding.any(|workspace| !is_within(to, &workspace)) || self.lead_out_of_kept(links, to)
    }

    /// Whether one of them is in what runs keep for themselves, and leads out of it: homes, caches.
    fn lead_out_of_kept(&self, links: &[PathBuf], to: &Path) -> bool {
        !links.is_empty()
            && self
                .kept()
                .iter()
                .any(|kept| links.iter().any(|link| is_within(link, kept)) && !is_within(to, kept))
    }

    /// Where runs keep what lasts, and caches, by real paths.
    fn kept(&self) -> &[PathBuf] {
        self.kept.get_or_init(|| {
            let kept = directory(self.host).and_then(|records| Some(way(records.parent()?).real));
            kept.into_iter().chain(state::caches(self.host).map(|caches| way(&caches).real)).collect()
        })
    }

    /// Whether a link in one of them, or in a workspace of one's own, leads out of it.
    pub fn or_own_lead_out(&self, way: &Way, own: Option<&Path>) -> bool {
        own.is_some_and(|own| way.leads_out_of(own)) || self.lead_out(&way.links, &way.real)
    }

    /// Opens the directory of a file that `sbx` writes for its user. Over no link in one of them it is out of that.
    pub fn open_directory(&self, path: &Path) -> Result<OwnedFd, Unopened> {
        let way = way(&std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()));
        if self.lead_out(&way.links, &way.real) {
            return Err(Unopened::LedOut(way.real));
        }
        let directory = file::open_directory(path).map_err(Unopened::Failed)?;
        // A command of another run may change a link meanwhile.
        match descriptor::path_of(directory.as_raw_fd()) {
            Some(place) if place == way.real => Ok(directory),
            _ => Err(Unopened::Moved),
        }
    }

    /// Whether commands of runs may have written a file, or a link on the way to it: in a workspace, or in what runs
    /// keep for themselves. The directories of profiles are protected wherever they are.
    pub fn reach(&self, file: &Path) -> bool {
        let kept = self.kept();
        let is_kept = |path: &Path| kept.iter().any(|kept| is_within(path, kept));
        let way = way(file);
        let is_reached = |path: &Path| is_kept(path) || self.holding(path).is_some();
        let search = self.host.search();
        !(is_plain(file) && search.dirs.iter().any(|directory| is_within(file, directory)))
            && way.links.iter().chain([&way.real]).any(|path| is_reached(path))
    }

    /// The innermost one that has something of this name in it.
    pub fn holding(&self, path: &Path) -> Option<PathBuf> {
        let records = || directory(self.host).filter(|_| state::is_own(self.host));
        let (records, directory) = (self.records.get_or_init(records).as_ref()?, path.parent()?);
        if let Some(known) = self.known.borrow().get(directory) {
            return known.clone();
        }
        let is_one = |above: &&Path| {
            let record = records.join(digest::short(above.as_os_str().as_bytes()));
            is_there(&record) || is_there(&marked(&record))
        };
        let found = directory.ancestors().find(is_one).map(Path::to_path_buf);
        self.known.borrow_mut().insert(directory.to_path_buf(), found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;

    #[test]
    fn what_was_written_is_read_as_far_as_it_is_in_the_workspace() {
        let state = Scratch::create(None).unwrap();
        let variables = vec![("XDG_STATE_HOME".into(), state.path().into())];
        let host = Host::with_environment(variables);
        let workspace = Path::new("/work");
        let none = Record::of(workspace, &host).unwrap();
        assert!(none.repositories.is_empty() && none.since.is_none());
        let file = none.file.unwrap();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let since = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789);
        let paths = ["/work/a/.git", "/work/line\nbreak/.git", "/worker/.git", "/work", "/etc/.git"];
        std::fs::write(&file, Record::text(since, &paths.map(PathBuf::from), &[PathBuf::from("/work/s")]))
            .unwrap();
        let kept = Record::of(workspace, &host).unwrap();
        assert_eq!(kept.since, Some(since));
        assert_eq!(kept.repositories, ["/work/a/.git", "/work/line\nbreak/.git"].map(PathBuf::from));
        assert_eq!(kept.submodules, [PathBuf::from("/work/s")]);
        assert!(Record::of(Path::new("/worker"), &host).unwrap().repositories.is_empty());
        // Whatever cannot be read may have held something.
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(Record::of(workspace, &host).is_err());
    }

    #[test]
    fn a_user_without_a_home_has_none() {
        let host = Host::with_environment(Vec::new());
        let record = Record::of(Path::new("/work"), &host).unwrap();
        assert!(record.file.is_none() && record.repositories.is_empty());
    }
}
