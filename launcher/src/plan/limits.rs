//! The limits of one run: what flags and profile ask for, and by which means each of them is enforced. What cannot be
//! enforced ends the run here.

use crate::error::EndsRun;
use crate::host::Host;
use crate::plan::GroupLimits;
use crate::profile::{Bound, Given, Profile};
use crate::request::Request;
use crate::sys::privilege::Limit;
use sbx_client::report::Unit;
use std::fmt;
use std::time::Duration;

/// The time between SIGTERM and SIGKILL without `--kill-after`.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// Every program needs some memory before its first instruction, and so do the steps before the exec.
const LEAST_DATA: u64 = 16 << 20;

/// By which means a limit is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A control group.
    Group,
    /// A limit of the kernel's on each process (setrlimit(2)).
    Resource,
    /// Each call that makes a task is notified and counted.
    Notification,
    /// The supervisor looks at the clock, the output or the memory.
    Supervisor,
}

impl Mechanism {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Mechanism::Group => "cgroup",
            Mechanism::Resource => "rlimit",
            Mechanism::Notification => "notification",
            Mechanism::Supervisor => "supervisor",
        }
    }
}

/// A limit, as a profile names it below `limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKey {
    /// Running time, in milliseconds.
    Timeout,
    /// Bytes of each stream.
    Output,
    /// Processes and threads.
    Processes,
    /// Descriptors of a process.
    OpenFiles,
    /// Bytes of a file.
    FileSize,
    /// Bytes of memory.
    Memory,
    /// Processor time of a process, in milliseconds.
    Cpu,
}

impl LimitKey {
    /// The key, without `limits.`.
    pub fn word(self) -> &'static str {
        match self {
            LimitKey::Timeout => "timeout",
            LimitKey::Output => "output",
            LimitKey::Processes => "processes",
            LimitKey::OpenFiles => "open_files",
            LimitKey::FileSize => "file_size",
            LimitKey::Memory => "memory",
            LimitKey::Cpu => "cpu",
        }
    }

    /// What it counts.
    pub fn unit(self) -> Unit {
        match self {
            LimitKey::Timeout | LimitKey::Cpu => Unit::Ms,
            LimitKey::Processes | LimitKey::OpenFiles => Unit::Count,
            LimitKey::Output | LimitKey::FileSize | LimitKey::Memory => Unit::Bytes,
        }
    }
}

/// A limit in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Which.
    pub limit: LimitKey,
    /// How much, in its unit.
    pub value: u64,
    /// By which means.
    pub means: Mechanism,
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, means) = (self.limit.word().replace('_', " "), self.means.word());
        match self.limit.unit() {
            Unit::Ms => write!(f, "{limit} {:?} ({means})", Duration::from_millis(self.value)),
            _ => write!(f, "{limit} {} ({means})", self.value),
        }
    }
}

/// A limit that the child sets for itself: the soft and the hard one.
pub type Resource = (Limit, u64, u64);

/// The limits of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How long the command may run.
    pub timeout: Option<Duration>,
    /// Between SIGTERM and SIGKILL; `None`: for ever.
    pub kill_after: Option<Duration>,
    /// How much of each stream is passed on.
    pub output: Option<u64>,
    /// How many tasks there may be, where calls are counted.
    pub counted: Option<u64>,
    /// How much memory there may be, where the supervisor looks at it.
    pub watched: Option<u64>,
    /// What the child sets.
    pub resources: Vec<Resource>,
    /// What the command leaves behind stays.
    pub keep_background: bool,
    /// All of them.
    pub applied: Vec<Applied>,
}

impl Limits {
    /// A limit that the child sets for itself.
    pub fn resource(&self, wanted: Limit) -> Option<u64> {
        self.resources.iter().find(|(limit, ..)| *limit == wanted).map(|(_, soft, _)| *soft)
    }
}

/// What flags and profile ask for.
#[derive(Debug, Default)]
pub struct Asked {
    timeout: Option<Duration>,
    kill_after: Option<Duration>,
    output: Option<u64>,
    processes: Option<u64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    open_files: Option<u64>,
    file_size: Option<u64>,
    /// Seconds, rounded up: the kernel counts in whole ones.
    cpu: Option<u64>,
    keep_background: bool,
}

