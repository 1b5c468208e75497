//! As the supervisor says whom a program wants to reach, in front of what the program says: a byte that begins neither
//! HTTP nor SOCKS, the length of the host's text, the text, and the port.

use crate::broker::proxy::{Asked, Form, Wish, host};
use crate::broker::said::Host;

/// The first byte.
pub const MARK: u8 = 0;

/// The bytes for a host and a port. `None` for a text that is longer than a name.
pub fn write(host: &Host, port: u16) -> Option<Vec<u8>> {
    let text = host.to_string();
    let mut bytes = vec![MARK, u8::try_from(text.len()).ok()?];
    bytes.extend(text.as_bytes());
    bytes.extend(port.to_be_bytes());
    Some(bytes)
}

/// Reads them.
pub fn read(bytes: &[u8]) -> Asked {
    let Some(length) = bytes.get(1).map(|length| usize::from(*length)) else { return Asked::Unfinished };
    let (Some(text), Some(port)) = (bytes.get(2..2 + length), bytes.get(2 + length..4 + length)) else {
        return Asked::Unfinished;
    };
    let port = port.iter().fold(0, |port: u16, byte| port << 8 | u16::from(*byte));
    match host(text) {
        Some(host) => Asked::Wish(4 + length, Wish { host, port, form: Form::Plain, head: Vec::new() }),
        None => Asked::Wrong(b""),
    }
}
