//! JSON read strictly: no key twice, nothing after the document, every mistake with its place.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::profile::error::{Fault, Mistake, Place, Plain, ProfileCause};
use crate::profile::origin::Text;

/// A JSON value, its objects in the order of the text.
#[derive(Debug)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Integer(u64),
    /// Negative, fractional, or too big.
    OtherNumber,
    String(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// Reads a whole document. serde_json bounds the nesting (128 levels).
pub(crate) fn parse(text: &[u8]) -> Result<Node, ProfileCause> {
    if text.trim_ascii().is_empty() {
        return Err(ProfileCause::Empty);
    }
    Ok(serde_json::from_slice(text)?)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
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
        let (mut pairs, mut known) = (Vec::new(), HashSet::new());
        while let Some(key) = map.next_key::<String>()? {
            if !known.insert(key.clone()) {
                return Err(Error::custom(format_args!("key '{}' stands twice", Plain(&key))));
            }
            pairs.push((key, map.next_value()?));
        }
        Ok(Node::Object(pairs))
    }
}

impl Node {
    /// The mistake that something else was expected here.
    pub(crate) fn instead(&self, place: &Place, expected: &'static str) -> Fault {
        let found = match self {
            Node::Null => "null",
            Node::Bool(_) => "a truth value",
            Node::Integer(_) | Node::OtherNumber => "a number",
            Node::String(_) => "a string",
            Node::List(_) => "a list",
            Node::Object(_) => "an object",
        };
        place.fault(Mistake::Instead { found, expected })
    }

    pub(crate) fn string(self, place: &Place) -> Result<Text, Fault> {
        match self {
            Node::String(text) => Ok(text.into()),
            other => Err(other.instead(place, "a string")),
        }
    }

    pub(crate) fn truth(self, place: &Place) -> Result<bool, Fault> {
        match self {
            Node::Bool(value) => Ok(value),
            other => Err(other.instead(place, "true or false")),
        }
    }

    /// A list, each member as `read` reads it.
    pub(crate) fn list<T>(
        self,
        place: &Place,
        mut read: impl FnMut(Node, &Place) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let Node::List(list) = self else { return Err(self.instead(place, "a list")) };
        let nodes = list.into_iter().enumerate();
        nodes.map(|(index, node)| read(node, &Place::Index(place, index))).collect()
    }

    /// The keys of an object and their values.
    pub(crate) fn object(self, place: &Place) -> Result<Vec<(String, Node)>, Fault> {
        match self {
            Node::Object(pairs) => Ok(pairs),
            other => Err(other.instead(place, "an object")),
        }
    }

    /// An object that has no keys but these.
    pub(crate) fn fields<'a>(
        self,
        place: &'a Place<'a>,
        known: &[&'static str],
    ) -> Result<Fields<'a>, Fault> {
        let pairs = self.object(place)?;
        if let Some((key, _)) = pairs.iter().find(|(key, _)| !known.contains(&&**key)) {
            return Err(place.fault(Mistake::unknown("key", key, known, "there are")));
        }
        Ok(Fields { place, pairs })
    }

    /// An object that may have other keys than those that are taken.
    pub(crate) fn open_fields<'a>(self, place: &'a Place<'a>) -> Result<Fields<'a>, Fault> {
        Ok(Fields { place, pairs: self.object(place)? })
    }

    pub(crate) fn integer(self, place: &Place) -> Result<u64, Fault> {
        match self {
            Node::Integer(value) => Ok(value),
            Node::OtherNumber => Err(place.fault("a number that is negative, fractional or too big")),
            other => Err(other.instead(place, "a number")),
        }
    }

    /// One of some words.
    pub(crate) fn word<T: Copy>(self, place: &Place, words: &[(&'static str, T)]) -> Result<T, Fault> {
        let text = self.string(place)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            place.fault(Mistake::unknown("value", &text, &known, "it is one of"))
        })
    }
}

/// An object, of which one key after the other is taken.
pub(crate) struct Fields<'a> {
    pub place: &'a Place<'a>,
    pairs: Vec<(String, Node)>,
}

impl Fields<'_> {
    /// The value of a key as `read` reads it, if the object has the key.
    pub(crate) fn take<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Node, &Place) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let place = self.pairs.iter().position(|(known, _)| known == key);
        let node = place.map(|place| self.pairs.swap_remove(place).1);
        node.map(|node| read(node, &Place::Key(self.place, key))).transpose()
    }

    /// The keys that were not taken.
    pub(crate) fn left(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|(key, _)| &**key)
    }

    /// The keys of the objects among the values that were not taken, each with the key of its object.
    pub(crate) fn inner(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().flat_map(|(key, node)| {
            let pairs = if let Node::Object(pairs) = node { &pairs[..] } else { &[] };
            pairs.iter().map(|(inner, _)| (&**key, &**inner))
        })
    }

    /// The same for a key that the object must have.
    pub(crate) fn require<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Node, &Place) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.take(key, read)?.ok_or_else(|| self.place.fault(Mistake::Missing(key)))
    }
}
