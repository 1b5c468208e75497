//! The edges between files and between top-level modules, and the circles among them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use super::resolve::Resolver;
use super::tree::{ModuleId, Tree};

/// One use of a module by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The file that the path stands in, below the root directory.
    pub file: PathBuf,
    /// The line that the path begins in.
    pub line: usize,
    /// The path, as it is written.
    pub path: String,
    from: ModuleId,
    to: ModuleId,
}

/// For every pair of a user and a used one, where that is.
pub type Edges<'a> = BTreeMap<(String, String), Vec<&'a Edge>>;

/// Which module uses which.
#[derive(Debug)]
pub struct Graph {
    /// The modules themselves.
    pub tree: Tree,
    edges: Vec<Edge>,
}

impl Graph {
    /// Resolves every path of a tree.
    pub fn new(tree: Tree) -> Graph {
        let mut edges = Vec::new();
        for (from, module) in tree.modules.iter().enumerate() {
            for reference in &module.references {
                for to in Resolver::used(&tree, from, reference).into_iter().filter(|to| *to != from) {
                    let path = reference.segments.join("::");
                    edges.push(Edge { file: module.file.clone(), line: reference.line, path, from, to });
                }
            }
        }
        Graph { tree, edges }
    }

    /// The edges between top-level modules.
    pub fn between_tops(&self) -> Edges<'_> {
        self.between(|module| self.tree.modules[module].top())
    }

    /// The edges between files.
    pub fn between_files(&self) -> Edges<'_> {
        self.between(|module| self.tree.modules[module].file.display().to_string())
    }

    /// The names of the top-level modules, the roots' files among them.
    pub fn tops(&self) -> BTreeSet<String> {
        self.tree.modules.iter().map(|module| module.top()).collect()
    }

    /// The file of a top-level module.
    pub fn file_of(&self, top: &str) -> Option<String> {
        let module = self.tree.modules.iter().find(|module| module.top() == top)?;
        Some(module.file.display().to_string())
    }

    fn between(&self, name: impl Fn(ModuleId) -> String) -> Edges<'_> {
        let mut edges = Edges::new();
        for edge in &self.edges {
            let ends = (name(edge.from), name(edge.to));
            if ends.0 != ends.1 {
                edges.entry(ends).or_default().push(edge);
            }
        }
        edges
    }
}

/// The sets of nodes that reach each other, the largest first.
pub fn circles(edges: &Edges) -> Vec<BTreeSet<String>> {
    let next = successors(edges);
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|node| (*node, distances(&next, node).into_keys().collect())).collect();
    let mut found = BTreeSet::new();
    for (node, reached) in &reach {
        let circle: BTreeSet<String> = reached
            .iter()
            .filter(|other| reach.get(**other).is_some_and(|back| back.contains(node)))
            .map(|other| (*other).to_owned())
            .collect();
        if !circle.is_empty() {
            found.insert(circle);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// A shortest way from a node back to itself, by its edges.
pub fn circle_through(edges: &Edges, node: &str) -> Vec<(String, String)> {
    let next = successors(edges);
    let before = distances(&next, node);
    let mut way = Vec::new();
    let mut at = node;
    while let Some(previous) = before.get(at) {
        way.push(((*previous).to_owned(), at.to_owned()));
        at = previous;
        if at == node {
            break;
        }
    }
    way.reverse();
    way
}

fn successors<'a>(edges: &'a Edges) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges.keys() {
        next.entry(from).or_default().push(to);
    }
    next
}

/// What can be reached from a node by at least one edge, and the node before each on a shortest way.
fn distances<'a>(next: &BTreeMap<&'a str, Vec<&'a str>>, start: &str) -> BTreeMap<&'a str, &'a str> {
    let mut before = BTreeMap::new();
    let mut waiting: VecDeque<&'a str> = next.keys().filter(|node| **node == start).copied().collect();
    while let Some(node) = waiting.pop_front() {
        for to in next.get(node).into_iter().flatten().copied() {
            if !before.contains_key(to) {
                before.insert(to, node);
                waiting.push_back(to);
            }
        }
    }
    before
}
