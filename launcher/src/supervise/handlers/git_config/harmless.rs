//! Which changes of a git configuration are harmless: such as name nothing that git executes, reads as more
//! of its configuration, or sends something to.
//!
//! Both texts are read by git's own rules. All that is not on the list below has to stand in the new text
//! as it does in the present one, to the byte and in the same order; whatever is on it, and new, has to be
//! plain.

use crate::plan::namespaces::{Malformed, Setting, Settings};
use crate::text::escape;
use std::collections::HashSet;
use std::fmt;

/// Why a new configuration is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Harm {
    /// It would change this variable.
    Variable(Vec<u8>),
    /// git itself would not read it, or would not read it the same way in each version.
    Unreadable,
}

/// As a reason.
impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Harm::Variable(key) => {
                let key = escape(key, 100);
                write!(
                    f,
                    "git acts on '{key}' outside the sandbox too, so no run may change it; run this command outside"
                )
            }
            Harm::Unreadable => f.write_str("git would not read this configuration"),
        }
    }
}

impl From<Malformed> for Harm {
    fn from(_: Malformed) -> Harm {
        Harm::Unreadable
    }
}

/// Whether a configuration may take the place of the present one.
pub fn check(present: &[u8], new: &[u8]) -> Result<(), Harm> {
    if new.contains(&0) {
        return Err(Harm::Unreadable);
    }
    let present = Settings::of(present).collect::<Result<Vec<Setting>, _>>()?;
    let new = Settings::of(new).collect::<Result<Vec<Setting>, _>>()?;
    let kept = |all: &[Setting]| -> Vec<Setting> {
        all.iter().filter(|setting| !may_vary(setting)).cloned().collect()
    };
    let (before, after) = (kept(&present), kept(&new));
    if before != after {
        // One that is new, or is gone, or has moved.
        let moved = before.iter().zip(&after).find(|(before, after)| before != after).map(|(_, after)| after);
        let changed = missing(&after, &before).or_else(|| missing(&before, &after)).or(moved);
        return Err(changed.map_or(Harm::Unreadable, |setting| Harm::Variable(setting.key.clone())));
    }
    let known: HashSet<&Setting> = present.iter().collect();
    let remotes: HashSet<&[u8]> = before.iter().filter_map(remote).collect();
    let mut fresh = new.iter().filter(|setting| may_vary(setting) && !known.contains(setting));
    match fresh.find(|setting| !is_harmless(setting, &remotes)) {
        Some(setting) => Err(Harm::Variable(setting.key.clone())),
        None => Ok(()),
    }
}

/// The first that the others do not have.
fn missing<'s>(some: &'s [Setting], others: &[Setting]) -> Option<&'s Setting> {
    let others: HashSet<&Setting> = others.iter().collect();
    some.iter().find(|setting| !others.contains(setting))
}

/// Variables that may be set, changed and removed, if they are then [`is_harmless`].
pub(super) fn may_vary(setting: &Setting) -> bool {
    match setting.parts() {
        Some((b"user", None, name)) => matches!(name, b"name" | b"email"),
        Some((b"pull", None, name)) => matches!(name, b"rebase" | b"ff"),
        Some((b"push", None, name)) => matches!(name, b"default" | b"autosetupremote" | b"followtags"),
        Some(_) if is_switch(setting) => true,
        Some((b"branch", Some(_), name)) => {
            matches!(name, b"remote" | b"pushremote" | b"merge" | b"rebase" | b"description")
        }
        Some((b"submodule", Some(_), name)) => {
            matches!(name, b"url" | b"active" | b"branch" | b"update" | b"ignore" | b"fetchrecursesubmodules")
        }
        _ => false,
    }
}

/// How git shows and stores things.
fn is_switch(setting: &Setting) -> bool {
    match setting.parts() {
        Some((b"core", None, name)) => matches!(name, b"autocrlf" | b"eol" | b"quotepath" | b"abbrev"),
        Some((b"diff", None, name)) => matches!(name, b"algorithm" | b"renames"),
        Some((b"merge", None, b"conflictstyle") | (b"rerere", None, b"enabled")) => true,
        Some((b"color", None, b"ui") | (b"init", None, b"defaultbranch") | (b"advice", None, _)) => true,
        // Git LFS writes its version before it does anything.
        Some((b"lfs", None, b"repositoryformatversion")) => true,
        _ => false,
    }
}

