//! `sbx hook filter`: what an agent's hook runs. It reads the tool call, and answers with the same command in `sbx
//! run`.

use crate::hooks::{Agent, Wanted, protocol};
use crate::host::Host;
use crate::plan::workspace::{self, Working};
use crate::sys::path::{canonical, is_program};
use crate::sys::within::is_within;
use crate::text::{escape, shown};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What a hook says.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The agent goes on with this.
    Change(Value),
    /// The tool runs no shell command: the agent goes on as if it had not asked.
    Nothing,
    /// The agent is not to run it, for this reason.
    Refuse(String),
}

/// The longest tool call that is read.
pub const LONGEST: u64 = 16 << 20;

/// Variables in which agents tell hooks where their project is, whatever directory a command is to start in.
const PROJECT: [&str; 2] = ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"];

/// The answer to what an agent wrote.
pub fn answer(agent: Agent, wanted: &Wanted, text: &[u8], host: &Host) -> Answer {
    changed(agent, wanted, text, host).unwrap_or_else(|why| {
        Answer::Refuse(format!("the hook of sbx let {} not run this: {why}", agent.name()))
    })
}

fn changed(agent: Agent, wanted: &Wanted, text: &[u8], host: &Host) -> Result<Answer, String> {
    let mut asked = protocol::asked(text).map_err(|why| format!("cannot read the tool call: {why}"))?;
    if !protocol::tools(agent).contains(&&*asked.tool) {
        return Ok(Answer::Nothing);
    }
    let command = match asked.input.get("command") {
        Some(Value::String(command)) if !command.contains('\0') => command.clone(),
        _ => return Err(format!("'{}' has no command", escape(asked.tool.as_bytes(), 100))),
    };
    let workspace = workspace(agent, &asked, host)?;
    if is_within(&canonical(&wanted.program), &workspace) {
        return Err(format!(
            "'{}' lies in the workspace '{}', where a command could change it; install sbx elsewhere",
            shown(&wanted.program),
            shown(&workspace)
        ));
    }
    let workspace = workspace.to_str().ok_or("the name of the workspace is not UTF-8")?.to_string();
    let shell = if is_program(Path::new("/bin/bash")) { "/bin/bash" } else { "/bin/sh" };
    let program = wanted.program.display().to_string();
    let words = [
        &program,
        "run",
        "--profile",
        &wanted.profile,
        "--workspace",
        &workspace,
        "--",
        shell,
        "-c",
        &command,
    ];
    let line: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    asked.input.insert("command".to_string(), Value::String(line.join(" ")));
    Ok(Answer::Change(protocol::answer(agent, asked.input, wanted.approve)))
}

/// The directory that the agent was started for. The model chooses where a single command starts, and must not choose
/// the workspace with it.
fn workspace(agent: Agent, asked: &protocol::Asked, host: &Host) -> Result<PathBuf, String> {
    let named = PROJECT.iter().filter(|_| matches!(agent, Agent::Claude | Agent::Gemini));
    let named = named.filter_map(|name| host.variable(name)).map(PathBuf::from).next();
    let directory = named.or_else(|| asked.directory.as_ref().map(PathBuf::from));
    let directory =
        directory.filter(|path| path.is_absolute()).ok_or("the agent does not say where it works")?;
    let working = Working { directory: &directory, is_own: false };
    let mut warnings = Vec::new();
    let found = workspace::find(None, working, host, &mut warnings).map_err(|refusal| refusal.to_string())?;
    found.ok_or_else(|| warnings.pop().unwrap_or_else(|| format!("'{}' is no workspace", shown(&directory))))
}

/// A word as sh takes it, whatever is in it. Only what needs no quotes goes without.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | '@');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
