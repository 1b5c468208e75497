//! `sbx` beside other sandboxes: what each confines, start-up, everyday commands, runs per second, and single
//! calls. Every installed sandbox takes part; one that is missing, or does not work here, is listed with the reason.

mod confinement;
mod tasks;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::contestants::{self, Contestant};
use crate::document::Document;
use crate::options::Options;
use crate::report::{Column, Outcome, Report, Row, Target};
use crate::scratch::{self, Scratch};
use crate::stats::{self, Sorted};
use crate::timed::{self, Entry};
use crate::{Result, calls, load, race, report, startup, sys};

use confinement::{Seen, Surroundings};
use tasks::{Size, TASKS, Task};

pub(crate) use confinement::{CHILD, child};

/// The figures of a row: for each task its median, and the ratio to bare.
const COLUMNS: [Column; 2 * TASKS.len()] = [
    Column { key: "startup_us", heading: "start-up µs", digits: 0 },
    Column { key: "startup_ratio", heading: "× bare", digits: 2 },
    Column { key: "git_ms", heading: "git status ms", digits: 1 },
    Column { key: "git_ratio", heading: "× bare", digits: 2 },
    Column { key: "git_large_ms", heading: "git status (large) ms", digits: 1 },
    Column { key: "git_large_ratio", heading: "× bare", digits: 2 },
    Column { key: "python_ms", heading: "python3 ms", digits: 1 },
    Column { key: "python_ratio", heading: "× bare", digits: 2 },
    Column { key: "find_ms", heading: "find ms", digits: 1 },
    Column { key: "find_ratio", heading: "× bare", digits: 2 },
    Column { key: "make_ms", heading: "make -j2 ms", digits: 0 },
    Column { key: "make_ratio", heading: "× bare", digits: 2 },
];

/// Throughput is measured at the first ones of `load`'s widths.
const WIDTHS: usize = 3;

/// How many times fewer rounds than for start-up.
const FEWER_STORMS: u64 = 100;
const FEWER_LOOPS: u64 = 15;

/// These have to do everything; what a narrower profile or another sandbox does not run is a finding, not a failure.
const THOROUGH: [&str; 3] = [contestants::BARE, "workspace", "private"];

/// A home directory like many others, since a profile has rules for its files.
const HOME: [&str; 8] =
    [".bashrc", ".profile", ".gitconfig", ".ssh/", ".config/", ".cache/", ".local/share/", ".cargo/bin/"];

/// Measures all contestants, prints and writes the tables; `false` if one that has to do everything did not.
pub(crate) fn measure(options: &Options) -> Result<bool> {
    let sbx = contestants::find_sbx(options.sbx.as_deref())?;
    let document = options.update.as_deref().map(Document::open).transpose()?;
    if let Some(user) = options.user {
        sys::become_user(user)?;
    }
    sys::catch_alarm()?;
    let place = Place::make(if options.small { &tasks::SMALL } else { &tasks::FULL })?;
    let seen = place.look_at(line_up(&sbx, "").into_iter().chain(place.peers()).collect())?;
    let seed = options.seed.unwrap_or_else(stats::fresh_seed);
    let facts = facts(&sbx, options, seed);
    let reports = place.compare(&seen, &sbx, options, seed)?;
    let text = to_markdown(&facts, &seen, &reports);
    if options.json {
        println!("{:#}", to_json(&facts, &seen, &reports));
    } else {
        print!("{text}");
    }
    let user = if sys::user() == 0 { "root" } else { "an ordinary user" };
    document.map_or(Ok(()), |mut document| document.put(&format!("make bench-peers as {user}"), &text))?;
    Ok(complete(&seen, &reports))
}

fn line_up(sbx: &Path, more: &str) -> Vec<Contestant> {
    vec![
        contestants::bare(),
        contestants::sbx("exec", sbx, &format!("--exec --profile minimal{more}")),
        contestants::sbx("minimal", sbx, &format!("--profile minimal{more}")),
        contestants::sbx("workspace", sbx, ""),
        contestants::sbx("private", sbx, "--net private"),
    ]
}

