use super::*;

fn name(text: &str) -> Host {
    Host::Name(HostName::parse(text).unwrap())
}

fn wish(bytes: &[u8]) -> (Host, u16, String) {
    match read(bytes, bytes.first() == Some(&5)) {
        Asked::Wish(length, wish) if length == bytes.len() => {
            (wish.host, wish.port, String::from_utf8(wish.head).unwrap())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn tunnels_name_a_host_and_a_port() {
    let connect = |target: &str| format!("CONNECT {target} HTTP/1.1\r\nHost: other.example\r\n\r\n");
    assert_eq!(wish(connect("a.example:443").as_bytes()), (name("a.example"), 443, String::new()));
    assert_eq!(wish(connect("A.Example.:22").as_bytes()), (name("a.example"), 22, String::new()));
    let address = |text: &str| Host::Address(text.parse().unwrap());
    assert_eq!(wish(connect("[2001:db8::1]:443").as_bytes()).0, address("2001:db8::1"));
    assert_eq!(wish(connect("[::ffff:192.0.2.1]:443").as_bytes()).0, address("192.0.2.1"));
    assert_eq!(wish(connect("192.0.2.1:443").as_bytes()).0, address("192.0.2.1"));
    for wrong in [
        "a.example",
        "a.example:",
        "a.example:+44",
        "a.example:65536",
        "a.example:000443",
        "u@a.example:443",
        "a.example:443:443",
        "[::1:443",
        "[::1]443",
        "[fe80::1%25eth0]:443",
        "127.1:443",
        "0x7f000001:443",
        "192.0.2.01:443",
        "/",
        "http://a.example/",
    ] {
        assert!(matches!(read(connect(wrong).as_bytes(), false), Asked::Wrong(_)), "{wrong}");
    }
}

#[test]
fn a_request_goes_to_the_host_of_its_url_without_what_is_for_proxies() {
    let bytes =
        b"GET http://a.example:8080/x?y=http://b.example/#z HTTP/1.1\r\nhost: b.example\r\nAccept: */*\r\n\
        Proxy-Authorization: Basic eA==\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n\r\n";
    let head = "GET /x?y=http://b.example/ HTTP/1.1\r\nHost: a.example:8080\r\nAccept: */*\r\nX-End: 2\r\n\
        Connection: close\r\n\r\n";
    assert_eq!(wish(bytes), (name("a.example"), 8080, head.to_string()));
    let short = |request: &str| wish(format!("{request} HTTP/1.0\r\n\r\n").as_bytes()).2;
    assert!(short("GET http://a.example").starts_with("GET / HTTP/1.0\r\nHost: a.example\r\n"));
    assert!(short("GET http://a.example?q").starts_with("GET /?q HTTP/1.0\r\n"));
    assert!(short("OPTIONS http://a.example").starts_with("OPTIONS * HTTP/1.0\r\n"));
    for wrong in [
        "GET /",
        "GET https://a.example/",
        "GET ftp://a.example/",
        "GET http:///",
        "GET http://u:p@a.example/",
        "GET http://a.example:x/",
        "connect a.example:443",
    ] {
        let asked = read(format!("{wrong} HTTP/1.1\r\n\r\n").as_bytes(), false);
        assert!(matches!(asked, Asked::Wrong(_)), "{wrong}: {asked:?}");
    }
    assert!(matches!(read(b"\r\nGET http://a.example/ HTTP/1.1\r\n\r\n", false), Asked::Wrong(_)));
}

#[test]
fn socks_is_spoken() {
    assert_eq!(read(&[5, 2, 1, 0], false), Asked::Greeting(4, &[5, 0]));
    assert_eq!(read(&[5, 1, 2], false), Asked::Wrong(&[5, 0xff]));
    let by_name = [&[5, 1, 0, 3, 9][..], b"a.example", &[1, 187]].concat();
    assert_eq!(wish(&by_name), (name("a.example"), 443, String::new()));
    assert_eq!(wish(&[5, 1, 0, 1, 192, 0, 2, 1, 0, 22]).0, Host::Address("192.0.2.1".parse().unwrap()));
    let by_ipv6 = [&[5, 1, 0, 4][..], &[0x20, 1, 0xd, 0xb8], &[0; 12], &[0, 22]].concat();
    assert_eq!(wish(&by_ipv6).0, Host::Address("2001:db8::".parse().unwrap()));
    // Listening, UDP, another kind of address, a name that is none.
    let wrong: [&[u8]; 5] =
        [&[5, 2, 0, 1], &[5, 3, 0, 1], &[5, 1, 0, 2], &[5, 1, 0, 3, 1, b'*', 0, 1], &[5, 1, 1, 1]];
    for bytes in wrong {
        assert!(matches!(read(bytes, true), Asked::Wrong(_)), "{bytes:?}");
    }
    assert_eq!(reply(libc::ECONNREFUSED)[..2], [5, 5]);
    assert_eq!(reply(libc::EACCES)[..2], [5, 2]);
}

fn reply(errno: i32) -> Vec<u8> {
    answer(Form::Socks, Some(errno)).unwrap()
}

#[test]
fn the_supervisor_is_understood() {
    for host in [name("a.example"), Host::Address("2001:db8::1".parse().unwrap())] {
        assert_eq!(wish(&plain::write(&host, 65535).unwrap()), (host, 65535, String::new()));
    }
}

/// What is cut off anywhere is unfinished, and never something else.
#[test]
fn nothing_is_read_too_early() {
    let all: [(&[u8], bool); 5] = [
        (b"CONNECT a.example:443 HTTP/1.1\r\n\r\n", false),
        (b"GET http://a.example/ HTTP/1.1\r\nA: b\r\n\r\n", false),
        (&[5, 2, 1, 0], false),
        (b"\x05\x01\0\x03\x09a.example\x01\xbb", true),
        (b"\0\x09a.example\x01\xbb", false),
    ];
    for (bytes, is_greeted) in all {
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end], is_greeted), Asked::Unfinished, "{:?}", &bytes[..end]);
        }
        // And what follows is left.
        let more = [bytes, b"\x16\x03\x01"].concat();
        assert!(matches!(
            read(&more, is_greeted),
            Asked::Wish(length, _) | Asked::Greeting(length, _) if length == bytes.len()
        ));
    }
}

#[test]
fn answers_are_whole() {
    for errno in [libc::EACCES, libc::ETIMEDOUT, libc::ECONNREFUSED] {
        let answer = String::from_utf8(answer(Form::Connect, Some(errno)).unwrap()).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{answer}");
    }
}

/// What follows the head would be taken for the next answer.
#[test]
fn an_answer_to_head_has_no_body() {
    let form = |method: &str| {
        let request = format!("{method} http://a.example/ HTTP/1.1\r\n\r\n");
        match read(request.as_bytes(), false) {
            Asked::Wish(_, wish) => wish.form,
            other => panic!("{other:?}"),
        }
    };
    // Methods are told apart by case.
    assert_eq!((form("GET"), form("head")), (Form::Request, Form::Request));
    let whole = answer(form("GET"), Some(libc::EACCES)).unwrap();
    let head = answer(form("HEAD"), Some(libc::EACCES)).unwrap();
    assert!(whole.starts_with(&head) && whole.len() > head.len() && head.ends_with(b"\r\n\r\n"));
    assert_eq!(answer(form("HEAD"), None), None);
}
