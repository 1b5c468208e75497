//! The server: which tools there are, and who answers a call.

use crate::mcp::ask::Granted;
use crate::mcp::reports::Reports;
use crate::mcp::run::Runs;
use crate::mcp::settings::Settings;
use crate::mcp::{Ending, execute, read_report, why};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};

/// What a model is told about the tools together.
const INSTRUCTIONS: &str = "\
Commands run in a sandbox: they may read the system and change the workspace, and little else. The answer of execute \
says what was refused and which flag would allow it. No tool changes the rules: if a command needs more, tell the user \
which flag of 'sbx mcp' would allow it, and why you need it. Nothing but files is kept from one command to the next: \
name the directory with cwd, and set variables in the command itself.";

/// How many questions are put to the policy at a time.
const QUESTIONS: usize = 2;

/// The state of a conversation.
pub struct Server {
    pub(super) settings: Settings,
    pub(super) reports: Mutex<Reports>,
    pub(super) granted: Mutex<Granted>,
    /// As many permits as commands may run at a time.
    pub(super) slots: Semaphore,
    /// As many as questions may be put to the policy at a time.
    pub(super) questions: Semaphore,
    /// How many calls wait for one of the slots.
    pub(super) waiting: AtomicUsize,
    /// Held while the user is asked: one question at a time.
    pub(super) asking: tokio::sync::Mutex<()>,
    pub(super) ended: watch::Receiver<Ending>,
    runs: Runs,
}

impl Server {
    /// A server with these settings, which ends when `ended` says so.
    pub fn new(settings: Settings, ended: watch::Receiver<Ending>) -> Server {
        let slots = Semaphore::new(settings.concurrent);
        Server {
            granted: Mutex::new(Granted::new(settings.places.clone())),
            settings,
            reports: Mutex::default(),
            slots,
            questions: Semaphore::new(QUESTIONS),
            waiting: AtomicUsize::new(0),
            asking: tokio::sync::Mutex::default(),
            ended,
            runs: Runs::new(),
        }
    }

    /// Its runs.
    pub fn runs(&self) -> Runs {
        self.runs.clone()
    }
}

/// The value behind a lock. Nobody leaves it half changed.
pub fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("sbx", env!("CARGO_PKG_VERSION")).with_title("sbx sandbox"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = vec![execute::definition(), why::definition(), read_report::definition()];
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let result = match &*request.name {
            execute::NAME => return Ok(execute::call(self, request, &context).await),
            why::NAME => why::call(self, request.arguments).await,
            read_report::NAME => read_report::call(&locked(&self.reports), request.arguments),
            _ => {
                let why = format!(
                    "unknown tool; there are {}, {} and {}",
                    execute::NAME,
                    why::NAME,
                    read_report::NAME
                );
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        Ok(result.into())
    }
}
