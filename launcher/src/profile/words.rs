//! The words that stand for single choices in a profile.

use super::model::{Level, Namespaces, NetworkMode, StaticMode};

pub(crate) const STATIC: [(&str, StaticMode); 4] = [
    ("block", StaticMode::Block),
    ("warn", StaticMode::Warn),
    ("allow", StaticMode::Allow),
    ("confine", StaticMode::Confine),
];
pub(crate) const NAMESPACES: [(&str, Namespaces); 2] =
    [("auto", Namespaces::Auto), ("none", Namespaces::None)];
pub(crate) const LEVELS: [(&str, Level); 3] =
    [("full", Level::Full), ("standard", Level::Standard), ("minimal", Level::Minimal)];
pub(crate) const MODES: [(&str, NetworkMode); 4] = [
    ("none", NetworkMode::None),
    ("host", NetworkMode::Host),
    ("allow", NetworkMode::Allow),
    ("private", NetworkMode::Private),
];

fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

impl StaticMode {
    /// As it is written in a profile.
    pub fn word(self) -> &'static str {
        word_of(&STATIC, self)
    }
}

impl Namespaces {
    /// As it is written in a profile.
    pub fn word(self) -> &'static str {
        word_of(&NAMESPACES, self)
    }
}

impl Level {
    /// As it is written in a profile.
    pub fn word(self) -> &'static str {
        word_of(&LEVELS, self)
    }
}

impl NetworkMode {
    /// As it is written in a profile.
    pub fn word(self) -> &'static str {
        word_of(&MODES, self)
    }
}
