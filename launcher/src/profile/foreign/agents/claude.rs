//! Claude Code's settings: `sandbox`, and the rules of `permissions` that its sandbox heeds.

use crate::profile::error::{Fault, Mistake, Place, Plain, ProfileCause, nearest};
use crate::profile::foreign::agents::srt::{self, FileRules};
use crate::profile::foreign::agents::{
    EVERY_PORT, allow_host, deny_host, located, lose, misplaced, path, paths, settle_base, skip, unknown,
};
use crate::profile::foreign::files::below;
use crate::profile::foreign::meaning::Meaning;
use crate::profile::foreign::{Losses, MOST};
use crate::profile::json::{self, Node};
use crate::profile::location::Location;
use crate::profile::shells::is_of_shells;
use crate::profile::words::Variable;

/// The keys that say what a command may do. All others are about the agent.
const TOP: [&str; 2] = ["sandbox", "permissions"];

/// Keys of `sandbox` that say when it is used, choose programs, or are for other systems than Linux.
const ELSEWHERE: [&str; 15] = [
    "enabled",
    "failIfUnavailable",
    "autoAllowBashIfSandboxed",
    "allowUnsandboxedCommands",
    "enabledPlatforms",
    "enableWeakerNestedSandbox",
    "enableWeakerNetworkIsolation",
    "allowAppleEvents",
    "allowPty",
    "ignoreViolations",
    "mandatoryDenySearchDepth",
    "ripgrep",
    "seccomp",
    "bwrapPath",
    "socatPath",
];

/// The keys of `sandbox` that are read.
const SANDBOX: [&str; 4] = ["filesystem", "network", "credentials", "excludedCommands"];

/// The keys of `permissions`.
const PERMISSIONS: [&str; 5] = ["allow", "deny", "ask", "additionalDirectories", "defaultMode"];

/// What belongs further inside. Claude Code passes over it at the top, and the settings have keys of any other name.
const INNER: [(&str, &[&str]); 5] = [
    ("permissions", &PERMISSIONS),
    ("sandbox", &SANDBOX),
    ("sandbox", &ELSEWHERE),
    ("sandbox.filesystem", &srt::FILES),
    ("sandbox.network", &srt::HOSTS),
];

/// Reads a document.
pub fn read(text: &[u8], losses: &mut Losses) -> Result<Meaning, ProfileCause> {
    let mut fields = json::parse(text)?.open_fields(&Place::Top)?;
    misplaced(&fields, &INNER)?;
    let mut meaning = Meaning { description: "made of settings of Claude Code", ..Meaning::default() };
    meaning.close_unix_sockets();
    let mut rules = FileRules::default();
    rules.allow_writing(below(Variable::Workspace, ""), "sandbox");
    fields.take("sandbox", |node, place| sandbox(node, place, &mut rules, &mut meaning, losses))?;
    fields.take("permissions", |node, place| permissions(node, place, &mut rules, &mut meaning, losses))?;
    // A slip of the pen in one of the two keys would leave all rules out.
    let slip = fields.left().find_map(|key| nearest(key, TOP.into_iter()).map(|_| key.to_string()));
    if let Some(key) = slip {
        return Err(Place::Top.fault(Mistake::unknown("key", &key, &TOP, "there are")).into());
    }
    rules.settle(&mut meaning);
    settle_base(&mut meaning);
    Ok(meaning)
}

fn sandbox(
    node: Node,
    place: &Place,
    rules: &mut FileRules,
    meaning: &mut Meaning,
    losses: &mut Losses,
) -> Result<(), Fault> {
    let mut fields = node.open_fields(place)?;
    fields.take("filesystem", |node, place| rules.read(node, place, losses))?;
    fields.take("network", |node, place| srt::network(node, place, meaning, losses))?;
    fields.take("credentials", |node, place| srt::credentials(node, place, meaning, losses))?;
    lose(&mut fields, "excludedCommands", "every command of a run is confined", losses)?;
    skip(&mut fields, &ELSEWHERE)?;
    unknown(&fields, &SANDBOX, losses);
    Ok(())
}

/// What a list of rules does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allow,
    Deny,
    Ask,
}

fn permissions(
    node: Node,
    place: &Place,
    rules: &mut FileRules,
    meaning: &mut Meaning,
    losses: &mut Losses,
) -> Result<(), Fault> {
    let mut fields = node.open_fields(place)?;
    for (key, verdict) in [("allow", Verdict::Allow), ("deny", Verdict::Deny), ("ask", Verdict::Ask)] {
        fields.take(key, |node, place| {
            node.list(place, |node, place| {
                let text = node.string(place)?;
                let (tool, about) = parts(&text, place)?;
                rule(&Rule { tool, about, verdict, place }, rules, meaning, losses);
                Ok(())
            })
        })?;
    }
    let more = fields.take("additionalDirectories", |node, place| paths(node, place, losses))?;
    more.into_iter().flatten().for_each(|(location, place)| rules.allow_writing(location, place));
    skip(&mut fields, &["defaultMode", "disableBypassPermissionsMode", "disableAutoMode"])?;
    unknown(&fields, &PERMISSIONS, losses);
    Ok(())
}

