//! What a hostile command does not teach: each attempt has a twin that the user allows.

use super::{FILE, learn, learned, under_learned};
use sbx_tests::servers::{HttpServer, UnixServer};
use sbx_tests::world::SECRET;
use sbx_tests::{World, in_worlds, kernel, need, promise};
use serde_json::Value;

/// Whether any rule of the learned profile is about a path with these words.
fn names(profile: &Value, words: &str) -> bool {
    let lists = profile["paths"].as_object().into_iter().flatten().filter(|(key, _)| *key != "protect");
    let mut rules = lists.flat_map(|(_, list)| list.as_array().unwrap());
    // A reason may name what a rule is not about.
    rules.any(|rule| rule["path"].as_str().unwrap().contains(words))
}

fn secret(world: &World) -> String {
    world.home.join(".ssh/id_rsa").display().to_string()
}

#[test]
fn secrets_are_learned_only_where_the_user_says_so() {
    in_worlds(|world| {
        let other = world.home.join("other-project/.env");
        let script =
            format!("cat {} {} {}/kept; true", secret(world), other.display(), world.outside.display());
        let out = learn(world, &[], &script).run().success();
        assert!(!out.out().contains(SECRET), "{out}");
        assert!(out.err().contains("sensitive: ") && out.err().contains("--allow-sensitive"), "{out}");
        assert!(names(&learned(world).unwrap(), "kept"), "{out}");
        assert!(
            !names(&learned(world).unwrap(), ".ssh") && !names(&learned(world).unwrap(), ".env"),
            "{out}"
        );
        let out = under_learned(world, &script);
        assert!(out.out().contains("outside") && !out.out().contains(SECRET), "{out}");
        // A flag names one of them.
        let out = learn(world, &["--ro", &secret(world)], &script).run().success();
        assert_eq!(out.out().matches(SECRET).count() % 2, 0, "{out}");
        assert!(names(&learned(world).unwrap(), ".ssh/id_rsa"), "{out}");
        assert!(!names(&learned(world).unwrap(), "other-project"), "{out}");
        learn(world, &["--allow-sensitive"], &script).run().success();
        let out = under_learned(world, &script);
        assert_eq!(out.out().matches(SECRET).count(), 2, "{out}");
    });
}

/// What git executes stays as it is under a profile that was learned from git.
#[test]
fn a_learned_commit_opens_no_hooks() {
    in_worlds(|world| {
        need!("git");
        let git = "git -c user.name=a -c user.email=a@b.c";
        world
            .bare(["sh", "-c", &format!("git init -q . && {git} commit -q --allow-empty -m first")])
            .run()
            .success();
        let script = format!("{git} commit -q --allow-empty -m more");
        let out = learn(world, &[], &script).run().success();
        assert!(learned(world).unwrap()["namespaces"] == "auto", "{out}");
        let attack = "echo '#!/bin/sh' > .git/hooks/post-commit; echo '[core]' >> .git/config; true";
        let before = world.read(".git/config");
        let out = under_learned(world, &format!("{script}; {attack}"));
        let log = world.bare(["git", "rev-list", "--count", "HEAD"]).run();
        assert!(log.out().trim().parse::<u32>().is_ok_and(|count| count >= 3), "{out} {log}");
        if kernel::promises_namespaces() {
            assert_eq!(
                (world.exists(".git/hooks/post-commit"), world.read(".git/config")),
                (false, before),
                "{out}"
            );
        }
        // The twin: who is given the directory gets what is in it.
        let out = world.sbx(["run", "-p", "read-only", "--rw", ".git", "--", "/bin/sh", "-c", attack]).run();
        assert!(world.exists(".git/hooks/post-commit"), "{out}");
    });
}

