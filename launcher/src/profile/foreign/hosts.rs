//! Rules about hosts as other tools write them: a name, `*.name`, an address or a range, perhaps with a port.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use crate::hosts::{HostPattern, HostRule, Range};
use crate::profile::error::Plain;

/// The ports of a rule of a document that names none, where that means every port: a rule of a profile names its
/// ports, and these are those of the Web.
const WEB: &str = "80,443";

/// What a document allows.
pub enum Allowed {
    /// These rules.
    Rules(Vec<HostRule>),
    /// No rule of a profile can say it: why.
    Unsaid(String),
}

/// A host that is allowed. The second part tells whether the document allows it at every port.
pub fn allowed(text: &str) -> (Allowed, bool) {
    let (host, port) = split(text);
    let unsaid = |why: String| (Allowed::Unsaid(why), false);
    if is_local(host) {
        return unsaid(format!(
            "'{}' is this machine or nobody, which no rule reaches; --host-port brings a port of it into a run",
            Plain(text)
        ));
    }
    let rules: Vec<String> = match (host, port) {
        // With a protocol, it is a rule about hosts of the internet, and not one about ports of any network.
        ("*", None) => vec!["*:443/tls".to_string(), "*:80/http".to_string()],
        ("*", Some(port)) => vec![format!("*:{port}/tcp")],
        (host, port) => names(host).iter().map(|name| format!("{name}:{}", port.unwrap_or(WEB))).collect(),
    };
    let rules: Result<Vec<HostRule>, _> = rules.iter().map(|rule| HostRule::parse(rule)).collect();
    match rules {
        Ok(rules) => (Allowed::Rules(rules), port.is_none()),
        Err(why) => unsaid(format!("'{}' is no rule about hosts: {why}", Plain(text))),
    }
}

/// A host that is denied: at every port, if it names none.
pub fn denied(text: &str) -> Result<Vec<HostRule>, String> {
    let (host, port) = split(text);
    let rule = |name: &Cow<str>| match port {
        Some(port) => HostRule::parse_denial(&format!("{name}:{port}")),
        None => HostRule::parse_denial(name),
    };
    let rules: Result<Vec<_>, _> = names(host).iter().map(rule).collect();
    rules.map_err(|why| format!("'{}' is no rule about hosts: {why}", Plain(text)))
}

/// The host, and the port behind it. An address of IPv6 stands in brackets, also where the document has none.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// The names of a host as rules have them: `**.name` is a name and all below it, and an address of IPv6 has brackets.
fn names(host: &str) -> Vec<Cow<'_, str>> {
    match host.strip_prefix("**.") {
        Some(name) => vec![name.into(), format!("*.{name}").into()],
        None if host.parse::<Ipv6Addr>().is_ok() => vec![format!("[{host}]").into()],
        None => vec![host.into()],
    }
}

/// Whether it is a name or an address of the machine itself, or one that no connection leads to.
fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']').replace("]/", "/");
    let own = Range::parse(&bare).is_ok_and(|range| {
        let first = range.single().unwrap_or(range.first());
        let none = range.single().is_some() && first.is_unspecified();
        first.is_loopback() || first.is_multicast() || none || range.is_within(&Range::of_names())
    });
    let name = bare.trim_start_matches('*').trim_start_matches('.').to_ascii_lowercase();
    own || name == "localhost" || name.ends_with(".localhost")
}

/// Removes what can never apply: what is denied as a whole, denials where nothing is allowed, and what stands twice.
pub fn settle(connect: &mut Vec<HostRule>, deny: &mut Vec<HostRule>) {
    let mut known: Vec<HostRule> = Vec::new();
    for list in [&mut *connect, &mut *deny] {
        known.clear();
        list.retain(|rule| {
            let new = !known.contains(rule);
            known.push(rule.clone());
            new
        });
    }
    let all = |denial: &HostRule| denial.hosts == HostPattern::Any;
    connect.retain(|rule| {
        !deny.iter().any(|denial| denial.covers(rule) || (all(denial) && covers_ports(denial, rule)))
    });
    // A denial of every host at some ports: those ports are gone.
    for rule in connect.iter_mut() {
        rule.ports.retain(|port| !deny.iter().any(|denial| all(denial) && denial.has_port(*port)));
    }
    deny.retain(|denial| !all(denial));
    if connect.is_empty() {
        deny.clear();
    }
}

fn covers_ports(denial: &HostRule, rule: &HostRule) -> bool {
    rule.ports.iter().all(|port| denial.has_port(*port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<String> {
        match allowed(text).0 {
            Allowed::Rules(rules) => rules.iter().map(ToString::to_string).collect(),
            Allowed::Unsaid(why) => vec![why],
        }
    }

    #[test]
    fn hosts_get_the_ports_that_they_name_or_those_of_the_web() {
        assert_eq!(rules("example.org"), ["example.org:80,443"]);
        assert_eq!(rules("*.example.org:8443"), ["*.example.org:8443"]);
        assert_eq!(rules("**.example.org"), ["example.org:80,443", "*.example.org:80,443"]);
        assert_eq!(rules("[2001:db8::1]:22"), ["[2001:db8::1]:22"]);
        assert_eq!(rules("192.0.2.0/24"), ["192.0.2.0/24:80,443"]);
        assert!(rules("localhost:3000")[0].contains("--host-port"));
        assert!(rules("127.0.0.1")[0].contains("--host-port"));
        assert_eq!(rules("2001:db8::1"), ["[2001:db8::1]:80,443"]);
        assert_eq!(rules("*"), ["*:443/tls", "*:80/http"]);
        assert!(rules("a*b.org")[0].contains("no rule about hosts"));
    }

    #[test]
    fn denials_win() {
        let settled = |connect: &[&str], deny: &[&str]| {
            let mut connect: Vec<_> = connect.iter().map(|text| HostRule::parse(text).unwrap()).collect();
            let mut deny: Vec<_> = deny.iter().map(|text| HostRule::parse_denial(text).unwrap()).collect();
            settle(&mut connect, &mut deny);
            let shown =
                |list: Vec<HostRule>| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            (shown(connect), shown(deny))
        };
        assert_eq!(settled(&["a.org:443", "b.org:443"], &["b.org"]), ("a.org:443".into(), "b.org".into()));
        assert_eq!(settled(&["a.org:22,443"], &["*:22"]), ("a.org:443".into(), String::new()));
        assert_eq!(settled(&["a.org:443"], &["*"]), (String::new(), String::new()));
        assert_eq!(settled(&[], &["a.org"]), (String::new(), String::new()));
    }
}
