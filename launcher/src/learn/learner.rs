//! What is learned of each report: the narrowest rights, none of them sensitive.

use crate::enforce::scratch::is_ours as names_scratch;
use crate::error::Refusal;
use crate::explain::sensitive::{KnownCalls, Sensitive, Use};
use crate::hosts::HostRule;
use crate::learn::candidate::{Candidate, MOST, Rule};
use crate::learn::demand::{self, Asked, Demand, Teller, Unlearnable};
use crate::learn::right::{Evidence, Right};
use crate::learn::show::is_unused;
use crate::sys::path::{canonical, is_there};
use crate::sys::within::is_within;
use sbx_client::report::{Report, ViolationRecord};
use std::path::{Path, PathBuf};

/// Directories that everybody writes to. A scratch directory of the run's own takes their place.
const SHARED: [&str; 2] = ["/tmp", "/var/tmp"];
/// The directory of shared memory.
const SHARED_MEMORY: &str = "/dev/shm";
/// Maximum number of refusals of sensitive rights, and of others, that are listed as not learned.
const MOST_LISTED: usize = 200;

/// Something that was refused and is not learned.
#[derive(Clone, Debug)]
pub struct NotLearned {
    /// The right, where there is one; else the call.
    pub what: String,
    /// What kind of right it is.
    pub kind: &'static str,
    /// Why it is not learned.
    pub why: String,
    /// Whether that is because it is sensitive.
    pub sensitive: bool,
    /// What would allow it all the same.
    pub flag: Option<String>,
    /// A file that would have a rule of its own if it were there: the right is about the directory only because a file
    /// is made in it.
    pub file: Option<PathBuf>,
    /// Who asked for it.
    pub evidence: Evidence,
}

impl NotLearned {
    fn of(right: &Right, why: &str, evidence: Evidence) -> NotLearned {
        NotLearned {
            what: right.to_string(),
            kind: right.kind(),
            why: why.to_string(),
            sensitive: false,
            flag: None,
            file: None,
            evidence,
        }
    }
}

/// Learns.
pub struct Learner {
    /// What is learned.
    pub candidate: Candidate,
    /// What is not, in the order in which it was asked for.
    pub not_learned: Vec<NotLearned>,
    /// How much of that is not listed.
    pub unlisted: usize,
    /// Whether something was refused that a flag gives and no profile.
    pub is_beyond_profiles: bool,
    /// Rules about hosts that nothing was connected by.
    pruned: Vec<Right>,
    sensitive: Sensitive,
    calls: KnownCalls,
    rules: LearnerRules,
}

/// How it is learned.
#[derive(Clone, Copy, Debug, Default)]
pub struct LearnerRules {
    /// Sensitive rights are learned too.
    pub allow_sensitive: bool,
    /// A flag of the user's says which network there is.
    pub network_is_given: bool,
    /// Reports of files are learned from: there are no further rounds to find the hosts in.
    pub at_once: bool,
}

/// Whether everybody writes there.
fn is_shared(path: &Path) -> bool {
    SHARED.iter().any(|shared| path == Path::new(shared))
}

/// Whether it is the scratch directory of a run, by its name outside.
fn is_scratch(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().collect();
    matches!(parts[..], [_, tmp, own, ..] if tmp == "tmp" && names_scratch(own))
}

fn in_shared_memory(path: &Path) -> bool {
    is_within(path, Path::new(SHARED_MEMORY))
}

impl Learner {
    /// Knows nothing yet.
    pub fn new(
        candidate: Candidate,
        sensitive: Sensitive,
        calls: KnownCalls,
        rules: LearnerRules,
    ) -> Learner {
        Learner {
            candidate,
            not_learned: Vec::new(),
            unlisted: 0,
            is_beyond_profiles: false,
            pruned: Vec::new(),
            sensitive,
            calls,
            rules,
        }
    }

    /// Learns from a report; returns what is allowed now that was not before.
    pub fn learn(&mut self, report: &Report, round: usize) -> Result<Vec<Rule>, Refusal> {
        let mut learned = Vec::new();
        for record in &report.violations {
            self.record(record, round, &mut learned);
            if self.candidate.rules().len() > MOST {
                return Err(Refusal::new(format!(
                    "cannot learn a profile: the command asks for more than {MOST} rules, so its names are made up or \
                     too many; give it directories with --ro and --rw"
                )));
            }
        }
        self.crowded(&mut learned);
        Ok(learned)
    }

