//! One layer, and the outcome of trying it.

use crate::sys::SyscallError;
use crate::sys::probe::{self, Answer};
use crate::sys::process::Change;
use serde_json::{Map, Value};
use std::time::Duration;

/// An attempt that takes longer counts as stuck.
const LIMIT: Duration = Duration::from_secs(2);

/// Whether a layer can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was used, and did its job.
    Works,
    /// The kernel does not have it.
    Missing,
    /// The kernel, its settings, a container or an outer sandbox refuses it.
    Refused,
    /// It could not be tried.
    Untried,
}

impl State {
    /// One word, the same for people and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            State::Works => "works",
            State::Missing => "missing",
            State::Refused => "refused",
            State::Untried => "untried",
        }
    }
}

/// A layer of enforcement.
pub struct Layer {
    /// Its name, a key in JSON.
    pub name: &'static str,
    /// Whether it can be used.
    pub state: State,
    /// What was seen, or why it cannot be used.
    pub detail: String,
    /// Further facts, for programs.
    pub facts: Map<String, Value>,
}

/// What was seen of a layer that works, or why it does not.
pub type Attempt = Result<String, Fault>;

/// Why a layer does not work.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What that means for the layer.
    pub state: State,
    /// The call and its error.
    pub why: String,
    /// The error number, or 0.
    pub errno: i32,
}

impl Fault {
    /// A fault without an error number.
    pub fn new(state: State, why: impl Into<String>) -> Fault {
        Fault { state, why: why.into(), errno: 0 }
    }
}

impl From<SyscallError> for Fault {
    fn from(failed: SyscallError) -> Fault {
        let errno = failed.errno();
        Fault { state: meaning(errno), why: failed.to_string(), errno }
    }
}

fn meaning(errno: i32) -> State {
    match errno {
        libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP => State::Missing,
        _ => State::Refused,
    }
}

/// Makes an attempt in a child process.
pub fn attempt(body: impl FnOnce() -> Attempt) -> Attempt {
    let answer = probe::in_child(|| encode(body()), LIMIT);
    let answer = answer.map_err(|failed| Fault::new(State::Untried, failed.to_string()))?;
    match answer {
        Answer::Said(bytes) => decode(&bytes),
        Answer::Ended(Change::Killed(libc::SIGSYS)) => {
            Err(Fault::new(State::Refused, "a filter around this process kills for it (SIGSYS)"))
        }
        Answer::Ended(Change::Killed(signal)) => {
            Err(Fault::new(State::Untried, format!("the process that tried it was ended by signal {signal}")))
        }
        Answer::Ended(_) => Err(Fault::new(State::Untried, "the process that tried it said nothing")),
        Answer::TooLong => Err(Fault::new(State::Untried, "it was not over after two seconds")),
    }
}

fn encode(result: Attempt) -> Vec<u8> {
    let (state, errno, text) = match result {
        Ok(detail) => (State::Works, 0, detail),
        Err(fault) => (fault.state, fault.errno, fault.why),
    };
    [&[state as u8][..], &errno.to_le_bytes(), text.as_bytes()].concat()
}

fn decode(bytes: &[u8]) -> Attempt {
    let broken = || Fault::new(State::Untried, "the process that tried it was cut short");
    let (&state, rest) = bytes.split_first().ok_or_else(broken)?;
    let (errno, text) = rest.split_first_chunk::<4>().ok_or_else(broken)?;
    let why = String::from_utf8_lossy(text).into_owned();
    let states = [State::Works, State::Missing, State::Refused, State::Untried];
    match states.into_iter().find(|known| *known as u8 == state).ok_or_else(broken)? {
        State::Works => Ok(why),
        state => Err(Fault { state, why, errno: i32::from_le_bytes(*errno) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_found_out_comes_back_whole() {
        assert_eq!(decode(&encode(Ok("seen".to_string()))).unwrap(), "seen");
        for errno in [libc::EPERM, libc::ENOSYS] {
            let fault = Fault { state: meaning(errno), why: "call: why".to_string(), errno };
            let back = decode(&encode(Err(fault.clone()))).unwrap_err();
            assert_eq!((back.state, back.why, back.errno), (fault.state, fault.why, errno));
        }
        assert_eq!(decode(&[]).unwrap_err().state, State::Untried);
        assert_eq!(decode(&[9, 0, 0, 0, 0]).unwrap_err().state, State::Untried);
    }

    #[test]
    fn a_child_that_dies_or_hangs_is_a_fault() {
        let died = attempt(|| {
            crate::sys::process::signal(crate::sys::process::id(), libc::SIGKILL);
            Ok(String::new())
        });
        assert!(died.unwrap_err().why.contains("signal 9"));
        let hung = attempt(|| {
            std::thread::sleep(Duration::from_secs(60));
            Ok("late".to_string())
        });
        assert_eq!(hung.unwrap_err().state, State::Untried);
    }
}
