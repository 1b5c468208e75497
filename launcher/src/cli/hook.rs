//! `sbx hook`: the shell commands of an agent that stays outside go through `sbx`.

use crate::cli::{complain, print};
use crate::error::{Refusal, cannot};
use crate::hooks::canary::{self, State, Status};
use crate::hooks::filter::{self, Answer};
use crate::hooks::{self, Agent, Removed, Wanted};
use crate::host::Host;
use crate::profile::{self, Source};
use crate::report::json::document;
use crate::sys::signal::{self, Disposition};
use crate::sys::{plain, timer};
use crate::text::{counted, shown};
use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::io::Read;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  sbx hook install claude           the shell commands of Claude Code run in sbx from now on
  sbx hook install codex --trust    those of Codex, which skips hooks that it was not told to trust
  sbx hook status                   tries the hooks that are installed
  sbx hook remove claude            puts the settings back as they were

Exit status of status: 0 every hook that was asked about works; 1 one does not; 125 sbx failed.";

/// A hook that does not work, or is not there.
const NOT_ALL: i32 = 1;
/// With this status and a sentence on standard error, every agent refuses the tool call.
const REFUSE: i32 = 2;

/// Time for an answer, which takes milliseconds. Agents run a command without the hook if that takes too long for them,
/// so it ends by itself before: what the agent started then refuses.
const PATIENCE: Duration = Duration::from_secs(10);

/// `sbx hook`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct HookCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: HookAction,
}

