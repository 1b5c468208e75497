//! `syscalls` of one document: entries become rules for each call, and no entry may be without effect.

use sbx_policy::calls::{Call, Group};
use sbx_policy::env;
use sbx_policy::errno;
use sbx_policy::list::{self, Target};

use super::conditions;
use super::document::Author;
use super::error::{Fault, Place, Plain, hint};
use super::json::{Node, unknown_key};
use super::model::{
    CallRules, CallTable, DefaultAction, Given, Grants, Origin, Shared, Syscalls, Text, When,
};
use super::overlap;

/// Which list of a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Allow,
    Deny,
    Log,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Which::Allow => "allow",
            Which::Deny => "deny",
            Which::Log => "log",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Which::Allow => "syscalls.allow",
            Which::Deny => "syscalls.deny",
            Which::Log => "syscalls.log",
        }
    }
}

/// An entry, read.
struct Entry {
    first: Target,
    more: Vec<Target>,
    when: Option<When>,
    errno: Option<u16>,
    origin: Shared<Origin>,
}

/// Reads `syscalls`.
pub(crate) fn read(node: Node, place: &Place, author: &Author) -> Result<Syscalls, Fault> {
    let mut lists = Lists::default();
    let mut default = None;
    for (key, node) in node.object(place)? {
        let here = Place::Key(place, &key);
        let which = match &*key {
            "default" => {
                let origin = author.origin("syscalls.default", None, None);
                default = Some(Given { value: action(&node.string(&here)?, &here)?, origin });
                continue;
            }
            "allow" => Which::Allow,
            "deny" => Which::Deny,
            "log" => Which::Log,
            _ => return Err(unknown_key(place, &key, &["default", "allow", "deny", "log"])),
        };
        let nodes = node.list(&here)?;
        lists.entries.reserve(nodes.len());
        lists.said.reserve(nodes.len() * 2);
        for (index, node) in nodes.into_iter().enumerate() {
            let place = Place::Index(&here, index);
            let entry = entry(node, &place, which, author, index)?;
            lists.add(which, index, entry).map_err(|cause| Fault::at(&place, cause))?;
        }
    }
    Ok(Syscalls { default, calls: lists.finish(place)? })
}

/// `allow`, `kill`, `log`, `errno` or `errno=NAME`.
fn action(text: &str, place: &Place) -> Result<DefaultAction, Fault> {
    match text {
        "allow" => return Ok(DefaultAction::Allow),
        "kill" => return Ok(DefaultAction::Kill),
        "log" => return Ok(DefaultAction::Log),
        "trap" => {
            return Err(Fault::at(
                place,
                "'trap' is for the library alone; use kill, log, errno or errno=NAME",
            ));
        }
        _ => {}
    }
    if let Ok(value) = env::action(text.as_bytes()) {
        return Ok(DefaultAction::Errno(value as u16));
    }
    let near = match text.strip_prefix("errno=") {
        Some(name) => hint(name, errno::names()),
        None => hint(text, ["allow", "kill", "log", "errno"].into_iter()),
    };
    let known = "allow, kill, log, errno, errno=NAME";
    Err(Fault::at(place, format_args!("unknown action '{}'{near}; it is one of {known}", Plain(text))))
}

fn entry(node: Node, place: &Place, which: Which, author: &Author, index: usize) -> Result<Entry, Fault> {
    let origin = |text: Text, why: Option<Text>| {
        Shared::from(Origin {
            profile: author.profile.clone(),
            built_in: author.built_in,
            key: which.key(),
            index: Some(index),
            entry: text,
            why,
        })
    };
    match node {
        Node::String(text) => {
            let (target, when, errno) = target(&text, place)?;
            check_errno(errno, which, place)?;
            Ok(Entry { first: target, more: Vec::new(), when, errno, origin: origin(text, None) })
        }
        Node::Object(pairs) => {
            let entry = Parts::read(pairs, place)?.entry(place, origin)?;
            check_errno(entry.errno, which, place)?;
            Ok(entry)
        }
        other => other.instead(place, "a call, or an object with 'call'"),
    }
}

