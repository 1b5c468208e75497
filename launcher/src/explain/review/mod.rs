//! A profile as a person checks it: what it gives, what of that is unusual, and what an attacker would make of it.
//!
//! What an attacker gets is not judged here. Each thing on the list is a question to the policy, as `sbx why` asks it,
//! so the answer is what a run decides.

pub mod effects;
mod probes;
mod show;

pub use show::{effect, effects as effects_text, human, json};

use crate::error::Refusal;
use crate::explain::query::Subject;
use crate::explain::sensitive::Sensitive;
use crate::host::Host;
use crate::profile::{self, Profile, Search, Source, Variables};
use effects::Effect;
use std::ffi::OsStr;
use std::path::Path;

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
    /// Whether it is so on purpose in every profile of this kind, and stands here to be known.
    pub usual: bool,
}

/// The built-in profile that a profile is measured by, and how it differs.
pub struct Unusual {
    /// Its name.
    pub base: String,
    /// What the profile gives beyond it.
    pub more: Vec<Effect>,
    /// How much it takes back of it.
    pub less: usize,
}

/// A review.
pub struct Review<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// How it differs from a built-in one; none for one that is built in and extends nothing.
    pub unusual: Option<Unusual>,
    /// What an attacker would make of it.
    pub findings: Vec<Finding>,
    /// Rules that were left out, because nothing is there on this machine.
    pub missing: Vec<String>,
}

/// Reviews a profile. `whole`: as it was read, with the rules that the plan lacks on this machine.
pub fn review<'a>(
    about: Subject<'_>,
    whole: &'a Profile,
    missing: Vec<String>,
) -> Result<Review<'a>, Refusal> {
    let unusual = unusual(whole)?;
    let sensitive = Sensitive::of(about.host, about.plan.workspace.as_deref())?;
    let mut findings = probes::files(about, &sensitive)?;
    probes::own_files(about, whole, &sensitive, &mut findings)?;
    probes::copies(whole, &mut findings);
    findings.extend(probes::calls(about)?);
    findings.extend(probes::network(about, whole, &sensitive)?);
    findings.extend(probes::programs(about, whole)?);
    findings.extend(probes::variables(whole));
    // What the profile gives like the built-in one that it extends is known there. One that confines nothing is no
    // measure.
    if unusual.is_none() || whole.is_unrestricted() {
        findings.iter_mut().for_each(|finding| finding.usual = false);
    }
    // What is particular stands first.
    findings.sort_by_key(|finding| finding.usual);
    Ok(Review { profile: whole, unusual, findings, missing })
}

/// The nearest built-in profile among those that it was merged from, and the differences.
fn unusual(profile: &Profile) -> Result<Option<Unusual>, Refusal> {
    let own = usize::from(profile.source == Source::BuiltIn);
    let lineage = profile.lineage.iter().rev().skip(own);
    let Some(base) = lineage.map(|name| &**name).find(|name| sbx_profiles::NAMES.contains(name)) else {
        return Ok(None);
    };
    let known = profile::load(OsStr::new(base), &Search::default())?;
    let more = effects::beyond(profile, &known)?;
    let less = effects::beyond(&known, profile)?.len();
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
