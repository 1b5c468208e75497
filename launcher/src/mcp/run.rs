//! One run: its start, and its end.

use crate::mcp::Ending;
use crate::sys::{process, tied};
use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use rustix::process::Signal;
use sbx_client::{Command, Error, Output};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often a client is told that a command goes on.
const NEWS: Duration = Duration::from_secs(1);
/// Time that a cancelled run has after SIGTERM. By itself `sbx` kills the command after five seconds.
const FOR_CANCELLED: Duration = Duration::from_secs(7);
/// The same, when the server ends: clients wait for two seconds.
const FOR_LAST: Duration = Duration::from_millis(500);

/// How many runs there are.
#[derive(Clone)]
pub struct Runs(Arc<watch::Sender<usize>>);

impl Runs {
    /// None.
    pub fn new() -> Runs {
        Runs(Arc::new(watch::channel(0).0))
    }

    /// Returns when there is none.
    pub async fn none_left(&self) {
        let _ = self.0.subscribe().wait_for(|runs| *runs == 0).await;
    }
}

/// Counts as a run.
struct Counted(Runs);

impl Counted {
    fn new(runs: &Runs) -> Counted {
        runs.0.send_modify(|runs| *runs += 1);
        Counted(runs.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.send_modify(|runs| *runs -= 1);
    }
}

/// A run that was started.
pub struct Running {
    process: OwnedFd,
    end: JoinHandle<Result<Output, Error>>,
    began: Instant,
    _counted: Counted,
}

/// How a run ended.
pub enum End {
    /// By itself; the value has the report.
    Output(Box<Output>),
    /// The command did not run, or nobody knows what became of it.
    Failed(Error),
    /// The client, or the end of the server, ended it.
    Cancelled,
}

/// Starts a command, with this text as its standard input.
///
/// To be called on the thread that lasts as long as the server does: the run ends with it.
pub fn start(command: Command, input: Option<String>, runs: &Runs) -> Result<Running, String> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let command = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).adjust(tied::tie);
    let began = Instant::now();
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    // Before anybody waits for it: the number is still its own.
    let process = match process::open_pid(child.id() as i32) {
        Ok(process) => process,
        Err(failed) => {
            let _ = child.kill();
            return Err(format!("cannot run the command: {failed}"));
        }
    };
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A command may end, or close it, before it has read everything.
        tokio::task::spawn_blocking(move || stdin.write_all(input.as_bytes()));
    }
    let end = tokio::task::spawn_blocking(move || child.wait_with_output());
    Ok(Running { process, end, began, _counted: Counted::new(runs) })
}

impl Running {
    /// Waits for the end, and tells the client how long it takes. A client that cancels the call ends the run.
    pub async fn finish(
        mut self,
        context: &RequestContext<RoleServer>,
        limit: Option<Duration>,
        ending: &watch::Receiver<Ending>,
    ) -> End {
        let mut news = tokio::time::interval_at(tokio::time::Instant::now() + NEWS, NEWS);
        loop {
            tokio::select! {
                ended = &mut self.end => return of(ended),
                _ = context.ct.cancelled() => break,
                _ = news.tick() => tell(context, self.began.elapsed(), limit).await,
            }
        }
        self.signal(Signal::TERM);
        let patience = if *ending.borrow() == Ending::No { FOR_CANCELLED } else { FOR_LAST };
        if tokio::time::timeout(patience, &mut self.end).await.is_err() {
            self.signal(Signal::KILL);
            let _ = (&mut self.end).await;
        }
        End::Cancelled
    }

    fn signal(&self, signal: Signal) {
        process::signal_held(self.process.as_fd(), signal);
    }
}

fn of(ended: Result<Result<Output, Error>, tokio::task::JoinError>) -> End {
    match ended {
        Ok(Ok(output)) => End::Output(Box::new(output)),
        Ok(Err(error)) => End::Failed(error),
        Err(_) => End::Cancelled,
    }
}

/// Tells a client that wants to know how long the command has been running.
async fn tell(context: &RequestContext<RoleServer>, time: Duration, limit: Option<Duration>) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let seconds = time.as_secs();
    let news = ProgressNotificationParam::new(token, seconds as f64);
    let news = news.with_message(format!("running for {seconds} s"));
    let news = match limit {
        Some(limit) => news.with_total(limit.as_secs_f64()),
        None => news,
    };
    let _ = context.peer.notify_progress(news).await;
}
