//! Path rules, TCP ports and scopes, through Landlock (landlock(7)).
//!
//! Landlock rights only add up: a right granted on a directory holds for everything below. So a path that
//! is denied below a granted directory is excluded by granting its siblings instead (see
//! `plan::deny_expansion`).

use crate::enforce::error::Named;
use crate::enforce::{Cause, EnforceError};
use crate::host::landlock::Version;
use crate::plan::namespaces::Layout;
use crate::plan::rules::{Network, PathRights, PathRule};
use crate::sys::descriptor;
use crate::sys::within::is_below;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The rules whose real paths are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Report {
    /// None.
    #[default]
    Nothing,
    /// Those that allow changes, except of devices.
    Writable,
    /// All.
    All,
}

/// Maximum number of files that are left open for the exec to close: with more, a process reaches its limit
/// of descriptors.
const MOST_HELD: usize = 256;

/// The error for a ruleset that is used twice.
const IN_FORCE: &str = "they are in force already";

/// A ruleset that is being filled, and then put in force.
pub struct Prepared {
    ruleset: Option<RulesetCreated>,
    /// The rules that are to be added.
    wanted: Vec<PathRule>,
    /// The rules that the reaper adds when it has made the run's mounts: those about files that are not
    /// there before.
    late: Vec<PathRule>,
    /// TCP ports, where they are restricted.
    ports: Vec<(u16, AccessNet)>,
    /// The files that the rules are about. Closing each takes a system call, so the exec closes them, or
    /// the supervisor all at once when the command has started.
    held: Vec<File>,
    /// Descriptors of the command.
    passed: Vec<RawFd>,
    abi: ABI,
}

/// How the run's mounts change the paths of rules, and which rules are reported.
#[derive(Clone, Copy, Default)]
pub struct View<'a> {
    /// The mounts.
    pub layout: Option<&'a Layout>,
    /// The rules whose real paths are wanted.
    pub report: Report,
    /// The paths at which nothing was, of rules that are optional.
    pub absent: Option<&'a BTreeSet<OsString>>,
}

impl View<'_> {
    fn is_late(&self, rule: &PathRule) -> bool {
        self.layout.is_some_and(|layout| layout.renews(&rule.path))
    }

    fn is_absent(&self, rule: &PathRule) -> bool {
        rule.optional && self.absent.is_some_and(|absent| absent.contains(rule.path.as_os_str()))
    }

    fn reports(&self, rule: &PathRule) -> bool {
        match self.report {
            Report::All => true,
            Report::Writable => rule.rights.changes_files(),
            Report::Nothing => false,
        }
    }

    /// The path inside of a file that is at this path outside.
    fn inside(&self, path: PathBuf) -> PathBuf {
        match self.layout {
            Some(layout) => layout.inside(path),
            None => path,
        }
    }
}

/// Makes an empty ruleset. It handles every right that the kernel and the `landlock` crate know: what no rule grants is
/// refused.
pub fn prepare(
    version: Version,
    paths: &[PathRule],
    network: &Network,
    view: View<'_>,
) -> Result<Prepared, EnforceError> {
    const BUILD: &str = "build the Landlock ruleset";
    let abi = ABI::from(version.0);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .step(BUILD)?;
    let tcp = version >= Version::TCP && network.handles_tcp();
    if tcp {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi)).step(BUILD)?;
    }
    if version >= Version::SCOPES {
        ruleset = ruleset.scope(Scope::from_all(abi)).step(BUILD)?;
    }
    let created = ruleset.create().step("create the Landlock ruleset")?;
    // The kernel handles all rights, as was just required. A rule for a file must not have the rights of
    // directories; the crate removes them.
    let ruleset = created.set_compatibility(CompatLevel::BestEffort).no_new_privs(false);
    let (late, wanted) = paths.iter().cloned().partition(|rule| view.is_late(rule));
    let ports = [(&network.connect, AccessNet::ConnectTcp), (&network.bind, AccessNet::BindTcp)];
    let ports = ports.into_iter().flat_map(|(ports, access)| ports.iter().map(move |port| (*port, access)));
    let ports = ports.filter(|_| tcp).collect();
    Ok(Prepared { ruleset: Some(ruleset), wanted, late, ports, held: Vec::new(), passed: Vec::new(), abi })
}

