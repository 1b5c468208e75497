//! Brings the copies of settings in a private home up to date.
//!
//! The private home belongs to commands of earlier runs, and a running one may change it meanwhile. So it is walked by
//! descriptors, no link in it is followed, and nothing that is there is opened: a copy is a new file that takes the
//! place of whatever has its name. What a command put in the way stays, and that copy is not made.
//!
//! A file is read only after it has changed. What it was when it was copied is written down outside of the private
//! home, so a start at which nothing has changed takes one read, and one look at each file.

use crate::plan::files::inside;
use crate::plan::listings::Listings;
use crate::plan::settings_copy::{LONGEST, VERSION, filtered};
use crate::profile::{Given, SettingsCopy, Variable, Variables};
use crate::sys::beneath::Directory;
use crate::sys::{SyscallError, file, memory, plain, process};
use crate::text::shown;
use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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

/// A file that there is.
struct Source<'a> {
    copy: &'a SettingsCopy,
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
}

/// Copies what has changed. `stamps` is the file that says what the copies were made of; no command can reach it.
/// Returns what there is to say to the user.
pub fn refresh(all: All<'_>, private_home: &Path, stamps: &Path) -> Vec<String> {
    let variables = all.variables;
    let known = file::read(stamps).ok().and_then(|text| String::from_utf8(text).ok()).unwrap_or_default();
    let sources = all.copies.iter().filter_map(|copy| Source::of(copy, &all)).collect::<Vec<_>>();
    if sources.iter().all(|source| source.is_in(&known)) {
        return Vec::new();
    }
    let (known, locked) = match lock(stamps) {
        Some((known, file)) => (known, Some(file)),
        // Without the lock nothing is written down, and the next start looks again.
        None => (known, None),
    };
    let mut warnings = Vec::new();
    let mut current = String::new();
    match Directory::open(private_home) {
        Ok(home) => {
            for source in sources {
                let made = if source.is_in(&known) {
                    Some(source.stamp)
                } else {
                    source.carry(variables, &home, &mut warnings)
                };
                current.extend(made);
            }
        }
        Err(failed) => {
            warnings.push(format!("cannot copy settings to '{}': {failed}", shown(private_home)));
        }
    }
    if let Some(mut file) = locked {
        // What is written by half fits nothing, and the next start looks again.
        let _ =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(current.as_bytes()));
    }
    warnings
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
        Some(Source { copy, path, below, stamp: stamp(copy, &meta) })
    }

    fn is_in(&self, known: &str) -> bool {
        known.split_inclusive('\n').any(|line| line == self.stamp)
    }

    /// Makes the copy. Returns what it was made of.
    fn carry(
        &self,
        variables: &Variables<'_>,
        home: &Directory,
        warnings: &mut Vec<String>,
    ) -> Option<String> {
        match self.text(variables) {
            Ok(Some((text, stamp))) => {
                let text = filtered(self.copy.format, &self.copy.keep, &text).unwrap_or_else(|_| {
                    warnings.push(format!(
                        "the private home has an empty copy of '{}', which cannot be read as a file of the format \
                         '{}'",
                        shown(&self.path),
                        self.copy.format.word()
                    ));
                    Vec::new()
                });
                match put(home, &self.below, &text) {
                    Ok(true) => return Some(stamp),
                    Ok(false) => {}
                    Err(failed) if OBSTACLES.contains(&failed.errno()) => {}
                    Err(failed) => warnings.push(self.cannot(&failed.to_string())),
                }
            }
            Ok(None) => {}
            Err(why) => warnings.push(self.cannot(&why)),
        }
        None
    }

    fn cannot(&self, why: &str) -> String {
        format!("cannot copy '{}' to the private home: {why}", shown(&self.path))
    }

    /// The text, and the stamp of the file that was read. What is no file any more has none.
    fn text(&self, variables: &Variables<'_>) -> Result<Option<(Vec<u8>, String)>, String> {
        let real = inside(&self.path, variables)
            .map_err(|_| "a link in the workspace leads out of it".to_string())?;
        // Whoever may write where the links were has no second chance to change one.
        let file = match file::open_without_links(&real) {
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

/// A line that is another one as soon as the file, the filter or the list of names is.
fn stamp(copy: &SettingsCopy, meta: &Metadata) -> String {
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
    let new = memory::random_name(".sbx-")?;
    let file = file::create_new(directory.as_fd(), new.as_ref(), 0o600)?;
    let placed = file::write_all(file.as_fd(), text)
        .and_then(|()| file::rename(directory.as_fd(), new.as_ref(), name));
    if placed.is_err() {
        let _ = file::unlink(directory.as_fd(), new.as_ref());
    }
    placed.map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use crate::profile::{Location, Origin, Pattern, SettingsFormat};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    /// A real home, a private one, and a file of stamps.
    struct Homes(Scratch);

    impl Homes {
        fn new() -> Homes {
            let scratch = Scratch::create(None).unwrap();
            for name in ["real", "private", "work"] {
                fs::create_dir(scratch.path().join(name)).unwrap();
            }
            Homes(scratch)
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn refresh_with(&self, paths: &[&str], keep: &str) -> Vec<String> {
            let (home, workspace) = (self.at("real"), self.at("work"));
            let variables =
                Variables { home: Some(&home), workspace: Some(&workspace), ..Variables::default() };
            let copies: Vec<_> = paths.iter().map(|path| copy(path, keep)).collect();
            let listings = Listings::below([home.clone()]);
            let all = All { copies: &copies, variables: &variables, real_home: &home, listings: &listings };
            refresh(all, &self.at("private"), &self.at("stamps"))
        }

        fn refresh(&self, paths: &[&str]) -> Vec<String> {
            self.refresh_with(paths, "user.*")
        }

        fn stamps(&self) -> String {
            fs::read_to_string(self.at("stamps")).unwrap_or_default()
        }

        fn copied(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.at("private").join(name)).ok()
        }
    }

    fn copy(path: &str, keep: &str) -> Given<SettingsCopy> {
        let path = Location { base: Some(Variable::Home), rest: format!("/{path}").into() };
        let keep = vec![Pattern::new(keep.to_string().into())].into();
        let value = SettingsCopy { path, format: SettingsFormat::Git, keep };
        let origin = Origin {
            profile: crate::profile::Shared::Fixed("x"),
            built_in: true,
            optional: true,
            unless_credentials: false,
            key: "home.copies",
            index: None,
            entry: "".into(),
            why: None,
        };
        Given { value, origin: origin.into() }
    }

    const TEXT: &str = "[user]\n\tname = a\n[credential]\n\thelper = hunter2\n";
    const COPY: &str = "[user]\n\tname = \"a\"\n";

    #[test]
    fn what_has_changed_is_copied_and_nothing_else() {
        let homes = Homes::new();
        let config = homes.at("real/.config/git");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config"), TEXT).unwrap();
        let paths = [".gitconfig", ".config/git/config"];
        assert_eq!(homes.refresh(&paths), [""; 0]);
        assert_eq!(homes.copied(".config/git/config").unwrap(), COPY);
        assert_eq!(homes.copied(".gitconfig"), None);
        let mode = |name: &str| homes.at("private").join(name).metadata().unwrap().mode() & 0o7777;
        assert_eq!((mode(".config"), mode(".config/git"), mode(".config/git/config")), (0o700, 0o700, 0o600));
        // What the command makes of it stays, until the file changes, or the names that are kept.
        let private = homes.at("private/.config/git/config");
        fs::write(&private, "mine").unwrap();
        let stamps = homes.stamps();
        assert_eq!((homes.refresh(&paths), homes.stamps()), (Vec::new(), stamps));
        assert_eq!(homes.copied(".config/git/config").unwrap(), "mine");
        homes.refresh_with(&paths, "user.n*");
        assert_eq!(homes.copied(".config/git/config").unwrap(), COPY);
        fs::write(config.join("config"), "[user]\n\tname = b\n").unwrap();
        homes.refresh_with(&paths, "user.n*");
        assert_eq!(homes.copied(".config/git/config").unwrap(), "[user]\n\tname = \"b\"\n");
        // Without its source it stays.
        fs::remove_file(config.join("config")).unwrap();
        assert_eq!(homes.refresh_with(&paths, "user.n*"), [""; 0]);
        assert!(homes.copied(".config/git/config").is_some());
        let names: Vec<_> = fs::read_dir(private.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn a_start_without_a_change_writes_nothing() {
        let homes = Homes::new();
        fs::write(homes.at("real/.gitconfig"), TEXT).unwrap();
        homes.refresh(&[".gitconfig"]);
        // Neither home nor stamps could be written now, were anybody to try.
        fs::remove_dir_all(homes.at("private")).unwrap();
        let written = homes.at("stamps").metadata().unwrap().ctime_nsec();
        assert_eq!(homes.refresh(&[".gitconfig"]), [""; 0]);
        assert_eq!(homes.at("stamps").metadata().unwrap().ctime_nsec(), written);
        assert_eq!(homes.refresh_with(&[".gitconfig"], "x").len(), 1);
    }

    #[test]
    fn what_was_planted_in_the_home_is_neither_followed_nor_written() {
        let homes = Homes::new();
        let outside = homes.at("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        let private = |name: &str| homes.at("private").join(name);
        for name in ["link", "hard", "fifo", "full", "up/x", "to/x", "file/x", "closed/x", "fine"] {
            let real = homes.at("real").join(name);
            fs::create_dir_all(real.parent().unwrap()).unwrap();
            fs::write(real, TEXT).unwrap();
        }
        symlink(outside.join("kept"), private("link")).unwrap();
        fs::hard_link(outside.join("kept"), private("hard")).unwrap();
        assert!(Command::new("mkfifo").arg(private("fifo")).status().unwrap().success());
        fs::create_dir_all(private("full/entry")).unwrap();
        symlink("../outside", private("up")).unwrap();
        symlink(&outside, private("to")).unwrap();
        fs::write(private("file"), "file").unwrap();
        fs::create_dir(private("closed")).unwrap();
        fs::set_permissions(private("closed"), fs::Permissions::from_mode(0o0)).unwrap();
        let paths = ["link", "hard", "fifo", "full", "up/x", "to/x", "file/x", "closed/x", "fine"];
        assert_eq!(homes.refresh(&paths), [""; 0]);
        for name in ["link", "hard", "fifo", "fine"] {
            assert!(private(name).symlink_metadata().unwrap().is_file(), "{name}");
            assert_eq!(homes.copied(name).as_deref(), Some(COPY), "{name}");
        }
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert!(private("full/entry").is_dir() && private("up").is_symlink() && private("to").is_symlink());
        assert_eq!(homes.copied("file").unwrap(), "file");
        // Nothing is left over, and what was in the way is tried again.
        let names = fs::read_dir(homes.at("private")).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(!names.into_iter().any(|name| name.to_string_lossy().starts_with(".sbx-")));
        fs::remove_file(private("up")).unwrap();
        assert_eq!(homes.refresh(&paths), [""; 0]);
        assert_eq!(homes.copied("up/x").unwrap(), COPY);
    }

    #[test]
    fn a_directory_of_another_user_is_passed_over() {
        if !process::is_root() {
            return;
        }
        let homes = Homes::new();
        fs::create_dir(homes.at("real/x")).unwrap();
        fs::write(homes.at("real/x/y"), TEXT).unwrap();
        fs::create_dir(homes.at("private/x")).unwrap();
        std::os::unix::fs::chown(homes.at("private/x"), Some(65534), None).unwrap();
        assert_eq!(homes.refresh(&["x/y"]), [""; 0]);
        assert_eq!(fs::read_dir(homes.at("private/x")).unwrap().count(), 0);
        std::os::unix::fs::chown(homes.at("private/x"), Some(0), None).unwrap();
        assert_eq!(homes.refresh(&["x/y"]), [""; 0]);
        assert_eq!(homes.copied("x/y").unwrap(), COPY);
    }

    #[test]
    fn links_are_followed_as_the_users_own_only() {
        let homes = Homes::new();
        let (real, work) = (homes.at("real"), homes.at("work"));
        fs::write(homes.at("settings"), TEXT).unwrap();
        symlink("../settings", real.join("direct")).unwrap();
        symlink(&work, real.join("into")).unwrap();
        symlink("../settings", work.join("out")).unwrap();
        symlink("into/out", real.join("around")).unwrap();
        fs::write(work.join("own"), TEXT).unwrap();
        let said = homes.refresh(&["direct", "around", "into/own"]);
        assert!(homes.copied("direct").is_some() && homes.copied("into/own").is_some());
        assert_eq!(homes.copied("around"), None);
        assert!(said.len() == 1 && said[0].ends_with("a link in the workspace leads out of it"), "{said:?}");
    }

    #[test]
    fn only_files_of_settings_are_read() {
        let homes = Homes::new();
        let real = |name: &str| homes.at("real").join(name);
        fs::write(real("long"), format!("{TEXT}#{}", "x".repeat(LONGEST as usize))).unwrap();
        assert!(Command::new("mkfifo").arg(real("fifo")).status().unwrap().success());
        symlink("/dev/zero", real("device")).unwrap();
        fs::create_dir(real("directory")).unwrap();
        fs::write(real("broken"), "[user]\nname = a\n[user").unwrap();
        fs::write(real("others"), TEXT).unwrap();
        let root = process::is_root();
        if root {
            std::os::unix::fs::chown(real("others"), Some(65534), None).unwrap();
        }
        let said = homes.refresh(&["long", "fifo", "device", "directory", "broken", "others"]);
        for (name, copied, why) in [
            ("long", None, "is longer than 1 MiB"),
            ("broken", Some(String::new()), "has an empty copy of"),
            ("others", if root { None } else { Some(COPY.to_string()) }, "belongs to user 65534"),
        ] {
            assert_eq!(homes.copied(name), copied, "{name}");
            let complains = copied.as_deref() != Some(COPY);
            assert_eq!(said.iter().any(|line| line.contains(why)), complains, "{name}: {said:?}");
        }
        assert!(said.len() == if root { 3 } else { 2 }, "{said:?}");
        assert!(["fifo", "device", "directory"].iter().all(|name| homes.copied(name).is_none()));
    }
}
