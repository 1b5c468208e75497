//! Follows a run from call to call.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::command::Cmd;
use crate::output::Output;
use crate::sys;
use crate::sys::ptrace::{self, Entry, Replaced, Stop};

/// How long a run may take. One takes some milliseconds.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long processes may outlive the run that started them.
const GRACE: Duration = Duration::from_secs(3);

/// The index of a process of a run: in the order in which they are made.
pub type Index = usize;

/// A call of a run.
#[derive(Clone, Debug)]
pub struct Call {
    /// The process.
    pub process: Index,
    /// Its number.
    pub number: u64,
    /// Its index among the process's calls of that number in its phase, from 1.
    pub nth: usize,
    /// Whether it is made after the command was executed: a supervisor's calls then.
    pub late: bool,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// The path among them.
    pub path: Option<String>,
}

/// A call that is to fail.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The process.
    pub process: Index,
    /// Its number.
    pub number: u64,
    /// The index among its calls of that number.
    pub nth: usize,
    /// Whether after the command was executed.
    pub late: bool,
    /// The error.
    pub errno: i32,
}

/// The observations of a run.
pub struct Seen {
    /// The result.
    pub output: Output,
    /// The calls, without the command's own, but with those of the library in it.
    pub calls: Vec<Call>,
    /// Whether the command was executed.
    pub started: bool,
    /// The process that executed it.
    pub command: Option<Index>,
    /// Whether the call that was to fail was made.
    pub failed: bool,
    /// Whether it had to be killed.
    pub hung: bool,
    /// How many processes outlived it.
    pub outlived: usize,
    /// The number of the first process.
    pub pid: i32,
    /// The signal that ended the first process.
    pub signal: Option<i32>,
}

/// Whose calls are of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    /// The launcher's: all but the loader's.
    Launcher,
    /// The library's.
    Library,
}

struct Process {
    index: Index,
    code: Code,
    /// Where in memory that code is, or the loader.
    known: Vec<(Range<u64>, bool)>,
    counts: HashMap<(u64, bool), usize>,
    replaced: Option<(Replaced, i32)>,
}

impl Process {
    fn new(index: Index, code: Code) -> Process {
        Process { index, code, known: Vec::new(), counts: HashMap::new(), replaced: None }
    }

    /// Whether a call that is made at this place is of interest.
    fn is_of_interest(&mut self, pid: i32, place: u64) -> bool {
        let found = |known: &[(Range<u64>, bool)]| {
            known.iter().find(|(range, _)| range.contains(&place)).map(|(_, wanted)| *wanted)
        };
        found(&self.known).unwrap_or_else(|| {
            self.known = mapped(pid, self.code);
            // An unreadable process is a launcher that hides its memory.
            found(&self.known).unwrap_or(self.code == Code::Launcher)
        })
    }
}

/// The files in a process's memory, each with whether its calls are of interest.
fn mapped(pid: i32, code: Code) -> Vec<(Range<u64>, bool)> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let line = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        let wanted = match code {
            Code::Launcher => !rest.contains("/ld-"),
            Code::Library => rest.contains("libsandbox.so"),
        };
        Some((range, wanted))
    };
    text.lines().filter_map(line).collect()
}

/// What to do besides following.
#[derive(Clone, Copy, Default)]
pub struct Wish {
    /// The call that is to fail; without one, all are recorded.
    pub fault: Option<Fault>,
    /// Whether the command is the first program, and the library's calls are the ones of interest.
    pub alone: bool,
    /// Whether a library is loaded into the command.
    pub library: bool,
}

/// Runs a command to its end.
pub fn follow(cmd: Cmd, wish: Wish) -> Seen {
    let running = cmd.followed().start();
    let guard = Guard::over(running.pid());
    let mut following = Following {
        wish,
        first: running.pid(),
        status: None,
        processes: HashMap::new(),
        early: HashSet::new(),
        made: 0,
        calls: Vec::new(),
        command: None,
        over: false,
        failed: false,
    };
    following.begin();
    // Other children of this thread may live longer.
    while following.is_going_on()
        && let Some((pid, stop)) = ptrace::next()
    {
        following.see(pid, stop, &guard);
    }
    let (hung, outlived) = guard.end();
    let status = ExitStatus::from_raw(following.status.unwrap_or(libc::SIGKILL));
    Seen {
        output: running.ended(status),
        calls: following.calls,
        started: following.command.is_some(),
        command: following.command,
        failed: following.failed,
        hung,
        outlived,
        pid: following.first,
        signal: status.signal(),
    }
}

struct Following {
    wish: Wish,
    first: i32,
    status: Option<i32>,
    processes: HashMap<i32, Process>,
    /// Processes that stopped before their parent reported them.
    early: HashSet<i32>,
    made: usize,
    calls: Vec<Call>,
    command: Option<Index>,
    /// Whether the command's exec was reached: calls of other processes from then on are late.
    over: bool,
    failed: bool,
}

impl Following {
    /// Starts with the first process, which is stopped at its exec.
    fn begin(&mut self) {
        let (pid, _) = ptrace::next().expect("a process to be followed");
        ptrace::follow_all(pid).expect("PTRACE_SETOPTIONS");
        let code = if self.wish.alone { Code::Library } else { Code::Launcher };
        self.processes.insert(pid, Process::new(0, code));
        self.made = 1;
        ptrace::go_on(pid, true, 0);
    }