fn check_errno(errno: Option<u16>, which: Which, place: &Place) -> Result<(), Fault> {
    if errno.is_some() && which != Which::Deny {
        return Err(Fault::at(place, "an error is named, which only 'deny' can"));
    }
    Ok(())
}

type Parsed = (Target, Option<When>, Option<u16>);

fn target(text: &str, place: &Place) -> Result<Parsed, Fault> {
    let entry = list::parse(text.as_bytes()).map_err(|problem| Fault::at(place, problem))?;
    Ok((entry.target, entry.restriction.map(When::Named), (entry.errno != 0).then_some(entry.errno)))
}

/// The keys of an entry that is an object.
#[derive(Default)]
struct Parts {
    calls: Vec<Text>,
    args: Option<Vec<sbx_policy::restrictions::Condition>>,
    errno: Option<u16>,
    why: Option<Text>,
}

impl Parts {
    fn read(pairs: Vec<(Text, Node)>, place: &Place) -> Result<Parts, Fault> {
        let mut parts = Parts::default();
        let mut named = false;
        for (key, node) in pairs {
            let here = Place::Key(place, &key);
            match &*key {
                "call" | "calls" if named => {
                    return Err(Fault::at(place, "there is both 'call' and 'calls'; keep one of them"));
                }
                "call" => parts.calls = vec![node.string(&here)?],
                "calls" => parts.calls = strings(node, &here)?,
                "args" => parts.args = Some(conditions::read(node, &here)?),
                "errno" => parts.errno = Some(error_number(&node.string(&here)?, &here)?),
                "why" => parts.why = Some(node.string(&here)?),
                _ => return Err(unknown_key(place, &key, &["call", "calls", "args", "errno", "why"])),
            }
            named |= key.starts_with("call");
        }
        Ok(parts)
    }

    /// What the names mean. A restriction or an error belongs to one name, so it must then be the only one.
    fn entry(
        self,
        place: &Place,
        origin: impl Fn(Text, Option<Text>) -> Shared<Origin>,
    ) -> Result<Entry, Fault> {
        let (mut first, mut more, mut when, mut errno) = (None, Vec::new(), None, self.errno);
        for text in &self.calls {
            let (target, named, inline) = target(text, place)?;
            let alone = self.calls.len() == 1;
            if (named.is_some() || inline.is_some()) && !alone {
                let cause = format_args!("'{}' in 'calls' must be a bare name", Plain(text)).to_string();
                return Err(Fault::at(place, cause));
            }
            if inline.is_some() && self.errno.is_some() {
                return Err(Fault::at(place, "the error is named twice"));
            }
            if self.args.is_some() && (named.is_some() || matches!(target, Target::Group(_))) {
                let cause =
                    format_args!("'args' go with the bare name of a call, not with '{}'", Plain(text))
                        .to_string();
                return Err(Fault::at(place, cause));
            }
            when = named;
            errno = errno.or(inline);
            match first {
                None => first = Some(target),
                Some(_) => more.push(target),
            }
        }
        let first = first.ok_or_else(|| Fault::at(place, "it names no call: the key 'call' is missing"))?;
        let when = self.args.map(|all| When::Free(all.into())).or(when);
        let mut calls = self.calls;
        let name = if more.is_empty() { calls.swap_remove(0) } else { calls.join(" ").into() };
        Ok(Entry { first, more, when, errno, origin: origin(name, self.why) })
    }
}

fn strings(node: Node, place: &Place) -> Result<Vec<Text>, Fault> {
    let list = node.list(place)?;
    list.into_iter().enumerate().map(|(index, node)| node.string(&Place::Index(place, index))).collect()
}

