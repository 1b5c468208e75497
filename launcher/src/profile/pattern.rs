//! Patterns of names, in which `*` matches any text.

use crate::profile::origin::Text;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// A pattern, with the letters that it needs. Every start asks two hundred patterns about each variable, and
/// most patterns need a letter that the name does not have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: Text,
    needed: u32,
}

/// A name that patterns are asked about, with the letters that it has.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    text: &'a [u8],
    there: u32,
}

/// The letters of a name or a pattern as a set of their lowest five bits, which are the same for both cases.
const fn letters(text: &[u8]) -> u32 {
    let (mut set, mut place) = (0, 0);
    while place < text.len() {
        if text[place] != b'*' {
            set |= 1 << (text[place] % 32);
        }
        place += 1;
    }
    set
}

impl<'a> Name<'a> {
    /// This name.
    pub const fn new(text: &'a [u8]) -> Name<'a> {
        Name { text, there: letters(text) }
    }
}

impl Pattern {
    /// A pattern that is known when `sbx` is built.
    pub const fn fixed(text: &'static str) -> Pattern {
        Pattern { text: Cow::Borrowed(text), needed: letters(text.as_bytes()) }
    }

    /// A pattern that was read.
    pub fn new(text: Text) -> Pattern {
        Pattern { needed: letters(text.as_bytes()), text }
    }

    /// Whether a name matches. Case does not count: `my_token` is as secret as `MY_TOKEN`.
    pub fn matches(&self, name: Name<'_>) -> bool {
        self.needed & !name.there == 0 && matches(self.text.as_bytes(), name.text)
    }

    /// Whether it matches all that another pattern matches: the `*` of that one as a letter too, which only a `*` does.
    pub fn covers(&self, other: &Pattern) -> bool {
        matches(self.text.as_bytes(), other.text.as_bytes())
    }

    /// Whether some name matches both.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        overlap(self.text.as_bytes(), other.text.as_bytes())
    }
}

impl Deref for Pattern {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut star) = ((0, 0), None);
    while at.1 < name.len() {
        match pattern.get(at.0) {
            Some(b'*') => star = Some((at.0 + 1, at.1)),
            Some(letter) if letter.eq_ignore_ascii_case(&name[at.1]) => {
                at = (at.0 + 1, at.1 + 1);
                continue;
            }
            // Back to the last star, which takes one more letter.
            _ => match &mut star {
                Some((_, end)) => *end += 1,
                None => return false,
            },
        }
        let Some((next, end)) = &mut star else { return false };
        match pattern.get(*next) {
            None => return true,
            Some(b'*') => (),
            // The star ends where the letter after it stands.
            Some(letter) => match name[*end..].iter().position(|other| other.eq_ignore_ascii_case(letter)) {
                Some(taken) => *end += taken,
                None => return false,
            },
        }
        at = (*next, *end);
    }
    pattern[at.0..].iter().all(|letter| *letter == b'*')
}

/// Whether two patterns have a name in common: of each, which of its places can be reached beside a place of the other.
fn overlap(one: &[u8], other: &[u8]) -> bool {
    let mut reached = vec![false; other.len() + 1];
    for place in 0..=one.len() {
        let mut row = vec![false; other.len() + 1];
        for beside in 0..=other.len() {
            let star = |text: &[u8], at: usize| text[at] == b'*';
            let is_start = place == 0 && beside == 0;
            let by_one = place > 0
                && reached[beside]
                && (star(one, place - 1) || beside > 0 && star(other, beside - 1));
            let by_other = beside > 0
                && row[beside - 1]
                && (star(other, beside - 1) || place > 0 && star(one, place - 1));
            let by_both = place > 0
                && beside > 0
                && reached[beside - 1]
                && one[place - 1].eq_ignore_ascii_case(&other[beside - 1]);
            row[beside] = is_start || by_one || by_other || by_both;
        }
        reached = row;
    }
    reached[other.len()]
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

    #[test]
    fn patterns_that_overlap_or_cover_others() {
        for (one, other, overlaps, covers) in [
            ("*TOKEN*", "GITHUB_*", true, false),
            ("AWS_*", "AWS_*", true, true),
            ("*SECRET*", "MY_SECRET_TOKEN", true, true),
            ("MY_SECRET_TOKEN", "*SECRET*", true, false),
            ("*_KEY", "LC_ALL", false, false),
            ("A*B", "B*A", false, false),
            ("A*C", "*B*", true, false),
            ("*", "NAME", true, true),
            ("", "*", true, false),
            ("PATH", "LD_*", false, false),
        ] {
            let (one, other) = (Pattern::fixed(one), Pattern::fixed(other));
            assert_eq!(one.overlaps(&other), overlaps, "{one} {other}");
            assert_eq!(other.overlaps(&one), overlaps, "{other} {one}");
            assert_eq!(one.covers(&other), covers, "{one} {other}");
        }
    }

    /// The definition of a match, without any shortcut.
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
            let known = Pattern::new(text.clone().into());
            for name in &names {
                assert_eq!(known.matches(Name::new(name)), means(&pattern, name), "{text} {name:?}");
                assert_eq!(matches(&pattern, name), means(&pattern, name), "{pattern:?} {name:?}");
            }
        }
    }
}
