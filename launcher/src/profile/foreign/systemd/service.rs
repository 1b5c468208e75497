//! The assignments of a service by their names, and what those beside the filter say.

use std::collections::{BTreeMap, BTreeSet};

use sbx_policy::calls::Call;
use serde_json::{Value, json};

use crate::profile::error::{Plain, ProfileCause};
use crate::profile::foreign::systemd::calls::only;
use crate::profile::foreign::systemd::directives::{Role, role, similar, takes_away, takes_back};
use crate::profile::foreign::systemd::unit::{Setting, bare_words};
use crate::profile::foreign::systemd::values::{maybe_truth, truth};
use crate::profile::foreign::systemd::words::{binds, words};
use crate::profile::foreign::{HINTS, Losses};

/// The directives that an empty assignment takes back, by the ends and the beginnings of their names: lists, and those
/// limits of control groups that are read. `systemd-analyze verify` of systemd 252 names those it passes over.
const EMPTIED: [&str; 12] = [
    "Paths",
    "Directories",
    "Directory",
    "Environment",
    "FileSystem",
    "Families",
    "RestrictNamespaces",
    "Capabilities",
    "CapabilityBoundingSet",
    "MemoryMax",
    "MemoryLimit",
    "TasksMax",
];
const KINDS_OF_EMPTIED: [&str; 2] = ["IPAddress", "SystemCall"];

/// The old names of lists. What one name says the other takes back.
const OLD_NAMES: [(&str, &str); 3] = [
    ("ReadWriteDirectories", "ReadWritePaths"),
    ("ReadOnlyDirectories", "ReadOnlyPaths"),
    ("InaccessibleDirectories", "InaccessiblePaths"),
];

/// Directives that are one list for systemd: an empty assignment of either begins both anew.
const BINDS: [&str; 2] = ["BindPaths", "BindReadOnlyPaths"];

/// Whether an empty assignment takes back what a directive has said (systemd.exec(5)).
fn begins_anew(name: &str) -> bool {
    EMPTIED.iter().any(|end| name.ends_with(end))
        || KINDS_OF_EMPTIED.iter().any(|start| name.starts_with(start))
}

/// The name that a directive has today.
fn name_today(name: &str) -> &str {
    OLD_NAMES.iter().find(|(old, _)| *old == name).map_or(name, |(_, today)| today)
}

/// Takes back what an empty assignment of a directive takes back.
fn take_back(all: &mut BTreeMap<String, Vec<Setting>>, name: &str) {
    if BINDS.contains(&name) {
        all.retain(|known, _| !BINDS.contains(&&**known));
    } else if begins_anew(name) {
        all.remove(name_today(name));
    }
}

/// The assignments that are read.
pub struct Service(BTreeMap<String, Vec<Setting>>);

impl Service {
    /// Sorts assignments. What cannot be said is lost. An empty assignment begins a list anew; systemd passes over one
    /// of most words, limits of processes among them.
    pub fn of(settings: Vec<Setting>, losses: &mut Losses) -> Service {
        let mut all: BTreeMap<String, Vec<Setting>> = BTreeMap::new();
        let mut lost: BTreeMap<String, (Setting, String)> = BTreeMap::new();
        for setting in settings {
            match role(&setting.name) {
                Role::Other | Role::Held => {}
                Role::Read if setting.value.is_empty() => take_back(&mut all, &setting.name),
                Role::Read => all.entry(name_today(&setting.name).to_string()).or_default().push(setting),
                Role::Lost(_) if setting.value.is_empty() => {
                    if takes_back(&setting.name) {
                        lost.remove(&setting.name);
                    }
                }
                Role::Lost(why) => drop(lost.insert(setting.name.clone(), (setting, why.to_string()))),
                Role::Unknown if setting.name.starts_with("X-") => {}
                // It may be a list, which a no does not take back.
                Role::Unknown if !takes_away(&setting.name, &setting.value) => {}
                Role::Unknown => {
                    let near = if lost.len() < HINTS { similar(&setting.name) } else { None };
                    let near = near.map_or(String::new(), |near| format!(" (did you mean '{near}'?)"));
                    lost.insert(setting.name.clone(), (setting, format!("the directive is unknown{near}")));
                }
            }
        }
        let mut lost: Vec<_> = lost.into_values().collect();
        lost.sort_by_key(|(setting, _)| setting.line);
        lost.iter()
            .filter(|(setting, _)| takes_away(&setting.name, &setting.value))
            .for_each(|(setting, why)| losses.note(setting.place(), why));
        Service(all)
    }

