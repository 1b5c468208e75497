//! The syntax of units (systemd.syntax(7)): lines, sections and assignments.

use crate::profile::error::{Mistake, Plain, ProfileCause, nearest};
use crate::profile::foreign::systemd::directives::{Role, role};

/// Sections that say nothing about what processes may do.
const OTHERS: [&str; 5] = ["Unit", "Install", "Automount", "Timer", "Path"];

/// Sections about processes of other units, which `systemctl cat` prints beside a service.
const FOREIGN: [&str; 5] = ["Socket", "Mount", "Swap", "Slice", "Scope"];

/// One assignment of the section `[Service]`.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// The line that it begins in.
    pub line: usize,
    /// The name of the directive.
    pub name: String,
    /// What is assigned, without blanks around it.
    pub value: String,
}

impl Setting {
    /// `line 3: Name`.
    pub fn place(&self) -> String {
        format!("line {}: {}", self.line, Plain(&self.name))
    }

    /// A mistake here.
    pub fn wrong(&self, why: impl Into<Mistake>) -> ProfileCause {
        ProfileCause::Line { line: self.line, why: format!("{}: {}", Plain(&self.name), why.into()) }
    }
}

/// Whether a character is a blank to systemd. Others, like U+00A0, are part of a word.
pub fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// A text without blanks around it.
pub fn stripped(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// What stands between the blanks of a text that has neither quotes nor escapes.
pub fn bare_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_blank).filter(|word| !word.is_empty())
}

fn wrong(line: usize, why: impl ToString) -> ProfileCause {
    ProfileCause::Line { line, why: why.to_string() }
}

/// The assignments of the section `[Service]`, in their order. Several files of one unit may stand behind each other,
/// as `systemctl cat` prints them.
pub fn settings(text: &[u8]) -> Result<Vec<Setting>, ProfileCause> {
    let line_of = |end: usize| 1 + text[..end].iter().filter(|byte| **byte == b'\n').count();
    let words =
        std::str::from_utf8(text).map_err(|error| wrong(line_of(error.valid_up_to()), "it is no UTF-8"))?;
    if let Some(place) = words.find('\0') {
        return Err(wrong(line_of(place), "it has a NUL"));
    }
    let mut settings = Vec::new();
    let mut section: Option<Section> = None;
    let mut has_service = false;
    let words = words.strip_prefix('\u{feff}').unwrap_or(words);
    for (line, text) in logical_lines(words) {
        if let Some(rest) = text.strip_prefix('[') {
            let name = rest.strip_suffix(']').ok_or_else(|| {
                wrong(line, format!("'{}' is no section, as '[Service]' is one", Plain(&text)))
            })?;
            let found = Section::named(name, line)?;
            has_service |= found == Section::Service;
            section = Some(found);
            continue;
        }
        let Some((name, value)) = text.split_once('=') else {
            return Err(wrong(line, format!("'{}' is no assignment: the '=' is missing", Plain(&text))));
        };
        match section {
            None => return Err(wrong(line, "an assignment stands before the first section")),
            Some(Section::Foreign) => {}
            Some(Section::Other) => check_elsewhere(line, stripped(name))?,
            Some(Section::Service) => settings.push(Setting {
                line,
                name: stripped(name).to_string(),
                value: stripped(value).to_string(),
            }),
        }
    }
    if !has_service {
        return Err(wrong(1, "there is no section [Service], and only a service has a policy"));
    }
    Ok(settings)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Service,
    Foreign,
    Other,
}

/// Refuses a directive that takes something away, where systemd passes over it: what it says would be left out.
fn check_elsewhere(line: usize, name: &str) -> Result<(), ProfileCause> {
    match role(name) {
        Role::Read | Role::Lost(_) => {
            Err(wrong(line, format!("{}: it belongs into [Service], and says nothing here", Plain(name))))
        }
        Role::Held | Role::Other | Role::Unknown => Ok(()),
    }
}

impl Section {
    fn named(name: &str, line: usize) -> Result<Section, ProfileCause> {
        match name {
            "Service" => Ok(Section::Service),
            name if OTHERS.contains(&name) => Ok(Section::Other),
            name if FOREIGN.contains(&name) || name.starts_with("X-") => Ok(Section::Foreign),
            name => {
                let near = nearest(name, OTHERS.into_iter().chain(FOREIGN).chain(["Service"]));
                let near = near.map_or(String::new(), |near| format!(" (did you mean '{near}'?)"));
                Err(wrong(line, format!("unknown section '{}'{near}", Plain(name))))
            }
        }
    }
}

