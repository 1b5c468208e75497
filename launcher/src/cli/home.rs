//! `sbx home`: the private homes of runs.

use crate::cli::flags::HomeAction;
use crate::cli::{complain, print};
use crate::enforce::homes::{About, Cleared, Home, Homes, Size};
use crate::error::{REFUSED, Refusal};
use crate::host::Host;
use crate::plan::files::tidy;
use crate::plan::state;
use crate::plan::workspace;
use crate::report::json::document;
use crate::sys::{path, plain};
use crate::text::{escape, rounded_size, shown};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long sizes are looked at.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many parts of a home are shown.
const PARTS: usize = 10;
/// Some of what was named is not there, or could not be removed.
const NOT_ALL: i32 = 1;

const NOTHING_NAMED: &str =
    "nothing to clear: name a workspace, or --all, --gone or --older-than; try 'sbx home clear --help'";

/// Runs a subcommand.
pub fn run(action: &HomeAction) -> Result<i32, Refusal> {
    let host = Host::of_this_process();
    let place = state::directory(&host, "homes").ok_or_else(|| {
        Refusal::new("there are no private homes: neither XDG_STATE_HOME nor HOME is an absolute path")
    })?;
    let cannot = |what: &str| Refusal::new(format!("cannot read '{}': {what}", shown(&place)));
    let homes = Homes::open(&place).map_err(|failed| cannot(&failed.to_string()))?;
    let all =
        homes.as_ref().map_or(Ok(Vec::new()), Homes::all).map_err(|failed| cannot(&failed.to_string()))?;
    let found = Found { homes, all, host: &host };
    match action {
        HomeAction::List { json } => found.list(*json),
        HomeAction::Show { directory, json } => found.show(directory.as_deref(), *json),
        HomeAction::Clear { workspaces, all, older_than, gone, json } => {
            if workspaces.is_empty() && !all && !gone && older_than.is_none() {
                return Err(Refusal::new(NOTHING_NAMED));
            }
            let is_meant = |home: &Home| {
                (!gone || home.is_left()) && older_than.is_none_or(|time| found.since(home) >= time)
            };
            found.clear(workspaces, &is_meant, *json)
        }
    }
}

/// What there is.
struct Found<'a> {
    homes: Option<Homes>,
    all: Vec<Home>,
    host: &'a Host,
}

