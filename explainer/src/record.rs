//! The calls that are remembered.

use crate::kinds::{self, Kind};
use crate::sys;
use core::ffi::c_int;
use sbx_policy::tell::{GAINS, MOST, RELATIVE, ROOM, Record, SPOKEN};

const ENOENT: c_int = 2;

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
    /// The place of the next one, which is that of the oldest.
    next: usize,
    /// Whether the last one is about the system's files.
    ends_at_system: bool,
    records: [Record; MOST],
}

impl Ring {
    /// Whether another one about the system's files may take the place of the last: it is about these, and the program
    /// has not spoken of it.
    fn ends_at_system(&self) -> bool {
        let last = self.records.get(self.next.wrapping_sub(1) % MOST);
        self.ends_at_system && last.is_some_and(|record| record.flags & SPOKEN == 0)
    }
}

/// The last calls that failed. One without any is all zeros. What programs fail in most often stands first: memory that
/// is never used costs nothing.
pub struct Kept {
    /// Whose calls these are.
    process: i32,
    count: u32,
    missing: Ring,
    refused: Ring,
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
        // A compiler looks for a header in many directories: what is not found is remembered without a system call.
        if self.process == 0 || why == Why::Refused || kind.is_of_children || !sys::is_fresh_in_children() {
            self.forget_parents();
        }
        self.count = self.count.wrapping_add(1);
        let count = self.count;
        let is_of_system = error == ENOENT && is_of_system(kind, &args);
        let ring = self.ring(why);
        if is_of_system && ring.ends_at_system() {
            ring.next = ring.next.wrapping_sub(1);
            ring.ends_at_system = false;
        }
        let Some(record) = ring.records.get_mut(ring.next % MOST) else { return };
        record.number = 0;
        record.flags = 0;
        if copy(record, kind, args).is_some() {
            record.error = error as u32;
            record.order = count;
            record.number = kind.number;
            ring.next = ring.next.wrapping_add(1);
            ring.ends_at_system = is_of_system;
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

    /// What another process remembers is not this one's: a child of vfork(2) has its parent's memory, and where the
    /// kernel does not clear it, any child has a copy.
    fn forget_parents(&mut self) {
        let process = sys::process();
        if self.process != process {
            if self.process != 0 {
                let all = self.refused.records.iter_mut().chain(&mut self.missing.records);
                all.for_each(|record| record.number = 0);
            }
            self.process = process;
        }
    }

    /// Whether these are calls of this process, or of a child that had its memory.
    fn is_own(&self) -> bool {
        let process = sys::process();
        self.process == process || (sys::is_fresh_in_children() && self.process != sys::parent())
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

    /// The working directory is about to be another one: relative paths started at this one.
    pub fn settle_relative(&mut self) {
        let all = self.refused.records.iter_mut().chain(&mut self.missing.records);
        let mut relative = all.filter(|record| record.number != 0 && record.flags & RELATIVE != 0).peekable();
        if relative.peek().is_none() {
            return;
        }
        let mut room = [0; LONGEST];
        let directory = sys::working_directory(&mut room);
        relative.for_each(|record| {
            if directory.and_then(|directory| settle(record, directory)).is_none() {
                record.number = 0;
            }
        });
    }

    /// Tells the supervisor, and whether words follow.
    pub fn tell(&mut self, why: Why, speaks: bool) {
        let is_empty = self.ring(why).records.iter().all(|record| record.number == 0);
        if is_empty || !self.is_own() {
            return;
        }
        let records = &mut self.ring(why).records;
        if sys::tell(records, speaks) {
            records.iter_mut().for_each(|record| record.number = 0);
        }
    }
}

/// Whether a call is about a file of the system's, of which none is out of sight. Programs look for theirs in many
/// directories, so one after the other takes the same place.
fn is_of_system(kind: &Kind, args: &[u64; 6]) -> bool {
    let [path] = kind.paths else { return false };
    let path = args.get(path.at).map_or(&[][..], |address| sys::text(*address));
    [&b"/usr/"[..], b"/lib/", b"/lib64/", b"/etc/"].iter().any(|above| path.starts_with(above))
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

/// Has the only path of a record start at this directory.
fn settle(record: &mut Record, directory: &[u8]) -> Option<()> {
    let room = record.text.as_ptr_range();
    let is_path = |word: &&u64| (room.start as u64..room.end as u64).contains(*word);
    (record.args.iter().filter(is_path).count() == 1).then_some(())?;
    let length = record.text.iter().position(|byte| *byte == 0)? + 1;
    let start = directory.len() + 1;
    (start + length <= ROOM).then_some(())?;
    record.text.copy_within(..length, start);
    let used = append(&mut record.text, 0, directory)?;
    append(&mut record.text, used, b"/")?;
    record.flags &= !RELATIVE;
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
    room.get_mut(at..end)?.copy_from_slice(text);
    Some(end)
}
