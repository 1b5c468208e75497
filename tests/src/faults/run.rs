//! Goes through the kinds of runs.

use std::collections::BTreeSet;

use super::follow::{Seen, Wish, follow};
use super::harmless;
use super::judge::{Evidence, Outcome, Usual, Verdict, confined, judge};
use super::place::{self, Place, State};
use super::scenario::{SCENARIOS, Scenario};
use super::site::{self, Site};
use crate::{User, parallel, stage, subjects};

/// The results for one kind of run.
pub struct Done {
    /// The kind of run.
    pub scenario: &'static str,
    /// The number of calls until the command is executed, and after that.
    pub calls: [usize; 2],
    /// The injections.
    pub verdicts: Vec<Verdict>,
}

/// What is to be tried.
pub struct Selection {
    /// Only these kinds of runs; all where there is none.
    pub scenarios: Vec<String>,
    /// Only this user.
    pub user: Option<String>,
    /// Only these calls; all where there is none.
    pub calls: Vec<String>,
    /// Only the first error of each call.
    pub one_error: bool,
    /// Not the calls that are made after the command was executed.
    pub only_start: bool,
    /// Also calls that are alike.
    pub every: bool,
    /// The number of workers.
    pub jobs: usize,
    /// Whether each outcome is printed.
    pub verbose: bool,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection {
            scenarios: Vec::new(),
            user: None,
            calls: Vec::new(),
            one_error: false,
            only_start: false,
            every: false,
            jobs: 2,
            verbose: false,
        }
    }
}

impl Selection {
    /// Whether nothing is left out.
    pub fn is_everything(&self) -> bool {
        self.scenarios.is_empty() && self.user.is_none() && self.calls.is_empty() && !self.one_error
    }

    fn has(&self, site: &Site) -> bool {
        let named = self.calls.is_empty() || self.calls.iter().any(|call| call == site.name);
        named && !(self.only_start && site.call.late)
    }
}

/// Tries all that is selected, as each user.
pub fn run(selection: &Selection) -> Vec<Done> {
    // Made before anything runs in parallel.
    stage::sbx();
    stage::shim();
    subjects::program("facts");
    let mut users = User::all();
    users.retain(|user| selection.user.as_ref().is_none_or(|name| name == user.name));
    let named = |scenario: &Scenario| selection.scenarios.iter().any(|name| name == scenario.name);
    let wanted = |scenario: &&Scenario| selection.scenarios.is_empty() || named(scenario);
    let jobs: Vec<(&'static Scenario, User)> = SCENARIOS
        .iter()
        .filter(wanted)
        .flat_map(|scenario| users.iter().map(move |user| (scenario, *user)))
        .collect();
    parallel::map(&jobs, selection.jobs, |(scenario, user)| {
        let series = Series::start(scenario, user, selection.verbose);
        Done { scenario: scenario.name, calls: series.calls(), verdicts: series.run(selection) }
    })
}

/// All injections into one kind of run.
struct Series<'a> {
    scenario: &'a Scenario,
    user: &'a User,
    verbose: bool,
    place: Place,
    before: State,
    usual: Usual,
    wish: Wish,
    /// The undisturbed run.
    model: Seen,
}

impl<'a> Series<'a> {
    fn start(scenario: &'a Scenario, user: &'a User, verbose: bool) -> Series<'a> {
        let place = Place::new(user);
        // The first run makes what lasts.
        let out = place.run(scenario).run();
        assert!(out.code == Some(0), "cannot be run at all: {out}");
        place.take_report();
        let before = place.state();
        let usual = usual(&place, scenario);
        let wish = Wish { fault: None, alone: scenario.alone, library: scenario.library };
        let model = follow(place.run(scenario), wish);
        let followed = place.normal(&model.output.out());
        let odd: Vec<&str> =
            followed.lines().filter(|line| !usual.facts.lines().any(|l| l == *line)).collect();
        assert!(odd.is_empty() && !followed.is_empty(), "being followed changes something: {odd:?}");
        place.take_report();
        Series { scenario, user, verbose, place, before, usual, wish, model }
    }

    fn run(&self, selection: &Selection) -> Vec<Verdict> {
        let sites = Site::choose(&self.model.calls, selection.every);
        let mut verdicts = Vec::new();
        for site in sites.iter().filter(|site| selection.has(site)) {
            let errors = site::errors(site.name);
            let errors = match () {
                () if selection.one_error => &errors[..1],
                // One of several calls that are alike is enough.
                () if !site.is_first && !selection.every => &errors[errors.len() - 1..],
                () => errors,
            };
            verdicts.extend(errors.iter().map(|errno| self.inject(site, *errno)));
        }
        verdicts
    }

    fn inject(&self, site: &Site, errno: i32) -> Verdict {
        let when = if site.call.late { ", later" } else { "" };
        let role = self.role(site.call.process);
        let shown = format!("{role}{when}: {} = {}", site.shown(), site::error_name(errno));
        let seen =
            follow(self.place.run(self.scenario), Wish { fault: Some(site.fault(errno)), ..self.wish });
        let error = self.place.normal(&seen.output.err());
        let facts = self.place.normal(&seen.output.out());
        let ran = facts.starts_with("ran");
        let evidence = Evidence {
            facts,
            lines: error.lines().map(str::to_owned).collect(),
            report: Some(self.place.take_report()).filter(|_| self.scenario.report),
            left: self.place.restore(&self.before, ran).or_else(|| place::group_of(seen.pid)),
            library: self.scenario.library,
            late: site.call.late,
            seen: &seen,
        };
        let outcome = match judge(&self.usual, &evidence) {
            Outcome::Same if !site.call.late && harmless::reason(&site.shown()).is_none() => {
                Outcome::Broken("went on without a word, and nothing says why that is harmless".into())
            }
            outcome => outcome,
        };
        let (scenario, user) = (self.scenario.name, self.user.name);
        let verdict = Verdict { scenario, user, call: site.name, late: site.call.late, shown, outcome };
        // Printed at once: all of them take minutes.
        if verdict.is_broken() || self.verbose {
            println!("{verdict}");
        }
        verdict
    }

    fn calls(&self) -> [usize; 2] {
        let calls = &self.model.calls;
        [false, true].map(|late| calls.iter().filter(|call| call.late == late).count())
    }

    /// The role of a process.
    fn role(&self, process: usize) -> &'static str {
        match process {
            _ if Some(process) == self.model.command => "child",
            0 => "launcher",
            _ => "helper",
        }
    }
}

fn usual(place: &Place, scenario: &Scenario) -> Usual {
    let out = place.run(scenario).run();
    let lines: BTreeSet<String> = place.normal(&out.err()).lines().map(str::to_owned).collect();
    let report = place.take_report();
    Usual { facts: place.normal(&out.out()), lines, confined: report.as_ref().map(confined) }
}
