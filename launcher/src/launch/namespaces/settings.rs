//! Configurations of git, as far as they lead to files that git executes or reads as a configuration (git-config(1)).

use crate::launch::files::tidy;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// More than any configuration or pointer has.
const LONGEST: u64 = 256 * 1024;

/// A file, as far as it is not too long. What is no file, or does not answer, is none.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let is_file = |meta: std::fs::Metadata| meta.is_file();
    path.metadata().ok().filter(|meta| meta.is_file())?;
    // It may have become a pipe, which nobody writes to.
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    file.metadata().is_ok_and(is_file).then_some(())?;
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The path that a text names, without what is blank around it.
pub fn path_in(text: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text.trim_ascii()))
}

/// A variable.
pub struct Setting {
    /// Without what stands in quotes; lower case.
    section: String,
    /// Lower case.
    name: String,
    /// Its value.
    pub value: OsString,
}

/// Where a variable leads.
#[derive(Debug, PartialEq, Eq)]
pub enum Leads {
    /// To a directory of programs.
    Hooks(PathBuf),
    /// To more of the configuration.
    More(PathBuf),
}

impl Setting {
    /// Whether this is the variable of that name.
    pub fn is(&self, section: &str, name: &str) -> bool {
        self.section == section && self.name == name
    }

    /// Whether it may say yes: git takes every number but zero for one.
    pub fn holds(&self) -> bool {
        !["false", "no", "off", "0"].iter().any(|no| self.value.eq_ignore_ascii_case(no))
    }

    /// Where it leads: hooks are meant from the top of the working tree, configurations from this one's directory.
    pub fn leads_to(&self, directory: &Path, top: &Path, home: Option<&Path>) -> Option<Leads> {
        let hooks = match (&*self.section, &*self.name) {
            ("core", "hookspath") => true,
            ("include" | "includeif", "path") => false,
            _ => return None,
        };
        let value = Path::new(&self.value);
        let path = match value.strip_prefix("~") {
            Ok(rest) => tidy(&home?.join(rest)),
            Err(_) => tidy(&if hooks { top } else { directory }.join(value)),
        };
        Some(if hooks { Leads::Hooks(path) } else { Leads::More(path) })
    }
}

/// The variables of a configuration.
pub fn settings(file: &Path) -> Vec<Setting> {
    parse(&read(file).unwrap_or_default())
}

/// Those of its text.
pub fn parse(text: &[u8]) -> Vec<Setting> {
    Reader::new(text).settings()
}

