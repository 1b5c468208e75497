//! `sbx profile`: listing, showing, checking and translating profiles.

use crate::cli::foreign::Foreign;
use crate::cli::{complain, foreign, print, why};
use crate::error::{REFUSED, Refusal, cannot};
use crate::explain::query::{Reach, Subject};
use crate::explain::review::effects::{Effect, beyond};
use crate::explain::review::probes::Side;
use crate::explain::review::{self, lesser};
use crate::host::Host;
use crate::host::landlock::Version;
use crate::plan::calls::{self, Unix};
use crate::plan::environment::is_never_passed;
use crate::plan::{Plan, network, validation};
use crate::profile::foreign::languages::Language;
use crate::profile::{self, NetworkMode, Profile};
use crate::report::json::document;
use crate::request::Request;
use crate::sys::privilege;
use crate::text::{escape, tamed};
use clap::{Args, Subcommand};
use sbx_policy::calls::Arch;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

const REVIEWED: &str = "\
Examples:
  sbx profile review learned.json    before it is used, and before it is changed
  sbx profile review workspace       what the default gives

The answers are those of a run here, with the current directory as its workspace, and the same as those of \
sbx why. Exit status: 0; 125 sbx failed, or the profile cannot be used.";

const DIFFERENT: &str = "\
Examples:
  sbx profile diff workspace learned.json
  sbx profile diff old.json new.json && echo 'nothing has changed'

Compared is what the rules do, not how they are written. Exit status: 0 both give the same; 1 they differ; \
125 sbx failed, or a profile cannot be used.";

/// `sbx profile`.
#[derive(Debug, Args)]
pub struct ProfileCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: ProfileAction,
}