/// Lines without comments, those that go on joined with the next one; each with its number.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(lines_of(text)) {
        // Comments may also stand between the lines of one assignment.
        if line.trim_start_matches(is_blank).starts_with(['#', ';']) {
            continue;
        }
        let (start, mut whole) = open.take().unwrap_or((number, String::new()));
        match going_on(line) {
            Some(rest) => {
                whole.push_str(rest);
                whole.push(' ');
                open = Some((start, whole));
            }
            None => {
                whole.push_str(line);
                lines.push((start, whole));
            }
        }
    }
    lines.extend(open);
    let lines = lines.into_iter().map(|(start, whole)| (start, stripped(&whole).to_string()));
    lines.filter(|(_, line)| !line.is_empty()).collect()
}

/// The lines of a text. A LF or a CR ends one, and the two together end one as well.
fn lines_of(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.find(['\n', '\r']).unwrap_or(rest.len()));
        let ends = ["\r\n", "\n\r", "\n", "\r"];
        rest = ends.into_iter().find_map(|end| tail.strip_prefix(end)).unwrap_or("");
        lines.push(line);
    }
    lines
}

/// A line without the backslash at its very end, if the next line continues it. No other backslash may escape that one.
fn going_on(line: &str) -> Option<&str> {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    line.strip_suffix('\\').filter(|_| backslashes % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::foreign::systemd::words::words;

    fn read(text: &str) -> Vec<(usize, String, String)> {
        let settings = settings(text.as_bytes()).unwrap();
        settings.into_iter().map(|setting| (setting.line, setting.name, setting.value)).collect()
    }

    fn entry(line: usize, name: &str, value: &str) -> (usize, String, String) {
        (line, name.to_string(), value.to_string())
    }

    #[test]
    fn lines_go_on_and_sections_come_again() {
        let text = "[Unit]\nAfter=x\n# a comment\n[Service]\n ReadWritePaths = /a \\\n; in\n  /b\n\n[Install]\nA=b\n\
                    # /etc/x.conf\n[Service]\nUser=\n";
        assert_eq!(read(text), [entry(5, "ReadWritePaths", "/a    /b"), entry(13, "User", "")]);
    }

    #[test]
    fn a_line_goes_on_behind_its_last_backslash_alone() {
        let count = |value: &str| read(&format!("[Service]\nX={value}\nProtectHome=yes\n")).len();
        for value in ["a \\ ", "a \\\t", "a \\\u{a0}", "a \\\u{c}", r"x\\", r"a \\\\", "\\ \r"] {
            assert_eq!(count(value), 2, "{value:?}");
        }
        for value in ["a \\", r"a \\\", "a \\\r", "\\"] {
            assert_eq!(count(value), 1, "{value:?}");
        }
    }

    #[test]
    fn a_line_ends_where_systemd_ends_it() {
        let text = "[Service]\rA=b\r\n# c\rX=y\n\rC=d\\\r\ne\n\r\nE=f";
        let lines = [entry(2, "A", "b"), entry(4, "X", "y"), entry(5, "C", "d e"), entry(8, "E", "f")];
        assert_eq!(read(text), lines);
    }

    #[test]
    fn other_blanks_are_part_of_a_word() {
        for blank in ['\u{a0}', '\u{b}', '\u{c}', '\u{85}', '\u{2003}', '\u{3000}'] {
            let (name, value) = (format!("{blank}Y"), format!("{blank}/a{blank}/b{blank}"));
            let text = format!("[Service]\nX= {value}\t\n{name}=z\n");
            assert_eq!(read(&text), [entry(2, "X", &value), entry(3, &name, "z")], "{blank:?}");
            let setting = Setting { line: 1, name: "X".into(), value: format!("{value}\r\tc") };
            assert_eq!(words(&setting).unwrap(), [&*value, "c"], "{blank:?}");
            assert_eq!(bare_words(&setting.value).collect::<Vec<_>>(), [&*value, "c"], "{blank:?}");
        }
    }

    #[test]
    fn mistakes_have_a_line() {
        let wrong = |text: &[u8]| settings(text).unwrap_err().to_string();
        assert!(wrong(b"A=b\n").contains("line 1: an assignment stands before"));
        assert!(wrong(b"[Service]\nA\n").contains("line 2: 'A' is no assignment"));
        assert!(wrong(b"[Sevice]\n").contains("line 1: unknown section 'Sevice' (did you mean 'Service'?)"));
        assert!(wrong(b"[Unit]\n").contains("no section [Service]"));
        assert!(
            wrong(b"[Unit]\nProtectHome=yes\n").contains("line 2: ProtectHome: it belongs into [Service]")
        );
        assert!(settings(b"[Service]\n[Socket]\nProtectHome=yes\n").is_ok());
        assert!(wrong(b"[Service]\n\nA=\0\n").contains("line 3: it has a NUL"));
        assert!(wrong(b"[Service]\nA=\xff\n").contains("line 2: it is no UTF-8"));
    }
}
