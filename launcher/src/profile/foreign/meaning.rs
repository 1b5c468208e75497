//! What a policy of another tool means, in words of a profile. Every importer fills one; the document is made of it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::hosts::HostRule;
use crate::profile::error::{Fault, Place, ProfileCause};
use crate::profile::foreign::files::{Files, Lists};
use crate::profile::foreign::{Losses, MOST, hosts, read_back};
use crate::profile::location::{Location, Variables};
use crate::profile::model::Profile;
use crate::profile::words::NetworkMode;

/// The built-in profile that a made one extends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// No calls: the document lists them.
    #[default]
    Custom,
    /// The calls of any tool. Only scratch may be written.
    ReadOnly,
    /// Where the workspace may be written, that with what is protected in it; else the one before.
    ByWorkspace,
}

impl Base {
    /// What such a profile opens, with the stores in the home.
    fn opened(self) -> Result<Vec<Location>, ProfileCause> {
        let most = Lists { opens_workspace: true, ..Lists::default() };
        let Profile { paths, home, .. } = read_back(&json!({ "extends": self.word(&most) }))?;
        let lists = [&paths.read, &paths.execute, &paths.write, &home.stores];
        Ok(lists.into_iter().flat_map(|list| list.iter()).map(|entry| entry.value.clone()).collect())
    }

    fn word(self, lists: &Lists) -> &'static str {
        match self {
            Base::Custom => "custom",
            Base::ByWorkspace if lists.opens_workspace => "workspace",
            Base::ReadOnly | Base::ByWorkspace => "read-only",
        }
    }
}

/// `syscalls`, the entries as a profile has them.
#[derive(Debug, Default)]
pub struct Calls {
    /// `default`; none for that of the base.
    pub default: Option<String>,
    /// `allow`.
    pub allow: Vec<Value>,
    /// `deny`.
    pub deny: Vec<Value>,
    /// `log`.
    pub log: Vec<Value>,
}

/// `network`.
#[derive(Debug, Default)]
pub struct Network {
    /// The mode, if no host is named; none for that of the base.
    pub mode: Option<NetworkMode>,
    /// What may be connected to.
    pub connect: Vec<HostRule>,
    /// What may not, whatever else is allowed.
    pub deny: Vec<HostRule>,
    /// UNIX sockets.
    pub unix: Vec<String>,
}

/// `env`.
#[derive(Debug, Default)]
pub struct Env {
    /// Values.
    pub set: BTreeMap<String, String>,
    /// Names that are passed on.
    pub inherit: Vec<String>,
    /// Names that are not.
    pub deny: Vec<String>,
}

/// A policy.
#[derive(Debug, Default)]
pub struct Meaning {
    /// One line about where the profile comes from.
    pub description: &'static str,
    /// What it extends.
    pub base: Base,
    /// System calls.
    pub calls: Option<Calls>,
    /// Files.
    pub files: Files,
    /// Sockets.
    pub network: Network,
    /// Variables.
    pub env: Env,
    /// Limits, by their keys.
    pub limits: BTreeMap<&'static str, String>,
    /// Commands that may not be executed.
    pub blocked: Vec<String>,
    /// Whether it speaks of more than calls: then the run has namespaces of its own, and sees the user's own home.
    pub is_whole: bool,
}

impl Meaning {
    /// Closes UNIX sockets, where servers outside may listen. Pairs of them can be made.
    pub fn close_unix_sockets(&mut self) {
        self.calls.get_or_insert_default().deny.push(json!("socket[unix]"));
    }

    /// The profile's document. `here` is where it is made.
    pub fn document(self, here: &Variables, losses: &mut Losses) -> Result<Value, Fault> {
        let lengths =
            [self.network.connect.len(), self.network.deny.len(), self.blocked.len(), self.env.deny.len()];
        if self.files.are_too_many() || lengths.into_iter().any(|length| length > MOST) {
            return Err(Place::Top.fault(format!("it has more than {MOST} paths, hosts or commands")));
        }
        let opened = self.base.opened().map_err(|cause| Place::Top.fault(cause.to_string()))?;
        let lists_of_paths = self.files.settle(&opened, here, losses);
        let mut document = Map::new();
        document.insert("description".into(), json!(self.description));
        document.insert("extends".into(), json!(self.base.word(&lists_of_paths)));
        if self.base == Base::Custom {
            document.insert("static".into(), json!("confine"));
        }
        if self.is_whole {
            document.insert("namespaces".into(), json!("auto"));
            document.insert("home".into(), json!({ "mode": "closed" }));
        }
        if let Some(mut calls) = self.calls {
            calls.spare_terminal();
            document.insert("syscalls".into(), calls.section());
        }
        let Lists { read, mut execute, write, mut deny, mut protect, .. } = lists_of_paths;
        for list in [&mut execute, &mut deny, &mut protect] {
            list.dedup();
        }
        let paths =
            [("read", read), ("execute", execute), ("write", write), ("deny", deny), ("protect", protect)];
        insert_object(&mut document, "paths", lists(paths));
        insert_object(&mut document, "network", self.network.section());
        let Env { set, inherit, deny } = self.env;
        let mut env = lists([("inherit", inherit), ("deny", deny)]);
        if !set.is_empty() {
            env.insert("set".into(), json!(set));
        }
        insert_object(&mut document, "env", env);
        let limits = self.limits.into_iter().map(|(key, value)| (key.to_string(), json!(value))).collect();
        insert_object(&mut document, "limits", limits);
        insert_object(&mut document, "commands", lists([("block", self.blocked)]));
        Ok(Value::Object(document))
    }
}

impl Calls {
    /// Leaves out what types into a terminal, which would then be executed outside. The command of another tool has a
    /// terminal of its own, or none, and here it has the caller's: so the policy does not speak of that one.
    fn spare_terminal(&mut self) {
        let of_call = |entry: &&mut Value| **entry == "ioctl";
        for entry in self.allow.iter_mut().chain(&mut self.log).filter(of_call) {
            *entry = json!("ioctl[tty-safe]");
        }
    }

    fn section(self) -> Value {
        let mut section = Map::new();
        if let Some(default) = self.default {
            section.insert("default".into(), json!(default));
        }
        for (key, list) in [("allow", self.allow), ("deny", self.deny), ("log", self.log)] {
            section.insert(key.into(), Value::Array(list));
        }
        Value::Object(section)
    }
}

impl Network {
    fn section(mut self) -> Map<String, Value> {
        hosts::settle(&mut self.connect, &mut self.deny);
        let shown = |list: &[HostRule]| list.iter().map(ToString::to_string).collect();
        let mut section =
            lists([("connect", shown(&self.connect)), ("deny", shown(&self.deny)), ("unix", self.unix)]);
        let mode = if self.connect.is_empty() { self.mode } else { Some(NetworkMode::Ports) };
        if let Some(mode) = mode {
            section.insert("mode".into(), json!(mode.word()));
        }
        section
    }
}

/// The lists that have entries.
fn lists<T: Serialize, const N: usize>(lists: [(&str, Vec<T>); N]) -> Map<String, Value> {
    let filled = lists.into_iter().filter(|(_, list)| !list.is_empty());
    filled.map(|(key, list)| (key.to_string(), json!(list))).collect()
}

fn insert_object(document: &mut Map<String, Value>, key: &str, section: Map<String, Value>) {
    if !section.is_empty() {
        document.insert(key.into(), Value::Object(section));
    }
}
