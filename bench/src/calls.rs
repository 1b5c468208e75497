//! What single system calls cost inside: a copy of this program runs loops of each under the contestant.

use std::ffi::{CStr, OsString};
use std::io;
use std::path::Path;
use std::time::Instant;

use crate::contestants::{self, Contestant};
use crate::options::{Child, Options};
use crate::report::{Column, Outcome, Report, Row, Target};
use crate::run::Subject;
use crate::scratch::Scratch;
use crate::stats::{self, Sorted};
use crate::{Result, race, report, sys};

/// The hidden command under which the copy runs its loops.
pub(crate) const CHILD: &str = "calls-inside";

/// Batches of each loop in one round.
const BATCHES: usize = 40;

/// A loop: its name, its length, and the call.
type Loop = (&'static str, u32, fn(&CStr) -> io::Result<()>);

const LOOPS: [Loop; 3] = [
    ("getppid", 2000, |_| sys::parent()),
    ("openat+close", 200, sys::open_and_close),
    ("stat", 400, sys::stat),
];

/// The figures of a row: for each loop the fastest batch, the median one, and the fastest one's difference to bare.
pub(crate) const COLUMNS: [Column; 9] = [
    Column { key: "getppid_min_ns", heading: "getppid min", digits: 0 },
    Column { key: "getppid_p50_ns", heading: "p50", digits: 0 },
    Column { key: "getppid_over_ns", heading: "over bare", digits: 0 },
    Column { key: "openat_close_min_ns", heading: "openat+close min", digits: 0 },
    Column { key: "openat_close_p50_ns", heading: "p50", digits: 0 },
    Column { key: "openat_close_over_ns", heading: "over bare", digits: 0 },
    Column { key: "stat_min_ns", heading: "stat min", digits: 0 },
    Column { key: "stat_p50_ns", heading: "p50", digits: 0 },
    Column { key: "stat_over_ns", heading: "over bare", digits: 0 },
];

/// Runs inside: prints the number of its filters, times every loop and prints a line of nanoseconds per call for each.
pub(crate) fn child(arguments: &Child) -> Result<()> {
    let path = sys::c_string(arguments.file.as_os_str())?;
    println!("{} {}", contestants::FILTERS, contestants::filters_here()?);
    for (name, length, call) in LOOPS {
        let batches: Vec<String> = (0..BATCHES)
            .map(|_| batch(length, || call(&path)).map(|ns| format!("{ns:.2}")))
            .collect::<io::Result<_>>()
            .map_err(|e| format!("{name} was refused: {e}"))?;
        println!("{name} {}", batches.join(" "));
    }
    Ok(())
}

/// Nanoseconds per call.
fn batch(length: u32, call: impl Fn() -> io::Result<()>) -> io::Result<f64> {
    let before = Instant::now();
    for _ in 0..length {
        call()?;
    }
    Ok(before.elapsed().as_nanos() as f64 / f64::from(length))
}

/// A contestant and its batches, one list for each loop.
struct Entry<'a> {
    contestant: &'a Contestant,
    state: std::result::Result<Subject, Outcome>,
    batches: [Vec<f64>; LOOPS.len()],
}

/// Runs the loops under every contestant.
pub(crate) fn measure(options: &Options) -> Result<Report> {
    let sbx = contestants::find_sbx(options.sbx.as_deref())?;
    sys::catch_alarm()?;
    let scratch = Scratch::enter()?;
    let seed = options.seed.unwrap_or_else(stats::fresh_seed);
    let (contestants, env) = (line_up(&sbx, &scratch), contestants::environment(&scratch));
    let rows =
        compare(&contestants.iter().collect::<Vec<_>>(), &scratch.copy_of_self()?, &env, options, seed)?;
    Ok(Report {
        title: "Calls, in nanoseconds".into(),
        facts: report::facts(&sbx, options, seed),
        columns: COLUMNS.to_vec(),
        targets: vec![target(&rows)],
        rows,
        ..Report::default()
    })
}

/// The rows of these contestants; `copy` is a copy of this program that all of them may execute.
pub(crate) fn compare(
    contestants: &[&Contestant],
    copy: &Path,
    env: &[OsString],
    options: &Options,
    seed: u64,
) -> Result<Vec<Row>> {
    std::fs::File::open(&options.file)
        .map_err(|e| format!("cannot open '{}': {e}", options.file.display()))?;
    let command: [OsString; 3] = [copy.into(), CHILD.into(), options.file.clone().into()];
    let mut entries = admit(contestants, &command, env)?;
    race::interleave(&mut entries, options, seed, Entry::run_once);
    Ok(rows(&entries))
}

