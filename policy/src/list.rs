//! One entry of a list of calls: `name`, `@group`, `name[restriction]`, and in a deny-list `...=ERRNO`.

use crate::calls::{Call, Group, nearest};
use crate::errno;
use crate::restrictions;
use crate::rules::{Grant, Row, Rules};

/// Which list an entry stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Allowed calls.
    Allow,
    /// Denied calls.
    Deny,
    /// Calls that are let through and noted.
    Log,
}

/// An entry that cannot be taken, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// The entry as it was written.
    pub entry: &'a [u8],
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No such call.
    UnknownCall(Option<&'static str>),
    /// No such group.
    UnknownGroup(Option<&'static str>),
    /// No such restriction of this call.
    UnknownRestriction(&'static str, Option<&'static str>),
    /// The call has no restrictions at all.
    NoRestrictions(&'static str),
    /// No such error number.
    UnknownErrno(Option<&'static str>),
    /// `=ERRNO` outside a deny-list.
    ErrnoOutsideDeny,
    /// Restricted here, but allowed whatever its arguments elsewhere in the list.
    Shadowed(&'static str),
    /// Another error than an earlier entry of the list names for this call, which can have one only.
    OtherErrno(&'static str),
    /// Brackets or signs that do not fit together.
    Malformed,
}

/// An entry, understood.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What it names.
    pub target: Target,
    /// The place of its restriction in [`restrictions::RESTRICTIONS`].
    pub restriction: Option<usize>,
    /// The error number of a denial.
    pub errno: u16,
}

/// What an entry names.
#[derive(Clone, Copy)]
pub enum Target {
    /// One call.
    Call(Call),
    /// Each call of a group.
    Group(Group),
}

/// Understands an entry.
pub fn parse(text: &[u8]) -> Result<Entry, Problem<'_>> {
    let problem = |cause| Problem { entry: text, cause };
    let (body, errno) = match text.iter().position(|b| *b == b'=') {
        Some(at) => (&text[..at], parse_errno(&text[at + 1..]).map_err(problem)?),
        None => (text, 0),
    };
    if body.first() == Some(&b'@') {
        let group = Group::named(body);
        let near = || nearest(body, Group::all().map(Group::name));
        let group = group.ok_or_else(|| problem(Cause::UnknownGroup(near())))?;
        return Ok(Entry { target: Target::Group(group), restriction: None, errno });
    }
    let (name, restriction) = match body.iter().position(|b| *b == b'[') {
        Some(at) => {
            let inside = body[at + 1..].strip_suffix(b"]").ok_or(problem(Cause::Malformed))?;
            (&body[..at], Some(inside))
        }
        None => (body, None),
    };
    let near = || nearest(name, Call::all().map(Call::name));
    let call = Call::named(name).ok_or_else(|| problem(Cause::UnknownCall(near())))?;
    let restriction = restriction.map(|r| find_restriction(call, r)).transpose().map_err(problem)?;
    Ok(Entry { target: Target::Call(call), restriction, errno })
}

fn parse_errno(text: &[u8]) -> Result<u16, Cause> {
    errno::parse(text).ok_or_else(|| Cause::UnknownErrno(nearest(text, errno::names())))
}

fn find_restriction(call: Call, name: &[u8]) -> Result<usize, Cause> {
    let all = restrictions::of_call(call);
    if all.is_empty() {
        return Err(Cause::NoRestrictions(call.name()));
    }
    let found = all.clone().find(|i| restrictions::name(*i).as_bytes() == name);
    let near = || nearest(name, all.clone().map(restrictions::name)).or(Some(restrictions::name(all.start)));
    found.ok_or_else(|| Cause::UnknownRestriction(call.name(), near()))
}

impl Rules {
    /// Adds an entry.
    pub fn add<'a>(&mut self, list: List, text: &'a [u8]) -> Result<(), Problem<'a>> {
        let entry = parse(text)?;
        let problem = |cause| Problem { entry: text, cause };
        if entry.errno != 0 && list != List::Deny {
            return Err(problem(Cause::ErrnoOutsideDeny));
        }
        match entry.target {
            Target::Call(call) => self.add_call(list, call, &entry).map_err(problem),
            Target::Group(group) => {
                group.members().try_for_each(|c| self.add_call(list, c, &entry)).map_err(problem)
            }
        }
    }

    fn add_call(&mut self, list: List, call: Call, entry: &Entry) -> Result<(), Cause> {
        // A list is portable: what this architecture does not have needs no rule.
        let Some(row) = self.row_mut(call) else { return Ok(()) };
        match list {
            List::Allow => extend(&mut row.allow, call, entry.restriction),
            List::Log => {
                row.log = true;
                Ok(())
            }
            List::Deny => deny(row, call, entry),
        }
    }
}

fn deny(row: &mut Row, call: Call, entry: &Entry) -> Result<(), Cause> {
    let (earlier, named) = (row.deny, row.errno);
    extend(&mut row.deny, call, entry.restriction)?;
    row.errno = match (earlier, named, entry.errno) {
        (Grant::None, _, errno) => errno,
        (_, named, errno) if named == errno => errno,
        // A call that a group denies may have an error of its own.
        (Grant::All, named, 0) => named,
        (Grant::All, 0, errno) => errno,
        _ => return Err(Cause::OtherErrno(call.name())),
    };
    Ok(())
}

/// Widens a grant. A narrower rule beside a wider one would never decide anything, which nobody means.
fn extend(grant: &mut Grant, call: Call, restriction: Option<usize>) -> Result<(), Cause> {
    *grant = match (*grant, restriction) {
        (Grant::None | Grant::All, None) => Grant::All,
        (Grant::Some(_), None) | (Grant::All, Some(_)) => return Err(Cause::Shadowed(call.name())),
        (Grant::None, Some(index)) => Grant::Some(bit(call, index)),
        (Grant::Some(mask), Some(index)) if mask & restrictions::overlaps(index) != 0 => {
            return Err(Cause::Shadowed(call.name()));
        }
        (Grant::Some(mask), Some(index)) => Grant::Some(mask | bit(call, index)),
    };
    Ok(())
}

fn bit(call: Call, index: usize) -> u16 {
    1 << (index - restrictions::of_call(call).start)
}

impl Problem<'_> {
    /// The sentence, in pieces: there is no formatting machinery in the shim.
    pub fn write(&self, out: &mut dyn FnMut(&[u8])) {
        let mut quoted = |before: &str, text: &[u8], after: &str| {
            out(before.as_bytes());
            text.iter().take(80).for_each(|b| out(&[if (0x20..0x7f).contains(b) { *b } else { b'?' }]));
            out(after.as_bytes());
        };
        let (near, hint) = match self.cause {
            Cause::UnknownCall(near) => {
                quoted("unknown system call '", self.entry, "'");
                (near, "")
            }
            Cause::UnknownGroup(near) => {
                quoted("unknown group '", self.entry, "'");
                (near, "")
            }
            Cause::UnknownRestriction(call, near) => {
                quoted("unknown restriction of ", call.as_bytes(), "");
                quoted(" in '", self.entry, "'");
                (near, "")
            }
            Cause::NoRestrictions(call) => {
                quoted("there are no restrictions of ", call.as_bytes(), "");
                quoted(", as in '", self.entry, "'");
                (None, "; name the call alone")
            }
            Cause::UnknownErrno(near) => {
                quoted("unknown error in '", self.entry, "'");
                (near, "")
            }
            Cause::ErrnoOutsideDeny => {
                quoted("'", self.entry, "' names an error");
                (None, ", which only a deny-list can")
            }
            Cause::Shadowed(call) => {
                quoted("'", self.entry, "'");
                quoted(" and another rule for ", call.as_bytes(), " in the same list");
                (None, " overlap: the narrower one would never decide anything; keep one of them")
            }
            Cause::OtherErrno(call) => {
                quoted("'", self.entry, "'");
                quoted(" and another rule for ", call.as_bytes(), " in the same list");
                (None, " answer with different errors: one call can have one only; keep one of them")
            }
            Cause::Malformed => {
                quoted("cannot read '", self.entry, "'");
                (None, ": an entry is a call, a @group or call[restriction]")
            }
        };
        match near {
            Some(near) => quoted(" (did you mean '", near.as_bytes(), "'?)"),
            None => quoted(hint, b"", ""),
        }
        if let Cause::UnknownGroup(None) = self.cause {
            out(b"; there are");
            for (place, group) in Group::all().enumerate() {
                out(if place == 0 { b" " } else { b", " });
                out(group.name().as_bytes());
            }
        }
    }
}

#[cfg(any(feature = "std", test))]
impl std::fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = Vec::new();
        self.write(&mut |part| text.extend_from_slice(part));
        f.write_str(&String::from_utf8_lossy(&text))
    }
}
