//! Several hints as one set of flags: each flag once, and none that another one covers.

use crate::explain::hint::{attempt, flags, place};
use crate::profile::{Grants, When};
use sbx_policy::list::{self, Target};
use sbx_policy::restrictions;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The profile that allows what all others allow that hints name, with the host's network in place of `network`.
const WIDEST: &str = "workspace";
/// The longest text that is worth copying, in bytes.
const LONGEST: usize = 1000;

/// Flags that allow together what each of several hints allows.
#[derive(Clone, Debug, Default)]
pub struct Together {
    profiles: Vec<OsString>,
    net: Option<OsString>,
    paths: Vec<(Access, PathBuf)>,
    calls: BTreeSet<String>,
    /// Each other flag with its value.
    others: Vec<(OsString, Option<OsString>)>,
}

/// What a path flag gives besides reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Changing.
    pub write: bool,
    /// Executing.
    pub execute: bool,
}

impl Access {
    /// What a flag of `sbx run` gives.
    pub fn of_flag(flag: &[u8]) -> Option<Access> {
        let (write, execute) = match flag {
            b"--ro" => (false, false),
            b"--rox" => (false, true),
            b"--rw" => (true, false),
            b"--rwx" => (true, true),
            _ => return None,
        };
        Some(Access { write, execute })
    }

    /// The flag.
    pub fn flag(self) -> &'static str {
        match (self.write, self.execute) {
            (false, false) => "--ro",
            (false, true) => "--rox",
            (true, false) => "--rw",
            (true, true) => "--rwx",
        }
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Access) -> Access {
        Access { write: self.write || other.write, execute: self.execute || other.execute }
    }

    /// Whether it gives all that the other gives.
    pub fn covers(self, other: Access) -> bool {
        self.and(other) == self
    }
}

impl Together {
    /// Adds the words of a hint.
    pub fn add<'w>(&mut self, words: impl IntoIterator<Item = &'w OsStr>) {
        let mut words = words.into_iter().peekable();
        while let Some(flag) = words.next() {
            let value = words.next_if(|word| !word.as_encoded_bytes().starts_with(b"--"));
            self.add_flag(flag, value);
        }
    }

    fn add_flag(&mut self, flag: &OsStr, value: Option<&OsStr>) {
        let Some(value) = value else { return add_new(&mut self.others, (flag.to_owned(), None)) };
        match flag.to_str() {
            Some("--profile") => add_new(&mut self.profiles, value.to_owned()),
            Some("--net") if self.net.is_none() || value == "host" => self.net = Some(value.to_owned()),
            Some("--net") => {}
            Some("--allow-calls") => {
                let entries = value.to_string_lossy();
                self.calls.extend(entries.split([':', ',']).map(str::to_string));
            }
            _ => match Access::of_flag(flag.as_bytes()) {
                Some(rights) => self.add_path(rights, Path::new(value)),
                None => add_new(&mut self.others, (flag.to_owned(), Some(value.to_owned()))),
            },
        }
    }

    fn add_path(&mut self, rights: Access, path: &Path) {
        match self.paths.iter_mut().find(|(_, there)| there == path) {
            Some((there, _)) => *there = there.and(rights),
            None => self.paths.push((rights, path.to_path_buf())),
        }
    }

    /// The words, as they are passed to `sbx run`.
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut put = |flag: &OsStr, value: Option<&OsStr>| {
            words.extend([flag].into_iter().chain(value).map(OsStr::to_owned));
        };
        let (profile, net) = (self.profile(), self.net());
        for (flag, value) in [("--profile", profile), ("--net", net)] {
            value.iter().for_each(|value| put(OsStr::new(flag), Some(value)));
        }
        for (rights, path) in &self.paths {
            if !self.paths.iter().any(|wide| covers(wide, (*rights, path))) {
                put(OsStr::new(rights.flag()), Some(path.as_os_str()));
            }
        }
        for (flag, value) in &self.others {
            // With the host's network all ports are open, and naming some contradicts it.
            let about_ports = ["--connect", "--bind", "--host-port"].iter().any(|port| flag == port);
            let moot = net.is_some_and(|net| net == "host") && about_ports;
            if !moot {
                put(flag, value.as_deref());
            }
        }
        let calls = self.calls();
        if !calls.is_empty() {
            put(OsStr::new("--allow-calls"), Some(OsStr::new(&calls.join(":"))));
        }
        words
    }

    /// The profile that allows what all of them allow.
    fn profile(&self) -> Option<&OsStr> {
        match &self.profiles[..] {
            [] => None,
            [profile] => Some(profile),
            _ => Some(OsStr::new(WIDEST)),
        }
    }

    fn net(&self) -> Option<&OsStr> {
        let has_network = |profile: &OsStr| profile == "network";
        let swapped = self.profiles.iter().any(|profile| has_network(profile))
            && self.profile().is_some_and(|profile| !has_network(profile));
        if swapped { Some(OsStr::new("host")) } else { self.net.as_deref() }
    }

    /// The entries of a list of calls. Beside an entry that covers it, another one would be refused as without effect.
    fn calls(&self) -> Vec<String> {
        let mut all = self.calls.clone();
        all.extend(self.calls.iter().flat_map(|entry| self.kept_of(entry)));
        let covered =
            |entry: &String| all.iter().any(|wide| wide != entry && covers_calls(wide, entry) == Some(true));
        all.iter().filter(|entry| !covered(entry)).cloned().collect()
    }

    /// What another profile allows of a call that is named with a restriction: the flag would take its place.
    fn kept_of(&self, entry: &str) -> Vec<String> {
        let parsed = list::parse(entry.as_bytes()).ok().filter(|entry| entry.restriction.is_some());
        let profile = self.profile().and_then(OsStr::to_str).and_then(attempt::built_in);
        let (Some(Target::Call(call)), Some(profile)) = (parsed.map(|entry| entry.target), profile) else {
            return Vec::new();
        };
        match profile.syscalls.calls.get(call).map_or(&Grants::None, |rules| rules.allowed(false)) {
            Grants::None => Vec::new(),
            Grants::All(_) => vec![call.name().to_string()],
            Grants::Some(alternatives) => alternatives
                .iter()
                .filter_map(|alternative| match alternative.when {
                    When::Named(place) => Some(format!("{}[{}]", call.name(), restrictions::name(place))),
                    When::Free(_) => None,
                })
                .collect(),
        }
    }

    /// The words for a shell; `None` where there are none, or they are too long for a line.
    pub fn for_shell(&self) -> Option<String> {
        let words = self.words();
        let length: usize = words.iter().map(|word| word.len() + 1).sum();
        let quoted = || words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
        let text = (!words.is_empty() && length <= LONGEST).then(quoted)?;
        // A word that is shortened is no longer the word.
        words.iter().all(|word| place::is_whole(word)).then_some(text)
    }
}

