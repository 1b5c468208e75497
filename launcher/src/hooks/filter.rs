//! `sbx hook filter`: what an agent's hook runs. It reads the tool call, and answers with the same command in `sbx
//! run`.

use crate::hooks::protocol::{self, Approval};
use crate::hooks::rules::{self, Ruled};
use crate::hooks::{Agent, Wanted};
use crate::host::Host;
use crate::plan::workspace;
use crate::program;
use crate::sys::path::{self, canonical};
use crate::sys::plain;
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
    if protocol::tools_of_other_shells(agent).contains(&&*asked.tool) {
        return Err(format!("the tool {} is no shell that sbx can start; use another one", asked.tool));
    }
    if !protocol::tools(agent).contains(&&*asked.tool) {
        return Ok(Answer::Nothing);
    }
    let command = match asked.input.get("command") {
        Some(Value::String(command)) if !command.contains('\0') => command.clone(),
        _ => return Err(format!("'{}' has no command", escape(asked.tool.as_bytes(), 100))),
    };
    let directory = directory(agent, &asked, host)?;
    let asks = match rules::about(agent, &command, &directory, host)? {
        Ruled::Deny(rule) => return Err(format!("your rule {} denies it", escape(rule.as_bytes(), 200))),
        Ruled::Ask(_) => true,
        Ruled::Nothing => false,
    };
    let workspace = workspace(&directory, host)?;
    if is_within(&canonical(&wanted.program), &workspace) {
        return Err(format!(
            "'{}' lies in the workspace '{}', where a command could change it; install sbx elsewhere",
            shown(&wanted.program),
            shown(&workspace)
        ));
    }
    let workspace = workspace.to_str().ok_or("the name of the workspace is not UTF-8")?.to_string();
    let shell = program::shell(&program::USUAL_SHELLS).ok_or("there is neither bash nor sh")?;
    let shell = shell.to_str().ok_or("the name of the shell is not UTF-8")?;
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
    let approval = match (asks, wanted.approve) {
        (true, _) => Approval::Ask,
        (false, true) => Approval::Given,
        (false, false) => Approval::AsEver,
    };
    Ok(Answer::Change(protocol::answer(agent, asked.input, approval)))
}

/// The directory that the agent was started for. The model chooses where a single command starts, and must not choose
/// the workspace with it.
fn directory(agent: Agent, asked: &protocol::Asked, host: &Host) -> Result<PathBuf, String> {
    let named = PROJECT.iter().filter(|_| matches!(agent, Agent::Claude | Agent::Gemini));
    let named = named.filter_map(|name| host.variable(name)).map(PathBuf::from).next();
    let directory = match agent {
        // What it writes of a directory is where the model has the command start. It starts hooks where it works.
        Agent::Codex => host.directory().ok().map(Path::to_path_buf),
        // The same here, and nobody has tried where it starts hooks.
        Agent::Cursor => asked.root.as_ref().map(PathBuf::from),
        _ => named.or_else(|| asked.directory.as_ref().map(PathBuf::from)),
    };
    let directory = directory.filter(|path| path.is_absolute());
    directory.ok_or_else(|| match agent {
        Agent::Cursor => {
            "Cursor names no workspace (\"workspace_roots\"); open a directory in it".to_string()
        }
        _ => "the agent does not say where it works".to_string(),
    })
}

fn workspace(directory: &Path, host: &Host) -> Result<PathBuf, String> {
    let why = |error| format!("cannot use '{}' as workspace: {}", shown(directory), plain(&error));
    let real = path::real(directory).map_err(why)?;
    let mut warnings = Vec::new();
    let found = workspace::find(None, &real, host, &mut warnings).map_err(|refusal| refusal.to_string())?;
    found.ok_or_else(|| warnings.pop().unwrap_or_else(|| format!("'{}' is no workspace", shown(directory))))
}

/// A word as shells take it, whatever is in it. Only what needs no quotes goes without. A backslash stands between
/// quotes in no word: in fish it would keep the next quote from ending them, and the rest would be another command.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | '@');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    let mut text = String::from("'");
    for letter in word.chars() {
        match letter {
            '\'' | '\\' => text.extend(['\'', '\\', letter, '\'']),
            other => text.push(other),
        }
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fish reads words: between quotes a backslash keeps a quote, or a backslash, from meaning something.
    fn read_by_fish(text: &str) -> Option<String> {
        let (mut word, mut is_quoted) = (String::new(), false);
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\'' => is_quoted = !is_quoted,
                '\\' if !is_quoted => word.push(letters.next()?),
                '\\' => word.push(letters.next_if(|next| matches!(next, '\'' | '\\')).unwrap_or('\\')),
                other if is_quoted => word.push(other),
                _ => return None,
            }
        }
        (!is_quoted).then_some(word)
    }

    /// Cursor's model names the directory of a call, and nothing of the window.
    #[test]
    fn a_call_of_cursor_does_not_choose_the_workspace() {
        let host = Host::with_environment(vec![("CLAUDE_PROJECT_DIR".into(), "/other".into())]);
        let chosen = |roots: &str| {
            let call =
                format!("{{\"tool_name\": \"Shell\", \"tool_input\": {{}}, \"cwd\": \"/call\"{roots}}}");
            directory(Agent::Cursor, &protocol::asked(call.as_bytes()).unwrap(), &host)
        };
        assert_eq!(chosen(", \"workspace_roots\": [\"/window\", \"/x\"]"), Ok(PathBuf::from("/window")));
        for roots in ["", ", \"workspace_roots\": []", ", \"workspace_roots\": [\"window\"]"] {
            let why = chosen(roots).unwrap_err();
            assert!(why.contains("open a directory"), "{roots}: {why}");
        }
    }

    #[test]
    fn a_word_is_one_word_in_sh_and_in_fish() {
        for word in ["a b", "'", "\\", "\\'; touch made; '", "a\\\\'b\n\\", "$(x)`y`\"\\\"", ""] {
            let text = quoted(word);
            assert_eq!(shlex::split(&text), Some(vec![word.to_string()]), "{text}");
            assert_eq!(read_by_fish(&text).as_deref(), Some(word), "{text}");
        }
    }
}