/// A tool, and what stands in brackets behind it.
fn parts<'t>(text: &'t str, place: &Place) -> Result<(&'t str, Option<&'t str>), Fault> {
    let Some((tool, rest)) = text.split_once('(') else { return Ok((text, None)) };
    match rest.strip_suffix(')') {
        Some(about) => Ok((tool, Some(about))),
        None => Err(place.fault(format!("'{}' lacks its ')'", Plain(text)))),
    }
}

struct Rule<'a> {
    tool: &'a str,
    about: Option<&'a str>,
    verdict: Verdict,
    place: &'a Place<'a>,
}

fn rule(rule: &Rule<'_>, rules: &mut FileRules, meaning: &mut Meaning, losses: &mut Losses) {
    let Rule { tool, about, verdict, place } = *rule;
    let about = about.filter(|about| !matches!(*about, "*" | "**" | ""));
    match (tool, about) {
        // Everything may be read that nothing denies.
        ("Read" | "Grep" | "Glob" | "LS", _) if verdict == Verdict::Allow => {}
        ("Read", Some(text)) => {
            ask(rule, losses);
            each_place(rule, text, losses, |location| rules.deny(location, place));
        }
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Some(text)) if verdict == Verdict::Allow => {
            each_place(rule, text, losses, |location| rules.allow_editing(location, place));
        }
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Some(text)) => {
            ask(rule, losses);
            each_place(rule, text, losses, |location| rules.deny_writing(location));
        }
        ("WebFetch", Some(text)) => {
            let Some(host) = text.strip_prefix("domain:") else {
                return losses.note(place, format_args!("'{}' is not 'domain:HOST'", Plain(text)));
            };
            if verdict == Verdict::Allow {
                if allow_host(host, place, &mut meaning.network, losses) {
                    losses.note(place, EVERY_PORT);
                }
            } else {
                ask(rule, losses);
                deny_host(host, place, &mut meaning.network, losses);
            }
        }
        ("Bash", Some(text)) if verdict == Verdict::Deny => block(rule, text, &mut meaning.blocked, losses),
        // What is allowed there is not asked about. A run asks about nothing.
        _ if verdict == Verdict::Allow => {}
        ("Bash", _) if verdict == Verdict::Ask => {
            losses.note(place, "a run asks nobody: the command is executed")
        }
        (tool, _) => losses.note(
            place,
            format_args!(
                "'{}' as a whole is a tool of the agent, of which a profile says nothing",
                Plain(tool)
            ),
        ),
    }
}

fn ask(rule: &Rule<'_>, losses: &mut Losses) {
    if rule.verdict == Verdict::Ask {
        losses.note(rule.place, "a run asks nobody: it is refused");
    }
}

/// Blocks a command, as far as it is a program, and whatever its arguments are.
fn block(rule: &Rule<'_>, text: &str, blocked: &mut Vec<String>, losses: &mut Losses) {
    let Some(name) = command(text) else {
        let why = "commands.block of a profile blocks a command whatever its arguments are";
        return losses.note(rule.place, format_args!("'{}': {why}", Plain(text)));
    };
    if is_of_shells(name) {
        let why = "shells do it themselves, and commands.block of a profile blocks programs";
        losses.note(rule.place, format_args!("'{name}': {why}"));
    }
    if blocked.len() > MOST || !blocked.iter().any(|known| known == name) {
        blocked.push(name.to_string());
    }
}

