//! The profile that the rules make, as JSON.

use crate::explain::hint::shell_word;
use crate::learn::candidate::{Candidate, Rule};
use crate::learn::held::Key;
use crate::learn::right::{Access, Right, why};
use crate::profile::{self, Protection, Search, Variable, Variables};
use crate::request::Request;
use crate::sys::path::canonical;
use crate::sys::within::is_within;
use crate::text::tamed;
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Never reached, whatever a rule or a name says: services that give out keys to whoever asks.
const METADATA: &str = "169.254.0.0/16";

/// The profile that says what is to be protected in a workspace.
const PROTECTING: &str = "workspace";

/// What a profile is made from, besides its rules.
pub struct Frame<'a> {
    /// The profile that it extends: a name, or an absolute path.
    pub extends: String,
    /// What it is for.
    pub description: String,
    /// What the user's flags say.
    pub given: &'a Request,
    /// Keys that flags make which are about no right.
    pub keys: Vec<Key>,
    /// The workspace, by its real path.
    pub workspace: Option<PathBuf>,
    /// The home directory, by its real path.
    pub home: Option<PathBuf>,
    /// What the numbers of the evidence count: rounds or reports.
    pub counted: &'static str,
}

impl Frame<'_> {
    /// The profile.
    pub fn document(&self, candidate: &Candidate) -> Value {
        let mut document = json!({ "description": self.description, "extends": self.extends });
        self.words(&mut document);
        for rule in candidate.rules() {
            self.rule(&mut document, rule);
        }
        // After the rules: a variable that the user sets stays as it is.
        self.keys(&mut document);
        self.denials(&mut document);
        self.protections(&mut document, candidate);
        document
    }

    /// Single words that flags set.
    fn words(&self, document: &mut Value) {
        let Request { net, static_programs, require, namespaces, home, .. } = self.given;
        let words = [
            ("/static", static_programs.map(|mode| mode.word())),
            ("/require", require.map(|level| level.word())),
            ("/namespaces", namespaces.map(|mode| mode.word())),
            ("/home/mode", home.map(|mode| mode.word())),
            ("/network/mode", net.map(|mode| mode.word())),
        ];
        for (place, word) in words {
            if let Some(word) = word {
                set(document, place, json!(word));
            }
        }
    }

    fn rule(&self, document: &mut Value, rule: &Rule) {
        let why = why(&rule.right, &rule.evidence, self.counted);
        match &rule.right {
            Right::Path(path, access) => {
                let keys: &[&str] = match access {
                    Access { write: false, execute: false } => &["/paths/read"],
                    Access { write: false, execute: true } => &["/paths/execute"],
                    Access { write: true, execute: false } => &["/paths/write"],
                    Access { write: true, execute: true } => &["/paths/write", "/paths/execute"],
                };
                for key in keys {
                    push(document, key, json!({ "path": self.named(path), "why": why }));
                }
            }
            Right::Call(entry) => push(document, "/syscalls/allow", json!({ "call": entry, "why": why })),
            // The profile that it extends may have another network, in which the rules have no effect.
            Right::Connect(rule) => {
                set(document, "/network/mode", json!("allow"));
                push(document, "/network/connect", json!({ "host": rule, "why": why }));
            }
            Right::Bind(port) => {
                set(document, "/network/mode", json!("allow"));
                push(document, "/network/bind", json!({ "port": port, "why": why }));
            }
            Right::Unix(path) => {
                push(document, "/network/unix", json!({ "path": self.named(path), "why": why }))
            }
            Right::Command(name) => {
                push(document, "/commands/allow", json!({ "command": name.to_string_lossy(), "why": why }));
            }
            Right::Hosts => {
                set(document, "/network/mode", json!("allow"));
                let why =
                    "metadata services give keys to whoever asks; the rule also has names looked up by sbx";
                push(document, "/network/deny", json!({ "host": METADATA, "why": why }));
            }
            Right::Scratch => {
                let why = format!("in place of /tmp; {why}");
                for list in ["/paths/write", "/paths/execute"] {
                    push(document, list, json!({ "path": "${TMP}", "why": why }));
                }
                set(document, "/env/set/TMPDIR", json!("${TMP}"));
            }
            Right::Namespaces => set(document, "/namespaces", json!("auto")),
        }
    }

    /// Limits and variables that flags set. Later ones outrank earlier ones, as on a command line.
    fn keys(&self, document: &mut Value) {
        for key in &self.keys {
            match key {
                Key::Limit(key, value) => set(document, &format!("/limits/{key}"), value.clone()),
                // A name may have a slash.
                Key::Set(name, value) => parent(document, "/env/set/").0[name] = value.clone(),
                Key::Inherit(name) => {
                    let known = document.pointer("/env/inherit").and_then(Value::as_array);
                    if known.is_none_or(|known| !known.contains(&json!(name))) {
                        push(document, "/env/inherit", json!(name));
                    }
                }
            }
        }
    }

    /// What flags deny.
    fn denials(&self, document: &mut Value) {
        for path in &self.given.deny {
            let why = "given to sbx learn with --deny";
            push(document, "/paths/deny", json!({ "path": self.named(&canonical(path)), "why": why }));
        }
        for list in &self.given.deny_calls {
            for entry in entries(list) {
                push(
                    document,
                    "/syscalls/deny",
                    json!({ "call": entry, "why": "given to sbx learn with --deny-calls" }),
                );
            }
        }
        for name in &self.given.block_command {
            let why = "given to sbx learn with --block-command";
            push(document, "/commands/block", json!({ "command": name.to_string_lossy(), "why": why }));
        }
    }

    /// What something outside executes stays as it is, where the rules let the place be changed that it is in.
    fn protections(&self, document: &mut Value, candidate: &Candidate) {
        let Ok(profile) = profile::load(OsStr::new(PROTECTING), &Search::default()) else { return };
        let variables = Variables {
            workspace: self.workspace.as_deref(),
            home: self.home.as_deref(),
            ..Variables::default()
        };
        let is_writable = |path: &Path| {
            candidate.rules().iter().any(|rule| match &rule.right {
                Right::Path(place, access) => access.write && is_within(path, place),
                _ => false,
            })
        };
        let own = self.workspace.as_deref().is_some_and(is_writable);
        let mut any = false;
        for entry in profile.paths.protect.iter() {
            let Protection { path, readers, when_made } = &entry.value;
            // Files of the home directory may be links into a workspace, as those that lie in a repository are.
            let is_of_home = own && path.base == Some(Variable::Home);
            let leads = |path: PathBuf| is_writable(&path) || is_writable(&canonical(&path));
            if !is_of_home && !path.expand_path(&variables).is_some_and(leads) {
                continue;
            }
            any = true;
            let readers: Vec<String> = readers.iter().map(ToString::to_string).collect();
            let mut protected = json!({ "path": path.to_string(), "when_made": when_made.word() });
            if !readers.is_empty() {
                protected["readers"] = json!(readers);
            }
            if let Some(why) = &entry.origin.why {
                protected["why"] = json!(why);
            }
            push(document, "/paths/protect", protected);
        }
        if (any || own) && document.get("namespaces").is_none() {
            set(document, "/namespaces", json!("auto"));
        }
    }

    /// A path, with the variable that it is below. It is the one that was judged and shown: by now another command may
    /// have put a link there, and what that leads to nobody has judged.
    fn named(&self, path: &Path) -> String {
        let below = |base: &Option<PathBuf>, name: &str| {
            let base = base.as_deref().filter(|base| is_within(path, base) && base.parent().is_some())?;
            let rest = path.strip_prefix(base).ok()?.to_string_lossy();
            Some(if rest.is_empty() { name.to_string() } else { format!("{name}/{rest}") })
        };
        let by_workspace = below(&self.workspace, "${WORKSPACE}");
        by_workspace
            .or_else(|| below(&self.home, "${HOME}"))
            .unwrap_or_else(|| path.to_string_lossy().into_owned())
    }
}

