//! The processes beside a command while it runs: the private memory and the threads of the supervisor, and of the
//! reaper and the broker where there are any.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use crate::contestants::{self, Contestant, Words};
use crate::options::Options;
use crate::report::{Column, Outcome, Report, Row, Target};
use crate::scratch::Scratch;
use crate::stats::{self, Sorted};
use crate::{Result, network, race, report, run, sys};

/// The most private memory that a supervisor should take.
const LIMIT_MIB: f64 = 1.5;

/// The same of a broker with a hundred connections.
const BROKER_LIMIT_MIB: f64 = 4.0;

/// The figures of a row.
const COLUMNS: [Column; 4] = [
    Column { key: "private_kib", heading: "private KiB", digits: 0 },
    Column { key: "private_clean_kib", heading: "of it clean", digits: 0 },
    Column { key: "private_dirty_kib", heading: "dirty", digits: 0 },
    Column { key: "threads", heading: "threads", digits: 0 },
];

/// The processes that may run beside a command, as rows are named.
const ROLES: [&str; 3] = ["supervisor", "reaper", "broker"];

/// The figures of one process.
type Figures = [f64; COLUMNS.len()];

/// A run to inspect.
struct Entry {
    contestant: Contestant,
    ids: [&'static str; ROLES.len()],
    state: std::result::Result<Words, Outcome>,
    /// One a round, for each role.
    samples: [Vec<Figures>; ROLES.len()],
}

/// Inspects every run once a round.
pub(crate) fn measure(options: &Options) -> Result<Report> {
    let sbx = contestants::find_sbx(options.sbx.as_deref())?;
    sys::catch_alarm()?;
    let scratch = Scratch::enter()?;
    let seed = options.seed.unwrap_or_else(stats::fresh_seed);
    let mut entries = admit(&sbx, &scratch)?;
    race::interleave(&mut entries, options, seed, Entry::look_once);
    Ok(Report {
        title: "Memory beside a command that waits".into(),
        facts: report::facts(&sbx, options, seed),
        columns: COLUMNS.to_vec(),
        targets: entries.iter().flat_map(targets).collect(),
        rows: entries.iter().flat_map(Entry::rows).collect(),
        ..Report::default()
    })
}

fn admit(sbx: &Path, scratch: &Scratch) -> Result<Vec<Entry>> {
    let command: [OsString; 1] = [contestants::first_program(&["/bin/cat", "/usr/bin/cat"])?.into()];
    let env = contestants::environment(scratch);
    let entry = |contestant: Contestant, ids, command: &[OsString]| {
        let state = contestant.tried(&env).and_then(|_| contestant.words(command, &env));
        Entry { contestant, ids, state, samples: Default::default() }
    };
    let port = network::server::start()?;
    let holding = [scratch.copy_of_self()?.into(), network::child::HOLD.into(), port.to_string().into()];
    let flags = format!("--host-port {port}");
    Ok(vec![
        entry(
            contestants::sbx("minimal", sbx, "--profile minimal"),
            ["minimal-supervisor", "minimal-reaper", "minimal-broker"],
            &command,
        ),
        entry(
            contestants::sbx("workspace", sbx, ""),
            ["workspace-supervisor", "workspace-reaper", "workspace-broker"],
            &command,
        ),
        entry(
            contestants::sbx("connections", sbx, &flags)
                .named("`sbx run --host-port PORT --`, 100 connections:"),
            ["connections-supervisor", "connections-reaper", "connections-broker"],
            &holding,
        ),
    ])
}

impl Entry {
    fn look_once(&mut self, keep: bool) {
        let Ok(words) = &self.state else { return };
        match look(words) {
            Ok(found) if keep => {
                self.samples.iter_mut().zip(found).for_each(|(all, new)| all.extend(new));
            }
            Ok(_) => {}
            Err(outcome) => self.state = Err(outcome),
        }
    }

