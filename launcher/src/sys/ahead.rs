//! Namespaces that are made ahead. A network takes about as long as the rest of a start, so a helper makes it while
//! this process has something else to do, and then starts the first process of the run in it. An overlay is laid by it
//! as well.
//!
//! The helper shares the memory and the descriptors of this process, so nothing is copied for it, and has a stack of
//! its own. Both run at the same time, with the same variables of a thread. So the helper makes system calls only, and
//! none through the C library that may fail: it does not allocate, and writes no errno.

use crate::sys::namespace::{self, Kinds, Mark, Own, UserMap};
use crate::sys::overlay::{Held, Laid, Layers};
use crate::sys::process::{self, Pid};
use crate::sys::processor::Processors;
use crate::sys::signal::{self, Set};
use crate::sys::stack::Stack;
use crate::sys::{OfCall, SyscallError, awake, checked, privilege, socket};
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Signal;
use rustix::thread::{UnshareFlags, futex};
use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What the helper does. When it has ended, the kernel writes 0 (set_tid_address(2)).
const WORKS: u32 = 1;
const WAITS: u32 = 2;
const FAILED: u32 = 3;
const HAS_ORDER: u32 = 4;
const STARTS: u32 = 5;
const LAYS: u32 = 6;
const STARTED: u32 = 7;

/// How long one waits for the other before it looks again.
const STEP: Duration = Duration::from_millis(10);

/// For how long it stays awake first. To wake another processor takes 40 to 60 microseconds in a virtual machine; on
/// an idle one the other process has come within this time.
const AWAKE: Duration = Duration::from_micros(200);

/// The first process of further namespaces: their flags, and what it does.
type Order = (libc::c_int, *mut c_void);

/// What both processes work on. Except for the first field it is used by one of them at a time.
struct Shared {
    does: AtomicU32,
    /// Whether each of the two has a processor.
    apart: bool,
    own: Own,
    map: UserMap,
    supervisor: Pid,
    network: Cell<Option<Mark>>,
    /// What is to be laid. It may be said at any time.
    layers: OnceLock<Layers>,
    laid: Cell<Option<Laid>>,
    order: Cell<Option<Order>>,
    started: Cell<Option<Result<Pid, SyscallError>>>,
}

impl Shared {
    fn does(&self) -> u32 {
        self.does.load(Ordering::Acquire)
    }