/// The subcommands of `sbx hook`.
#[derive(Debug, Subcommand)]
pub enum HookAction {
    /// Write a hook into an agent's settings, and try it
    Install {
        /// The agent
        #[arg(value_name = "AGENT")]
        agent: Agent,
        /// What it does.
        #[command(flatten)]
        how: How,
        /// Have Codex trust the hook, as you would with /hooks; it skips one that it does not trust
        #[arg(long)]
        trust: bool,
    },
    /// Tell whether hooks are there, and try them
    Status {
        /// The agent [default: all that have a hook]
        #[arg(value_name = "AGENT")]
        agent: Option<Agent>,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Take a hook out, and put the settings back as they were
    Remove {
        /// The agent
        #[arg(value_name = "AGENT")]
        agent: Agent,
    },
    /// Answer an agent: reads a tool call, and prints it with its command in 'sbx run'
    #[command(hide = true)]
    Filter {
        /// The agent
        #[arg(value_name = "AGENT")]
        agent: Agent,
        /// What it does.
        #[command(flatten)]
        how: How,
    },
}

/// What a hook does with a command.
#[derive(Debug, Args)]
pub struct How {
    /// Profile of the commands: a name or a file
    #[arg(short, long, value_name = "NAME|FILE", default_value = profile::FALLBACK)]
    profile: OsString,
    /// Let commands in the sandbox run without asking you, where the agent leaves that to its hooks
    #[arg(long)]
    approve: bool,
}

impl ValueEnum for Agent {
    fn value_variants<'a>() -> &'a [Agent] {
        &Agent::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

/// Runs a subcommand.
pub fn run(action: &HookAction) -> Result<i32, Refusal> {
    if let HookAction::Filter { .. } = action {
        timer::end_after(PATIENCE).map_err(cannot("limit the time of the hook"))?;
    }
    let host = Host::of_this_process();
    // A hook, or an agent, that reads nothing is to be found out, and not to end this process.
    let _ = signal::dispose(libc::SIGPIPE, Disposition::Ignore);
    match action {
        HookAction::Install { agent, how, trust } => install(*agent, how, *trust, &host),
        HookAction::Status { agent, json } => status(*agent, *json, &host),
        HookAction::Remove { agent } => remove(*agent, &host),
        HookAction::Filter { agent, how } => answer(*agent, how, &host),
    }
}

fn install(agent: Agent, how: &How, trust: bool, host: &Host) -> Result<i32, Refusal> {
    if *host.nested.get() {
        return Err(Refusal::new(
            "cannot install a hook from inside a sandbox: what would be written here, no agent outside reads",
        ));
    }
    let wanted = wanted(how, profile_word(&how.profile, host)?)?;
    let installed = hooks::install(agent, &wanted, host)?;
    let mut text = String::new();
    let what = if installed.already { "the hook was there already" } else { "the hook is installed" };
    let _ = writeln!(text, "{}: {what}, in '{}'", agent.word(), shown(&installed.file));
    if let Some(copy) = &installed.copy {
        let _ = writeln!(text, "  the settings before it: '{}'", shown(copy));
    }
    // It is there, whatever comes of the rest.
    print(text.as_bytes())?;
    if trust && hooks::trust(agent, host)? {
        print(format!("  {} trusts it now\n", agent.name()).as_bytes())?;
    }
    report(&[agent], false, host)
}

/// The profile as a hook names it: agents start hooks in any directory.
fn profile_word(name: &OsStr, host: &Host) -> Result<String, Refusal> {
    let profile = profile::load(name, &host.search())?;
    let word = match &profile.source {
        Source::BuiltIn => return Ok(profile.name.to_string()),
        Source::File(path) => path
            .canonicalize()
            .map_err(|error| Refusal::new(format!("cannot find '{}': {}", shown(path), plain(&error))))?,
    };
    word.to_str().map(str::to_string).ok_or_else(|| Refusal::new("the name of the profile is not UTF-8"))
}

fn wanted(how: &How, profile: String) -> Result<Wanted, Refusal> {
    let program = std::env::current_exe()
        .map_err(|error| Refusal::new(format!("cannot find the program of sbx: {}", plain(&error))))?;
    Ok(Wanted { program, profile, approve: how.approve })
}

fn status(agent: Option<Agent>, json: bool, host: &Host) -> Result<i32, Refusal> {
    if let Some(agent) = agent {
        return report(&[agent], json, host);
    }
    let mut installed = Vec::new();
    for agent in Agent::ALL {
        let status = hooks::Record::read(agent, host)?;
        installed.extend(status.map(|_| agent));
    }
    if installed.is_empty() && !json {
        print(b"no hooks are installed; 'sbx hook install claude' installs one\n")?;
        return Ok(0);
    }
    report(&installed, json, host)
}

/// Prints what is known of these hooks.
fn report(agents: &[Agent], json: bool, host: &Host) -> Result<i32, Refusal> {
    let (mut code, mut entries) = (0, Vec::new());
    for agent in agents {
        let status = canary::status(*agent, host)?;
        if json {
            code = if status.state == State::Works { code } else { NOT_ALL };
            entries.push(facts(*agent, &status));
            continue;
        }
        let mut text = String::new();
        let (name, file) = (agent.word(), shown(&status.file));
        let _ = match &status.state {
            State::Works => writeln!(text, "{name}: the hook in '{file}' works: a test command ran confined"),
            State::Missing => writeln!(text, "{name}: no hook: its commands run without sbx ('{file}')"),
            State::Broken(why) => writeln!(text, "{name}: the hook in '{file}' does not work: {why}"),
        };
        let _ = match (&status.state, status.is_confirmed) {
            (State::Works, true) => writeln!(text, "  {} says that it runs the hook", agent.name()),
            (State::Works, false) => {
                writeln!(text, "  not tried: whether {} asks the hook; {}", agent.name(), agent.how_to_see())
            }
            _ => {
                code = NOT_ALL;
                Ok(())
            }
        };
        for sentence in agent.open_ends() {
            let _ = writeln!(text, "  note: {sentence}");
        }
        if status.others > 0 {
            let are = if status.others == 1 { "is" } else { "are" };
            let _ = writeln!(
                text,
                "  note: {} {are} asked as well; one that changes commands may undo this one",
                counted(status.others, "other hook")
            );
        }
        print(text.as_bytes())?;
    }
    if json {
        print(document(&Value::from(entries)).as_bytes())?;
    }
    Ok(code)
}

/// What is known of a hook, for programs.
fn facts(agent: Agent, status: &Status) -> Value {
    let (state, error) = match &status.state {
        State::Works => ("works", None),
        State::Missing => ("missing", None),
        State::Broken(why) => ("broken", Some(why)),
    };
    json!({
        "agent": agent.word(),
        "file": status.file.to_string_lossy(),
        "state": state,
        "error": error,
        "confirmed": status.is_confirmed,
        "other_hooks": status.others,
        "notes": agent.open_ends(),
    })
}

fn remove(agent: Agent, host: &Host) -> Result<i32, Refusal> {
    let (name, line) = (agent.word(), hooks::remove(agent, host)?);
    let line = match line {
        Removed::Restored(file) => format!("{name}: '{}' is what it was before\n", shown(&file)),
        Removed::Gone(file) => format!("{name}: '{}' is removed: there was none before\n", shown(&file)),
        Removed::TakenOut(file) => {
            format!("{name}: the hook is taken out of '{}', which has changed since\n", shown(&file))
        }
        Removed::Nothing(file) => format!("{name}: there is no hook in '{}'\n", shown(&file)),
    };
    print(line.as_bytes()).map(|()| 0)
}

/// What the agent's hook runs.
fn answer(agent: Agent, how: &How, host: &Host) -> Result<i32, Refusal> {
    let profile = how.profile.to_str().ok_or_else(|| Refusal::new("the name of the profile is not UTF-8"))?;
    let wanted = wanted(how, profile.to_string())?;
    let mut text = Vec::new();
    let read = std::io::stdin().lock().take(filter::LONGEST).read_to_end(&mut text);
    let answer = match read {
        Ok(_) => filter::answer(agent, &wanted, &text, host),
        Err(error) => {
            Answer::Refuse(format!("the hook of sbx could not read the tool call: {}", plain(&error)))
        }
    };
    match answer {
        Answer::Change(value) => print(format!("{value}\n").as_bytes()).map(|()| 0),
        Answer::Nothing => Ok(0),
        Answer::Refuse(why) => {
            complain(&why);
            Ok(REFUSE)
        }
    }
}