/// A home directory and a workspace in it, where all commands start.
struct Place {
    home: Scratch,
    workspace: PathBuf,
    env: Vec<OsString>,
}

impl Place {
    fn make(size: &Size) -> Result<Self> {
        let home = Scratch::new(&scratch::place())?;
        let workspace = home.path().join("work");
        let make = |name: &str| {
            let path = home.path().join(name);
            if name.ends_with('/') { fs::create_dir_all(path) } else { fs::write(path, "") }
        };
        HOME.iter()
            .try_for_each(|name| make(name))
            .and_then(|()| fs::create_dir(&workspace))
            .and_then(|()| {
                fs::write(home.path().join("landstrip.json"), landstrip_policy(home.path(), &workspace))
            })
            .map_err(|e| format!("cannot make files in '{}': {e}", home.path().display()))?;
        let env = environment(home.path());
        tasks::lay_out(&workspace, size, &env)?;
        scratch::enter(&workspace)?;
        Ok(Self { home, workspace, env })
    }

    fn peers(&self) -> Vec<Contestant> {
        contestants::peers(self.home.path(), &self.workspace)
    }

    fn look_at(&self, all: Vec<Contestant>) -> Result<Vec<Seen>> {
        let surroundings = Surroundings::new(self.home.path())?;
        let copy = scratch::copy_of_self(&self.workspace)?;
        confinement::look_at_all(all, &surroundings, &copy, &self.env)
    }

    /// The tables of figures.
    fn compare(&self, seen: &[Seen], sbx: &Path, options: &Options, seed: u64) -> Result<Vec<Report>> {
        let present: Vec<&Contestant> =
            seen.iter().filter(|s| s.confinement.is_ok()).map(|s| &s.contestant).collect();
        let times = self.times(&present, options, seed)?;
        let widths = load::WIDTHS.get(..WIDTHS).unwrap_or(&load::WIDTHS);
        let storms = load::compare(&present, widths, &self.env, &fewer(options, FEWER_STORMS), seed)?;
        // getppid, the cheapest call there is, is not in the profile.
        let wider = line_up(sbx, " --allow-calls getppid");
        let others = present.iter().filter(|c| !wider.iter().any(|w| w.id == c.id));
        let looped: Vec<&Contestant> = wider.iter().chain(others.copied()).collect();
        let copy = scratch::copy_of_self(&self.workspace)?;
        let loops = calls::compare(&looped, &copy, &self.env, &fewer(options, FEWER_LOOPS), seed)?;
        let report = |title: &str, columns: &[Column], rows| Report {
            title: title.into(),
            columns: columns.to_vec(),
            rows,
            ..Report::default()
        };
        let load_columns = load::COLUMNS.get(..2 * WIDTHS).unwrap_or(&load::COLUMNS);
        Ok(vec![
            times,
            report("Runs started a second", load_columns, storms),
            report("Calls, in nanoseconds", &calls::COLUMNS, loops),
        ])
    }

    /// Every task in a race of its own.
    fn times(&self, present: &[&Contestant], options: &Options, seed: u64) -> Result<Report> {
        let mut races = Vec::new();
        let mut blanks = Vec::new();
        for task in &TASKS {
            let mut entries = task.admit(present, &self.env).unwrap_or_else(|why| {
                blanks.push(format!("{}: {why}", task.name));
                Vec::new()
            });
            race::interleave(&mut entries, &fewer(options, task.fewer), seed, Entry::run_once);
            blanks.extend(entries.iter().filter_map(|entry| {
                let why = entry.samples().err()?;
                Some(format!("{}, {}: {}", entry.contestant.name, task.name, why.short_reason()))
            }));
            races.push((task, entries));
        }
        let row = |contestant: &&Contestant| Row {
            id: contestant.id,
            name: contestant.name.clone(),
            outcome: Outcome::Measured(races.iter().flat_map(|race| figures(race, contestant.id)).collect()),
        };
        Ok(Report {
            title: "Start-up and everyday commands".into(),
            columns: COLUMNS.to_vec(),
            rows: present.iter().map(row).collect(),
            blanks,
            targets: targets(&races),
            ..Report::default()
        })
    }
}

