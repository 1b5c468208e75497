//! The hints, the narrowest first.

use crate::explain::caller;
use crate::explain::decode::{Access, Address, PathArgument};
use crate::explain::hint::attempt::Change;
use crate::explain::hint::capability::{self, Lacking, Wanted, Whose};
use crate::explain::hint::topic::{self, Topic};
use crate::explain::hint::{Explainer, Hint, Refused, matches, place};
use crate::explain::infer;
use crate::plan::calls;
use crate::profile::{self, Grants, NetworkMode, Search, When};
use crate::sys::path;
use crate::sys::privilege::CapabilitySet;
use crate::sys::process::Pid;
use crate::sys::within::is_within;
use sbx_policy::calls::Call;
use sbx_policy::restrictions::{self, RESTRICTIONS};
use sbx_policy::shadow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Restrictions that say what is to be denied: nobody allows just that.
const FOR_DENIALS: [&str; 2] = ["exec", "jit"];

impl Explainer {
    /// Whether the call would fail for want of a capability, whatever the filter allowed, and who lacks that.
    pub(super) fn lacks_capability(&self, refused: &Refused<'_>) -> Option<Lacking> {
        let Wanted { any_of, whose } = capability::wanted(refused.name, refused.data)?;
        let lacks = match whose {
            Whose::Machine => true,
            // Landlock refuses these even to who has it.
            Whose::Mounts if self.attempts.has_path_rules() => true,
            // In a user namespace that it was let make, the command has them all.
            Whose::Mounts | Whose::Namespace => !refused.thread.is_some_and(caller::has_capabilities),
        };
        lacks.then(|| self.lacking(any_of, refused.thread))
    }

    /// Whether the call would change a file that permissions close to the user outside too.
    pub(super) fn is_closed(&self, refused: &Refused<'_>) -> bool {
        let base = self.workspace.as_deref();
        let is_closed = |argument: &PathArgument| {
            let path = place::absolute(argument, refused.thread, base);
            // What is changed and not there has to be made first.
            path.is_some_and(|path| {
                let makes = if path::is_there(&path) { Access::NONE } else { Access::CREATE };
                !infer::permitted(&path, argument.access | makes)
            })
        };
        let is_looked_at = refused.thread.is_some() && self.layout.is_none() && self.outside.is_empty();
        is_looked_at && place::changed(refused.decoded).any(is_closed)
    }

    /// Who lacks all of these capabilities. A program that gains rights outside may be one that has them there.
    pub(super) fn lacking(&self, any_of: CapabilitySet, thread: Option<Pid>) -> Lacking {
        match self.outside.intersects(any_of) || thread.is_some_and(caller::would_gain) {
            true => Lacking::Inside,
            false => Lacking::OutsideToo,
        }
    }

    /// What would allow the call; `None` where no single flag does.
    pub(super) fn hint(&mut self, refused: &Refused<'_>) -> Option<Hint> {
        match refused.topic {
            Topic::UnixConnection if refused.name == "connect" => return self.socket_file(refused),
            // They take a capability, or lead nowhere.
            Topic::Packets if topic::is_raw(&refused.data.args) || self.network == NetworkMode::Private => {
                return None;
            }
            // Landlock keeps them apart, whatever the filter allows.
            Topic::UnixAbstract => return None,
            // Where there are path rules the supervisor changes modes, and never makes such a file.
            Topic::SetId if self.attempts.has_path_rules() => return None,
            // No rule can name a message queue, so Landlock opens none.
            _ if refused.name.starts_with("mq_") && self.attempts.has_path_rules() => return None,
            // Such a run would be refused.
            _ if refused.name == "io_uring_setup" && self.network.is_kept_by_filter() => return None,
            // A user namespace is of no use without a user in it, and to map one takes writing below /proc.
            Topic::Namespaces if self.attempts.has_path_rules() => return None,
            Topic::Namespaces | Topic::Mounts => return self.whole_call(refused),
            _ => {}
        }
        self.writing(refused)
            .or_else(|| self.host_network(refused))
            .or_else(|| self.other_profile(refused))
            .or_else(|| self.restricted_call(refused))
            .or_else(|| self.whole_call(refused))
    }

    /// `--unix` for a socket that there is, and where the supervisor can tell it from others.
    fn socket_file(&self, refused: &Refused<'_>) -> Option<Hint> {
        let Some(Address::UnixPath(path)) = &refused.decoded.address else { return None };
        let argument = PathArgument {
            dirfd: None,
            path: path.clone(),
            access: Access::NONE,
            follow: true,
            empty_path_ok: false,
        };
        let path = place::absolute(&argument, refused.thread, self.workspace.as_deref())?;
        let usable = self.attempts.connects_unix() && path.exists();
        usable.then(|| Hint::default().and("--unix", &path))
    }

    /// `--rw` for what would be changed.
    fn writing(&mut self, refused: &Refused<'_>) -> Option<Hint> {
        let base = self.workspace.clone();
        let changed: Vec<(Option<PathBuf>, Access)> = place::changed(refused.decoded)
            .map(|argument| (place::absolute(argument, refused.thread, base.as_deref()), argument.access))
            .collect();
        // Where it may be changed already, the flag would open nothing but calls.
        let may_change = |path: &PathBuf| self.changing.iter().any(|directory| is_within(path, directory));
        if changed.iter().all(|(path, _)| path.as_ref().is_some_and(may_change))
            || !self.attempts.has_path_rules()
            || !self.attempts.help(Change::Writing, refused.data)
        {
            return None;
        }
        let places: Option<BTreeSet<PathBuf>> =
            changed.iter().map(|(path, access)| place::to_open(path.as_deref()?, *access)).collect();
        Some(places?.iter().fold(Hint::default(), |hint, directory| hint.and("--rw", directory)))
    }

