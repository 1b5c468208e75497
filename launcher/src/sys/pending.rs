//! Signals that wait for a thread of another process, while a system call of it is being answered: the kernel lets only
//! a deadly one through by then.

use crate::sys::process::Pid;
use crate::sys::status::Status;

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// Nothing.
    Nothing,
    /// Something that this very thread has to see to before it goes on.
    Own,
    /// Something that another thread of the process may see to as well.
    Shared,
}

/// What waits for a thread of a process, as far as /proc tells.
pub fn signals(process: Pid, thread: Pid) -> Pending {
    let Ok(status) = Status::of(thread) else { return Pending::Nothing };
    match of_status(&status) {
        // While a process is being stopped, every thread of it has to stop.
        Pending::Nothing if process != thread && is_stopped(process) => Pending::Own,
        found => found,
    }
}

fn is_stopped(process: Pid) -> bool {
    let status = Status::of(process);
    status.is_ok_and(|status| status.field("State").is_some_and(|state| state.starts_with('T')))
}

/// What a status says. Ignored signals do not wait.
fn of_status(status: &Status) -> Pending {
    let open = !status.set("SigBlk");
    if status.set("SigPnd") & open != 0 {
        Pending::Own
    } else if status.set("ShdPnd") & open == 0 {
        Pending::Nothing
    } else if status.field("Threads") == Some("1") {
        Pending::Own
    } else {
        Pending::Shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process;

    #[test]
    fn only_what_is_not_blocked_waits() {
        let status = |threads: &str, own: &str, shared: &str, blocked: &str| {
            let text = format!(
                "Name:\tx\nThreads:\t{threads}\nSigPnd:\t{own}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\n"
            );
            of_status(&Status::from_text(text))
        };
        let (none, alarm) = ("0000000000000000", "0000000000002000");
        for (threads, own, shared, blocked, waits) in [
            ("1", none, none, none, Pending::Nothing),
            ("1", alarm, none, alarm, Pending::Nothing),
            ("1", none, alarm, alarm, Pending::Nothing),
            ("2", alarm, none, none, Pending::Own),
            ("1", none, alarm, none, Pending::Own),
            ("2", none, alarm, none, Pending::Shared),
        ] {
            assert_eq!(status(threads, own, shared, blocked), waits, "{threads} {own} {shared} {blocked}");
        }
        assert_eq!(of_status(&Status::from_text("")), Pending::Nothing);
        assert_eq!(signals(process::id(), process::id()), Pending::Nothing);
    }
}
