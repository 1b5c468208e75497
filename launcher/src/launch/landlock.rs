//! Path rules, TCP ports and scopes, through Landlock (landlock(7)).
//!
//! Landlock only ever adds up: a right granted on a directory holds for everything below. So a path that is
//! denied below a granted directory is left out by granting its siblings instead (see `siblings`).

use crate::launch::namespaces::Layout;
use crate::launch::policy::{Network, PathRights, PathRule};
use crate::launch::within::is_below;
use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use crate::sys::{descriptor, path, plain};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The rights of this kernel, from its ABI version: 0 where there is no Landlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub i32);

impl Version {
    /// Regular files: all that there is.
    pub const FILES: Version = Version(1);
    /// Emptying files.
    pub const TRUNCATE: Version = Version(3);
    /// TCP ports.
    pub const TCP: Version = Version(4);
    /// Abstract UNIX sockets and signals.
    pub const SCOPES: Version = Version(6);
    /// UNIX sockets with a path.
    pub const UNIX: Version = Version(9);

    fn abi(self) -> ABI {
        ABI::from(self.0)
    }
}

/// Of which rules the real paths are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Report {
    /// None.
    #[default]
    Nothing,
    /// Those that let something be changed, but for devices.
    Writable,
    /// All.
    All,
}

/// So many files are left open for the exec to close; with more, a process meets its limit of descriptors.
const MOST_HELD: usize = 256;

/// What is wrong with a ruleset that is used twice.
const IN_FORCE: &str = "they are in force already";

/// A ruleset that is being filled, and then put in force.
pub struct Prepared {
    ruleset: Option<RulesetCreated>,
    /// What is to be added.
    wanted: Vec<PathRule>,
    /// What is added by who makes the run's mounts: rules about what is not there before, and a part of the others.
    late: Vec<PathRule>,
    /// TCP ports, where they are restricted.
    ports: Vec<(u16, AccessNet)>,
    /// The files that the rules are about. Closing each takes a system call, so they are left to the exec, or
    /// to the supervisor when the command is under way.
    held: Vec<File>,
    abi: ABI,
}

/// What the rules are about, as far as mounts of the run's own change it, and what is to be known of them.
#[derive(Clone, Copy, Default)]
pub struct View<'a> {
    /// The mounts.
    pub layout: Option<&'a Layout>,
    /// The scratch directory, where it is outside.
    pub scratch: Option<&'a Path>,
    /// Of which rules the real paths are wanted.
    pub report: Report,
}

impl View<'_> {
    fn is_late(&self, rule: &PathRule) -> bool {
        self.layout.is_some_and(|layout| layout.renews(&rule.path))
    }

    fn reports(&self, rule: &PathRule) -> bool {
        match self.report {
            Report::All => true,
            Report::Writable => rule.rights.changes_files(),
            Report::Nothing => false,
        }
    }

    /// Where the command finds what is at this path outside.
    fn inside(&self, path: PathBuf) -> PathBuf {
        let moved = self.layout.and_then(Layout::scratch).zip(self.scratch);
        let below = moved.and_then(|(inside, outside)| Some((inside, path.strip_prefix(outside).ok()?)));
        match below {
            Some((inside, rest)) if rest.as_os_str().is_empty() => inside.to_path_buf(),
            Some((inside, rest)) => inside.join(rest),
            None => path,
        }
    }
}

/// Makes the ruleset, empty as yet: every right that the kernel has is handled, so what no rule grants is refused.
pub fn prepare(
    version: Version,
    paths: &[PathRule],
    network: &Network,
    view: View<'_>,
) -> Result<Prepared, Refusal> {
    let abi = version.abi();
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(|e| failed("build the Landlock ruleset", cause(&e)))?;
    let tcp = version >= Version::TCP && network.handles_tcp();
    if tcp {
        ruleset = ruleset
            .handle_access(AccessNet::from_all(abi))
            .map_err(|e| failed("build the Landlock ruleset", cause(&e)))?;
    }
    if version >= Version::SCOPES {
        ruleset = ruleset
            .scope(Scope::from_all(abi))
            .map_err(|e| failed("build the Landlock ruleset", cause(&e)))?;
    }
    let created = ruleset.create().map_err(|e| failed("create the Landlock ruleset", cause(&e)))?;
    // What the kernel handles has just been required; the rights of a rule are a part of that, but a file's
    // rule has none of those that only directories have, and the crate finds that out anyway.
    let ruleset = created.set_compatibility(CompatLevel::BestEffort).no_new_privs(false);
    let (late, wanted) = paths.iter().cloned().partition(|rule| view.is_late(rule));
    let ports = [(&network.connect, AccessNet::ConnectTcp), (&network.bind, AccessNet::BindTcp)];
    let ports = ports.into_iter().flat_map(|(ports, access)| ports.iter().map(move |port| (*port, access)));
    let ports = ports.filter(|_| tcp).collect();
    Ok(Prepared { ruleset: Some(ruleset), wanted, late, ports, held: Vec::new(), abi })
}

fn failed(what: &str, cause: String) -> Refusal {
    Refusal::new(format!("cannot {what}: {cause}"))
}

