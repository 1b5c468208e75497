//! Makes what a plan needs before it can be completed: the scratch directory, the tool caches, the control group.

use crate::enforce::cgroup::{self, Group};
use crate::enforce::scratch::{self, Scratch};
use crate::error::Refusal;
use crate::host::Host;
use crate::plan::{CacheOf, Draft, Provided};
use crate::supervise::memory;
use crate::sys::plain;
use std::path::PathBuf;

/// What was made. Dropped, it is gone again, but for the caches.
#[derive(Default)]
pub struct Resources {
    /// The scratch directory.
    pub scratch: Option<Scratch>,
    /// The control group.
    pub group: Option<Group>,
}

/// Makes it.
pub fn provide(draft: &Draft<'_>, host: &Host) -> Result<(Resources, Provided), Refusal> {
    let needs = draft.needs();
    let mut provided = Provided::default();
    let scratch = needs.scratch.then(|| Scratch::create(host.variable("TMPDIR"))).transpose()?;
    provided.scratch = scratch.as_ref().map(|scratch| scratch.path().to_path_buf());
    if let Some(of) = &needs.cache {
        provided.cache = cache(of, scratch.as_ref(), host, &mut provided.warnings);
    }
    let group = needs.group.and_then(cgroup::create);
    provided.group = group.as_ref().map(|group| group.limits).unwrap_or_default();
    provided.watches_memory = draft.watches_memory(provided.group) && memory::can_be_watched();
    Ok((Resources { scratch, group }, provided))
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
