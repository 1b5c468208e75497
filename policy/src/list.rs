//! One entry of a list of system calls: `name`, `@group`, `name[restriction]`, and in a deny-list `...=ERRNO`.

use crate::calls::{Call, Group, nearest};
use crate::errno;
use crate::message;
use crate::restrictions;
use crate::rules::{Grant, Row, Rules};

/// The list of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Allowed system calls.
    Allow,
    /// Denied system calls.
    Deny,
    /// System calls that are allowed and logged.
    Log,
}

/// A wrong entry, and the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// The entry, as written.
    pub entry: &'a [u8],
    /// The cause.
    pub cause: Cause,
}

/// Why an entry is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is no such system call; the most similar one.
    UnknownCall(Option<&'static str>),
    /// There is no such group; the most similar one.
    UnknownGroup(Option<&'static str>),
    /// The system call has no such restriction; the most similar one.
    UnknownRestriction(&'static str, Option<&'static str>),
    /// The system call has no restrictions.
    NoRestrictions(&'static str),
    /// There is no such error; the most similar one.
    UnknownErrno(Option<&'static str>),
    /// `=ERRNO` outside a deny-list.
    ErrnoOutsideDeny,
    /// One entry restricts the system call, and another entry of the list covers it.
    Shadowed(&'static str),
    /// An earlier entry of the list names another error for the system call, which can have only one.
    OtherErrno(&'static str),
    /// The brackets or signs do not fit together.
    Malformed,
}

/// A parsed entry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The named system call or group.
    pub target: Target,
    /// The place of its restriction in [`restrictions::RESTRICTIONS`].
    pub restriction: Option<usize>,
    /// The error number of a denial, or 0.
    pub errno: u16,
}

/// The system call or group that an entry names.
#[derive(Clone, Copy)]
pub enum Target {
    /// One system call.
    Call(Call),
    /// Each system call of a group.
    Group(Group),
}

/// Parses an entry.
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
        // Lists are portable: a system call that this architecture does not have needs no rule.
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
        // A system call that a group denies may have an error of its own.
        (Grant::All, named, 0) => named,
        (Grant::All, 0, errno) => errno,
        _ => return Err(Cause::OtherErrno(call.name())),
    };
    Ok(())
}

/// Widens a grant. A narrower rule beside a wider one is refused: it would have no effect.
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
    /// Writes the message, in pieces.
    pub fn write(&self, out: &mut dyn FnMut(&[u8])) {
        let mut quoted = |before: &str, text: &[u8], after: &str| {
            out(before.as_bytes());
            message::quote(text, out);
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
        f.write_str(&message::whole(|out| self.write(out)))
    }
}