    fn record(&mut self, record: &ViolationRecord, round: usize, learned: &mut Vec<Rule>) {
        let teller = match self.rules.at_once {
            true => Teller::File(self.sensitive.workspace()),
            false => Teller::OwnRun,
        };
        let Some(demand) = demand::of(record, round, teller) else { return };
        let asked = match &demand.rights {
            Ok(asked) => asked.clone(),
            Err(Unlearnable { why, by_flag_alone }) => {
                self.is_beyond_profiles |= by_flag_alone;
                return self.refuse(&demand, None, why, None);
            }
        };
        let mut rights = Vec::new();
        for asked in asked {
            match self.rights(asked) {
                Ok(more) => rights.extend(more),
                Err((why, flag)) => return self.refuse(&demand, None, &why, flag),
            }
        }
        // All of them, or none: half of what a call takes is a right for nothing.
        for right in &rights {
            if let Some(why) = self.judge(right)
                && !self.rules.allow_sensitive
            {
                return self.refuse(&demand, Some(right), &why, None);
            }
        }
        // Asked for again it would be of no more use.
        if rights.iter().any(|right| self.pruned.contains(right)) {
            let why = "with a rule about it nothing was connected: its name leads to no public address, or nobody \
                       listens";
            return self.refuse(&demand, None, why, None);
        }
        for right in rights {
            let right = self.protectable(right);
            if self.candidate.add(right.clone(), demand.evidence.clone()) {
                learned.push(Rule { right, evidence: vec![demand.evidence.clone()] });
            }
        }
    }

    /// The same right on the whole workspace, where only that is protected.
    fn protectable(&self, right: Right) -> Right {
        match right {
            Right::Path(path, access) if access.write => {
                let whole = self.sensitive.needs_whole(&path).map(Path::to_path_buf);
                Right::Path(whole.unwrap_or(path), access)
            }
            right => right,
        }
    }

    /// The rights that are meant, in the way in which they are learned.
    fn rights(&self, asked: Asked) -> Result<Vec<Right>, (String, Option<String>)> {
        match asked {
            Asked::Network(rule) => self.network(rule).map(|right| right.into_iter().collect()),
            Asked::Place(path, _) if is_shared(&path) || is_scratch(&path) => Ok(vec![Right::Scratch]),
            Asked::Right(Right::Path(path, access)) if access.write && is_shared(&path) => {
                let steps = [Right::Scratch, Right::Namespaces];
                let next = steps.into_iter().find(|step| !self.candidate.has(step));
                let flag = format!("{} {}", access.flag(), path.display());
                next.map(|right| vec![right])
                    .ok_or(("everybody of this machine writes there".to_string(), Some(flag)))
            }
            Asked::Place(path, access) | Asked::Right(Right::Path(path, access)) => {
                Ok(match in_shared_memory(&path) && access.write {
                    // The names in it are made up. In namespaces of its own the run has its own.
                    true => vec![Right::Path(SHARED_MEMORY.into(), access), Right::Namespaces],
                    false => vec![Right::Path(path, access)],
                })
            }
            Asked::Right(right) => Ok(vec![right]),
        }
    }

    /// A network is learned in steps: first one of the run's own, in which sbx sees which hosts are asked for.
    fn network(&self, rule: String) -> Result<Option<Right>, (String, Option<String>)> {
        let whole = || {
            Err(("only the network of this machine allows it".to_string(), Some("--net host".to_string())))
        };
        let has_hosts = self.candidate.has(&Right::Hosts);
        match rule.is_empty() {
            _ if self.rules.network_is_given && !has_hosts => {
                Err(("--net says which network there is".to_string(), None))
            }
            true if has_hosts => whole(),
            false if has_hosts || self.rules.at_once => Ok(Some(Right::Connect(rule))),
            _ => Ok(Some(Right::Hosts)),
        }
    }

    /// Why a right is sensitive.
    pub fn judge(&self, right: &Right) -> Option<String> {
        match right {
            Right::Path(path, access) => {
                let judge = |what: &Use| self.either(path, |path| self.sensitive.path(path, *what));
                access.uses().iter().find_map(judge)
            }
            Right::Call(entry) => self.calls.judge(entry),
            Right::Connect(rule) => match HostRule::parse(rule) {
                Ok(rule) => self.sensitive.host(&rule),
                Err(_) => Some("no rule about hosts".to_string()),
            },
            Right::Unix(path) => self.either(path, |path| self.sensitive.unix(path)),
            Right::Bind(_) | Right::Command(_) | Right::Hosts | Right::Scratch | Right::Namespaces => None,
        }
    }