    /// A row for each process that was found; one with the reason, where nothing could be found.
    fn rows(&self) -> Vec<Row> {
        let row = |role: &str, id, outcome| {
            let name = format!("{} {role}", self.contestant.name);
            Row { id, name, outcome }
        };
        let measured = |((role, id), samples): ((&&str, &&'static str), &Vec<Figures>)| {
            (!samples.is_empty()).then(|| row(role, *id, Outcome::Measured(medians(samples))))
        };
        match &self.state {
            Ok(_) => ROLES.iter().zip(&self.ids).zip(&self.samples).filter_map(measured).collect(),
            Err(outcome) => vec![row(ROLES[0], self.ids[0], outcome.clone())],
        }
    }
}

/// How long the command has been waiting when its supervisor is inspected.
const SETTLED: Duration = Duration::from_millis(300);

/// Starts `cat`, lets it repeat a byte, and inspects the processes around it while it waits for the next one. It ends
/// by itself when there is none, so that the run cleans up as it always does.
fn look(words: &Words) -> std::result::Result<[Option<Figures>; ROLES.len()], Outcome> {
    let failed = |what: &str, e: io::Error| Outcome::Failed(format!("{what}: {e}"));
    let (stdin, mut to_command) = io::pipe().map_err(|e| failed("cannot make a pipe", e))?;
    let (mut from_command, stdout) = io::pipe().map_err(|e| failed("cannot make a pipe", e))?;
    let stderr = sys::memory_file().map_err(Outcome::Failed)?;
    let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let prepared = sys::Prepared::new(&words.argv, &words.env, streams).map_err(Outcome::Failed)?;
    let supervisor = prepared.start().map_err(|e| failed("cannot start", e))?;
    // Otherwise the end of the command would not be noticed.
    drop((stdin, stdout));
    sys::set_alarm(run::LIMIT_SECONDS);
    let answer = to_command.write(b"x").and_then(|_| from_command.read(&mut [0]));
    // Only what lasts is measured: an idle supervisor gives back the memory that starting took.
    std::thread::sleep(SETTLED);
    let found = match answer {
        Ok(1) => around(supervisor),
        Ok(_) => Err(Outcome::Failed("ended before it had read anything".into())),
        Err(e) => Err(failed("does not answer", e)),
    };
    drop(to_command);
    let status = run::wait(supervisor);
    sys::set_alarm(0);
    match status {
        Ok(status) if !status.success() => Err(Outcome::Failed(format!("ended with {status}"))),
        Ok(_) => found,
        Err(e) => Err(Outcome::Failed(e)),
    }
}

/// The supervisor, and its children that are the same program: the reaper, which the command is a child of, and the
/// broker, which has no child.
fn around(supervisor: libc::pid_t) -> std::result::Result<[Option<Figures>; ROLES.len()], Outcome> {
    let name = |pid: &str| fs::read(format!("/proc/{pid}/comm"));
    let process = supervisor.to_string();
    let children_of = |pid: &str| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children_of(&process)
        .map_err(|e| Outcome::Failed(format!("cannot list the children of sbx: {e}")))?;
    let own = name(&process).map_err(|e| Outcome::Failed(format!("cannot read the name of sbx: {e}")))?;
    let ours = children.split_whitespace().filter(|child| name(child).is_ok_and(|name| name == own));
    let has_child = |child: &&str| children_of(child).is_ok_and(|children| !children.trim().is_empty());
    let (reapers, brokers): (Vec<&str>, Vec<&str>) = ours.partition(has_child);
    let of_first = |found: Vec<&str>| found.first().copied().map(figures).transpose();
    Ok([Some(figures(&process)?), of_first(reapers)?, of_first(brokers)?])
}

fn figures(pid: &str) -> std::result::Result<Figures, Outcome> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
    let memory = read("smaps_rollup").map_err(|e| match e.kind() {
        ErrorKind::PermissionDenied => {
            Outcome::Absent("needs root: sbx lets nobody else look at its memory".into())
        }
        _ => Outcome::Failed(format!("cannot read the memory of sbx: {e}")),
    })?;
    let status =
        read("status").map_err(|e| Outcome::Failed(format!("cannot read the status of sbx: {e}")))?;
    understand(&memory, &status).map_err(Outcome::Failed)
}

/// The columns, from the texts of smaps_rollup and status.
fn understand(memory: &str, status: &str) -> Result<Figures> {
    let number = |text: &str, key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let number = value.and_then(|v| v.split_whitespace().next()?.parse::<f64>().ok());
        number.ok_or_else(|| format!("the kernel does not say {key}"))
    };
    let (clean, dirty) = (number(memory, "Private_Clean")?, number(memory, "Private_Dirty")?);
    Ok([clean + dirty, clean, dirty, number(status, "Threads")?])
}

fn medians(samples: &[Figures]) -> Vec<Option<f64>> {
    let column = |place| samples.iter().filter_map(|s| s.get(place).copied()).collect();
    (0..COLUMNS.len()).map(|place| Some(Sorted::new(column(place)).median())).collect()
}

fn targets(entry: &Entry) -> Vec<Target> {
    let [supervisor, _, broker] = &entry.samples;
    let private = |samples: &[Figures]| {
        let there = entry.state.is_ok() && !samples.is_empty();
        there.then(|| medians(samples)).and_then(|m| m.first().copied().flatten()).map(|kib| kib / 1024.0)
    };
    let target = |role: &str, limit, samples: &[Figures]| Target {
        what: format!("private memory of the {role} of {}", entry.contestant.name),
        limit,
        measured: private(samples),
        unit: "MiB",
    };
    let of_broker = (!broker.is_empty()).then(|| target("broker", BROKER_LIMIT_MIB, broker));
    [target("supervisor", LIMIT_MIB, supervisor)].into_iter().chain(of_broker).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str =
        "0-1 ---p 0 00:00 0 [rollup]\nRss: 900 kB\nPrivate_Clean:       300 kB\nPrivate_Dirty: 60 kB\n";

    #[test]
    fn private_memory_is_clean_and_dirty_together() {
        let figures = understand(MEMORY, "Name:\tsbx\nThreads:\t1\n");
        assert_eq!(figures, Ok([360.0, 300.0, 60.0, 1.0]));
        assert!(understand(MEMORY, "Name:\tThreads\n").is_err());
        assert!(understand("Private_Clean: many kB\nPrivate_Dirty: 1 kB\n", "Threads: 1\n").is_err());
    }

    #[test]
    fn each_column_has_its_own_median() {
        let samples = [[3.0, 1.0, 2.0, 1.0], [5.0, 1.0, 4.0, 1.0], [9.0, 8.0, 1.0, 2.0]];
        assert_eq!(medians(&samples), [5.0, 1.0, 2.0, 1.0].map(Some));
    }
}
