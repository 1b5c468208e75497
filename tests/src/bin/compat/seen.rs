//! What can be seen of one run, and how two runs differ.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sbx_tests::tree::{Tree, differences};

/// How many differing files a message names.
const NAMED: usize = 6;

/// One run, as far as it is compared.
pub struct Seen {
    /// The exit code, or 128 and the signal.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// The workspace afterwards.
    pub tree: Tree,
}

/// The differences between runs of a command without a sandbox.
#[derive(Default)]
pub struct Varies {
    /// Lines of stdout, by index.
    lines: BTreeSet<usize>,
    /// All of stdout: even the number of lines differs.
    stdout: bool,
    /// Files that always exist, with other contents.
    files: BTreeSet<PathBuf>,
    /// Directories in which names differ.
    dirs: BTreeSet<PathBuf>,
}

impl Varies {
    /// Known differences: the contents of these files.
    pub fn known(files: &[String]) -> Varies {
        Varies { files: files.iter().map(PathBuf::from).collect(), ..Varies::default() }
    }

    /// Adds the differences between these two.
    pub fn learn(&mut self, one: &Seen, other: &Seen) {
        let (lines, others): (Vec<_>, Vec<_>) =
            (one.stdout.lines().collect(), other.stdout.lines().collect());
        self.stdout |= lines.len() != others.len();
        self.lines.extend((0..lines.len().min(others.len())).filter(|index| lines[*index] != others[*index]));
        for (path, one, other) in differences(&one.tree, &other.tree) {
            match (one, other) {
                (Some(_), Some(_)) => self.files.insert(path.to_owned()),
                _ => self.dirs.insert(path.parent().unwrap_or(Path::new("")).to_owned()),
            };
        }
    }

    /// Whether there are any.
    pub fn anything(&self) -> bool {
        self.stdout || !(self.lines.is_empty() && self.files.is_empty() && self.dirs.is_empty())
    }

    fn below(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|dir| self.dirs.contains(dir))
    }
}

/// How a run differs from the expected one, apart from what varies without `sbx`.
pub fn unlike(expected: &Seen, found: &Seen, varies: &Varies) -> Vec<String> {
    let mut wrong = Vec::new();
    if expected.code != found.code {
        wrong.push(format!("exit code {} instead of {}", found.code, expected.code));
    }
    wrong.extend(unlike_output(&expected.stdout, &found.stdout, varies));
    wrong.extend(unlike_files(expected, found, varies));
    wrong
}

fn unlike_output(expected: &str, found: &str, varies: &Varies) -> Option<String> {
    if varies.stdout || expected == found {
        return None;
    }
    let (lines, others): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let at = (0..lines.len().max(others.len()))
        .find(|index| !varies.lines.contains(index) && lines.get(*index) != others.get(*index));
    match at {
        Some(index) => Some(format!(
            "line {} of stdout is {:?} instead of {:?}",
            index + 1,
            others.get(index).unwrap_or(&"missing"),
            lines.get(index).unwrap_or(&"missing")
        )),
        None if varies.lines.is_empty() => Some("stdout ends without a newline, or with one".to_owned()),
        None => None,
    }
}

fn unlike_files(expected: &Seen, found: &Seen, varies: &Varies) -> Vec<String> {
    let all = differences(&expected.tree, &found.tree);
    let differ = all.iter().filter(|(path, one, other)| {
        let alike = matches!((one, other), (Some(one), Some(other)) if one.alike(other));
        !(varies.below(path) || alike && varies.files.contains(*path))
    });
    let mut wrong: Vec<String> = differ
        .map(|(path, one, other)| match (one, other) {
            (_, None) => format!("{} is missing", path.display()),
            (None, _) => format!("{} should not be there", path.display()),
            (Some(one), Some(other)) => format!("{} is {other:?} instead of {one:?}", path.display()),
        })
        .collect();
    // Below a directory whose own name varies there is nothing to compare with.
    for dir in varies.dirs.iter().filter(|dir| !varies.below(dir)) {
        let count = |tree: &Tree| tree.keys().filter(|path| path.parent() == Some(dir)).count();
        if count(&expected.tree) != count(&found.tree) {
            wrong.push(format!("{:?} has another number of files", dir.display().to_string()));
        }
    }
    if wrong.len() > NAMED {
        let more = wrong.len() - NAMED;
        wrong.truncate(NAMED);
        wrong.push(format!("and {more} files more"));
    }
    wrong
}

