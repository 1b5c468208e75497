//! Variables that stand in for flags of `sbx run`. A flag outranks its variable; a variable that is set and means
//! nothing is a mistake like any other.

use super::Run;
use crate::refusal::Refusal;
use crate::supervise::decode::escape;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

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
