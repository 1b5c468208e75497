//! One profile document, read strictly but not yet merged with its parents.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

use super::error::{Fault, Place, Plain, tame};
use super::json::{Node, unknown_key};
use super::location::Location;
use super::model::{
    Commands, Endpoint, Env, Given, Level, Limits, List, Namespaces, Network, Origin, Paths, Protection,
    Shared, StaticMode, Syscalls, Text,
};
use super::pattern::Pattern;
use super::units::Bound;
use super::words::{LEVELS, MODES, NAMESPACES, STATIC};
use super::{syscalls, units};

/// What a document says itself.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub description: Option<Text>,
    pub extends: Vec<Text>,
    pub syscalls: Syscalls,
    pub paths: Paths,
    pub network: Network,
    pub env: Env,
    pub limits: Limits,
    pub commands: Commands,
    pub static_programs: Option<Given<StaticMode>>,
    pub namespaces: Option<Given<Namespaces>>,
    pub require: Option<Given<Level>>,
}

/// Whose document it is: for the origin of its entries.
pub(crate) struct Author {
    pub profile: Shared<str>,
    pub built_in: bool,
}

impl Author {
    pub(crate) fn origin(
        &self,
        key: &'static str,
        index: Option<usize>,
        why: Option<Text>,
    ) -> Shared<Origin> {
        Shared::from(Origin {
            profile: self.profile.clone(),
            built_in: self.built_in,
            key,
            index,
            entry: Cow::Borrowed(""),
            why,
        })
    }

    fn given<T>(&self, key: &'static str, value: T) -> Given<T> {
        Given { value, origin: self.origin(key, None, None) }
    }

    /// A list of which each member is one thing, and none stands twice.
    fn each<T: Eq + Hash + Clone>(
        &self,
        key: &'static str,
        node: Node,
        place: &Place,
        read: impl Fn(Node, &Place) -> Result<(T, Option<Text>), Fault>,
    ) -> Result<List<Given<T>>, Fault> {
        let nodes = node.list(place)?;
        if nodes.len() > ENTRIES {
            return Err(Fault::at(place, format_args!("more than {ENTRIES} entries")));
        }
        let shared = self.built_in.then(|| self.origin(key, None, None));
        let mut list: Vec<Given<T>> = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.into_iter().enumerate() {
            let place = Place::Index(place, index);
            let (value, why) = read(node, &place)?;
            // The long lists of the built-in profiles share one origin: their values say where they stand.
            let origin = match &shared {
                Some(shared) if why.is_none() => shared.clone(),
                _ => self.origin(key, Some(index), why),
            };
            list.push(Given { value, origin });
        }
        // A test says it of the built-in ones, so that no start has to.
        if self.built_in {
            return Ok(list.into());
        }
        let mut known = HashSet::with_capacity(list.len());
        match list.iter().position(|given| !known.insert(&given.value)) {
            Some(index) => Err(Fault::at(&Place::Index(place, index), "the same entry stands above already")),
            None => Ok(list.into()),
        }
    }
}

const KEYS: [&str; 12] = [
    "description",
    "extends",
    "syscalls",
    "paths",
    "network",
    "env",
    "limits",
    "commands",
    "static",
    "namespaces",
    "require",
    "$schema",
];

/// Understands a document.
pub(crate) fn read(node: Node, author: &Author) -> Result<Document, Fault> {
    let top = Place::Top;
    let mut document = Document::default();
    for (key, node) in node.object(&top)? {
        let place = Place::Key(&top, &key);
        match &*key {
            "$schema" => drop(node.string(&place)?),
            "description" => document.description = Some(node.string(&place)?),
            "extends" => document.extends = extends(node, &place)?,
            "syscalls" => document.syscalls = syscalls::read(node, &place, author)?,
            "paths" => document.paths = paths(node, &place, author)?,
            "network" => document.network = network(node, &place, author)?,
            "env" => document.env = env(node, &place, author)?,
            "limits" => document.limits = limits(node, &place, author)?,
            "commands" => document.commands = commands(node, &place, author)?,
            "static" => document.static_programs = Some(author.given("static", node.word(&place, &STATIC)?)),
            "namespaces" => {
                document.namespaces = Some(author.given("namespaces", node.word(&place, &NAMESPACES)?));
            }
            "require" => document.require = Some(author.given("require", node.word(&place, &LEVELS)?)),
            _ => return Err(unknown_key(&top, &key, &KEYS)),
        }
    }
    Ok(document)
}

