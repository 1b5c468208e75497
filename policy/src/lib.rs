//! What a confined program may do, and how the kernel is told.
//!
//! The path of a rule: a list of entries ([`list`]) fills a [`Rules`] table, one row a call number; a
//! [`Program`] is laid out from the table. The environment text ([`env`]) is one source of lists, a
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

    /// The place of `call[name]` in [`RESTRICTIONS`].
    pub fn find(call: &str, name: &str) -> Option<usize> {
        RESTRICTIONS.iter().position(|r| r.call == call && r.name == name)
    }

    /// The places of all restrictions of one call; they are consecutive.
    pub fn of_call(call: &str) -> core::ops::Range<usize> {
        let start = RESTRICTIONS.iter().position(|r| r.call == call).unwrap_or(RESTRICTIONS.len());
        let count = RESTRICTIONS[start..].iter().take_while(|r| r.call == call).count();
        start..start + count
    }
}

#[cfg(feature = "std")]
pub mod conditions;

pub use calls::Arch;
pub use program::Program;
pub use rules::Rules;
