//! What a path leads to, by the compiler's rules as far as they decide between modules.

use super::paths::{Kind, Reference};
use super::tree::{ModuleId, Tree};

/// So many imports are followed for one path: more is a circle of imports.
const MOST_IMPORTS: usize = 16;

/// Where a path ends.
#[derive(Clone, Copy)]
enum End {
    /// It names a module.
    Module(ModuleId),
    /// It names something in a module, be it defined there, re-exported, or of another crate.
    Within(ModuleId),
}

/// Resolves one path. The modules whose re-exports it goes through are kept, since it uses them too.
pub(super) struct Resolver<'a> {
    tree: &'a Tree,
    through: Vec<ModuleId>,
    imports_left: usize,
}

impl Resolver<'_> {
    /// The modules that a path of `module` uses; `module` itself may be among them.
    pub(super) fn used(tree: &Tree, module: ModuleId, reference: &Reference) -> Vec<ModuleId> {
        if reference.kind == Kind::Macro {
            let name = &reference.segments[0];
            let imported = tree.modules[module].imports.contains_key(name);
            return tree.macros.get(name).filter(|_| !imported).copied().into_iter().collect();
        }
        let mut resolver = Resolver { tree, through: Vec::new(), imports_left: MOST_IMPORTS };
        let (End::Module(end) | End::Within(end)) = resolver.path(module, &reference.segments);
        let mut used = resolver.through;
        used.push(end);
        used.sort_unstable();
        used.dedup();
        used
    }

    /// A path as it stands in `module`.
    fn path(&mut self, module: ModuleId, segments: &[String]) -> End {
        let Some((first, rest)) = segments.split_first() else { return End::Module(module) };
        if first == "crate" {
            return self.below(self.tree.modules[module].root, rest);
        }
        match self.tree.names_library(module, first) {
            Some(library) => self.below(library, rest),
            None => self.below(module, segments),
        }
    }

    /// The rest of a path, seen from the module that its beginning names.
    fn below(&mut self, module: ModuleId, segments: &[String]) -> End {
        let Some((first, rest)) = segments.split_first() else { return End::Module(module) };
        let here = &self.tree.modules[module];
        if first == "self" {
            return self.below(module, rest);
        }
        if first == "super" {
            return here.parent.map_or(End::Within(module), |parent| self.below(parent, rest));
        }
        let import = here.imports.get(first);
        // A function may have the name of a module: a path's last word is then the function.
        let is_item = rest.is_empty() && (import.is_some() || here.items.contains(first));
        if let Some(child) = here.children.get(first).filter(|_| !is_item) {
            return self.below(*child, rest);
        }
        if let Some(import) = import {
            return self.import(module, import, rest);
        }
        if let Some(definer) =
            self.tree.macros.get(first).filter(|_| here.parent.is_none() && rest.is_empty())
        {
            return End::Within(*definer);
        }
        match self.by_glob(module, first) {
            Some(source) if !here.items.contains(first) => self.re_export(module, source, segments),
            _ => End::Within(module),
        }
    }

    /// A name that `module` imports: only another module is followed, so that `Type::function` is nothing new.
    fn import(&mut self, module: ModuleId, path: &[String], rest: &[String]) -> End {
        if self.imports_left == 0 {
            return End::Within(module);
        }
        self.imports_left -= 1;
        let length = self.through.len();
        match self.path(module, path) {
            End::Module(target) => {
                self.through.push(module);
                self.below(target, rest)
            }
            End::Within(_) => {
                self.through.truncate(length);
                End::Within(module)
            }
        }
    }

    /// A name that `module` has by importing everything of `source`.
    fn re_export(&mut self, module: ModuleId, source: ModuleId, segments: &[String]) -> End {
        let length = self.through.len();
        match self.below(source, segments) {
            End::Within(end) if end == source => {
                self.through.truncate(length);
                End::Within(module)
            }
            end => {
                self.through.push(module);
                end
            }
        }
    }

    /// The module of which `module` imports everything and that has this name.
    fn by_glob(&mut self, module: ModuleId, name: &str) -> Option<ModuleId> {
        if self.imports_left == 0 {
            return None;
        }
        self.imports_left -= 1;
        let tree = self.tree;
        tree.modules[module].globs.iter().find_map(|glob| {
            let End::Module(source) = self.path(module, glob) else { return None };
            let there = &tree.modules[source];
            let has = there.children.contains_key(name) || there.imports.contains_key(name);
            if has { Some(source) } else { self.by_glob(source, name) }
        })
    }
}
