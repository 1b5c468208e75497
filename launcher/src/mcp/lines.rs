//! Messages as lines: each is one line of JSON, in both directions.
//!
//! Reading and writing wait, so each has a thread of its own. A line that is too long is skipped and answered with an
//! error, and what is no message is as well; neither ends the conversation.

use crate::error::Refusal;
use crate::mcp::Ending;
use crate::sys::{SyscallError, stream};
use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// The longest line of a client, in bytes.
const LONGEST: u64 = 8 << 20;
/// How many messages wait in each direction. Then the other side has to.
const MOST: usize = 32;
/// Time from the end of standard input to the end of the server, in which calls may still be answered. A client that is
/// in a hurry sends a signal, which ends the runs at once.
const FOR_ANSWERS: Duration = Duration::from_secs(4);

/// What JSON-RPC calls errors of a message.
const NO_JSON: i32 = -32700;
const NO_REQUEST: i32 = -32600;

/// Standard input and output, taken away from everything else in this process.
pub struct Streams {
    input: File,
    output: File,
}

impl Streams {
    /// Puts /dev/null in the place of standard input, and standard error in that of standard output: whatever is
    /// printed by mistake is no message to the client.
    pub fn take() -> Result<Streams, SyscallError> {
        let (input, output) = (stream::duplicate(0)?, stream::duplicate(1)?);
        let null =
            File::open("/dev/null").map_err(|cause| SyscallError { call: "open(/dev/null)", cause })?;
        stream::replace(0, null.as_fd())?;
        stream::replace(1, io::stderr().as_fd())?;
        Ok(Streams { input: input.into(), output: output.into() })
    }
}

/// The two directions.
pub struct Lines {
    incoming: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
}

impl Lines {
    /// Starts the threads. The second value comes when everything has been written.
    pub fn start(
        streams: Streams,
        ending: watch::Sender<Ending>,
    ) -> Result<(Lines, oneshot::Receiver<()>), Refusal> {
        let (to_server, incoming) = mpsc::channel(MOST);
        let (outgoing, to_client) = mpsc::channel(MOST);
        let (done, written) = oneshot::channel();
        let (answers, ended) = (outgoing.clone(), ending.clone());
        start("reader", move || {
            read(BufReader::new(streams.input), &to_server, &answers);
            drop((to_server, answers));
            thread::sleep(FOR_ANSWERS);
            // A signal that has arrived says more.
            ended.send_if_modified(|ending| {
                let is_first = *ending == Ending::No;
                if is_first {
                    *ending = Ending::Left;
                }
                is_first
            });
        })?;
        start("writer", move || {
            if write(streams.output, to_client).is_err() {
                let _ = ending.send(Ending::Left);
            }
            let _ = done.send(());
        })?;
        Ok((Lines { incoming, outgoing: Some(outgoing) }, written))
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Refusal> {
    let thread = thread::Builder::new().name(name.to_string()).spawn(work);
    thread.map(drop).map_err(|error| Refusal::new(format!("cannot start a thread: {error}")))
}

/// Reads lines until there are no more, or nobody wants them.
fn read(
    mut input: impl BufRead,
    to_server: &mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    answers: &mpsc::Sender<Vec<u8>>,
) {
    loop {
        let sent = match next_line(&mut input) {
            Ok(None) | Err(_) => return,
            Ok(Some(Line::TooLong)) => {
                let why = format!("the message is longer than {LONGEST} bytes");
                answers.blocking_send(error(&Value::Null, NO_REQUEST, &why)).is_ok()
            }
            Ok(Some(Line::Whole(line))) if line.trim_ascii().is_empty() => true,
            Ok(Some(Line::Whole(line))) => match serde_json::from_slice(&line) {
                Ok(message) => to_server.blocking_send(message).is_ok(),
                Err(_) => answer(&line).is_none_or(|answer| answers.blocking_send(answer).is_ok()),
            },
        };
        if !sent {
            return;
        }
    }
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    if input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") || line.len() < LONGEST as usize {
        return Ok(Some(Line::Whole(line)));
    }
    input.skip_until(b'\n')?;
    Ok(Some(Line::TooLong))
}

/// What a line is answered with that is no message. A notification, or an answer, is not answered.
fn answer(line: &[u8]) -> Option<Vec<u8>> {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return Some(error(&Value::Null, NO_JSON, "the line is not JSON"));
    };
    let is_answer = value.get("result").is_some() || value.get("error").is_some();
    let id = match value.get("id") {
        Some(id @ (Value::String(_) | Value::Number(_))) => id,
        _ if value.get("method").is_some() => return None,
        _ => &Value::Null,
    };
    (!is_answer).then(|| error(id, NO_REQUEST, "the line is no request of the Model Context Protocol"))
}

fn error(id: &Value, code: i32, why: &str) -> Vec<u8> {
    let mut line = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}}).to_string();
    line.push('\n');
    line.into_bytes()
}

fn write(mut output: File, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = lines.blocking_recv() {
        output.write_all(&line)?;
    }
    Ok(())
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            outgoing.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.outgoing = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_read() {
        let mut text = vec![b'x'; LONGEST as usize];
        text.extend(b"yz\nnext\nlast");
        let mut input = BufReader::new(text.as_slice());
        assert!(matches!(next_line(&mut input), Ok(Some(Line::TooLong))));
        for expected in ["next\n", "last"] {
            let Ok(Some(Line::Whole(line))) = next_line(&mut input) else { panic!("no line") };
            assert_eq!(line, expected.as_bytes());
        }
        assert!(matches!(next_line(&mut input), Ok(None)));
    }

    #[test]
    fn what_is_no_message_is_answered_and_what_wants_no_answer_is_not() {
        let answered = |line: &str| {
            let answer = answer(line.as_bytes())?;
            let value: Value = serde_json::from_slice(&answer).ok()?;
            Some((value["id"].clone(), value["error"]["code"].clone()))
        };
        assert_eq!(answered("{"), Some((Value::Null, json!(NO_JSON))));
        assert_eq!(answered("[]"), Some((Value::Null, json!(NO_REQUEST))));
        assert_eq!(answered(r#"{"id":"a","method":5}"#), Some((json!("a"), json!(NO_REQUEST))));
        for silent in [r#"{"method":"x"}"#, r#"{"id":1,"result":5}"#, r#"{"id":null,"error":{}}"#] {
            assert_eq!(answered(silent), None, "{silent}");
        }
    }
}
