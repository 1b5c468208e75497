//! `sbx mcp`: what a client of the Model Context Protocol gets, and what no model gets by it.

mod asking;
mod bounds;
mod calls;
mod ends;

use sbx_tests::command::Running;
use sbx_tests::{Output, World};
use serde_json::{Value, json};
use std::io::{PipeWriter, Write};
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client, as small as can be.
pub struct Client {
    server: Running,
    /// The server's standard input; `None` when the client has left.
    input: Option<PipeWriter>,
    last: u64,
}

impl Client {
    /// Starts a server with these flags, and begins the conversation.
    pub fn start(world: &World, flags: &[&str]) -> Client {
        Client::able(world, flags, json!({}))
    }

    /// The same, of a client with these abilities.
    pub fn able(world: &World, flags: &[&str], abilities: Value) -> Client {
        let mut client = Client::silent(world, flags);
        let about = json!({"name": "suite", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": abilities, "clientInfo": about});
        let answer = client.request("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "sbx", "{answer}");
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// Starts a server, and says nothing yet.
    pub fn silent(world: &World, flags: &[&str]) -> Client {
        let (output, input) = std::io::pipe().unwrap();
        let words = ["mcp"].iter().chain(flags);
        let server = world.sbx(words).pass_fd(output.into(), 0).start();
        Client { server, input: Some(input), last: 0 }
    }

    /// Sends a line.
    pub fn line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn message(&mut self, message: &Value) {
        self.line(message.to_string().as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.message(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request, and returns its number.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Answers a request of the server.
    pub fn reply(&mut self, id: &Value, result: Value) {
        self.message(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Sends a request, and waits for the answer.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Sends a call of `execute`, and returns its number.
    pub fn begin(&mut self, command: &str) -> u64 {
        self.ask("tools/call", json!({"name": "execute", "arguments": {"command": command}}))
    }

    /// Calls a tool and returns its result.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Runs a command, which has to begin, and returns what is told of it.
    #[track_caller]
    pub fn run(&mut self, command: &str) -> Value {
        self.run_with(json!({"command": command}))
    }

    #[track_caller]
    pub fn run_with(&mut self, arguments: Value) -> Value {
        let result = self.call("execute", arguments);
        assert_eq!(result["isError"], false, "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that has to refuse, in a sentence with these words.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: Value, words: &[&str]) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        for word in words {
            assert!(text.contains(word), "{text:?} lacks {word:?}");
        }
    }

    /// Every message of the server until now: its standard output has nothing else.
    pub fn messages(&self) -> Vec<Value> {
        let text = self.server.so_far();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no message: {line:?}"));
        whole.lines().map(parse).collect()
    }

    /// Waits for a message.
    #[track_caller]
    pub fn wait_for(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(message) = self.messages().into_iter().find(&is_it) {
                return message;
            }
            assert!(Instant::now() < until, "{what} never came: {:?}", self.messages());
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub fn answer(&self, id: u64) -> Value {
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        self.wait_for(&format!("the answer to {id}"), is_it)
    }

    /// The process of the server.
    pub fn pid(&self) -> i32 {
        self.server.pid()
    }

    pub fn signal(&self, number: i32) {
        self.server.signal(number);
    }

    /// Leaves, and returns how the server ended.
    #[track_caller]
    pub fn leave(mut self) -> Output {
        self.input = None;
        self.server.wait()
    }

    /// Waits for a server that ends while the client is still there.
    #[track_caller]
    pub fn ended(self) -> Output {
        let Client { server, input, .. } = self;
        let output = server.wait();
        drop(input);
        output
    }
}
