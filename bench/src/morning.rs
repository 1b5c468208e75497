//! A hundred commands in a row, as an agent gives them: what they cost together.

use std::ffi::OsString;
use std::fs;

use crate::contestants::{self, Contestant};
use crate::options::Options;
use crate::report::{Column, Outcome, Report, Row, Target};
use crate::run::Subject;
use crate::scratch::Scratch;
use crate::stats::{self, Sorted};
use crate::{Result, race, report, sys};

/// How many commands a round has.
const COMMANDS: usize = 100;

/// The figures of a row.
const COLUMNS: [Column; 3] = [
    Column { key: "p50_ms", heading: "p50 ms", digits: 0 },
    Column { key: "each_ms", heading: "a command", digits: 2 },
    Column { key: "ratio", heading: "× bare", digits: 2 },
];

/// The commands, which are repeated in this order. A tool that is not installed is left out.
const WORDS: [&[&str]; 9] = [
    &["ls", "-la"],
    &["cat", "README"],
    &["rg", "-n", "needle"],
    &["git", "status", "--short"],
    &["git", "diff", "--stat"],
    &["python3", "-c", "print(sum(range(1000)))"],
    &["node", "-e", "console.log(1)"],
    &["make", "-s"],
    &["sh", "-c", "head -n 1 README | tr a-z A-Z"],
];

/// One way to give them.
struct Entry {
    contestant: Contestant,
    subjects: std::result::Result<Vec<Subject>, Outcome>,
    /// Milliseconds, one a round.
    samples: Vec<f64>,
}

/// Gives them in every way once a round.
pub(crate) fn measure(options: &Options) -> Result<Report> {
    let sbx = contestants::find_sbx(options.sbx.as_deref())?;
    sys::catch_alarm()?;
    let scratch = Scratch::enter()?;
    prepare(if options.small { 10 } else { 500 })?;
    let env = contestants::environment(&scratch);
    let commands = commands(&env);
    let seed = options.seed.unwrap_or_else(stats::fresh_seed);
    let pool = contestants::Pool::start(&sbx, &env);
    let mut all =
        vec![contestants::bare(), contestants::sbx("workspace", &sbx, ""), contestants::warm(&sbx, &pool)];
    all.extend(contestants::others());
    let entry = |contestant: Contestant| {
        let subjects = commands.iter().map(|command| contestant.running(command, &env)).collect();
        Entry { contestant, subjects, samples: Vec::new() }
    };
    let mut entries: Vec<Entry> = all.into_iter().map(entry).collect();
    race::interleave(&mut entries, options, seed, Entry::run_once);
    let bare = entries.first().map(|bare| bare.samples.clone()).unwrap_or_default();
    let ratio = |id| {
        let entry = entries.iter().find(|entry| entry.contestant.id == id && entry.subjects.is_ok())?;
        Some(stats::ratios(&entry.samples, &bare).median())
    };
    let what = "a hundred commands with `sbx run --pool`, to bare".into();
    let targets = vec![Target { what, limit: 1.5, measured: ratio("pool"), unit: "×" }];
    let rows = entries.iter().map(|entry| entry.row(&bare)).collect();
    let title = "A hundred commands in a row".into();
    let facts = report::facts(&sbx, options, seed);
    Ok(Report { title, facts, columns: COLUMNS.to_vec(), targets, rows, ..Report::default() })
}

/// A repository with so many files, of which some have changed.
fn prepare(files: usize) -> Result<()> {
    let written = (0..files).try_for_each(|number| {
        let directory = format!("src/{}", number % 10);
        fs::create_dir_all(&directory)?;
        fs::write(format!("{directory}/{number}.txt"), "a line\na needle\n".repeat(20))
    });
    written.map_err(|error| format!("cannot write files: {error}"))?;
    fs::write("README", "read me\n").map_err(|error| format!("cannot write a file: {error}"))?;
    fs::write("Makefile", "all:\n\t@cat README\n")
        .map_err(|error| format!("cannot write a file: {error}"))?;
    let script = "git init -q . && git add -A && \
                  git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -q -m a; echo more >> README";
    let words = ["/bin/sh", "-c", script].map(OsString::from);
    let variables = [("PATH", std::env::var_os("PATH")), ("HOME", Some("/nonexistent".into()))];
    let variables = variables.into_iter().filter_map(|(name, value)| {
        let mut entry = OsString::from(format!("{name}="));
        entry.push(value?);
        Some(entry)
    });
    Subject::new(&words, &variables.collect::<Vec<_>>())?.output().map(drop)
}

/// Those that succeed here without a sandbox.
fn commands(env: &[OsString]) -> Vec<Vec<OsString>> {
    let known = WORDS.iter().filter_map(|words| {
        let (program, rest) = words.split_first()?;
        let places =
            [format!("/usr/bin/{program}"), format!("/bin/{program}"), format!("/usr/local/bin/{program}")];
        let program = contestants::first_program(&places.each_ref().map(String::as_str)).ok()?;
        let words: Vec<_> = std::iter::once(program.into()).chain(rest.iter().map(OsString::from)).collect();
        Subject::new(&words, env).and_then(|mut subject| subject.output()).ok().map(|_| words)
    });
    let known: Vec<Vec<OsString>> = known.collect();
    known.iter().cycle().take(if known.is_empty() { 0 } else { COMMANDS }).cloned().collect()
}

impl Entry {
    fn run_once(&mut self, keep: bool) {
        let Ok(subjects) = &mut self.subjects else { return };
        let times: Result<Vec<_>> = subjects.iter_mut().map(Subject::time).collect();
        match times {
            Ok(times) if keep => self.samples.push(times.iter().map(|time| time.as_secs_f64() * 1e3).sum()),
            Ok(_) => {}
            Err(error) => self.subjects = Err(Outcome::Failed(error)),
        }
    }

    fn row(&self, bare: &[f64]) -> Row {
        let outcome = match &self.subjects {
            Err(outcome) => outcome.clone(),
            Ok(subjects) => {
                let median = Sorted::new(self.samples.clone()).median();
                let ratio = stats::ratios(&self.samples, bare).median();
                Outcome::Measured(vec![
                    Some(median),
                    Some(median / subjects.len().max(1) as f64),
                    Some(ratio),
                ])
            }
        };
        Row { id: self.contestant.id, name: self.contestant.name.clone(), outcome }
    }
}
