//! What has to be made before a plan can be completed, and what came of it. The plan itself makes nothing.

use std::ffi::OsString;
use std::path::PathBuf;

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
    /// A directory for tool caches.
    pub cache: Option<CacheOf>,
    /// A control group, as far as this user may make one.
    pub group: Option<GroupLimits>,
    /// The file that says since when commands have run in the workspace. It is there before the first one starts.
    pub record: Option<PathBuf>,
}

/// What was made, and found out on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provided {
    /// The scratch directory, by its real path.
    pub scratch: Option<PathBuf>,
    /// The directory for tool caches, by its real path.
    pub cache: Option<PathBuf>,
    /// What the control group limits.
    pub group: GroupLimits,
    /// Whether the supervisor can look at the memory of the run; asked only where nothing else limits that.
    pub watches_memory: bool,
    /// What is less than it should be.
    pub warnings: Vec<String>,
}

/// Whose tool caches a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOf {
    /// Without a workspace they do not last.
    pub workspace: Option<PathBuf>,
    /// The profile: what a run of a narrow one puts there, a run of another one does not read.
    pub profile: OsString,
}
