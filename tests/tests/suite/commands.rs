//! Lists of commands that may, or may not, be executed: they hold for every name of a command.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use sbx_tests::world::SECRET;
use sbx_tests::{Output, User, World, as_users, in_worlds};

/// A workspace with a program under several names; each creates the file that its argument names.
fn stocked(user: &User) -> World {
    let world = World::new(user);
    world.make_dir(&world.path("tools"));
    let first = world.install(Path::new("/usr/bin/touch"), "tools/first");
    world.make_dir(&world.path("more"));
    fs::hard_link(&first, world.path("tools/second")).unwrap();
    fs::hard_link(&first, world.path("more/third")).unwrap();
    symlink(&first, world.path("more/link")).unwrap();
    world.install(Path::new("/usr/bin/touch"), "tools/other");
    world.script("tools/script", "#!/usr/bin/perl\nopen(F, '>', $ARGV[0]);\n");
    world
}

/// Runs these programs in one shell; returns those that created their file.
fn made(world: &World, flags: &[&str], programs: &[&str]) -> Vec<String> {
    let script: String = programs
        .iter()
        .enumerate()
        .map(|(index, program)| format!("{program} made-{index} 2>/dev/null\n"))
        .collect();
    let words: Vec<&str> = [&["run"], flags, &["--", "sh", "-c", &script, "sh"]].concat();
    let _ = world.sbx(words).run();
    let made = |(index, _): &(usize, &&str)| fs::remove_file(world.path(format!("made-{index}"))).is_ok();
    programs.iter().enumerate().filter(made).map(|(_, program)| (*program).to_string()).collect()
}

const ALL: &[&str] = &[
    "tools/first",
    "tools/second",
    "more/third",
    "more/link",
    "tools/other",
    "tools/script",
    "/usr/bin/touch",
    "touch",
];

#[test]
fn a_blocked_command_is_blocked_under_all_its_names() {
    as_users(|user| {
        let world = stocked(user);
        assert_eq!(made(&world, &[], ALL), ALL, "without the flag all of them run");
        let others = ["tools/other", "tools/script", "/usr/bin/touch", "touch"];
        for name in ["./tools/first", "more/third", "more/link", "tools/s*d"] {
            assert_eq!(made(&world, &["--block-command", name], ALL), others, "{name}");
        }
        let own = &ALL[..6];
        assert_eq!(made(&world, &["--block-command", "touch"], ALL), own);
        assert_eq!(made(&world, &["--block-command", "tou*h"], ALL), own);
        assert_eq!(made(&world, &["--block-command", "/usr/bin/touch"], ALL), own);
        assert_eq!(
            made(&world, &["--block-command", "./tools"], ALL),
            ["more/third", "/usr/bin/touch", "touch"]
        );
        assert_eq!(made(&world, &["--block-command", "no-such-command"], ALL), ALL);
        // A script does not run without its interpreter, which is another file.
        let perl = made(&world, &["--block-command", "perl"], ALL);
        assert!(!perl.contains(&"tools/script".to_string()) && perl.len() == ALL.len() - 1, "{perl:?}");
    });
}

#[test]
fn a_system_command_is_blocked_under_its_hard_links() {
    in_worlds(|world| {
        let script = "perl -e 'open F, \">one\"'; perl5*.*[0-9] -e 'open F, \">two\"'; : > three";
        world.sbx(["run", "--", "sh", "-c", &script.replace("perl5*.*[0-9]", &other_perl())]).run().success();
        assert!(world.exists("one") && world.exists("two"));
        for file in ["one", "two", "three"] {
            fs::remove_file(world.path(file)).unwrap();
        }
        let script = script.replace("perl5*.*[0-9]", &other_perl());
        world.sbx(["run", "--block-command", "perl", "--", "sh", "-c", &script]).run().success();
        assert!(world.exists("three") && !world.exists("one") && !world.exists("two"));
    });
}

/// The name with the version, which is a hard link.
fn other_perl() -> String {
    let names = fs::read_dir("/usr/bin").unwrap().flatten().map(|entry| entry.file_name());
    let mut names = names.filter_map(|name| name.into_string().ok());
    names.find(|name| name.starts_with("perl5.") && !name.contains('-')).unwrap_or_else(|| "perl".into())
}

