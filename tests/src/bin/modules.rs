//! Prints the module graph of a crate as text: edges and circles between its top-level modules, and their lengths.
//!
//! `cargo run -q -p sbx-tests --bin modules -- [--root DIR] [--files] [--climbs]`: DIR holds lib.rs and main.rs, by
//! default launcher/src of this tree. `--files` adds the edges and circles between files, `--climbs` each path that
//! breaks the order of the layers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sbx_tests::modules::{Edges, Graph, Tree, circles, layers};

struct Options {
    root: PathBuf,
    files: bool,
    climbs: bool,
}

fn main() -> ExitCode {
    match options() {
        Ok(options) => {
            let graph = Graph::new(Tree::read(&options.root));
            // A reader that wants no more, such as `head`, is no failure.
            let _ = print(&graph, &options, &mut io::stdout().lock());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("modules: {error}");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Options, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../launcher/src");
    let mut options = Options { root, files: false, climbs: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--root" => options.root = words.next().ok_or("--root needs a directory")?.into(),
            "--files" => options.files = true,
            "--climbs" => options.climbs = true,
            other => {
                return Err(format!("unknown argument {other}; expected --root DIR, --files or --climbs"));
            }
        }
    }
    Ok(options)
}

fn print(graph: &Graph, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let edges = graph.between_tops();
    print_edges("top-level modules", &edges, out)?;
    print_circles("top-level modules", &edges, out)?;
    print_lines(graph, out)?;
    if options.files {
        let edges = graph.between_files();
        print_edges("files", &edges, out)?;
        print_circles("files", &edges, out)?;
    }
    if options.climbs {
        let climbs = layers::climbs(graph, layers::LAYERS);
        writeln!(out, "\nclimbs: {}", climbs.len())?;
        for climb in climbs {
            writeln!(out, "  {climb}")?;
        }
    }
    Ok(())
}

fn print_edges(what: &str, edges: &Edges, out: &mut impl Write) -> io::Result<()> {
    let uses: usize = edges.values().map(Vec::len).sum();
    writeln!(out, "\nedges between {what}: {} ({uses} uses)", edges.len())?;
    let mut by_user: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((from, to), places) in edges {
        let files: BTreeSet<&Path> = places.iter().map(|edge| edge.file.as_path()).collect();
        let line = format!("  {from} -> {to}: {} uses in {} files", places.len(), files.len());
        by_user.entry(from).or_default().push(line);
    }
    for line in by_user.values().flatten() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn print_circles(what: &str, edges: &Edges, out: &mut impl Write) -> io::Result<()> {
    let circles = circles(edges);
    writeln!(out, "\ncircles between {what}: {}", circles.len())?;
    for circle in circles {
        writeln!(out, "  {} {what}:", circle.len())?;
        for name in circle {
            writeln!(out, "    {name}")?;
        }
    }
    Ok(())
}

fn print_lines(graph: &Graph, out: &mut impl Write) -> io::Result<()> {
    let lines = graph.tree.lines();
    writeln!(out, "\nlines by top-level module: without test code, with it")?;
    for (top, length) in &lines {
        writeln!(out, "  {top:<12} {:>6} {:>6}", length.code, length.all)?;
    }
    let code: usize = lines.values().map(|length| length.code).sum();
    let all: usize = lines.values().map(|length| length.all).sum();
    writeln!(out, "  {:<12} {code:>6} {all:>6}", "all")
}
