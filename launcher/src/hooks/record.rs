//! What was there before `sbx hook install`, so that `sbx hook remove` can put it back.

use crate::error::Refusal;
use crate::hooks::{Agent, Wanted};
use crate::host::Host;
use crate::plan::state;
use crate::sys::{memory, plain};
use crate::text::shown;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The record of one agent's hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The file of settings.
    pub file: PathBuf,
    /// Whether there was one.
    pub existed: bool,
    /// What `sbx` made of it, as a digest.
    pub after: String,
    /// The hook.
    pub hook: Wanted,
    /// Another file that was changed so that the agent trusts the hook.
    pub trust: Option<Trust>,
}

/// A file in which an agent keeps which hooks it trusts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// The file.
    pub file: PathBuf,
    /// Whether there was one.
    pub existed: bool,
    /// What the agent made of it, as a digest.
    pub after: String,
}

impl Record {
    /// The directory of an agent's record. No command can write there.
    fn directory(agent: Agent, host: &Host) -> Result<PathBuf, Refusal> {
        let all = state::directory(host, "hooks").ok_or_else(|| {
            Refusal::new(
                "cannot keep a copy of the settings: neither XDG_STATE_HOME nor HOME is an absolute path",
            )
        })?;
        Ok(all.join(agent.word()))
    }

    /// The copy of the settings as they were.
    pub fn copy(agent: Agent, host: &Host) -> Result<PathBuf, Refusal> {
        Ok(Record::directory(agent, host)?.join("before"))
    }

    /// The record, if the hook was installed.
    pub fn read(agent: Agent, host: &Host) -> Result<Option<Record>, Refusal> {
        let path = Record::directory(agent, host)?.join("record.json");
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot("read", &path, &error)),
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| {
                Refusal::new(format!(
                    "cannot read '{}': {error}; remove the file, and install the hook again",
                    shown(&path)
                ))
            }),
        }
    }

    /// Keeps the record and the copy.
    pub(super) fn write(&self, agent: Agent, host: &Host, before: &[u8]) -> Result<(), Refusal> {
        let directory = Record::directory(agent, host)?;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(|error| cannot("make", &directory, &error))?;
        let text = serde_json::to_vec_pretty(self).map_err(|error| Refusal::new(error.to_string()))?;
        replace(&directory.join("before"), before, 0o600)?;
        replace(&directory.join("record.json"), &text, 0o600)
    }

    /// Keeps what the agent changed to trust the hook, with a copy of what was there.
    pub(super) fn write_trust(
        mut self,
        agent: Agent,
        host: &Host,
        trust: Trust,
        before: &[u8],
    ) -> Result<(), Refusal> {
        let directory = Record::directory(agent, host)?;
        self.trust = Some(trust);
        let text = serde_json::to_vec_pretty(&self).map_err(|error| Refusal::new(error.to_string()))?;
        replace(&directory.join("before-trust"), before, 0o600)?;
        replace(&directory.join("record.json"), &text, 0o600)
    }

    /// The copy of the file in which the agent keeps which hooks it trusts.
    pub(super) fn copy_of_trust(agent: Agent, host: &Host) -> Result<PathBuf, Refusal> {
        Ok(Record::directory(agent, host)?.join("before-trust"))
    }

    /// Forgets it.
    pub(super) fn remove(agent: Agent, host: &Host) -> Result<(), Refusal> {
        let directory = Record::directory(agent, host)?;
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(cannot("remove", &directory, &error)),
            _ => Ok(()),
        }
    }
}

/// Puts a file in the place of another at once, so that no reader sees half of it. A link stays a link: users keep
/// settings in repositories of dotfiles.
pub(super) fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), Refusal> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mode = fs::metadata(&real).map_or(mode, |meta| meta.permissions().mode() & 0o777);
    let name = memory::random_name(".sbx-").map_err(|failed| cannot("write", path, &failed.cause))?;
    let temporary = real.with_file_name(name);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let mut file = made.map_err(|error| cannot("write", path, &error))?;
    let mut written = || -> io::Result<()> {
        file.write_all(content)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&temporary, &real)
    };
    written().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        cannot("write", path, &error)
    })
}

/// The sentence for a file.
pub(super) fn cannot(what: &str, path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(format!("cannot {what} '{}': {}", shown(path), plain(error)))
}