    /// Every assignment of a directive that counts.
    pub fn all(&self, name: &str) -> impl DoubleEndedIterator<Item = &Setting> {
        self.0.get(name).into_iter().flatten()
    }

    /// The last one.
    pub fn last(&self, name: &str) -> Option<&Setting> {
        self.all(name).next_back()
    }

    /// Whether a directive is on.
    pub fn is_on(&self, name: &str) -> Result<bool, ProfileCause> {
        self.last(name).map_or(Ok(false), truth)
    }

    /// The words of all assignments of a directive, each with its assignment.
    pub fn words(&self, name: &str) -> Result<Vec<(&Setting, String)>, ProfileCause> {
        let mut all = Vec::new();
        for setting in self.all(name) {
            all.extend(words(setting)?.into_iter().map(|word| (setting, word)));
        }
        Ok(all)
    }

    /// The binds of all assignments of a directive, in their parts, each with its assignment.
    pub fn binds(&self, name: &str) -> Result<Vec<(&Setting, Vec<String>)>, ProfileCause> {
        let mut all = Vec::new();
        for setting in self.all(name) {
            all.extend(binds(setting)?.into_iter().map(|parts| (setting, parts)));
        }
        Ok(all)
    }

    /// The flags of the namespaces that may not be made; `None` without such a rule.
    pub fn forbidden_namespaces(
        &self,
        known: &[(&str, u64)],
        losses: &mut Losses,
    ) -> Result<Option<u64>, ProfileCause> {
        let all = known.iter().fold(0, |all, (_, flag)| all | flag);
        let mut forbidden = None;
        for setting in self.all("RestrictNamespaces") {
            if let Some(on) = maybe_truth(&setting.value) {
                forbidden = Some(if on { all } else { 0 });
                continue;
            }
            let (inverted, text) = match setting.value.strip_prefix('~') {
                Some(rest) => (true, rest),
                None => (false, &*setting.value),
            };
            let mut named = 0;
            for word in bare_words(text) {
                match known.iter().find(|(name, _)| *name == word) {
                    Some((_, flag)) => named |= flag,
                    None => {
                        let near = losses.hint(word, known.iter().map(|(name, _)| *name));
                        losses.note(setting.place(), format_args!("'{}' is no namespace{near}", Plain(word)));
                    }
                }
            }
            forbidden = Some(match (forbidden, inverted) {
                (None, false) => all & !named,
                (Some(known), false) => known & !named,
                (None, true) => named,
                (Some(known), true) => known | named,
            });
        }
        Ok(forbidden)
    }

    /// The kinds of sockets that may be made.
    pub fn families(&self) -> Result<Families, ProfileCause> {
        let mut families = Families::Any;
        for setting in self.all("RestrictAddressFamilies") {
            if setting.value == "none" {
                families = Families::Only(BTreeSet::new());
                continue;
            }
            let (inverted, text) = match setting.value.strip_prefix('~') {
                Some(rest) => (true, rest),
                None => (false, &*setting.value),
            };
            let named: BTreeSet<String> = bare_words(text).map(family).collect();
            if let Some(wrong) = named.iter().find(|name| !is_family(name)) {
                return Err(setting.wrong(format!("'{}' is no address family, like AF_UNIX", Plain(wrong))));
            }
            families = match (families, inverted) {
                (Families::Any, true) => Families::AllBut(named),
                (Families::Any, false) => Families::Only(named),
                (Families::Only(mut known), false) => {
                    known.extend(named);
                    Families::Only(known)
                }
                (Families::Only(known), true) => Families::Only(&known - &named),
                (Families::AllBut(mut known), true) => {
                    known.extend(named);
                    Families::AllBut(known)
                }
                (Families::AllBut(known), false) => Families::AllBut(&known - &named),
            };
        }
        Ok(families)
    }
}