pub(super) fn is_harmless(setting: &Setting, remotes: &HashSet<&[u8]>) -> bool {
    let Some((section, subsection, name)) = setting.parts().filter(|_| is_written_plainly(setting)) else {
        return false;
    };
    let Some(value) = setting.value.as_deref() else { return name == b"active" };
    match (section, name) {
        _ if is_switch(setting) => value.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-'),
        (b"user", _) | (b"branch", b"description") => true,
        (b"push", b"default") => [&b"simple"[..], b"current", b"upstream", b"nothing"].contains(&value),
        (b"push", _) => is_yes_or_no(value),
        (b"branch", b"remote" | b"pushremote") => value == b"." || remotes.contains(value),
        (b"branch", b"merge") => value.starts_with(b"refs/"),
        (b"pull", _) | (b"branch", b"rebase") => {
            is_yes_or_no(value) || [&b"merges"[..], b"interactive", b"only"].contains(&value)
        }
        (b"submodule", b"url") => is_plain_url(value) && subsection.is_some_and(is_plain_name),
        (b"submodule", b"branch") => !value.starts_with(b"-"),
        (b"submodule", b"active") => is_yes_or_no(value),
        // A value that begins with `!` is a command.
        (b"submodule", b"update") => [&b"checkout"[..], b"rebase", b"merge", b"none"].contains(&value),
        (b"submodule", b"ignore") => [&b"all"[..], b"dirty", b"untracked", b"none"].contains(&value),
        (b"submodule", b"fetchrecursesubmodules") => is_yes_or_no(value) || value == b"on-demand",
        _ => false,
    }
}

/// No escapes: git writes none for any variable that is harmless. And no name that git, which hands it to a program of
/// its own, would take for an option there.
pub(super) fn is_written_plainly(setting: &Setting) -> bool {
    let plain = |text: &[u8]| text.iter().all(|byte| *byte >= b' ' && !matches!(byte, b'\\' | 0x7f));
    let subsection = setting.parts().and_then(|(_, subsection, _)| subsection);
    setting.written.iter().all(|byte| *byte == b'\t' || plain(&[*byte]))
        && subsection.is_none_or(|text| plain(text) && !text.contains(&b'"') && !text.starts_with(b"-"))
}

fn is_yes_or_no(value: &[u8]) -> bool {
    [&b"true"[..], b"false", b"yes", b"no", b"on", b"off", b"1", b"0"].contains(&value)
}

/// The remote that a variable makes. What is none is a place to git, to fetch from and to push to.
pub(super) fn remote(setting: &Setting) -> Option<&[u8]> {
    match setting.parts()? {
        (b"remote", name, b"url") => name,
        _ => None,
    }
}

/// Whether git takes it for a name, and not for a way out of its directory.
fn is_plain_name(name: &[u8]) -> bool {
    !name.is_empty() && name.split(|byte| *byte == b'/').all(|part| part != b"..")
}

