//! What becomes of a program, by what it is.

use crate::program::{Kind, Link, Program};
use crate::refusal::{NOT_EXECUTABLE, Refusal};

/// `--static`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StaticMode {
    /// Refuse with 126.
    #[default]
    Block,
    /// Run under the guard alone, and say so.
    Warn,
    /// Run under the guard alone.
    Allow,
    /// The same, as the user's wish.
    Confine,
}

/// How a program is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Under guard and seal.
    Both,
    /// Under the guard alone, if `--static` lets it: the library cannot be loaded into it.
    GuardAlone(String),
    /// Not at all.
    Never(String),
}

/// How this program would be run.
pub fn of(program: &Program) -> Treatment {
    let Some(last) = program.chain.last() else {
        return Treatment::Never("nothing is known about it".to_string());
    };
    let what = || describe(program, last);
    match &last.kind {
        Kind::OtherClass { .. } => Treatment::Never(format!(
            "{}: every system call it makes would be one of another architecture, which is always killed",
            what()
        )),
        Kind::OtherArchitecture { .. } => Treatment::Never(format!("{}, which this machine is not", what())),
        _ if program.preloadable() => Treatment::Both,
        _ => Treatment::GuardAlone(what()),
    }
}

fn describe(program: &Program, last: &Link) -> String {
    let file = if last.path == program.path {
        "it".to_string()
    } else {
        format!("its interpreter '{}'", last.path.display())
    };
    let special = program.set_id.is_some() || program.file_capabilities;
    match &last.kind {
        Kind::Dynamic { .. } if special => {
            format!("{file} has set-id bits or file capabilities, which have no effect here")
        }
        kind => format!("{file} is {kind}"),
    }
}

impl Treatment {
    /// One word for JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Treatment::Both => "run",
            Treatment::GuardAlone(_) => "static",
            Treatment::Never(_) => "refuse",
        }
    }

    /// A sentence for people.
    pub fn explain(&self) -> String {
        match self {
            Treatment::Both => "sbx runs it".to_string(),
            Treatment::GuardAlone(what) => {
                format!(
                    "sbx refuses it unless told otherwise, because {what} and libsandbox.so cannot be loaded into it; --static confine runs it, bound by the filter and path rules that the launcher installs"
                )
            }
            Treatment::Never(what) => format!("sbx cannot run it: {what}"),
        }
    }

    /// Decides by `--static`; a line to be said is returned.
    pub fn decide(&self, mode: StaticMode, name: &str) -> Result<Option<String>, Refusal> {
        match self {
            Treatment::Both => Ok(None),
            Treatment::Never(what) => {
                Err(Refusal::with_code(NOT_EXECUTABLE, format!("cannot run '{name}': {what}")))
            }
            Treatment::GuardAlone(what) => match mode {
                StaticMode::Block => Err(Refusal::with_code(
                    NOT_EXECUTABLE,
                    format!(
                        "refused to run '{name}': {what}, so libsandbox.so cannot be loaded into it; run it under the launcher's filter and path rules alone with --static confine"
                    ),
                )),
                StaticMode::Warn => Ok(Some(format!(
                    "'{name}' runs under the launcher's filter and path rules alone: {what}"
                ))),
                StaticMode::Allow | StaticMode::Confine => Ok(None),
            },
        }
    }
}
