//! The bounded worker: work that the command can delay, done by a thread that is waited for only so long.
//!
//! To read the memory of a process, or to change a file, the kernel takes locks that others can keep busy.
//! Where a thousand threads change a mapping (mprotect(2)) or write to the file, the next one waits for
//! minutes, and no signal ends that. The supervisor has one thread, which enforces every limit, so another
//! thread does such work.

use crate::sys::crew::{Crew, soon};
use std::cell::RefCell;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Maximum time for one piece of work: much longer than it takes on a busy machine, and short compared with
/// a limit.
const LONGEST: Duration = Duration::from_millis(500);

/// Maximum number of blocked workers. With more, no work is begun.
const MOST: usize = 8;

thread_local! {
    /// Started with the first work: they have the rights that this thread has by then, and no start pays
    /// for them.
    static WORKERS: RefCell<Crew> = RefCell::new(Crew::new(Arc::new(|| true)));
}

/// The result of some work. `None`: it is blocked, and may still be done later; or too many workers are
/// blocked already.
pub fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    WORKERS.with_borrow_mut(|workers| {
        if workers.busy() == MOST {
            return None;
        }
        let (answer, answered) = mpsc::channel();
        workers.begin_and(|_| work(), move |result| drop(answer.send(result)))?;
        soon(&answered, || answered.recv_timeout(LONGEST).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Instant;

    #[test]
    fn nobody_waits_for_what_is_held_up() {
        let start = Instant::now();
        let releases: Vec<_> = (0..MOST)
            .map(|_| {
                assert_eq!(within(|| 1), Some(1));
                let (release, held) = mpsc::channel::<()>();
                assert_eq!(within(move || held.recv().is_ok()), None);
                release
            })
            .collect();
        assert!(start.elapsed() >= LONGEST * MOST as u32);
        assert_eq!(within(|| 2), None);
        releases.last().unwrap().send(()).unwrap();
        let free = (0..100).find_map(|_| {
            thread::sleep(Duration::from_millis(20));
            within(|| 3)
        });
        assert_eq!(free, Some(3));
    }
}
