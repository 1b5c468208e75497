//! The files that the description of the architecture sends a newcomer to are there.

use super::{Made, none, only, repository};
use std::fs;
use std::path::Path;

/// Where a path in the description may begin.
const ROOTS: [&str; 2] = ["", "launcher/src"];
/// Files that nobody keeps, and parts that stand for a name.
const MADE_UP: [&str; 3] = ["NAME", "target/", "calls/"];

/// The paths between backticks that lead nowhere: each with the line that has it.
fn faults(root: &Path, page: &str) -> Vec<String> {
    let text = fs::read_to_string(root.join(page)).unwrap();
    let mut faults = Vec::new();
    for (line, text) in text.lines().enumerate().filter(|(_, text)| text.starts_with('|')) {
        let quoted = text.split('`').skip(1).step_by(2);
        let is_path = |word: &&str| {
            word.contains('/')
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte))
                && !word.starts_with(['/', '.'])
                && !MADE_UP.iter().any(|made_up| word.contains(made_up))
        };
        let is_there = |path: &str| ROOTS.iter().any(|above| root.join(above).join(path).exists());
        let gone = quoted.filter(is_path).filter(|path| !is_there(path));
        faults.extend(gone.map(|path| format!("{page}:{}: there is no {path}", line + 1)));
    }
    faults
}

#[test]
fn files_that_the_architecture_names_exist() {
    none(&faults(&repository(), "docs/internals/architecture.md"));
}

#[test]
fn a_file_that_is_gone_is_found() {
    let page = "| a flag | `cli/table.rs`, `plan/gone.rs`; `Plan::new` |\n";
    let made = Made::new(&[("page.md", page), ("launcher/src/cli/table.rs", "")]);
    only(&faults(&made.0, "page.md"), "page.md:1: there is no plan/gone.rs");
}
