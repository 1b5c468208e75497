//! Rules for system calls, and the seccomp programs that enforce them.
//!
//! The entries of a list ([`list`]) fill a [`Rules`] table with one row for each system call number. A [`Program`] is
//! laid out from the table. Lists come from environment variables ([`mod@env`]) or from a profile. All code here is
//! pure: it opens no file and makes no system call.
//!
//! The crate is `no_std` and does not allocate without the feature `std`, because the shim carries it into every
//! program.
#![forbid(unsafe_code)]
#![cfg_attr(not(any(feature = "std", test)), no_std)]

pub mod bpf;
pub mod calls;
pub mod env;
pub mod errno;
pub mod interpret;
pub mod list;
mod message;
pub mod program;
pub mod rules;
pub mod tell;

/// Named argument restrictions, as data.
pub mod restrictions {
    include!("restrictions.rs");

    use crate::calls::{self, Arch, Call};

    // The shim uses these functions, whose tables are small. So `RESTRICTIONS`, which is full of pointers, is not
    // linked into it.

    /// The places of all restrictions of one system call; they are consecutive.
    pub fn of_call(call: Call) -> core::ops::Range<usize> {
        places(|of| *of == call.place())
    }

    /// As [`of_call`], for the system call of this number. It does not search the table of all system calls.
    pub fn of_number(arch: Arch, number: u32) -> core::ops::Range<usize> {
        places(|of| Call::at(*of).number(arch) == Some(number))
    }

    fn places(is_of: impl Fn(&u16) -> bool) -> core::ops::Range<usize> {
        let of = &calls::RESTRICTED;
        let start = of.iter().position(&is_of).unwrap_or(of.len());
        let count = of.iter().skip(start).take_while(|call| is_of(call)).count();
        start..start + count
    }

    /// The name of the restriction at a place.
    pub fn name(place: usize) -> &'static str {
        calls::slice(calls::RESTRICTION_NAMES, &calls::RESTRICTION_OFFSETS, place)
    }

    /// The restrictions of the same system call that cover this one or that it covers; as bits in their order.
    pub fn overlaps(place: usize) -> u16 {
        calls::OVERLAPS.get(place).copied().unwrap_or(0)
    }
}

/// Free conditions on arguments, compiled by seccompiler.
#[cfg(feature = "std")]
pub mod conditions;
/// Conclusions from conditions without running a program.
pub mod shadow;

pub use calls::Arch;
pub use program::Program;
pub use rules::Rules;
