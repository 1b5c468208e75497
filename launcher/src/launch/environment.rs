//! The environment that the command gets: what the profile passes on, what it sets, what the user adds.

use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use sbx_policy::env::{ACTION, ALLOW, DENY};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Variables that make a loader or an interpreter run other code than the command's own.
const DANGEROUS: [&str; 36] = [
    "LD_*",
    "DYLD_*",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "NODE_OPTIONS",
    "NODE_PATH",
    "RUBYOPT",
    "RUBYLIB",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "LUA_INIT*",
    "LUA_PATH*",
    "LUA_CPATH*",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "BASH_ENV",
    "ENV",
    "BASH_FUNC_*",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "LESSOPEN",
    "LESSCLOSE",
    "GIT_SSH*",
    "GIT_EXTERNAL_DIFF",
    "GIT_CONFIG_*",
    "SECCOMP_*",
    "SBX_SHIM_FD",
    "LL_*",
];

/// A variable named on the command line: with a value, or passed on with the one it has.
pub struct Named {
    /// Its name.
    pub name: OsString,
    /// Its value.
    pub value: Option<OsString>,
}

/// What decides about the environment.
pub struct Wishes<'a> {
    /// Patterns of names that are passed on.
    pub inherit: &'a [&'a str],
    /// Patterns of names that are not, whatever `inherit` says.
    pub deny: &'a [&'a str],
    /// Variables set by the profile.
    pub set: &'a [(OsString, OsString)],
    /// `--env`.
    pub named: &'a [Named],
    /// `--inherit-env`: pass on everything that is neither denied nor dangerous.
    pub inherit_all: bool,
    /// `--allow-dangerous-env`.
    pub allow_dangerous: bool,
}

/// Takes `K=V` or `K` apart.
pub fn named(text: &OsStr) -> Result<Named, Refusal> {
    let bytes = text.as_bytes();
    let (name, value) = match bytes.iter().position(|b| *b == b'=') {
        Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]).to_os_string())),
        None => (bytes, None),
    };
    if name.is_empty() {
        return Err(Refusal::new(format!(
            "cannot set '{}': a variable needs a name, as in --env NAME=value",
            shown(Path::new(text))
        )));
    }
    Ok(Named { name: OsStr::from_bytes(name).to_os_string(), value })
}

/// The command's environment.
pub fn build(
    host: impl Iterator<Item = (OsString, OsString)>,
    wishes: &Wishes<'_>,
) -> Result<BTreeMap<OsString, OsString>, Refusal> {
    let (inherit, deny) = (Patterns::new(wishes.inherit), Patterns::new(wishes.deny));
    let dangerous = Patterns::new(&DANGEROUS);
    let mut result = BTreeMap::new();
    // Of those that are not passed on, the ones that the user names.
    let mut others = Vec::new();
    for (name, value) in host {
        let wanted = wishes.inherit_all || inherit.any(&name);
        if wanted && !deny.any(&name) && !dangerous.any(&name) {
            result.insert(name, value);
        } else if wishes.named.iter().any(|named| named.name == name) {
            others.push((name, value));
        }
    }
    let of_host = |name: &OsStr, passed_on: &BTreeMap<OsString, OsString>| {
        let other = others.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value);
        other.or_else(|| passed_on.get(name)).cloned()
    };
    let named: Vec<Option<OsString>> = wishes
        .named
        .iter()
        .map(|named| named.value.clone().or_else(|| of_host(&named.name, &result)))
        .collect();
    // Programs break in odd ways without these.
    for (name, value) in [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("TERM", "dumb")] {
        result.entry(name.into()).or_insert_with(|| value.into());
    }
    result.extend(wishes.set.iter().cloned());
    for (Named { name, .. }, value) in wishes.named.iter().zip(named) {
        if dangerous.any(name) && !wishes.allow_dangerous {
            return Err(Refusal::new(format!(
                "cannot pass {} to the command: it makes programs load other code; add --allow-dangerous-env if that is meant",
                shown(Path::new(name))
            )));
        }
        if is_ours(name) {
            return Err(Refusal::new(format!(
                "cannot pass {} to the command: sbx sets it itself",
                shown(Path::new(name))
            )));
        }
        match value {
            Some(value) => drop(result.insert(name.clone(), value)),
            None => {
                return Err(Refusal::new(format!(
                    "cannot pass {} on: it is not set; give it a value with --env {0}=VALUE",
                    shown(Path::new(name))
                )));
            }
        }
    }
    Ok(result)
}

/// Patterns, each with the letters that it needs: every start asks a hundred of them about each variable that there is,
/// and most need a letter that the name does not have.
struct Patterns<'a>(Vec<(u32, &'a [u8])>);

/// The letters of a name or a pattern, told apart by their lowest five bits, in which capitals and small ones are alike.
fn letters(text: &[u8]) -> u32 {
    text.iter().filter(|letter| **letter != b'*').fold(0, |set, letter| set | 1 << (letter % 32))
}

