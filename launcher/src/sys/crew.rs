//! The crew: threads for system calls that last as long as somebody else likes, such as connect(2). Nobody waits for
//! them. A call that is not wanted any more is interrupted.

use crate::sys::signal::{self, Set};
use crate::sys::{SyscallError, checked};
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Enough for a system call and what leads to it. There may be hundreds of threads.
const STACK: usize = 128 << 10;

/// How long both sides poll before they sleep.
const AWAKE: Duration = Duration::from_micros(50);

/// Some work. It is told whether its thread is prepared; if not, it must not do what it is for.
type Job = Box<dyn FnOnce(bool) + Send>;

/// What each thread does first. Returns whether that succeeded.
pub type Prepare = Arc<dyn Fn() -> bool + Send + Sync>;

/// Threads that were started so far. One that has nothing to do takes the next work.
pub struct Crew {
    members: Vec<Member>,
    prepare: Prepare,
}

struct Member {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
    done: Arc<AtomicBool>,
}

/// Work that was begun.
pub struct Begun {
    member: usize,
    done: Arc<AtomicBool>,
}

impl Begun {
    /// Whether it has been done.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }
}

impl Crew {
    /// Nobody yet: a thread has the rights that its starter has by then.
    pub fn new(prepare: Prepare) -> Crew {
        Crew { members: Vec::new(), prepare }
    }

    /// How many threads have work.
    pub fn busy(&self) -> usize {
        self.members.iter().filter(|member| !member.done.load(Ordering::Acquire)).count()
    }

    /// Begins some work; `None` where no thread can be had for it.
    pub fn begin(&mut self, work: impl FnOnce(bool) + Send + 'static) -> Option<Begun> {
        self.begin_and(work, |()| {})
    }

    /// The same, and has its result told when the thread is free again.
    pub fn begin_and<T>(
        &mut self,
        work: impl FnOnce(bool) -> T + Send + 'static,
        tell: impl FnOnce(T) + Send + 'static,
    ) -> Option<Begun> {
        let free = match self.members.iter().position(|member| member.done.load(Ordering::Acquire)) {
            Some(free) => free,
            None => {
                self.members.push(Member::start(self.prepare.clone())?);
                self.members.len() - 1
            }
        };
        let member = self.members.get_mut(free)?;
        let done = Arc::new(AtomicBool::new(false));
        let is_done = done.clone();
        let job = move |prepared| {
            let result = work(prepared);
            is_done.store(true, Ordering::Release);
            tell(result);
        };
        member.jobs.send(Box::new(job)).ok()?;
        member.done = done.clone();
        Some(Begun { member: free, done })
    }

    /// Interrupts the system call that this work is waiting in. It may come just before the call: try again later.
    /// Other work is not begun before this returns, and goes on if it is interrupted.
    pub fn interrupt(&self, begun: &Begun) {
        if let Some(member) = self.members.get(begun.member).filter(|_| !begun.is_done()) {
            // With musl the type is a pointer.
            #[allow(clippy::unnecessary_cast)]
            let thread = member.thread.as_pthread_t() as libc::pthread_t;
            // SAFETY: a thread that never ends as long as its handle is kept; the signal has a handler.
            unsafe { libc::pthread_kill(thread, libc::SIGRTMIN()) };
        }
    }
}

impl Member {
    fn start(prepare: Prepare) -> Option<Member> {
        handle_interruptions().ok()?;
        let (jobs, taken) = mpsc::channel::<Job>();
        let work = move || {
            // Other signals are for the thread that waits for them.
            let _ = signal::set_mask(&Set::full_but(libc::SIGRTMIN()));
            let prepared = prepare();
            while let Some(job) = soon(&taken, || taken.recv().ok()) {
                job(prepared);
            }
        };
        let thread = thread::Builder::new().stack_size(STACK).spawn(work).ok()?;
        Some(Member { jobs, thread, done: Arc::new(AtomicBool::new(true)) })
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

/// Gives the signal that interrupts a handler, without which it would end the process.
fn handle_interruptions() -> Result<(), SyscallError> {
    // SAFETY: all zeroes is a valid value: no flags, so that no call is restarted.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: a handler that does nothing.
    let set = unsafe { libc::sigaction(libc::SIGRTMIN(), &raw const action, std::ptr::null_mut()) };
    checked("sigaction", set).map(drop)
}

extern "C" fn nothing(_: libc::c_int) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicUsize;

    /// Tells whether it happens soon.
    fn soon_is(happens: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while !happens() && start.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(1));
        }
        happens()
    }

    #[test]
    fn work_that_waits_is_interrupted_and_its_thread_used_again() {
        let mut crew = Crew::new(Arc::new(|| true));
        let interrupted = Arc::new(AtomicUsize::new(0));
        let (mut end, _other) = UnixStream::pair().unwrap();
        let count = interrupted.clone();
        let waits = crew.begin(move |prepared| {
            let error = end.read(&mut [0]).unwrap_err();
            assert!(prepared && error.kind() == std::io::ErrorKind::Interrupted);
            count.fetch_add(1, Ordering::Release);
        });
        let waits = waits.unwrap();
        let quick = crew.begin(|_| {}).unwrap();
        assert!(soon_is(|| quick.is_done()) && !waits.is_done());
        assert!(soon_is(|| {
            crew.interrupt(&waits);
            waits.is_done()
        }));
        assert_eq!(interrupted.load(Ordering::Acquire), 1);
        for _ in 0..10 {
            let next = crew.begin(|_| {}).unwrap();
            assert!(soon_is(|| next.is_done()));
        }
        assert_eq!(crew.members.len(), 2);
    }

    #[test]
    fn work_is_told_that_its_thread_is_not_prepared() {
        let mut crew = Crew::new(Arc::new(|| false));
        let told = Arc::new(AtomicBool::new(true));
        let tells = told.clone();
        let begun = crew.begin(move |prepared| tells.store(prepared, Ordering::Release)).unwrap();
        assert!(soon_is(|| begun.is_done()) && !told.load(Ordering::Acquire));
    }
}
