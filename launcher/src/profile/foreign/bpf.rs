//! The filter itself: the program of seccomp(2) as an array of `struct sock_filter`.

use crate::profile::foreign::languages::Exported;
use crate::profile::foreign::{Losses, rest};

/// Writes the instructions in this machine's byte order.
pub fn write(exported: &Exported<'_>, losses: &mut Losses) -> Vec<u8> {
    rest::lose(exported.profile, &[], rest::CALLS_ONLY, losses);
    let program = exported.program.iter();
    program
        .flat_map(|insn| {
            let [one, other] = insn.code.to_ne_bytes();
            let [a, b, c, d] = insn.k.to_ne_bytes();
            [one, other, insn.jt, insn.jf, a, b, c, d]
        })
        .collect()
}
