//! Groups of hosts: rules that stand for their name, `@NAME`, in the lists of a network.

use crate::hosts::{HostRule, RuleError};
use crate::profile::error::ProfileCause;
use crate::profile::model::{HostGroup, Network, Profile};
use crate::profile::origin::{Given, List, Text};

/// The name of a group, if a text is one.
pub fn name(text: &str) -> Option<&str> {
    text.strip_prefix('@')
}

impl Network {
    /// The rules of a group.
    pub fn group(&self, name: &str) -> Option<&[Text]> {
        let place = self.groups.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.groups.get(place).map(|(_, given)| &*given.value.rules)
    }

    /// The names of all groups.
    pub fn group_names(&self) -> Vec<String> {
        self.groups.iter().map(|(name, _)| format!("@{name}")).collect()
    }
}

/// Puts the rules of groups in the places of their names. They come from where the name stands.
pub(crate) fn expand(profile: &mut Profile) -> Result<(), ProfileCause> {
    let network = &mut profile.network;
    if let Some(connect) = expanded(network, &network.connect, HostRule::parse, false)? {
        network.connect = connect;
    }
    if let Some(deny) = expanded(network, &network.deny, HostRule::parse_denial, false)? {
        network.deny = deny;
    }
    Ok(())
}

/// Does the same to denials whose groups are there already: what a parent denies stays denied, whatever a child makes
/// of the group.
pub(crate) fn settle_denials(profile: &mut Profile) -> Result<(), ProfileCause> {
    let network = &mut profile.network;
    let is_known = |given: &Given<Text>| name(&given.value).is_some_and(|name| network.group(name).is_some());
    if network.deny.iter().any(is_known)
        && let Some(deny) = expanded(network, &network.deny, HostRule::parse_denial, true)?
    {
        network.deny = deny;
    }
    Ok(())
}

/// `None`: there is nothing to do. `later`: what is unknown may still come.
fn expanded(
    network: &Network,
    list: &List<Given<Text>>,
    parse: fn(&str) -> Result<HostRule, RuleError>,
    later: bool,
) -> Result<Option<List<Given<Text>>>, ProfileCause> {
    if list.iter().all(|given| name(&given.value).is_none()) {
        return Ok(None);
    }
    let mut all: Vec<Given<Text>> = Vec::new();
    for given in list.iter() {
        let Some(name) = name(&given.value) else {
            all.push(given.clone());
            continue;
        };
        let entry = || given.origin.to_string();
        let Some(rules) = network.group(name) else {
            if later {
                all.push(given.clone());
                continue;
            }
            let (name, known) = (name.to_string(), network.group_names());
            return Err(ProfileCause::UnknownGroup { entry: entry(), name, known });
        };
        for rule in rules {
            let wrong = |why| ProfileCause::Group { entry: entry(), rule: rule.to_string(), why };
            let value = Text::from(parse(rule).map_err(wrong)?.to_string());
            all.push(Given { value, origin: given.origin.clone() });
        }
    }
    Ok(Some(all.into()))
}

impl std::fmt::Display for HostGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.rules.join(", "))
    }
}