impl Found<'_> {
    fn list(&self, json: bool) -> Result<i32, Refusal> {
        let until = Instant::now() + PATIENCE;
        let sizes = self.all.iter().map(|home| Size::sum(&self.parts(home, until)));
        let rows: Vec<(&Home, Size)> = self.all.iter().zip(sizes.collect::<Vec<_>>()).collect();
        if json {
            let entries: Vec<Value> = rows.iter().map(|(home, size)| with_size(facts(home), *size)).collect();
            return print(document(&Value::from(entries)).as_bytes()).map(|()| 0);
        }
        let mut table = vec![["unused for", "size", "profile", "workspace"].map(String::from)];
        table.extend(rows.iter().map(|(home, size)| {
            let (workspace, profile) = names(home);
            let left = if home.is_left() { " (gone)" } else { "" };
            [self.age(home), in_words(*size), profile, workspace + left]
        }));
        if rows.is_empty() {
            return print(b"no private homes\n").map(|()| 0);
        }
        let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2)];
        let mut text = String::new();
        for [age, size, profile, workspace] in &table {
            let [first, second, third] = widths;
            let _ = writeln!(text, "{age:>first$}  {size:>second$}  {profile:third$}  {workspace}");
        }
        print(text.as_bytes()).map(|()| 0)
    }

    fn show(&self, directory: Option<&Path>, json: bool) -> Result<i32, Refusal> {
        let workspace = match directory {
            Some(named) => self.absolute(named)?,
            None => self.current()?,
        };
        let homes: Vec<&Home> = self.all.iter().filter(|home| home.is_of(&workspace)).collect();
        if homes.is_empty() {
            complain(&none_of(&workspace));
            return Ok(NOT_ALL);
        }
        let until = Instant::now() + PATIENCE;
        let (mut text, mut entries) = (String::new(), Vec::new());
        for home in homes {
            let parts = self.parts(home, until);
            let size = Size::sum(&parts);
            let largest = parts.iter().take(PARTS);
            if json {
                let mut entry = with_size(facts(home), size);
                entry["largest"] = largest
                    .map(|(path, size)| with_size(json!({ "path": path.to_string_lossy() }), *size))
                    .collect();
                entries.push(entry);
                continue;
            }
            let (workspace, profile) = names(home);
            let _ = writeln!(text, "{workspace}, profile {profile}");
            let _ = writeln!(text, "  home        {}", shown(&home.place()));
            let _ = writeln!(text, "  unused for  {}", self.age(home));
            let _ = writeln!(text, "  size        {}", in_words(size));
            for (path, size) in largest {
                let _ = writeln!(text, "  {:>10}  {}", in_words(*size), shown(path));
            }
        }
        if json {
            text = document(&Value::from(entries));
        }
        print(text.as_bytes()).map(|()| 0)
    }

    fn clear(&self, named: &[PathBuf], is_meant: &dyn Fn(&Home) -> bool, json: bool) -> Result<i32, Refusal> {
        let named = named.iter().map(|path| self.absolute(path)).collect::<Result<Vec<PathBuf>, _>>()?;
        let mut status = 0;
        for workspace in named.iter().filter(|path| !self.all.iter().any(|home| home.is_of(path))) {
            complain(&none_of(workspace));
            status = NOT_ALL;
        }
        let is_named = |home: &&Home| named.is_empty() || named.iter().any(|workspace| home.is_of(workspace));
        let mut entries = Vec::new();
        let meant: Vec<&Home> = self.all.iter().filter(is_named).filter(|home| is_meant(home)).collect();
        if meant.is_empty() && named.is_empty() && !json {
            print(b"no private homes to remove\n")?;
        }
        for home in meant {
            let Some(homes) = &self.homes else { continue };
            let (workspace, profile) = names(home);
            let (word, sentence) = match homes.clear(home) {
                Ok(Cleared::Removed) => {
                    ("removed", format!("removed the home of '{workspace}' (profile {profile})\n"))
                }
                Ok(Cleared::InUse) => {
                    complain(&format!(
                        "the home of '{workspace}' (profile {profile}) is in use: a run has it"
                    ));
                    status = status.max(if named.is_empty() { 0 } else { NOT_ALL });
                    ("in use", String::new())
                }
                Err(error) => {
                    complain(&format!("cannot remove '{}': {}", shown(&home.path), plain(&error)));
                    status = REFUSED.into();
                    ("failed", String::new())
                }
            };
            if json {
                let mut entry = facts(home);
                entry["result"] = word.into();
                entries.push(entry);
            } else {
                print(sentence.as_bytes())?;
            }
        }
        if let Some(homes) = &self.homes {
            homes.clear_rests();
        }
        if json {
            print(document(&Value::from(entries)).as_bytes())?;
        }
        Ok(status)
    }

    fn parts(&self, home: &Home, until: Instant) -> Vec<(PathBuf, Size)> {
        self.homes.as_ref().map(|homes| homes.parts(home, until)).unwrap_or_default()
    }

    /// A directory that the user names. It may be gone by now, and its home be there.
    fn absolute(&self, named: &Path) -> Result<PathBuf, Refusal> {
        let path = if named.is_absolute() { named.to_path_buf() } else { self.host.directory()?.join(named) };
        Ok(path::real(&path).unwrap_or_else(|_| tidy(&path)))
    }

    /// The workspace of a run that begins here.
    fn current(&self) -> Result<PathBuf, Refusal> {
        let found = workspace::find(None, self.host.directory()?, self.host, &mut Vec::new())?;
        found.ok_or_else(|| {
            Refusal::new("the current directory is no workspace: name one, as in sbx home show DIR")
        })
    }

    fn since(&self, home: &Home) -> Duration {
        self.host.began.duration_since(home.used).unwrap_or_default()
    }

    /// In the unit that --older-than takes.
    fn age(&self, home: &Home) -> String {
        let minutes = self.since(home).as_secs() / 60;
        match minutes {
            0..60 => format!("{minutes}m"),
            60..1440 => format!("{}h", minutes / 60),
            _ => format!("{}d", minutes / 1440),
        }
    }
}

fn none_of(workspace: &Path) -> String {
    format!("no private home of '{}'", shown(workspace))
}

/// Workspace and profile, fit for a line of a terminal.
fn names(home: &Home) -> (String, String) {
    let unknown = || ("unknown".to_string(), "unknown".to_string());
    let name = |about: &About| (shown(Path::new(&about.workspace)), escape(about.profile.as_bytes(), 100));
    home.about.as_ref().map_or_else(unknown, name)
}

fn facts(home: &Home) -> Value {
    let since_1970 = home.used.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let used =
        humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(since_1970.as_secs()));
    json!({
        "path": home.path.to_string_lossy(),
        "workspace": home.about.as_ref().map(|about| &about.workspace),
        "profile": home.about.as_ref().map(|about| &about.profile),
        "last_use": used.to_string(),
        "gone": home.is_left(),
    })
}

fn with_size(mut facts: Value, size: Size) -> Value {
    facts["bytes"] = size.bytes.into();
    facts["whole"] = size.is_whole.into();
    facts
}

fn in_words(size: Size) -> String {
    let more = if size.is_whole { "" } else { ">" };
    format!("{more}{}", rounded_size(size.bytes))
}
