//! The lists of commands: text files, a command a line, with directives.
//!
//! ```text
//! # a comment
//! @fixture: c              for the whole file: directories of tests/compat/fixtures to copy, in this order
//! @setup: git init -q .    for the whole file: run once by the user, without sbx, in the copy
//! @varies: target/x         for the whole file: files whose contents differ in each run, in one order or another
//! @needs: git              for the whole file: tools, as tests/compat/needs names them
//! git log --bogus
//!     exits: 128           what it exits with by itself; 0 unless said
//!     needs: less          tools for this command
//!     setup: touch x       run before it, without sbx
//!     known: key           fails under sbx, for a reason of tests/compat/reasons; `known[root]` for one user only
//!     user: root           only this user is compared
//!     shows: text          refused commands only: the effect is that this is printed
//!     reaches: http        refused commands only: that the server is connected to is not the effect
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The command line.
    pub line: String,
    /// What it exits with without `sbx`.
    pub exits: i32,
    /// Tools without which it is skipped.
    pub needs: Vec<String>,
    /// A script that runs before it.
    pub setup: Option<String>,
    /// Text that only shows when the command had its effect.
    pub shows: Option<String>,
    /// Whether it may connect to the HTTP server.
    pub reaches_http: bool,
    /// The only user to be tried.
    user: Option<String>,
    /// For which user (or all) it fails, and why.
    known: Vec<(Option<String>, String)>,
}

impl Case {
    /// Whether this user is to be tried.
    pub fn concerns(&self, user: &str) -> bool {
        self.user.as_deref().is_none_or(|only| only == user)
    }

    /// The keys of the reasons why it fails for this user.
    pub fn known(&self, user: &str) -> Option<&str> {
        let known = self.known.iter().find(|(only, _)| only.as_deref().is_none_or(|only| only == user));
        known.map(|(_, key)| key.as_str())
    }
}

/// One file of commands.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// The file's name without its ending.
    pub name: String,
    /// Directories that are copied into the workspace.
    pub fixtures: Vec<String>,
    /// A script that completes them.
    pub setup: Option<String>,
    /// Files whose contents differ in each run.
    pub varies: Vec<String>,
    /// The commands, in order.
    pub cases: Vec<Case>,
}

/// Reads one file.
pub fn parse(name: &str, text: &str) -> Result<Class, String> {
    let mut class = Class { name: name.to_owned(), ..Class::default() };
    let mut needs = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("{name}, line {}: {what}: {line}", index + 1);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        } else if let Some(directive) = line.strip_prefix('@') {
            let (key, value) = split(directive).ok_or_else(|| wrong("no directive"))?;
            match key {
                "fixture" => class.fixtures = words(value),
                "varies" => class.varies = words(value),
                "setup" => class.setup = Some(value.to_owned()),
                "needs" => needs = words(value),
                _ => return Err(wrong("unknown directive")),
            }
        } else if line.starts_with(' ') {
            let (key, value) = split(line.trim_start()).ok_or_else(|| wrong("no directive"))?;
            let case = class.cases.last_mut().ok_or_else(|| wrong("no command before it"))?;
            directive(case, key, value).map_err(|what| wrong(&what))?;
        } else {
            class.cases.push(Case { line: line.to_owned(), needs: needs.clone(), ..Case::default() });
        }
    }
    Ok(class)
}

fn directive(case: &mut Case, key: &str, value: &str) -> Result<(), String> {
    match key {
        "exits" => case.exits = value.parse().map_err(|_| "not a number".to_owned())?,
        "needs" => case.needs.extend(words(value)),
        "setup" => case.setup = Some(value.to_owned()),
        "shows" => case.shows = Some(value.to_owned()),
        "reaches" if value == "http" => case.reaches_http = true,
        "user" => case.user = Some(value.to_owned()),
        "known" => case.known.push((None, value.to_owned())),
        _ => {
            let user = key.strip_prefix("known[").and_then(|rest| rest.strip_suffix(']'));
            case.known.push((Some(user.ok_or("unknown directive")?.to_owned()), value.to_owned()));
        }
    }
    Ok(())
}

fn split(text: &str) -> Option<(&str, &str)> {
    text.split_once(':').map(|(key, value)| (key, value.trim()))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The words of a command that no shell reads: quotes join, nothing is expanded.
pub fn argv(line: &str) -> Result<Vec<String>, String> {
    let (mut argv, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    for c in line.chars() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == ' ' => argv.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    argv.extend(word);
    if quote.is_some() { Err(format!("open quote: {line}")) } else { Ok(argv) }
}

/// Why commands are known to fail.
pub struct Reason {
    /// A flag that removes the reason.
    pub flag: Option<String>,
    /// The reason, for people.
    pub text: String,
}

/// Reads the reasons: `key | flag that removes it, or - | sentence`.
pub fn reasons(text: &str) -> Result<BTreeMap<String, Reason>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let parts: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
            let [key, flag, text] = parts[..] else { return Err(format!("reasons: three parts: {line}")) };
            let flag = (flag != "-").then(|| flag.to_owned());
            Ok((key.to_owned(), Reason { flag, text: text.to_owned() }))
        })
        .collect()
}

