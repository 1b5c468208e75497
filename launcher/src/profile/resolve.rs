//! From a document and its parents to a profile.
//!
//! Every document counts once, parents before their children and in the order in which they are named. So
//! what two parents have from a common one of theirs does not undo what one of them made of it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::document::{self, Author, Document};
use super::error::{Fault, Plain, ProfileError, plain};
use super::json;
use super::merge;
use super::model::{Profile, Shared, Source, Text};
use super::ports;
use super::search::{self, Search};

/// How far parents of parents may go.
const DEPTH: usize = 8;
/// How many documents a profile may be made of.
const DOCUMENTS: usize = 32;

/// A document with what is known about its place.
pub(crate) struct Loaded {
    pub document: Document,
    pub name: Shared<str>,
    pub source: Source,
    /// Its parents and theirs, as places in the list of documents.
    pub ancestors: BTreeSet<usize>,
}

/// Reads a profile and its parents, and merges them.
pub(crate) fn resolve(name: &OsStr, search: &Search) -> Result<Profile, ProfileError> {
    let mut family = Family { search, documents: Vec::new(), files: Vec::new(), open: Vec::new() };
    let youngest = family.load(name, None).map_err(|fault| ProfileError::new(&plain(name), &fault.0))?;
    let mut profile = Profile::empty(display_name(name), Source::BuiltIn);
    if let Some(loaded) = family.documents.get(youngest) {
        profile.source = loaded.source.clone();
    }
    profile.files = std::mem::take(&mut family.files);
    for index in 0..family.documents.len() {
        merge::apply(&mut profile, &mut family.documents, index);
    }
    ports::check(&profile, &family.documents).map_err(|fault| ProfileError::new(&plain(name), &fault.0))?;
    Ok(profile)
}

/// A path's name is its file's, without the ending.
fn display_name(name: &OsStr) -> Text {
    let file = if search::is_path(name) { Path::new(name).file_name().unwrap_or(name) } else { name };
    let text = plain(file);
    let name = text.strip_suffix(".json").filter(|_| search::is_path(name)).map(str::to_string);
    name.unwrap_or(text).into()
}

struct Family<'a> {
    search: &'a Search,
    documents: Vec<Loaded>,
    /// See [`Profile::files`].
    files: Vec<PathBuf>,
    /// The documents whose parents are being read: a child, its parent, ...
    open: Vec<Identity>,
}

/// A document's place, comparable.
#[derive(Clone)]
struct Identity {
    name: Shared<str>,
    source: Source,
}

impl Identity {
    fn is(&self, name: &str, source: &Source) -> bool {
        self.source == *source && (self.source != Source::BuiltIn || *self.name == *name)
    }
}

/// A file by its own name in the real place of its directory.
fn file(source: &Source) -> Option<PathBuf> {
    let Source::File(path) = source else { return None };
    let path = std::path::absolute(path).ok()?;
    let (parent, name) = path.parent().zip(path.file_name())?;
    Some(parent.canonicalize().ok()?.join(name))
}

impl Family<'_> {
    /// Reads a document and its parents; its place in the list of documents.
    fn load(&mut self, name: &OsStr, beside: Option<&Path>) -> Result<usize, Fault> {
        // The parents of a built-in profile are built in.
        let inside = self.open.last().is_some_and(|child| child.source == Source::BuiltIn);
        let nowhere = Search::default();
        let search = if inside { &nowhere } else { self.search };
        let found = search::find(name, beside, search).map_err(Fault)?;
        let identity = self.identity(name, &found.source);
        for source in [&found.source, &identity.source] {
            self.files.extend(file(source).filter(|file| !self.files.contains(file)));
        }
        if self.open.iter().any(|open| open.is(&identity.name, &identity.source)) {
            let chain: Vec<_> = self.open.iter().chain([&identity]).map(|s| &*s.name).collect();
            return Err(Fault(format!("it extends itself: {}", chain.join(" -> "))));
        }
        if let Some(known) = self.documents.iter().position(|d| identity.is(&d.name, &d.source)) {
            return Ok(known);
        }
        if self.open.len() >= DEPTH {
            let chain: Vec<_> = self.open.iter().map(|s| &*s.name).collect();
            return Err(Fault(format!(
                "more than {DEPTH} profiles extend each other: {}",
                chain.join(" -> ")
            )));
        }
        if self.documents.len() + self.open.len() >= DOCUMENTS {
            return Err(Fault(format!("more than {DOCUMENTS} profiles are involved")));
        }
        let document = self.read(&identity, found.text)?;
        let directory = match &identity.source {
            Source::BuiltIn => None,
            Source::File(path) => path.parent().map(PathBuf::from),
        };
        self.open.push(identity.clone());
        let mut ancestors = BTreeSet::new();
        for parent in &document.extends {
            let index = self
                .load(OsStr::new(&**parent), directory.as_deref())
                .map_err(|fault| Fault(format!("extends '{}': {}", Plain(parent), fault.0)))?;
            ancestors.insert(index);
            ancestors.extend(self.documents.get(index).into_iter().flat_map(|d| &d.ancestors).copied());
        }
        self.open.pop();
        let Identity { name, source } = identity;
        self.documents.push(Loaded { document, name, source, ancestors });
        Ok(self.documents.len() - 1)
    }

    fn identity(&self, name: &OsStr, source: &Source) -> Identity {
        match source {
            Source::BuiltIn => {
                Identity { name: Shared::Counted(plain(name).into()), source: Source::BuiltIn }
            }
            // By its real place, so that a chain through links and `..` is seen to be one.
            Source::File(path) => {
                let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                let name = if search::is_path(name) { plain(path.as_os_str()) } else { plain(name) };
                Identity { name: Shared::Counted(name.into()), source: Source::File(real) }
            }
        }
    }

    fn read(&self, identity: &Identity, text: &'static str) -> Result<Document, Fault> {
        let author = Author { profile: identity.name.clone(), built_in: identity.source == Source::BuiltIn };
        let node = match &identity.source {
            Source::BuiltIn => json::parse_built_in(text)?,
            Source::File(path) => json::parse(&search::read(path).map_err(Fault)?)?,
        };
        document::read(node, &author)
    }
}