impl<'a> Patterns<'a> {
    fn new(list: &[&'a str]) -> Self {
        Self(list.iter().map(|pattern| (letters(pattern.as_bytes()), pattern.as_bytes())).collect())
    }

    /// Whether any of them matches.
    fn any(&self, name: &OsStr) -> bool {
        let name = name.as_bytes();
        let there = letters(name);
        self.0.iter().any(|(needed, pattern)| needed & !there == 0 && matches(pattern, name))
    }
}

/// The shim's own variables carry the seal, and are never the user's.
fn is_ours(name: &OsStr) -> bool {
    [ALLOW, DENY, ACTION, "SBX_SHIM_FD"].iter().any(|ours| name == *ours)
}

/// As the `NAME=value` strings of an environment.
pub fn entries(environment: BTreeMap<OsString, OsString>) -> Vec<OsString> {
    let entry = |(name, value): (OsString, OsString)| {
        let mut bytes = name.into_vec();
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        OsString::from_vec(bytes)
    };
    environment.into_iter().map(entry).collect()
}

/// Whether a name matches a pattern in which `*` stands for anything. Case counts for nothing: `my_token` is as
/// much of a secret as `MY_TOKEN`.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Most patterns fall out here, and there are thousands of comparisons in each start. Setting this bit folds
    // letters, and confuses none with anything that matters.
    if let (Some(first), Some(letter)) = (pattern.first(), name.first())
        && *first != b'*'
        && first | 0x20 != letter | 0x20
    {
        return false;
    }
    let (mut at, mut star) = ((0, 0), None);
    while at.1 < name.len() {
        match pattern.get(at.0) {
            Some(b'*') => star = Some((at.0 + 1, at.1)),
            Some(letter) if letter.eq_ignore_ascii_case(&name[at.1]) => {
                at = (at.0 + 1, at.1 + 1);
                continue;
            }
            // Back to the last star, which takes one letter more.
            _ => match &mut star {
                Some((_, end)) => *end += 1,
                None => return false,
            },
        }
        let Some((next, end)) = &mut star else { return false };
        match pattern.get(*next) {
            None => return true,
            Some(b'*') => (),
            // It ends where the letter after it stands.
            Some(letter) => match name[*end..].iter().position(|other| other.eq_ignore_ascii_case(letter)) {
                Some(taken) => *end += taken,
                None => return false,
            },
        }
        at = (*next, *end);
    }
    pattern[at.0..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, yes) in [
            ("PATH", "PATH", true),
            ("PATH", "PATHS", false),
            ("LC_*", "LC_ALL", true),
            ("*_TOKEN", "GITHUB_TOKEN", true),
            ("*_TOKEN", "GITHUB_TOKENS", false),
            ("*SECRET*", "MY_SECRET_KEY", true),
            ("*SECRET*", "SECRET", true),
            ("*", "", true),
            ("*a*b", "xaxbxaxb", true),
            ("", "", true),
            ("*_TOKEN", "github_token", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), yes, "{pattern} {name}");
        }
    }

    /// What a pattern means, without haste.
    fn means(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, _) => name.is_empty(),
            (Some((b'*', rest)), _) => (0..=name.len()).any(|end| means(rest, &name[end..])),
            (Some((letter, rest)), Some((other, more))) => {
                letter.eq_ignore_ascii_case(other) && means(rest, more)
            }
            (Some(_), None) => false,
        }
    }

    #[test]
    fn every_short_pattern_matches_what_it_means() {
        fn texts(alphabet: &[u8], length: u32) -> Vec<Vec<u8>> {
            let of_length = |length| {
                (0..alphabet.len().pow(length)).map(move |number| {
                    (0..length)
                        .map(|place| alphabet[number / alphabet.len().pow(place) % alphabet.len()])
                        .collect()
                })
            };
            (0..=length).flat_map(of_length).collect()
        }
        let names = texts(b"aB_*", 4);
        for pattern in texts(b"Ab*", 6) {
            let text = String::from_utf8(pattern.clone()).unwrap();
            let patterns = Patterns::new(&[&text]);
            for name in &names {
                assert_eq!(patterns.any(OsStr::from_bytes(name)), means(&pattern, name), "{text} {name:?}");
                assert_eq!(matches(&pattern, name), means(&pattern, name), "{pattern:?} {name:?}");
            }
        }
    }

    fn wishes<'a>(inherit: &'a [&'a str], deny: &'a [&'a str], named: &'a [Named], all: bool) -> Wishes<'a> {
        Wishes { inherit, deny, set: &[], named, inherit_all: all, allow_dangerous: false }
    }

    fn host() -> impl Iterator<Item = (OsString, OsString)> {
        [("PATH", "/bin"), ("A_TOKEN", "s"), ("LD_PRELOAD", "x"), ("EDITOR", "vi")]
            .into_iter()
            .map(|(k, v)| (k.into(), v.into()))
    }

    #[test]
    fn secrets_and_hooks_stay_out() {
        let (inherit, deny) = (["PATH"], ["*_TOKEN"]);
        let names = |all| {
            let built = build(host(), &wishes(&inherit, &deny, &[], all)).unwrap();
            built.into_keys().map(|k| k.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["PATH", "TERM"]);
        assert_eq!(names(true), ["EDITOR", "PATH", "TERM"]);
    }

    #[test]
    fn the_user_can_name_a_secret_but_no_hook() {
        let secret = [named(OsStr::new("A_TOKEN")).unwrap()];
        assert!(
            build(host(), &wishes(&[], &[], &secret, false)).unwrap().contains_key(OsStr::new("A_TOKEN"))
        );
        let hook = [named(OsStr::new("LD_AUDIT=x")).unwrap()];
        assert!(build(host(), &wishes(&[], &[], &hook, false)).is_err());
        let missing = [named(OsStr::new("NOT_THERE")).unwrap()];
        assert!(build(host(), &wishes(&[], &[], &missing, false)).is_err());
        assert!(named(OsStr::new("=x")).is_err());
    }
}
