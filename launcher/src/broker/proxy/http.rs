//! Requests to a proxy of HTTP: CONNECT HOST:PORT, or a method with a whole URL (RFC 9112, 3.2).
//!
//! The host of a request with a URL gets the request as if there were no proxy, without what is for proxies, with the
//! host of the URL in Host, and with "Connection: close": a second request on the connection may be for another host,
//! and the client makes it over a new one.

use crate::broker::proxy::{Asked, Form, Wish, host};
use httparse::{EMPTY_HEADER, Header, Request, Status};

/// Maximum number of headers. The host gets up to two more, and at most as many as are looked at elsewhere.
const MOST_HEADERS: usize = 126;

/// The port of a URL without one.
const USUAL_PORT: u16 = 80;

/// The answer to CONNECT, when the host is reached.
pub const CONNECTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// The answer when the host is not reached. Without its body, it still says how long that would be.
pub fn failure(errno: i32, has_body: bool) -> Vec<u8> {
    let (status, why) = match errno {
        libc::EACCES | libc::EADDRNOTAVAIL => {
            ("403 Forbidden", "the rules of this run do not allow this host")
        }
        libc::ETIMEDOUT => ("504 Gateway Timeout", "the host does not answer"),
        _ => ("502 Bad Gateway", "the host cannot be reached outside"),
    };
    let body = format!("sbx: {why}\n");
    let head = "Connection: close\r\nContent-Type: text/plain\r\nContent-Length";
    let sent = if has_body { &*body } else { "" };
    format!("HTTP/1.1 {status}\r\n{head}: {}\r\n\r\n{sent}", body.len()).into_bytes()
}

/// Reads a request.
pub fn read(bytes: &[u8]) -> Asked {
    // The library skips empty lines in front.
    if matches!(bytes.first(), Some(b'\r' | b'\n')) {
        return Asked::Wrong(BAD_REQUEST);
    }
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Asked::Unfinished,
        Err(_) => return Asked::Wrong(BAD_REQUEST),
    };
    let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let wish = if method == "CONNECT" {
        tunnel(target)
    } else {
        to_host(method, target, request.version.unwrap_or_default(), request.headers)
    };
    wish.map_or(Asked::Wrong(BAD_REQUEST), |wish| Asked::Wish(length, wish))
}

fn tunnel(target: &str) -> Option<Wish> {
    let (host, port) = authority(target)?;
    Some(Wish { host, port: port?, form: Form::Connect, head: Vec::new() })
}

/// A request for the host of a URL.
fn to_host(method: &str, target: &str, version: u8, headers: &[Header<'_>]) -> Option<Wish> {
    let (scheme, rest) = target.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let (authority_text, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (host, port) = authority(authority_text)?;
    let path = path.split('#').next().unwrap_or_default();
    let slash = match path.starts_with('/') {
        true => "",
        // Of the server as a whole.
        false if method == "OPTIONS" && path.is_empty() => "*",
        false => "/",
    };
    let mut head =
        format!("{method} {slash}{path} HTTP/1.{version}\r\nHost: {authority_text}\r\n").into_bytes();
    let named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("connection"));
    let named: Vec<&[u8]> = named.flat_map(|header| header.value.split(|byte| *byte == b',')).collect();
    for Header { name, value } in headers {
        let is_of_hop = ["host", "connection", "keep-alive", "proxy-connection", "proxy-authorization"]
            .iter()
            .any(|hop| name.eq_ignore_ascii_case(hop))
            || named.iter().any(|other| other.trim_ascii().eq_ignore_ascii_case(name.as_bytes()));
        if !is_of_hop {
            head.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
    }
    head.extend(b"Connection: close\r\n\r\n");
    let form = if method == "HEAD" { Form::Head } else { Form::Request };
    Some(Wish { host, port: port.unwrap_or(USUAL_PORT), form, head })
}

/// A host and a port. There is no name of a user: not everybody reads one in the same way.
fn authority(text: &str) -> Option<(crate::broker::said::Host, Option<u16>)> {
    let end = match text.strip_prefix('[') {
        Some(_) => text.find(']')? + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (name, port) = text.split_at_checked(end)?;
    // Digits alone, and not more than a port has: the library of numbers takes a sign and any number of zeros as well.
    let is_port = |digits: &str| digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some(digits) if is_port(digits) => Some(digits.parse().ok()?),
        _ => return None,
    };
    Some((host(name.as_bytes())?, port))
}