/// Everything below tests/compat.
pub struct Corpus {
    /// Where it is.
    pub dir: PathBuf,
    /// Commands of the profile `workspace`, by class.
    pub workspace: Vec<Class>,
    /// For each narrow profile what it allows and what it refuses.
    pub narrow: Vec<(String, Class, Class)>,
    /// Reasons by key.
    pub reasons: BTreeMap<String, Reason>,
}

/// Reads and checks all lists.
pub fn load() -> Result<Corpus, String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat");
    let text = |path: &str| {
        std::fs::read_to_string(dir.join(path)).map_err(|error| format!("cannot read {path}: {error}"))
    };
    let list = |path: &str| parse(path.rsplit('/').next().unwrap_or(path), &text(&format!("{path}.txt"))?);
    let workspace = names(&dir.join("workspace"))?.into_iter().map(|name| list(&format!("workspace/{name}")));
    let workspace = workspace.collect::<Result<Vec<Class>, String>>()?;
    let narrow = ["minimal", "network", "write", "no-exec", "read-only"].map(|profile| {
        let path = |kind: &str| format!("narrow/{profile}-{kind}");
        Ok((profile.to_owned(), list(&path("allowed"))?, list(&path("refused"))?))
    });
    let narrow = narrow.into_iter().collect::<Result<Vec<_>, String>>()?;
    let corpus = Corpus { workspace, narrow, reasons: reasons(&text("reasons")?)?, dir: dir.clone() };
    let needs = text("needs")?;
    check(&corpus, &needs.lines().filter_map(|line| line.split_whitespace().next()).collect::<Vec<_>>())?;
    Ok(corpus)
}

fn names(dir: &Path) -> Result<Vec<String>, String> {
    let entries = dir.read_dir().map_err(|error| format!("cannot read {}: {error}", dir.display()))?;
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some());
    let mut names: Vec<String> =
        paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// Refuses a reason or a tool that is not explained, and a command that occurs twice.
fn check(corpus: &Corpus, tools: &[&str]) -> Result<(), String> {
    let narrow = corpus.narrow.iter().flat_map(|(_, allowed, refused)| [allowed, refused]);
    for class in corpus.workspace.iter().chain(narrow) {
        for (index, case) in class.cases.iter().enumerate() {
            let wrong = |what: String| Err(format!("{}: {what}: {}", class.name, case.line));
            if let Some((_, key)) = case.known.iter().find(|(_, key)| !corpus.reasons.contains_key(key)) {
                return wrong(format!("no reason '{key}'"));
            }
            if let Some(tool) = case.needs.iter().find(|tool| !tools.contains(&tool.as_str())) {
                return wrong(format!("'{tool}' is not in tests/compat/needs"));
            }
            if class.cases[..index].iter().any(|other| other.line == case.line) {
                return wrong("twice".to_owned());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_belong_to_the_command_before_them() {
        let text = "# c\n@needs: git\n@fixture: base c\nls a: b\n  exits: 2\n  known[root]: tmp\n\nid\n  user: root\n";
        let class = parse("x", text).unwrap();
        assert_eq!(class.fixtures, ["base", "c"]);
        let [ls, id] = &class.cases[..] else { panic!("{class:?}") };
        assert_eq!((ls.line.as_str(), ls.exits, &ls.needs[..]), ("ls a: b", 2, &["git".to_owned()][..]));
        assert_eq!((ls.known("root"), ls.known("nobody")), (Some("tmp"), None));
        assert_eq!((id.known("root"), id.concerns("root"), id.concerns("nobody")), (None, true, false));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for text in ["  exits: 1\n", "ls\n  bogus: 1\n", "@bogus: x\n", "ls\n  exits: x\n", "@none\n"] {
            parse("x", text).unwrap_err();
        }
        argv("'open").unwrap_err();
        reasons("key only\n").err().unwrap();
    }

    #[test]
    fn words_are_joined_by_quotes_only() {
        assert_eq!(argv("a 'b c'\"d\"  $e ''").unwrap(), ["a", "b cd", "$e", ""]);
    }

    #[test]
    fn the_corpus_is_complete() {
        let corpus = load().unwrap();
        let count: usize = corpus.workspace.iter().map(|class| class.cases.len()).sum();
        assert!(count >= 500, "{count} commands");
        for (profile, allowed, refused) in &corpus.narrow {
            assert!(allowed.cases.len() >= 60, "{profile} allows {}", allowed.cases.len());
            assert!(refused.cases.len() >= 30, "{profile} refuses {}", refused.cases.len());
        }
    }
}
