//! Brings the copies of settings in a private home up to date.
//!
//! The private home belongs to commands of earlier runs, and a running one may change it meanwhile. So it is walked by
//! descriptors, no link in it is followed, and nothing that is there is opened: a copy is a new file that takes the
//! place of whatever has its name. What a command put in the way stays, and that copy is not made.
//!
//! Files of patterns that copied settings name (`core.excludesFile`) are copied as they are: without them git would
//! take what they name, secrets too, for files of the project.
//!
//! A file is read only after it has changed. What it was when it was copied is written down outside of the private
//! home, so a start at which nothing has changed takes one read, and one look at each file.

use crate::plan::listings::Listings;
use crate::plan::namespaces::record::Workspaces;
use crate::plan::settings_copy::{self, LONGEST, VERSION};
use crate::profile::{Given, SettingsCopy, Variable, Variables};
use crate::sys::beneath::Directory;
use crate::sys::within::is_within;
use crate::sys::{SyscallError, file, path, plain, process};
use crate::text::shown;
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// What a command may cause by what it puts into its home.
const OBSTACLES: [i32; 11] = [
    libc::ENOTDIR,
    libc::ELOOP,
    libc::EXDEV,
    libc::EISDIR,
    libc::EACCES,
    libc::EPERM,
    libc::ENOENT,
    libc::EEXIST,
    libc::ENOTEMPTY,
    libc::EBUSY,
    libc::ENAMETOOLONG,
];

/// What begins a line of the file of stamps that names a file of patterns, by its place in the home.
const NAMED: &str = "named ";

/// A file that there is.
struct Source<'a> {
    /// How it is copied; `None` for a file of patterns that settings name.
    copy: Option<&'a SettingsCopy>,
    path: PathBuf,
    /// Where in the home.
    below: PathBuf,
    /// What it was, and how it is copied.
    stamp: String,
}

/// What may be copied.
pub struct All<'a> {
    /// By the profile.
    pub copies: &'a [Given<SettingsCopy>],
    /// What its variables stand for.
    pub variables: &'a Variables<'a>,
    /// The user's own home.
    pub real_home: &'a Path,
    /// What is not there.
    pub listings: &'a Listings,
    /// Where commands have written links.
    pub workspaces: &'a Workspaces<'a>,
}

/// Copies what has changed. `stamps` is the file that says what the copies were made of; no command can reach it.
/// Returns what there is to say to the user.
pub fn refresh(all: All<'_>, private_home: &Path, stamps: &Path) -> Vec<String> {
    let known = file::read(stamps).ok().and_then(|text| String::from_utf8(text).ok()).unwrap_or_default();
    let sources = all.copies.iter().filter_map(|copy| Source::of(copy, &all)).collect::<Vec<_>>();
    if sources.iter().all(|source| source.is_current(&known, &all)) {
        return Vec::new();
    }
    let (known, locked) = match lock(stamps) {
        Some((known, file)) => (known, Some(file)),
        // Without the lock nothing is written down, and the next start looks again.
        None => (known, None),
    };
    let mut refreshing =
        Refreshing { all: &all, known: &known, current: String::new(), warnings: Vec::new() };
    match Directory::open(private_home) {
        Ok(home) => refreshing.carry_all(sources, &home),
        Err(failed) => {
            let why = format!("cannot copy settings to '{}': {failed}", shown(private_home));
            refreshing.warnings.push(why);
        }
    }
    let Refreshing { current, warnings, .. } = refreshing;
    if let Some(mut file) = locked {
        // What is written by half fits nothing, and the next start looks again.
        let _ =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(current.as_bytes()));
    }
    warnings
}

/// Whether a file of a home is a copy that the settings of another one ask for.
pub fn is_named(stamps: &Path, below: &Path) -> bool {
    let text = file::read(stamps).unwrap_or_default();
    let mut named = text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(NAMED.as_bytes()));
    named.any(|named| named == below.as_os_str().as_encoded_bytes())
}

/// Copies under way.
struct Refreshing<'a> {
    all: &'a All<'a>,
    /// The stamps of before, and of now.
    known: &'a str,
    current: String,
    warnings: Vec<String>,
}