fn line_up(sbx: &Path, scratch: &Scratch) -> Vec<Contestant> {
    vec![
        contestants::bare(),
        contestants::sbx("exec", sbx, "--exec --profile minimal --allow-calls getppid"),
        contestants::sbx("minimal", sbx, "--profile minimal --allow-calls getppid"),
        contestants::sbx("workspace", sbx, ""),
        contestants::shim(sbx, scratch),
    ]
}

fn admit<'a>(all: &[&'a Contestant], command: &[OsString], env: &[OsString]) -> Result<Vec<Entry<'a>>> {
    let outside = contestants::filters_here()?;
    let entry = |contestant: &&'a Contestant| {
        let ready = |subject| tried(contestant, subject, outside).map_err(Outcome::Failed);
        let state = contestant.running(command, env).and_then(ready);
        Entry { contestant, state, batches: Default::default() }
    };
    Ok(all.iter().map(entry).collect())
}

/// The subject, once a run has shown that it is as confined as it should be.
fn tried(contestant: &Contestant, mut subject: Subject, outside: u32) -> Result<Subject> {
    let inside = contestants::filters(&subject.output()?)?;
    contestant.vouch(inside, outside).map(|()| subject)
}

impl Entry<'_> {
    fn run_once(&mut self, keep: bool) {
        let Ok(subject) = &mut self.state else { return };
        match subject.output().and_then(|text| understand(&text)) {
            Ok(new) if keep => self.batches.iter_mut().zip(new).for_each(|(all, new)| all.extend(new)),
            Ok(_) => {}
            Err(e) => self.state = Err(Outcome::Failed(e)),
        }
    }
}

/// Parses the child's lines.
fn understand(text: &str) -> Result<[Vec<f64>; LOOPS.len()]> {
    let mut found: [Vec<f64>; LOOPS.len()] = Default::default();
    for ((name, ..), batches) in LOOPS.iter().zip(&mut found) {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        *batches = line.unwrap_or("").split(' ').filter_map(|word| word.parse().ok()).collect();
        if batches.len() != BATCHES {
            return Err(format!("no figures for {name} in what the loops printed: {text:?}"));
        }
    }
    Ok(found)
}

fn rows(entries: &[Entry]) -> Vec<Row> {
    let bare = entries.first().map(|e| e.batches.clone().map(|b| Sorted::new(b).min()));
    let row = |entry: &Entry| {
        let outcome = match &entry.state {
            Err(outcome) => outcome.clone(),
            Ok(_) => Outcome::Measured(figures(&entry.batches, bare.as_ref())),
        };
        Row { id: entry.contestant.id, name: entry.contestant.name.clone(), outcome }
    };
    entries.iter().map(row).collect()
}

fn figures(batches: &[Vec<f64>; LOOPS.len()], bare: Option<&[f64; LOOPS.len()]>) -> Vec<Option<f64>> {
    let of_loop = |(index, batches): (usize, &Vec<f64>)| {
        let sorted = Sorted::new(batches.clone());
        let base = bare.and_then(|b| b.get(index));
        [Some(sorted.min()), Some(sorted.median()), base.map(|base| sorted.min() - base)]
    };
    batches.iter().enumerate().flat_map(of_loop).collect()
}

fn target(rows: &[Row]) -> Target {
    let over = |row: &Row| match &row.outcome {
        Outcome::Measured(figures) if row.id == "minimal" => figures.get(2).copied().flatten(),
        _ => None,
    };
    let what = "an allowed getppid under `--profile minimal`, over bare".into();
    Target { what, limit: 60.0, measured: rows.iter().find_map(over), unit: "ns" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_numbers() {
        let line = |name: &str| format!("{name} {}\n", vec!["1.50"; BATCHES].join(" "));
        let text: String = LOOPS.iter().map(|(name, ..)| line(name)).collect();
        assert_eq!(understand(&text).unwrap().map(|b| b.len()), [BATCHES; LOOPS.len()]);
        assert!(understand("getppid 1 2\n").is_err());
    }

    #[test]
    fn figures_follow_the_columns() {
        let batches = [vec![3.0, 2.0, 4.0], vec![10.0], vec![20.0]];
        let figures = figures(&batches, Some(&[1.0, 4.0, 5.0]));
        assert_eq!(figures.len(), COLUMNS.len());
        assert_eq!(figures[..3], [Some(2.0), Some(3.0), Some(1.0)]);
    }
}
