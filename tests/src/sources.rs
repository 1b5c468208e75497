//! How long the files and lines of our source may be, and where `unsafe` may stand.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::Item;
use syn::spanned::Spanned;

/// The directories that these rules hold for, below the root of the tree.
pub const DIRECTORIES: &[&str] =
    &["launcher/src", "policy/src", "shim/src", "explainer/src", "client/src", "tests", "bench"];

/// The only `unsafe` outside modules named `sys`: the C library calls this function by its name.
const EXPORTED_MAIN: (&str, &str) = ("launcher/src/main.rs", "main");

const MOST_LINES: usize = 460;
const LONGEST_LINE: usize = 120;

/// Tables: a row more is no reason to divide them.
const TABLES: &[&str] =
    &["policy/src/restrictions.rs", "tests/mutants.py", "launcher/src/explain/hint/tests.rs"];
/// Only the comments are prose there: other long lines are scripts, tables and messages that are quoted as they stand.
const QUOTING: &[&str] = &["tests", "bench"];

/// Hold what is built, or files that compared commands are given.
const NOT_OURS: &[&str] = &["target", "fixtures"];

const EXTENSIONS: &[&str] = &["rs", "py", "sh", "c", "h", "go"];

/// One file of source.
struct Source {
    /// Below the root.
    name: PathBuf,
    text: String,
}

/// Every file with too many lines.
pub fn long_files(root: &Path) -> Vec<String> {
    let lengths = sources(root).into_iter().map(|source| (source.text.lines().count(), source.name));
    let is_table = |name: &Path| TABLES.iter().any(|table| name == Path::new(table));
    let long = lengths.filter(|(length, name)| *length > MOST_LINES && !is_table(name));
    long.map(|(length, name)| format!("{}: {length} lines, more than {MOST_LINES}", name.display())).collect()
}

/// Every line with too many characters.
pub fn long_lines(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources(root) {
        let quotes = QUOTING.iter().any(|directory| source.name.starts_with(directory));
        for (line, text) in (1..).zip(source.text.lines()) {
            let length = text.chars().count();
            if length > LONGEST_LINE && (!quotes || is_comment(text)) {
                let name = source.name.display();
                found.push(format!("{name}:{line}: {length} characters, more than {LONGEST_LINE}"));
            }
        }
    }
    found
}

fn is_comment(line: &str) -> bool {
    ["//", "# ", "/*", "* "].iter().any(|mark| line.trim_start().starts_with(mark))
}

/// Every `unsafe` that stands in no `sys` module.
pub fn misplaced_unsafe(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources(root).into_iter().filter(|source| is_rust(&source.name) && !is_sys(&source.name)) {
        let name = source.name.display();
        let tokens: TokenStream =
            source.text.parse().unwrap_or_else(|error| panic!("{name} cannot be read: {error}"));
        let mut lines = Vec::new();
        add_unsafe(tokens, &mut lines);
        lines.dedup();
        let excepted = excepted_lines(&source);
        let lines = lines.into_iter().filter(|line| !excepted.contains(line));
        found.extend(lines.map(|line| format!("{name}:{line}: unsafe outside a sys module")));
    }
    found
}

fn add_unsafe(tokens: TokenStream, lines: &mut Vec<usize>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "unsafe" => lines.push(ident.span().start().line),
            TokenTree::Group(group) => add_unsafe(group.stream(), lines),
            _ => {}
        }
    }
}

/// The lines of the one function that may be unsafe where it stands.
fn excepted_lines(source: &Source) -> Range<usize> {
    let (file, function) = EXPORTED_MAIN;
    if source.name != Path::new(file) {
        return 0..0;
    }
    let syntax = syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let is_it = |item: &&Item| matches!(item, Item::Fn(item) if item.sig.ident == function);
    let span = syntax.items.iter().find(is_it).map(|item| item.span());
    span.map_or(0..0, |span| span.start().line..span.end().line + 1)
}

fn is_rust(name: &Path) -> bool {
    name.extension().is_some_and(|extension| extension == "rs")
}

fn is_sys(name: &Path) -> bool {
    name.iter().any(|part| part == "sys" || part == "sys.rs")
}

/// The source below every directory of [`DIRECTORIES`] that exists.
fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    for directory in DIRECTORIES {
        add_sources(root, Path::new(directory), &mut found);
    }
    assert!(!found.is_empty(), "no source below {}", root.display());
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn add_sources(root: &Path, below: &Path, found: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(root.join(below)) else { return };
    for entry in entries.map(|entry| entry.unwrap()) {
        let name = below.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !NOT_OURS.iter().any(|other| entry.file_name() == *other) {
            add_sources(root, &name, found);
        } else if kind.is_file() {
            let text = fs::read_to_string(entry.path()).ok();
            let is_script = text.as_ref().is_some_and(|text| text.starts_with("#!/"));
            let extension = name.extension().and_then(|extension| extension.to_str());
            let is_source = is_script || extension.is_some_and(|extension| EXTENSIONS.contains(&extension));
            found.extend(text.filter(|_| is_source).map(|text| Source { name, text }));
        }
    }
}