/// A path, or an address by a transport of git's own: any other is a program, which gets the rest of it.
pub(super) fn is_plain_url(url: &[u8]) -> bool {
    const TRANSPORTS: [&[u8]; 5] = [b"https", b"http", b"ssh", b"git", b"file"];
    let at = |pattern: &[u8]| url.windows(pattern.len()).position(|part| part == pattern);
    if url.is_empty() || url.starts_with(b"-") || at(b"::").is_some() {
        return false;
    }
    match at(b"://") {
        // What follows could be read as an option by a program that makes the connection.
        Some(end) => TRANSPORTS.contains(&&url[..end]) && url.get(end + 3) != Some(&b'-'),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, listed_by_git};

    const PRESENT: &str = "[core]\n\tbare = false\n\tfsmonitor = false\n\
        [remote \"origin\"]\n\turl = https://example.org/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
        [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\
        [alias]\n\tlong = \"!f() { \\\n\techo; }; f\"\n\
        [include]\n\tpath = more\n";

    fn with(more: &str) -> Result<(), Harm> {
        check(PRESENT.as_bytes(), format!("{PRESENT}{more}").as_bytes())
    }

    #[test]
    fn what_names_nothing_to_execute_may_change() {
        for more in [
            "",
            "[core]\n",
            "[submodule \"a/b c\"]\n\turl = ../library\n\tactive = true\n\tupdate = rebase\n",
            "[submodule \"x\"]\n\tactive\n",
            "[submodule \"x\"]\n\turl = \"https://example.org/a;b\"\n",
            "[submodule \"x\"]\n\turl = git@example.org:x.git\n",
            "[branch \"topic\"]\n\tremote = .\n\tmerge = refs/heads/main\n",
            "[branch \"topic\"]\n\tremote = origin\n\trebase = merges\n",
            "[user]\n\tname = Some Body (é)\n\temail = some@example.org\n[pull]\n\tff = only\n",
            "[core]\n\tautocrlf = input\n[advice]\n\tdetachedHead = false\n[color]\n\tui = always\n",
            "[lfs]\n\trepositoryformatversion = 0\n",
            "[push]\n\tdefault = simple\n\tautoSetupRemote = true\n\tfollowTags\t= no\n",
            "[branch \"topic\"]\n\tdescription = what it is about\n",
            "# a comment\n; [core] fsmonitor = x \\\n\n",
        ] {
            assert_eq!(with(more), Ok(()), "{more}");
        }
        // Removed, and renamed.
        let renamed = PRESENT.replace("branch \"main\"", "branch \"new\"");
        assert_eq!(check(PRESENT.as_bytes(), renamed.as_bytes()), Ok(()));
        let removed = PRESENT.replace("\tremote = origin\n\tmerge = refs/heads/main\n", "");
        assert_eq!(check(PRESENT.as_bytes(), removed.as_bytes()), Ok(()));
    }

    #[test]
    fn what_leads_to_something_executed_may_not() {
        for more in [
            "[core]\n\tfsmonitor = touch ran\n",
            "[CORE] FsMonitor = touch ran\n",
            "[core]\n\tfsmonitor = \\\n touch ran\n",
            "[core]fsmonitor=touch ran",
            "[core]\n\thooksPath = hooks\n",
            "[core]\n\tsshCommand = x\n",
            "[core]\n\tpager = x\n",
            "[core]\n\teditor = x\n",
            "[core]\n\tworktree = ..\n",
            "[core \"x\"]\n\tfsmonitor = touch ran\n",
            "[alias]\n\tst = !touch ran\n",
            "[filter \"x\"]\n\tsmudge = x\n",
            "[diff \"x\"]\n\ttextconv = x\n",
            "[diff]\n\texternal = x\n",
            "[merge \"x\"]\n\tdriver = x\n",
            "[credential]\n\thelper = !x\n",
            "[include]\n\tpath = evil\n",
            "[includeIf \"gitdir:/\"]\n\tpath = evil\n",
            "[url \"ext::sh -c x\"]\n\tinsteadOf = https://\n",
            "[gpg]\n\tprogram = x\n",
            "[protocol \"ext\"]\n\tallow = always\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "[remote \"evil\"]\n\turl = https://example.com/\n",
            "[remote \"origin\"]\n\turl = https://example.com/\n",
            "[remote \"origin\"]\n\tuploadpack = x\n",
            "[submodule \"x\"]\n\tupdate = !touch ran\n",
            "[submodule \"x\"]\n\turl = ext::sh -c touch% ran\n",
            "[submodule \"x\"]\n\turl = foo://x\n",
            "[submodule \"x\"]\n\turl = -u./payload\n",
            "[submodule \"x\"]\n\turl = ssh://-oProxyCommand=x/y\n",
            "[submodule \"../x\"]\n\turl = y\n",
            "[submodule \"x\"]\n\turl = a\\nb\n",
            "[submodule \"x\"]\n\turl = a\\\n b\n",
            "[submodule \"x\"]\n\turl\n",
            "[submodule.x]\n\tupdate = !touch ran\n",
            "[branch \"main\"]\n\tremote = ext::sh -c x\n",
            "[branch \"main\"]\n\tremote = elsewhere\n",
            "[branch \"main\"]\n\tmergeOptions = --strategy=x\n",
            "[user]\n\tsigningKey = x\n",
            "[color]\n\tui = !x\n",
            "[color \"x\"]\n\tui = x\n",
            "[user \"x\"]\n\tname = y\n",
            "[user]\n\tname\n",
            "[push]\n\tdefault = matching\n",
            "[push]\n\tpushOption = x\n",
        ] {
            let Err(Harm::Variable(key)) = with(more) else { panic!("{more}: {:?}", with(more)) };
            assert!(!key.is_empty());
        }
        for more in [
            "[core",
            "fs monitor = x",
            "[user]\n\tname = \"x\n",
            "[user]\n\tname = \0\n",
            "[user]\n\tname = \\q\n",
        ] {
            assert_eq!(with(more), Err(Harm::Unreadable), "{more}");
        }
    }

    #[test]
    fn what_is_there_stays_as_it_is() {
        for (from, to) in [
            ("\tfsmonitor = false\n", ""),
            ("\tfsmonitor = false\n", "\tfsmonitor\n"),
            ("fsmonitor = false", "fsmonitor = \"false\""),
            ("[alias]\n", "[core]\n"),
            ("[include]\n", "[submodule \"x\"]\n"),
            ("\tpath = more\n", "\tpath = more\n\tpath = more\n"),
            ("[core]\n\tbare = false\n", "[core]\n\tbare = false\n[core \"x\"]\n"),
            (
                "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[alias]\n",
                "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
            ),
        ] {
            let new = PRESENT.replace(from, to);
            assert_ne!(new, PRESENT);
            assert!(check(PRESENT.as_bytes(), new.as_bytes()).is_err(), "{new}");
        }
        let first = "[include]\n\tpath = a\n\tpath = b\n";
        assert!(check(first.as_bytes(), b"[include]\n\tpath = b\n\tpath = a\n").is_err());
    }

    /// What git makes of a text: keys with their values.
    fn listed(text: &str) -> Option<Vec<String>> {
        let git = listed_by_git(text.as_bytes()).filter(|git| git.status.success())?;
        let out = String::from_utf8_lossy(&git.stdout).into_owned();
        Some(out.split_terminator('\0').map(str::to_string).collect())
    }

    /// Whatever is taken, git itself finds nothing new in it but what the list has: texts with pieces put
    /// in, or taken out, at random places.
    #[test]
    fn git_finds_no_harm_in_what_is_taken() {
        const PIECES: [&str; 30] = [
            "[core]\n",
            "[core]",
            "[branch \"x\"]\n",
            "[submodule \"s\"]",
            "[user]\n",
            "[alias]\n",
            "[user",
            "[User.x]",
            "]",
            "\tname = x\n",
            "\tupdate = !x\n",
            "\tupdate = none\n",
            "\tfsmonitor = x\n",
            "\tautocrlf = input\n",
            "\tremote = origin\n",
            "\tremote = ext::x\n",
            "\tmerge = refs/heads/x\n",
            "\turl = ../x\n",
            "\turl = ext::x\n",
            "\tname = \"",
            "\"",
            "\\\n",
            "\\",
            "\n",
            "\r",
            "\r\n",
            "#",
            ";",
            "=",
            "\u{feff}",
        ];
        let Some(before) = listed(PRESENT) else { return };
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let rounds = std::env::var("SBX_ROUNDS").map_or(3000, |text| text.parse().unwrap());
        let mut taken = 0;
        for _ in 0..rounds {
            let mut text = PRESENT.to_string();
            for _ in 0..=random.below(5) {
                let at = random.below(text.len() + 1);
                let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap();
                // At the beginning of a line more often than not.
                let at =
                    if random.below(3) > 0 { text[..at].rfind('\n').map_or(0, |end| end + 1) } else { at };
                if random.below(8) == 0 {
                    text.remove(at.min(text.len() - 1));
                } else {
                    text.insert_str(at, PIECES[random.below(PIECES.len())]);
                }
            }
            if check(PRESENT.as_bytes(), text.as_bytes()).is_err() {
                continue;
            }
            taken += 1;
            let Some(after) = listed(&text) else { panic!("git refuses {text:?}") };
            let kept = |all: &[String]| -> Vec<String> {
                let varies = |key: &str| {
                    ["user.", "branch.", "submodule.", "core.autocrlf"]
                        .iter()
                        .any(|start| key.starts_with(start))
                };
                all.iter().filter(|entry| !varies(entry)).cloned().collect()
            };
            assert_eq!(kept(&before), kept(&after), "{text:?}");
            for entry in after.iter().filter(|entry| !before.contains(entry)) {
                let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
                let last = key.rsplit('.').next().unwrap();
                let allowed = match key.split('.').next().unwrap() {
                    "user" => last == "name" && key == "user.name",
                    "branch" => {
                        (last == "remote" && ["origin", "."].contains(&value))
                            || (last == "merge" && value.starts_with("refs/"))
                    }
                    "submodule" => {
                        (last == "update" && value == "none") || (last == "url" && !value.contains("::"))
                    }
                    _ => key == "core.autocrlf",
                };
                assert!(allowed, "{entry:?} in {text:?}");
            }
        }
        assert!(taken > rounds / 50, "{taken}");
    }
}
