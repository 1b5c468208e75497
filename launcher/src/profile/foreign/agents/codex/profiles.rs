//! Permission profiles of Codex: places with an access each, of which the nearest decides, and hosts.

use std::collections::BTreeMap;

use crate::profile::error::{Fault, Place, Plain};
use crate::profile::foreign::agents::codex::add_writable;
use crate::profile::foreign::agents::codex::network::Reach;
use crate::profile::foreign::agents::{located, path, skip, unknown};
use crate::profile::foreign::files::{Access, below, root};
use crate::profile::foreign::meaning::Meaning;
use crate::profile::foreign::{Losses, MOST};
use crate::profile::json::{Fields, Node};
use crate::profile::location::Location;
use crate::profile::words::Variable;

/// How long a chain of profiles may be.
const DEPTH: usize = 16;

/// How many roots of workspaces there may be: each has all the rules of a workspace.
const ROOTS: usize = 64;

/// The words for what may be done. `none` is an older one.
const WORDS: [(&str, Access); 4] =
    [("read", Access::Fixed), ("write", Access::Write), ("deny", Access::Deny), ("none", Access::Deny)];

/// What a chain of profiles says so far, the last word about each place.
#[derive(Default)]
struct Said {
    /// By the document's own keys: a path, or a path and one below it.
    files: BTreeMap<(String, String), (Access, String)>,
    roots: BTreeMap<String, bool>,
    network: Option<bool>,
    reach: Reach,
}

/// Reads the profile of this name and those that it extends. `proxy` is what the sandbox's proxy is told.
pub fn read(
    fields: &mut Fields,
    name: &str,
    proxy: Option<Node>,
    meaning: &mut Meaning,
    losses: &mut Losses,
) -> Result<(), Fault> {
    let place = Place::Key(&Place::Top, "permissions");
    let mut all: Vec<(String, Node)> =
        fields.take("permissions", |node, place| node.object(place))?.unwrap_or_default();
    let mut chain: Vec<(String, Vec<(String, Node)>)> = Vec::new();
    let mut next = Some(name.to_string());
    let mut base = None;
    while let Some(name) = next.take() {
        let own = Place::Key(&place, &name);
        if chain.iter().any(|(known, _)| *known == name) {
            return Err(own.fault("it extends itself"));
        }
        if chain.len() == DEPTH {
            return Err(own.fault(format!("more than {DEPTH} profiles extend each other")));
        }
        if let Some(known) = name.strip_prefix(':') {
            base = Some(Base::named(known).ok_or_else(|| {
                place.fault(format!(
                    "'{}' has no policy: expected ':read-only', ':workspace' or one of the document",
                    Plain(&name)
                ))
            })?);
            break;
        }
        let Some(found) = all.iter().position(|(known, _)| *known == name) else {
            return Err(place.fault(format!("there is no profile '{}'", Plain(&name))));
        };
        let mut pairs = all.swap_remove(found).1.object(&own)?;
        if let Some(at) = pairs.iter().position(|(key, _)| key == "extends") {
            next = Some(pairs.swap_remove(at).1.string(&Place::Key(&own, "extends"))?.into_owned());
        }
        chain.push((name, pairs));
    }
    let mut said = base.map(Base::said).unwrap_or_default();
    for (name, pairs) in chain.into_iter().rev() {
        said.add(pairs, &Place::Key(&place, &name), losses)?;
    }
    let roots = said.all_roots(&place, losses)?;
    said.settle_files(&roots, meaning, losses);
    match said.network {
        Some(true) => said.reach.open(proxy, meaning, losses),
        Some(false) | None => {
            said.reach.close(meaning, losses);
            Ok(())
        }
    }
}

/// A built-in profile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    ReadOnly,
    Workspace,
}

impl Base {
    fn named(name: &str) -> Option<Base> {
        match name {
            "read-only" => Some(Base::ReadOnly),
            "workspace" => Some(Base::Workspace),
            _ => None,
        }
    }

