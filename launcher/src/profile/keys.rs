//! The keys of a profile: what reading, merging and showing them has in common.
//!
//! [`sections`](crate::profile::keys::sections) declares an object of the document as a table with one row
//! for each key: the key, its field, and how its value is read. Its type tells how it is merged and shown.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;

use serde_json::{Value, json};

use crate::profile::error::{Fault, Place};
use crate::profile::json::{Fields, Node};
use crate::profile::origin::{Given, List, Note, Origin, Shared, Text};

/// The document that is read: for the origin of its entries.
pub(crate) struct Author {
    pub profile: Shared<str>,
    pub built_in: bool,
}

/// The key that is read.
pub(crate) struct Key<'a> {
    pub author: &'a Author,
    /// With the keys that lead to it: `network.mode`.
    pub name: &'static str,
}

impl Key<'_> {
    pub(crate) fn origin(&self, index: Option<usize>, entry: Text, note: impl Into<Note>) -> Shared<Origin> {
        let Author { profile, built_in } = self.author;
        let (profile, built_in) = (profile.clone(), *built_in);
        let Note { why, optional, unless_credentials } = note.into();
        let (optional, key) = (optional || built_in, self.name);
        Shared::from(Origin { profile, built_in, optional, unless_credentials, key, index, entry, why })
    }

    pub(crate) fn given<T>(&self, value: T) -> Given<T> {
        Given { value, origin: self.origin(None, Cow::Borrowed(""), None) }
    }
}

/// An object of the document.
pub(crate) trait Section: Sized {
    const KEYS: &'static [&'static str];

    fn read(fields: &mut Fields, author: &Author) -> Result<Self, Fault>;
}

/// What a key holds.
pub(crate) trait Part: Sized {
    /// Adds what a later document says. `inherited` tells whether an entry is from an ancestor of it.
    fn merge(&mut self, said: Self, inherited: &dyn Fn(&Origin) -> bool);

    /// As JSON, with origins.
    fn show(&self) -> Value;
}

/// Declares sections. A row is `KEY FIELD: TYPE = READER`; fields in brackets belong to no key.
macro_rules! sections {
    ($($(#[$about:meta])* $name:ident $prefix:literal
        $([$($(#[$own_doc:meta])* $own:ident: $own_type:ty,)*])?
        { $($(#[$doc:meta])* $key:literal $field:ident: $type:ty = $read:expr,)* }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            $($($(#[$own_doc])* pub $own: $own_type,)*)?
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Section for $name {
            const KEYS: &'static [&'static str] = &[$($key),*];

            fn read(fields: &mut Fields, author: &Author) -> Result<$name, Fault> {
                Ok($name {
                    $($($own: Default::default(),)*)?
                    $($field: {
                        let key = Key { author, name: concat!($prefix, $key) };
                        fields.take($key, |node, place| ($read)(node, place, &key))?.unwrap_or_default()
                    },)*
                })
            }
        }

        impl Part for $name {
            fn merge(&mut self, said: $name, inherited: &dyn Fn(&Origin) -> bool) {
                $(self.$field.merge(said.$field, inherited);)*
            }

            fn show(&self) -> Value {
                Value::from_iter([$(($key, self.$field.show())),*])
            }
        }

        // The build script writes the built-in profiles as source.
        #[cfg(not(built_in_tables))]
        crate::tables::structs! { $name { $($($own,)*)? $($field,)* } }
    )*};
}
pub(crate) use sections;

/// Reads an object.
pub(crate) fn section<S: Section>(node: Node, place: &Place, key: &Key) -> Result<S, Fault> {
    S::read(&mut node.fields(place, S::KEYS)?, key.author)
}

/// Reads a single value.
pub(crate) fn one<T>(
    read: impl Fn(Node, &Place) -> Result<T, Fault>,
) -> impl Fn(Node, &Place, &Key) -> Result<Option<Given<T>>, Fault> {
    move |node, place, key| Ok(Some(key.given(read(node, place)?)))
}

/// More than any list of paths or names has.
const ENTRIES: usize = 2000;

/// Reads a list in which nothing stands twice. An entry may have a reason.
pub(crate) fn each<T: Eq + Hash + Clone, N: Into<Note>>(
    read: impl Fn(Node, &Place) -> Result<(T, N), Fault>,
) -> impl Fn(Node, &Place, &Key) -> Result<List<Given<T>>, Fault> {
    move |node, place, key| {
        if matches!(&node, Node::List(list) if list.len() > ENTRIES) {
            return Err(place.fault(format!("more than {ENTRIES} entries")));
        }
        // The long lists of the built-in profiles share one origin: their values say where they stand.
        let shared = key.author.built_in.then(|| key.origin(None, Cow::Borrowed(""), None));
        let (mut indices, mut known) = (0.., HashSet::new());
        let list = node.list(place, |node, place| {
            let (value, note) = read(node, place)?;
            let note = note.into();
            if !known.insert(value.clone()) {
                return Err(place.fault("the same entry stands above already"));
            }
            let index = indices.next();
            let origin = shared.clone().filter(|_| note.why.is_none());
            Ok(Given { value, origin: origin.unwrap_or_else(|| key.origin(index, Cow::Borrowed(""), note)) })
        });
        Ok(list?.into())
    }
}

impl<T: Display> Part for Option<Given<T>> {
    /// The nearest value counts.
    fn merge(&mut self, said: Option<Given<T>>, _: &dyn Fn(&Origin) -> bool) {
        *self = said.or(self.take());
    }

    fn show(&self) -> Value {
        self.as_ref().map_or(Value::Null, given)
    }
}

impl<T: Display + Eq + Hash + Clone> Part for List<Given<T>> {
    /// Lists unite; the first entry of a value stays.
    fn merge(&mut self, said: List<Given<T>>, _: &dyn Fn(&Origin) -> bool) {
        let mut said = said.into_owned();
        let known: HashSet<&T> = self.iter().map(|given| &given.value).collect();
        said.retain(|given| !known.contains(&given.value));
        self.to_mut().append(&mut said);
    }

    fn show(&self) -> Value {
        self.iter().map(given).collect()
    }
}

impl<T: Display + Clone> Part for List<(Text, Given<T>)> {
    /// The nearest value of a name counts. The list is sorted by name.
    fn merge(&mut self, said: Self, _: &dyn Fn(&Origin) -> bool) {
        let list = self.to_mut();
        for (name, value) in said.into_owned() {
            match list.binary_search_by(|(known, _)| known.cmp(&name)) {
                Ok(place) => list[place].1 = value,
                Err(place) => list.insert(place, (name, value)),
            }
        }
    }

    fn show(&self) -> Value {
        self.iter().map(|(name, value)| (&**name, given(value))).collect()
    }
}

fn given<T: Display>(given: &Given<T>) -> Value {
    with_origin(json!({ "value": given.value.to_string() }), &given.origin)
}

/// The object, with its origin.
pub(crate) fn with_origin(mut object: Value, origin: &Origin) -> Value {
    object["profile"] = json!(*origin.profile);
    object["key"] = json!(origin.place());
    if origin.optional && !origin.built_in {
        object["optional"] = json!(true);
    }
    if origin.unless_credentials {
        object["unless"] = json!("credentials");
    }
    if let Some(why) = &origin.why {
        object["why"] = json!(why);
    }
    object
}
