//! From a document and its parents to a profile.
//!
//! Every document counts once, parents before their children and in the order in which they are named. So
//! what two parents have from a common parent does not undo what one of them made of it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{mem, ptr};

use crate::profile::error::{ProfileCause, ProfileError, plain};
use crate::profile::keys::{Author, Part};
use crate::profile::model::{Profile, Source};
use crate::profile::origin::{Origin, Shared, Text};
use crate::profile::search::{self, Search};
use crate::profile::{document, groups, json, ports};

/// How far parents of parents may go.
const DEPTH: usize = 8;
/// How many documents a profile may be made of.
const DOCUMENTS: usize = 32;

/// A document, and its place among the others.
pub(crate) struct Loaded {
    said: Profile,
    id: Identity,
    /// Its parents and theirs, as places in the list of documents.
    ancestors: BTreeSet<usize>,
}

impl Loaded {
    /// Whether an entry is from this document.
    pub(crate) fn wrote(&self, origin: &Origin) -> bool {
        ptr::eq(&*self.id.name, &*origin.profile)
    }

    /// Whether an entry is from an ancestor, so that this document may take it back. Another parent of a
    /// common child is no ancestor.
    pub(crate) fn inherits(&self, origin: &Origin, family: &[Loaded]) -> bool {
        self.ancestors.iter().filter_map(|place| family.get(*place)).any(|ancestor| ancestor.wrote(origin))
    }
}

/// A document's name and file, to tell whether two are the same.
#[derive(Clone)]
struct Identity {
    name: Shared<str>,
    source: Source,
}

impl Identity {
    fn new(name: &OsStr, source: &Source) -> Identity {
        let (name, source) = match source {
            Source::BuiltIn => (plain(name), Source::BuiltIn),
            // By its real path, so that a chain through links and `..` is seen to be one.
            Source::File(path) => {
                let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                (plain(if search::is_path(name) { path.as_os_str() } else { name }), Source::File(real))
            }
        };
        Identity { name: Shared::Counted(name.into()), source }
    }

    fn is(&self, other: &Identity) -> bool {
        self.source == other.source && (self.source != Source::BuiltIn || *self.name == *other.name)
    }
}

/// Reads a profile and its parents, and merges them.
pub(crate) fn resolve(name: &OsStr, search: &Search) -> Result<Profile, ProfileError> {
    merged(name, search).map_err(|cause| ProfileError::new(name, cause))
}

fn merged(name: &OsStr, search: &Search) -> Result<Profile, ProfileCause> {
    let mut family = Family { search, documents: Vec::new(), files: Vec::new(), open: Vec::new() };
    let youngest = family.load(name, None)?;
    merge_all(family, youngest, display_name(name))
}

/// Reads a document that is in no file, and its parents, which are built in.
#[cfg(built_in_tables)]
pub(crate) fn made(name: &'static str, text: &[u8]) -> Result<Profile, ProfileCause> {
    let search = Search::default();
    let mut family = Family { search: &search, documents: Vec::new(), files: Vec::new(), open: Vec::new() };
    let id = Identity { name: Shared::Fixed(name), source: Source::File(PathBuf::new()) };
    let youngest = family.add(id, text, None)?;
    merge_all(family, youngest, name.into())
}

fn merge_all(family: Family<'_>, youngest: usize, name: Text) -> Result<Profile, ProfileCause> {
    let Family { mut documents, files, .. } = family;
    let source = documents.get(youngest).map_or(Source::BuiltIn, |loaded| loaded.id.source.clone());
    let mut profile = Profile { name, source, files, ..Profile::default() };
    for index in 0..documents.len() {
        let mut said = mem::take(&mut documents[index].said);
        let loaded = &documents[index];
        profile.lineage.to_mut().push(loaded.id.name.clone());
        profile.description = mem::take(&mut said.description);
        profile.merge(said, &|origin| loaded.inherits(origin, &documents));
        groups::settle_denials(&mut profile)?;
    }
    groups::expand(&mut profile)?;
    ports::check(&profile, &documents)?;
    Ok(profile)
}

/// A path's name is its file's, without the ending.
fn display_name(name: &OsStr) -> Text {
    if !search::is_path(name) {
        return plain(name).into();
    }
    let file = plain(Path::new(name).file_name().unwrap_or(name));
    file.strip_suffix(".json").map(str::to_string).unwrap_or(file).into()
}

struct Family<'a> {
    search: &'a Search,
    documents: Vec<Loaded>,
    /// See [`Profile::files`].
    files: Vec<PathBuf>,
    /// The documents whose parents are being read: a child, its parent, ...
    open: Vec<Identity>,
}

impl Family<'_> {
    /// Reads a document and its parents; its place in the list of documents.
    fn load(&mut self, name: &OsStr, beside: Option<&Path>) -> Result<usize, ProfileCause> {
        // The parents of a built-in profile are built in.
        let inside = self.open.last().is_some_and(|child| child.source == Source::BuiltIn);
        let nowhere = Search::default();
        let source = search::find(name, beside, if inside { &nowhere } else { self.search })?;
        let id = Identity::new(name, &source);
        for source in [&source, &id.source] {
            self.files.extend(file(source).filter(|file| !self.files.contains(file)));
        }
        if self.open.iter().any(|open| open.is(&id)) {
            return Err(ProfileCause::Circle(self.chain(Some(&id))));
        }
        if let Some(known) = self.documents.iter().position(|known| known.id.is(&id)) {
            return Ok(known);
        }
        if self.open.len() >= DEPTH {
            return Err(ProfileCause::TooDeep { depth: DEPTH, chain: self.chain(None) });
        }
        if self.documents.len() + self.open.len() >= DOCUMENTS {
            return Err(ProfileCause::TooMany(DOCUMENTS));
        }
        let (text, directory) = match &id.source {
            Source::BuiltIn => (search::built_in(name).unwrap_or_default().into(), None),
            Source::File(path) => (search::read(path)?, path.parent().map(PathBuf::from)),
        };
        self.add(id, &text, directory.as_deref())
    }

    /// Reads the text of a document, and its parents.
    fn add(&mut self, id: Identity, text: &[u8], directory: Option<&Path>) -> Result<usize, ProfileCause> {
        let author = Author { profile: id.name.clone(), built_in: id.source == Source::BuiltIn };
        let document = document::read(json::parse(text)?, &author)?;
        self.open.push(id.clone());
        let ancestors = self.parents(&document.extends, directory)?;
        self.open.pop();
        self.documents.push(Loaded { said: document.said, id, ancestors });
        Ok(self.documents.len() - 1)
    }

    fn parents(&mut self, names: &[Text], beside: Option<&Path>) -> Result<BTreeSet<usize>, ProfileCause> {
        let mut ancestors = BTreeSet::new();
        for name in names {
            let index = self
                .load(OsStr::new(&**name), beside)
                .map_err(|cause| ProfileCause::Parent { parent: name.to_string(), cause: Box::new(cause) })?;
            ancestors.insert(index);
            ancestors.extend(self.documents.get(index).into_iter().flat_map(|known| &known.ancestors));
        }
        Ok(ancestors)
    }

    /// The names of the documents that are being read, and of one more.
    fn chain(&self, last: Option<&Identity>) -> Vec<String> {
        self.open.iter().chain(last).map(|id| id.name.to_string()).collect()
    }
}

/// A file by the path that names it, links and all: who can change those decides which file it is.
fn file(source: &Source) -> Option<PathBuf> {
    let Source::File(path) = source else { return None };
    std::path::absolute(path).ok()
}