/// The subcommands of `sbx profile`.
#[derive(Debug, Subcommand)]
pub enum ProfileAction {
    /// List the profiles that can be named
    List {
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Show a profile with its parents merged, and where each rule comes from
    Show {
        /// A name or a file
        #[arg(value_name = "NAME|FILE")]
        profile: OsString,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Check profiles: keys, names, rules that can never decide anything
    Check {
        /// Names or files
        #[arg(value_name = "NAME|FILE", required = true)]
        profiles: Vec<OsString>,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Show what a profile gives, what of it is unusual, and what an attacker would make of it
    #[command(after_help = REVIEWED)]
    Review {
        /// A name or a file
        #[arg(value_name = "NAME|FILE")]
        profile: OsString,
        /// Every entry of long lists
        #[arg(long)]
        all: bool,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Show what one profile gives and another does not, both ways
    #[command(after_help = DIFFERENT)]
    Diff {
        /// A name or a file
        #[arg(value_name = "A")]
        one: OsString,
        /// Another name or file
        #[arg(value_name = "B")]
        other: OsString,
        /// Every entry of long lists
        #[arg(long)]
        all: bool,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of a profile
    Schema,
    /// Print the profile that another tool's policy makes
    #[command(after_help = foreign::IMPORTS)]
    Import {
        /// Whose policy it is
        #[arg(long, value_name = "LANGUAGE", value_parser = foreign::readable())]
        from: &'static Language,
        /// The file.
        #[command(flatten)]
        file: Foreign,
    },
    /// Print a profile as another tool's policy
    #[command(after_help = foreign::EXPORTS)]
    Export {
        /// Whose policy it is to be
        #[arg(long, value_name = "LANGUAGE", value_parser = foreign::writable())]
        to: &'static Language,
        /// The profile.
        #[command(flatten)]
        profile: Foreign,
    },
}

/// Runs a subcommand.
pub fn run(action: &ProfileAction) -> Result<i32, Refusal> {
    match action {
        ProfileAction::List { json } => list(*json),
        ProfileAction::Show { profile, json } => show(profile, *json),
        ProfileAction::Check { profiles, json } => check_all(profiles, *json),
        ProfileAction::Import { from, file } => foreign::import(file, from),
        ProfileAction::Export { to, profile } => foreign::export(profile, to),
        ProfileAction::Review { profile, all, json } => review_one(profile, Style::new(*json, *all)),
        ProfileAction::Diff { one, other, all, json } => diff(one, other, Style::new(*json, *all)),
        ProfileAction::Schema => print(profile::schema().as_bytes()).map(|()| 0),
    }
}

fn load(name: &OsStr) -> Result<Profile, Refusal> {
    Ok(profile::load(name, &Host::of_this_process().search())?)
}

/// Reviews a profile as a run here would have it.
fn review_one(name: &OsStr, style: Style) -> Result<i32, Refusal> {
    let host = Host::of_this_process();
    let whole = load(name)?;
    let request = request(name, &whole);
    let mut used = whole.clone();
    let missing = review::without_missing(&mut used, &host, Some(host.directory()?));
    let (plan, refused) = plan(&request, &host, &used)?;
    let base = review::base(&whole).map(|base| load(OsStr::new(base))).transpose()?;
    let base_request = base.as_ref().map(|base| self::request(OsStr::new(&*base.name), base));
    let base_plan = base.as_ref().zip(base_request.as_ref());
    // Where no run under that starts here, nothing is as usual.
    let base_plan = base_plan.and_then(|(base, request)| self::plan(request, &host, base).ok());
    let reach = [Reach::default(), Reach::default()];
    let about = Subject { request: &request, host: &host, plan: &plan, reach: &reach[0] };
    let own = Side { about, profile: &whole };
    let other = base.as_ref().zip(base_request.as_ref()).zip(base_plan.as_ref());
    let other = other.map(|((profile, request), (plan, _))| Side {
        about: Subject { request, host: &host, plan, reach: &reach[1] },
        profile,
    });
    // The command has none of root's capabilities: what permissions give it is asked without them.
    privilege::drop_own_capabilities().map_err(cannot("give capabilities up"))?;
    let mut review = review::review(name, own, other, missing)?;
    review.notes.extend(refused);
    let unconfined = validation::unconfined_on_purpose(&Request::default(), &whole).err();
    review.notes.extend(unconfined.map(|refusal| refusal.to_string()));
    let text = match style {
        Style::Json => document(&review::json(&review)),
        Style::Whole => review::human(&review, true),
        Style::Short => review::human(&review, false),
    };
    print(text.as_bytes()).map(|()| 0)
}

/// How a review is printed.
#[derive(Clone, Copy)]
enum Style {
    Short,
    Whole,
    Json,
}

impl Style {
    fn new(json: bool, all: bool) -> Style {
        match (json, all) {
            (true, _) => Style::Json,
            (false, true) => Style::Whole,
            (false, false) => Style::Short,
        }
    }
}

fn request(name: &OsStr, profile: &Profile) -> Request {
    let dangerously_unconfined = profile.is_unrestricted();
    Request { profile: Some(name.to_os_string()), dangerously_unconfined, ..Request::default() }
}

/// Maximum number of entries for which runs here are refused, and without which a profile is reviewed.
const MOST_REFUSED: usize = 16;

/// The plan of a run here. Where a run is refused, that of one without what it is refused for, and the refusals.
fn plan(request: &Request, host: &Host, used: &Profile) -> Result<(Plan, Vec<String>), Refusal> {
    let plan_of = |used: &Profile| why::plan_of(request, host, &|profile| *profile = used.clone());
    let (mut used, mut refused) = (used.clone(), Vec::new());
    loop {
        let refusal = match plan_of(&used) {
            Ok(plan) => return Ok((plan, refused)),
            Err(refusal) => refusal,
        };
        let text = refusal.to_string();
        let helps = |less: &Profile| plan_of(less).map_or_else(|other| other.to_string() != text, |_| true);
        let mut lesser = lesser::of(&used).into_iter().filter(|_| refused.len() < MOST_REFUSED);
        let Some((entry, less)) = lesser.find(|(_, less)| helps(less)) else { return Err(refusal) };
        refused.push(format!("{text}; no run starts so, and this review is of one without {entry}"));
        used = less;
    }
}

/// What each of two profiles gives beyond the other.
fn diff(one: &OsStr, other: &OsStr, style: Style) -> Result<i32, Refusal> {
    let (first, second) = (load(one)?, load(other)?);
    let sides = [(one, beyond(&first, &second)?), (other, beyond(&second, &first)?)];
    let differ = sides.iter().any(|(_, effects)| !effects.is_empty());
    let mut text = String::new();
    if matches!(style, Style::Json) {
        let [(_, one), (_, other)] = &sides;
        let list = |effects: &[Effect]| effects.iter().map(review::effect).collect::<Vec<_>>();
        let value =
            serde_json::json!({ "same": !differ, "only_first": list(one), "only_second": list(other) });
        text.push_str(&document(&value));
    } else {
        for (name, effects) in sides.iter().filter(|(_, effects)| !effects.is_empty()) {
            let _ = writeln!(text, "only '{}' gives:", escape(name.as_bytes(), 400));
            review::effects_text(&mut text, effects, matches!(style, Style::Whole));
        }
        if !differ {
            text.push_str("both give the same\n");
        }
    }
    print(text.as_bytes())?;
    Ok(i32::from(differ))
}

/// Checks each of them. As JSON, what is wrong is in the list, and nothing on standard error.
fn check_all(profiles: &[OsString], json: bool) -> Result<i32, Refusal> {
    let (mut status, mut entries) = (0, Vec::new());
    for profile in profiles {
        let error = check(profile).err().map(|refusal| refusal.to_string());
        if error.is_some() {
            status = REFUSED.into();
        }
        if json {
            let name = profile.to_string_lossy();
            entries.push(serde_json::json!({ "profile": name, "ok": error.is_none(), "error": error }));
            continue;
        }
        match error {
            None => print(format!("{}: ok\n", escape(profile.as_bytes(), 400)).as_bytes())?,
            Some(error) => complain(&error),
        }
    }
    if json {
        print(document(&serde_json::Value::from(entries)).as_bytes())?;
    }
    Ok(status)
}

/// Reads it as a run would, but for what depends on the machine, and builds its program for both architectures.
fn check(name: &OsStr) -> Result<(), Refusal> {
    let profile = load(name)?;
    if let Some((_, why)) = without_effect(&profile).into_iter().next() {
        let name = escape(profile.name.as_bytes(), 400);
        return Err(Refusal::new(format!("cannot use profile '{name}': {why}")));
    }
    builds(&profile)
}

/// Builds its program for both architectures.
pub fn builds(profile: &Profile) -> Result<(), Refusal> {
    // As on the newest kernel: what this one cannot do says nothing about the profile.
    let mut network = network::asked(&Request::default(), profile, &Host::of_this_process(), Version::UNIX)?;
    if network.mode == NetworkMode::Loopback {
        network.mode = NetworkMode::Private;
    }
    for arch in [Arch::X86_64, Arch::Aarch64] {
        for view in [false, true] {
            let calls = calls::calls(profile, &network, true, Unix::ByPath, arch)?;
            calls.inside(view).strict_program()?;
        }
    }
    Ok(())
}

/// Variables of the file that are passed on in one list and taken back in another one: a run does without a word. Each
/// with its index in `env.inherit`.
pub fn without_effect(profile: &Profile) -> Vec<(Option<usize>, String)> {
    let own = profile.env.inherit.iter().filter(|entry| !entry.origin.built_in);
    let useless = own.filter_map(|entry| {
        let denied = profile.env.deny.iter().find(|denied| denied.value.covers(&entry.value));
        let by = match denied {
            Some(denied) => format!("'{}' in {}", denied.value, *denied.origin),
            None if is_never_passed(&entry.value) => "it makes programs load other code".to_string(),
            None => return None,
        };
        let (name, place) = (&entry.value, &*entry.origin);
        let why = format!("'{name}' in {place} has no effect, because it is never passed on ({by})");
        Some((entry.origin.index, why))
    });
    useless.collect()
}

/// Prints a profile with its parents merged.
pub fn show(name: &OsStr, json: bool) -> Result<i32, Refusal> {
    let profile = load(name)?;
    let text = if json { document(&profile::show(&profile)) } else { profile::human(&profile) };
    print(text.as_bytes()).map(|()| 0)
}

fn list(json: bool) -> Result<i32, Refusal> {
    let profiles = profile::list(&Host::of_this_process().search());
    let source = |source: &profile::Source| match source {
        profile::Source::BuiltIn => "built-in".to_string(),
        profile::Source::File(path) => path.display().to_string(),
    };
    let mut text = String::new();
    if json {
        let entries: Vec<_> = profiles
            .iter()
            .map(|p| {
                let (description, error) = match &p.description {
                    Ok(description) => (Some(description), None),
                    Err(error) => (None, Some(error.to_string())),
                };
                let source = source(&p.source);
                serde_json::json!({ "name": p.name, "source": source, "description": description, "error": error })
            })
            .collect();
        text.push_str(&document(&serde_json::Value::from(entries)));
    } else {
        let names: Vec<String> = profiles.iter().map(|p| escape(p.name.as_bytes(), 40)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for (name, p) in names.iter().zip(&profiles) {
            let description = match &p.description {
                Ok(description) => one_line(description),
                Err(error) => format!("unusable: {}", one_line(&error.to_string())),
            };
            let from = match &p.source {
                // An error names the file itself.
                profile::Source::File(path) if p.description.is_ok() => {
                    format!("({})", escape(path.as_os_str().as_bytes(), 400))
                }
                _ => String::new(),
            };
            let _ = writeln!(text, "{}", listed(&format!("{name:width$} "), &[description, from]));
        }
    }
    print(text.as_bytes()).map(|()| 0)
}

/// A line of the list, without blanks for what is empty.
fn listed(name: &str, words: &[String]) -> String {
    let words = words.iter().filter(|word| !word.is_empty()).map(String::as_str);
    let line: Vec<&str> = [name].into_iter().chain(words).collect();
    line.join(" ").trim_end().to_string()
}

/// A text from a file, fit for a line of a terminal.
fn one_line(text: &str) -> String {
    text.split(char::is_whitespace).filter(|word| !word.is_empty()).map(tamed).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_without_a_description_is_listed_without_blanks() {
        let line = |words: [&str; 2]| listed("mine    ", &words.map(String::from));
        assert_eq!(line(["reads", "(/p)"]), "mine     reads (/p)");
        assert_eq!(line(["reads", ""]), "mine     reads");
        assert_eq!(line(["", "(/p)"]), "mine     (/p)");
        assert_eq!(line(["", ""]), "mine");
    }
}
