//! The allocator of static builds: musl's own maps memory for most requests.
//!
//! A start allocates a few thousand times, keeps most of it, and has one thread. So its memory comes from a piece of
//! the program's own, one after the other and without a lock. Where that ends, and for every other thread, an ordinary
//! allocator takes over.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, UnsafeCell};

/// As much as a start needs. Pages that nothing touches take no memory.
const SIZE: usize = 512 << 10;

/// More than there is: nothing is taken from here.
const CLOSED: usize = SIZE + 1;

/// As much as is asked of the kernel at once. To be given pages one by one takes longer. The first of these parts is
/// enough for what only asks a pool; any other start uses the second one as well, and hardly more.
const PARTS: [usize; 2] = [24 << 10, 96 << 10];

thread_local! {
    /// Where the free part begins. Only the thread that called [`open`] has any.
    static FREE: Cell<usize> = const { Cell::new(CLOSED) };
    /// The end of the part that the kernel was asked for.
    static GIVEN: Cell<usize> = const { Cell::new(SIZE) };
}

#[repr(align(4096))]
struct Room(UnsafeCell<[u8; SIZE]>);

// SAFETY: parts of it are handed out by one thread only, the one with a place in `FREE`, and each of them once.
unsafe impl Sync for Room {}

static ROOM: Room = Room(UnsafeCell::new([0; SIZE]));

/// Lets the calling thread take memory for the start. To be called by one thread, once.
pub fn open() {
    FREE.set(0);
    have(0, PARTS[0]);
}

/// Has the kernel give all pages of a part at once.
fn have(start: usize, end: usize) {
    // SAFETY: the range is part of `ROOM`, and what is in it stays. Kernels before 5.14 refuse it. The C library's
    // errno stays as well: memory is asked for anywhere.
    let _ = unsafe {
        let room = ROOM.0.get().cast::<u8>().add(start);
        rustix::mm::madvise(room.cast(), end - start, rustix::mm::Advice::LinuxPopulateWrite)
    };
    GIVEN.set(end);
}

/// The start is over: memory that is given back is to be used again.
pub fn close() {
    FREE.set(CLOSED);
}

/// Takes from the room of the start while it can, and from another allocator otherwise.
pub struct Early<A>(pub A);

impl<A> Early<A> {
    /// Where a piece of the room begins, if it is one.
    fn place(piece: *mut u8) -> Option<usize> {
        piece.addr().checked_sub(ROOM.0.get().addr()).filter(|place| *place < SIZE)
    }

    fn take(layout: Layout) -> Option<*mut u8> {
        // What is large is mostly given back soon. The other allocator has the next one use the same pages: the first
        // use of a page takes longer than its search.
        const LARGE: usize = 4096;
        if layout.size() >= LARGE || layout.align() > LARGE {
            return None;
        }
        let start = FREE.get().next_multiple_of(layout.align());
        let end = start.checked_add(layout.size()).filter(|end| *end <= SIZE)?;
        FREE.set(end);
        if end > GIVEN.get() {
            Self::have_more();
        }
        // SAFETY: `start` is at most the size of the room.
        Some(unsafe { ROOM.0.get().cast::<u8>().add(start) })
    }

    #[cold]
    fn have_more() {
        match GIVEN.get() == PARTS[0] {
            true => have(PARTS[0], PARTS[1]),
            // Whatever is beyond is used by few.
            false => GIVEN.set(SIZE),
        }
    }

    /// Makes the last piece longer or shorter. Any other stays as long as it is.
    fn resize(place: usize, old: usize, new: usize) -> bool {
        if place + old != FREE.get() {
            return new <= old;
        }
        let end = place.checked_add(new).filter(|end| *end <= SIZE);
        end.inspect(|end| FREE.set(*end)).is_some()
    }
}

