//! Words of the command line, paths and names, which are bytes: JSON has only text.

use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes: as a string where they are UTF-8, else as `{"base64": "..."}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl From<&OsStr> for Bytes {
    fn from(text: &OsStr) -> Bytes {
        Bytes(text.as_bytes().to_vec())
    }
}

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Bytes {
        path.as_os_str().into()
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(text) = std::str::from_utf8(&self.0) {
            return serializer.serialize_str(text);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("base64", &base64(&self.0))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            Encoded { base64: String },
        }
        match Either::deserialize(deserializer)? {
            Either::Text(text) => Ok(Bytes(text.into_bytes())),
            Either::Encoded { base64 } => {
                decoded(&base64).map(Bytes).ok_or_else(|| D::Error::custom("not base64 (RFC 4648)"))
            }
        }
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What [`base64`] has encoded.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len());
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for digit in group {
            let value = DIGITS.iter().position(|known| known == digit)?;
            bits = bits << 6 | value as u32;
        }
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > group.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_and_other_bytes_are_base64() {
        let json = |bytes: &[u8]| serde_json::to_string(&Bytes(bytes.to_vec())).unwrap();
        assert_eq!(json(b""), r#""""#);
        assert_eq!(json("größe\n".as_bytes()), r#""größe\n""#);
        assert_eq!(json(b"\xff"), r#"{"base64":"/w=="}"#);
        assert_eq!(json(b"a\xffb"), r#"{"base64":"Yf9i"}"#);
    }

    #[test]
    fn base64_as_in_the_rfc() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, expected) in pairs {
            assert_eq!(base64(plain.as_bytes()), expected);
            assert_eq!(decoded(expected).as_deref(), Some(plain.as_bytes()));
        }
    }
    #[test]
    fn what_was_written_is_read_back() {
        for bytes in [&b""[..], b"text", b"\xff", b"a\xffb\0", &[0x80; 100]] {
            let json = serde_json::to_string(&Bytes(bytes.to_vec())).unwrap();
            assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap().0, bytes);
        }
        for broken in [
            r#"{"base64":"a"}"#,
            r#"{"base64":"Y==="}"#,
            r#"{"base64":"Yf9i="}"#,
            "{}",
            "1",
            r#"{"base64":"Y\n9i"}"#,
        ] {
            assert!(serde_json::from_str::<Bytes>(broken).is_err(), "{broken}");
        }
    }
}
