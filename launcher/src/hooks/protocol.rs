//! The words of each agent: how a hook stands in its settings, what it is asked, and what it answers.

use crate::hooks::{Agent, Wanted};
use serde_json::{Map, Value, json};

/// What stands between the program and the agent in the command of every hook of ours.
const FILTER: &str = " hook filter ";

/// Ends the command of a hook. Agents go on as if there was no hook after any other failure than status 2 with a
/// sentence. It is one command of any shell.
const OR_REFUSE: &str = " || /bin/sh -c 'echo sbx: the command was not run. Without a reason before this, the hook \
                         failed: see sbx hook status >&2; exit 2'";

impl Wanted {
    /// The words of the filter, after the program.
    fn words(&self, agent: Agent) -> Vec<String> {
        let mut words = vec!["hook".into(), "filter".into(), agent.word().into()];
        words.extend(["--profile".into(), self.profile.clone()]);
        words.extend(self.approve.then(|| "--approve".into()));
        words
    }

    /// The command of the hook. Nothing in it needs an escape in JSON: see `install`.
    pub(super) fn command(&self, agent: Agent) -> String {
        let quoted = |word: &str| format!("'{word}'");
        let mut words = vec![quoted(&self.program.display().to_string())];
        let rest = self.words(agent);
        words.extend(rest.iter().map(|word| if word.contains('/') { quoted(word) } else { word.clone() }));
        format!("{}{OR_REFUSE}", words.join(" "))
    }

    /// The plugin of opencode.
    pub(super) fn plugin(&self) -> String {
        let arguments = json!(self.words(Agent::Opencode));
        let program = json!(self.program.display().to_string());
        PLUGIN.replace("PROGRAM", &program.to_string()).replace("ARGUMENTS", &arguments.to_string())
    }
}

/// What the plugin begins with.
pub(super) const PLUGIN_HEAD: &str = "// Written by 'sbx hook install opencode'";

/// A failure throws, and opencode then does not run the tool.
const PLUGIN: &str = r#"// Written by 'sbx hook install opencode': shell commands run in sbx.
// 'sbx hook remove opencode' removes it.
import { spawnSync } from "node:child_process"

export const Sbx = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    if (input.tool !== "bash") return
    const asked = JSON.stringify({ tool_name: "bash", tool_input: output.args, cwd: directory })
    const run = spawnSync(PROGRAM, ARGUMENTS, { input: asked, encoding: "utf8" })
    if (run.status !== 0) {
      const failed = "sbx: the hook failed, so the command was not run: see sbx hook status"
      throw new Error((run.stderr || "").trim() || failed)
    }
    Object.assign(output.args, JSON.parse(run.stdout).tool_input)
  },
})
"#;

/// Whether a hook's command is one of ours for this agent.
pub(super) fn is_ours(command: &str, agent: Agent) -> bool {
    command.contains(&format!("{FILTER}{} ", agent.word()))
}

/// A day, in seconds. Most agents go on without a hook that takes too long; the filter gives up by itself, and refuses,
/// long before (`cli::hook`). More milliseconds than 31 bits hold would be no time at all to some.
const TIME: u64 = 24 * 60 * 60;

/// Where the hooks are that an agent asks before it runs a tool: the name of the event, and the hook's entry in its
/// list.
pub(super) fn entry(agent: Agent, command: &str) -> (&'static str, Value) {
    match agent {
        Agent::Claude => {
            // Without the last key, a hook that is killed would be as if there was none. Some versions ignore it.
            let hook =
                json!({ "type": "command", "command": command, "timeout": TIME, "onFailure": "block" });
            ("PreToolUse", json!({ "matcher": "Bash|Monitor|PowerShell", "hooks": [hook] }))
        }
        Agent::Codex => {
            let hook = json!({ "type": "command", "command": command, "timeout": TIME });
            ("PreToolUse", json!({ "matcher": "Bash", "hooks": [hook] }))
        }
        Agent::Gemini => {
            let time = TIME * 1000;
            let hook = json!({ "name": "sbx", "type": "command", "command": command, "timeout": time });
            ("BeforeTool", json!({ "matcher": "run_shell_command", "hooks": [hook] }))
        }
        Agent::Cursor => {
            ("preToolUse", json!({ "command": command, "matcher": "Shell", "failClosed": true }))
        }
        Agent::Opencode => ("", Value::Null),
    }
}

/// What an agent is about to run.
#[derive(Debug)]
pub(super) struct Asked {
    /// The tool's name.
    pub tool: String,
    /// What the tool was given.
    pub input: Map<String, Value>,
    /// The directory that the agent works in, or, for some agents, the one that the model has the command start in.
    pub directory: Option<String>,
    /// The first directory of the agent's window, for an agent that has one.
    pub root: Option<String>,
}

/// Reads what an agent writes to a hook.
pub(super) fn asked(text: &[u8]) -> Result<Asked, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let text_of = |value: &Value| value.as_str().map(str::to_string);
    let tool = text_of(&value["tool_name"]).ok_or("the key 'tool_name' is missing")?;
    let Value::Object(input) = value["tool_input"].clone() else {
        return Err("the key 'tool_input' is missing".to_string());
    };
    let (directory, root) = (text_of(&value["cwd"]), text_of(&value["workspace_roots"][0]));
    Ok(Asked { tool, input, directory, root })
}

/// The tools that run a shell command.
pub(super) fn tools(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => &["Bash", "Monitor"],
        Agent::Codex => &["Bash"],
        Agent::Cursor => &["Shell"],
        Agent::Gemini => &["run_shell_command"],
        Agent::Opencode => &["bash"],
    }
}

/// The tools that run commands of another shell. The hook is asked about them too, and refuses.
pub(super) fn tools_of_other_shells(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => &["PowerShell"],
        Agent::Codex | Agent::Cursor | Agent::Gemini | Agent::Opencode => &[],
    }
}

/// Whether the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    /// As the agent would without a hook.
    AsEver,
    /// No: a sandbox is enough.
    Given,
    /// Yes: a rule of the user's says so.
    Ask,
}

/// What the agent is to run instead, in its own words.
pub(super) fn answer(agent: Agent, input: Map<String, Value>, approval: Approval) -> Value {
    match agent {
        // Codex takes a changed command only together with this word, and asks for approval as ever.
        Agent::Claude | Agent::Codex => {
            let mut output = json!({ "hookEventName": "PreToolUse", "updatedInput": input });
            match approval {
                Approval::Ask => output["permissionDecision"] = json!("ask"),
                Approval::AsEver if agent == Agent::Claude => {}
                Approval::Given | Approval::AsEver => output["permissionDecision"] = json!("allow"),
            }
            json!({ "hookSpecificOutput": output })
        }
        Agent::Gemini => {
            let output = json!({ "hookEventName": "BeforeTool", "tool_input": input });
            let mut answer = json!({ "hookSpecificOutput": output });
            if approval == Approval::Given {
                answer["decision"] = json!("allow");
            }
            answer
        }
        Agent::Cursor => json!({ "permission": "allow", "updated_input": input }),
        Agent::Opencode => json!({ "tool_input": input }),
    }
}
