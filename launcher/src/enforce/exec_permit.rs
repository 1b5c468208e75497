//! The one-shot exec permit: the filter allows one execve(2), which it recognises by its pointers.
//!
//! The filter must be in place before the exec, and must allow exactly that one. So the three pointers of
//! the exec are three random addresses, which nobody else knows, and the filter allows no others. The exec
//! itself unmaps that memory, so no later call can pass the same pointers; guessing three addresses is out
//! of reach.

use crate::enforce::Cause;
use crate::sys::memory::HiddenWords;
use crate::sys::{SyscallError, process};
use sbx_policy::bpf::{self, Insn};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The three pointers in halves of 32 bits, as the filter compares them.
const HALVES: usize = 6;

/// The exec of a run, laid out in memory and ready.
pub struct ExecPermit {
    path: HiddenWords,
    arguments: HiddenWords,
    environment: HiddenWords,
    /// The strings that the pointers point to.
    _strings: Vec<CString>,
    /// Where the strings come of an exec that is known later.
    later: Option<HiddenWords>,
}

/// The room for an exec that is known later: in bytes, of its path, of each list of pointers, and of all strings.
const PATH_ROOM: usize = 4096;
const LIST_ROOM: usize = 1 << 16;
const STRINGS_ROOM: usize = 1 << 18;

impl ExecPermit {
    /// Lays out path, arguments and environment (`NAME=value`).
    pub fn new(
        path: &[u8],
        arguments: Vec<OsString>,
        environment: Vec<OsString>,
    ) -> Result<ExecPermit, Cause> {
        let mut strings = Vec::with_capacity(arguments.len() + environment.len());
        let mut pointers = |list: Vec<OsString>| -> Result<Vec<usize>, Cause> {
            let mut words = Vec::with_capacity(list.len() + 1);
            for text in list {
                let text = CString::new(text.into_vec()).map_err(|_| NUL_BYTE)?;
                words.push(text.as_ptr().addr());
                strings.push(text);
            }
            words.push(0);
            Ok(words)
        };
        let (arguments, environment) = (pointers(arguments)?, pointers(environment)?);
        Ok(ExecPermit {
            path: HiddenWords::new(&words(path)?)?,
            arguments: HiddenWords::new(&arguments)?,
            environment: HiddenWords::new(&environment)?,
            _strings: strings,
            later: None,
        })
    }

    /// Room for an exec whose words come later, from a process that this one is a copy of, or a copy of it.
    pub fn room() -> Result<ExecPermit, Cause> {
        Ok(ExecPermit {
            path: HiddenWords::room(PATH_ROOM)?,
            arguments: HiddenWords::room(LIST_ROOM)?,
            environment: HiddenWords::room(LIST_ROOM)?,
            _strings: Vec::new(),
            later: Some(HiddenWords::room(STRINGS_ROOM)?),
        })
    }

    /// Puts the words there; false where they have no room.
    pub fn fill(&self, path: &[u8], arguments: &[OsString], environment: &[OsString]) -> bool {
        let Some(strings) = &self.later else { return false };
        let (mut used, start) = (0, strings.address());
        let mut list = |room: &HiddenWords, words: &[OsString]| {
            let mut at = 0;
            for word in words {
                let bytes = word.as_bytes();
                let fits = !bytes.contains(&0)
                    && strings.write(used, bytes)
                    && strings.write(used + bytes.len(), &[0])
                    && room.write(at, &(start + used).to_ne_bytes());
                if !fits {
                    return false;
                }
                (used, at) = (used + bytes.len() + 1, at + size_of::<usize>());
            }
            room.write(at, &0_usize.to_ne_bytes())
        };
        let fits = list(&self.arguments, arguments) && list(&self.environment, environment);
        fits && !path.contains(&0) && self.path.write(0, path) && self.path.write(path.len(), &[0])
    }

    /// The part of a filter that recognises this execve(2): all six halves of the three pointers are equal.
    pub fn piece(&self) -> Vec<Insn> {
        let pointers = [(0, &self.path), (1, &self.arguments), (2, &self.environment)];
        let halves = pointers.into_iter().flat_map(|(argument, words)| {
            let (address, offset) = (words.address() as u64, bpf::data_arg(argument));
            [(offset, address as u32), (offset + 4, (address >> 32) as u32)]
        });
        let mut piece = Vec::with_capacity(2 * HALVES + 1);
        for (number, (offset, half)) in halves.enumerate() {
            piece.push(bpf::stmt(bpf::LD, offset));
            // A mismatch skips the comparisons behind it, their loads, and the return.
            piece.push(bpf::jump(bpf::JEQ, half, 0, 2 * (HALVES - 1 - number) as u8 + 1));
        }
        piece.push(bpf::stmt(bpf::RET, 0));
        piece
    }

    /// Replaces the process. Returns only if that fails.
    pub fn exec(&self) -> SyscallError {
        process::exec_raw(self.path.address(), self.arguments.address(), self.environment.address())
    }
}

const NUL_BYTE: Cause = Cause::Other("a name, an argument or a variable holds a NUL byte");

/// A NUL-terminated string as words.
fn words(text: &[u8]) -> Result<Vec<usize>, Cause> {
    if text.contains(&0) {
        return Err(NUL_BYTE);
    }
    let mut bytes = text.to_vec();
    bytes.resize((text.len() + 1).next_multiple_of(size_of::<usize>()), 0);
    let word = |chunk: &[u8]| chunk.try_into().map_or(0, usize::from_ne_bytes);
    Ok(bytes.chunks_exact(size_of::<usize>()).map(word).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sbx_policy::interpret::{Data, run};

    #[test]
    fn words_that_come_later_stand_where_the_exec_looks_for_them() {
        let permit = ExecPermit::room().ok().unwrap();
        let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(permit.fill(b"/bin/sh", &words(&["sh", "-c", "test $A$1 = 12", "", "2"]), &words(&["A=1"])));
        let child = process::fork().unwrap();
        if child == 0 {
            permit.exec();
            process::exit_now(9);
        }
        let ended = process::wait(Some(child), true, false);
        assert_eq!(ended, Some((child, process::Change::Exited(0))));
        assert!(!permit.fill(&[b'a'; PATH_ROOM], &[], &[]));
        assert!(!permit.fill(b"/bin/echo", &words(&["a\0b"]), &[]));
        assert!(!permit.fill(b"/bin/echo", &vec![OsString::new(); LIST_ROOM / 8], &[]));
        assert!(!permit.fill(b"/bin/echo", &[OsString::from("a".repeat(STRINGS_ROOM))], &[]));
        assert!(!ExecPermit::new(b"/bin/echo", vec![], vec![]).ok().unwrap().fill(b"/bin/echo", &[], &[]));
    }

    #[test]
    fn one_wrong_bit_of_a_pointer_is_another_exec() {
        let permit = ExecPermit::new(b"/bin/true", vec!["true".into()], vec!["A=b".into()]).ok().unwrap();
        let piece = permit.piece();
        let addresses =
            [&permit.path, &permit.arguments, &permit.environment].map(|words| words.address() as u64);
        let asked = |args: [u64; 6]| run(&piece, &Data { nr: 59, arch: 0, args });
        let [path, arguments, environment] = addresses;
        let args = [path, arguments, environment, 7, 8, 9];
        assert_eq!(asked(args), Some(0));
        for (argument, bit) in (0..3).flat_map(|argument| (0..64).map(move |bit| (argument, bit))) {
            let mut other = args;
            other[argument] ^= 1 << bit;
            assert_eq!(asked(other), None, "argument {argument}, bit {bit}");
        }
    }
}
