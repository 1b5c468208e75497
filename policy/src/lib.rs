//! What a confined program may do, and how the kernel is told.
//!
//! The path of a rule: a list of entries ([`list`]) fills a [`Rules`] table, one row a call number; a
//! [`Program`] is laid out from the table. The environment text ([`mod@env`]) is one source of lists, a
//! profile another. Everything here is pure: nothing opens a file or makes a system call.
//!
//! The core is `no_std` and does not allocate, because the shim carries it into every program.
#![cfg_attr(not(any(feature = "std", test)), no_std)]

pub mod bpf;
pub mod calls;
pub mod env;
pub mod errno;
pub mod interpret;
pub mod list;
pub mod program;
pub mod rules;

/// Named argument restrictions, as data.
pub mod restrictions {
    include!("restrictions.rs");

    use crate::calls::{self, Arch, Call};

    // The shim asks by these functions, whose tables are small; `RESTRICTIONS` itself, a thicket of pointers,
    // then stays out of it.

    /// The places of all restrictions of one call; they are consecutive.
    pub fn of_call(call: Call) -> core::ops::Range<usize> {
        places(|of| *of == call.index())
    }

    /// As [`of_call`], of the call that has this number, without a look through all calls.
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

    /// Those restrictions of the same call, as bits in their order, that match all this one matches or
    /// nothing else.
    pub fn overlaps(place: usize) -> u16 {
        calls::OVERLAPS.get(place).copied().unwrap_or(0)
    }
}

/// Free conditions on arguments, compiled by seccompiler.
#[cfg(feature = "std")]
pub mod conditions;
/// What follows from conditions without running a program.
pub mod shadow;

pub use calls::Arch;
pub use program::Program;
pub use rules::Rules;
