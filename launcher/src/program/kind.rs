//! The answers: what one file is, and what a command therefore is.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::program::access::Quoted;
use crate::program::elf::OtherClass;
use crate::program::machine;

/// What one file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FileKind {
    /// Started by this system's own loader, which honours a preloaded library.
    Dynamic {
        /// The loader, as the file names it.
        #[serde(serialize_with = "lossy_path")]
        interpreter: PathBuf,
    },
    /// Brings everything along; nothing can be preloaded.
    Static,
    /// As [`FileKind::Static`], at an address of the kernel's choice.
    StaticPie,
    /// A shared object without a loader that is not marked as a program: an old static-pie, a copy of some
    /// loader, or a library that somebody made executable. Nothing can be preloaded.
    SharedObject,
    /// Started by a loader that is not this system's, or that others could have changed.
    ForeignLoader {
        /// The loader, as the file names it.
        #[serde(serialize_with = "lossy_path")]
        interpreter: PathBuf,
    },
    /// For another pointer size.
    OtherClass {
        /// Which one.
        class: OtherClass,
    },
    /// For another machine. Only an emulator registered with binfmt_misc could run it.
    OtherArchitecture {
        /// Its usual name.
        machine: String,
    },
    /// A text that another program reads.
    Script {
        /// That program, as the first line names it.
        #[serde(serialize_with = "lossy_path")]
        interpreter: PathBuf,
        /// The one argument that the first line may give it.
        #[serde(serialize_with = "lossy_argument")]
        argument: Option<OsString>,
    },
    /// The dynamic loader itself, which runs any program it is given.
    Loader,
    /// May be executed, but not read.
    Unreadable,
}

impl fmt::Display for FileKind {
    /// A phrase that follows "it is".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = Quoted::path;
        match self {
            Self::Dynamic { interpreter: by } => write!(f, "dynamically linked (loader {})", quoted(by)),
            Self::Static => f.write_str("statically linked"),
            Self::StaticPie => f.write_str("statically linked (static-pie)"),
            Self::SharedObject => f.write_str("a shared object that starts without a loader"),
            Self::ForeignLoader { interpreter: by } => {
                write!(f, "in need of the loader {}, which is not this system's own", quoted(by))
            }
            Self::OtherClass { class: OtherClass::Bits32 } => f.write_str("a 32-bit program"),
            Self::OtherClass { class: OtherClass::ShortPointers } => {
                write!(f, "an {} program with 32-bit pointers (x32, ILP32)", machine::native_name())
            }
            Self::OtherArchitecture { machine } => {
                write!(f, "a program for {machine}, while this system is {}", machine::native_name())
            }
            Self::Script { interpreter: by, argument: None } => write!(f, "a script for {}", quoted(by)),
            Self::Script { interpreter: by, argument: Some(argument) } => {
                write!(f, "a script for {} {}", quoted(by), Quoted(argument))
            }
            Self::Loader => f.write_str("the dynamic loader itself, which runs any program it is given"),
            Self::Unreadable => {
                f.write_str("executable but not readable, so nobody can tell how it is linked")
            }
        }
    }
}

/// One file in the chain from a command to the program that the kernel starts for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The file.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
}

/// The identity that an exec of the program would take on, were it not for no_new_privs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SetId {
    /// The owner, if the file is set-user-ID.
    pub user: Option<u32>,
    /// The group, if the file is set-group-ID.
    pub group: Option<u32>,
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.user, self.group) {
            (Some(user), Some(group)) => write!(f, "set-user-ID {user} and set-group-ID {group}"),
            (Some(user), None) => write!(f, "set-user-ID {user}"),
            (None, Some(group)) => write!(f, "set-group-ID {group}"),
            (None, None) => f.write_str("no set-ID"),
        }
    }
}

/// What a command is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The file that was asked about.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// That file, then the interpreter of each script before it. Never empty; only the last is no script.
    pub chain: Vec<Link>,
    /// Set-ID bits of the last file in the chain. The kernel ignores those of scripts.
    pub set_id: Option<SetId>,
    /// Whether the last file in the chain carries capabilities.
    pub file_capabilities: bool,
}

impl Program {
    /// The file that the kernel starts in the end.
    pub fn last(&self) -> Option<&Link> {
        self.chain.last()
    }

    /// The files that the kernel executes for it: itself, interpreters and the loader, in this order.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.chain.iter().map(|link| link.path.as_path()).chain(self.loader())
    }

    /// The loader that the kernel executes with it.
    pub fn loader(&self) -> Option<&Path> {
        match &self.last()?.kind {
            FileKind::Dynamic { interpreter } | FileKind::ForeignLoader { interpreter } => Some(interpreter),
            _ => None,
        }
    }

    /// Whether a preloaded library is sure to be loaded: a dynamic program for this machine, started by this
    /// system's loader, which has no reason to distrust the environment.
    ///
    /// Set-ID bits and capabilities are such a reason only where an exec can gain by them: under no_new_privs
    /// it cannot, and the loader then honours the preload of these files, too.
    #[cfg(test)]
    pub fn preloadable(&self) -> bool {
        let dynamic = self.last().is_some_and(|link| matches!(link.kind, FileKind::Dynamic { .. }));
        dynamic && self.set_id.is_none() && !self.file_capabilities
    }

    /// What it is, in words that follow its name and "is".
    pub fn describe(&self) -> String {
        let kinds: Vec<_> = self.chain.iter().map(|link| link.kind.to_string()).collect();
        let mut text = kinds.join(", which is ");
        if let Some(set_id) = self.set_id {
            text.push_str(&format!(", {set_id}"));
        }
        if self.file_capabilities {
            text.push_str(", with file capabilities");
        }
        text
    }
}

/// A path in JSON, which has no bytes: what is not UTF-8 becomes U+FFFD.
fn lossy_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn lossy_argument<S: Serializer>(argument: &Option<OsString>, serializer: S) -> Result<S::Ok, S::Error> {
    argument.as_ref().map(|argument| argument.to_string_lossy()).serialize(serializer)
}
