//! The order of the launcher's top-level modules: each may use only those before it.

use super::graph::{Graph, circle_through, circles};

/// The layers, the lowest first. The roots, lib.rs and main.rs, stand above all of them.
pub const LAYERS: &[&str] = &[
    "sys",
    "text",
    "digest",
    "error",
    "hosts",
    "profile",
    "program",
    "request",
    "host",
    "plan",
    "enforce",
    "broker",
    "explain",
    "supervise",
    "report",
    "run",
    "pool",
    "selftest",
    "hooks",
    "embed",
    "learn",
    "mcp",
    "cli",
];

/// A module of the launcher's build script, which compiles `profile` and `text` as well.
const OF_BUILD: &str = "crate::tables";

/// The files that are the roots, the lower first.
const ROOTS: &[&str] = &["lib.rs", "main.rs"];

/// What breaks the order of `layers`, each fault as one line: unknown and missing modules, climbs, circles.
pub fn faults(graph: &Graph, layers: &[&str]) -> Vec<String> {
    let mut faults = unknown_and_missing(graph, layers);
    faults.extend(climbs(graph, layers));
    faults.extend(circular(graph));
    faults
}

/// Every path that leads to a higher module: file, line, and the two modules.
pub fn climbs(graph: &Graph, layers: &[&str]) -> Vec<String> {
    let rank = |name: &String| layers.iter().chain(ROOTS).position(|layer| layer == name);
    let mut found = Vec::new();
    for ((from, to), places) in graph.between_tops() {
        if let (Some(user), Some(used)) = (rank(&from), rank(&to))
            && user < used
        {
            let climbs = places.iter().filter(|edge| !edge.path.starts_with(OF_BUILD));
            found.extend(climbs.map(|edge| {
                let (file, line, path) = (edge.file.display(), edge.line, &edge.path);
                format!("{file}:{line}: climbs from {from} to {to}: {path}")
            }));
        }
    }
    found
}

fn unknown_and_missing(graph: &Graph, layers: &[&str]) -> Vec<String> {
    let tops = graph.tops();
    let unknown = tops.iter().filter(|top| !layers.iter().chain(ROOTS).any(|layer| layer == top));
    let mut faults: Vec<String> = unknown
        .map(|top| {
            let file = graph.file_of(top).unwrap_or_default();
            format!("{file}:1: module {top} has no place in the list of layers")
        })
        .collect();
    let missing = layers.iter().filter(|layer| !tops.contains(**layer));
    faults.extend(missing.map(|layer| format!("module {layer} is in the list of layers but does not exist")));
    faults
}

/// One line for each set of modules that use each other, with a shortest circle in it.
fn circular(graph: &Graph) -> Vec<String> {
    let edges = graph.between_tops();
    let describe = |circle: std::collections::BTreeSet<String>| {
        let way = circle.first().map(|node| circle_through(&edges, node)).unwrap_or_default();
        let steps: Vec<String> = way
            .into_iter()
            .map(|(from, to)| {
                let place = edges.get(&(from.clone(), to.clone())).and_then(|places| places.first());
                let place = place.map(|edge| format!("{}:{}", edge.file.display(), edge.line));
                format!("{}: {from} uses {to}", place.unwrap_or_default())
            })
            .collect();
        format!("circle of {} modules, for instance {}", circle.len(), steps.join(", "))
    };
    circles(&edges).into_iter().map(describe).collect()
}
