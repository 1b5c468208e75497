//! The pool: keeps runs that wait, and replaces those that have got a command.

use crate::error::{Refusal, cannot};
use crate::host::Host;
use crate::pool::caller::PATIENCE;
use crate::pool::key::{Key, without_command};
use crate::pool::messages::Answer;
use crate::pool::parked::{self, Notice, Shared, UNSUITED};
use crate::pool::peer::{self, Proof, Standing};
use crate::pool::place;
use crate::request::Request;
use crate::run::{self, warm};
use crate::sys::packet::Came;
use crate::sys::process::{self, Pid};
use crate::sys::signal::{self, Disposition, Set};
use crate::sys::{SyscallError, descriptor, namespace, packet, path};
use crate::text::shown;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Callers that may wait in a row.
const BACKLOG: i32 = 16;
/// How long the first run may take until it waits, and a pool to end.
const LONGEST_START: Duration = Duration::from_secs(30);
/// How long nobody may have begun or ended a command before another run is started. Until then the processors belong
/// to who comes next, and to what a run leaves to do. To start a run for each command that follows at once would take
/// longer than to start the command without.
const QUIET: Duration = Duration::from_millis(20);
/// How much longer that is where a run has not served who asked.
const AFTER_REFUSAL: Duration = Duration::from_millis(200);
/// As often in a row runs may fail to wait. Others are tried this long afterwards: what they are planned from may just
/// be written.
const MOST_FAILURES: u32 = 3;
const AFTER_FAILURE: Duration = Duration::from_millis(50);
/// Of a socket at which callers wait that nobody serves.
const MUTE: &str = "there is one already, which does not answer";
/// Of a socket at which another process listens.
const NO_POOL: &str = "who listens at its socket is no pool";
/// Of a socket that a pool may wait at, for all that this process can see.
const UNSEEN: &str = "this process cannot tell who listens at its socket";
/// What the pool writes when its first run waits.
const READY: &[u8] = b"\0";

/// What came of starting a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// It has this process.
    As(Pid),
    /// There is one.
    Already(Pid),
}

/// Starts a pool of `size` runs for a request, which ends when nobody has asked for one for the time `idle`.
pub fn start(request: &Request, size: usize, idle: Duration) -> Result<Started, Refusal> {
    let refused = |why: &str| Refusal::new(format!("cannot keep a pool of such runs: {why}"));
    if let Some(why) = warm::cannot_wait(request) {
        return Err(refused(why));
    }
    let host = Host::of_this_process();
    // A shell has what it starts in the background ignore these, and who asks later does not.
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        signal::dispose(signal, Disposition::Default).map_err(cannot("take signals"))?;
    }
    let standing = Standing::own().ok_or_else(|| refused("/proc does not tell what this process is"))?;
    if !standing.is_free() || *host.nested.get() {
        return Err(refused("this process is confined, and who asks would not be"));
    }
    let key = Key::of(request)?;
    let path = place::make(&host, &key)?;
    // Of several that start at once, each would take the place of the one before.
    let _alone =
        place::alone(&path, LONGEST_START).ok_or_else(|| refused("others are being started just now"))?;
    match connect(&path).and_then(|socket| packet::peer(socket.as_fd())) {
        Ok((pool, _)) if peer::is_pool(pool) => return Ok(Started::Already(pool)),
        Ok((1.., _)) => return Err(refused(NO_POOL)),
        Err(failed) if failed.errno() == libc::EAGAIN => return Err(refused(MUTE)),
        Err(failed) if is_dead(&failed) => {}
        // In another pid namespace it has no number here.
        Ok(_) | Err(_) => return Err(refused(UNSEEN)),
    }
    run::hear_of_children()?;
    let (reader, writer) = descriptor::pipe().map_err(cannot("start the pool"))?;
    let pid = process::fork().map_err(cannot("start the pool"))?;
    if pid == 0 {
        drop(reader);
        let told = writer.try_clone();
        let end = serve(request, (key, standing), &path, (size, idle), writer);
        if let Some((failed, told)) = end.as_ref().err().zip(told.ok()) {
            let _ = descriptor::write_all(told.as_raw_fd(), failed.to_string().as_bytes());
        }
        process::exit_now(i32::from(end.is_err()));
    }
    drop(writer);
    let said = descriptor::read_until(reader.as_raw_fd(), Instant::now() + LONGEST_START);
    match said.as_deref() {
        Some(READY) => Ok(Started::As(pid)),
        Some([]) => Err(refused("it was ended before a run of it waited")),
        Some(why) => Err(refused(&String::from_utf8_lossy(why))),
        None => Err(refused("it takes too long")),
    }
}

