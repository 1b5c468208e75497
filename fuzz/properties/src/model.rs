//! The meaning of a profile for a system call, computed without a program. Tests compare the programs with this model.

use sbx::profile::{Grants, Profile};
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::errno;
use sbx_policy::interpret::Data;
use sbx_policy::program::X32_BIT;
use sbx_policy::restrictions::{Condition, Op, Width};
use sbx_policy::rules::{AROUND, Actions, CONNECTS, QUERY};

/// Evaluates a comparison: a second, independent implementation.
pub fn holds(condition: &Condition, args: &[u64; 6]) -> bool {
    let mut left = args[usize::from(condition.arg)];
    if condition.width == Width::Dword {
        left = u64::from(left as u32);
    }
    match condition.op {
        Op::Eq => left == condition.value,
        Op::Ne => left != condition.value,
        Op::Lt => left < condition.value,
        Op::Le => left <= condition.value,
        Op::Gt => left > condition.value,
        Op::Ge => left >= condition.value,
        Op::MaskedEq(mask) => left & mask == condition.value,
    }
}

fn granted(grants: &Grants, args: &[u64; 6]) -> bool {
    match grants {
        Grants::None => false,
        Grants::All(_) => true,
        Grants::Some(list) => {
            list.iter().any(|one| one.when.any().iter().any(|all| all.iter().all(|c| holds(c, args))))
        }
    }
}

/// The answers that no rule changes: for other architectures, for x32, and for the queries about the filter itself.
pub fn fixed(arch: Arch, data: &Data, identity: u32, violation: u32) -> Option<u32> {
    if data.arch != arch.audit() {
        return Some(bpf::RET_KILL_PROCESS);
    }
    if data.nr >= X32_BIT {
        return Some(violation);
    }
    let option =
        Call::numbered(arch, data.nr).filter(|call| call.name() == "prctl").map(|_| data.args[0] as u32)?;
    if [AROUND, CONNECTS].contains(&option) {
        return Some(bpf::RET_ALLOW);
    }
    (option == QUERY).then(|| {
        let number = if data.args[1] as u32 == identity { errno::EALREADY } else { errno::EISCONN };
        bpf::RET_ERRNO | u32::from(number)
    })
}

/// The answer that the profile asks for, in a run with or without namespaces of its own.
pub fn expected(
    (profile, namespaces): (&Profile, bool),
    arch: Arch,
    actions: Actions,
    data: &Data,
    identity: u32,
) -> u32 {
    if let Some(value) = fixed(arch, data, identity, actions.violation) {
        return value;
    }
    let unnamed = if profile.is_unrestricted() { bpf::RET_ALLOW } else { actions.violation };
    if data.nr >= arch.end() {
        return actions.unknown.unwrap_or(unnamed);
    }
    let Some(call) = Call::numbered(arch, data.nr) else { return unnamed };
    let Some(rules) = profile.syscalls.calls.get(call) else { return unnamed };
    // What stands there for namespaces includes the rest, so it can be asked besides.
    let inside = namespaces && granted(&rules.inside, &data.args);
    if granted(&rules.deny, &data.args) {
        rules.errno.map_or(actions.violation, |number| bpf::RET_ERRNO | u32::from(number))
    } else if inside || granted(&rules.allow, &data.args) {
        if rules.log.is_some() { actions.log } else { bpf::RET_ALLOW }
    } else if rules.allowed(namespaces).is_none() {
        unnamed
    } else {
        actions.violation
    }
}
