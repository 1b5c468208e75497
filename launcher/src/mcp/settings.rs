//! What is fixed when the server starts: the policy of every run, and the bounds of what a call may ask for.
//!
//! Commands may change the workspace between two runs. So every path in a flag is made absolute and real once, and a
//! policy is refused where commands decide what is at one of its paths ([`Places`]).

use crate::error::Refusal;
use crate::host::Host;
use crate::mcp::places::{OPENING, Places};
use crate::plan::namespaces::Workspaces;
use crate::plan::{Plan, writable_roots};
use crate::profile;
use crate::program;
use crate::request::Request;
use crate::sys::path;
use crate::text::shown;
use sbx_client::Sandbox;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The program of this process, even if another one is installed in its place meanwhile.
const OWN: &str = "/proc/self/exe";
/// Time for a command that says nothing of it, where the flags do not either; and the most that it may say.
const USUAL_TIME: Duration = Duration::from_secs(120);
const MOST_TIME: Duration = Duration::from_secs(600);
/// Bytes of each stream that are passed on, where the flags do not say; and the most that they may say.
const USUAL_OUTPUT: u64 = 64 << 10;
const MOST_OUTPUT: u64 = 4 << 20;

/// Flags of `sbx run` that a server cannot have, and why.
pub const REFUSED: [(&str, &str); 9] = [
    ("cwd", "each call names its own directory"),
    ("exec", "a run without a supervisor leaves no report"),
    ("keep-background", "a call ends with all that it started"),
    ("pass-fd", "a command gets no descriptors of the server"),
    ("report", "the tool read_report has the reports"),
    ("report-fd", "the tool read_report has the reports"),
    ("summary", "nobody reads it: the tool read_report has the reports"),
    ("verbose", "it would be mixed into what commands write"),
    ("dangerously-unconfined", "a model's commands are never run without confinement"),
];

/// A flag of `sbx run`, as it was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Its value, if it takes one.
    pub value: Option<OsString>,
    /// Whether the value is a path.
    pub is_path: bool,
    /// Whether `sbx why` takes the flag too.
    pub of_policy: bool,
}

/// What the user asks for.
pub struct Start {
    /// The flags of `sbx run`, as a request without a command.
    pub request: Request,
    /// The same, one by one.
    pub flags: Vec<Given>,
    /// Whether the user is asked for what a command was refused, where the client can ask.
    pub asks: bool,
    /// How many commands run at a time.
    pub concurrent: usize,
}

/// What holds for every call.
pub struct Settings {
    /// The workspace, by its real path.
    pub workspace: PathBuf,
    /// What commands must not move.
    pub places: Places,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The flags of each run.
    flags: Vec<Given>,
    /// The shell of commands.
    pub shell: PathBuf,
    /// Time for a command that says nothing of it; `None` for no limit.
    pub usual_time: Option<Duration>,
    /// The longest time that one may ask for.
    pub most_time: Option<Duration>,
    /// Whether the user is asked.
    pub asks: bool,
    /// How many commands run at a time.
    pub concurrent: usize,
}

impl Settings {
    /// Refuses flags that no server can have.
    pub fn check(start: &Start) -> Result<(), Refusal> {
        let is_given = |name: &str| start.flags.iter().any(|given| given.name == name);
        match REFUSED.iter().find(|(name, _)| is_given(name)) {
            Some((name, why)) => Err(Refusal::new(format!("sbx mcp takes no --{name}: {why}"))),
            None => Ok(()),
        }
    }

    /// Names the profile by its real path, before a plan is made of it: as runs will. So its parents are those that are
    /// beside it, wherever links lead later.
    pub fn pin_profile(start: &mut Start, host: &Host) -> Result<(), Refusal> {
        let directory = host.directory()?;
        let named = start.request.profile.as_ref().filter(|name| profile::is_path(name));
        let Some(named) = named.map(|name| directory.join(name)) else { return Ok(()) };
        if Workspaces::of(host).reach(&named) {
            return Err(within_reach(&shown(&named), &named));
        }
        if let Ok(real) = path::real(&named) {
            start.request.profile = Some(real.into_os_string());
        }
        Ok(())
    }