/// One run.
struct Run {
    pid: Pid,
    held: OwnedFd,
    /// Why it does not wait, if so.
    said: OwnedFd,
    /// Whether it waits, or has done so.
    is_ready: bool,
    /// Whether it has got a command, and whether that runs.
    is_taken: bool,
    is_busy: bool,
}

struct Pool {
    shared: Shared,
    path: PathBuf,
    notices: OwnedFd,
    signals: OwnedFd,
    mask: Set,
    runs: Vec<Run>,
    size: usize,
    failures: u32,
    /// When the last one failed.
    failed: Option<Instant>,
    /// When a run has got or ended a command, or somebody was turned away.
    stirred: Option<Instant>,
    /// When a run was asked for last, or first waited.
    asked: Instant,
    /// Told when the first run waits, or why it does not.
    starter: Option<OwnedFd>,
}

/// The life of the pool.
fn serve(
    request: &Request,
    (key, standing): (Key, Standing),
    path: &Path,
    (size, idle): (usize, Duration),
    starter: OwnedFd,
) -> Result<(), SyscallError> {
    namespace::new_session()?;
    descriptor::release_all_standard()?;
    // What the starter has open is not to stay so as long as the pool.
    descriptor::close_all_but(&mut vec![0, 1, starter.as_raw_fd()]);
    let mask = signal::set_mask(&Set::full())?;
    let watched = Set::of(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP]);
    let signals = signal::descriptor(&watched)?;
    // One that was killed has left it behind.
    let _ = fs::remove_file(path);
    let listener = packet::listen(path, BACKLOG)?;
    let (notices, sender) = descriptor::pipe()?;
    let request = without_command(request);
    let (proof, pool) = (Proof::new()?, process::id());
    let shared = Shared { request, key, listener, standing, proof, pool, notices: sender };
    let path = path.to_path_buf();
    let starter = Some(starter);
    let mut pool = Pool {
        shared,
        path,
        notices,
        signals,
        mask,
        runs: Vec::new(),
        size,
        failures: 0,
        failed: None,
        stirred: None,
        asked: Instant::now(),
        starter,
    };
    let result = pool.keep(idle);
    pool.end();
    result
}

impl Pool {
    /// Until nobody has asked for a run for so long, or it is told to end.
    fn keep(&mut self, idle: Duration) -> Result<(), SyscallError> {
        loop {
            let put_off = self.fill()?;
            if self.runs.is_empty() && put_off.is_none() {
                return Ok(());
            }
            // A negative number stands for nothing (poll(2)).
            let waits = self.runs.iter().any(|run| run.is_ready && !run.is_taken);
            let listener = if waits { -1 } else { self.shared.listener.as_raw_fd() };
            let numbers = self.runs.iter().map(|run| run.held.as_raw_fd());
            let own = [self.signals.as_raw_fd(), self.notices.as_raw_fd(), listener];
            let numbers = own.into_iter().chain(numbers);
            let is_asked = self.runs.iter().any(|run| run.is_taken);
            // Runs that give way to others are not asked for. One that never waits is given up.
            let idle =
                if waits { idle.saturating_sub(self.asked.elapsed()) } else { idle.max(LONGEST_START) };
            let limit = put_off.or_else(|| (!is_asked).then_some(idle));
            let ready = descriptor::poll_all(numbers, limit)?;
            if (ready.is_empty() && put_off.is_none()) || ready.contains(&0) {
                return Ok(());
            }
            if ready.contains(&1) {
                self.hear();
            }
            if ready.contains(&2) {
                self.turn_away();
            }
            let ended = ready.into_iter().filter_map(|place| place.checked_sub(own.len())).rev();
            ended.for_each(|place| self.ended(place));
        }
    }

    /// Starts the runs that are wanted. Returns for how long others are put off.
    fn fill(&mut self) -> Result<Option<Duration>, SyscallError> {
        while self.wants_more() && self.failures < MOST_FAILURES {
            let quiet = self.until_quiet();
            if !quiet.is_zero() {
                return Ok(Some(quiet));
            }
            let run = self.begin()?;
            self.runs.push(run);
        }
        Ok(None)
    }

    /// For how long another run is put off.
    fn until_quiet(&self) -> Duration {
        let left = |since: Option<Instant>, time: Duration| {
            since.map_or(Duration::ZERO, |since| time.saturating_sub(since.elapsed()))
        };
        left(self.stirred, QUIET).max(left(self.failed.filter(|_| self.failures > 0), AFTER_FAILURE))
    }

