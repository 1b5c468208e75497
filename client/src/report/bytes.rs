//! Words of the command line, paths and names are bytes. JSON has only text.

use data_encoding::BASE64;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that need not be text: a string where they are UTF-8, else an object with base64 (RFC 4648).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(try_from = "Encoded", into = "Encoded")]
pub struct Bytes(pub Vec<u8>);

impl From<&OsStr> for Bytes {
    fn from(text: &OsStr) -> Bytes {
        Bytes(text.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes(bytes.to_vec())
    }
}

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Bytes {
        path.as_os_str().into()
    }
}

/// [`Bytes`] in JSON.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
enum Encoded {
    /// UTF-8.
    Text(String),
    /// Not UTF-8.
    Base64 {
        /// With padding.
        #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[A-Za-z0-9+/]*={0,2}$")))]
        base64: String,
    },
}

impl From<Bytes> for Encoded {
    fn from(Bytes(bytes): Bytes) -> Encoded {
        match String::from_utf8(bytes) {
            Ok(text) => Encoded::Text(text),
            Err(other) => Encoded::Base64 { base64: BASE64.encode(other.as_bytes()) },
        }
    }
}

impl TryFrom<Encoded> for Bytes {
    type Error = &'static str;

    fn try_from(encoded: Encoded) -> Result<Bytes, &'static str> {
        match encoded {
            Encoded::Text(text) => Ok(Bytes(text.into_bytes())),
            Encoded::Base64 { base64 } => {
                BASE64.decode(base64.as_bytes()).map(Bytes).map_err(|_| "not base64 (RFC 4648)")
            }
        }
    }
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
        // The RFC's own examples, behind three bytes that are no UTF-8.
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
            let bytes = Bytes([b"\xff\xff\xff", plain.as_bytes()].concat());
            let json = format!(r#"{{"base64":"////{expected}"}}"#);
            assert_eq!(serde_json::to_string(&bytes).unwrap(), json);
            assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap(), bytes);
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
