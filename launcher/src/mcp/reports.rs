//! The reports of the last runs.

use sbx_client::report::Report;
use serde_json::Value;
use std::collections::VecDeque;

/// How many reports are kept, and how many bytes of them.
const MOST: usize = 100;
const MOST_BYTES: usize = 16 << 20;

/// The reports, by the numbers of their runs.
#[derive(Default)]
pub struct Reports {
    last: u64,
    kept: VecDeque<Kept>,
}

struct Kept {
    number: u64,
    report: Value,
    bytes: usize,
}

impl Reports {
    /// The number of a run that begins.
    pub fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Keeps the report of a run, in the place of the oldest ones if need be.
    pub fn keep(&mut self, number: u64, report: &Report) {
        let Ok(report) = serde_json::to_value(report) else { return };
        let bytes = report.to_string().len();
        self.kept.push_back(Kept { number, report, bytes });
        while self.kept.len() > MOST || self.kept.iter().map(|kept| kept.bytes).sum::<usize>() > MOST_BYTES {
            self.kept.pop_front();
        }
    }

    /// The report of a run; why there is none, as a sentence.
    pub fn of(&self, number: u64) -> Result<&Value, String> {
        match self.kept.iter().find(|kept| kept.number == number) {
            Some(kept) => Ok(&kept.report),
            None if (1..=self.last).contains(&number) => Err(format!(
                "there is no report of run {number} any more, or not yet: the last {MOST} are kept when they have ended"
            )),
            None => Err(format!("there was no run {number}; the last one is {}", self.last)),
        }
    }
}
