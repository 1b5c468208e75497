//! The pipes through which bytes are spliced.

use crate::sys::SyscallError;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::os::fd::OwnedFd;

/// Size of a pipe. It is memory only while bytes are in it.
pub const SIZE: usize = 256 * 1024;

/// Maximum number of empty pipes that are kept.
const MOST_KEPT: usize = 16;

/// An empty pipe, or one that bytes are in.
pub struct Pipe {
    /// Where bytes come out.
    pub out: OwnedFd,
    /// Where they are put in.
    pub into: OwnedFd,
}

/// Pipes for all connections. A connection has one only while its bytes are on their way, so idle connections cost no
/// pipe.
pub struct Pipes {
    kept: Vec<Pipe>,
    /// How many more may be made.
    left: usize,
    /// The last one could not be made.
    is_short: bool,
}

impl Pipes {
    /// At most so many.
    pub fn new(most: usize) -> Pipes {
        Pipes { kept: Vec::new(), left: most, is_short: false }
    }

    /// An empty pipe, if there may be one more.
    pub fn take(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.kept.pop() {
            return Some(pipe);
        }
        let left = self.left.checked_sub(1)?;
        match make() {
            Ok(pipe) => {
                self.left = left;
                Some(pipe)
            }
            Err(_) => {
                self.is_short = true;
                None
            }
        }
    }

    /// Whether there may be one more.
    pub fn has_one(&self) -> bool {
        !self.kept.is_empty() || self.left > 0 && !self.is_short
    }

    /// Descriptors may be free again.
    pub fn refresh(&mut self) {
        self.is_short = false;
    }

    /// Takes back an empty one.
    pub fn put(&mut self, pipe: Pipe) {
        if self.kept.len() < MOST_KEPT {
            self.kept.push(pipe);
        } else {
            self.discard(pipe);
        }
    }

    /// Closes one that bytes may be in.
    pub fn discard(&mut self, pipe: Pipe) {
        drop(pipe);
        self.left += 1;
    }
}

fn make() -> Result<Pipe, SyscallError> {
    use crate::sys::OfCall;
    let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).of("pipe2")?;
    // A user may have only so many pages of pipes; a smaller pipe does as well.
    let _ = fcntl_setpipe_size(&into, SIZE);
    Ok(Pipe { out, into })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_only_so_many() {
        let mut pipes = Pipes::new(2);
        let (first, second) = (pipes.take().unwrap(), pipes.take().unwrap());
        assert!(pipes.take().is_none());
        pipes.put(first);
        let first = pipes.take().unwrap();
        assert!(pipes.take().is_none());
        pipes.discard(second);
        pipes.discard(first);
        assert!(pipes.take().is_some() && pipes.kept.is_empty());
    }
}
