//! Hosts and sockets: what a permission profile says of them, and what the sandbox's proxy is told in the same keys.

use std::collections::BTreeMap;

use crate::profile::error::{Fault, Place};
use crate::profile::foreign::Losses;
use crate::profile::foreign::agents::{EVERY_PORT, allow_host, deny_host, lose, path, skip, unknown};
use crate::profile::foreign::meaning::{Meaning, Network};
use crate::profile::json::{Fields, Node};
use crate::profile::words::NetworkMode;

/// Keys that say where the proxy listens.
const LISTENS: [&str; 6] = [
    "proxy_url",
    "enable_socks5",
    "socks_url",
    "enable_socks5_udp",
    "allow_upstream_proxy",
    "dangerously_allow_non_loopback_proxy",
];

/// Takes what the proxy is told, if it is switched on.
pub fn proxy(fields: &mut Fields) -> Result<Option<Node>, Fault> {
    let told = fields.take("features", |node, place| {
        node.open_fields(place)?.take("network_proxy", |node, place| match node {
            Node::Bool(is_on) => Ok(is_on.then(|| Node::Object(Vec::new()))),
            node => {
                let mut pairs = node.object(place)?;
                let enabled = pairs.iter().position(|(key, _)| key == "enabled");
                let enabled = enabled.map(|at| pairs.swap_remove(at).1.truth(&Place::Key(place, "enabled")));
                Ok(enabled.transpose()?.unwrap_or(false).then_some(Node::Object(pairs)))
            }
        })
    })?;
    Ok(told.flatten().flatten())
}

/// Whether something is allowed, and where the document says so.
type Said = (bool, String);

/// What is said so far: whether each host and each socket is allowed, and where the document says so.
#[derive(Default)]
pub struct Reach {
    hosts: BTreeMap<String, Said>,
    sockets: BTreeMap<String, Said>,
}

impl Reach {
    /// Reads one more table, but for its `enabled`. Codex lays each over those before: the last word about a host or a
    /// socket counts.
    pub fn add(&mut self, fields: &mut Fields, losses: &mut Losses) -> Result<(), Fault> {
        let words = [("allow", true), ("deny", false), ("none", false)];
        let hosts = fields.take("domains", |node, place| each(node, place, &words[..2]))?;
        let sockets = fields.take("unix_sockets", |node, place| each(node, place, &words))?;
        self.hosts.extend(hosts.into_iter().flatten());
        self.sockets.extend(sockets.into_iter().flatten());
        fields.take("mode", |node, place| {
            if node.word(place, &[("full", false), ("limited", true)])? {
                losses.note(place, "a run does not look at the methods of requests");
            }
            Ok(())
        })?;
        let ports = "this machine's ports come into a run by --host-port only";
        lose(fields, "allow_local_binding", ports, losses)?;
        let all = "network.unix of a profile names each UNIX socket";
        lose(fields, "dangerously_allow_all_unix_sockets", all, losses)?;
        lose(fields, "mitm", "the broker of a run passes bytes on as they are", losses)?;
        skip(fields, &LISTENS)?;
        unknown(fields, &["enabled", "domains", "unix_sockets", "mode", "allow_local_binding"], losses);
        Ok(())
    }

    /// Opens the network. It is the host's where no proxy is asked and no host is named. A proxy that is told of none
    /// allows none.
    pub fn open(
        mut self,
        proxy: Option<Node>,
        meaning: &mut Meaning,
        losses: &mut Losses,
    ) -> Result<(), Fault> {
        let is_asked = proxy.is_some();
        if let Some(node) = proxy {
            let features = Place::Key(&Place::Top, "features");
            self.add(&mut node.open_fields(&Place::Key(&features, "network_proxy"))?, losses)?;
        }
        if !is_asked && self.hosts.is_empty() {
            meaning.network.mode = Some(NetworkMode::Host);
            self.add_sockets(&mut meaning.network, losses);
            return Ok(());
        }
        self.add_hosts(&mut meaning.network, losses);
        // Nobody gets around the proxy: Codex lets no UNIX socket be made then.
        self.close(meaning, losses);
        Ok(())
    }

    /// Leaves no UNIX socket open but those that are named.
    pub fn close(&self, meaning: &mut Meaning, losses: &mut Losses) {
        self.add_sockets(&mut meaning.network, losses);
        if meaning.network.unix.is_empty() {
            meaning.close_unix_sockets();
        }
    }

    /// Adds rules about hosts. Without one nothing is allowed.
    fn add_hosts(&self, network: &mut Network, losses: &mut Losses) {
        let mut at_every_port = None;
        for (host, (is_allowed, place)) in &self.hosts {
            let place = Place::Key(&Place::Top, place);
            if !is_allowed {
                deny_host(host, &place, network, losses);
            } else if allow_host(host, &place, network, losses) {
                at_every_port.get_or_insert(place);
            }
        }
        if let Some(place) = at_every_port {
            losses.note(place, EVERY_PORT);
        }
    }

