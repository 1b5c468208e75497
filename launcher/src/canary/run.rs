//! One run of the canaries, confined or not, and what was seen of it.

use super::acts::Brief;
use super::stage::{Stage, Touched, read};
use crate::refusal::Refusal;
use crate::supervise::tree;
use crate::sys::process::{self, Pid};
use crate::sys::{canary as sys, descriptor, probe};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// A run that takes longer is stuck.
const LIMIT: Duration = Duration::from_secs(10);
/// What a killed process may take to be gone.
const MOMENT: Duration = Duration::from_millis(200);
/// The exit status of what a filter has ended.
pub const BY_FILTER: i32 = 128 + libc::SIGSYS;
/// Longest line of a canary.
const LONGEST: usize = 1 << 16;
/// What a child says instead of the canary's first line where the run was refused.
const REFUSED: &str = "refused ";

/// What an act came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It succeeded.
    Done,
    /// It failed with this error number.
    Errno(i32),
    /// The canary ended at it, with this status.
    Ended(i32),
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// By act.
    pub replies: BTreeMap<String, Reply>,
    /// Outside.
    pub touched: Touched,
    /// Facts that could not be looked at from outside.
    pub blind: bool,
}

/// How a canary is started: as a body for a child, given the acts that are left.
pub type Body<'a> = &'a dyn Fn(&Brief, &[&str]) -> Result<i32, Refusal>;

/// Runs the acts, starting again behind one that ends the canary.
pub fn observe(stage: &Stage, acts: &[&str], body: Body<'_>) -> Result<Seen, Refusal> {
    let mut seen = Seen::default();
    let mut left: VecDeque<&str> = acts.iter().copied().collect();
    let mut daemon = None;
    // Each round settles one act at least.
    for _ in 0..=acts.len() {
        let todo: Vec<&str> = ["begin"].into_iter().chain(left.iter().copied()).collect();
        let mut canary = Canary::start(stage, &todo, body)?;
        let status = canary.listen(stage, &mut seen, &mut left, &mut daemon)?;
        let Some(act) = left.pop_front() else { break };
        if status == 0 {
            return Err(Refusal::new(format!("cannot test: the canary ended before it had tried '{act}'")));
        }
        seen.replies.insert(act.to_string(), Reply::Ended(status));
    }
    seen.touched.append(&mut stage.touched());
    if let Some((daemon, held)) = daemon
        && !probe::readable(held.as_raw_fd(), MOMENT)
    {
        seen.touched.insert("process-left");
        process::signal(daemon, libc::SIGKILL);
    }
    Ok(seen)
}

/// A canary that is under way.
struct Canary {
    pid: Pid,
    input: OwnedFd,
    output: OwnedFd,
    buffer: Vec<u8>,
    deadline: Instant,
}

impl Canary {
    fn start(stage: &Stage, acts: &[&str], body: Body<'_>) -> Result<Canary, Refusal> {
        let system =
            |failed: crate::sys::Failed| Refusal::new(format!("cannot start the canaries: {failed}"));
        let (read_end, input) = descriptor::pipe().map_err(system)?;
        let (output, write_end) = descriptor::pipe().map_err(system)?;
        let environment = stage.environment();
        let variables: Vec<(&OsStr, &OsStr)> =
            environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        let brief = stage.brief();
        let pid = sys::spawn((&read_end, &write_end), &variables, || {
            body(&brief, acts).unwrap_or_else(|refusal| {
                let line = format!("{REFUSED}{}\n", refusal.sentence);
                let _ = descriptor::write_all(1, line.as_bytes());
                refusal.code.into()
            })
        })
        .map_err(system)?;
        Ok(Canary { pid, input, output, buffer: Vec::new(), deadline: Instant::now() + LIMIT })
    }