const ADD: &str = "add the Landlock rule for '{}'";

impl Prepared {
    /// Adds the rules about files that are there from the start. Returns the granted rights by real paths,
    /// by which the supervisor decides. The paths are read before the command runs, from the files
    /// themselves: the command may rename and link what leads to them.
    pub fn fill(&mut self, view: View<'_>) -> Result<Vec<PathRule>, EnforceError> {
        // Borrowed, so that the crate does not close it on an error: the child shares our descriptor table.
        let ruleset = self.ruleset.as_mut().ok_or(IN_FORCE).step("add path rules")?;
        let mut granted: Vec<PathRule> =
            self.late.iter().filter(|rule| view.reports(rule)).cloned().collect();
        for rule in &self.wanted {
            if view.is_absent(rule) || is_covered_link(rule, &self.wanted) {
                continue;
            }
            let Some(file) = open(rule)? else { continue };
            ruleset
                .add_rule(PathBeneath::new(&file, rights(rule.rights, self.abi)))
                .step_at(ADD, &rule.path)?;
            if view.reports(rule) {
                let path = descriptor::place(&file).step_at("find out where '{}' is", &rule.path)?;
                granted.push(PathRule { path: view.inside(path), ..*rule });
            }
            if self.held.len() < MOST_HELD {
                self.held.push(file);
            }
        }
        for number in &self.passed {
            let uses = descriptor::uses_of_file(*number).filter(|(read, write)| *read || *write);
            // A rule without any right would leave the whole ruleset out of force.
            let Some((read, write)) = uses else { continue };
            let own = PathRights { read, write, ..PathRights::default() };
            let file = PathBeneath::new(descriptor::by_number(*number), rights(own, self.abi));
            // A file of a kind that no rule is about needs none.
            let Ok(_) = ruleset.add_rule(file) else { continue };
            // Its mode and times are not the command's to change, so it is told of for reading only.
            let rule = descriptor::path_of(*number).map(|path| readable(view.inside(path)));
            granted.extend(rule.filter(|rule| read && view.reports(rule)));
        }
        for (port, access) in &self.ports {
            let added = ruleset.add_rule(NetPort::new(*port, *access));
            added.step_at("add the Landlock rule for port {}", Path::new(&port.to_string()))?;
        }
        Ok(granted)
    }

    /// Lets a file be read that is made with the run's mounts.
    pub fn read_made(&mut self, path: PathBuf) {
        self.late.push(readable(path));
    }

    /// Lets the files of descriptors that the command gets be opened again as they are open (`/dev/stdin`), for reading
    /// or writing. It gives the command nothing that it has not.
    pub fn reopen(&mut self, passed: Vec<RawFd>) {
        self.passed = passed;
    }

    /// Adds the remaining rules, inside the run's mounts.
    pub fn complete(&mut self) -> Result<(), EnforceError> {
        let ruleset = self.ruleset.as_mut().ok_or(IN_FORCE).step("complete the path rules")?;
        for rule in &self.late {
            let Some(file) = open(rule)? else { continue };
            ruleset
                .add_rule(PathBeneath::new(&file, rights(rule.rights, self.abi)))
                .step_at(ADD, &rule.path)?;
        }
        Ok(())
    }

    /// Puts the rules in force for the calling thread, for good. Needs no_new_privs or CAP_SYS_ADMIN.
    pub fn restrict_self(&mut self) -> Result<(), Cause> {
        let ruleset = self.ruleset.take().ok_or(IN_FORCE)?;
        match ruleset.restrict_self()?.ruleset {
            RulesetStatus::NotEnforced => Err("the kernel did not enforce them".into()),
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        }
    }

