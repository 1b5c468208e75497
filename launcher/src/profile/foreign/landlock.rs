//! Policies of landlockconfig: path and port rules of Landlock, as the JSON that its schema describes.

use serde_json::{Map, Value, json};

use crate::hosts::{HostPattern, HostRule};
use crate::profile::foreign::languages::Exported;
use crate::profile::foreign::{Losses, rest};
use crate::profile::model::{PathEntry, Profile};
use crate::profile::words::NetworkMode;
use crate::text::json_document;

/// The version of Landlock whose rights `abi.all` and the groups mean. The rights of later ones are not in the schema.
const ABI: u8 = 6;

/// What is said in the document, or taken care of by leaving rules out.
const SAID: [&str; 5] = ["paths.read", "paths.execute", "paths.write", "network.mode", "network.bind"];

/// Writes a document.
pub fn write(exported: &Exported<'_>, losses: &mut Losses) -> Vec<u8> {
    let Profile { paths, network, .. } = exported.profile;
    if !exported.profile.is_unrestricted() {
        losses.note("syscalls", "Landlock has no rules about calls");
    }
    let why = "Landlock has no such rule";
    rest::lose(exported.profile, &[&SAID[..], &["network.connect"]].concat(), why, losses);
    let mut rules = Vec::new();
    for (list, rights) in [
        (&paths.read, json!(["read_file", "read_dir"])),
        (&paths.execute, json!(["abi.read_execute"])),
        (&paths.write, json!(["abi.read_write"])),
    ] {
        if !list.is_empty() {
            rules.push(json!({ "allowedAccess": rights, "parent": parents(list) }));
        }
    }
    let mut ruleset = json!({ "handledAccessFs": ["abi.all"], "scoped": ["abi.all"] });
    let mode = network.mode.as_deref().copied().unwrap_or_default();
    // Without a rule no port is open. Inside a run's own network all are, but here there is only the machine's.
    if mode != NetworkMode::Host {
        ruleset["handledAccessNet"] = json!(["abi.all"]);
    }
    if matches!(mode, NetworkMode::Private | NetworkMode::Loopback) {
        losses.note("network.mode", "there is no network of its own: no TCP port is open, and UDP is");
    } else if matches!(mode, NetworkMode::None | NetworkMode::Ports) {
        losses.note("network.mode", "Landlock knows TCP alone: UDP stays open");
    }
    let mut document =
        Map::from_iter([("abi".to_string(), json!(ABI)), ("ruleset".to_string(), json!([ruleset]))]);
    if !rules.is_empty() {
        document.insert("pathBeneath".to_string(), Value::Array(rules));
    }
    let ports = if mode == NetworkMode::Ports { ports(exported.profile, losses) } else { Vec::new() };
    if !ports.is_empty() {
        document.insert("netPort".to_string(), Value::Array(ports));
    }
    json_document(&Value::Object(document)).into_bytes()
}

/// The paths of a list. Variables stay variables: another document, given together with this one, says what they are.
/// A dollar sign that begins none is doubled.
fn parents(list: &[PathEntry]) -> Vec<String> {
    let escaped = |entry: &PathEntry| {
        let rest = entry.rest.replace('$', "$$");
        entry.base.map_or(rest.clone(), |variable| format!("${{{variable}}}{rest}"))
    };
    list.iter().map(escaped).collect()
}

/// The port rules. A rule about hosts is lost.
fn ports(profile: &Profile, losses: &mut Losses) -> Vec<Value> {
    let mut open: Vec<u16> = Vec::new();
    for (place, text) in profile.network.connect.iter().enumerate() {
        match HostRule::parse(&text.value) {
            Ok(rule) if rule.hosts == HostPattern::Any && rule.speaks.is_none() => open.extend(rule.ports),
            _ => losses.note(format_args!("network.connect[{place}]"), "Landlock has no rules about hosts"),
        }
    }
    let bound: Vec<u16> = profile.network.bind.iter().map(|port| port.value).collect();
    let rules =
        [("connect_tcp", open), ("bind_tcp", bound)].into_iter().filter(|(_, ports)| !ports.is_empty());
    rules.map(|(right, ports)| json!({ "allowedAccess": [right], "port": ports })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::calls::DefaultAction;
    use crate::profile::resolve;

    #[test]
    fn a_path_in_a_document_steers_no_terminal() {
        let path = "/srv/a\u{1b}\u{7f}\u{85}\u{202e}é";
        let text = json!({ "paths": { "read": [path] } }).to_string();
        let profile = resolve::made("x", text.as_bytes()).unwrap();
        let exported =
            Exported { profile: &profile, calls: &[], default: DefaultAction::Allow, program: &[] };
        let written = String::from_utf8(write(&exported, &mut Losses::default())).unwrap();
        assert!(written.contains(r"/srv/a\u001b\u007f\u0085\u202eé"), "{written}");
        let read: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read["pathBeneath"][0]["parent"], json!([path]));
    }
}
