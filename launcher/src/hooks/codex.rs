//! What Codex itself says of a hook: whether it is trusted. Codex skips one that is not, and runs commands all the
//! same.
//! `codex app-server` answers over its standard input and output, without a model.

use crate::host::Host;
use crate::program;
use crate::sys::plain;
use crate::text::{escape, shown};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long Codex may take for all answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// A hook as Codex lists it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    key: String,
    hash: String,
    /// Whether Codex runs it.
    pub runs: bool,
}

/// A conversation with `codex app-server`.
pub(super) struct Codex {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    last: u64,
    until: Instant,
}

impl Codex {
    /// Starts it; `None` where it is not installed.
    pub fn start(host: &Host) -> Option<Result<Codex, String>> {
        let program = program::find(OsStr::new("codex"), host.variable("PATH"), Path::new("/")).ok()?;
        Some(Codex::start_program(&program).and_then(|mut codex| {
            let client = json!({ "clientInfo": { "name": "sbx", "version": env!("CARGO_PKG_VERSION") } });
            codex.call("initialize", &client)?;
            codex.send(&json!({ "method": "initialized" }))?;
            Ok(codex)
        }))
    }

    fn start_program(program: &Path) -> Result<Codex, String> {
        let cannot = |why: String| format!("cannot start 'codex app-server': {why}");
        let mut child = Command::new(program)
            .arg("app-server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| cannot(plain(&error)))?;
        let (sender, lines) = channel();
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(cannot("it has no pipes".to_string()));
        };
        // Ends when Codex does: see `drop`.
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).count()
        });
        Ok(Codex { child, input, lines, last: 0, until: Instant::now() + PATIENCE })
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let sent = writeln!(self.input, "{message}").and_then(|()| self.input.flush());
        sent.map_err(|error| format!("codex app-server reads nothing: {}", plain(&error)))
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        self.last += 1;
        self.send(&json!({ "id": self.last, "method": method, "params": parameters }))?;
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let line =
                self.lines.recv_timeout(left).map_err(|_| format!("codex does not answer {method}"))?;
            let answer: Value = serde_json::from_str(&line).unwrap_or_default();
            if answer["id"] != json!(self.last) {
                continue;
            }
            if let Some(error) = answer.get("error") {
                return Err(format!("codex refuses {method}: {}", escape(error.to_string().as_bytes(), 300)));
            }
            return Ok(answer["result"].clone());
        }
    }

    /// The hook with this command, as it counts for a session that works in this directory.
    pub fn hook(&mut self, command: &str, directory: &Path) -> Result<Listed, String> {
        let listed = self.call("hooks/list", &json!({ "cwds": [directory] }))?;
        let hooks = listed["data"].as_array().into_iter().flatten();
        let mut hooks = hooks.flat_map(|entry| entry["hooks"].as_array().into_iter().flatten());
        let hook = hooks.find(|hook| hook["command"] == json!(command)).ok_or_else(|| {
            let directory = shown(directory);
            format!(
                "Codex does not know the hook in '{directory}': does [features] in config.toml, or in \
                 .codex/config.toml there, say hooks = false?"
            )
        })?;
        let text = |name: &str| hook[name].as_str().unwrap_or_default().to_string();
        let trusted = matches!(hook["trustStatus"].as_str(), Some("trusted" | "managed"));
        let runs = trusted && hook["enabled"] != json!(false);
        Ok(Listed { key: text("key"), hash: text("currentHash"), runs })
    }

    /// Tells Codex that its user trusts the hook, as its own review does; the file that says so.
    pub fn trust(&mut self, hook: &Listed) -> Result<PathBuf, String> {
        let state = json!({ hook.key.clone(): { "trusted_hash": hook.hash } });
        let edit = json!({ "keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert" });
        let written = self.call("config/batchWrite", &json!({ "edits": [edit] }))?;
        let file = written["filePath"].as_str().ok_or("codex does not say where it keeps that")?;
        Ok(PathBuf::from(file))
    }
}

impl Drop for Codex {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