fn extends(node: Node, place: &Place) -> Result<Vec<Text>, Fault> {
    let nodes = match node {
        Node::List(nodes) => nodes,
        Node::String(name) => return Ok(vec![name]),
        other => return other.instead(place, "a name or a list of names"),
    };
    let mut names = Vec::new();
    for (index, node) in nodes.into_iter().enumerate() {
        let place = Place::Index(place, index);
        let name = node.string(&place)?;
        if names.contains(&name) {
            return Err(Fault::at(&place, format_args!("'{}' stands above already", Plain(&name))));
        }
        if names.len() >= PARENTS {
            return Err(Fault::at(&place, format_args!("more than {PARENTS} parents")));
        }
        names.push(name);
    }
    Ok(names)
}

const PARENTS: usize = 16;
/// More than any list of paths or names has.
const ENTRIES: usize = 2000;

fn paths(node: Node, place: &Place, author: &Author) -> Result<Paths, Fault> {
    let mut paths = Paths::default();
    for (key, node) in node.object(place)? {
        let here = Place::Key(place, &key);
        if &*key == "protect" {
            paths.protect = author.each("paths.protect", node, &here, protection)?;
            continue;
        }
        let (list, name) = match &*key {
            "read" => (&mut paths.read, "paths.read"),
            "execute" => (&mut paths.execute, "paths.execute"),
            "write" => (&mut paths.write, "paths.write"),
            "deny" => (&mut paths.deny, "paths.deny"),
            _ => return Err(unknown_key(place, &key, &["read", "execute", "write", "deny", "protect"])),
        };
        *list = author.each(name, node, &here, path_entry)?;
    }
    Ok(paths)
}

/// As [`path_entry`], and who reads it.
fn protection(node: Node, place: &Place) -> Result<(Protection, Option<Text>), Fault> {
    let pairs = match node {
        Node::String(text) => {
            return Ok((Protection { path: path(text, place)?, readers: List::default() }, None));
        }
        Node::Object(pairs) => pairs,
        other => return other.instead(place, "a path, or an object with 'path', 'readers' and 'why'"),
    };
    let (mut found, mut why, mut readers) = (None, None, Vec::new());
    for (key, node) in pairs {
        let here = Place::Key(place, &key);
        match &*key {
            "path" => found = Some(path(node.string(&here)?, &here)?),
            "why" => why = Some(node.string(&here)?),
            "readers" => {
                for (index, node) in node.list(&here)?.into_iter().enumerate() {
                    let here = Place::Index(&here, index);
                    readers.push(path(node.string(&here)?, &here)?);
                }
            }
            _ => return Err(unknown_key(place, &key, &["path", "readers", "why"])),
        }
    }
    let path = found.ok_or_else(|| Fault::at(place, "the key 'path' is missing"))?;
    Ok((Protection { path, readers: readers.into() }, why))
}

/// A string, or `{"path": ..., "why": ...}`.
fn path_entry(node: Node, place: &Place) -> Result<(Location, Option<Text>), Fault> {
    let pairs = match node {
        Node::String(text) => return Ok((path(text, place)?, None)),
        Node::Object(pairs) => pairs,
        other => return other.instead(place, "a path, or an object with 'path' and 'why'"),
    };
    let (mut found, mut why) = (None, None);
    for (key, node) in pairs {
        let here = Place::Key(place, &key);
        match &*key {
            "path" => found = Some(path(node.string(&here)?, &here)?),
            "why" => why = Some(node.string(&here)?),
            _ => return Err(unknown_key(place, &key, &["path", "why"])),
        }
    }
    Ok((found.ok_or_else(|| Fault::at(place, "the key 'path' is missing"))?, why))
}

