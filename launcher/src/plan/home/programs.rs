//! Programs of the user's that are below the home, with what belongs to them: those of PATH, and the command. What an
//! earlier command may have led to is none of them.

use crate::host::Host;
use crate::plan::Inputs;
use crate::plan::home::is_in_home;
use crate::plan::namespaces::record::Workspaces;
use crate::plan::rules::{PathRights, PathRule};
use crate::program::Link;
use crate::sys::path;
use crate::sys::within::{is_below, is_within};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of directories of PATH that are looked through, and of links in each.
const MOST_DIRECTORIES: usize = 32;
const MOST_LINKS: usize = 512;

/// What belongs to a program in a directory `bin`, beside it: the code of a prefix (FHS), and a Python environment's.
/// Not `share`: in `~/.local` it holds passwords and letters.
const BESIDE_BIN: [&str; 4] = ["lib", "lib64", "libexec", ENVIRONMENT];

/// What makes a directory an environment of Python.
const ENVIRONMENT: &str = "pyvenv.cfg";

/// What says that a directory was unpacked as a whole, a file and a directory: a JDK, a distribution of Go. Programs
/// there find nothing without the rest.
const OF_INSTALLATIONS: [(&str, &str); 2] = [("release", "lib"), ("VERSION", "pkg/tool")];

/// Rules for programs below the home, with what belongs to them.
pub struct Programs<'a> {
    home: &'a Path,
    own: Vec<&'a Path>,
    known: &'a [PathRule],
    others: Workspaces<'a>,
    /// The rules.
    pub added: Vec<PathRule>,
    /// The symbolic links on the way there, but for those in the directories themselves.
    pub links: Vec<PathBuf>,
}

impl<'a> Programs<'a> {
    /// None yet. `own`: where commands of this run may write. `known`: the rules that there are.
    pub fn new(home: &'a Path, own: Vec<&'a Path>, known: &'a [PathRule], host: &'a Host) -> Programs<'a> {
        Programs { home, own, known, others: Workspaces::of(host), added: Vec::new(), links: Vec::new() }
    }

    /// The directories of PATH, and what links in them lead to.
    pub fn of_path(&mut self, named: &OsStr) {
        for directory in std::env::split_paths(named).take(MOST_DIRECTORIES) {
            let way = path::way(&directory);
            let wanted = directory.is_absolute() && is_below(&way.real, self.home);
            if !wanted || self.is_planted(&way) || !path::is_directory(&way.real) {
                continue;
            }
            let targets = links_in(&way.real);
            self.add(way.real.clone());
            // An environment of Python that is in use: without the rest, its programs find the system's modules.
            if way.real.parent().is_some_and(|prefix| prefix.join(ENVIRONMENT).is_file()) {
                self.add_beside(&way.real.join("python"), &way.links);
            }
            if let Some(prefix) = way.real.parent().filter(|_| way.real.ends_with("bin")) {
                self.add_installation(prefix);
            }
            for target in targets {
                // Of two names in one directory, each is as much at home there as the other.
                let is_beside = target.real.parent() == Some(&*way.real);
                if self.add_program(&target, !is_beside) {
                    let more = target.links.into_iter().filter(|link| link.parent() != Some(&*way.real));
                    self.links.extend(more);
                }
            }
            self.links.extend(way.links);
        }
    }

    /// The command and the interpreters of its scripts. What a file names that a command may have written stays closed.
    pub fn of_command(&mut self, command: &[Link], inputs: &Inputs<'_>) {
        // The first line of a script leads somewhere as a link does.
        let mut led = Vec::new();
        for link in command.iter().take_while(|link| is_in_home(&link.path, self.home, inputs.host)) {
            let mut way = path::way(&inputs.directory.join(&link.path));
            let names: Vec<PathBuf> = way.links.iter().chain([&link.path]).cloned().collect();
            way.links.append(&mut led);
            if !self.add_program(&way, true) {
                return;
            }
            // An environment of Python has a link to an interpreter elsewhere.
            for name in names {
                self.add_beside(&name, &way.links);
            }
            led = way.links;
            led.push(way.real);
        }
    }

    /// Adds all of a directory that was unpacked as a whole, beside whose programs everything else is looked for. In a
    /// workspace a command may have made what says so.
    fn add_installation(&mut self, prefix: &Path) {
        let has = |(file, part): &(&str, &str)| prefix.join(file).is_file() && prefix.join(part).is_dir();
        let is_planted = || self.others.holding(&prefix.join("bin")).is_some();
        let is_whole = || OF_INSTALLATIONS.iter().any(has) && !holds_hidden(prefix);
        if is_below(prefix, self.home) && is_whole() && !is_planted() {
            self.add(prefix.to_path_buf());
        }
    }

    /// Whether an earlier command may have led there.
    fn is_planted(&self, way: &path::Way) -> bool {
        let is_own = |path: &PathBuf| self.own.iter().any(|own| is_within(path, own));
        is_own(&way.real) || way.links.iter().any(is_own) || self.leads_out(&way.links, &way.real)
    }

    /// Whether one of these links is in a workspace of other runs, and leads out of it. A link inside of one opens
    /// nothing that a command there could not have copied.
    fn leads_out(&self, links: &[PathBuf], to: &Path) -> bool {
        self.others.lead_out(links, to)
    }

    /// Adds a program; false if that is none, or not to be trusted.
    fn add_program(&mut self, way: &path::Way, with_prefix: bool) -> bool {
        if self.is_planted(way) || !path::is_program(&way.real) {
            return false;
        }
        if with_prefix {
            self.add_beside(&way.real, &way.links);
        }
        self.add(way.real.clone());
        true
    }

    /// What belongs to a program that these links led to.
    fn add_beside(&mut self, program: &Path, links: &[PathBuf]) {
        for path in beside(program, self.home) {
            if !self.leads_out(links, &path) {
                self.add(path);
            }
        }
    }

    fn add(&mut self, path: PathBuf) {
        // What a rule around the home opens, the run's own home hides.
        let mut all = self.known.iter().chain(&self.added).filter(|rule| is_within(&rule.path, self.home));
        if !all.any(|rule| rule.rights.execute && is_within(&path, &rule.path)) {
            self.added.push(PathRule {
                path,
                rights: PathRights::EXECUTE,
                optional: true,
                built_in: true,
                follows: false,
            });
        }
    }
}

/// Whether something in a directory is hidden: a project has `.git` or `.gitignore`, and may have more.
fn holds_hidden(directory: &Path) -> bool {
    let mut entries = directory.read_dir().into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().as_bytes().starts_with(b"."))
}

/// Where the symbolic links in a directory lead, by its real path.
fn links_in(directory: &Path) -> Vec<path::Way> {
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.take(MOST_LINKS).map(|entry| path::way_from(directory, Path::new(&entry.file_name()))).collect()
}

/// What belongs to a program that is in the directory `bin` of a prefix below the home.
fn beside(program: &Path, home: &Path) -> Vec<PathBuf> {
    let Some(bin) = program.parent().filter(|above| above.file_name() == Some(OsStr::new("bin"))) else {
        return Vec::new();
    };
    let Some(prefix) = bin.parent().filter(|prefix| is_below(prefix, home)) else { return Vec::new() };
    let parts = BESIDE_BIN.iter().map(|name| prefix.join(name)).chain([bin.to_path_buf()]);
    parts.filter(|path| path::is_there(path) && !path.is_symlink()).collect()
}
