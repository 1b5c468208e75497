//! The examples of README.md and docs/ do what they are shown to do, and the pages keep to their sizes.

use std::path::{Path, PathBuf};

use sbx_tests::stage;
use sbx_tests::users::as_users;
use sbx_tests::world::World;
use sbx_tests::wrap::WIDTH;

const MARK: &str = "<!-- test -->\n```sh\n";
const README_WORDS: usize = 1500;
const PARAGRAPH_LINES: usize = 8;
/// Pages with tables and lists that a suite writes, or that repeat what the code says. Their rows cannot be wrapped.
const GENERATED: [&str; 9] = [
    "calls.md",
    "escapes.md",
    "compatibility.md",
    "faults.md",
    "hosts.md",
    "coverage.md",
    "performance.md",
    "tried.md",
    "projects.md",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// README.md and every page below docs/.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![repository().join("README.md")];
    let mut directories = vec![repository().join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The marked blocks of a page. `! command` means that the command fails, which `sh -e` alone would not check.
fn examples(page: &str) -> Vec<String> {
    let block = |text: &str| text.split("\n```").next().unwrap_or(text).to_string();
    let checked = |line: &str| match line.strip_prefix("! ") {
        // A line may end in a comment.
        Some(command) => format!("if {command}\nthen exit 99; fi"),
        None => line.to_string(),
    };
    let blocks = page.split(MARK).skip(1).map(block);
    blocks.map(|text| text.lines().map(checked).collect::<Vec<_>>().join("\n")).collect()
}

#[test]
fn every_marked_example_works() {
    let marked: Vec<Vec<String>> = pages().iter().map(|page| examples(&read(page))).collect();
    assert!(marked[0].len() >= 5, "the marks in the README have gone: {}", marked[0].len());
    let all = marked.concat();
    assert!(all.len() >= 20, "the marks in docs/ have gone: {}", all.len());
    as_users(|user| {
        for example in &all {
            let world = World::new(user);
            let path = format!("{}:/usr/local/bin:/usr/bin:/bin", stage::sbx().parent().unwrap().display());
            world.bare(["sh", "-ec", example]).env("PATH", &path).run().success();
        }
    });
}

/// What is wrong with a page: lines and paragraphs that are too long.
fn too_long(page: &str, generated: bool) -> Vec<String> {
    let mut found = Vec::new();
    let (mut paragraph, mut is_code) = (0, false);
    for (number, line) in page.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        let is_row = line.starts_with('|') || line.starts_with("- ");
        if line.chars().count() > WIDTH && !(generated && is_row) {
            found.push(format!("line {number} is longer than {WIDTH} characters"));
        }
        is_code ^= line.trim_start().starts_with("```");
        let goes_on = !line.trim().is_empty() && !is_code && !line.starts_with('|');
        paragraph = if !goes_on || is_item(line) { usize::from(goes_on) } else { paragraph + 1 };
        if paragraph == PARAGRAPH_LINES + 1 && !generated {
            found.push(format!("line {number} is the ninth of a paragraph"));
        }
    }
    found
}

/// An item of a list is a paragraph of its own.
fn is_item(line: &str) -> bool {
    let text = line.trim_start();
    let number = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    text.starts_with("- ") || (number.len() < text.len() && number.starts_with(". "))
}

#[test]
fn no_line_and_no_paragraph_is_too_long_and_the_readme_is_short() {
    let words = read(&pages()[0]).split_whitespace().count();
    assert!(words <= README_WORDS, "README.md has {words} words, more than {README_WORDS}");
    for path in pages() {
        let generated = GENERATED.iter().any(|name| path.ends_with(name));
        let found = too_long(&read(&path), generated);
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
    }
}

/// Where a heading is, as Markdown names it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    kept.chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            letter if letter.is_alphanumeric() || "-_".contains(letter) => Some(letter),
            _ => None,
        })
        .collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    for path in pages() {
        let page = read(&path);
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let is_there = if heading.is_empty() {
                target.exists()
            } else {
                let text = std::fs::read_to_string(&target).unwrap_or_default();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                headings.any(|line| anchor(line.trim_start_matches('#').trim_start()) == heading)
            };
            if !is_there {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
