//! Configurations of git, as far as they lead to files that git executes or reads as a configuration (git-config(1)).

use crate::launch::files::tidy;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// More than any configuration or pointer has.
const LONGEST: u64 = 256 * 1024;

/// A text file, as far as it is not too long. What is no file, or does not answer, is none.
pub fn read(path: &Path) -> Option<String> {
    let is_file = |meta: std::fs::Metadata| meta.is_file();
    path.metadata().ok().filter(|meta| meta.is_file())?;
    // It may have become a pipe, which nobody writes to.
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    file.metadata().is_ok_and(is_file).then_some(())?;
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A variable.
pub struct Setting {
    /// Without what stands in quotes; lower case.
    section: String,
    /// Lower case.
    name: String,
    /// Its value.
    pub value: String,
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

    /// Whether it says yes.
    pub fn holds(&self) -> bool {
        ["true", "yes", "on", "1", ""].contains(&self.value.to_ascii_lowercase().as_str())
    }

    /// Where it leads: hooks are meant from the top of the working tree, configurations from this one's directory.
    pub fn leads_to(&self, directory: &Path, top: &Path, home: Option<&Path>) -> Option<Leads> {
        let hooks = match (&*self.section, &*self.name) {
            ("core", "hookspath") => true,
            ("include" | "includeif", "path") => false,
            _ => return None,
        };
        let path = match self.value.strip_prefix("~/") {
            Some(rest) => home?.join(rest),
            None => tidy(&if hooks { top } else { directory }.join(&self.value)),
        };
        Some(if hooks { Leads::Hooks(path) } else { Leads::More(path) })
    }
}

/// The variables of a configuration, as far as they stand on one line.
pub fn settings(file: &Path) -> Vec<Setting> {
    let text = read(file).unwrap_or_default();
    let mut section = String::new();
    let mut settings = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim();
        if let Some((header, behind)) = rest.strip_prefix('[').and_then(|line| line.rsplit_once(']')) {
            let name = header.split([' ', '\t', '"', '.', ']']).next().unwrap_or_default();
            section = name.to_ascii_lowercase();
            rest = behind.trim();
        }
        // Without a value it says yes.
        let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
        let name = name.trim().to_ascii_lowercase();
        if !name.is_empty() && !name.starts_with(['#', ';']) {
            settings.push(Setting { section: section.clone(), name, value: value_of(value) });
        }
    }
    settings
}

/// What quotes and a comment leave of a value.
fn value_of(text: &str) -> String {
    let mut value = String::new();
    let mut quoted = false;
    let mut characters = text.trim().chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '\\' => value.extend(characters.next()),
            '#' | ';' if !quoted => break,
            other => value.push(other),
        }
    }
    value.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::scratch::Scratch;

    #[test]
    fn what_leads_on_is_found_however_it_is_written() {
        let scratch = Scratch::create(None).unwrap();
        let file = scratch.path().join("config");
        for (text, leads) in [
            ("[core]\n\thooksPath = a", Leads::Hooks("/top/a".into())),
            ("[CORE] HooksPath=a # ours", Leads::Hooks("/top/a".into())),
            ("[core]\nhookspath = \"a b\" ; ours", Leads::Hooks("/top/a b".into())),
            ("[include]\npath = ~/x", Leads::More("/home/x".into())),
            ("[includeIf \"gitdir:~/a]b/\"] path = ../x", Leads::More("/x".into())),
        ] {
            std::fs::write(&file, format!("[other]\n# hooksPath = y\n{text}\n[end]\nhooksPath = z\n"))
                .unwrap();
            let (top, home) = (Path::new("/top"), Some(Path::new("/home")));
            let found: Vec<Leads> =
                settings(&file).iter().filter_map(|s| s.leads_to(Path::new("/dir"), top, home)).collect();
            assert_eq!(found, [leads], "{text}");
        }
    }
}
