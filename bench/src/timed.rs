//! How long one command takes under each contestant, run after run.

use std::ffi::OsString;

use crate::Result;
use crate::contestants::Contestant;
use crate::report::Outcome;
use crate::run::Subject;
use crate::stats;

/// A contestant's place in the race.
pub(crate) struct Entry<'a> {
    pub(crate) contestant: &'a Contestant,
    state: std::result::Result<Subject, Outcome>,
    /// Microseconds, one a round, in the order of the rounds.
    samples: Vec<f64>,
}

impl<'a> Entry<'a> {
    /// Takes part if the trial run succeeded.
    pub(crate) fn new(
        contestant: &'a Contestant,
        tried: std::result::Result<(), Outcome>,
        command: &[OsString],
        env: &[OsString],
    ) -> Self {
        let state = tried.and_then(|()| contestant.running(command, env));
        Self { contestant, state, samples: Vec::new() }
    }

    /// A contestant that fails once is out: its other figures would say nothing about its normal work.
    pub(crate) fn run_once(&mut self, keep: bool) {
        let Ok(subject) = &mut self.state else { return };
        match subject.time() {
            Ok(elapsed) if keep => self.samples.push(elapsed.as_nanos() as f64 / 1000.0),
            Ok(_) => {}
            Err(e) => self.state = Err(Outcome::Failed(e)),
        }
    }

    /// The samples of a contestant that finished, or why there are none.
    pub(crate) fn samples(&self) -> std::result::Result<&[f64], &Outcome> {
        self.state.as_ref().map(|_| self.samples.as_slice())
    }
}

/// Without the bare command there is nothing to compare with.
pub(crate) fn require_bare(entries: &[Entry]) -> Result<()> {
    match entries.first().map(Entry::samples) {
        Some(Err(why)) => Err(format!("bare: {}", why.reason())),
        _ => Ok(()),
    }
}

/// The samples of the contestant of this name; none if it is out.
pub(crate) fn samples<'a>(entries: &'a [Entry], id: &str) -> &'a [f64] {
    let entry = entries.iter().find(|e| e.contestant.id == id);
    entry.and_then(|e| e.samples().ok()).unwrap_or(&[])
}

/// The median of the ratios of two contestants, taken inside each round; `None` if one of them is out.
pub(crate) fn ratio(entries: &[Entry], id: &str, base: &str) -> Option<f64> {
    let (samples, base) = (samples(entries, id), samples(entries, base));
    (!samples.is_empty() && !base.is_empty()).then(|| stats::ratios(samples, base).median())
}