/// A word as a shell takes it, on one line. It is fit for a terminal.
pub fn shell_word(word: &OsStr) -> String {
    place::quoted(Path::new(word))
}

fn add_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Whether a path flag gives all that another one gives. Rights hold for what is below a path too.
fn covers((wide, above): &(Access, PathBuf), (narrow, below): (Access, &Path)) -> bool {
    above != below && below.starts_with(above) && wide.and(narrow) == *wide
}

/// Whether an entry of a list of calls allows what another one allows.
pub fn covers_calls(wide: &str, narrow: &str) -> Option<bool> {
    let parse = |entry: &'_ str| list::parse(entry.as_bytes()).ok().map(|e| (e.target, e.restriction));
    let ((Target::Call(of_wide), wide), (Target::Call(of_narrow), narrow)) = (parse(wide)?, parse(narrow)?)
    else {
        return None;
    };
    let covers = match (wide, narrow) {
        (None, _) => true,
        (Some(wide), Some(narrow)) => flags::includes_restriction(wide, narrow),
        (Some(_), None) => false,
    };
    Some(of_wide == of_narrow && covers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::calls::{Unix, calls};
    use crate::plan::rules::Network;
    use crate::profile::{NetworkMode, Search};
    use sbx_policy::calls::{Arch, Call};
    use sbx_policy::interpret::Data;
    use sbx_policy::list::List;

    fn together(hints: &[&str]) -> String {
        let mut all = Together::default();
        for hint in hints {
            all.add(hint.split(' ').map(OsStr::new));
        }
        all.for_shell().unwrap_or_default()
    }

    #[test]
    fn each_flag_stands_once_and_none_that_another_covers() {
        for (hints, expected) in [
            (&[][..], ""),
            (&["--ro /a", "--ro /a"], "--ro /a"),
            (&["--ro /d/x", "--rw /d"], "--rw /d"),
            (&["--rw /d", "--ro /d/x/y", "--ro /de"], "--rw /d --ro /de"),
            (&["--rw /d/x", "--ro /d"], "--rw /d/x --ro /d"),
            (&["--rox /d/x", "--rw /d"], "--rox /d/x --rw /d"),
            (&["--rox /d", "--rw /d", "--ro /d/x"], "--rwx /d"),
            (&["--ro /a --ro /b", "--rw /b"], "--ro /a --rw /b"),
            (&["--unix /s", "--net host", "--unix /s"], "--net host --unix /s"),
            (
                &["--connect *:80", "--bind 1", "--connect *:443"],
                "--connect '*:80' --bind 1 --connect '*:443'",
            ),
            (&["--connect *:80", "--net host", "--bind 1", "--host-port 2"], "--net host"),
            (&["--connect 192.0.2.1:80", "--host-port 80"], "--connect 192.0.2.1:80 --host-port 80"),
            (&["--net host", "--net private"], "--net host"),
            (&["--profile network", "--profile network"], "--profile network"),
            (&["--profile network", "--profile write"], "--profile workspace --net host"),
            (&["--profile workspace", "--profile write"], "--profile workspace"),
            (&["--profile write --net host", "--profile workspace"], "--profile workspace --net host"),
            (&["--profile network", "--rw /d"], "--profile network --rw /d"),
            (&["--allow-calls mlock", "--allow-calls bpf", "--ro /a"], "--ro /a --allow-calls bpf:mlock"),
            (
                &["--allow-command /bin/a", "--allow-command /bin/b"],
                "--allow-command /bin/a --allow-command /bin/b",
            ),
            (&["--some-switch", "--some-switch"], "--some-switch"),
        ] {
            assert_eq!(together(hints), expected, "{hints:?}");
        }
    }

    #[test]
    fn a_list_of_calls_has_no_entry_without_effect() {
        let both = "--allow-calls ioctl[query]:ioctl[clone-file]";
        assert_eq!(
            together(&[both, "--allow-calls ioctl[query]"]),
            "--allow-calls 'ioctl[clone-file]:ioctl[query]'"
        );
        assert_eq!(together(&[both, "--allow-calls ioctl"]), "--allow-calls ioctl");
        // The profile allows this call with any arguments, or with some, and the flag must not take that away.
        let with = |hint| together(&["--profile write", hint]);
        assert_eq!(
            with("--allow-calls openat[no-setid]"),
            "--profile write --allow-calls 'openat[no-setid]'"
        );
        let list = together(&["--profile workspace", "--allow-calls clone[thread]"]);
        assert_eq!(list, "--profile workspace --allow-calls 'clone[no-namespace]'");
    }

    #[test]
    fn what_cannot_be_copied_is_left_out() {
        let hint = |length| together(&[&format!("--ro /{}", "a".repeat(length))]);
        assert!(hint(300).starts_with("--ro /aaa"));
        assert_eq!(hint(500), "");
        let many: Vec<String> = (0..200).map(|number| format!("--ro /directory-{number}")).collect();
        assert_eq!(together(&many.iter().map(String::as_str).collect::<Vec<_>>()), "");
        assert_eq!(together(&["--ro /it's"]), "--ro '/it'\\''s'");
        assert_eq!(together(&["--ro /\x1b[2J"]), "--ro $'/\\x1b[2J'");
    }

    /// What a profile lets through that a hint names, the widest one lets through, with the same network.
    #[test]
    fn the_widest_profile_allows_what_the_others_do() {
        let program = |name: &str, mode| {
            let profile = crate::profile::load(OsStr::new(name), &Search::default()).unwrap();
            let network = Network { mode, asked: true, ..Network::default() };
            let calls = calls(&profile, &network, false, Unix::ByPath, Arch::HOST).unwrap();
            calls.inside(false).strict_program().unwrap()
        };
        let lets = |program: &Vec<_>, call: Call, [first, second]: [u64; 2]| {
            let Some(nr) = call.number(Arch::HOST) else { return false };
            let data = Data { nr, arch: Arch::HOST.audit(), args: [first, second, 0, 0, 0, 0] };
            sbx_policy::interpret::lets_through(program, &data)
        };
        let arguments =
            (0..24).flat_map(|first| [0, 1, 2, 0x5401, 0x8000_0000].map(|second| [first, second]));
        let arguments: Vec<[u64; 2]> = arguments.collect();
        for mode in [NetworkMode::Host, NetworkMode::None] {
            let widest = program(WIDEST, mode);
            for narrow in ["network", "write"] {
                let program = program(narrow, mode);
                for (call, arguments) in
                    Call::all().flat_map(|call| arguments.iter().map(move |a| (call, *a)))
                {
                    let both = (lets(&program, call, arguments), lets(&widest, call, arguments));
                    assert!(both != (true, false), "{narrow}: {} {arguments:?}", call.name());
                }
            }
        }
    }

    #[test]
    fn the_list_is_one_that_sbx_takes() {
        let mut all = Together::default();
        all.add(["--profile", "workspace", "--allow-calls", "clone[thread]:bpf"].map(OsStr::new));
        let words = all.words();
        let list = words.last().unwrap();
        let profile = crate::profile::load(OsStr::new("workspace"), &Search::default()).unwrap();
        let network = Network::default();
        let mut calls = calls(&profile, &network, false, Unix::ByPath, Arch::HOST).unwrap();
        calls.add(List::Allow, "--allow-calls", list.as_encoded_bytes()).unwrap();
    }
}