/// A start-up file of the user's that is a link into the workspace is protected there.
#[test]
fn what_a_home_directory_leads_to_stays_protected() {
    in_worlds(|world| {
        let kept = world.write("dot/bashrc", "as it was\n");
        std::os::unix::fs::symlink(&kept, world.home.join(".bashrc")).unwrap();
        learn(world, &[], "echo x > ordinary").run().success();
        if !kernel::promises_namespaces() {
            return;
        }
        let attack = "echo changed >> dot/bashrc; echo x > more; true";
        let out = under_learned(world, attack);
        assert_eq!(
            (world.read("dot/bashrc").as_deref(), world.exists("more")),
            (Some("as it was\n"), true),
            "{out}"
        );
        // The twin.
        let loose = serde_json::json!({ "extends": "read-only", "paths": { "write": ["${WORKSPACE}"] } });
        world.write("../loose.json", loose.to_string());
        let out = world.sbx(["run", "-p", "../loose.json", "--", "/bin/sh", "-c", attack]).run();
        assert!(world.read("dot/bashrc").unwrap().contains("changed"), "{out}");
    });
}

#[test]
fn listing_the_home_directory_teaches_no_right_on_all_of_it() {
    in_worlds(|world| {
        let script = format!("ls -a {}; true", world.home.display());
        learn(world, &[], &script).run().success();
        assert!(!learned(world).unwrap()["paths"].to_string().contains("HOME"), "{:?}", learned(world));
        let read = format!("cat {}", secret(world));
        let out = under_learned(world, &read);
        assert!(!out.out().contains(SECRET), "{out}");
    });
}

/// A command that may write a directory puts a link to a secret where it was allowed to execute a file.
#[test]
fn a_link_in_the_place_of_a_learned_file_leads_nowhere() {
    in_worlds(|world| {
        let at = world.outside.join("box").display().to_string();
        world.make_dir(&world.outside.join("box"));
        let plant = format!(
            "cp /bin/true {at}/tool && {at}/tool && rm -f {at}/tool && ln -s {} {at}/tool",
            secret(world)
        );
        learn(world, &["--rounds", "40"], &format!("rm -f {at}/tool; {plant}")).run().success();
        let profile = learned(world).unwrap();
        assert!(names(&profile, "outside/box") && !names(&profile, "tool"), "{profile:#}");
        let read = format!("cat {at}/tool; echo end");
        let out = under_learned(world, &read);
        assert_eq!(out.out(), "end\n", "{out}");
        let run = world.sbx(["run", "-p", FILE, "--ro", &secret(world), "--", "/bin/sh", "-c", &read]).run();
        assert!(run.out().contains(SECRET), "{run}");
    });
}

/// It would be taken for the one that was learned.
#[test]
fn a_profile_of_the_commands_does_not_take_the_place_of_the_learned_one() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        world.make_dir(&world.path("real"));
        for (before, away) in [
            ("mkdir out", "mv out out2 && mkdir out"),
            ("ln -s real out", "rm out && mkdir out"),
            ("mkdir out", "true"),
        ] {
            world.bare(["sh", "-c", &format!("rm -rf out out2 real/p.json; {before}")]).run().success();
            let script = format!("touch built; {away}; echo '{{}}' > out/p.json");
            let words = ["learn", "-p", "workspace", "-o", "out/p.json", "--", "sh", "-c", &script];
            let out = world.sbx(words).run();
            if away == "true" {
                out.success().says("wrote 'out/p.json'").says("it lies in the workspace");
                assert_ne!(world.read("out/p.json").as_deref(), Some("{}\n"));
                let words = ["learn", "-p", "workspace", "-o", "../p.json", "--", "sh", "-c", &script];
                let out = world.sbx(words).run().success();
                assert!(!out.err().contains("it lies in the workspace"), "{out}");
            } else {
                let out = out.exited(125).says("its directory was moved or replaced meanwhile");
                assert!(!out.err().contains("wrote") && !out.err().contains("run it with"), "{out}");
            }
        }
    });
}

