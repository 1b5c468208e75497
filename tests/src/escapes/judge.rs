//! All attempts, several at a time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::runs;
use super::table::Attempt;
use super::trial::{self, Got};
use crate::User;

/// Some of them mostly wait, so there are more than processors.
const WORKERS: usize = 6;
/// How often a race is run again where it may be won.
const CHANCES: usize = 4;

/// What came of an attempt of one user.
pub struct Judged {
    /// What was tried.
    pub attempt: &'static Attempt,
    /// By whom.
    pub user: User,
    /// Why it cannot be tried here: it does not work without a sandbox either.
    pub impossible: Option<String>,
    /// What came of it, by level and profile.
    pub results: BTreeMap<(&'static str, &'static str), Got>,
}

/// An attempt that got through although it is promised that it does not.
pub struct Broken {
    /// Where: level and profile.
    pub run: (&'static str, &'static str),
    /// How it shows.
    pub how: String,
}

impl Judged {
    /// What is promised and does not hold.
    pub fn broken(&self) -> Vec<Broken> {
        let promised = |(level, profile): &(&str, &str)| {
            let level = runs::LEVELS.iter().find(|known| known.name == *level).expect("a level");
            self.attempt.promised(profile, level.abi())
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

/// Tries all of these, as every user there is.
pub fn judge(chosen: &[&'static Attempt]) -> Vec<Judged> {
    let mut users = vec![User::current()];
    if users[0].is_root() {
        users.push(User::ordinary());
    }
    // Those that wait are begun first.
    let mut jobs: Vec<(usize, &'static Attempt, User)> = chosen
        .iter()
        .enumerate()
        .flat_map(|(at, attempt)| users.iter().map(move |user| (at, *attempt, *user)))
        .collect();
    jobs.sort_by_key(|(_, attempt, _)| !attempt.has("slow"));
    let next = AtomicUsize::new(0);
    let judged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((at, attempt, user)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = try_everywhere(attempt, user);
                    judged.lock().unwrap().push((*at, one));
                }
            });
        }
    });
    let mut judged = judged.into_inner().unwrap();
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
        if attempt.has("slow") && got_through(&got) && attempt.promised(profile.name, level.abi()) {
            got = trial::inside(attempt, user, (profile, level), &mut place);
        }
        // What is not promised is not to look safe because a race was lost.
        for _ in 0..CHANCES {
            if !attempt.has("race") || got_through(&got) || attempt.promised(profile.name, level.abi()) {
                break;
            }
            got = trial::inside(attempt, user, (profile, level), &mut place);
        }
        judged.results.insert((level.name, profile.name), got);
    }
    judged
}
