//! What a filter decides without a supervisor: for other tools, which have none.

use crate::error::Refusal;
use crate::plan::calls::{Extras, Unix, calls, mode, too_long};
use crate::plan::rules::Network;
use crate::profile::foreign::languages::Exported;
use crate::profile::foreign::{Losses, oci};
use crate::profile::{DefaultAction, Profile};
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::program::{self, TooLong};
use sbx_policy::rules::{Actions, Layout};

/// Gives `write` the filter of a run under the profile, as far as it decides alone.
pub fn alone<T>(
    profile: &Profile,
    losses: &mut Losses,
    write: impl FnOnce(&Exported<'_>, &mut Losses) -> T,
) -> Result<T, Refusal> {
    let network = Network { mode: mode(profile), ..Network::default() };
    // A filter alone cannot tell one UNIX socket from another.
    let of = |arch| calls(profile, &network, false, Unix::Refused, arch);
    let all = [of(Arch::X86_64)?, of(Arch::Aarch64)?];
    let default = profile.syscalls.default.as_deref().copied().unwrap_or(DefaultAction::Kill);
    let violation = default.violation().unwrap_or(bpf::RET_ERRNO | 1);
    let actions = Actions { violation, log: bpf::RET_LOG, unknown: None };
    let [one, other] = &all;
    let (x86_64, aarch64) =
        (one.rules(actions, Extras::default())?, other.rules(actions, Extras::default())?);
    let (rules, free) = if Arch::HOST == Arch::X86_64 { &x86_64 } else { &aarch64 };
    let program =
        program::assemble(&Layout { rules, extra: Some(free) }).map_err(|TooLong| too_long(&profile.name))?;
    let tables = [(Arch::X86_64, &*x86_64.0), (Arch::Aarch64, &*aarch64.0)];
    let asked: Vec<_> = Call::all()
        .filter_map(|call| {
            let said = one.rules_of(call);
            if said.is_some_and(|said| !said.only_inside().is_none()) {
                losses.note(call.name(), "what is allowed only in namespaces of the run's own is left out");
            }
            oci::of_first(&tables, said, call)
        })
        .collect();
    Ok(write(&Exported { profile, calls: &asked, default, program: &program }, losses))
}