    /// Goes from one to the other, unless it is elsewhere by now.
    fn changes(&self, does: u32, next: u32) -> bool {
        self.does.compare_exchange(does, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Goes on, and wakes the other process.
    fn goes_on(&self, does: u32) {
        self.does.store(does, Ordering::Release);
        let _ = futex::wake(&self.does, futex::Flags::empty(), 1);
    }

    /// Waits for the other process as long as it says nothing else than this. False if it does not within the time.
    fn waits_while(&self, does: u32, time: Option<Duration>) -> bool {
        self.waits_during(&[does], time)
    }

    fn waits_during(&self, all: &[u32], time: Option<Duration>) -> bool {
        if self.apart && awake::until(AWAKE, || !all.contains(&self.does())) {
            return true;
        }
        let end = time.map(|time| Instant::now() + time);
        loop {
            let does = self.does();
            if !all.contains(&does) {
                return true;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            // Not longer in one go: a filter around us may keep the other one from waking this one.
            let left = Timespec::try_from(left.unwrap_or(STEP).min(STEP)).ok();
            match futex::wait(&self.does, futex::Flags::empty(), does, left.as_ref()) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
                Err(_) => return false,
            }
        }
    }

    /// Has the helper lay what is to be laid, if it waits for orders.
    fn asks_for_layers(&self) -> bool {
        self.layers.get().is_some() && self.changes(WAITS, LAYS)
    }
}

/// A helper that makes a network namespace, and the user namespace that gives the right to it. If anything fails, there
/// is none, and the first process of the run tries it and tells why.
pub struct Ahead {
    shared: NonNull<Shared>,
    /// As long as it is there.
    helper: Cell<Option<Pid>>,
    /// When it has started the first process.
    starter: Cell<Option<Pid>>,
    /// Whether it is known to have ended, so that nobody else uses its memory.
    ended: Cell<bool>,
    stack: ManuallyDrop<Stack>,
}

impl Ahead {
    /// How long the helper may take; on an idle machine it is half a millisecond.
    const LONGEST: Duration = Duration::from_secs(1);

    /// Starts the helper; `nested`: an `sbx` confines this process. An error if signals could not be blocked for a
    /// moment, or are since.
    pub fn begin(own: Own, nested: bool) -> Result<Option<Ahead>, SyscallError> {
        let processors = Processors::of_this_process(nested, 0);
        let shared = Shared {
            does: AtomicU32::new(WORKS),
            apart: processors.is_some(),
            own,
            map: UserMap::of(own.identity),
            supervisor: process::id(),
            network: Cell::default(),
            layers: OnceLock::new(),
            laid: Cell::default(),
            order: Cell::default(),
            started: Cell::default(),
        };
        let Ok(stack) = Stack::new() else { return Ok(None) };
        // What ends this process by a signal must not end the helper alone.
        let mask = signal::set_mask(&Set::full())?;
        let shared = NonNull::from(Box::leak(Box::new(shared)));
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD;
        // SAFETY: the stack is the new process's alone, and `Ahead` keeps it and what it works on until that has ended.
        let pid = unsafe { libc::clone(live, stack.top(), flags, shared.as_ptr().cast()) };
        let pid = checked("clone", pid).map(|pid| pid as Pid).ok();
        let (helper, ended) = (Cell::new(pid), Cell::new(pid.is_none()));
        let ahead =
            Ahead { shared, helper, starter: Cell::default(), ended, stack: ManuallyDrop::new(stack) };
        signal::set_mask(&mask)?;
        if let Some((pid, processors)) = pid.zip(processors) {
            processors.send_away(pid);
        }
        Ok(pid.map(|_| ahead))
    }

    fn shared(&self) -> &Shared {
        // SAFETY: it is there as long as this is.
        unsafe { self.shared.as_ref() }
    }

    /// Waits for its end, or looks whether it has ended. A filter around us may refuse that.
    fn wait_for(&self, helper: Pid, block: bool) -> bool {
        self.ended.set(process::wait(Some(helper), block, false).is_some());
        self.ended.get()
    }

    /// Has it lay an overlay as well, without waiting for that. Where it cannot, [`Made`] has none.
    pub fn lay(&self, layers: Layers) {
        let shared = self.shared();
        if shared.layers.set(layers).is_ok() && shared.asks_for_layers() {
            let _ = futex::wake(&shared.does, futex::Flags::empty(), 1);
        }
    }

    /// What it has made, if that is what is wanted.
    pub fn made(self, own: Option<&Own>) -> Option<Made> {
        let shared = self.shared();
        if own != Some(&shared.own) {
            return None;
        }
        let is_made = shared.waits_during(&[WORKS, LAYS], Some(Ahead::LONGEST)) && shared.does() == WAITS;
        let network = shared.network.get().filter(|_| is_made)?;
        Some(Made { ahead: self, network })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some(helper) = self.helper.take() {
            // A filter around us may refuse the signal.
            self.shared().goes_on(FAILED);
            process::signal(helper, libc::SIGKILL);
            self.wait_for(helper, true);
        }
        if let Some(starter) = self.starter.take() {
            self.wait_for(starter, true);
        }
        if self.ended.get() {
            // SAFETY: dropped here only.
            unsafe { ManuallyDrop::drop(&mut self.stack) };
            // SAFETY: made by `begin`, and nobody else uses it by now.
            drop(unsafe { Box::from_raw(self.shared.as_ptr()) });
        }
    }
}

/// Why the helper has not started the first process of a run.
#[derive(Debug)]
pub enum Unstarted {
    /// There is none.
    Nothing(SyscallError),
    /// Nobody can tell whether there is one, which nobody knows: the helper ended before it said so.
    Unknown(SyscallError),
}

/// Namespaces that were made before, with a helper that waits in them.
pub struct Made {
    ahead: Ahead,
    network: Mark,
}

impl Made {
    /// The overlay of these layers, if it was laid ahead. The first process of the run can mount it.
    pub fn laid(&self, layers: &Layers) -> Option<Laid> {
        let shared = self.ahead.shared();
        let is_meant = shared.layers.get() == Some(layers);
        // It stays the other process's, which closes it: both have the same descriptors.
        let laid = shared.laid.take();
        let copy = laid.as_ref().filter(|_| is_meant).and_then(|laid| laid.try_clone().ok());
        shared.laid.set(laid);
        copy
    }

    /// Has `body` run as the first process in these namespaces and a new one of processes, a child of this one. It ends
    /// with the status that `body` returns. The helper starts that process in its parent's place.
    pub fn fork_into(&self, kinds: Kinds, body: &mut dyn FnMut() -> i32) -> Result<Pid, Unstarted> {
        self.fork_with(Kinds { user: false, ..kinds }.flags() & !kinds.of_a_process(), body)
    }

    fn fork_with(&self, flags: libc::c_int, mut body: &mut dyn FnMut() -> i32) -> Result<Pid, Unstarted> {
        let shared = self.ahead.shared();
        let missing = || SyscallError { call: "clone", cause: io::Error::other("its helper is gone") };
        let helper = self.ahead.helper.take().ok_or_else(|| Unstarted::Nothing(missing()))?;
        shared.order.set(Some((flags, (&raw mut body).cast())));
        if !shared.changes(WAITS, HAS_ORDER) {
            // It is gone, or does something else. It is ended with this.
            self.ahead.helper.set(Some(helper));
            return Err(Unstarted::Nothing(missing()));
        }
        let _ = futex::wake(&shared.does, futex::Flags::empty(), 1);
        let mut ended = false;
        while !ended && !shared.waits_during(&[HAS_ORDER, STARTS], Some(STEP)) {
            ended = self.ahead.wait_for(helper, false);
        }
        if shared.does() == STARTED {
            // It does nothing more but end.
            self.ahead.starter.set(Some(helper).filter(|_| !ended));
        } else {
            ended = ended || self.ahead.wait_for(helper, true);
        }
        if let Some(started) = shared.started.take() {
            return started.map_err(Unstarted::Nothing);
        }
        // Somebody has ended the helper, or a filter around us has kept us from waiting for it.
        let is_untouched = shared.changes(HAS_ORDER, FAILED) || ended && shared.order.get().is_some();
        Err(if is_untouched { Unstarted::Nothing(missing()) } else { Unstarted::Unknown(missing()) })
    }

    /// To be called by that process. Returns the cookie of the network, where the kernel has such. An error if it is
    /// not in the network: a filter around us may answer with success, and nothing has happened.
    pub fn settle(&self) -> Result<Option<u64>, SyscallError> {
        if namespace::network()? != self.network {
            return Err(io::Error::other("it was answered with success, and nothing has happened"))
                .of("clone");
        }
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).of("socket")?;
        Ok(socket::cookie(&socket).ok())
    }
}

/// The life of the helper.
extern "C" fn live(argument: *mut c_void) -> libc::c_int {
    // SAFETY: `Ahead` keeps it until this process has ended.
    let shared = unsafe { &*argument.cast::<Shared>() };
    // SAFETY: the address is valid as long as this process is there. The call cannot fail.
    unsafe { libc::syscall(libc::SYS_set_tid_address, shared.does.as_ptr()) };
    let made = make(shared).is_ok();
    // In one step: who sees it wait gives it an order. What is said to be laid right now, the first process lays.
    let next = match shared.layers.get() {
        _ if !made => FAILED,
        Some(_) => LAYS,
        None => WAITS,
    };
    // Nobody may want it any more.
    shared.changes(WORKS, next);
    let _ = futex::wake(&shared.does, futex::Flags::empty(), 1);
    // The first process of the run inherits that, and does it itself where this fails.
    let _ = privilege::bound_capabilities();
    shared.waits_while(WAITS, None);
    while shared.does() == LAYS {
        lay(shared);
        shared.changes(LAYS, WAITS);
        let _ = futex::wake(&shared.does, futex::Flags::empty(), 1);
        shared.waits_while(WAITS, None);
    }
    if made
        && shared.changes(HAS_ORDER, STARTS)
        && let Some((flags, body)) = shared.order.take()
    {
        // The other process does nothing until this one has started it.
        let started = process::fork_beside(flags);
        if matches!(started, Ok(0)) {
            // SAFETY: the copy has its own of everything, among it `body`, which the other process waits with.
            let body = unsafe { &mut *body.cast::<&mut dyn FnMut() -> i32>() };
            process::exit_now(body());
        }
        shared.started.set(Some(started));
        shared.goes_on(STARTED);
    }
    process::exit_now(0)
}

/// Makes the namespaces, and moves the calling process there.
fn make(shared: &Shared) -> Result<(), SyscallError> {
    const UNSHARE: &str = "unshare";
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).of("prctl(PR_SET_PDEATHSIG)")?;
    let kinds = shared.own.kinds;
    if process::parent() != shared.supervisor {
        return Err(Errno::SRCH).of(UNSHARE);
    }
    if kinds.user {
        // SAFETY: affects the calling process only, which has no other threads.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }.of(UNSHARE)?;
        shared.map.keep()?;
    }
    let network = namespace::move_into(kinds)?;
    namespace::start_loopback()?;
    // A container with a read-only /proc/sys refuses it, which makes nothing less safe.
    let _ = namespace::open_low_ports();
    shared.network.set(Some(network));
    Ok(())
}

/// Lays the overlay, once. The first process of the run tries it again where that fails.
fn lay(shared: &Shared) {
    let before = shared.laid.take();
    let layers = shared.layers.get().filter(|_| before.is_none());
    let laid = layers.and_then(|layers| layers.hold().and_then(Held::lay).ok());
    shared.laid.set(before.or(laid));
}

#[cfg(test)]
mod tests;