fn error_number(text: &str, place: &Place) -> Result<u16, Fault> {
    errno::parse(text.as_bytes()).ok_or_else(|| {
        Fault::at(place, format_args!("unknown error '{}'{}", Plain(text), hint(text, errno::names())))
    })
}

/// What the lists of one document say about one call, while they are read.
#[derive(Default)]
struct Draft {
    allow: Grants,
    log: Grants,
    deny: Grants,
    /// The error of its denials, 0 for none, and whose word that is.
    errno: Option<(u16, Shared<Origin>)>,
}

/// The lists of one document, while they are read.
#[derive(Default)]
struct Lists {
    /// With the list and the place in it.
    entries: Vec<(Which, usize, Entry)>,
    /// Which call is named by which entry.
    said: Vec<(Call, u32)>,
    groups: Vec<(Which, Group, Shared<Origin>)>,
}

impl Lists {
    fn add(&mut self, which: Which, index: usize, entry: Entry) -> Result<(), String> {
        let number = self.entries.len() as u32;
        for target in [&entry.first].into_iter().chain(&entry.more) {
            match *target {
                Target::Call(call) => self.said.push((call, number)),
                Target::Group(group) => {
                    self.add_group(which, group, &entry)?;
                    self.said.extend(group.members().map(|call| (call, number)));
                }
            }
        }
        self.entries.push((which, index, entry));
        Ok(())
    }

    /// A group that another group contains has no effect of its own.
    fn add_group(&mut self, which: Which, group: Group, entry: &Entry) -> Result<(), String> {
        let others = self.groups.iter().filter(|(list, ..)| *list == which);
        for (_, other, origin) in others {
            let inside = |a: Group, b: Group| a.members().all(|call| b.contains(call));
            if inside(group, *other) {
                return Err(overlap::sentence(&entry.origin, origin, "the latter contains the former"));
            }
            if inside(*other, group) {
                return Err(overlap::sentence(&entry.origin, origin, "the former contains the latter"));
            }
        }
        self.groups.push((which, group, entry.origin.clone()));
        Ok(())
    }

    /// The rules of each call, in the order of the calls.
    fn finish(mut self, place: &Place) -> Result<CallTable, Fault> {
        self.said.sort_unstable();
        let mut calls = Vec::with_capacity(self.said.len());
        for said in self.said.chunk_by(|one, other| one.0 == other.0) {
            let Some((call, _)) = said.first() else { continue };
            let mut draft = Draft::default();
            for (_, number) in said {
                let Some((which, index, entry)) = self.entries.get(*number as usize) else { continue };
                draft.add(*which, *call, entry).map_err(|cause| {
                    let list = Place::Key(place, which.name());
                    Fault::at(&Place::Index(&list, *index), cause)
                })?;
            }
            calls.push((*call, draft.finish()?));
        }
        Ok(CallTable(calls.into()))
    }
}

impl Draft {
    fn add(&mut self, which: Which, call: Call, entry: &Entry) -> Result<(), String> {
        let grants = match which {
            Which::Allow => &mut self.allow,
            Which::Deny => &mut self.deny,
            Which::Log => &mut self.log,
        };
        overlap::extend(grants, call, entry.when.as_ref(), &entry.origin)?;
        if which == Which::Deny {
            // A group after a name, or a second condition, may not change the error of the first.
            match &self.errno {
                Some((errno, origin)) if Some(*errno).filter(|e| *e != 0) != entry.errno => {
                    return Err(overlap::sentence(&entry.origin, origin, "one call can have one error only"));
                }
                Some(_) => {}
                None => self.errno = Some((entry.errno.unwrap_or(0), entry.origin.clone())),
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<CallRules, Fault> {
        let mut rules = CallRules { allow: self.allow, ..CallRules::default() };
        overlap::note(&mut rules, self.log)?;
        overlap::forbid(&mut rules, self.deny)?;
        rules.errno = self.errno.map(|(errno, _)| errno).filter(|errno| *errno != 0);
        Ok(rules)
    }
}
