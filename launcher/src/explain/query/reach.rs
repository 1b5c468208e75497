//! What the calls that the filter lets through can do with paths. One call of many is enough: `creat` makes a file
//! where `openat` may only read, and so do `rename` and `symlink`.

use crate::error::Refusal;
use crate::explain::decode::{self, Access};
use crate::plan::Plan;
use crate::plan::calls::Extras;
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{self, Data};
use sbx_policy::restrictions::{Condition, Op};
use sbx_policy::rules::{Actions, Grant};
use std::cell::OnceCell;

/// Whoever may make it has operations that no filter sees, opens and renames among them.
const UNSEEN: &str = "io_uring_setup";

/// All that the calls of a run can do with paths, found once.
#[derive(Default)]
pub struct Reach(OnceCell<Access>);

impl Reach {
    /// Of the run of this plan.
    pub fn of(&self, plan: &Plan) -> Result<Access, Refusal> {
        if let Some(known) = self.0.get() {
            return Ok(*known);
        }
        let found = of_calls(plan)?;
        Ok(*self.0.get_or_init(|| found))
    }
}

/// The filter's program decides, and the table of decoded calls says what each call does.
fn of_calls(plan: &Plan) -> Result<Access, Refusal> {
    let actions = Actions { violation: bpf::RET_TRAP, log: bpf::RET_LOG, unknown: None };
    let (table, _) = plan.calls.rules(actions, Extras::default())?;
    let program = plan.calls.strict_program()?;
    let mut reached = Access::NONE;
    for call in Call::all() {
        let Some(nr) = call.number(Arch::HOST) else { continue };
        let row = plan.calls.in_effect(table.row(call).copied().unwrap_or_default());
        let is_open = plan.calls.open_by().is_some() && row.deny == Grant::None;
        let passes = |args: &[u64; 6]| {
            let data = Data { nr, arch: Arch::HOST.audit(), args: *args };
            is_open || interpret::lets_through(&program, &data)
        };
        for args in attempts(plan, call) {
            let wanted = match call.name() {
                UNSEEN => Access::ALL,
                name => decode::wanted(name, &args),
            };
            if !reached.contains(wanted) && passes(&args) {
                reached = reached | wanted;
            }
        }
    }
    Ok(reached)
}

/// Arguments to try a call with: those that ask for each kind of opening, and the same as the conditions of its entries
/// want them.
fn attempts(plan: &Plan, call: Call) -> Vec<[u64; 6]> {
    let plain: Vec<[u64; 6]> = match decode::open_flags_at(call.name()) {
        Some(at) => {
            decode::OPENS.map(|flags| std::array::from_fn(|place| if place == at { flags } else { 0 })).into()
        }
        None => vec![[0; 6]],
    };
    let alternatives = plan.calls.allowed(call).alternatives().iter();
    let conditions = alternatives.flat_map(|alternative| alternative.when.any());
    let fitted = conditions.flat_map(|all| plain.iter().map(move |args| fitted(*args, all)));
    plain.iter().copied().chain(fitted).collect()
}

/// Arguments as close to these as conditions let them be.
fn fitted(mut args: [u64; 6], conditions: &[Condition]) -> [u64; 6] {
    for condition in conditions {
        let Some(argument) = args.get_mut(usize::from(condition.arg)) else { continue };
        let value = condition.value;
        *argument = match condition.op {
            Op::Eq => value,
            Op::Ne if *argument == value => value.wrapping_add(1),
            Op::Ne => *argument,
            Op::Lt => (*argument).min(value.saturating_sub(1)),
            Op::Le => (*argument).min(value),
            Op::Gt => (*argument).max(value.saturating_add(1)),
            Op::Ge => (*argument).max(value),
            Op::MaskedEq(mask) => (*argument & !mask) | (value & mask),
        };
    }
    args
}
