//! Files and lines are short, and `unsafe` stands only in `sys` modules.

use sbx_tests::sources::{long_files, long_lines, misplaced_unsafe};

use crate::{Made, none, only, repository};

#[test]
fn no_file_is_too_long() {
    none(&long_files(&repository()));
}

#[test]
fn no_line_is_too_long() {
    none(&long_lines(&repository()));
}

#[test]
fn unsafe_stands_in_sys_modules() {
    none(&misplaced_unsafe(&repository()));
}

#[test]
fn a_file_that_is_too_long_is_found() {
    let (longest, longer) = ("\n".repeat(460), "\n".repeat(461));
    let made = Made::new(&[
        ("launcher/src/a.rs", &longest),
        ("tests/a.rs", &longer),
        ("bench/target/a.rs", &longer),
        ("tests/table.json", &longer),
        ("docs/a.rs", &longer),
    ]);
    only(&long_files(&made.0), "tests/a.rs: 461 lines, more than 460");
    let made = Made::new(&[("tests/script", &format!("#!/bin/sh\n{longest}"))]);
    only(&long_files(&made.0), "tests/script: 461 lines, more than 460");
}

#[test]
fn a_line_that_is_too_long_is_found() {
    let longest = "\u{e9}".repeat(120);
    let made = Made::new(&[("policy/src/a.rs", &format!("\n{longest}\n")), ("shim/src/b.py", &longest)]);
    none(&long_lines(&made.0));
    let made = Made::new(&[("client/src/a.rs", &format!("\n{longest}!\n"))]);
    only(&long_lines(&made.0), "client/src/a.rs:2: 121 characters, more than 120");
    let made = Made::new(&[("tests/a.rs", &format!("{longest}!\n    // {longest}\n"))]);
    only(&long_lines(&made.0), "tests/a.rs:2: 127 characters, more than 120");
}

#[test]
fn unsafe_in_sys_modules_passes() {
    let code = "fn act() { unsafe { call() } }";
    let main = "#[unsafe(no_mangle)]\nextern \"C\" fn main() {\n    unsafe { call() }\n}\n";
    let made = Made::new(&[
        ("launcher/src/sys/file.rs", code),
        ("launcher/src/main.rs", main),
        ("policy/src/sys.rs", code),
        ("bench/src/race/sys.rs", code),
        ("tests/src/a.rs", "// unsafe\nconst A: &str = \"unsafe\"; fn unsafely() {}"),
    ]);
    none(&misplaced_unsafe(&made.0));
}

#[test]
fn unsafe_elsewhere_is_found() {
    let block = "fn act() {\n    unsafe { call() }\n}\n";
    let made = Made::new(&[("launcher/src/file.rs", block)]);
    only(&misplaced_unsafe(&made.0), "launcher/src/file.rs:2: unsafe outside a sys module");
    for line in [
        "unsafe fn act() {}",
        "unsafe impl Send for A {}",
        "#[unsafe(no_mangle)] fn act() {}",
        "unsafe extern \"C\" { fn act(); }",
        "fn act() { call!([unsafe { act() }]) }",
        "macro_rules! act { () => { unsafe { act() } }; }",
    ] {
        let made = Made::new(&[("tests/src/system.rs", line)]);
        only(&misplaced_unsafe(&made.0), "tests/src/system.rs:1: unsafe outside a sys module");
    }
}

#[test]
fn only_the_exported_main_is_excepted() {
    let main = "extern \"C\" fn main() {\n    unsafe { call() }\n}\nfn other() { unsafe { call() } }\n";
    let made = Made::new(&[("launcher/src/main.rs", main)]);
    only(&misplaced_unsafe(&made.0), "launcher/src/main.rs:4: unsafe outside a sys module");
    let made = Made::new(&[("bench/src/main.rs", "extern \"C\" fn main() { unsafe { call() } }")]);
    only(&misplaced_unsafe(&made.0), "bench/src/main.rs:1: unsafe outside a sys module");
}
