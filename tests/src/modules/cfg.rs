//! Which code is there only for tests.

use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, Meta, Token, TraitItem};

/// Whether these attributes leave their item out of every build that is not a test.
pub(super) fn is_test_code(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test")
            || path.is_ident("cfg") && attribute.parse_args().is_ok_and(|meta| !Outcome::of(&meta).may_hold)
    })
}

/// What a condition can come to without `test`, whatever else is set.
struct Outcome {
    may_hold: bool,
    may_fail: bool,
}

impl Outcome {
    fn of(meta: &Meta) -> Outcome {
        if meta.path().is_ident("test") {
            return Outcome { may_hold: false, may_fail: true };
        }
        let Meta::List(list) = meta else { return Outcome { may_hold: true, may_fail: true } };
        let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).unwrap_or_default();
        let parts: Vec<Outcome> = parts.iter().map(Outcome::of).collect();
        if list.path.is_ident("not") {
            let [part] = &parts[..] else { return Outcome { may_hold: true, may_fail: true } };
            return Outcome { may_hold: part.may_fail, may_fail: part.may_hold };
        }
        if list.path.is_ident("any") {
            return Outcome {
                may_hold: parts.iter().any(|part| part.may_hold),
                may_fail: parts.iter().all(|part| part.may_fail),
            };
        }
        Outcome {
            may_hold: parts.iter().all(|part| part.may_hold),
            may_fail: parts.iter().any(|part| part.may_fail),
        }
    }
}

macro_rules! attributes {
    ($value:expr, $kind:ident: $($variant:ident)*) => {
        match $value {
            $($kind::$variant(item) => &item.attrs,)*
            _ => &[],
        }
    };
}

/// The attributes of an item.
pub(super) fn of_item(item: &Item) -> &[Attribute] {
    attributes!(item, Item: Const Enum ExternCrate Fn ForeignMod Impl Macro Mod Static Struct Trait TraitAlias
        Type Union Use)
}

/// The attributes of an item in an `impl` block.
pub(super) fn of_impl_item(item: &ImplItem) -> &[Attribute] {
    attributes!(item, ImplItem: Const Fn Type Macro)
}

/// The attributes of an item in a trait.
pub(super) fn of_trait_item(item: &TraitItem) -> &[Attribute] {
    attributes!(item, TraitItem: Const Fn Type Macro)
}
