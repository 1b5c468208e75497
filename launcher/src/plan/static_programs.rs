//! What becomes of a program, by what it is.

use crate::error::{Outcome, Refusal};
use crate::host::Host;
use crate::plan::calls::Calls;
use crate::plan::{Inputs, OnViolation};
use crate::profile::{Profile, StaticMode};
use crate::program::{FileKind as Kind, Link, Program};
use crate::request::Request;
use crate::text::{escape, shown};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What holds for a program that the library is not loaded into.
const BOUND: &str = "the filter and path rules bind it all the same";

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
pub fn is_sealable(program: &Program, host: &Host) -> bool {
    takes_library(program) && *host.one_identity.get()
}

/// What holds for a program that could be sealed, if its loader would only load the library.
fn distrusted() -> Treatment {
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

/// Decides by the file of the command whether it is run; a warning is returned.
pub fn decide(inputs: &Inputs<'_>) -> Result<Option<String>, Refusal> {
    let Inputs { program, profile, host, .. } = inputs;
    let treatment = of(program);
    if inputs.asks() || profile.is_unrestricted() || matches!(treatment, Treatment::Both) {
        return Ok(None);
    }
    match treatment.decide(mode(inputs.request, profile), &escape(inputs.command().as_bytes(), 200)) {
        // sbx itself may well be static, and has to be able to run inside sbx.
        Err(_) if is_own(program, host) => Ok(None),
        decided => decided,
    }
}

/// Decides about a program whose loader would not load the library, where there is something to seal.
pub fn without_seal(
    inputs: &Inputs<'_>,
    calls: &Calls,
    on_violation: OnViolation,
) -> Result<Option<String>, Refusal> {
    let Inputs { program, profile, host, .. } = inputs;
    if inputs.asks() || profile.is_unrestricted() {
        return Ok(None);
    }
    let sealed = !takes_library(program) || is_sealable(program, host);
    if sealed || on_violation == OnViolation::Log || calls.seal(on_violation.value())?.is_none() {
        return Ok(None);
    }
    distrusted().decide(mode(inputs.request, profile), &shown(Path::new(inputs.command())))
}

/// What is to become of programs that the library is not loaded into.
pub fn mode(request: &Request, profile: &Profile) -> StaticMode {
    let by_profile = profile.static_programs.as_deref().copied();
    request.static_programs.or(by_profile).unwrap_or_default()
}

/// Whether this is the program that is running.
pub fn is_own(program: &Program, host: &Host) -> bool {
    program.chain.last().is_some_and(|link| host.is_own_program(&link.path))
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
                format!(
                    "sbx runs it under a profile that says so, such as workspace, or with --static confine, \
                     because {what}; {BOUND}"
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
                Err(Refusal::with(Outcome::NotExecutable, format!("cannot run '{name}': {what}")))
            }
            Treatment::GuardAlone(what) => match mode {
                StaticMode::Block => Err(Refusal::with(
                    Outcome::ExecutionRefused,
                    format!(
                        "refused to run '{name}': {what}, and sbx runs such programs only when told to; add \
                         --static confine ({BOUND})"
                    ),
                )),
                StaticMode::Warn => Ok(Some(format!("warning: '{name}' runs although {what}; {BOUND}"))),
                StaticMode::Confine => Ok(None),
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
        let mut program = crate::program::examine(Path::new("/bin/sh")).unwrap();
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
        assert_eq!(refusal.outcome, Outcome::ExecutionRefused);
        let sentence = "refused to run 'busybox': it is statically linked, and sbx runs such programs only \
            when told to; add --static confine (the filter and path rules bind it all the same)";
        assert_eq!(refusal.to_string(), sentence);
        let said = treatment.decide(StaticMode::Warn, "busybox").unwrap().unwrap();
        assert!(said.contains("busybox") && said.contains("statically linked"), "{said}");
        assert!(treatment.decide(StaticMode::Confine, "busybox").unwrap().is_none());
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
