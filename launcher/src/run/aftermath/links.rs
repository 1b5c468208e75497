//! What leads git elsewhere by a name in its own directories: links, and refs that stand for what is no ref. git
//! outside would write by them, into files of the user's that a command cannot change, or into its own: names of
//! branches and of people, which a command chooses (`packed-refs`, logs), names of objects, and whatever else it keeps.

use super::new::New;
use super::{Aftermath, Look, Opened};
use crate::enforce::aside::{is_aside, set_aside_above};
use crate::sys::beneath::{Directory, Entry, LISTING};
use crate::sys::file;
use crate::text::shown;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// As many are put aside at a time, and as often.
const AT_A_TIME: usize = 4096;
const TIMES: usize = 64;
/// More directories of one repository are not looked into.
const MOST_DIRECTORIES: usize = 1 << 16;
/// Directories in which contents give the names, to git and to what adds to it (Git LFS, git-annex): nobody chooses
/// them. There are many, and only what is right in them is looked at, but for these two of git's.
const STORES: [&str; 3] = ["objects", "lfs/objects", "annex/objects"];
const IN_OBJECTS: [&str; 2] = [INFO, "objects/pack"];
const INFO: &str = "objects/info";
/// Directories of lists by which git removes or renames files. Such a list can be written to in its place, and then its
/// directory looks as before.
const OF_LISTS: [&str; 4] =
    ["reftable", "objects/pack", "objects/pack/multi-pack-index.d", "objects/info/commit-graphs"];
/// Longer names of refs cannot be.
const LONGEST: u64 = 8192;
/// As much is read of a list of tables, or of an index of packs.
pub const LONGEST_TABLE: u64 = 1 << 20;

impl Aftermath {
    /// Puts aside what is new of that in a repository, and in what it keeps of its linked worktrees.
    pub(super) fn look_at_links(&self, &Opened { place, path, .. }: &Opened<'_>, look: &mut Look) {
        let mut seen = BTreeSet::new();
        for _ in 0..TIMES {
            // One that cannot be opened is told of elsewhere. It is opened anew, for each can be listed once.
            let Ok(own) = self.root.below(place) else { return };
            let mut scan = Scan::new(&seen, own.is_in_memory());
            scan.descend(&own, self.new_entries(path, &own));
            let Scan { found, has_more, .. } = scan;
            // What a mount held is no command's.
            let is_held = |place: &PathBuf| {
                self.layout.as_ref().is_some_and(|layout| layout.links.contains_key(&path.join(place)))
            };
            let (held, found): (Vec<PathBuf>, Vec<PathBuf>) = found.into_iter().partition(is_held);
            seen.extend(held);
            // Among refs and logs, any name is one of a ref.
            let put_aside = found
                .iter()
                .filter_map(|place| look.tell_failure(&path.join(place), set_aside_above(&own, place)));
            let put_aside: Vec<PathBuf> = put_aside.collect();
            look.aside.extend(put_aside.iter().map(|place| path.join(place)));
            look.found_states(path, &found, &put_aside);
            if !has_more {
                return;
            }
            seen.extend(found);
        }
        look.outcome.failures.push(format!(
            "cannot put aside all links that git would follow in '{}': there are too many",
            shown(path)
        ));
    }
}

/// A look under way at a repository. Places are those in it.
struct Scan<'s> {
    /// What has been found before: not all can be put aside.
    seen: &'s BTreeSet<PathBuf>,
    /// Whether the time of a file does not tell of all changes.
    all_files: bool,
    found: Vec<PathBuf>,
    has_more: bool,
}

impl Scan<'_> {
    fn new(seen: &BTreeSet<PathBuf>, all_files: bool) -> Scan<'_> {
        Scan { seen, all_files, found: Vec::new(), has_more: false }
    }

    /// Looks into a repository's directory with all that are in it.
    fn descend(&mut self, own: &Directory, new: New) {
        let mut rest = vec![(PathBuf::new(), new)];
        for _ in 0..MOST_DIRECTORIES {
            let Some((place, new)) = rest.pop() else { return };
            let directory = match own.below(&place) {
                Ok(directory) => directory,
                // One that may not be listed may be gone through.
                Err(_) if new.is(own, place.as_os_str()) => {
                    self.add(place);
                    continue;
                }
                Err(_) => continue,
            };
            self.list(&directory, new, &place, |name| {
                let inner = place.join(name);
                if !is_looked_into(&inner) {
                    return;
                }
                let (new, has_new) = new.into_one(&directory, name);
                if has_new || has_refs(&inner) || has_lists(&inner) {
                    rest.push((inner, new));
                }
            });
        }
        self.has_more = true;
    }

    /// Looks at the entries of one directory, and calls `inner` with the directories in it.
    fn list(&mut self, directory: &Directory, new: New, place: &Path, mut inner: impl FnMut(&OsStr)) {
        let all_files = self.all_files;
        let listed = directory.each_entry(&mut Vec::with_capacity(LISTING), |name, entry| {
            let leads_away = match entry {
                Entry::Link => new.is(directory, name) && !is_left(directory, name, place),
                Entry::Other => match leading(name, place) {
                    Some(leads_away) => (all_files || new.is(directory, name)) && leads_away(directory, name),
                    None => false,
                },
                Entry::Directory => {
                    inner(name);
                    false
                }
            };
            if leads_away {
                self.add(place.join(name));
            }
        });
        self.has_more |= listed.is_err();
    }

    fn add(&mut self, place: PathBuf) {
        if self.seen.contains(&place) {
            return;
        }
        let has_room = self.found.len() < AT_A_TIME;
        self.has_more |= !has_room;
        self.found.extend(has_room.then_some(place));
    }
}

