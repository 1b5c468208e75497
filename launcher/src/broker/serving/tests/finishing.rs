//! What becomes of what a run has sent when it has ended.

use super::*;
use crate::broker::FINISH;
use crate::broker::proxy::plain;
use crate::hosts::HostName;

/// More than sockets and a pipe hold.
const MUCH: usize = 24_000_000;

impl Broker {
    /// No process of the run is left.
    fn finish(&self) {
        rustix::io::write(self.supervisor.as_ref().unwrap(), &[FINISH]).unwrap();
    }

    /// Whether it serves to the end. Its thread ends a moment after its channel is closed.
    fn has_ended(&self) -> bool {
        let until = Instant::now() + Duration::from_secs(5);
        let thread = self.thread.as_ref().unwrap();
        while !thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        thread.is_finished()
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut buffer = [0; events::LONGEST];
        while let Ok(count @ 1..) = rustix::io::read(self.supervisor.as_ref().unwrap(), &mut buffer) {
            events.extend(Event::decode(&buffer[..count]));
        }
        events
    }
}

/// A server that waits before it reads, and says how much it got, and whether that ended in order.
fn slow(wait: Duration) -> (u16, std::sync::mpsc::Receiver<(usize, bool)>) {
    let (say, got) = std::sync::mpsc::channel();
    let port = server(move |mut stream| {
        thread::sleep(wait);
        let (mut count, mut buffer) = (0, vec![0; 1 << 16]);
        let is_in_order = loop {
            match stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(more) => count += more,
                Err(_) => break false,
            }
        };
        let _ = say.send((count, is_in_order));
    });
    (port, got)
}

/// Sends much, as a program that ends with its last byte.
fn send_and_end(mut stream: TcpStream) {
    stream.write_all(&vec![7; MUCH]).unwrap();
}

#[test]
fn what_was_sent_before_the_end_arrives() {
    let (port, got) = slow(Duration::from_millis(500));
    let broker = Made::new(&here(port), &[Door::Rule(port)]).start();
    // One whose host is looked up for longer than the program lives.
    let mut late = broker.connect("late.here.test", 0);
    late.write_all(b"last words").unwrap();
    drop(late);
    send_and_end(broker.connect("a.here.test", 0));
    broker.finish();
    let mut all = [got.recv_timeout(Duration::from_secs(20)).unwrap(), got.recv().unwrap()];
    all.sort_unstable();
    assert_eq!(all, [(10, true), (MUCH, true)]);
    let events = broker.events();
    assert!(broker.has_ended());
    let is_whole = |event: &Event| matches!(event, Event::Closed { sent, .. } if *sent == MUCH as u64);
    assert!(events.iter().any(is_whole), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, Event::Cut { .. })), "{events:?}");
}

/// Nobody has read yet whom it wants to reach.
#[test]
fn what_was_sent_to_the_proxy_arrives() {
    let (port, got) = slow(Duration::ZERO);
    let broker = Made::new(&here(port), &[Door::Proxy]).start();
    for round in 1..=20 {
        let mut stream = TcpStream::connect(("127.0.0.1", broker.listeners[0].port())).unwrap();
        let host = Host::Name(HostName::parse("a.here.test").unwrap());
        let said = [plain::write(&host, port).unwrap(), b"last words".to_vec()].concat();
        stream.write_all(&said).unwrap();
        drop(stream);
        if round == 20 {
            broker.finish();
        }
    }
    for _ in 1..=20 {
        assert_eq!(got.recv_timeout(Duration::from_secs(20)).unwrap(), (10, true));
    }
}

#[test]
fn what_nobody_takes_is_cut_off_and_told_of() {
    let (port, got) = slow(Duration::from_secs(8));
    let broker = Made::new(&here(port), &[Door::Rule(port)]).start();
    let mut stream = broker.connect("a.here.test", 0);
    // The program is killed while it sends: what it had passed to the kernel is more than the host takes.
    stream.set_nonblocking(true).unwrap();
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        let _ = stream.write(&[7; 1 << 16]);
    }
    let idle = broker.connect("idle.here.test", 0);
    drop((stream, idle));
    broker.finish();
    let events = broker.events();
    let cut: Vec<_> = events.iter().filter(|event| matches!(event, Event::Cut { .. })).collect();
    assert!(matches!(cut[..], [Event::Cut { host, .. }] if host == "a.here.test"), "{events:?}");
    // An end in order would say that this is all.
    assert!(got.recv_timeout(Duration::from_secs(20)).is_ok_and(|(_, is_in_order)| !is_in_order));
}

/// Who ends the run does not wait.
#[test]
fn without_a_word_it_ends_at_once() {
    let (port, _got) = slow(Duration::from_secs(60));
    let broker = Made::new(&here(port), &[Door::Rule(port)]).start();
    let mut stream = broker.connect("a.here.test", 0);
    stream.write_all(b"x").unwrap();
    let began = Instant::now();
    drop(broker);
    assert!(began.elapsed() < Duration::from_secs(2));
}
