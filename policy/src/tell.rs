//! What the explainer library and the supervisor have agreed on: the records of refused calls, and the prctl(2) that
//! says where they are.
//!
//! `prctl(TELL, address of the first record, number of records, whether the program is about to write about it)`. No
//! profile allows this option, so the filter notifies the supervisor, which reads the records from the caller's memory
//! while that waits. It succeeds if the records are of no more use.

/// The first argument: "SBX2".
pub const TELL: u32 = 0x5342_5832;

/// The first argument of `prctl(LINK, directory, path, directory, path, flags)`: the arguments of a linkat(2) that
/// failed with EXDEV. It succeeds if the supervisor has made the link. No profile allows this option either.
pub const LINK: u32 = 0x5342_5833;

/// Maximum number of records that are told at once.
pub const MOST: usize = 24;

/// The bytes that a record has for paths.
pub const ROOM: usize = 568;

/// The program has turned the error into words.
pub const SPOKEN: u32 = 1;

/// A path of it starts at the working directory.
pub const RELATIVE: u32 = 2;

/// It is no call: the program itself, which would gain rights outside a sandbox.
pub const GAINS: u32 = 4;

/// A call that failed. With wait4(2), `error` is the signal that ended the child.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Record {
    /// The number of the system call.
    pub number: u32,
    /// Its error.
    pub error: u32,
    /// [`SPOKEN`], [`RELATIVE`] and [`GAINS`].
    pub flags: u32,
    /// Counts the calls: later ones have higher numbers.
    pub order: u32,
    /// Its arguments. Its paths are in `text`, so they can be read after the caller has gone on.
    pub args: [u64; 6],
    /// Strings that end with NUL.
    pub text: [u8; ROOM],
}

/// The bytes of a record.
pub const SIZE: usize = size_of::<Record>();

impl Record {
    /// None yet.
    pub const EMPTY: Record =
        Record { number: 0, error: 0, flags: 0, order: 0, args: [0; 6], text: [0; ROOM] };

    /// The record in these bytes, without its text; `None` where they are too few.
    pub fn read(bytes: &[u8]) -> Option<Record> {
        let half = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let whole = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let mut args = [0; 6];
        for (place, arg) in args.iter_mut().enumerate() {
            *arg = whole(16 + 8 * place)?;
        }
        Some(Record {
            number: half(0)?,
            error: half(4)?,
            flags: half(8)?,
            order: half(12)?,
            args,
            ..Record::EMPTY
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_lays_out_is_what_the_supervisor_reads() {
        assert_eq!(core::mem::offset_of!(Record, error), 4);
        assert_eq!(core::mem::offset_of!(Record, flags), 8);
        assert_eq!(core::mem::offset_of!(Record, order), 12);
        assert_eq!(core::mem::offset_of!(Record, args), 16);
        assert_eq!(core::mem::offset_of!(Record, text), 64);
        assert_eq!(SIZE, 632);
        let mut bytes = [0; SIZE];
        bytes[0] = 7;
        bytes[4] = 13;
        bytes[16 + 40] = 9;
        let read = Record::read(&bytes).map(|record| (record.number, record.error, record.args[5]));
        assert_eq!(read, Some((7, 13, 9)));
        assert!(Record::read(&bytes[..60]).is_none());
    }
}
