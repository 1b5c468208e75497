//! Installing a hook and removing it.

use crate::digest;
use crate::error::Refusal;
use crate::hooks::codex::Codex;
use crate::hooks::record::{self, Record, Trust, cannot};
use crate::hooks::{Agent, Wanted, edit, protocol};
use crate::host::Host;
use crate::sys::file;
use crate::text::shown;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The longest settings that are read.
const LONGEST: u64 = 8 << 20;

/// A hook that was installed.
#[derive(Debug)]
pub struct Installed {
    /// The settings.
    pub file: PathBuf,
    /// The copy of the old ones, if there were any.
    pub copy: Option<PathBuf>,
    /// Whether just this hook was there already.
    pub already: bool,
}

/// A hook that was removed.
#[derive(Debug, PartialEq, Eq)]
pub enum Removed {
    /// The settings are what they were, byte for byte.
    Restored(PathBuf),
    /// There were no settings, and there are none.
    Gone(PathBuf),
    /// Somebody changed the settings since: only the hook was taken out.
    TakenOut(PathBuf),
    /// There was no hook.
    Nothing(PathBuf),
}

/// The settings of an agent, as they are.
pub(super) struct Settings {
    pub file: PathBuf,
    /// `None` where there is no file.
    pub content: Option<Vec<u8>>,
}

impl Settings {
    pub fn read(agent: Agent, host: &Host) -> Result<Settings, Refusal> {
        let file = agent.file(host).ok_or_else(|| {
            Refusal::new(format!(
                "cannot find the settings of {}: HOME is not an absolute path",
                agent.name()
            ))
        })?;
        let content = match content(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound && file.is_symlink() => {
                return Err(Refusal::new(format!(
                    "cannot use '{}': it is a link that leads nowhere; make the file that it leads to, or remove it",
                    shown(&file)
                )));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(Refusal::new(format!(
                    "cannot read '{}': it is no file of settings",
                    shown(&file)
                )));
            }
            Err(error) => return Err(cannot("read", &file, &error)),
            Ok(content) => Some(content),
        };
        Ok(Settings { file, content })
    }

    pub fn text(&self) -> Result<&str, Refusal> {
        let content = self.content.as_deref().unwrap_or_default();
        str::from_utf8(content)
            .map_err(|_| Refusal::new(format!("cannot change '{}': it is not UTF-8", shown(&self.file))))
    }

    /// Whether nobody has changed the file since the hook was written to it.
    pub(super) fn is_as_left(&self, record: &Record) -> bool {
        record.file == self.file
            && self.content.as_ref().is_some_and(|content| digest::of(content) == record.after)
    }

    /// Whether a file that is the hook's alone was written by `sbx`, some time.
    fn is_our_file(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.starts_with(protocol::PLUGIN_HEAD.as_bytes()))
    }

    fn without_hook(&self, agent: Agent) -> Result<Option<String>, Refusal> {
        edit::take_out(agent, self.text()?).map_err(|error| unreadable(&self.file, &error))
    }
}

/// What is in a file of settings; an error of kind `InvalidData` where it is none.
pub(super) fn content(file: &Path) -> io::Result<Vec<u8>> {
    file::read_regular(file, LONGEST).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::FileTooLarge => ErrorKind::InvalidData.into(),
        _ => error,
    })
}

pub(super) fn unreadable(file: &Path, error: &edit::EditError) -> Refusal {
    Refusal::new(format!("cannot change '{}': {error}; correct it first", shown(file)))
}

/// Installs the hook, in the place of one of ours that is there.
pub fn install(agent: Agent, wanted: &Wanted, host: &Host) -> Result<Installed, Refusal> {
    check(wanted)?;
    let settings = Settings::read(agent, host)?;
    let record = Record::read(agent, host)?;
    let as_left = record.as_ref().filter(|record| settings.is_as_left(record));
    // The old settings: the copy, while nobody else changed anything.
    let before: Option<Vec<u8>> = match as_left {
        Some(record) if record.existed => {
            let copy = Record::copy(agent, host)?;
            Some(fs::read(&copy).map_err(|error| cannot("read", &copy, &error))?)
        }
        Some(_) => None,
        None if agent.has_file_of_its_own() => settings.content.clone().filter(|_| !settings.is_our_file()),
        None if settings.content.is_some() => match settings.without_hook(agent)? {
            Some(without) => Some(without.into_bytes()),
            None => settings.content.clone(),
        },
        None => None,
    };
    let after = with_hook(agent, wanted, before.as_deref(), &settings.file)?.into_bytes();
    let copy = before.is_some().then(|| Record::copy(agent, host)).transpose()?;
    if as_left.is_some() && settings.content.as_ref() == Some(&after) {
        return Ok(Installed { file: settings.file, copy, already: true });
    }
    let record = Record {
        file: settings.file.clone(),
        existed: before.is_some(),
        after: digest::of(&after),
        hook: wanted.clone(),
        trust: record.and_then(|record| record.trust),
    };
    record.write(agent, host, before.as_deref().unwrap_or_default())?;
    if let Some(directory) = settings.file.parent() {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| cannot("make", directory, &error))?;
    }
    record::replace(&settings.file, &after, 0o600)?;
    Ok(Installed { file: settings.file, copy, already: false })
}

