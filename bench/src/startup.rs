//! What it costs to start a command: `/bin/true`, which does nothing itself.

use std::ffi::OsString;
use std::path::Path;

use crate::contestants::{self, Contestant};
use crate::options::Options;
use crate::report::{Column, Outcome, Report, Row, Target};
use crate::run::Subject;
use crate::scratch::Scratch;
use crate::stats::{self, Sorted};
use crate::{Result, race, report, sys};

/// The figures of a row, in this order.
const COLUMNS: [Column; 8] = [
    Column { key: "filters", heading: "filters", digits: 0 },
    Column { key: "p10_us", heading: "p10 µs", digits: 0 },
    Column { key: "p50_us", heading: "p50 µs", digits: 0 },
    Column { key: "p99_us", heading: "p99 µs", digits: 0 },
    Column { key: "ratio", heading: "× bare", digits: 2 },
    Column { key: "ratio_p10", heading: "p10", digits: 2 },
    Column { key: "ratio_p90", heading: "p90", digits: 2 },
    Column { key: "ratio_bwrap", heading: "× bwrap", digits: 2 },
];

/// A contestant's place in the race.
struct Entry {
    contestant: Contestant,
    state: State,
    filters: u32,
    /// Microseconds, one a round, in the order of the rounds.
    samples: Vec<f64>,
}

enum State {
    Running(Subject),
    Out(Outcome),
}

/// Runs the race.
pub(crate) fn measure(options: &Options) -> Result<Report> {
    let sbx = contestants::find_sbx(options.sbx.as_deref())?;
    sys::catch_alarm()?;
    let scratch = Scratch::enter()?;
    let seed = options.seed.unwrap_or_else(stats::fresh_seed);
    let mut entries = admit(line_up(&sbx, &scratch), &contestants::environment(&scratch))?;
    race::interleave(&mut entries, options, seed, Entry::run_once);
    Ok(Report {
        title: "Start-up".into(),
        facts: report::facts(&sbx, options, seed),
        columns: COLUMNS.to_vec(),
        targets: targets(&entries),
        rows: rows(&entries),
    })
}

fn line_up(sbx: &Path, scratch: &Scratch) -> Vec<Contestant> {
    let mut all = vec![
        contestants::bare(),
        contestants::sbx("exec", sbx, "--exec --profile minimal"),
        contestants::sbx("minimal", sbx, "--profile minimal"),
        contestants::sbx("workspace", sbx, ""),
        contestants::sbx("standard", sbx, "--namespaces none"),
        contestants::sbx("private", sbx, "--net private"),
        contestants::shim(sbx, scratch),
    ];
    all.extend(contestants::others());
    all
}

/// Tries everybody once, with a command that shows that it ran and which filters were on it.
fn admit(all: Vec<Contestant>, env: &[OsString]) -> Result<Vec<Entry>> {
    let command = contestants::idle()?;
    let mut entries: Vec<Entry> = Vec::new();
    for contestant in all {
        let (filters, state) = match contestant.tried(env) {
            Err(outcome) => (0, State::Out(outcome)),
            Ok(filters) => (filters, State::ready(contestant.running(&command, env))),
        };
        entries.push(Entry { contestant, state, filters, samples: Vec::new() });
    }
    match entries.first() {
        Some(Entry { state: State::Out(why), .. }) => Err(format!("bare: {}", why.reason())),
        _ => Ok(entries),
    }
}

impl State {
    fn ready(subject: Option<Result<Subject>>) -> Self {
        match subject {
            Some(Ok(subject)) => Self::Running(subject),
            Some(Err(e)) => Self::Out(Outcome::Failed(e)),
            None => Self::Out(Outcome::Failed("not tried".into())),
        }
    }
}

impl Entry {
    /// A contestant that fails once is out: its other figures would say nothing about what it does when it works.
    fn run_once(&mut self, keep: bool) {
        let State::Running(subject) = &mut self.state else { return };
        match subject.time() {
            Ok(elapsed) if keep => self.samples.push(elapsed.as_nanos() as f64 / 1000.0),
            Ok(_) => {}
            Err(e) => self.state = State::Out(Outcome::Failed(e)),
        }
    }

    fn row(&self, bare: &[f64], bwrap: &[f64]) -> Row {
        let outcome = match &self.state {
            State::Out(outcome) => outcome.clone(),
            State::Running(_) => Outcome::Measured(self.figures(bare, bwrap)),
        };
        Row { id: self.contestant.id, name: self.contestant.name.clone(), outcome }
    }

    fn figures(&self, bare: &[f64], bwrap: &[f64]) -> Vec<Option<f64>> {
        let sorted = Sorted::new(self.samples.clone());
        let to_bare = stats::ratios(&self.samples, bare);
        let to_bwrap = (!bwrap.is_empty()).then(|| stats::ratios(&self.samples, bwrap).median());
        vec![
            Some(f64::from(self.filters)),
            Some(sorted.percentile(10.0)),
            Some(sorted.median()),
            Some(sorted.percentile(99.0)),
            Some(to_bare.median()),
            Some(to_bare.percentile(10.0)),
            Some(to_bare.percentile(90.0)),
            to_bwrap,
        ]
    }
}

/// The samples of a contestant that ran to the end; none otherwise.
fn samples<'a>(entries: &'a [Entry], id: &str) -> &'a [f64] {
    let entry = entries.iter().find(|e| e.contestant.id == id && matches!(e.state, State::Running(_)));
    entry.map_or(&[], |e| &e.samples)
}

fn rows(entries: &[Entry]) -> Vec<Row> {
    let (bare, bwrap) = (samples(entries, "bare"), samples(entries, "bwrap"));
    entries.iter().map(|entry| entry.row(bare, bwrap)).collect()
}

fn targets(entries: &[Entry]) -> Vec<Target> {
    let ratio = |id, base| {
        let (samples, base) = (samples(entries, id), samples(entries, base));
        (!samples.is_empty() && !base.is_empty()).then(|| stats::ratios(samples, base).median())
    };
    let target = |what: &str, limit, measured| Target { what: what.into(), limit, measured, unit: "×" };
    vec![
        target("`--exec --profile minimal`, to bare", 2.2, ratio("exec", "bare")),
        target("`--exec --profile minimal`, to bubblewrap", 0.3, ratio("exec", "bwrap")),
        target("`--profile minimal`, to bare", 3.0, ratio("minimal", "bare")),
        target("`sbx run`, with namespaces, to bubblewrap", 0.45, ratio("workspace", "bwrap")),
        target("`--net private`, to bubblewrap", 0.6, ratio("private", "bwrap")),
    ]
}