/// The place in the directory of a linked worktree, or else in the repository's.
fn in_own(place: &Path) -> &Path {
    let mut parts = place.iter();
    let of_worktree = parts.next().is_some_and(|first| first == "worktrees") && parts.next().is_some();
    if of_worktree { parts.as_path() } else { place }
}

/// Whether a directory is looked into. The repositories of submodules are, by themselves.
fn is_looked_into(place: &Path) -> bool {
    let is_stored = STORES.iter().any(|store| place.parent() == Some(Path::new(store)));
    in_own(place) != Path::new("modules")
        && (!is_stored || IN_OBJECTS.iter().any(|known| place == Path::new(known)))
}

/// Whether there are refs in a directory, or directories of linked worktrees.
fn has_refs(place: &Path) -> bool {
    let own = in_own(place);
    own.as_os_str().is_empty() || own.starts_with("refs") || place == Path::new("worktrees")
}

/// Whether there are lists in a directory, or directories with such.
fn has_lists(place: &Path) -> bool {
    let own = in_own(place);
    OF_LISTS.iter().any(|known| Path::new(known).starts_with(own))
}

/// What tells whether a file of this name in this directory leads git away, if any can.
fn leading(name: &OsStr, place: &Path) -> Option<fn(&Directory, &OsStr) -> bool> {
    if is_for_a_ref(name, place) {
        Some(stands_for_no_ref)
    } else if in_own(place) == Path::new("reftable") && name == "tables.list" {
        Some(lists_other_tables)
    } else if place == Path::new("objects/info/commit-graphs") && name == "commit-graph-chain" {
        Some(chains_other_graphs)
    } else if place.starts_with("objects/pack") && name.as_bytes().starts_with(b"multi-pack-index") {
        Some(names_other_packs)
    } else {
        None
    }
}

/// Whether a list of tables of refs has paths. git removes the tables that it has put together into one.
fn lists_other_tables(directory: &Directory, name: &OsStr) -> bool {
    let text = directory.read(name, LONGEST_TABLE);
    text.map_or(true, |text| text.is_some_and(|text| text.contains(&b'/')))
}

/// Whether a list of commit graphs has anything else than names of objects. git looks at the first characters of a line
/// only, and renames the file of the whole.
fn chains_other_graphs(directory: &Directory, name: &OsStr) -> bool {
    let is_plain = |text: Option<Vec<u8>>| {
        text.is_none_or(|text| text.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'\n'))
    };
    !directory.read(name, LONGEST_TABLE).is_ok_and(is_plain)
}

/// Whether an index of several packs has paths. git removes packs of which it needs nothing any more.
fn names_other_packs(directory: &Directory, name: &OsStr) -> bool {
    match directory.beginning(name, LONGEST_TABLE) {
        // git reads no other.
        Ok(Some(text)) if !text.starts_with(b"MIDX") => false,
        Ok(Some(text)) => names_of_packs(&text).is_none_or(|names| names.contains(&b'/')),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// The names in such an index (gitformat-pack(5)): after 12 bytes, four of which say what it is, a table of chunks,
/// each with a name and eight bytes that say where it begins.
fn names_of_packs(text: &[u8]) -> Option<&[u8]> {
    const HEADER: usize = 12;
    const ROW: usize = 12;
    let begins = |row: usize| {
        let offset = text.get(HEADER + row * ROW + 4..HEADER + (row + 1) * ROW)?;
        usize::try_from(u64::from_be_bytes(offset.try_into().ok()?)).ok()
    };
    let count = usize::from(*text.get(6)?);
    let is_of_names = |row: &usize| text.get(HEADER + row * ROW..).is_some_and(|at| at.starts_with(b"PNAM"));
    // git goes by the first.
    let row = (0..count).find(is_of_names)?;
    text.get(begins(row)?..begins(row + 1)?)
}

/// Whether git takes a file of this name, in this directory, for a ref: it writes messages that begin in any way.
fn is_for_a_ref(name: &OsStr, place: &Path) -> bool {
    let name = name.as_bytes();
    let is_pseudo = name.iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'_')) && !name.ends_with(b"MSG");
    let own = in_own(place);
    own.starts_with("refs") || own.as_os_str().is_empty() && is_pseudo
}

