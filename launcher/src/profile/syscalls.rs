//! `syscalls` of one document: entries become rules for each call, and no entry may be without effect.

use std::collections::BTreeMap;

use sbx_policy::calls::{Call, Group};
use sbx_policy::errno;
use sbx_policy::list::{self, List, Target};
use sbx_policy::restrictions::Condition;

use crate::profile::calls::{CallRules, CallTable, DefaultAction, Grants, Syscalls, When};
use crate::profile::error::{Fault, Mistake, Place, Plain, nearest};
use crate::profile::json::Node;
use crate::profile::keys::{Key, one};
use crate::profile::origin::{Origin, Shared, Text};
use crate::profile::{conditions, overlap};

/// The lists: each with its key, and with the keys that lead to it.
const LISTS: [(List, &str, &str); 3] = [
    (List::Allow, "allow", "syscalls.allow"),
    (List::Deny, "deny", "syscalls.deny"),
    (List::Log, "log", "syscalls.log"),
];

/// Reads `syscalls`.
pub(crate) fn read(node: Node, place: &Place, key: &Key) -> Result<Syscalls, Fault> {
    let author = key.author;
    let mut fields = node.fields(place, &["default", "allow", "deny", "log"])?;
    let key = Key { author, name: "syscalls.default" };
    let default = fields.take("default", |node, place| one(action)(node, place, &key))?.flatten();
    let mut calls: BTreeMap<Call, Draft> = BTreeMap::new();
    for (list, short, name) in LISTS {
        let key = Key { author, name };
        let (mut groups, mut indices) = (Vec::new(), 0..);
        fields.take(short, |node, place| {
            node.list(place, |node, place| {
                let entry = entry(node, place, list, |text, why| key.origin(indices.next(), text, why))?;
                add(&mut calls, list, &entry, &mut groups).map_err(|mistake| place.fault(mistake))
            })
        })?;
    }
    let rules: Result<Vec<_>, Fault> =
        calls.into_iter().map(|(call, draft)| Ok((call, draft.finish()?))).collect();
    Ok(Syscalls { default, calls: CallTable(rules?.into()) })
}

const ACTIONS: [(&str, DefaultAction); 4] = [
    ("allow", DefaultAction::Allow),
    ("kill", DefaultAction::Kill),
    ("log", DefaultAction::Log),
    ("errno", DefaultAction::Errno(errno::EPERM)),
];

/// One of these words, or `errno=NAME`.
fn action(node: Node, place: &Place) -> Result<DefaultAction, Fault> {
    let text = node.string(place)?;
    if let Some((_, action)) = ACTIONS.iter().find(|(word, _)| *word == text) {
        return Ok(*action);
    }
    if text == "trap" {
        return Err(place.fault("'trap' is for the library alone; use kill, log, errno or errno=NAME"));
    }
    let near = match text.strip_prefix("errno=") {
        Some(name) => match errno::parse(name.as_bytes()) {
            Some(number) => return Ok(DefaultAction::Errno(number)),
            None => nearest(name, errno::names()),
        },
        None => nearest(&text, ACTIONS.iter().map(|(word, _)| *word)),
    };
    let rest = "; it is one of allow, kill, log, errno, errno=NAME".to_string();
    Err(place.fault(Mistake::Unknown { what: "action", word: text.into_owned(), near, rest }))
}

/// An entry of a list.
struct Entry {
    targets: Vec<Target>,
    when: Option<When>,
    errno: Option<u16>,
    /// Whether it counts only where the run has namespaces of its own.
    inside: bool,
    origin: Shared<Origin>,
}

/// The keys of an entry. A bare name is short for an object with `call` alone.
#[derive(Default)]
struct Parts {
    calls: Vec<Text>,
    args: Option<Vec<Condition>>,
    errno: Option<u16>,
    inside: bool,
    why: Option<Text>,
}

/// What an entry may need.
const NEEDS: [(&str, ()); 1] = [("namespaces", ())];

fn parts(node: Node, place: &Place) -> Result<Parts, Fault> {
    match node {
        Node::String(text) => return Ok(Parts { calls: vec![text.into()], ..Parts::default() }),
        Node::Object(_) => {}
        other => return Err(other.instead(place, "a call, or an object with 'call'")),
    }
    let mut fields = node.fields(place, &["call", "calls", "args", "errno", "needs", "why"])?;
    let call = fields.take("call", Node::string)?;
    let calls = fields.take("calls", |node, place| node.list(place, Node::string))?;
    if call.is_some() && calls.is_some() {
        return Err(place.fault("there is both 'call' and 'calls'; keep one of them"));
    }
    let calls = calls.unwrap_or_else(|| call.into_iter().collect());
    if calls.is_empty() {
        return Err(place.fault("it names no call: the key 'call' is missing"));
    }
    let args = fields.take("args", conditions::read)?;
    let errno = fields.take("errno", error)?;
    let inside = fields.take("needs", |node, place| node.word(place, &NEEDS))?.is_some();
    Ok(Parts { calls, args, errno, inside, why: fields.take("why", Node::string)? })
}