    /// Forgets the ruleset without closing it: a copy of this process closed it, in the table that both
    /// share.
    pub fn forget(&mut self) {
        std::mem::forget(self.ruleset.take());
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        descriptor::close_all(std::mem::take(&mut self.held));
    }
}

fn readable(path: PathBuf) -> PathRule {
    PathRule { path, rights: PathRights::READ, optional: false, built_in: false, follows: false }
}

/// Whether a rule is about `/bin`, `/lib` or the like, which is usually a link into a directory with the
/// same rights. A rule of its own would cost three system calls.
fn is_covered_link(rule: &PathRule, paths: &[PathRule]) -> bool {
    let is_top = rule.path.as_os_str().as_bytes().iter().filter(|byte| **byte == b'/').count() == 1;
    let covers = |target: PathBuf| {
        let target = Path::new("/").join(target);
        paths.iter().any(|other| other.rights == rule.rights && is_below(&target, &other.path))
    };
    rule.built_in && is_top && std::fs::read_link(&rule.path).is_ok_and(covers)
}

/// Opens the file of a rule. If it is missing, an optional path is skipped, as those of built-in profiles
/// are, and another one is an error.
fn open(rule: &PathRule) -> Result<Option<File>, EnforceError> {
    let opened = if rule.follows { descriptor::open_path(&rule.path) } else { open_real(&rule.path) };
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if rule.optional && passes_over(&error) => Ok(None),
        Err(error) => Err(EnforceError::at("allow '{}'", &rule.path, error)),
    }
}

fn changed() -> io::Error {
    io::Error::other("somebody is putting a symbolic link into this path")
}

/// Opens what is at a path without symbolic links.
fn open_real(path: &Path) -> io::Result<File> {
    match descriptor::hold(path) {
        // A sandbox around without openat2(2).
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            let file = descriptor::open_path(path)?;
            let place = descriptor::place(&file)?;
            if place == path { Ok(file) } else { Err(changed()) }
        }
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => Err(changed()),
        opened => opened,
    }
}

fn passes_over(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
    )
}

/// The Landlock rights for read, write and execute.
fn rights(rights: PathRights, abi: ABI) -> BitFlags<AccessFs> {
    let mut set = BitFlags::EMPTY;
    if rights.read {
        set |= AccessFs::ReadFile | AccessFs::ReadDir;
    }
    if rights.execute {
        set |= AccessFs::Execute;
    }
    if rights.write {
        // Making device nodes is never granted, and ioctl(2) on them only by a rule about the device.
        set |= AccessFs::from_write(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    }
    if rights.write && rights.devices {
        set |= AccessFs::IoctlDev;
    }
    if rights.connect {
        set |= AccessFs::ResolveUnix;
    }
    set & AccessFs::from_all(abi)
}

/// Puts the calling process into a domain of its own that signals do not leave (ABI 6).
///
/// Every domain refuses to rename across directories unless it allows that. So this one allows it
/// everywhere, and the command's own domain decides.
pub fn scope_signals() -> Result<(), Cause> {
    let root = descriptor::open_path(Path::new("/"))?;
    let scoped = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(|created| created.add_rule(PathBeneath::new(&root, AccessFs::Refer)));
    Ok(scoped.and_then(RulesetCreated::restrict_self).map(drop)?)
}

/// Lets the calling thread connect TCP sockets to these ports only, for good (ABI 4): what it does for the command, the
/// kernel judges by the command's rules.
pub fn restrict_connections(ports: &[u16]) -> Result<(), Cause> {
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::ConnectTcp)
        .and_then(Ruleset::create)?;
    let filled = ports
        .iter()
        .try_fold(created, |created, port| created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)))?;
    match filled.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        _ => Err("the kernel did not enforce them".into()),
    }
}
