//! Single choices of a profile, and the words that stand for them.

use std::fmt;

/// `static`: the treatment of programs that never load the shim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaticMode {
    /// Refused with status 126.
    #[default]
    Block,
    /// Run under the guard alone, with a warning.
    Warn,
    /// Run under the guard alone. `allow` is another word for it.
    Confine,
}

/// `namespaces`: whether the run gets user, mount, pid, ipc and uts namespaces of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// If the machine allows it; if not, a message says so.
    Auto,
    /// Never.
    None,
}

/// The layers that confine a run, or could; `require` names the lowest that will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// System calls.
    Minimal,
    /// System calls and files.
    Standard,
    /// System calls, files and namespaces.
    Full,
}

impl Level {
    /// The level of these layers: path rules, TCP rules beside them, and namespaces.
    pub fn of(files: bool, tcp: bool, namespaces: bool) -> Level {
        match (files, tcp && namespaces) {
            (false, _) => Level::Minimal,
            (true, false) => Level::Standard,
            (true, true) => Level::Full,
        }
    }
}

/// `network.mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkMode {
    /// No internet sockets.
    #[default]
    None,
    /// The machine's own network.
    Host,
    /// TCP on the machine's network, and only to and from the listed ports (`allow`).
    Ports,
    /// A network of the run's own, with loopback only.
    Private,
    /// The same where the machine gives one, and none elsewhere.
    Loopback,
}

impl NetworkMode {
    /// Whether the machine's network is around the run, and the filter says which sockets of it may be made.
    pub fn is_kept_by_filter(self) -> bool {
        matches!(self, NetworkMode::None | NetworkMode::Ports)
    }
}

/// `home.mode`: what the home directory is in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HomeMode {
    /// The user's own. What no rule opens is refused.
    #[default]
    Closed,
    /// A directory of the run's own, kept for the next run in the same workspace under the same profile. What the rules
    /// open of the user's own is in it, and nothing else.
    Private,
    /// The same, removed when the run ends.
    Temporary,
}

/// `format`: how a file of settings is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SettingsFormat {
    /// git-config(1).
    Git,
    /// Lines of `key = value` under `[section]`s, as configparser of Python reads them.
    Ini,
    /// JSON.
    Json,
    /// Lines of `key=value`, as npm reads them.
    Npm,
    /// TOML.
    Toml,
    /// A strict part of YAML.
    Yaml,
}

/// `when_made`: what happens if something makes a protected path that did not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenMade {
    /// A placeholder keeps it from being made.
    #[default]
    Refuse,
    /// It is renamed at once. Enough for what programs outside do not act on at once, or without asking.
    SetAside,
}

/// A variable that a path may begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// The working directory of the command.
    Workspace,
    /// The user's home.
    Home,
    /// The run's scratch directory.
    Tmp,
    /// The workspace's private cache.
    Cache,
}

macro_rules! words {
    ($($type:ident { $($word:literal = $variant:ident,)* })*) => {$(
        impl $type {
            /// Every word, the preferred one of each choice first.
            pub(crate) const WORDS: &'static [(&'static str, $type)] = &[$(($word, $type::$variant)),*];

            /// As it is written in a profile.
            pub fn word(self) -> &'static str {
                Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    )*};
}

words! {
    StaticMode { "block" = Block, "warn" = Warn, "confine" = Confine, "allow" = Confine, }
    Namespaces { "auto" = Auto, "none" = None, }
    Level { "full" = Full, "standard" = Standard, "minimal" = Minimal, }
    NetworkMode { "none" = None, "host" = Host, "allow" = Ports, "private" = Private, "loopback" = Loopback, }
    HomeMode { "closed" = Closed, "private" = Private, "temporary" = Temporary, }
    SettingsFormat {
        "git" = Git, "ini" = Ini, "json" = Json, "npm" = Npm, "toml" = Toml, "yaml" = Yaml,
    }
    WhenMade { "refuse" = Refuse, "set-aside" = SetAside, }
    Variable { "WORKSPACE" = Workspace, "HOME" = Home, "TMP" = Tmp, "CACHE" = Cache, }
}
