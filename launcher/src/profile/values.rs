//! The values of a profile's keys, each read from its JSON.

use crate::hosts::{HostRule, RuleError};
use crate::profile::error::{Fault, Place, Plain};
use crate::profile::groups;
use crate::profile::json::Node;
use crate::profile::keys::Key;
use crate::profile::location::Location;
use crate::profile::model::{HostGroup, Protection, SettingsCopy};
use crate::profile::origin::{Given, List, Note, Text};
use crate::profile::pattern::Pattern;
use crate::profile::units::Bound;
use crate::profile::words::{SettingsFormat, WhenMade};

/// An entry of a list, with the reason that the profile gives.
type Entry<T> = Result<(T, Option<Text>), Fault>;

/// For a path that does not exist and looks like a pattern.
pub(crate) const NOT_EXPANDED: &str = "patterns of paths are not expanded; name each path";

/// For a name of a command with a `?`.
pub(crate) const ONLY_STAR: &str = "of patterns only '*' is known, which stands for anything";

pub(crate) fn word<T: Copy>(all: &'static [(&str, T)]) -> impl Fn(Node, &Place) -> Result<T, Fault> {
    move |node, place| node.word(place, all)
}

pub(crate) fn path_entry(node: Node, place: &Place) -> Entry<Location> {
    let (entry, why) =
        path_or_object(node, place, &["path", "why"], "a path, or an object with 'path' and 'why'")?;
    Ok((entry.path, why))
}

/// A path that may be missing, or may hold credentials, where the entry says so.
pub(crate) fn openable(node: Node, place: &Place) -> Result<(Location, Note), Fault> {
    if matches!(node, Node::String(_)) {
        return Ok((path(node, place)?, Note::default()));
    }
    if !matches!(node, Node::Object(_)) {
        return Err(node.instead(place, "a path, or an object with 'path', 'optional', 'unless' and 'why'"));
    }
    let mut fields = node.fields(place, &["path", "optional", "unless", "why"])?;
    let path = fields.require("path", path)?;
    let optional = fields.take("optional", Node::truth)?.unwrap_or_default();
    let unless_credentials = fields.take("unless", word(&[("credentials", true)]))?.unwrap_or_default();
    Ok((path, Note { why: fields.take("why", Node::string)?, optional, unless_credentials }))
}

pub(crate) fn protection(node: Node, place: &Place) -> Entry<Protection> {
    let expected = "a path, or an object with 'path', 'readers', 'when_made' and 'why'";
    path_or_object(node, place, &["path", "readers", "when_made", "why"], expected)
}

fn path_or_object(
    node: Node,
    place: &Place,
    keys: &[&'static str],
    expected: &'static str,
) -> Entry<Protection> {
    match node {
        Node::String(_) => {
            let (path, when_made) = (path(node, place)?, WhenMade::default());
            Ok((Protection { path, readers: List::default(), when_made }, None))
        }
        Node::Object(_) => {
            let mut fields = node.fields(place, keys)?;
            let readers = fields.take("readers", |node, place| node.list(place, path))?.unwrap_or_default();
            let when_made = fields.take("when_made", word(WhenMade::WORDS))?.unwrap_or_default();
            let path = fields.require("path", path)?;
            let protection = Protection { path, readers: readers.into(), when_made };
            Ok((protection, fields.take("why", Node::string)?))
        }
        other => Err(other.instead(place, expected)),
    }
}

fn path(node: Node, place: &Place) -> Result<Location, Fault> {
    let text = node.string(place)?;
    // As a name it would deny or allow nothing.
    if text.contains('*') {
        return Err(place.fault(format!("'{}' has a '*', and {NOT_EXPANDED}", Plain(&text))));
    }
    Location::path(text).map_err(|mistake| place.fault(mistake))
}

/// A file of settings, and what of it is copied.
pub(crate) fn copy(node: Node, place: &Place) -> Entry<SettingsCopy> {
    let mut fields = node.fields(place, &["path", "format", "keep", "why"])?;
    let format = fields.require("format", word(SettingsFormat::WORDS))?;
    let pattern = |node: Node, place: &Place| node.string(place).map(Pattern::new);
    let keep = fields.require("keep", |node, place| node.list(place, pattern))?.into();
    let path = fields.require("path", path)?;
    Ok((SettingsCopy { path, format, keep }, fields.take("why", Node::string)?))
}

/// An object of groups of hosts. What a rule may say depends on the list that names its group.
pub(crate) fn host_groups(
    node: Node,
    place: &Place,
    key: &Key,
) -> Result<List<(Text, Given<HostGroup>)>, Fault> {
    let mut groups = Vec::new();
    for (name, node) in node.object(place)? {
        let place = Place::Key(place, &name);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_name) {
            let wrong = "is no name of a group: letters, digits, '-', '_' and '.'";
            return Err(place.fault(format!("'{}' {wrong}", Plain(&name))));
        }
        let rules = node.list(&place, |node, place| {
            let text = node.string(place)?;
            let read =
                HostRule::parse(&text).or_else(|wrong| HostRule::parse_denial(&text).map_err(|_| wrong));
            read.map_err(|wrong| place.fault(format!("'{}': {wrong}", Plain(&text))))?;
            Ok(text)
        })?;
        groups.push((name.into(), key.given(HostGroup { rules: rules.into() })));
    }
    groups.sort_unstable_by(|(one, _): &(Text, _), (other, _)| one.cmp(other));
    Ok(groups.into())
}

