//! Writes the built-in profiles as Rust source: values that need neither parsing nor memory at run time.

use crate::profile::{
    Alternative, Bound, CallRules, CallTable, DefaultAction, Given, Grants, HomeMode, HostGroup, Level, List,
    Location, Namespaces, NetworkMode, Origin, Pattern, Protection, Search, SettingsCopy, SettingsFormat,
    Shared, Source, StaticMode, Syscalls, Text, Variable, When, WhenMade,
};
use sbx_policy::calls::Call;
use sbx_policy::restrictions::{Condition, Op, Width};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reads every built-in profile, and leaves `profiles.rs` in `out`.
pub fn write(out: &Path) {
    for path in ["src/profile", "src/text.rs", "../profiles"] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rustc-check-cfg=cfg(built_in_tables)");
    println!("cargo::rustc-cfg=built_in_tables");
    let mut tables = Tables::default();
    let profiles = sbx_profiles::NAMES.map(|name| {
        let profile = crate::profile::load(OsStr::new(name), &Search::default());
        profile.unwrap_or_else(|error| panic!("{error}")).code(&mut tables)
    });
    let (count, profiles) = (profiles.len(), profiles.join(", "));
    let source = format!(
        "#[allow(unused_imports)] use {{crate::profile::*, sbx_policy::{{calls::Call, restrictions::*}}}};\n\
         #[allow(unused_imports)] use std::{{borrow::Cow, time::Duration}};\n\
         {}static PROFILES: [Profile; {count}] = [{profiles}];\n",
        tables.source
    );
    fs::write(out.join("profiles.rs"), source).expect("OUT_DIR can be written");
}

/// The statics so far. What is written twice is one.
#[derive(Default)]
pub struct Tables {
    source: String,
    names: HashMap<String, String>,
}

impl Tables {
    /// A static of its own; the expression is its name.
    fn name(&mut self, type_name: &str, value: &str) -> String {
        // The source that includes the statics imports each type by its bare name.
        let words = type_name.split_inclusive(['<', '(', '[', ' ']);
        let bare: String = words.map(|word| word.rsplit("::").next().unwrap_or(word)).collect();
        let key = format!("{bare} = {value}");
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let name = format!("T{}", self.names.len());
        self.source.push_str(&format!("static {name}: {key};\n"));
        self.names.insert(key, name.clone());
        name
    }
}

/// A value that can be written as Rust source.
pub trait Code {
    /// An expression of the value.
    fn code(&self, tables: &mut Tables) -> String;
}

/// `TYPE: |value, tables| expression`.
macro_rules! values {
    ($($type:ty: |$value:ident, $tables:pat_param| $code:expr;)*) => {$(
        impl Code for $type {
            fn code(&self, $tables: &mut Tables) -> String {
                let $value = self;
                $code
            }
        }
    )*};
}

values! {
    bool: |value, _| value.to_string();
    u8: |value, _| value.to_string();
    u16: |value, _| value.to_string();
    u64: |value, _| value.to_string();
    usize: |value, _| value.to_string();
    &'static str: |text, _| format!("{text:?}");
    Text: |text, _| format!("Cow::Borrowed({text:?})");
    Shared<str>: |text, _| format!("Shared::Fixed({:?})", &**text);
    Duration: |time, _| format!("Duration::from_nanos({})", time.as_nanos());
    Pattern: |pattern, _| format!("Pattern::fixed({:?})", &**pattern);
    Call: |call, _| format!("Call::at({})", call.place());
    Source: |_source, _| "Source::BuiltIn".to_string();
    Vec<PathBuf>: |_files, _| "Vec::new()".to_string();
    Op: |op, _| format!("Op::{op:?}");
    Width: |width, _| format!("Width::{width:?}");
    DefaultAction: |action, _| format!("DefaultAction::{action:?}");
    HomeMode: |mode, _| format!("HomeMode::{mode:?}");
    SettingsFormat: |format, _| format!("SettingsFormat::{format:?}");
    Level: |level, _| format!("Level::{level:?}");
    Namespaces: |namespaces, _| format!("Namespaces::{namespaces:?}");
    NetworkMode: |mode, _| format!("NetworkMode::{mode:?}");
    StaticMode: |mode, _| format!("StaticMode::{mode:?}");
    WhenMade: |when, _| format!("WhenMade::{when:?}");
    Variable: |variable, _| format!("Variable::{variable:?}");
    CallTable: |table, tables| format!("CallTable({})", table.0.code(tables));
    Grants: |grants, tables| match grants {
        Grants::None => "Grants::None".to_string(),
        Grants::All(origin) => format!("Grants::All({})", origin.code(tables)),
        Grants::Some(alternatives) => format!("Grants::Some({})", alternatives.code(tables)),
    };
    When: |when, tables| match when {
        When::Named(place) => format!("When::Named({place})"),
        When::Free(conditions) => format!("When::Free({})", conditions.code(tables)),
    };
    Shared<Origin>: |origin, tables| {
        let origin = (**origin).code(tables);
        format!("Shared::Fixed(&{})", tables.name("Origin", &origin))
    };
}

/// Structs of which every field is written.
macro_rules! structs {
    ($($name:ident $(<$parameter:ident>)? { $($field:ident),* $(,)? })*) => {$(
        impl$(<$parameter: crate::tables::Code>)? crate::tables::Code for $name$(<$parameter>)? {
            fn code(&self, tables: &mut crate::tables::Tables) -> String {
                let $name { $($field),* } = self;
                let fields = [$(format!("{}: {}", stringify!($field), $field.code(tables))),*];
                format!("{} {{ {} }}", stringify!($name), fields.join(", "))
            }
        }
    )*};
}
pub(crate) use structs;

structs! {
    Alternative { when, origin }
    CallRules { allow, inside, deny, errno, log }
    Condition { arg, width, op, value }
    Given<T> { value, origin }
    HostGroup { rules }
    Location { base, rest }
    Origin { profile, built_in, optional, unless_credentials, key, index, entry, why }
    Protection { path, readers, when_made }
    SettingsCopy { path, format, keep }
    Syscalls { default, calls }
}

impl<T: Code> Code for Bound<T> {
    fn code(&self, tables: &mut Tables) -> String {
        match self {
            Bound::Unlimited => "Bound::Unlimited".to_string(),
            Bound::At(limit) => format!("Bound::At({})", limit.code(tables)),
        }
    }
}

impl<T: Code> Code for Option<T> {
    fn code(&self, tables: &mut Tables) -> String {
        self.as_ref().map_or("None".to_string(), |value| format!("Some({})", value.code(tables)))
    }
}

impl<A: Code, B: Code> Code for (A, B) {
    fn code(&self, tables: &mut Tables) -> String {
        format!("({}, {})", self.0.code(tables), self.1.code(tables))
    }
}

impl<T: Code + Clone> Code for List<T> {
    fn code(&self, tables: &mut Tables) -> String {
        let items: Vec<String> = self.iter().map(|item| item.code(tables)).collect();
        if items.is_empty() {
            return "Cow::Borrowed(&[])".to_string();
        }
        let type_name = format!("[{}; {}]", std::any::type_name::<T>(), items.len());
        format!("Cow::Borrowed(&{})", tables.name(&type_name, &format!("[{}]", items.join(", "))))
    }
}