    /// Settles what `start` asks for; `plan` is that of its runs.
    pub fn new(start: Start, plan: &Plan, host: &Host) -> Result<Settings, Refusal> {
        let Some(workspace) = plan.workspace.clone() else {
            return Err(Refusal::new(
                "there is no workspace for commands here; start sbx mcp in a project's directory, or name one with \
                 --workspace",
            ));
        };
        let Some(shell) = program::shell(&program::USUAL_SHELLS) else {
            return Err(Refusal::new("cannot run commands: there is neither bash nor sh"));
        };
        let (usual_time, most_time) = match start.request.timeout {
            None => {
                let at_most =
                    |time: Duration| Some(plan.limits.timeout.map_or(time, |limit| limit.min(time)));
                (at_most(USUAL_TIME), at_most(MOST_TIME))
            }
            Some(bound) => (bound.limit(), bound.limit()),
        };
        let output = output(&start.request, plan)?;
        let flags = absolute(&start.flags, host.directory()?);
        let mut places = Places::of(plan, &workspace, host.directory()?);
        for given in flags.iter().filter(|given| given.is_path) {
            given.value.iter().for_each(|value| places.add(given.name, Path::new(value)));
        }
        places.check()?;
        profile_is_out_of_reach(plan, host)?;
        let fixed =
            [("workspace", workspace.as_os_str().to_owned()), ("max-output", output.to_string().into())];
        let dropped = ["workspace", "max-output", "timeout", "quiet"];
        let mut flags: Vec<Given> =
            flags.into_iter().filter(|given| !dropped.contains(&given.name)).collect();
        flags.extend(fixed.map(|(name, value)| Given {
            name,
            value: Some(value),
            is_path: name == "workspace",
            of_policy: name == "workspace",
        }));
        Ok(Settings {
            home: plan.home.clone().map(|home| path::canonical(&home)),
            workspace,
            places,
            flags,
            shell,
            usual_time,
            most_time,
            asks: start.asks,
            concurrent: start.concurrent,
        })
    }

    /// The sandbox of a run: the flags, and what the user granted since.
    pub fn sandbox(&self, granted: &[(String, OsString)]) -> Sandbox {
        let named = |given: &Given| format!("--{}", given.name);
        let sandbox = self.flags.iter().fold(Sandbox::usual(), |sandbox, given| match &given.value {
            Some(value) => sandbox.flag(named(given), value),
            None => sandbox.switch(named(given)),
        });
        let sandbox = granted.iter().fold(sandbox, |sandbox, (flag, value)| sandbox.flag(flag, value));
        sandbox.program(OWN)
    }

    /// `sbx why` with the flags of the policy.
    pub fn question(&self, granted: &[(String, OsString)]) -> std::process::Command {
        let mut command = std::process::Command::new(OWN);
        command.args(["why", "--json"]).current_dir(&self.workspace);
        let word = |flag: &str, value: Option<&OsString>| {
            let mut word = OsString::from(flag);
            if let Some(value) = value {
                word.push("=");
                word.push(value);
            }
            word
        };
        let given = self.flags.iter().filter(|given| given.of_policy);
        command.args(given.map(|given| word(&format!("--{}", given.name), given.value.as_ref())));
        let granted = granted.iter().filter(|(flag, _)| flag != "--connect");
        command.args(granted.map(|(flag, value)| word(flag, Some(value))));
        command
    }
}

/// Refuses a profile with a file that commands of other runs may have written.
fn profile_is_out_of_reach(plan: &Plan, host: &Host) -> Result<(), Refusal> {
    match writable_roots::profile_reached(&plan.profile, host.directory()?, host) {
        None => Ok(()),
        Some(file) => Err(within_reach(&plan.profile.name, file)),
    }
}

fn within_reach(name: &str, file: &Path) -> Refusal {
    Refusal::new(format!(
        "refused the profile '{name}': commands of other runs may have written '{}', or a link on the way there; keep \
         the file elsewhere",
        shown(file)
    ))
}

/// Bytes of each stream that are passed on.
fn output(request: &Request, plan: &Plan) -> Result<u64, Refusal> {
    match request.max_output {
        None => Ok(plan.limits.output.map_or(USUAL_OUTPUT, |limit| limit.min(USUAL_OUTPUT))),
        Some(bound) => bound.limit().filter(|bytes| *bytes <= MOST_OUTPUT).ok_or_else(|| {
            Refusal::new(format!(
                "--max-output of sbx mcp is at most {MOST_OUTPUT}: a model reads what is passed on"
            ))
        }),
    }
}

/// The flags with absolute paths: what is relative would begin at the directory of each call. What opens something is
/// pinned to its real path. Where nothing is there it stays what it is, and `sbx run` says what to do about it.
fn absolute(flags: &[Given], directory: &Path) -> Vec<Given> {
    let pins = |given: &Given| given.name == "profile" || OPENING.contains(&given.name);
    let fixed = |given: &Given| {
        let value = given.value.as_ref().filter(|_| given.is_path).map(|value| {
            let whole = directory.join(value);
            let real = pins(given).then(|| path::real(&whole).ok()).flatten();
            real.unwrap_or(whole).into_os_string()
        });
        Given { value: value.or_else(|| given.value.clone()), ..given.clone() }
    };
    flags.iter().map(fixed).collect()
}

/// The limit of a bound, if it is one.
pub fn within(wanted: Duration, most: Option<Duration>) -> bool {
    most.is_none_or(|most| wanted <= most)
}
