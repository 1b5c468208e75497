//! Connections to hosts whose callers wait for what comes of them outside.
//!
//! Such a connection is made twice: by the supervisor to the broker, which takes no time, and by the broker to the
//! host. A call that waits is answered when the broker has told of the second one, with its error. The two are matched
//! by the ends of the first one. A thread of the supervisor's makes it, and the broker may be faster than that thread,
//! so either of them finds what the other has left.

use crate::supervise::judge::error;
use crate::sys::seccomp::{self, Answer};
use crate::sys::socket::{self, Ends};
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of results that wait for the thread that made the connection.
const MOST: usize = 1024;

/// Maximum number of calls that are expected to be made anew.
const MOST_LEFT: usize = 256;

/// A call that waits for its host.
pub struct Held {
    /// Where the call waits.
    pub listener: Arc<OwnedFd>,
    /// Which call it is.
    pub id: u64,
    /// The caller's socket, connected to the broker.
    pub socket: OwnedFd,
}

/// All of them, for the supervisor's loop and its threads.
#[derive(Clone, Default)]
pub struct Dials(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    waiting: HashMap<Ends, Held>,
    told: HashMap<Ends, i32>,
    /// Connections whose calls gave way to a signal. The kernel makes such a call anew.
    left: HashSet<Ends>,
    /// Some result was not kept.
    is_short: bool,
    /// Threads that make a connection to the broker.
    under_way: usize,
    /// Nobody tells any more.
    is_over: bool,
}

impl Dials {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread is going to make a connection to the broker.
    pub fn begin(&self) {
        self.state().under_way += 1;
    }

    /// It has done so. `held`: its call waits for the host.
    pub fn made(&self, held: Option<(Ends, Held)>) {
        let mut state = self.state();
        state.under_way = state.under_way.saturating_sub(1);
        if let Some((ends, held)) = held {
            match state.told.remove(&ends) {
                Some(errno) => held.answer(errno),
                None if state.is_over || state.is_short => held.answer(0),
                None => drop(state.waiting.insert(ends, held)),
            }
        }
        if state.under_way == 0 {
            let State { told, left, .. } = &mut *state;
            told.retain(|ends, _| left.contains(ends));
            state.is_short = false;
        }
    }

    /// Whether a call is one that was made anew: its socket is connected already.
    pub fn is_again(&self, ends: &Ends) -> bool {
        self.state().left.remove(ends)
    }

    /// What came of the connection with these ends: 0, or an error number. Returns whether a call may wait for that.
    pub fn tell(&self, ends: Ends, errno: i32) -> bool {
        let mut state = self.state();
        match state.waiting.remove(&ends) {
            Some(held) => held.answer(errno),
            None if state.left.contains(&ends) || state.under_way > 0 && state.told.len() < MOST => {
                state.told.insert(ends, errno);
            }
            None => {
                state.is_short |= state.under_way > 0;
                return state.under_way > 0;
            }
        }
        true
    }

    /// Nothing more is told, or something was missed: whoever waits goes on with the socket as it is.
    pub fn release(&self, is_over: bool) {
        let mut state = self.state();
        state.is_over |= is_over;
        state.is_short |= state.under_way > 0;
        let State { waiting, told, left, .. } = &mut *state;
        waiting.drain().for_each(|(_, held)| held.answer(0));
        told.extend(left.iter().map(|ends| (*ends, 0)));
    }

    /// Whether a call waits for its host.
    pub fn holds(&self, id: u64) -> bool {
        self.state().waiting.values().any(|held| held.id == id)
    }

    /// Ends the calls whose sockets were shut down meanwhile, as the kernel ends its own.
    pub fn end_shut(&self) {
        let mut state = self.state();
        let shut = state.waiting.extract_if(|_, held| socket::is_shut(&held.socket));
        shut.for_each(|(_, held)| held.answer(libc::ECONNABORTED));
    }

