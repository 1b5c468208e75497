//! All attempts, several at a time.

use std::collections::BTreeMap;

use super::runs;
use super::table::Attempt;
use super::trial::{self, Got};
use crate::{User, parallel};

/// Some attempts mostly wait, so there are more workers than processors.
const WORKERS: usize = 6;
/// How often an attempt that may win a race is repeated.
const CHANCES: usize = 4;

/// The result of an attempt by one user.
pub struct Judged {
    /// What was tried.
    pub attempt: &'static Attempt,
    /// Who tried it.
    pub user: User,
    /// Why it cannot be tried here: it does not work without a sandbox either.
    pub impossible: Option<String>,
    /// The results by level and profile.
    pub results: BTreeMap<(&'static str, &'static str), Got>,
}

/// An attempt that succeeded although a promise says that it cannot.
pub struct Broken {
    /// Where: level and profile.
    pub run: (&'static str, &'static str),
    /// The evidence.
    pub how: String,
}

impl Judged {
    /// The promises that do not hold.
    pub fn broken(&self) -> Vec<Broken> {
        let promised = |(level, profile): &(&str, &str)| {
            let level = runs::LEVELS.iter().find(|known| known.name == *level).expect("a level");
            self.attempt.promised(profile, level)
        };
        let results = self.results.iter();
        results
            .filter_map(|(run, got)| match got {
                Got::Through(how) => promised(run).then(|| Broken { run: *run, how: how.clone() }),
                Got::Nowhere(how) => Some(Broken { run: *run, how: format!("was not even started: {how}") }),
                Got::Refused(_) => None,
            })
            .collect()
    }
}

/// Tries all of these as each user.
pub fn judge(chosen: &[&'static Attempt]) -> Vec<Judged> {
    let users = User::all();
    // Those that wait start first.
    let mut jobs: Vec<(usize, &'static Attempt, User)> = chosen
        .iter()
        .enumerate()
        .flat_map(|(at, attempt)| users.iter().map(move |user| (at, *attempt, *user)))
        .collect();
    jobs.sort_by_key(|(_, attempt, _)| !attempt.has("slow"));
    let judge = |(at, attempt, user): &(usize, &'static Attempt, User)| (*at, try_everywhere(attempt, user));
    let mut judged = parallel::map(&jobs, WORKERS, judge);
    judged.sort_by_key(|(at, one)| (*at, one.user.id));
    judged.into_iter().map(|(_, one)| one).collect()
}

fn got_through(got: &Got) -> bool {
    matches!(got, Got::Through(_))
}

fn try_everywhere(attempt: &'static Attempt, user: &User) -> Judged {
    let mut judged = Judged { attempt, user: *user, impossible: None, results: BTreeMap::new() };
    match trial::control(attempt, user) {
        Got::Through(_) => {}
        Got::Refused(why) | Got::Nowhere(why) => {
            judged.impossible = Some(why);
            return judged;
        }
    }
    let mut place = None;
    for (profile, level) in runs::of(attempt) {
        let mut got = trial::inside(attempt, user, (profile, level), &mut place);
        // On a busy machine a run may end later than it should. A hole is there the second time as well.
        if attempt.has("slow") && got_through(&got) && attempt.promised(profile.name, level) {
            got = trial::inside(attempt, user, (profile, level), &mut place);
        }
        // An attempt without a promise must not look refused because a race was lost.
        for _ in 0..CHANCES {
            if !attempt.has("race") || got_through(&got) || attempt.promised(profile.name, level) {
                break;
            }
            got = trial::inside(attempt, user, (profile, level), &mut place);
        }
        judged.results.insert((level.name, profile.name), got);
    }
    judged
}
