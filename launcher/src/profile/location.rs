//! Paths and values that begin with a variable: `${WORKSPACE}/target`.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use super::error::{Plain, hint, join};
use super::model::Text;

/// A variable that a path may begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// The directory that the command works in.
    Workspace,
    /// The user's home.
    Home,
    /// The run's scratch directory.
    Tmp,
    /// The workspace's private cache.
    Cache,
}

const VARIABLES: [(&str, Variable); 4] = [
    ("WORKSPACE", Variable::Workspace),
    ("HOME", Variable::Home),
    ("TMP", Variable::Tmp),
    ("CACHE", Variable::Cache),
];

impl Variable {
    /// The name, as in `${NAME}`.
    pub fn name(self) -> &'static str {
        VARIABLES.iter().find(|(_, variable)| *variable == self).map_or("", |(name, _)| name)
    }
}

/// What the variables stand for in one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variables<'a> {
    /// `${WORKSPACE}`.
    pub workspace: Option<&'a Path>,
    /// `${HOME}`.
    pub home: Option<&'a Path>,
    /// `${TMP}`.
    pub tmp: Option<&'a Path>,
    /// `${CACHE}`.
    pub cache: Option<&'a Path>,
}

impl<'a> Variables<'a> {
    /// What one stands for.
    pub fn get(&self, variable: Variable) -> Option<&'a Path> {
        match variable {
            Variable::Workspace => self.workspace,
            Variable::Home => self.home,
            Variable::Tmp => self.tmp,
            Variable::Cache => self.cache,
        }
    }
}

/// A path, or the value of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The variable at its beginning.
    pub base: Option<Variable>,
    /// The rest, with its `/`.
    pub rest: Cow<'static, str>,
}

impl Location {
    /// A value: any text, a variable only at its beginning.
    pub(crate) fn value(text: Text) -> Result<Location, String> {
        let location = match text.strip_prefix("${") {
            None => Location { base: None, rest: text.clone() },
            Some(tail) => {
                let (name, rest) =
                    tail.split_once('}').ok_or_else(|| format!("'{}' lacks its '}}'", Plain(&text)))?;
                let base = VARIABLES.iter().find(|(known, _)| *known == name).map(|(_, base)| *base);
                let known = || VARIABLES.iter().map(|(known, _)| *known);
                let base = base.ok_or_else(|| {
                    let near = hint(name, known());
                    format!("unknown variable '{}'{near}; there are {}", Plain(name), join(known()))
                })?;
                Location { base: Some(base), rest: tail_of(&text, text.len() - rest.len()) }
            }
        };
        if location.rest.as_bytes().windows(2).any(|pair| pair == b"${") {
            return Err(format!("'{}' has a variable that is not at its beginning", Plain(&text)));
        }
        if location.rest.as_bytes().contains(&0) {
            return Err(format!("'{}' contains a NUL", Plain(&text)));
        }
        Ok(location)
    }

    /// A path: absolute or below a variable, without `..`.
    pub(crate) fn path(text: Text) -> Result<Location, String> {
        let mut location = Location::value(text.clone())?;
        if text.starts_with('~') {
            return Err(format!("'{}' begins with '~'; write ${{HOME}}", Plain(&text)));
        }
        let whole = location.base.is_some() && location.rest.is_empty();
        if !whole && !location.rest.starts_with('/') {
            return Err(format!("'{}' is neither absolute nor below a variable", Plain(&text)));
        }
        if location.rest.as_bytes().split(|b| *b == b'/').any(|part| part == b".." || part == b".") {
            return Err(format!("'{}' has a part '.' or '..'; write the path without", Plain(&text)));
        }
        // `/usr/` and `/usr` are one path, and `/` remains.
        let trimmed = location.rest.trim_end_matches('/').len();
        let length = if location.base.is_none() { trimmed.max(1) } else { trimmed };
        match &mut location.rest {
            Cow::Borrowed(rest) => *rest = rest.get(..length).unwrap_or(rest),
            Cow::Owned(rest) => rest.truncate(length),
        }
        Ok(location)
    }

    /// The path or value in one run; `None` where its variable stands for nothing there.
    pub fn expand(&self, variables: &Variables) -> Option<OsString> {
        let mut whole = match self.base {
            Some(variable) => variables.get(variable)?.as_os_str().to_os_string(),
            None => OsString::new(),
        };
        whole.push(OsStr::new(&*self.rest));
        Some(whole)
    }

    /// The same as a path.
    pub fn expand_path(&self, variables: &Variables) -> Option<PathBuf> {
        self.expand(variables).map(PathBuf::from)
    }
}

/// What of a text begins at `start`, without a copy where it is part of a built-in document.
fn tail_of(text: &Text, start: usize) -> Text {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(start..).unwrap_or("")),
        Cow::Owned(text) => Cow::Owned(text.get(start..).unwrap_or("").to_string()),
    }
}

impl Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.base {
            Some(variable) => write!(f, "${{{}}}{}", variable.name(), self.rest),
            None => f.write_str(&self.rest),
        }
    }
}