#[test]
fn only_allowed_commands_run() {
    as_users(|user| {
        let world = stocked(user);
        let flags = ["--allow-command", "sh"];
        assert_eq!(made(&world, &flags, ALL), [""; 0]);
        assert_eq!(
            made(&world, &[&flags[..], &["--allow-command", "touch"]].concat(), ALL),
            ["/usr/bin/touch", "touch"]
        );
        assert_eq!(
            made(&world, &[&flags[..], &["--allow-command", "tools/first"]].concat(), ALL),
            ["tools/first", "tools/second", "more/third", "more/link"],
            "the names of one file"
        );
        // With its interpreter.
        assert_eq!(
            made(&world, &[&flags[..], &["--allow-command", "tools/script"]].concat(), ALL),
            ["tools/script"]
        );
        assert_eq!(
            made(&world, &[&flags[..], &["--allow-command", "./tools"]].concat(), ALL),
            ["tools/first", "tools/second", "more/link", "tools/other"]
        );
        let both = ["--allow-command", "./tools", "--block-command", "tools/other"];
        assert_eq!(
            made(&world, &[&flags[..], &both].concat(), ALL),
            ["tools/first", "tools/second", "more/third", "more/link"],
            "what is blocked stays blocked, and its neighbours are allowed as files"
        );
        assert_eq!(made(&world, &["--allow-command", "*"], ALL), ALL, "anything");
        // A program that the command makes is not allowed.
        let script = "read x < tools/other; while :; do break; done; cp tools/other new; ./new made";
        let words = ["run", "--allow-command", "sh", "--allow-command", "cp", "--", "sh", "-c", script];
        world.sbx(words).run().failed();
        assert!(world.exists("new") && !world.exists("made"));
    });
}

fn refused(world: &World, flags: &[&str], command: &str, words: &[&str]) -> Output {
    world.sbx([&["run"], flags, &["--", command, "made"]].concat()).run().refused(126, words)
}

#[test]
fn the_lists_apply_to_the_command_itself() {
    as_users(|user| {
        let world = stocked(user);
        refused(&world, &["--block-command", "touch"], "touch", &["refused to run", "--block-command touch"]);
        refused(&world, &["--block-command", "tools/first"], "more/third", &["tools/first"]);
        refused(&world, &["--block-command", "perl"], "tools/script", &["it needs", "perl"]);
        refused(&world, &["--allow-command", "cat"], "touch", &["not among", "--allow-command"]);
        assert!(!world.exists("made"));
        world.sbx(["run", "--allow-command", "touch", "--", "touch", "made"]).run().success();
        assert!(world.exists("made"));
        let cause =
            world.sbx(["run", "--report", "../report", "--block-command", "touch", "--", "touch", "made"]);
        cause.run().exited(126);
        let report = world.read("../report").unwrap();
        assert!(
            report.contains("\"cause\": \"refused\"") || report.contains("\"cause\":\"refused\""),
            "{report}"
        );
    });
}

#[test]
fn profiles_can_have_these_lists() {
    as_users(|user| {
        let world = stocked(user);
        let text = r#"{"extends": "workspace", "commands": {
            "allow": ["sh", "touch", "missing", "${WORKSPACE}/tools", "/usr/bin/per*"], "block": ["${WORKSPACE}/tools/o*"]}}"#;
        let profile = world.write("../p.json", text);
        let flags = ["-p", profile.to_str().unwrap()];
        let expected: Vec<&str> = ALL.iter().copied().filter(|name| *name != "tools/other").collect();
        assert_eq!(made(&world, &flags, ALL), expected);
        let words = [&["run"], &flags[..], &["--", "tools/other", "made"]].concat();
        world.sbx(words).run().refused(126, &["commands.block[0] of profile"]);
        let words = [&["run"], &flags[..], &["--", "cat", "tools/script"]].concat();
        world.sbx(words).run().refused(126, &["not among"]);
        let words = [&["run"], &flags[..], &["--", "touch", "made"]].concat();
        world.sbx(words).run().success().says("not found, and so not allowed: 'missing' (commands.allow[2]");
        let words = ["run", "--block-command", "crul", "--block-command", "cat", "--", "true"];
        let out = world.sbx(words).run().success();
        out.says("not found, and so it blocks nothing: --block-command crul\n");
    });
}

#[test]
fn answers_and_hints_name_the_list() {
    as_users(|user| {
        let world = stocked(user);
        let ask = |flags: &[&str], path| {
            world.sbx([&["why"], flags, &["--op", "x", "--path", path]].concat()).run()
        };
        ask(&["--block-command", "touch"], "/usr/bin/touch").exited(1).prints_rule("--block-command touch");
        ask(&["--block-command", "touch"], "/usr/bin/cat").exited(0);
        ask(&["--block-command", "tools/first"], "more/third").exited(1).prints_rule("tools/first");
        ask(&["--allow-command", "cat"], "/usr/bin/cat").exited(0).prints_rule("--allow-command cat");
        ask(&["--allow-command", "cat"], "/usr/bin/touch")
            .exited(1)
            .prints_rule("--allow-command /usr/bin/touch");
        let explain = |flags: &[&str]| {
            let words = [&["run", "--explain"], flags, &["--", "sh", "-c", "touch made; :"]].concat();
            world.sbx(words).run().success()
        };
        explain(&["--block-command", "touch"]).says("--block-command touch blocks /usr/bin/touch");
        explain(&["--allow-command", "sh"]).says("allow it with --allow-command /usr/bin/touch");
        assert!(!world.exists("made"));
    });
}