    /// `--net host` for what needs a network; under `minimal` the profile that is meant for it.
    fn host_network(&mut self, refused: &Refused<'_>) -> Option<Hint> {
        let networked = matches!(refused.topic, Topic::Internet | Topic::Netlink | Topic::Socket);
        let listens = refused.name == "listen";
        if !networked || (self.network == NetworkMode::Host && !listens) || self.attempts.own() == "minimal" {
            return None;
        }
        if !self.attempts.help(Change::HostNetwork, refused.data) {
            return None;
        }
        let note = match self.network {
            NetworkMode::Ports if self.proxy.is_some() => Some("instead of naming hosts"),
            // Such sockets are mostly the resolver's.
            NetworkMode::Ports => Some(
                "instead of naming ports; names are looked up where hosts are named: --connect HOST:PORT",
            ),
            NetworkMode::Private => Some("instead of a network of its own"),
            // Only a run with namespaces of its own could have a network of its own.
            NetworkMode::None
                if self.layout.is_some() && self.attempts.help(Change::OwnNetwork, refused.data) =>
            {
                Some("--net private, where 127.0.0.1 is enough")
            }
            NetworkMode::None | NetworkMode::Loopback | NetworkMode::Host => None,
        };
        Some(Hint::of(["--net", "host"]).noting(note))
    }

    /// A built-in profile that is made for such calls.
    fn other_profile(&mut self, refused: &Refused<'_>) -> Option<Hint> {
        // Who looks around with any tool, or builds, is not helped by a profile that starts none.
        let profiles: &[&'static str] = match self.attempts.own() {
            "minimal" | "network" | "write" => &["network", "write", "workspace"],
            "read-only" | "no-exec" => &["workspace"],
            _ => &[],
        };
        let profiles = profiles.iter().filter(|name| **name != self.profile);
        for name in profiles {
            if self.attempts.help(Change::Profile(name), refused.data) {
                return Some(match self.network {
                    NetworkMode::Host if *name != "network" => Hint::of(["--profile", name, "--net", "host"]),
                    NetworkMode::Private if !asks_for_loopback(name) => {
                        Hint::of(["--profile", name, "--net", "private"])
                    }
                    _ => Hint::of(["--profile", name]),
                });
            }
        }
        None
    }

    /// The narrowest named restriction of the call that matches these arguments, besides what is allowed of
    /// the call now: the flag replaces that.
    fn restricted_call(&mut self, refused: &Refused<'_>) -> Option<Hint> {
        let call = Call::named(refused.name.as_bytes())?;
        let allowed = match self.attempts.allowed(call) {
            Grants::All(_) => return None,
            Grants::Some(alternatives) => alternatives
                .iter()
                .map(|alternative| match alternative.when {
                    When::Named(place) => Some(place),
                    When::Free(_) => None,
                })
                .collect::<Option<Vec<usize>>>()?,
            Grants::None => Vec::new(),
        };
        for wanted in narrowest_first(call, refused) {
            // What the new one includes would be without effect beside it, which the flag refuses.
            let kept =
                allowed.iter().filter(|place| !includes_restriction(wanted, **place) && **place != wanted);
            let places: BTreeSet<usize> = kept.copied().chain([wanted]).collect();
            let entries: Vec<String> = places
                .iter()
                .map(|place| format!("{}[{}]", refused.name, restrictions::name(*place)))
                .collect();
            let list = entries.join(":");
            if self.attempts.help(Change::Calls(list.clone()), refused.data) {
                return Some(Hint::of(["--allow-calls", &list]));
            }
        }
        None
    }

    /// The call with any arguments. It is not proposed for what acts on the caller's terminal, where what is typed is
    /// executed outside, nor for signals of descriptors: most programs do without, and it would give much more.
    fn whole_call(&mut self, refused: &Refused<'_>) -> Option<Hint> {
        let name = refused.name;
        if matches!(refused.topic, Topic::Terminal | Topic::DescriptorSignals) {
            return None;
        }
        let helps = self.attempts.help(Change::Calls(name.to_string()), refused.data);
        let restricted = Call::named(name.as_bytes()).is_some_and(|c| !restrictions::of_call(c).is_empty());
        let note = match refused.topic {
            Topic::Namespaces | Topic::Mounts => Some("opens new parts of the kernel"),
            Topic::UnixSocket if matches!(self.network, NetworkMode::Ports | NetworkMode::Host) => {
                Some("opens every UNIX socket of this machine that file permissions do not close")
            }
            _ if restricted => Some("with any arguments"),
            _ => capability::note_of_events(name),
        };
        helps.then(|| Hint::of(["--allow-calls", name]).noting(note))
    }
}

/// Whether a built-in profile has a network of the run's own without a flag.
fn asks_for_loopback(name: &str) -> bool {
    let profile = profile::load(OsStr::new(name), &Search::default());
    profile.is_ok_and(|profile| calls::mode(&profile) == NetworkMode::Loopback)
}

/// The restrictions that match the call, each before those that include it.
fn narrowest_first(call: Call, refused: &Refused<'_>) -> Vec<usize> {
    let mut matching: Vec<usize> = restrictions::of_call(call)
        .filter(|place| !FOR_DENIALS.contains(&restrictions::name(*place)) && matches(*place, refused.data))
        .collect();
    let all = matching.clone();
    matching.sort_by_key(|place| all.iter().filter(|other| includes_restriction(*place, **other)).count());
    matching
}

/// Whether a restriction includes another one.
pub fn includes_restriction(wide: usize, narrow: usize) -> bool {
    let any = |place: usize| RESTRICTIONS.get(place).map_or(&[][..], |restriction| restriction.any);
    shadow::covers(any(wide), any(narrow))
}
