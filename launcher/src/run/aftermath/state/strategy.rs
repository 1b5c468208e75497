//! How git merges when it goes on: by a strategy and its options. git starts the program `git-merge-NAME` for a name
//! that it does not know, and takes a `NAME` with a slash from where it is started: from the working tree.

use super::LONGEST;
use crate::plan::namespaces::git_config::{Malformed, Setting, Settings};
use crate::sys::beneath::Directory;

/// The strategy of a rebase.
pub const STRATEGY: &str = "strategy";
/// Its options.
pub const OPTIONS: &str = "strategy_opts";
/// What a cherry-pick or revert goes on with: a configuration, which has both.
pub const SHEET: &str = "opts";

/// git's own strategies.
const OWN: [&[u8]; 6] = [b"ort", b"recursive", b"resolve", b"octopus", b"ours", b"subtree"];

/// Those that are scripts, and know no options. `git-merge-octopus` has the shell evaluate what stands behind an empty
/// one, and `git-merge-resolve` hands them to `git read-tree`, which writes a file by one. The others look at each.
const SCRIPTS: [&[u8]; 2] = [b"resolve", b"octopus"];

/// The options of the strategy that git takes by itself.
const OPTIONS_OF_ORT: [&[u8]; 15] = [
    b"ours",
    b"theirs",
    b"subtree",
    b"patience",
    b"histogram",
    b"diff-algorithm",
    b"ignore-space-change",
    b"ignore-all-space",
    b"ignore-space-at-eol",
    b"ignore-cr-at-eol",
    b"renormalize",
    b"no-renormalize",
    b"no-renames",
    b"find-renames",
    b"rename-threshold",
];

/// The variables that git writes into a sheet.
const KEYS: [&[u8]; 15] = [
    b"no-commit",
    b"edit",
    b"allow-empty",
    b"allow-empty-message",
    b"drop-redundant-commits",
    b"keep-redundant-commits",
    b"signoff",
    b"record-origin",
    b"allow-ff",
    b"mainline",
    b"strategy",
    b"gpg-sign",
    b"strategy-option",
    b"allow-rerere-auto",
    b"default-msg-cleanup",
];

/// Whether a text names one of git's own strategies.
pub fn is_own(text: &[u8]) -> bool {
    OWN.contains(&line(text))
}

/// Whether the strategy of a rebase is one that looks at its options, where there are any.
pub fn takes_options(state: &Directory) -> bool {
    let is_script = |text: Option<Vec<u8>>| text.is_some_and(|text| SCRIPTS.contains(&line(&text)));
    let is_blank = |text: Option<Vec<u8>>| text.is_none_or(|text| text.trim_ascii().is_empty());
    !state.read(STRATEGY.as_ref(), LONGEST).is_ok_and(is_script)
        || state.read(OPTIONS.as_ref(), LONGEST).is_ok_and(is_blank)
}

/// Whether a sheet is one that git writes.
pub fn is_sheet(text: &[u8]) -> bool {
    let Ok(all) = Settings::of(text).collect::<Result<Vec<Setting>, Malformed>>() else { return false };
    let is_known = |setting: &Setting| {
        setting.value.is_some()
            && setting.parts().is_some_and(|(section, below, name)| {
                section == b"options" && below.is_none() && KEYS.contains(&name)
            })
    };
    let of = |name: &'static str| {
        let own = all.iter().filter(move |setting| setting.is("options", name));
        own.filter_map(|setting| setting.value.as_deref())
    };
    // Without a strategy, git takes the one that the user's settings name (`pull.twohead`).
    let is_by_script = of("strategy").any(|name| SCRIPTS.contains(&name));
    let options_fit = match of("strategy").next() {
        Some(_) => !is_by_script || of("strategy-option").next().is_none(),
        None => of("strategy-option").all(is_option),
    };
    all.iter().all(is_known) && of("strategy").all(|name| OWN.contains(&name)) && options_fit
}

/// Whether a text is an option of git's usual strategy (git-merge(1)), which a script is none the worse for.
fn is_option(text: &[u8]) -> bool {
    let mut parts = text.splitn(2, |byte| *byte == b'=');
    let [name, value] = [(); 2].map(|()| parts.next().unwrap_or_default());
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" ._/%-".contains(byte);
    OPTIONS_OF_ORT.contains(&name) && value.iter().all(is_plain)
}

/// A line as git reads one: without its end.
fn line(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\n").map_or(text, |line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;

    #[test]
    fn a_strategy_is_one_of_gits_own() {
        for own in [&b"ort"[..], b"ort\n", b"subtree\r\n", b"octopus\n"] {
            assert!(is_own(own), "{own:?}");
        }
        for other in [&b""[..], b"\n", b"evil/x\n", b"ort\n\n", b" ort", b"ort/../x", b"ort\0", b"Ort"] {
            assert!(!is_own(other), "{other:?}");
        }
    }

    #[test]
    fn scripts_take_no_options() {
        let scratch = Scratch::create(None).unwrap();
        let state = Directory::open(scratch.path()).unwrap();
        let fits = |strategy: &str, options: &str| {
            fs::write(scratch.path().join(STRATEGY), strategy).unwrap();
            fs::write(scratch.path().join(OPTIONS), options).unwrap();
            takes_options(&state)
        };
        assert!(fits("ort\n", "\"theirs\" \"subtree=a b\"\n") && fits("recursive", " '--theirs'\n"));
        assert!(fits("octopus\n", "\n") && !fits("octopus\n", "\"\" \"a\"\n") && !fits("resolve", "a"));
        fs::remove_file(scratch.path().join(OPTIONS)).unwrap();
        assert!(takes_options(&state));
        fs::remove_file(scratch.path().join(STRATEGY)).unwrap();
        assert!(takes_options(&state));
    }

    #[test]
    fn a_sheet_has_what_git_writes() {
        let of_git = "[options]\n\tno-commit = true\n\tedit = false\n\tmainline = 1\n\tgpg-sign = ABC\n";
        for more in [
            "",
            "\tstrategy = ort\n",
            "\tstrategy = resolve\n",
            "\tstrategy-option = patience\n\tstrategy-option = subtree=a b\n",
            "\tstrategy = subtree\n\tstrategy-option = patience\n",
            "\tdefault-msg-cleanup = scissors\n\tallow-rerere-auto = true\n",
        ] {
            assert!(is_sheet(format!("{of_git}{more}").as_bytes()), "{more}");
        }
        assert!(is_sheet(b""));
        for more in [
            "\tstrategy = evil/x\n",
            "\tstrategy = ort\n\tstrategy = evil/x\n",
            "\tstrategy = evil/x\n\tstrategy = ort\n",
            "\tSTRATEGY = \"evil/\"x ; ort\n",
            "\tstrategy =\n",
            "\tstrategy\n",
            "\tstrategy = octopus\n\tstrategy-option =\n",
            "\tstrategy-option =\n",
            "\tstrategy-option = ours\n\tstrategy-option = \"`x`\"\n",
            "\tstrategy-option = index-output=x\n",
            "\tstrategy-option = subtree=$(x)\n",
            "\tother = true\n",
            "[options \"x\"]\n\tstrategy = ort\n",
            "[include]\n\tpath = x\n",
            "\tstrategy = \"ort\n",
        ] {
            assert!(!is_sheet(format!("{of_git}{more}").as_bytes()), "{more}");
        }
    }
}
