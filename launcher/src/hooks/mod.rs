//! `sbx hook`: the shell commands of an agent that stays outside go through `sbx`, by the agent's own means.
//!
//! Most agents ask a program before they run a tool, and let it change what they run. `sbx hook install` writes such a
//! hook into the agent's settings (`install`, `edit`); it starts `sbx hook filter`, which reads what the agent is
//! about to run and answers with the same command inside `sbx run` ([`filter`]). [`canary`] tries it.

pub mod canary;
mod codex;
mod edit;
pub mod filter;
mod install;
mod matching;
mod protocol;
mod reading;
mod record;
mod rules;
mod settings;

pub use install::{Installed, Removed, install, remove, trust};
pub use record::Record;

use crate::host::Host;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An agent whose settings `sbx` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Cursor, and its agent for the command line.
    Cursor,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
}

impl Agent {
    /// All of them.
    pub const ALL: [Agent; 5] = [Agent::Claude, Agent::Codex, Agent::Cursor, Agent::Gemini, Agent::Opencode];

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Cursor => "cursor",
            Agent::Gemini => "gemini",
            Agent::Opencode => "opencode",
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Agent::Claude => "Claude Code",
            Agent::Codex => "Codex",
            Agent::Cursor => "Cursor",
            Agent::Gemini => "Gemini CLI",
            Agent::Opencode => "opencode",
        }
    }

    /// The file that the hook is written to; `None` where the user has no home.
    pub fn file(self, host: &Host) -> Option<PathBuf> {
        let absolute = |name| host.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || host.home().map(PathBuf::from);
        let below = |variable, directory| absolute(variable).or_else(|| Some(home()?.join(directory)));
        Some(match self {
            Agent::Claude => below("CLAUDE_CONFIG_DIR", ".claude")?.join("settings.json"),
            Agent::Codex => below("CODEX_HOME", ".codex")?.join("hooks.json"),
            Agent::Cursor => home()?.join(".cursor/hooks.json"),
            Agent::Gemini => absolute("GEMINI_CLI_HOME").or_else(home)?.join(".gemini/settings.json"),
            Agent::Opencode => below("XDG_CONFIG_HOME", ".config")?.join("opencode/plugins/sbx.js"),
        })
    }

    /// How a user sees that the agent asks its hook.
    pub fn how_to_see(self) -> &'static str {
        match self {
            Agent::Claude => "have it run 'sbx why', which says that the command is confined",
            Agent::Codex | Agent::Cursor | Agent::Gemini | Agent::Opencode => {
                "have it run 'sbx why', which says so"
            }
        }
    }

    /// Whether the file is the hook's alone.
    fn has_file_of_its_own(self) -> bool {
        self == Agent::Opencode
    }

    /// What stays open whatever the hook does, and how to close it: one sentence a line.
    pub fn open_ends(self) -> &'static [&'static str] {
        match self {
            Agent::Claude => &[
                "Claude Code reads files and writes them by itself: only its shell commands are confined",
                "with --bare, --safe-mode, CLAUDE_CODE_SIMPLE or \"disableAllHooks\": true it runs commands without \
                 the hook and without a word, and a project can bring that in its .claude/settings.json: start it as \
                 'sbx agent claude' where that matters",
                "commands in skills and slash commands (!`...`) run without the hook: \
                 \"disableSkillShellExecution\": true in its settings switches them off",
                "rules about single commands (\"deny\": [\"Bash(git push:*)\"]) hold if they stand in settings; those \
                 of --disallowedTools and --settings see the changed command",
                "rules about files (\"deny\": [\"Read(.env)\", \"Edit(x)\"]) hold for its own tools alone, and for \
                 'cat .env' in a shell command no more: name such files in paths.deny and paths.protect of a profile",
            ],
            Agent::Codex => &[
                "Codex skips a hook that you have not trusted, or have switched off, and runs commands without it: \
                 trust it with /hooks in codex or 'sbx hook install codex --trust', and start Codex as 'sbx agent \
                 codex' where that matters; a project that you trust can switch it off in its .codex/config.toml",
                "rules about single commands (~/.codex/rules) see the changed command, and are not about it any more",
                "Codex applies patches by itself: only its shell commands are confined",
            ],
            Agent::Cursor => &[
                "Cursor edits files by itself: only its shell commands are confined",
                "what Cursor does with the hook was read in its documentation, and not tried; the hook has to say \
                 \"allow\", so Cursor may not ask you about commands any more",
            ],
            Agent::Gemini => &[
                "Gemini CLI reads files and writes them by itself: only its shell commands are confined",
                "commands in its custom commands (!{...}) run without the hook, and rules about single commands see \
                 the changed command",
                "with \"hooksConfig\": { \"enabled\": false } or the hook among its disabled ones it runs commands \
                 without the hook: start it as 'sbx agent gemini' where that matters",
            ],
            Agent::Opencode => &[
                "opencode reads files and writes them by itself: only its shell commands are confined",
                "patterns of \"permission\" about single commands see the changed command",
                "if it cannot load the plugin, it runs commands without it: let \"permission\": { \"bash\": \"ask\" } \
                 in opencode.json show you each command, or start it as 'sbx agent opencode'",
            ],
        }
    }
}

/// What the hook does with a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The program of `sbx`, by an absolute path.
    pub program: PathBuf,
    /// The profile: a built-in one, or the absolute path of a file.
    pub profile: String,
    /// Whether what runs in the sandbox needs no approval.
    pub approve: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Moved;
    use serde_json::Value;

    /// Hooks, the agent's own profile and what is protected in workspaces know one place for its settings.
    #[test]
    fn a_variable_puts_the_settings_of_an_agent_elsewhere_for_all() {
        for (agent, variable, rest) in [
            (Agent::Claude, "CLAUDE_CONFIG_DIR", "/.claude/settings.json"),
            (Agent::Codex, "CODEX_HOME", "/.codex/hooks.json"),
            (Agent::Gemini, "GEMINI_CLI_HOME", "/.gemini/settings.json"),
            (Agent::Opencode, "XDG_CONFIG_HOME", "/.config/opencode/plugins/sbx.js"),
        ] {
            let host = |name: &str, value: &str| Host::with_environment(vec![(name.into(), value.into())]);
            let elsewhere = host(variable, "/elsewhere");
            let moved = Moved::all(|name| elsewhere.variable(name));
            let places: Vec<PathBuf> = moved.iter().filter_map(|moved| moved.place(rest)).collect();
            assert_eq!(places, [agent.file(&elsewhere).unwrap()], "{variable}");
            let usual = agent.file(&host("HOME", "/h")).unwrap();
            assert_eq!(usual, PathBuf::from(format!("/h{rest}")));
            let name = format!("{}{}", sbx_profiles::AGENT, agent.word());
            let profile: Value = serde_json::from_str(sbx_profiles::built_in(&name).unwrap()).unwrap();
            let place = profile["agent"]["places"][variable].as_str().unwrap().replace("${HOME}", "/h");
            assert!(usual.starts_with(place), "{variable}");
        }
    }
}
