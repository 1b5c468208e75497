//! Permission profiles of Codex: places with an access each, of which the nearest decides, and hosts.

use std::collections::BTreeMap;

use crate::profile::error::{Fault, Place, Plain};
use crate::profile::foreign::Losses;
use crate::profile::foreign::agents::codex::{FIXED, add_domains, domains};
use crate::profile::foreign::agents::{located, lose, path, skip, unknown};
use crate::profile::foreign::files::{Access, below, root};
use crate::profile::foreign::meaning::Meaning;
use crate::profile::json::{Fields, Node};
use crate::profile::location::Location;
use crate::profile::words::{NetworkMode, Variable};

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
    domains: BTreeMap<String, bool>,
    sockets: BTreeMap<String, bool>,
    network: Option<bool>,
}

/// Reads the profile of this name and those that it extends.
pub fn read(
    fields: &mut Fields,
    name: &str,
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
    said.settle(&place, meaning, losses)
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
            FIXED
                .iter()
                .for_each(|name| add(":workspace_roots", name.trim_start_matches('/'), Access::Fixed));
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
        self.domains.extend(fields.take("domains", domains)?.unwrap_or_default());
        fields.take("unix_sockets", |node, place| {
            for (path, node) in node.object(place)? {
                let words = [("allow", true), ("deny", false), ("none", false)];
                let allowed = node.word(&Place::Key(place, &path), &words)?;
                self.sockets.insert(path, allowed);
            }
            Ok(())
        })?;
        fields.take("mode", |node, place| {
            if node.word(place, &[("full", false), ("limited", true)])? {
                losses.note(place, "a run does not look at the methods of requests");
            }
            Ok(())
        })?;
        let ports = "this machine's ports come into a run by --host-port only";
        lose(&mut fields, "allow_local_binding", ports, losses)?;
        let all = "network.unix of a profile names each UNIX socket";
        lose(&mut fields, "dangerously_allow_all_unix_sockets", all, losses)?;
        lose(&mut fields, "mitm", "the broker of a run passes bytes on as they are", losses)?;
        skip(&mut fields, &PROXY)?;
        unknown(&fields, &["enabled", "domains", "unix_sockets", "mode", "allow_local_binding"], losses);
        Ok(())
    }

    fn settle(&self, place: &Place, meaning: &mut Meaning, losses: &mut Losses) -> Result<(), Fault> {
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
        for ((text, inner), (access, place)) in &self.files {
            if text == ":minimal" && *access != Access::Deny {
                meaning.files.open_minimal();
            }
            for located in places(text, &roots) {
                match located.and_then(|location| inside(&location, inner)) {
                    Ok(location) => meaning.files.add_optional(location, *access, place),
                    Err(why) => losses.note(place, why),
                }
            }
        }
        for (socket, _) in self.sockets.iter().filter(|(_, allowed)| **allowed) {
            match path(socket) {
                Ok(location) => meaning.network.unix.push(location.to_string()),
                Err(why) => losses.note(place, why),
            }
        }
        let domains: Vec<_> = self.domains.iter().map(|(host, allowed)| (host.clone(), *allowed)).collect();
        match self.network {
            Some(true) if domains.is_empty() => meaning.network.mode = Some(NetworkMode::Host),
            Some(true) => add_domains(&domains, place, &mut meaning.network, losses),
            Some(false) | None if meaning.network.unix.is_empty() => meaning.close_unix_sockets(),
            Some(false) | None => {}
        }
        Ok(())
    }
}

/// Keys that say where the proxy listens.
const PROXY: [&str; 6] = [
    "proxy_url",
    "enable_socks5",
    "socks_url",
    "enable_socks5_udp",
    "allow_upstream_proxy",
    "dangerously_allow_non_loopback_proxy",
];

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
