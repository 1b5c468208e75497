//! Policies of other tools: documents that become profiles, and profiles that become such documents.
//!
//! What one side cannot say is never dropped in silence: it is an error, or one line of a list if the caller accepts
//! the loss.

mod agents;
mod bpf;
mod files;
mod hosts;
mod landlock;
pub mod languages;
mod meaning;
mod nesting;
pub mod oci;
mod rest;
mod spo;
mod systemd;
mod toml;

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;

use serde_json::Value;

use crate::profile::error::{Fault, Place, Plain, ProfileCause, nearest, plain};
use crate::profile::model::Profile;
use crate::profile::{resolve, search};
use crate::text::tamed;

/// How many losses have a hint.
const HINTS: usize = 100;

/// More than any list of a profile has.
const MOST: usize = 2000;

/// What the other language cannot say: a sentence each, with the place.
#[derive(Debug, Default)]
pub struct Losses(Vec<String>);

impl Losses {
    /// Adds one.
    pub fn note(&mut self, place: impl Display, what: impl Display) {
        // What it quotes is the document's.
        let line = tamed(&format!("{place}: {what}"));
        // One rule may name the same call twice.
        if self.0.last() != Some(&line) {
            self.0.push(line);
        }
    }

    /// ` (did you mean 'x'?)`, if something is similar to a word that is lost. Nobody reads the hints of a long list,
    /// and each takes a while.
    pub(crate) fn hint<'a>(&self, word: &str, known: impl Iterator<Item = &'a str>) -> String {
        let near = if self.0.len() < HINTS { nearest(word, known) } else { None };
        near.map_or(String::new(), |near| format!(" (did you mean '{near}'?)"))
    }

    /// The sentences.
    pub fn lines(&self) -> &[String] {
        &self.0
    }

    /// The sentence of a refusal, if anything is lost.
    pub fn refusal(&self) -> Option<String> {
        let (first, rest) = self.0.split_first()?;
        Some(match rest.len() {
            0 => format!("{first} (--lossy goes on without)"),
            more => format!("{first} (and {more} more; --lossy goes on without them and lists them)"),
        })
    }
}

/// A profile made of another tool's document.
#[derive(Debug)]
pub struct Imported {
    /// The profile's document.
    pub document: Value,
    /// What a run reads in it.
    pub profile: Profile,
    /// What of the other document it does not say.
    pub losses: Losses,
}

/// A document that cannot be imported.
#[derive(Debug, thiserror::Error)]
#[error("cannot import '{file}': {cause}")]
pub struct ImportError {
    file: String,
    cause: Box<ProfileCause>,
}

impl ImportError {
    fn new(file: &OsStr, cause: ProfileCause) -> ImportError {
        ImportError { file: plain(file), cause: Box::new(cause) }
    }
}

/// Reads a file of another tool: a regular one, as big as a profile may be.
pub fn read(file: &OsStr) -> Result<Vec<u8>, ImportError> {
    search::read(Path::new(file)).map_err(|cause| ImportError::new(file, cause))
}

/// Reads a made document as a run would read it, with its parents.
fn read_back(document: &Value) -> Result<Profile, ProfileCause> {
    let text = document.to_string();
    if text.len() as u64 > search::SIZE_LIMIT {
        return Err(ProfileCause::TooBig(search::SIZE_LIMIT));
    }
    resolve::made(MADE, text.as_bytes()).map_err(|cause| match cause {
        ProfileCause::Document(Fault { place, mistake }) => {
            ProfileCause::Document(Fault { place: format!("{MADE}: {place}"), mistake })
        }
        cause => cause,
    })
}

/// The name of a profile that is made of a document.
const MADE: &str = "the profile made of it";

/// `'NAME' at PLACE`.
fn at(place: &Place, name: &str) -> String {
    format!("{place}: {}", Plain(name))
}