trait Prints {
    fn prints_rule(self, text: &str) -> Self;
}

impl Prints for Output {
    #[track_caller]
    fn prints_rule(self, text: &str) -> Output {
        assert!(self.out().contains(text), "lacks {text:?}: {self}");
        self
    }
}

#[test]
fn lists_that_cannot_be_enforced_are_refused() {
    as_users(|user| {
        let world = stocked(user);
        let none = [(libc::SYS_landlock_create_ruleset, libc::ENOSYS)];
        let run = |flags: &[&str]| world.sbx([&["run"], flags, &["--", "touch", "made"]].concat());
        for flags in [["--allow-command", "touch"], ["--block-command", "cat"]] {
            run(&flags).answering(&none).run().refused(125, &["cannot restrict which commands", "Landlock"]);
        }
        let unconfined = ["--dangerously-unconfined", "--block-command", "cat"];
        run(&unconfined).run().refused(125, &["contradict"]);
        run(&["--block-command", "no/such"]).run().refused(125, &["no/such", "no such file"]);
        assert!(!world.exists("made"));
        // A rule for each neighbour, but not a descriptor for each.
        run(&["--block-command", "cat"]).open_files(300).run().success();
        assert!(world.exists("made"));
    });
}

#[test]
fn the_self_test_holds_with_lists_of_commands() {
    as_users(|user| {
        let world = stocked(user);
        let profile =
            world.write("../p.json", r#"{"extends": "workspace", "commands": {"allow": ["touch"]}}"#);
        world.sbx(["test", "-p", profile.to_str().unwrap()]).run().success();
        let words = ["run", "--verify", "--allow-command", "touch", "--", "touch", "made"];
        world.sbx(words).run().success();
        assert!(world.exists("made"));
    });
}

/// A directory that can be entered but not listed may hold another name of a blocked command.
#[test]
fn a_name_that_cannot_be_searched_for_is_refused() {
    as_users(|user| {
        let world = stocked(user);
        let mode = |mode| fs::set_permissions(world.path("more"), fs::Permissions::from_mode(mode)).unwrap();
        // The search for a name that does not exist goes through every executable place: on some machines that is a
        // lot.
        let run = || {
            let words = ["run", "--block-command", "tools/first", "--", "tools/other", "ran"];
            world.sbx(words).timeout(Duration::from_secs(300)).run()
        };
        mode(0o111);
        if user.is_root() {
            run().success();
        } else {
            run().refused(125, &["cannot look for other names", "more"]);
            assert!(!world.exists("ran"));
            world.bare(["more/third", "named"]).run().success();
            // The command cannot execute anything there either.
            mode(0o000);
            run().success();
            world.bare(["sh", "-c", "more/third named"]).run().failed();
        }
        mode(0o755);
        run().success();
        assert!(world.exists("ran"));
    });
}

/// A program outside, named by what an earlier command may have written; it starts another script of the workspace.
fn led_outside(user: &User) -> (World, String) {
    let world = World::new(user);
    let text = format!("#!/bin/sh\n# {SECRET}\nexec sh ./next\n");
    let tool = world.script(world.outside.join("tool"), text).display().to_string();
    world.script("script", format!("#!{tool}\n"));
    world.script("next", format!("cat {tool}\n"));
    symlink(&tool, world.path("link")).unwrap();
    (world, tool)
}

/// Nothing that the workspace names is opened for this purpose, whether a script's first line or a link names it.
#[test]
fn a_program_outside_that_the_workspace_names_is_not_opened() {
    as_users(|user| {
        let (world, tool) = led_outside(user);
        let run =
            |flags: &[&str], command: &str| world.sbx([&["run"], flags, &["--", command]].concat()).run();
        for name in ["./script", "./link", "../project/script"] {
            run(&[], name).refused(126, &[&tool, "--rox"]);
            assert!(run(&["--rox", &tool], name).success().out().contains(SECRET), "{name}");
        }
        // Here the user names it.
        for name in [tool.as_str(), "../../outside/tool"] {
            assert!(run(&[], name).success().out().contains(SECRET), "{name}");
        }
    });
}

#[test]
fn a_list_of_commands_opens_no_program_outside_that_the_workspace_names() {
    as_users(|user| {
        let (world, tool) = led_outside(user);
        let read = |allowed: &str| {
            let words = ["run", "--allow-command", allowed, "--allow-command", "cat", "--", "cat", &tool];
            world.sbx(words).run()
        };
        for name in ["./script", "./link"] {
            let out = read(name).exited(1);
            assert!(!out.out().contains(SECRET) && out.err().contains("is not allowed"), "{out}");
        }
        assert!(read(&tool).success().out().contains(SECRET));
        let own = ["run", "--allow-command", "./script", "--allow-command", "sh", "--", "./script"];
        world.sbx(own).run().refused(126, &[&tool, "--rox"]);
    });
}
