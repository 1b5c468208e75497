//! Values of a profile, each with the profile and key that it comes from.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Something that many entries share: part of the program for the built-in profiles, else counted.
pub enum Shared<T: ?Sized + 'static> {
    /// Part of the program.
    Fixed(&'static T),
    /// Read from a file or from the command line.
    Counted(Arc<T>),
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        match self {
            Shared::Fixed(value) => Shared::Fixed(value),
            Shared::Counted(value) => Shared::Counted(Arc::clone(value)),
        }
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Shared::Fixed(value) => value,
            Shared::Counted(value) => value,
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Shared<T> {
        Shared::Counted(Arc::new(value))
    }
}

/// A text: part of the program, or a copy.
pub type Text = Cow<'static, str>;

/// A list: part of the program, or memory of its own.
pub type List<T> = Cow<'static, [T]>;

/// What an entry says about itself.
#[derive(Debug, Default)]
pub struct Note {
    /// The reason for it.
    pub why: Option<Text>,
    /// Whether the path may be missing.
    pub optional: bool,
    /// Whether the entry counts only where no credential is seen in the file.
    pub unless_credentials: bool,
}

impl From<Option<Text>> for Note {
    fn from(why: Option<Text>) -> Note {
        Note { why, ..Note::default() }
    }
}

/// Where an entry comes from.
#[derive(Debug)]
pub struct Origin {
    /// The profile's name, or the path of its file.
    pub profile: Shared<str>,
    /// Whether it is one of the built-in profiles.
    pub built_in: bool,
    /// Whether it is about a path that may be missing on this machine, as those of built-in profiles may.
    pub optional: bool,
    /// Whether it counts only where no credential is seen in the file.
    pub unless_credentials: bool,
    /// The key: `syscalls.allow`.
    pub key: &'static str,
    /// The place in the list, if the key is one.
    pub index: Option<usize>,
    /// The entry of a list of calls, as it is written.
    pub entry: Text,
    /// The reason that the profile gives.
    pub why: Option<Text>,
}

impl Origin {
    /// The key, and the place in its list: `syscalls.allow[3]`.
    pub fn place(&self) -> String {
        self.index.map_or(self.key.to_string(), |index| format!("{}[{index}]", self.key))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of profile '{}'", self.place(), self.profile)
    }
}

/// A value, and where it comes from.
#[derive(Clone, Debug)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// The profile and key.
    pub origin: Shared<Origin>,
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