impl Refreshing<'_> {
    fn carry_all(&mut self, sources: Vec<Source<'_>>, home: &Directory) {
        let mut files = BTreeSet::new();
        for source in sources {
            let (stamp, named) = if source.is_in(self.known) {
                (Some(source.stamp.clone()), source.named(self.known).map(str::to_string).collect())
            } else {
                source.carry(self.all, home, &mut self.warnings)
            };
            let Some(stamp) = stamp else { continue };
            self.current.push_str(&stamp);
            named.iter().for_each(|below| self.current.extend([NAMED, below, "\n"]));
            files.extend(named);
        }
        for file in files.iter().filter_map(|below| Source::of_patterns(below, self.all)) {
            let made = match file.is_in(self.known) {
                true => Some(file.stamp),
                false => file.carry(self.all, home, &mut self.warnings).0,
            };
            self.current.extend(made);
        }
    }
}

/// The file of stamps, locked against other starts, and what stands in it by now.
fn lock(stamps: &Path) -> Option<(String, File)> {
    let directory = file::open_directory(stamps.parent()?).ok()?;
    let mut file = File::from(file::open_or_create(directory.as_fd(), stamps.file_name()?, 0o600).ok()?);
    file.try_lock().ok()?;
    let mut known = String::new();
    file.read_to_string(&mut known).ok()?;
    Some((known, file))
}

impl<'a> Source<'a> {
    /// The file that a copy is made of. Without one, the copy that an earlier run has stays.
    fn of(copy: &'a SettingsCopy, all: &All<'_>) -> Option<Source<'a>> {
        let path = copy.path.expand_path(all.variables)?;
        let below = match copy.path.base {
            // However the home is written.
            Some(Variable::Home) => Path::new(copy.path.rest.trim_start_matches('/')),
            _ => path.strip_prefix(all.real_home).ok()?,
        };
        let below = below.to_path_buf();
        below.file_name()?;
        let may_be_file = !all.listings.is_straight(&path);
        let meta = may_be_file.then(|| path.metadata().ok()).flatten().filter(Metadata::is_file)?;
        Some(Source { copy: Some(copy), path, below, stamp: stamp(Some(copy), &meta) })
    }

    /// A file of patterns, by its place in the home. In the workspace it is there anyway.
    fn of_patterns(below: &str, all: &All<'_>) -> Option<Source<'a>> {
        let (path, below) = (all.real_home.join(below), PathBuf::from(below));
        let is_there = || all.variables.workspace.is_some_and(|workspace| is_within(&path, workspace));
        let meta = path.metadata().ok().filter(|meta| meta.is_file() && !is_there())?;
        Some(Source { copy: None, path, below, stamp: stamp(None, &meta) })
    }

    /// Whether its copy, and those of the files that it names, are of what is there now.
    fn is_current(&self, known: &str, all: &All<'_>) -> bool {
        let is_current = |below: &str| Source::of_patterns(below, all).is_none_or(|file| file.is_in(known));
        self.is_in(known) && self.named(known).all(is_current)
    }

    /// The files of patterns that it names, by the lines after its own.
    fn named<'k>(&self, known: &'k str) -> impl Iterator<Item = &'k str> + use<'k> {
        let rest = known.split_once(&*self.stamp).map_or("", |(_, rest)| rest);
        rest.lines().map_while(|line| line.strip_prefix(NAMED))
    }

    fn is_in(&self, known: &str) -> bool {
        known.split_inclusive('\n').any(|line| line == self.stamp)
    }

    /// Makes the copy. Returns what it was made of, and the files of patterns that it names.
    fn carry(
        &self,
        all: &All<'_>,
        home: &Directory,
        warnings: &mut Vec<String>,
    ) -> (Option<String>, Vec<String>) {
        match self.text(all) {
            Ok(Some((text, stamp))) => {
                let (text, named) = match self.copied(&text, all) {
                    Ok(copied) => copied,
                    Err(why) => {
                        warnings.push(why);
                        Default::default()
                    }
                };
                match put(home, &self.below, &text) {
                    Ok(true) => return (Some(stamp), named),
                    Ok(false) => {}
                    Err(failed) if OBSTACLES.contains(&failed.errno()) => {}
                    Err(failed) => warnings.push(self.cannot(&failed.to_string())),
                }
            }
            Ok(None) => {}
            Err(why) => warnings.push(self.cannot(&why)),
        }
        (None, Vec::new())
    }

    /// What is copied of a text, and the files of patterns that it names.
    fn copied(&self, text: &[u8], all: &All<'_>) -> Result<(Vec<u8>, Vec<String>), String> {
        let path = shown(&self.path);
        let Some(SettingsCopy { format, keep, .. }) = self.copy else {
            let copied = settings_copy::of_patterns(text);
            return copied.map(|text| (text, Vec::new())).map_err(|_| {
                format!("the private home has an empty copy of '{path}', which may hold more than patterns")
            });
        };
        let copied = settings_copy::filtered(*format, keep, text).map_err(|_| {
            let format = format.word();
            format!(
                "the private home has an empty copy of '{path}', which cannot be read as a file of the format \
                 '{format}'"
            )
        })?;
        let files = settings_copy::files(*format, keep, text);
        let named = files.iter().filter_map(|file| place_in_home(file, all));
        Ok((copied, named.map(str::to_string).collect()))
    }

    fn cannot(&self, why: &str) -> String {
        format!("cannot copy '{}' to the private home: {why}", shown(&self.path))
    }

    /// The text, and the stamp of the file that was read. What is no file any more has none.
    fn text(&self, all: &All<'_>) -> Result<Option<(Vec<u8>, String)>, String> {
        let way = path::way(&self.path);
        // Settings are protected in other workspaces, and what they name is not.
        let own = all.variables.workspace;
        let is_led = match self.copy {
            Some(_) => own.is_some_and(|own| way.leads_out_of(own)),
            None => all.workspaces.or_own_lead_out(&way, own),
        };
        if is_led {
            return Err("a link in the workspace leads out of it".to_string());
        }
        // Whoever may write where the links were has no second chance to change one.
        let file = match file::open_without_links(&way.real) {
            Ok(file) => File::from(file),
            Err(failed) if failed.errno() == libc::ENOENT => return Ok(None),
            Err(failed) => return Err(failed.to_string()),
        };
        let meta = file.metadata().map_err(|error| plain(&error))?;
        if !meta.is_file() {
            return Ok(None);
        }
        if ![0, process::user()].contains(&meta.uid()) {
            return Err(format!("it belongs to user {}", meta.uid()));
        }
        let text = file::read_most(&file, LONGEST).map_err(|error| plain(&error))?;
        let text = text.ok_or("it is longer than 1 MiB")?;
        Ok(Some((text, stamp(self.copy, &meta))))
    }
}

