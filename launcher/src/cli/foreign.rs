//! `sbx profile import` and `export`: policies of other tools.

use crate::cli::{complain, print, profile};
use crate::error::Refusal;
use crate::host::Host;
use crate::plan::calls;
use crate::profile::foreign::languages::{LANGUAGES, Language};
use crate::profile::foreign::{self, Imported, Losses};
use crate::profile::{Variables, load};
use crate::sys::path::canonical;
use crate::text::{escape, json_document};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Examples of imports.
pub const IMPORTS: &str = "\
Examples:
  sbx profile import --from docker filter.json > docker.json          a seccomp profile of Docker's or podman's
  sbx profile import --from claude --lossy .claude/settings.json      what cannot be said is listed on stderr
  systemctl cat nginx > unit && sbx profile import --from systemd unit";

/// Examples of exports.
pub const EXPORTS: &str = "\
Examples:
  sbx profile export --to docker --lossy read-only > filter.json      docker run --security-opt seccomp=filter.json
  sbx profile export --to systemd --lossy ./app.json > app.conf       a drop-in for a service
  sbx profile export --to bpf --lossy read-only > filter.bpf          bwrap ... --seccomp 9 COMMAND 9< filter.bpf";

/// A document that is read, or a profile that is written.
#[derive(Debug, Args)]
pub struct Foreign {
    /// The document; for an export, a name or a file
    #[arg(value_name = "FILE")]
    pub document: OsString,
    /// Go on without what the other side cannot say, and list it on standard error
    #[arg(long)]
    pub lossy: bool,
}

/// The languages that profiles can be made of.
pub fn readable() -> impl TypedValueParser<Value = &'static Language> {
    among(Language::is_read)
}

/// The languages that profiles can be written in.
pub fn writable() -> impl TypedValueParser<Value = &'static Language> {
    among(Language::is_written)
}

fn among(is_meant: fn(&Language) -> bool) -> impl TypedValueParser<Value = &'static Language> {
    let meant = LANGUAGES.iter().filter(|language| is_meant(language));
    PossibleValuesParser::new(meant.map(|language| PossibleValue::new(language.word).help(language.about)))
        .try_map(|word| Language::named(&word).ok_or("there is no such language"))
}

/// Prints the profile that another tool's document makes.
pub fn import(flags: &Foreign, from: &Language) -> Result<i32, Refusal> {
    let file = &flags.document;
    let text = foreign::read(file).map_err(|error| Refusal::new(error.to_string()))?;
    let (workspace, home) = here();
    let here = Variables { workspace: workspace.as_deref(), home: home.as_deref(), ..Variables::default() };
    let Some(imported) = from.import(file, &text, &here) else { return Err(no_way("from", from)) };
    let mut imported = imported.map_err(|error| Refusal::new(error.to_string()))?;
    leave_out(&mut imported);
    settle(flags, "import", &imported.losses)?;
    // As sbx profile check does: what it would say of the file is said here.
    profile::builds(&imported.profile).map_err(|refusal| {
        let name = escape(file.as_bytes(), 400);
        Refusal::new(format!("cannot import '{name}': {refusal}"))
    })?;
    print(json_document(&imported.document).as_bytes()).map(|()| 0)
}

/// The workspace that a run would have here, and the home directory. What holds the home directory is no workspace.
fn here() -> (Option<PathBuf>, Option<PathBuf>) {
    let home = Host::of_this_process().home().map(canonical);
    let workspace = std::env::current_dir().ok().map(|path| canonical(&path));
    let holds_home = |path: &PathBuf| home.as_ref().is_some_and(|home| home.starts_with(path));
    (workspace.filter(|path| !holds_home(path)), home)
}

/// Takes out what the profile that it extends takes back.
fn leave_out(imported: &mut Imported) {
    let useless = profile::without_effect(&imported.profile);
    let list = imported.document.pointer_mut("/env/inherit").and_then(Value::as_array_mut);
    let mut places: Vec<usize> = useless.iter().filter_map(|(place, _)| *place).collect();
    places.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
    if let Some(list) = list {
        for place in places {
            if place < list.len() {
                list.remove(place);
            }
        }
    }
    useless.iter().for_each(|(_, why)| imported.losses.note("env", why));
}

/// Prints another tool's document that says what a profile says.
pub fn export(flags: &Foreign, to: &Language) -> Result<i32, Refusal> {
    let profile = load(&flags.document, &Host::of_this_process().search())?;
    let mut losses = Losses::default();
    let text = calls::alone(&profile, &mut losses, |exported, losses| to.export(exported, losses))?;
    let Some(text) = text else { return Err(no_way("to", to)) };
    settle(flags, "export", &losses)?;
    print(&text).map(|()| 0)
}

fn no_way(way: &str, language: &Language) -> Refusal {
    Refusal::new(format!("there is no way {way} the language '{}'", language.word))
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