fn with_hook(agent: Agent, wanted: &Wanted, before: Option<&[u8]>, file: &Path) -> Result<String, Refusal> {
    if agent.has_file_of_its_own() {
        return match before {
            Some(_) => Err(Refusal::new(format!(
                "cannot write '{}': there is a file of that name, and it is not one of sbx; move it away",
                shown(file)
            ))),
            None => Ok(wanted.plugin()),
        };
    }
    let text = str::from_utf8(before.unwrap_or_default()).unwrap_or_default();
    edit::add(agent, text, &wanted.command(agent)).map_err(|error| unreadable(file, &error))
}

/// The words of a hook stand between quotes of a shell, in JSON or JavaScript.
fn check(wanted: &Wanted) -> Result<(), Refusal> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@ ,".contains(c);
    for word in [&wanted.program.display().to_string(), &wanted.profile] {
        if !word.chars().all(plain) {
            return Err(Refusal::new(format!(
                "cannot name '{}' in a hook: a character in it means something to shells; choose another name",
                shown(Path::new(word))
            )));
        }
    }
    Ok(())
}

/// Has the agent trust the hook that is installed, by its own means. Whether there was anything to do.
pub fn trust(agent: Agent, host: &Host) -> Result<bool, Refusal> {
    let why = |why: String| Refusal::new(format!("cannot have {} trust the hook: {why}", agent.name()));
    if agent != Agent::Codex {
        return Ok(false);
    }
    let settings = Settings::read(agent, host)?;
    let record = Record::read(agent, host)?.ok_or_else(|| why("it is not installed".to_string()))?;
    let mut codex =
        Codex::start(host).ok_or_else(|| why("codex is not in PATH".to_string()))?.map_err(why)?;
    let (command, directory) = (record.hook.command(agent), settings.file.parent().unwrap_or(Path::new("/")));
    let hook = codex.hook(&command, directory).map_err(why)?;
    if hook.runs {
        return Ok(false);
    }
    // Codex keeps that beside the hooks.
    let file = settings.file.with_file_name("config.toml");
    let read = |file: &Path| match fs::read(file) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot("read", file, &error)),
    };
    let before = read(&file)?;
    let written = codex.trust(&hook).map_err(why)?;
    if !codex.hook(&command, directory).map_err(why)?.runs {
        return Err(why("it has, and still skips the hook; is it switched off in /hooks?".to_string()));
    }
    // Another place than expected is not undone: the entry is of no use without the hook.
    if written == file {
        let after = read(&file)?.unwrap_or_default();
        let first = record.trust.clone().filter(|trust| {
            trust.file == file && before.as_ref().is_some_and(|b| digest::of(b) == trust.after)
        });
        let (existed, content) = match first {
            Some(trust) => {
                let copy = Record::copy_of_trust(agent, host)?;
                (trust.existed, fs::read(&copy).map_err(|error| cannot("read", &copy, &error))?)
            }
            None => (before.is_some(), before.unwrap_or_default()),
        };
        record.write_trust(agent, host, Trust { file, existed, after: digest::of(&after) }, &content)?;
    }
    Ok(true)
}

/// Puts back the file in which the agent keeps which hooks it trusts, if nobody else changed it.
fn trust_no_more(agent: Agent, trust: &Trust, host: &Host) -> Result<(), Refusal> {
    if fs::read(&trust.file).ok().is_none_or(|content| digest::of(&content) != trust.after) {
        return Ok(());
    }
    if !trust.existed {
        return fs::remove_file(&trust.file).map_err(|error| cannot("remove", &trust.file, &error));
    }
    let copy = Record::copy_of_trust(agent, host)?;
    let before = fs::read(&copy).map_err(|error| cannot("read", &copy, &error))?;
    record::replace(&trust.file, &before, 0o600)
}

/// Takes the hook out again.
pub fn remove(agent: Agent, host: &Host) -> Result<Removed, Refusal> {
    let settings = Settings::read(agent, host)?;
    let file = settings.file.clone();
    let record = Record::read(agent, host)?;
    if let Some(trust) = record.as_ref().and_then(|record| record.trust.as_ref()) {
        trust_no_more(agent, trust, host)?;
    }
    let removed = match record.filter(|record| settings.is_as_left(record)) {
        Some(record) if record.existed => {
            let copy = Record::copy(agent, host)?;
            let before = fs::read(&copy).map_err(|error| cannot("read", &copy, &error))?;
            record::replace(&file, &before, 0o600)?;
            Removed::Restored(file)
        }
        Some(_) => {
            fs::remove_file(&file).map_err(|error| cannot("remove", &file, &error))?;
            // What has something in it stays. An empty one would have every run protect its place in workspaces.
            let _ = file.parent().map(fs::remove_dir);
            Removed::Gone(file)
        }
        None if agent.has_file_of_its_own() => match settings.content {
            Some(_) => {
                return Err(Refusal::new(format!(
                    "cannot remove '{}': somebody changed it since; remove it by hand",
                    shown(&file)
                )));
            }
            None => Removed::Nothing(file),
        },
        None => match settings.without_hook(agent)? {
            Some(text) => {
                record::replace(&file, text.as_bytes(), 0o600)?;
                Removed::TakenOut(file)
            }
            None => Removed::Nothing(file),
        },
    };
    Record::remove(agent, host)?;
    Ok(removed)
}
