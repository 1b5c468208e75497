//! Whole files, as the launcher meets them.

use crate::error::EndsRun;
use std::path::{Path, PathBuf};

use crate::program::tests::image::*;
use crate::program::tests::{Scratch, start};
use crate::program::{FileKind, OtherClass, Program, examine, examine_from};
use crate::sys::executable::testing::{as_ordinary_user, give_capability, make_fifo};

fn kind_of(path: &Path) -> FileKind {
    examine(path).unwrap().last().unwrap().kind.clone()
}

/// The exit status and the message of an examination that must fail.
fn failure(path: &Path) -> (u8, String) {
    let error = examine(path).expect_err(&path.display().to_string());
    (error.outcome().status(), error.to_string())
}

fn assert_failure(path: &Path, code: u8, text: &str) {
    let (exit, message) = failure(path);
    assert!(exit == code && message.contains(text), "{exit} {message}");
}

/// The loader of this system's own shell.
fn system_loader() -> PathBuf {
    match kind_of(Path::new("/bin/sh")) {
        FileKind::Dynamic { interpreter } => interpreter,
        other => panic!("/bin/sh is {other}"),
    }
}

/// `count` scripts, each the interpreter of the next, the first of them for `/bin/echo`; the last one's path.
fn script_chain(scratch: &Scratch, count: usize) -> PathBuf {
    let mut interpreter = PathBuf::from("/bin/echo");
    for index in 0..count {
        let line = format!("#!{}\n", interpreter.display());
        interpreter = scratch.file(&format!("script{index}"), line, 0o755);
    }
    interpreter
}

#[test]
fn the_systems_shell_is_dynamic_and_preloadable() {
    let program = examine(Path::new("/bin/sh")).unwrap();
    assert!(program.preloadable(), "{}", program.describe());
    assert_eq!(program.path, Path::new("/bin/sh"));
    assert_eq!(program.chain.len(), 1);
    assert!(program.describe().starts_with("dynamically linked (loader '/lib"));
}

#[test]
fn busybox_is_what_its_bytes_say() {
    let path = Path::new("/bin/busybox");
    let Ok(bytes) = std::fs::read(path) else { return };
    let names_loader = bytes[..4096].windows(4).any(|window| window == b"/ld-");
    let program = examine(path).unwrap();
    assert_eq!(program.preloadable(), names_loader, "{}", program.describe());
    assert_eq!(kind_of(path) == FileKind::Static, !names_loader);
}

#[test]
fn the_loader_itself_is_told_from_other_programs() {
    let loader = system_loader();
    assert_eq!(kind_of(&loader), FileKind::Loader);
    assert_eq!(kind_of(&loader.canonicalize().unwrap()), FileKind::Loader);
    let scratch = Scratch::new();
    let copy = scratch.path("copy");
    std::fs::copy(&loader, &copy).unwrap();
    assert_eq!(kind_of(&copy), FileKind::SharedObject);
    assert!(!examine(&loader).unwrap().preloadable() && !examine(&copy).unwrap().preloadable());
}

#[test]
fn tells_crafted_kinds() {
    let scratch = Scratch::new();
    let loader = system_loader();
    let foreign = scratch.file("loader", "x", 0o755).display().to_string();
    let resolved = loader.canonicalize().unwrap().display().to_string();
    let link = scratch.link("linked-loader", &loader).display().to_string();
    let cases = [
        (static_program(), FileKind::Static),
        (position_independent(Some(0x0800_0000)), FileKind::StaticPie),
        (position_independent(None), FileKind::SharedObject),
        (dynamic_program(&foreign), FileKind::ForeignLoader { interpreter: foreign.clone().into() }),
        (dynamic_program(&resolved), FileKind::Dynamic { interpreter: resolved.clone().into() }),
        (dynamic_program(&link), FileKind::Dynamic { interpreter: link.clone().into() }),
        (elf32(crate::program::machine::NATIVE), FileKind::OtherClass { class: OtherClass::ShortPointers }),
        (elf32(2), FileKind::OtherArchitecture { machine: "sparc, little-endian".to_owned() }),
    ];
    for (content, expected) in cases {
        let path = scratch.file("program", content, 0o755);
        assert_eq!(kind_of(&path), expected);
        let dynamic = matches!(expected, FileKind::Dynamic { .. });
        assert_eq!(examine(&path).unwrap().preloadable(), dynamic);
    }
}