/// What a run has to enforce limits with.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// What a control group limits.
    pub group: GroupLimits,
    /// Whether the supervisor can be notified of calls.
    pub listens: bool,
    /// Whether the supervisor can look at the memory of the run.
    pub watches_memory: bool,
}

/// Limits that nobody would enforce, or that no run can have.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unenforced {
    #[error(
        "{0} and --exec contradict each other: without a supervisor nobody enforces the limit; \
         leave one of them out"
    )]
    FlagWithExec(&'static str),
    #[error(
        "cannot enforce '{key}' of profile '{profile}' with --exec, for want of a supervisor: \
         leave --exec out, or lift the limit with {flag} none"
    )]
    KeyWithExec { key: &'static str, profile: String, flag: &'static str },
    #[error(
        "--keep-background and the limit of {0} contradict each other: nobody enforces it once the command \
         has ended; leave one of them out, or lift the limit with {0} none"
    )]
    WithBackground(&'static str),
    #[error("cannot use --kill-after none: a command that ignores SIGTERM would run for ever; name a time")]
    NeverKilled,
    #[error(
        "cannot limit processes here: nobody can be notified of each new one, and the kernel's own limit does \
         not hold for root; run as another user, or lift the limit with --max-processes none"
    )]
    Processes,
    #[error(
        "cannot limit memory here: there is no control group for it, and /proc does not show other processes \
         (it is mounted with hidepid, belongs to another pid namespace, or an outer filter refuses to list it); \
         remount /proc, or lift the limit with --max-memory none"
    )]
    Memory,
}

impl EndsRun for Unenforced {}

/// The limits that flags and profile ask for; a flag outranks the profile.
pub(crate) fn ask(request: &Request, profile: &Profile) -> Result<Asked, Unenforced> {
    let said = &profile.limits;
    let timeout = choose(request.timeout, &said.timeout);
    let seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let asked = Asked {
        timeout,
        kill_after: kill_after(request, timeout)?,
        output: choose(request.max_output, &said.output),
        processes: choose(request.max_processes, &said.processes),
        memory: choose(request.max_memory, &said.memory),
        open_files: choose(request.max_open_files, &said.open_files),
        file_size: choose(request.max_file_size, &said.file_size),
        cpu: choose(request.max_cpu, &said.cpu).map(seconds),
        keep_background: request.keep_background,
    };
    if request.exec {
        asked.without_supervisor(request, profile)?;
    }
    if request.keep_background {
        asked.without_end()?;
    }
    Ok(asked)
}

impl Asked {
    /// Refuses what only a supervisor enforces.
    fn without_supervisor(&self, request: &Request, profile: &Profile) -> Result<(), Unenforced> {
        if request.kill_after.is_some() {
            return Err(Unenforced::FlagWithExec("--kill-after"));
        }
        let needs = [
            ("--timeout", "limits.timeout", self.timeout.is_some(), request.timeout.is_some()),
            ("--max-output", "limits.output", self.output.is_some(), request.max_output.is_some()),
            ("--max-memory", "limits.memory", self.memory.is_some(), request.max_memory.is_some()),
        ];
        match needs.into_iter().find(|need| need.2) {
            None => Ok(()),
            Some((flag, _, _, true)) => Err(Unenforced::FlagWithExec(flag)),
            Some((flag, key, ..)) => {
                Err(Unenforced::KeyWithExec { key, profile: profile.name.to_string(), flag })
            }
        }
    }

    /// Refuses what nobody enforces once the command has ended.
    fn without_end(&self) -> Result<(), Unenforced> {
        let ends = [
            ("--max-output", self.output.is_some()),
            ("--max-processes", self.processes.is_some()),
            ("--max-memory", self.memory.is_some()),
        ];
        match ends.into_iter().find(|end| end.1) {
            Some((flag, _)) => Err(Unenforced::WithBackground(flag)),
            None => Ok(()),
        }
    }

