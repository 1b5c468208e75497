//! What a learned profile can give: one right each, and what shows that the command wants it.

pub use crate::explain::hint::Access;
use crate::explain::sensitive::Use;
use crate::sys::path::canonical;
use crate::sys::within::is_below;
use crate::text::{escape, shown};
use sbx_policy::calls::Call;
use sbx_policy::list::{self, Target};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

impl Access {
    /// What it lets be done: who may change a file may read it as well.
    pub fn uses(self) -> &'static [Use] {
        if self.write { &[Use::Write, Use::Read] } else { &[Use::Read] }
    }

    fn word(self) -> &'static str {
        match (self.write, self.execute) {
            (false, false) => "read",
            (false, true) => "execute",
            (true, false) => "write",
            (true, true) => "write, execute",
        }
    }
}

/// One right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Right {
    /// A path and what is below it, by its real name.
    Path(PathBuf, Access),
    /// An entry of a list of system calls.
    Call(String),
    /// A network of the run's own, with ways to the hosts of rules.
    Hosts,
    /// A rule about a host.
    Connect(String),
    /// A TCP port to listen on.
    Bind(u16),
    /// A UNIX socket to connect to.
    Unix(PathBuf),
    /// A command to be executed, where there is a list of them.
    Command(OsString),
    /// A scratch directory, named by `TMPDIR`.
    Scratch,
    /// Namespaces of the run's own, and a /tmp in them.
    Namespaces,
}

impl Right {
    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Right::Path(_, access) => access.word(),
            Right::Call(_) => "call",
            Right::Hosts | Right::Namespaces => "own",
            Right::Connect(_) => "connect",
            Right::Bind(_) => "listen",
            Right::Unix(_) => "socket",
            Right::Command(_) => "start",
            Right::Scratch => "write",
        }
    }

    /// The flag of `sbx run` that gives it too, if one does.
    pub fn flag(&self) -> Option<&'static str> {
        Some(match self {
            Right::Path(_, access) => access.flag(),
            Right::Call(_) => "--allow-calls",
            Right::Connect(_) => "--connect",
            Right::Bind(_) => "--bind",
            Right::Unix(_) => "--unix",
            Right::Command(_) => "--allow-command",
            Right::Hosts | Right::Scratch | Right::Namespaces => return None,
        })
    }
}

/// What it is about, fit for a terminal.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Right::Path(path, _) | Right::Unix(path) => f.write_str(&shown(path)),
            Right::Call(text) | Right::Connect(text) => f.write_str(text),
            Right::Bind(port) => write!(f, "TCP port {port}"),
            Right::Command(name) => f.write_str(&escape(name.as_bytes(), 400)),
            Right::Hosts => f.write_str("a network of its own, with ways to named hosts"),
            Right::Scratch => f.write_str("a scratch directory (TMPDIR)"),
            Right::Namespaces => f.write_str("namespaces and a /tmp of its own"),
        }
    }
}

/// Maximum number of programs that the reason for a rule names.
const MOST: usize = 3;

/// Something that shows that a right is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A refused call.
    Refused {
        /// The round, or the report, from 1.
        round: usize,
        /// The name that the process gave itself, made fit for a terminal.
        process: String,
        /// The system call.
        call: String,
        /// The path that it was about, the first time.
        path: Option<PathBuf>,
        /// How often.
        count: u64,
    },
    /// A flag of the user's.
    Given(&'static str),
    /// What was refused before, more narrowly: so many rules became one.
    Joined(usize),
}

impl Evidence {
    /// Adds what says the same to the count; says whether it does.
    pub fn takes(&mut self, new: &Evidence) -> bool {
        let (
            Evidence::Refused { round, process, call, count, .. },
            Evidence::Refused { round: of, process: by, call: named, count: more, .. },
        ) = (self, new)
        else {
            return false;
        };
        let same = (*round, &*process, &*call) == (*of, by, named);
        if same {
            *count = count.saturating_add(*more);
        }
        same
    }
}

/// What a rule is about besides what was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wider {
    /// Another call than the refused one.
    OtherCall,
    /// The directory of what was to be written.
    Directory,
}

/// Whether a rule is about more than what was refused.
pub fn wider(right: &Right, evidence: &Evidence) -> Option<Wider> {
    let Evidence::Refused { call, path, .. } = evidence else { return None };
    match (right, path) {
        (Right::Call(entry), _) => match list::parse(entry.as_bytes()).ok()?.target {
            Target::Call(allowed) if Call::named(call.as_bytes()) != Some(allowed) => Some(Wider::OtherCall),
            _ => None,
        },
        (Right::Path(place, access), Some(path)) if access.write => {
            let is_wider = match path.is_absolute() {
                true => is_below(path, place) || is_below(&canonical(path), &canonical(place)),
                // It is not known what it is relative to.
                false => path.file_name().is_some_and(|name| place.file_name() != Some(name)),
            };
            is_wider.then_some(Wider::Directory)
        }
        _ => None,
    }
}

/// The reason that a profile gives for a rule. `what`: "round" or "report".
pub fn why(right: &Right, all: &[Evidence], what: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    let refused = all.iter().filter(|evidence| matches!(evidence, Evidence::Refused { .. }));
    for evidence in all {
        match evidence {
            Evidence::Given(flag) => parts.push(format!("given to sbx learn with {flag}")),
            Evidence::Joined(count) => parts.push(format!("in place of {count} rules about what is in it")),
            Evidence::Refused { .. } => {}
        }
    }
    let count = refused.clone().count();
    let was_refused = refused.clone().any(|evidence| wider(right, evidence).is_none());
    let mut reasons: Vec<String> = Vec::new();
    for evidence in refused.take(MOST) {
        if let Evidence::Refused { round, process, call, path, count } = evidence {
            let times = if *count > 1 { format!(" {count} times") } else { String::new() };
            let mut said = format!("refused in {what} {round}: {call} of {process}{times}");
            let reason = match (wider(right, evidence), path) {
                (Some(Wider::OtherCall), _) if !was_refused => format!(
                    "{right} itself was not, but goes with it: a command that makes files also removes them"
                ),
                (Some(Wider::Directory), Some(path)) => {
                    said.push_str(&format!(" on {}", shown(path)));
                    "it is for the whole directory, to write and to delete, because a file that is made, renamed or \
                     removed changes its directory"
                        .to_string()
                }
                _ => String::new(),
            };
            parts.push(said);
            if !reason.is_empty() && !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    if count > MOST {
        parts.push(format!("and {} more", count - MOST));
    }
    parts.extend(reasons);
    parts.join("; ")
}
