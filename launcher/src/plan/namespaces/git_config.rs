//! Configurations of git (git-config(1)): read as git reads them, to the byte.

use crate::sys::account;
use crate::sys::file;
use crate::sys::path::says_missing;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// More than any configuration or pointer has.
pub const LONGEST: u64 = 256 * 1024;

/// A text file. What is no file, does not answer, or is too long, is none.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    look(path).ok().flatten()
}

/// The same; an error where there is a file that cannot be read, or that is too long.
fn look(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match file::read_regular(path, LONGEST) {
        Ok(text) => Ok(Some(text)),
        Err(error) if says_missing(&error) || error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        Err(error) => Err(error),
    }
}

/// The configurations of a user with this home directory.
pub fn of_user(home: &Path) -> [PathBuf; 2] {
    [".gitconfig", ".config/git/config"].map(|name| home.join(name))
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// As git calls it: `section.name` or `section.subsection.name`, lower case but for the subsection.
    pub key: Vec<u8>,
    /// Its value; without one it says yes.
    pub value: Option<Vec<u8>>,
    /// How it stands in the file, from its name on.
    pub written: Vec<u8>,
}

/// Section, subsection and name of a variable.
type Parts<'s> = (&'s [u8], Option<&'s [u8]>, &'s [u8]);

/// Where a variable leads.
#[derive(Debug, PartialEq, Eq)]
pub enum Leads {
    /// To a directory of programs.
    Hooks(PathBuf),
    /// To one in each working tree that the configuration is about.
    HooksOfTop(PathBuf),
    /// To more of the configuration.
    More(PathBuf),
}

impl Setting {
    /// Section, subsection and name; `None` for a variable that stands in no section.
    pub fn parts(&self) -> Option<Parts<'_>> {
        let first = self.key.iter().position(|byte| *byte == b'.')?;
        let last = self.key.iter().rposition(|byte| *byte == b'.')?;
        Some((&self.key[..first], self.key.get(first + 1..last), &self.key[last + 1..]))
    }

    /// Whether this is the variable of that name, whatever the subsection.
    pub fn is(&self, section: &str, name: &str) -> bool {
        self.parts().is_some_and(|(own, _, last)| own == section.as_bytes() && last == name.as_bytes())
    }

    /// Whether it may say yes: git takes every number but zero for one.
    pub fn holds(&self) -> bool {
        let no = |value: &Vec<u8>| {
            ["false", "no", "off", "0"].iter().any(|no| value.eq_ignore_ascii_case(no.as_bytes()))
        };
        !self.value.as_ref().is_some_and(no)
    }

    /// Its value as a path.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.value.as_deref().unwrap_or_default()))
    }

    /// Where it leads: hooks are meant from the top of a working tree, configurations from this one's directory.
    pub fn leads_to(&self, directory: &Path, home: Option<&Path>) -> Option<Leads> {
        let hooks = match self.parts()? {
            (b"core", _, b"hookspath") => true,
            (b"include" | b"includeif", _, b"path") => false,
            _ => return None,
        };
        let named = expanded(self.path(), home)?;
        Some(match hooks {
            true if named.is_relative() => Leads::HooksOfTop(named),
            true => Leads::Hooks(named),
            false => Leads::More(directory.join(named)),
        })
    }
}

/// A path with `~` or `~USER` at its beginning replaced by that home directory.
fn expanded(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let mut parts = path.components();
    let Some(Component::Normal(first)) = parts.next() else { return Some(path.to_path_buf()) };
    match first.as_bytes() {
        b"~" => Some(home?.join(parts)),
        [b'~', user @ ..] => Some(account::home_of_name(user)?.join(parts)),
        _ => Some(path.to_path_buf()),
    }
}

/// The variables of a configuration. What git would stop at is passed over: somebody may mend it.
pub fn settings(file: &Path) -> io::Result<Vec<Setting>> {
    Ok(parse(&look(file)?.unwrap_or_default()))
}

/// Those of its text.
pub fn parse(text: &[u8]) -> Vec<Setting> {
    Settings::of(text).flatten().collect()
}

/// Something that git does not understand, and stops at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads variables one after the other.
pub struct Settings<'t> {
    text: &'t [u8],
    at: usize,
    section: Vec<u8>,
}

