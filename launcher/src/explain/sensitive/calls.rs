//! The calls that built-in profiles give: whatever goes beyond is for the user to decide.

use crate::error::Refusal;
use crate::explain::hint::includes_restriction;
use crate::plan::calls::{Extras, Unix, calls};
use crate::plan::rules::Network;
use crate::profile::{self, NetworkMode, Profile, Search};
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::list::{self, Target};
use sbx_policy::restrictions;
use sbx_policy::rules::{Actions, Grant, Rules};
use std::ffi::OsStr;

/// The profiles with an open network and with every right on files.
const PROFILES: [&str; 3] = ["workspace", "network", "write"];

/// The tables of the calls that they give, and what another profile denies.
pub struct KnownCalls {
    tables: Vec<Box<Rules>>,
    denied: Vec<Call>,
}

impl KnownCalls {
    /// Makes the tables, of runs without namespaces of their own.
    pub fn new() -> Result<KnownCalls, Refusal> {
        KnownCalls::in_run(false)
    }

    /// The same of runs with namespaces or without.
    pub fn in_run(namespaces: bool) -> Result<KnownCalls, Refusal> {
        let actions = Actions { violation: bpf::RET_TRAP, log: bpf::RET_LOG, unknown: None };
        let table = |name: &&str| {
            let profile = profile::load(OsStr::new(name), &Search::default())?;
            let network = Network { mode: NetworkMode::Host, asked: true, ..Network::default() };
            let calls = calls(&profile, &network, namespaces, Unix::ByPath, Arch::HOST)?.inside(namespaces);
            Ok(calls.rules(actions, Extras::default())?.0)
        };
        let tables = PROFILES.iter().map(table).collect::<Result<_, Refusal>>()?;
        Ok(KnownCalls { tables, denied: Vec::new() })
    }

    /// The same beside a profile: what its user denies is nothing to be learned.
    #[must_use]
    pub fn beside(self, profile: &Profile) -> KnownCalls {
        let denied = profile.syscalls.calls.iter().filter(|(_, said)| said.is_denied_by_user());
        KnownCalls { denied: denied.map(|(call, _)| call).collect(), ..self }
    }

    /// Why an entry of a list of calls is sensitive.
    pub fn judge(&self, entry: &str) -> Option<String> {
        let Ok(parsed) = list::parse(entry.as_bytes()) else {
            return Some("no entry of a list of calls".into());
        };
        let Target::Call(call) = parsed.target else { return Some("a whole group of calls".to_string()) };
        if self.denied.contains(&call) {
            return Some("the profile denies it".to_string());
        }
        let known = self.give(call, parsed.restriction);
        (!known).then(|| "no built-in profile allows it".to_string())
    }

    /// The restrictions with which built-in profiles give a call.
    pub fn restrictions(&self, call: Call) -> Vec<usize> {
        let mut all = Vec::new();
        for table in &self.tables {
            let Some(Grant::Some(mask)) = table.row(call).map(|row| row.allow) else { continue };
            let given = restrictions::of_call(call).enumerate().filter(|(bit, _)| mask & (1 << bit) != 0);
            all.extend(given.map(|(_, place)| place));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether a built-in profile gives a call, with any arguments or with those of a restriction.
    pub fn give(&self, call: Call, restriction: Option<usize>) -> bool {
        let given = |table: &Rules| match (table.row(call).map_or(Grant::None, |row| row.allow), restriction)
        {
            (Grant::All, _) => true,
            (Grant::None, _) | (Grant::Some(_), None) => false,
            (Grant::Some(mask), Some(wanted)) => {
                restrictions::of_call(call).enumerate().any(|(bit, place)| {
                    mask & (1 << bit) != 0 && (place == wanted || includes_restriction(place, wanted))
                })
            }
        };
        self.tables.iter().any(|table| given(table))
    }
}
