//! How many runs a second are started by several threads: the case of a service that runs every call of its
//! agents' tools under `sbx`.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::contestants::{self, Contestant, Words};
use crate::options::Options;
use crate::report::{Column, Outcome, Report, Row};
use crate::run::{self, Subject};
use crate::scratch::Scratch;
use crate::stats::{self, Sorted};
use crate::{Result, race, report, sys};

/// The number of threads that start runs, each one after another.
pub(crate) const WIDTHS: [usize; 4] = [1, 2, 8, 32];

/// The figures of a row: for each width the runs per second, and their ratio to bare at the same width.
pub(crate) const COLUMNS: [Column; 2 * WIDTHS.len()] = [
    Column { key: "rate_1", heading: "1 at a time, /s", digits: 0 },
    Column { key: "ratio_1", heading: "× bare", digits: 2 },
    Column { key: "rate_2", heading: "2, /s", digits: 0 },
    Column { key: "ratio_2", heading: "× bare", digits: 2 },
    Column { key: "rate_8", heading: "8, /s", digits: 0 },
    Column { key: "ratio_8", heading: "× bare", digits: 2 },
    Column { key: "rate_32", heading: "32, /s", digits: 0 },
    Column { key: "ratio_32", heading: "× bare", digits: 2 },
];

/// Poll interval for the end of the last runs.
const LOOK: Duration = Duration::from_millis(5);

/// One contestant at one width.
struct Cell {
    width: usize,
    state: std::result::Result<Arc<Words>, Outcome>,
    /// Runs per second, one figure a round, in the order of the rounds.
    rates: Vec<f64>,
}

/// The work of one thread.
struct Share {
    runs: u64,
    ended: Instant,
}

/// Runs every contestant at every width.
pub(crate) fn measure(options: &Options) -> Result<Report> {
    let sbx = contestants::find_sbx(options.sbx.as_deref())?;
    sys::catch_alarm()?;
    let scratch = Scratch::enter()?;
    let seed = options.seed.unwrap_or_else(stats::fresh_seed);
    let contestants = line_up(&sbx);
    let rows = compare(
        &contestants.iter().collect::<Vec<_>>(),
        &WIDTHS,
        &contestants::environment(&scratch),
        options,
        seed,
    )?;
    let mut facts = report::facts(&sbx, options, seed);
    facts.push(("each width", format!("{} s a round", options.seconds)));
    Ok(Report {
        title: "Runs started a second".into(),
        facts,
        columns: COLUMNS.to_vec(),
        rows,
        ..Report::default()
    })
}

/// The rows of these contestants at these widths, which are the first ones of `WIDTHS` and need as many columns.
pub(crate) fn compare(
    contestants: &[&Contestant],
    widths: &[usize],
    env: &[OsString],
    options: &Options,
    seed: u64,
) -> Result<Vec<Row>> {
    let mut cells = admit(contestants, widths, env)?;
    let length = Duration::from_secs(options.seconds);
    race::interleave(&mut cells, options, seed, |cell, keep| cell.run(length, keep));
    Ok(rows(contestants, &cells, widths.len()))
}

fn line_up(sbx: &Path) -> Vec<Contestant> {
    let mut all = vec![
        contestants::bare(),
        contestants::sbx("exec", sbx, "--exec --profile minimal"),
        contestants::sbx("minimal", sbx, "--profile minimal"),
        contestants::sbx("workspace", sbx, ""),
    ];
    all.extend(contestants::others().into_iter().filter(|c| c.id == "bwrap"));
    all
}

/// The cells of all contestants, as many in a row for each as there are widths.
fn admit(contestants: &[&Contestant], widths: &[usize], env: &[OsString]) -> Result<Vec<Cell>> {
    let command = contestants::idle()?;
    let ready = |contestant: &Contestant| {
        contestant.tried(env)?;
        contestant.words(&command, env).map(Arc::new)
    };
    let cells = |contestant: &&Contestant| {
        let state = ready(contestant);
        widths.iter().map(move |&width| Cell { width, state: state.clone(), rates: Vec::new() })
    };
    Ok(contestants.iter().flat_map(cells).collect())
}

impl Cell {
    fn run(&mut self, length: Duration, keep: bool) {
        let Ok(words) = &self.state else { return };
        match storm(words, self.width, length) {
            Ok(rate) if keep => self.rates.push(rate),
            Ok(_) => {}
            Err(e) => self.state = Err(Outcome::Failed(format!("{} at a time: {e}", self.width))),
        }
    }
}