/// Writes `/tmp` for the private scratch directory and `~/.cache` for the private cache: they are meant to be
/// elsewhere.
pub fn without_private_names(text: &str, home: &Path) -> String {
    let text = without_name(text, "/tmp/sbx-", "/tmp");
    let cache = home.join(".cache");
    without_name(&text, &format!("{}/sbx/", cache.display()), &cache.display().to_string())
}

/// Replaces `prefix` and the 16 hexadecimal digits behind it.
fn without_name(text: &str, prefix: &str, by: &str) -> String {
    let mut parts = text.split(prefix);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take(16).filter(u8::is_ascii_hexdigit).count();
        if digits == 16 {
            plain.push_str(by);
            plain.push_str(&part[16..]);
        } else {
            plain.push_str(prefix);
            plain.push_str(part);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(code: i32, stdout: &str) -> Seen {
        Seen { code, stdout: stdout.to_owned(), tree: Tree::new() }
    }

    #[test]
    fn every_part_is_compared() {
        let none = Varies::default();
        assert!(unlike(&seen(0, "a\n"), &seen(0, "a\n"), &none).is_empty());
        assert_eq!(unlike(&seen(0, "a\n"), &seen(1, "b\n"), &none).len(), 2);
        assert_eq!(unlike(&seen(0, "a\n"), &seen(0, "a"), &none).len(), 1);
        assert_eq!(unlike(&seen(0, "a\n"), &seen(0, ""), &none).len(), 1);
    }

    #[test]
    fn only_what_varies_by_itself_may_differ() {
        let mut varies = Varies::default();
        assert!(!varies.anything());
        varies.learn(&seen(0, "pid 1\nsame\n"), &seen(0, "pid 2\nsame\n"));
        assert!(varies.anything());
        assert!(unlike(&seen(0, "pid 1\nsame\n"), &seen(0, "pid 3\nsame\n"), &varies).is_empty());
        assert_eq!(unlike(&seen(0, "pid 1\nsame\n"), &seen(0, "pid 1\nother\n"), &varies).len(), 1);
        assert_eq!(unlike(&seen(0, "pid 1\nsame\n"), &seen(0, "pid 1\n"), &varies).len(), 1);
    }

    #[test]
    fn files_are_compared_by_kind_where_their_contents_vary() {
        let dir = sbx_tests::stage::fresh_dir(&sbx_tests::User::current());
        let with = |name: &str, content: &str| {
            let _ = std::fs::remove_dir_all(dir.join("t"));
            std::fs::create_dir(dir.join("t")).unwrap();
            std::fs::write(dir.join("t").join(name), content).unwrap();
            Seen { tree: sbx_tests::tree::snapshot(&dir.join("t")), ..seen(0, "") }
        };
        let (a, b, missing) = (with("f", "a"), with("f", "b"), with("g", "a"));
        let mut varies = Varies::default();
        assert_eq!(unlike(&a, &b, &varies).len(), 1);
        assert_eq!(unlike(&a, &missing, &varies).len(), 2);
        varies.learn(&a, &b);
        assert!(unlike(&a, &b, &varies).is_empty());
        assert_eq!(unlike(&a, &missing, &varies).len(), 2);
        varies.learn(&a, &missing);
        assert!(unlike(&a, &missing, &varies).is_empty());
        assert_eq!(unlike(&a, &Seen { tree: Tree::new(), ..seen(0, "") }, &varies).len(), 1);
    }

    #[test]
    fn private_directories_have_their_usual_names() {
        let text = "/tmp/sbx-0123456789abcdef/x /tmp/sbx-short /h/.cache/sbx/0123456789abcdef/pip";
        let plain = without_private_names(text, Path::new("/h"));
        assert_eq!(plain, "/tmp/x /tmp/sbx-short /h/.cache/pip");
    }
}
