//! The modules of a crate as its files declare them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

use super::cfg;
use super::paths::{self, Reference};

/// The library's name, by which the program beside it (main.rs) calls it.
const LIBRARY: &str = "sbx";

/// The place of a module in [`Tree::modules`].
pub type ModuleId = usize;

/// One module, without what stands in it for tests.
#[derive(Debug)]
pub struct Module {
    /// Its names below the root of its crate; empty for the root itself.
    pub path: Vec<String>,
    /// The file it stands in, below the root directory.
    pub file: PathBuf,
    pub(super) root: ModuleId,
    pub(super) parent: Option<ModuleId>,
    pub(super) children: BTreeMap<String, ModuleId>,
    /// Names of the items that it defines.
    pub(super) items: BTreeSet<String>,
    /// Names that a `use` brings in, and the path that each stands for.
    pub(super) imports: BTreeMap<String, Vec<String>>,
    /// What it imports everything of.
    pub(super) globs: Vec<Vec<String>>,
    pub(super) references: Vec<Reference>,
}

impl Module {
    /// The top-level module that it belongs to: a root goes by the name of its file.
    pub fn top(&self) -> String {
        self.path.first().cloned().unwrap_or_else(|| self.file.display().to_string())
    }
}

/// How long a file or module is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// Without code that is there only for tests.
    pub code: usize,
    /// With it.
    pub all: usize,
}

/// The modules of the library and the program whose root files stand in one directory.
#[derive(Debug)]
pub struct Tree {
    /// Every module outside tests, parents before their children.
    pub modules: Vec<Module>,
    /// The length of every file below the directory. A file that no module outside tests is in has no code.
    pub files: BTreeMap<PathBuf, Lines>,
    pub(super) library: Option<ModuleId>,
    /// The modules that define a macro, by its name.
    pub(super) macros: BTreeMap<String, ModuleId>,
}

impl Tree {
    /// Reads lib.rs and main.rs of a directory, and every module below them.
    pub fn read(root: &Path) -> Tree {
        let mut tree =
            Tree { modules: Vec::new(), files: BTreeMap::new(), library: None, macros: BTreeMap::new() };
        tree.count_lines(root, Path::new(""));
        let mut reader = Reader { root, tree };
        for name in ["lib.rs", "main.rs"] {
            if root.join(name).exists() {
                let id = reader.file(PathBuf::from(name), PathBuf::new(), None, Vec::new());
                reader.tree.library = reader.tree.library.or(id.filter(|_| name == "lib.rs"));
            }
        }
        assert!(!reader.tree.modules.is_empty(), "{} has neither lib.rs nor main.rs", root.display());
        reader.tree
    }

    /// Whether a path of this module can begin with the library's name.
    pub(super) fn names_library(&self, module: ModuleId, segment: &str) -> Option<ModuleId> {
        self.library.filter(|library| segment == LIBRARY && self.modules[module].root != *library)
    }

    /// The lengths of the top-level modules.
    pub fn lines(&self) -> BTreeMap<String, Lines> {
        let owners: BTreeMap<&Path, String> =
            self.modules.iter().rev().map(|module| (module.file.as_path(), module.top())).collect();
        let mut lines: BTreeMap<String, Lines> = BTreeMap::new();
        for (file, length) in &self.files {
            let top = owners.get(file.as_path()).cloned().unwrap_or_else(|| top_by_path(file));
            let sum = lines.entry(top).or_default();
            sum.code += length.code;
            sum.all += length.all;
        }
        lines
    }

    fn count_lines(&mut self, root: &Path, below: &Path) {
        let directory = root.join(below);
        let entries =
            fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        for entry in entries.map(|entry| entry.unwrap()) {
            let relative = below.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                self.count_lines(root, &relative);
            } else if relative.extension().is_some_and(|extension| extension == "rs") {
                let all = fs::read_to_string(entry.path()).unwrap().lines().count();
                self.files.insert(relative, Lines { code: 0, all });
            }
        }
    }
}

