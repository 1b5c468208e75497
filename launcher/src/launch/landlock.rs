//! Path rules, TCP ports and scopes, through Landlock (landlock(7)).
//!
//! Landlock only ever adds up: a right granted on a directory holds for everything below. So a path that is
//! denied below a granted directory is left out by granting its siblings instead (see `siblings`).

use crate::launch::namespaces::Layout;
use crate::launch::policy::{Network, PathRights, PathRule};
use crate::launch::within::is_below;
use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use crate::sys::{descriptor, path};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// None.
    Nothing,
    /// Those that let something be changed, but for devices.
    Writable,
    /// All.
    All,
}

/// So many files are left open for the exec to close; with more, a process meets its limit of descriptors.
const MOST_HELD: usize = 256;

/// A ruleset that is ready to be put in force, and what it grants.
pub struct Prepared {
    ruleset: Option<RulesetCreated>,
    /// The files that the rules are about. Closing each takes a system call, so they are left to the exec, or
    /// to the supervisor when the command is under way.
    _held: Vec<File>,
    /// What was granted where, by real paths: what the supervisor decides by. Found out before the command runs
    /// and from the files themselves, for the command may rename and link what leads to them.
    pub granted: Vec<PathRule>,
    /// Rules about what is not there yet: file systems that the run mounts for itself.
    late: Vec<PathRule>,
    abi: ABI,
}

/// What the rules are about, as far as mounts of the run's own change it.
#[derive(Clone, Copy, Default)]
pub struct View<'a> {
    /// The mounts.
    pub layout: Option<&'a Layout>,
    /// The scratch directory, where it is outside.
    pub scratch: Option<&'a Path>,
}

impl View<'_> {
    fn is_late(&self, rule: &PathRule) -> bool {
        self.layout.is_some_and(|layout| layout.renews(&rule.path))
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

/// Builds the ruleset: every right that the kernel has is handled, so what no rule grants is refused.
pub fn prepare(
    version: Version,
    paths: &[PathRule],
    network: &Network,
    report: Report,
    view: View<'_>,
) -> Result<Prepared, Refusal> {
    let failed = |what: &str, cause: String| Refusal::new(format!("cannot {what}: {cause}"));
    let abi = version.abi();
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .map_err(|e| failed("build the Landlock ruleset", e.to_string()))?;
    let tcp = version >= Version::TCP && network.handles_tcp();
    if tcp {
        ruleset = ruleset
            .handle_access(AccessNet::from_all(abi))
            .map_err(|e| failed("build the Landlock ruleset", e.to_string()))?;
    }
    if version >= Version::SCOPES {
        ruleset = ruleset
            .scope(Scope::from_all(abi))
            .map_err(|e| failed("build the Landlock ruleset", e.to_string()))?;
    }
    let created = ruleset.create().map_err(|e| failed("create the Landlock ruleset", e.to_string()))?;
    // What the kernel handles has just been required; the rights of a rule are a part of that, but a file's
    // rule has none of those that only directories have, and the crate finds that out anyway.
    let mut ruleset = created.set_compatibility(CompatLevel::BestEffort);
    let (mut granted, mut held) = (Vec::with_capacity(paths.len()), Vec::with_capacity(paths.len()));
    let reported = |rule: &PathRule| {
        let PathRights { write, devices, .. } = rule.rights;
        report == Report::All || (report == Report::Writable && write && !devices)
    };
    let mut late = Vec::new();
    for rule in paths {
        if view.is_late(rule) {
            late.push(rule.clone());
            granted.extend(Some(rule).filter(|rule| reported(rule)).cloned());
            continue;
        }
        if is_covered_link(rule, paths) {
            continue;
        }
        let Some(file) = open(rule)? else { continue };
        let beneath = PathBeneath::new(&file, rights(rule.rights, abi));
        ruleset = ruleset.add_rule(beneath).map_err(|e| {
            failed(&format!("add the Landlock rule for '{}'", shown(&rule.path)), e.to_string())
        })?;
        if reported(rule) {
            let path = descriptor::place(&file)
                .map_err(|e| failed(&format!("find out where '{}' is", shown(&rule.path)), plain(&e)))?;
            granted.push(PathRule { path: view.inside(path), ..*rule });
        }
        if held.len() < MOST_HELD {
            held.push(file);
        }
    }
    if tcp {
        for (ports, access) in
            [(&network.connect, AccessNet::ConnectTcp), (&network.bind, AccessNet::BindTcp)]
        {
            for port in ports {
                ruleset = ruleset
                    .add_rule(NetPort::new(*port, access))
                    .map_err(|e| failed(&format!("add the Landlock rule for port {port}"), e.to_string()))?;
            }
        }
    }
    Ok(Prepared { ruleset: Some(ruleset.no_new_privs(false)), _held: held, granted, late, abi })
}

impl Prepared {
    /// Adds the rules about what is there by now.
    pub fn complete(&mut self) -> Result<(), String> {
        let mut ruleset = self.ruleset.take().ok_or("they are in force already")?;
        for rule in &self.late {
            let Some(file) = open(rule).map_err(|refusal| refusal.to_string())? else { continue };
            let beneath = PathBeneath::new(&file, rights(rule.rights, self.abi));
            ruleset = ruleset.add_rule(beneath).map_err(|e| e.to_string())?;
        }
        self.ruleset = Some(ruleset);
        Ok(())
    }

    /// Puts the rules in force for the calling thread, for good. Needs no_new_privs or CAP_SYS_ADMIN.
    pub fn restrict_self(&mut self) -> Result<(), String> {
        let ruleset = self.ruleset.take().ok_or("they are in force already")?;
        ruleset.restrict_self().map(drop).map_err(|e| e.to_string())
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
    match descriptor::open_path(&rule.path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if rule.optional && passes_over(&error) => Ok(None),
        Err(error) => Err(Refusal::new(format!("cannot allow '{}': {}", shown(&rule.path), plain(&error)))),
    }
}

fn passes_over(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
    )
}

/// An error without std's number. The kernel's own sentences begin with a capital letter.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let sentence = text.split(" (os error").next().unwrap_or(&text);
    if error.raw_os_error().is_none() {
        return sentence.to_string();
    }
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
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
