//! Variables that do not pass, and that a failing command's words name.
//!
//! Nothing is refused there: a program that asks for a variable looks into its own memory, and finds none. Most
//! programs copy their environment, so not even a library before libc would see them ask. But where a command that
//! names a variable fails, and that variable is set outside, its user should know that it does not pass.

use crate::host::Host;
use crate::plan::Plan;
use crate::plan::environment::is_kept_back;
use crate::supervise::Ending;
use crate::text::escape;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Maximum number of words that are looked at, of bytes of one, and of variables that are named.
const WORDS: usize = 64;
const BYTES: usize = 1 << 16;
const MOST: usize = 3;
/// And where all are wanted.
const MOST_LISTED: usize = 20;
/// Shorter names are words of any language.
const SHORTEST: usize = 3;

/// The names.
pub struct Withheld(BTreeSet<OsString>);

impl Withheld {
    /// Of the variables of this process, those that the run does not get and that its words name.
    pub fn of(plan: &Plan, host: &Host) -> Withheld {
        let mut named = BTreeSet::new();
        for word in plan.arguments.iter().skip(1).take(WORDS) {
            let bytes = word.as_bytes().get(..BYTES.min(word.len())).unwrap_or_default();
            named.extend(names(bytes));
        }
        let is_warned = |name: &OsStr| {
            let name = name.to_string_lossy();
            plan.warnings.iter().any(|warning| warning.contains(&*name))
        };
        let withheld =
            not_passed(plan, host).filter(|name| named.contains(name.as_bytes()) && !is_warned(name));
        Withheld(withheld.cloned().collect())
    }

    /// What there is to say of a command that has ended.
    pub fn lines(&self, ending: Ending) -> Vec<String> {
        let failed = matches!(ending, Ending::Exited(status) if status != 0);
        let names = self.0.iter().filter(|_| failed).take(MOST);
        names
            .map(|name| {
                let dangerous = if is_kept_back(name) { " --allow-dangerous-env" } else { "" };
                let name = name.to_string_lossy();
                format!(
                    "the variable '{name}', which the command names, is set outside but not passed on; \
                     pass it with --env {name}{dangerous}"
                )
            })
            .collect()
    }
}

/// The variables of this process that the run does not get.
fn not_passed<'h>(plan: &Plan, host: &'h Host) -> impl Iterator<Item = &'h OsString> {
    let passes = |name: &OsStr| {
        let of_entry = |entry: &OsString| {
            entry.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        plan.environment.iter().any(of_entry)
    };
    // A shell sets `_` for each command, and some are for sbx.
    let is_of_command =
        |name: &OsStr| !matches!(name.as_bytes(), b"" | b"_") && !name.as_bytes().starts_with(b"SBX_");
    let names = host.environment.iter().map(|(name, _)| name);
    names.filter(move |name| is_of_command(name) && !passes(name))
}

/// Names the variables that the run does not get, for somebody who wants to know all.
pub fn all(plan: &Plan, host: &Host) -> Option<String> {
    let names: BTreeSet<&OsString> = not_passed(plan, host).collect();
    let named = names.iter().take(MOST_LISTED).map(|name| escape(name.as_bytes(), 60));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty())
        .then(|| format!("variables that are not passed on: {named}{more}; --env NAME passes one on"))
}

/// The words of a text that look like names of variables, and are given no value there.
fn names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_name = |word: &&[u8]| {
        word.len() >= SHORTEST
            && word.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
            && !word[0].is_ascii_digit()
    };
    let is_set = move |word: &[u8]| {
        text.windows(word.len() + 1).any(|window| window.split_last() == Some((&b'=', word)))
    };
    text.split(move |byte| !is_of_name(byte)).filter(is_name).filter(move |word| !is_set(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        names(text.as_bytes()).map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    #[test]
    fn names_of_variables_are_found_wherever_they_stand() {
        assert_eq!(found("test -n \"$API_TOKEN\""), ["API_TOKEN"]);
        assert_eq!(found("process.exit(process.env.GH_TOKEN ? 0 : 1)"), ["GH_TOKEN"]);
        assert_eq!(found("os.environ[\"DATABASE_URL\"] ${HTTP2_HOST:-x}"), ["DATABASE_URL", "HTTP2_HOST"]);
        assert_eq!(found("MODE"), ["MODE"]);
    }

    #[test]
    fn what_the_command_sets_itself_and_other_words_are_none() {
        assert!(found("MODE=fast; echo $MODE").is_empty());
        assert!(found("Mode mode OK 404 -I x").is_empty());
    }
}
