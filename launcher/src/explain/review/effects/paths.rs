//! What rules about paths give beyond those of another profile.

use crate::explain::review::effects::{Effect, key};
use crate::profile::{Given, Location, Origin, PathEntry, Paths, Protection, WhenMade};

/// What may be done with a path.
#[derive(Clone, Copy)]
enum Right {
    Read,
    Execute,
    Write,
}

/// How far a right goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    Nothing,
    /// A file in which no credential is seen.
    Harmless,
    Whole,
}

/// The conditions of an entry. Whoever adds one is asked by the compiler.
struct Conditions {
    optional: bool,
    unless_credentials: bool,
}

fn conditions(origin: &Origin) -> Conditions {
    let Origin { optional, unless_credentials, profile: _, built_in: _, key: _, index: _, entry: _, why: _ } =
        origin;
    Conditions { optional: *optional, unless_credentials: *unless_credentials }
}

impl Right {
    const ALL: [(Right, &'static str); 3] =
        [(Right::Write, "write"), (Right::Execute, "execute"), (Right::Read, "read")];

    /// The entries that give it.
    fn entries(self, paths: &Paths) -> Vec<&PathEntry> {
        let Paths { read, execute, write, deny: _, protect: _ } = paths;
        let lists: &[_] = match self {
            Right::Read => &[read, execute, write],
            Right::Execute => &[execute],
            Right::Write => &[write],
        };
        lists.iter().flat_map(|list| list.iter()).collect()
    }

    /// How far it goes on a path, but for what is protected.
    fn unprotected(self, paths: &Paths, path: &Location) -> Extent {
        if paths.deny.iter().any(|entry| entry.value.holds(path)) {
            return Extent::Nothing;
        }
        let extent = |entry: &PathEntry| match conditions(&entry.origin).unless_credentials {
            true => Extent::Harmless,
            false => Extent::Whole,
        };
        let entries = self.entries(paths).into_iter().filter(|entry| entry.value.holds(path));
        entries.map(extent).max().unwrap_or(Extent::Nothing)
    }

    /// How far it goes on a path.
    fn extent(self, paths: &Paths, path: &Location) -> Extent {
        let protected = || paths.protect.iter().any(|entry| entry.path.holds(path));
        if matches!(self, Right::Write) && protected() {
            return Extent::Nothing;
        }
        self.unprotected(paths, path)
    }
}

pub fn differ(more: &Paths, less: &Paths, effects: &mut Vec<Effect>) {
    in_rights(more, less, effects);
    for (own, other) in [(&more.read, &less.read), (&more.execute, &less.execute), (&more.write, &less.write)]
    {
        in_starts(own, other, effects);
    }
    in_making(more, less, effects);
}

fn in_rights(more: &Paths, less: &Paths, effects: &mut Vec<Effect>) {
    let mut told: Vec<(&Location, usize)> = Vec::new();
    for (rank, (right, word)) in Right::ALL.into_iter().enumerate() {
        let entries = right.entries(more);
        // What another profile takes back is a point to look at as well.
        let taken_back = less.deny.iter().map(|entry| (&entry.value, &entry.origin));
        let protected = less.protect.iter().map(|entry| (&entry.path, &entry.origin));
        let named = entries.iter().map(|entry| (&entry.value, &entry.origin));
        for (path, origin) in named.chain(taken_back).chain(protected) {
            let (wide, narrow) = (right.extent(more, path), right.extent(less, path));
            if wide <= narrow {
                continue;
            }
            // Writing and executing bring reading; what is below a path that is told is told.
            let is_told = told.iter().any(|(above, by)| above.holds(path) && (*by == rank || word == "read"));
            if !is_told {
                told.push((path, rank));
                let own = entries.iter().any(|entry| &entry.value == path);
                let effect = Effect::new(word, format!("{path}{}", remark(wide, narrow)));
                effects.push(if own {
                    effect.by(origin)
                } else {
                    Effect { why: Some(format!("{} takes it back", key(origin))), ..effect }
                });
            }
        }
    }
}

/// How much further a right goes than another one.
fn remark(wide: Extent, narrow: Extent) -> &'static str {
    match (wide, narrow) {
        (Extent::Harmless, _) => ", unless it holds credentials",
        (_, Extent::Harmless) => ", with credentials in it too",
        _ => "",
    }
}

/// Paths without which one profile starts nothing, and the other does.
fn in_starts(more: &[PathEntry], less: &[PathEntry], effects: &mut Vec<Effect>) {
    let is_needed = |entry: &PathEntry| !conditions(&entry.origin).optional;
    for entry in more.iter().filter(|entry| !is_needed(entry)) {
        if less.iter().any(|other| other.value == entry.value && is_needed(other)) {
            effects.push(Effect::new("run", format!("where {} is not there", entry.value)).by(&entry.origin));
        }
    }
}

/// Protected paths that are missing, and can be made under one profile where the other keeps them from that.
fn in_making(more: &Paths, less: &Paths, effects: &mut Vec<Effect>) {
    for entry in less.protect.iter() {
        let path = &entry.value.path;
        let own: Vec<&Given<Protection>> =
            more.protect.iter().filter(|own| own.value.path.holds(path)).collect();
        // What is not protected at all is told as a right to write.
        let Some(first) = own.first() else { continue };
        if Right::Write.unprotected(more, path) == Extent::Nothing {
            continue;
        }
        let loosest = own.iter().map(|own| looser(&own.value, &entry.value)).min().flatten();
        if let Some(how) = loosest {
            effects.push(Effect::new("make", format!("{path}, {how}")).by(&first.origin));
        }
    }
}

/// When something that is missing can be made under one protection, and not under another.
fn looser(more: &Protection, less: &Protection) -> Option<&'static str> {
    let Protection { path: _, readers, when_made } = more;
    let is_read = |reader| readers.contains(reader);
    let covers = readers.is_empty() || (!less.readers.is_empty() && less.readers.iter().all(is_read));
    match (covers, when_made, less.when_made) {
        (false, ..) => Some("where nothing is there of what reads it"),
        (true, WhenMade::SetAside, WhenMade::Refuse) => Some("until it is set aside"),
        (true, WhenMade::Refuse | WhenMade::SetAside, _) => None,
    }
}