    fn add_sockets(&self, network: &mut Network, losses: &mut Losses) {
        for (socket, (_, place)) in self.sockets.iter().filter(|(_, (is_allowed, _))| *is_allowed) {
            match path(socket) {
                Ok(location) => network.unix.push(location.to_string()),
                Err(why) => losses.note(place, why),
            }
        }
    }
}

/// Names, whether each is allowed, and where the document says so.
fn each(node: Node, place: &Place, words: &[(&'static str, bool)]) -> Result<Vec<(String, Said)>, Fault> {
    let pairs = node.object(place)?.into_iter().map(|(name, node)| {
        let place = Place::Key(place, &name);
        let said = (node.word(&place, words)?, place.to_string());
        Ok((name, said))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::profile::foreign::Losses;
    use crate::profile::foreign::agents::codex::read;
    use crate::profile::location::Variables;

    /// What a document makes of the network, whether UNIX sockets are closed, and what is lost of the document.
    fn made(text: &str) -> (Value, bool, Vec<String>) {
        let mut losses = Losses::default();
        let meaning = read(text.as_bytes(), &mut losses).unwrap();
        let mut document = meaning.document(&Variables::default(), &mut losses).unwrap();
        let denied = document["syscalls"]["deny"].as_array().cloned().unwrap_or_default();
        (document["network"].take(), denied.contains(&json!("socket[unix]")), losses.lines().to_vec())
    }

    const MODE: &str =
        "sandbox_mode = 'workspace-write'\nsandbox_workspace_write = { network_access = true }\n";
    const PROFILE: &str = "default_permissions = 'x'\n[permissions.x.network]\nenabled = true\n";

    #[test]
    fn a_proxy_is_asked_about_hosts_whatever_opens_the_network() {
        let told = "[features.network_proxy]\nenabled = true\n\
                    domains = { 'a.example.org:443' = 'allow', 'b.example.org' = 'deny' }\n";
        let rules = json!({ "mode": "allow", "connect": ["a.example.org:443"], "deny": ["b.example.org"] });
        for open in [MODE, PROFILE] {
            assert_eq!(made(&format!("{open}{told}")), (rules.clone(), true, vec![]), "{open}");
            // It is told of no host.
            let silent = format!("{open}[features]\nnetwork_proxy = true\n");
            assert_eq!(made(&silent), (Value::Null, true, vec![]), "{open}");
            // The twins: one that is switched off, and none.
            let off = told.replace("true", "false");
            for text in [format!("{open}{off}"), open.to_string()] {
                assert_eq!(made(&text), (json!({ "mode": "host" }), false, vec![]), "{text}");
            }
        }
    }

    #[test]
    fn what_the_proxy_is_told_lies_over_what_the_profile_says() {
        let of_profile = "domains = { 'a.example.org:443' = 'allow', 'b.example.org:443' = 'allow', \
                          'c.example.org' = 'deny' }\n";
        let told = "[features.network_proxy]\nenabled = true\n\
                    domains = { 'b.example.org:443' = 'deny', 'd.example.org:443' = 'allow' }\n";
        let (network, _, lost) = made(&format!("{PROFILE}{of_profile}{told}"));
        assert_eq!(network["connect"], json!(["a.example.org:443", "d.example.org:443"]));
        assert_eq!(network["deny"], json!(["b.example.org:443", "c.example.org"]));
        assert_eq!(lost, Vec::<String>::new());
    }

    #[test]
    fn nothing_that_the_proxy_is_told_is_dropped_in_silence() {
        for (key, line) in [
            ("mode = 'limited'", "mode: a run does not look at the methods of requests"),
            ("allow_local_binding = true", "allow_local_binding: this machine's ports come into a run by"),
            ("domain = { 'a.example.org' = 'deny' }", "domain: the key is unknown (did you mean 'domains'?)"),
            ("domains = { '*.localhost' = 'allow' }", "domains.*.localhost: '*.localhost' is this machine"),
        ] {
            for open in [MODE, PROFILE] {
                let text = format!("{open}[features.network_proxy]\nenabled = true\n{key}\n");
                let (_, _, lost) = made(&text);
                let whole = format!("features.network_proxy.{line}");
                assert!(lost.len() == 1 && lost[0].starts_with(&whole), "{text}: {lost:?}");
            }
        }
    }

    #[test]
    fn a_socket_that_is_named_is_open() {
        let text = format!("{PROFILE}unix_sockets = {{ '/run/a' = 'allow', '/run/b' = 'deny' }}\n");
        assert_eq!(made(&text), (json!({ "mode": "host", "unix": ["/run/a"] }), false, vec![]));
        let closed = text.replace("true", "false");
        assert_eq!(made(&closed), (json!({ "unix": ["/run/a"] }), false, vec![]));
        assert!(made(&PROFILE.replace("true", "false")).1);
    }
}
