//! Rules of the user's about single commands (`"deny": ["Bash(git push:*)"]`). The agent holds them against the command
//! that it runs, which is one of `sbx` with a hook. So the hook holds them against the command that was asked for.
//!
//! It refuses, or has the user asked, in every case in which the agent would, and in some more: what a rule says may
//! stand anywhere in the command, and its words may be quoted. So nothing may be allowed by what is found here: lists
//! of what the agent may run (`"allow"`) are not read. Settings that are not understood refuse every command.

use crate::hooks::{Agent, matching, settings};
use crate::host::Host;
use crate::text::shown;
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
pub fn about(agent: Agent, command: &str, directory: &Path, host: &Host) -> Result<Ruled, String> {
    // The rules of the others are programs, or in places that are not known.
    if agent != Agent::Claude {
        return Ok(Ruled::Nothing);
    }
    let own = agent.file(host).ok_or("cannot find your rules: HOME is not an absolute path; set it")?;
    let others = agent.other_settings(directory, host)?;
    let mut ruled = Ruled::Nothing;
    for file in std::iter::once(own).chain(others) {
        let Some(said) = settings::said_in(&file)? else { continue };
        let (deny, ask) = (rules(&said, "deny", &file)?, rules(&said, "ask", &file)?);
        let first = |rules: &[&str]| {
            rules.iter().find(|rule| matching::is_about(rule, command)).map(|rule| rule.to_string())
        };
        if let Some(rule) = first(&deny) {
            return Ok(Ruled::Deny(rule));
        }
        if let Some(rule) = first(&ask) {
            ruled = Ruled::Ask(rule);
        }
    }
    Ok(ruled)
}

/// The rules in a list of a file's settings.
fn rules<'a>(said: &'a Value, list: &str, file: &Path) -> Result<Vec<&'a str>, String> {
    listed(said, list).ok_or_else(|| {
        let (file, mend) = (shown(file), settings::MEND);
        format!("cannot read the rules in '{file}': permissions.{list} is no list of them; {mend}")
    })
}

/// The same; `None` where something else stands in its place.
fn listed<'a>(said: &'a Value, list: &str) -> Option<Vec<&'a str>> {
    let inside = |value: &'a Value, key: &str| match value {
        Value::Null => Some(&Value::Null),
        Value::Object(fields) => Some(fields.get(key).unwrap_or(&Value::Null)),
        _ => None,
    };
    match inside(inside(said, "permissions")?, list)? {
        Value::Null => Some(Vec::new()),
        Value::Array(rules) => rules.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;

    /// What is ruled about `git push` and `touch x` where a home and a project have these settings.
    fn ruled(own: &[u8], project: &[u8]) -> [Result<Ruled, String>; 2] {
        let scratch = Scratch::create(None).unwrap();
        let (home, top) = (scratch.path().join("home"), scratch.path().join("top"));
        for (place, text) in [(&home, own), (&top, project)] {
            fs::create_dir_all(place.join(".claude")).unwrap();
            fs::write(place.join(".claude/settings.json"), text).unwrap();
        }
        fs::create_dir_all(top.join(".git")).unwrap();
        fs::create_dir_all(top.join("below")).unwrap();
        let host = Host::with_environment(vec![("HOME".into(), home.into())]);
        ["git push", "touch x"].map(|command| about(Agent::Claude, command, &top.join("below"), &host))
    }

    const RULES: &[u8] =
        b"{ \"permissions\": { \"deny\": [\"Bash(git push:*)\"], \"ask\": [\"Bash(touch *)\"] } }";

    #[test]
    fn rules_stand_in_any_settings() {
        let expected = [Ruled::Deny("Bash(git push:*)".into()), Ruled::Ask("Bash(touch *)".into())].map(Ok);
        for (own, project) in [(RULES, &b"{}"[..]), (b"", RULES), (RULES, RULES)] {
            assert_eq!(ruled(own, project), expected);
        }
        assert_eq!(ruled(&[b"\xef\xbb\xbf", RULES].concat(), b"{}"), expected);
        assert_eq!(
            ruled(b"{}", b"{\"permissions\": {\"deny\": null}}"),
            [Ruled::Nothing, Ruled::Nothing].map(Ok)
        );
    }

    #[test]
    fn settings_that_are_not_understood_refuse_every_command() {
        for text in [
            &b"{ \"permissions\": { \"deny\": [\"Bash(git push:*)\" } }"[..],
            b"[]",
            b"{ \"permissions\": [\"Bash(git push:*)\"] }",
            b"{ \"permissions\": { \"deny\": \"Bash(git push:*)\" } }",
            b"{ \"permissions\": { \"ask\": [[\"Bash(git push:*)\"]] } }",
        ] {
            for (place, answers) in [("home", ruled(text, RULES)), ("top", ruled(b"{}", text))] {
                for answer in answers {
                    let why = answer.unwrap_err();
                    let file = format!("/{place}/.claude/settings.json'");
                    assert!(why.contains(&file) && why.ends_with(settings::MEND), "{why}");
                }
            }
        }
    }

    #[test]
    fn rules_that_are_nowhere_refuse() {
        let host = Host::with_environment(Vec::new());
        let why = about(Agent::Claude, "ls", Path::new("/nowhere"), &host).unwrap_err();
        assert!(why.contains("HOME is not an absolute path"), "{why}");
        assert_eq!(about(Agent::Codex, "ls", Path::new("/nowhere"), &host), Ok(Ruled::Nothing));
    }
}