fn error(node: Node, place: &Place) -> Result<u16, Fault> {
    let text = node.string(place)?;
    errno::parse(text.as_bytes()).ok_or_else(|| {
        let (near, rest) = (nearest(&text, errno::names()), String::new());
        place.fault(Mistake::Unknown { what: "error", word: text.into_owned(), near, rest })
    })
}

/// Reads an entry. A restriction or an error belongs to one name, so the entry must have no other name then.
fn entry(
    node: Node,
    place: &Place,
    list: List,
    origin: impl FnOnce(Text, Option<Text>) -> Shared<Origin>,
) -> Result<Entry, Fault> {
    let Parts { calls, args, mut errno, inside, why } = parts(node, place)?;
    let (mut targets, mut restriction) = (Vec::new(), None);
    for text in &calls {
        let list::Entry { target, restriction: named, errno: inline } =
            list::parse(text.as_bytes()).map_err(|problem| place.fault(problem.to_string()))?;
        if (named.is_some() || inline != 0) && calls.len() > 1 {
            return Err(place.fault(format!("'{}' in 'calls' must be a bare name", Plain(text))));
        }
        if inline != 0 && errno.replace(inline).is_some() {
            return Err(place.fault("the error is named twice"));
        }
        if args.is_some() && (named.is_some() || matches!(target, Target::Group(_))) {
            let cause = format!("'args' go with the bare name of a call, not with '{}'", Plain(text));
            return Err(place.fault(cause));
        }
        restriction = named;
        targets.push(target);
    }
    if errno.is_some() && list != List::Deny {
        return Err(place.fault("an error is named, which only 'deny' can"));
    }
    if inside && list != List::Allow {
        return Err(place.fault("'needs' goes with an entry of 'allow' only"));
    }
    let when = args.map(|all| When::Free(all.into())).or(restriction.map(When::Named));
    Ok(Entry { targets, when, errno, inside, origin: origin(calls.join(" ").into(), why) })
}

/// Adds an entry to the rules of each call that it names.
fn add(
    calls: &mut BTreeMap<Call, Draft>,
    list: List,
    entry: &Entry,
    groups: &mut Vec<(Group, Shared<Origin>)>,
) -> Result<(), Mistake> {
    for target in &entry.targets {
        match *target {
            Target::Call(call) => calls.entry(call).or_default().add(list, call, entry)?,
            Target::Group(group) => {
                check_group(group, entry, groups)?;
                groups.push((group, entry.origin.clone()));
                for call in group.members() {
                    calls.entry(call).or_default().add(list, call, entry)?;
                }
            }
        }
    }
    Ok(())
}

/// A group that another group contains has no effect of its own.
fn check_group(group: Group, entry: &Entry, others: &[(Group, Shared<Origin>)]) -> Result<(), Mistake> {
    let inside = |a: Group, b: Group| a.members().all(|call| b.contains(call));
    let found =
        others.iter().find_map(|(other, origin)| match (inside(group, *other), inside(*other, group)) {
            (true, _) => Some((origin, "the latter contains the former")),
            (_, true) => Some((origin, "the former contains the latter")),
            (false, false) => None,
        });
    found.map_or(Ok(()), |(origin, cause)| Err(overlap::conflict(&entry.origin, origin, cause)))
}

/// What the lists of one document say about one call, while they are read.
#[derive(Default)]
struct Draft {
    allow: Grants,
    /// What `allow` says for runs with namespaces of their own alone.
    inside: Grants,
    log: Grants,
    deny: Grants,
    /// The error of its denials, and the entry that names it, or that names none.
    errno: Option<(Option<u16>, Shared<Origin>)>,
}

impl Draft {
    fn add(&mut self, list: List, call: Call, entry: &Entry) -> Result<(), Mistake> {
        let grants = match list {
            List::Allow if entry.inside => &mut self.inside,
            List::Allow => &mut self.allow,
            List::Deny => &mut self.deny,
            List::Log => &mut self.log,
        };
        overlap::extend(grants, call, entry.when.as_ref(), &entry.origin)?;
        if list == List::Deny {
            // A group after a name, or a second condition, may not change the error of the first.
            let (errno, origin) = self.errno.get_or_insert_with(|| (entry.errno, entry.origin.clone()));
            if *errno != entry.errno {
                return Err(overlap::conflict(&entry.origin, origin, "one call can have one error only"));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<CallRules, Fault> {
        let errno = self.errno.and_then(|(errno, _)| errno);
        let mut rules = CallRules { allow: self.allow, errno, ..CallRules::default() };
        overlap::inside(&mut rules, self.inside)?;
        overlap::log(&mut rules, self.log)?;
        overlap::deny(&mut rules, self.deny)?;
        Ok(rules)
    }
}
