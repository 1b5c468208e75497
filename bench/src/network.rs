//! Connections of a run to a server outside, through the broker. A copy of this program connects, without anything
//! around it, through the simplest relay there can be, and under `sbx`.

pub(crate) mod child;
pub(crate) mod named;
pub(crate) mod relay;
pub(crate) mod server;

use std::ffi::OsString;
use std::path::Path;

use crate::contestants::{self, Contestant};
use crate::options::Options;
use crate::report::{Column, Outcome, Report, Row, Target};
use crate::run::Subject;
use crate::scratch::Scratch;
use crate::stats::{self, Sorted};
use crate::{Result, race, report, sys};

/// How much is done in one round.
#[derive(Debug, PartialEq)]
pub(crate) struct Work {
    pub(crate) connects: usize,
    pub(crate) bytes: usize,
    pub(crate) crowd: usize,
}

impl Work {
    /// All of it, or so little that it only shows that it works.
    pub(crate) fn new(small: bool) -> Work {
        match small {
            true => Work { connects: 3, bytes: 1 << 20, crowd: 10 },
            false => Work { connects: 200, bytes: 512 << 20, crowd: 1000 },
        }
    }
}

/// The figures of a row. A ratio of rates is below 1 if the contestant is slower than direct.
const COLUMNS: [Column; 8] = [
    Column { key: "connect_us", heading: "connect µs", digits: 0 },
    Column { key: "connect_over_us", heading: "over direct", digits: 0 },
    Column { key: "one_mib_s", heading: "1 stream, MiB/s", digits: 0 },
    Column { key: "one_ratio", heading: "× direct", digits: 2 },
    Column { key: "hundred_mib_s", heading: "100 streams, MiB/s", digits: 0 },
    Column { key: "hundred_ratio", heading: "× direct", digits: 2 },
    Column { key: "crowd_ms", heading: "1,000 at once, ms", digits: 0 },
    Column { key: "crowd_over_ms", heading: "over direct", digits: 0 },
];

/// Figures that the program inside prints.
const MEASURED: usize = COLUMNS.len() / 2;

struct Entry {
    contestant: Contestant,
    state: std::result::Result<Subject, Outcome>,
    /// One list for each figure, in the order of the rounds.
    samples: [Vec<f64>; MEASURED],
}

/// Runs the race.
pub(crate) fn measure(options: &Options) -> Result<Report> {
    if let Some(place) = &options.name {
        return named::measure(options, place);
    }
    let sbx = contestants::find_sbx(options.sbx.as_deref())?;
    sys::catch_alarm()?;
    sys::raise_open_files()?;
    let scratch = Scratch::enter()?;
    let (copy, env) = (scratch.copy_of_self()?, contestants::environment(&scratch));
    let seed = options.seed.unwrap_or_else(stats::fresh_seed);
    let port = server::start()?;
    let relay = relay::Relay::start(&copy, port)?;
    let flags = format!("--host-port {port}");
    let mut entries = vec![
        admit(contestants::bare().named("direct"), &copy, port, options, &env),
        admit(contestants::bare().named("the simplest relay"), &copy, relay.port, options, &env),
        admit(
            contestants::sbx("sbx", &sbx, &flags).named("`sbx run --host-port PORT --`"),
            &copy,
            port,
            options,
            &env,
        ),
    ];
    race::interleave(&mut entries, options, seed, Entry::run_once);
    let rows: Vec<Row> = entries.iter().map(|entry| row(entry, &entries)).collect();
    let mut facts = report::facts(&sbx, options, seed);
    facts.push(("each stream", "both ends are programs on this machine, which share its processors".into()));
    Ok(Report {
        title: "Connections to a server outside".into(),
        facts,
        columns: COLUMNS.to_vec(),
        targets: targets(&rows),
        rows,
        ..Report::default()
    })
}

fn admit(contestant: Contestant, copy: &Path, port: u16, options: &Options, env: &[OsString]) -> Entry {
    let size = if options.small { "small" } else { "full" };
    let command: [OsString; 4] = [copy.into(), child::CHILD.into(), port.to_string().into(), size.into()];
    let state = contestant.tried(env).and_then(|_| contestant.running(&command, env));
    Entry { contestant, state, samples: Default::default() }
}

impl Entry {
    fn run_once(&mut self, keep: bool) {
        let Ok(subject) = &mut self.state else { return };
        match subject.output().and_then(|output| read(&output)) {
            Ok(figures) if keep => self.samples.iter_mut().zip(figures).for_each(|(all, new)| all.push(new)),
            Ok(_) => {}
            Err(e) => self.state = Err(Outcome::Failed(e)),
        }
    }
}

fn read(output: &str) -> Result<[f64; MEASURED]> {
    let last = output.lines().last().unwrap_or_default();
    let figures: Vec<f64> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    figures.try_into().map_err(|_| format!("printed {last:?}"))
}

fn row(entry: &Entry, all: &[Entry]) -> Row {
    let outcome = match (&entry.state, all.first()) {
        (Err(outcome), _) => outcome.clone(),
        (Ok(_), direct) => Outcome::Measured(figures(entry, direct.unwrap_or(entry))),
    };
    Row { id: entry.contestant.id, name: entry.contestant.name.clone(), outcome }
}

/// Times are compared by their difference inside each round, rates by their ratio.
fn figures(entry: &Entry, direct: &Entry) -> Vec<Option<f64>> {
    let figure = |place: usize| {
        let none = Vec::new();
        let (own, base) =
            (entry.samples.get(place).unwrap_or(&none), direct.samples.get(place).unwrap_or(&none));
        let is_time = place == 0 || place == MEASURED - 1;
        let compared = if is_time {
            Sorted::new(own.iter().zip(base).map(|(own, base)| own - base).collect())
        } else {
            stats::ratios(own, base)
        };
        [Some(Sorted::new(own.clone()).median()), Some(compared.median())]
    };
    (0..MEASURED).flat_map(figure).collect()
}

/// Targets are upper limits, so ratios of rates stand upside down.
fn targets(rows: &[Row]) -> Vec<Target> {
    let sbx = rows.iter().find(|row| row.id == "sbx").and_then(|row| row.outcome.figures());
    let figure = |key: &str| {
        let place = COLUMNS.iter().position(|column| column.key == key)?;
        *sbx?.get(place)?
    };
    let inverse = |key| figure(key).map(|ratio: f64| 1.0 / ratio);
    let target = |what: &str, limit, measured, unit| Target { what: what.into(), limit, measured, unit };
    vec![
        target("connecting, over direct", 300.0, figure("connect_over_us"), "µs"),
        target("one stream: direct, to `sbx`", 1.43, inverse("one_ratio"), "×"),
        target("100 streams: direct, to `sbx`", 1.43, inverse("hundred_ratio"), "×"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_has_the_figures() {
        assert_eq!(read("Seccomp_filters: 1\n1 2.5 3 4\n"), Ok([1.0, 2.5, 3.0, 4.0]));
        assert!(read("1 2 3\n").is_err() && read("").is_err());
    }

    #[test]
    fn everything_works_in_small() {
        let port = server::start().unwrap();
        child::child(port, &Work::new(true)).unwrap();
    }
}
