//! Rules of the user's about single commands (`"deny": ["Bash(git push:*)"]`). The agent holds them against the command
//! that it runs, which is one of `sbx` with a hook. So the hook holds them against the command that was asked for.
//!
//! It refuses, or has the user asked, in every case in which the agent would, and in some more: what a rule says may
//! stand anywhere in the command.

use crate::hooks::{Agent, edit, install};
use crate::host::Host;
use serde_json::Value;
use std::path::Path;

/// What a rule wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruled {
    /// No rule is about the command.
    Nothing,
    /// The user is to be asked, by this rule.
    Ask(String),
    /// It is not to be run, by this rule.
    Deny(String),
}

/// What the rules in all settings that count in a directory say of a command.
pub fn about(agent: Agent, command: &str, directory: &Path, host: &Host) -> Ruled {
    // The rules of the others are programs, or in places that are not known.
    if agent != Agent::Claude {
        return Ruled::Nothing;
    }
    let mut ruled = Ruled::Nothing;
    for file in agent.file(host).into_iter().chain(agent.other_settings(directory)) {
        // Without them the agent has no rules either.
        let Ok(text) = install::text_of(&file) else { continue };
        let Ok(settings) = edit::value_of(&text) else { continue };
        let first = |list: &str| {
            let rules = settings["permissions"][list].as_array().into_iter().flatten();
            rules.filter_map(Value::as_str).find(|rule| is_about(rule, command)).map(str::to_string)
        };
        if let Some(rule) = first("deny") {
            return Ruled::Deny(rule);
        }
        if let Some(rule) = first("ask") {
            ruled = Ruled::Ask(rule);
        }
    }
    ruled
}

/// Whether the pieces of a rule between its stars stand in a command, in their order, the first and the last as whole
/// words. Spaces are as good as each other.
fn is_about(rule: &str, command: &str) -> bool {
    let Some(pattern) = rule.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let is_of_word = |letter: char| letter.is_alphanumeric() || "_-".contains(letter);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (prefix, ends) = match pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")) {
        Some(prefix) => (prefix, true),
        None => (pattern, !pattern.ends_with('*')),
    };
    let pieces: Vec<String> = prefix.split('*').map(words).filter(|piece| !piece.is_empty()).collect();
    let command = words(command);
    let mut rest = command.as_str();
    for (place, piece) in pieces.iter().enumerate() {
        let is_last = place + 1 == pieces.len();
        let found = rest.match_indices(piece.as_str()).find(|(at, _)| {
            let before = rest.get(..*at).and_then(|text| text.chars().next_back());
            let after = rest.get(at + piece.len()..).and_then(|text| text.chars().next());
            let begins = place > 0 || !before.is_some_and(is_of_word);
            begins && !(is_last && ends && after.is_some_and(is_of_word))
        });
        match found {
            Some((at, _)) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_about_what_the_agent_would_match_and_more() {
        for (rule, command, expected) in [
            ("Bash(git push:*)", "git push origin main", true),
            ("Bash(git push:*)", "cd x && git   push", true),
            ("Bash(git push:*)", "git pushd", false),
            ("Bash(git push *)", "git pull", false),
            ("Bash(rm:*)", "sudo rm -rf x", true),
            ("Bash(rm:*)", "perform; farm-x", false),
            ("Bash(rm:*)", "x=$(rm y)", true),
            ("Bash(rm)", "rm", true),
            ("Bash(rm*)", "rmdir x", true),
            ("Bash(git * main)", "git checkout main", true),
            ("Bash(git * main)", "git checkout master", false),
            ("Bash(*)", "anything", true),
            ("Read(./x)", "cat x", false),
            ("Bash", "ls", false),
        ] {
            assert_eq!(is_about(rule, command), expected, "{rule} {command}");
        }
    }
}