/// Reads a configuration as git does. Where git would refuse it all, what is behind the mistake counts too.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Reader<'a> {
        Reader { rest: text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text) }
    }

    /// The next character, the end of a line being one; nothing at the end.
    fn next(&mut self) -> Option<u8> {
        if let Some(rest) = self.rest.strip_prefix(b"\r\n") {
            self.rest = rest;
            return Some(b'\n');
        }
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip_while(&mut self, skipped: impl Fn(u8) -> bool) {
        let end = self.rest.iter().position(|byte| !skipped(*byte)).unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }

    fn settings(mut self) -> Vec<Setting> {
        let mut section = String::new();
        let mut settings = Vec::new();
        loop {
            self.skip_while(is_blank);
            match self.rest.first() {
                None => return settings,
                Some(b'[') => section = self.header().unwrap_or(section),
                Some(byte) if byte.is_ascii_alphabetic() => {
                    let name = self.word();
                    settings.extend(self.value().map(|value| Setting {
                        section: section.clone(),
                        name,
                        value,
                    }));
                }
                // A comment, or nothing that git knows.
                Some(_) => self.skip_while(|byte| byte != b'\n'),
            }
        }
    }

    /// A name of letters, digits and dashes; lower case.
    fn word(&mut self) -> String {
        let text = self.rest;
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let word = &text[..text.len() - self.rest.len()];
        String::from_utf8_lossy(word).to_ascii_lowercase()
    }

    /// `[section]`, `[section "part"]` or `[section.part]`: the section.
    fn header(&mut self) -> Option<String> {
        self.next();
        let name = self.word();
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
        if self.rest.first() != Some(&b']') {
            self.skip_while(|byte| byte != b'\n' && is_blank(byte));
            (self.next() == Some(b'"')).then_some(())?;
            loop {
                match self.next()? {
                    b'"' => break,
                    b'\n' => return None,
                    b'\\' => drop(self.next().filter(|byte| *byte != b'\n')?),
                    _ => {}
                }
            }
        }
        (self.next()? == b']').then_some(name)
    }

    /// What follows a name: nothing, which says yes, or `=` and the value.
    fn value(&mut self) -> Option<OsString> {
        self.skip_while(|byte| byte == b' ' || byte == b'\t');
        match self.next() {
            None | Some(b'\n') => Some(OsString::new()),
            Some(b'=') => self.text(),
            Some(_) => None,
        }
    }

    /// A value to the end of its line, which an escaped line feed is not, without quotes and comment.
    fn text(&mut self) -> Option<OsString> {
        let (mut value, mut quoted, mut length) = (Vec::new(), false, 0);
        while let Some(byte) = self.next() {
            match byte {
                b'\n' if quoted => return None,
                b'\n' => break,
                _ if is_blank(byte) && !quoted => {
                    // What is blank counts only if something follows.
                    if length > 0 {
                        value.push(byte);
                    }
                    continue;
                }
                b'#' | b';' if !quoted => {
                    self.skip_while(|byte| byte != b'\n');
                    continue;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.next()? {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(b'\x08'),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                _ => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        // git ends it there.
        let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
        value.truncate(end);
        Some(OsString::from_vec(value))
    }
}

/// What git takes for a blank, lines ends among it.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(text: &[u8]) -> Vec<Leads> {
        let (top, home) = (Path::new("/top"), Some(Path::new("/home")));
        parse(text).iter().filter_map(|s| s.leads_to(Path::new("/dir"), top, home)).collect()
    }

    #[test]
    fn what_leads_on_is_found_however_it_is_written() {
        let hooks = |path: &str| Leads::Hooks(path.into());
        for (text, expected) in [
            ("[core]\n\thooksPath = a", hooks("/top/a")),
            ("[CORE] HooksPath=a # ours", hooks("/top/a")),
            ("[core]\r\nhookspath = \"a b\" ; ours\r\n", hooks("/top/a b")),
            ("[core] hooksPath = a]b # ]", hooks("/top/a]b")),
            ("[other][core]hooksPath = a;b]", hooks("/top/a")),
            ("[core]\nhooksPath = a\\\n  b", hooks("/top/a  b")),
            ("[core]\nhooksPath = \"a\\tb\\\"\"c", hooks("/top/a\tb\"c")),
            ("[include]\npath = ~/x", Leads::More("/home/x".into())),
            ("[includeIf \"gitdir:~/a]b/\"] path = ../x", Leads::More("/x".into())),
            ("[includeIf \"a\\\"]b\"] path = x]y", Leads::More("/dir/x]y".into())),
        ] {
            let text = format!("[other]\n# hooksPath = y\n{text}\n[end]\nhooksPath = z\n");
            assert_eq!(leads(text.as_bytes()), [expected], "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        assert_eq!(leads("\u{feff}[core] hooksPath = a".as_bytes()), [Leads::Hooks("/top/a".into())]);
    }

    #[test]
    fn a_path_is_bytes() {
        let path = PathBuf::from(OsStr::from_bytes(b"/top/\xff\xc3"));
        assert_eq!(leads(b"[core] hooksPath = \xff\xc3"), [Leads::Hooks(path)]);
    }

    #[test]
    fn what_git_refuses_hides_nothing_behind_it() {
        for broken in ["[core", "[core x]", "1 = 2", "x y", "x = \"y", "x = \\y", "[core \"x\n\"]"] {
            let text = format!("{broken}\n[core]\nhooksPath = a\n");
            assert_eq!(leads(text.as_bytes()), [Leads::Hooks("/top/a".into())], "{text}");
        }
    }

    #[test]
    fn only_a_clear_no_says_no() {
        let says = |value: &str| parse(format!("[a] b{value}").as_bytes()).iter().all(Setting::holds);
        assert!(["", " = true", " = Yes", " = on", " = 1", " = 2"].into_iter().all(says));
        assert!(![" = false", " = No", " = off", " = 0"].into_iter().any(says));
    }
}
