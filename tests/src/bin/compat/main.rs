//! Runs the commands of tests/compat with and without `sbx` and compares the results: `make test-compat`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod judge;
mod list;
mod place;
mod report;
mod seen;

use std::path::PathBuf;
use std::process::exit;
use std::time::Instant;

use sbx_tests::{User, parallel, stage};

use crate::judge::{Way, allowed, refused};
use crate::list::{Class, Corpus};
use crate::place::Place;
use crate::report::{Line, Report, Row};

/// Flags for every run, so that the same corpus can be tried with a feature.
const FLAGS: &str = "SBX_COMPAT_FLAGS";
/// The share that has to pass under `workspace`, in per mille, if no flag was given and nothing was left out.
const ENOUGH: usize = 970;

const USAGE: &str =
    "usage: compat [--class NAME] [--only TEXT] [--user root|nobody] [--jobs N] [--update FILE] [-v]

  --class NAME   only lists whose name begins so (a file of tests/compat, without its ending)
  --only TEXT    only commands that contain this
  --user NAME    only this user; as root both are tried
  --jobs N       lists that run at the same time (2)
  --update FILE  puts the tables into this document
  -v             also tells what was refused where a command passed

SBX_COMPAT_FLAGS holds flags for every `sbx run`; SBX_TEST_NO_SKIP=1 makes a missing tool a failure.";

#[derive(Default)]
struct Options {
    class: Option<String>,
    only: Option<String>,
    user: Option<String>,
    jobs: usize,
    update: Option<PathBuf>,
    verbose: bool,
    flags: Vec<String>,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let mut options = Options { jobs: 2, ..Options::default() };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--class" => options.class = Some(value()?),
                "--only" => options.only = Some(value()?),
                "--user" => options.user = Some(value()?),
                "--jobs" => {
                    options.jobs = value()?.parse().map_err(|_| "--jobs needs a number".to_owned())?
                }
                "--update" => options.update = Some(value()?.into()),
                "-v" => options.verbose = true,
                _ => return Err(USAGE.to_owned()),
            }
        }
        let flags = std::env::var(FLAGS).unwrap_or_default();
        options.flags = flags.split_whitespace().map(str::to_owned).collect();
        Ok(options)
    }

    /// Whether nothing was left out.
    fn everything(&self) -> bool {
        self.class.is_none() && self.only.is_none() && self.user.is_none() && self.flags.is_empty()
    }
}

/// One list to work through.
struct Job<'a> {
    part: String,
    profile: Option<&'a str>,
    refused: bool,
    class: &'a Class,
}

fn jobs<'a>(corpus: &'a Corpus, options: &Options) -> Vec<Job<'a>> {
    let workspace = corpus.workspace.iter().map(|class| {
        let part = "workspace".to_owned();
        Job { part, profile: None, refused: false, class }
    });
    let narrow = corpus.narrow.iter().flat_map(|(profile, allowed, refused)| {
        [(allowed, false), (refused, true)].map(|(class, refused)| Job {
            part: class.name.clone(),
            profile: Some(profile),
            refused,
            class,
        })
    });
    let wanted = |job: &Job<'_>| options.class.as_ref().is_none_or(|name| job.class.name.starts_with(name));
    workspace.chain(narrow).filter(wanted).collect()
}

/// Works through one list.
fn work(job: &Job<'_>, user: &User, corpus: &Corpus, options: &Options) -> Result<Row, String> {
    let place = Place::new(user);
    place.prepare(job.class, &corpus.dir.join("fixtures"))?;
    let way = Way { profile: job.profile, flags: &options.flags, varies: &job.class.varies };
    let wanted = |line: &str| options.only.as_ref().is_none_or(|text| line.contains(text));
    let cases = job.class.cases.iter().filter(|case| case.concerns(user.name) && wanted(&case.line));
    let lines = cases.map(|case| {
        let verdict = if job.refused { refused(&place, &way, case) } else { allowed(&place, &way, case) };
        let known = case.known(user.name).filter(|key| !lifted(corpus, options, key));
        Line::new(case, known, verdict)
    });
    Ok(Row { part: job.part.clone(), class: job.class.name.clone(), user: user.name, lines: lines.collect() })
}

/// Whether one of the flags removes this reason.
fn lifted(corpus: &Corpus, options: &Options, key: &str) -> bool {
    let flag = corpus.reasons.get(key).and_then(|reason| reason.flag.as_deref());
    flag.is_some_and(|flag| options.flags.join(" ").contains(flag))
}

/// Works through all lists for one user, several at a time.
fn all(jobs: &[Job<'_>], user: &User, corpus: &Corpus, options: &Options) -> Result<Vec<Row>, String> {
    let rows = parallel::map(jobs, options.jobs, |job| {
        let started = Instant::now();
        let row = work(job, user, corpus, options);
        eprintln!("{} [{}]: {:.0?}", job.class.name, user.name, started.elapsed());
        row
    });
    rows.into_iter().collect()
}

fn users(options: &Options) -> Vec<User> {
    let mut users = User::all();
    users.retain(|user| options.user.as_ref().is_none_or(|name| name == user.name));
    users
}

fn run() -> Result<bool, String> {
    let options = Options::parse()?;
    let corpus = list::load()?;
    let jobs = jobs(&corpus, &options);
    let mut rows = Vec::new();
    // One user after the other: some commands use names in /tmp that both would use.
    for user in users(&options) {
        rows.extend(all(&jobs, &user, &corpus, &options)?);
    }
    let may_skip = std::env::var_os("SBX_TEST_NO_SKIP").is_none_or(|value| value != "1");
    let report = Report { rows, may_skip, flags: options.flags.join(" ") };
    let tables = report.tables(&corpus.reasons);
    println!("{tables}");
    for (why, count) in report.skipped() {
        println!("SKIPPED: {count} runs: {why}");
    }
    if options.verbose {
        report.refusals().iter().for_each(|line| println!("{line}"));
    }
    let complaints = report.complaints();
    complaints.iter().for_each(|line| println!("{line}"));
    let enough = !options.everything() || report.workspace_rate() >= ENOUGH;
    if !enough {
        println!("less than {} % of workspace passed", ENOUGH / 10);
    }
    if let Some(path) = &options.update {
        report::update(path, &tables)?;
    }
    Ok(complaints.is_empty() && enough)
}

fn main() {
    // Made before anything runs in parallel.
    stage::sbx();
    match run() {
        Ok(good) => exit(i32::from(!good)),
        Err(error) => {
            eprintln!("compat: {error}");
            exit(2)
        }
    }
}