    fn said(self) -> Said {
        let mut said = Said::default();
        let mut add = |path: &str, inner: &str, access| {
            let place = "what it extends".to_string();
            said.files.insert((path.to_string(), inner.to_string()), (access, place));
        };
        add(":root", "", Access::Fixed);
        if self == Base::Workspace {
            add(":workspace_roots", ".", Access::Write);
        }
        said
    }
}

impl Said {
    fn add(&mut self, pairs: Vec<(String, Node)>, place: &Place, losses: &mut Losses) -> Result<(), Fault> {
        let mut fields = Node::Object(pairs).open_fields(place)?;
        fields.take("workspace_roots", |node, place| {
            for (path, node) in node.object(place)? {
                let place = Place::Key(place, &path);
                let is_on = node.truth(&place)?;
                self.roots.insert(path.clone(), is_on);
            }
            Ok(())
        })?;
        fields.take("filesystem", |node, place| self.files(node, place))?;
        fields.take("network", |node, place| self.network(node, place, losses))?;
        skip(&mut fields, &["description"])?;
        unknown(&fields, &["extends", "workspace_roots", "filesystem", "network"], losses);
        Ok(())
    }

    fn files(&mut self, node: Node, place: &Place) -> Result<(), Fault> {
        for (path, node) in node.object(place)? {
            if path == "glob_scan_max_depth" {
                continue;
            }
            let place = Place::Key(place, &path);
            match node {
                Node::Object(inner) => {
                    for (rest, node) in inner {
                        let place = Place::Key(&place, &rest);
                        let said = (node.word(&place, &WORDS)?, place.to_string());
                        self.files.insert((path.clone(), rest.clone()), said);
                    }
                }
                node => {
                    let said = (node.word(&place, &WORDS)?, place.to_string());
                    self.files.insert((path.clone(), String::new()), said);
                }
            }
        }
        Ok(())
    }

    fn network(&mut self, node: Node, place: &Place, losses: &mut Losses) -> Result<(), Fault> {
        let mut fields = node.open_fields(place)?;
        self.network = fields.take("enabled", Node::truth)?.or(self.network);
        self.reach.add(&mut fields, losses)
    }

    /// The workspace, and the directories that are one too.
    fn all_roots(&self, place: &Place, losses: &mut Losses) -> Result<Vec<Location>, Fault> {
        if self.roots.len() > ROOTS {
            return Err(place.fault(format!("more than {ROOTS} roots of workspaces")));
        }
        let mut roots = vec![below(Variable::Workspace, "")];
        for (text, _) in self.roots.iter().filter(|(_, is_on)| **is_on) {
            match path(text) {
                Ok(location) => roots.push(location),
                Err(why) => losses.note(place, why),
            }
        }
        Ok(roots)
    }

    /// Adds the places. Of two words about one place, the stricter counts.
    fn settle_files(&self, roots: &[Location], meaning: &mut Meaning, losses: &mut Losses) {
        let mut named: BTreeMap<Location, (Access, &String)> = BTreeMap::new();
        for ((text, inner), (access, place)) in &self.files {
            if text == ":minimal" && *access != Access::Deny {
                meaning.files.open_minimal();
            }
            for located in places(text, roots) {
                match located.and_then(|location| inside(&location, inner)) {
                    // What is more than any profile has is refused by its number.
                    Ok(_) if named.len() > MOST => {}
                    Ok(location) => {
                        let known = named.entry(location).or_insert((*access, place));
                        *known = (*known).max((*access, place));
                    }
                    Err(why) => losses.note(place, why),
                }
            }
        }
        let mut writable = BTreeMap::new();
        for (location, (access, place)) in named {
            if access == Access::Write {
                writable.insert(location, place.clone());
            } else {
                meaning.files.add_optional(location, access, place);
            }
        }
        add_writable(&writable, &mut meaning.files);
    }
}

/// The places that a path of a profile stands for. What every profile opens, and scratch, are none.
fn places(text: &str, roots: &[Location]) -> Vec<Result<Location, String>> {
    match text {
        ":root" => vec![Ok(root())],
        ":minimal" | ":tmpdir" | ":slash_tmp" => Vec::new(),
        ":workspace_roots" | ":project_roots" => roots.iter().cloned().map(Ok).collect(),
        text if text.starts_with(':') => vec![Err(format!("there is no place '{}' here", Plain(text)))],
        text => vec![path(text)],
    }
}