fn path(text: Text, place: &Place) -> Result<Location, Fault> {
    // As a name it would deny or allow nothing.
    if text.contains('*') {
        return Err(Fault::at(place, format_args!("'{}' has a '*', and {NOT_EXPANDED}", Plain(&text))));
    }
    Location::path(text).map_err(|cause| Fault::at(place, cause))
}

fn network(node: Node, place: &Place, author: &Author) -> Result<Network, Fault> {
    let mut network = Network::default();
    for (key, node) in node.object(place)? {
        let here = Place::Key(place, &key);
        match &*key {
            "mode" => network.mode = Some(author.given("network.mode", node.word(&here, &MODES)?)),
            "connect" => network.connect = author.each("network.connect", node, &here, endpoint)?,
            "bind" => network.bind = author.each("network.bind", node, &here, port)?,
            "unix" => network.unix = author.each("network.unix", node, &here, path_entry)?,
            _ => return Err(unknown_key(place, &key, &["mode", "connect", "bind", "unix"])),
        }
    }
    Ok(network)
}

impl Endpoint {
    /// A port: digits, and not zero.
    pub fn port(text: &str) -> Option<u16> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|port| digits && *port != 0)
    }

    /// `HOST:PORT`, `[::1]:443`, `*:443`.
    pub fn parse(text: &str) -> Option<Endpoint> {
        let (host, port) = text.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host: Text = match bare {
            Some(address) => address.parse::<std::net::Ipv6Addr>().ok()?.to_string().into(),
            None => host.to_string().into(),
        };
        let odd = |c: char| {
            tame(c) != c || c.is_whitespace() || matches!(c, '/' | '[' | ']') || (bare.is_none() && c == ':')
        };
        let port = Endpoint::port(port)?;
        (!host.is_empty() && !host.contains(odd)).then_some(Endpoint { host, port })
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

fn endpoint(node: Node, place: &Place) -> Result<(Endpoint, Option<Text>), Fault> {
    let text = node.string(place)?;
    let found = Endpoint::parse(&text);
    let cause =
        || Fault::at(place, format_args!("'{}' is not HOST:PORT (a port is 1 to 65535)", Plain(&text)));
    Ok((found.ok_or_else(cause)?, None))
}

fn port(node: Node, place: &Place) -> Result<(u16, Option<Text>), Fault> {
    let number = node.integer(place)?;
    let port = u16::try_from(number).ok().filter(|port| *port != 0);
    Ok((port.ok_or_else(|| Fault::at(place, format_args!("{number} is no port: 1 to 65535")))?, None))
}

fn env(node: Node, place: &Place, author: &Author) -> Result<Env, Fault> {
    let mut env = Env::default();
    for (key, node) in node.object(place)? {
        let here = Place::Key(place, &key);
        match &*key {
            "inherit" => env.inherit = author.each("env.inherit", node, &here, name_pattern)?,
            "deny" => env.deny = author.each("env.deny", node, &here, name_pattern)?,
            "set" => env.set = variables(node, &here, author)?,
            _ => return Err(unknown_key(place, &key, &["inherit", "set", "deny"])),
        }
    }
    Ok(env)
}

fn check_name(name: &str, place: &Place) -> Result<(), Fault> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(Fault::at(place, format_args!("'{}' is no name of a variable", Plain(name))));
    }
    Ok(())
}

fn name_pattern(node: Node, place: &Place) -> Result<(Pattern, Option<Text>), Fault> {
    let name = node.string(place)?;
    check_name(&name, place)?;
    Ok((Pattern::new(name), None))
}

fn variables(node: Node, place: &Place, author: &Author) -> Result<List<(Text, Given<Location>)>, Fault> {
    let mut set = Vec::new();
    for (name, node) in node.object(place)? {
        let here = Place::Key(place, &name);
        check_name(&name, &here)?;
        let value = Location::value(node.string(&here)?).map_err(|cause| Fault::at(&here, cause))?;
        set.push((name, author.given("env.set", value)));
    }
    set.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(set.into())
}

