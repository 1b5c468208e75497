//! Profiles: reading, showing and compiling them.

use sbx::host::Host;
use sbx::host::landlock::Version;
use sbx::plan::calls::{self, Extras, Unix};
use sbx::plan::network;
use sbx::profile::{self, Grants, Profile, ProfileError, Search};
use sbx::request::Request;

use super::model::expected;
use super::policy::around;
use super::unnamed::Unnamed;
use super::{assert_line, document, env_text, is_harmless};
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{self, Data};
use sbx_policy::program::{TooLong, X32_BIT, assemble};
use sbx_policy::rules::{Actions, Layout, Rules};

/// Input: a document. A refused one gives a one-line message. An accepted one can be shown, and reading what is shown
/// gives the same profile. Its program decides as the document says, and so do the variables for the library.
pub fn profile(text: &[u8]) {
    match load(text) {
        Err(error) => assert_line(&error.to_string()),
        Ok(profile) => {
            is_shown(&profile);
            for arch in [Arch::X86_64, Arch::Aarch64] {
                [false, true].into_iter().for_each(|namespaces| decides(&profile, arch, namespaces));
                has_variables(&profile, arch);
            }
        }
    }
}

pub fn load(text: &[u8]) -> Result<Profile, ProfileError> {
    let file = Unnamed::holding(text);
    profile::load(file.path().as_os_str(), &Search::default())
}

fn is_shown(profile: &Profile) {
    let text = profile::human(profile);
    assert!(text.lines().all(|line| line.chars().all(is_harmless)), "{text:?}");
    // Parents can add up to more than one document may say.
    if profile.lineage.len() == 1 {
        let shown = profile::show(profile);
        let again = document::from_shown(&shown);
        let read = load(again.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}: {again}"));
        assert_eq!(document::from_shown(&profile::show(&read)), again);
    }
}

/// Answers that differ from each other and from a permission.
pub const ACTIONS: Actions =
    Actions { violation: bpf::RET_USER_NOTIF, log: bpf::RET_LOG, unknown: Some(bpf::RET_ERRNO | 38) };

fn decides(profile: &Profile, arch: Arch, namespaces: bool) {
    let rules = profile.syscalls.to_rules(arch, ACTIONS, namespaces);
    let (rules, free) = rules.expect("checked conditions can be compiled");
    let program = match assemble(&Layout { rules: &rules, extra: Some(&free) }) {
        Ok(program) => program,
        Err(TooLong) => return,
    };
    assert!(program.len() <= bpf::MAX_INSNS);
    let identity = rules.identity();
    for (number, audit, args) in questions(profile, arch) {
        let data = Data { nr: number, arch: audit, args };
        let meant = expected((profile, namespaces), arch, ACTIONS, &data, identity);
        assert_eq!(
            interpret::run(&program, &data),
            Some(meant),
            "{:?} {data:x?}",
            Call::numbered(arch, number)
        );
    }
}

/// Every system call that the profile names, with arguments at the boundaries of its conditions, and numbers that no
/// profile names.
pub fn questions(profile: &Profile, arch: Arch) -> Vec<(u32, u32, [u64; 6])> {
    let mut questions = Vec::new();
    for (call, rules) in profile.syscalls.calls.iter() {
        let Some(number) = call.number(arch) else { continue };
        let sets = [&rules.allow, &rules.inside, &rules.deny].into_iter().flat_map(conditions);
        questions.extend(sets.map(|args| (number, arch.audit(), args)));
    }
    for number in [0, 157, 167, arch.end() - 1, arch.end(), 511, 512, X32_BIT - 1, X32_BIT, u32::MAX] {
        questions.extend([arch.audit(), 0x4000_0003].map(|audit| (number, audit, [0; 6])));
    }
    questions
}

fn conditions(grants: &Grants) -> Vec<[u64; 6]> {
    match grants {
        Grants::Some(list) => list.iter().flat_map(|one| around(one.when.any().into_iter())).collect(),
        _ => around(std::iter::empty()),
    }
}

/// The variables that `sbx env` prints lead to the same decisions, except that nothing is logged; or `sbx env` refuses.
fn has_variables(profile: &Profile, arch: Arch) {
    let network = match network::asked(&Request::default(), profile, &Host::of_this_process(), Version::UNIX)
    {
        Ok(network) => network,
        Err(refusal) => return assert_line(&refusal.to_string()),
    };
    let calls = calls::calls(profile, &network, false, Unix::ByPath, arch).expect("it needs nothing");
    let action = bpf::RET_ERRNO | 1;
    let actions = Actions { violation: action, log: bpf::RET_ALLOW, unknown: None };
    let Ok((rules, free)) = calls.rules(actions, Extras::default()) else { return };
    match calls.text(action) {
        Err(refusal) => assert_line(&refusal.to_string()),
        Ok(text) => {
            assert!(free.is_empty());
            let again = env_text::read(&text, arch);
            let (one, other) = (compiled(&rules), compiled(&again));
            // Only the query about the filter itself has another answer: these rules have another identity.
            for (nr, arch, args) in questions(profile, arch) {
                let data = Data { nr, arch, args };
                assert_eq!(interpret::run(&one, &data), interpret::run(&other, &data), "{data:x?} {text:?}");
            }
        }
    }
}

fn compiled(rules: &Rules) -> Vec<Insn> {
    assemble(&Layout { rules, extra: None }).unwrap_or_default()
}

/// The program of a profile, in a run without namespaces of its own; `None`: it is too long.
pub fn compiled_with(profile: &Profile, arch: Arch, actions: Actions) -> Option<Vec<Insn>> {
    let (rules, free) =
        profile.syscalls.to_rules(arch, actions, false).expect("checked conditions can be compiled");
    assemble(&Layout { rules: &rules, extra: Some(&free) }).ok()
}
