//! The home directory of a run.

use crate::report::Bytes;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A home directory of the run's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HomeUsed {
    /// Where it is outside.
    pub directory: Bytes,
    /// Whether later runs in the workspace under the profile find it again.
    pub lasts: bool,
    /// Why the run could not write to directories of packages; null where it could.
    pub stores_read_only: Option<String>,
    /// What the run wrote there, by paths in the home: files, and directories two levels down for what is deeper.
    pub written: Vec<Bytes>,
    /// Whether it wrote more than is listed, or it was too much to look at.
    pub more_written: bool,
}
