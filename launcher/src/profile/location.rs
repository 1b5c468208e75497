//! Paths and values that begin with a variable: `${WORKSPACE}/target`.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use crate::profile::error::{Mistake, Plain};
use crate::profile::moved::Moved;
use crate::profile::origin::Text;
use crate::profile::words::Variable;

/// The paths that the variables stand for in one run.
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
    /// What variables of the environment put elsewhere.
    pub moved: &'a [Moved],
}

impl<'a> Variables<'a> {
    /// The path that one stands for.
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
    pub rest: Text,
}

impl Location {
    /// A value: any text, with a variable only at its beginning.
    pub(crate) fn value(text: Text) -> Result<Location, Mistake> {
        let (base, rest) = match text.strip_prefix("${") {
            None => (None, text.to_string()),
            Some(tail) => {
                let (name, rest) =
                    tail.split_once('}').ok_or_else(|| format!("'{}' lacks its '}}'", Plain(&text)))?;
                let known = Variable::WORDS.iter().find(|(known, _)| *known == name);
                let names: Vec<_> = Variable::WORDS.iter().map(|(known, _)| *known).collect();
                let unknown = || Mistake::unknown("variable", name, &names, "there are");
                (Some(known.ok_or_else(unknown)?.1), rest.to_string())
            }
        };
        if rest.contains("${") {
            return Err(format!("'{}' has a variable that is not at its beginning", Plain(&text)).into());
        }
        if rest.contains('\0') {
            return Err(format!("'{}' contains a NUL", Plain(&text)).into());
        }
        Ok(Location { base, rest: rest.into() })
    }

    /// A path: absolute or below a variable, without `..`.
    pub(crate) fn path(text: Text) -> Result<Location, Mistake> {
        let Location { base, rest } = Location::value(text.clone())?;
        let wrong = |what: &str| Err(format!("'{}' {what}", Plain(&text)).into());
        if text.starts_with('~') {
            return wrong("begins with '~'; write ${HOME}");
        }
        if !rest.starts_with('/') && (base.is_none() || !rest.is_empty()) {
            return wrong("is neither absolute nor below a variable");
        }
        if rest.split('/').any(|part| matches!(part, "." | "..")) {
            return wrong("has a part '.' or '..'; write the path without");
        }
        // `/usr/` and `/usr` are one path, and `/` remains.
        let trimmed = rest.trim_end_matches('/');
        let rest = if trimmed.is_empty() && base.is_none() { "/" } else { trimmed };
        Ok(Location { base, rest: rest.to_string().into() })
    }

    /// Whether it is the whole file system.
    pub fn is_root(&self) -> bool {
        self.base.is_none() && self.rest == "/"
    }

    /// Whether another path is this one or below it, wherever the variables lead. What one stands for is not known.
    pub fn holds(&self, other: &Location) -> bool {
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        self.is_root()
            || (self.base == other.base && other.rest.strip_prefix(&*self.rest).is_some_and(is_below))
    }

    /// The path or value in one run; `None` if its variable stands for nothing there.
    pub fn expand(&self, variables: &Variables) -> Option<OsString> {
        let base = match self.base {
            Some(variable) => variables.get(variable)?.as_os_str(),
            None => OsStr::new(""),
        };
        let mut whole = OsString::with_capacity(base.len() + self.rest.len());
        whole.push(base);
        whole.push(&*self.rest);
        Some(whole)
    }

    /// The same as a path.
    pub fn expand_path(&self, variables: &Variables) -> Option<PathBuf> {
        self.expand(variables).map(PathBuf::from)
    }

    /// Where variables of the environment put it instead.
    pub fn elsewhere(&self, variables: &Variables) -> impl Iterator<Item = PathBuf> {
        let is_of_home = self.base == Some(Variable::Home);
        variables.moved.iter().filter(move |_| is_of_home).filter_map(|moved| moved.place(&self.rest))
    }
}

impl Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.base {
            Some(variable) => write!(f, "${{{variable}}}{}", self.rest),
            None => f.write_str(&self.rest),
        }
    }
}
