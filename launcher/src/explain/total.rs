//! All refusals of a run in one sentence: how many of which kinds, and the flags that would allow them.

use crate::explain::hint::Together;
use sbx_client::report::Fate;
use sbx_policy::calls::{Call, Group};
use std::ffi::OsStr;

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
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

impl Category {
    /// Of a refused call: its name, the key of the rule, and whether it names a path or an address.
    pub fn of(call: &str, key: Option<&str>, path: bool, address: bool) -> Category {
        let key = key.unwrap_or_default();
        let in_group = |name: &str| {
            let group = Group::named(name.as_bytes());
            let call = Call::named(call.as_bytes());
            group.zip(call).is_some_and(|(group, call)| group.contains(call))
        };
        match call {
            "execve" | "execveat" => Category::Command,
            _ if key.starts_with("commands.") || key == "paths.execute" => Category::Command,
            _ if address || key.starts_with("network.") || in_group("@network-io") => Category::Network,
            "socketpair" => Category::Network,
            "fork" | "vfork" | "clone" | "clone3" => Category::Process,
            "kill" | "tkill" | "tgkill" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo" | "pidfd_send_signal" => {
                Category::Signal
            }
            // A call that changes what all paths mean is not about the one that it names.
            _ if path && !in_group("@mount") => Category::File,
            _ => Category::Call,
        }
    }
}

/// The refusals of a run, counted.
#[derive(Clone, Debug, Default)]
pub struct Total {
    refused: Vec<Category>,
    /// How many of them log mode let through.
    logged: usize,
    /// How many have no hint.
    helpless: usize,
    flags: Together,
}

impl Total {
    /// Counts a refusal with the words of its hint. What was only noted is none.
    pub fn add<'w>(
        &mut self,
        category: Category,
        fate: Fate,
        hint: Option<impl IntoIterator<Item = &'w OsStr>>,
    ) {
        if matches!(fate, Fate::Noted | Fate::Unknown) {
            return;
        }
        self.refused.push(category);
        self.logged += usize::from(fate == Fate::WouldBlock);
        match hint {
            Some(words) => self.flags.add(words),
            None => self.helpless += 1,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.refused.len()
    }

    /// How many no flag would allow.
    pub fn helpless(&self) -> usize {
        self.helpless
    }

    /// The flags that allow the others.
    pub fn flags(&self) -> &Together {
        &self.flags
    }

    /// How many there are and of what kinds. `more`: there were some that nobody counted.
    pub fn counts(&self, more: bool) -> String {
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
        match self.flags.for_shell() {
            Some(flags) => format!("{counts}{without}; to allow {which}: {flags}"),
            None => format!("{counts}{without}; the flags for {which} are too long for a line: see --report"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A refusal, and the words of its hint.
    type Refusal<'h> = (Category, Fate, &'h str);

    fn total(refusals: &[(Category, Fate, &str)]) -> Total {
        let mut total = Total::default();
        for (category, fate, hint) in refusals {
            let words = (!hint.is_empty()).then(|| hint.split(' ').map(OsStr::new));
            total.add(*category, *fate, words);
        }
        total
    }

    #[test]
    fn the_sentence_says_how_many_of_what_and_how_to_allow_them() {
        use Category::{Call, Command, File, Network};
        let file = |hint| (File, Fate::Blocked, hint);
        let cases: [(&[Refusal<'_>], &str); 6] = [
            (&[file("--ro /a"), file("--ro /a")], "2 refusals (2 files); to allow all: --ro /a"),
            (
                &[file("--ro /a"), (Network, Fate::Ended, "--net host"), (Command, Fate::Noted, "")],
                "2 refusals (1 file, 1 network call); to allow all: --net host --ro /a",
            ),
            (
                &[file("--ro /a"), (Call, Fate::Blocked, ""), (Call, Fate::Blocked, "")],
                "3 refusals (1 file, 2 system calls); 2 cannot be allowed by a flag; to allow the others: --ro /a",
            ),
            (&[file(""), file("")], "2 refusals (2 files); no flag allows them"),
            (
                &[(Command, Fate::WouldBlock, "--profile workspace"), file("--ro /a")],
                "2 refusals, 1 of them let through (1 file, 1 command); to allow all: --profile workspace --ro /a",
            ),
            (
                &[(Call, Fate::WouldBlock, "")],
                "1 refusal, all let through (1 system call); no flag allows them",
            ),
        ];
        for (refusals, expected) in cases {
            assert_eq!(total(refusals).line(false), expected);
        }
        let many: Vec<String> = (0..200).map(|number| format!("--ro /directory-{number}")).collect();
        let many: Vec<_> = many.iter().map(|hint| file(hint)).collect();
        let line = total(&many).line(true);
        let expected =
            "more than 200 refusals (200 files); the flags for these are too long for a line: see --report";
        assert_eq!(line, expected);
    }

    #[test]
    fn a_refusal_is_of_the_kind_that_people_would_say() {
        for (call, key, path, address, expected) in [
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
            assert_eq!(Category::of(call, Some(key), path, address), expected, "{call} {key}");
        }
    }
}
