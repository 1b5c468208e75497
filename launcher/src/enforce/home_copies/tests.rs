use super::*;
use crate::enforce::scratch::Scratch;
use crate::host::Host;
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
        let variables = Variables { home: Some(&home), workspace: Some(&workspace), ..Variables::default() };
        let copies: Vec<_> = paths.iter().map(|path| copy(path, keep)).collect();
        let listings = Listings::below([home.clone()]);
        let host = Host::of_this_process();
        let workspaces = &Workspaces::of(&host);
        let all =
            All { copies: &copies, variables: &variables, real_home: &home, listings: &listings, workspaces };
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

/// Without them git would take what they name for files of the project.
#[test]
fn files_of_patterns_that_settings_name_are_copied_too() {
    let homes = Homes::new();
    let config =
        |names: &str| fs::write(homes.at("real/.gitconfig"), format!("[user]\n\tname = a\n[core]\n{names}"));
    let refresh = || homes.refresh_with(&[".gitconfig"], "*");
    config("\texcludesFile = ~/.ignore\n\tattributesFile = ~/conf/attributes\n").unwrap();
    fs::write(homes.at("real/.ignore"), "secret.env\n").unwrap();
    fs::create_dir(homes.at("real/conf")).unwrap();
    fs::write(homes.at("real/conf/attributes"), "*.c text\n").unwrap();
    assert_eq!(refresh(), [""; 0]);
    assert_eq!(homes.copied(".ignore").unwrap(), "secret.env\n");
    assert_eq!(homes.copied("conf/attributes").unwrap(), "*.c text\n");
    // One that changes alone.
    let stamps = homes.stamps();
    assert_eq!((refresh(), homes.stamps()), (Vec::new(), stamps));
    fs::write(homes.at("real/.ignore"), "other.env\n").unwrap();
    assert_eq!(refresh(), [""; 0]);
    assert_eq!(homes.copied(".ignore").unwrap(), "other.env\n");
    // What is no list of names, what is elsewhere, and what the profile does not keep.
    fs::write(homes.at("real/key"), "-----BEGIN PRIVATE KEY-----\n").unwrap();
    fs::write(homes.at("outside"), "x\n").unwrap();
    config("\texcludesFile = ~/key\n\tattributesFile = ~/../outside\n").unwrap();
    assert_eq!(refresh().len(), 1);
    assert_eq!(homes.copied("key").unwrap(), "");
    assert!(!homes.at("private/outside").exists());
    config("\texcludesFile = ~/third\n").unwrap();
    fs::write(homes.at("real/third"), "x\n").unwrap();
    homes.refresh(&[".gitconfig"]);
    assert_eq!(homes.copied("third"), None);
}
