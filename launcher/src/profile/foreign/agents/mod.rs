//! Settings of agents and of their sandboxes: which files and hosts a command may use.
//!
//! They say nothing about system calls: a profile made of them has those of a built-in one.

pub mod claude;
pub mod codex;
pub mod cursor;
pub mod srt;

use crate::profile::error::{Fault, Place, Plain};
use crate::profile::foreign::Losses;
use crate::profile::foreign::hosts::{self, Allowed};
use crate::profile::foreign::meaning::{Base, Meaning, Network};
use crate::profile::json::{Fields, Node};
use crate::profile::location::Location;
use crate::profile::words::Variable;

/// A path as people write it: absolute, below the home directory, or relative to the workspace. The error says why no
/// profile can have it.
fn path(text: &str) -> Result<Location, String> {
    match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => located(Some(Variable::Home), rest, text),
        Some(_) => Err(format!("'{}' is below the home directory of another user", Plain(text))),
        None if text.starts_with('/') => located(None, text, text),
        None => located(Some(Variable::Workspace), text, text),
    }
}

/// A place below a variable or below the root, without `.` and without `/**` at its end, which says what a path says
/// anyway.
fn located(base: Option<Variable>, path: &str, shown: &str) -> Result<Location, String> {
    let literal = path.strip_suffix("/**").unwrap_or(if path == "**" { "" } else { path });
    let parts: Vec<&str> = literal.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    // A slip of the pen, and no name of a file: the path would be about nothing.
    let why = if shown.trim() != shown {
        "has a blank at an end"
    } else if parts.contains(&"~") {
        "has a '~' that is not at its beginning"
    } else if parts.contains(&"..") {
        "leads out with '..'"
    } else if literal.contains(['*', '?', '[', '{']) {
        "is a pattern, and paths of a profile are none"
    } else if literal.contains(['$', '\0']) {
        "has a '$' or a NUL"
    } else {
        let rest: String = parts.iter().flat_map(|part| ["/", part]).collect();
        let rest = if rest.is_empty() && base.is_none() { "/".to_string() } else { rest };
        return Ok(Location { base, rest: rest.into() });
    };
    Err(format!("'{}' {why}", Plain(shown)))
}

/// The paths of a list, each with its place in the document. What no profile can have is lost.
fn paths(node: Node, place: &Place, losses: &mut Losses) -> Result<Vec<(Location, String)>, Fault> {
    let mut paths = Vec::new();
    node.list(place, |node, place| {
        match path(&node.string(place)?) {
            Ok(location) => paths.push((location, place.to_string())),
            Err(why) => losses.note(place, why),
        }
        Ok(())
    })?;
    Ok(paths)
}

/// Adds hosts that are allowed. A rule of a profile names its ports.
fn allow_hosts(node: Node, place: &Place, network: &mut Network, losses: &mut Losses) -> Result<(), Fault> {
    let mut at_every_port = false;
    node.list(place, |node, place| {
        at_every_port |= allow_host(&node.string(place)?, place, network, losses);
        Ok(())
    })?;
    if at_every_port {
        losses.note(place, EVERY_PORT);
    }
    Ok(())
}

const EVERY_PORT: &str = "hosts without a port are allowed at every port there, and at 80 and 443 here";

/// Whether the document allows the host at every port.
fn allow_host(text: &str, place: &Place, network: &mut Network, losses: &mut Losses) -> bool {
    let (allowed, at_every_port) = hosts::allowed(text);
    match allowed {
        Allowed::Rules(rules) => network.connect.extend(rules),
        Allowed::Unsaid(why) => losses.note(place, why),
    }
    at_every_port
}

/// Adds hosts that are denied.
fn deny_hosts(node: Node, place: &Place, network: &mut Network, losses: &mut Losses) -> Result<(), Fault> {
    node.list(place, |node, place| {
        deny_host(&node.string(place)?, place, network, losses);
        Ok(())
    })?;
    Ok(())
}

fn deny_host(text: &str, place: &Place, network: &mut Network, losses: &mut Losses) {
    match hosts::denied(text) {
        Ok(rules) => network.deny.extend(rules),
        Err(why) => losses.note(place, why),
    }
}

/// Notes the keys that are left as unknown.
fn unknown(fields: &Fields, known: &[&str], losses: &mut Losses) {
    for key in fields.left() {
        let near = losses.hint(key, known.iter().copied());
        let place = Place::Key(fields.place, key);
        losses.note(place, format_args!("the key is unknown{near}"));
    }
}

/// Takes keys that say nothing about what a command may do here.
fn skip(fields: &mut Fields, keys: &[&str]) -> Result<(), Fault> {
    keys.iter().try_for_each(|key| fields.take(key, |_, _| Ok(())).map(|_| ()))
}

/// Takes a key, and notes that no profile can say it: unless it is false, null or empty.
fn lose(fields: &mut Fields, key: &str, why: &str, losses: &mut Losses) -> Result<(), Fault> {
    let noted = fields.take(key, |node, place| {
        let says_nothing = match &node {
            Node::Bool(value) => !value,
            Node::Null => true,
            Node::List(list) => list.is_empty(),
            Node::Object(pairs) => pairs.is_empty(),
            Node::String(_) | Node::Integer(_) | Node::OtherNumber => false,
        };
        if !says_nothing {
            losses.note(place, why);
        }
        Ok(())
    });
    noted.map(|_| ())
}

/// Keys of inner objects that would say nothing elsewhere: each list with the place of its object.
type Inner = [(&'static str, &'static [&'static str])];

/// Refuses a key of an inner object at the top of a document that may have any keys: what it says would be left out.
fn misplaced(fields: &Fields, inner: &Inner) -> Result<(), Fault> {
    let owner = |key: &str| inner.iter().find(|(_, keys)| keys.contains(&key)).map(|(owner, _)| *owner);
    let found = fields.left().find_map(|key| Some((key, owner(key)?)));
    found.map_or(Ok(()), |(key, owner)| Err(Place::Key(fields.place, key).fault(belongs(owner))))
}

fn belongs(owner: &str) -> String {
    format!("the key belongs into '{owner}', and says nothing here")
}

/// Chooses what the profile extends: with the workspace, what is protected in it.
fn settle_base(meaning: &mut Meaning) {
    meaning.base = Base::ByWorkspace;
    meaning.is_whole = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_absolute_or_below_a_variable() {
        let shown = |text: &str| path(text).map_or_else(|why| why, |location| location.to_string());
        assert_eq!(shown("."), "${WORKSPACE}");
        assert_eq!(shown("./a//b/"), "${WORKSPACE}/a/b");
        assert_eq!(shown("a/**"), "${WORKSPACE}/a");
        assert_eq!(shown("~/.ssh"), "${HOME}/.ssh");
        assert_eq!(shown("~"), "${HOME}");
        assert_eq!(shown("/"), "/");
        assert_eq!(shown("/**"), "/");
        assert_eq!(shown("//etc"), "/etc");
        for (text, why) in
            [("../a", "'..'"), ("*.env", "pattern"), ("~bob/x", "another user"), ("$X/a", "'$'")]
        {
            assert!(shown(text).contains(why), "{}", shown(text));
        }
        assert_eq!(shown("a~/b c"), "${WORKSPACE}/a~/b c");
        for (text, why) in [
            (" ~/.ssh", "a blank"),
            ("~/.ssh\t", "a blank"),
            ("/etc ", "a blank"),
            ("./~/.ssh", "'~'"),
            ("~/~", "'~'"),
        ] {
            assert!(shown(text).contains(why), "{}", shown(text));
        }
    }
}