    /// Whether another run is to be started: not beside a command, which that would slow down, unless few wait.
    fn wants_more(&self) -> bool {
        let is_busy = self.runs.iter().any(|run| run.is_busy);
        self.waiting() < if is_busy { self.size.div_ceil(2) } else { self.size }
    }

    fn begin(&self) -> Result<Run, SyscallError> {
        let (said, writer) = descriptor::pipe()?;
        let pid = process::fork()?;
        if pid == 0 {
            let Shared { listener, notices, .. } = &self.shared;
            let own = [listener.as_raw_fd(), notices.as_raw_fd(), writer.as_raw_fd()];
            descriptor::close_all_but(&mut [&[0, 1][..], &own].concat());
            let status = match signal::set_mask(&self.mask) {
                Ok(_) => parked::live(&self.shared, writer),
                Err(_) => UNSUITED,
            };
            process::exit_now(status);
        }
        Ok(Run { pid, held: process::open_pid(pid)?, said, is_ready: false, is_taken: false, is_busy: false })
    }

    /// How many runs wait, or will soon.
    fn waiting(&self) -> usize {
        self.runs.iter().filter(|run| !run.is_taken).count()
    }

    /// Has who asks start the command without the pool.
    fn turn_away(&mut self) {
        if let Ok(Came::Connection(connection)) =
            packet::next(self.shared.listener.as_fd(), None, None, Some(Duration::ZERO))
        {
            let answer = Answer::Refused("none of its runs waits just now".into());
            // What it has sent holds its descriptors open, and who has left something unread cannot answer.
            let _ = packet::hear_no_more(connection.as_fd());
            let _ = packet::send(connection.as_fd(), &[&answer.encode()], &[]);
            self.is_asked();
        }
    }

    fn is_asked(&mut self) {
        self.asked = Instant::now();
        self.stirred = Some(self.asked);
    }

    fn hear(&mut self) {
        let mut notice = [0; Notice::LENGTH];
        let read = descriptor::read(self.notices.as_raw_fd(), &mut notice);
        let Some((notice, pid)) = read.ok().and_then(|_| Notice::decode(notice)) else { return };
        self.failures = 0;
        let Some(run) = self.runs.iter_mut().find(|run| run.pid == pid) else { return };
        if notice == Notice::Ready {
            run.is_ready = true;
            if self.starter.is_some() {
                self.asked = Instant::now();
            }
            self.tell_starter(READY);
        } else {
            (run.is_taken, run.is_busy) = (true, notice == Notice::Taken);
            self.is_asked();
        }
    }

    fn ended(&mut self, place: usize) {
        let run = self.runs.swap_remove(place);
        if !run.is_busy {
            // Whom it did not serve starts cold now, and may change again what the next run would be made from.
            self.stirred = Some(Instant::now() + AFTER_REFUSAL);
        }
        let status = process::wait(Some(run.pid), true, false);
        if status.is_some_and(|(_, change)| change == process::Change::Exited(UNSUITED)) {
            self.fails();
            let why = descriptor::read_until(run.said.as_raw_fd(), Instant::now()).unwrap_or_default();
            if self.starter.is_some() {
                self.tell_starter(&why);
                self.failures = MOST_FAILURES;
            }
        } else if !run.is_taken {
            // Whatever killed it may do so again, or kept it from waiting.
            if !run.is_ready || !matches!(status, Some((_, process::Change::Exited(_)))) {
                self.fails();
            }
        }
    }

    /// Those that fail at once fail for one reason.
    fn fails(&mut self) {
        self.failures += u32::from(self.failed.is_none_or(|last| last.elapsed() >= AFTER_FAILURE));
        self.failed = Some(Instant::now());
    }

    fn tell_starter(&mut self, what: &[u8]) {
        if let Some(starter) = self.starter.take() {
            let _ = descriptor::write_all(starter.as_raw_fd(), what);
        }
    }