impl Prepared {
    /// Adds the rules about what is there from the start. What was granted where is returned by real paths: what the
    /// supervisor decides by. It is found out before the command runs and from the files themselves, for the command
    /// may rename and link what leads to them.
    pub fn fill(&mut self, view: View<'_>) -> Result<Vec<PathRule>, Refusal> {
        // Lent, and so not closed by the crate on an error: whom the table is shared with uses the number too.
        let ruleset = self.ruleset.as_mut().ok_or_else(|| failed("add path rules", IN_FORCE.to_string()))?;
        let mut granted: Vec<PathRule> =
            self.late.iter().filter(|rule| view.reports(rule)).cloned().collect();
        for rule in &self.wanted {
            if is_covered_link(rule, &self.wanted) {
                continue;
            }
            let Some(file) = open(rule)? else { continue };
            let beneath = PathBeneath::new(&file, rights(rule.rights, self.abi));
            ruleset.add_rule(beneath).map_err(|e| {
                failed(&format!("add the Landlock rule for '{}'", shown(&rule.path)), cause(&e))
            })?;
            if view.reports(rule) {
                let path = descriptor::place(&file)
                    .map_err(|e| failed(&format!("find out where '{}' is", shown(&rule.path)), plain(&e)))?;
                granted.push(PathRule { path: view.inside(path), ..*rule });
            }
            if self.held.len() < MOST_HELD {
                self.held.push(file);
            }
        }
        for (port, access) in &self.ports {
            ruleset
                .add_rule(NetPort::new(*port, *access))
                .map_err(|e| failed(&format!("add the Landlock rule for port {port}"), cause(&e)))?;
        }
        Ok(granted)
    }

    /// Adds the rest, where the run's mounts are.
    pub fn complete(&mut self) -> Result<(), String> {
        let ruleset = self.ruleset.as_mut().ok_or(IN_FORCE)?;
        for rule in &self.late {
            let Some(file) = open(rule).map_err(|refusal| refusal.to_string())? else { continue };
            let beneath = PathBeneath::new(&file, rights(rule.rights, self.abi));
            ruleset.add_rule(beneath).map_err(|e| cause(&e))?;
            self.held.push(file);
        }
        Ok(())
    }

    /// Puts the rules in force for the calling thread, for good. Needs no_new_privs or CAP_SYS_ADMIN.
    pub fn restrict_self(&mut self) -> Result<(), String> {
        let ruleset = self.ruleset.take().ok_or(IN_FORCE)?;
        let enforced =
            ruleset.restrict_self().map_err(|e| format!("landlock_restrict_self: {}", cause(&e)))?;
        match enforced.ruleset {
            RulesetStatus::NotEnforced => Err("the kernel did not enforce them".to_string()),
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        }
    }

    /// Forgets the ruleset without closing it: a copy of this process did, in the table that both share.
    pub fn forget(&mut self) {
        std::mem::forget(self.ruleset.take());
    }
}

/// Whether a rule is about `/bin`, `/lib` or the like, where that is a link to below a directory with the same
/// rights: the usual case, and a rule of its own would cost three system calls.
fn is_covered_link(rule: &PathRule, paths: &[PathRule]) -> bool {
    let is_top = rule.path.as_os_str().as_bytes().iter().filter(|byte| **byte == b'/').count() == 1;
    let covers = |target: PathBuf| {
        let target = Path::new("/").join(target);
        paths.iter().any(|other| other.rights == rule.rights && is_below(&target, &other.path))
    };
    rule.optional && is_top && std::fs::read_link(&rule.path).is_ok_and(covers)
}

/// Opens what a rule is about. What a built-in profile names and this system does not have is passed over;
/// what the user named has to be there.
fn open(rule: &PathRule) -> Result<Option<File>, Refusal> {
    let opened = if rule.follows { descriptor::open_path(&rule.path) } else { open_real(&rule.path) };
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if rule.optional && passes_over(&error) => Ok(None),
        Err(error) => Err(Refusal::new(format!("cannot allow '{}': {}", shown(&rule.path), plain(&error)))),
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

/// An error of the crate, without its own types: mostly the kernel's is behind it.
fn cause(error: &RulesetError) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    match innermost.downcast_ref::<io::Error>() {
        Some(error) => plain(error),
        None => "the kernel's Landlock has not what its version promises".to_string(),
    }
}

/// What read, write and execute mean.
fn rights(rights: PathRights, abi: ABI) -> BitFlags<AccessFs> {
    let mut set = BitFlags::EMPTY;
    if rights.read {
        set |= AccessFs::ReadFile | AccessFs::ReadDir;
    }
    if rights.execute {
        set |= AccessFs::Execute;
    }
    if rights.write {
        // Device nodes are never made, and controlled only where they are what a rule is about.
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
/// Renaming across directories is refused in every domain that does not allow it, whatever else it is about; so
/// that much is allowed everywhere, and the command's own domain decides.
pub fn scope_signals() -> Result<(), String> {
    let root = descriptor::open_path(Path::new("/")).map_err(|e| plain(&e))?;
    let scoped = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(|created| created.add_rule(PathBeneath::new(&root, AccessFs::Refer)));
    scoped.and_then(RulesetCreated::restrict_self).map(drop).map_err(|e| e.to_string())
}

/// A canonical path, or the path itself where it cannot be resolved.
pub fn canonical(path: &Path) -> PathBuf {
    path::real(path).unwrap_or_else(|_| path.to_path_buf())
}
