//! TOML in the form in which JSON is read: both say the same.

use ::toml::de::{DeTable, DeValue};

use crate::profile::error::{Plain, ProfileCause};
use crate::profile::json::Node;

/// Reads a document. The parser bounds the nesting, and refuses a key that stands twice.
pub fn parse(text: &[u8]) -> Result<Node, ProfileCause> {
    let line = |end: usize| 1 + text[..end.min(text.len())].iter().filter(|byte| **byte == b'\n').count();
    let words = std::str::from_utf8(text).map_err(|error| ProfileCause::Line {
        line: line(error.valid_up_to()),
        why: "it is no UTF-8".to_string(),
    })?;
    let table = DeTable::parse(words).map_err(|error| {
        let line = error.span().map_or(1, |span| line(span.start));
        // A message may have several lines, and quote the text.
        let why = Plain(&error.message().replace('\n', ", ")).to_string();
        ProfileCause::Line { line, why }
    })?;
    Ok(object(table.get_ref()))
}

fn object(table: &DeTable<'_>) -> Node {
    Node::Object(
        table.iter().map(|(key, value)| (key.get_ref().to_string(), node(value.get_ref()))).collect(),
    )
}

fn node(value: &DeValue<'_>) -> Node {
    match value {
        DeValue::String(text) => Node::String(text.to_string()),
        DeValue::Integer(number) => {
            u64::from_str_radix(number.as_str(), number.radix()).map_or(Node::OtherNumber, Node::Integer)
        }
        DeValue::Float(_) => Node::OtherNumber,
        DeValue::Boolean(value) => Node::Bool(*value),
        DeValue::Datetime(time) => Node::String(time.to_string()),
        DeValue::Array(items) => Node::List(items.iter().map(|item| node(item.get_ref())).collect()),
        DeValue::Table(table) => object(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_a_line() {
        let wrong = |text: &[u8]| parse(text).unwrap_err().to_string();
        assert!(wrong(b"a = 1\na = 2\n").starts_with("line 2: "), "{}", wrong(b"a = 1\na = 2\n"));
        assert!(wrong(b"a = 1\nb = \xff\n").starts_with("line 2: it is no UTF-8"));
        assert!(wrong(b"a = 1\n\nb\n").starts_with("line 3: "), "{}", wrong(b"a = 1\n\nb\n"));
        assert!(wrong(format!("a = {}", "[".repeat(5000)).as_bytes()).starts_with("line 1: "));
    }

    #[test]
    fn values_are_those_of_json() {
        let Ok(Node::Object(pairs)) = parse(b"a = 0x10\nb = [true]\n[c.d]\ne = 'x'\n") else {
            panic!("no object")
        };
        assert_eq!(
            format!("{pairs:?}"),
            concat!(
                "[(\"a\", Integer(16)), (\"b\", List([Bool(true)])), ",
                "(\"c\", Object([(\"d\", Object([(\"e\", String(\"x\"))]))]))]"
            )
        );
    }
}