/// A value by itself, or in an object with the reason for it.
fn reasoned<T>(
    node: Node,
    place: &Place,
    key: &'static str,
    read: impl Fn(Node, &Place) -> Result<T, Fault>,
) -> Entry<T> {
    if !matches!(node, Node::Object(_)) {
        return Ok((read(node, place)?, None));
    }
    let mut fields = node.fields(place, &[key, "why"])?;
    Ok((fields.require(key, read)?, fields.take("why", Node::string)?))
}

/// A rule about hosts, in the form that rules are shown in; or the name of a group.
pub(crate) fn hosts(parse: fn(&str) -> Result<HostRule, RuleError>) -> impl Fn(Node, &Place) -> Entry<Text> {
    let rule = move |node: Node, place: &Place| {
        let text = node.string(place)?;
        if groups::name(&text).is_some() {
            return Ok(text);
        }
        let rule = parse(&text).map_err(|wrong| place.fault(format!("'{}': {wrong}", Plain(&text))))?;
        Ok(rule.to_string().into())
    };
    move |node, place| reasoned(node, place, "host", rule)
}

pub(crate) fn port(node: Node, place: &Place) -> Entry<u16> {
    reasoned(node, place, "port", |node, place| {
        let number = node.integer(place)?;
        let port = u16::try_from(number).ok().filter(|port| *port != 0);
        port.ok_or_else(|| place.fault(format!("{number} is no port: 1 to 65535")))
    })
}

pub(crate) fn variable_name(node: Node, place: &Place) -> Entry<Pattern> {
    let name = node.string(place)?;
    check_name(&name, place)?;
    Ok((Pattern::new(name), None))
}

fn check_name(name: &str, place: &Place) -> Result<(), Fault> {
    let wrong = name.is_empty() || name.contains(['=', '\0']);
    if wrong { Err(place.fault(format!("'{}' is no name of a variable", Plain(name)))) } else { Ok(()) }
}

/// An object of variables and their values.
pub(crate) fn variables(
    node: Node,
    place: &Place,
    key: &Key,
) -> Result<List<(Text, Given<Location>)>, Fault> {
    let mut set = Vec::new();
    for (name, node) in node.object(place)? {
        let place = Place::Key(place, &name);
        check_name(&name, &place)?;
        let value = Location::value(node.string(&place)?).map_err(|mistake| place.fault(mistake))?;
        set.push((name.into(), key.given(value)));
    }
    set.sort_unstable_by(|(one, _): &(Text, _), (other, _)| one.cmp(other));
    Ok(set.into())
}

/// A limit. A number without quotes is read like the text.
pub(crate) fn limit<T>(
    parse: fn(&str) -> Result<Bound<T>, String>,
    expected: &'static str,
) -> impl Fn(Node, &Place) -> Result<Bound<T>, Fault> {
    move |node, place| {
        let text = match node {
            Node::Integer(number) => number.to_string(),
            Node::String(text) => text,
            Node::OtherNumber => node.integer(place)?.to_string(),
            other => return Err(other.instead(place, expected)),
        };
        parse(&text).map_err(|why| place.fault(format!("'{}': {why}", Plain(&text))))
    }
}

/// A text: an argument of a program, or a sentence.
pub(crate) fn argument(node: Node, place: &Place) -> Entry<Text> {
    let text = node.string(place)?;
    if text.is_empty() || text.contains('\0') {
        return Err(place.fault("the text is empty or contains a NUL"));
    }
    Ok((text, None))
}

pub(crate) fn command(node: Node, place: &Place) -> Entry<Text> {
    reasoned(node, place, "command", command_name)
}

fn command_name(node: Node, place: &Place) -> Result<Text, Fault> {
    let text = node.string(place)?;
    if text.is_empty() || text.contains('\0') {
        return Err(place.fault("the name of a command is empty or contains a NUL"));
    }
    if text.contains('?') {
        return Err(place.fault(format!("'{}': {ONLY_STAR}", Plain(&text))));
    }
    if let Some((directory, _)) = text.rsplit_once('/') {
        Location::path(text.clone()).map_err(|mistake| place.fault(mistake))?;
        if directory.contains('*') {
            let cause = "has a '*' before its last part; write out the directories";
            return Err(place.fault(format!("'{}' {cause}", Plain(&text))));
        }
    }
    Ok(text)
}
