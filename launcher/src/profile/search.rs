//! From a name to the text of a profile.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::profile::error::{ProfileCause, nearest};
use crate::profile::model::Source;
use crate::text::shown;

/// The maximum size of a profile.
pub const SIZE_LIMIT: u64 = 1 << 20;
/// The name of the profile that plain `sbx run` takes, if the user has one.
pub(crate) const DEFAULT: &str = "default";
/// The directory of profiles of agents, in each of the places.
const AGENTS: &str = "agents/";

/// The places of profiles, besides the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Directories of `NAME.json`. The first that has a name counts.
    pub dirs: Vec<PathBuf>,
}

impl Search {
    /// `/etc/sbx/profiles`, then `sbx/profiles` below `$XDG_CONFIG_HOME` or `~/.config`.
    pub fn from_environment(home: Option<&OsStr>, xdg_config_home: Option<&OsStr>) -> Search {
        let absolute = |text: &OsStr| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
        let config = xdg_config_home
            .and_then(absolute)
            .or_else(|| home.and_then(absolute).map(|home| home.join(".config")));
        let mut dirs = vec![PathBuf::from("/etc/sbx/profiles")];
        dirs.extend(config.map(|config| config.join("sbx/profiles")));
        Search { dirs }
    }

    /// The user's own `default.json`, or the machine's.
    pub(crate) fn default_file(&self) -> Option<PathBuf> {
        self.dirs.iter().rev().map(|dir| dir.join("default.json")).find(|path| exists(path))
    }

    fn files(&self, name: &OsStr) -> impl Iterator<Item = PathBuf> {
        let (mut file, name) = match name.as_bytes().strip_prefix(sbx_profiles::AGENT.as_bytes()) {
            Some(agent) => (OsString::from(AGENTS), OsStr::from_bytes(agent)),
            None => (OsString::new(), name),
        };
        file.push(name);
        file.push(".json");
        self.dirs.iter().map(move |dir| dir.join(&file)).filter(|path| exists(path))
    }

    /// Whether some directory has a profile of this name.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        self.files(name).next().is_some()
    }

    /// Names of the profiles in the directories, with their files.
    pub(crate) fn user_profiles(&self) -> Vec<(String, PathBuf)> {
        self.named_files("")
    }

    /// Names of the profiles of agents in the directories, without what they begin with, with their files.
    pub(crate) fn user_agents(&self) -> Vec<(String, PathBuf)> {
        self.named_files(AGENTS)
    }

    fn named_files(&self, below: &str) -> Vec<(String, PathBuf)> {
        let mut found: Vec<(String, PathBuf)> = Vec::new();
        for dir in &self.dirs {
            let files =
                fs::read_dir(dir.join(below)).into_iter().flatten().flatten().map(|entry| entry.path());
            let named = files.filter_map(|path| {
                let name = path.file_name()?.to_str()?.strip_suffix(".json")?.to_string();
                (!name.is_empty() && found.iter().all(|(known, _)| *known != name)).then_some((name, path))
            });
            let mut here: Vec<_> = named.collect();
            here.sort_unstable();
            found.extend(here);
        }
        found
    }
}

/// Whether a directory has an entry of this name. A directory that this user may not search has none. But a
/// file that cannot be read, or a link that leads nowhere, is an error when it is opened: another profile
/// does not take its place. So is anything else that goes wrong.
fn exists(path: &Path) -> bool {
    let none = |error: &std::io::Error| {
        let kinds = [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::PermissionDenied];
        kinds.contains(&error.kind()) || error.raw_os_error() == Some(libc::ELOOP)
    };
    fs::symlink_metadata(path).map_or_else(|error| !none(&error), |_| true)
}

/// Whether it is a path rather than a name.
pub(crate) fn is_path(name: &OsStr) -> bool {
    name.as_bytes().contains(&b'/') || name.as_bytes().ends_with(b".json")
}

/// Finds a profile by name, or by a path relative to the directory `beside`.
pub(crate) fn find(name: &OsStr, beside: Option<&Path>, search: &Search) -> Result<Source, ProfileCause> {
    if name.is_empty() {
        return Err(ProfileCause::NoName);
    }
    if is_path(name) {
        return Ok(Source::File(
            beside.map_or_else(|| PathBuf::from(name), |directory| directory.join(name)),
        ));
    }
    match (built_in(name), search.files(name).next()) {
        (Some(_), Some(path)) => Err(ProfileCause::HidesBuiltIn(path)),
        (Some(_), None) => Ok(Source::BuiltIn),
        (None, Some(path)) if name == DEFAULT => Ok(Source::File(search.default_file().unwrap_or(path))),
        (None, Some(path)) => Ok(Source::File(path)),
        (None, None) => Err(unknown(name, search)),
    }
}

/// The document of a built-in profile.
pub(crate) fn built_in(name: &OsStr) -> Option<&'static str> {
    name.to_str().and_then(sbx_profiles::built_in)
}

fn unknown(name: &OsStr, search: &Search) -> ProfileCause {
    let of_agents = agents(search).map(|name| format!("{}{name}", sbx_profiles::AGENT));
    let built_in = sbx_profiles::NAMES.map(str::to_string).into_iter();
    let others = built_in.chain(search.user_profiles().into_iter().map(|(name, _)| name));
    // Who asks for an agent is helped by no other profile.
    let asks_for_agent = name.as_bytes().starts_with(sbx_profiles::AGENT.as_bytes());
    let known: Vec<String> = others.filter(|_| !asks_for_agent).chain(of_agents).collect();
    let agent = agents(search).find(|agent| name == &**agent);
    if let Some(agent) = agent {
        return ProfileCause::Unknown { near: Some(format!("{}{agent}", sbx_profiles::AGENT)), known };
    }
    // A file of any name is taken if there is a slash in its path.
    let file = Path::new(name).is_file().then(|| format!("./{}", shown(Path::new(name))));
    let near = file.or_else(|| nearest(&name.to_string_lossy(), known.iter().map(String::as_str)));
    ProfileCause::Unknown { near, known }
}

/// The names of all agents, without what the names of their profiles begin with.
pub(crate) fn agents(search: &Search) -> impl Iterator<Item = String> {
    let own = search.user_agents().into_iter().map(|(name, _)| name);
    sbx_profiles::AGENTS.map(str::to_string).into_iter().chain(own)
}

/// Reads a whole file: a regular file of bounded size.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ProfileCause> {
    // Non-blocking: to open a FIFO ends in an error instead of waiting for its other end.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(ProfileCause::NotAFile);
    }
    let mut text = Vec::new();
    file.take(SIZE_LIMIT + 1).read_to_end(&mut text)?;
    if text.len() as u64 > SIZE_LIMIT { Err(ProfileCause::TooBig(SIZE_LIMIT)) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_that_there_are_include_those_of_agents() {
        for (name, similar, first) in [
            ("nosuch", None, "custom"),
            ("minmal", Some("minimal"), "custom"),
            ("claude", Some("agent:claude"), "custom"),
            ("agent:clade", Some("agent:claude"), "agent:claude"),
        ] {
            let found = find(OsStr::new(name), None, &Search::default());
            let Err(ProfileCause::Unknown { near, known }) = found else { panic!("{name}: {found:?}") };
            assert_eq!(near.as_deref(), similar, "{name}");
            assert_eq!((&*known[0], &**known.last().unwrap()), (first, "agent:opencode"), "{name}");
        }
    }
}
