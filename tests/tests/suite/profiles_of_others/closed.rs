//! What a document closes, or keeps as it is: it stays so in a run under the profile that is made of it.

use sbx_tests::{World, as_users};
use std::path::Path;

/// The profile that a document makes, of which nothing is lost. `W` stands for the directory that all is in.
fn made_whole(world: &World, language: &str, document: &str) -> String {
    let (profile, lost) = made(world, language, document, if language == "srt" { &["--lossy"] } else { &[] });
    let unsaid = |line: &str| !line.contains("at the top of each of these places only");
    assert_eq!(lost.lines().find(|line| unsaid(line)), None, "{language}: {document}");
    profile
}

/// The profile of a document, saved in the home, and what standard error says.
fn made(world: &World, language: &str, document: &str, flags: &[&str]) -> (String, String) {
    let all = world.home.parent().unwrap().display().to_string();
    world.write("document", document.replace("//W", &format!("/{all}")).replace("/W", &all));
    let import = world.sbx(["profile", "import", "--from", language]).args(flags).args(["document"]);
    let out = import.run().success();
    std::fs::remove_file(world.path("document")).unwrap();
    let profile = world.write(world.outside.join("made.json"), out.out());
    (profile.display().to_string(), out.err())
}

/// What a shell prints under a profile.
fn prints(world: &World, profile: &str, script: &str) -> String {
    world.sbx(["run", "-q", "-p", profile, "--", "/bin/sh", "-c", script]).run().out()
}

/// Whether a file is changed under a profile; it is put back.
fn changes(world: &World, profile: &str, file: &Path) -> bool {
    world.write(file, "kept\n");
    let script = format!("(echo changed > '{}') 2>/dev/null; echo end", file.display());
    assert_eq!(prints(world, profile, &script), "end\n");
    let changed = world.read(file).unwrap() != "kept\n";
    world.write(file, "kept\n");
    changed
}

fn srt(files: &str) -> String {
    format!("{{\"network\":{{}},\"filesystem\":{{{files}}}}}")
}

/// A place that may not be changed may be written in another way than the one that holds it.
#[test]
fn what_may_not_be_changed_stays_by_any_of_its_names() {
    as_users(|user| {
        let world = World::new(user);
        let (vendor, made) = (world.path("vendor/f"), world.path("made"));
        let codex = "default_permissions = \"x\"\n[permissions.x]\nextends = \":workspace\"\n\
                     [permissions.x.filesystem]\n\"/W/home/project/vendor\" = \"read\"\n";
        let in_home = |files: &str| (srt(files), world.home.join(".bashrc"), world.home.join("made"));
        let bashrc = in_home("\"allowWrite\":[\"/W/home\"],\"denyWrite\":[\"~/.bashrc\"]");
        let unit = "[Service]\nReadWritePaths=/W/home\nReadOnlyPaths=%h/fixed\n";
        for (language, document, fixed, open) in [
            ("claude", "{\"permissions\":{\"deny\":[\"Edit(//W/home/project/vendor/**)\"]}}", &vendor, &made),
            (
                "claude",
                "{\"sandbox\":{\"filesystem\":{\"denyWrite\":[\"/W/home/project/vendor\"]}}}",
                &vendor,
                &made,
            ),
            ("srt", &srt("\"allowWrite\":[\".\"],\"denyWrite\":[\"~/project/vendor\"]"), &vendor, &made),
            ("srt", &bashrc.0, &bashrc.1, &bashrc.2),
            ("codex", codex, &vendor, &made),
            ("cursor", "{\"additionalReadonlyPaths\":[\"/W/home/project/vendor\"]}", &vendor, &made),
            ("systemd", unit, &world.home.join("fixed/f"), &made),
            // The same names, as before.
            ("srt", &srt("\"allowWrite\":[\".\"],\"denyWrite\":[\"vendor\"]"), &vendor, &made),
        ] {
            world.write(fixed, "");
            let profile = made_whole(&world, language, document);
            assert!(!changes(&world, &profile, fixed), "{language}: {document}");
            assert!(changes(&world, &profile, open), "{language}: {document}");
        }
    });
}

/// A denial of writing wins over a permission in it, by whatever name.
#[test]
fn nothing_may_be_changed_in_a_place_that_may_not_be() {
    as_users(|user| {
        let world = World::new(user);
        let (made, sub) = (world.path("made"), world.path("sub/made"));
        for (fixed, top, below) in [
            ("/W/home/project", false, false),
            ("/W", false, false),
            (".", false, false),
            ("~/project", false, false),
            ("/W/home/project/sub", true, false),
            ("/W/outside", true, true),
        ] {
            let files = format!("\"allowWrite\":[\".\",\"/W/home/project/sub\"],\"denyWrite\":[\"{fixed}\"]");
            world.write(&sub, "");
            let profile = made_whole(&world, "srt", &srt(&files));
            assert_eq!(
                (changes(&world, &profile, &made), changes(&world, &profile, &sub)),
                (top, below),
                "{fixed}"
            );
        }
    });
}

/// Which of these files a shell can read under a profile.
fn reads<const N: usize>(world: &World, profile: &str, files: [&Path; N]) -> [bool; N] {
    files.map(|file| {
        let script = format!("cat '{}' 2>/dev/null; echo end", file.display());
        let out = prints(world, profile, &script);
        assert!(out.ends_with("end\n"), "{}: {out}", file.display());
        out != "end\n"
    })
}

