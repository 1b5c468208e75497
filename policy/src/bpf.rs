//! Classic BPF as used by seccomp(2): `struct sock_filter` and the return values of a filter.

/// `struct sock_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// Operation.
    pub code: u16,
    /// The number of instructions to skip if a comparison holds.
    pub jt: u8,
    /// The number of instructions to skip if it does not hold.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// Load a 32-bit word of `struct seccomp_data`.
pub const LD: u16 = 0x20;
/// Bitwise AND with the operand.
pub const AND: u16 = 0x54;
/// Jump always.
pub const JA: u16 = 0x05;
/// Jump if equal.
pub const JEQ: u16 = 0x15;
/// Jump if greater.
pub const JGT: u16 = 0x25;
/// Jump if greater or equal.
pub const JGE: u16 = 0x35;
/// Jump if any bit of the operand is set.
pub const JSET: u16 = 0x45;
/// Return the operand.
pub const RET: u16 = 0x06;

/// `offsetof(struct seccomp_data, nr)`.
pub const DATA_NR: u32 = 0;
/// `offsetof(struct seccomp_data, arch)`.
pub const DATA_ARCH: u32 = 4;
/// Offset of the high half of `instruction_pointer` (little-endian machines only).
pub const DATA_CODE_HIGH: u32 = 12;

/// Offset of the low half of an argument (little-endian machines only).
pub const fn data_arg(index: u8) -> u32 {
    16 + 8 * index as u32
}

/// `SECCOMP_RET_KILL_PROCESS`.
pub const RET_KILL_PROCESS: u32 = 0x8000_0000;
/// `SECCOMP_RET_TRAP`.
pub const RET_TRAP: u32 = 0x0003_0000;
/// `SECCOMP_RET_ERRNO`, combined with the error number by OR.
pub const RET_ERRNO: u32 = 0x0005_0000;
/// `SECCOMP_RET_USER_NOTIF` (Linux 5.0).
pub const RET_USER_NOTIF: u32 = 0x7fc0_0000;
/// `SECCOMP_RET_LOG` (Linux 4.14).
pub const RET_LOG: u32 = 0x7ffc_0000;
/// `SECCOMP_RET_ALLOW`.
pub const RET_ALLOW: u32 = 0x7fff_0000;

/// `BPF_MAXINSNS`: the kernel rejects longer programs.
pub const MAX_INSNS: usize = 4096;

/// An instruction that does not jump.
pub const fn stmt(code: u16, k: u32) -> Insn {
    Insn { code, jt: 0, jf: 0, k }
}

/// A conditional jump.
pub const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Insn {
    Insn { code, jt, jf, k }
}