    /// Judges what a path leads to, and the path itself: a link may come and go while it is looked at, and the rule is
    /// about the path.
    fn either(&self, path: &Path, judge: impl Fn(&Path) -> Option<String>) -> Option<String> {
        let real = canonical(path);
        judge(&real).or_else(|| judge(path).filter(|_| real != path))
    }

    fn refuse(&mut self, demand: &Demand, right: Option<&Right>, why: &str, flag: Option<String>) {
        let what = right.map_or_else(|| demand.what.clone(), ToString::to_string);
        if self.not_learned.iter().any(|known| known.what == what && known.why == why) {
            return;
        }
        // A crowd of others hides no sensitive one.
        let sensitive = right.is_some();
        if self.not_learned.iter().filter(|known| known.sensitive == sensitive).count() >= MOST_LISTED {
            self.unlisted += 1;
            return;
        }
        let own = right.and_then(|right| Some(format!("{} {right}", right.flag()?)));
        self.not_learned.push(NotLearned {
            what,
            kind: right.map_or("call", Right::kind),
            why: why.to_string(),
            sensitive,
            flag: flag.or(own),
            file: right.and_then(|right| self.file_of(right, &demand.evidence)),
            evidence: demand.evidence.clone(),
        });
    }

    /// The file that was to be made, where a rule about it alone would be learned.
    fn file_of(&self, right: &Right, evidence: &Evidence) -> Option<PathBuf> {
        const OPENS: [&str; 4] = ["open", "openat", "openat2", "creat"];
        let Right::Path(directory, access) = right else { return None };
        let Evidence::Refused { call, path: Some(file), .. } = evidence else { return None };
        let is_made = OPENS.contains(&&**call) && file.parent() == Some(directory) && !is_there(file);
        let own = Right::Path(file.clone(), *access);
        (access.write && is_made && self.judge(&own).is_none()).then(|| file.clone())
    }

    /// Whether something was refused that is not learned because it is sensitive.
    pub fn is_sensitive_refused(&self) -> bool {
        self.not_learned.iter().any(|refused| refused.sensitive)
    }

    /// Many files of a directory become a rule about the directory.
    fn crowded(&mut self, learned: &mut Vec<Rule>) {
        for (directory, access) in self.candidate.crowded() {
            let right = Right::Path(directory.clone(), access);
            if self.rules.allow_sensitive || self.judge(&right).is_none() {
                self.candidate.join(&directory, access);
                learned.retain(
                    |rule| !matches!(&rule.right, Right::Path(path, _) if path.parent() == Some(&*directory)),
                );
                learned.extend(self.candidate.rules().iter().filter(|rule| rule.right == right).cloned());
            }
        }
    }

    /// Takes out the rules about hosts that nothing was connected by, and returns them: a name is asked for without a
    /// port, so its rule is a guess.
    pub fn prune(&mut self, report: &Report) -> Vec<Rule> {
        let gone = self.candidate.remove(|rule| !rule.is_given() && is_unused(&rule.right, report));
        self.pruned.extend(gone.iter().map(|rule| rule.right.clone()));
        gone
    }

    /// Goes back to earlier rules. Those that came later are not learned.
    pub fn take_back(&mut self, earlier: Candidate, why: &str) {
        let later = std::mem::replace(&mut self.candidate, earlier);
        for rule in later.rules().iter().filter(|rule| !self.candidate.has(&rule.right)) {
            let Some(evidence) = rule.evidence.first() else { continue };
            let flag = rule.right.flag().map(|flag| format!("{flag} {}", rule.right));
            self.not_learned.push(NotLearned { flag, ..NotLearned::of(&rule.right, why, evidence.clone()) });
        }
    }

    /// Takes out the rules about paths that are not what they were when they were learned. A command that has ended
    /// may have left a link in the place of what it was refused; the next run would follow that.
    pub fn settle(&mut self) -> bool {
        let changed = |rule: &Rule| match &rule.right {
            Right::Path(path, _) | Right::Unix(path) => {
                !rule.is_given() && path.canonicalize().ok().as_ref() != Some(path)
            }
            _ => false,
        };
        let gone = self.candidate.remove(changed);
        let any = !gone.is_empty();
        for rule in gone {
            let why = match &rule.right {
                Right::Path(path, _) if path.symlink_metadata().is_ok() => {
                    "there is a link now: it leads elsewhere"
                }
                _ => "it is gone again, so the next run would find nothing by that name",
            };
            let Some(evidence) = rule.evidence.into_iter().next() else { continue };
            self.not_learned.push(NotLearned::of(&rule.right, why, evidence));
        }
        any
    }
}
