//! UNIX sockets outside that the command may connect to.

use crate::error::Refusal;
use crate::plan::Inputs;
use crate::plan::files::{existing, inside};
use crate::plan::namespaces::Workspaces;
use crate::profile::Variables;
use crate::sys::path::canonical;
use crate::sys::plain;
use crate::sys::within::is_within;
use crate::text::shown;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The socket files that `--unix` and the profile name, as they are found when the command starts.
pub fn named(
    Inputs { request, profile, directory, host, .. }: &Inputs<'_>,
    variables: &Variables<'_>,
) -> Result<Vec<PathBuf>, Refusal> {
    let others = Workspaces::of(host);
    let mut sockets = Vec::with_capacity(request.unix.len() + profile.network.unix.len());
    for path in &request.unix {
        let real =
            existing(path, directory).and_then(|_| inside(&directory.join(path), variables, &others))?;
        let cannot = |cause| Refusal::new(format!("cannot allow the socket '{}': {cause}", shown(path)));
        sockets.push(socket(real).map_err(cannot)?);
    }
    for entry in profile.network.unix.iter() {
        let cannot = |cause: String| {
            let named = entry.value.to_string();
            let named = shown(Path::new(&named));
            Refusal::new(format!("cannot allow the socket '{named}' ({}): {cause}", *entry.origin))
        };
        let path = entry
            .expand_path(variables)
            .ok_or_else(|| cannot("its variable stands for nothing in this run".into()))?;
        path.metadata().map_err(|e| cannot(plain(&e)))?;
        sockets.push(socket(inside(&path, variables, &others)?).map_err(cannot)?);
    }
    Ok(sockets)
}

/// A real path, if a socket is there: whatever is mounted for the run can be read.
fn socket(real: PathBuf) -> Result<PathBuf, String> {
    match real.symlink_metadata().map_err(|error| plain(&error))?.file_type() {
        kind if kind.is_socket() => Ok(real),
        kind if kind.is_dir() => Err("it is a directory; name the sockets in it".into()),
        _ => Err("it is no socket".into()),
    }
}

/// Without those that are denied: who connects in the command's place goes by the names that are allowed.
pub fn but_denied(mut sockets: Vec<PathBuf>, denied: &[PathBuf], warnings: &mut Vec<String>) -> Vec<PathBuf> {
    for above in denied {
        let place = canonical(above);
        for socket in sockets.extract_if(.., |socket| is_within(socket, &place)) {
            let (socket, above) = (shown(&socket), shown(above));
            warnings.push(format!(
                "the socket '{socket}' stays denied, because '{above}' is, and a denial always wins"
            ));
        }
    }
    sockets
}
