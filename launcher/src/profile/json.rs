//! JSON with nothing forgiven: no key twice, nothing behind the document, every mistake with its place.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::error::{Fault, Place, Plain, hint, join};
use super::model::Text;

/// A JSON value that needs nothing else to live.
pub(crate) type Node = Tree<'static>;

/// A JSON value, its objects in the order of the text.
#[derive(Debug)]
pub(crate) enum Tree<'a> {
    Null,
    Bool,
    Integer(u64),
    /// Negative, fractional, or too big.
    OtherNumber,
    String(Cow<'a, str>),
    List(Vec<Tree<'a>>),
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
}

/// Reads a whole document. Nesting is bounded by serde_json (128 levels).
pub(crate) fn parse(text: &[u8]) -> Result<Node, Fault> {
    if text.trim_ascii().is_empty() {
        return Err(Fault("the file is empty; the least that a profile can be is {}".to_string()));
    }
    let tree: Tree = serde_json::from_slice(text).map_err(|error| Fault(error.to_string()))?;
    Ok(tree.into_owned())
}

/// The same for a built-in document, of which nothing is copied.
pub(crate) fn parse_built_in(text: &'static str) -> Result<Node, Fault> {
    serde_json::from_str(text).map_err(|error| Fault(error.to_string()))
}

impl<'de> Deserialize<'de> for Tree<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree<'de>, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// The key of an object.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'de>, D::Error> {
        deserializer.deserialize_str(KeyReader)
    }
}

struct KeyReader;

impl<'de> Visitor<'de> for KeyReader {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, value: &str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(value.to_string())))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Borrowed(value)))
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Integer(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree<'de>, E> {
        Ok(u64::try_from(value).map_or(Tree::OtherNumber, Tree::Integer))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Tree<'de>, E> {
        Ok(Tree::OtherNumber)
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::String(Cow::Owned(value.to_string())))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::String(Cow::Borrowed(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree<'de>, A::Error> {
        let mut list = Vec::with_capacity(FEW);
        while let Some(node) = seq.next_element()? {
            list.push(node);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let mut pairs: Vec<(Cow<'de, str>, Tree<'de>)> = Vec::new();
        let mut many: Option<HashSet<Cow<'de, str>>> = None;
        while let Some(Key(key)) = map.next_key()? {
            let twice = if pairs.len() < FEW {
                pairs.iter().any(|(known, _)| *known == key)
            } else {
                let all = || pairs.iter().map(|(known, _)| known.clone()).collect();
                !many.get_or_insert_with(all).insert(key.clone())
            };
            if twice {
                return Err(Error::custom(format_args!("key '{}' stands twice", Plain(&key))));
            }
            pairs.push((key, map.next_value()?));
        }
        Ok(Tree::Object(pairs))
    }
}

/// Up to this many keys, looking through them all is faster than a set; and most lists are no longer.
const FEW: usize = 32;

impl Tree<'_> {
    fn into_owned(self) -> Node {
        let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Tree::Null => Tree::Null,
            Tree::Bool => Tree::Bool,
            Tree::Integer(value) => Tree::Integer(value),
            Tree::OtherNumber => Tree::OtherNumber,
            Tree::String(value) => Tree::String(text(value)),
            Tree::List(list) => Tree::List(list.into_iter().map(Tree::into_owned).collect()),
            Tree::Object(pairs) => {
                Tree::Object(pairs.into_iter().map(|(key, tree)| (text(key), tree.into_owned())).collect())
            }
        }
    }
}

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

    pub(crate) fn string(self, place: &Place) -> Result<Text, Fault> {
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

    pub(crate) fn object(self, place: &Place) -> Result<Vec<(Text, Node)>, Fault> {
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
