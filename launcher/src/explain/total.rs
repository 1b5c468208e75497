//! All refusals of a run in one sentence: how many of which kinds, and the flags that would allow them.

use crate::explain::hint::Together;
use sbx_client::report::{Fate, ViolationKind};
use sbx_policy::calls::{Call, Group};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Category {
    /// Executing a program.
    Command,
    /// A file or directory.
    File,
    /// Sockets.
    Network,
    /// Another process.
    Signal,
    /// Processes and threads.
    Process,
    /// Any other system call.
    Call,
}

/// Each of them, with its name for one and for several.
const CATEGORIES: [(Category, &str, &str); 6] = [
    (Category::File, "file", "files"),
    (Category::Network, "network call", "network calls"),
    (Category::Command, "command", "commands"),
    (Category::Process, "process", "processes"),
    (Category::Signal, "signal", "signals"),
    (Category::Call, "system call", "system calls"),
];

/// A refused call, as lines and reports have it.
#[derive(Clone, Debug)]
pub struct Refused<'r> {
    /// What happened to it.
    pub fate: Fate,
    /// What decided.
    pub kind: ViolationKind,
    /// The name of the call.
    pub call: &'r str,
    /// Its arguments, decoded.
    pub arguments: &'r str,
    /// Its path.
    pub path: Option<&'r [u8]>,
    /// Whether an address is among its arguments.
    pub has_address: bool,
    /// The rule that decides, in words.
    pub rule: &'r str,
    /// The key of the rule.
    pub key: &'r str,
    /// The words of the flags that would allow it, if some would.
    pub hint: Option<Vec<&'r OsStr>>,
    /// Whether there is something to know before they are used.
    pub is_noted: bool,
}

/// What makes two refusals the same to people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sameness {
    fate: Fate,
    /// The name of the call, where that matters.
    call: Option<String>,
    /// The path, or the arguments.
    object: Vec<u8>,
    rule: String,
    hint: Option<Vec<OsString>>,
}

impl Refused<'_> {
    /// What it is about.
    fn category(&self) -> Category {
        let in_group = |name: &str| {
            let group = Group::named(name.as_bytes());
            let call = Call::named(self.call.as_bytes());
            group.zip(call).is_some_and(|(group, call)| group.contains(call))
        };
        let of_network = || self.key.starts_with("network.") || in_group("@network-io");
        match self.call {
            "execve" | "execveat" => Category::Command,
            _ if self.key.starts_with("commands.") || self.key == "paths.execute" => Category::Command,
            _ if self.has_address || of_network() => Category::Network,
            "socketpair" => Category::Network,
            "fork" | "vfork" | "clone" | "clone3" => Category::Process,
            "kill" | "tkill" | "tgkill" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo" | "pidfd_send_signal" => {
                Category::Signal
            }
            // A call that changes what all paths mean is not about the one that it names.
            _ if self.path.is_some() && !in_group("@mount") => Category::File,
            _ => Category::Call,
        }
    }

    /// Whether its rule names a directory for all that is in it.
    pub fn is_of_many(&self) -> bool {
        self.key == "paths.protect"
    }

    /// Whether a flag would allow the call whatever its arguments are.
    fn opens_the_call(&self) -> bool {
        self.path.is_none() && self.hint.as_ref().is_some_and(|words| words.contains(&OsStr::new(self.call)))
    }

    /// What it shares with its repeats. A path that is refused is so whatever call names it, and however.
    pub fn sameness(&self) -> Sameness {
        let call = (self.kind != ViolationKind::Path).then(|| self.call.to_string());
        let object = self.path.filter(|_| !self.has_address).unwrap_or(self.arguments.as_bytes());
        let object = if self.is_of_many() || self.opens_the_call() { Vec::new() } else { object.to_vec() };
        let hint = self.hint.as_ref().map(|words| words.iter().map(OsString::from).collect());
        Sameness { fate: self.fate, call, object, rule: self.rule.to_string(), hint }
    }
}

/// The refusals of a run, counted. Repeats count once.
#[derive(Clone, Debug, Default)]
pub struct Total {
    seen: HashSet<Sameness>,
    refused: Vec<Category>,
    /// How many of them log mode let through.
    logged: usize,
    /// How many have no hint.
    helpless: usize,
    flags: Together,
    /// Whether a line says what there is to know before the flags are used.
    has_notes: bool,
}