/// Where the profile that is extended opens what is closed, the denial stays, and what is open in it is lost.
#[test]
fn what_every_profile_opens_stays_closed() {
    as_users(|user| {
        let world = World::new(user);
        let key = world.write("secret/key", "key\n");
        let public = world.write("secret/pub/f", "public\n");
        let lossy = &["--lossy"][..];
        for denied in ["\"secret\"", "\"/\",\"secret\"", "\"/W/home/project/secret\""] {
            let document = srt(&format!("\"denyRead\":[{denied}],\"allowRead\":[\"secret/pub\"]"));
            let (profile, lost) = made(&world, "srt", &document, lossy);
            assert!(lost.contains("secret/pub' stays closed with '"), "{denied}: {lost}");
            // Where all is closed nothing starts.
            if !denied.contains("\"/\"") {
                assert_eq!(reads(&world, &profile, [&key, &public]), [false, false], "{denied}");
            }
        }
        // The twin: what no profile opens is open in part.
        let (kept, inner) = (world.outside.join("kept"), world.outside.join("dir/inner"));
        let document = srt("\"denyRead\":[\"/W/outside\"],\"allowRead\":[\"/W/outside/dir\"]");
        let (profile, lost) = made(&world, "srt", &document, lossy);
        assert!(lost.contains("and nothing else of the machine"), "{lost}");
        assert_eq!(reads(&world, &profile, [&kept, &inner]), [false, true]);
    });
}

/// There a denial of reading wins over a permission to edit, but the workspace stays open.
#[test]
fn denials_of_claude_code_win() {
    as_users(|user| {
        let world = World::new(user);
        let (kept, inner) = (world.outside.join("kept"), world.outside.join("dir/inner"));
        let document = |denied: &str| {
            format!(
                "{{\"permissions\":{{\"deny\":[{denied}],\"allow\":[\"Edit(//W/outside/dir/**)\",\"Edit(./**)\"]}}}}"
            )
        };
        let (profile, lost) = made(&world, "claude", &document("\"Read(//W/outside/**)\""), &["--lossy"]);
        assert!(lost.contains("permissions.allow[0]: a denial has no exceptions: '"), "{lost}");
        assert_eq!(reads(&world, &profile, [&kept, &inner]), [false, false]);
        assert!(changes(&world, &profile, &world.path("made")));
        let profile = made_whole(&world, "claude", &document(""));
        assert_eq!(reads(&world, &profile, [&kept, &inner]), [true, true]);
        assert!(changes(&world, &profile, &inner));
    });
}

/// A unit that begins from an empty root has less than every profile opens.
#[test]
fn what_a_unit_does_not_open_is_said() {
    as_users(|user| {
        let world = World::new(user);
        let unit = "[Service]\nTemporaryFileSystem=/:ro\nBindReadOnlyPaths=/usr /lib /lib64 /bin\n";
        let (_, lost) = made(&world, "systemd", unit, &["--lossy"]);
        assert!(lost.contains("stays open, as in every profile (and "), "{lost}");
        let exported =
            world.sbx(["profile", "export", "--lossy", "--to", "systemd", "read-only"]).run().success();
        let (_, lost) = made(&world, "systemd", &exported.out(), &["--lossy"]);
        assert!(!lost.contains("as in every profile"), "{lost}");
    });
}

/// Where homes are closed a home may be elsewhere: what a unit takes away there is taken away.
#[test]
fn what_a_unit_says_about_a_home_holds_wherever_that_is() {
    as_users(|user| {
        let world = World::new(user);
        let (fixed, open) = (world.home.join("fixed/f"), world.home.join("open"));
        let secret = world.write(world.home.join("secret/f"), "secret\n");
        world.write(&fixed, "");
        let rules = "InaccessiblePaths=%h/secret\nReadOnlyPaths=%h/fixed\n";
        for (closed, rules, is_open) in [
            ("ProtectHome=yes\n", rules, false),
            ("InaccessiblePaths=/home\n", rules, false),
            ("", rules, false),
            ("ProtectHome=yes\n", "", true),
        ] {
            let unit = format!("[Service]\n{closed}ReadWritePaths=/W/home\n{rules}");
            let profile = made_whole(&world, "systemd", &unit);
            assert_eq!(reads(&world, &profile, [&secret]), [is_open], "{unit}");
            assert_eq!(changes(&world, &profile, &fixed), is_open, "{unit}");
            assert!(changes(&world, &profile, &open), "{unit}");
        }
    });
}

/// Names that srt keeps at the top of what may be written. What is not there may be made.
#[test]
fn mandatory_names_of_srt_stay_as_they_are() {
    as_users(|user| {
        let world = World::new(user);
        for (place, top, names) in [
            (".", world.workspace.clone(), &[".bashrc", ".gitmodules", ".ripgreprc"][..]),
            (
                "/W/outside/dir",
                world.outside.join("dir"),
                &[".bashrc", ".mcp.json", ".vscode/tasks.json", ".git/hooks/pre-commit", ".git/config"],
            ),
        ] {
            let document = srt(&format!("\"allowWrite\":[\"{place}\"]"));
            names.iter().for_each(|name| drop(world.write(top.join(name), "kept\n")));
            let (profile, lost) = made(&world, "srt", &document, &["--lossy"]);
            assert!(lost.starts_with("sbx: lost: filesystem.allowWrite: files like .bashrc"), "{lost}");
            for name in names {
                assert!(!changes(&world, &profile, &top.join(name)), "{place}: {name}");
            }
            assert!(changes(&world, &profile, &top.join("other")));
            let absent = top.join(".zshrc");
            prints(&world, &profile, &format!("echo x > '{}'", absent.display()));
            assert!(world.exists(&absent));
        }
    });
}
