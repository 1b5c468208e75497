//! A profile as a person checks it: what it gives, what of that is unusual, and what an attacker would make of it.
//!
//! What an attacker gets is not judged here. Each thing on the list is a question to the policy, as `sbx why` asks it,
//! so the answer is what a run decides.

/// Passes the limits to a macro: each by its field, with words for it.
macro_rules! limits {
    ($each:ident) => {
        $each! {
            timeout "time", output "output", processes "processes", open_files "open files", file_size "size of a file",
            memory "memory", cpu "processor time",
        }
    };
}

pub mod effects;
pub mod lesser;
pub mod probes;
mod show;

pub use show::{effect, effects as effects_text, human, json};

use crate::error::Refusal;
use crate::explain::sensitive::Sensitive;
use crate::host::Host;
use crate::plan::Plan;
use crate::profile::{self, Profile, Search, Source, Variables};
use effects::Effect;
use probes::{Found, Side};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Something that an attacker could use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is for an attacker.
    pub topic: &'static str,
    /// What it is about, the most telling first.
    pub about: Vec<String>,
    /// What it means.
    pub meaning: String,
    /// The rules that give it, with their places.
    pub rules: Vec<String>,
    /// Whether the built-in profile that this one is measured by gives it as well.
    pub usual: bool,
}

/// The built-in profile that a profile is measured by, and how it differs.
pub struct Unusual {
    /// Its name.
    pub base: String,
    /// What the profile gives beyond it.
    pub more: Vec<Effect>,
    /// What it takes back of it.
    pub less: Vec<Effect>,
}

/// A review.
pub struct Review<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// As it was asked for.
    pub name: &'a OsStr,
    /// The directory that the run would have as its workspace.
    pub workspace: Option<PathBuf>,
    /// Whether the run starts programs at all.
    pub starts: bool,
    /// How it differs from a built-in one; none for one that is built in and extends nothing.
    pub unusual: Option<Unusual>,
    /// What an attacker would make of it.
    pub findings: Vec<Finding>,
    /// Rules that were left out, because nothing is there on this machine.
    pub missing: Vec<String>,
    /// What the rules give, and the permissions of files close to this user.
    pub closed: Vec<PathBuf>,
    /// What a run here would say.
    pub notes: Vec<String>,
    /// What of it a run here has.
    pub holds: Holds,
}

/// What a run has on this machine, whatever its profile asks for.
pub struct Holds {
    /// Namespaces of its own, in which paths are protected.
    pub namespaces: bool,
    /// A home of its own.
    pub home: bool,
    /// What git executes is looked at when it has ended.
    pub looks_at_git: bool,
    /// Packets lead out, whatever the rules about connections say.
    pub sends_packets: bool,
}

impl Holds {
    fn of(plan: &Plan) -> Result<Holds, Refusal> {
        Ok(Holds {
            namespaces: plan.namespaces.is_ok(),
            home: plan.private_home.is_some(),
            looks_at_git: plan.record.is_some(),
            sends_packets: probes::sends_packets(plan)?,
        })
    }
}

/// Reviews a profile, beside the built-in one that it is measured by. `missing`: rules that the plan lacks on this
/// machine.
pub fn review<'a>(
    name: &'a OsStr,
    own: Side<'a>,
    base: Option<Side<'_>>,
    missing: Vec<String>,
) -> Result<Review<'a>, Refusal> {
    let plan = own.about.plan;
    let sensitive = Sensitive::of(own.about.host, plan.workspace.as_deref())?;
    let Found { mut findings, closed } = probes::ask(own, base, &sensitive)?;
    findings.sort_by_key(|finding| (harm(finding.topic), finding.usual));
    let starts = ["execve", "execveat"].into_iter().any(|call| plan.calls.allows(call));
    Ok(Review {
        profile: own.profile,
        name,
        workspace: plan.workspace.clone(),
        starts: starts || plan.calls.open_by().is_some(),
        unusual: unusual(own.profile)?,
        findings,
        missing,
        closed,
        notes: plan.warnings.clone(),
        holds: Holds::of(plan)?,
    })
}

/// What leaves the machine, or acts outside the run, stands first; then what others have here; then the command's own
/// means. Of each, what is particular stands before what is usual.
fn harm(topic: &str) -> usize {
    const ORDER: [&[&str]; 2] = [
        &["network", "sockets", "runs later"],
        &["secrets", "devices", "memory", "terminals", "processes", "variables"],
    ];
    ORDER.iter().position(|topics| topics.contains(&topic)).unwrap_or(ORDER.len())
}

/// The nearest built-in profile, of an agent too, among those that it was merged from.
pub fn base(profile: &Profile) -> Option<&str> {
    let own = usize::from(profile.source == Source::BuiltIn);
    let mut lineage = profile.lineage.iter().rev().skip(own).map(|name| &**name);
    lineage.find(|name| sbx_profiles::built_in(name).is_some())
}

/// How it differs from that.
fn unusual(profile: &Profile) -> Result<Option<Unusual>, Refusal> {
    let Some(base) = base(profile) else { return Ok(None) };
    let known = profile::load(OsStr::new(base), &Search::default())?;
    let more = effects::beyond(profile, &known)?;
    let less = effects::beyond(&known, profile)?;
    Ok(Some(Unusual { base: base.to_string(), more, less }))
}

/// Takes out of a profile what nothing is there for on this machine, and names it: a run would be refused, and a review
/// is about the profile.
pub fn without_missing(profile: &mut Profile, host: &Host, workspace: Option<&Path>) -> Vec<String> {
    let variables = Variables { workspace, home: host.home(), ..Variables::default() };
    let mut missing = Vec::new();
    let lists = [
        &mut profile.paths.read,
        &mut profile.paths.execute,
        &mut profile.paths.write,
        &mut profile.network.unix,
    ];
    for list in lists {
        list.to_mut().retain(|entry| {
            let there =
                entry.origin.optional || entry.expand_path(&variables).is_none_or(|path| path.exists());
            if !there {
                missing.push(format!("{} ({})", entry.value, *entry.origin));
            }
            there
        });
    }
    missing
}
