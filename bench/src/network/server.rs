//! The server on loopback that all connections lead to, and the protocol: the client says one letter.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use crate::Result;

/// One byte is to be sent back.
pub(super) const ECHO: u8 = b'e';
/// A number of bytes is to be sent; the number follows (8 bytes, the last one first).
pub(super) const SEND: u8 = b's';

/// Bytes that are written or read at once.
pub(super) const BLOCK: usize = 256 * 1024;

/// Starts the server; its port.
pub(crate) fn start() -> Result<u16> {
    let failed = |e| format!("cannot listen on loopback: {e}");
    let listener = listener().map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // Whoever is not served ends with an error of its own.
            let _ = small_thread(move || serve(connection));
        }
    });
    Ok(port)
}

/// A socket that many connections at once can wait at.
pub(super) fn listener() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    rustix::net::listen(&listener, 4096)?;
    Ok(listener)
}

/// A thread of which there may be thousands.
pub(super) fn small_thread(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    thread::Builder::new().stack_size(64 * 1024).spawn(|| drop(work())).map(drop)
}

fn serve(mut connection: TcpStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let block = vec![b'x'; BLOCK];
    let mut letter = [0];
    while connection.read(&mut letter)? == 1 {
        if letter == [SEND] {
            let mut number = [0; 8];
            connection.read_exact(&mut number)?;
            let mut left = usize::try_from(u64::from_le_bytes(number)).unwrap_or(0);
            while left > 0 {
                let part = block.get(..left.min(BLOCK)).unwrap_or(&block);
                connection.write_all(part)?;
                left -= part.len();
            }
        } else {
            connection.write_all(&letter)?;
        }
    }
    Ok(())
}
