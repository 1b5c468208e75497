//! From the name of a command to files.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::commands::{Entry, Place};
use crate::plan::files::inside;
use crate::plan::namespaces::Workspaces;
use crate::plan::rules::PathRule;
use crate::profile::{Location, Variables};
use crate::sys::access::{self, Permission};
use crate::sys::number::FileNumber;
use crate::sys::plain;
use crate::text::shown;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where commands lie that no PATH names.
const STANDARD: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// So many entries are looked at for the other names of a blocked file.
const MOST_ENTRIES: usize = 1_000_000;

/// Finds files by the names in the lists.
pub(super) struct Lookup<'a> {
    variables: &'a Variables<'a>,
    directory: &'a Path,
    others: Workspaces<'a>,
    /// Of the command, and of this process, which finds the command itself.
    path: Vec<PathBuf>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(
        variables: &'a Variables<'a>,
        directory: &'a Path,
        environment: &[OsString],
        host: &'a Host,
    ) -> Lookup<'a> {
        let inside = environment.iter().find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="));
        let lists = inside.map(OsStr::from_bytes).into_iter().chain(host.variable("PATH"));
        let mut path: Vec<PathBuf> = Vec::new();
        for entry in lists.flat_map(|list| list.as_bytes().split(|byte| *byte == b':')) {
            let entry = directory.join(OsStr::from_bytes(entry));
            if !path.contains(&entry) {
                path.push(entry);
            }
        }
        Lookup { variables, directory, others: Workspaces::of(host), path }
    }

    /// Every file that an entry can mean, wherever commands lie.
    pub(super) fn every(&self, entry: &Entry<'_>) -> Result<Vec<Place>, Refusal> {
        if entry.text.as_bytes().contains(&b'/') {
            return self.by_path(entry);
        }
        let directories = self.path.iter().map(PathBuf::as_path).chain(STANDARD.iter().map(Path::new));
        Ok(directories.flat_map(|directory| matching(directory, entry)).collect())
    }

    /// The file that an entry means: the first one in PATH, or with `*` all of them.
    pub(super) fn first(&self, entry: &Entry<'_>) -> Result<Vec<Place>, Refusal> {
        if entry.text.as_bytes().contains(&b'/') {
            return self.by_path(entry);
        }
        let count = if entry.text.as_bytes().contains(&b'*') { usize::MAX } else { 1 };
        let found = self.path.iter().flat_map(|directory| matching(directory, entry));
        Ok(found.filter(|place| is_executable(&place.file.path)).take(count).collect())
    }

    fn by_path(&self, entry: &Entry<'_>) -> Result<Vec<Place>, Refusal> {
        let text = Path::new(entry.text);
        let cannot = |cause: String| {
            Refusal::new(format!("cannot find the command '{}' ({}): {cause}", shown(text), entry.rule))
        };
        let path = match entry.flag {
            true => self.directory.join(text),
            // The profile has been read already, so it is a path.
            false => Location::path(Cow::Owned(text.to_string_lossy().into_owned()))
                .map_err(|mistake| cannot(mistake.to_string()))?
                .expand_path(self.variables)
                .ok_or_else(|| cannot("its variable stands for nothing in this run".into()))?,
        };
        let (parent, name) = (path.parent(), path.file_name());
        if let (Some(parent), Some(name)) = (parent, name)
            && name.as_bytes().contains(&b'*')
        {
            return Ok(matching(parent, &Entry { text: name, rule: entry.rule.clone(), flag: entry.flag }));
        }
        match Place::of(&path, entry.rule.clone()) {
            Ok(place) if place.directory => {
                inside(&path, self.variables, &self.others)?;
                Ok(vec![place])
            }
            Ok(place) => Ok(vec![place]),
            Err(error) if entry.flag => Err(cannot(plain(&error))),
            // There is nothing to be executed, and so nothing to be blocked or allowed.
            Err(_) => Ok(Vec::new()),
        }
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.mode() & 0o111 != 0)
}

/// The files of a directory that an entry's name or pattern matches.
fn matching(directory: &Path, entry: &Entry<'_>) -> Vec<Place> {
    let pattern = entry.text.as_bytes();
    let place = |path: &Path| Place::of(path, entry.rule.clone()).ok().filter(|place| !place.directory);
    if !pattern.contains(&b'*') {
        return place(&directory.join(entry.text)).into_iter().collect();
    }
    let Ok(children) = directory.read_dir() else { return Vec::new() };
    let names = children.flatten().map(|child| child.file_name());
    names
        .filter(|name| fits(pattern, name.as_bytes()))
        .filter_map(|name| place(&directory.join(name)))
        .collect()
}

/// Whether a name fits a pattern in which `*` stands for anything.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let head = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(head) else { return false };
    let Some(tail) = parts.next_back() else { return rest.is_empty() };
    for part in parts.filter(|part| !part.is_empty()) {
        let Some(at) = rest.windows(part.len()).position(|window| window == part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(tail)
}

/// The further names of files that have more than one (hard links), wherever something can be executed.
pub(super) fn other_names(places: &[Place], rules: &[PathRule]) -> Result<Vec<PathBuf>, Refusal> {
    let mut left: HashMap<FileNumber, u64> = HashMap::new();
    for place in places.iter().filter(|place| !place.directory) {
        let links = place.file.path.symlink_metadata().map_or(0, |meta| meta.nlink());
        if links > 1 {
            left.insert(place.number, links);
        }
    }
    let (mut names, mut looked) = (Vec::new(), 0);
    let executable = rules.iter().filter(|rule| rule.rights.execute).map(|rule| rule.path.clone());
    // The last is looked at first, and a file's names mostly lie in one directory.
    let beside = places.iter().filter_map(|place| place.file.path.parent().map(Path::to_path_buf));
    let mut todo: Vec<PathBuf> = executable.chain(beside).collect();
    let mut seen = HashSet::new();
    while let Some(path) = todo.pop().filter(|_| !left.is_empty()) {
        let Ok(meta) = path.symlink_metadata() else { continue };
        let identity = FileNumber::of(&meta);
        if meta.is_dir() {
            // Not told apart by devices: in an overlay a directory and its files need not have the same.
            if seen.insert(identity) {
                todo.extend(children(&path)?);
            }
        } else if let Some(count) = left.get_mut(&identity).filter(|_| !names.contains(&path)) {
            *count -= 1;
            if *count == 0 {
                left.remove(&identity);
            }
            names.push(path);
        }
        looked += 1;
        if looked > MOST_ENTRIES {
            return Err(Refusal::new(format!(
                "cannot block a command that has several names: they are not among the first {MOST_ENTRIES} \
                 files that may be executed; allow less to be executed, or remove the other names"
            )));
        }
    }
    Ok(names)
}

fn children(directory: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let cannot = |error: io::Error| {
        Refusal::new(format!(
            "cannot look for other names of a blocked command in '{}': {}",
            shown(directory),
            plain(&error)
        ))
    };
    match fs::read_dir(directory) {
        Ok(entries) => {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(cannot)
        }
        // Gone meanwhile, or closed to this user, and so to the command.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(_) if !access::allows(directory, Permission::EXECUTE) => Ok(Vec::new()),
        Err(error) => Err(cannot(error)),
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::commands::names::fits;

    #[test]
    fn patterns() {
        let cases = [
            ("git", "git", true),
            ("git", "Git", false),
            ("git", "git-lfs", false),
            ("git*", "git-lfs", true),
            ("*", "", true),
            ("python3*", "python", false),
            ("*-gcc-*", "x86_64-linux-gnu-gcc-12", true),
            ("a*a", "a", false),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
