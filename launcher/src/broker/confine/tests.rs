use super::*;
use crate::broker::{Resolver, RunsEnd, Setup, serve};
use crate::hosts::HostRules;
use crate::sys::datagram;
use crate::sys::process::Change;
use crate::sys::socket::packet_pair;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use std::net::UdpSocket;
use std::time::Duration;

fn none() -> Doors {
    Doors { datagrams: Vec::new(), questions: Vec::new(), listeners: Vec::new() }
}

/// Tries what a command might want of a broker. Returns which of these does not behave as it should, from 1.
fn first_fault(open: &std::fs::File, theirs: &OwnedFd) -> usize {
    let Ok([ours, other]) = packet_pair() else { return 98 };
    // Its number is closed by then, which std does not forgive.
    std::mem::forget(other);
    let parent = process::parent();
    if confine(&none(), None, &ours).is_err() {
        return 99;
    }
    let socket = |family, kind| rustix::net::socket(family, kind, None);
    let opened = rustix::fs::open(c"/etc/passwd", OFlags::RDONLY, Mode::empty());
    let fails = [
        opened.is_err(),
        socket(AddressFamily::UNIX, SocketType::STREAM).is_err(),
        socket(AddressFamily::NETLINK, SocketType::RAW).is_err(),
        socket(AddressFamily::INET, SocketType::RAW).is_err(),
        process::test_signal(parent) == Err(Errno::PERM),
        // Nothing is open but what belongs to it.
        rustix::io::fcntl_getfd(open) == Err(Errno::BADF),
        rustix::io::fcntl_getfd(theirs) == Err(Errno::BADF),
        process::exec_raw(0, 0, 0).errno() == libc::EPERM,
    ];
    let works = [
        socket(AddressFamily::INET, SocketType::STREAM).is_ok(),
        socket(AddressFamily::INET6, SocketType::DGRAM).is_ok(),
        rustix::io::fcntl_getfd(&ours).is_ok(),
    ];
    fails.iter().chain(&works).position(|held| !held).map_or(0, |place| place + 1)
}

#[test]
fn nothing_is_left_but_sockets() {
    let open = std::fs::File::open("/").unwrap();
    let theirs = packet_pair().unwrap();
    let child = process::fork().unwrap();
    if child == 0 {
        process::exit_now(first_fault(&open, &theirs[0]) as i32);
    }
    assert_eq!(process::wait(Some(child), true, false), Some((child, Change::Exited(0))));
}

#[test]
fn the_filter_has_every_call() {
    assert!(filter().is_ok());
}

#[test]
fn it_serves_while_it_is_confined_and_ends_with_the_channel() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let [channel, supervisor] = packet_pair().unwrap();
    let socket = OwnedFd::from(socket);
    datagram::tell_destinations(&socket).unwrap();
    let mut parts = Some((socket, channel));
    let child = process::fork().unwrap();
    if child == 0 {
        let Some((socket, channel)) = parts.take() else { process::exit_now(9) };
        let doors = Doors { datagrams: vec![socket], ..none() };
        let setup = Setup {
            rules: HostRules::default(),
            resolver: Resolver::of_host(),
            watches: true,
            run: RunsEnd::Inside,
            routes: None,
        };
        serve(setup, doors, channel);
    }
    drop(parts);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    client.send(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x04test\0\0\x01\0\x01").unwrap();
    let mut buffer = [0; 512];
    assert!(client.recv(&mut buffer).unwrap() > 12);
    drop(supervisor);
    assert_eq!(process::wait(Some(child), true, false), Some((child, Change::Exited(0))));
}
