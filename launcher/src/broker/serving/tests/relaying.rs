//! What becomes of connections.

use super::*;

#[test]
fn a_connection_to_a_name_reaches_its_host() {
    let port = echo();
    let broker = Made::new(&here(port), &[Door::Rule(port)]).start();
    let mut stream = broker.connect("a.here.test", 0);
    let ends = Some((stream.local_addr().unwrap(), stream.peer_addr().unwrap()));
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number * 7) as u8).collect();
    let mut other = stream.try_clone().unwrap();
    let sent = bytes.clone();
    let sender = thread::spawn(move || {
        other.write_all(&sent).unwrap();
        other.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    assert!(received == bytes, "{} bytes", received.len());
    let host = "a.here.test".to_string();
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    assert_eq!(broker.next(), Event::Opened { host: host.clone(), port, address, ends });
    let (sent, received) = (bytes.len() as u64, bytes.len() as u64);
    assert_eq!(broker.next(), Event::Closed { host, port, sent, received, ends });
}

#[test]
fn questions_are_answered_over_tcp_too() {
    let broker = Made::new(&here(1), &[]).start();
    let mut stream = TcpStream::connect(broker.dns).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answers = Vec::new();
    // Two at once, then one in pieces.
    let question = Broker::question("a.here.test");
    let message = [&(question.len() as u16).to_be_bytes()[..], &question].concat();
    stream.write_all(&[&message[..], &message].concat()).unwrap();
    for byte in &message {
        stream.write_all(&[*byte]).unwrap();
    }
    for _ in 0..3 {
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut answer).unwrap();
        answers.push(first_address(&answer).unwrap());
    }
    assert_eq!(answers, [broker.ask("a.here.test").unwrap(); 3]);
    // One that is too long, and one that is none.
    for message in [&[0xff, 0xff][..], &[0, 1, 7]] {
        let mut stream = TcpStream::connect(broker.dns).unwrap();
        stream.write_all(message).unwrap();
        assert!(matches!(stream.read(&mut [0; 9]), Ok(0) | Err(_)));
    }
    // With too many connections one more waits until some are gone.
    let many: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(broker.dns).unwrap()).collect();
    assert!(broker.ask("b.here.test").is_some());
    let mut stream = TcpStream::connect(broker.dns).unwrap();
    stream.write_all(&message).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(stream.read(&mut [0; 9]).is_err());
    drop(many);
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert!(stream.read(&mut [0; 9]).is_ok_and(|count| count > 0));
}

#[test]
fn what_no_rule_allows_is_reset() {
    let port = echo();
    let made = Made { denied: vec!["no.here.test".into()], ..Made::new(&here(port), &[Door::Rule(port)]) };
    let broker = made.start();
    assert_eq!(broker.ask("evil.test"), None);
    assert_eq!(broker.ask("no.here.test"), None);
    for name in ["evil.test", "no.here.test"] {
        assert_eq!(broker.told(), Event::Refused { name: name.into(), kind: "A".into() });
    }
    // An address that stands for nothing, a private one behind an allowed name, and one of another machine's.
    let fails = |stream, host, errno| broker.fails(stream, host, port, errno);
    fails(broker.connect_to(Ipv4Addr::new(127, 18, 7, 7), 0), "127.18.7.7", libc::EADDRNOTAVAIL);
    fails(broker.connect("private.test", 0), "private.test", libc::EACCES);
    fails(broker.connect_to(Ipv4Addr::new(127, 0, 0, 2), 0), "127.0.0.2", libc::EACCES);
    // An address that a rule names.
    let mut stream = broker.connect_to(Ipv4Addr::LOCALHOST, 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    assert!(matches!(broker.next(), Event::Opened { host, .. } if host == "127.0.0.1"));
}

#[test]
fn a_port_without_a_server_is_told_and_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let broker = Made::new(&here(port), &[Door::Rule(port), Door::HostPort(port)]).start();
    broker.fails(broker.connect("a.here.test", 0), "a.here.test", port, libc::ECONNREFUSED);
    broker.fails(broker.connect_to(Ipv4Addr::LOCALHOST, 1), "localhost", port, libc::ECONNREFUSED);
}