/// Longest command that a description has, in characters.
const LONGEST: usize = 200;

/// A command in the description of its profile: as for a shell, which says where a word ends.
pub fn described(command: &[OsString]) -> String {
    let words: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
    let text = tamed(&words.join(" "));
    match text.chars().count() > LONGEST {
        true => text.chars().take(LONGEST).chain("...".chars()).collect(),
        false => text,
    }
}

/// The entries of a list of calls.
pub fn entries(list: &OsString) -> Vec<String> {
    let list = list.to_string_lossy();
    list.split([':', ',']).filter(|entry| !entry.is_empty()).map(str::to_string).collect()
}

/// The object that a place of a document is in, made where it is missing, and the last key.
fn parent<'d, 'p>(document: &'d mut Value, place: &'p str) -> (&'d mut Value, &'p str) {
    let mut keys = place.split('/').skip(1).peekable();
    let mut at = document;
    let mut last = "";
    while let Some(key) = keys.next() {
        if keys.peek().is_none() {
            last = key;
            break;
        }
        if at.get(key).is_none() {
            at[key] = json!({});
        }
        at = &mut at[key];
    }
    (at, last)
}

fn set(document: &mut Value, place: &str, value: Value) {
    let (at, key) = parent(document, place);
    at[key] = value;
}

fn push(document: &mut Value, place: &str, value: Value) {
    let (at, key) = parent(document, place);
    match at.get_mut(key).and_then(Value::as_array_mut) {
        Some(list) => list.push(value),
        None => at[key] = json!([value]),
    }
}
