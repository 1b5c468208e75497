//! The cost of starting a command: `/bin/true`, which does nothing itself.

use std::ffi::OsString;
use std::path::Path;

use crate::contestants::{self, Contestant};
use crate::options::Options;
use crate::report::{Column, Outcome, Report, Row, Target};
use crate::scratch::Scratch;
use crate::stats::{self, Sorted};
use crate::timed::{self, Entry};
use crate::{Result, race, report, sys};

/// The figures of a row.
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

/// Runs the race.
pub(crate) fn measure(options: &Options) -> Result<Report> {
    let sbx = contestants::find_sbx(options.sbx.as_deref())?;
    sys::catch_alarm()?;
    let scratch = Scratch::enter()?;
    let seed = options.seed.unwrap_or_else(stats::fresh_seed);
    let environment = contestants::environment(&scratch);
    let pool = contestants::Pool::start(&sbx, &environment);
    let contestants = line_up(&sbx, &scratch, contestants::warm(&sbx, &pool));
    let (mut entries, filters) = admit(&contestants, &environment)?;
    race::interleave(&mut entries, options, seed, Entry::run_once);
    Ok(Report {
        title: "Start-up".into(),
        facts: report::facts(&sbx, options, seed),
        columns: COLUMNS.to_vec(),
        targets: targets(&entries),
        rows: rows(&entries, &filters),
        ..Report::default()
    })
}

fn line_up(sbx: &Path, scratch: &Scratch, warm: Contestant) -> Vec<Contestant> {
    let mut all = vec![
        contestants::bare(),
        contestants::sbx("exec", sbx, "--exec --profile minimal"),
        contestants::sbx("minimal", sbx, "--profile minimal"),
        contestants::sbx("workspace", sbx, ""),
        warm,
        contestants::sbx("standard", sbx, "--namespaces none"),
        contestants::sbx("host", sbx, "--net host"),
        contestants::sbx("private", sbx, "--net private"),
        contestants::sbx("connect", sbx, "--connect example.org"),
        contestants::shim(sbx, scratch),
    ];
    all.extend(contestants::others());
    all
}

/// Tries all contestants once, with a command that prints its filters; returns their numbers.
fn admit<'a>(all: &'a [Contestant], env: &[OsString]) -> Result<(Vec<Entry<'a>>, Vec<u32>)> {
    let command = contestants::idle()?;
    let admitted = |contestant: &'a Contestant| {
        let tried = contestant.tried(env);
        let filters = tried.as_ref().copied().unwrap_or(0);
        (Entry::new(contestant, tried.map(drop), &command, env), filters)
    };
    let (entries, filters): (Vec<_>, Vec<_>) = all.iter().map(admitted).unzip();
    timed::require_bare(&entries)?;
    Ok((entries, filters))
}

fn rows(entries: &[Entry], filters: &[u32]) -> Vec<Row> {
    let (bare, bwrap) = (timed::samples(entries, "bare"), timed::samples(entries, "bwrap"));
    let row = |(entry, filters): (&Entry, &u32)| {
        let outcome = match entry.samples() {
            Err(outcome) => outcome.clone(),
            Ok(samples) => Outcome::Measured(figures(*filters, samples, bare, bwrap)),
        };
        Row { id: entry.contestant.id, name: entry.contestant.name.clone(), outcome }
    };
    entries.iter().zip(filters).map(row).collect()
}

fn figures(filters: u32, samples: &[f64], bare: &[f64], bwrap: &[f64]) -> Vec<Option<f64>> {
    let sorted = Sorted::new(samples.to_vec());
    let to_bare = stats::ratios(samples, bare);
    let to_bwrap = (!bwrap.is_empty()).then(|| stats::ratios(samples, bwrap).median());
    vec![
        Some(f64::from(filters)),
        Some(sorted.percentile(10.0)),
        Some(sorted.median()),
        Some(sorted.percentile(99.0)),
        Some(to_bare.median()),
        Some(to_bare.percentile(10.0)),
        Some(to_bare.percentile(90.0)),
        to_bwrap,
    ]
}

/// The targets of a race that these contestants took part in.
pub(crate) fn targets(entries: &[Entry]) -> Vec<Target> {
    let ratio = |id, base| timed::ratio(entries, id, base);
    let (private, connect) = (timed::samples(entries, "private"), timed::samples(entries, "connect"));
    let both = !private.is_empty() && !connect.is_empty();
    let over = both.then(|| {
        let differences = connect.iter().zip(private).map(|(connect, private)| connect - private);
        Sorted::new(differences.collect()).median() / 1000.0
    });
    let over_private =
        Target { what: "`--connect`, over `--net private`".into(), limit: 0.6, measured: over, unit: "ms" };
    let target = |what: &str, limit, measured| Target { what: what.into(), limit, measured, unit: "×" };
    vec![
        target("`--exec --profile minimal`, to bare", 1.7, ratio("exec", "bare")),
        target("`--exec --profile minimal`, to bubblewrap", 0.3, ratio("exec", "bwrap")),
        target("`--profile minimal`, to bare", 2.1, ratio("minimal", "bare")),
        target("`sbx run`, with namespaces, to bubblewrap", 0.4, ratio("workspace", "bwrap")),
        target("`sbx run --pool`, to bare", 1.5, ratio("pool", "bare")),
        target("`--net private`, to bubblewrap", 0.6, ratio("private", "bwrap")),
        over_private,
    ]
}
