//! The pipes through which bytes are spliced.

use crate::sys::SyscallError;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::os::fd::OwnedFd;

/// Size of the first pipes. The more goes through at once, the less often the other processes have to be waited for;
/// with much more, it is no longer in the cache of a processor when it is read.
/// It is memory only while bytes are in it.
const LARGE: usize = 512 * 1024;

/// Maximum number of these. Connections whose receivers keep up give their pipe back at each turn, so that a few do for
/// many.
const MOST_LARGE: usize = 16;

/// Size of the others. A user's pipes may have so many pages in all (pipe(7)): a command whose connections get stuck
/// would have the caller's own pipes be small ones.
const SMALL: usize = 8 * 1024;

/// Maximum number of empty pipes that are kept.
const MOST_KEPT: usize = 16;

/// An empty pipe, or one that bytes are in.
pub struct Pipe {
    /// Where bytes come out.
    pub out: OwnedFd,
    /// Where they are put in.
    pub into: OwnedFd,
    /// How many bytes go in at once.
    pub size: usize,
}

/// Pipes for all connections. A connection has one only while its bytes are on their way, so idle connections cost no
/// pipe.
pub struct Pipes {
    kept: Vec<Pipe>,
    /// How many more may be made.
    left: usize,
    /// How many there are of the large ones.
    large: usize,
    /// The last one could not be made.
    is_short: bool,
}

impl Pipes {
    /// At most so many.
    pub fn new(most: usize) -> Pipes {
        Pipes { kept: Vec::new(), left: most, large: 0, is_short: false }
    }

    /// An empty pipe, if there may be one more.
    pub fn take(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.kept.pop() {
            return Some(pipe);
        }
        let left = self.left.checked_sub(1)?;
        let size = if self.large < MOST_LARGE { LARGE } else { SMALL };
        match make(size) {
            Ok(pipe) => {
                self.left = left;
                self.large += usize::from(pipe.size == LARGE);
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
        if pipe.size == LARGE && self.kept.len() < MOST_KEPT {
            self.kept.push(pipe);
        } else {
            self.discard(pipe);
        }
    }

    /// Closes one that bytes may be in.
    pub fn discard(&mut self, pipe: Pipe) {
        self.large -= usize::from(pipe.size == LARGE);
        self.left += 1;
    }
}

fn make(size: usize) -> Result<Pipe, SyscallError> {
    use crate::sys::OfCall;
    let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).of("pipe2")?;
    // Where the user has too many pages already, the kernel's choice does as well.
    let size =
        [size, SMALL].into_iter().find(|size| fcntl_setpipe_size(&into, *size).is_ok()).unwrap_or(SMALL);
    Ok(Pipe { out, into, size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::serving::MOST_LINKS;

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

    /// The limit of an ordinary user is 16,384 pages, of 4 KiB mostly (pipe(7)).
    #[test]
    fn most_of_what_a_user_may_have_is_left() {
        let mut pipes = Pipes::new(MOST_LARGE + 3);
        let mut all: Vec<Pipe> = std::iter::from_fn(|| pipes.take()).collect();
        let size = |pipe: &Pipe| rustix::pipe::fcntl_getpipe_size(&pipe.into).unwrap();
        // The tests of an ordinary user may have met the limit, so that none is large.
        let most = all.iter().filter(|pipe| pipe.size == LARGE).count();
        assert!(most <= MOST_LARGE && pipes.large == most);
        assert!(all.iter().skip(MOST_LARGE).all(|pipe| size(pipe) <= SMALL));
        const { assert!((MOST_LARGE * LARGE + 2 * MOST_LINKS * SMALL) / 4096 <= 16_384 * 3 / 4) };
        let small = all.pop().unwrap();
        pipes.put(small);
        assert!(pipes.kept.is_empty(), "only large ones are kept");
        let large = all.swap_remove(0);
        let is_large = large.size == LARGE;
        pipes.put(large);
        assert_eq!((pipes.kept.len(), pipes.large), (usize::from(is_large), most));
    }
}