    /// Takes its lines down until it has ended, and returns its status.
    fn listen(
        &mut self,
        stage: &Stage,
        seen: &mut Seen,
        left: &mut VecDeque<&str>,
        daemon: &mut Option<(Pid, OwnedFd)>,
    ) -> Result<i32, Refusal> {
        let mut own = None;
        while let Some(line) = self.line()? {
            if line.contains(&stage.secret) {
                seen.touched.insert(if line.starts_with("read-memory ") {
                    "memory-told"
                } else {
                    "secret-told"
                });
            }
            if let Some(sentence) = line.strip_prefix(REFUSED) {
                sys::wait(self.pid);
                return Err(Refusal::new(sentence));
            }
            let Some((act, answer)) = line.split_once(' ') else { continue };
            let done = answer.strip_prefix('+');
            match (act, done) {
                ("begin", Some(number)) => own = number.parse::<Pid>().ok(),
                ("here", _) => {
                    look_at(self.outside(own, own.unwrap_or(0)), stage, seen);
                    let _ = descriptor::write_all(self.input.as_raw_fd(), b"\n");
                }
                ("daemon", Some(number)) => {
                    let pid = self.outside(own, number.parse().unwrap_or(0));
                    *daemon = process::open_pid(pid).ok().map(|held| (pid, held));
                }
                _ => {}
            }
            if left.front() == Some(&act) {
                left.pop_front();
                let errno = answer.strip_prefix('-').and_then(|text| text.parse().ok());
                let reply = done.map_or(Reply::Errno(errno.unwrap_or(libc::EIO)), |_| Reply::Done);
                seen.replies.insert(act.to_string(), reply);
            }
        }
        let status = sys::wait(self.pid);
        match own {
            None => Err(Refusal::new(format!(
                "cannot test: the canary could not even say that it had begun (exit status {status}); the profile has to let a program start and write to its standard output"
            ))),
            Some(_) => Ok(status),
        }
    }

    /// The number out here of a process that the canary, `own` in its own words, knows by this one: they may be in a
    /// pid namespace.
    fn outside(&self, own: Option<Pid>, number: Pid) -> Pid {
        let all: Vec<Pid> = [self.pid].into_iter().chain(tree::descendants(self.pid)).collect();
        if own.is_some_and(|own| all.contains(&own)) {
            // A daemon is nobody's descendant any more.
            return number;
        }
        all.into_iter().find(|pid| process::number_inside(*pid) == Some(number)).unwrap_or(0)
    }

    fn line(&mut self) -> Result<Option<String>, Refusal> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                return Ok(Some(String::from_utf8_lossy(line.get(..end).unwrap_or(&[])).into_owned()));
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if self.buffer.len() > LONGEST || !probe::readable(self.output.as_raw_fd(), left) {
                process::signal(self.pid, libc::SIGKILL);
                sys::wait(self.pid);
                return Err(Refusal::new("cannot test: the canary was not done after ten seconds"));
            }
            let mut chunk = [0; 4096];
            match descriptor::read(self.output.as_raw_fd(), &mut chunk) {
                Ok(count @ 1..) => self.buffer.extend(chunk.get(..count).unwrap_or(&[])),
                _ => return Ok(None),
            }
        }
    }
}

/// What the kernel says about the canary, asked from outside while it waits.
fn look_at(pid: Pid, stage: &Stage, seen: &mut Seen) {
    let file = |name: &str| read(Path::new(&format!("/proc/{pid}/{name}")));
    let (status, limits, environ) = (file("status"), file("limits"), file("environ"));
    let descriptors = Path::new(&format!("/proc/{pid}/fd")).read_dir();
    let (Some(status), Some(limits), Some(environ), Ok(descriptors)) = (status, limits, environ, descriptors)
    else {
        seen.blind = true;
        return;
    };
    let (status, limits) = (String::from_utf8_lossy(&status), String::from_utf8_lossy(&limits));
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim);
    let empty = |name: &str| field(name).bytes().all(|digit| digit == b'0');
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap_or("");
    let secret = stage.secret.as_bytes();
    let facts = [
        (!["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"].into_iter().all(empty), "capabilities-held"),
        (field("NoNewPrivs:") != "1", "privileges-to-gain"),
        (field("Seccomp:") != "2", "no-filter"),
        (core.split_whitespace().take(2).any(|limit| limit != "0"), "core-file"),
        (environ.windows(secret.len()).any(|window| window == secret), "secret-in-environment"),
        (descriptors.flatten().any(|entry| foreign(&entry.file_name())), "descriptor-passed"),
    ];
    seen.touched.extend(facts.iter().filter(|(yes, _)| *yes).map(|(_, name)| *name));
}

fn foreign(number: &OsStr) -> bool {
    number.to_str().and_then(|text| text.parse::<i32>().ok()).is_some_and(|number| number > 2)
}