/// `RestrictAddressFamilies=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Families {
    /// Whatever the filter says.
    Any,
    /// These.
    Only(BTreeSet<String>),
    /// All but these.
    AllBut(BTreeSet<String>),
}

/// A family by its usual name.
fn family(word: &str) -> String {
    let usual = match word {
        "AF_LOCAL" | "AF_FILE" => "AF_UNIX",
        "AF_ROUTE" => NETLINK,
        word => word,
    };
    usual.to_string()
}

fn is_family(name: &str) -> bool {
    let is_in = |bare| FAMILIES.split_ascii_whitespace().any(|known| known == bare);
    name.strip_prefix("AF_").is_some_and(is_in)
}

/// The families that Linux has or had (address_families(7)).
const FAMILIES: &str = "\
    UNIX INET AX25 IPX APPLETALK NETROM BRIDGE ATMPVC X25 INET6 ROSE DECnet NETBEUI SECURITY KEY NETLINK PACKET ASH \
    ECONET ATMSVC RDS SNA IRDA PPPOX WANPIPE LLC IB MPLS CAN TIPC BLUETOOTH IUCV RXRPC ISDN PHONET IEEE802154 CAIF \
    ALG NFC VSOCK KCM QIPCRTR SMC XDP MCTP";

/// The families that a run can have.
const KNOWN: [&str; 4] = ["AF_UNIX", "AF_INET", "AF_INET6", NETLINK];
const NETLINK: &str = "AF_NETLINK";
/// The numbers of AF_UNIX and AF_INET.
const UNIX: u64 = 1;
const INET: u64 = 2;

impl Families {
    /// Whether sockets of a family may be made.
    pub fn have(&self, name: &str) -> bool {
        match self {
            Families::Any => true,
            Families::Only(names) => names.contains(name),
            Families::AllBut(names) => !names.contains(name),
        }
    }

    /// Refuses those of the sockets that come with the network of a run whose families may not be made.
    pub fn refused(&self) -> Vec<Value> {
        let mut refused = Vec::new();
        let mut refuse = |family: &str, socket: Value| {
            if *self != Families::Any && !self.have(family) {
                refused.push(socket);
            }
        };
        refuse(NETLINK, json!({ "call": "socket[netlink-route]", "errno": "EAFNOSUPPORT" }));
        // Without either there is no network, and nothing comes with it.
        if self.have_internet() {
            let four = json!([{ "index": 0, "value": INET, "width": 32 }]);
            refuse("AF_INET", json!({ "call": "socket", "args": four, "errno": "EAFNOSUPPORT" }));
            refuse("AF_INET6", json!({ "call": "socket[inet6]", "errno": "EAFNOSUPPORT" }));
        }
        refused
    }

    /// Whether a family is named among those that may be made.
    fn names(&self, name: &str) -> bool {
        matches!(self, Families::Only(names) if names.contains(name))
    }

    /// Whether internet sockets may be made.
    pub fn have_internet(&self) -> bool {
        self.have("AF_INET") || self.have("AF_INET6")
    }

