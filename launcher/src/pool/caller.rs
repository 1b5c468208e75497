//! `sbx run --pool`: has a run that waits take the command. Where none does, it is started as always.

use crate::error::{Refusal, cannot};
use crate::host::Host;
use crate::plan::variables::{self, Loudness};
use crate::pool::key::Key;
use crate::pool::messages::{Answer, LONGEST, LONGEST_ANSWER, Wish};
use crate::pool::{peer, place};
use crate::request::Request;
use crate::run::{self, Check, warm};
use crate::supervise::{self, Stderr};
use crate::sys::descriptor::{self, Interest};
use crate::sys::{packet, privilege, process, signal, timer};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// How long a run may take to say that it has the command: longer than a start takes nobody waits for one.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Runs what is asked for, and returns the exit status.
pub fn run(request: Request, verify: Check) -> Result<i32, Refusal> {
    match Connection::of(&request) {
        Ok(connection) => connection.follow(),
        Err(why) => {
            let loudness = variables::loudness(&request, &Host::of_this_process());
            if loudness.is_ok_and(|loudness| loudness == Loudness::Verbose) {
                say(&format!("no warm start: {why}"));
            }
            run::run(request, verify)
        }
    }
}

fn say(line: &str) {
    Stderr::say_alone(&format!("sbx: {line}\n"));
}

/// A connection to the run that has the command.
struct Connection {
    socket: OwnedFd,
    signals: OwnedFd,
    /// How long the command may run.
    time: Option<Duration>,
}

impl Connection {
    /// For a request; or why its command is to be started as always.
    fn of(request: &Request) -> Result<Connection, String> {
        suits(request).map_err(str::to_string)?;
        let host = Host::of_this_process();
        let key = Key::of(request).map_err(|refusal| refusal.to_string())?;
        let none = "there is no pool for these flags here ('sbx pool start' makes one)";
        let path = place::socket(&host, &key).ok_or(none)?;
        let socket = packet::connect(&path).map_err(|failed| match failed.errno() {
            libc::EAGAIN => "the pool does not answer",
            _ => none,
        })?;
        let proof = peer::proof_of(socket.as_fd())?;
        let (command, flags) = (request.command.clone(), Wish::flags(request));
        let wish = Wish { key: key.bytes().to_vec(), proof, flags, command, environment: host.environment };
        let wish = wish.encode();
        if wish.len() > LONGEST {
            return Err("its words and variables are too many".to_string());
        }
        // No signal is lost between here and the end.
        let watched = supervise::watched_signals();
        let mask = signal::set_mask(&watched).map_err(|failed| failed.to_string())?;
        let asked = signal::descriptor(&watched)
            .map_err(|failed| failed.to_string())
            .and_then(|signals| ask(&socket, &wish, request.report_fd).map(|time| (signals, time)));
        match asked {
            Ok((signals, time)) => Ok(Connection { socket, signals, time }),
            Err(why) => {
                signal::set_mask(&mask).map_err(|failed| failed.to_string())?;
                Err(why)
            }
        }
    }

    /// Passes signals on until the run has ended.
    fn follow(self) -> Result<i32, Refusal> {
        // As any supervisor: closed to the user's other processes, and continued when the command's time is over.
        privilege::undumpable().map_err(cannot("protect the memory of sbx"))?;
        self.time.map_or(Ok(()), timer::continue_after).map_err(cannot("start the clock"))?;
        loop {
            let interests = [&self.socket, &self.signals].map(|fd| Interest::read(Some(fd.as_raw_fd())));
            let [told, arrived] = descriptor::poll(interests, None).map_err(cannot("wait for the run"))?;
            while arrived.now
                && let Some(arrived) = signal::next(self.signals.as_fd())
            {
                // Where that fails, the run has ended.
                let _ = packet::send(self.socket.as_fd(), &[&supervise::told(arrived)], &[]);
            }
            if told.now || told.gone {
                let mut answer = [0; LONGEST_ANSWER];
                let length = match packet::receive_now(self.socket.as_fd(), &mut answer) {
                    // It had not read everything.
                    Err(failed) if failed.errno() == libc::ECONNRESET => Some(0),
                    length => length.map_err(cannot("hear of the run"))?,
                };
                match length.map(|length| Answer::decode(answer.get(..length).unwrap_or_default())) {
                    None => {}
                    Some(Some(Answer::Ended(status))) => return Ok(status),
                    _ => {
                        return Err(Refusal::new(
                            "the supervisor of the run was killed, and so the command was ended too",
                        ));
                    }
                }
            }
        }
    }
}

/// What is to be started as always, whatever pools there are.
fn suits(request: &Request) -> Result<(), &'static str> {
    if let Some(why) = warm::cannot_wait(request) {
        return Err(why);
    }
    if (0..3).any(|number| !descriptor::is_open(number)) {
        return Err("standard input, output or error is closed");
    }
    if (0..3).any(descriptor::is_terminal) || process::has_terminal() {
        return Err("it has a terminal");
    }
    match request.report_fd {
        Some(number) if number < 3 || !descriptor::is_open(number) => Err("there is no such --report-fd"),
        _ => Ok(()),
    }
}

/// Asks for the run, and waits until a run has taken it. Returns how long its command may run.
fn ask(socket: &OwnedFd, wish: &[u8], report: Option<i32>) -> Result<Option<Duration>, String> {
    let mut all: Vec<_> = (0..3).map(descriptor::by_number).collect();
    all.extend(report.map(descriptor::by_number));
    match packet::send(socket.as_fd(), &[wish], &all) {
        // It has been answered already.
        Err(failed) if failed.errno() == libc::EPIPE => {}
        sent => sent.map_err(|failed| failed.to_string())?,
    }
    let interest = [Interest::read(Some(socket.as_raw_fd()))];
    let answered = descriptor::poll(interest, Some(PATIENCE));
    if !answered.is_ok_and(|[answer]| answer.now || answer.gone) {
        // Nobody can take it from here on. It may have been taken just now.
        packet::close_to_others(socket.as_fd()).map_err(|failed| failed.to_string())?;
    }
    let mut answer = [0; LONGEST_ANSWER];
    let length = packet::receive_now(socket.as_fd(), &mut answer).map_err(|failed| failed.to_string())?;
    match Answer::decode(answer.get(..length.unwrap_or(0)).unwrap_or_default()) {
        Some(Answer::Taken(time)) => Ok((time > 0).then(|| Duration::from_millis(time))),
        Some(Answer::Refused(why)) => Err(why.to_string_lossy().into_owned()),
        _ => Err("no run of the pool was free".to_string()),
    }
}
