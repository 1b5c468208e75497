//! The tool `execute`: a command line in a run of its own.

mod outcome;

use crate::mcp::ask::{self, Asked};
use crate::mcp::run::{self, End};
use crate::mcp::server::{Server, locked};
use crate::mcp::settings::within;
use crate::mcp::tool;
use crate::sys::path;
use crate::sys::within::is_within;
use crate::text::escape;
pub use outcome::Outcome;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, JsonObject, Tool, ToolAnnotations,
};
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::RequestContext;
use sbx_client::Command;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::SemaphorePermit;

/// The name of the tool.
pub const NAME: &str = "execute";

/// The longest command line and the longest input, in bytes. The kernel takes words of up to 128 KiB.
const LONGEST_COMMAND: usize = 120 << 10;
const LONGEST_INPUT: usize = 1 << 20;
/// How many calls may wait for another one to end.
const MOST_WAITING: usize = 64;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A command line, for bash where there is one and else for sh
    command: String,
    /// The directory to start in: in the workspace, and relative to it; the workspace itself if it is left out
    cwd: Option<String>,
    /// Seconds after which the command and all that it started is ended
    timeout: Option<f64>,
    /// Text for the standard input of the command, which is empty otherwise
    input: Option<String>,
}

/// A command that may be run.
struct Wanted {
    command: String,
    directory: PathBuf,
    time: Option<Duration>,
    input: Option<String>,
}

/// The tool, as clients list it.
pub fn definition() -> Tool {
    let about = "Runs a command line in a sandbox, and returns how it ended, what it wrote (the head and the tail of \
                 it, where it is long), what was refused to it, and which flag of 'sbx mcp' would allow that.";
    Tool::new(NAME, about, tool::schema::<Arguments>())
        .with_title("Run a command in a sandbox")
        .with_raw_output_schema(tool::schema::<Outcome>())
        .with_annotations(ToolAnnotations::new().read_only(false).idempotent(false))
}

/// Answers a call: with the end of its command, or with questions to the user about that.
pub async fn call(
    server: &Server,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> CallToolResponse {
    if let Some(state) = request.request_state {
        return match ask::resume(server, &state, request.input_responses) {
            Some(outcome) => tool::answer(&outcome),
            None => tool::failed(
                "this call was answered already, or long ago; the command was run and is not run again",
            ),
        }
        .into();
    }
    let (number, end) = match run_one(server, request.arguments, context).await {
        Ok(ended) => ended,
        Err(sentence) => return tool::failed(sentence).into(),
    };
    match end {
        // The client wants no answer any more.
        End::Cancelled => tool::failed("the command was ended, because the call was cancelled").into(),
        End::Failed(error) => match error.report() {
            Some(report) => {
                locked(&server.reports).keep(number, report);
                failed_too(tool::answer(&Outcome::of_report(number, report))).into()
            }
            None => tool::failed(error.to_string()).into(),
        },
        End::Output(output) => {
            locked(&server.reports).keep(number, &output.report);
            match ask::about(server, &output.report, Outcome::of(number, &output), context).await {
                Asked::Answered(outcome) => tool::answer(&*outcome).into(),
                Asked::Open(questions) => (*questions).into(),
            }
        }
    }
}

/// Runs a command, when others have ended. An error is a sentence for the model.
async fn run_one(
    server: &Server,
    given: Option<JsonObject>,
    context: &RequestContext<RoleServer>,
) -> Result<(u64, End), String> {
    let asked = tool::arguments(given).and_then(|arguments| checked(server, arguments))?;
    let _slot = slot(server, context).await.ok_or_else(|| {
        format!("too many commands wait already ({MOST_WAITING}); call again when one has ended")
    })?;
    attempt(server, asked, context).await
}

/// Marks an answer as one of a call that did not do what it was for.
fn failed_too(mut answer: CallToolResult) -> CallToolResult {
    answer.is_error = Some(true);
    answer
}

/// The right to run a command, when others have ended; `None` where too many wait for it, or the call is cancelled.
async fn slot<'s>(server: &'s Server, context: &RequestContext<RoleServer>) -> Option<SemaphorePermit<'s>> {
    if let Ok(slot) = server.slots.try_acquire() {
        return Some(slot);
    }
    let _place = Place::among(&server.waiting)?;
    tokio::select! {
        slot = server.slots.acquire() => slot.ok(),
        _ = context.ct.cancelled() => None,
    }
}

/// A place among those that wait.
struct Place<'s>(&'s AtomicUsize);