#[test]
fn a_relative_loader_is_foreign_and_sought_in_the_working_directory() {
    let scratch = Scratch::new();
    scratch.file("ld.so", "x", 0o755);
    let path = scratch.file("program", dynamic_program("ld.so"), 0o755);
    let program = examine_from(&path, &scratch.0).unwrap();
    assert_eq!(program.chain[0].kind, FileKind::ForeignLoader { interpreter: "ld.so".into() });
    assert_failure(&path, 126, "needs the loader 'ld.so': no such file");
}

#[test]
fn a_loader_that_cannot_be_executed_is_named() {
    let scratch = Scratch::new();
    let plain = scratch.file("plain", "x", 0o644);
    let path = scratch.file("program", dynamic_program(plain.to_str().unwrap()), 0o755);
    assert_failure(&path, 126, "no execute permission");
    let path = scratch.file("program", dynamic_program("/nowhere/ld\x1b.so"), 0o755);
    assert_failure(&path, 126, "'/nowhere/ld\\u{1b}.so': no such file");
}

#[test]
fn scripts_are_followed_to_the_depth_of_the_kernel() {
    let scratch = Scratch::new();
    for count in 1..=7 {
        let path = script_chain(&scratch, count);
        let kernel = start(&path);
        match examine(&path) {
            Ok(program) => {
                assert!(kernel.is_ok() && count <= 5, "{count}: {kernel:?}");
                assert_eq!(program.chain.len(), count + 1);
                assert_eq!(program.last().unwrap().path, Path::new("/bin/echo"));
                assert!(program.preloadable());
            }
            Err(error) => {
                assert_eq!(kernel.unwrap_err().raw_os_error(), Some(libc::ELOOP), "{count}: {error}");
                assert!(count > 5 && error.outcome().status() == 126 && error.to_string().contains("5 deep"));
            }
        }
    }
    let own = scratch.path("own");
    scratch.file("own", format!("#!{}\n", own.display()), 0o755);
    assert_failure(&own, 126, "5 deep");
}

#[test]
fn a_script_is_as_preloadable_as_its_interpreter() {
    let scratch = Scratch::new();
    let interpreter = scratch.file("static", static_program(), 0o755);
    let script = scratch.file("script", format!("#!{} -x y\n", interpreter.display()), 0o755);
    let program = examine(&script).unwrap();
    assert!(!program.preloadable());
    let words = format!("a script for '{}' '-x y', which is statically linked", interpreter.display());
    assert_eq!(program.describe(), words);
}

#[test]
fn a_scripts_relative_interpreter_is_sought_in_the_working_directory() {
    let scratch = Scratch::new();
    scratch.file("tool", static_program(), 0o755);
    let script = scratch.file("script", "#!tool\n", 0o755);
    assert_eq!(examine_from(&script, &scratch.0).unwrap().last().unwrap().path, scratch.path("tool"));
    assert_failure(&script, 126, "its interpreter 'tool': no such file");
}

#[test]
fn a_bad_interpreter_is_named_with_its_script() {
    let scratch = Scratch::new();
    scratch.file("plain", "", 0o644);
    let plain = scratch.path("plain").display().to_string();
    for (line, text) in [
        ("#!/nowhere/sh\n", "script': its interpreter '/nowhere/sh': no such file"),
        ("#!/bin/sh\r\n", "'/bin/sh\\r' ends in a carriage return"),
        ("#!/\n", "is a directory"),
        ("#!\n", "names no interpreter"),
        (&format!("#!{plain}\n"), "no execute permission"),
        (&format!("#!/{}\n", "x".repeat(300)), "256 bytes"),
    ] {
        assert_failure(&scratch.file("script", line, 0o755), 126, text);
    }
}

