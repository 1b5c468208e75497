//! What a run is planned from: the request, the machine, the profile, and the program.

use crate::error::{EndsRun, Refusal};
use crate::host::Host;
use crate::plan::{directories, validation, variables};
use crate::profile::{self, Profile, ProfileError, Search};
use crate::program::{self, Program, ProgramError};
use crate::request::Request;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The shell that starts what only a home of the run's own has.
const SHELL: &str = "/bin/sh";

/// What is executed at first, and why that is not the command.
pub type Found = (Program, Option<ProgramError>);

/// The inputs of one plan.
pub struct Inputs<'a> {
    /// What is asked.
    pub request: &'a Request,
    /// What was found on this machine.
    pub host: &'a Host,
    /// The profile, merged with its parents.
    pub profile: Profile,
    /// The file of the command; none of it is known where the policy is only asked about.
    pub program: Program,
    /// Why it was not found. It may be in a home of the run's own, where a shell finds it, which `program` is then.
    pub missing: Option<ProgramError>,
    /// Where the command starts.
    pub directory: PathBuf,
    /// Whether the calling process confines itself, instead of starting a command.
    pub itself: bool,
}

impl<'a> Inputs<'a> {
    /// Reads the profile, and looks at the program. A request without a command is a question about the policy.
    pub fn read(request: &'a Request, host: &'a Host) -> Result<Inputs<'a>, Refusal> {
        Inputs::with(request, host, |directory| match request.command.first() {
            Some(command) => Ok(find_program(command, host, directory)?),
            None => Ok((Program::default(), None)),
        })
    }

    /// The same for a program that somebody finds in the directory where the command starts.
    pub fn with(
        request: &'a Request,
        host: &'a Host,
        find: impl FnOnce(&Path) -> Result<Found, Refusal>,
    ) -> Result<Inputs<'a>, Refusal> {
        validation::contradictions(request)?;
        let profile = load_profile(request, host)?;
        validation::unconfined_on_purpose(request, &profile)?;
        let directory = directories::working_directory(request, host)?;
        let (program, missing) = find(&directory)?;
        Ok(Inputs { request, host, profile, program, missing, directory, itself: false })
    }

    /// Whether the policy is only asked about: nothing is started, nothing has to be made.
    pub fn asks(&self) -> bool {
        self.request.command.is_empty()
    }

    /// The command as it was typed.
    pub fn command(&self) -> &'a OsStr {
        self.request.command.first().map_or(OsStr::new(""), OsString::as_os_str)
    }
}

/// The profile that flags, the variable or the user name.
pub fn load_profile(request: &Request, host: &Host) -> Result<Profile, Refusal> {
    let search = host.search();
    let loaded = match &request.profile {
        Some(name) => profile::load(name, &search),
        None if request.dangerously_unconfined => profile::load(OsStr::new("unrestricted"), &search),
        None => return default_profile(host, &search),
    };
    Ok(loaded?)
}

fn default_profile(host: &Host, search: &Search) -> Result<Profile, Refusal> {
    match host.variable(variables::PROFILE) {
        None => Ok(profile::default_profile(search)?),
        Some(name) => profile::load(name, search)
            .map_err(|error| Refusal::new(format!("{error} (named by {})", variables::PROFILE))),
    }
}

/// The program of a command, or the shell that is to find it, and why it was not found.
pub fn find_program(command: &OsStr, host: &Host, directory: &Path) -> Result<Found, ProgramError> {
    let found = program::find(command, host.variable("PATH"), directory);
    let missing = match found.and_then(|found| program::examine_from(&found, directory)) {
        Ok(program) => return Ok((program, None)),
        Err(missing) => missing,
    };
    match program::examine(Path::new(SHELL)) {
        Ok(shell) if missing.is_missing() && host.home().is_some() => Ok((shell, Some(missing))),
        _ => Err(missing),
    }
}

impl EndsRun for ProfileError {}
