//! What `--allow-calls` and `--deny-calls` change in what a profile says about calls.

use crate::error::Refusal;
use crate::plan::calls::Calls;
use crate::profile::{Alternative, CallRules, DefaultAction, Grants, Origin, Shared, When, covers};
use sbx_policy::bpf;
use sbx_policy::calls::Call;
use sbx_policy::list::{self, Entry, List, Target};
use sbx_policy::rules::{Actions, Rules};
use sbx_policy::shadow;

impl Calls {
    /// Adds `--allow-calls` or `--deny-calls` to what the profile says.
    pub fn add(&mut self, list: List, flag: &'static str, text: &[u8]) -> Result<(), Refusal> {
        let cannot = |problem: list::Problem<'_>| Refusal::new(format!("cannot read {flag}: {problem}"));
        // A table of its own finds overlaps inside the flag's list.
        let none = Actions { violation: bpf::RET_KILL_PROCESS, log: bpf::RET_LOG, unknown: None };
        let mut scratch = Rules::new(self.arch, false, none);
        let entries = || text.split(|b| matches!(b, b':' | b',')).filter(|entry| !entry.is_empty());
        for entry in entries() {
            scratch.add(list, entry).map_err(cannot)?;
            let parsed = list::parse(entry).map_err(cannot)?;
            let origin = Shared::from(Origin {
                profile: Shared::Fixed("command line"),
                built_in: false,
                optional: false,
                unless_credentials: false,
                key: flag,
                index: None,
                entry: String::from_utf8_lossy(entry).into_owned().into(),
                why: None,
            });
            match parsed.target {
                Target::Call(call) => {
                    if list == List::Allow {
                        self.check_part(call, parsed.restriction, &origin)?;
                    }
                    self.set(list, call, &parsed, &origin);
                }
                Target::Group(group) => {
                    group.members().for_each(|call| self.set(list, call, &parsed, &origin))
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, list: List, call: Call, entry: &Entry, origin: &Shared<Origin>) {
        self.syscalls.calls.change(call, |said| change(said, list, entry, origin));
    }

    /// Refuses to allow a part of a call where a denial says more of it than that, and can only be lifted as a whole.
    fn check_part(&self, call: Call, part: Option<usize>, flag: &Origin) -> Result<(), Refusal> {
        let (Some(said), Some(part)) = (self.rules_of(call), part.map(When::Named)) else { return Ok(()) };
        let is_open = match self.syscalls.default.as_deref() {
            Some(DefaultAction::Allow) => true,
            // Without an error of its own, a denial is only noted.
            Some(DefaultAction::Log) => said.errno.is_some(),
            Some(DefaultAction::Kill | DefaultAction::Errno(_)) | None => false,
        };
        let wider = match &said.deny {
            // Whatever is not denied is let through.
            Grants::All(denial) if is_open => Some(denial),
            denied => {
                let mut wider = denied.alternatives().iter().filter(|one| stays(said, &part, one));
                wider.find(|one| meet(&part, &one.when)).map(|one| &one.origin)
            }
        };
        wider.map_or(Ok(()), |denial| {
            Err(Refusal::new(format!(
                "cannot allow {} alone: {denial} denies more of {name} than that, and gives way as a whole; write \
                 {} {name} in its place if that is meant",
                flag.entry,
                flag.key,
                name = call.name()
            )))
        })
    }
}

/// Whether a denial holds beside a part of the call that a flag allows: it is about more, and takes something away. A
/// built-in one does so where the whole call is allowed. Elsewhere it only chooses an error.
fn stays(said: &CallRules, part: &When, denied: &Alternative) -> bool {
    let is_all = |grants: &Grants| matches!(grants, Grants::All(_));
    (!denied.origin.built_in || is_all(&said.allow) || is_all(&said.inside)) && !covers(part, &denied.when)
}

/// Whether some arguments are meant by both.
fn meet(one: &When, other: &When) -> bool {
    let (one, other) = (one.any(), other.any());
    one.iter().any(|a| other.iter().any(|b| shadow::satisfiable(&[*a, *b].concat())))
}

/// Adds what a flag says about a call to what the profile says.
fn change(said: &mut CallRules, list: List, entry: &Entry, origin: &Shared<Origin>) {
    if list == List::Deny {
        add(&mut said.deny, entry.restriction, origin);
        // Without an error of its own it is reported, whatever the profile answers quietly.
        said.errno = (entry.errno != 0).then_some(entry.errno);
        return;
    }
    lift(said, entry.restriction);
    add(&mut said.allow, entry.restriction, origin);
    if !said.inside.is_none() {
        add(&mut said.inside, entry.restriction, origin);
    }
}

/// Takes back what an entry covers of a denial by the profile. One by a flag does not give way.
fn lift(said: &mut CallRules, restriction: Option<usize>) {
    if said.deny.origins().any(|origin| origin.key.starts_with("--")) {
        return;
    }
    let Some(part) = restriction.map(When::Named) else {
        said.deny = Grants::None;
        return;
    };
    if matches!(said.deny, Grants::All(_)) {
        // Nothing was allowed beside it, whatever the lists say.
        (said.allow, said.inside, said.deny) = (Grants::None, Grants::None, Grants::None);
        return;
    }
    let rest = said.deny.alternatives().iter().filter(|denied| stays(said, &part, denied)).cloned();
    let rest: Vec<Alternative> = rest.collect();
    said.deny = if rest.is_empty() { Grants::None } else { Grants::Some(rest.into()) };
}

/// Adds an entry that is about a call whatever its arguments are, or about some of them.
fn add(grants: &mut Grants, restriction: Option<usize>, origin: &Shared<Origin>) {
    let Some(place) = restriction else {
        *grants = Grants::All(origin.clone());
        return;
    };
    let one = Alternative { when: When::Named(place), origin: origin.clone() };
    if matches!(grants, Grants::All(_)) {
        return;
    }
    // What a built-in profile says may not apply to this run, so the entry is added beside a wider one of it.
    let rest = grants.alternatives().iter().filter(|known| !covers(&one.when, &known.when)).cloned();
    *grants = Grants::Some(rest.chain([one.clone()]).collect());
}