/// Starts runs from `width` threads for this long; returns the runs per second of all together.
fn storm(words: &Arc<Words>, width: usize, length: Duration) -> Result<f64> {
    let stop = Arc::new(AtomicBool::new(false));
    let before = Instant::now();
    let worker = |_| {
        let (words, stop) = (words.clone(), stop.clone());
        thread::Builder::new().spawn(move || work(&words, &stop))
    };
    let workers: std::io::Result<Vec<_>> = (0..width).map(worker).collect();
    if workers.is_ok() {
        thread::sleep(length);
    }
    stop.store(true, Ordering::Relaxed);
    let shares = finish(workers.map_err(|e| format!("cannot start a thread: {e}"))?)?;
    Ok(together(&shares, before))
}

/// Starts one run after another, at least one.
fn work(words: &Words, stop: &AtomicBool) -> Result<Share> {
    let mut subject = Subject::new(&words.argv, &words.env)?;
    let mut runs = 0;
    loop {
        subject.time_without_alarm()?;
        runs += 1;
        if stop.load(Ordering::Relaxed) {
            return Ok(Share { runs, ended: Instant::now() });
        }
    }
}

/// Waits for the workers. One that takes too long is interrupted, again and again, since a signal that arrives just
/// before the wait is lost.
fn finish(workers: Vec<JoinHandle<Result<Share>>>) -> Result<Vec<Share>> {
    let limit = Instant::now() + Duration::from_secs(run::LIMIT_SECONDS.into());
    while !workers.iter().all(JoinHandle::is_finished) {
        thread::sleep(LOOK);
        if Instant::now() > limit {
            workers.iter().filter(|w| !w.is_finished()).for_each(sys::interrupt);
        }
    }
    workers.into_iter().map(|w| w.join().unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
}

/// All runs over the time until the last of them had ended: the runs that were not finished in time are
/// counted, so their time is too.
fn together(shares: &[Share], began: Instant) -> f64 {
    let ended = shares.iter().map(|share| share.ended).max().unwrap_or(began);
    stats::rate(shares.iter().map(|share| share.runs).sum(), ended.duration_since(began))
}

fn rows(contestants: &[&Contestant], cells: &[Cell], widths: usize) -> Vec<Row> {
    let mut by_contestant = cells.chunks(widths);
    let bare = cells.get(..widths).unwrap_or_default();
    let row = |contestant: &&Contestant| {
        let cells = by_contestant.next().unwrap_or_default();
        let outcome = match cells.iter().find_map(|cell| cell.state.as_ref().err()) {
            Some(outcome) => outcome.clone(),
            None => Outcome::Measured(figures(cells, bare)),
        };
        Row { id: contestant.id, name: contestant.name.clone(), outcome }
    };
    contestants.iter().map(row).collect()
}

/// The ratios are taken inside each round; there are none where bare could not be measured.
fn figures(cells: &[Cell], bare: &[Cell]) -> Vec<Option<f64>> {
    let of_width = |(cell, bare): (&Cell, &Cell)| {
        let ratio = bare.state.is_ok().then(|| stats::ratios(&cell.rates, &bare.rates).median());
        [Some(Sorted::new(cell.rates.clone()).median()), ratio]
    };
    cells.iter().zip(bare).flat_map(of_width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(rates: &[f64]) -> Vec<Cell> {
        let words = Arc::new(Words { argv: Vec::new(), env: Vec::new() });
        let cell = |width| Cell { width, state: Ok(words.clone()), rates: rates.to_vec() };
        WIDTHS.map(cell).into()
    }

    #[test]
    fn the_last_to_end_decides() {
        let began = Instant::now();
        let share = |runs, ms| Share { runs, ended: began + Duration::from_millis(ms) };
        assert_eq!(together(&[share(100, 1000), share(300, 2000), share(0, 1500)], began), 200.0);
        assert_eq!(together(&[], began), 0.0);
    }

    #[test]
    fn figures_follow_the_columns() {
        let figures = figures(&cells(&[100.0, 300.0, 200.0]), &cells(&[400.0, 300.0, 400.0]));
        assert_eq!(figures.len(), COLUMNS.len());
        assert_eq!(figures[..2], [Some(200.0), Some(0.5)]);
    }

    #[test]
    fn no_ratio_without_bare() {
        let mut bare = cells(&[]);
        bare[0].state = Err(Outcome::Failed("gone".into()));
        assert_eq!(figures(&cells(&[7.0]), &bare)[..2], [Some(7.0), None]);
    }

    #[test]
    fn a_failure_at_one_width_is_told() {
        let words =
            |script: &str| Words { argv: ["/bin/sh", "-c", script].map(Into::into).into(), env: vec![] };
        // Long enough for a thread to be started on a busy machine.
        let length = Duration::from_millis(300);
        assert!(storm(&Arc::new(words("exit 0")), 2, length).unwrap() > 0.0);
        let error = storm(&Arc::new(words("echo no >&2; exit 3")), 2, length).unwrap_err();
        assert_eq!(error, "exit 3: no");
    }
}