/// This contestant takes no flags: /tmp and the workspace to write, the rest of the home directory closed.
fn landstrip_policy(home: &Path, workspace: &Path) -> String {
    let (home, workspace) = (home.to_string_lossy(), workspace.to_string_lossy());
    let files = json!({
        "allowWrite": ["/dev", "/tmp", "/var/tmp", workspace],
        "denyWrite": [home],
        "allowRead": [workspace],
        "denyRead": [home],
    });
    json!({ "filesystem": files, "network": { "allowNetwork": true } }).to_string()
}

/// The same for all contestants, without the caller's configuration and wrappers in the path.
fn environment(home: &Path) -> Vec<OsString> {
    let mut own = OsString::from("HOME=");
    own.push(home);
    vec![own, "PATH=/usr/local/bin:/usr/bin:/bin".into(), "LANG=C.UTF-8".into(), "TERM=dumb".into()]
}

fn fewer(options: &Options, times: u64) -> Options {
    let least = |rounds: u64, least| (rounds / times).max(least);
    Options { rounds: least(options.rounds, 1), warm_up: least(options.warm_up, 0), ..options.clone() }
}

fn figures((task, entries): &(&Task, Vec<Entry>), id: &str) -> [Option<f64>; 2] {
    let samples = timed::samples(entries, id);
    let median = (!samples.is_empty()).then(|| Sorted::new(samples.to_vec()).median() / task.unit);
    [median, timed::ratio(entries, id, contestants::BARE)]
}

fn targets(races: &[(&Task, Vec<Entry>)]) -> Vec<Target> {
    let of = |name: &str| races.iter().find(|(task, _)| task.name == name);
    let mut targets = of("start-up").map(|(_, entries)| startup::targets(entries)).unwrap_or_default();
    targets.extend(["git status", tasks::LARGE_STATUS].map(|name| Target {
        what: format!("{name} under `sbx run`, to bare"),
        limit: 1.15,
        measured: of(name).and_then(|(_, e)| timed::ratio(e, "workspace", contestants::BARE)),
        unit: "×",
    }));
    targets
}

fn facts(sbx: &Path, options: &Options, seed: u64) -> Vec<(&'static str, String)> {
    let mut facts = report::facts(sbx, options, seed);
    for program in contestants::peer_programs() {
        if !["bwrap", "firejail"].contains(&program) {
            facts.push((program, report::version(program)));
        }
    }
    facts
}

fn to_markdown(facts: &[(&str, String)], seen: &[Seen], reports: &[Report]) -> String {
    let tables: Vec<String> = reports.iter().map(Report::to_markdown).collect();
    let (facts, compared) = (report::listed(facts), confinement::to_markdown(seen));
    format!("### What is compared\n\n{facts}{compared}\n{}", tables.join("\n"))
}

fn to_json(facts: &[(&str, String)], seen: &[Seen], reports: &[Report]) -> Value {
    let (facts, compared) = (report::facts_to_json(facts), confinement::to_json(seen));
    let reports: Vec<_> = reports.iter().map(Report::to_json).collect();
    json!({ "facts": facts, "compared": compared, "reports": reports })
}

/// Whether all did what they have to: what bare does, or at least start.
fn complete(seen: &[Seen], reports: &[Report]) -> bool {
    let ours = |id| line_up(Path::new("sbx"), "").iter().any(|c| c.id == id);
    let confined = seen.iter().all(|s| s.confinement.is_ok() || !ours(s.contestant.id));
    confined && reports.iter().all(|report| report.rows.iter().all(|row| !ours(row.id) || did(row, report)))
}

fn did(row: &Row, report: &Report) -> bool {
    let (Some(own), Some(bare)) =
        (row.outcome.figures(), report.rows.first().and_then(|r| r.outcome.figures()))
    else {
        return false;
    };
    let due = if THOROUGH.contains(&row.id) { bare.len() } else { 1 };
    own.iter().zip(bare).take(due).all(|(own, bare)| own.is_some() || bare.is_none())
}
