//! Makes what a plan needs before it can be completed: the scratch directory, the tool caches, the control group.

use crate::enforce::cgroup::{self, Group};
use crate::enforce::home::{self, Held};
use crate::enforce::home_copies;
use crate::enforce::scratch::{self, Scratch};
use crate::error::{Refusal, cannot};
use crate::host::Host;
use crate::plan::home::PrivateHome;
use crate::plan::namespaces::renewed::SHARED_MEMORY;
use crate::plan::namespaces::{Record, Unavailable};
use crate::plan::{CacheOf, Draft, HomeOf, Provided};
use crate::supervise::memory;
use crate::sys::path::is_there;
use crate::sys::{OfCall, access, file, plain, process};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What was made. Dropped, it is gone again, but for the caches.
#[derive(Default)]
pub struct Resources {
    /// The scratch directory.
    pub scratch: Option<Scratch>,
    /// One in memory, for a home that does not last.
    pub in_memory: Option<Scratch>,
    /// The control group.
    pub group: Option<Group>,
    /// The locks on the home.
    pub home: Held,
}

/// Makes it.
pub fn provide(
    draft: &Draft<'_>,
    host: &Host,
    unavailable: &Unavailable,
) -> Result<(Resources, Provided), Refusal> {
    let needs = draft.needs();
    let mut provided = Provided::default();
    let scratch = needs.scratch.then(|| Scratch::create(host.variable("TMPDIR"))).transpose()?;
    provided.scratch = scratch.as_ref().map(|scratch| scratch.path().to_path_buf());
    let (mut home, mut in_memory) = (Held::default(), None);
    if let (Some(of), Some(scratch)) = (&needs.home, &scratch) {
        // Whatever mask the caller has, the user may enter these directories.
        let _mask = process::without_umask();
        in_memory = memory_for(of, host);
        let (made, held) = make_home(of, scratch, in_memory.as_ref(), unavailable, &mut provided)?;
        let (copies, variables) = draft.copies();
        let stamps = made.directory.with_file_name(home::STAMPS);
        let said = home_copies::refresh(copies, &variables, &made.at, &made.directory, &stamps);
        provided.warnings.extend(said);
        home = held;
        provided.home = Some(made);
    }
    if let Some(of) = &needs.cache {
        provided.cache = cache(of, scratch.as_ref(), host, &mut provided.warnings);
    }
    if let Some(record) = needs.record.filter(|record| !is_there(record)) {
        // Where that fails, the end of the run says so.
        let _ = begin(&record, host);
    }
    let group = needs.group.and_then(cgroup::create);
    provided.group = group.as_ref().map(|group| group.limits).unwrap_or_default();
    provided.watches_memory = draft.watches_memory(provided.group) && memory::can_be_watched();
    Ok((Resources { scratch, in_memory, group, home }, provided))
}

/// Writes down when the first command began: whatever it makes is younger, even if nobody can look afterwards.
fn begin(record: &Path, host: &Host) -> io::Result<()> {
    let _mask = process::without_umask();
    DirBuilder::new().recursive(true).mode(0o700).create(record.parent().unwrap_or(record))?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(record)?;
    file::write_all(file.as_fd(), &Record::text(host.began, &[])).map_err(|failed| failed.cause)
}

/// A directory in memory for a home that is not to last: all that is in it is made at the start and removed at the end
/// of each run, which takes milliseconds on a disk. `None` where the user has chosen a place, or there is little room.
fn memory_for(of: &HomeOf, host: &Host) -> Option<Scratch> {
    /// As much as a build may need.
    const ROOM: u64 = 1 << 30;
    let wanted = of.directory.is_none() && host.variable("TMPDIR").is_none();
    let shared = Path::new(SHARED_MEMORY);
    let usable = wanted && access::is_memory_with_room(shared, ROOM);
    usable.then(|| Scratch::create(Some(shared.as_os_str())).ok()).flatten()
}

/// The home of the run's own. One that cannot last is made in memory, or else in the scratch directory, of which
/// another part takes the place of /tmp then.
fn make_home(
    of: &HomeOf,
    scratch: &Scratch,
    in_memory: Option<&Scratch>,
    unavailable: &Unavailable,
    provided: &mut Provided,
) -> Result<(PrivateHome, Held), Refusal> {
    let no_layers = unavailable.overlays.as_deref();
    if of.directory.is_some() {
        match home::make(of, no_layers) {
            Ok(made) => return Ok(made),
            Err(error) => {
                provided.warnings.push(format!("the home of this run does not last beyond it: {error}"));
            }
        }
    }
    if let Some(memory) = in_memory {
        return Ok((home::make_temporary(of, memory.path())?, Held::default()));
    }
    let tmp = scratch.path().join(scratch::TMP);
    let made = DirBuilder::new().mode(0o700).create(&tmp);
    made.of("mkdir").map_err(cannot("make a directory for temporary files"))?;
    provided.scratch = Some(tmp);
    Ok((home::make_temporary(of, scratch.path())?, Held::default()))
}

/// The tool caches. Where they cannot be made they are part of the scratch directory, and do not last.
fn cache(
    of: &CacheOf,
    scratch: Option<&Scratch>,
    host: &Host,
    warnings: &mut Vec<String>,
) -> Option<PathBuf> {
    let (cache_home, home) = (host.variable("XDG_CACHE_HOME"), host.variable("HOME"));
    let workspace = of.workspace.as_deref();
    match workspace.map(|workspace| scratch::cache(cache_home, home, workspace, &of.profile)) {
        Some(Ok(path)) => return Some(path),
        Some(Err(error)) => {
            warnings.push(format!("tool caches do not last beyond this run: {}", plain(&error)));
        }
        None => {}
    }
    let inside = scratch?.path().join(scratch::CACHE);
    std::fs::create_dir(&inside).is_ok().then_some(inside)
}
