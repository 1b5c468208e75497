//! Directories that are to be looked into. A command makes as many as it likes, and deep ones: what is kept of them has
//! bounds.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// How much room there is, in bytes: for some hundred thousand directories as they are mostly called.
pub const ROOM: usize = 8 << 20;
/// What one takes beside its name.
const EACH: usize = size_of::<(Node, u32)>() + size_of::<Node>();

/// A directory of the tree.
pub type Node = u32;

/// Directories, each by its name and the one above: a whole path is many times as long.
pub struct Tree {
    /// The one above, and where the name ends.
    nodes: Vec<(Node, u32)>,
    names: Vec<u8>,
    room: usize,
    is_full: bool,
}

impl Tree {
    /// The one that all are below.
    pub const TOP: Node = 0;

    /// One without any.
    pub fn with_room(room: usize) -> Tree {
        Tree { nodes: Vec::new(), names: Vec::new(), room, is_full: false }
    }

    /// Adds one; `None` from the first on that there is no room for.
    pub fn add(&mut self, above: Node, name: &OsStr) -> Option<Node> {
        let used = self.names.len() + self.nodes.len() * EACH;
        self.is_full |= used + name.len() + EACH > self.room;
        if self.is_full {
            return None;
        }
        self.names.extend_from_slice(name.as_bytes());
        self.nodes.push((above, u32::try_from(self.names.len()).ok()?));
        u32::try_from(self.nodes.len()).ok()
    }

    /// The path of one.
    pub fn path(&self, mut node: Node) -> PathBuf {
        let mut names = Vec::new();
        while let Some((above, name)) = self.get(node) {
            names.push(OsString::from_vec(name.to_vec()));
            node = above;
        }
        names.into_iter().rev().collect()
    }

    fn get(&self, node: Node) -> Option<(Node, &[u8])> {
        // The first has the number one.
        let number = usize::try_from(node).ok()?.checked_sub(1)?;
        let (above, end) = self.nodes.get(number)?;
        let start =
            number.checked_sub(1).and_then(|before| self.nodes.get(before)).map_or(0, |(_, end)| *end);
        Some((*above, self.names.get(start as usize..*end as usize)?))
    }
}

/// Those that wait, in the order in which they came.
#[derive(Default)]
pub struct Waiting {
    first: Line,
    last: Line,
}

#[derive(Default)]
struct Line {
    all: Vec<Node>,
    /// How many have gone.
    gone: usize,
}

impl Line {
    fn next(&mut self) -> Option<Node> {
        let next = self.all.get(self.gone).copied()?;
        self.gone += 1;
        Some(next)
    }

    fn rotate(&mut self, from: usize, by: usize) {
        if let Some(new) = self.all.get_mut(from..).filter(|new| !new.is_empty()) {
            new.rotate_left(by % new.len());
        }
    }
}

impl Waiting {
    /// Adds one.
    pub fn add(&mut self, node: Node, is_last: bool) {
        let line = if is_last { &mut self.last } else { &mut self.first };
        line.all.push(node);
    }

    /// The next one.
    pub fn next(&mut self) -> Option<Node> {
        self.first.next().or_else(|| self.last.next())
    }

    /// How many have come.
    pub fn waiting(&self) -> [usize; 2] {
        [self.first.all.len(), self.last.all.len()]
    }

    /// Has those that have come since begin with another one.
    pub fn rotate(&mut self, [first, last]: [usize; 2], by: usize) {
        self.first.rotate(first, by);
        self.last.rotate(last, by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn paths_are_as_they_were_until_there_is_no_room() {
        let mut tree = Tree::with_room(ROOM);
        assert_eq!(tree.path(Tree::TOP), Path::new(""));
        let above = tree.add(Tree::TOP, "a".as_ref()).unwrap();
        let below = tree.add(above, "b\n".as_ref()).unwrap();
        let other = tree.add(Tree::TOP, "c".as_ref()).unwrap();
        assert_eq!([above, below, other].map(|node| tree.path(node)), ["a", "a/b\n", "c"].map(PathBuf::from));
        let name = "n".repeat(255);
        let count = std::iter::from_fn(|| tree.add(other, name.as_ref())).count();
        assert!((20_000..40_000).contains(&count), "{count}");
        assert_eq!(tree.add(other, "d".as_ref()), None);
        assert_eq!(tree.path(other), Path::new("c"));
    }

    #[test]
    fn those_that_have_come_begin_with_another_one() {
        let mut waiting = Waiting::default();
        waiting.add(1, false);
        let before = waiting.waiting();
        (2..5).for_each(|node| waiting.add(node, false));
        waiting.add(9, true);
        waiting.rotate(before, 4);
        assert_eq!(std::iter::from_fn(|| waiting.next()).collect::<Vec<_>>(), [1, 3, 4, 2, 9]);
    }
}
