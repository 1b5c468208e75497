//! The least that a relay does: two threads for each connection, which splice bytes through a pipe. Whatever stands
//! between two programs costs at least as much.

use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};

use crate::Result;
use crate::network::server::{BLOCK, listener, small_thread};

/// The hidden command under which a copy of this program is the relay.
pub(crate) const CHILD: &str = "network-relay";

/// A relay that runs until this is dropped.
pub(super) struct Relay {
    process: Child,
    pub(super) port: u16,
}

impl Relay {
    /// Starts one to a port of loopback.
    pub(super) fn start(copy: &Path, port: u16) -> Result<Relay> {
        let mut command = Command::new(copy);
        command.arg(CHILD).arg(port.to_string()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|e| format!("cannot start the relay: {e}"))?;
        let mut line = String::new();
        let said = process.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let mut relay = Relay { process, port: 0 };
        relay.port = match said {
            Some(Ok(_)) => line.trim().parse().map_err(|_| "the relay says no port".to_owned())?,
            _ => return Err("the relay says nothing".into()),
        };
        Ok(relay)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Passes connections on to a port, and prints the own one.
pub(crate) fn child(port: u16) -> Result<()> {
    let failed = |e: io::Error| format!("cannot pass connections on: {e}");
    let listener = listener().map_err(failed)?;
    println!("{}", listener.local_addr().map_err(failed)?.port());
    for connection in listener.incoming().flatten() {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        let _ = set_socket_linger(&server, Some(Duration::ZERO));
        let (client, server) = (Arc::new(connection), Arc::new(server));
        for (from, to) in [(client.clone(), server.clone()), (server, client)] {
            let _ = from.set_nodelay(true);
            let work = move || {
                let passed = pass(&from, &to);
                if passed.is_err() {
                    // The other direction ends as well.
                    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                }
                passed
            };
            small_thread(work).map_err(failed)?;
        }
    }
    Ok(())
}

fn pass(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let (out, into) = pipe()?;
    let _ = fcntl_setpipe_size(&into, BLOCK);
    loop {
        let mut held = splice(from, None, &into, None, BLOCK, SpliceFlags::empty())?;
        if held == 0 {
            return to.shutdown(Shutdown::Write);
        }
        while held > 0 {
            held -= splice(&out, None, to, None, held, SpliceFlags::empty())?;
        }
    }
}
