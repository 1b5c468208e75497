//! Private homes: where they are kept, and whether what a run adds to the packages of a home is kept apart.

use crate::enforce::home::refuses_overlays;
use crate::enforce::scratch::Scratch;
use crate::host::Host;
use crate::plan::{home, state};
use crate::selftest::status::namespaces::enter;
use crate::selftest::status::trial::{Attempt, Fault, State};
use crate::sys::namespace::Kinds;
use crate::sys::{SyscallError, mount, overlay, plain};
use crate::text::shown;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Lays a directory over another one, where homes are kept, and adds a file.
pub fn overlay() -> Attempt {
    let host = Host::of_this_process();
    let Some(homes) = home::directory(&host).filter(|_| state::is_own(&host)) else {
        return Err(Fault::new(
            State::Untried,
            "homes do not last: the user has no directory to keep them in",
        ));
    };
    let beside = homes.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    let refused =
        |why: &dyn std::fmt::Display| Fault::new(State::Refused, format!("'{}': {why}", shown(beside)));
    if let Some(why) = refuses_overlays(beside) {
        return Err(refused(&why));
    }
    let scratch = Scratch::create(Some(beside.as_os_str())).map_err(|failed| refused(&failed))?;
    let layers = Layers::below(scratch.path()).map_err(|error| refused(&plain(&error)))?;
    enter(&host, Kinds { user: !host.administrator.get(), view: true, network: false }, || layers.lay())?;
    if layers.upper.join(ADDED).exists() && !layers.lower.join(ADDED).exists() {
        return Ok(format!("what a run adds to packages is kept in '{}'", shown(&homes)));
    }
    Err(refused(&"what was added is not where it is to be kept"))
}

/// Where homes are kept.
pub fn facts() -> Vec<(&'static str, Value)> {
    let host = Host::of_this_process();
    let homes = home::directory(&host).filter(|_| state::is_own(&host));
    vec![("homes", json!(homes.map(|path| path.to_string_lossy().into_owned())))]
}

/// The name of the file that is added.
const ADDED: &str = "added";

struct Layers {
    lower: PathBuf,
    upper: PathBuf,
    work: PathBuf,
}

impl Layers {
    fn below(top: &Path) -> std::io::Result<Layers> {
        // As in a run, where it is the home that another directory is laid over, and homes are kept in it.
        let layers = Layers { lower: top.to_path_buf(), upper: top.join("upper"), work: top.join("work") };
        for path in [&layers.upper, &layers.work] {
            fs::create_dir(path)?;
        }
        Ok(layers)
    }

    /// In the namespaces.
    fn lay(&self) -> Result<(), SyscallError> {
        let place = File::open(&self.lower).map_err(|cause| SyscallError { call: "open", cause })?;
        mount::separate()?;
        let layers = overlay::Layers::new(&self.lower, &self.upper, &self.work)?;
        layers.hold()?.lay()?.cover(place.as_fd())?;
        let added = fs::write(self.lower.join(ADDED), "x");
        added.map_err(|cause| SyscallError { call: "write", cause })
    }
}
