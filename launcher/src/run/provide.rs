//! Makes what a plan needs before it can be completed: the scratch directory, the tool caches, the control group.

use crate::enforce::cgroup::{self, Group};
use crate::enforce::home::{self, Held};
use crate::enforce::home_copies;
use crate::enforce::replaced;
use crate::enforce::scratch::{self, Scratch};
use crate::error::{Refusal, cannot};
use crate::host::Host;
use crate::plan::home::PrivateHome;
use crate::plan::namespaces::record::Workspaces;
use crate::plan::namespaces::renewed::SHARED_MEMORY;
use crate::plan::namespaces::{Record, Unavailable};
use crate::plan::{CacheOf, Draft, HomeOf, Needs, Provided};
use crate::run::proxy;
use crate::supervise::memory;
use crate::sys::ahead::Ahead;
use crate::sys::path::is_there;
use crate::sys::{OfCall, access, file, plain, process};
use crate::text::shown;
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
    /// The sockets of the proxy.
    pub proxy: Option<proxy::Sockets>,
}

/// Makes it. What takes long, the helper does while the rest is planned.
pub fn provide(
    draft: &Draft<'_>,
    host: &Host,
    unavailable: &Unavailable,
    ahead: Option<&Ahead>,
) -> Result<(Resources, Provided), Refusal> {
    let needs = draft.needs();
    let mut provided = Provided::default();
    let mut resources = Resources::default();
    match &needs.home {
        Some(of) => make_home(of, &needs, host, unavailable, (&mut resources, &mut provided))?,
        None if needs.scratch => {
            let scratch = Scratch::create(host.variable("TMPDIR"))?;
            provided.scratch = Some(scratch.path().to_path_buf());
            resources.scratch = Some(scratch);
        }
        None => {}
    }
    if let Some((ahead, home)) = ahead.zip(provided.home.as_ref()) {
        lay_ahead(ahead, home);
    }
    if let Some(of) = &needs.cache {
        provided.cache = cache(of, resources.scratch.as_ref(), host, &mut provided.warnings);
    }
    if let Some(record) = needs.record.filter(|record| !is_there(record)) {
        // When the first command began: whatever it makes is younger, even if nobody can look afterwards. Where that
        // fails, the end of the run says so.
        let _ = create(&record, &Record::text(host.began, &[], &[]));
    }
    for mark in needs.marks.iter().filter(|mark| !is_there(mark)) {
        if let Err(error) = create(mark, &[]) {
            let (mark, why) = (shown(mark), plain(&error));
            provided.warnings.push(format!(
                "warning: cannot write down in '{mark}' where commands write: later runs trust links there: {why}"
            ));
        }
    }
    if needs.proxy {
        let (sockets, at) = proxy::take()?;
        (resources.proxy, provided.proxy) = (Some(sockets), Some(at));
    }
    resources.group = needs.group.and_then(cgroup::create);
    provided.group = resources.group.as_ref().map(|group| group.limits).unwrap_or_default();
    // After everything that is made: what is listed from here on is what the plan is about.
    refresh_copies(draft, &mut provided);
    provided.watches_memory = draft.watches_memory(provided.group) && memory::can_be_watched();
    Ok((resources, provided))
}

/// Has the overlay of a home's stores laid. Where no run has had one there are no layers yet, and none is laid.
fn lay_ahead(ahead: &Ahead, home: &PrivateHome) {
    let layers = home.layers.as_deref().and_then(|own| replaced::layers(&home.at, own).ok());
    layers.into_iter().for_each(|layers| ahead.lay(layers));
}

/// Copies the settings anew that have changed.
pub fn refresh_copies(draft: &Draft<'_>, provided: &mut Provided) {
    if let Some(home) = &provided.home {
        let _mask = process::without_umask();
        let (copies, variables, listings) = draft.copies();
        let (real_home, workspaces) = (&*home.at, &Workspaces::of(draft.host()));
        let all = home_copies::All { copies, variables: &variables, real_home, listings, workspaces };
        let said = home_copies::refresh(all, &home.directory, &home.directory.with_file_name(home::STAMPS));
        provided.warnings.extend(said);
    }
}

/// Makes a record, or a mark beside them.
fn create(record: &Path, text: &[u8]) -> io::Result<()> {
    let _mask = process::without_umask();
    DirBuilder::new().recursive(true).mode(0o700).create(record.parent().unwrap_or(record))?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(record);
    match file {
        Ok(file) => file::write_all(file.as_fd(), text).map_err(|failed| failed.cause),
        // Another run was first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
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

/// The home of the run's own, and a directory for temporary files. As far as that takes the place of /tmp, it is one
/// that is there already beside a home that lasts, and in memory beside a home in memory. A home that can be made
/// nowhere else is in the scratch directory, of which another part takes the place of /tmp then.
fn make_home(
    of: &HomeOf,
    needs: &Needs,
    host: &Host,
    unavailable: &Unavailable,
    (resources, provided): (&mut Resources, &mut Provided),
) -> Result<(), Refusal> {
    // Whatever mask the caller has, the user may enter these directories.
    let _mask = process::without_umask();
    let tmpdir = host.variable("TMPDIR");
    let is_tmp = needs.is_tmp && tmpdir.is_none();
    let lasting = of.directory.as_ref().map(|_| home::make(of, unavailable.overlays.as_deref()));
    let (home, tmp) = match lasting.transpose() {
        Ok(Some((home, held))) => {
            let layers = home.layers.as_deref().zip(held.of_layers()).filter(|_| is_tmp);
            let tmp = layers.and_then(|(layers, lock)| Scratch::again(layers, lock));
            resources.home = held;
            (Some(home), tmp.map(|tmp| (tmp.path().to_path_buf(), tmp)).unzip())
        }
        Ok(None) => {
            resources.in_memory = memory_for(of, host);
            let memory = resources.in_memory.as_ref();
            let tmp = memory.filter(|_| is_tmp).map(tmp_in).transpose()?;
            (memory.map(|memory| home::make_temporary(of, memory.path())).transpose()?, (tmp, None))
        }
        Err(error) => {
            provided.warnings.push(format!("the home of this run does not last beyond it: {error}"));
            (None, (None, None))
        }
    };
    (provided.home, (provided.scratch, resources.scratch)) = (home, tmp);
    if provided.scratch.is_none() {
        let scratch = Scratch::create(tmpdir)?;
        provided.scratch = Some(scratch.path().to_path_buf());
        if provided.home.is_none() {
            provided.scratch = Some(tmp_in(&scratch)?);
            provided.home = Some(home::make_temporary(of, scratch.path())?);
        }
        resources.scratch = Some(scratch);
    }
    Ok(())
}

/// The part of a scratch directory that takes the place of /tmp.
fn tmp_in(scratch: &Scratch) -> Result<PathBuf, Refusal> {
    let tmp = scratch.path().join(scratch::TMP);
    let made = DirBuilder::new().mode(0o700).create(&tmp);
    made.of("mkdir").map_err(cannot("make a directory for temporary files"))?;
    Ok(tmp)
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
