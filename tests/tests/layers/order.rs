//! No module uses a higher one.

use sbx_tests::modules::layers::{self, LAYERS};
use sbx_tests::modules::{Graph, Tree, circles};

use crate::{Made, none, only, repository};

#[test]
fn the_launcher_keeps_the_order() {
    let graph = Graph::new(Tree::read(&repository().join("launcher/src")));
    none(&layers::faults(&graph, LAYERS));
}

/// The layers of the trees below.
const THREE: &[&str] = &["low", "middle", "high"];

const ROOT: (&str, &str) = ("lib.rs", "pub mod high;\npub mod low;\npub mod middle;\n");
const HIGH: (&str, &str) = ("high.rs", "pub struct Thing;\npub fn act() {}\npub const ONE: u8 = 1;\n");
const MIDDLE: (&str, &str) = ("middle.rs", "pub fn carry() {}\n");
const LOW: (&str, &str) = ("low.rs", "pub fn hold() {}\n");

/// The faults of a tree of these files, with the ones above for those that are missing.
fn faults(files: &[(&str, &str)]) -> Vec<String> {
    let stem = |name: &str| name.trim_end_matches(".rs").trim_end_matches("/mod").to_owned();
    let mut all = files.to_vec();
    for usual in [ROOT, HIGH, MIDDLE, LOW] {
        if !files.iter().any(|(name, _)| stem(name) == stem(usual.0)) {
            all.push(usual);
        }
    }
    let made = Made::new(&all);
    layers::faults(&Graph::new(Tree::read(&made.0)), THREE)
}

#[test]
fn looking_down_in_every_way_passes() {
    let high = "
        use crate::middle::{self, carry as bring};
        pub use crate::low::hold;
        pub struct Thing;
        pub fn act() { middle::carry(); bring(); hold(); super::low::hold(); self::inner::deeper(); }
        mod inner { pub fn deeper() { super::super::low::hold(); } }";
    let main = "fn main() { sbx::high::act(); sbx::low::hold() }";
    none(&faults(&[("high.rs", high), ("main.rs", main)]));
}

#[test]
fn what_only_looks_like_a_climb_passes() {
    let low = "
        //! See [`crate::high::Thing`], and crate::high::act.
        use std::high::Thing;
        use ::high::Other;
        #[doc = \"crate::high::act\"]
        pub(in crate::low) fn hold() -> &'static str { \"crate::high::act\" } // crate::high::act()
        mod deep { pub(in super::super) fn high() {} pub fn act() { self::high() } }
        fn high() { deep::act(); }";
    none(&faults(&[("low.rs", low)]));
}

