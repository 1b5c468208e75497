//! What the loader needs, and the seal that takes it away again.

use crate::error::Refusal;
use crate::plan::calls::Calls;
use crate::profile::{self, Grants, When};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::env;
use sbx_policy::list::List;
use sbx_policy::restrictions::Condition;
use sbx_policy::rules::Rules;
use sbx_policy::shadow;

/// What a dynamically linked program calls before its own first instruction (glibc and musl).
const LOADER: [(&str, &[&str]); 22] = [
    ("read", &[]),
    ("pread64", &[]),
    ("close", &[]),
    ("fstat", &[]),
    ("newfstatat", &[]),
    ("brk", &[]),
    ("munmap", &[]),
    ("access", &[]),
    ("faccessat", &[]),
    ("arch_prctl", &[]),
    ("set_tid_address", &[]),
    ("set_robust_list", &[]),
    ("rseq", &[]),
    ("getrandom", &[]),
    ("readlink", &[]),
    ("readlinkat", &[]),
    ("futex", &[]),
    ("open", &["read", "no-setid"]),
    ("openat", &["read", "no-setid"]),
    ("mmap", &["no-jit"]),
    ("mprotect", &["no-exec"]),
    ("prlimit64", &["self"]),
];

/// What it calls only where there is no older call for it.
const YOUNGER: [(&str, &str); 2] = [("faccessat", "access"), ("readlinkat", "readlink")];

/// The call, if the loader makes it on this architecture.
fn called(name: &str, arch: Arch) -> Option<Call> {
    let here = |name: &str| Call::named(name.as_bytes()).filter(|call| call.number(arch).is_some());
    let older = YOUNGER.iter().find(|(younger, _)| *younger == name).and_then(|(_, older)| here(older));
    if older.is_some() { None } else { here(name) }
}

/// What the loader needs and the calls of a run do not have: a bit for each place in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs(u32);

/// What the shim takes away when the program is linked.
pub struct Seal {
    /// What the guard has to leave open until then.
    pub needs: Needs,
    /// The shim's variables.
    pub text: env::Text,
}

impl Needs {
    /// Whether there is nothing.
    pub fn is_empty(self) -> bool {
        self == Needs::default()
    }

    /// Calls, each with the restriction that is enough.
    pub fn iter(self) -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
        let needed = LOADER.iter().enumerate().filter(move |(place, _)| self.0 & 1 << place != 0);
        needed.map(|(_, (name, enough))| (*name, enough.first().copied()))
    }
}

impl Calls {
    /// What the loader needs and the calls do not have.
    fn loader_needs(&self) -> Result<Needs, Refusal> {
        let mut needs = Needs::default();
        for (place, (name, enough)) in LOADER.iter().enumerate() {
            let Some(call) = called(name, self.arch) else { continue };
            let Some(said) = self.syscalls.calls.get(call) else {
                needs.0 |= 1 << place;
                continue;
            };
            match (said.allowed(self.namespaces), &said.deny) {
                (Grants::All(_), Grants::None) => {}
                (Grants::None, Grants::None) => needs.0 |= 1 << place,
                (allowed, denied) if enough.iter().any(|one| leaves(call, one, allowed, denied)) => {}
                _ => {
                    let way = enough
                        .first()
                        .map_or(name.to_string(), |restriction| format!("{name}[{restriction}]"));
                    return Err(Refusal::new(format!(
                        "cannot run a program under profile '{}': its rule for {name} leaves the loader less \
                         than it needs; allow '{way}', or nothing of {name} at all",
                        self.profile
                    )));
                }
            }
        }
        Ok(needs)
    }

    /// What makes the shim take away what only the loader needed; `None` where that is nothing.
    pub fn seal(&self, action: u32) -> Result<Option<Seal>, Refusal> {
        if self.syscalls.default.as_deref() == Some(&profile::DefaultAction::Allow) {
            return Ok(None);
        }
        let needs = self.loader_needs()?;
        if needs.is_empty() {
            return Ok(None);
        }
        let mut denied: Vec<&str> = needs.iter().map(|(name, _)| name).collect();
        if !self.allows("seccomp") {
            denied.push("seccomp");
        }
        let deny = Some(denied.join(":"));
        let mut sealing = Rules::new(self.arch, true, self.plain_actions(action));
        for name in &denied {
            sealing.add(List::Deny, name.as_bytes()).map_err(|p| Refusal::new(p.to_string()))?;
        }
        Ok(env::text(&sealing).map(|text| Seal { needs, text: env::Text { deny, ..text } }))
    }
}

/// Whether what is allowed and what is denied leave all that a restriction says.
fn leaves(call: Call, restriction: &str, allowed: &Grants, denied: &Grants) -> bool {
    let needed = When::named(call.name(), restriction);
    let (needed, all) = (needed.any(), |grants: &Grants| -> Vec<Vec<Condition>> {
        grants.alternatives().iter().flat_map(|one| one.when.any()).map(<[_]>::to_vec).collect()
    });
    let (wide, refused) = (all(allowed), all(denied));
    let wide: Vec<&[Condition]> = wide.iter().map(Vec::as_slice).collect();
    let is_allowed = matches!(allowed, Grants::All(_)) || shadow::covers(&wide, &needed);
    let meets = |one: &[Condition], other: &[Condition]| shadow::satisfiable(&[one, other].concat());
    is_allowed
        && !needed.is_empty()
        && !matches!(denied, Grants::All(_))
        && !needed.iter().any(|one| refused.iter().any(|other| meets(one, other)))
}