#[test]
fn a_port_of_this_machine_is_brought_inside() {
    let port = echo();
    let broker = Made::new(&[], &[Door::HostPort(port)]).start();
    let mut stream = broker.connect_to(Ipv4Addr::LOCALHOST, 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    assert!(matches!(broker.next(), Event::Opened { host, .. } if host == "localhost"));
}

#[test]
fn names_of_the_file_of_hosts_come_first() {
    let port = echo();
    let rules = [format!("hosts.test:{port}"), format!("127.0.0.0/8:{port}")];
    let broker = Made::new(&rules, &[Door::Rule(port)]).start();
    let mut stream = broker.connect("hosts.test", 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
}

#[test]
fn half_an_end_is_passed_on_and_so_is_a_reset() {
    // The first server answers after the end; the second ends first; the third breaks off.
    let late = server(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    let first = server(|mut stream| {
        stream.write_all(b"bye").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"hello");
    });
    let breaks = server(|mut stream| {
        stream.read_exact(&mut [0; 5]).unwrap();
        reset(&stream.into());
    });
    let (tell, told) = std::sync::mpsc::channel();
    let waits = server(move |mut stream| {
        stream.read_exact(&mut [0; 5]).unwrap();
        tell.send(is_reset(&mut stream)).unwrap();
    });
    let rules: Vec<String> = [late, first, breaks, waits].into_iter().flat_map(here).collect();
    let broker = Made::new(&rules, &[late, first, breaks, waits].map(Door::Rule)).start();
    let connect = |door| {
        let mut stream = broker.connect("a.here.test", door);
        stream.write_all(b"hello").unwrap();
        stream
    };
    let mut stream = connect(0);
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"hello");
    let mut stream = connect(1);
    stream.read_to_end(&mut all).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all, b"hellobye");
    assert!(is_reset(&mut connect(2)));
    let stream = connect(3);
    while !matches!(broker.next(), Event::Opened { port, .. } if port == waits) {}
    reset(&stream.into());
    assert!(told.recv_timeout(Duration::from_secs(10)).unwrap());
}