#[test]
fn services_outside_are_not_learned() {
    in_worlds(|world| {
        need!("python3");
        let socket = world.outside.join("service.sock");
        let service = UnixServer::at(&socket);
        let server = HttpServer::start();
        let (url, is_digit) = (server.url(), |letter: &char| letter.is_ascii_digit());
        let port: String = url.rsplit(':').next().unwrap().chars().take_while(is_digit).collect();
        let script = format!(
            "/usr/bin/python3 -c \"import socket
for kind, to in ((socket.AF_UNIX, '{}'), (socket.AF_INET, ('127.0.0.1', {}))):
    try: socket.socket(kind).connect(to)
    except OSError as error: print(error)
\"",
            socket.display(),
            port
        );
        let out = learn(world, &["--profile", "read-only"], &script).run().success();
        assert!((service.connections(), server.connections()) == (0, 0), "{out}");
        let profile = learned(world).unwrap();
        assert_eq!(profile["network"]["unix"], Value::Null, "{profile:#}");
        assert!(out.err().contains("service"), "{out}");
        // The twin.
        let given = ["--profile", "read-only", "--unix", socket.to_str().unwrap()];
        let out = learn(world, &given, &script).run().success();
        assert!(service.connections() > 0, "{out}");
    });
}

/// A directory with a service's socket in it is none to write to: who may write there may connect. Hooks of a
/// repository elsewhere are none either, whatever the repository is called.
#[test]
fn what_lies_around_outside_is_not_learned_with_its_directory() {
    in_worlds(|world| {
        let at = world.outside.display();
        world.make_dir(&world.outside.join("served"));
        let _service = UnixServer::at(&world.outside.join("served/service.sock"));
        for file in ["work/.git/hooks/here", "bare/HEAD", "bare/objects/x", "bare/hooks/here", "data/here"] {
            world.write(world.outside.join(file), "x");
        }
        for (directory, learned_it) in
            [("served", false), ("work/.git/hooks", false), ("bare/hooks", false), ("data", true)]
        {
            let script = format!("echo x > {at}/{directory}/planted; true");
            let planted = world.outside.join(directory).join("planted");
            let out = learn(world, &[], &script).run().success();
            let profile = learned(world).unwrap();
            assert_eq!((names(&profile, directory), planted.exists()), (learned_it, learned_it), "{out}");
            // The twin.
            if !learned_it {
                learn(world, &["--allow-sensitive"], &script).run().success();
                assert!(planted.exists() && names(&learned(world).unwrap(), directory), "{directory}");
            }
        }
    });
}

#[test]
fn made_up_names_end_learning_and_nothing_is_written() {
    in_worlds(|world| {
        let at = world.outside.join("many");
        for number in 0..300 {
            world.write(at.join(format!("{number}/file")), "x\n");
        }
        let script = format!("for file in $(seq 0 299); do cat {}/$file/file; done; true", at.display());
        let out = learn(world, &["--profile", "read-only"], &script).run();
        assert_eq!((out.code, learned(world)), (Some(125), None), "{out}");
        assert!(out.err().contains("asks for more than 256 rules"), "{out}");
        // Given the directory, there is nothing to learn.
        let given = ["--profile", "read-only", "--ro", at.to_str().unwrap()];
        let out = learn(world, &given, &script).run().success();
        assert_eq!(out.out().lines().count(), 300, "{out}");
    });
}

#[test]
fn names_with_control_characters_reach_neither_terminal_nor_profile() {
    in_worlds(|world| {
        let path = world.write(world.outside.join("red\u{1b}[31m\nname"), "x\n");
        let script = format!("cat '{}' 2>/dev/null; true", path.display());
        let out = learn(world, &["--profile", "read-only"], &script).run().success();
        let own: Vec<_> = out.err().lines().filter(|line| line.contains("red")).map(String::from).collect();
        assert!(!own.is_empty() && own.iter().all(|line| !line.contains('\u{1b}')), "{out}");
        // The name itself is what the rule is about.
        let out = under_learned(world, &script);
        assert_eq!(out.out(), "x\n", "{out}");
    });
}

/// What a round leaves in the workspace is said, as after any run.
#[test]
fn what_a_round_plants_is_told() {
    need!("git");
    in_worlds(|world| {
        let plant = "mkdir -p made && cd made && git init -q . && git config core.fsmonitor false";
        let out = learn(world, &["--profile", "workspace"], plant).run().success();
        assert_eq!(out.err().matches("the command made the repository").count(), 1, "{out}");
        // The twin plants nothing.
        let out = learn(world, &["--profile", "workspace"], "git init -q other").run().success();
        assert!(!out.err().contains("the command made"), "{out}");
    });
}