    /// Whether there is anything left to follow.
    fn is_going_on(&self) -> bool {
        if self.processes.is_empty() {
            // Their parent was killed before it reported them.
            self.early.iter().for_each(|pid| sys::kill(*pid, libc::SIGKILL));
        }
        !self.processes.is_empty() || !self.early.is_empty()
    }

    /// Whether a process's calls are still looked at.
    fn looks(&self, process: Option<&Process>) -> bool {
        let done = self.wish.fault.is_some() && self.failed;
        let library = self.wish.library || self.wish.alone;
        process.is_some_and(|process| {
            process.replaced.is_some() || (!done && (process.code == Code::Launcher || library))
        })
    }

    fn go_on(&self, pid: i32, signal: i32) {
        ptrace::go_on(pid, self.looks(self.processes.get(&pid)), signal);
    }

    fn see(&mut self, pid: i32, stop: Stop, guard: &Guard) {
        match stop {
            Stop::Ended(status) => {
                self.processes.remove(&pid);
                self.early.remove(&pid);
                guard.ended(pid, pid == self.first);
                if pid == self.first {
                    self.status = Some(status);
                }
            }
            Stop::Made(child) => {
                guard.made(child);
                self.processes.insert(child, Process::new(self.made, Code::Launcher));
                self.made += 1;
                if self.early.remove(&child) {
                    self.go_on(child, 0);
                }
                self.go_on(pid, 0);
            }
            Stop::Still if !self.processes.contains_key(&pid) => drop(self.early.insert(pid)),
            Stop::Still => self.go_on(pid, 0),
            Stop::Exec => {
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.code = Code::Library;
                    process.known.clear();
                    self.command.get_or_insert(process.index);
                }
                self.go_on(pid, 0);
            }
            Stop::Call => {
                self.call(pid);
                self.go_on(pid, 0);
            }
            Stop::Signal(signal) => self.go_on(pid, signal),
        }
    }

    fn call(&mut self, pid: i32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if let Some((replaced, errno)) = process.replaced.take() {
            // It was killed meanwhile.
            let _ = ptrace::fail(pid, &replaced, errno);
            return;
        }
        let Some(entry) = ptrace::entry(pid) else { return };
        if !process.is_of_interest(pid, entry.place) {
            return;
        }
        let late = self.over && process.code == Code::Launcher;
        self.over |= super::site::name(entry.number) == "execve";
        let nth = *process.counts.entry((entry.number, late)).and_modify(|count| *count += 1).or_insert(1);
        match self.wish.fault {
            None => {
                let call = note(pid, (process.index, nth, late), entry);
                self.calls.push(call);
            }
            Some(fault) => {
                let meant = (fault.process, fault.number, fault.nth, fault.late);
                if !self.failed && meant == (process.index, entry.number, nth, late) {
                    // As above.
                    let Ok(replaced) = ptrace::replace_call(pid) else { return };
                    self.failed = true;
                    process.replaced = Some((replaced, fault.errno));
                }
            }
        }
    }
}

fn note(pid: i32, (process, nth, late): (Index, usize, bool), entry: Entry) -> Call {
    let path = super::site::path_argument(entry.number)
        .and_then(|at| ptrace::text(pid, entry.arguments[at]))
        .map(|text| text.to_string_lossy().into_owned());
    Call { process, number: entry.number, nth, late, arguments: entry.arguments, path }
}

/// Kills a run that does not end by itself. It is a thread of its own, since the other one waits.
struct Guard {
    alive: Arc<Mutex<Alive>>,
    done: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<(bool, usize)>,
}

struct Alive {
    pids: HashSet<i32>,
    first_ended: Option<Instant>,
}

impl Guard {
    fn over(first: i32) -> Guard {
        let alive = Arc::new(Mutex::new(Alive { pids: HashSet::from([first]), first_ended: None }));
        let shared = Arc::clone(&alive);
        let (done, waiting) = mpsc::channel();
        let thread = std::thread::spawn(move || guard(&shared, &waiting));
        Guard { alive, done, thread }
    }

    fn made(&self, pid: i32) {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).pids.insert(pid);
    }

    fn ended(&self, pid: i32, first: bool) {
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        alive.pids.remove(&pid);
        if first {
            alive.first_ended = Some(Instant::now());
        }
    }

    /// Whether the run hung, and how many processes outlived it.
    fn end(self) -> (bool, usize) {
        let _ = self.done.send(());
        self.thread.join().expect("the guard's thread")
    }
}

fn guard(alive: &Mutex<Alive>, done: &mpsc::Receiver<()>) -> (bool, usize) {
    let started = Instant::now();
    let (mut hung, mut outlived) = (false, 0);
    while done.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
        let alive = alive.lock().unwrap_or_else(PoisonError::into_inner);
        let late = started.elapsed() > TIMEOUT;
        let left_behind = alive.first_ended.is_some_and(|when| when.elapsed() > GRACE);
        if late || left_behind {
            hung |= alive.first_ended.is_none();
            if left_behind {
                outlived = outlived.max(alive.pids.len());
            }
            alive.pids.iter().for_each(|pid| sys::kill(*pid, libc::SIGKILL));
        }
    }
    (hung, outlived)
}