/// What follows a ClientHello waits for the server's answer. An end does not.
#[test]
fn an_end_is_passed_on_before_a_server_answers() {
    let (tell, told) = std::sync::mpsc::channel();
    // They answer when the client has ended, if that is in order, and then at once.
    let waits = server(move |mut stream| {
        let mut all = Vec::new();
        let is_in_order = stream.read_to_end(&mut all).is_ok();
        tell.send((all.len(), is_in_order)).unwrap();
        let _ = stream.write_all(b"bye");
    });
    let answers = server(|mut stream| {
        stream.read_exact(&mut [0; 9]).unwrap();
        stream.write_all(b"bye").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let breaks = server(|mut stream| {
        stream.read_exact(&mut [0; 9]).unwrap();
        reset(&stream.into());
    });
    let ports = [waits, answers, breaks];
    let rules = ports.map(|port| format!("*.here.test:{port}/tls")).into_iter();
    let addresses = ports.map(|port| format!("127.0.0.1:{port}"));
    let broker = Made::new(&rules.chain(addresses).collect::<Vec<_>>(), &ports.map(Door::Rule)).start();
    let hello = hellos::record(&hellos::hello(&hellos::server_name(b"a.here.test")));
    let connect = |door, more: &[u8]| {
        let mut stream = broker.connect("a.here.test", door);
        stream.write_all(&[&hello[..], more].concat()).unwrap();
        stream
    };
    let told = || told.recv_timeout(Duration::from_secs(20)).unwrap();
    // Half an end, and the whole one.
    let mut stream = connect(0, b"");
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!((all, told()), (b"bye".to_vec(), (hello.len(), true)));
    drop(connect(0, b""));
    assert_eq!(told(), (hello.len(), true));
    // What cannot be let through before the answer, and a client that breaks off.
    let mut stream = connect(0, b"more");
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(is_reset(&mut stream));
    assert!(!told().1);
    let stream = connect(0, b"");
    let own = stream.local_addr().unwrap();
    while !matches!(broker.next(), Event::Opened { ends: Some((near, _)), .. } if near == own) {}
    reset(&stream.into());
    assert!(!told().1);
    // Nothing is lost where a server answers, and its own break is one.
    let mut stream = connect(1, b"");
    let mut all = [0; 3];
    stream.read_exact(&mut all).unwrap();
    assert_eq!(&all, b"bye");
    assert!(is_reset(&mut connect(2, b"")));
}

#[test]
fn who_does_not_read_is_not_read_for() {
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let port = server(move |mut stream| {
        told.lock().unwrap().recv().unwrap();
        let count = std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
        stream.write_all(&count.to_be_bytes()).unwrap();
    });
    let broker = Made::new(&here(port), &[Door::Rule(port)]).start();
    let mut stream = broker.connect("a.here.test", 0);
    stream.set_nonblocking(true).unwrap();
    let (mut sent, part) = (0_u64, vec![7; 65_536]);
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_millis(500) {
        match stream.write(&part) {
            Ok(count) => {
                sent += count as u64;
                last = Instant::now();
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
    // Both sockets have buffers, and so has the pipe.
    assert!(sent < 40_000_000, "{sent}");
    // Others are served meanwhile.
    assert!(broker.ask("b.here.test").is_some());
    tell.send(()).unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut count = [0; 8];
    stream.read_exact(&mut count).unwrap();
    assert_eq!(u64::from_be_bytes(count), sent);
}

/// Where nothing follows it, the kernel says of a pipe that nothing has come.
#[test]
fn urgent_data_breaks_the_connection_at_once() {
    let urge = |stream: &TcpStream| {
        rustix::net::send(stream, b"!", rustix::net::SendFlags::OOB).unwrap();
    };
    let urges = server(move |mut stream| {
        let mut asked = [0];
        stream.read_exact(&mut asked).unwrap();
        if asked == *b"u" {
            urge(&stream);
        }
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let rules: Vec<String> = here(urges).into_iter().collect();
    let broker = Made::new(&rules, &[Door::Rule(urges)]).start();
    for from_here in [true, false] {
        let mut stream = broker.connect("a.here.test", 0);
        stream.write_all(if from_here { b"x" } else { b"u" }).unwrap();
        if from_here {
            urge(&stream);
        }
        assert!(is_reset(&mut stream));
    }
}

/// What follows urgent bytes is not passed on. No side takes what it got for the whole.
#[test]
fn urgent_data_breaks_the_connection() {
    let urge = |stream: &mut TcpStream, urgent: bool| {
        stream.write_all(b"be").unwrap();
        let flags = if urgent { rustix::net::SendFlags::OOB } else { rustix::net::SendFlags::empty() };
        rustix::net::send(&*stream, b"!", flags).unwrap();
        let _ = stream.write_all(b"hind");
        let _ = stream.shutdown(Shutdown::Write);
    };
    let (tell, told) = std::sync::mpsc::channel();
    let reads = server(move |mut stream| {
        let mut all = Vec::new();
        let is_in_order = stream.read_to_end(&mut all).is_ok();
        tell.send((all, is_in_order)).unwrap();
    });
    let urges = server(move |mut stream| {
        let mut urgent = [0];
        stream.read_exact(&mut urgent).unwrap();
        urge(&mut stream, urgent == *b"!");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let rules: Vec<String> = [reads, urges].into_iter().flat_map(here).collect();
    let broker = Made::new(&rules, &[reads, urges].map(Door::Rule)).start();
    for urgent in [false, true] {
        let mut stream = broker.connect("a.here.test", 0);
        urge(&mut stream, urgent);
        let (all, is_in_order) = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(is_in_order != urgent && (urgent || all == b"be!hind"), "{all:?}");
        assert_eq!(is_reset(&mut stream), urgent);
        let mut stream = broker.connect("a.here.test", 1);
        stream.write_all(if urgent { b"!" } else { b"x" }).unwrap();
        assert_eq!(is_reset(&mut stream), urgent);
    }
}
