//! The bounded worker: work that the command can delay, done by a thread that is waited for only so long.
//!
//! To read the memory of a process, or to change a file, the kernel takes locks that others can keep busy.
//! Where a thousand threads change a mapping (mprotect(2)) or write to the file, the next one waits for
//! minutes, and no signal ends that. The supervisor has one thread, which enforces every limit, so another
//! thread does such work.

use crate::sys::signal::{self, Set};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for one piece of work: much longer than it takes on a busy machine, and short compared with
/// a limit.
const LONGEST: Duration = Duration::from_millis(500);

/// Maximum number of blocked workers. With more, no work is begun.
const MOST: usize = 8;

/// How long both sides poll before they sleep.
const AWAKE: Duration = Duration::from_micros(50);

type Job = Box<dyn FnOnce() + Send>;

struct Worker {
    jobs: Sender<Job>,
    given: u64,
    done: Arc<AtomicU64>,
}

thread_local! {
    /// Started with the first work: they have the rights that this thread has by then, and no start pays
    /// for them.
    static WORKERS: RefCell<Vec<Worker>> = const { RefCell::new(Vec::new()) };
}

/// The result of some work. `None`: it is blocked, and may still be done later; or too many workers are
/// blocked already.
pub fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    WORKERS.with_borrow_mut(|workers| {
        let free = match workers.iter().position(Worker::is_free) {
            Some(free) => free,
            None if workers.len() < MOST => {
                workers.push(Worker::start()?);
                workers.len() - 1
            }
            None => return None,
        };
        workers.get_mut(free)?.ask(work)
    })
}

impl Worker {
    fn start() -> Option<Worker> {
        let (jobs, taken) = mpsc::channel::<Job>();
        let work = move || {
            // Signals are for the thread that waits for them.
            let _ = signal::set_mask(&Set::full());
            while let Some(job) = soon(&taken, || taken.recv().ok()) {
                job();
            }
        };
        thread::Builder::new().spawn(work).ok()?;
        Some(Worker { jobs, given: 0, done: Arc::default() })
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
        soon(&answered, || answered.recv_timeout(LONGEST).ok())
    }
}

/// Receives a value, which mostly arrives within microseconds: sleeping and waking would take longer.
pub(super) fn soon<T>(channel: &Receiver<T>, otherwise: impl FnOnce() -> Option<T>) -> Option<T> {
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