impl<'s> Place<'s> {
    fn among(waiting: &'s AtomicUsize) -> Option<Place<'s>> {
        let place = Place(waiting);
        // Counted even if it is too many: the drop takes it away again.
        (waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs the command to its end.
async fn attempt(
    server: &Server,
    asked: Wanted,
    context: &RequestContext<RoleServer>,
) -> Result<(u64, End), String> {
    if context.ct.is_cancelled() {
        return Err("the call was cancelled before the command began".to_string());
    }
    locked(&server.granted).places().are_still_real()?;
    let number = locked(&server.reports).number();
    let running = run::start(command(server, &asked), asked.input, &server.runs())?;
    Ok((number, running.finish(context, asked.time, &server.ended).await))
}

fn command(server: &Server, asked: &Wanted) -> Command {
    let settings = &server.settings;
    let sandbox = settings.sandbox(locked(&server.granted).flags());
    let sandbox = match asked.time {
        Some(time) => sandbox.timeout(time),
        None => sandbox.flag("--timeout", "none"),
    };
    // What follows '--' is the command line, even where it begins with a dash.
    let command = sandbox.command(&settings.shell).args(["-c", "--", &asked.command]);
    command.current_dir(&asked.directory)
}

/// Refuses what no call may ask for, in a sentence for the model.
fn checked(server: &Server, arguments: Arguments) -> Result<Wanted, String> {
    let Arguments { command, cwd, timeout, input } = arguments;
    if command.trim().is_empty() {
        return Err("the command is empty".to_string());
    }
    if command.contains('\0') {
        return Err("the command has a NUL byte in it, which no program can be passed".to_string());
    }
    if command.len() > LONGEST_COMMAND {
        return Err(format!(
            "the command is longer than {LONGEST_COMMAND} bytes; write it to a file in pieces and run that, or pass \
             text as input"
        ));
    }
    if input.as_ref().is_some_and(|input| input.len() > LONGEST_INPUT) {
        return Err(format!("the input is longer than {LONGEST_INPUT} bytes; write it to a file in pieces"));
    }
    let directory = directory(&server.settings.workspace, cwd.as_deref())?;
    Ok(Wanted { command, directory, time: time(server, timeout)?, input })
}

fn time(server: &Server, wanted: Option<f64>) -> Result<Option<Duration>, String> {
    let settings = &server.settings;
    let Some(seconds) = wanted else { return Ok(settings.usual_time) };
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    let time = time.ok_or_else(|| "the timeout is no number of seconds greater than 0".to_string())?;
    if !within(time, settings.most_time) {
        let most = settings.most_time.unwrap_or_default().as_secs_f64();
        return Err(format!(
            "the timeout of {seconds} s is longer than the {most} s that this server allows"
        ));
    }
    Ok(Some(time))
}

/// The real directory that a call names. One outside the workspace would be no danger, for the rules stay those of the
/// workspace; but it is no use either, and a mistake.
fn directory(workspace: &Path, named: Option<&str>) -> Result<PathBuf, String> {
    let Some(named) = named else { return Ok(workspace.to_path_buf()) };
    let shown = escape(named.as_bytes(), 400);
    let outside =
        || format!("the directory '{shown}' is not in the workspace; name one in it, or leave cwd out");
    if named.contains('\0') {
        return Err(outside());
    }
    let whole = workspace.join(named);
    // The words alone tell already, whether something is there or not.
    let lexically = whole.components().fold(PathBuf::new(), |mut walked, part| {
        match part {
            std::path::Component::ParentDir => {
                walked.pop();
            }
            part => walked.push(part),
        }
        walked
    });
    if !is_within(&lexically, workspace) {
        return Err(outside());
    }
    let real = path::real(&whole)
        .map_err(|error| format!("cannot use the directory '{shown}': {}", crate::sys::plain(&error)))?;
    if !is_within(&real, workspace) {
        return Err(outside());
    }
    if !real.is_dir() {
        return Err(format!("cannot use '{shown}' as a directory: it is none"));
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_in_the_workspace_whatever_leads_to_it() {
        let base = path::real(&std::env::temp_dir()).unwrap().join(format!("sbx-mcp-{}", std::process::id()));
        let workspace = base.join("workspace");
        std::fs::create_dir_all(workspace.join("a/b")).unwrap();
        std::fs::create_dir_all(base.join("other")).unwrap();
        std::os::unix::fs::symlink(base.join("other"), workspace.join("out")).unwrap();
        std::os::unix::fs::symlink("a/b", workspace.join("in")).unwrap();
        std::fs::write(workspace.join("file"), "").unwrap();
        let in_it = |named: &str| directory(&workspace, Some(named));
        for (named, expected) in [("", ""), (".", ""), ("a", "a"), ("a/../a/b", "a/b"), ("in", "a/b")] {
            assert_eq!(
                in_it(named).as_deref(),
                Ok(&*path::real(&workspace.join(expected)).unwrap()),
                "{named}"
            );
        }
        assert_eq!(in_it(workspace.join("a").to_str().unwrap()), Ok(workspace.join("a")));
        for named in ["..", "/", "/etc", "out", "a/../../other", "../workspace-not", "/nowhere", "a\0"] {
            assert!(in_it(named).is_err_and(|why| why.contains("not in the workspace")), "{named}");
        }
        assert!(in_it("file").is_err_and(|why| why.contains("none")));
        assert!(in_it("missing").is_err_and(|why| why.contains("no such file")));
        std::fs::remove_dir_all(base).unwrap();
    }
}
