//! The host of an HTTP request (RFC 9112, 3.2).

use crate::broker::said::Said;
use httparse::{EMPTY_HEADER, Request, Status};

/// Maximum number of headers.
const MOST_HEADERS: usize = 128;

/// Reads the beginning of a connection.
pub fn host(bytes: &[u8]) -> Said {
    // The library skips empty lines in front; servers differ in what they make of them.
    if matches!(bytes.first(), Some(b'\r' | b'\n')) {
        return Said::Wrong;
    }
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Said::Unfinished,
        Err(_) => return Said::Wrong,
    };
    // The library ends lines at LF alone, too. To whoever does not, such a line is a part of the one before, and what
    // follows may have another Host.
    let ends = bytes.iter().take(length).filter(|byte| **byte == b'\n').count();
    if ends != bytes.get(..length).unwrap_or_default().windows(2).filter(|two| *two == b"\r\n").count() {
        return Said::Wrong;
    }
    let mut hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let (first, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Said::Wrong;
    }
    // Spaces around a value do not count, and nothing else may be around it.
    let of_header = match first.map(|header| without_port(header.value.trim_ascii())) {
        Some(Some(host)) => Some(host),
        Some(None) => return Said::Wrong,
        None => None,
    };
    let of_target = match of_target(request.method.unwrap_or_default(), request.path.unwrap_or_default()) {
        Ok(host) => host,
        Err(NoTarget) => return Said::Wrong,
    };
    match (of_header, of_target) {
        (Some(header), Some(target)) if !header.eq_ignore_ascii_case(target) => Said::Wrong,
        (Some(host), _) | (None, Some(host)) => Said::Host(host.to_vec()),
        (None, None) => Said::Nothing,
    }
}

struct NoTarget;

/// The host of a target that has one. CONNECT has a port that may be another one, so it is not let through at all.
fn of_target<'a>(method: &str, target: &'a str) -> Result<Option<&'a [u8]>, NoTarget> {
    if target.starts_with('/') || target == "*" {
        return Ok(None);
    }
    let (scheme, rest) = target.split_once("://").ok_or(NoTarget)?;
    if method.eq_ignore_ascii_case("CONNECT") || !scheme.eq_ignore_ascii_case("http") {
        return Err(NoTarget);
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end).ok_or(NoTarget)?;
    // A name of a user in front is not looked at by all servers in the same way.
    without_port(authority.as_bytes()).map(Some).ok_or(NoTarget)
}

/// A host without its port; brackets stay.
fn without_port(text: &[u8]) -> Option<&[u8]> {
    let is_port = |text: &[u8]| text.iter().all(u8::is_ascii_digit) && text.len() <= 5;
    let end = match text.first()? {
        b'[' => text.iter().position(|byte| *byte == b']')? + 1,
        _ => text.iter().position(|byte| *byte == b':').unwrap_or(text.len()),
    };
    let (host, port) = text.split_at_checked(end)?;
    let is_whole = match port.split_first() {
        None => true,
        Some((b':', port)) => is_port(port),
        Some(_) => false,
    };
    (is_whole && !host.is_empty()).then_some(host)
}
