//! Bytes from one socket to the other.
//!
//! They are spliced through a pipe (splice(2)) and never come into this process. A side that does not take any more
//! keeps its pipe full, and nothing is read for it: so the sender meets the window of TCP as if there were nobody in
//! between.

use crate::broker::pipes::{Pipe, Pipes};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use rustix::pipe::{SpliceFlags, splice};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How many bytes of one connection are moved before the next one has its turn.
const TURN: usize = 1024 * 1024;

/// One socket of a connection, and what is known of it since it last said EAGAIN.
pub struct End {
    /// The socket.
    pub socket: OwnedFd,
    /// Reading may not wait.
    pub readable: bool,
    /// Writing may not wait.
    pub writable: bool,
    /// Its other end sends no more than there is to be read.
    pub ended: bool,
    /// Its other end has sent urgent data.
    pub urgent: bool,
    /// Writing has failed. The kernel tells an error once, so what reading takes for an end from now on may be none.
    pub failed: bool,
}

impl End {
    /// Of a new socket.
    pub fn new(socket: OwnedFd) -> End {
        End { socket, readable: true, writable: true, ended: false, urgent: false, failed: false }
    }

    /// Options of both sockets of a connection: nothing is held back, a side that is gone without a word is noticed,
    /// and urgent bytes are where they were sent.
    pub fn prepare(socket: &OwnedFd) {
        use rustix::net::sockopt;
        let _ = sockopt::set_tcp_nodelay(socket, true);
        let _ = sockopt::set_socket_keepalive(socket, true);
        let _ = sockopt::set_socket_oobinline(socket, true);
        let _ = sockopt::set_tcp_keepidle(socket, Duration::from_secs(60));
        let _ = sockopt::set_tcp_keepintvl(socket, Duration::from_secs(30));
    }
}

/// What flows in one direction.
#[derive(Default)]
pub struct Flow {
    pipe: Option<Pipe>,
    /// Bytes in the pipe.
    pub held: usize,
    /// Bytes that have arrived.
    pub total: u64,
    /// The sender has sent everything.
    pub ended: bool,
    /// And the receiver knows.
    pub is_done: bool,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// One of the sockets has to become ready.
    Waits,
    /// There may be more at once.
    More,
    /// There is no pipe.
    NoPipe,
    /// All has arrived.
    Done,
    /// The connection is broken.
    Broken,
}

impl Flow {
    /// Moves bytes.
    pub fn pump(&mut self, from: &mut End, to: &mut End, pipes: &mut Pipes) -> Turn {
        if self.is_done {
            return Turn::Done;
        }
        let turn = self.turn(from, to, pipes);
        if self.held == 0
            && let Some(pipe) = self.pipe.take()
        {
            pipes.put(pipe);
        }
        turn
    }

    fn turn(&mut self, from: &mut End, to: &mut End, pipes: &mut Pipes) -> Turn {
        let mut left = TURN;
        loop {
            while let Some(pipe) = self.pipe.as_ref().filter(|_| self.held > 0) {
                if !to.writable {
                    return Turn::Waits;
                }
                match transfer(&pipe.out, &to.socket, self.held) {
                    Ok(count) => {
                        self.held = self.held.saturating_sub(count);
                        self.total = self.total.saturating_add(count as u64);
                        left = left.saturating_sub(count);
                    }
                    Err(Errno::AGAIN) => to.writable = false,
                    Err(_) => {
                        to.failed = true;
                        return Turn::Broken;
                    }
                }
            }
            if self.ended {
                // ENOTCONN: the receiver has reset the connection, which its own direction will tell.
                let _ = rustix::net::shutdown(&to.socket, Shutdown::Write);
                self.is_done = true;
                return Turn::Done;
            }
            if !from.readable {
                return Turn::Waits;
            }
            if left == 0 {
                return Turn::More;
            }
            if self.pipe.is_none() {
                self.pipe = pipes.take();
            }
            let Some(pipe) = &self.pipe else { return Turn::NoPipe };
            // The pipe is empty: it is the socket that EAGAIN is about.
            match transfer(&from.socket, &pipe.into, pipe.size) {
                // Urgent data stops the pipe like an end, or as if nothing had come. What follows it would be missing
                // from the stream.
                Ok(0) if from.failed || !is_at_end(&from.socket) => return Turn::Broken,
                Err(Errno::AGAIN) if from.urgent && has_more(&from.socket) => return Turn::Broken,
                Ok(0) => self.ended = true,
                Ok(count) => self.held = count,
                Err(Errno::AGAIN) => from.readable = false,
                Err(_) => return Turn::Broken,
            }
        }
    }

    /// Gives the pipe up.
    pub fn release(&mut self, pipes: &mut Pipes) {
        if let Some(pipe) = self.pipe.take() {
            pipes.discard(pipe);
        }
    }
}

/// Whether a socket that gave nothing has nothing more to give.
fn is_at_end(socket: &OwnedFd) -> bool {
    peek(socket) == Ok(0)
}

fn has_more(socket: &OwnedFd) -> bool {
    peek(socket) == Ok(1)
}

fn peek(socket: &OwnedFd) -> Result<usize, Errno> {
    let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut [0], peek)).map(|(count, _)| count)
}

fn transfer(from: &OwnedFd, to: &OwnedFd, length: usize) -> rustix::io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    rustix::io::retry_on_intr(|| splice(from, None, to, None, length, flags))
}

/// Has the other side see the connection end as by an error, when the socket is closed.
pub fn reset(socket: &OwnedFd) {
    let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Both ends of a connection. Nothing waits on the first one.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        client.set_nonblocking(true).unwrap();
        (client, server)
    }

    /// What the server has said before arrives, and then no end in order.
    #[test]
    fn a_reset_that_writing_meets_is_no_end() {
        let ((mut client, inside), (outside, mut server)) = (connection(), connection());
        inside.set_nonblocking(true).unwrap();
        client.write_all(b"question").unwrap();
        server.write_all(b"answer").unwrap();
        reset(&server.into());
        let (mut inside, mut outside) = (End::new(inside.into()), End::new(outside.into()));
        let (mut up, mut down, mut pipes) = (Flow::default(), Flow::default(), Pipes::new(4));
        assert_eq!(up.pump(&mut inside, &mut outside, &mut pipes), Turn::Broken);
        assert_eq!(down.pump(&mut outside, &mut inside, &mut pipes), Turn::Broken);
        let mut said = [0; 9];
        assert_eq!(client.read(&mut said).unwrap(), 6);
        assert_eq!(client.read(&mut said).unwrap_err().kind(), ErrorKind::WouldBlock);
        reset(&inside.socket);
        drop(inside);
        assert_eq!(client.read(&mut said).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}
