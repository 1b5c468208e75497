//! SHA-256 digests as text.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// A digest in hexadecimal digits.
pub fn of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The first half of one, for a name: nobody can find other bytes that get it.
pub fn short(bytes: &[u8]) -> String {
    let mut digits = of(bytes);
    digits.truncate(32);
    digits
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// Whether a text is so many of these digits.
pub fn is_hex(text: &[u8], digits: usize) -> bool {
    text.len() == digits && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
