//! Benchmark drivers for `sbx`.
//!
//! `startup` starts each contestant once a round, in a new random order each time, so that disturbances of the
//! machine affect all of them alike; the ratio to a bare exec is taken inside each round. `calls` measures what
//! single system calls cost inside and outside, `load` how many runs per second several threads can start,
//! `memory` the processes beside a command while it runs, `network` what connections through the broker cost,
//! `morning` what a hundred commands in a row cost, and `peers` does most of this, and everyday commands, under every
//! other sandbox that is installed. All print Markdown,
//! or JSON with `--json`.
//!
//! Figures are never assertions: tests check that the drivers work, not what they find.

mod calls;
mod contestants;
mod document;
mod load;
mod memory;
mod morning;
mod network;
mod options;
mod peers;
mod race;
mod report;
mod run;
mod scratch;
mod startup;
mod stats;
#[allow(unsafe_code)] // It makes the system calls that no library has.
mod sys;
mod timed;

use std::process::ExitCode;

use options::{Job, Options};

/// Every error is one sentence.
pub(crate) type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let job = match options::parse(std::env::args_os().skip(1).collect()) {
        Ok(job) => job,
        Err(error) => {
            eprintln!("sbx-bench: {error}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match perform(job) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sbx-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does the job; `false` when a contestant that is present could not be measured.
fn perform(job: Job) -> Result<bool> {
    match job {
        Job::Help => {
            println!("{}", options::USAGE);
            Ok(true)
        }
        Job::Child(child) => calls::child(&child).map(|()| true),
        Job::Probe(probe) => peers::child(&probe).map(|()| true),
        Job::Peers(options) => peers::measure(&options),
        Job::Startup(options) => measure(&options, startup::measure),
        Job::Calls(options) => measure(&options, calls::measure),
        Job::Load(options) => measure(&options, load::measure),
        Job::Memory(options) => measure(&options, memory::measure),
        Job::Named(place, number) => network::named::child(&place, number).map(|()| true),
        Job::Network(options) => measure(&options, network::measure),
        Job::Morning(options) => measure(&options, morning::measure),
        Job::Relay(port) => network::relay::child(port).map(|()| true),
        Job::Hold(port) => network::child::hold(port).map(|()| true),
        Job::Connect(port, work) => network::child::child(port, &work).map(|()| true),
    }
}

fn measure(options: &Options, driver: fn(&Options) -> Result<report::Report>) -> Result<bool> {
    let report = driver(options)?;
    print!("{}", if options.json { format!("{:#}\n", report.to_json()) } else { report.to_markdown() });
    Ok(report.complete())
}