impl<'t> Settings<'t> {
    /// Those in a text.
    pub fn of(text: &'t [u8]) -> Settings<'t> {
        let mark = b"\xef\xbb\xbf";
        let at = if text.starts_with(mark) { mark.len() } else { 0 };
        Settings { text, at, section: Vec::new() }
    }

    /// The next byte, with the end of a line in either form as one; the end of the text ends a line too.
    fn next_byte(&mut self) -> u8 {
        let Some(byte) = self.text.get(self.at) else { return b'\n' };
        self.at += 1;
        if *byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return b'\n';
        }
        *byte
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Goes behind the end of the line, where it is not there already.
    fn skip_line(&mut self, last: u8) {
        let mut byte = last;
        while byte != b'\n' {
            byte = self.next_byte();
        }
    }

    /// What stands between brackets. With the byte at which it could not be understood, where that is so.
    fn header(&mut self) -> Result<(), u8> {
        self.section.clear();
        loop {
            match self.next_byte() {
                b']' => break,
                byte if is_space(byte) => {
                    self.subsection(byte)?;
                    break;
                }
                byte if is_of_name(byte) || byte == b'.' => self.section.push(byte.to_ascii_lowercase()),
                byte => return Err(byte),
            }
        }
        self.section.push(b'.');
        Ok(())
    }

    fn subsection(&mut self, space: u8) -> Result<(), u8> {
        let mut byte = space;
        while is_space(byte) {
            if byte == b'\n' {
                return Err(byte);
            }
            byte = self.next_byte();
        }
        if byte != b'"' {
            return Err(byte);
        }
        self.section.push(b'.');
        loop {
            byte = self.next_byte();
            match byte {
                b'"' => break,
                b'\\' => byte = self.next_byte(),
                _ => {}
            }
            if byte == b'\n' {
                return Err(byte);
            }
            self.section.push(byte);
        }
        match self.next_byte() {
            b']' => Ok(()),
            other => Err(other),
        }
    }

    fn variable(&mut self, first: u8) -> Result<Setting, u8> {
        let start = self.at - 1;
        let mut key = self.section.clone();
        let mut byte = first;
        while is_of_name(byte) {
            key.push(byte.to_ascii_lowercase());
            byte = self.next_byte();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next_byte();
        }
        let value = match byte {
            b'\n' => None,
            b'=' => Some(self.value()?),
            other => return Err(other),
        };
        let written = self.text.get(start..self.at).unwrap_or_default().trim_ascii_end().to_vec();
        Ok(Setting { key, value, written })
    }

    fn value(&mut self) -> Result<Vec<u8>, u8> {
        let (mut value, mut quoted, mut commented) = (Vec::new(), false, false);
        // So much of it is no space at its end.
        let mut length = 0;
        loop {
            let byte = self.next_byte();
            match byte {
                b'\n' if quoted => return Err(byte),
                b'\n' => break,
                _ if commented => continue,
                _ if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b';' | b'#' if !quoted => {
                    commented = true;
                    continue;
                }
                b'\\' => match self.next_byte() {
                    // At the very end of the text too.
                    b'\n' => continue,
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    other @ (b'\\' | b'"') => value.push(other),
                    other => return Err(other),
                },
                b'"' => quoted = !quoted,
                _ => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        // git ends it there.
        value.truncate(value.iter().position(|byte| *byte == 0).unwrap_or(value.len()));
        Ok(value)
    }
}

impl Iterator for Settings<'_> {
    type Item = Result<Setting, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_at_end() {
            let byte = self.next_byte();
            let refused = match byte {
                _ if is_space(byte) => continue,
                b'#' | b';' => {
                    self.skip_line(byte);
                    continue;
                }
                b'[' => match self.header() {
                    Ok(()) => continue,
                    Err(byte) => byte,
                },
                _ if byte.is_ascii_alphabetic() => match self.variable(byte) {
                    Ok(setting) => return Some(Ok(setting)),
                    Err(byte) => byte,
                },
                byte => byte,
            };
            self.skip_line(refused);
            return Some(Err(Malformed));
        }
        None
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use crate::testing::{Random, listed_by_git};
    use std::fs;

    fn leads(text: &[u8]) -> Vec<Leads> {
        let home = Some(Path::new("/home"));
        parse(text).iter().filter_map(|s| s.leads_to(Path::new("/dir"), home)).collect()
    }

    #[test]
    fn what_leads_on_is_found_however_it_is_written() {
        let hooks = |path: &str| Leads::HooksOfTop(path.into());
        for (text, expected) in [
            ("[core]\n\thooksPath = a", hooks("a")),
            ("[CORE] HooksPath=a # ours", hooks("a")),
            ("[core]\r\nhookspath = \"a b\" ; ours\r\n", hooks("a b")),
            ("[core] hooksPath = a]b # ]", hooks("a]b")),
            ("[other][core]hooksPath = a;b]", hooks("a")),
            ("[core]\nhooksPath = a\\\n  b", hooks("a  b")),
            ("[core]\nhooksPath = \"a\\tb\\\"\"c", hooks("a\tb\"c")),
            ("[core]\nhooksPath = ~/x", Leads::Hooks("/home/x".into())),
            ("[core]\nhooksPath = /x/../y", Leads::Hooks("/x/../y".into())),
            ("[core]\nhooksPath = ~root/x", Leads::Hooks("/root/x".into())),
            ("[include]\npath = ~/x", Leads::More("/home/x".into())),
            ("[includeIf \"gitdir:~/a]b/\"] path = ../x", Leads::More("/dir/../x".into())),
            ("[includeIf \"a\\\"]b\"] path = x]y", Leads::More("/dir/x]y".into())),
        ] {
            let text = format!("[other]\n# hooksPath = y\n{text}\n[end]\nhooksPath = z\n");
            assert_eq!(leads(text.as_bytes()), [expected], "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        assert_eq!(leads("\u{feff}[core] hooksPath = a".as_bytes()), [Leads::HooksOfTop("a".into())]);
    }

    #[test]
    fn a_path_is_bytes() {
        let path = PathBuf::from(OsStr::from_bytes(b"\xff\xc3"));
        assert_eq!(leads(b"[core] hooksPath = \xff\xc3"), [Leads::HooksOfTop(path)]);
    }

    #[test]
    fn what_git_refuses_hides_nothing_behind_it() {
        for broken in ["[core", "[core x]", "1 = 2", "x y", "x = \"y", "x = \\y", "[core \"x\n\"]"] {
            let text = format!("{broken}\n[core]\nhooksPath = a\n");
            assert_eq!(leads(text.as_bytes()), [Leads::HooksOfTop("a".into())], "{text}");
        }
    }

    #[test]
    fn a_configuration_that_is_too_long_is_not_taken_for_its_beginning() {
        let scratch = Scratch::create(None).unwrap();
        let file = scratch.path().join("config");
        let setting = "[core]\nhooksPath = a\n";
        let room = usize::try_from(LONGEST).unwrap() - setting.len();
        fs::write(&file, format!("{}{setting}", "#".repeat(room - 1) + "\n")).unwrap();
        assert_eq!(settings(&file).unwrap().len(), 1);
        fs::write(&file, format!("{}{setting}", "#".repeat(room) + "\n")).unwrap();
        assert_eq!(settings(&file).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn only_a_clear_no_says_no() {
        let says = |value: &str| parse(format!("[a] b{value}").as_bytes()).iter().all(Setting::holds);
        assert!(["", " = true", " = Yes", " = on", " = 1", " = 2"].into_iter().all(says));
        assert!(![" = false", " = No", " = off", " = 0"].into_iter().any(says));
    }

    /// What `git config --list -z` says: a key, a value behind a line end if there is one, and NUL.
    fn as_git_lists(text: &[u8]) -> Option<Vec<u8>> {
        let mut listed = Vec::new();
        for setting in Settings::of(text) {
            let setting = setting.ok()?;
            setting.parts()?;
            listed.extend(&setting.key);
            if let Some(value) = &setting.value {
                listed.push(b'\n');
                listed.extend(value);
            }
            listed.push(0);
        }
        Some(listed)
    }

    /// Texts of pieces that matter to the grammar, in an order that a generator of our own picks.
    #[test]
    fn git_reads_the_same() {
        const PIECES: [&str; 34] = [
            "[core]",
            "[core",
            "]",
            "[a.B.c]",
            "[branch \"x\"]",
            "[branch \"X\\\"y\"]",
            "[ \"z\"]",
            "[x \"a\\\nb\"]",
            "\n",
            "\n",
            "\r\n",
            "\r",
            " ",
            "\t",
            "name",
            "Fs-Monitor",
            "=",
            " = ",
            "\"",
            "\\",
            "\\\n",
            "\\n",
            "\\t",
            "\\x",
            "#",
            ";",
            "value",
            "a b",
            "é",
            ".",
            "1",
            "-",
            "\u{feff}",
            "\\\r\n",
        ];
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let mut pick = |count: usize| random.below(count);
        let rounds = std::env::var("SBX_ROUNDS").map_or(300, |text| text.parse().unwrap());
        for _ in 0..rounds {
            let mut text = String::from(["", "[core]\n", "\u{feff}[core]\n", "[s]a=b\n"][pick(4)]);
            (0..pick(14)).for_each(|_| text.push_str(PIECES[pick(PIECES.len())]));
            let Some(git) = listed_by_git(text.as_bytes()) else { return };
            let expected = git.status.success().then_some(git.stdout);
            // With a variable outside of all sections git stops or goes on, by its version.
            let loose = Settings::of(text.as_bytes()).any(|s| s.is_ok_and(|s| s.parts().is_none()));
            if !loose {
                assert_eq!(as_git_lists(text.as_bytes()), expected, "{text:?}");
            }
        }
    }
}