#[test]
fn tests_may_look_up() {
    let low = "
        #[cfg(test)] use crate::high::Thing;
        #[cfg(test)] mod tests;
        #[cfg(all(test, target_os = \"linux\"))] mod more { use crate::high::Thing; }
        struct Holder;
        impl Holder { #[cfg(test)] fn check() { crate::high::act(); } }
        fn hold() { #[cfg(test)] let _ = crate::high::ONE; #[cfg(test)] crate::high::act!(); }
        #[test] fn holds() { crate::high::act(); }";
    none(&faults(&[("low/mod.rs", low), ("low/tests.rs", "use crate::high::Thing;")]));
}

#[test]
fn what_may_be_more_than_tests_may_not() {
    let low = "#[cfg(any(test, feature = \"more\"))] use crate::high::Thing;";
    only(&faults(&[("low.rs", low)]), "low.rs:1: climbs from low to high: crate::high::Thing");
    let low = "#[cfg(not(test))] use crate::high::Thing;";
    only(&faults(&[("low.rs", low)]), "low.rs:1: climbs from low to high: crate::high::Thing");
}

#[test]
fn a_climbing_use_is_found() {
    let low = "pub fn hold() {}\nuse crate::high::Thing;\n";
    only(&faults(&[("low.rs", low)]), "low.rs:2: climbs from low to high: crate::high::Thing");
    let group = "use crate::{\n    middle::{self, carry},\n    high as above,\n};\n";
    let found = faults(&[("low.rs", group)]);
    assert!(found.contains(&"low.rs:3: climbs from low to high: crate::high".to_owned()), "{found:?}");
    assert!(
        found.contains(&"low.rs:2: climbs from low to middle: crate::middle::carry".to_owned()),
        "{found:?}"
    );
    let everything = "use super::high::*;";
    only(&faults(&[("low.rs", everything)]), "low.rs:1: climbs from low to high: super::high");
    let within = "fn hold() {\n    use crate::high;\n    high::act();\n}\n";
    let found = faults(&[("low.rs", within)]);
    assert!(found.contains(&"low.rs:2: climbs from low to high: crate::high".to_owned()), "{found:?}");
    assert!(found.contains(&"low.rs:3: climbs from low to high: crate::high::act".to_owned()), "{found:?}");
}

#[test]
fn a_climbing_path_is_found_wherever_it_stands() {
    for (line, path) in [
        ("fn hold() { crate::high::act(); }", "crate::high::act"),
        ("fn hold(_: &[crate::high::Thing]) {}", "crate::high::Thing"),
        ("fn hold(one: u8) { match one { crate::high::ONE => {} _ => {} } }", "crate::high::ONE"),
        ("impl crate::high::Trait for u8 {}", "crate::high::Trait"),
        ("fn hold() -> bool { matches!(1, crate::high::ONE) }", "crate::high::ONE"),
        ("fn hold() { println!(\"{}\", [crate::high::ONE][0]); }", "crate::high::ONE"),
        ("macro_rules! hold { () => { $crate::high::act() }; }", "crate::high::act"),
        ("macro_rules! hold { () => { use crate::{high::act}; }; }", "crate::high::act"),
        ("fn hold() { crate::high::shout!(); }", "crate::high::shout"),
        ("#[derive(crate::high::Shown)] struct Held;", "crate::high::Shown"),
        ("struct Held { #[serde(with = \"crate::high\")] one: u8 }", "crate::high"),
        ("struct Held { #[arg(value_parser = crate::high::parse)] one: u8 }", "crate::high::parse"),
    ] {
        let found = faults(&[("low.rs", &format!("\n{line}\n"))]);
        only(&found, &format!("low.rs:2: climbs from low to high: {path}"));
    }
}

#[test]
fn a_macro_that_a_higher_module_defines_is_found() {
    let high = "#[macro_export] macro_rules! shout { () => {}; }";
    for (low, path) in
        [("fn hold() { shout!(); }", "shout"), ("fn hold() { crate::shout!(); }", "crate::shout")]
    {
        let found = faults(&[("high.rs", high), ("low.rs", low)]);
        only(&found, &format!("low.rs:1: climbs from low to high: {path}"));
    }
}

#[test]
fn a_climb_behind_a_re_export_is_found_where_it_is_re_exported() {
    let low = "pub use crate::high::Thing;";
    let middle = "use crate::low::Thing;";
    let found = faults(&[("low.rs", low), ("middle.rs", middle)]);
    only(&found, "low.rs:1: climbs from low to high: crate::high::Thing");
}

#[test]
fn a_climb_behind_a_re_exported_module_is_found_where_it_is_used_too() {
    let low = "pub use crate::high;";
    let middle = "fn carry() { crate::low::high::act(); }";
    let found = faults(&[("low.rs", low), ("middle.rs", middle)]);
    let expected = [
        "low.rs:1: climbs from low to high: crate::high",
        "middle.rs:1: climbs from middle to high: crate::low::high::act",
    ];
    for expected in expected {
        assert!(found.iter().any(|fault| fault == expected), "{expected} is not in {found:?}");
    }
    let everything = "pub use crate::high::*;";
    let found = faults(&[("low.rs", everything), ("middle.rs", "fn carry() { crate::low::act(); }")]);
    only(&found, "low.rs:1: climbs from low to high: crate::high");
}

#[test]
fn a_climb_to_what_only_re_exports_a_lower_module_is_found() {
    let middle = "fn carry() { crate::high::base::hold(); }";
    let found = faults(&[("high.rs", "pub use crate::low as base;"), ("middle.rs", middle)]);
    only(&found, "middle.rs:1: climbs from middle to high: crate::high::base::hold");
}

#[test]
fn a_climb_by_a_name_that_an_import_of_everything_brings_in_is_found() {
    let found = faults(&[("low.rs", "use super::*;\nfn hold() { high::act(); }\n")]);
    let expected = "low.rs:2: climbs from low to high: high::act";
    assert!(found.iter().any(|fault| fault == expected), "{found:?}");
}

#[test]
fn a_function_that_has_the_name_of_a_module_is_told_from_it() {
    let root = "pub mod high;\npub mod low;\npub mod middle;\npub use high::high;\n";
    let found = faults(&[
        ("lib.rs", root),
        ("high.rs", "pub fn high() {}"),
        ("low.rs", "fn hold() { crate::high(); }"),
    ]);
    only(&found, "low.rs:1: climbs from low to lib.rs: crate::high");
}

#[test]
fn a_climb_behind_the_root_is_found() {
    let root = "pub mod high;\npub mod low;\npub mod middle;\npub use high::Thing;\n";
    let found = faults(&[("lib.rs", root), ("low.rs", "use crate::Thing;")]);
    only(&found, "low.rs:1: climbs from low to lib.rs: crate::Thing");
}

#[test]
fn a_climb_through_super_is_found() {
    let low = "mod deep;";
    let deep = "fn hold() {\n    super::super::high::act();\n}\n";
    let found = faults(&[("low/mod.rs", low), ("low/deep.rs", deep)]);
    only(&found, "low/deep.rs:2: climbs from low to high: super::super::high::act");
    let inline = "
mod deep {
    use super::super::high::Thing;
    mod deeper { use super::super::super::high::act; }
}
";
    let expected = [
        "low.rs:3: climbs from low to high: super::super::high::Thing",
        "low.rs:4: climbs from low to high: super::super::super::high::act",
    ];
    assert_eq!(faults(&[("low.rs", inline)]), expected);
}

#[test]
fn a_module_of_another_files_name_is_found() {
    let low = "#[path = \"other/elsewhere.rs\"]\nmod deep;\n";
    let found = faults(&[("low/mod.rs", low), ("low/other/elsewhere.rs", "use crate::high::Thing;")]);
    only(&found, "low/other/elsewhere.rs:1: climbs from low to high: crate::high::Thing");
}

#[test]
fn a_circle_is_found() {
    let high = "use crate::low::hold;";
    let low = "\nuse crate::high::Thing;";
    let found = faults(&[("high.rs", high), ("low.rs", low)]);
    let expected = [
        "low.rs:2: climbs from low to high: crate::high::Thing",
        "circle of 2 modules, for instance high.rs:1: high uses low, low.rs:2: low uses high",
    ];
    assert_eq!(found, expected);
    let made = Made::new(&[ROOT, ("high.rs", high), ("low.rs", low), MIDDLE]);
    let graph = Graph::new(Tree::read(&made.0));
    assert_eq!(circles(&graph.between_files()).len(), 1);
}

#[test]
fn an_unknown_module_is_found() {
    let root = "pub mod high;\npub mod low;\npub mod middle;\nmod aside;\n";
    let found = faults(&[("lib.rs", root), ("aside/mod.rs", "")]);
    only(&found, "aside/mod.rs:1: module aside has no place in the list of layers");
}

#[test]
fn a_listed_module_that_is_not_there_is_found() {
    let found = faults(&[("lib.rs", "pub mod high;\npub mod low;\n")]);
    only(&found, "module middle is in the list of layers but does not exist");
}

#[test]
fn test_code_is_not_counted_as_code() {
    let low = "pub fn hold() {}

/// Checks.
#[cfg(test)]
mod tests {
    use crate::high;
}

#[cfg(test)]
mod more;
";
    let made = Made::new(&[
        ("lib.rs", "pub mod low;\n"),
        ("low/mod.rs", low),
        ("low/more.rs", "//! More.\n\nfn more() {}\n"),
    ]);
    let lines = Tree::read(&made.0).lines();
    assert_eq!((lines["lib.rs"].code, lines["lib.rs"].all), (1, 1));
    assert_eq!((lines["low"].code, lines["low"].all), (3, 13));
}
