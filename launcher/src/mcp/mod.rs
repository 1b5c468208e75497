//! `sbx mcp`: a server of the Model Context Protocol on standard input and output.
//!
//! The client is the user's side. What comes in the arguments of a tool is the model's, and may be anything: no
//! argument gives a command more than the flags do that the server was started with (`settings`). Each command is a
//! run of its own, of a child that is killed when the server ends, however that is.
//!
//! One thread answers the client and starts the runs: a run ends with the thread that started it. Other threads only
//! wait: for lines of the client (`lines`), for a signal, for the end of a run.

mod ask;
mod execute;
mod lines;
mod places;
mod read_report;
mod reports;
mod run;
mod server;
mod settings;
mod tool;
mod why;

pub use settings::{Given, REFUSED, Settings, Start};

use crate::error::{Refusal, cannot};
use crate::sys::signal::{self, Disposition, Set};
use lines::{Lines, Streams};
use rmcp::RoleServer;
use rmcp::ServiceExt;
use rmcp::service::{RunningService, ServerInitializeError};
use server::Server;
use std::thread;
use std::time::Duration;
use tokio::sync::watch;

/// The signals that ask the server to end.
const REQUESTS: [i32; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];
/// Time for the runs to end in, when the server does. Afterwards the kernel kills them.
const FOR_RUNS: Duration = Duration::from_millis(1500);

/// Why the server is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is not.
    No,
    /// The client has gone.
    Left,
    /// This signal arrived.
    Signal(i32),
}

/// Serves until the client leaves or a signal arrives, and returns the exit status.
pub fn serve(settings: Settings) -> Result<i32, Refusal> {
    let streams = Streams::take().map_err(cannot("take over standard input and output"))?;
    // A client, or a command that takes no more input, may close a pipe that is written to.
    signal::dispose(libc::SIGPIPE, Disposition::Ignore).map_err(cannot("ignore SIGPIPE"))?;
    let (ending, ended) = watch::channel(Ending::No);
    // Before there are threads: each would have to block the signals.
    hear_signals(ending.clone())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Refusal::new(format!("cannot start the server: {error}")))?;
    let server = Server::new(settings, ended.clone());
    let result = runtime.block_on(converse(server, streams, (ending, ended.clone())));
    runtime.shutdown_background();
    result?;
    Ok(match *ended.borrow() {
        Ending::Signal(number) => 128 + number,
        Ending::No | Ending::Left => 0,
    })
}

/// Has a thread wait for signals that ask for an end.
fn hear_signals(ending: watch::Sender<Ending>) -> Result<(), Refusal> {
    let heard =
        REQUESTS.iter().copied().filter(|number| signal::disposition(*number) == Disposition::Default);
    let heard: Vec<i32> = heard.collect();
    let set = Set::of(&heard);
    signal::set_mask(&set).map_err(cannot("block signals"))?;
    let wait = move || {
        if let Ok(number) = signal::wait(&set) {
            let _ = ending.send(Ending::Signal(number));
        }
    };
    let thread = thread::Builder::new().name("signals".to_string()).spawn(wait);
    thread.map(drop).map_err(|error| Refusal::new(format!("cannot start a thread: {error}")))
}

async fn converse(
    server: Server,
    streams: Streams,
    (ending, mut ended): (watch::Sender<Ending>, watch::Receiver<Ending>),
) -> Result<(), Refusal> {
    let runs = server.runs();
    let (lines, written) = Lines::start(streams, ending)?;
    let mut end = ended.clone();
    let running = tokio::select! {
        running = server.serve(lines) => running,
        _ = end.wait_for(|ending| matches!(ending, Ending::Signal(_))) => return Ok(()),
    };
    match running {
        Ok(running) => attend(running, &mut ended).await,
        // It did not want anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(refusal(&error)),
    }
    let _ = tokio::time::timeout(FOR_RUNS, runs.none_left()).await;
    let _ = tokio::time::timeout(FOR_RUNS, written).await;
    Ok(())
}

/// Waits for the end of the conversation.
async fn attend(running: RunningService<RoleServer, Server>, ended: &mut watch::Receiver<Ending>) {
    let cancel = running.cancellation_token();
    let waiting = running.waiting();
    tokio::pin!(waiting);
    tokio::select! {
        _ = &mut waiting => return,
        _ = ended.wait_for(|ending| *ending != Ending::No) => cancel.cancel(),
    }
    let _ = waiting.await;
}

fn refusal(error: &ServerInitializeError) -> Refusal {
    Refusal::new(match error {
        ServerInitializeError::ExpectedInitializeRequest(_) => {
            "the client did not begin with 'initialize', as the Model Context Protocol has it".to_string()
        }
        other => format!("cannot begin a conversation with the client: {other}"),
    })
}