/// A file of tests is in no module here; its first directory or its own name says where it belongs.
fn top_by_path(file: &Path) -> String {
    let mut parts = file.iter();
    let first = Path::new(parts.next().unwrap_or_default());
    let top = if parts.next().is_some() { first } else { Path::new(first.file_stem().unwrap_or_default()) };
    top.display().to_string()
}

struct Reader<'a> {
    root: &'a Path,
    tree: Tree,
}

/// Where a module stands: what the files of its children are found by.
struct Place {
    file: PathBuf,
    /// Holds the files of its children.
    directory: PathBuf,
    /// What `#[path]` of a child is relative to.
    base: PathBuf,
}

impl Reader<'_> {
    /// Reads the module that a file is, unless all of it is test code.
    fn file(
        &mut self,
        file: PathBuf,
        directory: PathBuf,
        parent: Option<ModuleId>,
        path: Vec<String>,
    ) -> Option<ModuleId> {
        let full = self.root.join(&file);
        let text = fs::read_to_string(&full).unwrap_or_else(|error| panic!("{}: {error}", full.display()));
        let syntax = syn::parse_file(&text)
            .unwrap_or_else(|error| panic!("{}:{}: {error}", full.display(), error.span().start().line));
        if cfg::is_test_code(&syntax.attrs) {
            return None;
        }
        let lines = self.tree.files.entry(file.clone()).or_default();
        lines.all = text.lines().count();
        lines.code = lines.all;
        let base = file.parent().unwrap_or(Path::new("")).to_owned();
        Some(self.module(Place { file, directory, base }, parent, path, &syntax.items))
    }

    fn module(
        &mut self,
        place: Place,
        parent: Option<ModuleId>,
        path: Vec<String>,
        items: &[Item],
    ) -> ModuleId {
        let id = self.tree.modules.len();
        let root = parent.map_or(id, |parent| self.tree.modules[parent].root);
        let found = paths::collect(items);
        self.tree.files.entry(place.file.clone()).or_default().code -= found.test_lines;
        self.tree.modules.push(Module {
            path: path.clone(),
            file: place.file.clone(),
            root,
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: found.imports,
            globs: found.globs,
            references: found.references,
        });
        for item in items.iter().filter(|item| !cfg::is_test_code(cfg::of_item(item))) {
            if let Some(name) = paths::name_of(item) {
                self.tree.modules[id].items.insert(name);
            }
            match item {
                Item::Mod(child) => self.child(id, &place, &path, child),
                Item::Macro(item) => {
                    self.tree.macros.extend(item.ident.iter().map(|name| (name.to_string(), id)));
                }
                _ => {}
            }
        }
        id
    }

    fn child(&mut self, parent: ModuleId, place: &Place, path: &[String], item: &ItemMod) {
        let name = item.ident.to_string();
        let name = name.strip_prefix("r#").unwrap_or(&name).to_owned();
        let path = [path, std::slice::from_ref(&name)].concat();
        let named = path_attribute(&item.attrs);
        let id = match &item.content {
            Some((_, items)) => {
                let directory = place.directory.join(named.as_deref().unwrap_or(&name));
                let place = Place { file: place.file.clone(), base: directory.clone(), directory };
                Some(self.module(place, Some(parent), path, items))
            }
            None => {
                let (file, directory) = self.find(place, &name, named, item);
                self.file(file, directory, Some(parent), path)
            }
        };
        self.tree.modules[parent].children.extend(id.map(|id| (name, id)));
    }

    /// The file of `mod name;`, and the directory of that module's own children.
    fn find(&self, place: &Place, name: &str, named: Option<String>, item: &ItemMod) -> (PathBuf, PathBuf) {
        if let Some(named) = named {
            let file = place.base.join(named);
            let directory = file.parent().unwrap_or(Path::new("")).to_owned();
            return (file, directory);
        }
        let directory = place.directory.join(name);
        let beside = place.directory.join(format!("{name}.rs"));
        let inside = directory.join("mod.rs");
        let file = [beside, inside].into_iter().find(|file| self.root.join(file).exists());
        let line = item.span().start().line;
        let declared = self.root.join(&place.file);
        (file.unwrap_or_else(|| panic!("{}:{line}: no file of 'mod {name}'", declared.display())), directory)
    }
}

/// What `#[path = "..."]` says.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}
