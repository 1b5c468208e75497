//! A hash of what a run enforces. Equal policies have equal hashes, whatever profile and flags they come from.

use crate::digest;
use crate::enforce::guard::Guard;
use crate::plan::Plan;
use crate::plan::rules::PathRights;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The hash, in hexadecimal digits. It leaves out the names of the scratch directory and the caches, and the
/// addresses of the exec, which are random. `None` if no filter can be made, which ends the run anyway.
pub fn of(plan: &Plan) -> Option<String> {
    let mut hash = Hash(Sha256::new());
    hash.part("sbx policy 1", []);
    if !plan.unconfined {
        let calls = plan.calls.clone();
        let extras = plan.extras();
        let mut guard = Guard::new(&plan.profile.name, calls, extras, plan.on_violation, true);
        let program = guard.program().ok()?;
        hash.part("filter", program.iter().map(instruction));
        hash.part(
            "seal",
            plan.seal
                .as_ref()
                .and_then(|seal| seal.text.deny.as_deref())
                .map(|deny| deny.as_bytes().to_vec()),
        );
        hash.part("violation", [plan.on_violation.value().to_le_bytes().to_vec()]);
    }
    hash.part("landlock", [plan.landlock.0.to_le_bytes().to_vec()]);
    hash.part("paths", paths(plan));
    if plan.namespaces.is_ok() {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        hash.part("denied", plan.denied.iter().map(|path| bytes(path)));
        let protected = plan.profile.paths.protect.iter();
        hash.part("protected", protected.map(|entry| entry.value.to_string().into_bytes()));
    }
    // The port of a proxy differs in each run.
    let proxy = plan.network.proxy();
    let connect = plan.network.connect.iter().filter(|_| proxy.is_none());
    hash.part("connect", connect.map(|port| port.to_le_bytes().to_vec()));
    hash.part("proxy", proxy.map(|proxy| vec![u8::from(proxy.is_supervised)]));
    hash.part("bind", plan.network.bind.iter().map(|port| port.to_le_bytes().to_vec()));
    let hosts = plan.network.hosts.as_deref();
    let rules = hosts.into_iter().flat_map(|hosts| hosts.rules.allow.iter());
    hash.part("hosts", rules.map(|rule| rule.to_string().into_bytes()));
    let rules = hosts.into_iter().flat_map(|hosts| hosts.rules.deny.iter());
    hash.part("denied hosts", rules.map(|rule| rule.to_string().into_bytes()));
    let ports = hosts.into_iter().flat_map(|hosts| hosts.doors.host_ports.iter());
    hash.part("host ports", ports.map(|port| port.to_le_bytes().to_vec()));
    let published = plan.publish.iter().map(|pair| [pair.here, pair.inside].map(u16::to_le_bytes).concat());
    hash.part("published", published);
    hash.part("network", [vec![plan.network.mode as u8]]);
    hash.part("sockets", plan.sockets.iter().map(|path| path.as_os_str().as_bytes().to_vec()));
    hash.part("environment", names(plan));
    let limits = plan.limits.applied.iter();
    hash.part(
        "limits",
        limits.map(|limit| format!("{}={} {:?}", limit.limit.word(), limit.value, limit.means).into_bytes()),
    );
    Some(hash.digits())
}

struct Hash(Sha256);

impl Hash {
    /// Adds a list, with lengths, so that different lists never give the same bytes.
    fn part(&mut self, name: &str, items: impl IntoIterator<Item = Vec<u8>>) {
        self.bytes(name.as_bytes());
        let mut count = 0_u64;
        for item in items {
            self.bytes(&item);
            count += 1;
        }
        self.0.update(count.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn digits(self) -> String {
        format!("sha256:{}", digest::hex(&self.0.finalize()))
    }
}

fn instruction(insn: &sbx_policy::bpf::Insn) -> Vec<u8> {
    [&insn.code.to_le_bytes()[..], &[insn.jt, insn.jf], &insn.k.to_le_bytes()].concat()
}

fn paths(plan: &Plan) -> Vec<Vec<u8>> {
    let home = plan.private_home.as_ref().map(|home| &*home.directory);
    let named =
        [("${CACHE}", plan.cache.as_deref()), ("${TMP}", plan.scratch.as_deref()), ("own home", home)];
    let stable = |path: &Path| {
        let below = |(name, directory): &(&str, Option<&Path>)| {
            Some(Path::new(name).join(path.strip_prefix((*directory)?).ok()?))
        };
        named.iter().find_map(below).unwrap_or_else(|| path.to_path_buf())
    };
    let mut all: Vec<Vec<u8>> = plan
        .paths
        .iter()
        .flatten()
        .map(|rule| [&[rights(rule.rights)], stable(&rule.path).as_os_str().as_bytes()].concat())
        .collect();
    all.sort();
    all
}

fn rights(rights: PathRights) -> u8 {
    let PathRights { read, execute, write, devices, connect } = rights;
    [read, execute, write, devices, connect].iter().fold(0, |bits, bit| bits << 1 | u8::from(*bit))
}

/// The names of variables. Their values are secrets, or differ from run to run.
fn names(plan: &Plan) -> Vec<Vec<u8>> {
    let name = |entry: &[u8]| entry.split(|byte| *byte == b'=').next().unwrap_or(entry).to_vec();
    let mut names: Vec<Vec<u8>> = plan.environment.iter().map(|entry| name(entry.as_bytes())).collect();
    names.sort();
    names
}