#[test]
fn what_is_no_program_is_refused() {
    let scratch = Scratch::new();
    let text = scratch.file("text", "echo hello\n", 0o755);
    assert_failure(&text, 126, &format!("run as: sh '{}'", text.display()));
    assert_failure(&scratch.file("empty", "", 0o755), 126, "is empty");
    assert_failure(&scratch.file("cut", &static_program()[..30], 0o755), 126, "ends before its header");
    assert_failure(&scratch.file("magic", b"\x7fEL", 0o755), 126, "neither ELF");
    assert_failure(&scratch.file("plain", static_program(), 0o644), 126, "chmod +x");
    assert_failure(&scratch.0, 126, "is a directory");
    assert_failure(&scratch.path("nothing"), 127, "no such file");
    assert_failure(&scratch.link("loop", "loop"), 126, "loop");
    assert_failure(Path::new("/dev/zero"), 126, "not a regular file");
}

#[test]
fn a_fifo_does_not_block() {
    let scratch = Scratch::new();
    let fifo = scratch.path("fifo");
    make_fifo(&fifo);
    assert_failure(&fifo, 126, "not a regular file");
    let script = scratch.file("script", format!("#!{}\n", fifo.display()), 0o755);
    assert_failure(&script, 126, "not a regular file");
}

#[test]
fn what_may_be_executed_but_not_read_stays_unknown() {
    let scratch = Scratch::new();
    let path = scratch.file("secret", static_program(), 0o111);
    let program = as_ordinary_user(|| examine(&path)).unwrap();
    assert_eq!(program.chain[0].kind, FileKind::Unreadable);
    assert!(!program.preloadable());
}

#[test]
fn set_id_counts_on_the_program_and_not_on_a_script() {
    let scratch = Scratch::new();
    let content = std::fs::read("/bin/sh").unwrap();
    let with_mode = |mode: u32| -> Program { examine(&scratch.file("tool", &content, mode)).unwrap() };
    assert_eq!(with_mode(0o755).set_id, None);
    assert_eq!(with_mode(0o2745).set_id, None, "the group bit without group execute is for locking");
    let set_id = with_mode(0o6755).set_id.unwrap();
    assert!(set_id.user.is_some() && set_id.group.is_some());
    let program = with_mode(0o4755);
    assert!(program.set_id.unwrap().group.is_none() && !program.preloadable());
    assert!(program.describe().contains("set-user-ID"), "{}", program.describe());
    let script = scratch.file("script", "#!/bin/sh\n", 0o6755);
    assert_eq!(examine(&script).unwrap().set_id, None);
}

#[test]
fn file_capabilities_are_seen() {
    let scratch = Scratch::new();
    let path = scratch.file("tool", std::fs::read("/bin/sh").unwrap(), 0o755);
    assert!(!examine(&path).unwrap().file_capabilities);
    if give_capability(&path) {
        let program = examine(&path).unwrap();
        assert!(program.file_capabilities && !program.preloadable());
        assert!(program.describe().contains("capabilities"));
    }
}

#[test]
fn json_has_kinds_as_tags_and_paths_as_text() {
    let scratch = Scratch::new();
    let script = scratch.file("script", "#!/bin/sh -e\n", 0o755);
    let json = serde_json::to_value(examine(&script).unwrap()).unwrap();
    assert_eq!(json["path"], script.display().to_string());
    assert_eq!(json["chain"][0]["kind"]["type"], "script");
    assert_eq!(json["chain"][0]["kind"]["argument"], "-e");
    assert_eq!(json["chain"][1]["kind"]["type"], "dynamic");
    assert_eq!(json["set_id"], serde_json::Value::Null);
    let other = scratch.file("x32", elf32(crate::program::machine::NATIVE), 0o755);
    let json = serde_json::to_value(examine(&other).unwrap()).unwrap();
    assert_eq!(json["chain"][0]["kind"]["type"], "other-class");
    assert_eq!(json["chain"][0]["kind"]["class"], "short-pointers");
}
