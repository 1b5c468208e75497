//! The calls that are remembered.

use crate::kinds::{self, Kind};
use crate::sys;
use core::ffi::c_int;
use sbx_policy::tell::{GAINS, MOST, RELATIVE, ROOM, Record, SPOKEN};

/// Where relative paths start that no descriptor says a directory for (AT_FDCWD).
const WORKING: i32 = -100;

/// Maximum length of the path of a directory.
const LONGEST: usize = 256;

/// Why a call is remembered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It was refused.
    Refused,
    /// It found nothing, which programs expect all the time.
    Missing,
}

/// The last calls of one sort.
struct Ring {
    records: [Record; MOST],
}

/// The last calls that failed. One without any is all zeros.
pub struct Kept {
    /// Whose calls these are. A child has a copy of its parent's.
    process: i32,
    count: u32,
    refused: Ring,
    missing: Ring,
}

impl Kept {
    /// Does something with them, unless another thread does: a call that is not remembered is no harm.
    pub fn with(act: impl FnOnce(&mut Kept)) {
        sys::with_kept(false, act);
    }

    /// The same, also for the first time.
    pub fn begin(act: impl FnOnce(&mut Kept)) {
        sys::with_kept(true, act);
    }

    fn ring(&mut self, why: Why) -> &mut Ring {
        match why {
            Why::Refused => &mut self.refused,
            Why::Missing => &mut self.missing,
        }
    }

    /// Remembers a call.
    pub fn remember(&mut self, why: Why, kind: &Kind, args: [u64; 6], error: c_int) {
        self.forget_parents();
        self.count = self.count.wrapping_add(1);
        let count = self.count;
        let places = &mut self.ring(why).records;
        // The one that is free, or the oldest.
        let Some(record) = places.iter_mut().min_by_key(|record| match record.number {
            0 => 0,
            _ => record.order,
        }) else {
            return;
        };
        record.number = 0;
        record.flags = 0;
        if copy(record, kind, args).is_some() {
            record.error = error as u32;
            record.order = count;
            record.number = kind.number;
        }
        if count == 1 {
            sys::watch_end();
        }
    }

    /// Remembers the program itself.
    pub fn remember_program(&mut self) {
        let mut room = [0; LONGEST];
        if sys::own_program(&mut room).is_none() {
            return;
        }
        self.remember(Why::Refused, &kinds::EXECVE, [room.as_ptr() as u64, 0, 0, 0, 0, 0], 0);
        let last = self.count;
        let told = self.refused.records.iter_mut().filter(|record| record.order == last);
        told.for_each(|record| record.flags |= GAINS);
    }

    /// In a child, what its parent remembers is not the child's.
    fn forget_parents(&mut self) {
        let process = sys::process();
        if self.process != process {
            self.process = process;
            let all = self.refused.records.iter_mut().chain(&mut self.missing.records);
            all.for_each(|record| record.number = 0);
        }
    }

    /// The program speaks of the last call that had this error.
    pub fn speak(&mut self, error: c_int) {
        let has_error = |record: &&mut Record| record.number != 0 && record.error == error as u32;
        let mut known = self.missing.records.iter_mut().filter(has_error);
        let Some(mut last) = known.next() else { return };
        for record in known {
            if record.order > last.order {
                last = record;
            }
        }
        last.flags |= SPOKEN;
    }

    /// The working directory is another one, so nobody knows any more where the relative paths lead.
    pub fn forget_relative(&mut self) {
        let all = self.refused.records.iter_mut().chain(&mut self.missing.records);
        all.filter(|record| record.flags & RELATIVE != 0).for_each(|record| record.number = 0);
    }

    /// Tells the supervisor, and whether words follow.
    pub fn tell(&mut self, why: Why, speaks: bool) {
        if self.process != sys::process() {
            return;
        }
        let records = &mut self.ring(why).records;
        if records.iter().any(|record| record.number != 0) {
            let is_heard = sys::tell(records, speaks);
            records.iter_mut().filter(|_| is_heard).for_each(|record| record.number = 0);
        }
    }
}

/// Copies the arguments, with what they point to.
fn copy(record: &mut Record, kind: &Kind, args: [u64; 6]) -> Option<()> {
    record.args = args;
    let mut used = 0;
    for path in kind.paths {
        let address = *args.get(path.at)?;
        let text = match path.length {
            None => sys::text(address),
            Some(length) => sys::bytes(address, *args.get(length)?),
        };
        if text.is_empty() {
            return None;
        }
        let start = used;
        let is_relative = !path.is_text && text.first() != Some(&b'/');
        let directory =
            path.directory.and_then(|place| args.get(place)).map_or(WORKING, |number| *number as i32);
        if is_relative && directory == WORKING {
            record.flags |= RELATIVE;
        } else if is_relative {
            used = start_at(record, directory, used)?;
        }
        used = append(&mut record.text, used, text)?;
        used = append(&mut record.text, used, &[0])?;
        *record.args.get_mut(path.at)? = record.text.get(start..)?.as_ptr() as u64;
        if let Some(directory) = path.directory {
            *record.args.get_mut(directory)? = WORKING as u64;
        }
    }
    Some(())
}

/// Writes the directory that a relative path starts at: its number may be another's when this is told.
fn start_at(record: &mut Record, directory: c_int, used: usize) -> Option<usize> {
    let mut room = [0; LONGEST];
    let start = sys::directory(directory, &mut room)?;
    let used = append(&mut record.text, used, start)?;
    append(&mut record.text, used, b"/")
}

fn append(room: &mut [u8; ROOM], at: usize, text: &[u8]) -> Option<usize> {
    let end = at + text.len();
    room.get_mut(at..end)?.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
    Some(end)
}
