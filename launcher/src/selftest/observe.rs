//! One run of the self-test, confined or not, and what was seen of it.

use crate::error::Refusal;
use crate::selftest::acts::Brief;
use crate::selftest::error::SelfTestError;
use crate::selftest::stage::{Stage, Touched, read};
use crate::sys::process::{self, Pid};
use crate::sys::status::Status;
use crate::sys::{descriptor, selftest as sys, tree};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// A run that takes longer counts as stuck.
const LIMIT: Duration = Duration::from_secs(10);
/// How long a killed process may take to disappear.
const MOMENT: Duration = Duration::from_millis(200);
/// The exit status of a process that a filter has killed.
pub const BY_FILTER: i32 = 128 + libc::SIGSYS;
/// Longest line that the self-test may print.
const LONGEST: usize = 1 << 16;
/// How the line begins that a child prints if its run was refused.
const REFUSED: &str = "refused ";

/// The outcome of an act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It succeeded.
    Done,
    /// It failed with this error number.
    Errno(i32),
    /// The self-test ended at it, with this status.
    Ended(i32),
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The outcome of each act.
    pub replies: BTreeMap<String, Reply>,
    /// What has changed outside, or was reached there.
    pub touched: Touched,
    /// Whether /proc does not show the self-test.
    pub blind: bool,
}

/// How the self-test is started: the body of a child, given the acts that are left.
pub type Body<'a> = &'a dyn Fn(&Brief, &[&str]) -> Result<i32, Refusal>;

/// Tries the acts. After an act that ends the self-test, it is started again for the rest.
pub fn observe(stage: &Stage, acts: &[&str], body: Body<'_>) -> Result<Seen, SelfTestError> {
    let mut seen = Seen::default();
    let mut left: VecDeque<&str> = acts.iter().copied().collect();
    let mut daemon = None;
    // Each round settles one act at least.
    for _ in 0..=acts.len() {
        let todo: Vec<&str> = ["begin"].into_iter().chain(left.iter().copied()).collect();
        let status = Running::start(stage, &todo, body)?.listen(stage, &mut seen, &mut left, &mut daemon)?;
        let Some(act) = left.pop_front() else { break };
        if status == 0 {
            return Err(SelfTestError::Ended(act.to_string()));
        }
        seen.replies.insert(act.to_string(), Reply::Ended(status));
    }
    seen.touched.append(&mut stage.touched());
    if let Some((daemon, held)) = daemon
        && !descriptor::readable(held.as_raw_fd(), MOMENT)
    {
        seen.touched.insert("process-left");
        process::signal(daemon, libc::SIGKILL);
    }
    Ok(seen)
}

/// A self-test that runs.
struct Running {
    pid: Pid,
    input: OwnedFd,
    output: OwnedFd,
    buffer: Vec<u8>,
    deadline: Instant,
}

impl Running {
    fn start(stage: &Stage, acts: &[&str], body: Body<'_>) -> Result<Running, SelfTestError> {
        let failed = |failed| SelfTestError::Call("start", failed);
        let (read_end, input) = descriptor::pipe().map_err(failed)?;
        let (output, write_end) = descriptor::pipe().map_err(failed)?;
        let environment = stage.environment();
        let variables: Vec<(&OsStr, &OsStr)> =
            environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        let brief = stage.brief();
        let pid = sys::spawn((&read_end, &write_end), &variables, || {
            body(&brief, acts).unwrap_or_else(|refusal| {
                let line = format!("{REFUSED}{refusal}\n");
                let _ = descriptor::write_all(1, line.as_bytes());
                refusal.status().into()
            })
        })
        .map_err(failed)?;
        Ok(Running { pid, input, output, buffer: Vec::new(), deadline: Instant::now() + LIMIT })
    }

    /// Records its lines until it has ended, and returns its exit status.
    fn listen(
        &mut self,
        stage: &Stage,
        seen: &mut Seen,
        left: &mut VecDeque<&str>,
        daemon: &mut Option<(Pid, OwnedFd)>,
    ) -> Result<i32, SelfTestError> {
        let mut own = None;
        while let Some(line) = self.line()? {
            if line.contains(&stage.secret) {
                seen.touched.insert("secret-told");
            }
            if let Some(sentence) = line.strip_prefix(REFUSED) {
                sys::wait(self.pid);
                return Err(SelfTestError::RunRefused(sentence.to_string()));
            }
            let Some((act, answer)) = line.split_once(' ') else { continue };
            let done = answer.strip_prefix('+');
            match (act, done) {
                ("begin", Some(number)) => own = number.parse::<Pid>().ok(),
                ("pause", _) => {
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
        own.map_or(Err(SelfTestError::Mute(status)), |_| Ok(status))
    }

    /// The number out here of a process that the self-test knows by another one, if it runs in a pid
    /// namespace. Its own process is `own` there.
    fn outside(&self, own: Option<Pid>, number: Pid) -> Pid {
        let all: Vec<Pid> = [self.pid].into_iter().chain(tree::descendants(self.pid)).collect();
        if own.is_some_and(|own| all.contains(&own)) {
            // No namespace: the number is the same. A daemon is not among the descendants any more.
            return number;
        }
        all.into_iter().find(|pid| process::number_inside(*pid) == Some(number)).unwrap_or(0)
    }

    fn line(&mut self) -> Result<Option<String>, SelfTestError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                return Ok(Some(String::from_utf8_lossy(line.get(..end).unwrap_or(&[])).into_owned()));
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if self.buffer.len() > LONGEST || !descriptor::readable(self.output.as_raw_fd(), left) {
                process::signal(self.pid, libc::SIGKILL);
                sys::wait(self.pid);
                return Err(SelfTestError::TooLong);
            }
            let mut chunk = [0; 4096];
            match descriptor::read(self.output.as_raw_fd(), &mut chunk) {
                Ok(count @ 1..) => self.buffer.extend(chunk.get(..count).unwrap_or(&[])),
                _ => return Ok(None),
            }
        }
    }
}

/// Looks at what the kernel says about the self-test while it waits.
fn look_at(pid: Pid, stage: &Stage, seen: &mut Seen) {
    let file = |name: &str| read(Path::new(&format!("/proc/{pid}/{name}")));
    let (status, limits, environ) = (Status::of(pid).ok(), file("limits"), file("environ"));
    let descriptors = Path::new(&format!("/proc/{pid}/fd")).read_dir();
    let (Some(status), Some(limits), Some(environ), Ok(descriptors)) = (status, limits, environ, descriptors)
    else {
        seen.blind = true;
        return;
    };
    let limits = String::from_utf8_lossy(&limits);
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap_or("");
    let secret = stage.secret.as_bytes();
    let facts = [
        (
            ["CapInh", "CapPrm", "CapEff", "CapAmb"].iter().any(|name| status.set(name) != 0),
            "capabilities-held",
        ),
        (status.field("NoNewPrivs") != Some("1"), "privileges-to-gain"),
        (status.field("Seccomp") != Some("2"), "no-filter"),
        (core.split_whitespace().take(2).any(|limit| limit != "0"), "core-file"),
        (environ.windows(secret.len()).any(|window| window == secret), "secret-in-environment"),
        (descriptors.flatten().any(|entry| foreign(&entry.file_name())), "descriptor-passed"),
    ];
    seen.touched.extend(facts.iter().filter(|(yes, _)| *yes).map(|(_, name)| *name));
}

/// Whether it is none of the standard descriptors.
fn foreign(number: &OsStr) -> bool {
    number.to_str().and_then(|text| text.parse::<i32>().ok()).is_some_and(|number| number > 2)
}
