//! What a failing command may have missed: variables that do not pass, and the top of its project.
//!
//! Nothing is refused there: a program that asks for a variable looks into its own memory, and finds none. Most
//! programs copy their environment, so not even a library before libc would see them ask. But where a command that
//! names a variable fails, and that variable is set outside, its user should know that it does not pass. The same goes
//! for one that has programs load what is in the workspace: it was set for commands like this one.
//!
//! Tools of a project look for its files from below, and say no more than that they find none. Where git does not tell
//! where a project begins, the workspace is the directory that the command starts in, and what is above it is hidden.

use crate::explain::hint::{Hint, KeyAgent, shell_word};
use crate::explain::project::TOPS;
use crate::explain::servers;
use crate::host::Host;
use crate::plan::Plan;
use crate::plan::environment::is_kept_back;
use crate::plan::state;
use crate::supervise::Ending;
use crate::supervise::violation::Violations;
use crate::sys::within::{is_same, is_within};
use crate::text::{escape, shown};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of words that are looked at, of bytes of one, and of variables that are named.
const WORDS: usize = 64;
const BYTES: usize = 1 << 16;
const MOST: usize = 3;
/// And where all are wanted.
const MOST_LISTED: usize = 100;
/// Shorter names are words of any language.
const SHORTEST: usize = 3;

/// How far above the workspace the files at the top of a project are looked for.
const HIGHEST: usize = 3;

/// The variable that tells ssh-add(1) where its agent is. The socket is closed as well.
const AGENT: &str = "SSH_AUTH_SOCK";

/// What may be missed.
pub struct Withheld {
    /// Names of variables, and why each may be.
    variables: BTreeMap<OsString, &'static str>,
    /// What opens the agent of ssh, if the command asks for it.
    agent: Option<Hint>,
    /// Directories above the workspace that are out of sight, the nearest first.
    above: Vec<PathBuf>,
    workspace: Option<PathBuf>,
}

impl Withheld {
    /// Of the variables of this process, those that the run does not get and that it may miss.
    pub fn of(plan: &Plan, host: &Host) -> Withheld {
        let words = plan.arguments.iter().take(WORDS);
        let words = words.map(|word| word.as_bytes().get(..BYTES.min(word.len())).unwrap_or_default());
        let named: BTreeSet<&[u8]> = words.clone().skip(1).flat_map(names).collect();
        let starts = |program: &[u8]| words.clone().any(|word| has_program(word, program));
        let asks_agent = starts(b"ssh-add") && !starts(b"ssh-agent");
        let agent = (asks_agent || named.contains(AGENT.as_bytes())).then(|| KeyAgent::of(plan)?.hint());
        let agent = agent.flatten();
        let is_warned = |name: &OsStr| {
            let name = name.to_string_lossy();
            plan.warnings.iter().any(|warning| warning.contains(&*name))
        };
        let missed = |(name, value): (&OsString, &OsString)| {
            let why = if named.contains(name.as_bytes()) {
                "which the command names"
            } else if asks_agent && agent.is_some() && name == AGENT {
                "which ssh-add looks for"
            } else if is_kept_back(name) && leads_into_the_workspace(value, plan) {
                "which has programs load what is in the workspace"
            } else {
                return None;
            };
            (!is_warned(name)).then(|| (name.clone(), why))
        };
        let variables = not_passed(plan, host).filter_map(missed).collect();
        Withheld { variables, agent, above: hidden_above(plan), workspace: plan.workspace.clone() }
    }

    /// What there is to say of a command that has ended, and found nobody at these ports.
    pub fn lines(&self, ending: Ending, violations: &Violations, unanswered: &BTreeSet<u16>) -> Vec<String> {
        if !matches!(ending, Ending::Exited(status) if status != 0) {
            return Vec::new();
        }
        // What was refused explains a failure, unless it is of the project as well.
        let refused = || violations.records().filter_map(|record| record.violation.path.as_deref());
        let is_of = |top: &Path| refused().any(|path| is_at_top(Path::new(OsStr::from_bytes(path)), top));
        // A repository is a project of its own, whatever is above it.
        let is_whole = || self.workspace.as_deref().is_some_and(|own| own.join(".git").exists());
        let is_missed = |top: &&PathBuf| (violations.distinct() == 0 && !is_whole()) || is_of(top);
        let project = self.above.iter().filter(is_missed).filter_map(|above| project(above)).take(1);
        let names = self.variables.iter().take(MOST);
        names
            .map(|(name, why)| {
                let dangerous = if is_kept_back(name) { " --allow-dangerous-env" } else { "" };
                let agent = self.agent.as_ref().filter(|_| name == AGENT);
                let name = name.to_string_lossy();
                let flags = agent.map_or_else(|| format!("--env {name}{dangerous}"), Hint::to_string);
                format!(
                    "the variable '{name}', {why}, is set outside but not passed on; pass it with {flags}"
                )
            })
            .chain(project)
            .chain(elsewhere(unanswered))
            .collect()
    }
}

/// What is said of ports where a server that the run does not reach listens.
fn elsewhere(unanswered: &BTreeSet<u16>) -> impl Iterator<Item = String> + use<> {
    servers::listens_elsewhere(unanswered).into_iter().take(MOST).map(|port| {
        format!(
            "nobody listens at port {port} of the run's own loopback, but a server in another network does, of another \
             run or a container: show it on this machine (sbx run --publish {port}), and let this run reach it with \
             --host-port {port}"
        )
    })
}

