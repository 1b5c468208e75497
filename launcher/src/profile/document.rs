//! One profile document, read strictly but not yet merged with its parents.

use crate::profile::error::{Fault, Place, Plain};
use crate::profile::json::Node;
use crate::profile::keys::{Author, Section};
use crate::profile::model::Profile;
use crate::profile::origin::Text;

/// The content of one document.
pub(crate) struct Document {
    pub extends: Vec<Text>,
    pub said: Profile,
}

/// How many parents a document may name.
const PARENTS: usize = 16;

/// Reads a document.
pub(crate) fn read(node: Node, author: &Author) -> Result<Document, Fault> {
    let keys: Vec<_> = [&["description", "extends"], Profile::KEYS, &["$schema"]].concat();
    let mut fields = node.fields(&Place::Top, &keys)?;
    fields.take("$schema", Node::string)?;
    let description = fields.take("description", Node::string)?.unwrap_or_default();
    let extends = fields.take("extends", parents)?.unwrap_or_default();
    let said = Profile { description, ..Profile::read(&mut fields, author)? };
    Ok(Document { extends, said })
}

fn parents(node: Node, place: &Place) -> Result<Vec<Text>, Fault> {
    match node {
        Node::List(_) => {}
        Node::String(name) => return Ok(vec![name.into()]),
        other => return Err(other.instead(place, "a name or a list of names")),
    }
    let mut names: Vec<Text> = Vec::new();
    node.list(place, |node, place| {
        let name = node.string(place)?;
        if names.contains(&name) {
            return Err(place.fault(format!("'{}' stands above already", Plain(&name))));
        }
        if names.len() >= PARENTS {
            return Err(place.fault(format!("more than {PARENTS} parents")));
        }
        names.push(name);
        Ok(())
    })?;
    Ok(names)
}
