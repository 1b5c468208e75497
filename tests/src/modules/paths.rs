//! Every path that stands in a module, outside tests.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, Block, Field, FieldValue, ImplItem, Item, ItemMod, ItemUse, Local, Macro, Meta, Path,
    Stmt, StmtMacro, TraitItem, UseTree, Variant, VisRestricted,
};

use super::cfg;

/// A path, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
    pub(super) kind: Kind,
}

/// Where a path stands, as far as that changes what it can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// In a `use`, or anywhere else with at least two segments.
    Path,
    /// One word before `!`.
    Macro,
}

/// What [`collect`] finds in one module.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) references: Vec<Reference>,
    /// Names that a `use` of the module itself brings in. Those of a block are put into its paths at once.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    pub(super) globs: Vec<Vec<String>>,
    /// How many lines of it are test code.
    pub(super) test_lines: usize,
}

/// The paths of a module's items; not those of the modules in it.
pub(super) fn collect(items: &[Item]) -> Found {
    let mut collector = Collector::default();
    for item in items {
        collector.visit_item(item);
        if let Item::Use(item) = item
            && !cfg::is_test_code(&item.attrs)
        {
            for leaf in leaves(item) {
                match leaf.binding {
                    Binding::Name(name) => drop(collector.found.imports.insert(name, leaf.segments)),
                    Binding::Everything => collector.found.globs.push(leaf.segments),
                    Binding::Nothing => {}
                }
            }
        }
    }
    collector.found
}

/// The name that an item defines in its module, modules and imports apart.
pub(super) fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// What one leaf of a `use` brings into scope.
enum Binding {
    Name(String),
    Everything,
    Nothing,
}

struct Leaf {
    segments: Vec<String>,
    line: usize,
    binding: Binding,
}

/// The paths of a `use`, one by one; none where it starts with `::`, which names another crate.
fn leaves(item: &ItemUse) -> Vec<Leaf> {
    let mut found = Vec::new();
    if item.leading_colon.is_none() {
        add_leaves(&item.tree, &mut Vec::new(), &mut found);
    }
    found
}

fn add_leaves(tree: &UseTree, prefix: &mut Vec<String>, found: &mut Vec<Leaf>) {
    let line = tree.span().start().line;
    let mut add = |name: Option<String>, binding: Binding| {
        let mut segments = prefix.clone();
        segments.extend(name.filter(|name| name != "self" || prefix.is_empty()));
        found.push(Leaf { segments, line, binding });
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(word(&path.ident));
            add_leaves(&path.tree, prefix, found);
            prefix.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                add_leaves(tree, prefix, found);
            }
        }
        UseTree::Name(name) => {
            let name = word(&name.ident);
            let bound = if name == "self" { prefix.last().cloned() } else { Some(name.clone()) };
            add(Some(name), bound.map_or(Binding::Nothing, Binding::Name));
        }
        UseTree::Rename(rename) => {
            let bound = word(&rename.rename);
            let binding = if bound == "_" { Binding::Nothing } else { Binding::Name(bound) };
            add(Some(word(&rename.ident)), binding);
        }
        UseTree::Glob(_) => add(None, Binding::Everything),
    }
}

fn word(ident: &proc_macro2::Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}

#[derive(Default)]
struct Collector {
    found: Found,
    /// What the `use` declarations of the blocks around bring in, the innermost last.
    scopes: Vec<BTreeMap<String, Vec<String>>>,
}

impl Collector {
    fn add(&mut self, segments: Vec<String>, line: usize, kind: Kind) {
        let segments = self.expanded(segments);
        self.found.references.push(Reference { segments, line, kind });
    }

    /// A path whose first word a block's `use` brings in, from where that leads.
    fn expanded(&self, segments: Vec<String>) -> Vec<String> {
        let import =
            segments.first().and_then(|first| self.scopes.iter().rev().find_map(|scope| scope.get(first)));
        match import {
            Some(import) => [&import[..], &segments[1..]].concat(),
            None => segments,
        }
    }

    /// Whether something is left out; its lines are then counted as test code.
    fn skips(&mut self, attributes: &[Attribute], node: &impl Spanned) -> bool {
        let skipped = cfg::is_test_code(attributes);
        if skipped {
            let span = node.span();
            self.found.test_lines += span.end().line - span.start().line + 1;
        }
        skipped
    }