    /// Keeps sockets to the families that are left. Those of the internet come with the network of the run; others need
    /// privileges, or are of no use without.
    pub fn narrow(
        &self,
        grants: &mut BTreeMap<Call, Option<Vec<Value>>>,
        setting: Option<&Setting>,
        losses: &mut Losses,
    ) {
        for call in ["socket", "socketpair"] {
            let mut entries = Vec::new();
            if self.have("AF_UNIX") {
                entries.push(json!({ "call": call, "args": [{ "index": 0, "value": UNIX, "width": 32 }] }));
            }
            // The network of a run brings these, where there is one.
            if call == "socket" && self.names(NETLINK) && !self.have_internet() {
                entries.push(json!("socket[netlink-route]"));
            }
            if entries.is_empty() {
                if let Some(call) = Call::named(call.as_bytes()) {
                    grants.remove(&call);
                }
            } else {
                only(grants, call, &entries);
            }
        }
        if let Families::Only(names) = self {
            let place = setting.map_or_else(String::new, Setting::place);
            if names.contains(NETLINK) {
                losses.note(&place, "AF_NETLINK: a run has interfaces and routes alone");
            }
            for name in names.iter().filter(|name| !KNOWN.contains(&&***name)) {
                losses.note(&place, format_args!("{}: sockets of this family cannot be had", Plain(name)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::foreign::systemd::unit::settings;

    fn service(lines: &str) -> (Service, Vec<String>) {
        let mut losses = Losses::default();
        let settings = settings(format!("[Service]\n{lines}\n").as_bytes()).unwrap();
        (Service::of(settings, &mut losses), losses.lines().to_vec())
    }

    /// What systemd passes over takes back nothing: neither a no in a list of words, nor an empty word.
    #[test]
    fn what_cannot_be_said_is_lost_until_it_is_taken_back() {
        for lines in [
            "RestrictNetworkInterfaces=lo\nRestrictNetworkInterfaces=no",
            "RestrictNetworkInterfaces=\nRestrictNetworkInterfaces=no",
            "SocketBindDeny=any\nSocketBindDeny=off",
            "DeviceAllow=/dev/null r\nDeviceAllow=infinity",
            "RootDirectory=/srv\nRootDirectory=no",
            "AppArmorProfile=no",
            "LimitSTACK=1M\nLimitSTACK=no",
            "LimitSTACK=1M\nLimitSTACK=",
            "LimitMEMLOCK=0\nLimitMEMLOCK=\nLimitMEMLOCK=infinity:64M",
            "LimitMEMLOCK=infinity\nLimitMEMLOCK=0",
            "MemoryHigh=1G\nMemoryHigh=infinity:infinity",
            "LimitNICE=1\nLimitNICE=infinity",
            "CPUQuota=10%\nCPUQuota=infinity",
            "ProcSubset=pid\nProcSubset=",
            "DevicePolicy=closed\nDevicePolicy=\nDevicePolicy=no",
            "RestrictWhatever=lo\nRestrictWhatever=no",
        ] {
            assert_eq!(service(lines).1.len(), 1, "{lines}");
        }
        for lines in [
            "RestrictNetworkInterfaces=lo\nRestrictNetworkInterfaces=",
            "SocketBindDeny=any\nSocketBindDeny=",
            "RootDirectory=/srv\nRootDirectory=",
            "LimitSTACK=1M\nLimitSTACK=infinity",
            "LimitMEMLOCK=0\nLimitMEMLOCK=infinity:infinity",
            "LimitCORE=0:infinity\nLimitCORE=1M",
            "MemoryHigh=1G\nMemoryHigh=",
            "RootEphemeral=yes\nRootEphemeral=no",
            "RestrictWhatever=no",
        ] {
            assert_eq!(service(lines).1, Vec::<String>::new(), "{lines}");
        }
    }

    #[test]
    fn a_list_has_two_names_and_one_beginning() {
        let words = |lines: &str, name: &str| {
            let (service, _) = service(lines);
            service.words(name).unwrap().into_iter().map(|(_, word)| word).collect::<Vec<_>>()
        };
        let lines = "ReadWriteDirectories=/a\nReadWritePaths=/b";
        assert_eq!(words(lines, "ReadWritePaths"), ["/a", "/b"]);
        for again in ["ReadWritePaths=", "ReadWriteDirectories="] {
            assert_eq!(
                words(&format!("{lines}\n{again}"), "ReadWritePaths"),
                Vec::<String>::new(),
                "{again}"
            );
        }
        let lines = "BindPaths=/a\nBindReadOnlyPaths=/b";
        assert_eq!(
            (words(lines, "BindPaths"), words(lines, "BindReadOnlyPaths")),
            (vec!["/a".into()], vec!["/b".into()])
        );
        for again in ["BindPaths=", "BindReadOnlyPaths="] {
            let lines = format!("{lines}\n{again}\nBindPaths=/c");
            assert_eq!(words(&lines, "BindPaths"), ["/c"], "{again}");
            assert_eq!(words(&lines, "BindReadOnlyPaths"), Vec::<String>::new(), "{again}");
        }
    }
}
