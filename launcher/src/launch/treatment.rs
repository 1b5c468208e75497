//! What becomes of a program, by what it is.

use crate::program::{Kind, Link, Program};
use crate::refusal::{NOT_EXECUTABLE, Refusal};
use crate::supervise::decode::escape;
use crate::sys::process;
use std::os::unix::ffi::OsStrExt;

/// What holds for a program that the library is not loaded into.
const BOUND: &str = "the filter and path rules bind it all the same";

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
        Kind::OtherArchitecture { .. } => Treatment::Never(what()),
        _ if takes_library(program) => Treatment::Both,
        _ => Treatment::GuardAlone(what()),
    }
}

/// Whether libsandbox.so can be loaded into this program, so that it can be sealed.
///
/// Set-id bits do not hinder that: under no_new_privs they change no identity, so the loader is not on its
/// guard. File capabilities do: the kernel still calls such a start privileged, for ordinary users.
pub fn takes_library(program: &Program) -> bool {
    let dynamic = program.last().is_some_and(|link| matches!(link.kind, Kind::Dynamic { .. }));
    dynamic && !program.file_capabilities
}

/// The same in this run: a loader that finds the real and the effective user to differ heeds no LD_PRELOAD (AT_SECURE,
/// see getauxval(3)), as if the program were set-user-ID.
pub fn is_sealable(program: &Program) -> bool {
    takes_library(program) && process::has_one_identity()
}

/// What holds for a program that could be sealed, if its loader would only load the library.
pub fn distrusted() -> Treatment {
    let why =
        "the real and the effective user or group of sbx differ, so that its loader loads no libsandbox.so";
    Treatment::GuardAlone(why.to_string())
}

fn describe(program: &Program, last: &Link) -> String {
    let file = if last.path == program.path {
        "it".to_string()
    } else {
        format!("its interpreter '{}'", escape(last.path.as_os_str().as_bytes(), 200))
    };
    match &last.kind {
        Kind::Dynamic { .. } if program.file_capabilities => format!("{file} has file capabilities"),
        kind => format!("{file} is {kind}"),
    }
}

/// What the program's file promises and does not get, for people.
pub fn without_effect(program: &Program) -> Option<&'static str> {
    match (program.set_id.is_some(), program.file_capabilities) {
        (true, true) => Some("its set-id bits and file capabilities have no effect under sbx"),
        (true, false) => Some("its set-id bits have no effect under sbx"),
        (false, true) => Some("its file capabilities have no effect under sbx"),
        (false, false) => None,
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
                format!("sbx runs it only with --static confine, because {what}; {BOUND}")
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
                        "refused to run '{name}': {what}, and sbx runs such programs only when told to; add --static confine ({BOUND})"
                    ),
                )
                .by_choice()),
                StaticMode::Warn => Ok(Some(format!("warning: '{name}' runs although {what}; {BOUND}"))),
                StaticMode::Allow | StaticMode::Confine => Ok(None),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::SetId;
    use std::path::PathBuf;

    fn program(kind: Kind) -> Program {
        let path = PathBuf::from("/bin/tool");
        let mut program = crate::program::examine(std::path::Path::new("/bin/sh")).unwrap();
        program.chain = vec![Link { path: path.clone(), kind }];
        program.path = path;
        program
    }

    fn dynamic() -> Program {
        program(Kind::Dynamic { interpreter: "/lib/ld.so".into() })
    }

    #[test]
    fn a_static_program_is_refused_with_the_way_out() {
        let treatment = of(&program(Kind::Static));
        let refusal = treatment.decide(StaticMode::Block, "busybox").unwrap_err();
        assert_eq!(refusal.code, NOT_EXECUTABLE);
        let sentence = "refused to run 'busybox': it is statically linked, and sbx runs such programs only when told to; add --static confine (the filter and path rules bind it all the same)";
        assert_eq!(refusal.sentence, sentence);
        let said = treatment.decide(StaticMode::Warn, "busybox").unwrap().unwrap();
        assert!(said.contains("busybox") && said.contains("statically linked"), "{said}");
        for mode in [StaticMode::Allow, StaticMode::Confine] {
            assert!(treatment.decide(mode, "busybox").unwrap().is_none());
        }
    }

    #[test]
    fn set_id_bits_do_not_matter() {
        let mut program = dynamic();
        program.set_id = Some(SetId { user: Some(0), group: None });
        assert_eq!(of(&program), Treatment::Both);
        assert!(without_effect(&program).unwrap().contains("set-id"));
        program.chain[0].kind = Kind::Static;
        assert!(matches!(of(&program), Treatment::GuardAlone(_)));
    }

    #[test]
    fn file_capabilities_keep_the_library_out() {
        let mut program = dynamic();
        assert!(takes_library(&program) && without_effect(&program).is_none());
        program.file_capabilities = true;
        assert!(!takes_library(&program));
        assert_eq!(of(&program), Treatment::GuardAlone("it has file capabilities".to_string()));
    }

    #[test]
    fn an_interpreter_is_named() {
        let mut program = dynamic();
        let kind = Kind::Static;
        program.chain.push(Link { path: "/bin/busy\nbox".into(), kind });
        let Treatment::GuardAlone(what) = of(&program) else { panic!() };
        assert_eq!(what, "its interpreter '/bin/busy\\nbox' is statically linked");
    }
}
