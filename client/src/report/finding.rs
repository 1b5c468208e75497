//! What was found in the workspace when the command had ended.

use super::Bytes;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a program outside the sandbox would act on, and that the command made, or may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Finding {
    /// The repository's directory, or the file.
    pub path: Bytes,
    /// What it is.
    pub kind: FindingKind,
    /// What would be acted on: variables of a configuration, and files by their paths in the repository.
    pub names: Vec<Bytes>,
    /// The names that were given to what would be acted on, so that it is not: paths in the repository, or the whole
    /// path of the file.
    pub put_aside: Vec<Bytes>,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A repository that was made during the run.
    RepositoryMade,
    /// A repository that was there, and could be changed.
    RepositoryChanged,
    /// A protected file that something outside replaced or changed during the run.
    FileReplaced,
    /// An index that leads git where git itself puts nothing.
    IndexChanged,
    /// What git goes on with after a stop, in a form that git never gives it.
    StateChanged,
    /// Something was made at a protected path where nothing was.
    FileMade,
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}