impl Total {
    /// Counts a refusal. What was only noted is none.
    pub fn add(&mut self, refused: &Refused<'_>) {
        let none = matches!(refused.fate, Fate::Noted | Fate::Unknown);
        if none || !self.seen.insert(refused.sameness()) {
            return;
        }
        self.refused.push(refused.category());
        self.logged += usize::from(refused.fate == Fate::WouldBlock);
        match &refused.hint {
            Some(words) => {
                self.flags.add(words.iter().copied());
                self.has_notes |= refused.is_noted;
            }
            None => self.helpless += 1,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.refused.len()
    }

    /// How many there are and of what kinds. `more`: there were some that nobody counted.
    fn counts(&self, more: bool) -> String {
        let kinds: Vec<String> = CATEGORIES
            .iter()
            .filter_map(|(category, one, many)| {
                let count = self.refused.iter().filter(|refused| *refused == category).count();
                (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
            })
            .collect();
        let count = self.count();
        let logged = match self.logged {
            0 => String::new(),
            logged if logged == count => ", all let through".to_string(),
            logged => format!(", {logged} of them let through"),
        };
        let more = if more { "more than " } else { "" };
        let noun = if count == 1 { "refusal" } else { "refusals" };
        format!("{more}{count} {noun}{logged} ({})", kinds.join(", "))
    }

    /// The sentence. The flags are its end, so that they can be copied.
    pub fn line(&self, more: bool) -> String {
        let counts = self.counts(more);
        if self.helpless == self.count() {
            return format!("{counts}; no flag allows them");
        }
        let (without, which) = match self.helpless {
            0 if more => (String::new(), "these"),
            0 => (String::new(), "all"),
            helpless => (format!("; {helpless} cannot be allowed by a flag"), "the others"),
        };
        let notes = if self.has_notes { " (see above what else they open)" } else { "" };
        match self.flags.for_shell() {
            Some(flags) => format!("{counts}{without}; to allow {which}{notes}: {flags}"),
            None => format!("{counts}{without}; the flags for {which} are too long for a line: see --report"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<'r>(call: &'r str, key: &'r str, arguments: &'r str) -> Refused<'r> {
        Refused {
            fate: Fate::Blocked,
            kind: ViolationKind::Syscall,
            call,
            arguments,
            path: None,
            has_address: false,
            rule: "rule",
            key,
            hint: None,
            is_noted: false,
        }
    }

    fn file(path: &str) -> Refused<'_> {
        let (kind, path) = (ViolationKind::Path, Some(path.as_bytes()));
        Refused { kind, path, ..refused("openat", "paths.read", "") }
    }

    fn line(refusals: &[(&Refused<'_>, &str)], more: bool) -> String {
        let mut total = Total::default();
        for (refused, hint) in refusals {
            let hint = (!hint.is_empty()).then(|| hint.split(' ').map(OsStr::new).collect());
            total.add(&Refused { hint, ..(*refused).clone() });
        }
        total.line(more)
    }

    #[test]
    fn a_flag_for_a_whole_call_is_one_refusal_and_others_are_as_many_as_their_arguments() {
        let [first, second] = ["0x1000, -1", "0x2000, 3"].map(|args| refused("perf_event_open", "", args));
        for (hint, expected) in [
            ("--allow-calls perf_event_open", "1 refusal (1 system call); "),
            ("--allow-calls perf_event_open[x]", "2 refusals (2 system calls); "),
        ] {
            let said = line(&[(&first, hint), (&second, hint)], false);
            assert!(said.starts_with(expected), "{said}");
        }
    }

    #[test]
    fn the_sentence_sends_to_the_notes_of_the_lines() {
        let mut total = Total::default();
        for (path, is_noted) in [("/a", false), ("/", true)] {
            total.add(&Refused {
                hint: Some(vec![OsStr::new("--ro"), OsStr::new(path)]),
                is_noted,
                ..file(path)
            });
        }
        assert_eq!(
            total.line(false),
            "2 refusals (2 files); to allow all (see above what else they open): --ro /"
        );
    }

    #[test]
    fn the_sentence_says_how_many_of_what_and_how_to_allow_them() {
        let (a, b) = (&file("/a"), &file("/b"));
        let socket = &Refused { fate: Fate::Ended, ..refused("socket", "network.mode", "AF_INET") };
        let noted = &Refused { fate: Fate::Noted, ..refused("execve", "", "/x") };
        let logged = &Refused { fate: Fate::WouldBlock, ..refused("execve", "syscalls.default", "/x") };
        let (bpf, chroot) = (&refused("bpf", "", "1"), &refused("chroot", "", "/"));
        for (refusals, expected) in [
            (&[(a, "--ro /a"), (b, "--ro /a")][..], "2 refusals (2 files); to allow all: --ro /a"),
            (
                &[(a, "--ro /a"), (socket, "--net host"), (noted, "")],
                "2 refusals (1 file, 1 network call); to allow all: --net host --ro /a",
            ),
            (
                &[(a, "--ro /a"), (bpf, ""), (chroot, ""), (bpf, "")],
                "3 refusals (1 file, 2 system calls); 2 cannot be allowed by a flag; to allow the others: --ro /a",
            ),
            (&[(a, ""), (b, "")], "2 refusals (2 files); no flag allows them"),
            (
                &[(logged, "--profile workspace"), (a, "--ro /a")],
                "2 refusals, 1 of them let through (1 file, 1 command); to allow all: --profile workspace --ro /a",
            ),
            (&[(logged, "")], "1 refusal, all let through (1 command); no flag allows them"),
        ] {
            assert_eq!(line(refusals, false), expected);
        }
        let many: Vec<String> = (0..200).map(|number| format!("/directory-{number}")).collect();
        let hints: Vec<String> = many.iter().map(|path| format!("--ro {path}")).collect();
        let many: Vec<Refused<'_>> = many.iter().map(|path| file(path)).collect();
        let many: Vec<_> = many.iter().zip(&hints).map(|(refused, hint)| (refused, &**hint)).collect();
        let expected =
            "more than 200 refusals (200 files); the flags for these are too long for a line: see --report";
        assert_eq!(line(&many, true), expected);
    }

    #[test]
    fn a_repeat_is_the_same_refusal_of_the_same_object() {
        let open = |path| Refused { arguments: path, ..file("/real") };
        assert_eq!(open("link").sameness(), Refused { call: "stat", ..open("/real") }.sameness());
        assert_ne!(open("link").sameness(), file("/other").sameness());
        let protected = |path| Refused { key: "paths.protect", ..file(path) };
        assert_eq!(protected("/real").sameness(), protected("/other").sameness());
        assert_ne!(open("x").sameness(), Refused { rule: "may not change", ..open("x") }.sameness());
        assert_ne!(open("x").sameness(), Refused { fate: Fate::Ended, ..open("x") }.sameness());
        let hint = Some(vec![OsStr::new("--ro")]);
        assert_ne!(open("x").sameness(), Refused { hint, ..open("x") }.sameness());
        // Of a call that is refused, the call is what matters.
        let call = |call| Refused { path: Some(b"/x"), ..refused(call, "", "\"/x\", 1") };
        assert_ne!(call("mkdir").sameness(), call("rmdir").sameness());
        assert_eq!(call("mkdir").sameness(), Refused { arguments: "2", ..call("mkdir") }.sameness());
        let to = |port| Refused { has_address: true, path: Some(b"/x"), ..refused("connect", "", port) };
        assert_ne!(to("1").sameness(), to("2").sameness());
    }

    #[test]
    fn a_refusal_is_of_the_kind_that_people_would_say() {
        for (call, key, path, has_address, expected) in [
            ("openat", "paths.read", true, false, Category::File),
            ("openat", "syscalls.default", true, false, Category::File),
            ("execve", "syscalls.default", true, false, Category::Command),
            ("openat", "paths.execute", true, false, Category::Command),
            ("clone", "syscalls.default", false, false, Category::Process),
            ("socket", "network.mode", false, false, Category::Network),
            ("connect", "network.connect", false, true, Category::Network),
            ("kill", "", false, false, Category::Signal),
            ("chroot", "syscalls.default", true, false, Category::Call),
            ("bpf", "syscalls.default", false, false, Category::Call),
            ("no-such-call", "", false, false, Category::Call),
        ] {
            let path = path.then_some(&b"/x"[..]);
            let refused = Refused { path, has_address, ..refused(call, key, "") };
            assert_eq!(refused.category(), expected, "{call} {key}");
        }
    }
}