/// The directories above the workspace, where that is the one that the command starts in and nobody has named it.
fn hidden_above(plan: &Plan) -> Vec<PathBuf> {
    let Some(workspace) = plan.workspace.as_deref().filter(|own| *own == plan.directory) else {
        return Vec::new();
    };
    let rules = || plan.paths.iter().flatten().filter(|rule| rule.rights.read);
    let hides = |path: &Path| plan.namespaces.as_ref().is_ok_and(|layout| layout.replaces(path).is_some());
    let is_open = |path: &Path| rules().any(|rule| is_within(path, &rule.path)) && !hides(path);
    let is_usual = !plan.names_workspace && rules().any(|rule| is_same(&rule.path, workspace));
    let above = workspace.ancestors().skip(1).take(if is_usual { HIGHEST } else { 0 });
    let is_shared = |path: &Path| plan.home.as_deref() == Some(path) || path.parent().is_none();
    above.take_while(|path| !is_shared(path) && !is_open(path)).map(Path::to_path_buf).collect()
}

/// Whether a path is that of a file by which a directory is the top of a project.
fn is_at_top(path: &Path, top: &Path) -> bool {
    path.parent() == Some(top) && TOPS.iter().any(|name| path.ends_with(name))
}

/// What is said where a directory is the top of a project of the user's.
fn project(top: &Path) -> Option<String> {
    let file = TOPS.iter().find(|name| state::is_users(top) && top.join(name).is_file())?;
    Some(format!(
        "the workspace is only the directory that the command started in, and '{}' above it is out of sight; if it is \
         the project's, add --workspace {} --cwd .",
        shown(&top.join(file)),
        shell_word(top.as_os_str())
    ))
}

/// Whether a list of paths has one in the workspace, or a relative one that is there.
fn leads_into_the_workspace(list: &OsStr, plan: &Plan) -> bool {
    let mut paths =
        list.as_bytes().split(|byte| *byte == b':').map(|path| Path::new(OsStr::from_bytes(path)));
    let workspace = plan.workspace.as_deref().unwrap_or(&plan.directory);
    paths.any(|path| match path.is_absolute() {
        true => is_within(path, workspace),
        false => !path.as_os_str().is_empty() && plan.directory.join(path).exists(),
    })
}

/// The variables of this process that the run does not get.
fn not_passed<'h>(plan: &Plan, host: &'h Host) -> impl Iterator<Item = (&'h OsString, &'h OsString)> {
    let passes = |name: &OsStr| {
        let of_entry = |entry: &OsString| {
            entry.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        plan.environment.iter().any(of_entry)
    };
    // A shell sets `_` for each command, and some are for sbx.
    let is_of_command =
        |name: &OsStr| !matches!(name.as_bytes(), b"" | b"_") && !name.as_bytes().starts_with(b"SBX_");
    let all = host.environment.iter().map(|(name, value)| (name, value));
    all.filter(move |(name, _)| is_of_command(name) && !passes(name))
}

/// Names the variables that the run does not get, for somebody who wants to know all.
pub fn all(plan: &Plan, host: &Host) -> Option<String> {
    let names: BTreeSet<&OsString> = not_passed(plan, host).map(|(name, _)| name).collect();
    let (kept_back, others): (Vec<_>, Vec<_>) =
        names.iter().take(MOST_LISTED).copied().partition(|name| is_kept_back(name));
    let more = match names.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let groups = [(others, "--env NAME"), (kept_back, "--env NAME --allow-dangerous-env")];
    let groups = groups.into_iter().filter(|(names, _)| !names.is_empty()).map(|(names, flags)| {
        let names: Vec<String> = names.into_iter().map(|name| escape(name.as_bytes(), 60)).collect();
        format!("{} ({flags} passes one on)", names.join(", "))
    });
    let groups: Vec<String> = groups.collect();
    (!groups.is_empty()).then(|| format!("variables that are not passed on: {}{more}", groups.join(", ")))
}

/// The words of a text that look like names of variables, and are given no value there.
fn names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_name = |word: &&[u8]| {
        word.len() >= SHORTEST
            && word.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
            && !word[0].is_ascii_digit()
    };
    let is_set = move |word: &[u8]| {
        text.windows(word.len() + 1).any(|window| window.split_last() == Some((&b'=', word)))
    };
    text.split(move |byte| !is_of_name(byte)).filter(is_name).filter(move |word| !is_set(word))
}

/// Whether a text has the name of a program as a word, wherever its path leads.
fn has_program(text: &[u8], program: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    text.split(|byte| !is_of_name(byte)).any(|word| word == program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        names(text.as_bytes()).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    #[test]
    fn names_of_variables_are_found_wherever_they_stand() {
        assert_eq!(found("test -n \"$API_TOKEN\""), ["API_TOKEN"]);
        assert_eq!(found("process.exit(process.env.GH_TOKEN ? 0 : 1)"), ["GH_TOKEN"]);
        assert_eq!(found("os.environ[\"DATABASE_URL\"] ${HTTP2_HOST:-x}"), ["DATABASE_URL", "HTTP2_HOST"]);
        assert_eq!(found("MODE"), ["MODE"]);
    }

    #[test]
    fn programs_are_found_by_their_whole_names() {
        for text in ["ssh-add", "/usr/bin/ssh-add", "ssh-add -l; date", "x=$(ssh-add -L)"] {
            assert!(has_program(text.as_bytes(), b"ssh-add"), "{text}");
        }
        for text in ["ssh-add.sh", "my-ssh-add", "ssh-added", "ssh", ""] {
            assert!(!has_program(text.as_bytes(), b"ssh-add"), "{text}");
        }
    }

    #[test]
    fn what_the_command_sets_itself_and_other_words_are_none() {
        assert!(found("MODE=fast; echo $MODE").is_empty());
        assert!(found("Mode mode OK 404 -I x").is_empty());
    }
}
