//! The tool `why`: asks the policy, and runs nothing.

use crate::mcp::server::{Server, locked};
use crate::mcp::tool;
use crate::sys::tied;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::process::{Command, Stdio};

/// The name of the tool.
pub const NAME: &str = "why";

/// The longest answer, in bytes.
const LONGEST: u64 = 1 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A file or directory; what is relative begins at the workspace
    path: Option<String>,
    /// Access wanted to the path: r, w, x, d (removing or renaming it) or several; r if it is left out
    access: Option<String>,
    /// A TCP connection: host:port
    connect: Option<String>,
    /// Listening on a TCP port
    listen: Option<u16>,
    /// Connecting to the UNIX socket at this path
    unix: Option<String>,
    /// A system call, with numbers for its arguments if they matter: openat, or socket,2,1
    call: Option<String>,
}

/// What the policy says.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Answer {
    /// allowed, refused or depends
    answer: String,
    /// The name of the profile
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// Why, if it is refused
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The rules that decide
    rules: Vec<Rule>,
    /// What it depends on
    depends: Vec<String>,
    /// The flags of 'sbx mcp' that would allow it. Only the user can give them
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow_with: Option<String>,
    /// What else there is to know
    notes: Vec<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Rule {
    /// Where it stands
    place: String,
    /// What it is for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The tool, as clients list it.
pub fn definition() -> Tool {
    let about = "Asks whether commands may do something, by which rule, and which flag of 'sbx mcp' would allow it. \
                 Nothing is run. Exactly one of path, connect, listen, unix and call is the question.";
    Tool::new(NAME, about, tool::schema::<Arguments>())
        .with_title("Ask the policy")
        .with_raw_output_schema(tool::schema::<Answer>())
        .with_annotations(ToolAnnotations::new().read_only(true).idempotent(true).open_world(false))
}

/// Answers.
pub async fn call(server: &Server, given: Option<JsonObject>) -> CallToolResult {
    let asked = tool::arguments(given).and_then(words).map(|words| {
        let mut command = server.settings.question(locked(&server.granted).flags());
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        tied::tie(&mut command);
        command
    });
    let command = match asked {
        Ok(command) => command,
        Err(sentence) => return tool::failed(sentence),
    };
    let _one_of_a_few = server.questions.acquire().await;
    match ask(command).await {
        Ok(answer) => tool::answer(&answer),
        Err(sentence) => tool::failed(sentence),
    }
}

/// The question in words of `sbx why`: each flag and its value are one word, so that no value can be taken for a flag.
fn words(arguments: Arguments) -> Result<Vec<String>, String> {
    let Arguments { path, access, connect, listen, unix, call } = arguments;
    let questions = [
        ("--path", path),
        ("--connect", connect),
        ("--bind", listen.map(|port| port.to_string())),
        ("--unix", unix),
        ("--call", call),
    ];
    let mut asked = questions.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
    let one = || "ask about exactly one of path, connect, listen, unix and call".to_string();
    let (flag, value) = asked.next().ok_or_else(one)?;
    if asked.next().is_some() {
        return Err(one());
    }
    if value.contains('\0') {
        return Err("the question has a NUL byte in it".to_string());
    }
    if matches!(flag, "--path" | "--unix") && value.starts_with('~') {
        return Err(
            "a shell replaces '~' by the home directory, and this tool does not: name the path in full"
                .into(),
        );
    }
    let access = match (flag, access) {
        ("--path", Some(access))
            if access.is_empty() || access.contains(|letter| !"rwxd".contains(letter)) =>
        {
            return Err("access is one or more of the letters r, w, x and d".to_string());
        }
        ("--path", access) => access,
        (_, None) => None,
        (_, Some(_)) => return Err("access is about a path; leave it out".to_string()),
    };
    let access = access.map(|access| format!("--op={access}"));
    Ok([format!("{flag}={value}")].into_iter().chain(access).collect())
}

/// The answer of the program; an error is its sentence.
async fn ask(mut command: Command) -> Result<Answer, String> {
    let failed = |error: io::Error| format!("cannot ask the policy: {}", crate::sys::plain(&error));
    // On this thread, which lasts: the program ends with the thread that starts it.
    let mut child = command.spawn().map_err(failed)?;
    let read = move || {
        let (mut answer, mut sentence) = (String::new(), String::new());
        if let Some(stdout) = child.stdout.take() {
            stdout.take(LONGEST).read_to_string(&mut answer)?;
        }
        if let Some(stderr) = child.stderr.take() {
            stderr.take(LONGEST).read_to_string(&mut sentence)?;
        }
        child.wait().map(|_| (answer, sentence))
    };
    let read = tokio::task::spawn_blocking(read).await;
    let (answer, sentence) = read.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(failed)?;
    serde_json::from_str(&answer).map_err(|_| {
        let sentence = sentence.trim();
        sentence.strip_prefix("sbx: ").unwrap_or(sentence).to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(arguments: serde_json::Value) -> Result<Vec<String>, String> {
        words(serde_json::from_value(arguments).unwrap())
    }

    #[test]
    fn a_question_is_one_and_its_value_no_flag() {
        let question = json!({"path": "--json", "access": "rx"});
        assert_eq!(asked(question), Ok(vec!["--path=--json".to_string(), "--op=rx".to_string()]));
        assert_eq!(asked(json!({"listen": 80})), Ok(vec!["--bind=80".to_string()]));
        for wrong in [
            json!({}),
            json!({"path": "a", "call": "b"}),
            json!({"call": "read", "access": "r"}),
            json!({"path": "\0"}),
            json!({"path": "a", "access": "read"}),
            json!({"path": "a", "access": "-x"}),
            json!({"path": "~/.ssh/id_rsa"}),
            json!({"unix": "~/agent.sock"}),
        ] {
            assert!(asked(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