    /// The paths in a macro's or an attribute's tokens. `prefix` is what stands before a group in a `use`.
    fn tokens(&mut self, tokens: TokenStream, prefix: &[String], strings: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Ident(ident) => {
                    let line = ident.span().start().line;
                    let (segments, next) = chain(&tokens, at);
                    at = next;
                    let segments = [prefix, &segments].concat();
                    if let Some(TokenTree::Group(group)) = tokens.get(at)
                        && group.delimiter() == Delimiter::Brace
                        && ends_with_colons(&tokens[..at])
                    {
                        self.tokens(group.stream(), &segments, strings);
                        at += 1;
                    } else if segments.len() > 1 {
                        self.add(segments, line, Kind::Path);
                    }
                    continue;
                }
                TokenTree::Group(group) => self.tokens(group.stream(), &[], strings),
                TokenTree::Literal(literal) if strings => {
                    let text = literal.to_string();
                    let text = text.trim_matches('"');
                    let segments: Vec<String> = text.split("::").map(str::to_owned).collect();
                    if segments.len() > 1 && segments.iter().all(|segment| is_name(segment)) {
                        self.add(segments, literal.span().start().line, Kind::Path);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

/// The words from here on that `::` joins, and where they end: behind a last `::` that no word follows.
fn chain(tokens: &[TokenTree], start: usize) -> (Vec<String>, usize) {
    let mut segments = Vec::new();
    let mut at = start;
    while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
        segments.push(word(ident));
        at += 1;
        if !(tokens.len() >= at + 2 && ends_with_colons(&tokens[..at + 2])) {
            break;
        }
        at += 2;
    }
    (segments, at)
}

fn ends_with_colons(tokens: &[TokenTree]) -> bool {
    let [.., TokenTree::Punct(first), TokenTree::Punct(second)] = tokens else { return false };
    first.as_char() == ':' && second.as_char() == ':' && first.spacing() == Spacing::Joint
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        if !self.skips(cfg::of_item(item), item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !self.skips(cfg::of_impl_item(item), item) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if !self.skips(cfg::of_trait_item(item), item) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if !self.skips(&local.attrs, local) {
            visit::visit_local(self, local);
        }
    }

    fn visit_stmt_macro(&mut self, stmt: &'ast StmtMacro) {
        if !self.skips(&stmt.attrs, stmt) {
            visit::visit_stmt_macro(self, stmt);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if !self.skips(&field.attrs, field) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, value: &'ast FieldValue) {
        if !self.skips(&value.attrs, value) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        if !self.skips(&variant.attrs, variant) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if !self.skips(&arm.attrs, arm) {
            visit::visit_arm(self, arm);
        }
    }

    /// A module in this one is collected by itself.
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    /// `pub(super)` uses nothing of the module it names.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for leaf in leaves(item) {
            self.add(leaf.segments, leaf.line, Kind::Path);
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        let mut scope = BTreeMap::new();
        for stmt in &block.stmts {
            if let Stmt::Item(Item::Use(item)) = stmt {
                for leaf in leaves(item) {
                    if let Binding::Name(name) = leaf.binding {
                        scope.insert(name, self.expanded(leaf.segments));
                    }
                }
            }
        }
        self.scopes.push(scope);
        visit::visit_block(self, block);
        self.scopes.pop();
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            let segments = path.segments.iter().map(|segment| word(&segment.ident)).collect();
            self.add(segments, path.span().start().line, Kind::Path);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        if let Some(name) = mac.path.get_ident() {
            self.add(vec![word(name)], name.span().start().line, Kind::Macro);
        }
        self.visit_path(&mac.path);
        self.tokens(mac.tokens.clone(), &[], false);
    }

    /// Libraries that derive code take paths as tokens and as strings.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if attribute.path().is_ident("doc") || attribute.path().is_ident("cfg") {
            return;
        }
        match &attribute.meta {
            Meta::List(list) => self.tokens(list.tokens.clone(), &[], true),
            Meta::NameValue(pair) => self.visit_expr(&pair.value),
            Meta::Path(_) => {}
        }
    }
}
