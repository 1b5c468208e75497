//! Settings of @anthropic-ai/sandbox-runtime.
//!
//! Reading is allowed but for what is denied, writing is denied but for what is allowed, and so are hosts.

use crate::profile::error::{Fault, Place, ProfileCause};
use crate::profile::foreign::Losses;
use crate::profile::foreign::agents::{
    allow_hosts, deny_hosts, lose, path, paths, settle_base, skip, unknown,
};
use crate::profile::foreign::files::{Access, below, is_tmp, root};
use crate::profile::foreign::hosts;
use crate::profile::foreign::meaning::Meaning;
use crate::profile::json::{self, Fields, Node};
use crate::profile::location::Location;
use crate::profile::words::Variable;

/// Keys that choose programs, or are for other systems than Linux.
const ELSEWHERE: [&str; 14] = [
    "$schema",
    "ignoreViolations",
    "enableWeakerNestedSandbox",
    "enableWeakerNetworkIsolation",
    "allowAppleEvents",
    "ripgrep",
    "mandatoryDenySearchDepth",
    "allowPty",
    "seccomp",
    "bwrapPath",
    "socatPath",
    "javaAgentJarPath",
    "windows",
    "git",
];

/// Reads a document.
pub fn read(text: &[u8], losses: &mut Losses) -> Result<Meaning, ProfileCause> {
    let mut fields = json::parse(text)?.open_fields(&Place::Top)?;
    let mut meaning =
        Meaning { description: "made of settings of @anthropic-ai/sandbox-runtime", ..Meaning::default() };
    // On Linux its filter lets nobody make one, unless it is told to.
    meaning.close_unix_sockets();
    fields.require("network", |node, place| network(node, place, &mut meaning, losses))?;
    let mut rules = FileRules::default();
    fields.require("filesystem", |node, place| rules.read(node, place, losses))?;
    if rules.keep_mandatory(&mut meaning) {
        losses.note("filesystem.allowWrite", ONLY_AT_TOP);
    }
    rules.settle(&mut meaning);
    fields.take("credentials", |node, place| credentials(node, place, &mut meaning, losses))?;
    skip(&mut fields, &ELSEWHERE)?;
    unknown(&fields, &[&ELSEWHERE[..], &["network", "filesystem", "credentials"]].concat(), losses);
    settle_base(&mut meaning);
    Ok(meaning)
}

/// Reads `network`.
pub fn network(node: Node, place: &Place, meaning: &mut Meaning, losses: &mut Losses) -> Result<(), Fault> {
    let mut fields = node.open_fields(place)?;
    let network = &mut meaning.network;
    fields.take("allowedDomains", |node, place| allow_hosts(node, place, network, losses))?;
    fields.take("deniedDomains", |node, place| deny_hosts(node, place, network, losses))?;
    fields.take("deniedResolvedAddresses", |node, place| {
        node.list(place, |node, place| {
            let text = node.string(place)?;
            let bracketed = match text.split_once('/') {
                Some((address, bits)) if address.contains(':') => format!("[{address}]/{bits}"),
                _ => text.to_string(),
            };
            match hosts::denied(&bracketed) {
                Ok(rules) => network.deny.extend(rules),
                Err(why) => losses.note(place, why),
            }
            Ok(())
        })
    })?;
    let sockets = "UNIX sockets are allowed by path on macOS only; network.unix of a profile names each";
    lose(&mut fields, "allowUnixSockets", sockets, losses)?;
    fields.take("allowAllUnixSockets", |node, place| {
        if node.truth(place)? {
            meaning.calls = None;
            losses.note(place, "network.unix of a profile names each UNIX socket outside the workspace");
        }
        Ok(())
    })?;
    let proxy = "the broker of a run passes bytes on as they are, and asks no other proxy";
    for key in PROXIES {
        lose(&mut fields, key, proxy, losses)?;
    }
    // Listening is free in a network of the run's own.
    skip(&mut fields, &OF_NETWORK)?;
    unknown(&fields, &HOSTS, losses);
    Ok(())
}

/// The keys of `network` that are read.
pub const HOSTS: [&str; 3] = ["allowedDomains", "deniedDomains", "deniedResolvedAddresses"];

const PROXIES: [&str; 6] =
    ["httpProxyPort", "socksProxyPort", "mitmProxy", "parentProxy", "tlsTerminate", "filterRequest"];
const OF_NETWORK: [&str; 5] = [
    "deniedDomainReasons",
    "strictAllowlist",
    "allowLocalBinding",
    "allowMachLookup",
    "allowManagedDomainsOnly",
];

/// The keys of `filesystem`.
pub const FILES: [&str; 6] =
    ["denyRead", "allowRead", "allowWrite", "denyWrite", "disabled", "allowGitConfig"];

/// What stays as it is wherever something may be written.
const MANDATORY: [&str; 8] = [
    ".bashrc",
    ".bash_profile",
    ".zshrc",
    ".zprofile",
    ".profile",
    ".gitconfig",
    ".gitmodules",
    ".ripgreprc",
];

/// The same outside the workspace: in it the profile protects more of their kind.
const MANDATORY_ELSEWHERE: [&str; 7] =
    [".mcp.json", ".vscode", ".idea", ".claude/commands", ".claude/agents", ".git/hooks", ".git/config"];