/// The place in the home of a file that settings name.
fn place_in_home<'p>(path: &'p Path, all: &All<'_>) -> Option<&'p str> {
    let homes = [Some(Path::new("~")), all.variables.home, Some(all.real_home)];
    let below = homes.into_iter().flatten().find_map(|home| path.strip_prefix(home).ok())?;
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    below.to_str().filter(|below| is_plain && !below.is_empty() && !below.contains('\n'))
}

/// A line that is another one as soon as the file, the filter or the list of names is.
fn stamp(copy: Option<&SettingsCopy>, meta: &Metadata) -> String {
    let mut hasher = DefaultHasher::new();
    (VERSION, copy).hash(&mut hasher);
    format!(
        "{:016x} {} {} {} {}.{:09} {}.{:09}\n",
        hasher.finish(),
        meta.dev(),
        meta.ino(),
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec()
    )
}

/// Has a file of this text take a place below the home. Returns whether all on the way are directories of the user's.
fn put(home: &Directory, below: &Path, text: &[u8]) -> Result<bool, SyscallError> {
    let Some(name) = below.file_name() else { return Ok(false) };
    let mut directory = home.place(Path::new(""))?;
    for part in below.parent().into_iter().flat_map(Path::iter) {
        let Some(next) = directory.own_place(part)? else { return Ok(false) };
        directory = next;
    }
    file::replace(directory.as_fd(), name, text, 0o600).map(|()| true)
}

#[cfg(test)]
mod tests;
