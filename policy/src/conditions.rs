// From conditions on arguments to a piece of program, by seccompiler. Shared by the build script (for the
// named restrictions) and, behind the `std` feature, by the launcher (for free conditions).

use super::restrictions::{Condition, Op, Width};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// `sock_filter` as a tuple: code, jump if true, jump if false, operand.
pub type RawInsn = (u16, u8, u8, u32);

/// What seccompiler puts before the rules of a single call: load and check the architecture (3), load the
/// number, compare it.
const PROLOGUE: usize = 5;
/// And after them: the mismatch of the call's chain, and the mismatch of the program.
const EPILOGUE: usize = 2;
const BPF_RET: u16 = 0x06;

/// Compiles alternatives of conditions to a piece that returns where one of them holds (with the operand 0,
/// a place for the real action) and falls through at its end where none does.
pub fn compile(alternatives: &[Vec<Condition>]) -> Result<Vec<RawInsn>, String> {
    let mut rules = Vec::with_capacity(alternatives.len());
    for conditions in alternatives {
        let conditions = conditions.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
        rules.push(SeccompRule::new(conditions).map_err(|e| e.to_string())?);
    }
    if rules.is_empty() {
        return Err("no alternatives".to_string());
    }
    // Any call number will do: the part that compares it is cut off.
    let (matched, missed) = (SeccompAction::Allow, SeccompAction::KillProcess);
    let filter = SeccompFilter::new([(0, rules)].into(), missed, matched, TargetArch::x86_64)
        .map_err(|e| e.to_string())?;
    let program: BpfProgram = filter.try_into().map_err(|e: seccompiler::BackendError| e.to_string())?;
    let body = program.len().checked_sub(EPILOGUE).and_then(|end| program.get(PROLOGUE..end));
    let body = body.ok_or("seccompiler's program is shorter than expected")?;
    let tail_returns = program[program.len() - EPILOGUE..].iter().all(|i| i.code == BPF_RET);
    if !tail_returns || program[PROLOGUE - 1].code & 0x07 != 0x05 {
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