fn limits(node: Node, place: &Place, author: &Author) -> Result<Limits, Fault> {
    const KEYS: [&str; 7] = ["timeout", "output", "processes", "open_files", "file_size", "memory", "cpu"];
    let mut limits = Limits::default();
    for (key, node) in node.object(place)? {
        let at = Place::Key(place, &key);
        match &*key {
            "timeout" => limits.timeout = Some(author.given("limits.timeout", time(node, &at)?)),
            "cpu" => limits.cpu = Some(author.given("limits.cpu", time(node, &at)?)),
            "output" => limits.output = Some(author.given("limits.output", bytes(node, &at)?)),
            "file_size" => limits.file_size = Some(author.given("limits.file_size", bytes(node, &at)?)),
            "memory" => limits.memory = Some(author.given("limits.memory", bytes(node, &at)?)),
            "processes" => limits.processes = Some(author.given("limits.processes", count(node, &at)?)),
            "open_files" => limits.open_files = Some(author.given("limits.open_files", count(node, &at)?)),
            _ => return Err(unknown_key(place, &key, &KEYS)),
        }
    }
    Ok(limits)
}

fn time(node: Node, place: &Place) -> Result<Bound<Duration>, Fault> {
    let text = number_or_text(node, place, "a duration")?;
    units::duration(&text).map_err(|why| unreadable(place, &text, &why))
}

fn bytes(node: Node, place: &Place) -> Result<Bound<u64>, Fault> {
    let text = number_or_text(node, place, "a size")?;
    units::size(&text).map_err(|why| unreadable(place, &text, &why))
}

fn count(node: Node, place: &Place) -> Result<Bound<u64>, Fault> {
    let text = match node {
        Node::String(text) => text,
        other => other.integer(place)?.to_string().into(),
    };
    units::count(&text).map_err(|why| unreadable(place, &text, &why))
}

/// A number without quotes is read like the one in them: the same is too much.
fn number_or_text(node: Node, place: &Place, expected: &str) -> Result<Text, Fault> {
    match node {
        Node::Integer(number) => Ok(number.to_string().into()),
        Node::String(text) => Ok(text),
        other => other.instead(place, expected),
    }
}

fn unreadable(place: &Place, text: &str, why: &str) -> Fault {
    Fault::at(place, format_args!("'{}': {why}", Plain(text)))
}

fn commands(node: Node, place: &Place, author: &Author) -> Result<Commands, Fault> {
    let mut commands = Commands::default();
    for (key, node) in node.object(place)? {
        let here = Place::Key(place, &key);
        match &*key {
            "allow" => commands.allow = author.each("commands.allow", node, &here, command)?,
            "block" => commands.block = author.each("commands.block", node, &here, command)?,
            _ => return Err(unknown_key(place, &key, &["allow", "block"])),
        }
    }
    Ok(commands)
}

/// Of a path that nothing has, and that looks like a pattern.
pub(crate) const NOT_EXPANDED: &str = "patterns of paths are not expanded; name each path";

/// Of names of commands, which a `?` is in by mistake.
pub(crate) const ONLY_STAR: &str = "of patterns only '*' is known, which stands for anything";

fn command(node: Node, place: &Place) -> Result<(Text, Option<Text>), Fault> {
    let text = node.string(place)?;
    if text.is_empty() || text.contains('\0') {
        return Err(Fault::at(place, "the name of a command is empty or contains a NUL"));
    }
    if text.contains('?') {
        return Err(Fault::at(place, format_args!("'{}': {ONLY_STAR}", Plain(&text))));
    }
    if text.contains('/') {
        Location::path(text.clone()).map_err(|why| Fault::at(place, why))?;
        if text.rsplit_once('/').is_some_and(|(directory, _)| directory.contains('*')) {
            return Err(Fault::at(
                place,
                format_args!("'{}' has a '*' before its last part; write out the directories", Plain(&text)),
            ));
        }
    }
    Ok((text, None))
}
