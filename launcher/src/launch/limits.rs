//! The limits of one run: what flags and profile ask for, and by which means each of them is enforced. What cannot be
//! enforced ends the run here.

use crate::cli::Run;
use crate::launch::cgroup::{self, Group, Wanted};
use crate::profile::{Bound, Given, Grants, Origin, Profile, Shared, Syscalls};
use crate::refusal::Refusal;
use crate::supervise::{census, memory};
use crate::sys::privilege::Limit;
use crate::sys::process;
use sbx_policy::calls::Call;
use sbx_policy::errno::ENOSYS;
use std::fmt;
use std::time::Duration;

/// Between SIGTERM and SIGKILL, where nothing else is said.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// Every program needs some memory before its first instruction, and so do the steps before the exec.
const LEAST_DATA: u64 = 16 << 20;
/// The notification descriptor takes the first free number, and standard input to error have three.
const LEAST_FILES: u64 = 4;

/// By which means a limit is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// A control group.
    Group,
    /// A limit of the kernel's on each process (setrlimit(2)).
    Resource,
    /// Each call that makes a task is notified and counted.
    Notification,
    /// The supervisor looks at the clock, the output or the memory.
    Supervisor,
}

impl Means {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Means::Group => "cgroup",
            Means::Resource => "rlimit",
            Means::Notification => "notification",
            Means::Supervisor => "supervisor",
        }
    }
}

/// A limit in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its key in a profile, without `limits.`.
    pub limit: &'static str,
    /// How much: milliseconds, bytes, or a number.
    pub value: u64,
    /// By which means.
    pub means: Means,
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, means) = (self.limit.replace('_', " "), self.means.word());
        match self.limit {
            "timeout" | "cpu" => write!(f, "{limit} {:?} ({means})", Duration::from_millis(self.value)),
            _ => write!(f, "{limit} {} ({means})", self.value),
        }
    }
}

/// A limit that the child sets for itself: the soft and the hard one.
pub type Resource = (Limit, u64, u64);

/// The limits of one run.
#[derive(Debug, Default)]
pub struct Limits {
    /// How long the command may run.
    pub timeout: Option<Duration>,
    /// Between SIGTERM and SIGKILL.
    pub kill_after: Duration,
    /// How much of each stream is passed on.
    pub output: Option<u64>,
    /// How many tasks there may be, where calls are counted.
    pub counted: Option<u64>,
    /// How much memory there may be, where the supervisor looks at it.
    pub watched: Option<u64>,
    /// What the child sets.
    pub resources: Vec<Resource>,
    /// The control group.
    pub group: Option<Group>,
    /// What the command leaves behind stays.
    pub keep_background: bool,
    /// All of them.
    pub applied: Vec<Applied>,
}

/// What the run has to enforce limits with.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// Whether there is a supervisor.
    pub supervised: bool,
    /// Whether it can be notified of calls.
    pub listens: bool,
}

/// The limits that flags and profile ask for; a flag outranks the profile.
pub fn resolve(flags: &Run, profile: &Profile, situation: Situation) -> Result<Limits, Refusal> {
    let said = &profile.limits;
    let timeout = choose(flags.timeout, &said.timeout);
    let output = choose(flags.max_output, &said.output);
    let processes = choose(flags.max_processes, &said.processes);
    let memory = choose(flags.max_memory, &said.memory);
    if !situation.supervised {
        let needy = [
            ("--timeout", "limits.timeout", timeout.is_some(), flags.timeout.is_some()),
            ("--max-output", "limits.output", output.is_some(), flags.max_output.is_some()),
            ("--max-memory", "limits.memory", memory.is_some(), flags.max_memory.is_some()),
        ];
        needy.into_iter().filter(|need| need.2).try_for_each(|need| Err(unsupervised(profile, need)))?;
    }
    if flags.keep_background {
        let ends = [
            ("--max-output", output.is_some()),
            ("--max-processes", processes.is_some()),
            ("--max-memory", memory.is_some()),
        ];
        ends.into_iter().filter(|end| end.1).try_for_each(|end| Err(forgotten(end.0)))?;
    }
    let mut limits = Limits {
        timeout,
        output,
        keep_background: flags.keep_background,
        kill_after: kill_after(flags, timeout)?,
        ..Limits::default()
    };
    limits.apply("timeout", timeout.map(milliseconds), Means::Supervisor);
    limits.apply("output", output, Means::Supervisor);
    limits.resources(flags, profile)?;
    if situation.supervised && (processes.is_some() || memory.is_some()) {
        limits.group = cgroup::create(Wanted { processes, memory });
    }
    limits.processes(processes, situation)?;
    limits.memory(memory)?;
    Ok(limits)
}

fn choose<T: Copy>(flag: Option<Bound<T>>, said: &Option<Given<Bound<T>>>) -> Option<T> {
    flag.or(said.as_deref().copied()).and_then(Bound::limit)
}

fn unsupervised(profile: &Profile, (flag, key, _, by_flag): (&str, &str, bool, bool)) -> Refusal {
    if by_flag {
        return Refusal::new(format!(
            "{flag} and --exec contradict each other: without a supervisor nobody enforces the limit; leave one of them out"
        ));
    }
    Refusal::new(format!(
        "cannot enforce '{key}' of profile '{}' with --exec, for want of a supervisor: leave --exec out, or lift the limit with {flag} none",
        profile.name
    ))
}

fn forgotten(flag: &str) -> Refusal {
    Refusal::new(format!(
        "--keep-background and the limit of {flag} contradict each other: nobody enforces it once the command has ended; leave one of them out, or lift the limit with {flag} none"
    ))
}