    /// What a control group could limit.
    pub fn of_group(&self) -> Option<GroupLimits> {
        let limits = GroupLimits { processes: self.processes, memory: self.memory };
        (limits != GroupLimits::default()).then_some(limits)
    }

    /// The limits with their means.
    pub(crate) fn apply(self, means: Means, host: &Host) -> Result<Limits, Unenforced> {
        let mut limits = Limits {
            timeout: self.timeout,
            output: self.output,
            keep_background: self.keep_background,
            kill_after: self.kill_after,
            ..Limits::default()
        };
        limits.apply(LimitKey::Timeout, self.timeout.map(milliseconds), Mechanism::Supervisor);
        limits.apply(LimitKey::Output, self.output, Mechanism::Supervisor);
        limits.resources(&self);
        limits.processes(self.processes, means, host)?;
        limits.memory(self.memory, means)?;
        Ok(limits)
    }
}

fn choose<T: Copy>(flag: Option<Bound<T>>, said: &Option<Given<Bound<T>>>) -> Option<T> {
    flag.or(said.as_deref().copied()).and_then(Bound::limit)
}

fn kill_after(request: &Request, timeout: Option<Duration>) -> Result<Option<Duration>, Unenforced> {
    match request.kill_after {
        None => Ok(Some(KILL_AFTER)),
        Some(Bound::At(time)) => Ok(Some(time)),
        Some(Bound::Unlimited) if timeout.is_some() => Err(Unenforced::NeverKilled),
        Some(Bound::Unlimited) => Ok(None),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

impl Limits {
    fn apply(&mut self, limit: LimitKey, value: Option<u64>, means: Mechanism) {
        self.applied.extend(value.map(|value| Applied { limit, value, means }));
    }

    /// What the kernel has limits for.
    fn resources(&mut self, asked: &Asked) {
        let Asked { open_files, file_size, cpu, .. } = *asked;
        // A core file would hold what the command had in memory, and stay where others find it.
        self.resources.push((Limit::Core, 0, 0));
        self.resources.extend(open_files.map(|count| (Limit::OpenFiles, count, count)));
        self.resources.extend(file_size.map(|bytes| (Limit::FileSize, bytes, bytes)));
        // A second for the handler of SIGXCPU, then SIGKILL.
        self.resources.extend(cpu.map(|seconds| (Limit::Cpu, seconds, seconds + 1)));
        self.apply(LimitKey::OpenFiles, open_files, Mechanism::Resource);
        self.apply(LimitKey::FileSize, file_size, Mechanism::Resource);
        self.apply(LimitKey::Cpu, cpu.map(|seconds| seconds.saturating_mul(1000)), Mechanism::Resource);
    }

    fn processes(&mut self, wanted: Option<u64>, means: Means, host: &Host) -> Result<(), Unenforced> {
        let Some(count) = wanted else { return Ok(()) };
        if means.group.processes.is_some() {
            self.apply(LimitKey::Processes, wanted, Mechanism::Group);
        } else if means.listens {
            self.counted = wanted;
            self.apply(LimitKey::Processes, wanted, Mechanism::Notification);
        } else if *host.real_user.get() == 0 {
            return Err(Unenforced::Processes);
        } else {
            let all = host.tasks.get().saturating_add(count);
            self.resources.push((Limit::UserTasks, all, all));
            self.apply(LimitKey::Processes, wanted, Mechanism::Resource);
        }
        Ok(())
    }

    fn memory(&mut self, wanted: Option<u64>, means: Means) -> Result<(), Unenforced> {
        if means.group.memory.is_some() {
            self.apply(LimitKey::Memory, wanted, Mechanism::Group);
            return Ok(());
        }
        if wanted.is_some() && !means.watches_memory {
            return Err(Unenforced::Memory);
        }
        self.watched = wanted;
        // One process alone does not get far beyond the limit while nobody looks.
        self.resources
            .extend(wanted.map(|bytes| bytes.max(LEAST_DATA)).map(|bytes| (Limit::Data, bytes, bytes)));
        self.apply(LimitKey::Memory, wanted, Mechanism::Supervisor);
        Ok(())
    }
}
