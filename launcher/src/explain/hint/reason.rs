//! What is said about a refusal: the parts, for a report, and the sentence that they make.

use crate::explain::hint::place;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

/// Why a call was refused, and what would allow it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reason {
    /// What decides; `None` where nothing refuses the call, and it is only noted.
    pub rule: Option<Rule>,
    /// The narrowest hint, where there is one.
    pub hint: Option<Hint>,
    /// Whether it fails outside too, so that the sandbox is not to blame. Reports have it, and no line is printed.
    pub fails_outside: bool,
    /// Whether programs do without it. Reports have it, and a line is printed where a program fails.
    pub is_done_without: bool,
}

/// What decides about a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// As a clause of a sentence.
    pub text: String,
    /// The profile that has it, if a profile has.
    pub profile: Option<String>,
    /// The profile's key, or the flag.
    pub key: Option<&'static str>,
}

/// Flags that would allow a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hint {
    /// The words, as they are passed to `sbx run`.
    pub flags: Vec<OsString>,
    /// What else there is to know before they are used.
    pub note: Option<&'static str>,
}

impl Reason {
    /// A rule, and what would allow the call, if something would.
    pub fn of(rule: Rule, hint: Option<Hint>) -> Reason {
        Reason { rule: Some(rule), hint, ..Reason::default() }
    }

    /// Of a set-user-ID program: no flag is of use to it, whatever else it is refused.
    #[must_use]
    pub fn without_rights(mut self) -> Reason {
        if let Some(rule) = &mut self.rule {
            rule.text.push_str("; this program is set-user-ID, and gains no rights in a sandbox");
        }
        Reason { hint: None, ..self }
    }

    /// Nobody's rule: it holds for every run.
    pub fn always(text: &str) -> Reason {
        Reason::of(Rule { text: text.to_string(), profile: None, key: None }, None)
    }
}

impl Hint {
    /// These words.
    pub fn of<const N: usize>(words: [&str; N]) -> Hint {
        Hint { flags: words.iter().map(OsString::from).collect(), note: None }
    }

    /// One flag and a path, after what is there.
    #[must_use]
    pub fn and(mut self, flag: &str, path: &Path) -> Hint {
        self.flags.extend([flag.into(), path.as_os_str().to_os_string()]);
        self
    }

    /// With something to know beforehand.
    #[must_use]
    pub fn noting(self, note: Option<&'static str>) -> Hint {
        Hint { note, ..self }
    }
}

impl fmt::Display for Reason {
    /// The alternate form (`{:#}`) marks what was inferred, not seen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rule) = &self.rule {
            f.write_str(&rule.text)?;
        }
        if f.alternate() {
            f.write_str(" (inferred)")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "; allow it with {hint}"),
            None => Ok(()),
        }
    }
}

/// As a shell takes it.
impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.flags.iter().map(|word| place::quoted(Path::new(word))).collect();
        f.write_str(&words.join(" "))?;
        match self.note {
            Some(note) => write!(f, " ({note})"),
            None => Ok(()),
        }
    }
}
