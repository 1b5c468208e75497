//! Variables that stand in for flags of `sbx run`. A flag outranks its variable; a variable that is set and means
//! nothing is a mistake like any other.

use super::Run;
use crate::profile;
use crate::refusal::Refusal;
use crate::supervise::decode::escape;
use crate::sys::path;
use std::ffi::OsString;
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

/// The profile that [`PROFILE`] names.
pub fn profile() -> Option<OsString> {
    std::env::var_os(PROFILE)
}

/// Refuses a profile that lies in the workspace and that only [`PROFILE`] names: commands write there, and tools take
/// variables from what they find there (`.env`).
pub fn check_place(flags: &Run, workspace: Option<&Path>) -> Result<(), Refusal> {
    let by_flag = flags.profile.is_some() || flags.dangerously_unconfined;
    let file = profile().filter(|name| !by_flag && profile::is_path(name));
    let Some((file, workspace)) = file.zip(workspace) else { return Ok(()) };
    // The profile has been read, so it has a path.
    let place = std::path::absolute(&file).map(|path| path::way(&path)).unwrap_or_default();
    if place.passes(workspace) {
        let file = escape(file.as_bytes(), 400);
        return Err(Refusal::new(format!(
            "refused to use '{file}', which {PROFILE} names: it is in the workspace, or reached by a link there, where commands may change it; name it with --profile if it is meant"
        )));
    }
    Ok(())
}

/// What the flags say, or else [`LOG`].
pub fn loudness(flags: &Run) -> Result<Loudness, Refusal> {
    if flags.quiet {
        return Ok(Loudness::Quiet);
    }
    if flags.verbose {
        return Ok(Loudness::Verbose);
    }
    let Some(word) = std::env::var_os(LOG) else { return Ok(Loudness::Normal) };
    match word.as_bytes() {
        // These flags ask for lines.
        b"quiet" if flags.explain || flags.log_violations => Ok(Loudness::Normal),
        b"quiet" => Ok(Loudness::Quiet),
        b"normal" => Ok(Loudness::Normal),
        b"verbose" => Ok(Loudness::Verbose),
        other => {
            let other = escape(other, 100);
            Err(Refusal::new(format!(
                "'{other}' is no value for {LOG}: it is one of quiet, normal, verbose; set it to one of them or unset it"
            )))
        }
    }
}
