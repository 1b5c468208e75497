//! What has to be made before a plan can be completed, and what came of it. The plan itself makes nothing.

use crate::plan::by_proxy::At;
use crate::plan::home::PrivateHome;
use crate::profile::{Profile, Source};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a control group limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
}

/// What a run needs made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// A scratch directory, removed afterwards.
    pub scratch: bool,
    /// Whether it takes the place of /tmp, and no process uses it after the run: then it may be anywhere.
    pub is_tmp: bool,
    /// A directory for tool caches.
    pub cache: Option<CacheOf>,
    /// A home of the run's own.
    pub home: Option<HomeOf>,
    /// A control group, as far as this user may make one.
    pub group: Option<GroupLimits>,
    /// The file that says since when commands have run in the workspace. It is there before the first one starts.
    pub record: Option<PathBuf>,
    /// Files that say of directories that commands write there. They are there before the first one starts.
    pub marks: Vec<PathBuf>,
    /// A proxy on loopback.
    pub proxy: bool,
}

/// What was made, and found out on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provided {
    /// The scratch directory, by its real path.
    pub scratch: Option<PathBuf>,
    /// The directory for tool caches, by its real path.
    pub cache: Option<PathBuf>,
    /// The home of the run's own.
    pub home: Option<PrivateHome>,
    /// What the control group limits.
    pub group: GroupLimits,
    /// Where the proxy is.
    pub proxy: Option<At>,
    /// Whether the supervisor can look at the memory of the run; asked only where nothing else limits that.
    pub watches_memory: bool,
    /// What is less than it should be.
    pub warnings: Vec<String>,
}

/// Which home a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeOf {
    /// Where it is inside.
    pub at: PathBuf,
    /// Where it is outside; `None` for one that is removed when the run ends.
    pub directory: Option<PathBuf>,
    /// Whose it is.
    pub owner: CacheOf,
}

/// Whose tool caches or home a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOf {
    /// Without a workspace they do not last.
    pub workspace: Option<PathBuf>,
    /// The profile: what a run of a narrow one puts there, a run of another one does not read.
    pub profile: OsString,
}

impl CacheOf {
    /// Of the runs of a profile in a workspace.
    pub fn of(profile: &Profile, workspace: Option<&Path>) -> CacheOf {
        let profile = match &profile.source {
            Source::BuiltIn => profile.name.to_string().into(),
            Source::File(path) => path.into(),
        };
        CacheOf { workspace: workspace.map(Path::to_path_buf), profile }
    }
}
