//! `sbx agent`: a whole agent in a run. Its profile says what it may do; `agent` in it says how it is started.

use crate::cli::flags::ShellFlags;
use crate::cli::table::{GROUPS, Takes};
use crate::cli::{print, profile};
use crate::error::{Outcome, Refusal};
use crate::explain::hint::shell_word;
use crate::host::Host;
use crate::profile::{self as profiles, Given, Name, Origin, Profile, Search, Source, Variables};
use crate::program;
use crate::report::json::document;
use crate::request::Request;
use crate::text::{escape, shown, tame};
use crate::{run, selftest};
use clap::{Arg, ArgMatches, Args, FromArgMatches, Subcommand};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::fmt::{Display, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  sbx agent claude                          Claude Code in this directory, confined to it
  sbx agent codex -- exec 'run the tests'   arguments of the agent follow '--'
  sbx agent gemini --connect example.org    flags of sbx run: one more host
  sbx agent claude --dry-run                prints the equal 'sbx run' line
  sbx agent list                            the agents that are known
  sbx agent show codex                      what it may do, and what is protected from it

Agents of your own: ~/.config/sbx/profiles/agents/NAME.json.";

/// `sbx agent`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct AgentCommand {
    /// What to do, if not to start one.
    #[command(subcommand)]
    pub action: Option<AgentAction>,
    /// The agent to start.
    #[command(flatten)]
    pub start: Start,
}

