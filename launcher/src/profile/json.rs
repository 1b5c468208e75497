//! JSON with nothing forgiven: no key twice, nothing behind the document, every mistake with its place.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::error::{Fault, Place, Plain, hint, join};

/// A JSON value, its objects in the order of the text.
#[derive(Debug)]
pub(crate) enum Node {
    Null,
    Bool,
    Integer(u64),
    /// Negative, fractional, or too big.
    OtherNumber,
    String(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// Reads a whole document. Nesting is bounded by serde_json (128 levels).
pub(crate) fn parse(text: &[u8]) -> Result<Node, Fault> {
    serde_json::from_slice(text).map_err(|error| Fault(error.to_string()))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Bool)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Integer(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(u64::try_from(value).map_or(Node::OtherNumber, Node::Integer))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::OtherNumber)
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::String(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = seq.next_element()? {
            list.push(node);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut pairs: Vec<(String, Node)> = Vec::new();
        let mut many = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let twice = if pairs.len() < FEW {
                pairs.iter().any(|(known, _)| *known == key)
            } else {
                if many.is_empty() {
                    many.extend(pairs.iter().map(|(known, _)| known.clone()));
                }
                !many.insert(key.clone())
            };
            if twice {
                return Err(Error::custom(format_args!("key '{}' stands twice", Plain(&key))));
            }
            pairs.push((key, map.next_value()?));
        }
        Ok(Node::Object(pairs))
    }
}

/// Up to this many keys, looking through them all is faster than a set.
const FEW: usize = 32;

impl Node {
    fn kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool => "a truth value",
            Node::Integer(_) | Node::OtherNumber => "a number",
            Node::String(_) => "a string",
            Node::List(_) => "a list",
            Node::Object(_) => "an object",
        }
    }

    /// That something else was expected here.
    pub(crate) fn instead<T>(&self, place: &Place, expected: &str) -> Result<T, Fault> {
        Err(Fault::at(place, format_args!("{} instead of {expected}", self.kind())))
    }

    pub(crate) fn string(self, place: &Place) -> Result<String, Fault> {
        match self {
            Node::String(text) => Ok(text),
            other => other.instead(place, "a string"),
        }
    }

    pub(crate) fn list(self, place: &Place) -> Result<Vec<Node>, Fault> {
        match self {
            Node::List(list) => Ok(list),
            other => other.instead(place, "a list"),
        }
    }

    pub(crate) fn object(self, place: &Place) -> Result<Vec<(String, Node)>, Fault> {
        match self {
            Node::Object(pairs) => Ok(pairs),
            other => other.instead(place, "an object"),
        }
    }

    pub(crate) fn integer(self, place: &Place) -> Result<u64, Fault> {
        match self {
            Node::Integer(value) => Ok(value),
            Node::OtherNumber => Err(Fault::at(place, "a number that is negative, fractional or too big")),
            other => other.instead(place, "a number"),
        }
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(self, place: &Place, words: &[(&str, T)]) -> Result<T, Fault> {
        let text = self.string(place)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known = || words.iter().map(|(word, _)| *word);
            let list = join(known());
            Fault::at(
                place,
                format_args!("unknown value '{}'{}; it is one of {list}", Plain(&text), hint(&text, known())),
            )
        })
    }
}

/// That an object has a key it may not have.
pub(crate) fn unknown_key(place: &Place, key: &str, known: &[&str]) -> Fault {
    let near = hint(key, known.iter().copied());
    let list =
        if near.is_empty() { format!("; there are {}", join(known.iter().copied())) } else { String::new() };
    Fault::at(place, format_args!("unknown key '{}'{near}{list}", Plain(key)))
}