// SAFETY: pieces of the room do not overlap, for each begins where nothing is in use yet; all others are the other
// allocator's, and go back there.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Early<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller promises.
        Self::take(layout).unwrap_or_else(|| unsafe { self.0.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match Self::take(layout) {
            Some(piece) => {
                // SAFETY: a piece of this size. Something else may have been in it.
                unsafe { piece.write_bytes(0, layout.size()) };
                piece
            }
            // SAFETY: what the caller promises.
            None => unsafe { self.0.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match Self::place(piece) {
            // SAFETY: it is the other allocator's.
            None => unsafe { self.0.dealloc(piece, layout) },
            Some(place) if place + layout.size() == FREE.get() => FREE.set(place),
            Some(_) => {}
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(place) = Self::place(piece) else {
            // SAFETY: it is the other allocator's.
            return unsafe { self.0.realloc(piece, layout, size) };
        };
        if Self::resize(place, layout.size(), size) {
            return piece;
        }
        // SAFETY: the alignment is valid, and the caller promises that the size is.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: two pieces, of which both have as much.
            unsafe { new.copy_from_nonoverlapping(piece, layout.size().min(size)) };
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;
    use std::collections::VecDeque;

    /// A piece, with what was written into it.
    type Piece = (*mut u8, Layout, u8);

    fn holds(&(piece, layout, mark): &Piece) -> bool {
        // SAFETY: a piece of this size, which is in use.
        (0..layout.size()).all(|at| unsafe { piece.add(at).read() } == mark)
    }

    #[test]
    fn pieces_are_aligned_do_not_overlap_and_keep_what_is_in_them() {
        open();
        let early = Early(System);
        let (mut pieces, mut number, mut inside) = (VecDeque::<Piece>::new(), 1_u64, 0);
        for round in 0..20_000_usize {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (number >> 33) as usize;
            let layout = Layout::from_size_align(1 + random % 300, 1 << ((random >> 10) % 6)).unwrap();
            let mark = round as u8;
            // SAFETY: sizes are not 0, and each piece is used as it was asked for.
            unsafe {
                match random % 5 {
                    0 if !pieces.is_empty() => {
                        let last = if random & 64 == 0 { pieces.pop_back() } else { pieces.pop_front() };
                        let (piece, layout, _) = last.filter(holds).unwrap();
                        early.dealloc(piece, layout);
                    }
                    1 if !pieces.is_empty() => {
                        let last = if random & 64 == 0 { pieces.pop_back() } else { pieces.pop_front() };
                        let (piece, old, mark) = last.filter(holds).unwrap();
                        let size = layout.size();
                        let piece = early.realloc(piece, old, size);
                        let kept = old.size().min(size);
                        assert!((0..kept).all(|at| piece.add(at).read() == mark));
                        piece.write_bytes(mark, size);
                        pieces.push_back((piece, Layout::from_size_align(size, old.align()).unwrap(), mark));
                    }
                    2 => {
                        let piece = early.alloc_zeroed(layout);
                        assert!((0..layout.size()).all(|at| piece.add(at).read() == 0));
                        piece.write_bytes(mark, layout.size());
                        pieces.push_back((piece, layout, mark));
                    }
                    _ => {
                        let piece = early.alloc(layout);
                        piece.write_bytes(mark, layout.size());
                        pieces.push_back((piece, layout, mark));
                    }
                }
            }
            let (piece, layout, _) = *pieces.back().unwrap_or(&(std::ptr::null_mut(), layout, 0));
            assert!(piece.addr().is_multiple_of(layout.align()));
            inside += usize::from(Early::<System>::place(piece).is_some());
            if pieces.len() > 200 {
                let (piece, layout, _) = pieces.pop_front().filter(holds).unwrap();
                // SAFETY: it is in use.
                unsafe { early.dealloc(piece, layout) };
            }
        }
        assert!(pieces.iter().all(holds));
        // The room came to its end, and the other allocator went on.
        assert!(inside > 1000 && inside < 19_000, "{inside}");
        close();
    }

    #[test]
    fn other_threads_take_nothing_from_the_room_and_may_give_back_what_is() {
        let early = Early(System);
        let layout = Layout::from_size_align(100, 8).unwrap();
        // SAFETY: a piece is asked for and given back.
        unsafe {
            let piece = early.alloc(layout);
            assert_eq!(Early::<System>::place(piece), None);
            early.dealloc(piece, layout);
        }
        let in_room = ROOM.0.get().cast::<u8>();
        // SAFETY: nothing is done to a piece of the room that another thread gives back.
        unsafe { early.dealloc(in_room, layout) };
        assert_eq!(FREE.get(), CLOSED);
    }
}