/// The subcommands of `sbx agent`.
#[derive(Debug, Subcommand)]
pub enum AgentAction {
    /// List the agents that are known
    List {
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Show what an agent may do, what is protected from it, and the equal 'sbx run' line
    Show {
        /// The agent
        #[arg(value_name = "NAME")]
        name: OsString,
        /// Its whole profile, as JSON on standard output
        #[arg(long)]
        json: bool,
    },
}

/// A start, with the flags of `sbx run`.
#[derive(Debug, Default)]
pub struct Start {
    name: OsString,
    dry_run: bool,
    request: Request,
    /// The flags of `sbx run` as they were typed.
    words: Vec<OsString>,
    arguments: Vec<OsString>,
}

impl Args for Start {
    fn augment_args(command: clap::Command) -> clap::Command {
        let os = clap::value_parser!(OsString);
        // The completions change the first, which would put it last.
        let name = Arg::new("name").index(1).value_name("NAME").required(true).value_parser(os);
        let arguments = Arg::new("arguments").index(2).value_name("ARGS").last(true).num_args(0..);
        let dry_run = Arg::new("dry-run").long("dry-run").action(clap::ArgAction::SetTrue);
        // It is refused with a sentence: the agent's name says which profile it is.
        ShellFlags::augment_args(command)
            .mut_arg("profile", |profile| profile.hide(true))
            .arg(name.help("The agent: claude, codex, gemini, opencode, or one of yours"))
            .arg(dry_run.help("Print the equal 'sbx run' line, and start nothing"))
            .arg(
                arguments
                    .value_parser(clap::value_parser!(OsString))
                    .help("Arguments of the agent, after '--'"),
            )
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Start {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Some(name) = matches.get_one::<OsString>("name").cloned() else { return Ok(Start::default()) };
        Ok(Start {
            name,
            dry_run: matches.get_flag("dry-run"),
            request: ShellFlags::from_arg_matches(matches)?.0,
            words: words(matches),
            arguments: matches.get_many("arguments").into_iter().flatten().cloned().collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flags of the table as they are typed, each value in a word of its own.
fn words(matches: &ArgMatches) -> Vec<OsString> {
    let mut words = Vec::new();
    for flag in GROUPS.iter().flat_map(|(_, flags)| *flags) {
        let name = OsString::from(format!("--{}", flag.long));
        if matches!(flag.takes, Takes::Switch(_)) {
            words.extend(Some(name).filter(|_| matches.get_flag(flag.long)));
            continue;
        }
        for value in matches.get_many::<OsString>(flag.long).into_iter().flatten() {
            words.extend([name.clone(), value.clone()]);
        }
    }
    words
}

/// Starts an agent, or runs a subcommand.
pub fn run(command: AgentCommand) -> Result<i32, Refusal> {
    let host = Host::of_this_process();
    match command.action {
        Some(AgentAction::List { json }) => list(&host, json),
        Some(AgentAction::Show { name, json: true }) => profile::show(&profile_name(&name), true),
        Some(AgentAction::Show { name, json: false }) => {
            print(Agent::load(&name, &host)?.shown().as_bytes()).map(|()| 0)
        }
        None => start(command.start, &host),
    }
}

fn start(start: Start, host: &Host) -> Result<i32, Refusal> {
    if start.request.profile.is_some() {
        let name = escape(start.name.as_bytes(), 100);
        return Err(Refusal::new(format!(
            "sbx agent takes no --profile, because the agent has its own, '{}{name}'; write arguments of the agent \
             after '--', and what else it may do into a profile of yours that extends its own",
            sbx_profiles::AGENT
        )));
    }
    let agent = Agent::load(&start.name, host)?;
    agent.is_where_the_profile_says()?;
    if start.dry_run {
        return print(agent.line(&start.words, &start.arguments).as_bytes()).map(|()| 0);
    }
    let program = agent.installed().ok_or_else(|| agent.is_missing())?;
    let mut request = start.request;
    request.env.extend(agent.keys());
    request.profile = Some(agent.profile_name.clone());
    request.command = agent.command(program, &start.arguments);
    run::run(request, selftest::verify)
}

/// The name of an agent's profile, which may be given itself.
fn profile_name(agent: &OsStr) -> OsString {
    if agent.as_bytes().starts_with(sbx_profiles::AGENT.as_bytes()) {
        return agent.to_os_string();
    }
    let mut name = OsString::from(sbx_profiles::AGENT);
    name.push(agent);
    name
}

/// An agent on this machine.
struct Agent<'a> {
    profile_name: OsString,
    profile: Profile,
    host: &'a Host,
}

impl Agent<'_> {
    fn load<'a>(name: &OsStr, host: &'a Host) -> Result<Agent<'a>, Refusal> {
        // A file is no agent: what its name leads to would be the workspace's to decide.
        if name.as_bytes().contains(&b'/') {
            return Err(Refusal::new(format!(
                "'{}' is no name of an agent; write its file as agents/NAME.json beside your profiles",
                escape(name.as_bytes(), 100)
            )));
        }
        let profile_name = profile_name(name);
        let profile = profiles::load(&profile_name, &host.search())?;
        if profile.agent.programs.is_empty() {
            return Err(Refusal::new(format!(
                "profile '{}' names no program: add \"agent\": {{ \"programs\": [...] }}",
                escape(profile_name.as_bytes(), 100)
            )));
        }
        Ok(Agent { profile_name, profile, host })
    }

    /// Refuses an agent whose settings are elsewhere: nothing there would be protected, and nothing found.
    fn is_where_the_profile_says(&self) -> Result<(), Refusal> {
        let variables = Variables { home: self.host.home(), ..Variables::default() };
        for (name, place) in self.profile.agent.places.iter() {
            let place = place.expand_path(&variables);
            let value = self.host.variable(name).map(Path::new).filter(|value| !value.as_os_str().is_empty());
            let Some(value) = value.filter(|value| Some(*value) != place.as_deref()) else { continue };
            return Err(Refusal::new(format!(
                "cannot protect the settings of this agent: {name} says that they are in '{}', and the profile '{}' is \
                 about others; unset it, or write a profile of yours",
                shown(value),
                escape(self.profile_name.as_bytes(), 100)
            )));
        }
        Ok(())
    }

    fn programs(&self) -> impl Iterator<Item = &str> {
        self.profile.agent.programs.iter().map(|name| &*name.value)
    }

    /// The first of its programs that PATH has.
    fn installed(&self) -> Option<&str> {
        let path = self.host.variable("PATH");
        self.programs().find(|name| program::find(OsStr::new(name), path, "/".as_ref()).is_ok())
    }

    fn is_missing(&self) -> Refusal {
        let names: Vec<String> = self.programs().map(|name| format!("'{name}'")).collect();
        Refusal::with(
            Outcome::NotFound,
            format!(
                "cannot start this agent: there is no {} in PATH; install the agent first, or add its directory to \
                 PATH",
                names.join(" or ")
            ),
        )
    }

    /// The agent's program: the one that is there, else the first.
    fn program(&self) -> &str {
        self.installed().or_else(|| self.programs().next()).unwrap_or_default()
    }

    fn command(&self, program: &str, arguments: &[OsString]) -> Vec<OsString> {
        let own = self.profile.agent.arguments.iter().map(|argument| argument.value.to_string().into());
        std::iter::once(program.into()).chain(own).chain(arguments.iter().cloned()).collect()
    }

    /// The names of the variables with keys that are set.
    fn keys(&self) -> Vec<OsString> {
        let is_key = |name: &OsString| {
            self.profile.agent.keys.iter().any(|pattern| pattern.matches(Name::new(name.as_bytes())))
        };
        self.host.environment.iter().map(|(name, _)| name).filter(|name| is_key(name)).cloned().collect()
    }

    /// The line of `sbx run` that does the same.
    fn line(&self, flags: &[OsString], arguments: &[OsString]) -> String {
        let mut words = vec!["sbx".into(), "run".into(), "--profile".into(), self.profile_name.clone()];
        words.extend(self.keys().into_iter().flat_map(|name| ["--env".into(), name]));
        words.extend(flags.iter().cloned());
        words.push("--".into());
        words.extend(self.command(self.program(), arguments));
        let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
        format!("{}\n", words.join(" "))
    }

    /// What it may do beyond the built-in profiles that it extends.
    fn shown(&self) -> String {
        let Profile { description, paths, network, agent, home, .. } = &self.profile;
        let name = escape(self.profile_name.as_bytes(), 100);
        let mut text = one_line(&format!("{name}: {description}"));
        let keys: Vec<_> =
            agent.keys.iter().map(|key| format!("{}{}", &*key.value, self.note(&key.value))).collect();
        for (title, entries) in [
            ("starts", own(&agent.programs)),
            ("reads of your home", own(&paths.read)),
            ("reads and writes of your home", own(&paths.write)),
            ("gets a copy without secrets of", own(&home.copies)),
            ("connects to", own(&network.connect)),
            ("gets these variables, where they are set", keys),
            ("does not", own(&agent.noise)),
        ] {
            if !entries.is_empty() {
                let _ = write!(text, "\n{title}:\n");
                text.extend(entries.iter().map(|entry| one_line(&format!("  {entry}"))));
            }
        }
        text.push_str(
            "\nEverything else that it writes below your home stays in a home of this workspace and agent.\n",
        );
        let _ = write!(text, "\nThe same:\n  {}", self.line(&[], &[]));
        text
    }

    fn note(&self, pattern: &profiles::Pattern) -> &'static str {
        let mut names = self.host.environment.iter().map(|(name, _)| name);
        if names.any(|name| pattern.matches(Name::new(name.as_bytes()))) { " (set)" } else { "" }
    }
}

/// The entries that no profile brings which is there for all commands.
fn own<T: Display>(entries: &[Given<T>]) -> Vec<String> {
    let shared = |origin: &Origin| origin.built_in && sbx_profiles::NAMES.contains(&&*origin.profile);
    let why = |origin: &Origin| origin.why.as_ref().map_or(String::new(), |why| format!("  ({why})"));
    let kept = entries.iter().filter(|entry| !shared(&entry.origin));
    kept.map(|entry| format!("{}{}", entry.value, why(&entry.origin))).collect()
}

fn one_line(text: &str) -> String {
    text.chars().map(tame).chain(['\n']).collect()
}

/// Every agent that has a name: the built-in ones, then the users'.
fn all(search: &Search) -> Vec<(String, Result<Profile, profiles::ProfileError>)> {
    let names = profiles::agents(search);
    names
        .map(|name| {
            let profile = profiles::load(&profile_name(name.as_ref()), search);
            (name, profile)
        })
        .collect()
}

fn list(host: &Host, json: bool) -> Result<i32, Refusal> {
    let agents = all(&host.search());
    let mut text = String::new();
    if json {
        let entry = |(name, profile): &(String, Result<Profile, profiles::ProfileError>)| match profile {
            Ok(profile) => json!({
                "name": name,
                "source": source(&profile.source),
                "description": profile.description,
                "programs": profile.agent.programs.iter().map(|program| &*program.value).collect::<Vec<_>>(),
                "error": null,
            }),
            Err(error) => json!({ "name": name, "error": error.to_string() }),
        };
        text.push_str(&document(&agents.iter().map(entry).collect::<Value>()));
    } else {
        let width = agents.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, profile) in &agents {
            let about = match profile {
                Ok(profile) => profile.description.to_string(),
                Err(error) => format!("unusable: {error}"),
            };
            text.push_str(&one_line(&format!("{name:width$}  {about}")));
        }
    }
    print(text.as_bytes()).map(|()| 0)
}

fn source(source: &Source) -> String {
    match source {
        Source::BuiltIn => "built-in".to_string(),
        Source::File(path) => path.display().to_string(),
    }
}
