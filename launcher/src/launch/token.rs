//! The one exec that a run makes, recognised by where its arguments stand.
//!
//! The filter has to be in place before the exec, and has to allow exactly that one. It lets an execve(2)
//! through whose three pointers are three random addresses, known to nobody else. The exec itself
//! takes that memory away, so no later call can pass them on; and guessing three addresses is out of reach.

use crate::sys::Failed;
use crate::sys::memory::HiddenWords;
use crate::sys::process;
use sbx_policy::bpf::{self, Insn};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

/// Of the three pointers.
const HALVES: usize = 6;

/// What is exec'd, laid out in memory and ready.
pub struct Image {
    path: HiddenWords,
    arguments: HiddenWords,
    environment: HiddenWords,
    /// What the pointers point to.
    _strings: Vec<CString>,
}

impl Image {
    /// Lays out path, arguments and environment (`NAME=value`).
    pub fn new(
        path: &[u8],
        arguments: Vec<OsString>,
        environment: Vec<OsString>,
    ) -> Result<Image, ImageError> {
        let mut strings = Vec::with_capacity(arguments.len() + environment.len());
        let mut pointers = |list: Vec<OsString>| -> Result<Vec<usize>, ImageError> {
            let mut words = Vec::with_capacity(list.len() + 1);
            for text in list {
                let text = CString::new(text.into_vec()).map_err(|_| ImageError::NulByte)?;
                words.push(text.as_ptr().addr());
                strings.push(text);
            }
            words.push(0);
            Ok(words)
        };
        let (arguments, environment) = (pointers(arguments)?, pointers(environment)?);
        Ok(Image {
            path: HiddenWords::new(&words(path)?)?,
            arguments: HiddenWords::new(&arguments)?,
            environment: HiddenWords::new(&environment)?,
            _strings: strings,
        })
    }

    /// Recognises this image's own execve(2) in a filter: where all six halves of the three pointers are as they are here.
    pub fn piece(&self) -> Vec<Insn> {
        let pointers = [(0, &self.path), (1, &self.arguments), (2, &self.environment)];
        let halves = pointers.into_iter().flat_map(|(argument, words)| {
            let (address, offset) = (words.address() as u64, bpf::data_arg(argument));
            [(offset, address as u32), (offset + 4, (address >> 32) as u32)]
        });
        let mut piece = Vec::with_capacity(2 * HALVES + 1);
        for (number, (offset, half)) in halves.enumerate() {
            piece.push(bpf::stmt(bpf::LD, offset));
            // Past the comparisons behind it, their loads, and the return.
            piece.push(bpf::jump(bpf::JEQ, half, 0, 2 * (HALVES - 1 - number) as u8 + 1));
        }
        piece.push(bpf::stmt(bpf::RET, 0));
        piece
    }

    /// Replaces the process. Returns only if that fails.
    pub fn exec(&self) -> Failed {
        process::exec_raw(self.path.address(), self.arguments.address(), self.environment.address())
    }
}

/// Why an image could not be laid out.
#[derive(Debug)]
pub enum ImageError {
    /// A NUL byte in a name, an argument or a variable.
    NulByte,
    /// No memory.
    System(Failed),
}

impl From<Failed> for ImageError {
    fn from(failed: Failed) -> ImageError {
        ImageError::System(failed)
    }
}

/// A NUL-terminated string as words.
fn words(text: &[u8]) -> Result<Vec<usize>, ImageError> {
    if text.contains(&0) {
        return Err(ImageError::NulByte);
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
    fn one_wrong_bit_of_a_pointer_is_another_exec() {
        let image = Image::new(b"/bin/true", vec!["true".into()], vec!["A=b".into()]).ok().unwrap();
        let piece = image.piece();
        let addresses =
            [&image.path, &image.arguments, &image.environment].map(|words| words.address() as u64);
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
