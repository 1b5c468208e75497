//! The peers driver, once and as quickly as can be: whether it works, not what it finds.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const BEGIN: &str = "<!-- make bench-peers as USER: begin -->";
const END: &str = "<!-- make bench-peers as USER: end -->";

/// A program that claims to be a sandbox.
fn plant(path: &Path, script: &str) -> io::Result<()> {
    fs::write(path, format!("#!/bin/sh\n{script}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[test]
fn everybody_who_is_there_is_measured_and_the_document_is_updated() {
    let driver = Path::new(env!("CARGO_BIN_EXE_sbx-bench"));
    if !driver.with_file_name("sbx").exists() && env::var_os("SBX_BIN").is_none() {
        assert!(env::var_os("SBX_TEST_NO_SKIP").is_none(), "no sbx beside the driver; build it first");
        eprintln!("skipped: no sbx beside the driver");
        return;
    }
    let directory = env::temp_dir().join(format!("sbx-bench-test-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    let document = directory.join("performance.md");
    let place = |user| format!("{BEGIN}\nold\n{END}\n").replace("USER", user);
    fs::write(&document, format!("before\n{}{}after\n", place("root"), place("an ordinary user"))).unwrap();
    // One that only starts the command, and one that does not even that.
    plant(&directory.join("landrun"), "while [ $1 != -- ]; do shift; done; shift; exec \"$@\"").unwrap();
    plant(&directory.join("minijail0"), "exit 0").unwrap();
    // Those of the system, if any, and no more: each takes its seconds.
    let path = format!("{}:/usr/bin:/bin", directory.display());
    let quick = ["--rounds", "1", "--warm-up", "0", "--seconds", "0", "--small"];
    let output = Command::new(driver)
        .arg("peers")
        .args(quick)
        .arg("--update")
        .arg(&document)
        .env("PATH", path)
        .output()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let updated = fs::read_to_string(&document).unwrap();
    fs::remove_dir_all(&directory).unwrap();

    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.lines().filter(|line| line.starts_with("| bare | ")).count() == 4, "{said}");
    // Each peer is there with figures, or with a reason.
    for peer in ["bwrap", "firejail", "nsjail", "landrun"] {
        let row = said.lines().find(|line| line.starts_with(&format!("| {peer} | ")));
        let out = row.is_some_and(|row| row.contains("| absent |") || row.contains("| failed |"));
        let explained = said.lines().any(|line| line.starts_with(&format!("- {peer}: ")));
        assert!(row.is_some(), "no {peer} in:\n{said}");
        assert!(!out || explained, "no reason for {peer} in:\n{said}");
    }
    assert!(said.contains("\n- landrun: confines nothing of what is looked at\n"), "{said}");
    assert!(said.contains("\n- minijail: the command did not say its namespaces"), "{said}");
    assert!(updated.contains(said.trim()), "{updated}");
    assert_eq!(updated.matches("\nold\n").count(), 1, "{updated}");
    assert!(updated.starts_with("before\n") && updated.ends_with("after\n"), "{updated}");
}