/// Whether a text names a ref, by which git goes nowhere else.
fn names_a_ref(text: &[u8]) -> bool {
    text.starts_with(b"refs/") && !text.windows(2).any(|two| two == b"..")
}

/// Whether a ref stands for something that is none (`ref: commondir`): git would write a name of an object there.
fn stands_for_no_ref(directory: &Directory, name: &OsStr) -> bool {
    let text = directory.beginning(name, LONGEST).ok().flatten().unwrap_or_default();
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    text.strip_prefix(b"ref:").is_some_and(|named| !names_a_ref(named.trim_ascii_start()))
}

/// Whether git writes nothing elsewhere by a link: old versions had such ones to say which ref is meant. And git knows
/// nothing of the name of what was put aside. Mercurial tries by one whether there are links.
fn is_left(directory: &Directory, name: &OsStr, place: &Path) -> bool {
    let own = in_own(place);
    let is_of_ref = own.starts_with("refs") || own.as_os_str().is_empty() && name == "HEAD";
    let target = || file::read_link(directory.as_fd(), name).ok();
    place.as_os_str().is_empty() && is_aside(name)
        || name == "checklink" && target().is_some_and(|target| target == "checklink-target")
        || is_of_ref && target().is_some_and(|target| names_a_ref(target.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;

    #[test]
    fn refs_are_where_git_has_them() {
        let is_for = |path: &str| {
            let path = Path::new(path);
            is_for_a_ref(path.file_name().unwrap(), path.parent().unwrap())
        };
        for path in
            ["HEAD", "ORIG_HEAD", "refs/x", "refs/heads/modules/x", "worktrees/a/HEAD", "worktrees/a/refs/x"]
        {
            assert!(is_for(path), "{path}");
        }
        for path in ["COMMIT_EDITMSG", "MERGE_MSG", "index", "info/HEAD", "worktrees/HEAD", "logs/refs/x"] {
            assert!(!is_for(path), "{path}");
        }
        for place in ["reftable", "worktrees/a/reftable"] {
            let place = Path::new(place);
            assert!(has_lists(place) && leading("tables.list".as_ref(), place).is_some(), "{place:?}");
        }
        let into = |path: &str| is_looked_into(Path::new(path));
        for path in [
            "objects",
            "objects/pack",
            "objects/info/x",
            "lfs/objects",
            "refs/heads/modules",
            "worktrees/modules",
        ] {
            assert!(into(path), "{path}");
        }
        for path in ["objects/ab", "lfs/objects/ab", "modules", "worktrees/a/modules"] {
            assert!(!into(path), "{path}");
        }
    }

    #[test]
    fn a_ref_stands_for_a_ref() {
        assert!(names_a_ref(b"refs/heads/main") && names_a_ref(b"refs/notes/commits"));
        assert!(
            !names_a_ref(b"commondir")
                && !names_a_ref(b"refs/../commondir")
                && !names_a_ref(b"worktrees/a/HEAD")
        );
    }

    #[test]
    fn indexes_and_lists_name_what_is_beside_them() {
        let scratch = Scratch::create(None).unwrap();
        let directory = Directory::open(scratch.path()).unwrap();
        let packs = |names: &str| {
            let rows = [(&b"PNAM"[..], 36_u64), (b"\0\0\0\0", 36 + names.len() as u64)];
            let rows: Vec<u8> =
                rows.iter().flat_map(|(name, at)| [name, &at.to_be_bytes()[..]].concat()).collect();
            let text = [b"MIDX\x01\x01\x01\0\0\0\0\x01", &rows[..], names.as_bytes()].concat();
            fs::write(scratch.path().join("packs"), text).unwrap();
            names_other_packs(&directory, "packs".as_ref())
        };
        assert!(!packs("pack-1.idx\0\0") && packs("../pack-1.idx\0\0"));
        fs::write(scratch.path().join("packs"), "MIDX").unwrap();
        assert!(names_other_packs(&directory, "packs".as_ref()));
        let tables = |text: &str| {
            fs::write(scratch.path().join("tables"), text).unwrap();
            lists_other_tables(&directory, "tables".as_ref())
        };
        assert!(!tables("0x1-0x2-a.ref\n") && !tables("") && tables("../0x1-0x2-a.ref\n"));
        let is_led = |path: &str| {
            let path = Path::new(path);
            leading(path.file_name().unwrap(), path.parent().unwrap()).is_some()
        };
        assert!(
            is_led("reftable/tables.list")
                && is_led("objects/pack/multi-pack-index.d/multi-pack-index-1.midx")
        );
        assert!(!is_led("objects/pack/pack-1.idx") && !is_led("description"));
    }
}
