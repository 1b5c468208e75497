//! What runs inside: it connects to a port of loopback, and prints how that went.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use crate::network::Work;
use crate::network::server::{BLOCK, ECHO, SEND};
use crate::{Result, contestants};

/// The hidden command under which a copy of this program does its work inside.
pub(crate) const CHILD: &str = "network-inside";
/// The hidden command under which it holds connections open.
pub(crate) const HOLD: &str = "network-hold";

/// How many connections are held open.
const HELD: usize = 100;

/// Prints a figure for each kind of work: microseconds, MiB a second twice, and milliseconds.
pub(crate) fn child(port: u16, work: &Work) -> Result<()> {
    println!("{} {}", contestants::FILTERS, contestants::filters_here()?);
    let figures = || -> io::Result<[f64; 4]> {
        Ok([
            connects(port, work.connects)?,
            bulk(port, 1, work.bytes)?,
            bulk(port, 100, work.bytes)?,
            crowd(port, work)?,
        ])
    };
    let [connect, one, hundred, crowd] = figures().map_err(|e| format!("cannot talk to the server: {e}"))?;
    println!("{connect} {one} {hundred} {crowd}");
    Ok(())
}

/// Connects when the first byte has been read, repeats that byte, and waits for the end of input.
pub(crate) fn hold(port: u16) -> Result<()> {
    let held = || -> io::Result<()> {
        let mut byte = [0];
        io::stdin().read_exact(&mut byte)?;
        let mut connections = Vec::new();
        for _ in 0..HELD {
            let mut connection = connect_to(port)?;
            echo(&mut connection)?;
            connections.push(connection);
        }
        io::stdout().write_all(&byte)?;
        io::stdout().flush()?;
        io::stdin().read_to_end(&mut Vec::new()).map(drop)
    };
    held().map_err(|e| format!("cannot hold connections: {e}"))
}

fn connect_to(port: u16) -> io::Result<TcpStream> {
    connect((Ipv4Addr::LOCALHOST, port).into())
}

pub(super) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let connection = TcpStream::connect(address)?;
    connection.set_nodelay(true)?;
    // Closed by a reset, it leaves no port in TIME_WAIT: the ports of some thousand connections would run out.
    rustix::net::sockopt::set_socket_linger(&connection, Some(Duration::ZERO))?;
    Ok(connection)
}

pub(super) fn echo(connection: &mut TcpStream) -> io::Result<()> {
    connection.write_all(&[ECHO])?;
    connection.read_exact(&mut [0])
}

/// The median time, in microseconds, from a connect until the first byte comes back.
fn connects(port: u16, number: usize) -> io::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..number {
        let before = Instant::now();
        echo(&mut connect_to(port)?)?;
        times.push(before.elapsed().as_secs_f64() * 1e6);
    }
    Ok(crate::stats::Sorted::new(times).median())
}

/// MiB a second over so many connections at once, which share so many bytes.
fn bulk(port: u16, streams: usize, bytes: usize) -> io::Result<f64> {
    let share = bytes / streams;
    let start = Arc::new(Barrier::new(streams + 1));
    let mut readers = Vec::new();
    for _ in 0..streams {
        let mut connection = connect_to(port)?;
        echo(&mut connection)?;
        let start = start.clone();
        readers.push(thread::spawn(move || {
            start.wait();
            read(&mut connection, share)
        }));
    }
    let before = Instant::now();
    start.wait();
    for reader in readers {
        reader.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))?;
    }
    Ok((share * streams) as f64 / (1 << 20) as f64 / before.elapsed().as_secs_f64())
}

fn read(connection: &mut TcpStream, bytes: usize) -> io::Result<()> {
    connection.write_all(&[&[SEND][..], &(bytes as u64).to_le_bytes()].concat())?;
    let mut block = vec![0; BLOCK];
    let mut left = bytes;
    while left > 0 {
        match connection.read(&mut block)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}

/// The time, in milliseconds, until all of many connections that are open at once have had an answer.
fn crowd(port: u16, work: &Work) -> io::Result<f64> {
    let before = Instant::now();
    let mut connections = (0..work.crowd).map(|_| connect_to(port)).collect::<io::Result<Vec<_>>>()?;
    for connection in &mut connections {
        connection.write_all(&[ECHO])?;
    }
    for connection in &mut connections {
        connection.read_exact(&mut [0])?;
    }
    Ok(before.elapsed().as_secs_f64() * 1e3)
}