    /// A call that waits is to end with this answer. `comes_again`: the kernel makes it anew.
    pub fn give_up(&self, id: u64, answer: Answer, comes_again: bool) {
        let mut state = self.state();
        let State { waiting, left, .. } = &mut *state;
        for (ends, held) in waiting.extract_if(|_, held| held.id == id) {
            if comes_again && left.len() < MOST_LEFT {
                left.insert(ends);
            } else if comes_again {
                // So it is connected anew.
                socket::disconnect(&held.socket);
            }
            let _ = seccomp::answer(held.listener.as_fd(), id, answer);
        }
    }
}

impl Held {
    fn answer(self, errno: i32) {
        let answer = if errno == 0 {
            Answer::Done
        } else {
            // It was connected to the broker. The caller may try again.
            socket::disconnect(&self.socket);
            error(errno)
        };
        // Whoever is gone needs no answer.
        let _ = seccomp::answer(self.listener.as_fd(), self.id, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn ends(port: u16) -> Ends {
        (([127, 0, 0, 1], port).into(), ([127, 0, 0, 2], 1).into())
    }

    /// A call that waits on a connection of its own. Its answer goes nowhere.
    fn held(id: u64) -> Held {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(server.local_addr().unwrap()).unwrap().into();
        // Without a listener the connection would be reset.
        std::mem::forget(server);
        Held { listener: Arc::new(std::fs::File::open("/dev/null").unwrap().into()), id, socket }
    }

    fn is_connected(held: &Held) -> bool {
        socket::peer_address(&held.socket).is_some()
    }

    #[test]
    fn whoever_comes_first_leaves_what_the_other_finds() {
        let dials = Dials::default();
        dials.begin();
        dials.made(Some((ends(1), held(7))));
        assert!(dials.holds(7));
        dials.tell(ends(1), 0);
        assert!(!dials.holds(7));
        dials.begin();
        dials.tell(ends(2), libc::ECONNREFUSED);
        dials.made(Some((ends(2), held(8))));
        assert!(!dials.holds(8) && dials.state().told.is_empty());
        // Of connections that nobody waits for nothing is kept.
        assert!(!dials.tell(ends(3), 0));
        assert!(dials.state().told.is_empty());
    }

    #[test]
    fn nobody_waits_for_what_was_missed() {
        let dials = Dials::default();
        dials.begin();
        (0..=MOST as u16).for_each(|port| assert!(dials.tell(ends(port), 0)));
        dials.made(Some((ends(u16::MAX), held(1))));
        assert!(!dials.holds(1) && !dials.state().is_short);
        dials.begin();
        dials.release(false);
        dials.made(Some((ends(1), held(2))));
        assert!(!dials.holds(2));
        dials.release(true);
        dials.made(Some((ends(2), held(3))));
        assert!(!dials.holds(3));
    }

    #[test]
    fn a_call_that_is_made_anew_finds_its_connection() {
        let dials = Dials::default();
        dials.made(Some((ends(1), held(1))));
        dials.give_up(1, error(libc::EINTR), true);
        assert!(!dials.holds(1));
        dials.tell(ends(1), libc::ETIMEDOUT);
        assert!(dials.is_again(&ends(1)) && !dials.is_again(&ends(1)));
        dials.begin();
        dials.made(Some((ends(1), held(2))));
        assert!(!dials.holds(2) && dials.state().told.is_empty());
    }

    #[test]
    fn a_call_whose_socket_is_shut_down_waits_no_longer() {
        let dials = Dials::default();
        let (shut, open) = (held(1), held(2));
        rustix::net::shutdown(&shut.socket, rustix::net::Shutdown::Both).unwrap();
        let copy = shut.socket.try_clone().unwrap();
        dials.made(Some((ends(1), shut)));
        dials.made(Some((ends(2), open)));
        dials.end_shut();
        assert!(!dials.holds(1) && dials.holds(2));
        // It can be connected again.
        assert_eq!(socket::peer_address(&copy), None);
    }

    #[test]
    fn a_socket_can_be_connected_again_after_a_failure() {
        let held = held(1);
        assert!(is_connected(&held));
        let copy = Held { socket: held.socket.try_clone().unwrap(), listener: held.listener.clone(), id: 1 };
        held.answer(libc::ECONNREFUSED);
        assert!(!is_connected(&copy));
    }
}
