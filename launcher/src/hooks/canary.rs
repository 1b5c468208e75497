//! Tries a hook as its agent would use it: the command in the settings is run with a tool call, and what it answers is
//! run as well. No model is asked, and the agent is not started.

use crate::enforce::homes::Homes;
use crate::error::Refusal;
use crate::hooks::codex::Codex;
use crate::hooks::edit::{self, Ours, hooks_in};
use crate::hooks::install::{Settings, unreadable};
use crate::hooks::record::{Record, cannot};
use crate::hooks::{Agent, protocol, settings};
use crate::host::Host;
use crate::plan::state;
use crate::sys::path::canonical;
use crate::sys::plain;
use crate::text::{escape, shown};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the hook, and then the command, may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether they have ended.
const INTERVAL: Duration = Duration::from_millis(5);
/// More than any answer has.
const LONGEST: u64 = 1 << 20;

/// What is known of an agent's hook.
#[derive(Debug, PartialEq, Eq)]
pub enum State {
    /// It stands in the settings, and what it answers is confined.
    Works,
    /// It does not stand there.
    Missing,
    /// It does not do what it should, and why.
    Broken(String),
}

/// The hook of an agent.
#[derive(Debug)]
pub struct Status {
    /// The agent's settings.
    pub file: PathBuf,
    /// What was found.
    pub state: State,
    /// How many other hooks the agent asks before it runs a tool. One that changes commands too may undo what ours did.
    pub others: usize,
    /// Whether the agent itself said that it runs the hook.
    pub is_confirmed: bool,
}

/// Looks at the hook of an agent, and tries it.
pub fn status(agent: Agent, host: &Host) -> Result<Status, Refusal> {
    let settings = Settings::read(agent, host)?;
    let record = Record::read(agent, host)?;
    let is_as_left = record.as_ref().is_some_and(|record| settings.is_as_left(record));
    let (ours, others) = match (&settings.content, &record) {
        (None, _) => (Vec::new(), 0),
        (Some(_), Some(record)) if agent.has_file_of_its_own() && is_as_left => {
            (vec![Ours { command: record.hook.command(agent), is_as_written: true }], 0)
        }
        (Some(_), _) if agent.has_file_of_its_own() => (Vec::new(), 0),
        (Some(_), _) => {
            hooks_in(agent, settings.text()?).map_err(|error| unreadable(&settings.file, &error))?
        }
    };
    let mut is_confirmed = false;
    let state = match ours.as_slice() {
        [] if agent.has_file_of_its_own() && settings.content.is_some() => State::Broken(
            "somebody changed the plugin since it was written: remove the file, and install it again".into(),
        ),
        [] => State::Missing,
        [Ours { is_as_written: false, .. }] => State::Broken(format!(
            "its entry is another one than this version of sbx writes, and may not be asked about every command: run \
             'sbx hook install {}'",
            agent.word()
        )),
        [Ours { command, .. }] => match try_all(agent, command, &settings, host) {
            Ok(confirmed) => {
                is_confirmed = confirmed;
                State::Works
            }
            Err(why) => State::Broken(why),
        },
        _ => State::Broken(
            "it stands there more than once: run 'sbx hook remove', then 'sbx hook install'".into(),
        ),
    };
    Ok(Status { file: settings.file, state, others, is_confirmed })
}

/// Tries everything; whether the agent itself said that it runs the hook.
fn try_all(agent: Agent, command: &str, settings: &Settings, host: &Host) -> Result<bool, String> {
    not_switched_off(agent, settings, host)?;
    try_out(agent, command, host)?;
    runs(agent, command, settings, host)
}

/// Looks in every file of settings that counts here for what keeps the agent from asking its hooks. A project brings
/// such files too.
fn not_switched_off(agent: Agent, settings: &Settings, host: &Host) -> Result<(), String> {
    let is_off: fn(&Value) -> bool = match agent {
        Agent::Claude => {
            |said| said["disableAllHooks"] == json!(true) || said["allowManagedHooksOnly"] == json!(true)
        }
        Agent::Gemini => |said| {
            let named = said["hooksConfig"]["disabled"].as_array();
            said["hooksConfig"]["enabled"] == json!(false)
                || named.is_some_and(|list| list.contains(&json!("sbx")))
        },
        Agent::Codex | Agent::Cursor | Agent::Opencode => return Ok(()),
    };
    let says_so = |text: &str| edit::value_of(text).is_ok_and(|said| is_off(&said));
    if settings.content.as_deref().and_then(|content| str::from_utf8(content).ok()).is_some_and(says_so) {
        return Err("the same settings switch hooks off".to_string());
    }
    for file in agent.other_settings(host.directory().unwrap_or(Path::new("/")), host)? {
        if settings::said_in(&file)?.is_some_and(|said| is_off(&said)) {
            return Err(format!("'{}' switches hooks off", shown(&file)));
        }
    }
    Ok(())
}

/// Whether the agent says that it runs the hook, here too. Only Codex can be asked.
fn runs(agent: Agent, command: &str, settings: &Settings, host: &Host) -> Result<bool, String> {
    if agent != Agent::Codex {
        return Ok(false);
    }
    let Some(codex) = Codex::start(host) else { return Ok(false) };
    let mut codex = codex?;
    for directory in [settings.file.parent(), host.directory().ok()].into_iter().flatten() {
        if !codex.hook(command, directory)?.runs {
            return Err(
                "Codex skips it, and runs commands without it, because you have not trusted it, or have \
                        switched it off: enter /hooks in codex, or run 'sbx hook install codex --trust'"
                    .to_string(),
            );
        }
    }
    Ok(true)
}

