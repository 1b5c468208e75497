//! Work that the command can hold up: done by a helper, and waited for only so long.
//!
//! To read the memory of a process, or to change a file, the kernel takes locks that others can keep busy: where a thousand
//! threads change a mapping (mprotect(2)) or write to the file, the next in the queue waits for minutes, and no signal
//! ends that. The supervisor has one thread, which sees to every limit. So such work is another one's.

use crate::sys::signal::{self, Set};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

/// How long it is waited for: much longer than it takes on a busy machine, and little for a limit.
const PATIENCE: Duration = Duration::from_millis(500);

/// So many helpers may be held up at once; from then on nothing is begun any more.
const MOST: usize = 8;

/// How long both look for each other before they sleep.
const AWAKE: Duration = Duration::from_micros(50);

type Job = Box<dyn FnOnce() + Send>;

struct Helper {
    jobs: Sender<Job>,
    given: u64,
    done: Arc<AtomicU64>,
}

thread_local! {
    /// Started with the first work, so that they have the rights that this thread has by then, and no start pays for it.
    static HELPERS: RefCell<Vec<Helper>> = const { RefCell::new(Vec::new()) };
}

/// What comes of some work. `None`: it is held up, and nobody waits for it any more, though it may yet be done; or too
/// much is held up already.
pub fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    HELPERS.with_borrow_mut(|helpers| {
        let free = match helpers.iter().position(Helper::is_free) {
            Some(free) => free,
            None if helpers.len() < MOST => {
                helpers.push(Helper::start()?);
                helpers.len() - 1
            }
            None => return None,
        };
        helpers.get_mut(free)?.ask(work)
    })
}

impl Helper {
    fn start() -> Option<Helper> {
        let (jobs, taken) = mpsc::channel::<Job>();
        let work = move || {
            // They are for the thread that waits for them.
            let _ = signal::set_mask(&Set::full());
            while let Some(job) = soon(&taken, || taken.recv().ok()) {
                job();
            }
        };
        thread::Builder::new().spawn(work).ok()?;
        Some(Helper { jobs, given: 0, done: Arc::default() })
    }

    fn is_free(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.given
    }

    fn ask<T: Send + 'static>(&mut self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = mpsc::channel();
        let done = Arc::clone(&self.done);
        let job = move || {
            let result = work();
            done.fetch_add(1, Ordering::Release);
            let _ = answer.send(result);
        };
        self.jobs.send(Box::new(job)).ok()?;
        self.given += 1;
        soon(&answered, || answered.recv_timeout(PATIENCE).ok())
    }
}

/// What is mostly there within microseconds, in which to fall asleep and to be waked would take longer.
fn soon<T>(channel: &Receiver<T>, otherwise: impl FnOnce() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < AWAKE {
        match channel.try_recv() {
            Ok(value) => return Some(value),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => thread::yield_now(),
        }
    }
    otherwise()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(start.elapsed() >= PATIENCE * MOST as u32);
        assert_eq!(within(|| 2), None);
        releases.last().unwrap().send(()).unwrap();
        let free = (0..100).find_map(|_| {
            thread::sleep(Duration::from_millis(20));
            within(|| 3)
        });
        assert_eq!(free, Some(3));
    }
}
