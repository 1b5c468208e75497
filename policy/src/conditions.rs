// From conditions on arguments to a piece of program, by seccompiler, made shorter (`shorten`). Shared by the build script (for the
// named restrictions) and, behind the `std` feature, by the launcher (for free conditions).

use super::restrictions::{Condition, Op, Width};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// `sock_filter` as a tuple: code, jump if true, jump if false, operand.
pub type RawInsn = (u16, u8, u8, u32);

/// What seccompiler puts before the conditions of a single rule: load and check the architecture (3), load
/// the number, compare it, and two jumps that lead into the rule.
const PROLOGUE: usize = 7;
/// And after the rule: the mismatch of the call's chain, and the mismatch of the program.
const EPILOGUE: usize = 2;
const BPF_RET: u16 = 0x06;
const BPF_JA: u16 = 0x05;

#[path = "shorten.rs"]
mod shorten;

/// Compiles alternatives of conditions to a piece that returns where one of them holds (with the operand 0,
/// a place for the real action) and falls through at its end where none does.
pub fn compile(alternatives: &[Vec<Condition>]) -> Result<Vec<RawInsn>, String> {
    if alternatives.is_empty() {
        return Err("no alternatives".to_string());
    }
    let pieces = alternatives.iter().map(|all| alternative(all)).collect::<Result<Vec<_>, _>>()?;
    let piece = pieces.concat();
    Ok(shorten::shorten(&piece).unwrap_or(piece))
}

/// One rule. Where a condition does not hold it jumps to what follows its return: the next alternative.
fn alternative(conditions: &[Condition]) -> Result<Vec<RawInsn>, String> {
    let conditions = conditions.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    let rule = SeccompRule::new(conditions).map_err(|e| e.to_string())?;
    // Any call number will do: the part that compares it is cut off.
    let (matched, missed) = (SeccompAction::Allow, SeccompAction::KillProcess);
    let filter = SeccompFilter::new([(0, vec![rule])].into(), missed, matched, TargetArch::x86_64);
    let program: BpfProgram =
        filter.and_then(|filter| filter.try_into()).map_err(|e: seccompiler::BackendError| e.to_string())?;
    let end = program.len().saturating_sub(EPILOGUE);
    let (head, body, tail) = match (program.get(..PROLOGUE), program.get(PROLOGUE..end), program.get(end..)) {
        (Some(head), Some(body), Some(tail)) => (head, body, tail),
        _ => return Err("seccompiler's program is shorter than expected".to_string()),
    };
    let led_in = head[PROLOGUE - 2..].iter().all(|i| i.code == BPF_JA) && head[PROLOGUE - 2].k == 1;
    let closed = tail.iter().all(|i| i.code == BPF_RET) && body.last().is_some_and(|i| i.code == BPF_RET);
    if !led_in || !closed {
        return Err("seccompiler's program has an unexpected layout".to_string());
    }
    Ok(body
        .iter()
        .map(|i| if i.code == BPF_RET { (i.code, 0, 0, 0) } else { (i.code, i.jt, i.jf, i.k) })
        .collect())
}

fn condition(condition: &Condition) -> Result<SeccompCondition, String> {
    let width = match condition.width {
        Width::Dword => SeccompCmpArgLen::Dword,
        Width::Qword => SeccompCmpArgLen::Qword,
    };
    let op = match condition.op {
        Op::Eq => SeccompCmpOp::Eq,
        Op::Ne => SeccompCmpOp::Ne,
        Op::Lt => SeccompCmpOp::Lt,
        Op::Le => SeccompCmpOp::Le,
        Op::Gt => SeccompCmpOp::Gt,
        Op::Ge => SeccompCmpOp::Ge,
        Op::MaskedEq(mask) => SeccompCmpOp::MaskedEq(mask),
    };
    SeccompCondition::new(condition.arg, width, op, condition.value).map_err(|e| e.to_string())
}
