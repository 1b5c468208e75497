//! Rules of the user's about single commands (`"deny": ["Bash(git push:*)"]`). The agent holds them against the command
//! that it runs, which is one of `sbx` with a hook. So the hook holds them against the command that was asked for.
//!
//! It refuses, or has the user asked, in every case in which the agent would, and in some more: what a rule says may
//! stand anywhere in the command, and its words may be quoted. So nothing may be allowed by what is found here: lists
//! of what the agent may run (`"allow"`) are not read.

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

/// Whether the pieces of a rule between its stars stand in a command, in their order. The first begins where a word
/// does and the last ends where one does, unless a star says that they are parts of words.
fn is_about(rule: &str, command: &str) -> bool {
    let Some(pattern) = rule.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let pattern = pattern.trim();
    // What may stand before the words or behind them is no part of these.
    let pattern = pattern.strip_suffix(":*").unwrap_or(pattern);
    let pattern = pattern.trim_end_matches(" *").trim_start_matches("* ");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let pieces: Vec<String> = pattern.split('*').map(words).filter(|piece| !piece.is_empty()).collect();
    let mut rest = command;
    for (place, piece) in pieces.iter().enumerate() {
        let begins = place == 0 && !pattern.starts_with('*');
        let ends = place + 1 == pieces.len() && !pattern.ends_with('*');
        match behind_first(piece, rest, begins, ends) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    true
}

/// What stands in a command behind the first place of a piece, one where a word begins or ends if it has to.
fn behind_first<'a>(piece: &str, command: &'a str, begins: bool, ends: bool) -> Option<&'a str> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || "_-".contains(letter);
    let places = command.char_indices().filter(|(_, letter)| piece.starts_with(*letter));
    places.filter_map(|(at, _)| command.split_at_checked(at)).find_map(|(before, from)| {
        let behind = behind(piece, from)?;
        let is_amid = begins && before.ends_with(is_of_word) || ends && behind.starts_with(is_of_word);
        (!is_amid).then_some(behind)
    })
}

/// What stands behind a piece that a text begins with.
fn behind<'a>(piece: &str, text: &'a str) -> Option<&'a str> {
    let mut rest = text;
    let mut is_in_blank = false;
    for letter in piece.chars() {
        rest = behind_letter(letter, rest, is_in_blank)?;
        is_in_blank = letter == ' ';
    }
    Some(rest)
}

/// What stands behind a letter that comes next in a text, as it stands there or as a shell reads it: without quotes,
/// backslashes and ends of lines behind these. Blanks are as good as each other, and many as good as one.
fn behind_letter(letter: char, text: &str, is_in_blank: bool) -> Option<&str> {
    let is_it = |next: char| next == letter || letter == ' ' && next.is_whitespace();
    let mut rest = text;
    loop {
        if let Some(behind) = rest.strip_prefix(is_it) {
            return Some(behind);
        }
        let unread = rest.strip_prefix("\\\n").or_else(|| rest.strip_prefix(['\'', '"', '\\']));
        rest = unread.or_else(|| rest.strip_prefix(|next: char| is_in_blank && next.is_whitespace()))?;
    }
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

    #[test]
    fn a_star_makes_parts_of_words_do() {
        for (rule, command, expected) in [
            ("Bash(*prod*)", "kubectl --context myprod delete ns x", true),
            ("Bash(*prod*)", "kubectl --context prod2 get ns", true),
            ("Bash(*prod*)", "echo hello", false),
            ("Bash(*prod)", "ls myprod", true),
            ("Bash(*prod)", "ls products", false),
            ("Bash(prod*)", "products", true),
            ("Bash(prod*)", "ls myprod", false),
            ("Bash(*.sh)", "./deploy.sh", true),
            ("Bash(*.sh)", "./deploy.sh --now", true),
            ("Bash(*.sh)", "./deploy.shx", false),
            ("Bash(*.sh)", "./deploy", false),
            ("Bash(*00)", "chmod 1000", true),
            ("Bash(*00)", "chmod 1001", false),
            ("Bash(*secret*:*)", "cat mysecrets", true),
            ("Bash(*secret* *)", "cat mysecrets x", true),
            ("Bash(* rm *)", "sudo rm x", true),
            ("Bash(* rm *)", "perform x", false),
            ("Bash(rm * *)", "rm x y", true),
            ("Bash(rm * *)", "rmdir x y", false),
            ("Bash(* --force)", "git push --force", true),
            ("Bash(* --force)", "git push --force-with-lease", false),
            ("Bash(*:*)", "anything", true),
        ] {
            assert_eq!(is_about(rule, command), expected, "{rule} {command}");
        }
    }

    #[test]
    fn words_that_are_written_in_another_way_are_the_same() {
        for (rule, command, expected) in [
            ("Bash(git push:*)", "git \\\n push origin", true),
            ("Bash(git push:*)", "git \\\n\\\n\tpush origin", true),
            ("Bash(git push:*)", "gi\\\nt pu\\\nsh", true),
            ("Bash(git push:*)", "git 'push'", true),
            ("Bash(git push:*)", "git \"push\" x", true),
            ("Bash(git push:*)", "'git' \"\" p'us'h", true),
            ("Bash(git push:*)", "gi\\t push", true),
            ("Bash(git push:*)", "git\t \n push", true),
            ("Bash(git push:*)", "git\\ push", true),
            // Neither of these lines goes on in the next one.
            ("Bash(git push:*)", "# x\\\ngi\\\nt 'push'", true),
            ("Bash(git push:*)", "echo x\\\\\ngit 'push'", true),
            ("Bash(git push:*)", "git\\\npush", false),
            ("Bash(git push:*)", "git 'pull' \"push\"", false),
            ("Bash(git push:*)", "git 'pushd'", false),
            ("Bash(git push:*)", "digit 'push'", false),
            ("Bash(git push:*)", "'git", false),
            ("Bash(*secret*)", "cat my's'ecret", true),
            ("Bash(*secret*)", "cat 's' ecret", false),
            // What a rule says of these letters, it says of the command as it stands.
            ("Bash(git commit -m \"x y\")", "git commit -m \"x y\"", true),
            ("Bash(git commit -m \"x y\")", "git \\\n commit -m \"x  y\"", true),
            ("Bash(git commit -m \"x y\")", "git commit -m \"x z\"", false),
            ("Bash(*\\n*)", "printf 'a\\nb'", true),
            ("Bash(*\\n*)", "printf 'anb'", false),
            ("Bash(é \"ü\"*)", "é \"ü\"x", true),
        ] {
            assert_eq!(is_about(rule, command), expected, "{rule} {command}");
        }
    }
}
