// Compiles conditions on arguments to a piece of program, with seccompiler, and shortens it (`shorten`). The build
// script includes this file for the named restrictions. The launcher uses it for free conditions, with the feature
// `std`.

use super::bpf::{self, Insn, JA, RET, stmt};
use super::restrictions::{Condition, Op, Width};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

/// The instructions that seccompiler writes before the conditions of a single rule: load and check the architecture
/// (3), load the number, compare it, and two jumps into the rule.
const PROLOGUE: usize = 7;
/// The instructions after the rule: the mismatch of the chain of the system call, and the mismatch of the program.
const EPILOGUE: usize = 2;

#[path = "shorten.rs"]
mod shorten;

/// Compiles alternatives of conditions to a piece. The piece returns if one of them holds (with the operand 0, which
/// stands for the real action); if none holds, it falls through at its end.
pub fn compile(alternatives: &[Vec<Condition>]) -> Result<Vec<Insn>, String> {
    if alternatives.is_empty() {
        return Err("no alternatives".to_string());
    }
    let pieces = alternatives.iter().map(|all| alternative(all)).collect::<Result<Vec<_>, _>>()?;
    let piece = pieces.concat();
    Ok(shorten::shorten(&piece).unwrap_or(piece))
}

/// Compiles one rule. A condition that does not hold jumps behind its return, to the next alternative.
fn alternative(conditions: &[Condition]) -> Result<Vec<Insn>, String> {
    let conditions = conditions.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    let rule = SeccompRule::new(conditions).map_err(|e| e.to_string())?;
    // The system call number does not matter: the part that compares it is cut off.
    let (matched, missed) = (SeccompAction::Allow, SeccompAction::KillProcess);
    let filter = SeccompFilter::new([(0, vec![rule])].into(), missed, matched, TargetArch::x86_64);
    let program: BpfProgram =
        filter.and_then(|filter| filter.try_into()).map_err(|e: seccompiler::BackendError| e.to_string())?;
    let end = program.len().saturating_sub(EPILOGUE);
    let (head, body, tail) = match (program.get(..PROLOGUE), program.get(PROLOGUE..end), program.get(end..)) {
        (Some(head), Some(body), Some(tail)) => (head, body, tail),
        _ => return Err("seccompiler's program is shorter than expected".to_string()),
    };
    let led_in = head[PROLOGUE - 2..].iter().all(|i| i.code == JA) && head[PROLOGUE - 2].k == 1;
    let closed = tail.iter().all(|i| i.code == RET) && body.last().is_some_and(|i| i.code == RET);
    if !led_in || !closed {
        return Err("seccompiler's program has an unexpected layout".to_string());
    }
    let insn = |insn: &sock_filter| match insn.code {
        RET => stmt(RET, 0),
        code => Insn { code, jt: insn.jt, jf: insn.jf, k: insn.k },
    };
    Ok(body.iter().map(insn).collect())
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
