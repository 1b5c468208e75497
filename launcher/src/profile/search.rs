//! From a name to the text of a profile.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::error::{hint, join, plain};
use super::model::Source;

/// No profile is bigger than this.
pub const SIZE_LIMIT: u64 = 1 << 20;
/// What users call the profile that plain `sbx run` takes.
pub(crate) const DEFAULT: &str = "default";

/// Where profiles are looked for, besides the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Directories of `NAME.json`, the first that has a name counts.
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
        let mut file = name.to_os_string();
        file.push(".json");
        self.dirs.iter().map(move |dir| dir.join(&file)).filter(|path| exists(path))
    }

    /// Whether some directory has a profile of this name.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        self.files(name).next().is_some()
    }

    /// Names of the profiles in the directories, with their files.
    pub(crate) fn user_profiles(&self) -> Vec<(String, PathBuf)> {
        let mut found: Vec<(String, PathBuf)> = Vec::new();
        for dir in &self.dirs {
            let mut here: Vec<_> = fs::read_dir(dir)
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| {
                    let path = entry.path();
                    let name = path.file_name()?.to_str()?.strip_suffix(".json")?.to_string();
                    (!name.is_empty()).then_some((name, path))
                })
                .collect();
            here.sort_unstable();
            here.retain(|(name, _)| !found.iter().any(|(known, _)| known == name));
            found.extend(here);
        }
        found
    }
}

/// Whether a directory has an entry of this name. One that this user may not search has none; but a file that
/// is there and cannot be read, or a link that leads nowhere, is an error when it is opened: another profile
/// does not take its place. So is anything else that goes wrong.
fn exists(path: &Path) -> bool {
    let none = |error: &std::io::Error| {
        let kinds = [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::PermissionDenied];
        kinds.contains(&error.kind()) || error.raw_os_error() == Some(libc::ELOOP)
    };
    fs::symlink_metadata(path).map_or_else(|error| !none(&error), |_| true)
}

/// A profile's place, before it is read.
pub(crate) struct Found {
    pub source: Source,
    pub text: &'static str,
}

/// Whether it is a path rather than a name.
pub(crate) fn is_path(name: &OsStr) -> bool {
    name.as_bytes().contains(&b'/') || name.as_bytes().ends_with(b".json")
}

/// Finds a profile by name, or by a path that is taken from the directory of `beside`.
pub(crate) fn find(name: &OsStr, beside: Option<&Path>, search: &Search) -> Result<Found, String> {
    if name.is_empty() {
        return Err("the name is empty".to_string());
    }
    if is_path(name) {
        let path = beside.map_or_else(|| PathBuf::from(name), |dir| dir.join(name));
        return Ok(Found { source: Source::File(path), text: "" });
    }
    let built_in = name.to_str().and_then(sbx_profiles::built_in);
    let mut files = search.files(name);
    match (built_in, files.next()) {
        (Some(_), Some(file)) => Err(format!(
            "it is built in, but '{}' has the same name; give that file another name, or use its path",
            plain(file.as_os_str())
        )),
        (Some(text), None) => Ok(Found { source: Source::BuiltIn, text }),
        (None, Some(file)) if name == DEFAULT => {
            Ok(Found { source: Source::File(search.default_file().unwrap_or(file)), text: "" })
        }
        (None, Some(file)) => Ok(Found { source: Source::File(file), text: "" }),
        (None, None) => Err(unknown(name, search)),
    }
}

fn unknown(name: &OsStr, search: &Search) -> String {
    let files = search.user_profiles();
    let known = || sbx_profiles::NAMES.into_iter().chain(files.iter().map(|(name, _)| name.as_str()));
    let near = hint(&name.to_string_lossy(), known());
    format!("there is no profile of that name{near}; there are {}", join(known()))
}

/// Reads a file whole: a regular file of bounded size.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    // Non-blocking, so that a FIFO ends in an error and not in waiting for its other end.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = file.map_err(|error| error_text(&error))?;
    let metadata = file.metadata().map_err(|error| error_text(&error))?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_string());
    }
    let mut text = Vec::with_capacity(usize::try_from(metadata.len().min(SIZE_LIMIT)).unwrap_or(0) + 1);
    file.take(SIZE_LIMIT + 1).read_to_end(&mut text).map_err(|error| error_text(&error))?;
    if text.len() as u64 > SIZE_LIMIT {
        return Err(format!("it has more than the {SIZE_LIMIT} bytes that a profile may have"));
    }
    Ok(text)
}

fn error_text(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_string(),
        ErrorKind::PermissionDenied => "it may not be read".to_string(),
        _ => error.to_string(),
    }
}
