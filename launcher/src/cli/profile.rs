//! `sbx profile`: listing, showing, checking and translating profiles.

use crate::cli::flags::ProfileAction;
use crate::cli::{complain, foreign, print};
use crate::error::{REFUSED, Refusal};
use crate::host::Host;
use crate::host::landlock::Version;
use crate::plan::calls::{self, Unix};
use crate::plan::network;
use crate::profile::{self, NetworkMode};
use crate::request::Request;
use crate::text::{escape, tame};
use sbx_policy::calls::Arch;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Runs a subcommand.
pub fn run(action: &ProfileAction) -> Result<i32, Refusal> {
    match action {
        ProfileAction::List { json } => list(*json),
        ProfileAction::Show { profile, json } => show(profile, *json),
        ProfileAction::Check { profiles } => {
            let mut status = 0;
            for profile in profiles {
                match check(profile) {
                    Ok(()) => print(format!("{}: ok\n", escape(profile.as_bytes(), 400)).as_bytes())?,
                    Err(refusal) => {
                        complain(&refusal.to_string());
                        status = REFUSED.into();
                    }
                }
            }
            Ok(status)
        }
        ProfileAction::Import { from, file } => foreign::import(file, *from),
        ProfileAction::Export { to, profile } => foreign::export(profile, *to),
        ProfileAction::Schema => print(profile::schema().as_bytes()).map(|()| 0),
    }
}

fn load(name: &OsStr) -> Result<profile::Profile, Refusal> {
    Ok(profile::load(name, &Host::of_this_process().search())?)
}

/// Reads it as a run would, but for what depends on the machine, and builds its program for both architectures.
fn check(name: &OsStr) -> Result<(), Refusal> {
    let profile = load(name)?;
    // As on the newest kernel: what this one cannot do says nothing about the profile.
    let mut network = network::asked(&Request::default(), &profile, &Host::of_this_process(), Version::UNIX)?;
    if network.mode == NetworkMode::Loopback {
        network.mode = NetworkMode::Private;
    }
    for arch in [Arch::X86_64, Arch::Aarch64] {
        for view in [false, true] {
            let calls = calls::calls(&profile, &network, true, Unix::ByPath, arch)?;
            calls.inside(view).strict_program()?;
        }
    }
    Ok(())
}

fn show(name: &OsStr, json: bool) -> Result<i32, Refusal> {
    let profile = load(name)?;
    let text = if json { format!("{:#}\n", profile::show(&profile)) } else { profile::human(&profile) };
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
        let _ = writeln!(text, "{:#}", serde_json::Value::from(entries));
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
                    format!(" ({})", escape(path.as_os_str().as_bytes(), 400))
                }
                _ => String::new(),
            };
            let _ = writeln!(text, "{name:width$}  {description}{from}");
        }
    }
    print(text.as_bytes()).map(|()| 0)
}

/// A text from a file, fit for a line of a terminal.
fn one_line(text: &str) -> String {
    text.split(char::is_whitespace)
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().map(tame).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}