/// The command that `NAME`, `NAME:*` or `NAME *` is about, whatever its arguments are.
fn command(text: &str) -> Option<&str> {
    let name = text.strip_suffix(":*").or(text.strip_suffix(" *")).unwrap_or(text);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

/// The place of a rule. A name without a slash, or behind `**/`, is meant in every directory: a profile has the first.
/// A slash at the end says that it is a directory, and nothing about where.
fn each_place(rule: &Rule<'_>, text: &str, losses: &mut Losses, add: impl FnOnce(Location)) {
    let (workspace, place) = (Some(Variable::Workspace), rule.place);
    let plain = match unescaped(text) {
        Ok(plain) => plain,
        Err(why) => return losses.note(place, why),
    };
    let text = plain.as_str();
    let bare = text.strip_prefix("**/").unwrap_or(text).trim_end_matches('/');
    let begins_somewhere = ["/", "./", "~"].iter().any(|start| text.starts_with(start));
    let is_anywhere = !bare.contains('/') && !begins_somewhere;
    let located = if is_anywhere {
        located(workspace, bare, text)
    } else if let Some(absolute) = text.strip_prefix("//") {
        located(None, absolute, text)
    } else if text.starts_with('~') {
        path(text)
    } else {
        located(workspace, text, text)
    };
    match located {
        Ok(location) => {
            if is_anywhere && rule.verdict != Verdict::Allow {
                losses.note(
                    place,
                    format_args!(
                        "'{}' is meant in every directory; the profile has '{location}'",
                        Plain(text)
                    ),
                );
            }
            add(location);
        }
        Err(why) => losses.note(place, why),
    }
}

/// A pattern of gitignore(5) without its escapes. What is escaped in it is no part of a pattern any more, so characters
/// that mean something in a path of a profile stay an error.
fn unescaped(text: &str) -> Result<String, String> {
    let wrong = |what: &str| Err(format!("'{}' {what}", Plain(text)));
    if text.starts_with(['!', '#']) {
        return wrong(
            "takes a rule back or is a comment, as in gitignore(5); a name like that begins with '\\'",
        );
    }
    let (mut plain, mut rest) = (String::new(), text.chars());
    while let Some(character) = rest.next() {
        let escaped = if character == '\\' { rest.next() } else { Some(character) };
        match escaped {
            Some('*' | '?' | '[' | '{' | '~' | '/') if character == '\\' => {
                return wrong("escapes what no path of a profile has");
            }
            Some(character) => plain.push(character),
            None => return wrong("ends with a '\\', and so is about no file"),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_name_with_any_arguments() {
        assert_eq!(command("curl"), Some("curl"));
        assert_eq!(command("curl:*"), Some("curl"));
        assert_eq!(command("wget *"), Some("wget"));
        assert_eq!(command("git push *"), None);
        assert_eq!(command("rm -rf:*"), None);
        assert_eq!(command(":*"), None);
    }

    #[test]
    fn escapes_of_gitignore_are_undone() {
        for (text, plain) in
            [("my\\ x/y", "my x/y"), ("\\!x", "!x"), ("\\#x", "#x"), ("a\\\\b", "a\\b"), ("a!#", "a!#")]
        {
            assert_eq!(unescaped(text).as_deref(), Ok(plain));
        }
        for text in ["!x", "#x", "x\\", "x/\\*\\*", "\\~/x"] {
            assert!(unescaped(text).is_err(), "{text}");
        }
    }

    /// The place of a rule that denies reading, and what is lost of it.
    fn denied(text: &str) -> (Option<String>, Vec<String>) {
        let (mut losses, mut denied) = (Losses::default(), None);
        let rule = Rule { tool: "Read", about: None, verdict: Verdict::Deny, place: &Place::Top };
        each_place(&rule, text, &mut losses, |location| denied = Some(location.to_string()));
        (denied, losses.lines().to_vec())
    }

    #[test]
    fn a_slash_at_the_end_is_no_place() {
        for text in ["secrets", "secrets/", "**/secrets", "**/secrets/"] {
            let (place, lost) = denied(text);
            assert_eq!(place.as_deref(), Some("${WORKSPACE}/secrets"), "{text}");
            let why = "is meant in every directory; the profile has '${WORKSPACE}/secrets'";
            assert!(lost.len() == 1 && lost[0].ends_with(&format!("'{text}' {why}")), "{text}: {lost:?}");
        }
        for (text, place) in [
            ("/secrets/", "${WORKSPACE}/secrets"),
            ("./secrets/", "${WORKSPACE}/secrets"),
            ("a/secrets/", "${WORKSPACE}/a/secrets"),
            ("~/secrets/", "${HOME}/secrets"),
            ("//secrets/", "/secrets"),
            ("/", "${WORKSPACE}"),
            ("./", "${WORKSPACE}"),
            ("~/", "${HOME}"),
            ("//", "/"),
        ] {
            assert_eq!(denied(text), (Some(place.to_string()), vec![]), "{text}");
        }
    }

    /// What is blocked by a rule about commands, and what is lost of it.
    fn blocked(about: &str) -> (Vec<String>, Vec<String>) {
        let text = format!("{{\"permissions\":{{\"deny\":[\"Bash({about})\"]}}}}");
        let mut losses = Losses::default();
        let meaning = read(text.as_bytes(), &mut losses).unwrap();
        (meaning.blocked, losses.lines().to_vec())
    }

    #[test]
    fn what_a_shell_does_itself_is_lost() {
        for (about, name) in [
            ("eval", "eval"),
            ("kill:*", "kill"),
            ("echo *", "echo"),
            ("source:*", "source"),
            (".:*", "."),
            ("time *", "time"),
            ("setopt", "setopt"),
        ] {
            let why = "shells do it themselves, and commands.block of a profile blocks programs";
            let line = format!("permissions.deny[0]: '{name}': {why}");
            assert_eq!(blocked(about), (vec![name.to_string()], vec![line]), "{about}");
        }
        for (about, name) in [("curl:*", "curl"), ("killall *", "killall"), ("env", "env")] {
            assert_eq!(blocked(about), (vec![name.to_string()], vec![]), "{about}");
        }
    }
}