    /// Has the runs that wait end. Those that have a command go on.
    fn end(mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = packet::close_to_others(self.shared.listener.as_fd());
        let until = Instant::now() + LONGEST_START;
        // One that has just got a command says so.
        loop {
            self.runs.retain(|run| !run.is_taken);
            let numbers = self.runs.iter().map(|run| run.held.as_raw_fd());
            let numbers = [self.notices.as_raw_fd()].into_iter().chain(numbers);
            let left = until.saturating_duration_since(Instant::now());
            if self.runs.is_empty() || left.is_zero() {
                break;
            }
            let Ok(ready) = descriptor::poll_all(numbers, Some(left)) else { break };
            // A notice that came before the end is heard first.
            match ready.contains(&0) {
                true => self.hear(),
                false => ready.iter().rev().for_each(|place| drop(self.runs.remove(place - 1))),
            }
        }
        self.runs.iter().for_each(|run| process::signal(run.pid, libc::SIGKILL));
    }
}

/// A pool that there is.
#[derive(Debug)]
pub struct Known {
    /// Its process.
    pub pid: Pid,
    /// Where it was started.
    pub directory: Option<PathBuf>,
    /// The words that it was started with.
    pub words: Vec<String>,
    /// How many runs it has, those with a command among them.
    pub runs: usize,
}

/// All pools of this user.
pub fn status() -> Vec<Known> {
    let known = |path: PathBuf| {
        let socket = packet::connect(&path).ok()?;
        let (pid, user) = packet::peer(socket.as_fd()).ok()?;
        let is_own = user == process::user() && peer::is_pool(pid);
        let words = process::about(pid, "cmdline").ok().filter(|_| is_own)?;
        let words = words.split_terminator('\0').skip(3).map(String::from).collect();
        let directory = fs::read_link(format!("/proc/{pid}/cwd")).ok();
        Some(Known { pid, directory, words, runs: process::children_of(pid, pid).len() })
    };
    place::all(&Host::of_this_process()).into_iter().filter_map(known).collect()
}

/// Ends the pool for a request, or all pools. Returns how many there were.
pub fn stop(request: Option<&Request>) -> Result<usize, Refusal> {
    let host = Host::of_this_process();
    let paths = match request {
        None => place::all(&host),
        Some(request) => place::socket(&host, &Key::of(request)?).into_iter().collect(),
    };
    // A pool that starts meanwhile would lose its socket.
    let busy = || Refusal::new("cannot end pools: others are being started just now");
    let alone = |path: &PathBuf| place::alone(path, LONGEST_START).ok_or_else(busy);
    let _alone = paths.first().map(alone).transpose()?;
    let (mut ended, mut left) = (0, None);
    for path in paths.into_iter().filter(|path| path::is_there(path)) {
        let pool = connect(&path).and_then(|socket| {
            let (pid, user) = packet::peer(socket.as_fd())?;
            packet::peer_held(socket.as_fd()).map(|held| (pid, user, held))
        });
        let why = match pool {
            Ok((..1, ..)) => Some(UNSEEN),
            Ok((pid, ..)) if !peer::is_pool(pid) => Some(NO_POOL),
            Ok((pid, user, held)) if user == process::user() => {
                process::signal_held(held.as_fd(), rustix::process::Signal::TERM);
                if !descriptor::readable(held.as_raw_fd(), LONGEST_START) {
                    return Err(Refusal::new(format!("cannot end the pool: process {pid} goes on")));
                }
                ended += 1;
                None
            }
            Ok(_) => Some(NO_POOL),
            Err(failed) if failed.errno() == libc::EAGAIN => Some("it does not answer"),
            Err(failed) if is_dead(&failed) => None,
            // What confines this process does not confine the pool.
            Err(_) => Some(UNSEEN),
        };
        match why {
            Some(why) => left = Some((path, why)),
            None => drop(fs::remove_file(&path)),
        }
    }
    left.map_or(Ok(ended), |(path, why)| {
        Err(Refusal::new(format!("cannot end the pool at '{}': {why}", shown(&path))))
    })
}

/// Whether nobody listens at a socket, or it is gone. What refuses a connection to this process has other errors.
fn is_dead(failed: &SyscallError) -> bool {
    matches!(failed.errno(), libc::ECONNREFUSED | libc::ENOENT)
}

/// A connection, as soon as the queue has room.
fn connect(path: &Path) -> Result<OwnedFd, SyscallError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match packet::connect(path) {
            Err(failed) if failed.errno() == libc::EAGAIN && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            connected => return connected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;

    #[test]
    fn a_socket_is_dead_if_nobody_listens() {
        let scratch = Scratch::create(None).unwrap();
        let path = scratch.path().join("s");
        let listener = packet::listen(&path, BACKLOG).unwrap();
        assert!(connect(&path).is_ok());
        drop(listener);
        assert!(connect(&path).is_err_and(|failed| is_dead(&failed)));
    }
}
