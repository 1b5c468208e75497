//! Variables that stand in for flags of `sbx run`. A flag outranks its variable; a variable that is set and means
//! nothing is a mistake like any other.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::{Inputs, writable_roots};
use crate::profile::Profile;
use crate::request::Request;
use crate::text::{escape, shown};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The profile where no flag names one.
pub const PROFILE: &str = "SBX_PROFILE";
/// How much is said where no flag says so.
pub const LOG: &str = "SBX_LOG";

/// What is said to `sbx-shell`: the flags of its run, and the shell inside. No command inherits them: a shell inside
/// would make a run of its own, with paths that are another's.
pub const SHELL_FLAGS: &str = "SBX_SHELL_FLAGS";
/// See [`SHELL_FLAGS`].
pub const SHELL_PROGRAM: &str = "SBX_SHELL_PROGRAM";

/// How much is said on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loudness {
    /// Errors.
    Quiet,
    /// And violations.
    #[default]
    Normal,
    /// And what is enforced, and how it ended.
    Verbose,
}

/// Refuses a profile that lies in the workspace, or one of its parents does, and that only [`PROFILE`] names: commands
/// write there, and tools take variables from what they find there (`.env`).
pub fn check_place(inputs: &Inputs<'_>, workspace: Option<&Path>) -> Result<(), Refusal> {
    let Inputs { request, host, profile, .. } = inputs;
    let by_flag = request.profile.is_some() || request.dangerously_unconfined;
    let named = host.variable(PROFILE).filter(|_| !by_flag && !profile.files.is_empty());
    let Some(named) = named else { return Ok(()) };
    // The profile has been read, so it has a path.
    let directory = host.directory().unwrap_or(Path::new("/"));
    let by = (named, PROFILE, "name it with --profile if it is meant");
    is_out_of_reach(by, profile, (directory, host), workspace.as_slice())
}

/// Refuses a profile with a file that commands may have written, which a variable names: those of this run, in these
/// directories, or those of others.
pub fn is_out_of_reach(
    (named, variable, instead): (&OsStr, &str, &str),
    profile: &Profile,
    (directory, host): (&Path, &Host),
    roots: &[&Path],
) -> Result<(), Refusal> {
    let found = match writable_roots::profile_below(profile, directory, roots) {
        Some((file, root)) if roots.first() == Some(&root) => {
            Some((file, "in the workspace, or reached by a link there, where commands may change it"))
        }
        Some((file, _)) => {
            Some((file, "in a directory, or reached by a link there, where commands may change it"))
        }
        None => {
            let place = "where commands of other runs may have written it, or a link on the way there";
            writable_roots::profile_reached(profile, directory, host).map(|file| (file, place))
        }
    };
    let Some((file, place)) = found else { return Ok(()) };
    Err(Refusal::new(format!(
        "refused to use the profile '{}', which {variable} names: '{}' is {place}; {instead}",
        escape(named.as_bytes(), 400),
        shown(file)
    )))
}

/// What the flags say, or else [`LOG`].
pub fn loudness(request: &Request, host: &Host) -> Result<Loudness, Refusal> {
    if request.quiet {
        return Ok(Loudness::Quiet);
    }
    if request.verbose {
        return Ok(Loudness::Verbose);
    }
    let Some(word) = host.variable(LOG) else { return Ok(Loudness::Normal) };
    match word.as_bytes() {
        // These flags ask for lines.
        b"quiet" if request.explain || request.lists_violations() => Ok(Loudness::Normal),
        b"quiet" => Ok(Loudness::Quiet),
        b"normal" => Ok(Loudness::Normal),
        b"verbose" => Ok(Loudness::Verbose),
        other => {
            let other = escape(other, 100);
            Err(Refusal::new(format!(
                "invalid value '{other}' for {LOG}: expected one of quiet, normal, verbose; set it to one of them \
                 or unset it"
            )))
        }
    }
}
