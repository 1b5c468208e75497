//! Asking the user for a flag, in the client (elicitation), when a command was refused something.
//!
//! A model decides what is refused to its commands, and so what the user is asked for. So only the server's user can
//! switch this on (`--ask`); only flags that the explainer proposes are asked for, and of these only such as open one
//! place or one host by its name; nothing that looks as if it held secrets; each only once; and no more than a few
//! times. What the user allows holds until the server ends.
//!
//! In older versions of the protocol the server asks while the call goes on. In newer ones the call is answered with
//! the questions, and the client makes it again with their answers: the command is not run again, what is told of it
//! waits in between.

mod rules;

use crate::mcp::execute::Outcome;
use crate::mcp::places::Places;
use crate::mcp::server::{Server, locked};
use crate::report::effect;
use crate::text::{escape, process_name};
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequiredResult, InputResponses, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use sbx_client::report::{Report, ViolationRecord};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// How often the user is asked, at most: in all, and about one command.
const MOST: usize = 20;
const MOST_OF_ONE: usize = 3;
/// How many calls wait for a client that makes them again with answers.
const MOST_WAITING: usize = 16;
/// Time for an answer, where the call goes on meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);
/// The field of the form.
const FIELD: &str = "allow";

/// A flag with its value.
type Flag = (String, OsString);

/// What the user has been asked for, and has allowed.
pub struct Granted {
    flags: Vec<Flag>,
    /// Those of the server's own flags and of these.
    places: Places,
    asked: HashSet<Flag>,
    waiting: VecDeque<Waiting>,
}

/// A call that the client is to make again, with the answers to these questions.
struct Waiting {
    state: String,
    questions: Vec<Question>,
    outcome: Outcome,
}

/// A question to the user.
struct Question {
    flag: Flag,
    text: String,
}

/// What comes of a call.
pub enum Asked {
    /// Its answer.
    Answered(Box<Outcome>),
    /// Questions, to be answered first.
    Open(Box<InputRequiredResult>),
}

impl Granted {
    /// Nothing, beside what a server has anyway.
    pub fn new(places: Places) -> Granted {
        Granted { flags: Vec::new(), places, asked: HashSet::new(), waiting: VecDeque::new() }
    }

    /// The flags that were allowed.
    pub fn flags(&self) -> &[Flag] {
        &self.flags
    }

    /// What commands must not move.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// The places with one more flag. `None` where commands would decide what is at one of them.
    fn with(&self, (flag, value): &Flag) -> Option<Places> {
        self.places.with(flag.trim_start_matches('-'), Path::new(value))
    }
}

/// Asks the user for what a run was refused, if that is wanted and can be done.
pub async fn about(
    server: &Server,
    report: &Report,
    mut outcome: Outcome,
    context: &RequestContext<RoleServer>,
) -> Asked {
    if !server.settings.asks || !can_ask(context) {
        return Asked::Answered(Box::new(outcome));
    }
    let questions = questions(server, report);
    let version = context.protocol_version();
    if version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) && !questions.is_empty() {
        return Asked::Open(Box::new(wait(server, questions, outcome)));
    }
    for question in questions {
        let _one_at_a_time = server.asking.lock().await;
        // What was allowed since this question was made counts as well.
        if locked(&server.granted).with(&question.flag).is_some() && asked(&question, context).await {
            outcome.granted.extend(grant(server, question.flag));
        }
    }
    Asked::Answered(Box::new(outcome))
}

/// The answer of a call that is made again; `None` where none waits for that.
pub fn resume(server: &Server, state: &str, answers: Option<InputResponses>) -> Option<Outcome> {
    let waiting = {
        let mut granted = locked(&server.granted);
        let place = granted.waiting.iter().position(|waiting| waiting.state == state)?;
        granted.waiting.remove(place)?
    };
    let (mut outcome, mut answers) = (waiting.outcome, answers.unwrap_or_default());
    for (place, question) in waiting.questions.into_iter().enumerate() {
        let answer = answers.remove(&key(place)).and_then(|answer| serde_json::from_value(answer).ok());
        if answer.is_some_and(|answer| says_yes(&answer)) {
            outcome.granted.extend(grant(server, question.flag));
        }
    }
    Some(outcome)
}

fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let asks = capabilities.and_then(|capabilities| capabilities.elicitation);
    // A client that names no kind has forms.
    asks.is_some_and(|asks| asks.form.is_some() || asks.url.is_none())
}

/// The questions about a run, each of which is asked once only.
fn questions(server: &Server, report: &Report) -> Vec<Question> {
    let mut granted = locked(&server.granted);
    let home = server.settings.home.as_deref();
    let proposed = report.violations.iter().filter_map(|violation| {
        let flag = rules::proposed(violation, home, &granted.places)?;
        granted.with(&flag).filter(|_| !rules::is_delicate(&flag, &server.settings.workspace))?;
        Some(Question { text: text(&flag, violation), flag })
    });
    let proposed: Vec<Question> = proposed.collect();
    let is_new =
        |question: &Question| granted.asked.len() < MOST && granted.asked.insert(question.flag.clone());
    proposed.into_iter().filter(is_new).take(MOST_OF_ONE).collect()
}

/// One line, and nothing in it that could end the line: the names are the command's.
fn text((flag, value): &Flag, violation: &ViolationRecord) -> String {
    // An apostrophe would end the word that it stands in.
    let quoted = |text: String| text.replace('\'', "\\x27");
    let (value, process) =
        (quoted(escape(value.as_bytes(), 400)), quoted(process_name(&violation.process.0)));
    let what = effect(violation);
    format!(
        "A command in the sandbox ('{process}') {what}. Allow '{flag} {value}' to all further commands, until this \
         server ends?"
    )
}

/// Keeps what is to be told until the client has answers.
fn wait(server: &Server, questions: Vec<Question>, outcome: Outcome) -> InputRequiredResult {
    let requests = questions.iter().enumerate().filter_map(|(place, question)| {
        Some((key(place), InputRequest::Elicitation(ElicitRequest::new(form(question)?))))
    });
    let requests: BTreeMap<String, InputRequest> = requests.collect();
    // The number of the run tells the calls apart. Who knows it is the client, and the client answers for the user.
    let state = format!("run {}", outcome.run);
    let mut granted = locked(&server.granted);
    granted.waiting.push_back(Waiting { state: state.clone(), questions, outcome });
    if granted.waiting.len() > MOST_WAITING {
        granted.waiting.pop_front();
    }
    InputRequiredResult::new(Some(requests), Some(state))
}

fn key(place: usize) -> String {
    format!("{FIELD}-{place}")
}

fn form(question: &Question) -> Option<ElicitRequestParams> {
    let form = ElicitationSchema::builder().required_bool(FIELD).build().ok()?;
    let message = question.text.clone();
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: form })
}

/// Asks while the call goes on.
async fn asked(question: &Question, context: &RequestContext<RoleServer>) -> bool {
    let Some(form) = form(question) else { return false };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let options = PeerRequestOptions::with_timeout(PATIENCE);
    let Ok(sent) = context.peer.send_request_with_option(request, options).await else { return false };
    match sent.await_response().await {
        Ok(ClientResult::ElicitResult(answer)) => says_yes(&answer),
        _ => false,
    }
}

fn says_yes(answer: &ElicitResult) -> bool {
    let content = answer.content.as_ref().filter(|_| answer.action == ElicitationAction::Accept);
    content.and_then(|content| content.get(FIELD)?.as_bool()) == Some(true)
}

/// Has all further runs be given a flag, and says which. Of two that do not go together the second is left out.
fn grant(server: &Server, flag: Flag) -> Option<String> {
    let told = format!("{} {}", flag.0, escape(flag.1.as_bytes(), 400));
    let mut granted = locked(&server.granted);
    granted.places = granted.with(&flag)?;
    granted.flags.push(flag);
    Some(told)
}
