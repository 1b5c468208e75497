//! Questions to a policy, answered by what decides in a run: the filter's program, the path rules with their real
//! paths, the ports. Nothing is started.

mod by_name;
mod call;
mod network;
mod own;
mod path;
mod reach;

use crate::error::Refusal;
use crate::explain::hint::{Hint, Reason};
use crate::host::Host;
use crate::plan::Plan;
use crate::profile::{NetworkMode, Origin};
use crate::request::Request;
pub use network::Destination;
pub use reach::Reach;
use sbx_policy::calls::Call;
use std::path::PathBuf;

/// What is asked.
#[derive(Debug)]
pub enum Question {
    /// A system call, with these arguments or any.
    Call(Call, Option<[u64; 6]>),
    /// A path, and what is wanted of it.
    Path(PathBuf, Wanted),
    /// A TCP connection.
    Connect(Destination),
    /// Listening on this TCP port.
    Bind(u16),
    /// Connecting to a UNIX socket.
    Unix(PathBuf),
}

/// `--op`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Read the file, list the directory.
    pub read: bool,
    /// Change or make the file, or something in the directory.
    pub write: bool,
    /// Execute.
    pub execute: bool,
    /// Remove it, or give it another name.
    pub remove: bool,
}

/// What the policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes through.
    Allowed,
    /// It is refused.
    Refused,
    /// On something that the question leaves open.
    Depends,
}

/// A rule that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The key and place in a profile, or the flag.
    pub place: String,
    /// The reason that the profile gives.
    pub why: Option<String>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// In a word.
    pub verdict: Verdict,
    /// In a sentence, where a word is not enough.
    pub reason: Option<String>,
    /// The rules that decide.
    pub rules: Vec<Rule>,
    /// What it depends on.
    pub depends: Vec<String>,
    /// The flag that would allow it.
    pub hint: Option<Hint>,
    /// What is to be known besides.
    pub notes: Vec<String>,
    /// Whether it is about something of the run's own, which is not the machine's.
    pub own: bool,
}

impl Answer {
    fn new(verdict: Verdict) -> Answer {
        let (rules, depends, notes) = (Vec::new(), Vec::new(), Vec::new());
        Answer { verdict, reason: None, rules, depends, hint: None, notes, own: false }
    }

    /// With nothing more than a reason.
    pub fn of(verdict: Verdict, reason: &str) -> Answer {
        Answer { reason: Some(reason.to_string()), ..Answer::new(verdict) }
    }

    fn by(mut self, rule: Rule) -> Answer {
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
        self
    }

    /// Takes over what is said about a refusal in a run.
    fn told(mut self, said: Reason) -> Answer {
        self.reason = said.rule.map(|rule| rule.text);
        self.hint = said.hint;
        self
    }
}

impl Rule {
    fn flag(text: impl Into<String>) -> Rule {
        Rule { place: text.into(), why: None }
    }

    fn of(origin: &Origin) -> Rule {
        // What a flag adds is kept like an entry of a profile.
        let place = if origin.key.starts_with("--") { origin.key.to_string() } else { origin.to_string() };
        Rule { place, why: origin.why.as_ref().map(|why| why.to_string()) }
    }
}

/// What is asked about: a plan, and the request and the machine that it was made from.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The request.
    pub request: &'a Request,
    /// The machine.
    pub host: &'a Host,
    /// The plan.
    pub plan: &'a Plan,
    /// What its calls can do with paths, found when it is first asked for.
    pub reach: &'a Reach,
}

/// Answers by the policy that `sbx run` would have.
pub fn answer(about: Subject<'_>, question: &Question) -> Result<Answer, Refusal> {
    match question {
        Question::Call(call, args) => call::answer(about.plan, *call, *args),
        Question::Path(path, wanted) => path::answer(about, path, *wanted),
        Question::Connect(destination) => Ok(network::connect(about, destination)),
        Question::Bind(port) => Ok(network::bind(about, *port)),
        Question::Unix(path) => network::unix(about, path),
    }
}

/// The rule about the network as a whole.
fn network_rule(about: Subject<'_>) -> Rule {
    let plan = about.plan;
    match (&about.request.net, &plan.profile.network.mode) {
        (Some(_), _) => Rule::flag(match plan.network.mode {
            NetworkMode::None | NetworkMode::Loopback => "--net none",
            NetworkMode::Private => "--net private",
            NetworkMode::Host | NetworkMode::Ports => "--net host",
        }),
        (None, Some(mode)) => Rule::of(&mode.origin),
        (None, None) => Rule::flag(format!("profile '{}' has no network", plan.profile.name)),
    }
}