/// A place below another one.
fn inside(location: &Location, inner: &str) -> Result<Location, String> {
    if matches!(inner, "" | ".") {
        return Ok(location.clone());
    }
    let whole = format!("{}/{inner}", location.rest.trim_end_matches('/'));
    located(location.base, &whole, inner)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::profile::foreign::Losses;
    use crate::profile::foreign::agents::codex::read;
    use crate::profile::location::Variables;

    /// The paths that a profile with these rules makes, and what is lost of it.
    fn made(base: &str, rules: &str) -> (Value, Vec<String>) {
        let text = format!(
            "default_permissions = 'x'\n[permissions.x]\nextends = ':{base}'\n\
             [permissions.x.filesystem]\n{rules}\n"
        );
        let mut losses = Losses::default();
        let meaning = read(text.as_bytes(), &mut losses).unwrap();
        let mut document = meaning.document(&Variables::default(), &mut losses).unwrap();
        (document["paths"].take(), losses.lines().to_vec())
    }

    /// What is protected in each of these places.
    fn fixed(places: &[&str]) -> Value {
        let names = [".agents", ".codex", ".git"];
        places.iter().flat_map(|place| names.map(|name| format!("{place}/{name}"))).collect()
    }

    #[test]
    fn names_stay_as_they_are_in_every_place_that_may_be_written() {
        for (base, rules, places) in [
            ("workspace", "", &["${WORKSPACE}"][..]),
            ("workspace", "'/srv/x' = 'write'", &["/srv/x", "${WORKSPACE}"]),
            ("read-only", "'/srv/x' = 'write'", &["/srv/x"]),
            ("read-only", "'/srv' = { 'x' = 'write' }", &["/srv/x"]),
            ("read-only", "'~/x' = 'write'", &["${HOME}/x"]),
            ("read-only", "':workspace_roots' = 'write'", &["${WORKSPACE}"]),
            ("read-only", "':workspace_roots' = { 'src' = 'write' }", &["${WORKSPACE}/src"]),
        ] {
            let (paths, lost) = made(base, rules);
            assert_eq!((&paths["protect"], lost), (&fixed(places), vec![]), "{base}: {rules}");
        }
        // The twins: nothing may be written, and scratch, which is a run's own.
        for rules in ["", "'/srv/x' = 'read'", "'/tmp' = 'write'"] {
            assert_eq!(made("read-only", rules).0["protect"], Value::Null, "{rules}");
        }
    }

    #[test]
    fn a_name_that_is_to_be_written_itself_is_not_protected() {
        let (paths, lost) = made("read-only", "'/srv/x' = 'write'\n'/srv/x/.git' = 'write'");
        let inner = [".agents", ".codex", ".git"].map(|name| format!("/srv/x/.git/{name}"));
        let whole = ["/srv/x/.agents", "/srv/x/.codex"].map(str::to_string);
        assert_eq!(paths["protect"], json!([&whole[..], &inner[..]].concat()));
        assert_eq!(lost, Vec::<String>::new());
        let (paths, lost) = made("read-only", "'/srv/x' = 'write'\n'/srv/x/.git/hooks' = 'write'");
        assert_eq!(paths["write"], json!([{ "path": "/srv/x", "optional": true }]));
        let why = "a protection has no exceptions: '/srv/x/.git/hooks' stays as it is with '/srv/x/.git'";
        assert_eq!(lost, [format!("permissions.x.filesystem./srv/x/.git/hooks: {why}")]);
    }

    #[test]
    fn of_two_words_about_one_place_the_stricter_counts() {
        let (paths, lost) = made("read-only", "'/srv/x' = { '.' = 'write' }\n'/srv/x/' = 'deny'");
        assert_eq!((&paths["deny"], &paths["write"]), (&json!(["/srv/x"]), &Value::Null));
        assert_eq!((&paths["protect"], lost), (&Value::Null, vec![]));
    }
}