/// Runs the hook's command with a tool call, and what it answers.
fn try_out(agent: Agent, hook: &str, host: &Host) -> Result<(), String> {
    let stage = Stage::new(host)?;
    let secret = stage.secret.to_str().ok_or("the name of the home directory is not UTF-8")?;
    // It writes nothing: a profile may have the hook look around only.
    let command = format!("cat '{}' 2>/dev/null; echo {RAN}", secret.replace('\'', r"'\''"));
    // Without the hook the same command reads it: else nothing is proven.
    if stage.run(&command, &[])? != format!("{SECRET}{RAN}\n") {
        return Err("the test file could not be read without the hook either, so nothing is proven".into());
    }
    let answer = stage.run(hook, tool_call(agent, &command, &stage.directory).to_string().as_bytes())?;
    let changed = changed_command(&answer).ok_or_else(|| {
        format!("it did not answer with a command, but with '{}'", escape(answer.as_bytes(), 200))
    })?;
    let shown = stage.run(&changed, &[])?;
    if shown.contains(SECRET) {
        return Err("a command that went through it could read a file of your home directory".into());
    }
    if !shown.lines().any(|line| line == RAN) {
        return Err(format!(
            "a command that went through it did not run: '{}'",
            escape(changed.as_bytes(), 400)
        ));
    }
    Ok(())
}

/// What the agent writes to its hook.
fn tool_call(agent: Agent, command: &str, directory: &Path) -> Value {
    let (event, _) = protocol::entry(agent, "");
    json!({
        "session_id": "sbx-hook-status",
        "hook_event_name": event,
        "cwd": directory,
        "workspace_roots": [directory],
        "tool_name": protocol::tools(agent)[0],
        "tool_input": { "command": command, "description": "a test of sbx" },
    })
}

fn changed_command(answer: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let output = &answer["hookSpecificOutput"];
    let inputs =
        [&output["updatedInput"], &output["tool_input"], &answer["updated_input"], &answer["tool_input"]];
    inputs.iter().find_map(|input| input["command"].as_str()).map(str::to_string)
}

/// The content of a file that no command in a sandbox reads.
const SECRET: &str = "secret\n";
/// What a command says that has run.
const RAN: &str = "ran";

/// A workspace, and a file of the home directory. Both are removed in the end, and so is what runs in the workspace had
/// for a home.
struct Stage {
    directory: PathBuf,
    secret: PathBuf,
    homes: Option<PathBuf>,
}

impl Stage {
    fn new(host: &Host) -> Result<Stage, String> {
        let home = host.home().ok_or("HOME is not an absolute path")?;
        let name = format!("sbx-hook-{}", std::process::id());
        let (directory, secret) = (std::env::temp_dir().join(&name), home.join(format!(".{name}")));
        let cannot = |path: &Path, error: &std::io::Error| cannot("make", path, error).to_string();
        // What was there before is not this stage's to remove.
        let mut file = OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600).open(&secret);
        let mut file = file.map_err(|error| cannot(&secret, &error))?;
        if let Err(error) = DirBuilder::new().mode(0o700).create(&directory) {
            let _ = fs::remove_file(&secret);
            return Err(cannot(&directory, &error));
        }
        let stage = Stage { directory, secret, homes: state::directory(host, "homes") };
        file.write_all(SECRET.as_bytes()).map_err(|error| cannot(&stage.secret, &error))?;
        Ok(stage)
    }

    /// What a command of a shell prints, with this on its standard input.
    fn run(&self, command: &str, input: &[u8]) -> Result<String, String> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(&self.directory)
            .env("CLAUDE_PROJECT_DIR", &self.directory)
            .env("GEMINI_PROJECT_DIR", &self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start /bin/sh: {}", plain(&error)))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command that reads nothing may have ended.
            let _ = stdin.write_all(input);
        }
        let in_time = wait(&mut child);
        let (out, err) = (all(child.stdout.take()), all(child.stderr.take()));
        match in_time {
            Some(true) => Ok(out),
            Some(false) => Err(format!("it failed: {}", escape(err.trim().as_bytes(), 400))),
            None => Err(format!("it did not end within {} seconds", PATIENCE.as_secs())),
        }
    }

    fn clear_homes(&self) -> Option<()> {
        let homes = Homes::open(self.homes.as_deref()?).ok()??;
        let workspace = canonical(&self.directory);
        homes.all().ok()?.iter().filter(|home| home.is_of(&workspace)).for_each(|home| {
            let _ = homes.clear(home);
        });
        Some(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.clear_homes();
        let _ = fs::remove_file(&self.secret);
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Whether it succeeded; `None` if it took too long, and was ended.
fn wait(child: &mut Child) -> Option<bool> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) => std::thread::sleep(INTERVAL),
            Err(_) => return Some(false),
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

fn all(stream: Option<impl Read>) -> String {
    let mut text = Vec::new();
    if let Some(stream) = stream {
        let _ = stream.take(LONGEST).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}
