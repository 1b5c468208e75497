//! The languages of policies: one row each.

use std::ffi::OsStr;

use sbx_policy::bpf::Insn;

use crate::profile::calls::DefaultAction;
use crate::profile::error::ProfileCause;
use crate::profile::foreign::meaning::Meaning;
use crate::profile::foreign::oci::Asked;
use crate::profile::foreign::{self, ImportError, Imported, Losses};
use crate::profile::foreign::{agents, bpf, landlock, oci, spo, systemd};
use crate::profile::location::Variables;
use crate::profile::model::Profile;

/// Reads a document. What the profile cannot say goes to the losses.
type Reader = fn(&[u8], &mut Losses) -> Result<Meaning, ProfileCause>;

/// Writes a document. What its language cannot say goes to the losses.
type Writer = fn(&Exported<'_>, &mut Losses) -> Vec<u8>;

/// A language.
#[derive(Debug)]
pub struct Language {
    /// The word for it on the command line.
    pub word: &'static str,
    /// What it is.
    pub about: &'static str,
    reader: Option<Reader>,
    writer: Option<Writer>,
}

/// What is to be written.
pub struct Exported<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// What a filter decides alone, for each call that it says something about.
    pub calls: &'a [Asked],
    /// What happens to all others.
    pub default: DefaultAction,
    /// The filter of a run, as far as it decides alone, for this machine.
    pub program: &'a [Insn],
}

/// All languages, in the order in which they are listed.
pub const LANGUAGES: [Language; 10] = [
    Language {
        word: "oci",
        about: "A seccomp filter as in OCI's runtime specification",
        reader: Some(oci::read),
        writer: Some(oci::export),
    },
    Language {
        word: "docker",
        about: "The same, for docker and podman run --security-opt seccomp=FILE",
        reader: Some(oci::read_docker),
        writer: Some(oci::export),
    },
    Language {
        word: "spo",
        about: "A SeccompProfile of Kubernetes' Security Profiles Operator, as JSON",
        reader: Some(spo::read),
        writer: Some(spo::write),
    },
    Language {
        word: "systemd",
        about: "A unit of systemd: its [Service] section",
        reader: Some(systemd::read),
        writer: Some(systemd::write),
    },
    Language {
        word: "landlock",
        about: "A policy of landlockconfig, as JSON",
        reader: None,
        writer: Some(landlock::write),
    },
    Language {
        word: "bpf",
        about: "The filter itself for this machine, as bwrap --seccomp FD takes it",
        reader: None,
        writer: Some(bpf::write),
    },
    Language {
        word: "srt",
        about: "Settings of @anthropic-ai/sandbox-runtime",
        reader: Some(agents::srt::read),
        writer: None,
    },
    Language {
        word: "claude",
        about: "Claude Code's settings.json: sandbox and permissions",
        reader: Some(agents::claude::read),
        writer: None,
    },
    Language {
        word: "codex",
        about: "Codex's config.toml: sandbox_mode or permissions",
        reader: Some(agents::codex::read),
        writer: None,
    },
    Language {
        word: "cursor",
        about: "Cursor's sandbox.json",
        reader: Some(agents::cursor::read),
        writer: None,
    },
];

impl Language {
    /// The language of this word.
    pub fn named(word: &str) -> Option<&'static Language> {
        LANGUAGES.iter().find(|language| language.word == word)
    }

    /// Whether a profile can be made of its documents.
    pub fn is_read(&self) -> bool {
        self.reader.is_some()
    }

    /// Whether profiles can be written in it.
    pub fn is_written(&self) -> bool {
        self.writer.is_some()
    }

    /// Makes a profile of a document, if profiles can be made of this language. `here` is what the variables stand for
    /// where that happens, as far as it is known.
    pub fn import(
        &self,
        file: &OsStr,
        text: &[u8],
        here: &Variables,
    ) -> Option<Result<Imported, ImportError>> {
        let made = |reader: Reader| {
            let mut losses = Losses::default();
            let meaning = reader(text, &mut losses).map_err(|cause| match cause {
                ProfileCause::Empty => ProfileCause::EmptyDocument,
                cause => cause,
            })?;
            let document = meaning.document(here, &mut losses)?;
            let profile = foreign::read_back(&document)?;
            Ok(Imported { document, profile, losses })
        };
        self.reader.map(|reader| made(reader).map_err(|cause| ImportError::new(file, cause)))
    }

    /// Writes a profile, if this language has a way to.
    pub fn export(&self, exported: &Exported<'_>, losses: &mut Losses) -> Option<Vec<u8>> {
        self.writer.map(|writer| writer(exported, losses))
    }
}
