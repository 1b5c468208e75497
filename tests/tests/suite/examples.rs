//! The programs in examples/ do what they are there to show, each in its own language.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sbx_tests::{Cmd, Output, World, in_worlds, need, stage};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");

/// An example as it is started: a program and its first arguments.
struct Example<'a> {
    world: &'a World,
    words: Vec<PathBuf>,
}

impl Example<'_> {
    fn run(&self, arguments: &[&str]) -> Output {
        let words = self.words.iter().map(|word| word.as_os_str());
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", stage::sbx().parent().unwrap().display());
        let command = self.world.bare(words).args(arguments);
        command.env("PATH", &path).timeout(Duration::from_secs(60)).run()
    }

    /// Each example prints the same words, whatever the language.
    fn shows_what_it_should(&self) {
        let out = self.run(&["echo text; echo more >&2; exit 3"]).exited(3).silent().out();
        assert!(out.contains("text\n") && out.contains("more\n"), "{out}");
        assert!(out.ends_with("exited: status 3\n") && !out.contains("refused"), "{out}");

        let connect = "exec 3<>/dev/tcp/192.0.2.1/9; mkdir made";
        let out = self.run(&[connect]).exited(0).silent().out();
        // Without a network of its own the command makes no socket.
        let refused = ["\nrefused: connect(AF_INET 192.0.2.1:9)", "\nrefused: socket(AF_INET, "];
        assert!(refused.iter().any(|refused| out.contains(refused)), "{out}");
        assert!(out.contains(" in bash, 1 times; allowed by: --"), "{out}");
        assert!(self.world.exists("made"));

        let out = self.run(&["echo begun; sleep 100", "1"]).exited(124).silent().out();
        assert!(out.contains("begun\n") && out.contains("\ntimeout: ended after 1."), "{out}");

        let odd = "cp /bin/bash \"$(printf 'a\\377\\033')\"; ./a* -c ': <>/dev/tcp/192.0.2.1/9; :'";
        let out = self.run(&[odd]).exited(0).silent();
        let tail = out.out().split_once("refused: ").map(|(_, tail)| tail.to_string()).unwrap_or_default();
        assert!(tail.contains("allowed by: ") && !tail.contains('\u{1b}'), "{out}");

        let out = self.run(&["true", "0"]).exited(125).silent().out();
        assert!(out.contains("not run: ") && out.contains("zero"), "{out}");
    }
}

fn source(path: &str) -> PathBuf {
    Path::new(EXAMPLES).join(path)
}

/// A copy in a world, where every user can read it.
fn copied(world: &World, path: &str) -> PathBuf {
    let content = std::fs::read(source(path)).unwrap();
    world.write(world.outside.join(Path::new(path).file_name().unwrap()), content)
}

fn script_works(interpreter: &str, path: &str) {
    in_worlds(|world| {
        let words = vec![PathBuf::from(interpreter), copied(world, path)];
        Example { world, words }.shows_what_it_should();
    });
}

#[test]
fn python() {
    need!("python3");
    script_works("/usr/bin/python3", "python/run.py");
}

#[test]
fn node() {
    need!("node");
    script_works("node", "node/run.js");
}

#[test]
fn go() {
    need!("go");
    let program = stage::base().join("example-go");
    let cache = stage::base().join("example-go-cache");
    let build = Cmd::new("go").args(["build", "-o"]).arg(&program).arg(source("go/run.go"));
    let build = build.env("GOCACHE", &cache).env("HOME", stage::base()).env("GOFLAGS", "-mod=mod");
    build.timeout(Duration::from_secs(300)).run().success();
    in_worlds(|world| {
        let program = world.install(&program, "../../outside/example");
        Example { world, words: vec![program] }.shows_what_it_should();
    });
}

#[test]
fn rust() {
    in_worlds(|world| {
        let program = world.install(Path::new(env!("CARGO_BIN_EXE_example-rust")), "../../outside/example");
        Example { world, words: vec![program] }.shows_what_it_should();
    });
}

/// A whole directory of examples beside another one, as they are.
fn copied_all(world: &World, directories: &[&str]) -> PathBuf {
    let base = world.outside.join("examples");
    for directory in directories {
        for entry in
            std::fs::read_dir(source(directory)).unwrap().flatten().filter(|entry| entry.path().is_file())
        {
            let content = std::fs::read(entry.path()).unwrap();
            world.write(base.join(directory).join(entry.file_name()), content);
        }
    }
    base
}

#[test]
fn a_loop_of_a_model_and_its_commands() {
    need!("python3");
    in_worlds(|world| {
        let agent = copied_all(world, &["agent-loop", "python"]).join("agent-loop/agent.py");
        let example = Example { world, words: vec!["/usr/bin/python3".into(), agent] };
        let out = example.run(&["Write double.py, and show that it works."]).success().silent().out();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.iter().filter(|line| line.starts_with("model: execute ")).count(), 4, "{out}");
        assert!(
            lines.contains(&"sbx: exited, status 0") && lines.contains(&"sbx: timeout, status 124"),
            "{out}"
        );
        assert!(out.contains("sbx: refused ") && out.contains("double.py works"), "{out}");
        // What was refused came back to the model, with the flag that would allow it.
        let last = lines.last().unwrap();
        assert!(last.contains("the last command was ended in time. The rest would need --"), "{out}");
        assert!(world.exists("double.py") && !Path::new("/usr/local/lib/double.py").exists());
    });
}

/// A model may write anything into a tool call: the loop goes on, and the terminal shows what was written.
#[test]
fn a_loop_whose_model_writes_what_it_likes() {
    const MODEL: &str = r#"
CALLS = [{}, {"command": 5}, {"command": "a\0b"}, {"command": "\ud800"}, {"command": "echo \x1b[2J; touch made"}]
def answer(messages, tools):
    done = sum(message["role"] == "tool" for message in messages)
    return {"call": {"tool": "execute", "arguments": CALLS[done]}} if done < len(CALLS) else {"text": "end\x1b[0m"}
"#;
    need!("python3");
    in_worlds(|world| {
        let agent = copied_all(world, &["agent-loop", "python"]).join("agent-loop/agent.py");
        world.write(agent.with_file_name("model.py"), MODEL);
        let example = Example { world, words: vec!["/usr/bin/python3".into(), agent] };
        let out = example.run(&["Go on."]).success().silent().out();
        assert_eq!(out.matches("sbx: refused, status 125").count(), 4, "{out}");
        assert!(
            world.exists("made") && out.ends_with("model: end\\x1b[0m\n") && !out.contains('\x1b'),
            "{out}"
        );
    });
}
