//! Servers on loopback that count connections, so that "the server saw no connection" can be checked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::{stage, sys};

/// What the HTTP server answers every request with.
pub const BODY: &str = "hello from the test server\n";

/// An HTTP server on 127.0.0.1. Its thread lives until the test process ends.
pub struct HttpServer {
    /// The port it listens on.
    pub port: u16,
    /// The peers, in order.
    seen: Arc<Mutex<Vec<SocketAddr>>>,
}

impl HttpServer {
    /// Starts one on a free port.
    pub fn start() -> HttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let visitors = Arc::clone(&seen);
        std::thread::spawn(move || {
            while let Ok((stream, from)) = listener.accept() {
                visitors.lock().unwrap().push(from);
                std::thread::spawn(move || answer(stream));
            }
        });
        HttpServer { port, seen }
    }

    /// The address of a document on it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/file", self.port)
    }

    /// How many connections were made to it before this call. They are accepted in order: one of our own shows when all
    /// of them have been.
    pub fn connections(&self) -> usize {
        let before = self.seen.lock().unwrap().len();
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let ours = stream.local_addr().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let mut seen = self.seen.lock().unwrap();
            // Nobody else has its port while it is open; somebody may have had it before.
            if let Some(place) = seen.iter().skip(before).position(|from| *from == ours) {
                seen.remove(before + place);
                return seen.len();
            }
            drop(seen);
            assert!(Instant::now() < deadline, "the test server accepts nothing any more");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn answer(mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut chunk) {
            Ok(count @ 1..) if request.len() < 65536 => request.extend_from_slice(&chunk[..count]),
            _ => return,
        }
    }
    let length = BODY.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close";
    let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{BODY}");
}

/// An HTTPS server with a certificate of its own authority, run by the `openssl` tool.
pub struct HttpsServer {
    /// The port it listens on.
    pub port: u16,
    /// The authority's certificate, readable for everyone.
    pub authority: PathBuf,
    child: Child,
}

impl HttpsServer {
    /// Starts one on a free port.
    pub fn start() -> HttpsServer {
        let dir = stage::fresh_dir(&crate::User::current());
        let (authority, key) = (dir.join("ca.pem"), dir.join("key.pem"));
        make_certificate(&authority, &key);
        let mut command = Command::new("openssl");
        command
            .args(["s_server", "-accept", "127.0.0.1:0", "-www", "-cert"])
            .arg(&authority)
            .arg("-key")
            .arg(&key);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = stage::spawn(&mut command);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("ACCEPT 127.0.0.1:").map(|port| port.trim().parse().unwrap()))
            .expect("openssl s_server tells its port");
        // It keeps writing; without a reader it would end by SIGPIPE.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        HttpsServer { port, authority, child }
    }

    /// The address of its status page.
    pub fn url(&self) -> String {
        format!("https://localhost:{}/", self.port)
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make_certificate(certificate: &Path, key: &Path) {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-days", "2", "-subj", "/CN=localhost"]);
    command.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    command.arg("-out").arg(certificate).arg("-keyout").arg(key).stderr(Stdio::piped());
    let output = stage::spawn(&mut command).wait_with_output().unwrap();
    assert!(output.status.success(), "openssl req: {}", String::from_utf8_lossy(&output.stderr));
}

/// A UNIX-domain listener that counts.
pub struct UnixServer {
    accepted: Arc<Mutex<Accepted>>,
}

struct Accepted {
    listener: UnixListener,
    count: usize,
}

impl Accepted {
    /// Accepts all pending connections.
    fn all(&mut self) {
        while self.listener.accept().is_ok() {
            self.count += 1;
        }
    }
}

impl UnixServer {
    /// Listens on a path, for every user.
    pub fn at(path: &Path) -> UnixServer {
        use std::os::unix::fs::PermissionsExt;
        let listener = UnixListener::bind(path).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        UnixServer::serve(listener)
    }

    /// Listens on an abstract name.
    pub fn abstract_name(name: &str) -> UnixServer {
        let address = UnixAddr::from_abstract_name(name).unwrap();
        UnixServer::serve(UnixListener::bind_addr(&address).unwrap())
    }

    fn serve(listener: UnixListener) -> UnixServer {
        let waiting = listener.try_clone().unwrap();
        listener.set_nonblocking(true).unwrap();
        let accepted = Arc::new(Mutex::new(Accepted { listener, count: 0 }));
        let server = UnixServer { accepted: Arc::clone(&accepted) };
        std::thread::spawn(move || {
            while sys::wait_for_input(waiting.as_fd()).is_ok() {
                accepted.lock().unwrap().all();
            }
        });
        server
    }

    /// How many connections were made to it before this call.
    pub fn connections(&self) -> usize {
        let mut accepted = self.accepted.lock().unwrap();
        accepted.all();
        accepted.count
    }
}
