//! `sbx profile import` and `export`: policies of other tools.

use crate::cli::{complain, print};
use crate::error::Refusal;
use crate::host::Host;
use crate::plan::calls::{self, Extras, Unix};
use crate::plan::rules::Network;
use crate::profile::foreign::{self, Losses, oci};
use crate::profile::{self, DefaultAction, Profile};
use crate::text::escape;
use clap::{Args, ValueEnum};
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::rules::Actions;
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// A document of one side that is to be one of the other.
#[derive(Debug, Args)]
pub struct Foreign {
    /// The document; for an export, a name or a file
    #[arg(value_name = "FILE")]
    pub document: OsString,
    /// Go on without what the other side cannot say, and list it on standard error
    #[arg(long)]
    pub lossy: bool,
}

/// A language for policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// A seccomp filter as in OCI's runtime specification
    Oci,
    /// The same, for docker and podman run --security-opt seccomp=FILE
    Docker,
}

/// Prints the profile that another tool's document makes.
pub fn import(flags: &Foreign, from: Language) -> Result<i32, Refusal> {
    let file = &flags.document;
    let text = foreign::read(file).map_err(refusal)?;
    let imported = match from {
        Language::Oci | Language::Docker => oci::import(file, &text).map_err(refusal)?,
    };
    settle(flags, "import", &imported.losses)?;
    print(format!("{:#}\n", imported.document).as_bytes()).map(|()| 0)
}

/// Prints another tool's document that says what a profile says.
pub fn export(flags: &Foreign, to: Language) -> Result<i32, Refusal> {
    let profile = profile::load(&flags.document, &Host::of_this_process().search())?;
    let mut losses = Losses::default();
    let document = match to {
        Language::Oci | Language::Docker => filter(&profile, &mut losses)?,
    };
    settle(flags, "export", &losses)?;
    print(format!("{document:#}\n").as_bytes()).map(|()| 0)
}

fn refusal(error: foreign::ImportError) -> Refusal {
    Refusal::new(error.to_string())
}

/// Nothing is lost without a word: it ends the command, or it is listed.
fn settle(flags: &Foreign, what: &str, losses: &Losses) -> Result<(), Refusal> {
    if let Some(sentence) = losses.refusal().filter(|_| !flags.lossy) {
        let name = escape(flags.document.as_bytes(), 400);
        return Err(Refusal::new(format!("cannot {what} '{name}': {sentence}")));
    }
    losses.lines().iter().for_each(|line| complain(&format!("lost: {line}")));
    Ok(())
}

/// The filter of a run under the profile, as far as it decides alone.
fn filter(profile: &Profile, losses: &mut Losses) -> Result<Value, Refusal> {
    others(profile, losses);
    let network = Network { mode: calls::mode(profile), ..Network::default() };
    // A filter alone cannot tell one UNIX socket from another.
    let of = |arch| calls::calls(profile, &network, false, Unix::Refused, arch);
    let all = [of(Arch::X86_64)?, of(Arch::Aarch64)?];
    let default = profile.syscalls.default.as_deref().copied().unwrap_or(DefaultAction::Kill);
    let violation = default.violation().unwrap_or(bpf::RET_ERRNO | 1);
    let actions = Actions { violation, log: bpf::RET_LOG, unknown: None };
    let [(x86_64, _), (aarch64, _)] = {
        let [one, other] = &all;
        [one.rules(actions, Extras::default())?, other.rules(actions, Extras::default())?]
    };
    let tables = [(Arch::X86_64, &*x86_64), (Arch::Aarch64, &*aarch64)];
    let asked: Vec<_> = Call::all()
        .filter_map(|call| {
            let said = all[0].rules_of(call);
            if said.is_some_and(|said| !said.only_inside().is_none()) {
                losses.note(call.name(), "what is allowed only in namespaces of the run's own is left out");
            }
            oci::of_first(&tables, said, call)
        })
        .collect();
    Ok(oci::write(&asked, default, losses))
}

/// Everything of a profile that is not about calls.
fn others(profile: &Profile, losses: &mut Losses) {
    const OWN: [&str; 6] = ["name", "source", "description", "lineage", "syscalls", "$schema"];
    let shown = profile::show(profile);
    let said = |value: &Value| match value {
        Value::Null => 0,
        Value::Array(list) => list.len(),
        Value::Object(object) => {
            if object.contains_key("value") {
                1
            } else {
                object.len()
            }
        }
        _ => 1,
    };
    let mut lose = |place: String, count: usize| {
        if count > 0 {
            losses.note(
                place,
                format_args!("{count} of its entries: a filter of calls has nothing of that kind"),
            );
        }
    };
    for (key, value) in shown.as_object().into_iter().flatten().filter(|(key, _)| !OWN.contains(&&***key)) {
        match value.as_object().filter(|object| !object.contains_key("value")) {
            Some(section) => {
                section.iter().for_each(|(inner, value)| lose(format!("{key}.{inner}"), said(value)))
            }
            None => lose(key.clone(), said(value)),
        }
    }
    if !profile.paths.write.is_empty() || !profile.network.unix.is_empty() {
        losses.note(
            "supervision",
            "what the supervisor decides for each call (attributes of files, UNIX sockets by path, /dev/null)",
        );
    }
}