fn kill_after(flags: &Run, timeout: Option<Duration>) -> Result<Duration, Refusal> {
    match flags.kill_after {
        None => Ok(KILL_AFTER),
        Some(_) if timeout.is_none() => {
            Err(Refusal::new("--kill-after says how a timeout ends, and there is none: add --timeout"))
        }
        Some(Bound::At(time)) => Ok(time),
        Some(Bound::Unlimited) => Err(Refusal::new(
            "cannot use --kill-after none: a command that ignores SIGTERM would run for ever; name a time",
        )),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

impl Limits {
    fn apply(&mut self, limit: &'static str, value: Option<u64>, means: Means) {
        self.applied.extend(value.map(|value| Applied { limit, value, means }));
    }

    /// What the kernel has limits for.
    fn resources(&mut self, flags: &Run, profile: &Profile) -> Result<(), Refusal> {
        let said = &profile.limits;
        let open_files = choose(flags.max_open_files, &said.open_files);
        let file_size = choose(flags.max_file_size, &said.file_size);
        // In whole seconds, so rounded up.
        let cpu =
            choose(flags.max_cpu, &said.cpu).map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0));
        if let Some(few) = open_files.filter(|count| *count < LEAST_FILES) {
            return Err(Refusal::new(format!(
                "cannot start a command with {few} open files: standard input, output and error and the file of the program are {LEAST_FILES}"
            )));
        }
        // A core file would hold what the command had in memory, and lie about for others.
        self.resources.push((Limit::Core, 0, 0));
        self.resources.extend(open_files.map(|count| (Limit::OpenFiles, count, count)));
        self.resources.extend(file_size.map(|bytes| (Limit::FileSize, bytes, bytes)));
        // A second for the handler of SIGXCPU, then SIGKILL.
        self.resources.extend(cpu.map(|seconds| (Limit::Cpu, seconds, seconds + 1)));
        self.apply("open_files", open_files, Means::Resource);
        self.apply("file_size", file_size, Means::Resource);
        self.apply("cpu", cpu.map(|seconds| seconds.saturating_mul(1000)), Means::Resource);
        Ok(())
    }

    fn processes(&mut self, wanted: Option<u64>, situation: Situation) -> Result<(), Refusal> {
        let Some(count) = wanted else { return Ok(()) };
        if self.group.as_ref().is_some_and(|group| group.limits.processes.is_some()) {
            self.apply("processes", wanted, Means::Group);
        } else if situation.listens {
            self.counted = wanted;
            self.apply("processes", wanted, Means::Notification);
        } else if process::real_user() == 0 {
            return Err(Refusal::new(
                "cannot limit processes here: nobody can be notified of each new one, and the kernel's own limit does not hold for root; run as another user, or lift the limit with --max-processes none",
            ));
        } else {
            let all = process::tasks_of_user(process::real_user()).saturating_add(count);
            self.resources.push((Limit::UserTasks, all, all));
            self.apply("processes", wanted, Means::Resource);
        }
        Ok(())
    }

    fn memory(&mut self, wanted: Option<u64>) -> Result<(), Refusal> {
        if self.group.as_ref().is_some_and(|group| group.limits.memory.is_some()) {
            self.apply("memory", wanted, Means::Group);
            return Ok(());
        }
        if wanted.is_some() && !memory::can_be_watched() {
            return Err(Refusal::new(
                "cannot limit memory here: there is no control group for it, and /proc does not show other processes (mounted with hidepid, or for another pid namespace, or not to be listed under a filter around this process); mount it anew, or lift the limit with --max-memory none",
            ));
        }
        self.watched = wanted;
        // One process alone does not get far beyond the limit while nobody looks.
        self.resources
            .extend(wanted.map(|bytes| bytes.max(LEAST_DATA)).map(|bytes| (Limit::Data, bytes, bytes)));
        self.apply("memory", wanted, Means::Supervisor);
        Ok(())
    }
}

/// The same calls, each that makes a task being notified. What clone3 would make stands in memory, where it can be
/// changed while it is looked at; libraries go on without it.
pub fn counting_tasks(syscalls: &Syscalls) -> Syscalls {
    let origin = Shared::from(Origin {
        profile: Shared::Fixed("command line"),
        built_in: false,
        key: "limits.processes",
        index: None,
        entry: "".into(),
        why: None,
    });
    let mut counted = syscalls.clone();
    for call in census::CALLS.iter().filter_map(|name| Call::named(name.as_bytes())) {
        counted.calls.change(call, |said| {
            if call.name() == "clone3" {
                (said.deny, said.errno) = (Grants::All(origin.clone()), Some(ENOSYS));
            } else if !said.allow.is_none() {
                said.log = Some(origin.clone());
            }
        });
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Search, load};

    #[test]
    fn every_call_that_makes_a_task_is_notified_and_none_is_added() {
        for name in ["workspace", "network", "minimal", "no-exec"] {
            let profile = load(std::ffi::OsStr::new(name), &Search::default()).unwrap();
            let counted = counting_tasks(&profile.syscalls);
            for name in census::CALLS {
                let call = Call::named(name.as_bytes()).unwrap();
                let said = counted.calls.get(call).unwrap();
                let allowed = profile.syscalls.calls.get(call).is_some_and(|said| !said.allow.is_none());
                match name {
                    "clone3" => assert_eq!((said.deny.is_none(), said.errno), (false, Some(ENOSYS))),
                    _ => {
                        assert_eq!((said.log.is_some(), said.allow.is_none()), (allowed, !allowed), "{name}")
                    }
                }
            }
        }
    }
}
