//! What is looked at, and where it ends.

use super::*;
use crate::hosts::Protocol;

#[test]
fn what_is_said_has_to_match() {
    let (tls, http) = (echo(), echo());
    let addresses = format!("127.0.0.1:{tls},{http}");
    let rules = [format!("*.here.test:{tls}/tls"), format!("*.here.test:{http}/http"), addresses];
    let broker = Made::new(&rules, &[Door::Rule(tls), Door::Rule(http)]).start();
    let hello = |name: &[u8]| hellos::record(&hellos::hello(&hellos::server_name(name)));
    let good = hello(b"a.here.test");
    let mut stream = broker.connect("a.here.test", 0);
    stream.write_all(&good).unwrap();
    let mut back = vec![0; good.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, good);
    // Slowly, in small records.
    let mut stream = broker.connect("a.here.test", 0);
    let split: Vec<u8> = good[5..].chunks(9).flat_map(hellos::record).collect();
    for bytes in split.chunks(3) {
        stream.write_all(bytes).unwrap();
        thread::sleep(Duration::from_micros(100));
    }
    let mut back = vec![0; split.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, split);
    let head = b"GET / HTTP/1.1\r\nHost: a.here.test\r\n\r\n";
    let mut stream = broker.connect("a.here.test", 1);
    stream.write_all(head).unwrap();
    stream.read_exact(&mut [0; 20]).unwrap();
    drop(stream);
    let mut mismatches = 0;
    let mut mismatch = |bytes: &[u8], door: usize| {
        let mut stream = broker.connect("a.here.test", door);
        stream.write_all(bytes).unwrap();
        assert!(is_reset(&mut stream), "{bytes:?}");
        loop {
            match broker.next() {
                Event::Mismatch { host, said, protocol, .. } => {
                    assert_eq!((host.as_str(), protocol == Protocol::Http), ("a.here.test", door == 1));
                    mismatches += 1;
                    return said;
                }
                Event::Opened { .. } | Event::Closed { .. } => {}
                // It came before the host had answered.
                Event::Failed { errno: libc::ECONNABORTED, .. } => {}
                event => panic!("{event:?}"),
            }
        }
    };
    assert_eq!(mismatch(&hello(b"b.here.test"), 0).as_deref(), Some("b.here.test"));
    assert_eq!(mismatch(&hellos::record(&hellos::hello(&[])), 0), None);
    assert_eq!(mismatch(b"SSH-2.0-x\r\n", 0), None);
    assert_eq!(mismatch(b"GET / HTTP/1.1\r\nHost: b.here.test\r\n\r\n", 1).as_deref(), Some("b.here.test"));
    assert_eq!(mismatches, 4);
    // It does not say enough in time. The time runs from its first byte: a browser connects before it has a question.
    let mut stream = broker.connect("a.here.test", 0);
    thread::sleep(LOOK_TIME * 3);
    stream.write_all(&good[..30]).unwrap();
    let start = Instant::now();
    assert!(is_reset(&mut stream) && start.elapsed() > Duration::from_millis(200));
    // It ends in the middle.
    let mut stream = broker.connect("a.here.test", 0);
    stream.write_all(&good[..30]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(is_reset(&mut stream));
}

/// A program whose connect(2) waits until its host is reached can say nothing before.
#[test]
fn bytes_are_waited_for_when_the_host_is_reached() {
    let port = echo();
    let rules = [format!("*.here.test:{port}/tls"), format!("127.0.0.1:{port}")];
    let broker = Made::new(&rules, &[Door::Rule(port), Door::Proxy]).start();
    // By its address, and by the proxy.
    for door in [0, 1] {
        let name = format!("late{door}.here.test");
        let mut stream = match door {
            0 => broker.connect(&name, 0),
            _ => broker.connect_to(Ipv4Addr::LOCALHOST, 1),
        };
        if door == 1 {
            let head = format!("CONNECT {name}:{port} HTTP/1.1\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
        }
        let hello = hellos::record(&hellos::hello(&hellos::server_name(name.as_bytes())));
        let told = broker.next();
        assert!(matches!(told, Event::Opened { .. }), "{told:?}");
        stream.write_all(&hello[..30]).unwrap();
        let told = broker.next();
        assert!(matches!(told, Event::Mismatch { said: None, .. }), "{told:?}");
        let told = broker.next();
        assert!(matches!(told, Event::Closed { .. }), "{told:?}");
    }
    let mut stream = broker.connect("late2.here.test", 0);
    let hello = hellos::record(&hellos::hello(&hellos::server_name(b"late2.here.test")));
    stream.write_all(&hello[..30]).unwrap();
    let told = broker.next();
    assert!(matches!(told, Event::Opened { .. }), "{told:?}");
    stream.write_all(&hello[30..]).unwrap();
    let mut back = vec![0; hello.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, hello);
}

#[test]
fn one_of_several_protocols_will_do() {
    let port = echo();
    let address = format!("127.0.0.1:{port}");
    let rules = [format!("*.here.test:{port}/tls"), format!("a.here.test:{port}/http"), address];
    let broker = Made::new(&rules, &[Door::Rule(port)]).start();
    let hello = |name: &[u8]| hellos::record(&hellos::hello(&hellos::server_name(name)));
    let head = b"GET / HTTP/1.1\r\nHost: a.here.test\r\n\r\n";
    for good in [&hello(b"a.here.test")[..], head] {
        let mut stream = broker.connect("a.here.test", 0);
        stream.write_all(good).unwrap();
        stream.read_exact(&mut [0; 20]).unwrap();
    }
    for wrong in [&hello(b"b.here.test")[..], b"GET / HTTP/1.1\r\nHost: b.here.test\r\n\r\n", b"SSH-2.0\r\n"]
    {
        let mut stream = broker.connect("a.here.test", 0);
        stream.write_all(wrong).unwrap();
        assert!(is_reset(&mut stream));
    }
    // The other rule names this one, for TLS alone.
    let mut stream = broker.connect("b.here.test", 0);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: b.here.test\r\n\r\n").unwrap();
    assert!(is_reset(&mut stream));
}

#[test]
fn in_log_mode_all_is_let_through_and_told() {
    let port = echo();
    let rules = [format!("*.here.test:{port}/tls")];
    let made = Made { watches: true, ..Made::new(&rules, &[Door::Rule(port)]) };
    let broker = made.start();
    let mut stream = broker.connect("any.here.test", 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    let mut told = [broker.next(), broker.next()];
    told.sort_by_key(|event| matches!(event, Event::Mismatch { .. }));
    assert!(matches!(&told[0], Event::Opened { host, .. } if host == "any.here.test"));
    assert!(matches!(&told[1], Event::Mismatch { said: None, .. }));
}

#[test]
fn without_room_connections_wait_their_turn() {
    let port = echo();
    // Room for four at a time.
    let made = Made { descriptors: RESERVED + 16, ..Made::new(&here(port), &[Door::Rule(port)]) };
    let broker = made.start();
    let address = broker.ask("a.here.test").unwrap();
    let mut streams: Vec<TcpStream> = (0..20).map(|_| broker.connect_to(address, 0)).collect();
    for stream in &mut streams {
        stream.write_all(b"hello").unwrap();
    }
    for mut stream in streams {
        stream.read_exact(&mut [0; 5]).unwrap();
    }
    let told: Vec<Event> = (0..40).map(|_| broker.told()).collect();
    assert_eq!(told.iter().filter(|event| matches!(event, Event::Full { count: 4 })).count(), 1, "{told:?}");
}

#[test]
fn without_descriptors_it_goes_on_later() {
    let port = echo();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let [channel, supervisor] = packet_pair().unwrap();
    let mut parts = Some((listener, channel));
    let child = process::fork().unwrap();
    if child == 0 {
        let Some((listener, channel)) = parts.take() else { process::exit_now(9) };
        let listener = Listener { kind: Door::HostPort(port), socket: listener.into() };
        let (datagrams, questions) = (Vec::new(), Vec::new());
        let doors = Doors { datagrams, questions, listeners: vec![listener] };
        crate::sys::descriptor::close_all_but(&mut vec![
            channel.as_raw_fd(),
            doors.listeners[0].socket.as_raw_fd(),
        ]);
        let _ = privilege::limit(privilege::Limit::OpenFiles, 300, 300);
        let _ = crate::sys::signal::dispose(libc::SIGPIPE, crate::sys::signal::Disposition::Ignore);
        let setup = Setup {
            rules: HostRules::default(),
            resolver: Resolver::none(),
            watches: false,
            run: RunsEnd::Inside,
            routes: None,
        };
        // It believes that there are more than the kernel gives.
        let ended = Loop::new(setup, Settings::new(100_000), doors, channel).and_then(|mut new| new.run());
        process::exit_now(i32::from(ended.is_err()));
    }
    drop(parts);
    let connect = || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    };
    // More than have room, and fewer than the queue of the listener takes besides.
    let mut streams: Vec<TcpStream> = (0..240).map(|_| connect()).collect();
    let served =
        |stream: &mut TcpStream| stream.write_all(b"hello").is_ok() && stream.read_exact(&mut [0; 5]).is_ok();
    let count = streams.iter_mut().take(50).filter_map(|stream| served(stream).then_some(())).count();
    assert!(count > 0, "{count}");
    drop(streams);
    let again = (0..50).any(|_| {
        thread::sleep(Duration::from_millis(100));
        served(&mut connect())
    });
    assert!(again);
    drop(supervisor);
    assert_eq!(process::wait(Some(child), true, false), Some((child, process::Change::Exited(0))));
}

#[test]
fn many_connections_are_served_at_once() {
    let port = echo();
    let made = Made { descriptors: 100_000, ..Made::new(&here(port), &[Door::Rule(port)]) };
    let broker = made.start();
    let address = broker.ask("a.here.test").unwrap();
    let mut streams: Vec<TcpStream> = (0..300).map(|_| broker.connect_to(address, 0)).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        stream.write_all(&[number as u8; 1000]).unwrap();
    }
    for (number, stream) in streams.iter_mut().enumerate() {
        let mut back = [0; 1000];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, [number as u8; 1000]);
    }
}

#[test]
fn the_end_of_the_supervisor_is_the_end() {
    let port = echo();
    let broker = Made::new(&here(port), &[Door::Rule(port)]).start();
    let mut stream = broker.connect("a.here.test", 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    // What has happened so far is told when only its sending side is closed.
    rustix::net::shutdown(broker.supervisor.as_ref().unwrap(), rustix::net::Shutdown::Write).unwrap();
    assert!(matches!(broker.next(), Event::Opened { .. }));
    assert!(matches!(broker.next(), Event::Closed { sent: 5, received: 5, .. }));
    drop(broker);
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
}
