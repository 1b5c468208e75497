//! Variables that stand in for flags of `sbx run`. A flag outranks its variable; a variable that is set and means
//! nothing is a mistake like any other.

use crate::error::Refusal;
use crate::host::Host;
use crate::profile;
use crate::request::Request;
use crate::sys::path;
use crate::text::escape;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The profile where no flag names one.
pub const PROFILE: &str = "SBX_PROFILE";
/// How much is said where no flag says so.
pub const LOG: &str = "SBX_LOG";

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

/// Refuses a profile that lies in the workspace and that only [`PROFILE`] names: commands write there, and tools take
/// variables from what they find there (`.env`).
pub fn check_place(request: &Request, host: &Host, workspace: Option<&Path>) -> Result<(), Refusal> {
    let by_flag = request.profile.is_some() || request.dangerously_unconfined;
    let file = host.variable(PROFILE).filter(|name| !by_flag && profile::is_path(name));
    let Some((file, workspace)) = file.zip(workspace) else { return Ok(()) };
    // The profile has been read, so it has a path.
    let place = path::way(&host.directory().unwrap_or(Path::new("/")).join(file));
    if place.passes(workspace) {
        let file = escape(file.as_bytes(), 400);
        return Err(Refusal::new(format!(
            "refused to use '{file}', which {PROFILE} names: it is in the workspace, or reached by a link \
             there, where commands may change it; name it with --profile if it is meant"
        )));
    }
    Ok(())
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
        b"quiet" if request.explain || request.log_violations => Ok(Loudness::Normal),
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