const ONLY_AT_TOP: &str =
    "files like .bashrc, .mcp.json and .vscode stay as they are at the top of each of these places only";

/// The lists of `filesystem`.
#[derive(Default)]
pub struct FileRules {
    deny_read: Vec<(Location, String)>,
    allow_read: Vec<(Location, String)>,
    allow_write: Vec<(Location, String)>,
    edit: Vec<(Location, String)>,
    deny_write: Vec<Location>,
}

impl FileRules {
    /// Reads `filesystem`.
    pub fn read(&mut self, node: Node, place: &Place, losses: &mut Losses) -> Result<(), Fault> {
        let mut fields = node.open_fields(place)?;
        for (key, list) in [
            ("denyRead", &mut self.deny_read),
            ("allowRead", &mut self.allow_read),
            ("allowWrite", &mut self.allow_write),
        ] {
            list.extend(fields.take(key, |node, place| paths(node, place, losses))?.unwrap_or_default());
        }
        let fixed = fields.take("denyWrite", |node, place| paths(node, place, losses))?;
        self.deny_write.extend(fixed.into_iter().flatten().map(|(location, _)| location));
        lose(&mut fields, "disabled", "files are closed in every profile but for what it names", losses)?;
        let git = "what git executes stays protected; a run lets git change the rest of its configuration";
        lose(&mut fields, "allowGitConfig", git, losses)?;
        skip(&mut fields, &["allowManagedReadPathsOnly"])?;
        unknown(&fields, &FILES, losses);
        Ok(())
    }

    /// Allows writing below a place.
    pub fn allow_writing(&mut self, location: Location, place: impl ToString) {
        self.allow_write.push((location, place.to_string()));
    }

    /// Allows writing below a place, as far as nothing denies reading it.
    pub fn allow_editing(&mut self, location: Location, place: impl ToString) {
        self.edit.push((location, place.to_string()));
    }

    /// Denies writing below a place.
    pub fn deny_writing(&mut self, location: Location) {
        self.deny_write.push(location);
    }

    /// Has files of these names stay as they are at the top of what may be written. Says whether there is any.
    fn keep_mandatory(&self, meaning: &mut Meaning) -> bool {
        let mut is_open = false;
        for (location, _) in self.allow_write.iter().filter(|(location, _)| !is_tmp(location)) {
            is_open = true;
            let is_workspace = *location == below(Variable::Workspace, "");
            let more = if is_workspace { &[][..] } else { &MANDATORY_ELSEWHERE };
            for name in MANDATORY.iter().chain(more) {
                let rest = format!("{}/{name}", location.rest.trim_end_matches('/'));
                meaning.files.keep_if_there(Location { base: location.base, rest: rest.into() });
            }
        }
        is_open
    }

    /// Denies everything below a place.
    pub fn deny(&mut self, location: Location, place: impl ToString) {
        self.deny_read.push((location, place.to_string()));
    }

    /// Adds the rules to a policy. A denial of writing wins over a permission, and a permission to read over a denial.
    pub fn settle(self, meaning: &mut Meaning) {
        let files = &mut meaning.files;
        files.add(root(), Access::Read, "filesystem");
        let is_read = |location: &Location| self.allow_read.iter().any(|(other, _)| other == location);
        for (location, place) in &self.deny_read {
            if !is_read(location) {
                files.add(location.clone(), Access::Deny, place);
            }
        }
        let is_written = |location: &Location| self.allow_write.iter().any(|(other, _)| other == location);
        for (location, _) in self.edit.iter().filter(|(location, _)| !is_written(location)) {
            files.yield_to_denials(location.clone());
        }
        for (location, place) in self.allow_write.iter().chain(&self.edit) {
            files.add_optional(location.clone(), Access::Write, place);
        }
        for (location, place) in &self.allow_read {
            files.add_optional(location.clone(), Access::Read, place);
        }
        self.deny_write.into_iter().for_each(|location| files.forbid_writing(location));
    }
}

/// Reads `credentials`: what is masked there is refused here.
pub fn credentials(
    node: Node,
    place: &Place,
    meaning: &mut Meaning,
    losses: &mut Losses,
) -> Result<(), Fault> {
    let mut fields = node.open_fields(place)?;
    fields.take("files", |node, place| {
        node.list(place, |node, place| {
            let mut fields = node.open_fields(place)?;
            let text = fields.require("path", Node::string)?;
            mode(&mut fields, losses)?;
            match path(&text) {
                Ok(location) => meaning.files.add(location, Access::Deny, place),
                Err(why) => losses.note(place, why),
            }
            Ok(())
        })
    })?;
    fields.take("envVars", |node, place| {
        node.list(place, |node, place| {
            let mut fields = node.open_fields(place)?;
            let name = fields.require("name", Node::string)?;
            mode(&mut fields, losses)?;
            meaning.env.deny.push(name.into_owned());
            Ok(())
        })
    })?;
    skip(&mut fields, &["allowPlaintextInject", "awsPairs", "sigv4"])?;
    unknown(&fields, &["files", "envVars"], losses);
    Ok(())
}

fn mode(fields: &mut Fields, losses: &mut Losses) -> Result<(), Fault> {
    let masks = fields.require("mode", |node, place| node.word(place, &[("deny", false), ("mask", true)]))?;
    if masks {
        losses.note(fields.place, "nothing stands in for a secret: it is refused");
    }
    Ok(())
}
