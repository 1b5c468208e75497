//! Why a call was refused, and which flag would allow it.
//!
//! The answer is not a table of opinions: each way out is tried, by asking the programs of the built-in
//! profiles about this very call with these very arguments.

use crate::launch::policy::{Mode, Network};
use crate::launch::resolve;
use crate::profile::{self, Search};
use crate::supervise::decode::{Access, Address, Decoded, escape};
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call, Group};
use sbx_policy::interpret::{self, Data};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Profiles that are proposed, the narrowest first.
const WAYS: [(&str, &str); 3] =
    [("network", "--profile network"), ("write", "--profile write"), ("workspace", "--profile workspace")];

/// Knows the profile in force and the other ones.
pub struct Adviser<'a> {
    profile: &'a str,
    network: Mode,
    programs: HashMap<(&'static str, bool), Option<Vec<Insn>>>,
    granted_write: bool,
}

impl<'a> Adviser<'a> {
    /// For a run of `profile`.
    pub fn new(profile: &'a str, network: Mode, granted_write: bool) -> Adviser<'a> {
        Adviser { profile, network, programs: HashMap::new(), granted_write }
    }

    /// Why a call was refused and what would allow it.
    pub fn call_reason(&mut self, name: &str, data: &Data, decoded: &Decoded) -> String {
        if let (Some(Address::UnixPath(path)), "connect") = (&decoded.address, name) {
            let path = quoted(Path::new(OsStr::from_bytes(path)));
            return format!(
                "profile '{}' may not connect to this UNIX socket; allow it with --unix {path}",
                self.profile
            );
        }
        let (why, way) = (self.why(name, decoded), self.way(name, data));
        format!("profile '{}' {why}; allow it with {way}", self.profile)
    }

    /// Why a path was refused and what would allow it.
    pub fn path_reason(&self, path: &Path, access: Access) -> String {
        let writes = access
            .intersects(Access::WRITE | Access::CREATE | Access::REMOVE | Access::TRUNCATE | Access::REFER);
        let executes = access.intersects(Access::EXECUTE);
        let (verb, flag) = match (writes, executes) {
            (true, _) => ("change", "--rw"),
            (_, true) => ("execute", "--rox"),
            _ => ("read", "--ro"),
        };
        let target = if writes { path.parent().unwrap_or(path) } else { path };
        let (path, target) = (quoted(path), quoted(target));
        format!("profile '{}' may not {verb} {path}; allow it with {flag} {target}", self.profile)
    }

    fn why(&self, name: &str, decoded: &Decoded) -> &'static str {
        let call = Call::named(name.as_bytes());
        let among = |group: &str| {
            call.zip(Group::named(group.as_bytes())).is_some_and(|(call, group)| group.contains(call))
        };
        let writes = Access::WRITE | Access::CREATE | Access::REMOVE | Access::TRUNCATE | Access::REFER;
        if among("@network-io") && self.network == Mode::None {
            "has no network"
        } else if matches!(name, "execve" | "execveat" | "fork" | "vfork" | "clone" | "clone3") {
            "starts no programs"
        } else if decoded.paths.iter().any(|path| path.access.intersects(writes)) && !self.granted_write {
            "writes no files"
        } else if ["@debug", "@module", "@mount", "@reboot", "@swap", "@clock", "@raw-io", "@keyring"]
            .into_iter()
            .any(among)
        {
            "keeps away from this part of the kernel"
        } else {
            "does not allow this"
        }
    }

    /// The flag that would allow it.
    fn way(&mut self, name: &str, data: &Data) -> String {
        let is_network = Group::named(b"@network-io")
            .zip(Call::named(name.as_bytes()))
            .is_some_and(|(g, c)| g.contains(c));
        if is_network
            && self.network == Mode::None
            && self.profile != "minimal"
            && self.allows(self.own(), true, data)
        {
            return "--net host".to_string();
        }
        for (profile, flag) in WAYS {
            if profile == self.profile {
                continue;
            }
            let loses = self.network == Mode::Host && profile != "network";
            if self.allows(profile, self.network == Mode::Host, data) {
                return if loses { format!("{flag} --net host") } else { flag.to_string() };
            }
        }
        format!("--allow-calls {name}")
    }

    /// The profile in force, where it is a built-in one.
    fn own(&self) -> &'static str {
        sbx_profiles::NAMES.into_iter().find(|name| *name == self.profile).unwrap_or("workspace")
    }

    /// Whether a built-in profile allows the call.
    fn allows(&mut self, profile: &'static str, host_network: bool, data: &Data) -> bool {
        let program =
            self.programs.entry((profile, host_network)).or_insert_with(|| program(profile, host_network));
        program.as_ref().is_some_and(|program| interpret::run(program, data) == Some(bpf::RET_ALLOW))
    }
}

/// The program of a built-in profile, without the needs of the loader.
fn program(name: &str, host_network: bool) -> Option<Vec<Insn>> {
    let profile = profile::load(OsStr::new(name), &Search { dirs: Vec::new() }).ok()?;
    let mode = if host_network { Mode::Host } else { resolve::mode(&profile) };
    let network = Network { mode, ..Network::default() };
    let resolved = resolve::calls(&profile, &network, resolve::Unix::Refused, Arch::HOST).ok()?;
    resolved.strict_program().ok()
}

/// A path for a shell.
fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let plain = bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"/._-+@%,:".contains(b));
    let text = escape(bytes, 200);
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
