//! System-call filters, and notifications of the calls that they refuse.

use crate::selftest::status::trial::{Attempt, Fault, State};
use crate::sys::process::{self, Change};
use crate::sys::seccomp::Answer;
use crate::sys::{descriptor, privilege, probe, seccomp as filter, socket};
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use serde_json::Value;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Error numbers that only the filter and the answer below give.
const BY_FILTER: u16 = 85;
const BY_ANSWER: u16 = 86;

pub fn facts() -> Vec<(&'static str, Value)> {
    vec![("wait-killable", probe::knows_wait_killable().into())]
}

/// A program that returns `value` for getsid(2) and allows the rest.
fn program(value: u32) -> Result<[Insn; 4], Fault> {
    let number = Call::named(b"getsid").and_then(|call| call.number(Arch::HOST));
    let number = number.ok_or_else(|| Fault::new(State::Untried, "this architecture has no getsid"))?;
    Ok([
        bpf::stmt(bpf::LD, bpf::DATA_NR),
        bpf::jump(bpf::JEQ, number, 0, 1),
        bpf::stmt(bpf::RET, value),
        bpf::stmt(bpf::RET, bpf::RET_ALLOW),
    ])
}

pub fn refused_call() -> Attempt {
    probe::harmless_call().map_err(|failed| Fault::new(State::Untried, failed.to_string()))?;
    privilege::no_new_privs()?;
    filter::install(&program(bpf::RET_ERRNO | u32::from(BY_FILTER))?)?;
    match probe::harmless_call() {
        Err(failed) if failed.errno() == i32::from(BY_FILTER) => {
            Ok("a filter was installed, and it refused a call".to_string())
        }
        _ => Err(Fault::new(State::Missing, "a filter was installed, and it did not refuse a call")),
    }
}

pub fn notified_call() -> Attempt {
    privilege::no_new_privs()?;
    let listener = filter::install_with_listener(&program(bpf::RET_USER_NOTIF)?).map_err(|failed| {
        let busy = failed.errno() == libc::EBUSY;
        let more = if busy { " (a sandbox around this one listens already)" } else { "" };
        let fault = Fault::from(failed);
        Fault { why: format!("{}{more}", fault.why), ..fault }
    })?;
    let listener = filter::own_listener(listener);
    let child = process::fork()?;
    if child == 0 {
        let answered = probe::harmless_call().err().map_or(0, |failed| failed.errno());
        process::exit_now(answered);
    }
    let answered = descriptor::readable(listener.as_raw_fd(), Duration::from_secs(1)) && {
        let notification = filter::receive(listener.as_fd())?;
        let waits = notification.filter(|n| filter::still_waits(listener.as_fd(), n.id).unwrap_or(false));
        waits.is_some_and(|n| filter::answer(listener.as_fd(), n.id, Answer::Error(BY_ANSWER)).is_ok())
    };
    if !answered {
        process::signal(child, libc::SIGKILL);
    }
    match process::wait(Some(child), true, false) {
        Some((_, Change::Exited(errno))) if errno == i32::from(BY_ANSWER) => {
            Ok("a call was notified, and got the answer that it was given".to_string())
        }
        _ => Err(Fault::new(State::Missing, "a listener was made, and a call was not notified to it")),
    }
}

pub fn descriptor_of_another() -> Attempt {
    let (reader, writer) = descriptor::pipe()?;
    let child = process::fork()?;
    if child == 0 {
        // It waits until its descriptor has been taken.
        drop(writer);
        let _ = descriptor::read(reader.as_raw_fd(), &mut [0]);
        process::exit_now(0);
    }
    let taken = process::open_pid(child).and_then(|pid| socket::take(&pid, reader.as_raw_fd()));
    process::signal(child, libc::SIGKILL);
    process::wait(Some(child), true, false);
    taken?;
    Ok("a descriptor of another process was taken".to_string())
}
