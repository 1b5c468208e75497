//! Writing messages in pieces: the shim has no formatting code.

/// The maximum length of a quoted text.
const LONGEST: usize = 80;

/// Receives the pieces of a message.
pub(crate) type Out<'a> = &'a mut dyn FnMut(&[u8]);

/// Writes a text that was read from outside: shortened, and with `?` for everything but printable ASCII.
pub(crate) fn quote(text: &[u8], out: Out<'_>) {
    text.iter().take(LONGEST).for_each(|b| out(&[if (0x20..0x7f).contains(b) { *b } else { b'?' }]));
}

/// The whole message.
#[cfg(any(feature = "std", test))]
pub(crate) fn whole(write: impl FnOnce(Out<'_>)) -> String {
    let mut text = Vec::new();
    write(&mut |part| text.extend_from_slice(part));
    String::from_utf8_lossy(&text).into_owned()
}
